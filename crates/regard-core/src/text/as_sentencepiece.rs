//! Exports a tokenizer trained here as a SentencePiece model, for engines that read nothing else.
//!
//! Ids stay the same. `<pad>` becomes a control symbol, and so do the pieces appended until their
//! number is a multiple of [`SPM_MULTIPLE`]; the model must never generate one.
//!
//! The two libraries segment alike for different reasons. SentencePiece merges any two adjacent
//! symbols that form a piece, while `tokenizers` only applies its list of merges; a trained list
//! contains the pairs that occur. SentencePiece does not split text into words first, but no piece
//! spans a word boundary. If that does not hold, a piece of the vocabulary or a line of the sample
//! shows it, and the tokenizer is rejected.
//!
//! Limitations of SentencePiece's rule table: a NUL is encoded as a byte instead of becoming a
//! space, and combining marks that are not in Unicode's order, or that are U+0344, stay so, unless
//! letter and marks together are one character. SentencePiece's own NFC has the same limitations.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;
use tokenizers::normalizers::{NFC, NFD};
use tokenizers::{NormalizedString, Normalizer};

use super::json::merge_parts;
use super::pipeline::{BLANK, normaliser, word_splitter};
use super::sentencepiece::{
    NewModel, NewPiece, PieceKind, SentencePiece, SpmAlgorithm, byte_of, compile_rules,
};
use super::{EOS, PAD, TermTokens, Tokenizer, UNK};
use crate::{Error, Result};

/// The number of pieces is a multiple of this, because Bergamot's matmuls require it of the output
/// matrix.
pub const SPM_MULTIPLE: usize = 8;

/// No character after this one is normalised: these planes are for private use or unassigned.
const LAST: char = '\u{2ffff}';
/// The field that errors name.
const FIELD: &str = "tokenizer";

/// The bytes of a `.spm` file that segments like `tokenizer`, whose `tokenizer.json` is `json`.
pub(super) fn write(tokenizer: &Tokenizer, json: &str, sample: &[&str]) -> Result<Vec<u8>> {
    let file: Value =
        serde_json::from_str(json).map_err(|e| refused(format!("not a tokenizer.json: {e}")))?;
    let model = model(tokenizer, &file)?;
    let bytes = model.write();
    let written = SentencePiece::read(&bytes, Path::new("the .spm file"))?;
    let learned = model.pieces.iter().filter(|piece| piece.kind == PieceKind::Normal);
    let learned: Vec<String> = learned.map(|piece| piece.text.replace('▁', " ")).collect();
    for line in learned.iter().map(String::as_str).chain(sample.iter().copied()) {
        check_line(tokenizer, &written, line)?;
    }
    Ok(bytes)
}

fn refused(problem: impl std::fmt::Display) -> Error {
    Error::config(FIELD, format!("cannot be written as a SentencePiece model: {problem}"))
}

/// Checks that both segment a line alike.
fn check_line(tokenizer: &Tokenizer, written: &SentencePiece, line: &str) -> Result<()> {
    let mut ids = tokenizer.encode(line)?;
    ids.pop();
    let pieces = written.encode(line);
    let same =
        pieces.len() == ids.len() && pieces.iter().zip(&ids).all(|(p, &id)| tokenizer.id(p) == Some(id));
    match same || line.contains('\0') {
        true => Ok(()),
        false => {
            let ours: Vec<String> = ids.iter().filter_map(|&id| tokenizer.piece(id)).collect();
            Err(refused(format!("the line {line:?} would become {pieces:?} instead of {ours:?}")))
        }
    }
}

fn model(tokenizer: &Tokenizer, file: &Value) -> Result<NewModel> {
    check_stages(file)?;
    let charsmap = CHARSMAP.as_deref().ok_or_else(|| refused("its normalisation has too many rules"))?;
    let last = tokenizer.size() - 1;
    let ids = [tokenizer.eos(), tokenizer.unk(), tokenizer.pad()];
    if ids != [0, 1, last as u32] {
        let [eos, unk, pad] = ids;
        return Err(refused(format!(
            "{EOS}, {UNK} and {PAD} have the ids {eos}, {unk} and {pad}; 0, 1 and {last} are expected"
        )));
    }
    let (algorithm, scores) = match file["model"]["type"].as_str() {
        Some("BPE") => (SpmAlgorithm::Bpe, merge_scores(&file["model"])?),
        Some("Unigram") => (SpmAlgorithm::Unigram, unigram_scores(&file["model"])),
        other => return Err(refused(format!("model.type is {other:?}; BPE or Unigram is expected"))),
    };
    let mut pieces = Vec::with_capacity(tokenizer.size() + SPM_MULTIPLE);
    for id in 0..=last {
        let text = tokenizer.piece(id as u32).unwrap_or_default();
        let kind = kind_of(&text);
        let score = match (kind, scores.get(text.as_str())) {
            (PieceKind::Normal, Some(&score)) => score,
            (PieceKind::Normal, None) if text.chars().nth(1).is_some() => {
                return Err(refused(format!("no merge makes the piece {text:?}")));
            }
            // Single characters are not the result of a merge.
            (PieceKind::Normal, None) => -(scores.len() as f32),
            _ => 0.0,
        };
        pieces.push(NewPiece { text, score, kind });
    }
    for n in 0..pieces.len().next_multiple_of(SPM_MULTIPLE) - pieces.len() {
        pieces.push(NewPiece { text: format!("<filler{n}>"), score: 0.0, kind: PieceKind::Control });
    }
    Ok(NewModel { algorithm, pieces, charsmap })
}

/// Rejects everything that tokenizers trained here do not have.
fn check_stages(file: &Value) -> Result<()> {
    for (stage, expected) in [("normalizer", normaliser()), ("pre_tokenizer", word_splitter())] {
        if file[stage] != expected {
            return Err(refused(format!("{stage} differs from that of the tokenizers trained here")));
        }
    }
    let model = &file["model"];
    if model["byte_fallback"] != true {
        return Err(refused("model.byte_fallback is not true"));
    }
    for key in ["continuing_subword_prefix", "end_of_word_suffix"] {
        if model[key].as_str().is_some_and(|text| !text.is_empty()) {
            return Err(refused(format!("model.{key} is {}; nothing is expected", model[key])));
        }
    }
    if model["ignore_merges"] == true {
        return Err(refused("model.ignore_merges is true; false is expected"));
    }
    let added =
        file["added_tokens"].as_array().into_iter().flatten().filter_map(|token| token["content"].as_str());
    match added.into_iter().find(|token| ![EOS, UNK, PAD].contains(token)) {
        Some(token) => {
            Err(refused(format!("added_tokens has {token:?}; {EOS}, {UNK} and {PAD} are expected")))
        }
        None => Ok(()),
    }
}

fn kind_of(piece: &str) -> PieceKind {
    match piece {
        UNK => PieceKind::Unknown,
        EOS | PAD => PieceKind::Control,
        // They never result from text.
        _ if TermTokens::TOKENS.contains(&piece) => PieceKind::Control,
        _ if byte_of(piece).is_some() => PieceKind::Byte,
        _ => PieceKind::Normal,
    }
}

/// The results of merges: the earlier a merge, the higher the score of its result.
fn merge_scores(model: &Value) -> Result<HashMap<String, f32>> {
    let mut scores = HashMap::new();
    for (rank, merge) in model["merges"].as_array().into_iter().flatten().enumerate() {
        let (left, right) =
            merge_parts(merge).ok_or_else(|| refused(format!("the merge {merge} is broken")))?;
        scores.entry(format!("{left}{right}")).or_insert(-(rank as f32));
    }
    Ok(scores)
}

fn unigram_scores(model: &Value) -> HashMap<String, f32> {
    let entries = model["vocab"].as_array().into_iter().flatten();
    entries.filter_map(|entry| Some((entry[0].as_str()?.to_owned(), entry[1].as_f64()? as f32))).collect()
}

/// The compiled normalisation rules, cached: compiling takes most of a second.
static CHARSMAP: LazyLock<Option<Vec<u8>>> = LazyLock::new(|| compile_rules(&rules()));

/// The normalisation as rules, of which the longest match is applied: characters that are blank or
/// not composed, and sequences that compose to one character.
fn rules() -> BTreeMap<String, String> {
    let mut rules = BTreeMap::new();
    // Characters with a canonical equivalent, such as the Kelvin sign for K.
    let mut others: HashMap<char, Vec<char>> = HashMap::new();
    let mut composed = Vec::new();
    for character in '\u{1}'..=LAST {
        let text = character.to_string();
        let normalised = normalise(&text);
        if normalised == text {
            composed.push(text);
            continue;
        }
        if let (Some(same), 1) = (normalised.chars().next(), normalised.chars().count()) {
            others.entry(same).or_default().push(character);
        }
        rules.insert(text, normalised);
    }
    for text in composed {
        for sequence in decompositions(&text).iter().flat_map(|sequence| spellings(sequence, &others)) {
            rules.insert(sequence, text.clone());
        }
    }
    rules
}

/// A sequence with every combination of equivalent characters.
fn spellings(sequence: &str, others: &HashMap<char, Vec<char>>) -> Vec<String> {
    sequence.chars().fold(vec![String::new()], |begun, character| {
        let same = others.get(&character).into_iter().flatten().chain([&character]);
        same.flat_map(|c| begun.iter().map(move |text| format!("{text}{c}"))).collect()
    })
}

/// The sequences of several characters that compose to this one: its decomposition in every
/// equivalent order of its marks, with the beginning composed as far as it is one character.
fn decompositions(text: &str) -> BTreeSet<String> {
    let parts: Vec<char> = changed_by(&NFD, text).chars().collect();
    let mut sequences = BTreeSet::new();
    if let [first, marks @ ..] = parts.as_slice() {
        for order in permutations(marks) {
            let order: Vec<char> = std::iter::once(*first).chain(order).collect();
            for beginning in 1..order.len() {
                let (start, rest) = order.split_at(beginning);
                let start = changed_by(&NFC, &start.iter().collect::<String>());
                let sequence: String = start.chars().chain(rest.iter().copied()).collect();
                if start.chars().nth(1).is_none() && changed_by(&NFC, &sequence) == text {
                    sequences.insert(sequence);
                }
            }
        }
    }
    sequences
}

/// All permutations of a few marks.
fn permutations(marks: &[char]) -> Vec<Vec<char>> {
    if marks.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (i, &mark) in marks.iter().enumerate() {
        let others = [&marks[..i], &marks[i + 1..]].concat();
        all.extend(permutations(&others).into_iter().map(|rest| [vec![mark], rest].concat()));
    }
    all
}

fn changed_by(stage: &impl Normalizer, text: &str) -> String {
    let mut changed = NormalizedString::from(text);
    match stage.normalize(&mut changed) {
        Ok(()) => changed.get().to_owned(),
        // Neither of the two stages can fail.
        Err(_) => text.to_owned(),
    }
}

/// Composed, and with blanks as spaces; keeps those at the ends.
fn normalise(text: &str) -> String {
    static BLANKS: LazyLock<Regex> = LazyLock::new(|| Regex::new(BLANK).expect("the pattern is valid"));
    BLANKS.replace_all(&changed_by(&NFC, text), " ").into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Segmentation, TextSample, TokenizerPair, TokenizerSettings};

    const ODD: [&str; 26] = [
        "",
        " ",
        "\t a \u{a0}\u{3000}b\u{feff}",
        "▁",
        "▁▁a ▁ b▁",
        "</s>",
        "a</s>b <unk><pad> <filler0>",
        "<0x41><0xE2>",
        "e\u{301}t\u{e9} \u{212b}",
        "\u{301}",
        "e\u{302}\u{323} e\u{323}\u{302} \u{ea}\u{323} \u{1eb9}\u{302}",
        "👩\u{200d}👩\u{200d}👧 🇩🇪 ❤\u{fe0f} 1\u{fe0f}\u{20e3}",
        "我爱北京天安门。日本語のテキスト、カタカナー",
        "한국어 \u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8} \u{ac00}\u{11a8}",
        "שלום עולם! مرحبا می\u{200c}خواهم",
        "हिन्दी क्\u{200d}ष क\u{93c}",
        "zero\u{200b}width\u{2060}joiner\u{ad}",
        "\u{1}\u{7f}\u{80}\u{9f}a\u{2028}b\u{2029}c\u{85}d",
        "in 2016, 3,141.59€ ½ ² ﬁ Ａ ™",
        "C++ & <b>x</b> -- don't",
        "\u{10ffff}\u{fffe}",
        "……。。。，，!!!???",
        "the dog .  do n't , cat ?",
        "THE DOG thedog2016dog.dog",
        "\u{1f71} \u{3b1}\u{301} \u{3b1}\u{313}\u{301}\u{345} \u{37e} \u{2000}\u{2001}",
        "ਸ\u{a3c} \u{958} \u{fb1d} \u{2adc}",
    ];

    fn sample() -> TextSample {
        let mut sample = TextSample::default();
        let words =
            ["the", "dogs", "bark", "in", "Häusern", "2016", "now", "when", "whence", "...", "…", "été"];
        let mut state = 7u64;
        for _ in 0..3000 {
            let mut line = Vec::new();
            for _ in 0..9 {
                state = regard_random::mix(state);
                let word = words[(state >> 8) as usize % words.len()];
                let end = ["", "", "s", ",", "!!", "ing", "er"][(state >> 40) as usize % 7];
                line.push(format!("{word}{end}"));
            }
            sample.add(&line.join(" "));
        }
        sample
    }

    fn trained(segmentation: Segmentation, size: usize) -> Tokenizer {
        let settings = TokenizerSettings { segmentation, size: Some(size), separate: false };
        Tokenizer::train(&[&sample()], &settings).unwrap()
    }

    #[test]
    fn tokens_around_terms_are_no_text_there_either() {
        for segmentation in [Segmentation::Bpe, Segmentation::Unigram] {
            let settings = TokenizerSettings { segmentation, size: Some(400), separate: false };
            let pair = TokenizerPair::train_with(&sample(), &sample(), &settings, &[], true).unwrap();
            let lines = ["the <term> dog <is> x </term>"];
            let bytes = pair.source().to_sentencepiece(&lines).unwrap();
            let written = SentencePiece::read(&bytes, Path::new("test.spm")).unwrap();
            assert!(
                !written.encode(lines[0]).iter().any(|piece| TermTokens::TOKENS.contains(&piece.as_str()))
            );
        }
    }

    #[test]
    fn odd_text_is_segmented_alike() {
        for (segmentation, size) in
            [(Segmentation::Bpe, 400), (Segmentation::Bpe, 350), (Segmentation::Unigram, 400)]
        {
            let tokenizer = trained(segmentation, size);
            let bytes = tokenizer.to_sentencepiece(&ODD).unwrap();
            let written = SentencePiece::read(&bytes, Path::new("test.spm")).unwrap();
            for line in ODD {
                let ids = tokenizer.encode(line).unwrap();
                let pieces: Vec<String> =
                    ids[..ids.len() - 1].iter().filter_map(|&id| tokenizer.piece(id)).collect();
                assert_eq!(written.encode(line), pieces, "{line:?}");
                let decoded = written.decode(pieces.iter().map(String::as_str));
                assert_eq!(decoded.strip_prefix(' ').unwrap_or(&decoded), tokenizer.decode(&ids), "{line:?}");
            }
        }
    }

    /// A file that `tools/goldens/exported_spm.py` has read with the package.
    #[derive(serde::Deserialize)]
    struct Exported {
        bytes: usize,
        crc32: u32,
        /// Texts for which the package's ids differ from the tokenizer's.
        apart: Vec<usize>,
    }

    #[derive(serde::Deserialize)]
    struct Encoded {
        text: String,
        ids: Vec<u32>,
    }

    /// With `REGARD_WRITE_GOLDENS`, writes the files to the folder that it names.
    #[test]
    fn files_are_those_that_the_package_has_read() {
        let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
        let read = |name: &str| std::fs::read_to_string(goldens.join(name)).unwrap();
        let files = ["bpe", "unigram"].map(|name| {
            let tokenizer = Tokenizer::load(&goldens.join(format!("tokenizer_{name}.json"))).unwrap();
            let file = tokenizer.to_sentencepiece(&[]).unwrap();
            if let Some(folder) = std::env::var_os("REGARD_WRITE_GOLDENS") {
                std::fs::write(Path::new(&folder).join(format!("{name}.spm")), &file).unwrap();
            }
            (name, tokenizer, file)
        });
        let mut exported: HashMap<String, Exported> =
            serde_json::from_str(&read("sentencepiece/exported.json")).unwrap();
        let known: HashMap<String, Value> = serde_json::from_str(&read("tokenizer_python.json")).unwrap();
        for (name, tokenizer, file) in files {
            let Exported { bytes, crc32, apart } = exported.remove(name).unwrap();
            let mut crc = flate2::Crc::new();
            crc.update(&file);
            assert_eq!((file.len(), crc.sum()), (bytes, crc32), "{name}");
            let written = SentencePiece::read(&file, Path::new("exported.spm")).unwrap();
            let cases: Vec<Encoded> = serde_json::from_value(known[name].clone()).unwrap();
            for (i, Encoded { text, ids }) in cases.iter().enumerate() {
                let found = written.encode(text);
                let found: Vec<u32> = found.iter().filter_map(|piece| tokenizer.id(piece)).collect();
                assert_eq!(found == ids[..ids.len() - 1], !apart.contains(&i), "{name} {text:?}");
            }
        }
    }

    /// All characters alone, and those that are not marks before an accent and a jamo.
    #[test]
    fn the_rules_are_the_normalisation() {
        let bytes = trained(Segmentation::Bpe, 400).to_sentencepiece(&[]).unwrap();
        let written = SentencePiece::read(&bytes, Path::new("test.spm")).unwrap();
        let marks = Regex::new(r"^\p{M}$").unwrap();
        for character in ('\u{1}'..=char::MAX).filter(|&c| c != '\u{344}') {
            // Capitals with an iota, whose accent would precede it.
            let unordered = ['\u{1fbc}', '\u{1fcc}', '\u{1ffc}'].contains(&character);
            let alone =
                unordered || character > '\u{d7ff}' || marks.is_match(character.encode_utf8(&mut [0; 4]));
            for behind in if alone { &[""][..] } else { &["", "\u{301}", "\u{11a8}"] } {
                let text = format!("a{character}{behind}b");
                let want = format!("▁{}", super::super::normalise(&text).replace(' ', "▁"));
                assert_eq!(written.normalise(&text), want, "{text:?}");
            }
        }
    }

    #[test]
    fn numbers_of_pieces_are_multiples_of_eight() {
        let tokenizer = trained(Segmentation::Bpe, 350);
        let model = model(&tokenizer, &serde_json::from_str(tokenizer.to_json().unwrap()).unwrap()).unwrap();
        assert_eq!((tokenizer.size(), model.pieces.len()), (350, 352));
        let kinds = |range: std::ops::Range<usize>| model.pieces[range].iter().map(|piece| piece.kind);
        assert!(kinds(0..1).chain(kinds(349..352)).all(|kind| kind == PieceKind::Control));
        assert!(kinds(1..2).all(|kind| kind == PieceKind::Unknown));
        assert!(kinds(2..258).all(|kind| kind == PieceKind::Byte));
        assert!(kinds(258..349).all(|kind| kind == PieceKind::Normal));
        assert_eq!(model.pieces[349].text, PAD);
    }

    #[test]
    fn what_prevents_it_is_named() {
        let tokenizer = trained(Segmentation::Bpe, 400);
        let file: Value = serde_json::from_str(tokenizer.to_json().unwrap()).unwrap();
        for (pointer, value, want) in [
            ("/normalizer", Value::Null, "normalizer differs from"),
            ("/pre_tokenizer", serde_json::json!({"type": "ByteLevel"}), "pre_tokenizer differs from"),
            ("/model/byte_fallback", false.into(), "model.byte_fallback is not true"),
            ("/model/end_of_word_suffix", "</w>".into(), "model.end_of_word_suffix is \"</w>\""),
            ("/model/ignore_merges", true.into(), "model.ignore_merges is true"),
            ("/model/merges", serde_json::json!([]), "no merge makes the piece"),
            ("/model/type", "WordPiece".into(), "model.type is Some(\"WordPiece\")"),
            ("/added_tokens/2/content", ">>de<<".into(), "added_tokens has \">>de<<\""),
        ] {
            let mut changed = file.clone();
            *changed.pointer_mut(pointer).unwrap() = value;
            let message = model(&tokenizer, &changed).unwrap_err().to_string();
            assert!(
                message.starts_with("tokenizer: cannot be written as a SentencePiece model"),
                "{message}"
            );
            assert!(message.contains(want), "{message}");
        }
    }

    /// Merges in an order that training never gives: `tokenizers` never applies the second.
    #[test]
    fn merges_that_sentencepiece_would_apply_otherwise_are_refused() {
        let tokenizer = trained(Segmentation::Bpe, 400);
        let mut file: Value = serde_json::from_str(tokenizer.to_json().unwrap()).unwrap();
        let merges = file["model"]["merges"].as_array_mut().unwrap();
        merges.reverse();
        let json = file.to_string();
        let tokenizer = Tokenizer::from_json(json, Path::new("tokenizer.json")).unwrap();
        let message = tokenizer.to_sentencepiece(&[]).unwrap_err().to_string();
        assert!(message.contains("would become"), "{message}");
    }
}
