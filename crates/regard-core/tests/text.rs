//! Tokenizers: every string survives, files are those of Python's `tokenizers`, foreign and broken
//! files.

use crate::sentences::{sentences, trained};
use std::path::Path;

use regard_core::random::Rng;
use regard_core::text::{
    EOS, PAD, Segmentation, TextSample, Tokenizer, TokenizerPair, TokenizerSettings, UNK,
    hugging_face_config, normalise, vocabulary_size_for,
};
use serde_json::{Value, json};

/// The tokenizers that `tools/goldens/tokenizer.py` hands to Python; `REGARD_WRITE_GOLDENS=1`
/// writes them anew.
fn golden(segmentation: Segmentation, name: &str) -> Tokenizer {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(name);
    if std::env::var_os("REGARD_WRITE_GOLDENS").is_some() {
        trained(segmentation, false).source().save(&path).unwrap();
    }
    Tokenizer::load(&path).unwrap()
}

#[test]
fn python_agrees() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/tokenizer_python.json");
    let bpe = golden(Segmentation::Bpe, "tokenizer_bpe.json");
    let unigram = golden(Segmentation::Unigram, "tokenizer_unigram.json");
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(golden["config"], hugging_face_config(512));
    for (tokenizer, name) in [(bpe, "bpe"), (unigram, "unigram")] {
        let cases = golden[name].as_array().unwrap();
        assert!(cases.len() > 400);
        for case in cases {
            let text = case["text"].as_str().unwrap();
            let ids = tokenizer.encode(text).unwrap();
            assert_eq!(json!(ids), case["ids"], "{name} {text:?}");
            assert_eq!(json!(tokenizer.decode(&ids)), case["decoded"], "{name} {text:?}");
        }
        // Ids in no sensible order, as a bad model might give them.
        for case in golden[format!("{name}_decoding")].as_array().unwrap() {
            let ids: Vec<u32> = serde_json::from_value(case["ids"].clone()).unwrap();
            assert_eq!(json!(tokenizer.decode(&ids)), case["decoded"], "{name} {ids:?}");
        }
    }
}

/// Training has not changed: the committed file is what it gives.
#[test]
fn training_is_frozen() {
    let golden = golden(Segmentation::Bpe, "tokenizer_bpe.json");
    assert_eq!(trained(Segmentation::Bpe, false).source().to_json(), golden.to_json());
}

/// Strings that tokenizers have stumbled over.
const ODD: &[&str] = &[
    "",
    " ",
    "\n",
    "\u{0}",
    "\u{feff}",
    "\u{feff}A dog.",
    "a\rb",
    "tab\tand\u{a0}nbsp",
    "▁",
    "▁▁a ▁ b▁",
    "</s>",
    "a</s>b",
    "<s> <unk> <pad>",
    "<0x41>",
    "<0x41><0xE2><0x96><0x81>",
    "< 0x41 >",
    "e\u{301}",
    "\u{301}",
    "\u{301}\u{301}a",
    "a\u{301}\u{323}",
    "👩‍👩‍👧‍👦 🇩🇪 ❤️ 1️⃣",
    "我爱北京天安门。",
    "日本語のテキスト、カタカナー",
    "한국어 문장",
    "각",
    "שלום עולם!",
    "مرحبا بالعالم",
    "می‌خواهم",
    "हिन्दी क्‍ष",
    "ไทยภาษา",
    "zero\u{200b}width\u{2060}joiner\u{ad}",
    "\u{202e}rtl\u{202c}",
    "dog.",
    "dog",
    "don't",
    "3,141.59€",
    "½ ² ﬁ Ａ ™",
    "C++ & <b>x</b>",
    "\\n \\u0041 %s {0}",
    "\u{fffd}",
    "\u{e000}\u{f8ff}",
    "\u{10ffff}",
    "\u{ffff}",
    "\u{1f}\u{7f}\u{80}\u{9f}",
    "a\u{2028}b\u{2029}c",
    "\u{212b}\u{2126}",
    "ǅ İ ı ß ẞ",
    ">>de<< Hallo",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "\"'`´‘’“”«»„",
    "—–-‐‑",
    "x_y-z",
    "\u{34f}\u{fe0f}\u{200d}",
    "漢a字1ー",
    "ｶﾞ",
    "\u{1100}\u{1161}\u{11a8}",
    "\u{9c7}\u{9be}",
];

/// A generator of strings, by seed.
fn random_string(seed: u64) -> String {
    let mut rng = Rng::stream(seed, 0);
    let mut draw = |n: usize| rng.below(n);
    let mut text = String::new();
    for _ in 0..draw(30) {
        match draw(8) {
            0 => text.push_str(ODD[draw(ODD.len())]),
            1 => text.push(' '),
            2 => text.extend(char::from_u32(draw(0x11_0000) as u32)),
            3 => text.extend(char::from_u32(0x300 + draw(0x70) as u32)),
            4 => text.extend(char::from_u32(draw(0x3000) as u32)),
            _ => text.push((b'!' + draw(94) as u8) as char),
        }
    }
    text
}

#[test]
fn every_string_survives() {
    for segmentation in [Segmentation::Bpe, Segmentation::Unigram] {
        let pair = trained(segmentation, false);
        let tokenizer = pair.source();
        let random = (0..20_000).map(random_string);
        for text in ODD.iter().map(|s| s.to_string()).chain(random) {
            let ids = tokenizer.encode(&text).unwrap();
            assert_eq!(tokenizer.decode(&ids), normalise(&text), "{segmentation:?} {text:?}");
            assert_eq!(ids.last(), Some(&0), "{text:?}");
            let inner = &ids[..ids.len() - 1];
            assert!(inner.iter().all(|&id| id > 1 && id < tokenizer.pad()), "{text:?}: {ids:?}");
        }
    }
}

#[test]
fn the_ids_are_those_of_marian() {
    for segmentation in [Segmentation::Bpe, Segmentation::Unigram] {
        let pair = trained(segmentation, false);
        let tokenizer = pair.source();
        let last = tokenizer.size() as u32 - 1;
        assert_eq!(
            [EOS, UNK, "<0x00>", "<0xFF>", PAD].map(|t| tokenizer.id(t)),
            [0, 1, 2, 257, last].map(Some)
        );
        assert_eq!((tokenizer.eos(), tokenizer.unk(), tokenizer.pad()), (0, 1, last));
        assert!(tokenizer.size() <= 400);
        assert_eq!(tokenizer.encode("").unwrap(), [0]);
        assert_eq!(tokenizer.decode(&[last, 0, 1, 5_000_000]), "");
        assert!(pair.is_joint());
    }
}

#[test]
fn letters_digits_and_punctuation_do_not_mix() {
    let pair = trained(Segmentation::Bpe, false);
    let pieces = |text: &str| pair.source().pieces(text).unwrap();
    assert_eq!(pieces("The dog."), ["▁The", "▁dog", "."]);
    assert_eq!(pieces("dog"), ["▁dog"]);
    for id in 258..pair.source().pad() {
        let piece = pair.source().piece(id).unwrap();
        let kind = |c: char| (c.is_alphabetic(), c.is_numeric());
        let kinds: std::collections::BTreeSet<_> = piece.chars().filter(|&c| c != '▁').map(kind).collect();
        assert!(kinds.len() <= 1, "{piece}");
        assert!(!piece.chars().skip(1).any(|c| c == '▁'), "{piece}");
    }
    // A character that the vocabulary lacks is spelt in bytes.
    assert_eq!(pieces("☃"), ["▁", "<0xE2>", "<0x98>", "<0x83>"]);
    assert_eq!(pieces("</s>"), ["▁", "<0x3C>", "<0x2F>", "s", "<0x3E>"]);
}

#[test]
fn training_is_repeatable_and_files_survive() {
    let folder = tempfile::tempdir().unwrap();
    for (segmentation, separate) in [
        (Segmentation::Bpe, false),
        (Segmentation::Unigram, false),
        (Segmentation::Bpe, true),
        (Segmentation::Unigram, true),
    ] {
        let pair = trained(segmentation, separate);
        let again = trained(segmentation, separate);
        assert_eq!(pair.source().to_json(), again.source().to_json());
        assert_eq!(pair.target().to_json(), again.target().to_json());
        assert_eq!(pair.is_joint(), !separate);
        assert_eq!(pair.source().size(), pair.target().size());

        pair.save(folder.path()).unwrap();
        let loaded = TokenizerPair::load(folder.path()).unwrap();
        assert_eq!(loaded.is_joint(), !separate);
        assert_eq!(
            (loaded.source().hash(), loaded.target().hash()),
            (pair.source().hash(), pair.target().hash())
        );
        let files = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(files, 1 + usize::from(separate), "no file is left over");
        for (from, to) in sentences() {
            assert_eq!(loaded.source().encode(&from).unwrap(), pair.source().encode(&from).unwrap());
            assert_eq!(loaded.target().decode(&loaded.target().encode(&to).unwrap()), to);
        }
        std::fs::remove_file(folder.path().join(TokenizerPair::TARGET_FILE)).ok();
    }
}

#[test]
fn batches_and_threads_change_nothing() {
    let pair = trained(Segmentation::Bpe, false);
    let texts: Vec<String> =
        sentences().into_iter().map(|p| p.1).chain((0..500).map(random_string)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let one: Vec<_> = texts.iter().map(|t| pair.source().encode(t).unwrap()).collect();
    for threads in [0, 1, 2, 7, 10_000] {
        assert_eq!(pair.source().encode_batch(&texts, threads).unwrap(), one);
    }
    assert_eq!(pair.source().encode_batch(&[], 4).unwrap(), Vec::<Vec<u32>>::new());
}

#[test]
fn dropout_is_seeded_and_spells_the_same_text() {
    let pair = trained(Segmentation::Bpe, false);
    let tokenizer = pair.source();
    let mut tokens = [0, 0, 0];
    for (i, text) in sentences().into_iter().map(|p| p.0).chain((0..2_000).map(random_string)).enumerate() {
        let plain = tokenizer.encode(&text).unwrap();
        assert_eq!(tokenizer.resample(&plain, 0.0, 1).unwrap(), plain, "{text:?}");
        let dropped = tokenizer.resample(&plain, 0.3, i as u64).unwrap();
        assert_eq!(dropped, tokenizer.resample(&plain, 0.3, i as u64).unwrap());
        assert_eq!(tokenizer.decode(&dropped), normalise(&text));
        let spelt = tokenizer.resample(&plain, 1.0, 1).unwrap();
        assert_eq!(tokenizer.decode(&spelt), normalise(&text));
        for (sum, ids) in tokens.iter_mut().zip([plain, dropped, spelt]) {
            *sum += ids.len();
        }
    }
    assert!(tokens[0] < tokens[1] && tokens[1] < tokens[2], "{tokens:?}");
    let ids = tokenizer.encode("The baker follows the pilot in the garden.").unwrap();
    let seeds: std::collections::HashSet<_> =
        (0..50).map(|seed| tokenizer.resample(&ids, 0.2, seed).unwrap()).collect();
    assert!(seeds.len() > 25, "{}", seeds.len());

    let error = tokenizer.resample(&ids, 1.5, 0).unwrap_err().to_string();
    assert_eq!(error, "bpe_dropout: 1.5 is not between 0 and 1");
    let unigram = trained(Segmentation::Unigram, false);
    let error = unigram.source().resample(&ids, 0.1, 0).unwrap_err().to_string();
    assert_eq!(error, "bpe_dropout: only a BPE vocabulary with byte fallback can do this; use 0");
}

#[test]
fn the_size_follows_the_corpus() {
    assert_eq!([0, 1_000, 100_000].map(vocabulary_size_for), [300, 1_080, 3_408]);
    // Multi30k, both sides: 29,000 pairs, 3.9 MB.
    assert!((8_000..=10_000).contains(&vocabulary_size_for(3_900_000)));
    // WMT 2014 English-German, both sides: 1.4 GB.
    assert!((36_000..=37_000).contains(&vocabulary_size_for(1_400_000_000)));
    assert_eq!(vocabulary_size_for(u64::MAX), 37_000);
}

#[test]
fn senseless_training_is_refused() {
    let train = |text: &str, size: Option<usize>, segmentation| {
        let mut sample = TextSample::default();
        sample.extend(text.lines());
        let settings = TokenizerSettings { segmentation, size, separate: false };
        Tokenizer::train(&[&sample], &settings)
    };
    for segmentation in [Segmentation::Bpe, Segmentation::Unigram] {
        let message = |text, size| train(text, size, segmentation).unwrap_err().to_string();
        assert_eq!(message("", None), "tokenizer: there is no text to train on: every line is empty");
        assert_eq!(message(" \n\t", None), "tokenizer: there is no text to train on: every line is empty");
        let small = "tokenizer.size: 10 is not between 300 (special tokens, bytes, letters) and 1000000";
        assert_eq!(message("a b c", Some(10)), small);
        // Very little text is still a text.
        let tiny = train("a", None, segmentation).unwrap();
        assert_eq!(tiny.decode(&tiny.encode("Größe").unwrap()), "Größe");
        let long = train(&"ab".repeat(30_000), None, segmentation).unwrap();
        assert_eq!(long.decode(&long.encode("abba").unwrap()), "abba");
        let chinese: String = (0..5000u32).filter_map(|i| char::from_u32(0x4e00 + i % 900)).collect();
        assert!(train(&chinese, Some(500), segmentation).unwrap().size() <= 500);
    }
}

#[test]
fn a_large_text_is_sampled_evenly() {
    let mut sample = TextSample::new(10_000);
    for i in 0..100_000 {
        sample.add(&format!("{i:05}"));
    }
    assert_eq!(sample.bytes(), 500_000);
    let kept: Vec<usize> = sample.lines().map(|line| line.parse().unwrap()).collect();
    assert!((900..=2000).contains(&kept.len()), "{}", kept.len());
    let first_half = kept.iter().filter(|&&i| i < 50_000).count();
    assert!(
        (0.45..0.55).contains(&(first_half as f64 / kept.len() as f64)),
        "{first_half} of {}",
        kept.len()
    );
}

fn read(json: &Value) -> Result<Tokenizer, String> {
    Tokenizer::from_json(json.to_string(), Path::new("x.json")).map_err(|e| e.to_string())
}

/// A foreign tokenizer: words by white space, no byte fallback, `<pad>` first, a language token,
/// truncation on.
fn foreign() -> Value {
    let added = |id, content| json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
    json!({"version": "1.0", "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
        "padding": null, "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null,
        "decoder": null, "added_tokens": [added(0, "<pad>"), added(1, "</s>"), added(5, ">>de<<")],
        "model": {"type": "WordLevel", "unk_token": "<unk>",
                  "vocab": {"<pad>": 0, "</s>": 1, "<unk>": 2, "a": 3, "b": 4, ">>de<<": 5}}})
}

#[test]
fn a_foreign_file_is_read() {
    let tokenizer = read(&foreign()).unwrap();
    assert_eq!((tokenizer.size(), tokenizer.eos(), tokenizer.unk(), tokenizer.pad()), (6, 1, 2, 0));
    assert_eq!(tokenizer.encode(">>de<< a b c a").unwrap(), [5, 3, 4, 2, 3, 1]);
    assert_eq!(tokenizer.decode(&[5, 3, 4, 2, 3, 1, 0]), "a b a");
    let end = tokenizer.encode("</s>").unwrap();
    assert!(!end[..end.len() - 1].contains(&1), "text is not a special token: {end:?}");
    assert_eq!(tokenizer.to_json(), Some(foreign().to_string().as_str()));
}

#[test]
fn broken_files_are_refused() {
    let ours: Value =
        serde_json::from_str(trained(Segmentation::Bpe, false).source().to_json().unwrap()).unwrap();
    let change = |pointer: &str, value: Value| {
        let mut file = ours.clone();
        *file.pointer_mut(pointer).unwrap() = value;
        read(&file).unwrap_err()
    };
    let mut lacking = foreign();
    lacking["added_tokens"] = json!([]);
    lacking["model"]["vocab"] = json!({"<unk>": 0, "a": 1});
    let message = "x.json: the vocabulary lacks </s> and <pad>; needed are </s>, <unk> and <pad>";
    assert_eq!(read(&lacking).unwrap_err(), message);
    lacking["model"]["vocab"] = json!({"<unk>": 0, "</s>": 1, "<pad>": 4_000_000_000u32});
    let message = "x.json: the ids of the 3 pieces should be 0 to 2 without a gap, but 2 is missing";
    assert_eq!(read(&lacking).unwrap_err(), message);
    let message = change("/model/merges/0", json!(["a", "b".repeat(500)]));
    assert!(message.starts_with("x.json: merge 1 ([\"a\",\"bbbb"), "{message}");
    assert!(change("/model/merges/0", json!("nospace")).contains("merge 1"));
    assert!(change("/model/merges/0", json!(7)).contains("merge 1"));
    assert!(change("/model/vocab", json!(7)).starts_with("x.json: not a tokenizer.json that can be used"));
    assert!(
        change("/model/type", json!("Nonesuch")).starts_with("x.json: not a tokenizer.json that can be used")
    );
    assert!(change("/normalizer", json!({"type": "Nonesuch"})).starts_with("x.json: not a tokenizer.json"));
    for text in ["", "{", "[]", "null", "{}", "7"] {
        let error = Tokenizer::from_json(text.into(), Path::new("x.json")).unwrap_err().to_string();
        assert!(error.starts_with("x.json: not a tokenizer.json"), "{text}: {error}");
    }
    let error = Tokenizer::load(Path::new("no/such.json")).unwrap_err().to_string();
    assert!(error.starts_with("no/such.json: "), "{error}");
}

/// Two tokens with one id, and an id without a token, so that the numbers of both are the same.
#[test]
fn an_id_that_two_tokens_have_is_refused() {
    let mut file = foreign();
    file["model"]["vocab"] = json!({"<pad>": 0, "</s>": 1, "<unk>": 2, "a": 3, "b": 3, ">>de<<": 5});
    let message = read(&file).unwrap_err();
    let either = |x, y| format!("x.json: the tokens {x:?} and {y:?} have the same id, 3; each needs its own");
    assert!([either("a", "b"), either("b", "a")].contains(&message), "{message}");
    let mut file = foreign();
    file["added_tokens"][2]["id"] = json!(4);
    assert_eq!(
        read(&file).unwrap_err(),
        "x.json: the tokens \"b\" and \">>de<<\" have the same id, 4; each needs its own"
    );
}

/// The dropout of a file is for training; a text that is translated has one segmentation.
#[test]
fn a_files_dropout_is_off() {
    let ours = trained(Segmentation::Bpe, false);
    let mut file: Value = serde_json::from_str(ours.source().to_json().unwrap()).unwrap();
    for dropout in [json!(0.5), json!(1.0)] {
        file["model"]["dropout"] = dropout;
        let asked = read(&file).unwrap();
        for (text, _) in sentences() {
            assert_eq!(asked.encode(&text).unwrap(), ours.source().encode(&text).unwrap());
        }
    }
    // The same behind stages that are not ours.
    file["normalizer"] = Value::Null;
    let asked = read(&file).unwrap();
    let text = "The dog sees the cat.";
    let first = asked.encode(text).unwrap();
    assert!((0..20).all(|_| asked.encode(text).unwrap() == first));
}

#[test]
fn a_normalizer_that_multiplies_text_is_refused() {
    let mut file = foreign();
    let double = json!({"type": "Replace", "pattern": {"Regex": "a"}, "content": "aaaaaaaaaa"});
    file["normalizer"] = json!({"type": "Sequence", "normalizers": vec![double; 9]});
    assert_eq!(
        read(&file).unwrap_err(),
        "x.json: normalizer: its replacements could make a text 1000000000 times as long; at most 64 times is allowed"
    );
}

#[cfg(unix)]
#[test]
fn a_device_is_no_tokenizer() {
    let error = Tokenizer::load(Path::new("/dev/zero")).unwrap_err().to_string();
    assert_eq!(error, "/dev/zero: is a pipe, a socket or a device; a regular file is expected");
}
