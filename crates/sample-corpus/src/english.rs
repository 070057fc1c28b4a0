//! Writes a sentence in English, and collects its content words.

use super::lexicon::{Gloss, Kind};
use super::syntax::{
    AS, Clause, Determiner, MORE, NOT, NounPhrase, Object, POSITIVE, Person, Predicate, Sentence, Subject,
    Tense,
};
use super::{Words, capitalised, numbers};

/// Words of dates and times of day that are not content.
const FUNCTION_WORDS: &str = "a past to the of on at in it is today yesterday tomorrow every day";

/// A sentence in the making.
#[derive(Default)]
struct English {
    words: Words,
    content: Vec<String>,
}

/// The sentence, and its content words by their lemmas. Pronouns, "be", "can" and "must" are not
/// content.
pub(super) fn write(sentence: &Sentence) -> (String, Vec<String>) {
    let mut out = English::default();
    match sentence {
        Sentence::Statement(clause) => out.clause(clause, false),
        Sentence::Joined(clauses, conjunction) => {
            out.clause(&clauses.0, false);
            out.say(conjunction.0);
            out.clause(&clauses.1, false);
        }
        Sentence::Question(words, clause) => {
            out.say(words.0);
            out.clause(clause, !clause.subject.is_gap());
        }
        Sentence::HowMany(noun, clause) => {
            out.say("how many");
            out.say(noun.en_plural);
            out.content.push(noun.en.to_owned());
            out.clause(clause, true);
        }
        Sentence::HowOld(phrase) => {
            out.say("how old");
            out.say(be(phrase.agreement().person, false));
            out.phrase(phrase, false);
        }
        Sentence::Exists { phrase, negated, place } => {
            out.say("there");
            out.say(be(phrase.agreement().person, false));
            if *negated {
                out.say("no");
                out.bare_phrase(phrase);
            } else {
                out.phrase(phrase, false);
            }
            out.place(place);
        }
        Sentence::Fixed((text, _)) => out.say_content(text),
    }
    let end = if sentence.is_question() { '?' } else { '.' };
    (format!("{}{end}", capitalised(&out.join())), out.content)
}

impl English {
    fn say(&mut self, text: &str) {
        self.words.push(text);
    }

    /// A text whose words are content, but for those that hold it together.
    fn say_content(&mut self, text: &str) {
        self.say(text);
        let content = text.split(' ').map(|word| word.trim_end_matches(','));
        let content = content.filter(|word| !FUNCTION_WORDS.split(' ').any(|w| w.eq_ignore_ascii_case(word)));
        self.content.extend(content.map(str::to_owned));
    }

    fn clause(&mut self, clause: &Clause, inverted: bool) {
        let person = clause.subject.agreement().person;
        let (auxiliary, main) = verb_group(clause, person, inverted);
        if inverted {
            self.say(&auxiliary);
            self.subject(&clause.subject);
        } else {
            self.subject(&clause.subject);
            self.say(&auxiliary);
        }
        match self.words.0.last_mut() {
            Some(last) if clause.polarity == NOT && last == "can" => last.push_str("not"),
            _ => self.say(clause.polarity.0),
        }
        self.say(clause.adverb.map_or("", |adverb| adverb.0));
        self.say(&main);
        self.predicate(clause);
        if let Some(place) = &clause.place {
            self.place(place);
        }
        if let Some((time, _)) = &clause.time {
            self.say_content(time);
        }
    }

    /// What follows the verb.
    fn predicate(&mut self, clause: &Clause) {
        match &clause.predicate {
            Predicate::Act { verb, modal, object, recipient } => {
                // As a modal, "want" is the same word as the verb that takes an object.
                let want = modal.filter(|modal| modal.en[0] == "want");
                self.content.extend(want.into_iter().chain([*verb]).map(|verb| verb.en[0].to_owned()));
                if let Some(Object::Pronoun(somebody)) = recipient {
                    // "speaks to me" has no object to stand before, "gives me a book" has.
                    self.say(if object.is_none() { "to" } else { "" });
                    self.say(object_pronoun(*somebody));
                }
                match object {
                    Some(Object::Phrase(phrase)) => self.phrase(phrase, clause.polarity != POSITIVE),
                    Some(Object::Pronoun(somebody)) => self.say(object_pronoun(*somebody)),
                    Some(Object::Gap(_)) | None => {}
                }
                if let Some(Object::Phrase(phrase)) = recipient {
                    self.say("to");
                    self.phrase(phrase, false);
                }
            }
            Predicate::Be(adjective) => self.say_content(adjective.en),
            Predicate::Compare(adjective, degree, standard) => {
                self.say(degree.0);
                self.say(if *degree == MORE { adjective.en_comparative } else { adjective.en });
                self.content.push(adjective.en.to_owned());
                self.say(if *degree == AS { "as" } else { "than" });
                match standard {
                    Subject::Pronoun(somebody) => self.say(object_pronoun(*somebody)),
                    other => self.subject(other),
                }
            }
            Predicate::Located => {}
            Predicate::Age(years) => {
                self.say_content(&numbers::english(*years));
                self.say("years old");
            }
        }
    }

    fn subject(&mut self, subject: &Subject) {
        match subject {
            Subject::Pronoun(person) => self.say(["I", "you", "he", "she", "we", "they"][*person as usize]),
            Subject::Phrase(phrase) => self.phrase(phrase, false),
            Subject::Pair(a, b) => {
                self.phrase(a, false);
                self.say("and");
                self.phrase(b, false);
            }
            Subject::Gap(_) => {}
        }
    }

    fn place(&mut self, (preposition, phrase): &(Gloss, NounPhrase)) {
        self.say(preposition.0);
        self.phrase(phrase, false);
    }

    fn phrase(&mut self, phrase: &NounPhrase, negated: bool) {
        match &phrase.determiner {
            Determiner::The => self.say("the"),
            Determiner::Indefinite if phrase.plural || phrase.noun.is_mass() => {
                self.say(if negated { "any" } else { "some" });
            }
            Determiner::Indefinite => self.say("a"),
            Determiner::This => self.say(if phrase.plural { "these" } else { "this" }),
            Determiner::Possessive(person) => {
                self.say(["my", "your", "his", "her", "our", "their"][*person as usize]);
            }
            Determiner::Count(n) => self.say_content(&numbers::english(*n)),
            Determiner::Owner(owner) => {
                self.phrase(owner, false);
                if let Some(last) = self.words.0.last_mut() {
                    last.push_str(if owner.plural && last.ends_with('s') { "'" } else { "'s" });
                }
            }
        }
        self.bare_phrase(phrase);
    }

    /// All but the determiner.
    fn bare_phrase(&mut self, phrase: &NounPhrase) {
        for adjective in &phrase.adjectives {
            self.say_content(adjective.en);
        }
        let noun = phrase.noun;
        self.say(if phrase.plural { noun.en_plural } else { noun.en });
        // A price is its number; "cost" and "euro" always go together.
        if noun.kind != Kind::Money {
            self.content.push(noun.en.to_owned());
        }
        if let Some(relative) = &phrase.relative {
            self.say(if noun.is_human() && relative.subject.is_gap() { "who" } else { "that" });
            self.clause(relative, false);
        }
    }

    /// The words in one line, with "an" before a vowel.
    fn join(&self) -> String {
        let words = &self.words.0;
        let before_vowel =
            |i: usize| words.get(i + 1).is_some_and(|w| w.starts_with(['a', 'e', 'i', 'o', 'u']));
        let word = |(i, word): (usize, &String)| {
            if word == "a" && before_vowel(i) { "an".to_owned() } else { word.clone() }
        };
        words.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
    }
}

fn be(person: Person, past: bool) -> &'static str {
    let forms = if past {
        ["was", "were", "was", "was", "were", "were"]
    } else {
        ["am", "are", "is", "is", "are", "are"]
    };
    forms[person as usize]
}

fn object_pronoun(person: Person) -> &'static str {
    ["me", "you", "him", "her", "us", "them"][person as usize]
}

/// The auxiliary, which a question puts before its subject, and the main verb; negation stands
/// between them.
fn verb_group(clause: &Clause, person: Person, inverted: bool) -> (String, String) {
    let pair = |auxiliary: &str, main: &str| (auxiliary.to_owned(), main.to_owned());
    let third = matches!(person, Person::He | Person::She);
    let Predicate::Act { verb, modal, .. } = &clause.predicate else {
        return match clause.tense {
            Tense::Future => pair("will", "be"),
            tense => pair(be(person, tense != Tense::Present), ""),
        };
    };
    let [base, singular, past, progressive] = verb.en;
    let (base, singular) = match modal {
        Some(modal) if modal.en[0] == "want" => (format!("want to {base}"), format!("wants to {base}")),
        Some(modal) => return pair(modal.en[0], base),
        None => pair(base, singular),
    };
    let do_support = inverted || clause.polarity == NOT;
    match clause.tense {
        Tense::Future => pair("will", &base),
        Tense::Progressive => pair(be(person, true), progressive),
        Tense::Present if do_support => pair(if third { "does" } else { "do" }, &base),
        Tense::Past if do_support => pair("did", &base),
        Tense::Present => pair("", if third { &singular } else { &base }),
        Tense::Past => pair("", past),
    }
}
