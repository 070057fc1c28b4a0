//! Lexical shortlists: the words that a source sentence makes likely. The output layer is computed
//! for these only.
//!
//! The lists are learned from the training corpus, with the word translation probabilities of IBM
//! model 1 (Brown et al., 1993). A file has a line for each source word: its id, a tab, and the ids
//! of target words.

use super::ragged_vec::RaggedVec;
use crate::replace::replace;
use crate::{Error, Result};
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

const HEADER: &str = "# regard shortlist";

/// The number of EM iterations.
const ROUNDS: usize = 4;

/// For each source word, the allowed target words, and some that are always allowed.
#[derive(Clone, PartialEq, Eq)]
pub struct Shortlist {
    source_words: usize,
    target_words: usize,
    always: Vec<u32>,
    /// Indexed by source word; may be shorter than the vocabulary.
    lists: RaggedVec<u32>,
    /// Whether source words are themselves allowed, which requires a joint vocabulary.
    with_source: bool,
}

/// Its sizes and a hash of its words: a list of Firefox's models has millions of them.
impl std::fmt::Debug for Shortlist {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Shortlist { source_words, target_words, always, lists, with_source } = self;
        let mut hash = Xxh3::new();
        for &length in lists.offsets() {
            hash.update(&(length as u64).to_le_bytes());
        }
        for words in [always.as_slice(), lists.items()] {
            hash.update(&(words.len() as u64).to_le_bytes());
            words.iter().for_each(|word| hash.update(&word.to_le_bytes()));
        }
        f.debug_struct("Shortlist")
            .field("source_words", source_words)
            .field("target_words", target_words)
            .field("always", &always.len())
            .field("lists", &lists.items().len())
            .field("with_source", with_source)
            .field("words", &format_args!("{:016x}", hash.digest()))
            .finish()
    }
}

/// The size of the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortlistSize {
    /// The number of most frequent target words, which are always allowed.
    pub frequent: usize,
    /// The number of likeliest target words for each source word.
    pub per_word: usize,
}

impl Default for ShortlistSize {
    fn default() -> Self {
        ShortlistSize { frequent: 200, per_word: 50 }
    }
}

/// The probability of a target word given a source word, and its expected count in this iteration.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    probability: f32,
    count: f32,
}

impl Shortlist {
    /// Learns the lists from pairs of sentences over vocabularies of these numbers of source and
    /// target words.
    pub fn learn(pairs: &[(&[u32], &[u32])], vocabularies: (usize, usize), size: ShortlistSize) -> Self {
        let (source_words, target_words) = vocabularies;
        let inside = |pair: &&(&[u32], &[u32])| {
            pair.0.iter().all(|&s| (s as usize) < source_words)
                && pair.1.iter().all(|&t| (t as usize) < target_words)
        };
        let pairs: Vec<_> = pairs.iter().filter(inside).collect();
        let mut frequency = vec![0u64; target_words];
        pairs.iter().flat_map(|pair| pair.1).for_each(|&t| frequency[t as usize] += 1);
        let mut by_frequency: Vec<u32> =
            (0..target_words as u32).filter(|&t| frequency[t as usize] > 0).collect();
        by_frequency.sort_by_key(|&t| (std::cmp::Reverse(frequency[t as usize]), t));
        let mut always: Vec<u32> = by_frequency.into_iter().take(size.frequent).collect();
        always.sort_unstable();
        let entries = translations(&pairs, source_words).into_iter();
        let mut lists: Vec<_> = entries.map(|entries| likeliest(entries, size.per_word)).collect();
        lists.truncate(lists.iter().rposition(|list| !list.is_empty()).map_or(0, |last| last + 1));
        let lists = lists.into_iter().collect();
        Shortlist { source_words, target_words, always, lists, with_source: false }
    }

    /// Lists by source word, for vocabularies of these numbers of source and target words; ids
    /// outside the target vocabulary are dropped. The lists are contiguous in the second vector;
    /// the first has the start of each, plus the end of the last. With `with_source`, source words
    /// are themselves allowed, which requires a joint vocabulary.
    ///
    /// # Panics
    /// If the offsets do not ascend from 0 to the number of ids.
    pub fn new(
        vocabularies: (usize, usize),
        always: impl Iterator<Item = u32>,
        (ends, ids): (Vec<usize>, Vec<u32>),
        with_source: bool,
    ) -> Self {
        let (source_words, target_words) = vocabularies;
        let inside = |id: &u32| (*id as usize) < target_words;
        let mut lists = RaggedVec::from_parts(ends, ids);
        if !lists.items().iter().all(inside) || lists.len() > source_words {
            lists = lists.iter().take(source_words).map(|list| list.iter().copied().filter(inside)).collect();
        }
        Shortlist { source_words, target_words, always: always.filter(inside).collect(), lists, with_source }
    }

    /// The words allowed for a source sentence, ascending, into `to`.
    pub fn words(&self, source: &[u32], to: &mut Vec<u32>) {
        to.clear();
        let mut set = WordSet::default();
        self.for_each_list(source, |words| set.insert(words));
        set.drain(to);
    }

    /// Calls `f` with the lists of which the words of a sentence consist.
    fn for_each_list(&self, source: &[u32], mut f: impl FnMut(&[u32])) {
        f(&self.always);
        source.iter().for_each(|&s| f(self.likely(s)));
        if self.with_source {
            source.iter().filter(|&&s| (s as usize) < self.target_words).for_each(|&s| f(&[s]));
        }
    }

    /// The words that are always allowed, ascending.
    pub fn always(&self) -> &[u32] {
        &self.always
    }

    /// The words that a source word makes likely, ascending.
    pub fn likely(&self, source: u32) -> &[u32] {
        self.lists.get(source as usize).unwrap_or_default()
    }

    /// The sizes of the vocabularies that it was made for: source, target.
    pub fn vocabularies(&self) -> (usize, usize) {
        (self.source_words, self.target_words)
    }

    /// Saves it atomically: the old file stays until the new one is complete.
    pub fn save(&self, path: &Path) -> Result<()> {
        replace(path, |file| {
            writeln!(file, "{HEADER}\t{}\t{}", self.source_words, self.target_words)?;
            write_list(file, "*", &self.always)?;
            let mut lists = self.lists.iter().enumerate().filter(|(_, list)| !list.is_empty());
            lists.try_for_each(|(s, list)| write_list(file, &s.to_string(), list))
        })
    }

    /// Reads a file that [`Shortlist::save`] has written.
    pub fn load(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        let text = String::from_utf8(bytes).map_err(|_| {
            Error::file(
                path,
                "not UTF-8; expected a shortlist in text, not the `lex*.bin` of a Marian folder",
            )
        })?;
        Self::parse(&text).map_err(|(line, message)| Error::Line { path: path.to_path_buf(), line, message })
    }

    fn parse(text: &str) -> std::result::Result<Self, (usize, String)> {
        let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line));
        let first = lines.next().map_or("", |(_, line)| line);
        let sizes = first.strip_prefix(HEADER).and_then(|rest| rest.trim_start().split_once('\t'));
        let number = |text: &str| text.parse::<u32>().ok().map(|n| n as usize);
        let Some((Some(source_words), Some(target_words))) = sizes.map(|(s, t)| (number(s), number(t)))
        else {
            return Err((1, format!("not a shortlist: it does not begin with {HEADER:?} and two sizes")));
        };
        let mut lists: HashMap<&str, Vec<u32>> = HashMap::new();
        for (n, line) in lines {
            let (word, list) = line.split_once('\t').ok_or((n, "there is no tab".to_owned()))?;
            let known = word == "*" || number(word).is_some_and(|w| w < source_words);
            if !known {
                return Err((n, format!("{word:?} is not one of {source_words} source words")));
            }
            let mut words = Vec::new();
            for text in list.split_ascii_whitespace() {
                match number(text).filter(|&w| w < target_words) {
                    Some(w) => words.push(w as u32),
                    None => return Err((n, format!("{text:?} is not one of {target_words} target words"))),
                }
            }
            words.sort_unstable();
            if lists.insert(word, words).is_some() {
                return Err((n, format!("source word {word} comes twice")));
            }
        }
        let always = lists.remove("*").unwrap_or_default();
        // Size by the largest listed word: a header alone must not allocate memory.
        let most = lists.keys().filter_map(|w| number(w)).max().map_or(0, |w| w + 1);
        let mut found = vec![Vec::new(); most];
        for (word, list) in lists {
            if let Some(place) = number(word).and_then(|w| found.get_mut(w)) {
                *place = list;
            }
        }
        let lists = found.into_iter().collect();
        Ok(Shortlist { source_words, target_words, always, lists, with_source: false })
    }
}

/// The target words of all sentences of a batch, ascending; each sentence has a subset of them.
#[derive(Debug)]
pub(super) struct BatchShortlist {
    words: Vec<u32>,
    /// For each sentence, the indices of its words in `words`, ascending.
    sentences: Vec<Vec<u32>>,
}

impl BatchShortlist {
    /// The shortlist of these source sentences; the words in `always` are allowed in each.
    pub(super) fn new(list: &Shortlist, sources: &[&[u32]], always: &[u32]) -> Self {
        let (mut of_batch, mut of_sentence) = (WordSet::default(), WordSet::default());
        let sentence = |source: &&[u32]| {
            list.for_each_list(source, |words| of_sentence.insert(words));
            of_sentence.insert(always);
            let mut words = Vec::new();
            of_sentence.drain(&mut words);
            of_batch.insert(&words);
            words
        };
        let mut sentences: Vec<Vec<u32>> = sources.iter().map(sentence).collect();
        of_batch.replace_by_ranks(sentences.iter_mut().flatten());
        let mut words = Vec::new();
        of_batch.drain(&mut words);
        BatchShortlist { words, sentences }
    }

    /// The words of all sentences.
    pub(super) fn words(&self) -> &[u32] {
        &self.words
    }

    /// The words of one sentence, as indices into [`Self::words`].
    pub(super) fn of(&self, sentence: usize) -> &[u32] {
        &self.sentences[sentence]
    }

    /// The index of a word among those of the sentence.
    pub(super) fn find(&self, sentence: usize, word: u32) -> Option<usize> {
        let place = self.words.binary_search(&word).ok()? as u32;
        self.of(sentence).binary_search(&place).ok()
    }

    /// Masks all but the words of the sentence in a row over the whole vocabulary.
    pub(super) fn mask_others(&self, sentence: usize, log_p: &mut [f32]) {
        let (mut start, end) = (0, log_p.len());
        let listed = self.of(sentence).iter().map(|&place| self.words[place as usize] as usize);
        for word in listed.take_while(|&word| word < end) {
            log_p[start..word].fill(f32::NEG_INFINITY);
            start = word + 1;
        }
        log_p[start..].fill(f32::NEG_INFINITY);
    }
}

/// A set of words as bits.
#[derive(Debug, Default)]
struct WordSet {
    bits: Vec<u64>,
}

impl WordSet {
    fn insert(&mut self, words: &[u32]) {
        for &word in words {
            let at = word as usize / 64;
            if at >= self.bits.len() {
                self.bits.resize(at + 1, 0);
            }
            self.bits[at] |= 1 << (word % 64);
        }
    }

    /// Moves its words to the end of `to`, ascending.
    fn drain(&mut self, to: &mut Vec<u32>) {
        for (at, bits) in self.bits.iter_mut().enumerate() {
            while *bits != 0 {
                to.push(at as u32 * 64 + bits.trailing_zeros());
                *bits &= *bits - 1;
            }
        }
    }

    /// Replaces words of the set by their indices in it.
    fn replace_by_ranks<'a>(&self, words: impl Iterator<Item = &'a mut u32>) {
        let mut before = Vec::with_capacity(self.bits.len());
        let mut count = 0;
        for bits in &self.bits {
            before.push(count);
            count += bits.count_ones();
        }
        for word in words {
            let at = *word as usize / 64;
            *word = before[at] + (self.bits[at] & ((1 << (*word % 64)) - 1)).count_ones();
        }
    }
}

fn write_list(file: &mut impl Write, word: &str, list: &[u32]) -> std::io::Result<()> {
    write!(file, "{word}\t")?;
    for (i, target) in list.iter().enumerate() {
        write!(file, "{}{target}", if i == 0 { "" } else { " " })?;
    }
    writeln!(file)
}

/// The probabilities of target words given each source word, by expectation-maximisation. An
/// additional source word, the null word, comes after the others: it is in every sentence, and
/// accounts for target words that match none of them.
fn translations(pairs: &[&(&[u32], &[u32])], source_words: usize) -> Vec<HashMap<u32, Entry>> {
    let null_word = source_words as u32;
    let mut table: Vec<HashMap<u32, Entry>> = vec![HashMap::new(); source_words + 1];
    for (source, target) in pairs {
        for s in source.iter().chain([&null_word]) {
            let start = Entry { probability: 1.0, count: 0.0 };
            target.iter().for_each(|&t| _ = table[*s as usize].insert(t, start));
        }
    }
    let mut shares = Vec::new();
    for _ in 0..ROUNDS {
        // Add in the order of the pairs, so that the result is deterministic.
        let mut totals = vec![0.0f32; source_words + 1];
        for (source, target) in pairs {
            for t in *target {
                shares.clear();
                shares.extend(source.iter().chain([&null_word]).map(|&s| table[s as usize][t].probability));
                let sum: f32 = shares.iter().sum();
                for (&s, share) in source.iter().chain([&null_word]).zip(&shares) {
                    let part = share / sum;
                    totals[s as usize] += part;
                    if let Some(entry) = table[s as usize].get_mut(t) {
                        entry.count += part;
                    }
                }
            }
        }
        for (entries, total) in table.iter_mut().zip(totals) {
            for entry in entries.values_mut() {
                // A lower bound, so that no sum to divide by is zero.
                *entry = Entry { probability: (entry.count / total).max(1e-12), count: 0.0 };
            }
        }
    }
    table.truncate(source_words);
    table
}

/// The translations of each source word, likeliest first, with their probabilities of at least
/// `least`: IBM model 1 (Brown et al.), learned from pairs of sentences over `source_words` source
/// words and any number of target words. Source ids must be below `source_words`.
///
/// ```
/// use regard_core::decode::word_translations;
/// let pairs: [(&[u32], &[u32]); 3] = [(&[0, 1], &[5, 6]), (&[0, 2], &[5, 7]), (&[1], &[6])];
/// let table = word_translations(&pairs, 3, 0.5);
/// assert_eq!(table.iter().map(|words| words[0].0).collect::<Vec<_>>(), [5, 6, 7]);
/// ```
pub fn word_translations(
    pairs: &[(&[u32], &[u32])],
    source_words: usize,
    least: f32,
) -> Vec<Vec<(u32, f32)>> {
    let inside = |pair: &&(&[u32], &[u32])| pair.0.iter().all(|&s| (s as usize) < source_words);
    let pairs: Vec<_> = pairs.iter().filter(inside).collect();
    let likely = |entries: HashMap<u32, Entry>| {
        let found = entries.into_iter().map(|(t, entry)| (t, entry.probability));
        let mut words: Vec<(u32, f32)> = found.filter(|(_, p)| *p >= least).collect();
        words.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        words
    };
    translations(&pairs, source_words).into_iter().map(likely).collect()
}

/// The likeliest words, ascending.
fn likeliest(entries: HashMap<u32, Entry>, count: usize) -> Vec<u32> {
    let mut words: Vec<(u32, f32)> = entries.into_iter().map(|(t, entry)| (t, entry.probability)).collect();
    words.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut words: Vec<u32> = words.into_iter().take(count).map(|(t, _)| t).collect();
    words.sort_unstable();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Word s becomes word 10 + s; 5 is everywhere.
    fn pairs() -> Vec<(Vec<u32>, Vec<u32>)> {
        let sentence = |a: u32, b: u32| (vec![a, b], vec![5, 10 + b, 10 + a]);
        (0..4).flat_map(|a| (0..4).map(move |b| sentence(a, b))).collect()
    }

    fn learned(size: ShortlistSize) -> Shortlist {
        let pairs = pairs();
        let pairs: Vec<_> = pairs.iter().map(|(source, target)| (&source[..], &target[..])).collect();
        Shortlist::learn(&pairs, (5, 20), size)
    }

    #[test]
    fn a_word_brings_its_translation_and_the_frequent_always_come() {
        let size = ShortlistSize { frequent: 1, per_word: 1 };
        let list = learned(size);
        let mut words = Vec::new();
        list.words(&[2], &mut words);
        assert_eq!(words, [5, 12]);
        list.words(&[3, 0, 3], &mut words);
        assert_eq!(words, [5, 10, 13]);
        // One word that never occurred, and one outside the vocabulary.
        list.words(&[4, 99], &mut words);
        assert_eq!(words, [5]);
        assert_eq!(list, learned(size));
    }

    #[test]
    fn a_batch_has_the_words_of_its_sentences() {
        let list = learned(ShortlistSize { frequent: 1, per_word: 1 });
        let batch = BatchShortlist::new(&list, &[&[2], &[3, 0]], &[0]);
        assert_eq!(batch.words(), [0, 5, 10, 12, 13]);
        assert_eq!((batch.of(0), batch.of(1)), (&[0, 1, 3][..], &[0, 1, 2, 4][..]));
        assert_eq!([12, 13, 7].map(|word| batch.find(0, word)), [Some(2), None, None]);
        let mut row = [1.0; 15];
        batch.mask_others(1, &mut row);
        let left: Vec<usize> = (0..15).filter(|&word| row[word] == 1.0).collect();
        assert_eq!(left, [0, 5, 10, 13]);
    }

    #[test]
    fn files_are_read_again_and_faults_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shortlist.txt");
        let list = learned(ShortlistSize::default());
        list.save(&path).unwrap();
        assert_eq!(Shortlist::load(&path).unwrap(), list);
        for (text, fault) in [
            ("", "txt:1: not a shortlist"),
            ("# regard shortlist\t5\n", "txt:1: not a shortlist"),
            ("# regard shortlist\t5\t20\n0 1 2\n", "txt:2: there is no tab"),
            ("# regard shortlist\t5\t20\n*\t1\n5\t1\n", "txt:3: \"5\" is not one of 5 source words"),
            ("# regard shortlist\t5\t20\n*\t1 20\n", "txt:2: \"20\" is not one of 20 target words"),
            ("# regard shortlist\t5\t20\n1\t1\n1\t2\n", "txt:3: source word 1 comes twice"),
        ] {
            std::fs::write(&path, text).unwrap();
            let message = Shortlist::load(&path).unwrap_err().to_string();
            assert!(message.contains(fault), "{text:?}: {message}");
        }
        std::fs::write(&path, "# regard shortlist\t4000000000\t20\n").unwrap();
        assert_eq!(Shortlist::load(&path).unwrap().vocabularies(), (4_000_000_000, 20));
    }
}
