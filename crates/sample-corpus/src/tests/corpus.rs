//! What holds for every pair, and for the two sets.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::LazyLock;

use crate::lexicon::{ADJECTIVES, Kind, NOUNS};
use crate::numbers::{self, month, weekday};
use crate::rng::Rng;
use crate::verbs::{Frame, VERBS};
use crate::{Corpus, SHOWCASE, corpus, default, words};

use super::write;

/// Written apart from the grammar's own rule: the letters, and the words of the lexicon with an
/// aspirated h.
fn vowel_sound(word: &str) -> bool {
    let word = word.trim_end_matches(['.', ',']);
    match word {
        "héros" | "hibou" | "hiboux" | "huit" | "onze" => false,
        _ => word.starts_with(['a', 'à', 'â', 'e', 'é', 'è', 'ê', 'h', 'i', 'o', 'ô', 'œ', 'u', 'y']),
    }
}

fn all(corpus: &Corpus) -> impl Iterator<Item = &(String, String)> {
    corpus.train.iter().chain(&corpus.held_out)
}

static LARGE: LazyLock<Corpus> = LazyLock::new(|| corpus(8, 30_000));

#[test]
fn default_has_the_promised_size() {
    let corpus = default();
    assert_eq!((corpus.train.len(), corpus.held_out.len()), (12_000, 500));
    let distinct: BTreeSet<_> = all(&corpus).map(|(en, _)| en).collect();
    assert_eq!(distinct.len(), 12_500, "each English sentence once, in one of the sets");
    let trained: BTreeSet<_> = corpus.train.iter().map(|(_, fr)| fr).collect();
    // "his" and "her" are both "son": the French may not give a held-out sentence away either.
    assert_eq!(corpus.held_out.iter().filter(|(_, fr)| trained.contains(fr)).count(), 0);
}

#[test]
fn small_and_large_corpora() {
    for pairs in [0, 1, 23, 24, 1_000] {
        let corpus = corpus(3, pairs);
        assert_eq!(corpus.train.len(), pairs);
        assert!(corpus.held_out.len() <= pairs / 24, "{pairs}: {}", corpus.held_out.len());
    }
    assert_eq!((LARGE.train.len(), LARGE.held_out.len()), (30_000, 500));
}

#[test]
fn a_seed_decides_everything() {
    assert_eq!(corpus(5, 300), corpus(5, 300));
    assert_ne!(corpus(5, 300).train, corpus(6, 300).train);
    // The same on every platform; a change of the grammar changes it too.
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let text: Vec<u8> =
        all(&corpus(5, 300)).flat_map(|(en, fr)| format!("{en}\t{fr}\n").into_bytes()).collect();
    assert_eq!(text.into_iter().fold(0xcbf2_9ce4_8422_2325, fnv), FINGERPRINT);
}

const FINGERPRINT: u64 = 10_912_589_706_972_769_335;

#[test]
fn one_english_sentence_has_one_french_sentence() {
    let mut rng = Rng::new(11);
    let mut french = BTreeMap::new();
    for _ in 0..60_000 {
        let (en, fr) = write(&rng.sentence());
        let known = french.entry(en.clone()).or_insert_with(|| fr.clone());
        assert_eq!(*known, fr, "two translations of {en:?}");
    }
    assert!(french.len() > 40_000, "{} distinct", french.len());
}

#[test]
fn every_pair_is_well_formed() {
    for (en, fr) in all(&LARGE) {
        for text in [en, fr] {
            assert!(!text.contains("  ") && text.trim() == text, "{text:?}");
            assert!(text.starts_with(char::is_uppercase), "{text:?}");
        }
        assert_eq!(en.ends_with('?'), fr.ends_with(" ?"), "{en:?} {fr:?}");
        assert!(en.ends_with('?') || (en.ends_with('.') && fr.ends_with('.')), "{en:?} {fr:?}");
        let length = en.split(' ').count();
        assert!((3..=14).contains(&length), "{en:?}");
    }
}

#[test]
fn english_has_a_before_consonants_and_an_before_vowels() {
    for (en, _) in all(&LARGE) {
        let lower = en.to_lowercase();
        let words: Vec<&str> = lower.split(' ').collect();
        for pair in words.windows(2) {
            let vowel = pair[1].starts_with(['a', 'e', 'i', 'o', 'u']);
            assert!(!(pair[0] == "a" && vowel || pair[0] == "an" && !vowel), "{en:?}");
        }
    }
}

#[test]
fn french_elides_and_contracts() {
    for (_, fr) in all(&LARGE) {
        let lower = fr.to_lowercase().replace("aujourd'hui", "aujourdhui").replace("qu'est-ce", "quest-ce");
        let words: Vec<&str> = lower.split(' ').collect();
        for word in &words {
            if let Some((stem, rest)) = word.split_once('\'') {
                assert!(["j", "m", "l", "n", "d", "qu", "s"].contains(&stem), "{fr:?}");
                assert!(vowel_sound(rest), "elision before a consonant: {fr:?}");
            }
        }
        for pair in words.windows(2) {
            let before_consonants =
                ["je", "me", "le", "la", "ne", "de", "que", "ce", "ma", "sa", "beau", "nouveau"];
            assert!(!before_consonants.contains(&pair[0]) || !vowel_sound(pair[1]), "{fr:?}");
            let before_vowels = ["cet", "bel", "nouvel", "vieil"];
            assert!(!before_vowels.contains(&pair[0]) || vowel_sound(pair[1]), "{fr:?}");
            assert!(!matches!(pair, ["de" | "à", "le" | "les"] | ["de", "des" | "du"]), "{fr:?}");
            assert!(!matches!(pair, ["si", "il" | "ils"]), "{fr:?}");
            let before = ["petits", "petites", "grands", "grandes", "beaux", "belles", "vieux", "vieilles"];
            assert!(pair[0] != "des" || !before.contains(&pair[1]), "{fr:?}");
        }
    }
}

#[test]
fn ne_has_its_second_half() {
    for (_, fr) in all(&LARGE) {
        let lower = format!(" {}", fr.to_lowercase());
        let ne = lower.matches(" ne ").count() + lower.matches(" n'").count();
        let second = ["pas", "jamais", "plus"].map(|w| words(&lower).filter(|x| *x == w).count());
        // "plus" compares, too.
        assert!(ne <= second.iter().sum::<usize>() && second[0] + second[1] <= ne, "{fr:?}");
    }
}

/// Content words that never stand together in training, found in the plain text and not in the
/// trees.
#[test]
fn held_out_sentences_are_new_combinations_of_known_words() {
    for (seed, pairs) in [(2017, 12_000), (1, 12_000), (2, 6_000)] {
        let corpus = corpus(seed, pairs);
        let mut together = HashSet::new();
        let mut known = HashSet::new();
        for (en, fr) in &corpus.train {
            let en: Vec<&str> = words(en).collect();
            known.extend(words(fr).chain(en.iter().copied()));
            for a in &en {
                together.extend(en.iter().map(|b| (*a, *b)));
            }
        }
        assert_eq!(corpus.held_out.len(), (pairs / 24).min(500));
        for (en, fr) in &corpus.held_out {
            for word in words(en).chain(words(fr)) {
                assert!(known.contains(word), "{word:?} of {en:?} is not in training");
            }
            let en: Vec<&str> = words(en).collect();
            let new = en.iter().any(|a| en.iter().any(|b| !together.contains(&(*a, *b))));
            assert!(new, "nothing new in {en:?}");
        }
    }
}

#[test]
fn the_showcase_is_new_and_its_words_are_known() {
    for (seed, pairs) in [(2017, 12_000), (1, 12_000), (2, 12_000)] {
        let train = corpus(seed, pairs).train;
        let known: HashSet<&str> = train.iter().flat_map(|(en, fr)| words(en).chain(words(fr))).collect();
        for (en, fr) in SHOWCASE {
            assert!(train.iter().all(|pair| pair.0 != en && pair.1 != fr), "{en:?} is trained on");
            for word in words(en).chain(words(fr)) {
                assert!(known.contains(word), "{word:?} of {en:?} is not in training");
            }
        }
    }
}

#[test]
fn training_covers_the_lexicon() {
    let train = default().train;
    let en: HashSet<&str> = train.iter().flat_map(|(en, _)| words(en)).collect();
    let fr: HashSet<&str> = train.iter().flat_map(|(_, fr)| words(fr)).collect();
    for noun in NOUNS.iter().filter(|noun| noun.kind != Kind::Money) {
        assert!(en.contains(noun.en) && fr.contains(noun.fr), "{}", noun.en);
        let never_plural = noun.is_mass() || noun.kind == Kind::Kin;
        assert!(never_plural || en.contains(noun.en_plural) && fr.contains(noun.fr_plural), "{}", noun.en);
    }
    for adjective in ADJECTIVES.iter() {
        assert!(en.contains(adjective.en) && fr.contains(adjective.fr[1]), "{}", adjective.en);
    }
    for verb in VERBS.iter().filter(|verb| verb.frame != Frame::Special) {
        let forms = verb.en.map(|form| form.split(' ').next().unwrap_or(form));
        assert!(forms[..3].iter().all(|form| en.contains(form)), "{forms:?}");
        let after_modals = !verb.state && matches!(verb.frame, Frame::Transitive | Frame::Intransitive);
        assert!(!after_modals || fr.contains(verb.infinitive), "{}", verb.infinitive);
    }
    for (name, nom) in (0..12).map(month).chain((0..7).map(weekday)) {
        assert!(en.contains(name) && fr.contains(nom), "{name}");
    }
    for n in 2..100 {
        assert!(en.contains(numbers::english(n).as_str()), "{n}");
    }
}
