//! Hand-written pairs for each phenomenon, and what must hold for all that the grammar draws.

mod corpus;
mod phrases;
mod verbs;

use super::lexicon::{find_adjective, find_noun};
use super::syntax::{Clause, Determiner, NounPhrase, Object, Person, Predicate, Sentence, Subject, Tense};
use super::verbs::find_verb;
use super::write;

#[track_caller]
fn check(sentence: Sentence, english: &str, french: &str) {
    let (en, fr) = write(&sentence);
    assert_eq!((en.as_str(), fr.as_str()), (english, french));
}

#[track_caller]
fn says(clause: Clause, english: &str, french: &str) {
    check(Sentence::Statement(clause), english, french);
}

fn one(determiner: Determiner, noun: &str) -> NounPhrase {
    NounPhrase::new(determiner, find_noun(noun), false)
}

fn many(determiner: Determiner, noun: &str) -> NounPhrase {
    NounPhrase::new(determiner, find_noun(noun), true)
}

fn the(noun: &str) -> NounPhrase {
    one(Determiner::The, noun)
}

fn my(person: Person, noun: &str) -> NounPhrase {
    one(Determiner::Possessive(person), noun)
}

fn with(mut phrase: NounPhrase, adjectives: &[&str]) -> NounPhrase {
    phrase.adjectives = adjectives.iter().map(|a| find_adjective(a)).collect();
    phrase
}

fn act(subject: impl Into<Subject>, tense: Tense, verb: &str) -> Clause {
    Clause::act(subject.into(), tense, find_verb(verb))
}

fn is(subject: impl Into<Subject>, adjective: &str) -> Clause {
    Clause::new(subject.into(), Tense::Present, Predicate::Be(find_adjective(adjective)))
}

/// "I see …", "Je vois …".
#[track_caller]
fn seen(phrase: NounPhrase, english: &str, french: &str) {
    says(act(Person::I, Tense::Present, "see").with_object(phrase.into()), english, french);
}

impl From<Person> for Subject {
    fn from(person: Person) -> Self {
        Subject::Pronoun(person)
    }
}

impl From<NounPhrase> for Subject {
    fn from(phrase: NounPhrase) -> Self {
        Subject::Phrase(phrase)
    }
}

impl From<NounPhrase> for Object {
    fn from(phrase: NounPhrase) -> Self {
        Object::Phrase(phrase)
    }
}

impl From<Person> for Object {
    fn from(person: Person) -> Self {
        Object::Pronoun(person)
    }
}

#[test]
fn showcase_is_what_the_grammar_says_and_reserved() {
    use super::numbers::Date;
    use super::syntax::{Polarity, Question, Time, content};
    use super::{SHOWCASE, is_reserved};
    let waiting = Clause {
        polarity: Polarity::Not,
        ..act(my(Person::I, "mother"), Tense::Future, "wait for")
            .with_object(with(the("woman"), &["old"]).into())
    };
    let bird = with(one(Determiner::Indefinite, "bird"), &["beautiful", "black"]);
    let sleeping = Clause {
        place: Some((super::lexicon::Preposition::In, the("garden"))),
        ..act(bird, Tense::Progressive, "sleep")
    };
    let closing = act(many(Determiner::The, "girl"), Tense::Past, "close")
        .with_object(many(Determiner::Count(21), "box").into());
    let going = Clause {
        place: Some((super::lexicon::Preposition::To, the("school"))),
        time: Some(Time::On(Date { day: 1, month: 5 })),
        ..act(Person::We, Tense::Future, "go")
    };
    let mut flowers = many(Determiner::The, "flower");
    let bought = act(Person::She, Tense::Past, "buy").with_object(Object::Gap(Some(flowers.agreement())));
    flowers.relative = Some(Box::new(bought));
    let sentences = [
        Sentence::Statement(waiting),
        Sentence::Statement(sleeping),
        Sentence::Question(Question::YesNo, closing),
        Sentence::Statement(going),
        Sentence::Statement(is(flowers, "blue")),
    ];
    for (sentence, (en, fr)) in sentences.into_iter().zip(SHOWCASE) {
        assert!(is_reserved(&content(&sentence)), "{en}");
        check(sentence, en, fr);
    }
}
