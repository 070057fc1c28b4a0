//! Validation of training settings.

use super::precision::TRAINABLE;
use super::train_config::TrainConfig;
use regard_core::model::{EncoderKind, ModelConfig};
use regard_core::{DType, Error, Result};

/// More steps or passes than any run takes.
const LONG: u64 = 1_000_000_000_000;

/// Ten years.
const MINUTES: f64 = 5_256_000.0;

fn in_section(section: &str, error: Error) -> Error {
    match error {
        Error::Config { field, message } => Error::config(format!("{section}.{field}"), message),
        other => other,
    }
}

impl TrainConfig {
    /// Rejects invalid settings, naming the setting.
    pub fn check(&self) -> Result<()> {
        // The vocabulary sizes are not known yet; any will do.
        ModelConfig { source_vocabulary: 300, target_vocabulary: 300, ..self.model.clone() }
            .validate()
            .map_err(|e| in_section("model", e))?;
        self.filters.check().map_err(|e| in_section("filters", e))?;
        self.schedule.check()?;
        self.batch.plan.check().map_err(|e| in_section("batch", e))?;
        self.validation.every.check("validation.every")?;
        self.checkpoints.every.check("checkpoints.every")?;
        self.check_dtypes()?;
        self.check_least()?;
        self.check_most()?;
        self.check_positive()?;
        self.check_rates()?;
        if !(0.0..=1.0).contains(&self.terms.share) {
            let message = format!("{} is not a share from 0 to 1", self.terms.share);
            return Err(Error::config("terms.share", message));
        }
        if self.steps.is_none() && self.epochs.is_none() && self.minutes.is_none() {
            return Err(Error::config("steps", "the run has no end; give steps, epochs or minutes"));
        }
        Ok(())
    }

    fn check_least(&self) -> Result<()> {
        let least_one = [
            ("threads", self.threads.map(|n| n as u64)),
            ("steps", self.steps),
            ("epochs", self.epochs),
            ("log_every", Some(self.log_every)),
            ("batch.accumulate", Some(self.batch.accumulate as u64)),
            ("validation.beam", Some(self.validation.beam as u64)),
            ("validation.max_sentences", Some(self.validation.max_sentences as u64)),
            ("validation.patience", self.validation.patience),
            ("optimizer.softmax_sample", self.optimizer.step.softmax_sample.map(|n| n as u64)),
            ("terms.max_words", Some(self.terms.max_words as u64)),
        ];
        if let Some((field, _)) = least_one.iter().find(|(_, value)| *value == Some(0)) {
            return Err(Error::config(*field, "0 is too few, at least 1 is needed"));
        }
        Ok(())
    }

    fn check_most(&self) -> Result<()> {
        let model = &self.model;
        let kernel_width = match model.encoder {
            EncoderKind::Convolutional { kernel_width, .. } => Some(kernel_width),
            _ => None,
        };
        let most = [
            ("threads", self.threads.map(|n| n as u64), 1024),
            ("steps", self.steps, LONG),
            ("epochs", self.epochs, LONG),
            ("log_every", Some(self.log_every), LONG),
            ("schedule.warmup", Some(self.schedule.warmup), LONG),
            ("batch.max_tokens", Some(self.batch.plan.max_tokens as u64), 100_000_000),
            ("batch.accumulate", Some(self.batch.accumulate as u64), 1_000_000),
            ("validation.beam", Some(self.validation.beam as u64), 1000),
            ("validation.samples", Some(self.validation.samples as u64), 1_000_000),
            ("checkpoints.average", Some(self.checkpoints.average as u64), 10_000),
            ("model.d_model", Some(model.d_model as u64), 1 << 16),
            ("model.d_ff", Some(model.d_ff as u64), 1 << 20),
            ("model.decoder_d_ff", model.decoder_d_ff.map(|n| n as u64), 1 << 20),
            ("model.d_k", model.d_k.map(|n| n as u64), 1 << 16),
            ("model.d_v", model.d_v.map(|n| n as u64), 1 << 16),
            ("model.heads", Some(model.heads as u64), 1 << 10),
            ("model.decoder_heads", model.decoder_heads.map(|n| n as u64), 1 << 10),
            ("model.encoder_layers", Some(model.encoder_layers as u64), 1000),
            ("model.decoder_layers", Some(model.decoder_layers as u64), 1000),
            ("model.kernel_width", kernel_width.map(|n| n as u64), 1 << 10),
            ("model.max_positions", Some(model.max_positions as u64), 1 << 20),
            ("model.relative_reach", Some(model.relative_reach as u64), 1 << 16),
            ("model.relative_buckets", Some(model.relative_buckets as u64), 1 << 12),
            ("model.position_offset", Some(model.position_offset as u64), 1 << 16),
        ];
        for (field, value, most) in most {
            if let Some(value) = value.filter(|&value| value > most) {
                return Err(Error::config(field, format!("{value} is too many, at most {most} is possible")));
            }
        }
        if let Some(minutes) = self.minutes.filter(|&minutes| minutes > MINUTES) {
            return Err(Error::config(
                "minutes",
                format!("{minutes} is too long, at most {MINUTES} is possible"),
            ));
        }
        Ok(())
    }

    fn check_positive(&self) -> Result<()> {
        let positive = [
            ("minutes", self.minutes),
            ("data.temperature", Some(f64::from(self.data.temperature))),
            ("optimizer.epsilon", Some(f64::from(self.optimizer.step.adam.epsilon))),
            ("optimizer.clip", self.optimizer.step.adam.clip.map(f64::from)),
            ("optimizer.r_drop", self.optimizer.step.r_drop.map(f64::from)),
            ("optimizer.muon", self.optimizer.step.muon.map(f64::from)),
        ];
        for (field, value) in positive {
            if let Some(value) = value.filter(|v| !(*v > 0.0 && v.is_finite())) {
                return Err(Error::config(field, format!("{value} is not a positive number")));
            }
        }
        Ok(())
    }

    fn check_rates(&self) -> Result<()> {
        let rates = [
            ("optimizer.beta1", self.optimizer.step.adam.beta1),
            ("optimizer.beta2", self.optimizer.step.adam.beta2),
            ("optimizer.label_smoothing", self.optimizer.step.label_smoothing),
            ("checkpoints.init_share", self.checkpoints.init_share),
            ("optimizer.ema", self.optimizer.ema.unwrap_or(0.0)),
            ("tokenizer.bpe_dropout", self.tokenizer.bpe_dropout),
            ("terms.other_forms", self.terms.other_forms),
            ("terms.other_words", self.terms.other_words),
        ];
        for (field, rate) in rates {
            if !(0.0..1.0).contains(&rate) {
                let message = format!("{rate} is not a rate from 0 up to, but not including, 1");
                return Err(Error::config(field, message));
            }
        }
        Ok(())
    }

    fn check_dtypes(&self) -> Result<()> {
        let store = self.checkpoints.store;
        if store == DType::Int8 {
            let message = "int8 cannot be trained on; use f32, bf16 or f16, and quantize the finished model";
            return Err(Error::config("checkpoints.store", message));
        }
        let floats = &DType::WEIGHTS[..3];
        let precision = self.precision.unwrap_or_default();
        for (field, dtype, possible) in [
            ("precision", precision, &TRAINABLE[..]),
            ("optimizer.wire", self.optimizer.wire, &TRAINABLE),
            ("checkpoints.store", store, floats),
        ] {
            if !possible.contains(&dtype) {
                let names: Vec<&str> = possible.iter().map(|dtype| dtype.name()).collect();
                return Err(Error::config(
                    field,
                    format!("{dtype} is not possible; use {}", names.join(" or ")),
                ));
            }
        }
        Ok(())
    }
}
