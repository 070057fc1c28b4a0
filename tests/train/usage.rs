//! What is refused, and how that is told.

use super::{command, finish, foreign, write_corpus};
use regard::formats::Model;
use regard::model::Preset;
use regard::train::TrainConfig;
use std::fs;
use std::path::Path;
use std::process::Output;

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
            "a warm-up of 5 steps is too long for a run of about 2: the learning rate never reaches its peak; \
             --set schedule.warmup=1 would fit"
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
        (&[], "there is no text to train on: give --src and --tgt, or --pairs"),
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

/// A setting that is given counts even if the preset has it too, and a preset by name is a shape.
#[test]
fn a_model_to_start_from_has_the_shape_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    write_corpus(folder.path(), 60);
    foreign(folder.path());
    let out = folder.path().join("out");
    fs::write(folder.path().join("wide.toml"), "[model]\nd_model = 128\n").unwrap();
    let wide =
        "model.d_model: 128 does not fit the model to start from, foreign, which has 8; leave this out";
    let tiny = "--preset: tiny means d_model 128, heads 4, d_ff 256, encoder layers 4, decoder layers 4, but the model to start \
                from, foreign, has d_model 8, heads 4, d_ff 12, encoder layers 2, decoder layers 1; leave this out";
    for (flag, value, want) in
        [("--set", "d_model=128", wide), ("--config", "wide.toml", wide), ("--preset", "tiny", tiny)]
    {
        let mut command = crate::command::regard();
        command.current_dir(folder.path()).args(["train", "--src", "train.en", "--tgt", "train.fr", "--out"]);
        command.arg(&out).args(["--init", "foreign", "--steps", "2", flag, value]);
        let (output, text) = finish(command);
        assert_eq!(output.status.code(), Some(1));
        assert!(text.ends_with(&format!("regard: {want}\n")), "{text}");
    }
    assert!(!out.exists());
}

/// The library names the settings that help; the command adds how to use them.
#[test]
fn a_run_that_diverges_says_how_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    write_corpus(folder.path(), 60);
    let out = folder.path().join("out");
    let rate = ["--steps", "9", "--set", "schedule.kind=constant", "--set", "schedule.peak=1e30"];
    let (output, text) = finish(command(folder.path(), &out, &rate));
    assert_eq!(output.status.code(), Some(1), "{text}");
    let want = format!(
        "\n  regard train --resume --out {} --set schedule.kind=constant --set schedule.peak=",
        out.display()
    );
    assert!(text.contains(&want) && text.ends_with(" --set optimizer.clip=1\n"), "{text}");
    // A run with a time limit refuses another schedule when it is resumed.
    let timed = folder.path().join("timed");
    let (output, text) =
        finish(command(folder.path(), &timed, &["--minutes", "1", "--set", "schedule.peak=1e30"]));
    assert_eq!(output.status.code(), Some(1), "{text}");
    let end = text.split("start another one with\n").nth(1).unwrap_or_default();
    assert!(
        end.starts_with("  --set schedule.kind=linear --set schedule.peak=") && !text.contains("--resume"),
        "{text}"
    );
}

#[test]
fn flags_override_the_environment_and_the_environment_overrides_the_file() {
    let folder = tempfile::tempdir().unwrap();
    write_corpus(folder.path(), 30);
    fs::write(folder.path().join("run.toml"), "steps = 3\nseed = 7\n[optimizer]\nlabel_smoothing = 0.25\n")
        .unwrap();
    let out = folder.path().join("out");
    let mut run = command(folder.path(), &out, &["--seed", "9"]);
    run.env("REGARD_CONFIG", "run.toml").env("REGARD_STEPS", "2").env("REGARD_SEED", "8");
    let (output, text) = finish(run);
    assert!(output.status.success(), "{text}");
    let written = fs::read_to_string(out.join("logs/config.toml")).unwrap();
    for line in ["seed = 9", "steps = 2", "label_smoothing = 0.25"] {
        assert!(written.lines().any(|written| written == line), "{line} is not in {written}");
    }
}
