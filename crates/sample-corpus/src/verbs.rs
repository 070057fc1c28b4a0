//! The verbs, read from a table in `data`: their forms in both languages, what stands with them and
//! who does it.

use super::lexicon::{Gender, Gloss, Kind, Noun, preposition, rows};
use super::syntax::{Agreement, Person};
use std::sync::LazyLock;

/// What stands with a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Nothing but where and when.
    Intransitive,
    /// An object.
    Transitive,
    /// An object and somebody it goes to.
    Ditransitive,
    /// Somebody after "to".
    ToSomebody,
    /// A place after the preposition.
    Motion(Gloss),
    /// The sentence says: auxiliaries, and the verb of prices.
    Special,
}

#[derive(Debug)]
pub(super) struct Verb {
    /// Base, third person singular, past, -ing.
    pub(super) en: [&'static str; 4],
    pub(super) infinitive: &'static str,
    /// For je, il, nous, vous, ils.
    present: Vec<String>,
    future_stem: String,
    participle: String,
    /// The passé composé is built with être.
    pub(super) with_etre: bool,
    /// A state: its past is the imparfait, and it has no progressive.
    pub(super) state: bool,
    /// Animals do it too.
    pub(super) animals: bool,
    pub(super) frame: Frame,
    pub(super) objects: Vec<Kind>,
    /// Where not empty, the only objects.
    pub(super) only: Vec<&'static str>,
}

impl Verb {
    fn read([en, infinitive, forms, frame, flags, only]: [&'static str; 6]) -> Self {
        let mut english = en.split(", ");
        let (frame, rest) = frame.split_once(' ').unwrap_or((frame, ""));
        let (frame, objects) = match frame {
            "Motion" => (Frame::Motion(preposition(rest)), ""),
            "Intransitive" => (Frame::Intransitive, rest),
            "Transitive" => (Frame::Transitive, rest),
            "Ditransitive" => (Frame::Ditransitive, rest),
            "ToSomebody" => (Frame::ToSomebody, rest),
            _ => (Frame::Special, rest),
        };
        let mut present: Vec<String> = forms.split_whitespace().map(str::to_owned).collect();
        if present.is_empty() {
            let stem = infinitive.strip_suffix("er").expect("a regular verb");
            // mangeons keeps its soft g.
            let ons = if stem.ends_with('g') { "eons" } else { "ons" };
            present = ["e", "e", ons, "ez", "ent", "er", "é"].map(|ending| format!("{stem}{ending}")).into();
        }
        Verb {
            en: [(); 4].map(|()| english.next().unwrap_or_default()),
            infinitive,
            participle: present.remove(6),
            future_stem: present.remove(5),
            present,
            with_etre: flags.contains("être"),
            state: flags.contains("state"),
            animals: flags.contains("animals"),
            frame,
            objects: Kind::list(objects),
            only: only.split_whitespace().collect(),
        }
    }

    /// "was seeing" and "was finding" are hardly said.
    pub(super) fn has_progressive(&self) -> bool {
        !self.state && !matches!(self.en[0], "see" | "find" | "lose")
    }

    pub(super) fn takes(&self, noun: &Noun) -> bool {
        self.objects.contains(&noun.kind) && (self.only.is_empty() || self.only.contains(&noun.en))
    }

    pub(super) fn present(&self, person: Person) -> String {
        self.present[place(person)].clone()
    }

    pub(super) fn future(&self, person: Person) -> String {
        format!("{}{}", self.future_stem, ["ai", "a", "ons", "ez", "ont"][place(person)])
    }

    /// Built on the first person plural, except for être.
    pub(super) fn imperfect(&self, person: Person) -> String {
        let ending = ["ais", "ait", "ions", "iez", "aient"][place(person)];
        let stem = self.present[2].strip_suffix("ons").unwrap_or("ét");
        let stem =
            if ending.starts_with('i') && stem.ends_with("ge") { &stem[..stem.len() - 1] } else { stem };
        format!("{stem}{ending}")
    }

    pub(super) fn participle(&self, with: Option<Agreement>) -> String {
        let mut form = self.participle.clone();
        if let Some(with) = with {
            if with.gender == Gender::Feminine {
                form.push('e');
            }
            if with.plural && !form.ends_with('s') {
                form.push('s');
            }
        }
        form
    }
}

/// The place of a person in the French tables: je, il, nous, vous, ils.
fn place(person: Person) -> usize {
    [0, 3, 1, 1, 2, 4][person as usize]
}

pub(super) static VERBS: LazyLock<Vec<Verb>> =
    LazyLock::new(|| rows(include_str!("data/verbs.txt")).map(Verb::read).collect());

/// The verb with this English base form.
pub(super) fn find_verb(en: &str) -> &'static Verb {
    VERBS.iter().find(|v| v.en[0] == en).expect("a verb of the lexicon")
}
