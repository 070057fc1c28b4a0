//! The verbs: their forms in both languages, what stands with them and who does it.
//!
//! Verbs whose English past equals their present (read, put, cut) are absent: their sentences would have two
//! translations.

use super::lexicon::Kind::{Animal, Drink, Food, Kin, Meal, Person, Place, Thing};
use super::lexicon::{Kind, Noun, Preposition};

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
    Motion(Preposition),
}

/// Present forms for je, il, nous, vous, ils, then the stem of the future and the past participle.
#[derive(Clone, Copy, Debug)]
pub(super) enum Conjugation {
    /// Regular in -er.
    Er,
    Listed([&'static str; 5], &'static str, &'static str),
}

#[derive(Debug)]
pub(super) struct Verb {
    /// Base, third person singular, past, -ing.
    pub(super) en: [&'static str; 4],
    pub(super) infinitive: &'static str,
    pub(super) conjugation: Conjugation,
    /// The passé composé is built with être.
    pub(super) with_etre: bool,
    /// A state: its past is the imparfait, and it has no progressive.
    pub(super) state: bool,
    /// Animals do it too.
    pub(super) animals: bool,
    pub(super) frame: Frame,
    pub(super) objects: &'static [Kind],
    /// Where not empty, the only objects.
    pub(super) only: &'static [&'static str],
}

const fn verb(
    en: [&'static str; 4],
    infinitive: &'static str,
    conjugation: Conjugation,
    frame: Frame,
    objects: &'static [Kind],
) -> Verb {
    Verb {
        en,
        infinitive,
        conjugation,
        with_etre: false,
        state: false,
        animals: false,
        frame,
        objects,
        only: &[],
    }
}

impl Verb {
    const fn with_etre(mut self) -> Self {
        self.with_etre = true;
        self
    }

    const fn state(mut self) -> Self {
        self.state = true;
        self
    }

    const fn animals(mut self) -> Self {
        self.animals = true;
        self
    }

    const fn only(mut self, nouns: &'static [&'static str]) -> Self {
        self.only = nouns;
        self
    }

    /// "was seeing" and "was finding" are hardly said.
    pub(super) fn has_progressive(&self) -> bool {
        !self.state && !matches!(self.en[0], "see" | "find" | "lose")
    }

    pub(super) fn takes(&self, noun: &Noun) -> bool {
        self.objects.contains(&noun.kind) && (self.only.is_empty() || self.only.contains(&noun.en))
    }
}

use Conjugation::{Er, Listed};
use Frame::{Ditransitive, Intransitive, Motion, ToSomebody, Transitive};

const NOTHING: &[Kind] = &[];
const GOODS: &[Kind] = &[Thing, Food];

pub(super) static VERBS: &[Verb] = &[
    verb(["eat", "eats", "ate", "eating"], "manger", Er, Transitive, &[Food, Meal]).animals(),
    verb(
        ["drink", "drinks", "drank", "drinking"],
        "boire",
        Listed(["bois", "boit", "buvons", "buvez", "boivent"], "boir", "bu"),
        Transitive,
        &[Drink],
    )
    .animals(),
    verb(
        ["see", "sees", "saw", "seeing"],
        "voir",
        Listed(["vois", "voit", "voyons", "voyez", "voient"], "verr", "vu"),
        Transitive,
        &[Person, Kin, Animal, Thing, Place],
    )
    .animals(),
    verb(["love", "loves", "loved", "loving"], "aimer", Er, Transitive, &[Person, Kin, Animal, Food, Meal])
        .state(),
    verb(
        ["buy", "buys", "bought", "buying"],
        "acheter",
        Listed(["achète", "achète", "achetons", "achetez", "achètent"], "achèter", "acheté"),
        Transitive,
        &[Animal, Thing, Food, Meal, Drink],
    )
    .only(&[
        "dog",
        "horse",
        "cow",
        "apple",
        "orange",
        "egg",
        "cake",
        "bread",
        "soup",
        "milk",
        "book",
        "newspaper",
        "flower",
        "hat",
        "knife",
        "plate",
        "car",
        "table",
        "bed",
    ]),
    verb(
        ["sell", "sells", "sold", "selling"],
        "vendre",
        Listed(["vends", "vend", "vendons", "vendez", "vendent"], "vendr", "vendu"),
        Transitive,
        &[Animal, Thing, Food, Place],
    )
    .only(&[
        "horse",
        "cow",
        "apple",
        "orange",
        "egg",
        "cake",
        "book",
        "newspaper",
        "flower",
        "hat",
        "knife",
        "plate",
        "car",
        "house",
        "hotel",
    ]),
    verb(
        ["write", "writes", "wrote", "writing"],
        "écrire",
        Listed(["écris", "écrit", "écrivons", "écrivez", "écrivent"], "écrir", "écrit"),
        Transitive,
        &[Thing],
    )
    .only(&["book", "letter", "story"]),
    verb(
        ["have", "has", "had", "having"],
        "avoir",
        Listed(["ai", "a", "avons", "avez", "ont"], "aur", "eu"),
        Transitive,
        &[Animal, Thing, Food],
    )
    .state(),
    verb(
        ["want", "wants", "wanted", "wanting"],
        "vouloir",
        Listed(["veux", "veut", "voulons", "voulez", "veulent"], "voudr", "voulu"),
        Transitive,
        &[Animal, Thing, Food, Meal, Drink],
    )
    .state(),
    verb(
        ["find", "finds", "found", "finding"],
        "trouver",
        Er,
        Transitive,
        &[Person, Animal, Thing, Food, Place],
    )
    .animals(),
    verb(
        ["look for", "looks for", "looked for", "looking for"],
        "chercher",
        Er,
        Transitive,
        &[Person, Kin, Animal, Thing, Place],
    )
    .animals(),
    verb(
        ["wait for", "waits for", "waited for", "waiting for"],
        "attendre",
        Listed(["attends", "attend", "attendons", "attendez", "attendent"], "attendr", "attendu"),
        Transitive,
        &[Person, Kin],
    )
    .animals(),
    verb(["help", "helps", "helped", "helping"], "aider", Er, Transitive, &[Person, Kin, Animal]),
    verb(
        ["listen to", "listens to", "listened to", "listening to"],
        "écouter",
        Er,
        Transitive,
        &[Person, Kin, Animal],
    )
    .animals(),
    verb(
        ["choose", "chooses", "chose", "choosing"],
        "choisir",
        Listed(["choisis", "choisit", "choisissons", "choisissez", "choisissent"], "choisir", "choisi"),
        Transitive,
        GOODS,
    ),
    verb(
        ["lose", "loses", "lost", "losing"],
        "perdre",
        Listed(["perds", "perd", "perdons", "perdez", "perdent"], "perdr", "perdu"),
        Transitive,
        &[Animal, Thing],
    )
    .only(&["cat", "dog", "horse", "book", "letter", "newspaper", "hat", "key", "knife", "box"]),
    verb(
        ["take", "takes", "took", "taking"],
        "prendre",
        Listed(["prends", "prend", "prenons", "prenez", "prennent"], "prendr", "pris"),
        Transitive,
        GOODS,
    )
    .only(&[
        "apple",
        "orange",
        "egg",
        "cake",
        "book",
        "letter",
        "newspaper",
        "hat",
        "key",
        "knife",
        "plate",
        "car",
        "box",
    ]),
    verb(
        ["open", "opens", "opened", "opening"],
        "ouvrir",
        Listed(["ouvre", "ouvre", "ouvrons", "ouvrez", "ouvrent"], "ouvrir", "ouvert"),
        Transitive,
        &[Thing, Place],
    )
    .only(&["book", "letter", "box", "door", "hotel", "school"]),
    verb(["close", "closes", "closed", "closing"], "fermer", Er, Transitive, &[Thing, Place])
        .only(&["book", "box", "door", "hotel", "school"]),
    verb(["wash", "washes", "washed", "washing"], "laver", Er, Transitive, &[Animal, Thing, Food])
        .only(&["dog", "horse", "cow", "apple", "hat", "knife", "plate", "car", "table", "door"]),
    verb(["visit", "visits", "visited", "visiting"], "visiter", Er, Transitive, &[Place]),
    verb(["give", "gives", "gave", "giving"], "donner", Er, Ditransitive, GOODS),
    verb(["show", "shows", "showed", "showing"], "montrer", Er, Ditransitive, &[Animal, Thing, Place]),
    verb(["bring", "brings", "brought", "bringing"], "apporter", Er, Ditransitive, GOODS),
    verb(
        ["send", "sends", "sent", "sending"],
        "envoyer",
        Listed(["envoie", "envoie", "envoyons", "envoyez", "envoient"], "enverr", "envoyé"),
        Ditransitive,
        &[Thing],
    )
    .only(&["book", "letter", "newspaper", "flower", "hat", "key", "box"]),
    verb(["speak", "speaks", "spoke", "speaking"], "parler", Er, ToSomebody, NOTHING),
    verb(
        ["sleep", "sleeps", "slept", "sleeping"],
        "dormir",
        Listed(["dors", "dort", "dormons", "dormez", "dorment"], "dormir", "dormi"),
        Intransitive,
        NOTHING,
    )
    .animals(),
    verb(["work", "works", "worked", "working"], "travailler", Er, Intransitive, NOTHING),
    verb(["sing", "sings", "sang", "singing"], "chanter", Er, Intransitive, NOTHING),
    verb(["dance", "dances", "danced", "dancing"], "danser", Er, Intransitive, NOTHING),
    verb(["play", "plays", "played", "playing"], "jouer", Er, Intransitive, NOTHING).animals(),
    verb(
        ["run", "runs", "ran", "running"],
        "courir",
        Listed(["cours", "court", "courons", "courez", "courent"], "courr", "couru"),
        Intransitive,
        NOTHING,
    )
    .animals(),
    verb(["cry", "cries", "cried", "crying"], "pleurer", Er, Intransitive, NOTHING),
    verb(
        ["leave", "leaves", "left", "leaving"],
        "partir",
        Listed(["pars", "part", "partons", "partez", "partent"], "partir", "parti"),
        Intransitive,
        NOTHING,
    )
    .with_etre(),
    verb(["fall", "falls", "fell", "falling"], "tomber", Er, Intransitive, NOTHING).with_etre().animals(),
    verb(["stay", "stays", "stayed", "staying"], "rester", Er, Intransitive, NOTHING).with_etre().animals(),
    verb(["arrive", "arrives", "arrived", "arriving"], "arriver", Er, Motion(Preposition::At), NOTHING)
        .with_etre(),
    verb(
        ["go", "goes", "went", "going"],
        "aller",
        Listed(["vais", "va", "allons", "allez", "vont"], "ir", "allé"),
        Motion(Preposition::To),
        NOTHING,
    )
    .with_etre(),
    verb(
        ["come back", "comes back", "came back", "coming back"],
        "revenir",
        Listed(["reviens", "revient", "revenons", "revenez", "reviennent"], "reviendr", "revenu"),
        Motion(Preposition::From),
        NOTHING,
    )
    .with_etre(),
];

/// Present and future only: the English past "cost" is also the plural present.
pub(super) static COST: Verb =
    verb(["cost", "costs", "cost", "costing"], "coûter", Er, Transitive, &[Kind::Money]);

pub(super) static BE: Conjugation = Listed(["suis", "est", "sommes", "êtes", "sont"], "ser", "été");
pub(super) static HAVE: Conjugation = Listed(["ai", "a", "avons", "avez", "ont"], "aur", "eu");
pub(super) static CAN: Conjugation = Listed(["peux", "peut", "pouvons", "pouvez", "peuvent"], "pourr", "pu");
pub(super) static MUST: Conjugation = Listed(["dois", "doit", "devons", "devez", "doivent"], "devr", "dû");
pub(super) static WANT: Conjugation =
    Listed(["veux", "veut", "voulons", "voulez", "veulent"], "voudr", "voulu");

/// The verb with this English base form.
#[cfg(test)]
pub(super) fn find_verb(en: &str) -> &'static Verb {
    VERBS.iter().find(|v| v.en[0] == en).expect("a verb of the lexicon")
}
