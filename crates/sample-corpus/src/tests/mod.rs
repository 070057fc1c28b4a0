//! Hand-written pairs for each phenomenon, and what must hold for all that the grammar draws.

mod corpus;
mod numbers;
mod phrases;
mod verbs;

use super::lexicon::{ADJECTIVES, Adjective, NOUNS, preposition};
use super::numbers::{date, english};
use super::syntax::{
    Clause, Determiner, NOT, NounPhrase, Object, Person, Predicate, Sentence, Subject, Tense,
};
use super::verbs::find_verb;
use super::{SHOWCASE, is_reserved};
use Tense::{Future, Past, Present, Progressive};

const YES_NO: (&str, &str) = ("", "est-ce que");

/// Both sides of a sentence.
fn write(sentence: &Sentence) -> (String, String) {
    (super::english::write(sentence).0, super::french::write(sentence))
}

#[track_caller]
fn check(sentence: Sentence, english: &str, french: &str) {
    let (en, fr) = write(&sentence);
    assert_eq!((en.as_str(), fr.as_str()), (english, french));
}

#[track_caller]
fn says(clause: Clause, english: &str, french: &str) {
    check(Sentence::Statement(clause), english, french);
}

/// "I see …", "Je vois …".
#[track_caller]
fn seen(phrase: &str, french: &str) {
    says(act("I", Present, "see", phrase), &format!("I see {phrase}."), &format!("Je vois {french}."));
}

fn adjective(en: &str) -> &'static Adjective {
    ADJECTIVES.iter().find(|a| a.en == en).expect("an adjective of the lexicon")
}

/// The person whose word of a list it is.
fn person(list: &str, word: &str) -> Option<Person> {
    list.split(' ').position(|w| w == word).map(|i| Person::ALL[i])
}

/// A noun phrase by its English: "the small grey cows", "my friend's old car", "twenty-one apples".
fn phrase(text: &str) -> NounPhrase {
    let (first, rest) = match text.find("' ").or_else(|| text.find("'s ")) {
        Some(end) => (&text[..end], text[end..].split_once(' ').unwrap().1),
        None => text.split_once(' ').unwrap(),
    };
    let determiner = match first {
        "the" => Determiner::The,
        "a" | "an" | "some" | "any" => Determiner::Indefinite,
        "this" | "these" => Determiner::This,
        owner if owner.contains(' ') => Determiner::Owner(Box::new(phrase(owner))),
        word => person("my your his her our their", word).map_or_else(
            || Determiner::Count((0..=100).find(|&n| english(n) == word).expect("a number")),
            Determiner::Possessive,
        ),
    };
    let mut adjectives: Vec<&str> = rest.split(' ').collect();
    let noun = adjectives.pop().unwrap();
    let found = NOUNS.iter().find(|n| n.en == noun || n.en_plural == noun).expect("a noun");
    let phrase = NounPhrase::new(determiner, found, found.en != noun);
    NounPhrase { adjectives: adjectives.into_iter().map(adjective).collect(), ..phrase }
}

fn subject(text: &str) -> Subject {
    match (person("I you he she we they", text), text.split_once(" and ")) {
        (Some(person), _) => Subject::Pronoun(person),
        (_, Some((a, b))) => Subject::Pair(phrase(a), phrase(b)),
        _ => Subject::Phrase(phrase(text)),
    }
}

fn object(text: &str) -> Object {
    person("me you him her us them", text).map_or_else(|| Object::Phrase(phrase(text)), Object::Pronoun)
}

/// A clause with a verb and an object, if that is not empty.
fn act(who: &str, tense: Tense, verb: &str, what: &str) -> Clause {
    let clause = Clause::act(subject(who), tense, find_verb(verb));
    if what.is_empty() { clause } else { clause.with_object(object(what)) }
}

fn is(who: &str, what: &str) -> Clause {
    Clause::new(subject(who), Present, Predicate::Be(adjective(what)))
}

fn at(clause: Clause, place: &str, what: &str) -> Clause {
    Clause { place: Some((preposition(place), phrase(what))), ..clause }
}

/// The phrase with a relative clause of which it is the object.
fn whom(head: &str, who: &str, tense: Tense, verb: &str) -> NounPhrase {
    let head = phrase(head);
    let relative = act(who, tense, verb, "").with_object(Object::Gap(Some(head.agreement())));
    NounPhrase { relative: Some(Box::new(relative)), ..head }
}

#[test]
fn showcase_is_what_the_grammar_says_and_reserved() {
    let waiting = Clause { polarity: NOT, ..act("my mother", Future, "wait for", "the old woman") };
    let sleeping = at(act("a beautiful black bird", Progressive, "sleep", ""), "in", "the garden");
    let going = at(act("we", Future, "go", ""), "to", "the school");
    let (en, fr) = date(1, 5);
    let going = Clause { time: Some((format!("on {en}"), format!("le {fr}"))), ..going };
    let flowers = Subject::Phrase(whom("the flowers", "she", Past, "buy"));
    let sentences = [
        Sentence::Statement(waiting),
        Sentence::Statement(sleeping),
        Sentence::Question(YES_NO, act("the girls", Past, "close", "twenty-one boxes")),
        Sentence::Statement(going),
        Sentence::Statement(Clause { subject: flowers, ..is("the flowers", "blue") }),
    ];
    for (sentence, (en, fr)) in sentences.into_iter().zip(SHOWCASE) {
        assert!(is_reserved(&super::english::write(&sentence).1), "{en}");
        check(sentence, en, fr);
    }
}
