//! Draws noun phrases and places.

use super::grammar::{Draw, HUMANS};
use super::lexicon::{ADJECTIVES, Adjective, Kind, NOUNS, Noun, Preposition};
use super::syntax::{Determiner, NounPhrase, Person};
use super::verbs::Verb;

/// A determiner to be drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Det {
    The,
    Indefinite,
    This,
    Possessive,
    Count,
    Owner,
}

const ANY: &[(usize, Det)] = &[
    (38, Det::The),
    (24, Det::Indefinite),
    (8, Det::This),
    (15, Det::Possessive),
    (9, Det::Count),
    (6, Det::Owner),
];

/// At the beginning of a sentence: without numbers, whose capitalised forms would be rare words.
const FIRST: &[(usize, Det)] =
    &[(46, Det::The), (22, Det::Indefinite), (8, Det::This), (18, Det::Possessive), (6, Det::Owner)];

pub(super) const KNOWN: &[(usize, Det)] =
    &[(60, Det::The), (10, Det::This), (25, Det::Possessive), (5, Det::Owner)];

impl Draw<'_> {
    pub(super) fn adjective(&mut self, kind: Kind) -> &'static Adjective {
        self.one(ADJECTIVES, |a| a.kinds.contains(&kind))
    }

    pub(super) fn maybe_adjective(&mut self, phrase: &mut NounPhrase, chance: usize) {
        let kind = phrase.noun.kind;
        if self.0.percent(chance) && ADJECTIVES.iter().any(|a| a.kinds.contains(&kind)) {
            let first = self.adjective(kind);
            phrase.adjectives.push(first);
            let second = self.adjective(kind);
            if first.before_noun && !second.before_noun && self.0.percent(25) {
                phrase.adjectives.push(second);
            }
        }
    }

    pub(super) fn object(&mut self, verb: &Verb) -> NounPhrase {
        let noun = self.one(NOUNS, |n| verb.takes(n));
        // One loves what one knows: aimer takes no indefinite object.
        let mut phrase = self.phrase(noun, if verb.en[0] == "love" { KNOWN } else { ANY });
        self.maybe_adjective(&mut phrase, 28);
        phrase
    }

    pub(super) fn subject_phrase(&mut self, kinds: &[Kind]) -> NounPhrase {
        let mut phrase = self.phrase_of(kinds);
        self.maybe_adjective(&mut phrase, 15);
        phrase
    }

    fn phrase_of(&mut self, kinds: &[Kind]) -> NounPhrase {
        let kind = self.0.pick(kinds);
        let noun = self.one(NOUNS, |n| n.kind == kind);
        self.phrase(noun, FIRST)
    }

    pub(super) fn plain_phrase(&mut self, kinds: &[Kind]) -> NounPhrase {
        let kind = self.0.pick(kinds);
        let noun = self.one(NOUNS, |n| n.kind == kind);
        self.phrase(noun, KNOWN)
    }

    /// Where somebody does something.
    pub(super) fn spot(&mut self, verb: &Verb) -> Option<(Preposition, NounPhrase)> {
        match verb.en[0] {
            "leave" => None,
            "work" | "sing" | "dance" | "play" | "run" | "stay" if self.0.percent(20) => {
                Some((Preposition::With, self.plain_phrase(HUMANS)))
            }
            _ => Some(self.spot_for(false)),
        }
    }

    /// Where something is; only small things are in and on others.
    pub(super) fn spot_for(&mut self, small: bool) -> (Preposition, NounPhrase) {
        let noun = self.one(NOUNS, |n| !n.spots.is_empty() && (small || n.en != "box"));
        let preposition = self.0.pick(noun.spots);
        let determiners = &[(72, Det::The), (14, Det::Possessive), (8, Det::Indefinite), (6, Det::This)];
        (preposition, self.singular(noun, determiners))
    }

    pub(super) fn singular(&mut self, noun: &'static Noun, determiners: &[(usize, Det)]) -> NounPhrase {
        NounPhrase { plural: false, ..self.phrase(noun, determiners) }
    }

    pub(super) fn phrase(&mut self, noun: &'static Noun, determiners: &[(usize, Det)]) -> NounPhrase {
        let determiner = match noun.kind {
            Kind::Kin => self.0.weighted(&[(85, Det::Possessive), (15, Det::Owner)]),
            _ if noun.is_mass() => {
                let plain = [(40, Det::The), (45, Det::Indefinite), (15, Det::Possessive)];
                let allowed = plain.map(|(weight, det)| {
                    let allowed = determiners.iter().any(|&(_, d)| d == det);
                    (if allowed { weight } else { 0 }, det)
                });
                self.0.weighted(&allowed)
            }
            _ => match self.0.weighted(determiners) {
                Det::Possessive | Det::Owner if !noun.is_owned() => Det::The,
                determiner => determiner,
            },
        };
        let plural = match determiner {
            _ if noun.kind == Kind::Kin || noun.is_mass() => false,
            Det::Count => true,
            _ => self.0.percent(30),
        };
        let determiner = match determiner {
            Det::The => Determiner::The,
            Det::Indefinite => Determiner::Indefinite,
            Det::This => Determiner::This,
            Det::Possessive => Determiner::Possessive(self.0.pick(&Person::ALL)),
            Det::Count => Determiner::Count(self.number()),
            Det::Owner => {
                let owner = self.one(NOUNS, |n| n.kind == Kind::Person);
                let of = if !owner.is_owned() || self.0.percent(50) {
                    Determiner::The
                } else {
                    Determiner::Possessive(self.0.pick(&Person::ALL))
                };
                Determiner::Owner(Box::new(NounPhrase::new(of, owner, self.0.percent(25))))
            }
        };
        NounPhrase::new(determiner, noun, plural)
    }
}
