//! Model folders: those of `transformers` (goldens by tools/goldens/marian.py), our own, and broken
//! ones.

use crate::sentences::trained;
use regard_core::DType;
use regard_core::Isa;
use regard_core::decode::{Engine, score_pairs};
use regard_core::formats::{GenerationConfig, Languages, Model, average};
use regard_core::model::{
    Activation, Combine, DecoderKind, Direction, EncoderKind, Frequencies, ModelConfig, NormPlace, Positions,
    Transformer, Tying,
};
use regard_core::text::{Segmentation, TokenizerPair};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const CASES: [&str; 7] = [
    "swish-shared",
    "relu-shared",
    "gelu-separate",
    "relu-untied",
    "swish-output",
    "swish-half",
    "relu-two-sizes",
];

#[derive(Deserialize)]
struct Golden {
    scaled: bool,
    sentences: Vec<Sentence>,
}

#[derive(Deserialize)]
struct Sentence {
    source: Vec<u32>,
    target: Vec<u32>,
    logits: Vec<f32>,
}

pub(crate) fn golden_folder(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/marian").join(case)
}

/// A golden folder that may be broken.
pub(crate) fn copy(case: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in fs::read_dir(golden_folder(case)).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    folder
}

/// The error of loading a folder, without the folder's name.
pub(crate) fn refusal(folder: &Path) -> String {
    let error = Model::load(folder).unwrap_err().to_string();
    error.strip_prefix(&format!("{}/", folder.display())).unwrap_or(&error).to_owned()
}

/// Changes a JSON file of a folder.
pub(crate) fn edit(folder: &Path, file: &str, change: impl FnOnce(&mut Value)) {
    let path = folder.join(file);
    let mut value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

fn close(got: &[f32], want: &[f32], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert!((got - want).abs() <= 1e-4 * (1.0 + want.abs()), "{what} {i}: {got} is not {want}");
    }
}

/// The log-probabilities that the golden logits give to the words of a sentence. Padding, the last
/// word, takes no part.
fn log_probabilities(sentence: &Sentence, words: usize) -> Vec<f32> {
    let rows = sentence.target[1..].iter().zip(sentence.logits.chunks(words));
    rows.map(|(&id, row)| row[id as usize] - row[..words - 1].iter().map(|x| x.exp()).sum::<f32>().ln())
        .collect()
}

#[test]
fn models_of_transformers_compute_the_same_here() {
    for case in CASES {
        let folder = golden_folder(case);
        let golden = fs::read_to_string(folder.join("golden.json")).unwrap();
        let golden: Golden = serde_json::from_str(&golden).unwrap();
        let model = Model::load(&folder).unwrap();
        assert_eq!(model.transformer.config().scale_embeddings, golden.scaled);
        assert_eq!(Model::why_not_marian(model.transformer.config()), [""; 0]);
        assert_eq!(model.generation.num_beams, Some(6));
        assert_eq!(model.generation.bad_words_ids, Some(vec![vec![39]]));
        // What the file does not say is what its author had.
        assert_eq!(model.generation.length_penalty, Some(1.0));
        assert_eq!(model.languages.source.as_deref(), Some("aa"));
        assert_eq!(model.tokenizers.is_joint(), !case.ends_with("separate") && !case.ends_with("untied"));
        let precision = if case == "swish-half" { DType::F16 } else { DType::F32 };
        assert_eq!(Model::describe(&folder).unwrap().dtype, precision);
        assert!(model.transformer.output_bias().is_some());
        // And again when it has been through our own files.
        let saved = tempfile::tempdir().unwrap();
        model.save(saved.path(), DType::F32).unwrap();
        let again = Model::load(saved.path()).unwrap();
        assert_eq!(again.weights, model.weights);
        assert_eq!(again.generation, model.generation);
        for model in [model, again] {
            let engine = Engine::new(&model.transformer, &model.weights, DType::F32, Isa::best());
            for (i, sentence) in golden.sentences.iter().enumerate() {
                let pair = (sentence.source.clone(), sentence.target[1..].to_vec());
                let scores = score_pairs(&[&engine], &[pair], 1).unwrap().remove(0);
                let want = log_probabilities(sentence, model.transformer.config().target_vocabulary);
                close(&scores, &want, &format!("{case}, sentence {i}"));
            }
        }
    }
}

#[test]
fn a_bias_has_a_number_for_every_word() {
    let transformer = ours(|_| (), joint()).transformer;
    let words = transformer.config().target_vocabulary;
    let error = transformer.with_output_bias(Some(vec![0.0; 3])).unwrap_err().to_string();
    assert_eq!(error, format!("model: a bias of 3 numbers for a vocabulary of {words}"));
}

pub(crate) fn ours(change: impl FnOnce(&mut ModelConfig), tokenizers: TokenizerPair) -> Model {
    let mut config = ModelConfig {
        source_vocabulary: tokenizers.source().size(),
        target_vocabulary: tokenizers.target().size(),
        d_model: 8,
        heads: 2,
        d_ff: 12,
        encoder_layers: 2,
        decoder_layers: 1,
        max_positions: 32,
        ..ModelConfig::default()
    };
    change(&mut config);
    let transformer = Transformer::new(config).unwrap();
    let weights = (0..transformer.parameters().len()).map(|i| ((i * 7919) as f32).sin()).collect();
    let (pad, eos) = (tokenizers.target().pad(), tokenizers.target().eos());
    Model {
        transformer,
        weights,
        tokenizers,
        languages: Languages { source: Some("en".into()), target: None },
        generation: GenerationConfig { num_beams: Some(5), ..GenerationConfig::standard(pad, eos, 32) },
        shortlist: None,
    }
}

pub(crate) fn joint() -> TokenizerPair {
    trained(Segmentation::Bpe, false)
}

#[test]
fn every_model_of_ours_comes_back_bit_by_bit() {
    type Change = (&'static str, fn(&mut ModelConfig), &'static str);
    let changes: [Change; 18] = [
        ("plain", |_| (), ""),
        ("gelu", |c| (c.activation, c.dropout, c.attention_dropout) = (Activation::Gelu, 0.3, 0.05), ""),
        ("silu", |c| (c.activation, c.scale_embeddings) = (Activation::Silu, false), ""),
        ("decoder tied", |c| c.tying = Tying::Decoder, ""),
        ("untied", |c| c.tying = Tying::None, ""),
        (
            "embeddings tied",
            |c| c.tying = Tying::Embeddings,
            "tying: MarianMT ties the output too, or nothing",
        ),
        (
            "student",
            |c| {
                (c.decoder, c.frequencies, c.norm_embeddings) =
                    (DecoderKind::Ssru, Frequencies::Tensor2tensor, true);
            },
            "frequencies: MarianMT has the paper's; norm_embeddings: MarianMT does not normalise embeddings; \
             decoder: MarianMT's is attention, not ssru",
        ),
        ("pre-norm", |c| c.norm = NormPlace::Pre, "norm: Marian is post-norm"),
        (
            "learned",
            |c| (c.positions, c.combine) = (Positions::Learned, Combine::Concatenate),
            "positions: Marian has sinusoidal ones, not learned; combine: Marian adds positions",
        ),
        (
            "fairseq",
            |c| (c.start_token, c.position_offset) = (Some(2), 2),
            "position_offset: Marian's positions begin with the first; start_token: Marian starts with padding, \
             the last word",
        ),
        (
            "relative",
            |c| (c.positions, c.relative_reach) = (Positions::Relative, 3),
            "positions: Marian has sinusoidal ones, not relative",
        ),
        (
            "window",
            |c| c.encoder = EncoderKind::Attention { window: Some(4) },
            "window: Marian attends to whole sentences",
        ),
        ("window encoder", |c| c.encoder = EncoderKind::WINDOW, "encoder: Marian's is attention, not window"),
        (
            "recurrent",
            |c| c.encoder = EncoderKind::RECURRENT,
            "encoder: Marian's is attention, not recurrent",
        ),
        (
            "recurrent forward",
            |c| c.encoder = EncoderKind::Recurrent { direction: Direction::Forward },
            "encoder: Marian's is attention, not recurrent",
        ),
        (
            "dilated",
            |c| c.encoder = EncoderKind::Convolutional { kernel_width: 5, dilated: true },
            "encoder: Marian's is attention, not convolutional",
        ),
        (
            "heads",
            |c| (c.heads, c.d_k, c.d_v) = (3, Some(2), Some(5)),
            "d_k: Marian has d_model / heads; d_v: Marian has d_model / heads",
        ),
        ("epsilon", |c| c.norm_epsilon = 1e-6, "norm_epsilon: Marian has 1e-5"),
    ];
    for (name, change, why) in changes {
        let model = ours(change, joint());
        assert_eq!(Model::why_not_marian(model.transformer.config()).join("; "), why, "{name}");
        let folder = tempfile::tempdir().unwrap();
        // Twice: the second replaces the first.
        model.save(folder.path(), DType::Bf16).unwrap();
        assert_eq!(Model::describe(folder.path()).unwrap().dtype, DType::Bf16);
        let rough = Model::load(folder.path()).unwrap();
        for (got, want) in rough.weights.iter().zip(&model.weights) {
            assert!((got - want).abs() <= want.abs() / 256.0, "{name}: {got} is not {want}");
        }
        model.save(folder.path(), DType::F32).unwrap();
        let read = Model::load(folder.path()).unwrap();
        assert_eq!(read.transformer.config(), model.transformer.config(), "{name}");
        assert_eq!(read.weights, model.weights, "{name}");
        assert_eq!(read.languages, model.languages);
        assert_eq!(read.tokenizers.source().to_json(), model.tokenizers.source().to_json());
        assert_eq!(read.transformer.output_bias(), None);
        let target = model.tokenizers.target();
        assert_eq!(read.generation, model.generation);
        let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
        assert_eq!(files.len(), 5, "{files:?}");
        let description = Model::describe(folder.path()).unwrap();
        assert_eq!(description.model_type, if why.is_empty() { "marian" } else { "regard" });
        let config = fs::read_to_string(folder.path().join("config.json")).unwrap();
        let config: Value = serde_json::from_str(&config).unwrap();
        assert_eq!(config["model_type"], description.model_type);
        assert_eq!(config.get("regard").is_some(), !why.is_empty());
        assert_eq!(config["pad_token_id"], target.size() - 1);
    }
}

#[test]
fn separate_vocabularies_have_two_files() {
    let tokenizers = trained(Segmentation::Unigram, true);
    let mut model = ours(|c| c.tying = Tying::Decoder, tokenizers);
    let bias = (0..model.transformer.config().target_vocabulary).map(|i| i as f32).collect();
    model.transformer.set_output_bias(Some(bias)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    model.save(folder.path(), DType::F32).unwrap();
    assert!(folder.path().join("target_tokenizer.json").exists());
    let read = Model::load(folder.path()).unwrap();
    assert!(!read.tokenizers.is_joint());
    assert_eq!(read.weights, model.weights);
    assert_eq!(read.transformer.output_bias(), model.transformer.output_bias());
}

#[test]
fn weights_alone_are_the_folders_weights() {
    let model = ours(|_| (), joint());
    let folder = tempfile::tempdir().unwrap();
    model.save(folder.path(), DType::F16).unwrap();
    let file = folder.path().join("model.safetensors");
    Model::save_weights(&model.transformer, &model.weights, &file, DType::F32).unwrap();
    assert_eq!(Model::load(folder.path()).unwrap().weights, model.weights);
    let error = Model::save_weights(&model.transformer, &model.weights[1..], &file, DType::F32);
    let size = model.weights.len();
    assert_eq!(
        error.unwrap_err().to_string(),
        format!("saving a model: there are {} weights, but the model has {size}", size - 1)
    );
}

#[test]
fn a_model_with_nan_is_not_saved_over_a_good_one() {
    let mut model = ours(|_| (), joint());
    let folder = tempfile::tempdir().unwrap();
    model.save(folder.path(), DType::F32).unwrap();
    let good = model.weights.clone();
    let place = model.transformer.parameters().get("encoder.layers.1.self_attn.qkv.weight").unwrap();
    model.weights[place.param.range().start + 8 * 8] = f32::NAN;
    let error = model.save(folder.path(), DType::F32).unwrap_err().to_string();
    let want = "tensor model.encoder.layers.1.self_attn.k_proj.weight holds NaN at 0: a model like this is not saved";
    assert!(error.ends_with(want), "{error}");
    assert_eq!(Model::load(folder.path()).unwrap().weights, good);
}

#[test]
fn older_folders_are_understood() {
    let folder = copy("swish-shared");
    fs::remove_file(folder.path().join("generation_config.json")).unwrap();
    fs::remove_file(folder.path().join("tokenizer_config.json")).unwrap();
    edit(folder.path(), "config.json", |config| {
        for key in ["decoder_vocab_size", "tie_word_embeddings", "share_encoder_decoder_embeddings"] {
            config.as_object_mut().unwrap().remove(key);
        }
        for key in ["architectures", "dropout", "attention_dropout", "pad_token_id", "decoder_start_token_id"]
        {
            config[key] = Value::Null;
        }
        for key in
            ["static_position_embeddings", "normalize_before", "normalize_embedding", "add_bias_logits"]
        {
            config[key] = true.into();
        }
        config["num_beams"] = 6.into();
        config["bad_words_ids"] = json!([[39]]);
        config["eos_token_id"] = json!([0]);
    });
    let model = Model::load(folder.path()).unwrap();
    assert_eq!(model.weights, Model::load(&golden_folder("swish-shared")).unwrap().weights);
    assert_eq!(model.generation.num_beams, Some(6));
    assert_eq!(model.generation.bad_words_ids, Some(vec![vec![39]]));
    assert_eq!(model.languages, Languages::default());
    // The end is forced in such folders, unless they say no.
    assert_eq!(model.generation.forced_eos_token_id, Some(0));
    edit(folder.path(), "config.json", |config| config["forced_eos_token_id"] = Value::Null);
    assert_eq!(Model::load(folder.path()).unwrap().generation.forced_eos_token_id, None);
    edit(folder.path(), "config.json", |config| {
        config.as_object_mut().unwrap().remove("forced_eos_token_id");
    });
    assert_eq!(Model::load(folder.path()).unwrap().generation.forced_eos_token_id, Some(0));
}

#[test]
fn wrong_configurations_are_refused_by_key() {
    let cases: &[(&str, Value, &str)] = &[
        ("d_model", json!("8"), "config.json: d_model: invalid type: string \"8\", expected usize"),
        ("d_model", json!(-8), "config.json: d_model: invalid value: integer `-8`, expected usize"),
        ("d_model", json!(null), "config.json: d_model: is missing"),
        ("d_model", json!(0), "config.json: d_model: 0 is too few, at least 1 is needed"),
        ("vocab_size", json!([40]), "config.json: vocab_size: invalid type: sequence, expected usize"),
        ("dropout", json!("a lot"), "config.json: dropout: invalid type: string \"a lot\", expected f32"),
        (
            "scale_embedding",
            json!(1),
            "config.json: scale_embedding: invalid type: integer `1`, expected a boolean",
        ),
        ("eos_token_id", json!("x"), "config.json: eos_token_id: expected an id or a list of ids"),
        ("eos_token_id", json!(2), "tokenizer.json: </s> is 0, but eos_token_id of the model is 2"),
        (
            "model_type",
            json!("bart"),
            "config.json: model_type: \"bart\" is not supported; supported are marian, m2m_100, mbart, t5 and regard",
        ),
        ("model_type", json!(7), "config.json: model_type: invalid type: integer `7`, expected a string"),
        (
            "architectures",
            json!(["MarianForCausalLM"]),
            "config.json: architectures: MarianForCausalLM is not supported; supported is MarianMTModel",
        ),
        (
            "activation_function",
            json!("tanh"),
            "config.json: activation_function: \"tanh\" is not supported; supported are swish, silu, relu and gelu",
        ),
        (
            "decoder_attention_heads",
            json!(3),
            "config.json: decoder_heads: 3 does not divide d_model = 8; use one of 1, 2, 4, 8, or set d_k and d_v",
        ),
        (
            "decoder_ffn_dim",
            json!(13),
            "model.safetensors: tensor model.decoder.layers.0.fc1.weight has the shape [12, 8], but [13, 8] is expected \
             from config.json",
        ),
        (
            "tie_word_embeddings",
            json!(false),
            "model.safetensors: tensor lm_head.weight of shape [40, 8] is missing",
        ),
        (
            "tie_word_embeddings",
            json!("no"),
            "config.json: tie_word_embeddings: invalid type: string \"no\", expected a boolean",
        ),
        (
            "pad_token_id",
            json!(1),
            "config.json: pad_token_id: 1 is not the last id of the vocabulary, 39: not supported yet",
        ),
        (
            "encoder_layers",
            json!(16_777_216),
            "model.safetensors: 60 tensors cannot be 16777216 encoder layers",
        ),
        (
            "encoder_layers",
            json!(3),
            "model.safetensors: tensor model.encoder.layers.2.self_attn.q_proj.weight of shape [8, 8] is missing",
        ),
        (
            "encoder_layers",
            json!(1),
            "model.safetensors: model.encoder.layers.1.fc1.weight is there, but config.json says encoder_layers 1",
        ),
    ];
    for (key, value, want) in cases {
        let folder = copy("swish-shared");
        edit(folder.path(), "config.json", |config| config[*key] = value.clone());
        assert_eq!(refusal(folder.path()), *want);
        // Shapes are checked even if the weights are not read.
        let without = Model::load_without_weights(folder.path()).unwrap_err().to_string();
        assert!(without.ends_with(want), "{without}");
    }
    let folder = copy("swish-shared");
    let without = Model::load_without_weights(folder.path()).unwrap();
    let model = Model::load(folder.path()).unwrap();
    assert!(without.weights.is_empty() && !model.weights.is_empty());
    assert_eq!(without.transformer.config(), model.transformer.config());
    for (ffn, want) in [
        (
            14,
            "model.safetensors: tensor model.encoder.layers.0.fc1.weight has the shape [12, 8], but [14, 8] is expected from config.json",
        ),
        (
            16_777_216,
            "model.safetensors: config.json describes a matrix of 134217728 numbers, but the file has",
        ),
    ] {
        edit(folder.path(), "config.json", |config| {
            (config["encoder_ffn_dim"], config["decoder_ffn_dim"]) = (ffn.into(), ffn.into());
        });
        let error = refusal(folder.path());
        assert!(error.starts_with(want), "{error}");
    }
    for (text, want) in [
        ("", "config.json: not JSON: EOF"),
        ("[]", "config.json: an object { … } is expected"),
        ("{\"model_type\": NaN}", "config.json: not JSON: expected value"),
        ("{}", "config.json: architectures: is missing, and so is model_type; supported is MarianMTModel"),
        ("{\"model_type\": \"regard\"}", "config.json: regard: is missing"),
        (
            r#"{"model_type": "regard", "regard": {"d_model": "wide"}}"#,
            "config.json: d_model: invalid type: string \"wide\"",
        ),
        (
            r#"{"model_type": "regard", "regard": {"d_modle": 8}}"#,
            "config.json: d_modle: unknown field `d_modle`",
        ),
    ] {
        fs::write(folder.path().join("config.json"), text).unwrap();
        let error = refusal(folder.path());
        assert!(error.starts_with(want), "{error}");
    }
    fs::write(folder.path().join("config.json"), " ".repeat(5 << 20)).unwrap();
    let larger = "config.json: is larger than 4194304 bytes, the most that is read of such a file";
    assert_eq!(refusal(folder.path()), larger);
}

#[test]
fn sizes_that_disagree_are_named() {
    let folder = copy("swish-shared");
    edit(folder.path(), "config.json", |config| {
        for (key, value) in [
            ("vocab_size", 41),
            ("decoder_vocab_size", 41),
            ("pad_token_id", 40),
            ("decoder_start_token_id", 40),
        ] {
            config[key] = value.into();
        }
    });
    assert_eq!(
        refusal(folder.path()),
        "model.safetensors: tensor model.shared.weight has the shape [40, 8], but [41, 8] is expected from config.json"
    );
    let folder = copy("swish-shared");
    joint().save(folder.path()).unwrap();
    let size = joint().source().size();
    assert_eq!(
        refusal(folder.path()),
        format!("tokenizer.json: the vocabulary has {size} pieces, but the embeddings have 40")
    );
    let mut model = ours(|_| (), joint());
    model.tokenizers = TokenizerPair::load(&golden_folder("swish-shared")).unwrap();
    let error = model.save(&folder.path().join("new"), DType::F32).unwrap_err().to_string();
    assert!(error.ends_with(&format!("has 40 pieces, but the embeddings have {size}")), "{error}");
    assert!(!folder.path().join("new").exists());
}

#[test]
fn missing_files_are_named() {
    let nothing = Model::load(Path::new("no/such/model")).unwrap_err().to_string();
    assert!(nothing.starts_with("no/such/model: no such folder"), "{nothing}");
    let folder = copy("swish-shared");
    let expected = "a model is a folder with config.json, model.safetensors and tokenizer.json, or a \
                    folder of Marian or Firefox with model*.npz or model*.bin and its vocabularies, a folder of \
                    CTranslate2 with model.bin and its vocabularies, or a package of Argos Translate (.argosmodel)";
    let error = Model::load(&folder.path().join("model.safetensors")).unwrap_err().to_string();
    assert!(error.ends_with(&format!("model.safetensors: is a file, not a folder; {expected}")), "{error}");
    fs::remove_file(folder.path().join("config.json")).unwrap();
    let error = refusal(folder.path());
    assert_eq!(error, format!("config.json: there is no such file; {expected}"));
    let folder = copy("swish-shared");
    fs::remove_file(folder.path().join("tokenizer.json")).unwrap();
    let error = refusal(folder.path());
    assert!(error.starts_with("tokenizer.json: ") && error.contains("os error 2"), "{error}");
    let folder = copy("swish-shared");
    fs::remove_file(folder.path().join("model.safetensors")).unwrap();
    assert_eq!(
        refusal(folder.path()),
        format!(
            "{}: no weights: neither model.safetensors nor model.safetensors.index.json nor pytorch_model.bin nor \
             pytorch_model.bin.index.json is there",
            folder.path().display()
        )
    );
}

#[test]
fn a_cut_off_file_of_weights_is_refused_at_every_length() {
    let folder = copy("swish-half");
    let path = folder.path().join("model.safetensors");
    let whole = fs::read(&path).unwrap();
    // Every length in the header, and some of the rest.
    for length in (0..whole.len()).filter(|n| *n < 400 || n % 97 == 0 || *n > whole.len() - 9) {
        fs::write(&path, &whole[..length]).unwrap();
        let error = refusal(folder.path());
        assert!(error.starts_with("model.safetensors: "), "{length}: {error}");
    }
    let mut nan = whole.clone();
    let end = nan.len();
    nan[end - 2..].copy_from_slice(&[0xff, 0x7f]);
    fs::write(&path, nan).unwrap();
    let error = refusal(folder.path());
    assert!(
        error.contains(" holds NaN at ") && error.starts_with("model.safetensors: tensor model."),
        "{error}"
    );
}

#[test]
fn wrong_generation_settings_are_named() {
    let folder = copy("swish-shared");
    for (key, value, want) in [
        ("num_beams", json!("four"), "generation_config.json: num_beams: invalid type: string \"four\""),
        ("num_beams", json!(-1), "generation_config.json: num_beams: invalid value: integer `-1`"),
        (
            "early_stopping",
            json!("maybe"),
            "generation_config.json: early_stopping: expected true, false or \"never\"",
        ),
        ("bad_words_ids", json!([39]), "generation_config.json: bad_words_ids: invalid type: integer `39`"),
    ] {
        edit(folder.path(), "generation_config.json", |config| config[key] = value);
        let error = refusal(folder.path());
        assert!(error.starts_with(want), "{error}");
        edit(folder.path(), "generation_config.json", |config| config[key] = Value::Null);
    }
}

#[test]
fn the_average_of_models_is_that_of_their_weights() {
    let folders: Vec<TempDir> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let paths: Vec<PathBuf> = folders.iter().map(|f| f.path().to_path_buf()).collect();
    let mut model = ours(|_| (), joint());
    for (n, folder) in paths.iter().enumerate() {
        model.weights.iter_mut().enumerate().for_each(|(i, x)| *x = ((i + 5 * n) as f32).cos());
        let bias = (n == 1).then(|| vec![3.0; model.transformer.config().target_vocabulary]);
        model.transformer.set_output_bias(bias).unwrap();
        model.save(folder, DType::F32).unwrap();
    }
    let mean = average(&paths).unwrap();
    for (i, x) in mean.weights.iter().enumerate() {
        let want = (0..3).map(|n| f64::from(((i + 5 * n) as f32).cos())).sum::<f64>() / 3.0;
        assert_eq!(*x, want as f32, "{i}");
    }
    let ones = vec![1.0; model.transformer.config().target_vocabulary];
    assert_eq!(mean.transformer.output_bias(), Some(&ones[..]));
    assert_eq!(average(&paths[..1]).unwrap().weights, Model::load(&paths[0]).unwrap().weights);

    ours(|c| c.d_ff = 13, joint()).save(&paths[1], DType::F32).unwrap();
    let both = format!("{} and {} cannot be averaged", paths[0].display(), paths[1].display());
    assert_eq!(
        average(&paths).unwrap_err().to_string(),
        format!("average: d_ff is 12 in one and 13 in the other; {both}")
    );
    let unigram = trained(Segmentation::Unigram, false);
    let size = unigram.source().size();
    let resized = |c: &mut ModelConfig| (c.source_vocabulary, c.target_vocabulary) = (size, size);
    ours(resized, unigram).save(&paths[1], DType::F32).unwrap();
    let error = average(&paths).unwrap_err().to_string();
    assert!(error.ends_with(&both), "{error}");
    assert_eq!(average(&[]).unwrap_err().to_string(), "average: at least one model folder is needed");
}
