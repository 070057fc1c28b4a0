//! Training runs: resumed to the bit, killed at any moment, refused with a clear message. Models of a few thousand weights.

use regard::Isa;
use regard::formats::Model;
use regard::model::{ModelConfig, Preset};
use regard::train::config::{DataConfig, Every};
use regard::train::{
    End, Outcome, Progress, Record, Schedule, ScheduleKind, StepRecord, TrainConfig, ValidationRecord,
    read_log, resumed_config, train,
};
use regard_sample_corpus as builtin;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Stops the run after a step, and remembers what it was told.
struct Watch<'a> {
    stop: &'a AtomicBool,
    after: u64,
    heard: String,
}

impl Progress for Watch<'_> {
    fn message(&mut self, text: &str) {
        self.heard += text;
        self.heard.push('\n');
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
) -> (Result<Outcome, regard::Error>, String) {
    let stop = AtomicBool::new(false);
    let mut watch = Watch { stop: &stop, after, heard: String::new() };
    let outcome = train(config.clone(), out, resume, Isa::best(), &stop, &mut watch);
    (outcome, watch.heard)
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
    config.tokenizer.size = Some(400);
    config.batch.max_tokens = 200;
    config.schedule = Schedule { kind: ScheduleKind::InverseSqrt, peak: Some(0.01), warmup: 5 };
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

fn validations(out: &Path) -> Vec<(u64, String, f64, f64)> {
    let records = read_log(&out.join("logs/log.jsonl")).unwrap();
    let of = |r: Record| match r {
        Record::Step(_) => None,
        Record::Validation(r) => Some((r.step, r.weights, r.loss, r.chrf)),
    };
    records.into_iter().filter_map(of).collect()
}

#[test]
fn a_resumed_run_is_the_run_that_was_never_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config(folder.path());
    config.optimizer.ema = Some(0.9);
    config.optimizer.clip = Some(1.0);
    config.batch.accumulate = 2;
    config.tokenizer.bpe_dropout = 0.1;
    let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
    let (outcome, _) = run(&config, &whole, false, u64::MAX);
    let outcome = outcome.unwrap();
    assert_eq!((outcome.end, outcome.steps), (End::Finished, 14));

    // Between two checkpoints, at one, in the step before a validation, in the step before the end.
    for (i, after) in [2, 3, 4, 9, 13, u64::MAX].into_iter().enumerate() {
        let config = if i == 0 { config.clone() } else { resumed_config(&parts, |_| Ok(())).unwrap() };
        let (outcome, heard) = run(&config, &parts, i > 0, after);
        let end = outcome.unwrap().end;
        assert_eq!(end, if after == u64::MAX { End::Finished } else { End::Interrupted });
        assert_eq!(heard.contains("continuing after step"), i > 0, "{heard}");
        assert!(Model::load(&parts).is_ok());
    }
    let expected = losses(&whole);
    assert_eq!(expected.len(), 14);
    assert!(expected.iter().all(|(_, loss)| loss.is_finite()));
    assert_eq!(losses(&parts), expected);
    assert_eq!(validations(&parts), validations(&whole));
    assert_eq!(validations(&whole).len(), 5, "{:?}", validations(&whole));
    let weights = |out: &Path| Model::load(out).unwrap().weights;
    assert_eq!(weights(&parts), weights(&whole));

    // Another seed is another run; a finished one is finished; one that may go on does.
    let other = TrainConfig { seed: 2, ..config.clone() };
    let third = folder.path().join("third");
    run(&other, &third, false, u64::MAX).0.unwrap();
    assert_ne!(losses(&third), expected);
    let (_, heard) = run(&resumed_config(&parts, |_| Ok(())).unwrap(), &parts, true, u64::MAX);
    assert!(heard.contains("this run is finished"), "{heard}");
    let longer = resumed_config(&parts, |c| c.set("steps=16")).unwrap();
    assert_eq!(run(&longer, &parts, true, u64::MAX).0.unwrap().steps, 16);
    assert_eq!(losses(&parts)[..14], expected);
    let error = resumed_config(&parts, |c| c.set("d_model=32")).unwrap_err().to_string();
    assert!(error.starts_with("model.d_model: cannot change in the middle of a run"), "{error}");
}

#[test]
fn damaged_checkpoints_and_other_corpora() {
    let folder = tempfile::tempdir().unwrap();
    let config = small_config(folder.path());
    let out = folder.path().join("out");
    run(&config, &out, false, 11).0.unwrap();
    let states = |out: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(out.join("checkpoints")).unwrap().map(|e| e.unwrap().path());
        let mut states: Vec<_> = entries.filter(|p| p.to_string_lossy().contains("state-")).collect();
        states.sort();
        states
    };
    let found = states(&out);
    assert_eq!(found.len(), 2, "{found:?}");
    let bytes = fs::read(&found[1]).unwrap();
    fs::write(&found[1], &bytes[..bytes.len() / 3]).unwrap();
    let (outcome, heard) = run(&config, &out, true, u64::MAX);
    assert_eq!(outcome.unwrap().steps, 14);
    assert!(heard.contains("it is cut off") && heard.contains("continuing after step 10"), "{heard}");
    assert_eq!(losses(&out).iter().map(|l| l.0).collect::<Vec<_>>(), (1..=14).collect::<Vec<_>>());

    for state in states(&out) {
        fs::write(state, b"").unwrap();
    }
    let error = run(&config, &out, true, u64::MAX).0.unwrap_err().to_string();
    assert!(error.ends_with("no checkpoint of this run is whole; start another one"), "{error}");

    let out = folder.path().join("changed");
    run(&config, &out, false, 4).0.unwrap();
    let source = folder.path().join("train.en");
    let text = fs::read_to_string(&source).unwrap().replacen("The", "Some of the", 1);
    fs::write(&source, text).unwrap();
    let error = run(&config, &out, true, u64::MAX).0.unwrap_err().to_string();
    assert!(error.contains("the corpus is not the one that this run began with"), "{error}");
}

#[test]
fn a_run_that_goes_wrong_keeps_what_was_good() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config(folder.path());
    config.schedule = Schedule { kind: ScheduleKind::Constant, peak: Some(1e30), warmup: 0 };
    let out = folder.path().join("out");
    let error = run(&config, &out, false, u64::MAX).0.unwrap_err().to_string();
    assert!(error.contains("no longer a number") && error.contains("--set schedule.peak="), "{error}");
    let model = Model::load(&out).unwrap();
    assert!(model.weights.iter().all(|w| w.is_finite()));
    let mended = resumed_config(&out, |c| c.set("schedule.peak=0.001")).unwrap();
    assert_eq!(run(&mended, &out, true, u64::MAX).0.unwrap().end, End::Finished);
}

/// A rate that is far too high once the model has begun to learn: numbers all the way, but the wrong ones.
#[test]
fn a_loss_that_explodes_ends_the_run_with_the_last_good_model_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config(folder.path());
    config.steps = Some(60);
    let out = folder.path().join("out");
    run(&config, &out, false, u64::MAX).0.unwrap();
    let good = Model::load(&out).unwrap().weights;
    let rates =
        ["steps=400", "schedule.kind=constant", "schedule.peak=3.0", "validation.every=\"300 steps\""];
    let config = resumed_config(&out, |c| rates.iter().try_for_each(|set| c.set(set))).unwrap();
    let error = run(&config, &out, true, u64::MAX).0.unwrap_err().to_string();
    assert!(
        error.contains("the loss has risen from ") && error.contains("--set schedule.peak=1.5"),
        "{error}"
    );
    assert_eq!(Model::load(&out).unwrap().weights, good);
}

#[test]
fn early_stopping_epochs_held_out_pairs_and_a_model_to_start_from() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config(folder.path());
    (config.data.valid_src, config.data.valid_tgt) = (None, None);
    (config.steps, config.epochs) = (None, Some(2));
    config.validation.every = Every::Epochs(1);
    config.validation.metric = regard::train::config::ValidationMetric::Loss;
    let first = folder.path().join("first");
    let (outcome, heard) = run(&config, &first, false, u64::MAX);
    let steps = outcome.unwrap().steps;
    assert!(heard.contains("1 pairs of the corpus are held out"), "{heard}");
    assert_eq!(validations(&first).iter().filter(|v| v.1 == "step").count(), 2);
    assert_eq!(validations(&first)[0].0 * 2, steps);
    let page = fs::read_to_string(first.join("logs/report.html")).unwrap();
    assert!(page.contains("Finished after") && page.contains("<svg"));

    // A rate of nothing never gets better: two validations of patience after the first.
    config.data.init = Some(first.clone());
    (config.epochs, config.steps) = (Some(50), None);
    config.validation.patience = Some(2);
    config.schedule = Schedule { kind: ScheduleKind::Constant, peak: Some(1e-30), warmup: 0 };
    let second = folder.path().join("second");
    run(&config, &second, false, u64::MAX).0.unwrap();
    assert_eq!(validations(&second).iter().filter(|v| v.1 == "step").count(), 3);
    assert_eq!(Model::load(&second).unwrap().weights, Model::load(&first).unwrap().weights);
}

/// The model of a golden folder as `transformers` saved it once: weights in a file of torch.save, a bias of the logits.
fn foreign(folder: &Path) -> PathBuf {
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
    let init = folder.join("foreign");
    fs::create_dir(&init).unwrap();
    for file in ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"] {
        fs::copy(goldens.join("marian/swish-shared").join(file), init.join(file)).unwrap();
    }
    fs::copy(goldens.join("torch/model-older.bin"), init.join("pytorch_model.bin")).unwrap();
    init
}

#[test]
fn a_foreign_model_is_trained_on_and_stays_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config(folder.path());
    let init = foreign(folder.path());
    config.data.init = Some(init.clone());
    config.model = TrainConfig::new(Preset::Tiny).model;
    config.tokenizer.size = None;
    config.batch.max_tokens = 1000;
    config.steps = Some(6);
    let out = folder.path().join("out");
    let (outcome, heard) = run(&config, &out, false, 3);
    assert_eq!(outcome.unwrap().end, End::Interrupted, "{heard}");
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
    regard::train::corpus::train_tokenizers(
        &regard::train::corpus::Inputs::Files {
            source: small.data.src.clone(),
            target: small.data.tgt.clone(),
        },
        &small.filters,
        &small.tokenizer_settings(),
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
        refusal(&|c| c.model.norm = regard::model::NormPlace::Pre),
        format!("model.norm: \"pre\" {}", has("\"post\""))
    );
    assert_eq!(
        refusal(&|c| c.tokenizer.size = Some(400)),
        format!("tokenizer.size: a vocabulary of 400 pieces {}", has("a vocabulary of 40 pieces"))
    );
    assert_eq!(
        refusal(&|c| c.tokenizer.separate = true),
        format!("tokenizer.separate: a vocabulary for each language {}", has("a joint one"))
    );
    let pieces = regard::text::Tokenizer::load(&other).unwrap().size();
    assert_eq!(
        refusal(&|c| c.tokenizer.file = Some(other.clone())),
        format!(
            "tokenizer.file: {} ({pieces} pieces) {}",
            other.display(),
            has("another tokenizer (40 pieces)")
        )
    );
    assert!(!out.exists());
    // On the command line, what is asked for counts even if the preset has it too, and a preset by name is a shape.
    fs::write(folder.path().join("wide.toml"), "[model]\nd_model = 128\n").unwrap();
    let wide =
        "model.d_model: 128 does not fit the model to start from, foreign, which has 8; leave this out";
    let tiny = "--preset: tiny means d_model 128, heads 4, d_ff 256, encoder layers 4, decoder layers 4, but the model to start \
                from, foreign, has d_model 8, heads 4, d_ff 12, encoder layers 2, decoder layers 1; leave this out";
    for (flag, value, want) in
        [("--set", "d_model=128", wide), ("--config", "wide.toml", wide), ("--preset", "tiny", tiny)]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_regard"));
        command.current_dir(folder.path()).args(["train", "--src", "train.en", "--tgt", "train.fr", "--out"]);
        command.arg(&out).args(["--init", "foreign", "--steps", "2", flag, value]);
        let (output, text) = finish(command);
        assert_eq!(output.status.code(), Some(1));
        assert!(text.ends_with(&format!("regard: {want}\n")), "{text}");
    }
    assert!(!out.exists());
}

/// What the plan does with the time is tested with a clock of its own, beside `train/run.rs`; this
/// is the real one.
#[test]
fn a_run_with_a_time_limit_is_resumed_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config(folder.path());
    config.minutes = Some(0.05);
    let out = folder.path().join("out");
    let start = Instant::now();
    let (outcome, heard) = run(&config, &out, false, 25);
    assert_eq!(outcome.unwrap().end, End::Interrupted, "{heard}");
    assert!(heard.contains("0.05 minutes are about "), "{heard}");
    let error = resumed_config(&out, |c| c.set("schedule.peak=1")).unwrap_err().to_string();
    assert!(error.contains("this run has a time limit and plans its steps itself"), "{error}");
    let (outcome, _) = run(&resumed_config(&out, |_| Ok(())).unwrap(), &out, true, u64::MAX);
    let outcome = outcome.unwrap();
    assert_eq!(outcome.end, End::Finished);
    assert!(outcome.steps > 25 && outcome.all_seconds >= outcome.seconds);
    // Generous: the machine may be busy with other tests.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn weights_are_stored_as_the_flag_says() {
    let folder = tempfile::tempdir().unwrap();
    write_corpus(folder.path(), 60);
    for (flag, name) in [("f16", "F16"), ("bf16", "BF16")] {
        let out = folder.path().join(flag);
        let (output, heard) = finish(command(folder.path(), &out, &["--steps", "4", "--store", flag]));
        assert!(output.status.success(), "{heard}");
        let header = std::fs::read(out.join("model.safetensors")).unwrap();
        let header = String::from_utf8_lossy(&header[8..200]).into_owned();
        assert!(header.contains(&format!("\"dtype\":\"{name}\"")), "{header}");
        regard::formats::Model::load(&out).unwrap();
    }
    let out = folder.path().join("int8");
    let (output, heard) = finish(command(folder.path(), &out, &["--set", "checkpoints.store=int8"]));
    assert!(!output.status.success() && heard.contains("checkpoints.store: int8 cannot be"), "{heard}");
}

/// The command line of a small run.
pub(crate) fn command(folder: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = crate::command::regard();
    command.current_dir(folder).args(["train", "--src", "train.en", "--tgt", "train.fr"]);
    command.args([
        "--valid-src",
        "valid.en",
        "--valid-tgt",
        "valid.fr",
        "--preset",
        "tiny",
        "--threads",
        "1",
    ]);
    for set in [
        "d_model=16",
        "heads=2",
        "d_ff=16",
        "encoder_layers=1",
        "decoder_layers=1",
        "tokenizer.size=400",
        "batch.max_tokens=200",
        "validation.every=4 steps",
        "checkpoints.every=2 steps",
        "log_every=1",
        "warmup=5",
    ] {
        command.args(["--set", set]);
    }
    command.arg("--out").arg(out).args(more).stdin(Stdio::null());
    command
}

pub(crate) fn finish(mut command: Command) -> (Output, String) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, text)
}

/// Waits until a run has logged this many lines.
#[cfg(unix)]
fn wait_for_steps(out: &Path, lines: usize) {
    let start = Instant::now();
    while fs::read_to_string(out.join("logs/log.jsonl")).unwrap_or_default().lines().count() < lines {
        assert!(start.elapsed() < Duration::from_secs(60), "no steps in a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A folder in training is a model, or it says that it is none yet.
fn check_loadable(out: &Path, round: u64) {
    match Model::load(out) {
        Ok(model) => assert!(model.weights.iter().all(|w| w.is_finite()), "round {round}"),
        Err(e) => {
            let text = e.to_string();
            let early = text.ends_with(
                "is not a model yet: the training run in this folder has not reached its first step",
            );
            let nothing = !out.join("cache/lock").exists();
            assert!(early || nothing, "round {round}: {text}");
            let states = fs::read_dir(out.join("checkpoints")).into_iter().flatten().flatten();
            let states = states.filter(|e| e.file_name().to_string_lossy().ends_with(".ckpt")).count();
            assert_eq!(states, 0, "round {round}: there is a state, but no model: {text}");
        }
    }
}

/// Killed as soon as there is anything of the model: it can be loaded, or says that it cannot yet.
#[test]
fn a_run_that_is_killed_right_after_its_start_leaves_a_model_or_says_that_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    write_corpus(folder.path(), 60);
    let marks = [
        "cache/lock",
        "cache/train.ids",
        "logs/config.toml",
        "tokenizer.json",
        "model.safetensors",
        "config.json",
    ];
    for (round, mark) in marks.into_iter().enumerate() {
        let out = folder.path().join(format!("out-{round}"));
        let mut child = command(folder.path(), &out, &["--steps", "1000000"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        while !out.join(mark).exists() {
            assert!(start.elapsed() < Duration::from_secs(60), "there is no {mark} after a minute");
            std::thread::sleep(Duration::from_micros(200));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        check_loadable(&out, round as u64);
        if mark == "config.json" {
            Model::load(&out).unwrap();
        }
        // The same command goes on from whatever is there.
        let (output, text) = finish(command(folder.path(), &out, &["--steps", "2", "--resume"]));
        assert!(output.status.success(), "{mark}: {text}");
    }
}

#[test]
fn killed_at_any_moment_a_run_can_be_resumed_and_its_model_loaded() {
    let folder = tempfile::tempdir().unwrap();
    write_corpus(folder.path(), 60);
    let whole = folder.path().join("whole");
    let (output, text) = finish(command(folder.path(), &whole, &["--steps", "40"]));
    assert!(output.status.success(), "{text}");
    let expected = losses(&whole);

    let out = folder.path().join("out");
    // Moments that fall into preparation, steps, validations and saves; other ones on every machine.
    let mut delay = 5;
    let mut kills = 0;
    for round in 0..12 {
        let mut child = command(folder.path(), &out, &["--steps", "40", "--resume"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        kills += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        delay = (delay * 7 / 4) % 400 + 11 * round;
        check_loadable(&out, round);
    }
    assert!(kills > 0);
    let (output, text) = finish(command(folder.path(), &out, &["--steps", "40", "--resume"]));
    assert!(output.status.success(), "{text}");
    assert_eq!(losses(&out), expected);
    assert_eq!(Model::load(&out).unwrap().weights, Model::load(&whole).unwrap().weights);
}

#[cfg(unix)]
#[test]
fn a_signal_saves_and_says_how_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    write_corpus(folder.path(), 60);
    for (signal, status) in [("-TERM", 143), ("-INT", 130)] {
        let out = folder.path().join(signal);
        let child = command(folder.path(), &out, &["--steps", "1000000"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_for_steps(&out, 4);
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        // Not 0: `regard train … && deploy` must not deploy half a model.
        assert_eq!(output.status.code(), Some(status), "{text}");
        assert!(output.stdout.is_empty() && !text.contains("regard: "), "{text}");
        assert!(text.contains("everything is saved\nto continue:\n  regard train --resume --out"), "{text}");
        assert!(text.contains("tokens/s") && text.contains("validation loss"), "{text}");
        // What it says is enough.
        let steps = (losses(&out).len() + 2).to_string();
        let mut again = crate::command::regard();
        again.current_dir(folder.path()).args(["train", "--resume", "--steps", &steps, "--out"]).arg(&out);
        let (output, text) = finish(again);
        assert!(output.status.success(), "{text}");
        assert!(text.contains("continuing after step"), "{text}");
        assert_eq!(losses(&out).len().to_string(), steps);
        assert!(String::from_utf8_lossy(&output.stdout).contains("report: "));
    }
}

#[test]
fn wrong_usage_is_told_and_nothing_is_destroyed() {
    let folder = tempfile::tempdir().unwrap();
    write_corpus(folder.path(), 60);
    let out = folder.path().join("out");
    let refusal = |out: &Path, more: &[&str]| {
        let (output, text) = finish(command(folder.path(), out, more));
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(output.stdout.is_empty());
        text.lines().find(|line| line.starts_with("regard: ")).unwrap_or_default().to_owned()
    };
    let text = refusal(&out, &["--set", "dropuot=0.2"]);
    assert_eq!(
        text,
        "regard: dropuot: there is no such setting; did you mean model.dropout? (`regard train --help` lists all settings)"
    );
    let mut help = crate::command::regard();
    help.args(["train", "--help"]);
    let help = String::from_utf8(help.output().unwrap().stdout).unwrap();
    let all = TrainConfig::new(Preset::Tiny).keys();
    let missing: Vec<_> =
        all.iter().filter(|key| !help.contains(key.rsplit('.').next().unwrap_or_default())).collect();
    assert!(missing.is_empty(), "{missing:?} are not in the help");
    let text = refusal(&out, &["--set", "steps=0"]);
    assert_eq!(text, "regard: steps: 0 is too few, at least 1 is needed");
    assert!(!out.exists());
    let text = refusal(&folder.path().join("train.en/out"), &["--steps", "2"]);
    assert!(text.contains("train.en/out") && text.contains("ot a directory"), "{text}");
    let text = refusal(&out, &["--steps", "2", "--init", "valid.en"]);
    assert!(text.contains("valid.en"), "{text}");
    assert!(!out.exists());

    fs::create_dir(&out).unwrap();
    fs::write(out.join("model.safetensors"), "someone's work").unwrap();
    let text = refusal(&out, &["--steps", "2"]);
    assert!(
        text.ends_with("is not empty (model.safetensors): a run needs a new or an empty folder"),
        "{text}"
    );
    assert_eq!(fs::read_to_string(out.join("model.safetensors")).unwrap(), "someone's work");

    let out = folder.path().join("run");
    let (output, text) = finish(command(folder.path(), &out, &["--steps", "2"]));
    assert!(output.status.success(), "{text}");
    assert!(
        text.contains(
            "a warm-up of 5 steps is too long for a run of about 2: the learning rate never reaches its peak"
        ),
        "{text}"
    );
    let before = fs::read(out.join("model.safetensors")).unwrap();
    let text = refusal(&out, &["--steps", "4"]);
    assert!(text.contains("already holds a training run: --resume continues it"), "{text}");
    assert_eq!(fs::read(out.join("model.safetensors")).unwrap(), before);

    let (_, text) = {
        let mut nothing = crate::command::regard();
        nothing.current_dir(folder.path()).args(["train", "--resume", "--out", "nowhere"]);
        finish(nothing)
    };
    assert_eq!(text, "regard: nowhere: there is no run to resume; start one with --src and --tgt\n");
    let (output, _) = {
        let mut usage = crate::command::regard();
        usage.args(["train", "--src", "a"]);
        finish(usage)
    };
    assert_eq!(output.status.code(), Some(2));
}

/// The example in the help of `regard average`.
#[test]
fn checkpoints_of_a_run_can_be_averaged() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    run(&small_config(folder.path()), &out, false, 99).0.unwrap();
    let mut files: Vec<PathBuf> =
        fs::read_dir(out.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let average = |files: &[PathBuf], name: &str| {
        let to = folder.path().join(name);
        let mut command = crate::command::regard();
        command.arg("average").args(files).arg("--out").arg(&to);
        let (output, text) = finish(command);
        assert!(output.status.success(), "{text}");
        Model::load(&to).unwrap()
    };
    let is_state = |file: &PathBuf| file.file_name().unwrap().to_str().unwrap().starts_with("state-");
    let (states, weights): (Vec<PathBuf>, Vec<PathBuf>) = files.iter().cloned().partition(is_state);
    assert!(states.len() == 2 && weights.len() >= 3, "{files:?}");
    let each: Vec<Vec<f32>> =
        weights.iter().map(|file| average(std::slice::from_ref(file), "one").weights).collect();
    let mean = average(&files, "all").weights;
    for (i, mean) in mean.iter().enumerate() {
        let want = each.iter().map(|w| f64::from(w[i])).sum::<f64>() / each.len() as f64;
        assert!((f64::from(*mean) - want).abs() < 1e-6, "weight {i}: {mean}, not {want}");
    }
    // States are models too, and the last is that of the last weights.
    assert_eq!(average(&states[1..], "state").weights, *each.last().unwrap());
    let refused = crate::command::regard()
        .args(["average", out.join("train.toml").to_str().unwrap(), "--out", "x"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1));
}

/// Validation BLEU of a language without spaces counts characters.
#[test]
fn validation_chooses_the_tokenizer_by_the_target_language() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config(folder.path());
    (config.data.target_lang, config.steps) = (Some("ja".into()), Some(2));
    let heard = run(&config, &folder.path().join("run"), false, 99).1;
    assert!(heard.contains("validation BLEU: tokenizer char, chosen for target language ja\n"), "{heard}");
    let _ = config.data.target_lang.take();
    let heard = run(&config, &folder.path().join("other"), false, 99).1;
    assert!(!heard.contains("validation BLEU: tokenizer"), "{heard}");
}

#[test]
fn the_quickstart_runs_through() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = crate::command::regard();
    command.current_dir(folder.path()).args(["quickstart", "--out", "q", "--pairs", "240", "--steps", "3"]);
    let (output, text) = finish(command);
    assert!(output.status.success(), "{text}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("BLEU on 9 held-out sentences: "), "{said}");
    for (source, _) in builtin::SHOWCASE {
        assert!(said.contains(source), "{said}");
    }
    assert!(
        said.contains("cross-attention") && said.contains('█') && said.contains("regard train --src"),
        "{said}"
    );
    assert!(Model::load(&folder.path().join("q")).is_ok());
}

/// A command line without the files of `command`.
fn bare(folder: &Path, arguments: &[&str]) -> (Output, String) {
    let mut command = crate::command::regard();
    command.current_dir(folder).args(["train", "--out", "out", "--threads", "1", "--steps", "1"]);
    finish({
        command.args(["--set", "d_model=16", "--set", "model.heads=2", "--set", "d_ff=16"]);
        command.args([
            "--set",
            "encoder_layers=1",
            "--set",
            "decoder_layers=1",
            "--set",
            "tokenizer.size=400",
        ]);
        command.args(arguments);
        command
    })
}

#[test]
fn what_is_wrong_with_the_text_is_told_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    write_corpus(folder.path(), 60);
    for (arguments, want) in [
        (&["--src", "train.en"][..], "--src needs --tgt: the files with the translations, line by line"),
        (
            &["--tgt", "train.fr"],
            "--tgt needs --src: the files with the text that it translates, line by line",
        ),
        (&[], "there is no text to train on: give --src and --tgt, or --tsv"),
    ] {
        let (output, text) = bare(folder.path(), arguments);
        assert_eq!((output.status.code(), text), (Some(2), format!("regard: {want}\n")));
    }
    let path = folder.path().join("no-tabs.tsv");
    fs::write(&path, "A dog.    Un chien.\nA cat.    Un chat.\n").unwrap();
    let (output, text) = bare(folder.path(), &["--tsv", "no-tabs.tsv"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text.ends_with(
            "no-tabs.tsv: no line has a tab; source and target of each line must be separated by one\n"
        ),
        "{text}"
    );
    fs::remove_dir_all(folder.path().join("out")).unwrap();
    fs::write(&path, "").unwrap();
    let (_, text) = bare(folder.path(), &["--tsv", "no-tabs.tsv"]);
    assert!(text.ends_with("no-tabs.tsv: has no lines: there is nothing to train on\n"), "{text}");
}

#[test]
fn the_preset_names_the_pairs_and_a_tsv_its_languages() {
    let folder = tempfile::tempdir().unwrap();
    write_corpus(folder.path(), 60);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let (source, target) = (read("train.en"), read("train.fr"));
    let rows: String = source.lines().zip(target.lines()).map(|(s, t)| format!("{s}\t{t}\n")).collect();
    for (name, known) in [("pairs.tsv", false), ("train.en-fr.tsv", true)] {
        fs::write(folder.path().join(name), &rows).unwrap();
        let (output, text) = bare(folder.path(), &["--tsv", name]);
        assert!(output.status.success(), "{text}");
        assert!(text.starts_with("Preset: tiny (54 pairs, 1 core). Change with --preset\n"), "{text}");
        let warning = "Warning: the model's source or target language is unknown, and a server needs both.";
        assert_eq!(text.contains(warning), !known, "{text}");
        let out = folder.path().join("out");
        let languages = Model::load(&out).unwrap().languages;
        assert_eq!(languages.source.as_deref(), known.then_some("en"));
        assert_eq!(languages.target.as_deref(), known.then_some("fr"));
        fs::remove_dir_all(out).unwrap();
    }
}

/// The report shows both curves without label smoothing, and training from the first step on.
#[test]
fn the_report_compares_like_with_like() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config(folder.path());
    (config.steps, config.log_every) = (Some(24), 10);
    config.optimizer.label_smoothing = 0.4;
    config.model.dropout = 0.0;
    config.validation.every = Every::Steps(8);
    let out = folder.path().join("out");
    run(&config, &out, false, u64::MAX).0.unwrap();
    let records = read_log(&out.join("logs/log.jsonl")).unwrap();
    let steps: Vec<StepRecord> = records
        .iter()
        .filter_map(|r| match r {
            Record::Step(r) => Some(r.clone()),
            Record::Validation(_) => None,
        })
        .collect();
    assert_eq!(steps.iter().map(|r| r.step).collect::<Vec<_>>(), [1, 2, 4, 8, 10, 20, 24]);
    // Smoothing adds to the loss of a model that has learned something, and hardly to that of one
    // that has not.
    let (first, last) = (&steps[0], &steps[6]);
    assert!((first.loss - first.nll.unwrap()).abs() < 0.5, "{first:?}");
    assert!(last.nll.unwrap() < first.nll.unwrap(), "{first:?} {last:?}");
    let page = fs::read_to_string(out.join("logs/report.html")).unwrap();
    assert!(page.contains("without label smoothing") && !page.contains("cannot be compared"));

    // Without smoothing the two are the same number.
    config.optimizer.label_smoothing = 0.0;
    let plain = folder.path().join("plain");
    run(&config, &plain, false, u64::MAX).0.unwrap();
    for record in read_log(&plain.join("logs/log.jsonl")).unwrap() {
        if let Record::Step(r) = record {
            assert!((r.loss - r.nll.unwrap()).abs() < 1e-5 * r.loss, "{r:?}");
        }
    }
}

/// A corpus cache that is cut off while it is in use ends the run with a message, and with everything saved.
#[cfg(unix)]
#[test]
fn a_corpus_cache_that_is_cut_off_ends_the_run_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    write_corpus(folder.path(), 60);
    let out = folder.path().join("out");
    let child = command(folder.path(), &out, &["--steps", "1000000"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_steps(&out, 4);
    let cache = fs::File::options().write(true).open(out.join("cache/train.ids")).unwrap();
    cache.set_len(80).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.ends_with("out/cache/train.ids: was cut off while it was in use\n"), "{text}");
    assert!(text.contains("everything up to it is saved"), "{text}");
    let steps = (losses(&out).len() + 2).to_string();
    let (output, text) = finish(command(folder.path(), &out, &["--steps", &steps, "--resume"]));
    assert!(output.status.success() && text.contains("continuing after step"), "{text}");
    assert_eq!(losses(&out).len().to_string(), steps);
}
