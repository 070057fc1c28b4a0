use super::*;
use std::collections::HashSet;

fn some(test: bool) -> impl Iterator<Item = Article> {
    (0..2000).map(move |i| Article::write(3, test, Key::new(5).child(i)))
}

#[test]
fn every_word_is_listed() {
    let vocabulary = Vocabulary::new();
    for article in some(false).chain((0..200).map(|i| Article::write(6, true, Key::new(1).child(i)))) {
        let words = article.words.iter().chain(&article.question);
        assert!(words.clone().all(|w| vocabulary.0.contains_key(w)), "{article:?}");
    }
    let numbers: HashSet<u32> = vocabulary.0.values().copied().collect();
    assert_eq!(numbers.len(), vocabulary.len());
    assert!(vocabulary.0.values().all(|&n| (n as usize) < vocabulary.len()));
}

#[test]
fn the_answer_answers() {
    let mut pronouns = 0;
    for article in some(true) {
        let answer = article.answer_text();
        let words: Vec<&str> = answer.split(' ').collect();
        let fits = match article.kind {
            Kind::Home => CITIES.contains(&words[0]) && words.len() == 1,
            Kind::Thing => words.len() == 3 && COLOURS.contains(&words[1]) && THINGS.contains(&words[2]),
            Kind::Colour => COLOURS.contains(&words[0]) && words.len() == 1,
            Kind::Work => JOBS.contains(&words[0]) && words.len() == 1,
            Kind::Food => FOODS.iter().any(|f| f[..] == words[..]),
            Kind::Owner => WOMEN.contains(&words[0]) || MEN.contains(&words[0]),
        };
        assert!(fits, "{article:?}");
        // The person in question is named in the article, in or before the sentence with the
        // answer.
        let named = match article.kind {
            Kind::Owner => words[0],
            _ => article.question.iter().find(|w| WOMEN.contains(w) || MEN.contains(w)).unwrap(),
        };
        let told = &article.words[..article.sentences[article.answer_sentence()].end];
        assert!(told.contains(&named), "{article:?}");
        assert!((1..=3).contains(&article.candidates), "{article:?}");
        pronouns += usize::from(article.pronoun);
    }
    assert!((200..1200).contains(&pronouns), "{pronouns}");
}

#[test]
fn a_pronoun_belongs_to_the_name_before_it() {
    for article in some(false) {
        let mut last = "";
        for word in &article.words {
            if WOMEN.contains(word) || MEN.contains(word) {
                last = word;
            }
            assert!(*word != "she" || WOMEN.contains(&last));
            assert!(*word != "he" || MEN.contains(&last));
        }
    }
}

/// The person and the city of every fact about a home, with pronouns resolved.
fn homes(article: &Article) -> Vec<(&'static str, &'static str)> {
    let (mut last, mut all) = ("", Vec::new());
    for word in &article.words {
        if WOMEN.contains(word) || MEN.contains(word) {
            last = word;
        }
        if CITIES.contains(word) {
            all.push((last, *word));
        }
    }
    all
}

#[test]
fn what_is_asked_in_tests_is_never_told_in_training() {
    let trained: HashSet<_> = some(false).flat_map(|a| homes(&a)).collect();
    let mut asked = 0;
    for article in some(true).filter(|a| a.kind == Kind::Home) {
        let who = article.question.iter().find(|w| WOMEN.contains(w) || MEN.contains(w)).unwrap();
        let city = article.words[article.answer.start];
        assert!(!trained.contains(&(*who, city)), "{who} {city}");
        asked += 1;
    }
    assert!(asked > 200 && trained.len() > 100, "{asked} {}", trained.len());
}
