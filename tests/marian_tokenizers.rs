//! Folders with the SentencePiece models of a MarianMT tokenizer, as a user would run them.

use regard::DType;
use regard::formats::{Languages, Model};
use regard::model::{ModelConfig, Transformer, Tying};
use regard::text::TokenizerPair;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// A model folder of random weights with the tokenizers of a golden.
fn model_folder(name: &str) -> TempDir {
    let goldens =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/regard-core/tests/goldens/sentencepiece");
    let tokenizers = TokenizerPair::load(&goldens.join(name)).unwrap();
    let words = tokenizers.target().size();
    assert_eq!(words, tokenizers.source().size());
    let transformer = Transformer::new(ModelConfig {
        source_vocabulary: words,
        target_vocabulary: words,
        d_model: 16,
        heads: 2,
        d_ff: 24,
        encoder_layers: 1,
        decoder_layers: 1,
        max_positions: 32,
        tying: if tokenizers.is_joint() { Tying::ThreeWay } else { Tying::Decoder },
        ..ModelConfig::default()
    })
    .unwrap();
    // Large enough for a word of the source to make a difference.
    let weights = transformer.parameters().initialise(5).iter().map(|w| 3.0 * w).collect();
    let model = Model {
        transformer,
        weights,
        tokenizers,
        languages: Languages { source: Some("aa".into()), target: Some("bb".into()) },
        generation: Default::default(),
        shortlist: None,
    };
    let folder = tempfile::tempdir().unwrap();
    model.save(folder.path(), DType::F32).unwrap();
    folder
}

/// Stdout of a command that must succeed.
fn regard(arguments: &[&str], input: &str) -> String {
    let mut command = crate::command::regard();
    command.args(arguments);
    let output = crate::command::output(command, input.as_bytes());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_command_takes_such_a_folder() {
    for name in ["marian-joint", "marian-separate"] {
        let folder = model_folder(name);
        let path = folder.path().to_str().unwrap();
        let translate = |input: &str| regard(&["translate", "--model", path, "--max-length", "9"], input);
        let out = translate("kan kou\n\n>>de<< kan kou\n\u{200b}\n>>de<<\n");
        let lines: Vec<&str> = out.lines().collect();
        // What is empty once it is normalised is not translated; a language token changes the
        // translation.
        assert_eq!(lines.len(), 5, "{out}");
        assert_eq!((lines[1], lines[3], lines[4]), ("", "", ""));
        assert!(!lines[0].is_empty() && lines[0] != lines[2], "{out}");
        assert!(!out.contains('▁') && !out.contains("</s>"), "{out}");
        // A line that is longer than the model reads is translated in parts that all have the
        // token.
        let long = format!(">>de<< {}", "kan kou. ".repeat(40));
        let json = regard(&["translate", "--model", path, "--max-length", "9", "--json"], &long);
        let json: serde_json::Value = serde_json::from_str(json.trim()).unwrap();
        let tokens = json["source_tokens"].as_array().unwrap();
        assert!(tokens.iter().filter(|token| *token == ">>de<<").count() > 2, "{json}");

        let info = regard(&["info", "--model", path], "");
        assert!(info.contains("type        marian: transformers"), "{info}");
        let pieces = regard(&["tokenize", "--model", path], "ba kou\n");
        assert_eq!(regard(&["tokenize", "--model", path, "--decode"], &pieces), "ba kou\n");
        assert!(
            regard(&["tokenize", "--model", path, "--target", "--count"], "kan kou\n")
                .contains("pieces used")
        );
        assert!(regard(&["look", "--model", path, "--src", "ba kou", "--tgt", "ba"], "").contains("kou"));

        let texts = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            fs::write(texts.path().join(name), text).unwrap();
            texts.path().join(name).to_str().unwrap().to_owned()
        };
        let src = file("train.aa", &"kan kou ba.\nder nin, ba\nbou ko\n".repeat(9));
        let tgt = file("train.bb", &"ba kou kan.\nba, nin der\nko bou\n".repeat(9));
        regard(&["evaluate", "--model", path, "--src", &src, "--ref", &tgt, "--beam", "1"], "");

        let averaged = texts.path().join("averaged");
        let averaged = averaged.to_str().unwrap();
        regard(&["average", path, path, "--out", averaged], "");
        let tuned = texts.path().join("tuned");
        let tuned = tuned.to_str().unwrap();
        let valid = ["--valid-src", &src, "--valid-tgt", &tgt];
        let train = [
            "train",
            "--init",
            path,
            "--src",
            &src,
            "--tgt",
            &tgt,
            "--out",
            tuned,
            "--steps",
            "2",
            "--threads",
            "1",
        ];
        regard(&[&train[..], &valid].concat(), "");
        let before = TokenizerPair::load(folder.path()).unwrap();
        for out in [averaged, tuned] {
            let after = Model::load(Path::new(out)).unwrap().tokenizers;
            assert_eq!(after.source().hash(), before.source().hash());
            assert_eq!(after.target().hash(), before.target().hash());
            assert_eq!(after.is_joint(), before.is_joint());
        }
        assert_ne!(translate("kan kou\n"), "");
    }
}

#[test]
fn dropout_is_refused_before_anything_is_trained() {
    let folder = model_folder("marian-joint");
    let file = folder.path().join("text");
    fs::write(&file, "kan kou\nba\nder\n").unwrap();
    let file = file.to_str().unwrap();
    let out = folder.path().join("out");
    let output = crate::command::regard()
        .args([
            "train",
            "--init",
            folder.path().to_str().unwrap(),
            "--src",
            file,
            "--tgt",
            file,
            "--steps",
            "1",
        ])
        .args(["--set", "tokenizer.bpe_dropout=0.1", "--threads", "1", "--out"])
        .arg(&out)
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(
        err.contains("bpe_dropout: only a BPE vocabulary with byte fallback can do this; use 0"),
        "{err}"
    );
    assert!(!out.join("model.safetensors").exists());
}
