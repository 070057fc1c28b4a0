//! Generates articles about people, and questions whose answers are spans of the articles.

use regard_core::Key;
use regard_core::random::Rng;
use std::collections::HashMap;
use std::ops::Range;

const WOMEN: [&str; 10] =
    ["Anna", "Clara", "Emma", "Julia", "Laura", "Maria", "Nina", "Olga", "Rosa", "Sofia"];
const MEN: [&str; 10] = ["Adam", "Bruno", "David", "Felix", "Hugo", "Jonas", "Leo", "Max", "Oscar", "Paul"];
const CITIES: [&str; 10] =
    ["Athens", "Berlin", "Dublin", "Geneva", "Lisbon", "Lyon", "Madrid", "Oslo", "Prague", "Vienna"];
const THINGS: [&str; 10] =
    ["bicycle", "boat", "car", "clock", "coat", "guitar", "hat", "lamp", "piano", "table"];
const COLOURS: [&str; 8] = ["black", "blue", "brown", "green", "grey", "red", "white", "yellow"];
const JOBS: [&str; 10] =
    ["baker", "doctor", "farmer", "gardener", "judge", "nurse", "painter", "pilot", "tailor", "teacher"];
const FOODS: [[&str; 2]; 10] = [
    ["apple", "pie"],
    ["bean", "soup"],
    ["black", "bread"],
    ["cold", "milk"],
    ["dark", "chocolate"],
    ["fresh", "fish"],
    ["goat", "cheese"],
    ["green", "tea"],
    ["hot", "noodles"],
    ["sweet", "cherries"],
];
/// The number of possible values of each attribute.
const VALUES: usize = 10;
const PEOPLE: usize = WOMEN.len() + MEN.len();

/// All other words.
const WORDS: [&str; 31] = [
    "a", "in", "as", "is", "of", "the", "to", "he", "she", "lives", "has", "flat", "owns", "bought", "works",
    "likes", "often", "eats", "today", "now", "where", "what", "which", "who", "does", "live", "own",
    "colour", "work", ".", "?",
];
/// Further words of questions.
const MORE: [&str; 3] = ["do", "like", "eat"];

/// What an article tells about a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attribute {
    Home,
    Thing,
    Work,
    Food,
}

const ATTRIBUTES: [Attribute; 4] = [Attribute::Home, Attribute::Thing, Attribute::Work, Attribute::Food];

/// The kind of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Home,
    Thing,
    Colour,
    Work,
    Food,
    Owner,
}

impl Kind {
    pub(super) const ALL: [Kind; 6] =
        [Kind::Home, Kind::Thing, Kind::Colour, Kind::Work, Kind::Food, Kind::Owner];

    fn attribute(self) -> Attribute {
        match self {
            Kind::Home => Attribute::Home,
            Kind::Thing | Kind::Colour | Kind::Owner => Attribute::Thing,
            Kind::Work => Attribute::Work,
            Kind::Food => Attribute::Food,
        }
    }

    /// An example question.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Home => "where does Anna live?",
            Kind::Thing => "what does Anna own?",
            Kind::Colour => "which colour is the hat of Anna?",
            Kind::Work => "what work does Anna do?",
            Kind::Food => "what does Anna like to eat?",
            Kind::Owner => "who has the red hat?",
        }
    }
}

/// An article, a question about it, and the position of the answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Article {
    pub(super) words: Vec<&'static str>,
    /// The range of each sentence.
    pub(super) sentences: Vec<Range<usize>>,
    pub(super) question: Vec<&'static str>,
    pub(super) kind: Kind,
    /// The word range of the answer.
    pub(super) answer: Range<usize>,
    /// Whether the sentence with the fact uses "he" or "she" instead of the name.
    pub(super) pronoun: bool,
    /// The number of spans in the article that have the kind of the answer.
    pub(super) candidates: usize,
}

/// A fact of an article.
#[derive(Clone, Copy, Debug)]
struct Fact {
    person: usize,
    attribute: Attribute,
    value: usize,
    colour: usize,
}

/// Whether a combination is held out from training: a sixth of all combinations of a person and a
/// value.
fn reserved(person: usize, attribute: Attribute, value: usize) -> bool {
    (5 * person + value + attribute as usize).is_multiple_of(6)
}

fn name(person: usize) -> &'static str {
    if person < WOMEN.len() { WOMEN[person] } else { MEN[person - WOMEN.len()] }
}

/// The positions of the parts of a written fact.
struct Written {
    subject: usize,
    pronoun: bool,
    value: Range<usize>,
}

impl Article {
    /// Generates an article about this many people. A training article contains no held-out fact;
    /// in a test article, the question is about one.
    pub(super) fn write(people: usize, test: bool, key: Key) -> Self {
        let mut draws = Rng::from(key);
        let kind = Kind::ALL[draws.below(Kind::ALL.len())];
        let people = draws.distinct(people, PEOPLE);
        let asked = draws.below(people.len());
        let facts = choose(&people, people[asked], kind.attribute(), test, &mut draws);
        let mut article = Article {
            words: Vec::new(),
            sentences: Vec::new(),
            question: Vec::new(),
            kind,
            answer: 0..0,
            pronoun: false,
            candidates: 0,
        };
        let mut said_name = 0;
        for (i, fact) in facts.iter().enumerate() {
            let again = i > 0 && facts[i - 1].person == fact.person;
            let start = article.words.len();
            let written = tell(&mut article.words, fact, again && draws.below(2) == 0, &mut draws);
            article.sentences.push(start..article.words.len());
            if !written.pronoun {
                said_name = written.subject;
            }
            article.candidates += usize::from(kind != Kind::Owner && fact.attribute == kind.attribute());
            if fact.person == people[asked] && fact.attribute == kind.attribute() {
                article.question = question(kind, fact);
                article.pronoun = written.pronoun;
                article.answer = match kind {
                    Kind::Owner => said_name..said_name + 1,
                    Kind::Colour => written.value.start + 1..written.value.start + 2,
                    _ => written.value,
                };
            }
        }
        if kind == Kind::Owner {
            article.candidates = people.len();
        }
        article
    }

    pub(super) fn answer_text(&self) -> String {
        self.words[self.answer.clone()].join(" ")
    }

    /// The index of the sentence that contains the answer.
    pub(super) fn answer_sentence(&self) -> usize {
        self.sentences.iter().position(|s| s.contains(&self.answer.start)).unwrap_or(0)
    }

    /// The question in normal spelling.
    pub(super) fn question_text(&self) -> String {
        self.question.join(" ").replace(" ?", "?")
    }
}

/// Chooses two or three facts for each person in turn, including the one with the answer. No value
/// occurs twice.
fn choose(people: &[usize], asked: usize, attribute: Attribute, test: bool, draws: &mut Rng) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    for &person in people {
        let count = 2 + draws.below(2);
        let mut attributes: Vec<Attribute> =
            draws.distinct(count, ATTRIBUTES.len()).into_iter().map(|i| ATTRIBUTES[i]).collect();
        if person == asked && !attributes.contains(&attribute) {
            let at = draws.below(attributes.len());
            attributes[at] = attribute;
        }
        for kind in attributes {
            let wanted = test && person == asked && kind == attribute;
            let free = |v: &usize| !facts.iter().any(|f| f.attribute == kind && f.value == *v);
            let fits: Vec<usize> = (0..VALUES).filter(|v| reserved(person, kind, *v) == wanted).collect();
            let left: Vec<usize> = fits.iter().copied().filter(free).collect();
            // With many people, all suitable values may already be used.
            let from = if left.is_empty() { fits } else { left };
            let value = from[draws.below(from.len())];
            let colour = draws.below(COLOURS.len());
            facts.push(Fact { person, attribute: kind, value, colour });
        }
    }
    facts
}

/// Writes the sentence of a fact.
fn tell(words: &mut Vec<&'static str>, fact: &Fact, pronoun: bool, draws: &mut Rng) -> Written {
    match draws.below(5) {
        0 => words.push("today"),
        1 => words.push("now"),
        _ => {}
    }
    let subject = words.len();
    words.push(match (pronoun, fact.person < WOMEN.len()) {
        (false, _) => name(fact.person),
        (true, true) => "she",
        (true, false) => "he",
    });
    let other = draws.below(2) == 1;
    let verb: &[&str] = match (fact.attribute, other) {
        (Attribute::Home, false) => &["lives", "in"],
        (Attribute::Home, true) => &["has", "a", "flat", "in"],
        (Attribute::Thing, false) => &["owns"],
        (Attribute::Thing, true) => &["bought"],
        (Attribute::Work, false) => &["works", "as", "a"],
        (Attribute::Work, true) => &["is", "a"],
        (Attribute::Food, false) => &["likes"],
        (Attribute::Food, true) => &["often", "eats"],
    };
    words.extend(verb);
    let start = words.len();
    match fact.attribute {
        Attribute::Home => words.push(CITIES[fact.value]),
        Attribute::Thing => words.extend(["a", COLOURS[fact.colour], THINGS[fact.value]]),
        Attribute::Work => words.push(JOBS[fact.value]),
        Attribute::Food => words.extend(FOODS[fact.value]),
    }
    let value = start..words.len();
    words.push(".");
    Written { subject, pronoun, value }
}

fn question(kind: Kind, fact: &Fact) -> Vec<&'static str> {
    let (who, thing, colour) = (name(fact.person), THINGS[fact.value], COLOURS[fact.colour]);
    let words: &[&'static str] = match kind {
        Kind::Home => &["where", "does", who, "live", "?"],
        Kind::Thing => &["what", "does", who, "own", "?"],
        Kind::Colour => &["which", "colour", "is", "the", thing, "of", who, "?"],
        Kind::Work => &["what", "work", "does", who, "do", "?"],
        Kind::Food => &["what", "does", who, "like", "to", "eat", "?"],
        Kind::Owner => &["who", "has", "the", colour, thing, "?"],
    };
    words.to_vec()
}

/// The id of every word.
#[derive(Debug)]
pub(super) struct Vocabulary(HashMap<&'static str, u32>);

impl Vocabulary {
    pub(super) fn new() -> Self {
        let lists = [&WOMEN[..], &MEN, &CITIES, &THINGS, &COLOURS, &JOBS, &WORDS, &MORE];
        let words = lists.into_iter().flatten().chain(FOODS.iter().flatten());
        let mut numbers = HashMap::new();
        for word in words {
            let next = numbers.len() as u32;
            numbers.entry(*word).or_insert(next);
        }
        Vocabulary(numbers)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn ids(&self, words: &[&'static str]) -> Vec<u32> {
        // A word that is missing from the vocabulary would be a bug in this file, which a test
        // checks for; it gets id 0.
        words.iter().map(|word| self.0.get(word).copied().unwrap_or(0)).collect()
    }
}

#[cfg(test)]
#[path = "articles_tests.rs"]
mod tests;
