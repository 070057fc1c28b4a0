//! Nouns and adjectives with their forms in both languages and what they combine with.
//!
//! No English form may stand for two different French words in one place, because the corpus has one
//! translation for each sentence.

use Gender::{Feminine, Masculine};
use Kind::{Animal, Drink, Food, Kin, Person, Place, Thing};
use Preposition::{Behind, In, InFrontOf, Near, On, Under};

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preposition {
    In,
    On,
    Under,
    Behind,
    InFrontOf,
    Near,
    With,
    To,
    From,
    At,
}

impl Preposition {
    pub(super) fn english(self) -> &'static str {
        match self {
            In => "in",
            On => "on",
            Under => "under",
            Behind => "behind",
            InFrontOf => "in front of",
            Near => "near",
            Preposition::With => "with",
            Preposition::To => "to",
            Preposition::From => "from",
            Preposition::At => "at",
        }
    }

    pub(super) fn french(self) -> &'static [&'static str] {
        match self {
            In => &["dans"],
            On => &["sur"],
            Under => &["sous"],
            Behind => &["derrière"],
            InFrontOf => &["devant"],
            Near => &["près", "de"],
            Preposition::With => &["avec"],
            Preposition::To | Preposition::At => &["à"],
            Preposition::From => &["de"],
        }
    }
}

#[derive(Debug)]
pub(super) struct Noun {
    pub(super) en: &'static str,
    pub(super) en_plural: &'static str,
    pub(super) fr: &'static str,
    pub(super) fr_plural: &'static str,
    pub(super) gender: Gender,
    pub(super) kind: Kind,
    /// The prepositions with which the noun says where something is.
    pub(super) spots: &'static [Preposition],
}

impl Noun {
    pub(super) fn is_mass(&self) -> bool {
        matches!(self.kind, Kind::Meal | Drink)
    }

    pub(super) fn is_human(&self) -> bool {
        matches!(self.kind, Person | Kin)
    }

    /// Whether one says "my …" of it.
    pub(super) fn is_owned(&self) -> bool {
        match self.kind {
            Person => matches!(self.en, "child" | "teacher" | "doctor" | "friend"),
            Place => matches!(self.en, "house" | "garden" | "school" | "hotel"),
            _ => true,
        }
    }
}

const fn noun(
    (en, en_plural): (&'static str, &'static str),
    (fr, fr_plural): (&'static str, &'static str),
    gender: Gender,
    kind: Kind,
    spots: &'static [Preposition],
) -> Noun {
    Noun { en, en_plural, fr, fr_plural, gender, kind, spots }
}

const NOWHERE: &[Preposition] = &[];
const ROOM: &[Preposition] = &[In, Behind, InFrontOf, Near];
const TOP: &[Preposition] = &[On, Under, Behind, Near];

/// `hibou` and `héros` have an aspirated h; the other initial h's are mute.
pub(super) static NOUNS: &[Noun] = &[
    noun(("man", "men"), ("homme", "hommes"), Masculine, Person, NOWHERE),
    noun(("woman", "women"), ("femme", "femmes"), Feminine, Person, NOWHERE),
    noun(("boy", "boys"), ("garçon", "garçons"), Masculine, Person, NOWHERE),
    noun(("girl", "girls"), ("fille", "filles"), Feminine, Person, NOWHERE),
    noun(("child", "children"), ("enfant", "enfants"), Masculine, Person, NOWHERE),
    noun(("teacher", "teachers"), ("professeur", "professeurs"), Masculine, Person, NOWHERE),
    noun(("doctor", "doctors"), ("médecin", "médecins"), Masculine, Person, NOWHERE),
    noun(("friend", "friends"), ("ami", "amis"), Masculine, Person, NOWHERE),
    noun(("queen", "queens"), ("reine", "reines"), Feminine, Person, NOWHERE),
    noun(("hero", "heroes"), ("héros", "héros"), Masculine, Person, NOWHERE),
    noun(("actress", "actresses"), ("actrice", "actrices"), Feminine, Person, NOWHERE),
    noun(("brother", "brothers"), ("frère", "frères"), Masculine, Kin, NOWHERE),
    noun(("sister", "sisters"), ("sœur", "sœurs"), Feminine, Kin, NOWHERE),
    noun(("mother", "mothers"), ("mère", "mères"), Feminine, Kin, NOWHERE),
    noun(("uncle", "uncles"), ("oncle", "oncles"), Masculine, Kin, NOWHERE),
    noun(("cat", "cats"), ("chat", "chats"), Masculine, Animal, NOWHERE),
    noun(("dog", "dogs"), ("chien", "chiens"), Masculine, Animal, NOWHERE),
    noun(("bird", "birds"), ("oiseau", "oiseaux"), Masculine, Animal, NOWHERE),
    noun(("horse", "horses"), ("cheval", "chevaux"), Masculine, Animal, NOWHERE),
    noun(("mouse", "mice"), ("souris", "souris"), Feminine, Animal, NOWHERE),
    noun(("cow", "cows"), ("vache", "vaches"), Feminine, Animal, NOWHERE),
    noun(("owl", "owls"), ("hibou", "hiboux"), Masculine, Animal, NOWHERE),
    noun(("apple", "apples"), ("pomme", "pommes"), Feminine, Food, NOWHERE),
    noun(("orange", "oranges"), ("orange", "oranges"), Feminine, Food, NOWHERE),
    noun(("egg", "eggs"), ("œuf", "œufs"), Masculine, Food, NOWHERE),
    noun(("cake", "cakes"), ("gâteau", "gâteaux"), Masculine, Food, NOWHERE),
    noun(("bread", "bread"), ("pain", "pain"), Masculine, Kind::Meal, NOWHERE),
    noun(("soup", "soup"), ("soupe", "soupe"), Feminine, Kind::Meal, NOWHERE),
    noun(("water", "water"), ("eau", "eau"), Feminine, Drink, NOWHERE),
    noun(("milk", "milk"), ("lait", "lait"), Masculine, Drink, NOWHERE),
    noun(("book", "books"), ("livre", "livres"), Masculine, Thing, NOWHERE),
    noun(("letter", "letters"), ("lettre", "lettres"), Feminine, Thing, NOWHERE),
    noun(("story", "stories"), ("histoire", "histoires"), Feminine, Thing, NOWHERE),
    noun(("newspaper", "newspapers"), ("journal", "journaux"), Masculine, Thing, NOWHERE),
    noun(("flower", "flowers"), ("fleur", "fleurs"), Feminine, Thing, NOWHERE),
    noun(("hat", "hats"), ("chapeau", "chapeaux"), Masculine, Thing, NOWHERE),
    noun(("key", "keys"), ("clé", "clés"), Feminine, Thing, NOWHERE),
    noun(("knife", "knives"), ("couteau", "couteaux"), Masculine, Thing, NOWHERE),
    noun(("plate", "plates"), ("assiette", "assiettes"), Feminine, Thing, NOWHERE),
    noun(("car", "cars"), ("voiture", "voitures"), Feminine, Thing, ROOM),
    noun(("box", "boxes"), ("boîte", "boîtes"), Feminine, Thing, ROOM),
    noun(("table", "tables"), ("table", "tables"), Feminine, Thing, TOP),
    noun(("bed", "beds"), ("lit", "lits"), Masculine, Thing, TOP),
    noun(("door", "doors"), ("porte", "portes"), Feminine, Thing, &[Behind, InFrontOf, Near]),
    noun(("tree", "trees"), ("arbre", "arbres"), Masculine, Thing, &[Under, Behind, Near]),
    noun(("house", "houses"), ("maison", "maisons"), Feminine, Place, ROOM),
    noun(("garden", "gardens"), ("jardin", "jardins"), Masculine, Place, ROOM),
    noun(("school", "schools"), ("école", "écoles"), Feminine, Place, ROOM),
    noun(("market", "markets"), ("marché", "marchés"), Masculine, Place, &[Behind, Near]),
    noun(("station", "stations"), ("gare", "gares"), Feminine, Place, ROOM),
    noun(("hotel", "hotels"), ("hôtel", "hôtels"), Masculine, Place, ROOM),
    noun(("hospital", "hospitals"), ("hôpital", "hôpitaux"), Masculine, Place, ROOM),
    noun(("church", "churches"), ("église", "églises"), Feminine, Place, ROOM),
    noun(("park", "parks"), ("parc", "parcs"), Masculine, Place, ROOM),
    noun(("beach", "beaches"), ("plage", "plages"), Feminine, Place, &[On, Near]),
];

pub(super) static EURO: Noun = noun(("euro", "euros"), ("euro", "euros"), Masculine, Kind::Money, NOWHERE);

#[derive(Debug)]
pub(super) struct Adjective {
    pub(super) en: &'static str,
    /// `None` for what is not compared, such as colours.
    pub(super) en_comparative: Option<&'static str>,
    /// Masculine, feminine, masculine plural, feminine plural.
    pub(super) fr: [&'static str; 4],
    /// Masculine singular before a vowel sound.
    pub(super) fr_before_vowel: &'static str,
    pub(super) before_noun: bool,
    pub(super) kinds: &'static [Kind],
}

const fn before(
    en: &'static str,
    comparative: &'static str,
    fr: [&'static str; 4],
    kinds: &'static [Kind],
) -> Adjective {
    Adjective { en, en_comparative: Some(comparative), fr, fr_before_vowel: fr[0], before_noun: true, kinds }
}

const fn after(
    en: &'static str,
    en_comparative: Option<&'static str>,
    fr: [&'static str; 4],
    kinds: &'static [Kind],
) -> Adjective {
    Adjective { en, en_comparative, fr, fr_before_vowel: fr[0], before_noun: false, kinds }
}

const LIVING: &[Kind] = &[Person, Kin, Animal];
const OBJECTS: &[Kind] = &[Thing, Place];
const COLOURED: &[Kind] = &[Animal, Thing];

pub(super) static ADJECTIVES: &[Adjective] = &[
    before(
        "small",
        "smaller",
        ["petit", "petite", "petits", "petites"],
        &[Person, Animal, Food, Thing, Place],
    ),
    before("big", "bigger", ["grand", "grande", "grands", "grandes"], &[Animal, Thing, Place]),
    before("young", "younger", ["jeune", "jeune", "jeunes", "jeunes"], LIVING),
    before("pretty", "prettier", ["joli", "jolie", "jolis", "jolies"], &[Animal, Thing, Place]),
    before("good", "better", ["bon", "bonne", "bons", "bonnes"], &[Food, Kind::Meal, Thing]),
    Adjective {
        fr_before_vowel: "bel",
        ..before(
            "beautiful",
            "more beautiful",
            ["beau", "belle", "beaux", "belles"],
            &[Person, Animal, Thing, Place],
        )
    },
    Adjective {
        fr_before_vowel: "vieil",
        ..before(
            "old",
            "older",
            ["vieux", "vieille", "vieux", "vieilles"],
            &[Person, Kin, Animal, Thing, Place],
        )
    },
    Adjective {
        fr_before_vowel: "nouvel",
        en_comparative: None,
        ..before("new", "", ["nouveau", "nouvelle", "nouveaux", "nouvelles"], OBJECTS)
    },
    after("red", None, ["rouge", "rouge", "rouges", "rouges"], &[Food, Thing]),
    after("blue", None, ["bleu", "bleue", "bleus", "bleues"], &[Thing]),
    after("green", None, ["vert", "verte", "verts", "vertes"], &[Food, Thing]),
    after("black", None, ["noir", "noire", "noirs", "noires"], COLOURED),
    after("white", None, ["blanc", "blanche", "blancs", "blanches"], COLOURED),
    after("grey", None, ["gris", "grise", "gris", "grises"], COLOURED),
    after("heavy", Some("heavier"), ["lourd", "lourde", "lourds", "lourdes"], &[Thing]),
    after("expensive", Some("more expensive"), ["cher", "chère", "chers", "chères"], &[Thing, Place, Food]),
    after("clean", Some("cleaner"), ["propre", "propre", "propres", "propres"], OBJECTS),
    after("empty", None, ["vide", "vide", "vides", "vides"], &[Place]),
    after("hot", Some("hotter"), ["chaud", "chaude", "chauds", "chaudes"], &[Kind::Meal, Drink]),
    after("cold", Some("colder"), ["froid", "froide", "froids", "froides"], &[Kind::Meal, Drink]),
    after("happy", Some("happier"), ["heureux", "heureuse", "heureux", "heureuses"], LIVING),
    after("sad", Some("sadder"), ["triste", "triste", "tristes", "tristes"], LIVING),
    after("tired", Some("more tired"), ["fatigué", "fatiguée", "fatigués", "fatiguées"], LIVING),
    after("strong", Some("stronger"), ["fort", "forte", "forts", "fortes"], LIVING),
    after("kind", Some("kinder"), ["gentil", "gentille", "gentils", "gentilles"], &[Person, Kin]),
    after(
        "clever",
        Some("cleverer"),
        ["intelligent", "intelligente", "intelligents", "intelligentes"],
        LIVING,
    ),
];

/// The noun with this English lemma.
#[cfg(test)]
pub(super) fn find_noun(en: &str) -> &'static Noun {
    NOUNS.iter().find(|n| n.en == en).expect("a noun of the lexicon")
}

/// The adjective with this English lemma.
#[cfg(test)]
pub(super) fn find_adjective(en: &str) -> &'static Adjective {
    ADJECTIVES.iter().find(|a| a.en == en).expect("an adjective of the lexicon")
}
