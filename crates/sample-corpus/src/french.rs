//! Writes a sentence in French: agreement, order, elision and contraction.

use super::capitalised;
use super::conjugation::{future, imperfect, participle, present};
use super::lexicon::{Adjective, Gender, Preposition};
use super::numbers::{self, MONTHS, WEEKDAYS};
use super::syntax::{
    Adverb, Agreement, Clause, Conjunction, Degree, Determiner, Modal, NounPhrase, Object, Person, Polarity,
    Predicate, Question, Sentence, Subject, Tense, Time,
};
use super::verbs::{BE, CAN, Conjugation, HAVE, MUST, Verb, WANT};

/// Words that begin with a vowel or h and yet take no elision.
const ASPIRATED: [&str; 5] = ["héros", "hibou", "hiboux", "huit", "onze"];

/// The words of a sentence in the making, before elision and contraction.
struct Words(Vec<String>);

pub(super) fn write(sentence: &Sentence) -> String {
    let mut out = Words(Vec::new());
    let mut end = ".";
    match sentence {
        Sentence::Statement(clause) => out.clause(clause),
        Sentence::Joined(clauses, conjunction) => {
            out.clause(&clauses.0);
            out.extend(match conjunction {
                Conjunction::And => &["et"],
                Conjunction::But => &["mais"],
                Conjunction::Because => &["parce", "que"],
                Conjunction::When => &["quand"],
                Conjunction::If => &["si"],
            });
            out.clause(&clauses.1);
        }
        Sentence::Question(question, clause) => {
            end = " ?";
            match question {
                Question::YesNo => out.extend(&["est-ce", "que"]),
                Question::Where => out.extend(&["où", "est-ce", "que"]),
                Question::When => out.extend(&["quand", "est-ce", "que"]),
                Question::Why => out.extend(&["pourquoi", "est-ce", "que"]),
                Question::What => out.extend(&["qu'est-ce", "que"]),
                Question::HowMany(noun) => {
                    out.extend(&["combien", "de", noun.fr_plural, "est-ce", "que"]);
                }
                Question::Who => out.push("qui"),
            }
            out.clause(clause);
        }
        Sentence::HowOld(phrase) => {
            end = " ?";
            out.extend(&["quel", "âge"]);
            out.0.push(present(&HAVE, "avoir", phrase.agreement().person));
            out.phrase(phrase, false);
        }
        Sentence::Exists { phrase, negated, place } => {
            out.extend(if *negated { &["il", "ne", "y", "a", "pas"] } else { &["il", "y", "a"] });
            out.phrase(phrase, *negated);
            out.place(place);
        }
        Sentence::Clock(clock) => {
            out.extend(&["il", "est"]);
            out.0.push(clock.french());
        }
        Sentence::Today(weekday, date) => {
            out.extend(&["aujourd'hui,", "nous", "sommes", "le", WEEKDAYS[*weekday].1]);
            out.0.push(date.french());
        }
    }
    format!("{}{end}", capitalised(&out.join()))
}

impl Words {
    fn push(&mut self, word: &str) {
        self.0.push(word.to_owned());
    }

    fn extend(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(|&w| w.to_owned()));
    }

    fn clause(&mut self, clause: &Clause) {
        let agreement = clause.subject.agreement();
        self.subject(&clause.subject);
        match &clause.predicate {
            Predicate::Act { verb, modal, object, recipient } => {
                self.act(clause, agreement, verb, *modal, object.as_ref(), recipient.as_ref());
                let negated = clause.polarity != Polarity::Positive;
                if let Some(Object::Phrase(phrase)) = object {
                    self.phrase(phrase, negated);
                }
                if let Some(Object::Phrase(phrase)) = recipient {
                    self.push("à");
                    self.phrase(phrase, false);
                }
            }
            Predicate::Be(adjective) => {
                self.state(clause, &BE, "être", agreement.person);
                self.push(agreed(adjective, agreement));
            }
            Predicate::Compare(adjective, degree, standard) => {
                self.state(clause, &BE, "être", agreement.person);
                self.compared(adjective, *degree, agreement);
                self.push("que");
                match standard {
                    Subject::Pronoun(person) => self.push(match person {
                        Person::I => "moi",
                        Person::You => "vous",
                        Person::He => "lui",
                        Person::She => "elle",
                        Person::We => "nous",
                        Person::They => "eux",
                    }),
                    other => self.subject(other),
                }
            }
            Predicate::Located => self.state(clause, &BE, "être", agreement.person),
            Predicate::Age(years) => {
                self.state(clause, &HAVE, "avoir", agreement.person);
                self.0.push(numbers::french(*years, Gender::Masculine));
                self.push("ans");
            }
        }
        if let Some(place) = &clause.place {
            self.place(place);
        }
        match clause.time {
            Some(Time::Yesterday) => self.push("hier"),
            Some(Time::Today) => self.push("aujourd'hui"),
            Some(Time::Tomorrow) => self.push("demain"),
            Some(Time::EveryDay) => self.push("tous les jours"),
            Some(Time::Weekday(day)) => self.push(WEEKDAYS[day].1),
            Some(Time::On(date)) => {
                self.push("le");
                self.0.push(date.french());
            }
            Some(Time::Month(month)) => self.extend(&["en", MONTHS[month].2]),
            Some(Time::At(clock)) => {
                self.push("à");
                self.0.push(clock.french());
            }
            None => {}
        }
    }

    /// A finite form of être or avoir with its negation; a past state is in the imparfait.
    fn state(&mut self, clause: &Clause, conjugation: &Conjugation, infinitive: &str, person: Person) {
        let finite = match clause.tense {
            Tense::Present => present(conjugation, infinitive, person),
            Tense::Future => future(conjugation, infinitive, person),
            Tense::Past | Tense::Progressive => imperfect(conjugation, infinitive, person),
        };
        self.finite(clause, None, finite);
    }

    /// ne, clitic, finite verb, pas, adverb.
    fn finite(&mut self, clause: &Clause, clitic: Option<&str>, finite: String) {
        let negation = match clause.polarity {
            Polarity::Positive => None,
            Polarity::Not => Some("pas"),
            Polarity::Never => Some("jamais"),
            Polarity::NoLonger => Some("plus"),
        };
        if negation.is_some() {
            self.push("ne");
        }
        if let Some(clitic) = clitic {
            self.push(clitic);
        }
        self.0.push(finite);
        if let Some(negation) = negation {
            self.push(negation);
        }
        match clause.adverb {
            Some(Adverb::Often) => self.push("souvent"),
            Some(Adverb::Always) => self.push("toujours"),
            None => {}
        }
    }

    fn act(
        &mut self,
        clause: &Clause,
        subject: Agreement,
        verb: &Verb,
        modal: Option<Modal>,
        object: Option<&Object>,
        recipient: Option<&Object>,
    ) {
        let clitic = match (object, recipient) {
            (Some(Object::Pronoun(person)), _) => Some(direct_clitic(*person)),
            (_, Some(Object::Pronoun(person))) => Some(indirect_clitic(*person)),
            _ => None,
        };
        let (conjugation, infinitive, person) = (&verb.conjugation, verb.infinitive, subject.person);
        if let Some(modal) = modal {
            let (modal, name) = match modal {
                Modal::Can => (&CAN, "pouvoir"),
                Modal::Must => (&MUST, "devoir"),
                Modal::Want => (&WANT, "vouloir"),
            };
            self.finite(clause, None, present(modal, name, person));
            // The clitic belongs to the infinitive.
            if let Some(clitic) = clitic {
                self.push(clitic);
            }
            self.push(infinitive);
            return;
        }
        match clause.tense {
            Tense::Present => self.finite(clause, clitic, present(conjugation, infinitive, person)),
            Tense::Future => self.finite(clause, clitic, future(conjugation, infinitive, person)),
            Tense::Past if !verb.state => {
                let (auxiliary, name) = if verb.with_etre { (&BE, "être") } else { (&HAVE, "avoir") };
                self.finite(clause, clitic, present(auxiliary, name, person));
                // With être the participle agrees with the subject, with avoir with an object said before.
                let with = match object {
                    _ if verb.with_etre => Some(subject),
                    Some(Object::Pronoun(person)) => Some(Agreement::of_person(*person)),
                    Some(Object::Gap(gap)) => *gap,
                    _ => None,
                };
                self.0.push(participle(conjugation, infinitive, with));
            }
            Tense::Past | Tense::Progressive => {
                self.finite(clause, clitic, imperfect(conjugation, infinitive, person));
            }
        }
    }

    fn compared(&mut self, adjective: &Adjective, degree: Degree, agreement: Agreement) {
        let form = agreed(adjective, agreement);
        match degree {
            Degree::More if adjective.en == "good" => {
                self.push(["meilleur", "meilleure", "meilleurs", "meilleures"][form_index(agreement)]);
            }
            Degree::More => self.extend(&["plus", form]),
            Degree::Less => self.extend(&["moins", form]),
            Degree::As => self.extend(&["aussi", form]),
        }
    }

    fn subject(&mut self, subject: &Subject) {
        match subject {
            Subject::Pronoun(person) => self.push(match person {
                Person::I => "je",
                Person::You => "vous",
                Person::He => "il",
                Person::She => "elle",
                Person::We => "nous",
                Person::They => "ils",
            }),
            Subject::Phrase(phrase) => self.phrase(phrase, false),
            Subject::Pair(a, b) => {
                self.phrase(a, false);
                self.push("et");
                self.phrase(b, false);
            }
            Subject::Gap(_) => {}
        }
    }

    fn place(&mut self, (preposition, phrase): &(Preposition, NounPhrase)) {
        self.extend(preposition.french());
        self.phrase(phrase, false);
    }

    fn phrase(&mut self, phrase: &NounPhrase, negated: bool) {
        let agreement = phrase.agreement();
        let feminine = agreement.gender == Gender::Feminine;
        let noun = if phrase.plural { phrase.noun.fr_plural } else { phrase.noun.fr };
        let before = phrase.adjectives.iter().find(|a| a.before_noun).map(|adjective| {
            if !feminine && !phrase.plural && vowel_sound(noun) {
                adjective.fr_before_vowel
            } else {
                agreed(adjective, agreement)
            }
        });
        let vowel_follows = vowel_sound(before.unwrap_or(noun));
        let article = if phrase.plural {
            "les"
        } else if feminine {
            "la"
        } else {
            "le"
        };
        match &phrase.determiner {
            Determiner::The | Determiner::Owner(_) => self.push(article),
            Determiner::Indefinite if negated => self.push("de"),
            Determiner::Indefinite if phrase.noun.is_mass() => self.extend(&["de", article]),
            Determiner::Indefinite if phrase.plural => {
                self.push(if before.is_some() { "de" } else { "des" });
            }
            Determiner::Indefinite => self.push(if feminine { "une" } else { "un" }),
            Determiner::This => self.push(match (phrase.plural, feminine) {
                (true, _) => "ces",
                (false, true) => "cette",
                (false, false) => {
                    if vowel_follows {
                        "cet"
                    } else {
                        "ce"
                    }
                }
            }),
            Determiner::Possessive(person) => {
                self.push(possessive(*person, phrase.plural, feminine && !vowel_follows));
            }
            Determiner::Count(n) => self.0.push(numbers::french(*n, agreement.gender)),
        }
        if let Some(before) = before {
            self.push(before);
        }
        self.push(noun);
        for adjective in phrase.adjectives.iter().filter(|a| !a.before_noun) {
            self.push(agreed(adjective, agreement));
        }
        if let Determiner::Owner(owner) = &phrase.determiner {
            self.push("de");
            self.phrase(owner, false);
        }
        if let Some(relative) = &phrase.relative {
            self.push(if matches!(relative.subject, Subject::Gap(_)) { "qui" } else { "que" });
            self.clause(relative);
        }
    }

    /// The words in one line: l', du, au and the like. In this grammar `le` and `les` after `de` or `à` are always
    /// articles, never pronouns, so that they may be contracted by sight.
    fn join(&self) -> String {
        let words = &self.0;
        let mut text = String::new();
        let mut i = 0;
        while i < words.len() {
            let word = words[i].as_str();
            let next = words.get(i + 1).map_or("", String::as_str);
            let whole = words.get(i + 2).is_none_or(|after| !vowel_sound(after));
            let contracted = match (word, next) {
                ("de", "le") if whole => Some("du"),
                ("de", "les") => Some("des"),
                ("à", "le") if whole => Some("au"),
                ("à", "les") => Some("aux"),
                _ => None,
            };
            if let Some(contracted) = contracted {
                text.push_str(contracted);
                i += 2;
            } else {
                i += 1;
                match elided(word, next) {
                    Some(stem) => {
                        text.push_str(stem);
                        text.push('\'');
                        continue;
                    }
                    None => text.push_str(word),
                }
            }
            if i < words.len() {
                text.push(' ');
            }
        }
        text
    }
}

/// What is left of a word that loses its vowel before the next one.
fn elided<'a>(word: &'a str, next: &str) -> Option<&'a str> {
    match word {
        "je" | "me" | "le" | "la" | "ne" | "de" | "que" if vowel_sound(next) => Some(&word[..word.len() - 1]),
        "si" if next == "il" || next == "ils" => Some("s"),
        _ => None,
    }
}

/// Whether a word begins with a vowel or a mute h.
fn vowel_sound(word: &str) -> bool {
    let first = word.split([' ', '-']).next().unwrap_or(word);
    let vowel = word == "y" || word.chars().next().is_some_and(|c| "aàâeéèêiîoôœuh".contains(c));
    vowel && !ASPIRATED.contains(&first)
}

fn form_index(agreement: Agreement) -> usize {
    usize::from(agreement.gender == Gender::Feminine) + 2 * usize::from(agreement.plural)
}

fn agreed(adjective: &Adjective, agreement: Agreement) -> &'static str {
    adjective.fr[form_index(agreement)]
}

fn direct_clitic(person: Person) -> &'static str {
    match person {
        Person::I => "me",
        Person::You => "vous",
        Person::He => "le",
        Person::She => "la",
        Person::We => "nous",
        Person::They => "les",
    }
}

fn indirect_clitic(person: Person) -> &'static str {
    match person {
        Person::He | Person::She => "lui",
        Person::They => "leur",
        other => direct_clitic(other),
    }
}

/// `feminine` is false before a vowel, where mon, son serve for both genders.
fn possessive(person: Person, plural: bool, feminine: bool) -> &'static str {
    let [masculine_form, feminine_form, plural_form] = match person {
        Person::I => ["mon", "ma", "mes"],
        Person::You => ["votre", "votre", "vos"],
        Person::He | Person::She => ["son", "sa", "ses"],
        Person::We => ["notre", "notre", "nos"],
        Person::They => ["leur", "leur", "leurs"],
    };
    match (plural, feminine) {
        (true, _) => plural_form,
        (false, true) => feminine_form,
        (false, false) => masculine_form,
    }
}
