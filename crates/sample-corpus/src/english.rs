//! Writes a sentence in English.

use super::capitalised;
use super::lexicon::Noun;
use super::numbers::{self, MONTHS, WEEKDAYS};
use super::syntax::{
    Adverb, Clause, Conjunction, Degree, Determiner, Modal, NounPhrase, Object, Person, Polarity, Predicate,
    Question, Sentence, Subject, Tense, Time,
};

/// The words of a sentence in the making.
struct Words(Vec<String>);

pub(super) fn write(sentence: &Sentence) -> String {
    let mut out = Words(Vec::new());
    let mut end = '.';
    match sentence {
        Sentence::Statement(clause) => out.clause(clause, false),
        Sentence::Joined(clauses, conjunction) => {
            out.clause(&clauses.0, false);
            out.push(match conjunction {
                Conjunction::And => "and",
                Conjunction::But => "but",
                Conjunction::Because => "because",
                Conjunction::When => "when",
                Conjunction::If => "if",
            });
            out.clause(&clauses.1, false);
        }
        Sentence::Question(question, clause) => {
            end = '?';
            match question {
                Question::YesNo => {}
                Question::Where => out.push("where"),
                Question::When => out.push("when"),
                Question::Why => out.push("why"),
                Question::What => out.push("what"),
                Question::HowMany(noun) => out.extend(&["how", "many", noun.en_plural]),
                Question::Who => out.push("who"),
            }
            out.clause(clause, !matches!(question, Question::Who));
        }
        Sentence::HowOld(phrase) => {
            end = '?';
            out.extend(&["how", "old", be(phrase.agreement().person, false)]);
            out.phrase(phrase, false);
        }
        Sentence::Exists { phrase, negated, place } => {
            out.extend(&["there", be(phrase.agreement().person, false)]);
            if *negated {
                out.push("no");
                out.bare_phrase(phrase);
            } else {
                out.phrase(phrase, false);
            }
            out.place(place);
        }
        Sentence::Clock(clock) => {
            out.extend(&["it", "is"]);
            out.0.push(clock.english());
        }
        Sentence::Today(weekday, date) => {
            out.extend(&["today", "is"]);
            out.0.push(format!("{}, {}", WEEKDAYS[*weekday].0, date.english()));
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

    fn clause(&mut self, clause: &Clause, inverted: bool) {
        let person = clause.subject.agreement().person;
        let (auxiliary, main) = verb_group(clause, person, inverted);
        if inverted {
            self.0.extend(auxiliary);
            self.subject(&clause.subject);
        } else {
            self.subject(&clause.subject);
            self.0.extend(auxiliary);
        }
        self.negation(clause.polarity);
        match clause.adverb {
            Some(Adverb::Often) => self.push("often"),
            Some(Adverb::Always) => self.push("always"),
            None => {}
        }
        self.0.extend(main);
        let negated = clause.polarity != Polarity::Positive;
        match &clause.predicate {
            Predicate::Act { object, recipient, .. } => {
                if let Some(Object::Pronoun(somebody)) = recipient {
                    // "speaks to me" has no object to stand before, "gives me a book" has.
                    if object.is_none() {
                        self.push("to");
                    }
                    self.push(object_pronoun(*somebody));
                }
                match object {
                    Some(Object::Phrase(phrase)) => self.phrase(phrase, negated),
                    Some(Object::Pronoun(somebody)) => self.push(object_pronoun(*somebody)),
                    Some(Object::Gap(_)) | None => {}
                }
                if let Some(Object::Phrase(phrase)) = recipient {
                    self.push("to");
                    self.phrase(phrase, false);
                }
            }
            Predicate::Be(adjective) => self.push(adjective.en),
            Predicate::Compare(adjective, degree, standard) => {
                match degree {
                    Degree::More => {
                        self.push(adjective.en_comparative.unwrap_or(adjective.en));
                        self.push("than");
                    }
                    Degree::Less => self.extend(&["less", adjective.en, "than"]),
                    Degree::As => self.extend(&["as", adjective.en, "as"]),
                }
                match standard {
                    Subject::Pronoun(somebody) => self.push(object_pronoun(*somebody)),
                    other => self.subject(other),
                }
            }
            Predicate::Located => {}
            Predicate::Age(years) => {
                self.0.push(numbers::english(*years));
                self.extend(&["years", "old"]);
            }
        }
        if let Some(place) = &clause.place {
            self.place(place);
        }
        match clause.time {
            Some(Time::Yesterday) => self.push("yesterday"),
            Some(Time::Today) => self.push("today"),
            Some(Time::Tomorrow) => self.push("tomorrow"),
            Some(Time::EveryDay) => self.push("every day"),
            Some(Time::Weekday(day)) => self.extend(&["on", WEEKDAYS[day].0]),
            Some(Time::On(date)) => self.0.push(format!("on {}", date.english())),
            Some(Time::Month(month)) => self.extend(&["in", MONTHS[month].0]),
            Some(Time::At(clock)) => self.0.push(format!("at {}", clock.english())),
            None => {}
        }
    }

    fn negation(&mut self, polarity: Polarity) {
        match polarity {
            Polarity::Positive => {}
            Polarity::Not => match self.0.last_mut() {
                Some(last) if last == "can" => last.push_str("not"),
                _ => self.push("not"),
            },
            Polarity::Never => self.push("never"),
            Polarity::NoLonger => self.extend(&["no", "longer"]),
        }
    }

    fn subject(&mut self, subject: &Subject) {
        match subject {
            Subject::Pronoun(person) => self.push(match person {
                Person::I => "I",
                Person::You => "you",
                Person::He => "he",
                Person::She => "she",
                Person::We => "we",
                Person::They => "they",
            }),
            Subject::Phrase(phrase) => self.phrase(phrase, false),
            Subject::Pair(a, b) => {
                self.phrase(a, false);
                self.push("and");
                self.phrase(b, false);
            }
            Subject::Gap(_) => {}
        }
    }

    fn place(&mut self, (preposition, phrase): &(super::lexicon::Preposition, NounPhrase)) {
        self.push(preposition.english());
        self.phrase(phrase, false);
    }

    fn phrase(&mut self, phrase: &NounPhrase, negated: bool) {
        match &phrase.determiner {
            Determiner::The => self.push("the"),
            Determiner::Indefinite if phrase.plural || phrase.noun.is_mass() => {
                self.push(if negated { "any" } else { "some" });
            }
            Determiner::Indefinite => self.push("a"),
            Determiner::This => self.push(if phrase.plural { "these" } else { "this" }),
            Determiner::Possessive(person) => self.push(match person {
                Person::I => "my",
                Person::You => "your",
                Person::He => "his",
                Person::She => "her",
                Person::We => "our",
                Person::They => "their",
            }),
            Determiner::Count(n) => self.0.push(numbers::english(*n)),
            Determiner::Owner(owner) => {
                self.phrase(owner, false);
                if let Some(last) = self.0.last_mut() {
                    last.push_str(if owner.plural && last.ends_with('s') { "'" } else { "'s" });
                }
            }
        }
        self.bare_phrase(phrase);
    }

    /// All but the determiner.
    fn bare_phrase(&mut self, phrase: &NounPhrase) {
        for adjective in &phrase.adjectives {
            self.push(adjective.en);
        }
        self.push(form(phrase.noun, phrase.plural));
        if let Some(relative) = &phrase.relative {
            let is_subject = matches!(relative.subject, Subject::Gap(_));
            self.push(if phrase.noun.is_human() && is_subject { "who" } else { "that" });
            self.clause(relative, false);
        }
    }

    /// The words in one line, with "an" before a vowel.
    fn join(&self) -> String {
        let mut text = String::new();
        for (i, word) in self.0.iter().enumerate() {
            if i > 0 {
                text.push(' ');
            }
            text.push_str(word);
            let before_vowel =
                self.0.get(i + 1).is_some_and(|next| next.starts_with(['a', 'e', 'i', 'o', 'u']));
            if word == "a" && before_vowel {
                text.push('n');
            }
        }
        text
    }
}

fn form(noun: &Noun, plural: bool) -> &'static str {
    if plural { noun.en_plural } else { noun.en }
}

fn be(person: Person, past: bool) -> &'static str {
    match (person, past) {
        (Person::I, false) => "am",
        (Person::He | Person::She, false) => "is",
        (_, false) => "are",
        (Person::I | Person::He | Person::She, true) => "was",
        (_, true) => "were",
    }
}

fn object_pronoun(person: Person) -> &'static str {
    match person {
        Person::I => "me",
        Person::You => "you",
        Person::He => "him",
        Person::She => "her",
        Person::We => "us",
        Person::They => "them",
    }
}

/// The auxiliary, which a question puts before its subject, and the main verb; negation stands between them.
fn verb_group(clause: &Clause, person: Person, inverted: bool) -> (Option<String>, Option<String>) {
    let some = |word: &str| Some(word.to_owned());
    let third = matches!(person, Person::He | Person::She);
    let Predicate::Act { verb, modal, .. } = &clause.predicate else {
        return match clause.tense {
            Tense::Future => (some("will"), some("be")),
            Tense::Present => (some(be(person, false)), None),
            Tense::Past | Tense::Progressive => (some(be(person, true)), None),
        };
    };
    let [base, singular, past, progressive] = verb.en;
    let (base, singular) = match modal {
        Some(Modal::Can) => return (some("can"), some(base)),
        Some(Modal::Must) => return (some("must"), some(base)),
        Some(Modal::Want) => (format!("want to {base}"), format!("wants to {base}")),
        None => (base.to_owned(), singular.to_owned()),
    };
    let do_support = inverted || clause.polarity == Polarity::Not;
    match clause.tense {
        Tense::Future => (some("will"), Some(base)),
        Tense::Progressive => (some(be(person, true)), some(progressive)),
        Tense::Present if do_support => (some(if third { "does" } else { "do" }), Some(base)),
        Tense::Past if do_support => (some("did"), Some(base)),
        Tense::Present => (None, Some(if third { singular } else { base })),
        Tense::Past => (None, some(past)),
    }
}
