//! Draws sentences. The weights here set how hard the corpus is to learn.

use super::lexicon::{ADJECTIVES, Adjective, EURO, Kind, NOUNS, Noun, Preposition};
use super::numbers::{Clock, Date, MINUTES, MONTHS, WEEKDAYS};
use super::phrases::{Det, KNOWN};
use super::rng::Rng;
use super::syntax::{
    Adverb, Clause, Conjunction, Degree, Determiner, Modal, NounPhrase, Object, Person, Polarity, Predicate,
    Question, Sentence, Subject, Tense, Time, motion,
};
use super::verbs::{COST, Frame, VERBS, Verb};

#[derive(Clone, Copy)]
enum Form {
    Transitive,
    Intransitive,
    Motion,
    Giving,
    Speaking,
    PronounObject,
    Modal,
    Be,
    Compare,
    Located,
    Exists,
    Age,
    Price,
    YesNo,
    Where,
    What,
    HowMany,
    Who,
    HowOld,
    SubjectRelative,
    ObjectRelative,
    Joined,
    Clock,
    Today,
}

/// How often each form of sentence is drawn.
const FORMS: [(usize, Form); 24] = [
    (20, Form::Transitive),
    (9, Form::Intransitive),
    (6, Form::Motion),
    (6, Form::Giving),
    (2, Form::Speaking),
    (5, Form::PronounObject),
    (6, Form::Modal),
    (8, Form::Be),
    (5, Form::Compare),
    (4, Form::Located),
    (5, Form::Exists),
    (2, Form::Age),
    (2, Form::Price),
    (6, Form::YesNo),
    (4, Form::Where),
    (2, Form::What),
    (2, Form::HowMany),
    (2, Form::Who),
    (1, Form::HowOld),
    (4, Form::SubjectRelative),
    (4, Form::ObjectRelative),
    (7, Form::Joined),
    (1, Form::Clock),
    (2, Form::Today),
];

const TENSES: [(usize, Tense); 4] =
    [(40, Tense::Present), (30, Tense::Past), (20, Tense::Future), (10, Tense::Progressive)];
pub(super) const HUMANS: &[Kind] = &[Kind::Person, Kind::Kin];

/// One sentence.
pub(super) fn sentence(rng: &mut Rng) -> Sentence {
    let form = rng.weighted(&FORMS);
    Draw(rng).sentence(form)
}

/// The grammar's rules, with the source of its choices.
pub(super) struct Draw<'a>(pub(super) &'a mut Rng);

impl Draw<'_> {
    fn sentence(&mut self, form: Form) -> Sentence {
        match form {
            Form::Transitive => {
                let verb = self.verb(Frame::Transitive);
                let mut clause = self.clause(verb);
                clause = clause.with_object(Object::Phrase(self.object(verb)));
                Sentence::Statement(self.dressed(clause, 12))
            }
            Form::Intransitive => {
                let verb = self.verb(Frame::Intransitive);
                let mut clause = self.clause(verb);
                if self.0.percent(60) {
                    clause.place = self.spot(verb);
                }
                Sentence::Statement(self.dressed(clause, 40))
            }
            Form::Motion => {
                let clause = self.motion_clause();
                Sentence::Statement(self.dressed(clause, 45))
            }
            Form::Giving => {
                let verb = self.verb(Frame::Ditransitive);
                let clause = self.clause(verb);
                let gift = self.object(verb);
                let recipient = self.recipient(&clause.subject);
                let clause = clause.with_object(Object::Phrase(gift)).with_recipient(recipient);
                Sentence::Statement(self.dressed(clause, 0))
            }
            Form::Speaking => {
                let verb = self.verb(Frame::ToSomebody);
                let clause = self.clause(verb);
                let recipient = self.recipient(&clause.subject);
                let clause = clause.with_recipient(recipient);
                Sentence::Statement(self.dressed(clause, 20))
            }
            Form::PronounObject => {
                let verb =
                    self.one(VERBS, |v| v.frame == Frame::Transitive && v.objects.contains(&Kind::Person));
                let clause = self.clause(verb);
                let somebody = self.somebody_else(&clause.subject);
                let clause = clause.with_object(Object::Pronoun(somebody));
                Sentence::Statement(self.dressed(clause, 15))
            }
            Form::Modal => Sentence::Statement(self.modal_clause()),
            Form::Be => {
                let clause = self.be_clause();
                Sentence::Statement(self.dressed(clause, 0))
            }
            Form::Compare => Sentence::Statement(self.compare_clause()),
            Form::Located => {
                let noun = self.located();
                let tense = self.0.weighted(&TENSES);
                let subject = Subject::Phrase(self.phrase(noun, KNOWN));
                let mut clause = Clause::new(subject, tense, Predicate::Located);
                clause.place = Some(self.spot_for(matches!(noun.kind, Kind::Thing | Kind::Food)));
                clause.polarity = self.polarity(tense);
                Sentence::Statement(clause)
            }
            Form::Exists => self.exists(),
            Form::Age => {
                let subject = if self.0.percent(40) {
                    Subject::Pronoun(self.0.pick(&Person::ALL))
                } else {
                    Subject::Phrase(self.plain_phrase(HUMANS))
                };
                let years = self.number();
                let tense = self.0.weighted(&[(70, Tense::Present), (15, Tense::Past), (15, Tense::Future)]);
                Sentence::Statement(Clause::new(subject, tense, Predicate::Age(years)))
            }
            Form::Price => {
                let goods = self.one(NOUNS, |n| matches!(n.kind, Kind::Thing | Kind::Food));
                let goods = self.phrase(goods, &[(60, Det::The), (25, Det::This), (15, Det::Possessive)]);
                let tense = self.0.weighted(&[(75, Tense::Present), (25, Tense::Future)]);
                let price = NounPhrase::new(Determiner::Count(self.number()), &EURO, true);
                Sentence::Statement(
                    Clause::act(Subject::Phrase(goods), tense, &COST).with_object(Object::Phrase(price)),
                )
            }
            Form::YesNo => Sentence::Question(Question::YesNo, self.question_clause()),
            Form::Where => self.adverbial_question(),
            Form::What => {
                let verb = self.one(VERBS, |v| {
                    v.frame == Frame::Transitive
                        && v.objects
                            .iter()
                            .any(|k| !matches!(k, Kind::Person | Kind::Kin | Kind::Animal | Kind::Place))
                });
                let clause = self.clause(verb).with_object(Object::Gap(None));
                Sentence::Question(Question::What, clause)
            }
            Form::HowMany => {
                // There is no number of what is drunk.
                let verb = self.one(VERBS, |v| v.frame == Frame::Transitive && v.objects != [Kind::Drink]);
                let noun = self.one(NOUNS, |n| verb.takes(n) && n.kind != Kind::Kin && !n.is_mass());
                let gap = NounPhrase::new(Determiner::Indefinite, noun, true).agreement();
                let clause = self.clause(verb).with_object(Object::Gap(Some(gap)));
                Sentence::Question(Question::HowMany(noun), clause)
            }
            Form::Who => {
                let mut clause = self.simple_clause();
                clause.subject = Subject::who();
                Sentence::Question(Question::Who, clause)
            }
            Form::HowOld => Sentence::HowOld(self.plain_phrase(HUMANS)),
            Form::SubjectRelative => self.subject_relative(),
            Form::ObjectRelative => self.object_relative(),
            Form::Joined => self.joined(),
            Form::Clock => Sentence::Clock(self.clock()),
            Form::Today => Sentence::Today(self.0.below(WEEKDAYS.len()), self.date()),
        }
    }

    pub(super) fn one<T>(&mut self, list: &'static [T], fits: impl Fn(&T) -> bool) -> &'static T {
        let fitting: Vec<&'static T> = list.iter().filter(|item| fits(item)).collect();
        self.0.pick(&fitting)
    }

    fn verb(&mut self, frame: Frame) -> &'static Verb {
        self.one(VERBS, |v| v.frame == frame)
    }

    /// A subject that can do it.
    fn subject(&mut self, verb: &Verb) -> Subject {
        let kinds: &[Kind] =
            if verb.animals { &[Kind::Person, Kind::Kin, Kind::Animal, Kind::Animal] } else { HUMANS };
        match self.0.below(100) {
            0..38 => Subject::Pronoun(self.0.pick(&Person::ALL)),
            38..95 => Subject::Phrase(self.subject_phrase(kinds)),
            _ => Subject::Pair(self.plain_phrase(kinds), self.plain_phrase(kinds)),
        }
    }

    fn clause(&mut self, verb: &'static Verb) -> Clause {
        let (tense, subject) = (self.tense(verb), self.subject(verb));
        match (tense, &subject) {
            // The imparfait of actions is for third persons alone, to keep the number of forms small.
            (Tense::Progressive, Subject::Pronoun(Person::I | Person::You | Person::We)) => {
                Clause::act(subject, Tense::Past, verb)
            }
            _ => Clause::act(subject, tense, verb),
        }
    }

    fn tense(&mut self, verb: &Verb) -> Tense {
        match self.0.weighted(&TENSES) {
            Tense::Progressive if !verb.has_progressive() => Tense::Past,
            tense => tense,
        }
    }

    /// Somebody whose pronoun is not reflexive with the subject.
    fn somebody_else(&mut self, subject: &Subject) -> Person {
        let person = self.0.pick(&Person::ALL);
        let clash = match subject {
            Subject::Pronoun(Person::I | Person::We) => matches!(person, Person::I | Person::We),
            Subject::Pronoun(Person::You) => person == Person::You,
            _ => false,
        };
        if clash { Person::They } else { person }
    }

    fn recipient(&mut self, subject: &Subject) -> Object {
        if self.0.percent(40) {
            Object::Pronoun(self.somebody_else(subject))
        } else {
            Object::Phrase(self.plain_phrase(HUMANS))
        }
    }

    /// Negation, or an adverb, or a time that the tense allows, the latter with this chance.
    fn dressed(&mut self, mut clause: Clause, time: usize) -> Clause {
        clause.polarity = self.polarity(clause.tense);
        let state = matches!(clause.predicate, Predicate::Act { verb, .. } if verb.state);
        match clause.polarity {
            Polarity::Positive => {
                if clause.tense == Tense::Present && self.0.percent(10) {
                    clause.adverb = Some(self.0.pick(&[Adverb::Often, Adverb::Always]));
                } else if !state && self.0.percent(time) {
                    clause.time = Some(self.time(clause.tense));
                }
            }
            Polarity::Not if !state && self.0.percent(time / 2) => {
                clause.time = Some(self.time(clause.tense))
            }
            _ => {}
        }
        clause
    }

    fn polarity(&mut self, tense: Tense) -> Polarity {
        match self.0.below(100) {
            0..76 => Polarity::Positive,
            76..90 => Polarity::Not,
            90..96 => Polarity::Never,
            _ if tense == Tense::Past => Polarity::Not,
            _ => Polarity::NoLonger,
        }
    }

    fn time(&mut self, tense: Tense) -> Time {
        let choice = self.0.below(100);
        match (tense, choice) {
            (_, 0..25) => Time::At(self.clock()),
            (Tense::Present, 25..60) => Time::Today,
            (Tense::Present, _) => Time::EveryDay,
            (_, 25..50) => Time::On(self.date()),
            (_, 50..68) => Time::Weekday(self.0.below(WEEKDAYS.len())),
            (_, 68..84) => Time::Month(self.0.below(MONTHS.len())),
            (Tense::Future, _) => Time::Tomorrow,
            _ => Time::Yesterday,
        }
    }

    fn clock(&mut self) -> Clock {
        match self.0.below(16) {
            0 => Clock::Noon,
            1 => Clock::Midnight,
            _ => Clock::Hour(1 + self.0.below(11) as u8, self.0.below(MINUTES.len())),
        }
    }

    fn date(&mut self) -> Date {
        let month = self.0.below(MONTHS.len());
        Date { day: 1 + self.0.below(usize::from(MONTHS[month].1)) as u8, month }
    }

    /// Half of the numbers are small, as in real text; the rest go to 100.
    pub(super) fn number(&mut self) -> u8 {
        if self.0.percent(50) { 2 + self.0.below(19) as u8 } else { 21 + self.0.below(80) as u8 }
    }

    fn motion_clause(&mut self) -> Clause {
        let verb = self.one(VERBS, |v| matches!(v.frame, Frame::Motion(_)));
        let mut clause = self.clause(verb);
        // "À la maison" would be "home".
        let place = self.one(NOUNS, |n| n.kind == Kind::Place && n.en != "house");
        let place = self.singular(place, &[(80, Det::The), (20, Det::Possessive)]);
        clause.place = motion(verb).map(|preposition| (preposition, place));
        clause
    }

    fn modal_clause(&mut self) -> Clause {
        let modal = self.0.pick(&[Modal::Can, Modal::Must, Modal::Want]);
        let mut clause = match self.0.below(10) {
            0..6 => {
                let verb = self.one(VERBS, |v| v.frame == Frame::Transitive && !v.state);
                let subject = self.subject(verb);
                let object = if verb.objects.contains(&Kind::Person) && self.0.percent(40) {
                    Object::Pronoun(self.somebody_else(&subject))
                } else {
                    Object::Phrase(self.object(verb))
                };
                Clause::act(subject, Tense::Present, verb).with_object(object)
            }
            6..8 => {
                let verb = self.verb(Frame::Intransitive);
                let mut clause = Clause::act(self.subject(verb), Tense::Present, verb);
                clause.place = self.spot(verb);
                clause
            }
            _ => Clause { tense: Tense::Present, ..self.motion_clause() },
        };
        if let Predicate::Act { modal: slot, .. } = &mut clause.predicate {
            *slot = Some(modal);
        }
        clause.polarity =
            self.0.weighted(&[(75, Polarity::Positive), (20, Polarity::Not), (5, Polarity::Never)]);
        clause
    }

    fn be_clause(&mut self) -> Clause {
        let tense = self.0.weighted(&TENSES);
        if self.0.percent(25) {
            let subject = Subject::Pronoun(self.0.pick(&Person::ALL));
            let adjective = self.one(ADJECTIVES, |a| a.kinds.contains(&Kind::Kin));
            return Clause::new(subject, tense, Predicate::Be(adjective));
        }
        let noun = self.one(NOUNS, |_| true);
        let adjective = self.adjective(noun.kind);
        let subject = Subject::Phrase(self.phrase(noun, KNOWN));
        Clause::new(subject, tense, Predicate::Be(adjective))
    }

    fn compare_clause(&mut self) -> Clause {
        let compared = |a: &Adjective, kind| a.kinds.contains(&kind) && a.en_comparative.is_some();
        let noun = self.one(NOUNS, |n| !n.is_mass());
        let adjective = self.one(ADJECTIVES, |a| compared(a, noun.kind));
        let standard = if noun.is_human() && self.0.percent(40) {
            Subject::Pronoun(self.0.pick(&Person::ALL))
        } else {
            let other = self.one(NOUNS, |n| n.kind == noun.kind);
            Subject::Phrase(self.phrase(other, KNOWN))
        };
        let subject = Subject::Phrase(self.phrase(noun, KNOWN));
        let degree = self.0.weighted(&[(60, Degree::More), (20, Degree::Less), (20, Degree::As)]);
        let tense = self.0.weighted(&[(75, Tense::Present), (25, Tense::Past)]);
        Clause::new(subject, tense, Predicate::Compare(adjective, degree, standard))
    }

    fn exists(&mut self) -> Sentence {
        let noun = self.located();
        let negated = self.0.percent(20);
        let determiners: &[(usize, Det)] =
            if negated { &[(1, Det::Indefinite)] } else { &[(50, Det::Indefinite), (50, Det::Count)] };
        let mut phrase = self.phrase(noun, determiners);
        self.maybe_adjective(&mut phrase, 20);
        Sentence::Exists {
            phrase,
            negated,
            place: self.spot_for(matches!(noun.kind, Kind::Thing | Kind::Food)),
        }
    }

    /// Something that can be somewhere, and is not itself where things are.
    fn located(&mut self) -> &'static Noun {
        let kind = self.0.pick(&[Kind::Person, Kind::Animal, Kind::Food, Kind::Thing, Kind::Thing]);
        self.one(NOUNS, |n| n.kind == kind && n.spots.is_empty() && n.en != "story")
    }

    fn question_clause(&mut self) -> Clause {
        match self.0.below(10) {
            0..5 => {
                let verb = self.verb(Frame::Transitive);
                let clause = self.clause(verb);
                let object = self.object(verb);
                clause.with_object(Object::Phrase(object))
            }
            5..7 => {
                let verb = self.verb(Frame::Intransitive);
                let mut clause = self.clause(verb);
                if self.0.percent(50) {
                    clause.place = self.spot(verb);
                }
                clause
            }
            7..8 => self.motion_clause(),
            _ => self.be_clause(),
        }
    }

    fn adverbial_question(&mut self) -> Sentence {
        let verb =
            self.one(VERBS, |v| matches!(v.frame, Frame::Intransitive | Frame::Transitive) && !v.state);
        let mut clause = self.clause(verb);
        if verb.frame == Frame::Transitive {
            let object = self.object(verb);
            clause = clause.with_object(Object::Phrase(object));
        }
        let question = match self.0.below(3) {
            0 if verb.en[0] != "leave" => Question::Where,
            1 => Question::Why,
            _ => Question::When,
        };
        Sentence::Question(question, clause)
    }

    /// A short clause for joining.
    fn simple_clause(&mut self) -> Clause {
        match self.0.below(10) {
            0..5 => {
                let verb = self.verb(Frame::Intransitive);
                self.clause(verb)
            }
            _ => {
                let verb = self.one(VERBS, |v| v.frame == Frame::Transitive && v.has_progressive());
                let noun = self.one(NOUNS, |n| verb.takes(n));
                let clause = self.clause(verb);
                clause.with_object(Object::Phrase(self.phrase(noun, KNOWN)))
            }
        }
    }

    fn joined(&mut self) -> Sentence {
        let conjunction = self.0.weighted(&[
            (25, Conjunction::And),
            (15, Conjunction::But),
            (25, Conjunction::Because),
            (20, Conjunction::When),
            (15, Conjunction::If),
        ]);
        let mut first = self.simple_clause();
        let second = match conjunction {
            Conjunction::And | Conjunction::But => {
                let mut second = self.simple_clause();
                if let (Tense::Progressive, Subject::Pronoun(person)) = (first.tense, &mut second.subject) {
                    *person = self.0.pick(&[Person::He, Person::She, Person::They]);
                }
                second.tense = first.tense;
                if conjunction == Conjunction::But {
                    second.polarity = Polarity::Not;
                }
                second
            }
            Conjunction::Because => {
                let subject = Subject::Pronoun(self.0.pick(&Person::ALL));
                let adjective = self.one(ADJECTIVES, |a| a.kinds.contains(&Kind::Kin));
                let before = matches!(first.tense, Tense::Past | Tense::Progressive);
                let tense = if before { Tense::Past } else { Tense::Present };
                Clause::new(subject, tense, Predicate::Be(adjective))
            }
            Conjunction::When => {
                first.tense = Tense::Progressive;
                if let Subject::Pronoun(person) = &mut first.subject {
                    *person = self.0.pick(&[Person::He, Person::She, Person::They]);
                }
                let verb = self.one(VERBS, |v| v.with_etre && !matches!(v.en[0], "go" | "stay"));
                Clause::act(self.subject(verb), Tense::Past, verb)
            }
            Conjunction::If => {
                first.tense = Tense::Future;
                let verb = self.one(VERBS, |v| {
                    v.frame == Frame::Intransitive || v.frame == Frame::Motion(Preposition::From)
                });
                Clause::act(self.subject(verb), Tense::Present, verb)
            }
        };
        Sentence::Joined(Box::new((first, second)), conjunction)
    }

    /// "The girl who sings is happy", "I see the girl who sings".
    fn subject_relative(&mut self) -> Sentence {
        let head = self.one(NOUNS, |n| matches!(n.kind, Kind::Person | Kind::Animal));
        let mut phrase = NounPhrase::new(Determiner::The, head, self.0.percent(30));
        let verb = self.one(VERBS, |v| {
            !v.state
                && matches!(v.frame, Frame::Transitive | Frame::Intransitive)
                && (v.animals || head.kind == Kind::Person)
        });
        let tense = self.tense(verb);
        let mut relative = Clause::act(Subject::Gap(phrase.agreement()), tense, verb);
        if verb.frame == Frame::Transitive {
            let noun = self.one(NOUNS, |n| verb.takes(n));
            relative = relative.with_object(Object::Phrase(self.phrase(noun, KNOWN)));
        }
        phrase.relative = Some(Box::new(relative));
        self.around(phrase)
    }

    /// "The book that my mother bought is red", "I have the book that my mother bought".
    fn object_relative(&mut self) -> Sentence {
        let verb = self.one(VERBS, |v| v.frame == Frame::Transitive && !v.objects.contains(&Kind::Kin));
        let head = self.one(NOUNS, |n| verb.takes(n) && !n.is_human());
        let mut phrase = NounPhrase::new(Determiner::The, head, !head.is_mass() && self.0.percent(35));
        let tense = self.0.weighted(&[(25, Tense::Present), (60, Tense::Past), (15, Tense::Future)]);
        let relative =
            Clause::act(self.subject(verb), tense, verb).with_object(Object::Gap(Some(phrase.agreement())));
        phrase.relative = Some(Box::new(relative));
        self.around(phrase)
    }

    /// A main clause around a phrase with a relative clause.
    fn around(&mut self, phrase: NounPhrase) -> Sentence {
        let kind = phrase.noun.kind;
        let seeing =
            self.one(VERBS, |v| v.frame == Frame::Transitive && v.only.is_empty() && v.en[0] != "visit");
        if seeing.takes(phrase.noun) && self.0.percent(50) {
            let subject = Subject::Pronoun(self.0.pick(&Person::ALL));
            return Sentence::Statement(
                Clause::act(subject, Tense::Present, seeing).with_object(Object::Phrase(phrase)),
            );
        }
        let adjective = self.adjective(kind);
        let tense = self.0.weighted(&[(70, Tense::Present), (30, Tense::Past)]);
        Sentence::Statement(Clause::new(Subject::Phrase(phrase), tense, Predicate::Be(adjective)))
    }
}
