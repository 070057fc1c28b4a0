//! The abstract sentence from which both languages are written.

use super::lexicon::{Adjective, Gender, Kind, Noun, Preposition};
use super::numbers::{self, Clock, Date, MINUTES, MONTHS, WEEKDAYS};
use super::verbs::{Frame, Verb};

/// A person of the conjugation. "You" is polite and one man, "they" and "we" are masculine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Person {
    I,
    You,
    He,
    She,
    We,
    They,
}

impl Person {
    pub(super) const ALL: [Person; 6] =
        [Person::I, Person::You, Person::He, Person::She, Person::We, Person::They];
}

/// What verbs, adjectives and participles agree with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Agreement {
    pub(super) person: Person,
    pub(super) gender: Gender,
    pub(super) plural: bool,
}

impl Agreement {
    fn third(gender: Gender, plural: bool) -> Self {
        let person = match (plural, gender) {
            (true, _) => Person::They,
            (false, Gender::Masculine) => Person::He,
            (false, Gender::Feminine) => Person::She,
        };
        Agreement { person, gender, plural }
    }

    pub(super) fn of_person(person: Person) -> Self {
        let gender = if person == Person::She { Gender::Feminine } else { Gender::Masculine };
        Agreement { person, gender, plural: matches!(person, Person::We | Person::They) }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Determiner {
    The,
    /// "a", "some", and "any" under negation.
    Indefinite,
    This,
    Possessive(Person),
    Count(u8),
    /// "the boy's …".
    Owner(Box<NounPhrase>),
}

#[derive(Clone, Debug)]
pub(super) struct NounPhrase {
    pub(super) determiner: Determiner,
    pub(super) noun: &'static Noun,
    pub(super) plural: bool,
    /// At most one that stands before the French noun and one that stands after it, in the English order.
    pub(super) adjectives: Vec<&'static Adjective>,
    /// A clause whose subject or object is [`Subject::Gap`] or [`Object::Gap`].
    pub(super) relative: Option<Box<Clause>>,
}

impl NounPhrase {
    pub(super) fn new(determiner: Determiner, noun: &'static Noun, plural: bool) -> Self {
        NounPhrase { determiner, noun, plural, adjectives: Vec::new(), relative: None }
    }

    pub(super) fn agreement(&self) -> Agreement {
        Agreement::third(self.noun.gender, self.plural)
    }
}

#[derive(Clone, Debug)]
pub(super) enum Subject {
    Pronoun(Person),
    Phrase(NounPhrase),
    Pair(NounPhrase, NounPhrase),
    /// Said already, by a relative pronoun or "who".
    Gap(Agreement),
}

impl Subject {
    /// "Who …?" asks for a third person singular.
    pub(super) fn who() -> Self {
        Subject::Gap(Agreement::of_person(Person::He))
    }

    pub(super) fn agreement(&self) -> Agreement {
        match self {
            Subject::Pronoun(person) => Agreement::of_person(*person),
            Subject::Phrase(phrase) => phrase.agreement(),
            Subject::Pair(a, b) => {
                let feminine = [a, b].iter().all(|n| n.noun.gender == Gender::Feminine);
                Agreement::third(if feminine { Gender::Feminine } else { Gender::Masculine }, true)
            }
            Subject::Gap(agreement) => *agreement,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Object {
    Phrase(NounPhrase),
    Pronoun(Person),
    /// Said already; the participle agrees with it. "What" has no agreement.
    Gap(Option<Agreement>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tense {
    Present,
    /// English simple past, French passé composé (imparfait of states).
    Past,
    Future,
    /// English past progressive, French imparfait.
    Progressive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Polarity {
    Positive,
    Not,
    Never,
    NoLonger,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modal {
    Can,
    Must,
    Want,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Degree {
    More,
    Less,
    As,
}

#[derive(Clone, Debug)]
pub(super) enum Predicate {
    Act {
        verb: &'static Verb,
        /// Present tense only.
        modal: Option<Modal>,
        object: Option<Object>,
        recipient: Option<Object>,
    },
    Be(&'static Adjective),
    Compare(&'static Adjective, Degree, Subject),
    /// "is", with the clause's place.
    Located,
    /// "is … years old".
    Age(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Adverb {
    Often,
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    Yesterday,
    Today,
    Tomorrow,
    EveryDay,
    /// Index into [`WEEKDAYS`].
    Weekday(usize),
    On(Date),
    /// Index into [`MONTHS`].
    Month(usize),
    At(Clock),
}

#[derive(Clone, Debug)]
pub(super) struct Clause {
    pub(super) subject: Subject,
    pub(super) tense: Tense,
    pub(super) polarity: Polarity,
    pub(super) predicate: Predicate,
    pub(super) adverb: Option<Adverb>,
    pub(super) place: Option<(Preposition, NounPhrase)>,
    pub(super) time: Option<Time>,
}

impl Clause {
    pub(super) fn new(subject: Subject, tense: Tense, predicate: Predicate) -> Self {
        let polarity = Polarity::Positive;
        Clause { subject, tense, polarity, predicate, adverb: None, place: None, time: None }
    }

    /// A clause with a verb and nothing else.
    pub(super) fn act(subject: Subject, tense: Tense, verb: &'static Verb) -> Self {
        Clause::new(subject, tense, Predicate::Act { verb, modal: None, object: None, recipient: None })
    }

    /// The same with an object; only for a clause with a verb.
    pub(super) fn with_object(mut self, new: Object) -> Self {
        if let Predicate::Act { object, .. } = &mut self.predicate {
            *object = Some(new);
        }
        self
    }

    /// The same with somebody it goes to; only for a clause with a verb.
    pub(super) fn with_recipient(mut self, new: Object) -> Self {
        if let Predicate::Act { recipient, .. } = &mut self.predicate {
            *recipient = Some(new);
        }
        self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conjunction {
    And,
    But,
    Because,
    When,
    If,
}

#[derive(Clone, Debug)]
pub(super) enum Question {
    YesNo,
    Where,
    When,
    Why,
    What,
    HowMany(&'static Noun),
    /// The clause's subject is [`Subject::who`].
    Who,
}

#[derive(Clone, Debug)]
pub(super) enum Sentence {
    Statement(Clause),
    Joined(Box<(Clause, Clause)>, Conjunction),
    Question(Question, Clause),
    HowOld(NounPhrase),
    /// "There is …"; never a definite phrase.
    Exists {
        phrase: NounPhrase,
        negated: bool,
        place: (Preposition, NounPhrase),
    },
    Clock(Clock),
    /// Weekday and date.
    Today(usize, Date),
}

/// The content words of a sentence, by their English lemmas, in order. Pronouns, "be", "can" and
/// "must" are not content.
pub(super) fn content(sentence: &Sentence) -> Vec<String> {
    let mut words = Vec::new();
    match sentence {
        Sentence::Statement(clause) => clause_content(clause, &mut words),
        Sentence::Joined(clauses, _) => {
            clause_content(&clauses.0, &mut words);
            clause_content(&clauses.1, &mut words);
        }
        Sentence::Question(question, clause) => {
            if let Question::HowMany(noun) = question {
                words.push(noun.en.to_owned());
            }
            clause_content(clause, &mut words);
        }
        Sentence::HowOld(phrase) => phrase_content(phrase, &mut words),
        Sentence::Exists { phrase, place, .. } => {
            phrase_content(phrase, &mut words);
            phrase_content(&place.1, &mut words);
        }
        Sentence::Clock(clock) => clock_content(*clock, &mut words),
        Sentence::Today(weekday, date) => {
            words.push(WEEKDAYS[*weekday].0.to_owned());
            date_content(*date, &mut words);
        }
    }
    words
}

fn clause_content(clause: &Clause, words: &mut Vec<String>) {
    subject_content(&clause.subject, words);
    match &clause.predicate {
        Predicate::Act { verb, modal, object, recipient } => {
            // The same word as the verb that takes an object.
            if *modal == Some(Modal::Want) {
                words.push("want".to_owned());
            }
            words.push(verb.en[0].to_owned());
            for argument in [object, recipient].into_iter().flatten() {
                if let Object::Phrase(phrase) = argument {
                    phrase_content(phrase, words);
                }
            }
        }
        Predicate::Be(adjective) => words.push(adjective.en.to_owned()),
        Predicate::Compare(adjective, _, standard) => {
            words.push(adjective.en.to_owned());
            subject_content(standard, words);
        }
        Predicate::Located => {}
        Predicate::Age(years) => number_content(*years, words),
    }
    if let Some((_, phrase)) = &clause.place {
        phrase_content(phrase, words);
    }
    match clause.time {
        Some(Time::Weekday(day)) => words.push(WEEKDAYS[day].0.to_owned()),
        Some(Time::Month(month)) => words.push(MONTHS[month].0.to_owned()),
        Some(Time::On(date)) => date_content(date, words),
        Some(Time::At(clock)) => clock_content(clock, words),
        Some(Time::Yesterday | Time::Today | Time::Tomorrow | Time::EveryDay) | None => {}
    }
}

fn subject_content(subject: &Subject, words: &mut Vec<String>) {
    match subject {
        Subject::Phrase(phrase) => phrase_content(phrase, words),
        Subject::Pair(a, b) => {
            phrase_content(a, words);
            phrase_content(b, words);
        }
        Subject::Pronoun(_) | Subject::Gap(_) => {}
    }
}

fn phrase_content(phrase: &NounPhrase, words: &mut Vec<String>) {
    match &phrase.determiner {
        Determiner::Count(n) => number_content(*n, words),
        Determiner::Owner(owner) => phrase_content(owner, words),
        _ => {}
    }
    words.extend(phrase.adjectives.iter().map(|a| a.en.to_owned()));
    // A price is its number; "cost" and "euro" always go together.
    if phrase.noun.kind != Kind::Money {
        words.push(phrase.noun.en.to_owned());
    }
    if let Some(relative) = &phrase.relative {
        clause_content(relative, words);
    }
}

/// "One hundred" is two words, the first of which is also an hour.
fn number_content(n: u8, words: &mut Vec<String>) {
    words.extend(numbers::english(n).split(' ').map(str::to_owned));
}

fn date_content(date: Date, words: &mut Vec<String>) {
    words.push(numbers::english_ordinal(date.day));
    words.push(MONTHS[date.month].0.to_owned());
}

fn clock_content(clock: Clock, words: &mut Vec<String>) {
    match clock {
        Clock::Hour(hour, minutes) => {
            // "quarter", "ten", without what stands around it.
            let minutes = MINUTES[minutes].0.trim_start_matches("a ").split(' ').next();
            words.push(minutes.unwrap_or_default().to_owned());
            number_content(hour, words);
        }
        noon_or_midnight => words.push(noon_or_midnight.english()),
    }
}

/// The preposition that a verb of motion wants for its place.
pub(super) fn motion(verb: &Verb) -> Option<Preposition> {
    match verb.frame {
        Frame::Motion(preposition) => Some(preposition),
        _ => None,
    }
}
