//! The abstract sentence from which both languages are written.

use super::lexicon::{Adjective, Gender, Gloss, Noun};
use super::numbers::Text;
use super::verbs::Verb;

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
    Count(usize),
    /// "the boy's …".
    Owner(Box<NounPhrase>),
}

#[derive(Clone, Debug)]
pub(super) struct NounPhrase {
    pub(super) determiner: Determiner,
    pub(super) noun: &'static Noun,
    pub(super) plural: bool,
    /// At most one that stands before the French noun and one that stands after it, in the English
    /// order.
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

    pub(super) fn is_gap(&self) -> bool {
        matches!(self, Subject::Gap(_))
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

/// What stands with the verb to deny it.
pub(super) const POSITIVE: Gloss = ("", "");
pub(super) const NOT: Gloss = ("not", "pas");
pub(super) const NEVER: Gloss = ("never", "jamais");
pub(super) const NO_LONGER: Gloss = ("no longer", "plus");

/// How two are compared; after an adjective that has a comparative of its own, English says only
/// "than".
pub(super) const MORE: Gloss = ("", "plus");
pub(super) const LESS: Gloss = ("less", "moins");
pub(super) const AS: Gloss = ("as", "aussi");

pub(super) const AND: Gloss = ("and", "et");
pub(super) const BUT: Gloss = ("but", "mais");
pub(super) const BECAUSE: Gloss = ("because", "parce que");
pub(super) const WHEN: Gloss = ("when", "quand");
pub(super) const IF: Gloss = ("if", "si");

#[derive(Clone, Debug)]
pub(super) enum Predicate {
    Act {
        verb: &'static Verb,
        /// "can", "must" or "want"; present tense only.
        modal: Option<&'static Verb>,
        object: Option<Object>,
        recipient: Option<Object>,
    },
    Be(&'static Adjective),
    Compare(&'static Adjective, Gloss, Subject),
    /// "is", with the clause's place.
    Located,
    /// "is … years old".
    Age(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Clause {
    pub(super) subject: Subject,
    pub(super) tense: Tense,
    pub(super) polarity: Gloss,
    pub(super) predicate: Predicate,
    pub(super) adverb: Option<Gloss>,
    pub(super) place: Option<(Gloss, NounPhrase)>,
    pub(super) time: Option<Text>,
}

impl Clause {
    pub(super) fn new(subject: Subject, tense: Tense, predicate: Predicate) -> Self {
        Clause { subject, tense, polarity: POSITIVE, predicate, adverb: None, place: None, time: None }
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

    /// The same with "can", "must" or "want"; only for a clause with a verb.
    pub(super) fn with_modal(mut self, new: &'static Verb) -> Self {
        if let Predicate::Act { modal, .. } = &mut self.predicate {
            *modal = Some(new);
        }
        self
    }
}

#[derive(Clone, Debug)]
pub(super) enum Sentence {
    Statement(Clause),
    Joined(Box<(Clause, Clause)>, Gloss),
    /// The words before the clause; its subject is [`Subject::who`] where they are "who".
    Question(Gloss, Clause),
    HowMany(&'static Noun, Clause),
    HowOld(NounPhrase),
    /// "There is …"; never a definite phrase.
    Exists {
        phrase: NounPhrase,
        negated: bool,
        place: (Gloss, NounPhrase),
    },
    /// "It is …", "Today is …".
    Fixed(Text),
}

impl Sentence {
    pub(super) fn is_question(&self) -> bool {
        matches!(self, Sentence::Question(..) | Sentence::HowMany(..) | Sentence::HowOld(_))
    }
}
