//! Conjugation, negation, pronouns, questions, relative clauses, conjunctions.

use super::*;
use crate::lexicon::Gloss;
use crate::syntax::{BECAUSE, BUT, IF, NEVER, NO_LONGER, WHEN};

fn not(clause: Clause, polarity: Gloss) -> Clause {
    Clause { polarity, ..clause }
}

#[test]
fn present_in_each_person() {
    for (who, en, fr) in [
        ("I", "I open the box.", "J'ouvre la boîte."),
        ("you", "You open the box.", "Vous ouvrez la boîte."),
        ("he", "He opens the box.", "Il ouvre la boîte."),
        ("she", "She opens the box.", "Elle ouvre la boîte."),
        ("we", "We open the box.", "Nous ouvrons la boîte."),
        ("they", "They open the box.", "Ils ouvrent la boîte."),
    ] {
        says(act(who, Present, "open", "the box"), en, fr);
    }
    for (who, verb, en, fr) in [
        ("we", "eat", "We eat the cake.", "Nous mangeons le gâteau."),
        ("they", "buy", "They buy the cake.", "Ils achètent le gâteau."),
        ("you", "want", "You want the cake.", "Vous voulez le gâteau."),
        ("they", "take", "They take the cake.", "Ils prennent le gâteau."),
        ("she", "choose", "She chooses the cake.", "Elle choisit le gâteau."),
    ] {
        says(act(who, Present, verb, "the cake"), en, fr);
    }
    says(act("the girl", Present, "cry", ""), "The girl cries.", "La fille pleure.");
}

#[test]
fn passe_compose_with_avoir() {
    let says = |who, verb, what, en, fr| says(act(who, Past, verb, what), en, fr);
    says("I", "buy", "the hat", "I bought the hat.", "J'ai acheté le chapeau.");
    says("she", "eat", "the apple", "She ate the apple.", "Elle a mangé la pomme.");
    says("we", "see", "the owl", "We saw the owl.", "Nous avons vu le hibou.");
    says("they", "write", "the letter", "They wrote the letter.", "Ils ont écrit la lettre.");
    says("you", "drink", "the milk", "You drank the milk.", "Vous avez bu le lait.");
}

#[test]
fn passe_compose_with_etre_agrees_with_the_subject() {
    let says = |who, verb, en, fr| says(act(who, Past, verb, ""), en, fr);
    says("she", "leave", "She left.", "Elle est partie.");
    says("we", "stay", "We stayed.", "Nous sommes restés.");
    says("you", "fall", "You fell.", "Vous êtes tombé.");
    says("the mice", "fall", "The mice fell.", "Les souris sont tombées.");
    let arrived = "Ma sœur et mon frère sont arrivés.";
    says("my sister and my brother", "arrive", "My sister and my brother arrived.", arrived);
}

#[test]
fn states_are_in_the_imparfait() {
    says(act("they", Past, "have", "some horses"), "They had some horses.", "Ils avaient des chevaux.");
    says(Clause { tense: Past, ..is("I", "sad") }, "I was sad.", "J'étais triste.");
    says(Clause { tense: Past, ..is("we", "sad") }, "We were sad.", "Nous étions tristes.");
    says(act("he", Progressive, "eat", ""), "He was eating.", "Il mangeait.");
    says(act("we", Progressive, "eat", ""), "We were eating.", "Nous mangions.");
    says(act("they", Progressive, "write", ""), "They were writing.", "Ils écrivaient.");
}

#[test]
fn futur() {
    says(act("I", Future, "go", ""), "I will go.", "J'irai.");
    says(act("they", Future, "come back", ""), "They will come back.", "Ils reviendront.");
    says(act("you", Future, "run", ""), "You will run.", "Vous courrez.");
    says(act("she", Future, "send", "the letter"), "She will send the letter.", "Elle enverra la lettre.");
    says(act("we", Future, "buy", "the car"), "We will buy the car.", "Nous achèterons la voiture.");
    says(Clause { tense: Future, ..is("she", "happy") }, "She will be happy.", "Elle sera heureuse.");
}

#[test]
fn negation() {
    let sleeps = |tense, polarity| not(act("the owl", tense, "sleep", ""), polarity);
    says(sleeps(Present, NOT), "The owl does not sleep.", "Le hibou ne dort pas.");
    says(sleeps(Past, NOT), "The owl did not sleep.", "Le hibou n'a pas dormi.");
    says(sleeps(Past, NEVER), "The owl never slept.", "Le hibou n'a jamais dormi.");
    says(sleeps(Future, NOT), "The owl will not sleep.", "Le hibou ne dormira pas.");
    says(sleeps(Present, NO_LONGER), "The owl no longer sleeps.", "Le hibou ne dort plus.");
    says(sleeps(Progressive, NOT), "The owl was not sleeping.", "Le hibou ne dormait pas.");
    says(not(is("I", "tired"), NOT), "I am not tired.", "Je ne suis pas fatigué.");
    says(not(is("she", "tired"), NEVER), "She is never tired.", "Elle n'est jamais fatiguée.");
    let letters = not(act("they", Present, "write", "any letters"), NEVER);
    says(letters, "They never write any letters.", "Ils n'écrivent jamais de lettres.");
}

#[test]
fn adverbs_and_times() {
    let often = Clause { adverb: Some(("often", "souvent")), ..act("she", Present, "eat", "some eggs") };
    says(often, "She often eats some eggs.", "Elle mange souvent des œufs.");
    let always = Clause { adverb: Some(("always", "toujours")), ..is("they", "happy") };
    says(always, "They are always happy.", "Ils sont toujours heureux.");
    let leaving = |en: &str, fr: &str| {
        let clause = Clause { time: Some((en.into(), fr.into())), ..act("we", Future, "leave", "") };
        says(clause, &format!("We will leave {en}."), &format!("Nous partirons {fr}."));
    };
    leaving("on the eleventh of January", "le onze janvier");
    leaving("at half past eight", "à huit heures et demie");
    leaving("every day", "tous les jours");
}

#[test]
fn pronoun_objects_stand_before_the_verb() {
    let says = |who, tense, verb, whom, en, fr| says(act(who, tense, verb, whom), en, fr);
    says("he", Present, "see", "me", "He sees me.", "Il me voit.");
    says("she", Present, "love", "him", "She loves him.", "Elle l'aime.");
    says("I", Present, "listen to", "you", "I listen to you.", "Je vous écoute.");
    says("they", Future, "help", "us", "They will help us.", "Ils nous aideront.");
    says("I", Past, "see", "her", "I saw her.", "Je l'ai vue.");
    says("you", Past, "see", "them", "You saw them.", "Vous les avez vus.");
    let waiting = not(act("he", Past, "wait for", "her"), NOT);
    super::says(waiting, "He did not wait for her.", "Il ne l'a pas attendue.");
}

#[test]
fn giving() {
    let says = |tense, gift, to, en, fr| {
        says(act("the teacher", tense, "give", gift).with_recipient(object(to)), en, fr);
    };
    let pomme = "Le professeur donne une pomme au garçon.";
    says(Present, "an apple", "the boy", "The teacher gives an apple to the boy.", pomme);
    let livre = "Le professeur donne le livre aux enfants.";
    says(Present, "the book", "the children", "The teacher gives the book to the children.", livre);
    says(Past, "the key", "her", "The teacher gave her the key.", "Le professeur lui a donné la clé.");
    says(
        Future,
        "the key",
        "them",
        "The teacher will give them the key.",
        "Le professeur leur donnera la clé.",
    );
    let speak = |tense, to| act("I", tense, "speak", "").with_recipient(object(to));
    super::says(speak(Present, "him"), "I speak to him.", "Je lui parle.");
    super::says(speak(Past, "the man"), "I spoke to the man.", "J'ai parlé à l'homme.");
}

#[test]
fn modals() {
    let modal = |who, verb, what, modal| act(who, Present, verb, what).with_modal(find_verb(modal));
    let buys = |name| modal("the man", "buy", "a car", name);
    says(buys("want"), "The man wants to buy a car.", "L'homme veut acheter une voiture.");
    says(not(buys("can"), NOT), "The man cannot buy a car.", "L'homme ne peut pas acheter de voiture.");
    let unwilling = "L'homme ne veut pas acheter de voiture.";
    says(not(buys("want"), NOT), "The man does not want to buy a car.", unwilling);
    says(modal("we", "help", "her", "must"), "We must help her.", "Nous devons l'aider.");
    let awake = not(modal("you", "sleep", "", "must"), NEVER);
    says(awake, "You must never sleep.", "Vous ne devez jamais dormir.");
}

#[test]
fn questions() {
    let ask = |question, clause, en, fr| check(Sentence::Question(question, clause), en, fr);
    let eats = |tense| act("she", tense, "eat", "the apple");
    ask(YES_NO, eats(Present), "Does she eat the apple?", "Est-ce qu'elle mange la pomme ?");
    ask(YES_NO, eats(Past), "Did she eat the apple?", "Est-ce qu'elle a mangé la pomme ?");
    ask(YES_NO, eats(Future), "Will she eat the apple?", "Est-ce qu'elle mangera la pomme ?");
    ask(YES_NO, is("the cat", "black"), "Is the cat black?", "Est-ce que le chat est noir ?");
    let sleeping = act("an owl", Progressive, "sleep", "");
    ask(YES_NO, sleeping, "Was an owl sleeping?", "Est-ce qu'un hibou dormait ?");
    let working = act("you", Present, "work", "");
    ask(("where", "où est-ce que"), working, "Where do you work?", "Où est-ce que vous travaillez ?");
    let leaving = act("they", Past, "leave", "");
    ask(("when", "quand est-ce que"), leaving, "When did they leave?", "Quand est-ce qu'ils sont partis ?");
    let looking = act("I", Present, "look for", "").with_object(Object::Gap(None));
    ask(("what", "qu'est-ce que"), looking, "What do I look for?", "Qu'est-ce que je cherche ?");
    let who = |clause| Clause { subject: Subject::who(), ..clause };
    ask(("who", "qui"), who(act("he", Past, "arrive", "")), "Who arrived?", "Qui est arrivé ?");
    ask(("who", "qui"), who(act("he", Present, "have", "my key")), "Who has my key?", "Qui a ma clé ?");
    let oranges = phrase("some oranges");
    let eaten = act("she", Past, "eat", "").with_object(Object::Gap(Some(oranges.agreement())));
    let combien = "Combien d'oranges est-ce qu'elle a mangées ?";
    check(Sentence::HowMany(oranges.noun, eaten), "How many oranges did she eat?", combien);
}

#[test]
fn relative_clauses() {
    let who = |head: &str, tense, verb| {
        let head = phrase(head);
        let relative = Clause::act(Subject::Gap(head.agreement()), tense, find_verb(verb));
        NounPhrase { relative: Some(Box::new(relative)), ..head }
    };
    let be = |head: NounPhrase, what| Clause { subject: Subject::Phrase(head), ..is("he", what) };
    let see = |what| act("I", Present, "see", "").with_object(Object::Phrase(what));
    let girl = who("the girl", Past, "leave");
    says(be(girl, "sad"), "The girl who left is sad.", "La fille qui est partie est triste.");
    let birds = who("the birds", Present, "play");
    says(see(birds), "I see the birds that play.", "Je vois les oiseaux qui jouent.");
    let apples = whom("the apples", "my uncle", Past, "take");
    let prises = "Les pommes que mon oncle a prises sont rouges.";
    says(be(apples, "red"), "The apples that my uncle took are red.", prises);
    let letter = whom("the letter", "they", Past, "write");
    says(see(letter), "I see the letter that they wrote.", "Je vois la lettre qu'ils ont écrite.");
}

#[test]
fn conjunctions() {
    let join = |a, conjunction, b, en, fr| check(Sentence::Joined(Box::new((a, b)), conjunction), en, fr);
    let cries = act("he", Present, "cry", "");
    let tired = "Il pleure parce qu'il est fatigué.";
    join(cries, BECAUSE, is("he", "tired"), "He cries because he is tired.", tired);
    let stay = || act("I", Future, "stay", "");
    let back = |who| act(who, Present, "come back", "");
    join(stay(), IF, back("they"), "I will stay if they come back.", "Je resterai s'ils reviennent.");
    join(stay(), IF, back("she"), "I will stay if she comes back.", "Je resterai si elle revient.");
    let (sleeping, arrived) =
        (act("the cat", Progressive, "sleep", ""), act("the queen", Past, "arrive", ""));
    let quand = "Le chat dormait quand la reine est arrivée.";
    join(sleeping, WHEN, arrived, "The cat was sleeping when the queen arrived.", quand);
    let runs = |who| act(who, Present, "run", "");
    let mais = "Le chien court mais le hibou ne court pas.";
    join(runs("the dog"), BUT, not(runs("the owl"), NOT), "The dog runs but the owl does not run.", mais);
    let danced = at(act("she", Past, "dance", ""), "with", "our friend");
    says(danced, "She danced with our friend.", "Elle a dansé avec notre ami.");
}
