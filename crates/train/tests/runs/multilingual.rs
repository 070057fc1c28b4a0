//! One model of several target languages.

use crate::common::{run, small_config};
use regard_core::Isa;
use regard_core::formats::Model;
use regard_core::text::LanguagePlacement;
use regard_core::translator::Translator;
use regard_train::{TrainConfig, resumed_config};
use std::fs;
use std::path::Path;

/// English to French, and a few pairs of English to English, which is taken for German.
fn config(folder: &Path) -> TrainConfig {
    let mut config = small_config(folder);
    let english = fs::read_to_string(folder.join("train.en")).unwrap();
    let few: String = english.lines().take(12).map(|line| format!("{line}\n")).collect();
    fs::write(folder.join("few.en"), &few).unwrap();
    fs::write(folder.join("few.de"), &few).unwrap();
    config.data.src.push(folder.join("few.en"));
    config.data.tgt.push(folder.join("few.de"));
    config.data.target_langs = vec!["fr".into(), "de".into()];
    config.data.temperature = 5.0;
    (config.data.valid_src, config.data.valid_tgt) = (None, None);
    config
}

#[test]
fn a_model_is_told_which_language_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let out = folder.path().join("out");
    let (outcome, messages) = run(&config, &out, false, 6);
    outcome.unwrap();
    // 12 pairs of 54 at temperature 5: (12/54)^(1/5 − 1) times as often, less what is held out.
    assert!(messages.contains("pairs at temperature 5"), "{messages}");
    let (outcome, messages) = run(&resumed_config(&out, |_| Ok(())).unwrap(), &out, true, u64::MAX);
    assert_eq!(outcome.unwrap().steps, 14, "{messages}");

    let model = Model::load(&out).unwrap();
    let languages = model.tokenizers.languages().unwrap();
    assert_eq!(languages.placement, LanguagePlacement::Target);
    let codes: Vec<&str> = languages.list.iter().map(|language| language.code.as_str()).collect();
    assert_eq!(codes, ["de", "fr"]);
    assert_eq!(model.languages.target.as_deref(), Some("fr"));
    assert!(model.tokenizers.source().size() <= 400, "the tokens are a part of the vocabulary");
    let ids = |code: &str| {
        let model = model.for_languages(None, Some(code)).unwrap();
        model.tokenizers.source().encode("a dog").unwrap()
    };
    let (german, french) = (ids("deu_Latn"), ids("fr"));
    assert_eq!((german[0], french[0]), (languages.list[0].id, languages.list[1].id));
    assert_eq!(german[1..], french[1..]);
    // What looks like the token is text.
    let text = model.tokenizers.source().encode("<2de>").unwrap();
    assert!(!text[1..].contains(&german[0]), "{text:?}");
    assert_eq!(model.tokenizers.source().decode(&text), "<2de>");

    let translator = Translator::load(&[&out], Isa::best(), 1).unwrap();
    assert!(translator.translate(&["a dog"], &translator.options()).is_ok());
    assert!(translator.for_languages(None, Some("pt")).is_err());
}

/// Files of one language are sampled as files: a small one of another kind of text comes more often.
#[test]
fn small_files_of_the_same_language_come_more_often() {
    let pairs_of_an_epoch = |languages: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(folder.path());
        config.data.target_langs = languages.iter().map(|&code| code.to_owned()).collect();
        let files = [&mut config.data.src, &mut config.data.tgt].map(|files| files[0].clone());
        (config.data.valid_src, config.data.valid_tgt) = (Some(files[0].clone()), Some(files[1].clone()));
        let (outcome, messages) = run(&config, &folder.path().join("out"), false, 1);
        outcome.unwrap();
        let pairs = messages.split("an epoch has ").nth(1).and_then(|rest| rest.split(' ').next());
        pairs.unwrap_or_else(|| panic!("{messages}")).parse::<f64>().unwrap()
    };
    let several = pairs_of_an_epoch(&["fr", "de"]);
    assert!(several > 66.0, "more than every pair once: {several}");
    assert_eq!(pairs_of_an_epoch(&["fr", "fr"]), several, "of one language, which has a token");
    assert_eq!(pairs_of_an_epoch(&[]), several, "of one language, which has none");
}

#[test]
fn what_does_not_fit_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |change: fn(&mut TrainConfig)| {
        let mut config = config(folder.path());
        change(&mut config);
        let out = folder.path().join("out");
        run(&config, &out, false, u64::MAX).0.unwrap_err().to_string()
    };
    assert_eq!(
        refusal(|c| c.data.target_langs = vec!["de".into()]),
        "data.target_langs: 1 languages for 2 pairs of files; give one for each pair of data.src and data.tgt"
    );
    assert_eq!(refusal(|c| c.data.temperature = 0.0), "data.temperature: 0 is not a positive number");
    assert_eq!(
        refusal(|c| c.tokenizer.vocabulary.separate = true),
        "tokenizer.separate: a model of several target languages has one vocabulary for all; use false"
    );
}

/// T5 is trained on, with the token of one language or those of several.
#[test]
fn a_model_of_t5_is_trained_on() {
    let folder = tempfile::tempdir().unwrap();
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("../regard-core/tests/goldens/families");
    for (family, languages) in [("madlad", vec!["fr", "de"]), ("t5-tied", vec![]), ("t5-silu", vec![])] {
        let mut config = config(folder.path());
        config.data.target_langs = languages.iter().map(|&code| code.to_owned()).collect();
        if languages.is_empty() {
            config.data.target_lang = Some("de".into());
        }
        config.data.init = Some(goldens.join(family));
        config.model = TrainConfig::new(config.preset).model;
        config.tokenizer.vocabulary.size = None;
        config.steps = Some(3);
        // The tokenizer of the golden knows few of the letters.
        config.filters.drop_unknown = false;
        let out = folder.path().join(family);
        let (outcome, messages) = run(&config, &out, false, u64::MAX);
        assert!(outcome.is_ok(), "{family}: {outcome:?} {messages}");
        let (before, after) = (Model::load(&goldens.join(family)).unwrap(), Model::load(&out).unwrap());
        assert_ne!(before.weights, after.weights);
        assert!(after.weights.iter().all(|x| x.is_finite()));
        assert_eq!(before.tokenizers.languages(), after.tokenizers.languages());
        assert_eq!(after.transformer.config().gated, before.transformer.config().gated);
    }
}
