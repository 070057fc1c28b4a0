//! Encoders of other kinds from the command's settings to a translation: trained, resumed, saved,
//! described, run in f32 and in 8 bits.

use crate::train::{losses, run, small_config};
use regard::formats::Model;
use regard::train::resumed_config;
use std::path::Path;
use std::process::Command;

/// Settings, and what `regard info` says of them.
const KINDS: [(&[&str], &str); 6] = [
    (&["encoder=recurrent"], "recurrent encoder of both directions"),
    (&["encoder=recurrent", "encoder_direction=forward"], "recurrent encoder of one direction"),
    (&["encoder=convolutional"], "convolutional encoder over 3 tokens"),
    (
        &["encoder=convolutional", "kernel_width=5", "dilated=true"],
        "dilated convolutional encoder over 5 tokens",
    ),
    (&["encoder=window", "window=2"], "encoder attention within a window"),
    (&["encoder=window"], "encoder attention within a window"),
];

fn regard(arguments: &[&str], folder: &Path) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_regard")).current_dir(folder).args(arguments).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {err}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_encoder_trains_resumes_and_translates() {
    for (settings, description) in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let mut config = small_config(at);
        config.steps = Some(8);
        settings.iter().for_each(|set| config.set(set).unwrap());
        config.check().unwrap();
        let (whole, parts) = (at.join("whole"), at.join("parts"));
        run(&config, &whole, false, u64::MAX).0.unwrap();
        run(&config, &parts, false, 4).0.unwrap();
        run(&resumed_config(&parts, |_| Ok(())).unwrap(), &parts, true, u64::MAX).0.unwrap();
        assert_eq!(losses(&parts), losses(&whole), "{settings:?}");
        assert_eq!(losses(&whole).len(), 8);
        let model = Model::load(&whole).unwrap();
        assert_eq!(Model::load(&parts).unwrap().weights, model.weights, "{settings:?}");

        let info = regard(&["info", "--model", "whole"], at);
        assert!(info.starts_with("type        regard: only regard can run it, because\n"), "{info}");
        assert!(info.contains("- encoder: Marian's is attention, not "), "{info}");
        assert!(info.contains(description), "{info}");
        regard(&["quantize", "--model", "whole", "--out", "small"], at);
        for folder in ["whole", "small"] {
            let out = regard(&["translate", "--model", folder, "--threads", "1", "valid.en"], at);
            assert_eq!(out.lines().count(), 6, "{settings:?} {folder}");
        }
    }
}

#[test]
fn attention_is_shown_where_there_is_some() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut config = small_config(at);
    config.steps = Some(2);
    config.set("encoder=convolutional").unwrap();
    run(&config, &at.join("model"), false, u64::MAX).0.unwrap();
    let look = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_regard"));
        command.current_dir(at).args(["look", "--model", "model", "--src", "the cat", "--tgt", "le chat"]);
        let output = command.args(more).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(look(&[]).0, Some(0));
    let (status, err) = look(&["--kind", "encoder"]);
    assert_eq!(status, Some(1));
    assert!(err.contains("this model's encoder has no attention"), "{err}");
    assert_eq!(look(&["--out", "all.html"]).0, Some(0));
    let page = std::fs::read_to_string(at.join("all.html")).unwrap();
    assert!(page.contains("\"kind\":\"cross\"") && !page.contains("\"kind\":\"encoder\""));
}
