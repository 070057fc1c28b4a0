//! Conjugation, negation, pronouns, questions, relative clauses, conjunctions.

use super::*;
use crate::lexicon::Preposition;
use crate::syntax::{Adverb, Conjunction, Modal, Polarity, Question, Time};
use Determiner::{Indefinite, The};
use Person::{He, I, She, They, We, You};
use Tense::{Future, Past, Present, Progressive};

fn not(clause: Clause, polarity: Polarity) -> Clause {
    Clause { polarity, ..clause }
}

fn modal(mut clause: Clause, new: Modal) -> Clause {
    if let Predicate::Act { modal, .. } = &mut clause.predicate {
        *modal = Some(new);
    }
    clause
}

#[test]
fn present_in_each_person() {
    for (person, en, fr) in [
        (I, "I open the box.", "J'ouvre la boîte."),
        (You, "You open the box.", "Vous ouvrez la boîte."),
        (He, "He opens the box.", "Il ouvre la boîte."),
        (She, "She opens the box.", "Elle ouvre la boîte."),
        (We, "We open the box.", "Nous ouvrons la boîte."),
        (They, "They open the box.", "Ils ouvrent la boîte."),
    ] {
        says(act(person, Present, "open").with_object(the("box").into()), en, fr);
    }
    for (person, verb, en, fr) in [
        (We, "eat", "We eat the cake.", "Nous mangeons le gâteau."),
        (They, "buy", "They buy the cake.", "Ils achètent le gâteau."),
        (You, "want", "You want the cake.", "Vous voulez le gâteau."),
        (They, "take", "They take the cake.", "Ils prennent le gâteau."),
        (She, "choose", "She chooses the cake.", "Elle choisit le gâteau."),
    ] {
        says(act(person, Present, verb).with_object(the("cake").into()), en, fr);
    }
    says(act(the("girl"), Present, "cry"), "The girl cries.", "La fille pleure.");
}

#[test]
fn passe_compose_with_avoir() {
    let says_past = |subject: Person, verb, object: NounPhrase, en, fr| {
        says(act(subject, Past, verb).with_object(object.into()), en, fr);
    };
    says_past(I, "buy", the("hat"), "I bought the hat.", "J'ai acheté le chapeau.");
    says_past(She, "eat", the("apple"), "She ate the apple.", "Elle a mangé la pomme.");
    says_past(We, "see", the("owl"), "We saw the owl.", "Nous avons vu le hibou.");
    says_past(They, "write", the("letter"), "They wrote the letter.", "Ils ont écrit la lettre.");
    says_past(You, "drink", the("milk"), "You drank the milk.", "Vous avez bu le lait.");
}

#[test]
fn passe_compose_with_etre_agrees_with_the_subject() {
    says(act(She, Past, "leave"), "She left.", "Elle est partie.");
    says(act(We, Past, "stay"), "We stayed.", "Nous sommes restés.");
    says(act(You, Past, "fall"), "You fell.", "Vous êtes tombé.");
    says(act(many(The, "mouse"), Past, "fall"), "The mice fell.", "Les souris sont tombées.");
    let pair = Subject::Pair(my(I, "sister"), my(I, "brother"));
    says(
        act(pair, Past, "arrive"),
        "My sister and my brother arrived.",
        "Ma sœur et mon frère sont arrivés.",
    );
}

#[test]
fn states_are_in_the_imparfait() {
    says(
        act(They, Past, "have").with_object(many(Indefinite, "horse").into()),
        "They had some horses.",
        "Ils avaient des chevaux.",
    );
    says(Clause { tense: Past, ..is(I, "sad") }, "I was sad.", "J'étais triste.");
    says(Clause { tense: Past, ..is(We, "sad") }, "We were sad.", "Nous étions tristes.");
    says(act(He, Progressive, "eat"), "He was eating.", "Il mangeait.");
    says(act(We, Progressive, "eat"), "We were eating.", "Nous mangions.");
    says(act(They, Progressive, "write"), "They were writing.", "Ils écrivaient.");
}

#[test]
fn futur() {
    says(act(I, Future, "go"), "I will go.", "J'irai.");
    says(act(They, Future, "come back"), "They will come back.", "Ils reviendront.");
    says(act(You, Future, "run"), "You will run.", "Vous courrez.");
    says(
        act(She, Future, "send").with_object(the("letter").into()),
        "She will send the letter.",
        "Elle enverra la lettre.",
    );
    says(
        act(We, Future, "buy").with_object(the("car").into()),
        "We will buy the car.",
        "Nous achèterons la voiture.",
    );
    says(Clause { tense: Future, ..is(She, "happy") }, "She will be happy.", "Elle sera heureuse.");
}

#[test]
fn negation() {
    let sleeps = |tense| act(the("owl"), tense, "sleep");
    says(not(sleeps(Present), Polarity::Not), "The owl does not sleep.", "Le hibou ne dort pas.");
    says(not(sleeps(Past), Polarity::Not), "The owl did not sleep.", "Le hibou n'a pas dormi.");
    says(not(sleeps(Past), Polarity::Never), "The owl never slept.", "Le hibou n'a jamais dormi.");
    says(not(sleeps(Future), Polarity::Not), "The owl will not sleep.", "Le hibou ne dormira pas.");
    says(not(sleeps(Present), Polarity::NoLonger), "The owl no longer sleeps.", "Le hibou ne dort plus.");
    says(not(sleeps(Progressive), Polarity::Not), "The owl was not sleeping.", "Le hibou ne dormait pas.");
    says(not(is(I, "tired"), Polarity::Not), "I am not tired.", "Je ne suis pas fatigué.");
    says(not(is(She, "tired"), Polarity::Never), "She is never tired.", "Elle n'est jamais fatiguée.");
    says(
        not(act(They, Present, "write").with_object(many(Indefinite, "letter").into()), Polarity::Never),
        "They never write any letters.",
        "Ils n'écrivent jamais de lettres.",
    );
}

#[test]
fn adverbs_follow_the_french_verb() {
    let often = act(She, Present, "eat").with_object(many(Indefinite, "egg").into());
    says(
        Clause { adverb: Some(Adverb::Often), ..often },
        "She often eats some eggs.",
        "Elle mange souvent des œufs.",
    );
    says(
        Clause { adverb: Some(Adverb::Always), ..is(They, "happy") },
        "They are always happy.",
        "Ils sont toujours heureux.",
    );
    let time = Some(Time::EveryDay);
    says(Clause { time, ..act(He, Present, "work") }, "He works every day.", "Il travaille tous les jours.");
}

#[test]
fn pronoun_objects_stand_before_the_verb() {
    let says_object = |subject: Person, tense, verb, object: Person, en, fr| {
        says(act(subject, tense, verb).with_object(object.into()), en, fr);
    };
    says_object(He, Present, "see", I, "He sees me.", "Il me voit.");
    says_object(She, Present, "love", He, "She loves him.", "Elle l'aime.");
    says_object(I, Present, "listen to", You, "I listen to you.", "Je vous écoute.");
    says_object(They, Future, "help", We, "They will help us.", "Ils nous aideront.");
    says_object(I, Past, "see", She, "I saw her.", "Je l'ai vue.");
    says_object(You, Past, "see", They, "You saw them.", "Vous les avez vus.");
    says(
        not(act(He, Past, "wait for").with_object(She.into()), Polarity::Not),
        "He did not wait for her.",
        "Il ne l'a pas attendue.",
    );
}

#[test]
fn giving() {
    let gives = |tense, gift: NounPhrase, to: Object| {
        act(the("teacher"), tense, "give").with_object(gift.into()).with_recipient(to)
    };
    says(
        gives(Present, one(Indefinite, "apple"), the("boy").into()),
        "The teacher gives an apple to the boy.",
        "Le professeur donne une pomme au garçon.",
    );
    says(
        gives(Present, the("book"), many(The, "child").into()),
        "The teacher gives the book to the children.",
        "Le professeur donne le livre aux enfants.",
    );
    says(
        gives(Past, the("key"), She.into()),
        "The teacher gave her the key.",
        "Le professeur lui a donné la clé.",
    );
    says(
        gives(Future, the("key"), They.into()),
        "The teacher will give them the key.",
        "Le professeur leur donnera la clé.",
    );
    says(act(I, Present, "speak").with_recipient(He.into()), "I speak to him.", "Je lui parle.");
    says(
        act(I, Past, "speak").with_recipient(the("man").into()),
        "I spoke to the man.",
        "J'ai parlé à l'homme.",
    );
}

#[test]
fn modals() {
    let buys = act(the("man"), Present, "buy").with_object(one(Indefinite, "car").into());
    says(
        modal(buys.clone(), Modal::Want),
        "The man wants to buy a car.",
        "L'homme veut acheter une voiture.",
    );
    says(
        not(modal(buys.clone(), Modal::Can), Polarity::Not),
        "The man cannot buy a car.",
        "L'homme ne peut pas acheter de voiture.",
    );
    says(
        not(modal(buys, Modal::Want), Polarity::Not),
        "The man does not want to buy a car.",
        "L'homme ne veut pas acheter de voiture.",
    );
    says(
        modal(act(We, Present, "help").with_object(She.into()), Modal::Must),
        "We must help her.",
        "Nous devons l'aider.",
    );
    says(
        not(modal(act(You, Present, "sleep"), Modal::Must), Polarity::Never),
        "You must never sleep.",
        "Vous ne devez jamais dormir.",
    );
}

#[test]
fn questions() {
    let ask = |question, clause, en, fr| check(Sentence::Question(question, clause), en, fr);
    let eats = |tense| act(She, tense, "eat").with_object(the("apple").into());
    ask(Question::YesNo, eats(Present), "Does she eat the apple?", "Est-ce qu'elle mange la pomme ?");
    ask(Question::YesNo, eats(Past), "Did she eat the apple?", "Est-ce qu'elle a mangé la pomme ?");
    ask(Question::YesNo, eats(Future), "Will she eat the apple?", "Est-ce qu'elle mangera la pomme ?");
    ask(Question::YesNo, is(the("cat"), "black"), "Is the cat black?", "Est-ce que le chat est noir ?");
    ask(
        Question::YesNo,
        act(one(Indefinite, "owl"), Progressive, "sleep"),
        "Was an owl sleeping?",
        "Est-ce qu'un hibou dormait ?",
    );
    ask(Question::Where, act(You, Present, "work"), "Where do you work?", "Où est-ce que vous travaillez ?");
    ask(
        Question::When,
        act(They, Past, "leave"),
        "When did they leave?",
        "Quand est-ce qu'ils sont partis ?",
    );
    ask(
        Question::Why,
        act(the("man"), Present, "cry"),
        "Why does the man cry?",
        "Pourquoi est-ce que l'homme pleure ?",
    );
    ask(
        Question::What,
        act(I, Present, "look for").with_object(Object::Gap(None)),
        "What do I look for?",
        "Qu'est-ce que je cherche ?",
    );
    ask(Question::Who, act(Subject::who(), Past, "arrive"), "Who arrived?", "Qui est arrivé ?");
    ask(
        Question::Who,
        act(Subject::who(), Present, "have").with_object(my(I, "key").into()),
        "Who has my key?",
        "Qui a ma clé ?",
    );
    let oranges = many(Indefinite, "orange");
    ask(
        Question::HowMany(oranges.noun),
        act(She, Past, "eat").with_object(Object::Gap(Some(oranges.agreement()))),
        "How many oranges did she eat?",
        "Combien d'oranges est-ce qu'elle a mangées ?",
    );
}

#[test]
fn relative_clauses() {
    let mut girl = the("girl");
    girl.relative = Some(Box::new(act(Subject::Gap(girl.agreement()), Past, "leave")));
    says(is(girl, "sad"), "The girl who left is sad.", "La fille qui est partie est triste.");
    let mut birds = many(The, "bird");
    birds.relative = Some(Box::new(act(Subject::Gap(birds.agreement()), Present, "play")));
    seen(birds, "I see the birds that play.", "Je vois les oiseaux qui jouent.");
    let mut apples = many(The, "apple");
    let gap = Object::Gap(Some(apples.agreement()));
    apples.relative = Some(Box::new(act(my(I, "uncle"), Past, "take").with_object(gap)));
    says(
        is(apples, "red"),
        "The apples that my uncle took are red.",
        "Les pommes que mon oncle a prises sont rouges.",
    );
    let mut letter = the("letter");
    let gap = Object::Gap(Some(letter.agreement()));
    letter.relative = Some(Box::new(act(They, Past, "write").with_object(gap)));
    seen(letter, "I see the letter that they wrote.", "Je vois la lettre qu'ils ont écrite.");
}

#[test]
fn conjunctions() {
    let join = |a, conjunction, b, en, fr| check(Sentence::Joined(Box::new((a, b)), conjunction), en, fr);
    join(
        act(He, Present, "cry"),
        Conjunction::Because,
        is(He, "tired"),
        "He cries because he is tired.",
        "Il pleure parce qu'il est fatigué.",
    );
    join(
        act(I, Future, "stay"),
        Conjunction::If,
        act(They, Present, "come back"),
        "I will stay if they come back.",
        "Je resterai s'ils reviennent.",
    );
    join(
        act(I, Future, "stay"),
        Conjunction::If,
        act(She, Present, "come back"),
        "I will stay if she comes back.",
        "Je resterai si elle revient.",
    );
    join(
        act(the("cat"), Progressive, "sleep"),
        Conjunction::When,
        act(the("queen"), Past, "arrive"),
        "The cat was sleeping when the queen arrived.",
        "Le chat dormait quand la reine est arrivée.",
    );
    join(
        act(the("dog"), Present, "run"),
        Conjunction::But,
        not(act(the("owl"), Present, "run"), Polarity::Not),
        "The dog runs but the owl does not run.",
        "Le chien court mais le hibou ne court pas.",
    );
    let place = Some((Preposition::With, my(We, "friend")));
    says(
        Clause { place, ..act(She, Past, "dance") },
        "She danced with our friend.",
        "Elle a dansé avec notre ami.",
    );
}
