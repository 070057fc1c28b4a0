//! Models that learn to read terms inside of their source.

use crate::common::{foreign, losses, run, small_config};
use crate::records::validations;
use regard_core::formats::{Model, load_tokenizers};
use regard_core::text::TermTokens;
use regard_core::translator::{Annotation, LineTerms, Translator};
use regard_core::{DType, Isa};
use regard_train::{TrainConfig, resumed_config};
use std::fs;
use std::path::Path;

fn config(folder: &Path) -> TrainConfig {
    let mut config = small_config(folder);
    config.terms.share = 0.5;
    config
}

#[test]
fn a_resumed_run_annotates_as_the_run_that_was_never_stopped() {
    let folder = tempfile::tempdir().unwrap();
    for dropout in [0.0, 0.1] {
        let mut config = config(folder.path());
        config.tokenizer.bpe_dropout = dropout;
        let [whole, parts, without] =
            ["whole", "parts", "without"].map(|name| folder.path().join(format!("{name}{dropout}")));
        let (outcome, messages) = run(&config, &whole, false, u64::MAX);
        assert_eq!(outcome.unwrap().steps, 14);
        assert!(messages.contains("terms: translations of"), "{messages}");
        for (i, after) in [2, 7, u64::MAX].into_iter().enumerate() {
            let config = if i == 0 { config.clone() } else { resumed_config(&parts, |_| Ok(())).unwrap() };
            run(&config, &parts, i > 0, after).0.unwrap();
        }
        assert_eq!(losses(&parts), losses(&whole));
        assert_eq!(validations(&parts), validations(&whole));
        assert_eq!(Model::load(&parts).unwrap().weights, Model::load(&whole).unwrap().weights);
        let error = resumed_config(&parts, |c| c.set("terms.share=0.1")).unwrap_err().to_string();
        assert!(error.starts_with("terms.share: cannot change in the middle of a run"), "{error}");

        // Of the same vocabulary, but without annotations.
        let tokenizer = whole.join("tokenizer.json");
        let other = TrainConfig { terms: Default::default(), ..config.clone() };
        let other = TrainConfig {
            tokenizer: regard_train::config::TokenizerConfig { file: Some(tokenizer), ..other.tokenizer },
            ..other
        };
        run(&other, &without, false, u64::MAX).0.unwrap();
        assert_ne!(losses(&without), losses(&whole));
    }
}

#[test]
fn a_folder_says_that_its_model_reads_terms() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    run(&config(folder.path()), &out, false, u64::MAX).0.unwrap();
    let model = Model::load(&out).unwrap();
    let tokens = *model.tokenizers.terms().unwrap();
    let source = model.tokenizers.source();
    assert_eq!(TermTokens::find(source), Some(tokens));
    assert!(source.size() <= 400, "the tokens are a part of the vocabulary");
    // What looks like a token is text, and a token is no text.
    let text = source.encode("a <term> is </term>").unwrap();
    assert!(tokens.ids().iter().all(|id| !text.contains(id)), "{text:?}");
    assert_eq!(source.decode(&text), "a <term> is </term>");
    assert_eq!(source.decode(&tokens.ids()), "");

    // Copies keep it.
    let copy = folder.path().join("copy");
    model.save(&copy, DType::F32).unwrap();
    assert_eq!(load_tokenizers(&copy).unwrap().terms(), Some(&tokens));
    let file = copy.join("tokenizer_config.json");
    let written = fs::read_to_string(&file).unwrap();
    fs::write(&file, written.replace("<is>", "<was>")).unwrap();
    let error = load_tokenizers(&copy).unwrap_err().to_string();
    assert!(error.ends_with("term_tokens: \"<was>\" is not in the vocabulary"), "{error}");
    // As folders of older builds are.
    let mut keys: serde_json::Value = serde_json::from_str(&written).unwrap();
    keys.as_object_mut().unwrap().remove("term_tokens").unwrap();
    fs::write(&file, keys.to_string()).unwrap();
    assert_eq!(load_tokenizers(&copy).unwrap().terms(), None);
}

#[test]
fn translations_of_terms_stand_in_what_a_model_reads_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    run(&config(folder.path()), &out, false, u64::MAX).0.unwrap();
    let translator = Translator::load(&[&out], Isa::best(), 2).unwrap();
    assert!(translator.reads_terms());
    let options = regard_core::decode::SearchOptions { attention: true, ..translator.options() };
    let translate = |line: &str, annotations: Vec<Annotation>| {
        let terms = LineTerms { annotations, ..LineTerms::default() };
        translator.translate_with_terms(&[line], &[terms], &options, 1, &()).unwrap().remove(0)
    };
    let text = "The (cat) sleeps in the house .";
    let (plain, cat) = (translate(text, Vec::new()), 5..8);
    let annotated = |range, target: &str| translate(text, vec![Annotation { range, target: target.into() }]);
    let found = annotated(cat.clone(), "matou");
    assert_eq!(found.source, plain.source);
    assert_ne!(found.best().token_scores, plain.best().token_scores);
    let words = text.split(' ').count();
    assert!(found.best().alignment.iter().all(|(source, _)| *source < words), "{:?}", found.best());
    assert!(!found.best().alignment.is_empty());
    // Inside of a token, beyond the end: left out. Too long a line: the same.
    assert_eq!(annotated(1..3, "matou"), plain);
    assert_eq!(annotated(5..99, "matou"), plain);
    assert_eq!(annotated(cat, &"matou ".repeat(2000)), plain);
}

#[test]
fn a_vocabulary_without_the_tokens_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut of_init = config(folder.path());
    of_init.data.init = Some(foreign(folder.path()));
    of_init.model = TrainConfig::new(regard_core::model::Preset::Tiny).model;
    of_init.tokenizer.vocabulary.size = None;
    let mut of_file = config(folder.path());
    of_file.tokenizer.file = Some(folder.path().join("foreign/tokenizer.json"));
    for (config, whose) in [(of_init, "the model to start from"), (of_file, "the tokenizer")] {
        let error = run(&config, &folder.path().join("out"), false, u64::MAX).0.unwrap_err().to_string();
        let expected = format!(
            "terms.share: {whose} has no tokens <term>, <is> and </term>; terms need a new vocabulary"
        );
        assert_eq!(error, expected);
    }
    let mut wrong = config(folder.path());
    wrong.terms.share = 1.5;
    let error = wrong.check().unwrap_err().to_string();
    assert_eq!(error, "terms.share: 1.5 is not a share from 0 to 1");
}
