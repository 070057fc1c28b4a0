//! Noun phrases, places, numbers, comparison.

use super::*;
use crate::lexicon::{EURO, Preposition, find_adjective, find_noun};
use crate::numbers::{Clock, Date};
use crate::syntax::{Degree, Polarity, Time};
use crate::verbs::COST;
use Determiner::{Count, Indefinite, Owner, Possessive, The, This};

#[test]
fn articles_and_elision() {
    seen(the("cat"), "I see the cat.", "Je vois le chat.");
    seen(the("flower"), "I see the flower.", "Je vois la fleur.");
    seen(the("man"), "I see the man.", "Je vois l'homme.");
    seen(the("school"), "I see the school.", "Je vois l'école.");
    seen(the("egg"), "I see the egg.", "Je vois l'œuf.");
    seen(many(The, "mouse"), "I see the mice.", "Je vois les souris.");
    seen(one(Indefinite, "owl"), "I see an owl.", "Je vois un hibou.");
    seen(one(Indefinite, "orange"), "I see an orange.", "Je vois une orange.");
    seen(many(Indefinite, "knife"), "I see some knives.", "Je vois des couteaux.");
}

#[test]
fn aspirated_h_takes_no_elision() {
    seen(the("owl"), "I see the owl.", "Je vois le hibou.");
    seen(the("hero"), "I see the hero.", "Je vois le héros.");
    seen(one(This, "hero"), "I see this hero.", "Je vois ce héros.");
    seen(with(the("hero"), &["old"]), "I see the old hero.", "Je vois le vieux héros.");
    let hat = NounPhrase::new(Owner(Box::new(the("hero"))), find_noun("hat"), false);
    seen(hat, "I see the hero's hat.", "Je vois le chapeau du héros.");
}

#[test]
fn partitive() {
    let drinks = |object: NounPhrase| act(Person::She, Tense::Present, "drink").with_object(object.into());
    says(drinks(one(Indefinite, "water")), "She drinks some water.", "Elle boit de l'eau.");
    says(drinks(one(Indefinite, "milk")), "She drinks some milk.", "Elle boit du lait.");
    let soup = with(one(Indefinite, "soup"), &["good"]);
    let eats = |object: NounPhrase| act(Person::She, Tense::Present, "eat").with_object(object.into());
    says(eats(soup), "She eats some good soup.", "Elle mange de la bonne soupe.");
    says(
        eats(with(one(Indefinite, "bread"), &["good"])),
        "She eats some good bread.",
        "Elle mange du bon pain.",
    );
}

#[test]
fn demonstratives_and_possessives_before_vowels() {
    seen(one(This, "tree"), "I see this tree.", "Je vois cet arbre.");
    seen(one(This, "hotel"), "I see this hotel.", "Je vois cet hôtel.");
    seen(with(one(This, "tree"), &["big"]), "I see this big tree.", "Je vois ce grand arbre.");
    seen(one(This, "school"), "I see this school.", "Je vois cette école.");
    seen(many(This, "horse"), "I see these horses.", "Je vois ces chevaux.");
    seen(my(Person::I, "school"), "I see my school.", "Je vois mon école.");
    seen(my(Person::She, "plate"), "I see her plate.", "Je vois son assiette.");
    seen(my(Person::He, "story"), "I see his story.", "Je vois son histoire.");
    seen(with(my(Person::I, "school"), &["small"]), "I see my small school.", "Je vois ma petite école.");
    seen(my(Person::He, "sister"), "I see his sister.", "Je vois sa sœur.");
    seen(my(Person::You, "uncle"), "I see your uncle.", "Je vois votre oncle.");
    seen(many(Possessive(Person::We), "child"), "I see our children.", "Je vois nos enfants.");
    seen(many(Possessive(Person::They), "key"), "I see their keys.", "Je vois leurs clés.");
}

#[test]
fn adjectives_stand_before_or_after_and_agree() {
    seen(with(the("car"), &["red"]), "I see the red car.", "Je vois la voiture rouge.");
    seen(with(the("plate"), &["white"]), "I see the white plate.", "Je vois l'assiette blanche.");
    seen(
        with(many(The, "cow"), &["small", "grey"]),
        "I see the small grey cows.",
        "Je vois les petites vaches grises.",
    );
    seen(
        with(many(Indefinite, "bird"), &["beautiful"]),
        "I see some beautiful birds.",
        "Je vois de beaux oiseaux.",
    );
    seen(with(many(Indefinite, "door"), &["green"]), "I see some green doors.", "Je vois des portes vertes.");
    seen(with(one(Indefinite, "tree"), &["old"]), "I see an old tree.", "Je vois un vieil arbre.");
    seen(with(one(Indefinite, "bird"), &["beautiful"]), "I see a beautiful bird.", "Je vois un bel oiseau.");
    seen(with(the("hotel"), &["new"]), "I see the new hotel.", "Je vois le nouvel hôtel.");
    seen(with(the("house"), &["new"]), "I see the new house.", "Je vois la nouvelle maison.");
    seen(
        with(my(Person::He, "book"), &["expensive"]),
        "I see his expensive book.",
        "Je vois son livre cher.",
    );
    says(is(my(Person::I, "mother"), "happy"), "My mother is happy.", "Ma mère est heureuse.");
    says(is(Person::They, "tired"), "They are tired.", "Ils sont fatigués.");
    says(is(Person::You, "tired"), "You are tired.", "Vous êtes fatigué.");
}

#[test]
fn coordination_agrees_with_both() {
    let feminine = Subject::Pair(the("girl"), the("queen"));
    says(is(feminine, "strong"), "The girl and the queen are strong.", "La fille et la reine sont fortes.");
    let mixed = Subject::Pair(the("girl"), the("boy"));
    says(is(mixed, "strong"), "The girl and the boy are strong.", "La fille et le garçon sont forts.");
}

#[test]
fn possession() {
    let of = |owner: NounPhrase, noun| NounPhrase::new(Owner(Box::new(owner)), find_noun(noun), false);
    seen(of(the("boy"), "hat"), "I see the boy's hat.", "Je vois le chapeau du garçon.");
    seen(of(the("man"), "hat"), "I see the man's hat.", "Je vois le chapeau de l'homme.");
    seen(of(many(The, "child"), "dog"), "I see the children's dog.", "Je vois le chien des enfants.");
    seen(of(many(The, "girl"), "cat"), "I see the girls' cat.", "Je vois le chat des filles.");
    let car = with(of(my(Person::I, "friend"), "car"), &["old"]);
    seen(car, "I see my friend's old car.", "Je vois la vieille voiture de mon ami.");
}

#[test]
fn places_contract() {
    let goes = |verb, preposition, phrase| Clause {
        place: Some((preposition, phrase)),
        ..act(Person::He, Tense::Present, verb)
    };
    let (to, from) = (Preposition::To, Preposition::From);
    says(goes("go", to, the("market")), "He goes to the market.", "Il va au marché.");
    says(goes("go", to, the("beach")), "He goes to the beach.", "Il va à la plage.");
    says(goes("go", to, the("hospital")), "He goes to the hospital.", "Il va à l'hôpital.");
    says(goes("come back", from, the("park")), "He comes back from the park.", "Il revient du parc.");
    says(goes("come back", from, the("school")), "He comes back from the school.", "Il revient de l'école.");
    says(
        goes("sleep", Preposition::Near, the("garden")),
        "He sleeps near the garden.",
        "Il dort près du jardin.",
    );
    says(
        goes("sleep", Preposition::Near, one(Indefinite, "tree")),
        "He sleeps near a tree.",
        "Il dort près d'un arbre.",
    );
    says(
        goes("sing", Preposition::InFrontOf, the("church")),
        "He sings in front of the church.",
        "Il chante devant l'église.",
    );
    let key = Clause {
        place: Some((Preposition::Under, the("bed"))),
        ..Clause::new(the("key").into(), Tense::Past, Predicate::Located)
    };
    says(key, "The key was under the bed.", "La clé était sous le lit.");
}

#[test]
fn there_is() {
    let exists =
        |phrase, negated| Sentence::Exists { phrase, negated, place: (Preposition::In, the("park")) };
    check(
        exists(one(Indefinite, "owl"), false),
        "There is an owl in the park.",
        "Il y a un hibou dans le parc.",
    );
    check(
        exists(many(Count(80), "owl"), false),
        "There are eighty owls in the park.",
        "Il y a quatre-vingts hiboux dans le parc.",
    );
    check(
        exists(many(Indefinite, "child"), true),
        "There are no children in the park.",
        "Il n'y a pas d'enfants dans le parc.",
    );
}

#[test]
fn numbers_ages_and_prices() {
    seen(many(Count(21), "apple"), "I see twenty-one apples.", "Je vois vingt et une pommes.");
    seen(many(Count(71), "book"), "I see seventy-one books.", "Je vois soixante et onze livres.");
    let age = |subject: Subject, n| Clause::new(subject, Tense::Present, Predicate::Age(n));
    says(
        age(my(Person::I, "brother").into(), 12),
        "My brother is twelve years old.",
        "Mon frère a douze ans.",
    );
    says(age(Person::I.into(), 91), "I am ninety-one years old.", "J'ai quatre-vingt-onze ans.");
    let euros = NounPhrase::new(Count(80), &EURO, true);
    let price =
        Clause::act(many(The, "hat").into(), Tense::Present, &COST).with_object(Object::Phrase(euros));
    says(price, "The hats cost eighty euros.", "Les chapeaux coûtent quatre-vingts euros.");
    check(Sentence::HowOld(many(The, "child")), "How old are the children?", "Quel âge ont les enfants ?");
}

#[test]
fn dates_and_times() {
    let leaves = |time| Clause { time: Some(time), ..act(Person::We, Tense::Future, "leave") };
    let on = |day, month| Time::On(Date { day, month });
    says(leaves(on(3, 4)), "We will leave on the third of May.", "Nous partirons le trois mai.");
    says(leaves(on(1, 4)), "We will leave on the first of May.", "Nous partirons le premier mai.");
    says(leaves(on(8, 7)), "We will leave on the eighth of August.", "Nous partirons le huit août.");
    says(leaves(on(11, 0)), "We will leave on the eleventh of January.", "Nous partirons le onze janvier.");
    says(leaves(Time::Weekday(0)), "We will leave on Monday.", "Nous partirons lundi.");
    says(leaves(Time::Month(3)), "We will leave in April.", "Nous partirons en avril.");
    says(leaves(Time::Tomorrow), "We will leave tomorrow.", "Nous partirons demain.");
    says(
        leaves(Time::At(Clock::Hour(8, 5))),
        "We will leave at half past eight.",
        "Nous partirons à huit heures et demie.",
    );
    check(
        Sentence::Clock(Clock::Hour(4, 7)),
        "It is a quarter to four.",
        "Il est quatre heures moins le quart.",
    );
    check(
        Sentence::Today(2, Date { day: 31, month: 11 }),
        "Today is Wednesday, the thirty-first of December.",
        "Aujourd'hui, nous sommes le mercredi trente et un décembre.",
    );
}

#[test]
fn comparison() {
    let compare = |subject: NounPhrase, adjective, degree, standard: Subject| {
        let predicate = Predicate::Compare(find_adjective(adjective), degree, standard);
        Clause::new(subject.into(), Tense::Present, predicate)
    };
    says(
        compare(the("cow"), "big", Degree::More, the("dog").into()),
        "The cow is bigger than the dog.",
        "La vache est plus grande que le chien.",
    );
    says(
        compare(many(The, "girl"), "beautiful", Degree::More, Person::She.into()),
        "The girls are more beautiful than her.",
        "Les filles sont plus belles qu'elle.",
    );
    says(
        compare(the("apple"), "good", Degree::More, one(Indefinite, "orange").into()),
        "The apple is better than an orange.",
        "La pomme est meilleure qu'une orange.",
    );
    says(
        compare(my(Person::He, "uncle"), "strong", Degree::Less, Person::They.into()),
        "His uncle is less strong than them.",
        "Son oncle est moins fort qu'eux.",
    );
    says(
        compare(the("boy"), "old", Degree::As, Person::I.into()),
        "The boy is as old as me.",
        "Le garçon est aussi vieux que moi.",
    );
}

#[test]
fn not_any_is_pas_de() {
    let has = |object: NounPhrase| Clause {
        polarity: Polarity::Not,
        ..act(Person::I, Tense::Present, "have").with_object(object.into())
    };
    says(has(one(Indefinite, "dog")), "I do not have a dog.", "Je n'ai pas de chien.");
    says(has(many(Indefinite, "egg")), "I do not have any eggs.", "Je n'ai pas d'œufs.");
    says(
        has(with(many(Indefinite, "hat"), &["pretty"])),
        "I do not have any pretty hats.",
        "Je n'ai pas de jolis chapeaux.",
    );
    says(has(the("dog")), "I do not have the dog.", "Je n'ai pas le chien.");
    says(has(many(Count(3), "dog")), "I do not have three dogs.", "Je n'ai pas trois chiens.");
}
