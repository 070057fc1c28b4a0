//! Runs on a few dozen pairs, with models of a few thousand weights.

use regard_core::Isa;
use regard_core::model::Preset;
use regard_sample_corpus as builtin;
use regard_train::config::Every;
use regard_train::{
    Outcome, Progress, Record, Schedule, ScheduleKind, StepRecord, TrainConfig, ValidationRecord, read_log,
    train,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Stops the run after a step, and remembers what it was told.
struct Watch<'a> {
    stop: &'a AtomicBool,
    after: u64,
    messages: String,
}

impl Progress for Watch<'_> {
    fn message(&mut self, text: &str) {
        self.messages += text;
        self.messages.push('\n');
    }

    fn step(&mut self, record: &StepRecord, _: Option<u64>) {
        if record.step == self.after {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn validated(&mut self, _: &ValidationRecord, _: bool) {}
}

/// Runs until `after`, if that comes before the end.
pub(crate) fn run(
    config: &TrainConfig,
    out: &Path,
    resume: bool,
    after: u64,
) -> (Result<Outcome, regard_core::Error>, String) {
    let stop = AtomicBool::new(false);
    let mut watch = Watch { stop: &stop, after, messages: String::new() };
    let outcome = train(config.clone(), out, resume, Isa::best(), &stop, &mut watch);
    (outcome, watch.messages)
}

/// Writes a small corpus: train.en, train.fr, valid.en, valid.fr.
pub(crate) fn write_corpus(folder: &Path, pairs: usize) {
    let corpus = builtin::corpus(1, pairs);
    let (train, valid) = corpus.train.split_at(pairs - 6);
    for (name, pairs) in [("train", train), ("valid", valid)] {
        let text = |f: fn(&(String, String)) -> &String| -> String {
            pairs.iter().map(|p| format!("{}\n", f(p))).collect()
        };
        fs::write(folder.join(format!("{name}.en")), text(|p| &p.0)).unwrap();
        fs::write(folder.join(format!("{name}.fr")), text(|p| &p.1)).unwrap();
    }
}

pub(crate) fn small_config(folder: &Path) -> TrainConfig {
    write_corpus(folder, 60);
    let mut config = TrainConfig::new(Preset::Tiny);
    config.data.src = vec![folder.join("train.en")];
    config.data.tgt = vec![folder.join("train.fr")];
    (config.data.valid_src, config.data.valid_tgt) =
        (Some(folder.join("valid.en")), Some(folder.join("valid.fr")));
    (config.model.d_model, config.model.heads, config.model.d_ff) = (16, 2, 16);
    (config.model.encoder_layers, config.model.decoder_layers) = (1, 1);
    config.tokenizer.vocabulary.size = Some(400);
    config.batch.plan.max_tokens = 200;
    config.schedule =
        Schedule { kind: ScheduleKind::InverseSqrt, peak: Some(0.01), warmup: 5, max_sum: None };
    config.steps = Some(14);
    config.log_every = 1;
    config.threads = Some(2);
    config.validation.every = Every::Steps(5);
    config.checkpoints.every = Every::Steps(3);
    config.checkpoints.average = 3;
    config
}

/// Loss by step, exact.
pub(crate) fn losses(out: &Path) -> Vec<(u64, f64)> {
    let records = read_log(&out.join("logs/log.jsonl")).unwrap();
    let of = |r: &Record| match r {
        Record::Step(r) => Some((r.step, r.loss)),
        Record::Validation(_) => None,
    };
    records.iter().filter_map(of).collect()
}

/// The model of a golden folder as `transformers` saved it once: weights in a file of torch.save, a
/// bias of the logits.
pub(crate) fn foreign(folder: &Path) -> PathBuf {
    // The tests of the command share this file, in a package of another folder.
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let goldens =
        above.find_map(|path| Some(path.join("crates/regard-core/tests/goldens")).filter(|p| p.exists()));
    let goldens = goldens.expect("the goldens of the inference crate");
    let init = folder.join("foreign");
    fs::create_dir(&init).unwrap();
    for file in ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"] {
        fs::copy(goldens.join("marian/swish-shared").join(file), init.join(file)).unwrap();
    }
    fs::copy(goldens.join("torch/model-older.bin"), init.join("pytorch_model.bin")).unwrap();
    init
}
