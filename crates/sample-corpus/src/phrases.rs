//! Draws noun phrases, places, times and numbers.

use super::grammar::HUMANS;
use super::lexicon::{ADJECTIVES, Adjective, Gloss, Kind, NOUNS, Noun, preposition};
use super::numbers::{MINUTES, Text, clock, date, month, weekday};
use super::rng::Rng;
use super::syntax::{Determiner, NounPhrase, Tense};
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
use Det::{Count, Indefinite, Owner, Possessive, The, This};

const ANY: &[(usize, Det)] =
    &[(38, The), (24, Indefinite), (8, This), (15, Possessive), (9, Count), (6, Owner)];
/// At the beginning of a sentence: without numbers, whose capitalised forms would be rare words.
const FIRST: &[(usize, Det)] = &[(46, The), (22, Indefinite), (8, This), (18, Possessive), (6, Owner)];
pub(super) const KNOWN: &[(usize, Det)] = &[(60, The), (10, This), (25, Possessive), (5, Owner)];
const SPOT: &[(usize, Det)] = &[(72, The), (14, Possessive), (8, Indefinite), (6, This)];

impl Rng {
    pub(super) fn adjective(&mut self, kind: Kind) -> &'static Adjective {
        self.one(&ADJECTIVES, |a| a.kinds.contains(&kind))
    }

    pub(super) fn maybe_adjective(&mut self, phrase: &mut NounPhrase, chance: usize) {
        let kind = phrase.noun.kind;
        if self.percent(chance) {
            let first = self.adjective(kind);
            phrase.adjectives.push(first);
            let second = self.adjective(kind);
            if first.before_noun && !second.before_noun && self.percent(25) {
                phrase.adjectives.push(second);
            }
        }
    }

    pub(super) fn object(&mut self, verb: &Verb) -> NounPhrase {
        let noun = self.one(&NOUNS, |n| verb.takes(n));
        // One loves what one knows: aimer takes no indefinite object.
        let mut phrase = self.phrase(noun, if verb.en[0] == "love" { KNOWN } else { ANY });
        self.maybe_adjective(&mut phrase, 28);
        phrase
    }

    pub(super) fn subject_phrase(&mut self, kinds: &[Kind]) -> NounPhrase {
        let mut phrase = self.phrase_of(kinds, FIRST);
        self.maybe_adjective(&mut phrase, 15);
        phrase
    }

    pub(super) fn plain_phrase(&mut self, kinds: &[Kind]) -> NounPhrase {
        self.phrase_of(kinds, KNOWN)
    }

    fn phrase_of(&mut self, kinds: &[Kind], determiners: &[(usize, Det)]) -> NounPhrase {
        let kind = self.pick(kinds);
        let noun = self.one(&NOUNS, |n| n.kind == kind);
        self.phrase(noun, determiners)
    }

    /// Where somebody does something.
    pub(super) fn spot(&mut self, verb: &Verb) -> Option<(Gloss, NounPhrase)> {
        match verb.en[0] {
            "leave" => None,
            "work" | "sing" | "dance" | "play" | "run" | "stay" if self.percent(20) => {
                Some((preposition("with"), self.plain_phrase(HUMANS)))
            }
            _ => Some(self.spot_for(Kind::Person)),
        }
    }

    /// Where something of this kind is; only small things are in and on others.
    pub(super) fn spot_for(&mut self, kind: Kind) -> (Gloss, NounPhrase) {
        let small = matches!(kind, Kind::Thing | Kind::Food);
        let noun = self.one(&NOUNS, |n| !n.spots.is_empty() && (small || n.en != "box"));
        (self.pick(&noun.spots), self.singular(noun, SPOT))
    }

    pub(super) fn singular(&mut self, noun: &'static Noun, determiners: &[(usize, Det)]) -> NounPhrase {
        NounPhrase { plural: false, ..self.phrase(noun, determiners) }
    }

    pub(super) fn phrase(&mut self, noun: &'static Noun, determiners: &[(usize, Det)]) -> NounPhrase {
        let determiner = match noun.kind {
            Kind::Kin => self.weighted(&[(85, Possessive), (15, Owner)]),
            _ if noun.is_mass() => {
                let allowed = |det: Det| usize::from(determiners.iter().any(|&(_, d)| d == det));
                let plain = [(40, The), (45, Indefinite), (15, Possessive)];
                self.weighted(&plain.map(|(weight, det)| (weight * allowed(det), det)))
            }
            _ => match self.weighted(determiners) {
                Possessive | Owner if !noun.owned => The,
                determiner => determiner,
            },
        };
        let plural = match determiner {
            _ if noun.kind == Kind::Kin || noun.is_mass() => false,
            Count => true,
            _ => self.percent(30),
        };
        let determiner = match determiner {
            The => Determiner::The,
            Indefinite => Determiner::Indefinite,
            This => Determiner::This,
            Possessive => Determiner::Possessive(self.pronoun()),
            Count => Determiner::Count(self.number()),
            Owner => {
                let owner = self.one(&NOUNS, |n| n.kind == Kind::Person);
                let the = !owner.owned || self.percent(50);
                let of = if the { Determiner::The } else { Determiner::Possessive(self.pronoun()) };
                Determiner::Owner(Box::new(NounPhrase::new(of, owner, self.percent(25))))
            }
        };
        NounPhrase::new(determiner, noun, plural)
    }

    pub(super) fn time(&mut self, tense: Tense) -> Text {
        let fixed = |(en, fr): Gloss| (en.to_owned(), fr.to_owned());
        let ((before, avant), (en, fr)) = match (tense, self.below(100)) {
            (_, 0..25) => (("at ", "à "), self.clock()),
            (Tense::Present, 25..60) => (("", ""), fixed(("today", "aujourd'hui"))),
            (Tense::Present, _) => (("", ""), fixed(("every day", "tous les jours"))),
            (_, 25..50) => (("on ", "le "), self.date()),
            (_, 50..68) => (("on ", ""), fixed(weekday(self.below(7)))),
            (_, 68..84) => (("in ", "en "), fixed(month(self.below(12)))),
            (Tense::Future, _) => (("", ""), fixed(("tomorrow", "demain"))),
            _ => (("", ""), fixed(("yesterday", "hier"))),
        };
        (format!("{before}{en}"), format!("{avant}{fr}"))
    }

    pub(super) fn clock(&mut self) -> Text {
        match self.below(16) {
            0 => ("noon".to_owned(), "midi".to_owned()),
            1 => ("midnight".to_owned(), "minuit".to_owned()),
            _ => clock(1 + self.below(11), self.below(MINUTES.len())),
        }
    }

    pub(super) fn date(&mut self) -> Text {
        let month = self.below(12);
        let days = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month];
        date(1 + self.below(days), month)
    }

    /// Half of the numbers are small, as in real text; the rest go to 100.
    pub(super) fn number(&mut self) -> usize {
        if self.percent(50) { 2 + self.below(19) } else { 21 + self.below(80) }
    }
}
