//! Models of ours as folders of Marian and Firefox: what is written is read again as the same
//! model.

use crate::formats::{joint, ours};
use regard_core::decode::Shortlist;
use regard_core::formats::marian_nmt::{ExportFormat, ExportOptions, export};
use regard_core::formats::{Languages, Model, average};
use regard_core::model::{DecoderKind, Frequencies, ModelConfig, NormPlace, Positions, Transformer};
use regard_core::translator::Translator;
use regard_core::{DType, Isa};
use std::fs;
use std::path::Path;

const LINES: [&str; 3] = ["a dog runs", "two men talk about the red house", "the cat sleeps"];

fn student(config: &mut ModelConfig) {
    (config.d_model, config.heads, config.d_ff) = (64, 4, 128);
    (config.decoder, config.frequencies) = (DecoderKind::Ssru, Frequencies::Tensor2tensor);
    config.norm_epsilon = 1e-6;
}

fn attention(config: &mut ModelConfig) {
    student(config);
    config.decoder = DecoderKind::Attention;
}

/// Random weights that are not so large that everything saturates.
fn model(change: fn(&mut ModelConfig)) -> Model {
    let model = ours(change, joint());
    let weights = model.transformer.parameters().initialise(7);
    Model { weights: weights.iter().map(|w| 1.5 * w).collect(), ..model }
}

fn translations(folder: &Path) -> Vec<Vec<String>> {
    let translator = Translator::load(&[folder], Isa::best(), 1).unwrap();
    let options = regard_core::decode::SearchOptions {
        beam: 1,
        max_length: Some(12),
        forced_end: false,
        ..translator.options()
    };
    let lines = translator.translate(&LINES, &options).unwrap();
    lines.iter().map(|line| line.best().tokens).collect()
}

#[test]
fn exported_models_translate_alike() {
    for change in [student, attention] {
        let model = model(change);
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        model.save(&path("ours"), DType::F32).unwrap();
        let want = translations(&path("ours"));
        assert!(want.iter().any(|tokens| !tokens.is_empty()), "{want:?}");
        for (name, format) in [
            ("marian", ExportFormat::Marian),
            ("f32", ExportFormat::BergamotF32),
            ("int8", ExportFormat::BergamotInt8),
        ] {
            let options = ExportOptions { format, sample: &LINES, shortlist: None };
            export(&model, &options, &path(name)).unwrap();
            let read = Model::load(&path(name)).unwrap();
            assert!(
                read.transformer.config().target_vocabulary > model.transformer.config().target_vocabulary
            );
            let found = translations(&path(name));
            match format {
                // Random weights are no translator: in 8 bits, only that it runs.
                ExportFormat::BergamotInt8 => assert_eq!(found.len(), want.len()),
                _ => assert_eq!(found, want, "{name}"),
            }
        }
        // What was exported can be exported again: the .spm file is the same.
        let again = Model::load(&path("marian")).unwrap();
        let options = ExportOptions { format: ExportFormat::Marian, sample: &LINES, shortlist: None };
        export(&again, &options, &path("again")).unwrap();
        let file = |folder: &str, name: &str| fs::read(path(folder).join(name)).unwrap();
        assert_eq!(file("again", "vocab.spm"), file("marian", "vocab.spm"));
        assert!(file("again", "model.npz") == file("marian", "model.npz"));
    }
}

/// A model of Firefox and what training made of it are stored differently.
#[test]
fn a_firefox_model_is_averaged_with_one_of_ours_that_was_made_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let options = ExportOptions { format: ExportFormat::BergamotF32, sample: &LINES, shortlist: None };
    export(&model(student), &options, &path("firefox")).unwrap();
    let mut read = Model::load(&path("firefox")).unwrap();
    let weights = read.weights.clone();
    read.weights.iter_mut().for_each(|w| *w += 2.0);
    read.save(&path("ours"), DType::F32).unwrap();
    let mean = average(&[path("firefox"), path("ours")]).unwrap();
    assert!(mean.weights.iter().zip(&weights).all(|(mean, w)| (mean - w - 1.0).abs() < 1e-5));
}

/// A `.npz` says nothing about the longest sentence, a model of ours does.
#[test]
fn models_that_read_sentences_of_other_lengths_are_averaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut read = model(student);
    let options = ExportOptions { format: ExportFormat::Marian, sample: &LINES, shortlist: None };
    export(&read, &options, &path("marian")).unwrap();
    read = Model::load(&path("marian")).unwrap();
    let config = ModelConfig { max_positions: 77, ..read.transformer.config().clone() };
    let bias = read.transformer.output_bias().map(<[f32]>::to_vec);
    read.transformer = Transformer::new(config).unwrap().with_output_bias(bias).unwrap();
    read.save(&path("ours"), DType::F32).unwrap();
    let mean = average(&[path("ours"), path("marian")]).unwrap();
    assert_eq!(mean.transformer.config().max_positions, 77);
}

#[test]
fn languages_are_exported_and_a_folder_holds_one_model() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = model(student);
    for (source, target) in [("en", "zh_hant"), ("en", "pt")] {
        let path = folder.path().join(target);
        let languages = Languages { source: Some(source.into()), target: Some(target.into()) };
        model.languages = languages.clone();
        let mut options = ExportOptions { format: ExportFormat::Marian, sample: &LINES, shortlist: None };
        export(&model, &options, &path).unwrap();
        // The same again replaces it.
        export(&model, &options, &path).unwrap();
        assert_eq!(Model::load(&path).unwrap().languages, languages);
        options.format = ExportFormat::BergamotF32;
        let error = export(&model, &options, &path).unwrap_err().to_string();
        assert!(error.contains("npz, which is part of another model; an empty folder"), "{error}");
        assert_eq!(Model::load(&path).unwrap().languages, languages);
    }
}

#[test]
fn what_marian_cannot_express_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |change: fn(&mut ModelConfig)| {
        let model = ours(change, joint());
        let options = ExportOptions { format: ExportFormat::Marian, sample: &LINES, shortlist: None };
        export(&model, &options, folder.path()).unwrap_err().to_string()
    };
    let learned: fn(&mut ModelConfig) = |c| {
        student(c);
        (c.positions, c.frequencies) = (Positions::Learned, Frequencies::Paper);
    };
    assert_eq!(refusal(learned), "positions: positions that are not sinusoidal; Marian cannot express it");
    assert!(refusal(|_| ()).starts_with("frequencies: the paper's frequencies"), "{}", refusal(|_| ()));
    let pre: fn(&mut ModelConfig) = |c| {
        student(c);
        c.norm = NormPlace::Pre;
    };
    assert!(refusal(pre).starts_with("norm: norms before the layers, of which Marian"), "{}", refusal(pre));
    let epsilon: fn(&mut ModelConfig) = |c| {
        student(c);
        c.norm_epsilon = 1e-5;
    };
    assert_eq!(refusal(epsilon), "norm_epsilon: another ε than 1e-6; Marian cannot express it");
    let model = ours(student, joint());
    let options = ExportOptions { format: ExportFormat::BergamotInt8, sample: &[], shortlist: None };
    let error = export(&model, &options, folder.path()).unwrap_err().to_string();
    assert_eq!(error, "sample: there is no text to calibrate the int8 inputs on");
    let list = Shortlist::new((5, 6), 0..2, (vec![0], Vec::new()), false);
    let options = ExportOptions { format: ExportFormat::Marian, sample: &LINES, shortlist: Some(&list) };
    let error = export(&model, &options, folder.path()).unwrap_err().to_string();
    assert!(error.starts_with("shortlist: is for vocabularies of (5, 6) words"), "{error}");
}
