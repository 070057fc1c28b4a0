//! A corpus built into the program: English and French sentence pairs from a grammar written for
//! it.
//!
//! A sentence is drawn as a tree (`syntax`, `grammar`) over a small lexicon and written twice, once
//! by the rules of each language (`english`, `french`). The pairs show what a translator has to
//! learn:
//!
//! - gender and number: le, la, les, un, une, des, ce, cet, cette, mon, ma, mon école, and the
//!   agreement of adjectives;
//! - the place of adjectives: une petite maison, une voiture rouge, un bel oiseau, de vieux livres;
//! - elision and contraction: l'homme but le hibou, j'aime, qu'elle, du, des, au, aux, du pain, de
//!   l'eau;
//! - verbs in the present, passé composé (with avoir and être, and the participle's agreement),
//!   futur and imparfait;
//! - ne … pas, jamais, plus around the verb, and pas de for "not any";
//! - questions: "do" against est-ce que, and where, when, why, what, who, how many, how old;
//! - pronouns before the verb (il l'a vue, elle me donne), modals with an infinitive;
//! - numbers to a hundred, ages, prices, dates and times of day in words;
//! - places, possession ("the boy's hat"), comparison, relative clauses with qui and que,
//!   conjunctions.
//!
//! One English sentence has one French sentence: "you" is vous, said to one man; "I", "we" and
//! "they" are masculine; the simple past is the passé composé, except that states ("was", "had",
//! "wanted", "loved") and the progressive are in the imparfait. An ordinary space stands before the
//! French question mark.
//!
//! The held-out sentences are new combinations, not only new sentences. A fixed hash reserves about
//! three of a hundred pairs of content words; no sentence with a reserved pair is ever trained on,
//! whatever the seed, and every held-out sentence has one. Each of its words, alone, occurs in
//! training.

mod english;
mod french;
mod grammar;
mod lexicon;
mod numbers;
mod phrases;
mod rng;
mod syntax;
#[cfg(test)]
mod tests;
mod verbs;

use std::collections::HashSet;
use std::ops::RangeInclusive;

use regard_random::mix;
use rng::Rng;

/// Training pairs of [`default()`].
pub const DEFAULT_PAIRS: usize = 12_000;

/// Seed of [`default()`].
pub const DEFAULT_SEED: u64 = 2017;

/// English sentences with a reserved combination, thus in no training set, and their French.
pub const SHOWCASE: [(&str, &str); 5] = [
    ("My mother will not wait for the old woman.", "Ma mère n'attendra pas la vieille femme."),
    ("A beautiful black bird was sleeping in the garden.", "Un bel oiseau noir dormait dans le jardin."),
    ("Did the girls close twenty-one boxes?", "Est-ce que les filles ont fermé vingt et une boîtes ?"),
    ("We will go to the school on the first of June.", "Nous irons à l'école le premier juin."),
    ("The flowers that she bought are blue.", "Les fleurs qu'elle a achetées sont bleues."),
];

/// English and French, each pair once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corpus {
    /// Pairs to train on.
    pub train: Vec<(String, String)>,
    /// Pairs with a combination of content words that no training pair has.
    pub held_out: Vec<(String, String)>,
}

/// One in this many pairs of content words is reserved for the held-out set.
const RESERVED_ONE_IN: u64 = 33;

/// Enough for a steady BLEU, and quickly translated.
const MAX_HELD_OUT: usize = 500;

/// The words an English side may have.
const LENGTH: RangeInclusive<usize> = 3..=14;

/// The corpus that `regard quickstart` trains on.
pub fn default() -> Corpus {
    corpus(DEFAULT_SEED, DEFAULT_PAIRS)
}

/// `pairs` distinct training pairs and one held-out pair for each 24 of them, at most 500; the same
/// for a seed on every platform.
///
/// The grammar has millions of sentences; where a huge `pairs` exhausts what the seed draws, the
/// corpus is smaller.
pub fn corpus(seed: u64, pairs: usize) -> Corpus {
    let held_out_pairs = (pairs / 24).min(MAX_HELD_OUT);
    // Twice as many as needed, because those with a word that training lacks are dropped.
    let candidates = held_out_pairs * 2;
    let mut rng = Rng::new(seed);
    let mut seen = HashSet::new();
    let (mut train, mut held_out) = (Vec::new(), Vec::new());
    let mut attempts = pairs.saturating_mul(40);
    while attempts > 0 && (train.len() < pairs || held_out.len() < candidates) {
        attempts -= 1;
        let sentence = rng.sentence();
        let (en, content) = english::write(&sentence);
        let (list, limit) =
            if is_reserved(&content) { (&mut held_out, candidates) } else { (&mut train, pairs) };
        let fits = !repeats(&content) && LENGTH.contains(&en.split(' ').count());
        if fits && list.len() < limit && seen.insert(en.clone()) {
            list.push((en, french::write(&sentence)));
        }
    }
    let known: HashSet<&str> = train.iter().flat_map(|(en, fr)| words(en).chain(words(fr))).collect();
    held_out.retain(|(en, fr)| words(en).chain(words(fr)).all(|word| known.contains(word)));
    held_out.truncate(held_out_pairs);
    Corpus { train, held_out }
}

/// The words of a sentence in the making.
#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    fn push(&mut self, text: &str) {
        self.0.extend(text.split_whitespace().map(str::to_owned));
    }
}

/// A sentence that says a word twice ("the cat sees the cat") is not worth training on.
fn repeats(words: &[String]) -> bool {
    words.iter().enumerate().any(|(i, word)| words[..i].contains(word))
}

/// Whether two of the content words are a combination kept from training.
fn is_reserved(words: &[String]) -> bool {
    words.iter().enumerate().any(|(i, a)| words[..i].iter().any(|b| is_reserved_pair(a, b)))
}

fn is_reserved_pair(a: &str, b: &str) -> bool {
    let (a, b) = if a < b { (a, b) } else { (b, a) };
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = a.bytes().chain([0]).chain(b.bytes()).fold(0xcbf2_9ce4_8422_2325, fnv);
    mix(hash).is_multiple_of(RESERVED_ONE_IN)
}

/// The words of a text without its punctuation, cut after an apostrophe.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', '\'', '.', ',', '?']).filter(|word| !word.is_empty())
}

/// The text with its first letter in upper case.
fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}
