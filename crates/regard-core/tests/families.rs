//! Models of other families against `transformers`: ids of texts, encoder output, logits and what
//! generate finds (goldens by tools/goldens/families.py).

use crate::formats::edit;
use regard_core::decode::{Engine, SearchOptions, encoder_output, score_pairs};
use regard_core::formats::Model;
use regard_core::model::Transformer;
use regard_core::text::LanguagePlacement;
use regard_core::translator::Translator;
use regard_core::{DType, Isa};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

#[derive(Deserialize)]
struct Golden {
    languages: HashMap<String, u32>,
    texts: Vec<Text>,
    sentences: Vec<Sentence>,
}

#[derive(Deserialize)]
struct Text {
    source_lang: Option<String>,
    target_lang: String,
    text: String,
    ids: Vec<u32>,
}

#[derive(Deserialize)]
struct Sentence {
    source_lang: Option<String>,
    target_lang: String,
    source: Vec<u32>,
    target: Vec<u32>,
    encoded: Vec<f32>,
    columns: Vec<usize>,
    logits: Vec<f32>,
    generated: Vec<Generated>,
}

#[derive(Deserialize)]
struct Generated {
    beams: usize,
    ids: Vec<u32>,
    ended: bool,
    text: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/families")
}

fn golden(case: &str) -> Golden {
    serde_json::from_str(&fs::read_to_string(folder().join(case).join("golden.json")).unwrap()).unwrap()
}

fn cases() -> Vec<String> {
    let names = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// A golden folder that may be changed.
fn copy(case: &str) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    for file in fs::read_dir(folder().join(case)).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.path().join(file.file_name())).unwrap();
    }
    to
}

fn close(got: &[f32], want: &[f32], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert!((got - want).abs() <= 1e-3 * (1.0 + want.abs()), "{what} {i}: {got} is not {want}");
    }
}

/// The logits of the columns, each minus that of the first: what log-probabilities say of them.
fn differences(logits: &[f32], columns: usize) -> Vec<f32> {
    logits.chunks(columns).flat_map(|row| row.iter().map(|x| x - row[0])).collect()
}

fn scores(engine: &Engine, sentence: &Sentence) -> Vec<f32> {
    // The log-probability of each column at each place, one forced sentence for each.
    let (read, places) = (&sentence.target[1..], 0..sentence.target.len());
    let mut all = Vec::new();
    for place in places {
        let pairs: Vec<(Vec<u32>, Vec<u32>)> = sentence
            .columns
            .iter()
            .map(|&word| (sentence.source.clone(), [&read[..place], &[word as u32]].concat()))
            .collect();
        let found = score_pairs(&[engine], &pairs, 1).unwrap();
        all.extend(found.iter().map(|scores| scores[place]));
    }
    all
}

#[test]
fn texts_have_the_ids_of_transformers() {
    for case in cases() {
        let (golden, model) = (golden(&case), Model::load(&folder().join(&case)).unwrap());
        let languages = model.tokenizers.languages().unwrap();
        let ids: HashMap<String, u32> = languages
            .list
            .iter()
            .map(|language| {
                (
                    language.code.clone(),
                    *model
                        .for_languages(None, Some(&language.code))
                        .unwrap()
                        .tokenizers
                        .target()
                        .prefix_ids()
                        .first()
                        .unwrap_or(&language.id),
                )
            })
            .collect();
        assert_eq!(ids, golden.languages, "{case}");
        for text in golden.texts {
            let model = model.for_languages(text.source_lang.as_deref(), Some(&text.target_lang)).unwrap();
            let source = model.tokenizers.source();
            let ids = source.encode(&source.prepare(&text.text)).unwrap();
            assert_eq!(ids, text.ids, "{case} {:?}", text.text);
        }
    }
}

/// Encoder output, logits and searches, before and after the model has been through our own files.
#[test]
fn models_compute_what_transformers_does() {
    for case in cases() {
        let (golden, model) = (golden(&case), Model::load(&folder().join(&case)).unwrap());
        let saved = tempfile::tempdir().unwrap();
        model.save(saved.path(), DType::F32).unwrap();
        let again = Model::load(saved.path()).unwrap();
        assert_eq!(again.weights, model.weights, "{case}");
        assert_eq!(again.languages, model.languages, "{case}");
        assert_eq!(again.tokenizers.languages(), model.tokenizers.languages(), "{case}");
        for model in [model, again] {
            compare(&case, &golden, &model);
        }
    }
}

fn compare(case: &str, golden: &Golden, model: &Model) {
    let engine = Engine::new(&model.transformer, &model.weights, DType::F32, Isa::best());
    for (i, sentence) in golden.sentences.iter().enumerate() {
        let what = format!("{case}, sentence {i}");
        close(
            &encoder_output(&engine, &sentence.source).unwrap(),
            &sentence.encoded,
            &format!("{what}, encoder"),
        );
        let columns = sentence.columns.len();
        let (got, want) = (scores(&engine, sentence), differences(&sentence.logits, columns));
        close(&differences(&got, columns), &want, &format!("{what}, logits"));
        let chosen =
            model.for_languages(sentence.source_lang.as_deref(), Some(&sentence.target_lang)).unwrap();
        let translator = Translator::new(vec![chosen], DType::F32, Isa::best(), 1).unwrap();
        for found in &sentence.generated {
            let options = SearchOptions {
                beam: found.beams,
                max_length: Some(13),
                extra_length: 100,
                length_penalty: 1.0,
                ..translator.options()
            };
            let Model { transformer, weights, .. } = model;
            let got = search(transformer, weights, &sentence.source, &options);
            assert_eq!((&got.0, got.1), (&found.ids, found.ended), "{what}, {} beams", found.beams);
            assert_eq!(translator.target().decode(&got.0), found.text, "{what}");
        }
    }
}

fn search(model: &Transformer, weights: &[f32], source: &[u32], options: &SearchOptions) -> (Vec<u32>, bool) {
    let found =
        regard_core::decode::search(model, weights, &[source.to_vec()], options, Isa::best(), 1).unwrap();
    (found[0][0].ids.clone(), found[0][0].ended)
}

#[test]
fn a_translator_goes_from_any_language_to_any_other() {
    let folder = folder().join("m2m100");
    for precision in [DType::F32, DType::Int8] {
        let translator = Translator::load_as(&[&folder], Some(precision), Isa::best(), 1).unwrap();
        let to = |code: &str| {
            let translator = translator.for_languages(Some("fra_Latn"), Some(code)).unwrap();
            let options = SearchOptions { max_length: Some(8), attention: true, ..translator.options() };
            translator.translate(&["kano tinser, bader"], &options).unwrap().remove(0)
        };
        let (german, again, chinese) = (to("deu_Latn"), to("__de__"), to("zh-CN"));
        assert_eq!(german, again);
        assert_ne!(german.best().text, chinese.best().text);
        for line in [german, chinese] {
            let Line { best, source } = Line::of(&line);
            // Neither the language of the source nor the one that was forced is shown.
            let first = best.tokens.first().map(String::as_str);
            assert!(source.iter().all(|piece| !piece.starts_with("__")), "{line:?}");
            assert!(!matches!(first, Some("__de__" | "__zh__")), "{line:?}");
            // Each word is aligned with a word of the text.
            assert!(best.alignment.iter().all(|(s, _)| *s < 3), "{:?}", best.alignment);
            let scored = best.token_scores.len() - best.tokens.len();
            assert!(scored <= 1, "{} tokens, {} scores", best.tokens.len(), best.token_scores.len());
        }
    }
}

struct Line<'a> {
    best: regard_core::translator::Candidate,
    source: &'a [String],
}

impl<'a> Line<'a> {
    fn of(line: &'a regard_core::translator::Line) -> Self {
        Line { best: line.best(), source: &line.source }
    }
}

#[test]
fn a_model_of_many_languages_wants_to_know_which() {
    let folder = copy("m2m100");
    edit(folder.path(), "tokenizer_config.json", |config| {
        config["src_lang"] = Value::Null;
        config["tgt_lang"] = Value::Null;
    });
    let translator = Translator::load(&[folder.path()], Isa::best(), 1).unwrap();
    let refusal = |translator: &Translator| {
        translator.translate(&["kano"], &translator.options()).unwrap_err().to_string()
    };
    assert_eq!(
        refusal(&translator),
        "source_lang: is not known; the model has 100 languages, and must be told which"
    );
    let half = translator.for_languages(Some("en"), None).unwrap();
    assert_eq!(
        refusal(&half),
        "target_lang: is not known; the model has 100 languages, and must be told which"
    );
    let unknown = |code: &str| translator.for_languages(Some("en"), Some(code)).unwrap_err().to_string();
    assert_eq!(
        unknown("frr"),
        "target_lang: \"frr\" is none of the 100 languages of the model; similar ones are fr, fa, ff, fi, fy"
    );
    assert!(half.for_languages(None, Some("de")).unwrap().translate(&["kano"], &half.options()).is_ok());
}

#[test]
fn a_line_that_is_too_long_keeps_its_language_in_every_part() {
    let folder = copy("nllb-legacy");
    edit(folder.path(), "config.json", |config| config["max_position_embeddings"] = json!(12));
    let translator = Translator::load(&[folder.path()], Isa::best(), 1).unwrap();
    let source = translator.source();
    assert_eq!(translator.model().tokenizers.languages().unwrap().placement, LanguagePlacement::After);
    assert_eq!((source.prefix_ids().len(), source.suffix_ids().len()), (0, 1));
    let options = SearchOptions { max_length: Some(4), ..translator.options() };
    let line = &translator.translate(&["kano tinser bader ".repeat(9)], &options).unwrap()[0];
    assert!(line.cut > 1 && line.parts == line.cut, "{} of {}", line.cut, line.parts);
    assert!(line.source.iter().all(|piece| !piece.contains('_')), "{:?}", line.source);
}

#[test]
fn a_spm_file_alone_has_the_ids_of_fairseq() {
    let folder = copy("m2m100");
    fs::remove_file(folder.path().join("vocab.json")).unwrap();
    edit(folder.path(), "tokenizer_config.json", |config| {
        config["additional_special_tokens"] = json!(["ace_Arab", {"content": "deu_Latn"}, "eng_Latn"]);
        (config["src_lang"], config["tgt_lang"]) = (json!("eng_Latn"), json!("deu_Latn"));
    });
    let model = Model::load(folder.path()).unwrap();
    let source = model.tokenizers.source();
    let ids = |tokens: &[&str]| tokens.iter().map(|token| source.id(token).unwrap()).collect::<Vec<_>>();
    // 150 pieces, the first of which are <unk>, <s> and </s>.
    assert_eq!(ids(&["<s>", "<pad>", "</s>", "<unk>"]), [0, 1, 2, 3]);
    assert_eq!(ids(&["ace_Arab", "deu_Latn", "eng_Latn", "<mask>"]), [151, 152, 153, 154]);
    assert_eq!((source.prefix_ids(), model.tokenizers.target().prefix_ids()), (&[153][..], &[152][..]));
    assert_eq!(source.decode(&[152, 0, 154, 2]), "");
}

/// Without a tokenizer.json, the SentencePiece model has the same ids. Only a `▁` in the text is
/// another matter: there it is a space, and `transformers` keeps it as a piece.
#[test]
fn the_sentencepiece_model_of_madlad_has_the_ids_of_its_json() {
    let folder = copy("madlad");
    fs::remove_file(folder.path().join("tokenizer.json")).unwrap();
    let model = Model::load(folder.path()).unwrap();
    for text in golden("madlad").texts.iter().filter(|text| !text.text.contains('▁')) {
        let model = model.for_languages(None, Some(&text.target_lang)).unwrap();
        let source = model.tokenizers.source();
        assert_eq!(source.encode(&source.prepare(&text.text)).unwrap(), text.ids, "{:?}", text.text);
    }
}

#[test]
fn what_is_wrong_with_a_folder_is_named() {
    type Break = fn(&Path);
    let breaks: [(&str, Break, &str); 6] = [
        (
            "m2m100",
            |f| fs::remove_file(f.join("sentencepiece.bpe.model")).unwrap(),
            "sentencepiece.bpe.model: is missing; with vocab.json it is the tokenizer of M2M100",
        ),
        (
            "nllb",
            |f| fs::remove_file(f.join("tokenizer.json")).unwrap(),
            "there is neither tokenizer.json nor sentencepiece.bpe.model; the tokenizer is one of them",
        ),
        (
            "m2m100",
            |f| edit(f, "tokenizer_config.json", |c| c["language_codes"] = json!("mars")),
            "tokenizer_config.json: language_codes: \"mars\" is not known; m2m100 and wmt21 are, or list tokens under additional_special_tokens",
        ),
        (
            "m2m100",
            |f| edit(f, "tokenizer_config.json", |c| c["src_lang"] = json!("xx")),
            "source_lang: \"xx\" is none of the 100 languages of the model; similar ones are xh",
        ),
        (
            "m2m100",
            |f| edit(f, "config.json", |c| c["decoder_start_token_id"] = json!(99_999)),
            "config.json: start_token: 99999 is not a word of the vocabulary of 258",
        ),
        (
            "m2m100",
            |f| edit(f, "config.json", |c| c["activation_function"] = json!("tanh")),
            "config.json: activation_function: \"tanh\" is not supported; supported are swish, silu, relu and gelu",
        ),
    ];
    for (case, damage, want) in breaks {
        let folder = copy(case);
        damage(folder.path());
        let error = Model::load(folder.path()).unwrap_err().to_string();
        let got = error.replace(&format!("{}/", folder.path().display()), "");
        assert!(got.ends_with(want), "{got}");
    }
}
