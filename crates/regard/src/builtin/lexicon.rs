//! The words: nouns, adjectives and verbs with their forms in both languages and what they combine with.
//!
//! No English form may stand for two different French words in one place, because the corpus has one
//! translation for each sentence. That is why verbs whose past equals their present (read, put, cut) are absent.

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

    pub(super) fn takes(&self, noun: &Noun) -> bool {
        self.objects.contains(&noun.kind) && (self.only.is_empty() || self.only.contains(&noun.en))
    }
}

use Conjugation::{Er, Listed};
use Frame::{Ditransitive, Intransitive, Motion, ToSomebody, Transitive};

const NOTHING: &[Kind] = &[];
const GOODS: &[Kind] = &[Thing, Food];

pub(super) static VERBS: &[Verb] = &[
    verb(["eat", "eats", "ate", "eating"], "manger", Er, Transitive, &[Food, Kind::Meal]).animals(),
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
    verb(
        ["love", "loves", "loved", "loving"],
        "aimer",
        Er,
        Transitive,
        &[Person, Kin, Animal, Food, Kind::Meal],
    )
    .state(),
    verb(
        ["buy", "buys", "bought", "buying"],
        "acheter",
        Listed(["achète", "achète", "achetons", "achetez", "achètent"], "achèter", "acheté"),
        Transitive,
        &[Animal, Thing, Food, Kind::Meal, Drink],
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
        &[Animal, Thing, Food, Kind::Meal, Drink],
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

/// The verb with this English base form.
#[cfg(test)]
pub(super) fn find_verb(en: &str) -> &'static Verb {
    VERBS.iter().find(|v| v.en[0] == en).expect("a verb of the lexicon")
}
