//! Settings written by version 0.1.0, before its structures were rearranged: `data/settings-0.1`.

use regard_core::DType;
use regard_core::formats::Model;
use regard_core::model::{Direction, EncoderKind, NormPlace, Preset};
use regard_train::TrainConfig;
use std::path::{Path, PathBuf};

/// The name of each pair of files, and the encoder that they describe.
const FILES: [(&str, EncoderKind); 4] = [
    ("attention", EncoderKind::Attention { window: Some(6) }),
    ("window", EncoderKind::Window { window: 5 }),
    ("recurrent", EncoderKind::Recurrent { direction: Direction::Forward }),
    ("convolutional", EncoderKind::Convolutional { kernel_width: 5, dilated: true }),
];

/// Settings that came later, as those files mean them.
const NEW: [&str; 24] = [
    "# max_sum is not set",
    "# max_per_document is not set",
    "# license is not set",
    "pairs = []",
    "# valid_pairs is not set",
    "init_share = 0.0",
    "decoder = \"attention\"",
    "frequencies = \"paper\"",
    "norm_embeddings = false",
    "drop_unknown = false",
    "position_offset = 0",
    "# start_token is not set",
    "target_langs = []",
    "temperature = 1.0",
    "gated = false",
    "linear_bias = true",
    "norm_kind = \"layer\"",
    "scale_scores = true",
    "scale_output = false",
    "relative_buckets = 32",
    "# softmax_sample is not set",
    "muon = \"none\"",
    "deepnorm = false",
    "r_drop_after = 0",
];

/// A section that came later.
const NEW_SECTION: &str = "\n[terms]\nmax_words = 3\nother_forms = 0.5\nother_words = 0.2\nshare = 0.0\n";

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/settings-0.1").join(name)
}

#[test]
fn a_config_toml_of_an_older_build_is_read_and_written_as_it_was() {
    for (name, encoder) in FILES {
        let path = file(&format!("{name}.toml"));
        let config = TrainConfig::load(&path).unwrap();
        assert_eq!(config.model.encoder, encoder);
        assert_eq!(config.model.norm, if name == "attention" { NormPlace::Pre } else { NormPlace::Post });
        assert_eq!((config.model.d_model, config.model.dropout, config.preset), (16, 0.3, Preset::Tiny));
        assert_eq!((config.precision, config.checkpoints.store), (Some(DType::Bf16), DType::F16));
        let optimizer = &config.optimizer;
        assert_eq!(
            (optimizer.step.r_drop, optimizer.step.adam.clip, optimizer.wire),
            (Some(5.0), Some(1.0), DType::Bf16)
        );
        assert_eq!(
            (optimizer.step.adam.beta1, optimizer.step.adam.beta2, optimizer.step.adam.epsilon),
            (0.9, 0.98, 1e-9)
        );
        let tokenizer = &config.tokenizer;
        assert_eq!((tokenizer.vocabulary.size, tokenizer.bpe_dropout), (Some(300), 0.1));
        assert_eq!(
            (config.batch.plan.max_tokens, config.batch.plan.pool, config.batch.accumulate),
            (4096, 100_000, 1)
        );
        config.check().unwrap();
        let (written, old) = (config.to_toml(), std::fs::read_to_string(&path).unwrap());
        let written = written.replacen(NEW_SECTION, "", 1);
        let without: String =
            written.split_inclusive('\n').filter(|line| !NEW.contains(&line.trim_end())).collect();
        assert_eq!(without, old);
    }
}

#[test]
fn a_config_json_of_an_older_build_is_read() {
    for (name, encoder) in FILES {
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(file(&format!("{name}.json")), folder.path().join("config.json")).unwrap();
        let config = Model::config(folder.path()).unwrap();
        assert_eq!((config.encoder, config.source_vocabulary, config.d_ff), (encoder, 300, 16));
    }
}

#[test]
fn the_order_of_settings_does_not_matter_but_their_encoder_does() {
    let read = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        TrainConfig::read(Some(Preset::Tiny), |_| Preset::Tiny, None, &sets)
    };
    let config = read(&["kernel_width=5", "dilated=true", "encoder=convolutional"]).unwrap();
    assert_eq!(config.model.encoder, EncoderKind::Convolutional { kernel_width: 5, dilated: true });
    let refusal = read(&["kernel_width=5"]).unwrap_err().to_string();
    assert_eq!(
        refusal,
        "model.kernel_width: 5 cannot be used: kernel_width: only encoder = convolutional has one, not attention"
    );
    let refusal = read(&["encoder=convolutional", "kernal_width=5"]).unwrap_err().to_string();
    assert_eq!(refusal, "kernal_width: there is no such setting; did you mean model.kernel_width?");
}
