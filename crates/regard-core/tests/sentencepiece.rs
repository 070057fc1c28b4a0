//! SentencePiece models against the `sentencepiece` package, and MarianMT tokenizers against
//! `transformers` (goldens by tools/goldens/spm.py).

use flate2::Crc;
use flate2::read::GzDecoder;
use regard_core::random::Rng;
use regard_core::text::{SentencePiece, TokenizerPair};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

#[derive(Deserialize)]
struct Golden {
    texts: Vec<String>,
    very_long: Sum,
    models: BTreeMap<String, Case>,
}

#[derive(Deserialize)]
struct Case {
    /// The compiled rules that the model was stored without.
    rules: Option<String>,
    /// For each text its pieces, with spaces between them.
    pieces: Vec<String>,
    every_character: Option<u32>,
}

#[derive(Deserialize)]
struct Sum {
    count: usize,
    sum: u32,
}

fn goldens() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/sentencepiece")
}

fn golden<T: for<'de> Deserialize<'de>>(file: &str) -> T {
    serde_json::from_str(&fs::read_to_string(goldens().join(file)).unwrap()).unwrap()
}

/// Appends a field that holds bytes.
fn push_field(to: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    to.push(number << 3 | 2);
    let mut length = bytes.len();
    while length > 127 {
        to.push(length as u8 | 128);
        length >>= 7;
    }
    to.push(length as u8);
    to.extend(bytes);
}

fn model(name: &str, rules: Option<&str>) -> SentencePiece {
    let path = goldens().join(format!("{name}.spm"));
    let mut file = fs::read(&path).unwrap();
    if let Some(rules) = rules {
        let packed = fs::read(goldens().join(format!("{rules}.charsmap.gz"))).unwrap();
        let mut charsmap = Vec::new();
        GzDecoder::new(&packed[..]).read_to_end(&mut charsmap).unwrap();
        let mut spec = Vec::new();
        push_field(&mut spec, 2, &charsmap);
        push_field(&mut file, 3, &spec);
    }
    SentencePiece::read(&file, &path).unwrap()
}

fn crc(parts: impl Iterator<Item = String>) -> u32 {
    let mut crc = Crc::new();
    parts.for_each(|part| crc.update(part.as_bytes()));
    crc.sum()
}

#[test]
fn text_is_cut_as_by_the_package() {
    let golden: Golden = golden("golden.json");
    assert!(golden.models.len() == 16 && golden.texts.len() > 80);
    for (name, case) in &golden.models {
        let model = model(name, case.rules.as_deref());
        assert_eq!(case.pieces.len(), golden.texts.len());
        for (text, want) in golden.texts.iter().zip(&case.pieces) {
            assert_eq!(model.encode(text).join(" "), *want, "{name} {text:?}");
        }
    }
}

#[test]
fn every_character_is_normalised_as_by_the_package() {
    let golden: Golden = golden("golden.json");
    let characters: Vec<char> = ('\0'..=char::MAX).collect();
    let mut checked = 0;
    for (name, case) in &golden.models {
        let Some(want) = case.every_character else { continue };
        let model = model(name, case.rules.as_deref());
        let lines =
            characters.chunks(64).map(|some| some.iter().map(|c| format!("ba{c}")).collect::<String>());
        assert_eq!(crc(lines.map(|line| model.encode(&line).concat())), want, "{name}");
        checked += 1;
    }
    assert_eq!(checked, 3);
}

#[test]
fn the_arithmetic_is_that_of_the_package() {
    let mut syllables = Vec::new();
    for a in "bcdfghklmnprstvw".chars() {
        syllables.extend(["a", "e", "i", "o", "u", "an", "er", "in", "ou"].map(|b| format!("{a}{b}")));
    }
    let mut state = 1u64;
    let mut text = String::new();
    for _ in 0..60_000 {
        state = (state * 1_103_515_245 + 12_345) % (1 << 31);
        text += &syllables[(state >> 16) as usize % syllables.len()];
    }
    let pieces = model("ties", None).encode(&text);
    let want = golden::<Golden>("golden.json").very_long;
    assert_eq!(pieces.len(), want.count);
    assert_eq!(crc([pieces.join(" ")].into_iter()), want.sum);
}

#[test]
fn decoded_text_is_rewritten_where_a_model_says_so() {
    #[derive(Deserialize)]
    struct Decoded {
        pieces: Vec<String>,
        text: String,
    }
    let model = model("denormalised", None);
    for case in golden::<Vec<Decoded>>("denormalised.json") {
        let pieces = case.pieces.iter().map(String::as_str);
        assert_eq!(model.decode(pieces).trim_start(), case.text);
    }
}

#[test]
fn broken_models_are_refused() {
    let path = Path::new("x.spm");
    let whole = fs::read(goldens().join("marian-joint/source.spm")).unwrap();
    let refusal = |file: &[u8]| SentencePiece::read(file, path).map(|_| ()).unwrap_err().to_string();
    assert_eq!(refusal(b""), "x.spm: not a SentencePiece model: it has no pieces");
    assert_eq!(refusal(b"{\"version\": 1}"), "x.spm: holds field 15 of the kind 3, which is not known");
    // Between two fields the rest may be missing without a trace; anywhere else it shows.
    let mut refused = 0;
    for length in 0..whole.len() {
        if let Err(error) = SentencePiece::read(&whole[..length], path) {
            assert!(error.to_string().starts_with("x.spm: "), "{error}");
            refused += 1;
        }
    }
    assert!(refused > whole.len() * 9 / 10, "{refused}");

    let piece = |text: &str, kind: u8| {
        let mut piece = Vec::new();
        push_field(&mut piece, 1, text.as_bytes());
        piece.extend([3 << 3, kind]);
        piece
    };
    let file = |pieces: &[(&str, u8)], more: &[u8]| {
        let mut file = Vec::new();
        pieces.iter().for_each(|(text, kind)| push_field(&mut file, 1, &piece(text, *kind)));
        file.extend(more);
        file
    };
    let model_type = |n: u8| [2 << 3 | 2, 2, 3 << 3, n];
    for (file, want) in [
        (file(&[("a", 1)], &[]), "none of the pieces is the unknown one"),
        (
            file(&[("<unk>", 2), ("?", 2), ("a", 1)], &[]),
            "pieces 0 and 1 both have the type of the unknown piece",
        ),
        (file(&[("<unk>", 2), ("a", 1), ("a", 4)], &[]), "the piece \"a\" is there twice"),
        (file(&[("<unk>", 2), ("", 1)], &[]), "piece 1: its text is empty or has a zero byte"),
        (file(&[("<unk>", 2), ("a", 7)], &[]), "piece 1: the type 7 is not one of 1 to 6"),
        (
            file(&[("<unk>", 2), (&"a".repeat(8000), 1)], &[]),
            "piece 1: its text has 8000 bytes; fewer than 8000 are allowed",
        ),
        (
            file(&[("<unk>", 2), ("a", 1), ("<0x00>", 6)], &[]),
            "piece 2 is a byte, but byte_fallback is false",
        ),
        (
            file(&[("<unk>", 2), ("a", 1)], &[2 << 3 | 2, 3, 0x98, 2, 1]),
            "byte_fallback is true, but there is no piece <0x00>",
        ),
        (
            file(&[("<unk>", 2), ("a", 1)], &model_type(3)),
            "trainer_spec: a model of whole words is not supported; unigram and BPE are",
        ),
        (
            file(&[("<unk>", 2), ("a", 1)], &model_type(9)),
            "trainer_spec: model_type 9 is neither unigram (1) nor BPE (2)",
        ),
        (
            file(&[("<unk>", 2), ("a", 1)], &[3 << 3 | 2, 3, 2 << 3 | 2, 1, 0]),
            "precompiled_charsmap is shorter than 4 bytes",
        ),
        (file(&[("<unk>", 2), ("a", 1)], &[3 << 3, 1]), "normalizer_spec: it should be a text or a message"),
    ] {
        assert_eq!(refusal(&file), format!("x.spm: {want}"));
    }
}

/// Bytes changed, cut out, doubled and exchanged between models: each is refused or can be used,
/// and no text is lost.
#[test]
fn damaged_models_do_no_harm() {
    let seeds: Vec<Vec<u8>> =
        ["marian-separate/source", "marian-separate/target", "bpe-bytes", "unigram-symbols", "bpe-unused"]
            .map(|name| fs::read(goldens().join(format!("{name}.spm"))).unwrap())
            .to_vec();
    let mut rng = Rng::new(7);
    let mut below = |limit: usize| rng.below(limit.max(1));
    let text = " kan  kou ﬁ e\u{301} ▁\t\u{200b}山 <sep>\u{0}👩\u{200d}👧 babanban. ";
    let (mut read, mut refused) = (0, 0);
    for round in 0..3000 {
        let mut file = seeds[round % seeds.len()].clone();
        for _ in 0..1 + below(6) {
            // The first bytes are the pieces, the last the settings and rules.
            let at =
                if below(2) == 0 { below(file.len()) } else { file.len() - 1 - below(file.len().min(400)) };
            let length = below(40).min(file.len() - at);
            match below(5) {
                0 => file[at] = below(256) as u8,
                1 => file[at] ^= 1 << below(8),
                2 => drop(file.drain(at..at + length.min(file.len() / 2))),
                3 => drop(file.splice(at..at, file[at..at + length].to_vec()).collect::<Vec<_>>()),
                _ => {
                    let other = &seeds[below(seeds.len())];
                    let from = below(other.len());
                    let part = other[from..(from + length).min(other.len())].to_vec();
                    drop(file.splice(at..at + length, part).collect::<Vec<_>>());
                }
            }
            if file.is_empty() {
                file.push(0);
            }
        }
        match SentencePiece::read(&file, Path::new("x.spm")) {
            Ok(model) => {
                let pieces = model.encode(text);
                assert!(!pieces.is_empty() && pieces.iter().all(|piece| !piece.is_empty()));
                model.decode(pieces.iter().map(String::as_str));
                read += 1;
            }
            Err(error) => {
                assert!(error.to_string().starts_with("x.spm: "), "{error}");
                refused += 1;
            }
        }
    }
    assert!(read > 50 && refused > 1000, "{read} read, {refused} refused");
}

#[derive(Deserialize)]
struct Marian {
    source: Vec<Sentence>,
    target: Vec<Sentence>,
    decoded: Vec<Sentence>,
}

#[derive(Deserialize)]
struct Sentence {
    text: String,
    ids: Vec<u32>,
}

#[test]
fn marian_tokenizers_are_those_of_transformers() {
    for (name, eos) in [("marian-joint", 0), ("marian-separate", 3)] {
        let pair = TokenizerPair::load(&goldens().join(name)).unwrap();
        assert_eq!(pair.is_joint(), name == "marian-joint");
        let golden: Marian = golden(&format!("{name}/golden.json"));
        for (tokenizer, cases) in [(pair.source(), &golden.source), (pair.target(), &golden.target)] {
            assert_eq!((tokenizer.eos(), tokenizer.pad() as usize), (eos, tokenizer.size() - 1));
            let texts: Vec<&str> = cases.iter().map(|case| case.text.as_str()).collect();
            let ids = tokenizer.encode_batch(&texts, 3).unwrap();
            for (case, ids) in cases.iter().zip(ids) {
                assert_eq!(ids, case.ids, "{name} {:?}", case.text);
            }
        }
        for case in &golden.decoded {
            assert_eq!(pair.target().decode(&case.ids), case.text, "{name} {:?}", case.ids);
        }
    }
}

#[test]
fn text_that_looks_like_a_token_is_text() {
    let pair = TokenizerPair::load(&goldens().join("marian-joint")).unwrap();
    let source = pair.source();
    assert_eq!(source.split_language(">>de<< ba"), (Some(">>de<<"), " ba"));
    assert_eq!(source.split_language(">>xx<< ba"), (None, ">>xx<< ba"));
    assert_eq!(source.split_language(">>de"), (None, ">>de"));
    let ids = source.encode("</s>").unwrap();
    assert!(ids.len() > 2 && ids.iter().filter(|&&id| id == source.eos()).count() == 1, "{ids:?}");
    // Ids beyond the vocabulary are left out.
    assert_eq!(source.decode(&[u32::MAX, 100_000]), "");
    let error = source.resample(&[], 0.1, 1).unwrap_err().to_string();
    assert_eq!(error, "bpe_dropout: only a BPE vocabulary with byte fallback can do this; use 0");
}

fn copy(name: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in fs::read_dir(goldens().join(name)).unwrap() {
        let file = file.unwrap();
        if file.file_name() != "golden.json" {
            fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
    }
    folder
}

#[test]
fn files_are_written_as_they_were_read() {
    for (name, files) in [
        ("marian-joint", &["source.spm", "target.spm", "vocab.json"][..]),
        ("marian-separate", &["source.spm", "target.spm", "target_vocab.json", "vocab.json"]),
    ] {
        let pair = TokenizerPair::load(&goldens().join(name)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        // Files that would be read instead, or that another kind of pair has left.
        for stale in ["tokenizer.json", "target_tokenizer.json", "target_vocab.json"] {
            fs::write(folder.path().join(stale), "{}").unwrap();
        }
        pair.save(folder.path()).unwrap();
        let mut written: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|f| f.unwrap().file_name().into_string().unwrap())
            .collect();
        written.sort();
        assert_eq!(written, files);
        for file in files {
            let [ours, theirs] =
                [folder.path().to_path_buf(), goldens().join(name)].map(|f| fs::read(f.join(file)).unwrap());
            assert!(ours == theirs, "{name} {file}");
        }
        let config = pair.hugging_face_config(64);
        assert_eq!(config["tokenizer_class"], "MarianTokenizer");
        assert_eq!(config["separate_vocabs"] == true, !pair.is_joint());
        let other = if pair.is_joint() { "marian-separate" } else { "marian-joint" };
        let other = TokenizerPair::load(&goldens().join(other)).unwrap();
        assert_ne!(pair.source().hash(), other.source().hash());
        assert_ne!(pair.source().hash(), pair.target().hash());
        assert!(pair.source().save(&folder.path().join("tokenizer.json")).is_err());
    }
}

#[test]
fn missing_and_broken_files_are_named() {
    let refusal = |folder: &TempDir| {
        let error = TokenizerPair::load(folder.path()).unwrap_err().to_string();
        error.strip_prefix(&format!("{}/", folder.path().display())).unwrap_or(&error).to_owned()
    };
    for file in ["source.spm", "target.spm", "vocab.json"] {
        let folder = copy("marian-joint");
        fs::remove_file(folder.path().join(file)).unwrap();
        let want =
            "is missing; a tokenizer needs source.spm, target.spm, vocab.json, or else a tokenizer.json";
        assert_eq!(refusal(&folder), format!("{file}: {want}"));
    }
    let folder = copy("marian-separate");
    fs::remove_file(folder.path().join("target_vocab.json")).unwrap();
    assert!(refusal(&folder).starts_with("target_vocab.json: is missing; a tokenizer needs source.spm,"));
    for (file, text, want) in [
        ("tokenizer_config.json", "{", "tokenizer_config.json: not JSON: EOF"),
        (
            "tokenizer_config.json",
            r#"{"separate_vocabs": "yes"}"#,
            "tokenizer_config.json: separate_vocabs: \"yes\", but true or false is expected",
        ),
        ("vocab.json", r#"{"a": 0}"#, "vocab.json: the vocabulary lacks </s> and <unk> and <pad>"),
        ("target.spm", "x", "target.spm: "),
    ] {
        let folder = copy("marian-joint");
        fs::write(folder.path().join(file), text).unwrap();
        let error = refusal(&folder);
        assert!(error.starts_with(want), "{error}");
    }
}
