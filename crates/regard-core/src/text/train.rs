//! Trains a tokenizer on the user's text with the trainers of the `tokenizers` crate.
//!
//! The trainers get words with their counts, sorted, on one thread: the same text gives the same
//! vocabulary.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::models::unigram::{Unigram, UnigramTrainer};

use super::json::parse;
use super::pipeline::{for_each_word, normalise, tokenizer_json};
use super::{
    EOS, LanguagePlacement, LanguageToken, LanguageTokens, PAD, TermTokens, Tokenizer, TokenizerPair, UNK,
};
use crate::{Error, Result};
use regard_random::mix;

/// How words are split into pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Segmentation {
    /// Byte-pair encoding: repeatedly merges the most frequent pair.
    #[default]
    Bpe,
    /// The most probable segmentation under a unigram model.
    Unigram,
}

/// The kind of vocabulary to train.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenizerSettings {
    /// BPE (the default) or unigram.
    pub segmentation: Segmentation,
    /// The number of pieces in the vocabulary, including special tokens and bytes; if absent,
    /// [`vocabulary_size_for`] the text. A small text may yield fewer.
    pub size: Option<usize>,
    /// One vocabulary for each language instead of a joint one.
    pub separate: bool,
}

/// The minimum size of a vocabulary: 3 special tokens, 256 bytes and some letters.
const MIN_SIZE: usize = 300;
/// The maximum size of a vocabulary.
const MAX_SIZE: usize = 1_000_000;
/// The entries of every vocabulary besides learned pieces: `</s>`, `<unk>`, `<pad>` and the bytes.
const FIXED: usize = 3 + 256;
/// The minimum count of a character with its own piece; rarer ones are encoded as bytes.
const MIN_CHARACTER_COUNT: u64 = 3;
/// The maximum length of a learned piece in characters.
const MAX_PIECE: usize = 24;
/// The maximum word length in training: a line without spaces is not a word to learn as a whole.
const MAX_WORD: usize = 64;

/// The vocabulary size for a text of this many bytes: 300 · words^¼, where a word counts as 6
/// bytes, and at most 37,000.
///
/// The fourth root passes through two known points: Multi30k (0.6 million words, 8 to 10 thousand
/// pieces) and the paper's WMT 2014 English-German (37 thousand for some 230 million words).
pub fn vocabulary_size_for(bytes: u64) -> usize {
    let words = bytes as f64 / 6.0;
    let size = (300.0 * words.powf(0.25)) as usize;
    size.next_multiple_of(8).clamp(MIN_SIZE, 37_000)
}

/// Text to train a tokenizer on: all lines of a small corpus, an even sample of a large one.
#[derive(Debug)]
pub struct TextSample {
    lines: Vec<(u64, String)>,
    kept: usize,
    limit: usize,
    seen_bytes: u64,
    seen_lines: u64,
    /// One line in 2^thinning is kept.
    thinning: u32,
}

impl Default for TextSample {
    fn default() -> Self {
        TextSample::new(128 << 20)
    }
}

impl TextSample {
    /// A sample of at most about `limit` bytes.
    pub fn new(limit: usize) -> Self {
        TextSample { lines: Vec::new(), kept: 0, limit, seen_bytes: 0, seen_lines: 0, thinning: 0 }
    }

    /// Offers the next line.
    pub fn add(&mut self, line: &str) {
        let index = self.seen_lines;
        self.seen_lines += 1;
        self.seen_bytes += line.len() as u64;
        if !self.keeps(index) {
            return;
        }
        self.kept += line.len();
        self.lines.push((index, line.to_owned()));
        while self.kept > self.limit && self.lines.len() > 1 {
            self.thinning += 1;
            let mut lines = std::mem::take(&mut self.lines);
            lines.retain(|(index, _)| self.keeps(*index));
            self.kept = lines.iter().map(|(_, line)| line.len()).sum();
            self.lines = lines;
        }
    }

    fn keeps(&self, index: u64) -> bool {
        // Select by hash, because every 2^k-th line could coincide with a pattern of the corpus.
        mix(index + 1).trailing_zeros() >= self.thinning
    }

    /// The total size of all lines offered, kept or not.
    pub fn bytes(&self) -> u64 {
        self.seen_bytes
    }

    /// The lines kept.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(|(_, line)| line.as_str())
    }
}

impl<S: AsRef<str>> Extend<S> for TextSample {
    fn extend<I: IntoIterator<Item = S>>(&mut self, lines: I) {
        lines.into_iter().for_each(|line| self.add(line.as_ref()));
    }
}

impl Tokenizer {
    /// Trains one vocabulary on all samples together.
    pub fn train(samples: &[&TextSample], settings: &TokenizerSettings) -> Result<Self> {
        Self::from_pieces(learn(samples, settings)?)
    }

    fn from_pieces(pieces: Pieces) -> Result<Self> {
        Self::from_json(pieces.into_json()?, Path::new("tokenizer.json"))
    }
}

impl TokenizerPair {
    /// Trains on the text of both sides. Separate vocabularies get the same size, the smaller of
    /// the two: a MarianMT configuration has one id for `<pad>`, which is the last of either.
    pub fn train(source: &TextSample, target: &TextSample, settings: &TokenizerSettings) -> Result<Self> {
        Self::train_with(source, target, settings, &[], false)
    }

    /// Trains one vocabulary for all languages, with a token for each target language; none of them
    /// is chosen yet.
    pub fn train_for_languages(
        source: &TextSample,
        target: &TextSample,
        settings: &TokenizerSettings,
        codes: &[String],
    ) -> Result<Self> {
        Self::train_with(source, target, settings, codes, false)
    }

    /// The same for any number of target languages, none if there are no language tokens; with
    /// `terms` also with term tokens for the source.
    pub fn train_with(
        source: &TextSample,
        target: &TextSample,
        settings: &TokenizerSettings,
        codes: &[String],
        terms: bool,
    ) -> Result<Self> {
        if settings.separate && !codes.is_empty() {
            let message = "a model of several target languages has one vocabulary for all; use false";
            return Err(Error::config("tokenizer.separate", message));
        }
        let languages: Vec<String> = codes.iter().map(|code| LanguageTokens::token(code)).collect();
        let of_terms = TermTokens::TOKENS.iter().filter(|_| terms).map(|token| (*token).to_owned());
        let tokens: Vec<String> = languages.iter().cloned().chain(of_terms).collect();
        let pair = if settings.separate {
            let mut source = learn(&[source], settings)?;
            let mut target = learn(&[target], settings)?;
            target.shrink(source.size());
            source.make_room(target.size(), &tokens);
            Self::separate(Tokenizer::from_pieces(source)?, Tokenizer::from_pieces(target)?)
        } else {
            let mut pieces = learn(&[source, target], settings)?;
            pieces.make_room(pieces.size(), &tokens);
            Self::joint(Tokenizer::from_pieces(pieces)?)
        };
        let missing = |token: &str| Error::config("tokenizer", format!("{token} is not in the vocabulary"));
        let pair = match TermTokens::find(pair.source()).filter(|_| terms) {
            Some(found) => pair.with_terms(found),
            None if terms => return Err(missing(TermTokens::TOKENS[0])),
            None => pair,
        };
        if codes.is_empty() {
            return Ok(pair);
        }
        let mut list = Vec::new();
        for (code, token) in codes.iter().zip(languages) {
            let id = pair.source().id(&token).ok_or_else(|| missing(&token))?;
            list.push(LanguageToken { code: code.clone(), token, id });
        }
        Ok(pair.with_languages(LanguageTokens { list, placement: LanguagePlacement::Target }, &[]))
    }
}

/// The pieces of a trained model before ids are assigned.
enum Pieces {
    /// Characters first, then the results of merges in order.
    Bpe { pieces: Vec<String>, merges: Vec<(String, String)> },
    /// In order of descending score.
    Unigram { pieces: Vec<(String, f64)> },
}

/// Learns pieces from all samples together.
fn learn(samples: &[&TextSample], settings: &TokenizerSettings) -> Result<Pieces> {
    let size = match settings.size {
        None => vocabulary_size_for(samples.iter().map(|s| s.bytes()).sum()),
        Some(size) if (MIN_SIZE..=MAX_SIZE).contains(&size) => size,
        Some(size) => {
            return Err(Error::config(
                "tokenizer.size",
                format!("{size} is not between {MIN_SIZE} (special tokens, bytes, letters) and {MAX_SIZE}"),
            ));
        }
    };
    let budget = size - FIXED;
    let words = count_words(samples);
    let alphabet = alphabet(&words, budget / 2);
    let words = cut_words(&words, &alphabet);
    if words.is_empty() {
        return Err(Error::config("tokenizer", "there is no text to train on: every line is empty"));
    }
    // One thread: floating-point sums and ties must not depend on the machine's cores.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.map_err(|e| Error::config("tokenizer", format!("no thread to train on: {e}")))?;
    pool.install(|| match settings.segmentation {
        Segmentation::Bpe => learn_bpe(words, budget),
        Segmentation::Unigram => learn_unigram(words, budget),
    })
}

fn count_words(samples: &[&TextSample]) -> HashMap<String, u64> {
    let mut words: HashMap<String, u64> = HashMap::new();
    for line in samples.iter().flat_map(|s| s.lines()) {
        for_each_word(&normalise(line), |word| match words.get_mut(word) {
            Some(count) => *count += 1,
            None => {
                words.insert(word.to_owned(), 1);
            }
        });
    }
    words
}

/// The characters with their own pieces: the most frequent; ties go to the lower code points.
fn alphabet(words: &HashMap<String, u64>, most: usize) -> BTreeSet<char> {
    let mut counts: BTreeMap<char, u64> = BTreeMap::new();
    for (word, count) in words {
        for character in word.chars() {
            *counts.entry(character).or_default() += count;
        }
    }
    let mut counts: Vec<(char, u64)> = counts.into_iter().filter(|c| c.1 >= MIN_CHARACTER_COUNT).collect();
    counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    counts.truncate(most);
    counts.into_iter().map(|(character, _)| character).chain(['▁']).collect()
}

/// Splits words at characters outside the alphabet (what is on both sides of a missing character is
/// not adjacent), and cuts overlong ones.
fn cut_words(words: &HashMap<String, u64>, alphabet: &BTreeSet<char>) -> BTreeMap<String, u64> {
    let mut parts = BTreeMap::new();
    for (word, count) in words {
        for part in word.split(|c| !alphabet.contains(&c)).filter(|p| !p.is_empty()) {
            let characters: Vec<char> = part.chars().collect();
            for chunk in characters.chunks(MAX_WORD) {
                *parts.entry(chunk.iter().collect()).or_default() += count;
            }
        }
    }
    parts
}

fn learn_bpe(words: BTreeMap<String, u64>, budget: usize) -> Result<Pieces> {
    let trainer = BpeTrainer::builder()
        .vocab_size(budget)
        .min_frequency(2)
        .max_token_length(Some(MAX_PIECE + 1))
        .show_progress(false)
        .build();
    let mut model = BPE::default();
    let words = words.into_iter().map(|(word, count)| (word.into(), count)).collect();
    trainer.do_train(&words, &mut model).map_err(failed)?;

    let mut pieces: Vec<(String, u32)> = model.get_vocab().into_iter().collect();
    pieces.sort_by_key(|&(_, id)| id);
    let model = serde_json::to_value(&model).map_err(failed)?;
    let merges = serde_json::from_value(model["merges"].clone()).map_err(failed)?;
    Ok(Pieces::Bpe { pieces: pieces.into_iter().map(|(piece, _)| piece).collect(), merges })
}

fn learn_unigram(words: BTreeMap<String, u64>, budget: usize) -> Result<Pieces> {
    let trainer = UnigramTrainer::builder()
        .vocab_size(budget as u32)
        .max_piece_length(MAX_PIECE)
        // More than the default of 2: the trainer starts with too much weight on single characters.
        .n_sub_iterations(4)
        .show_progress(false)
        .build()
        .map_err(failed)?;
    let words =
        words.into_iter().map(|(word, count)| (word, count.min(u64::from(u32::MAX)) as u32)).collect();
    let mut model = Unigram::default();
    // The trainer panics if a likelihood is NaN, which a tiny or unusual text can cause.
    match catch_unwind(AssertUnwindSafe(|| trainer.do_train(words, &mut model))) {
        Ok(trained) => trained.map_err(failed)?,
        Err(_) => return Err(failed("the unigram trainer gave up on this text")),
    };
    let mut pieces: Vec<(String, f64)> = model.iter().cloned().collect();
    order_rare_characters(&mut pieces);
    pieces.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    Ok(Pieces::Unigram { pieces })
}

/// The trainer assigns the scores m, m + 0.0001, … above the lowest score m to characters that it
/// pruned and must restore, in the order of a randomly seeded hash table. This reassigns the same
/// scores in the order of the characters.
fn order_rare_characters(pieces: &mut [(String, f64)]) {
    let lowest = pieces.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    pieces.sort_by(|a, b| a.0.cmp(&b.0));
    let (mut scores, mut places) = (Vec::new(), Vec::new());
    let mut penalty = 0.0;
    loop {
        let at = |p: &(String, f64)| p.1 == lowest + penalty && p.0.chars().count() == 1;
        let found: Vec<usize> = (0..pieces.len()).filter(|&i| at(&pieces[i])).collect();
        if found.is_empty() {
            break;
        }
        scores.extend(found.iter().map(|_| lowest + penalty));
        places.extend(found);
        penalty += 0.0001;
    }
    places.sort_unstable();
    for (place, score) in places.into_iter().zip(scores) {
        pieces[place].1 = score;
    }
}

impl Pieces {
    /// The size of the vocabulary with these pieces.
    fn size(&self) -> usize {
        FIXED
            + match self {
                Pieces::Bpe { pieces, .. } => pieces.len(),
                Pieces::Unigram { pieces } => pieces.len(),
            }
    }

    /// Removes the last learned pieces until the vocabulary has `size`.
    fn shrink(&mut self, size: usize) {
        let keep = size.saturating_sub(FIXED);
        match self {
            Pieces::Bpe { pieces, merges } => {
                pieces.truncate(keep);
                let kept: BTreeSet<&str> = pieces.iter().map(String::as_str).collect();
                merges.retain(|(a, b)| kept.contains(format!("{a}{b}").as_str()));
            }
            Pieces::Unigram { pieces } => {
                // Remove characters last: without them, their words would be encoded as bytes.
                let mut spare = pieces.len().saturating_sub(keep);
                for i in (0..pieces.len()).rev() {
                    if spare > 0 && pieces[i].0.chars().nth(1).is_some() {
                        pieces.remove(i);
                        spare -= 1;
                    }
                }
                pieces.truncate(keep);
            }
        }
    }

    /// Adds tokens that text never produces, which count towards the `size` of the vocabulary.
    fn make_room(&mut self, size: usize, tokens: &[String]) {
        self.shrink(size.saturating_sub(tokens.len()));
        self.add_tokens(tokens);
    }

    /// Adds tokens that text never produces. In a BPE vocabulary no merge results in them; words
    /// are split at `<` and `>` before a unigram model sees them.
    fn add_tokens(&mut self, tokens: &[String]) {
        match self {
            Pieces::Bpe { pieces, .. } => pieces.extend(tokens.iter().cloned()),
            Pieces::Unigram { pieces } => pieces.extend(tokens.iter().map(|token| (token.clone(), 0.0))),
        }
    }

    /// The text of the `tokenizer.json`.
    fn into_json(self) -> Result<String> {
        let pad = self.size() - 1;
        let fixed =
            [EOS, UNK].map(str::to_owned).into_iter().chain((0..=255u8).map(|b| format!("<0x{b:02X}>")));
        let model = match self {
            Pieces::Bpe { pieces, merges } => {
                let tokens = fixed.chain(pieces).chain([PAD.to_owned()]);
                let vocabulary: BTreeMap<String, usize> = tokens.zip(0..).collect();
                json!({"type": "BPE", "dropout": null, "unk_token": UNK, "continuing_subword_prefix": null,
                       "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": true,
                       "ignore_merges": false, "vocab": vocabulary, "merges": merges})
            }
            Pieces::Unigram { pieces } => {
                let fixed = fixed.map(|token| (token, 0.0));
                let vocabulary: Vec<(String, f64)> =
                    fixed.chain(pieces).chain([(PAD.to_owned(), 0.0)]).collect();
                json!({"type": "Unigram", "unk_id": 1, "byte_fallback": true, "vocab": vocabulary})
            }
        };
        let whole: Value = tokenizer_json(model, pad);
        // Pass it through the reader once, for the layout that the Python library writes: pieces in
        // the order of their ids.
        let tokenizer = parse(whole).map_err(failed)?;
        serde_json::to_string_pretty(&tokenizer).map_err(failed)
    }
}

fn failed(error: impl ToString) -> Error {
    Error::Input { operation: "training the tokenizer", message: error.to_string() }
}
