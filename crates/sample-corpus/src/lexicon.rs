//! Nouns and adjectives with their forms in both languages and what they combine with, read from
//! tables in `data`.

use std::sync::LazyLock;

/// The same in English and in French.
pub(super) type Gloss = (&'static str, &'static str);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gender {
    Masculine,
    Feminine,
}

/// What a noun stands for; verbs and adjectives select by it, so that sentences make sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Person,
    /// A relative: always somebody's, and singular.
    Kin,
    Animal,
    /// Food that is counted.
    Food,
    /// A mass noun that is eaten.
    Meal,
    /// A mass noun that is drunk.
    Drink,
    Thing,
    Place,
    /// Only in prices.
    Money,
}
use Kind::{Animal, Drink, Food, Kin, Meal, Money, Person, Place, Thing};

impl Kind {
    /// The kinds of a list of names.
    pub(super) fn list(names: &str) -> Vec<Kind> {
        let all = [Person, Kin, Animal, Food, Meal, Drink, Thing, Place, Money];
        let named = |name: &str| all.into_iter().find(|kind| format!("{kind:?}") == name);
        names.split_whitespace().map(|name| named(name).expect("a kind")).collect()
    }
}

const PREPOSITIONS: [Gloss; 10] = [
    ("in", "dans"),
    ("on", "sur"),
    ("under", "sous"),
    ("behind", "derrière"),
    ("in front of", "devant"),
    ("near", "près de"),
    ("with", "avec"),
    ("to", "à"),
    ("at", "à"),
    ("from", "de"),
];

/// The preposition with this English.
pub(super) fn preposition(en: &str) -> Gloss {
    PREPOSITIONS.into_iter().find(|p| p.0 == en).expect("a preposition")
}

/// The lines of a table, cut into `N` columns; the last ones may be missing.
pub(super) fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut columns = line.split(';').map(str::trim);
        [(); N].map(|()| columns.next().unwrap_or_default())
    })
}

#[derive(Debug)]
pub(super) struct Noun {
    pub(super) en: &'static str,
    pub(super) en_plural: &'static str,
    pub(super) fr: &'static str,
    pub(super) fr_plural: &'static str,
    pub(super) gender: Gender,
    pub(super) kind: Kind,
    /// Whether one says "my …" of it.
    pub(super) owned: bool,
    /// The prepositions with which the noun says where something is.
    pub(super) spots: Vec<Gloss>,
}

impl Noun {
    pub(super) fn is_mass(&self) -> bool {
        matches!(self.kind, Meal | Drink)
    }

    pub(super) fn is_human(&self) -> bool {
        matches!(self.kind, Person | Kin)
    }
}

pub(super) static NOUNS: LazyLock<Vec<Noun>> = LazyLock::new(|| {
    let noun = |[english, french, traits, spots]: [&'static str; 4]| {
        let (en, en_plural) = english.split_once(' ').expect("singular and plural");
        let (fr, fr_plural) = french.split_once(' ').expect("singular and plural");
        let (gender, kind) = traits.split_once(' ').expect("gender and kind");
        let gender = if gender == "Feminine" { Gender::Feminine } else { Gender::Masculine };
        let (own, kind) = (kind.ends_with(" own"), Kind::list(kind.trim_end_matches(" own"))[0]);
        let owned = own || !matches!(kind, Person | Place);
        let spots = spots.split(", ").filter(|en| !en.is_empty()).map(preposition).collect();
        Noun { en, en_plural, fr, fr_plural, gender, kind, owned, spots }
    };
    rows(include_str!("data/nouns.txt")).map(noun).collect()
});

#[derive(Debug)]
pub(super) struct Adjective {
    pub(super) en: &'static str,
    /// Empty for what is not compared, such as colours.
    pub(super) en_comparative: &'static str,
    /// Masculine, feminine, masculine plural, feminine plural; last, the masculine before a vowel
    /// sound.
    pub(super) fr: Vec<&'static str>,
    pub(super) before_noun: bool,
    pub(super) kinds: Vec<Kind>,
}

pub(super) static ADJECTIVES: LazyLock<Vec<Adjective>> = LazyLock::new(|| {
    let adjective = |[en, en_comparative, fr, place, kinds]: [&'static str; 5]| {
        let mut fr: Vec<&str> = fr.split(' ').collect();
        fr.resize(5, fr[0]);
        Adjective { en, en_comparative, fr, before_noun: place == "before", kinds: Kind::list(kinds) }
    };
    rows(include_str!("data/adjectives.txt")).map(adjective).collect()
});

/// The noun with this English lemma.
pub(super) fn find_noun(en: &str) -> &'static Noun {
    NOUNS.iter().find(|n| n.en == en).expect("a noun of the lexicon")
}
