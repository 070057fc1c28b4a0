//! Runs that start from another model.

use crate::common::{foreign, run, small_config};
use crate::records::validations;
use regard_core::formats::Model;
use regard_core::model::{ModelConfig, Preset};
use regard_train::config::{DataConfig, Every};
use regard_train::{End, Schedule, ScheduleKind, TrainConfig, resumed_config};
use std::fs;

#[test]
fn early_stopping_epochs_held_out_pairs_and_a_model_to_start_from() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config(folder.path());
    (config.data.valid_src, config.data.valid_tgt) = (None, None);
    (config.steps, config.epochs) = (None, Some(2));
    config.validation.every = Every::Epochs(1);
    config.validation.metric = regard_train::config::ValidationMetric::Loss;
    let first = folder.path().join("first");
    let (outcome, messages) = run(&config, &first, false, u64::MAX);
    let steps = outcome.unwrap().steps;
    assert!(messages.contains("1 pairs of the corpus are held out"), "{messages}");
    assert_eq!(validations(&first).iter().filter(|v| v.1 == "step").count(), 2);
    assert_eq!(validations(&first)[0].0 * 2, steps);
    let page = fs::read_to_string(first.join("logs/report.html")).unwrap();
    assert!(page.contains("Finished after") && page.contains("<svg"));

    // A rate of nothing never gets better: two validations of patience after the first.
    config.data.init = Some(first.clone());
    (config.epochs, config.steps) = (Some(50), None);
    config.validation.patience = Some(2);
    config.schedule = Schedule { kind: ScheduleKind::Constant, peak: Some(1e-30), warmup: 0, max_sum: None };
    let second = folder.path().join("second");
    run(&config, &second, false, u64::MAX).0.unwrap();
    assert_eq!(validations(&second).iter().filter(|v| v.1 == "step").count(), 3);
    assert_eq!(Model::load(&second).unwrap().weights, Model::load(&first).unwrap().weights);
}

#[test]
fn a_foreign_model_is_trained_on_and_stays_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config(folder.path());
    let init = foreign(folder.path());
    config.data.init = Some(init.clone());
    config.model = TrainConfig::new(Preset::Tiny).model;
    config.tokenizer.vocabulary.size = None;
    config.batch.plan.max_tokens = 1000;
    config.steps = Some(6);
    let out = folder.path().join("out");
    let (outcome, messages) = run(&config, &out, false, 3);
    assert_eq!(outcome.unwrap().end, End::Interrupted, "{messages}");
    run(&resumed_config(&out, |_| Ok(())).unwrap(), &out, true, u64::MAX).0.unwrap();
    let (before, after) = (Model::load(&init).unwrap(), Model::load(&out).unwrap());
    assert_ne!(before.weights, after.weights);
    let shape = |model: &Model| ModelConfig { dropout: 0.0, ..model.transformer.config().clone() };
    assert_eq!(shape(&before), shape(&after));
    assert_eq!(before.transformer.output_bias(), after.transformer.output_bias());
    assert_eq!(before.generation, after.generation);
    assert_eq!(before.tokenizers.source().to_json(), after.tokenizers.source().to_json());
}

#[test]
fn a_model_to_start_from_has_the_shape_and_vocabulary_that_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let small = small_config(folder.path());
    let init = foreign(folder.path());
    let usual = TrainConfig::new(Preset::Tiny);
    let plain = TrainConfig {
        data: DataConfig { init: Some(init.clone()), ..small.data.clone() },
        model: usual.model.clone(),
        tokenizer: usual.tokenizer.clone(),
        ..small.clone()
    };
    let other = folder.path().join("other.json");
    regard_train::corpus::train_tokenizers(
        &regard_train::corpus::Inputs::Files {
            source: small.data.src.clone(),
            target: small.data.tgt.clone(),
        },
        &small.filters,
        &small.tokenizer.vocabulary,
    )
    .unwrap()
    .source()
    .save(&other)
    .unwrap();
    let out = folder.path().join("out");
    let refusal = |change: &dyn Fn(&mut TrainConfig)| {
        let mut config = plain.clone();
        change(&mut config);
        run(&config, &out, false, u64::MAX).0.unwrap_err().to_string()
    };
    let has = |what: &str| {
        format!("does not fit the model to start from, {}, which has {what}; leave this out", init.display())
    };
    assert_eq!(refusal(&|c| c.model.d_model = 16), format!("model.d_model: 16 {}", has("8")));
    assert_eq!(refusal(&|c| c.model.encoder_layers = 3), format!("model.encoder_layers: 3 {}", has("2")));
    assert_eq!(
        refusal(&|c| c.model.norm = regard_core::model::NormPlace::Pre),
        format!("model.norm: \"pre\" {}", has("\"post\""))
    );
    assert_eq!(
        refusal(&|c| c.tokenizer.vocabulary.size = Some(400)),
        format!("tokenizer.size: a vocabulary of 400 pieces {}", has("a vocabulary of 40 pieces"))
    );
    assert_eq!(
        refusal(&|c| c.tokenizer.vocabulary.separate = true),
        format!("tokenizer.separate: a vocabulary for each language {}", has("a joint one"))
    );
    let pieces = regard_core::text::Tokenizer::load(&other).unwrap().size();
    assert_eq!(
        refusal(&|c| c.tokenizer.file = Some(other.clone())),
        format!(
            "tokenizer.file: {} ({pieces} pieces) {}",
            other.display(),
            has("another tokenizer (40 pieces)")
        )
    );
    assert!(!out.exists());
}
