//! Noun phrases, places, numbers, comparison.

use super::*;
use crate::syntax::{AS, LESS, MORE};

#[test]
fn articles_and_elision() {
    seen("the cat", "le chat");
    seen("the flower", "la fleur");
    seen("the man", "l'homme");
    seen("the school", "l'école");
    seen("the egg", "l'œuf");
    seen("the mice", "les souris");
    seen("an owl", "un hibou");
    seen("an orange", "une orange");
    seen("some knives", "des couteaux");
}

#[test]
fn aspirated_h_takes_no_elision() {
    seen("the owl", "le hibou");
    seen("the hero", "le héros");
    seen("this hero", "ce héros");
    seen("the old hero", "le vieux héros");
    seen("the hero's hat", "le chapeau du héros");
}

#[test]
fn partitive() {
    let says = |verb, what, en, fr| says(act("she", Present, verb, what), en, fr);
    says("drink", "some water", "She drinks some water.", "Elle boit de l'eau.");
    says("drink", "some milk", "She drinks some milk.", "Elle boit du lait.");
    says("eat", "some good soup", "She eats some good soup.", "Elle mange de la bonne soupe.");
    says("eat", "some good bread", "She eats some good bread.", "Elle mange du bon pain.");
}

#[test]
fn demonstratives_and_possessives_before_vowels() {
    seen("this tree", "cet arbre");
    seen("this hotel", "cet hôtel");
    seen("this big tree", "ce grand arbre");
    seen("this school", "cette école");
    seen("these horses", "ces chevaux");
    seen("my school", "mon école");
    seen("her plate", "son assiette");
    seen("his story", "son histoire");
    seen("my small school", "ma petite école");
    seen("his sister", "sa sœur");
    seen("your uncle", "votre oncle");
    seen("our children", "nos enfants");
    seen("their keys", "leurs clés");
}

#[test]
fn adjectives_stand_before_or_after_and_agree() {
    seen("the red car", "la voiture rouge");
    seen("the white plate", "l'assiette blanche");
    seen("the small grey cows", "les petites vaches grises");
    seen("some beautiful birds", "de beaux oiseaux");
    seen("some green doors", "des portes vertes");
    seen("an old tree", "un vieil arbre");
    seen("a beautiful bird", "un bel oiseau");
    seen("the new hotel", "le nouvel hôtel");
    seen("the new house", "la nouvelle maison");
    seen("his expensive book", "son livre cher");
    says(is("my mother", "happy"), "My mother is happy.", "Ma mère est heureuse.");
    says(is("they", "tired"), "They are tired.", "Ils sont fatigués.");
    says(is("you", "tired"), "You are tired.", "Vous êtes fatigué.");
}

#[test]
fn coordination_agrees_with_both() {
    let strong = |who| is(who, "strong");
    says(
        strong("the girl and the queen"),
        "The girl and the queen are strong.",
        "La fille et la reine sont fortes.",
    );
    says(
        strong("the girl and the boy"),
        "The girl and the boy are strong.",
        "La fille et le garçon sont forts.",
    );
}

#[test]
fn possession() {
    seen("the boy's hat", "le chapeau du garçon");
    seen("the man's hat", "le chapeau de l'homme");
    seen("the children's dog", "le chien des enfants");
    seen("the girls' cat", "le chat des filles");
    seen("my friend's old car", "la vieille voiture de mon ami");
}

#[test]
fn places_contract() {
    let says = |verb, place, what, en, fr| says(at(act("he", Present, verb, ""), place, what), en, fr);
    says("go", "to", "the market", "He goes to the market.", "Il va au marché.");
    says("go", "to", "the beach", "He goes to the beach.", "Il va à la plage.");
    says("go", "to", "the hospital", "He goes to the hospital.", "Il va à l'hôpital.");
    says("come back", "from", "the park", "He comes back from the park.", "Il revient du parc.");
    says("come back", "from", "the school", "He comes back from the school.", "Il revient de l'école.");
    says("sleep", "near", "the garden", "He sleeps near the garden.", "Il dort près du jardin.");
    says("sleep", "near", "a tree", "He sleeps near a tree.", "Il dort près d'un arbre.");
    says(
        "sing",
        "in front of",
        "the church",
        "He sings in front of the church.",
        "Il chante devant l'église.",
    );
    let key = at(Clause::new(subject("the key"), Past, Predicate::Located), "under", "the bed");
    super::says(key, "The key was under the bed.", "La clé était sous le lit.");
}

#[test]
fn there_is() {
    let exists = |what, negated, en, fr| {
        let place = (preposition("in"), phrase("the park"));
        check(Sentence::Exists { phrase: phrase(what), negated, place }, en, fr);
    };
    exists("an owl", false, "There is an owl in the park.", "Il y a un hibou dans le parc.");
    exists(
        "eighty owls",
        false,
        "There are eighty owls in the park.",
        "Il y a quatre-vingts hiboux dans le parc.",
    );
    exists(
        "any children",
        true,
        "There are no children in the park.",
        "Il n'y a pas d'enfants dans le parc.",
    );
}

#[test]
fn numbers_ages_and_prices() {
    seen("twenty-one apples", "vingt et une pommes");
    seen("seventy-one books", "soixante et onze livres");
    let age = |who, n| Clause::new(subject(who), Present, Predicate::Age(n));
    says(age("my brother", 12), "My brother is twelve years old.", "Mon frère a douze ans.");
    says(age("I", 91), "I am ninety-one years old.", "J'ai quatre-vingt-onze ans.");
    let price = act("the hats", Present, "cost", "eighty euros");
    says(price, "The hats cost eighty euros.", "Les chapeaux coûtent quatre-vingts euros.");
    check(
        Sentence::HowOld(phrase("the children")),
        "How old are the children?",
        "Quel âge ont les enfants ?",
    );
}

#[test]
fn comparison() {
    let compare = |who, what, degree, standard, en, fr| {
        let predicate = Predicate::Compare(adjective(what), degree, subject(standard));
        says(Clause::new(subject(who), Present, predicate), en, fr);
    };
    let plus = "La vache est plus grande que le chien.";
    compare("the cow", "big", MORE, "the dog", "The cow is bigger than the dog.", plus);
    let plus = "Les filles sont plus belles qu'elle.";
    compare("the girls", "beautiful", MORE, "she", "The girls are more beautiful than her.", plus);
    let meilleure = "La pomme est meilleure qu'une orange.";
    compare("the apple", "good", MORE, "an orange", "The apple is better than an orange.", meilleure);
    let moins = "Son oncle est moins fort qu'eux.";
    compare("his uncle", "strong", LESS, "they", "His uncle is less strong than them.", moins);
    compare("the boy", "old", AS, "I", "The boy is as old as me.", "Le garçon est aussi vieux que moi.");
}

#[test]
fn not_any_is_pas_de() {
    let has = |what, fr: &str| {
        let clause = Clause { polarity: NOT, ..act("I", Present, "have", what) };
        says(clause, &format!("I do not have {what}."), &format!("Je n'ai pas {fr}."));
    };
    has("a dog", "de chien");
    has("any eggs", "d'œufs");
    has("any pretty hats", "de jolis chapeaux");
    has("the dog", "le chien");
    has("three dogs", "trois chiens");
}
