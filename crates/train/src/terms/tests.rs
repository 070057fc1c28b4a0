use super::*;
use regard_core::text::{TextSample, TokenizerSettings};
use regard_sample_corpus as builtin;

/// Annotates the pairs of the sample corpus.
struct Annotated {
    terms: Terms,
    pairs: Vec<(Vec<u32>, Vec<u32>)>,
}

fn annotated(settings: TermsConfig, separate: bool) -> Annotated {
    let corpus = builtin::corpus(1, 400).train;
    let (mut source, mut target) = (TextSample::default(), TextSample::default());
    source.extend(corpus.iter().map(|pair| &pair.0));
    target.extend(corpus.iter().map(|pair| &pair.1));
    let vocabulary = TokenizerSettings { size: Some(500), separate, ..TokenizerSettings::default() };
    let tokenizers = TokenizerPair::train_with(&source, &target, &vocabulary, &[], true).unwrap();
    let ids = |(from, to): &(String, String)| {
        (tokenizers.source().encode(from).unwrap(), tokenizers.target().encode(to).unwrap())
    };
    let pairs: Vec<_> = corpus.iter().map(ids).collect();
    let read = |i: usize| Ok(pairs[i].clone());
    let tokens = *tokenizers.terms().unwrap();
    let of_corpus = lexicon::Pairs { len: pairs.len(), read: &read };
    let terms = Terms::learn(settings, tokens, &tokenizers, 100, of_corpus).unwrap();
    Annotated { terms, pairs }
}

const ALL: TermsConfig = TermsConfig { share: 1.0, max_words: 3, other_forms: 0.0, other_words: 0.0 };

impl Annotated {
    fn of(&self, i: usize, seed: u64) -> Option<Vec<u32>> {
        self.terms.annotate(&self.pairs[i].0, &self.pairs[i].1, seed).unwrap()
    }

    /// The terms of an annotated sentence with their translations, and the sentence without them.
    fn taken_apart(&self, ids: &[u32]) -> (Vec<(String, String)>, Vec<u32>) {
        let (tokens, source) = (self.terms.tokens, self.terms.tokenizers.source());
        let (mut found, mut rest, mut at) = (Vec::new(), Vec::new(), 0);
        while at < ids.len() {
            if ids[at] != tokens.begin {
                rest.push(ids[at]);
                at += 1;
                continue;
            }
            let place = |token| at + ids[at..].iter().position(|id| *id == token).unwrap();
            let (is, end) = (place(tokens.is), place(tokens.end));
            let (term, target) = (&ids[at + 1..is], &ids[is + 1..end]);
            found.push((source.decode(term), source.decode(target)));
            rest.extend(term);
            at = end + 1;
        }
        (found, rest)
    }
}

#[test]
fn words_have_their_translations_behind_them() {
    let all = annotated(ALL, false);
    let (mut sentences, mut words, mut most) = (0, 0, 0);
    for i in 0..all.pairs.len() {
        let Some(ids) = all.of(i, 7 + i as u64) else { continue };
        let (found, rest) = all.taken_apart(&ids);
        assert_eq!(rest, all.pairs[i].0, "the sentence itself is unchanged");
        let target = all.terms.tokenizers.target().decode(&all.pairs[i].1).to_lowercase();
        for (term, translation) in &found {
            assert!(target.contains(&translation.to_lowercase()), "{term} = {translation}: {target}");
            assert!(term.chars().all(|c| c.is_alphabetic() || c == ' '), "{term}");
        }
        sentences += 1;
        words += found.len();
        most = most.max(found.len());
    }
    assert!(sentences > all.pairs.len() / 2, "{sentences} of {}", all.pairs.len());
    assert_eq!(most, 3);
    assert!(words > sentences, "{words} in {sentences}");
    let cat: Vec<String> = (0..all.pairs.len())
        .filter_map(|i| all.of(i, i as u64))
        .flat_map(|ids| all.taken_apart(&ids).0)
        .filter(|(term, _)| term == "cat")
        .map(|(_, translation)| translation)
        .collect();
    assert!(!cat.is_empty() && cat.iter().all(|translation| translation == "chat"), "{cat:?}");
}

#[test]
fn other_words_stand_in_place_of_annotated_ones() {
    let all = annotated(TermsConfig { other_words: 1.0, ..ALL }, false);
    let (mut replaced, mut kept) = (0, 0);
    for i in 0..all.pairs.len() {
        let Some(ids) = all.of(i, 7 + i as u64) else { continue };
        let source = all.terms.tokenizers.source();
        let (found, rest) = all.taken_apart(&ids);
        let (before, after) = (source.decode(&all.pairs[i].0), source.decode(&rest));
        let target = all.terms.tokenizers.target().decode(&all.pairs[i].1).to_lowercase();
        for (term, translation) in &found {
            assert!(target.contains(&translation.to_lowercase()), "{term} = {translation}: {target}");
            let of_sentence = format!(" {before} ").contains(&format!(" {} ", term.trim()));
            *if of_sentence { &mut kept } else { &mut replaced } += 1;
        }
        assert_eq!(before.split(' ').count(), after.split(' ').count(), "{before} / {after}");
        let first = |text: &str| text.starts_with(char::is_uppercase);
        assert_eq!(first(&before), first(&after), "{before} / {after}");
    }
    // Terms of two words stay.
    assert!(replaced > 3 * kept, "{replaced} replaced, {kept} kept");
}

#[test]
fn pair_and_seed_decide_and_nothing_else() {
    let settings = TermsConfig { share: 0.3, ..ALL };
    let (one, two) = (annotated(settings, false), annotated(settings, false));
    let of =
        |all: &Annotated, seed: u64| -> Vec<_> { (0..200).map(|i| all.of(i, seed ^ i as u64)).collect() };
    let found = of(&one, 1 << 20);
    assert_eq!(found, of(&two, 1 << 20));
    assert_ne!(found, of(&one, 1 << 21));
    let share = found.iter().flatten().count();
    assert!((20..90).contains(&share), "{share} of 200");
    let none = annotated(TermsConfig { share: 0.0, ..ALL }, false);
    assert!(of(&none, 3).iter().all(Option::is_none));
}

#[test]
fn the_source_vocabulary_spells_translations() {
    let all = annotated(ALL, true);
    assert!(!all.terms.tokenizers.is_joint());
    let found = (0..50).filter_map(|i| all.of(i, i as u64)).flat_map(|ids| all.taken_apart(&ids).0);
    assert!(found.count() > 20);
    // Only the source has these tokens.
    assert!(TermTokens::find(all.terms.tokenizers.target()).is_none());
}

#[test]
fn a_sentence_that_would_be_too_long_stays_as_it_is() {
    let mut all = annotated(ALL, false);
    let i = (0..50).find(|&i| all.of(i, 1).is_some()).unwrap();
    all.terms.max_tokens = all.of(i, 1).unwrap().len();
    assert!(all.of(i, 1).is_some());
    all.terms.max_tokens -= 1;
    assert!(all.of(i, 1).is_none());
}

#[test]
fn a_word_is_spelt_as_inside_of_a_sentence() {
    let mut sample = TextSample::default();
    // Repeat them, so that every letter gets a piece; the brackets have none.
    sample.extend(["Zwei Hunde und zwei Katzen", "Drei HUNDE", "Es sind drei"].repeat(5));
    let vocabulary = TokenizerSettings { size: Some(300), ..TokenizerSettings::default() };
    let tokenizer = regard_core::text::Tokenizer::train(&[&sample], &vocabulary).unwrap();
    let mut words = words::Words::new(&tokenizer);
    for text in ["Zwei Hunde", "Zwei Katzen", "Es sind zwei!", "Drei (Hunde).", "HUNDE"] {
        words.add(&tokenizer.encode(text).unwrap());
    }
    let spelt = |word: &str| words.get(words.number(word).unwrap()).spelling().to_owned();
    assert_eq!([spelt("zwei"), spelt("hunde"), spelt("drei")], ["zwei", "Hunde", "Drei"]);
    let found = words.find(&tokenizer.encode("(zwei) Hunde, es").unwrap());
    let numbers: Vec<u32> = found.iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers, [words.number("zwei").unwrap(), words.number("hunde").unwrap()]);
}
