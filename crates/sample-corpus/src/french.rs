//! Writes a sentence in French: agreement, order, elision and contraction.

use super::lexicon::{Adjective, Gender, Gloss};
use super::syntax::{
    Agreement, Clause, Determiner, MORE, NounPhrase, Object, POSITIVE, Person, Predicate, Sentence, Subject,
    Tense,
};
use super::verbs::{Verb, find_verb};
use super::{Words, capitalised, numbers};

/// Words that begin with a vowel or h and yet take no elision.
const ASPIRATED: [&str; 5] = ["héros", "hibou", "hiboux", "huit", "onze"];

pub(super) fn write(sentence: &Sentence) -> String {
    let mut out = Words::default();
    match sentence {
        Sentence::Statement(clause) => out.clause(clause),
        Sentence::Joined(clauses, conjunction) => {
            out.clause(&clauses.0);
            out.push(conjunction.1);
            out.clause(&clauses.1);
        }
        Sentence::Question(words, clause) => {
            out.push(words.1);
            out.clause(clause);
        }
        Sentence::HowMany(noun, clause) => {
            out.push("combien de");
            out.push(noun.fr_plural);
            out.push("est-ce que");
            out.clause(clause);
        }
        Sentence::HowOld(phrase) => {
            out.push("quel âge");
            out.push(&find_verb("have").present(phrase.agreement().person));
            out.phrase(phrase, false);
        }
        Sentence::Exists { phrase, negated, place } => {
            out.push(if *negated { "il ne y a pas" } else { "il y a" });
            out.phrase(phrase, *negated);
            out.place(place);
        }
        Sentence::Fixed((_, text)) => out.push(text),
    }
    let end = if sentence.is_question() { " ?" } else { "." };
    format!("{}{end}", capitalised(&out.join()))
}

impl Words {
    fn clause(&mut self, clause: &Clause) {
        let agreement = clause.subject.agreement();
        self.subject(&clause.subject);
        match &clause.predicate {
            Predicate::Act { verb, modal, object, recipient } => {
                self.act(clause, agreement, (verb, *modal), object.as_ref(), recipient.as_ref());
                if let Some(Object::Phrase(phrase)) = object {
                    self.phrase(phrase, clause.polarity != POSITIVE);
                }
                if let Some(Object::Phrase(phrase)) = recipient {
                    self.push("à");
                    self.phrase(phrase, false);
                }
            }
            Predicate::Be(adjective) => {
                self.state(clause, "be", agreement.person);
                self.push(agreed(adjective, agreement));
            }
            Predicate::Compare(adjective, degree, standard) => {
                self.state(clause, "be", agreement.person);
                self.compared(adjective, *degree, agreement);
                self.push("que");
                match standard {
                    Subject::Pronoun(person) => {
                        self.push(["moi", "vous", "lui", "elle", "nous", "eux"][*person as usize]);
                    }
                    other => self.subject(other),
                }
            }
            Predicate::Located => self.state(clause, "be", agreement.person),
            Predicate::Age(years) => {
                self.state(clause, "have", agreement.person);
                self.push(&numbers::french(*years, Gender::Masculine));
                self.push("ans");
            }
        }
        if let Some(place) = &clause.place {
            self.place(place);
        }
        if let Some((_, time)) = &clause.time {
            self.push(time);
        }
    }

    /// A finite form of être or avoir with its negation; a past state is in the imparfait.
    fn state(&mut self, clause: &Clause, verb: &str, person: Person) {
        let verb = find_verb(verb);
        let finite = match clause.tense {
            Tense::Present => verb.present(person),
            Tense::Future => verb.future(person),
            Tense::Past | Tense::Progressive => verb.imperfect(person),
        };
        self.finite(clause, "", &finite);
    }

    /// ne, clitic, finite verb, pas, adverb.
    fn finite(&mut self, clause: &Clause, clitic: &str, finite: &str) {
        self.push(if clause.polarity == POSITIVE { "" } else { "ne" });
        self.push(clitic);
        self.push(finite);
        self.push(clause.polarity.1);
        self.push(clause.adverb.map_or("", |adverb| adverb.1));
    }

    fn act(
        &mut self,
        clause: &Clause,
        subject: Agreement,
        (verb, modal): (&Verb, Option<&Verb>),
        object: Option<&Object>,
        recipient: Option<&Object>,
    ) {
        let clitic = match (object, recipient) {
            (Some(Object::Pronoun(person)), _) => ["me", "vous", "le", "la", "nous", "les"][*person as usize],
            (_, Some(Object::Pronoun(person))) => {
                ["me", "vous", "lui", "lui", "nous", "leur"][*person as usize]
            }
            _ => "",
        };
        let person = subject.person;
        match clause.tense {
            _ if modal.is_some() => {
                self.finite(clause, "", &modal.map_or_else(String::new, |modal| modal.present(person)));
                // The clitic belongs to the infinitive.
                self.push(clitic);
                self.push(verb.infinitive);
            }
            Tense::Present => self.finite(clause, clitic, &verb.present(person)),
            Tense::Future => self.finite(clause, clitic, &verb.future(person)),
            Tense::Past if !verb.state => {
                let auxiliary = find_verb(if verb.with_etre { "be" } else { "have" });
                self.finite(clause, clitic, &auxiliary.present(person));
                // With être the participle agrees with the subject, with avoir with an object said
                // before.
                let with = match object {
                    _ if verb.with_etre => Some(subject),
                    Some(Object::Pronoun(person)) => Some(Agreement::of_person(*person)),
                    Some(Object::Gap(gap)) => *gap,
                    _ => None,
                };
                self.push(&verb.participle(with));
            }
            Tense::Past | Tense::Progressive => self.finite(clause, clitic, &verb.imperfect(person)),
        }
    }

    fn compared(&mut self, adjective: &Adjective, degree: Gloss, agreement: Agreement) {
        if degree == MORE && adjective.en == "good" {
            return self.push(["meilleur", "meilleure", "meilleurs", "meilleures"][form_index(agreement)]);
        }
        self.push(degree.1);
        self.push(agreed(adjective, agreement));
    }

    fn subject(&mut self, subject: &Subject) {
        match subject {
            Subject::Pronoun(person) => {
                self.push(["je", "vous", "il", "elle", "nous", "ils"][*person as usize])
            }
            Subject::Phrase(phrase) => self.phrase(phrase, false),
            Subject::Pair(a, b) => {
                self.phrase(a, false);
                self.push("et");
                self.phrase(b, false);
            }
            Subject::Gap(_) => {}
        }
    }

    fn place(&mut self, (preposition, phrase): &(Gloss, NounPhrase)) {
        self.push(preposition.1);
        self.phrase(phrase, false);
    }

    fn phrase(&mut self, phrase: &NounPhrase, negated: bool) {
        let agreement = phrase.agreement();
        let noun = if phrase.plural { phrase.noun.fr_plural } else { phrase.noun.fr };
        let before = phrase.adjectives.iter().find(|a| a.before_noun).map(|adjective| {
            let special = form_index(agreement) == 0 && vowel_sound(noun);
            if special { adjective.fr[4] } else { agreed(adjective, agreement) }
        });
        let vowel_follows = vowel_sound(before.unwrap_or(noun));
        // Masculine, feminine and plural forms, and with some a masculine one before vowels.
        let feminine = agreement.gender == Gender::Feminine;
        let form = if phrase.plural { 2 } else { usize::from(feminine) };
        match &phrase.determiner {
            Determiner::The | Determiner::Owner(_) => self.push(["le", "la", "les"][form]),
            Determiner::Indefinite if negated => self.push("de"),
            Determiner::Indefinite if phrase.noun.is_mass() => self.push(["de le", "de la"][form]),
            Determiner::Indefinite if phrase.plural && before.is_some() => self.push("de"),
            Determiner::Indefinite => self.push(["un", "une", "des"][form]),
            Determiner::This if form == 0 && vowel_follows => self.push("cet"),
            Determiner::This => self.push(["ce", "cette", "ces"][form]),
            Determiner::Possessive(person) => {
                // Before a vowel mon, son serve for both genders.
                let form = if form == 1 && vowel_follows { 0 } else { form };
                self.push(POSSESSIVES[*person as usize][form]);
            }
            Determiner::Count(n) => self.push(&numbers::french(*n, agreement.gender)),
        }
        self.push(before.unwrap_or_default());
        self.push(noun);
        for adjective in phrase.adjectives.iter().filter(|a| !a.before_noun) {
            self.push(agreed(adjective, agreement));
        }
        if let Determiner::Owner(owner) = &phrase.determiner {
            self.push("de");
            self.phrase(owner, false);
        }
        if let Some(relative) = &phrase.relative {
            self.push(if relative.subject.is_gap() { "qui" } else { "que" });
            self.clause(relative);
        }
    }

    /// The words in one line: l', du, au and the like. In this grammar `le` and `les` after `de` or
    /// `à` are always articles, never pronouns, so that they may be contracted by sight.
    fn join(&self) -> String {
        let words: Vec<&str> = self.0.iter().map(String::as_str).collect();
        let mut text = String::new();
        let mut rest = &words[..];
        while let [word, after @ ..] = rest {
            let next = after.first().copied().unwrap_or_default();
            let whole = after.get(1).is_none_or(|after| !vowel_sound(after));
            let (written, end, used) = match (*word, next) {
                ("de", "le") if whole => ("du", ' ', 2),
                ("de", "les") => ("des", ' ', 2),
                ("à", "le") if whole => ("au", ' ', 2),
                ("à", "les") => ("aux", ' ', 2),
                ("je" | "me" | "le" | "la" | "ne" | "de" | "que", _) if vowel_sound(next) => {
                    (&word[..word.len() - 1], '\'', 1)
                }
                ("si", "il" | "ils") => ("s", '\'', 1),
                _ => (*word, ' ', 1),
            };
            text.push_str(written);
            text.push(end);
            rest = &rest[used..];
        }
        text.trim_end().to_owned()
    }
}

/// Whether a word begins with a vowel or a mute h.
fn vowel_sound(word: &str) -> bool {
    let first = word.split('-').next().unwrap_or(word);
    let vowel = word == "y" || word.starts_with(|c| "aàâeéèêiîoôœuh".contains(c));
    vowel && !ASPIRATED.contains(&first)
}

fn form_index(agreement: Agreement) -> usize {
    usize::from(agreement.gender == Gender::Feminine) + 2 * usize::from(agreement.plural)
}

fn agreed(adjective: &Adjective, agreement: Agreement) -> &'static str {
    adjective.fr[form_index(agreement)]
}

const POSSESSIVES: [[&str; 3]; 6] = [
    ["mon", "ma", "mes"],
    ["votre", "votre", "vos"],
    ["son", "sa", "ses"],
    ["son", "sa", "ses"],
    ["notre", "notre", "nos"],
    ["leur", "leur", "leurs"],
];
