//! Draws sentences. The weights here set how hard the corpus is to learn.

use super::lexicon::{ADJECTIVES, Gloss, Kind, NOUNS, Noun, find_noun};
use super::numbers::weekday;
use super::phrases::{Det, KNOWN};
use super::rng::Rng;
use super::syntax::{
    AND, AS, BECAUSE, BUT, Clause, Determiner, IF, LESS, MORE, NEVER, NO_LONGER, NOT, NounPhrase, Object,
    POSITIVE, Person, Predicate, Sentence, Subject, Tense, WHEN,
};
use super::verbs::{Frame, VERBS, Verb, find_verb};

/// A form of sentence.
type Form = fn(&mut Rng) -> Sentence;

/// How often each form is drawn.
const FORMS: [(usize, Form); 24] = [
    (20, |rng| rng.dressed(Rng::clause_with_object, 12)),
    (9, |rng| rng.dressed(|rng| rng.clause_with_place(60), 40)),
    (6, |rng| rng.dressed(Rng::motion_clause, 45)),
    (6, Rng::giving),
    (2, Rng::speaking),
    (5, Rng::pronoun_object),
    (6, Rng::modal),
    (8, |rng| rng.dressed(Rng::be_clause, 0)),
    (5, Rng::comparison),
    (4, Rng::located),
    (5, Rng::exists),
    (2, Rng::age),
    (2, Rng::price),
    (6, |rng| Sentence::Question(("", "est-ce que"), rng.question_clause())),
    (4, Rng::adverbial_question),
    (2, Rng::what),
    (2, Rng::how_many),
    (2, |rng| Sentence::Question(("who", "qui"), Clause { subject: Subject::who(), ..rng.simple_clause() })),
    (1, |rng| Sentence::HowOld(rng.plain_phrase(HUMANS))),
    (4, Rng::subject_relative),
    (4, Rng::object_relative),
    (7, Rng::joined),
    (1, |rng| {
        let (en, fr) = rng.clock();
        Sentence::Fixed((format!("it is {en}"), format!("il est {fr}")))
    }),
    (2, |rng| {
        let ((en, fr), (date, jour)) = (weekday(rng.below(7)), rng.date());
        let french = format!("aujourd'hui, nous sommes le {fr} {jour}");
        Sentence::Fixed((format!("today is {en}, {date}"), french))
    }),
];

const TENSES: [(usize, Tense); 4] =
    [(40, Tense::Present), (30, Tense::Past), (20, Tense::Future), (10, Tense::Progressive)];
pub(super) const HUMANS: &[Kind] = &[Kind::Person, Kind::Kin];

/// The rules of the grammar, drawn by chance.
impl Rng {
    pub(super) fn sentence(&mut self) -> Sentence {
        let form = self.weighted(&FORMS);
        form(self)
    }

    pub(super) fn one<T>(&mut self, list: &'static [T], fits: impl Fn(&T) -> bool) -> &'static T {
        let fitting: Vec<&'static T> = list.iter().filter(|item| fits(item)).collect();
        self.pick(&fitting)
    }

    fn verb(&mut self, frame: Frame) -> &'static Verb {
        self.one(&VERBS, |v| v.frame == frame)
    }

    fn transitive(&mut self, fits: impl Fn(&Verb) -> bool) -> &'static Verb {
        self.one(&VERBS, |v| v.frame == Frame::Transitive && fits(v))
    }

    pub(super) fn pronoun(&mut self) -> Person {
        self.pick(&Person::ALL)
    }

    /// A subject that can do it.
    fn subject(&mut self, verb: &Verb) -> Subject {
        let kinds: &[Kind] =
            if verb.animals { &[Kind::Person, Kind::Kin, Kind::Animal, Kind::Animal] } else { HUMANS };
        match self.below(100) {
            0..38 => Subject::Pronoun(self.pronoun()),
            38..95 => Subject::Phrase(self.subject_phrase(kinds)),
            _ => Subject::Pair(self.plain_phrase(kinds), self.plain_phrase(kinds)),
        }
    }

    fn clause(&mut self, verb: &'static Verb) -> Clause {
        let (tense, subject) = (self.tense(verb), self.subject(verb));
        match (tense, &subject) {
            // The imparfait of actions is for third persons alone, to keep the number of forms
            // small.
            (Tense::Progressive, Subject::Pronoun(Person::I | Person::You | Person::We)) => {
                Clause::act(subject, Tense::Past, verb)
            }
            _ => Clause::act(subject, tense, verb),
        }
    }

    fn tense(&mut self, verb: &Verb) -> Tense {
        match self.weighted(&TENSES) {
            Tense::Progressive if !verb.has_progressive() => Tense::Past,
            tense => tense,
        }
    }

    fn clause_with_object(&mut self) -> Clause {
        let verb = self.verb(Frame::Transitive);
        let clause = self.clause(verb);
        clause.with_object(Object::Phrase(self.object(verb)))
    }

    /// With this chance it says where.
    fn clause_with_place(&mut self, chance: usize) -> Clause {
        let verb = self.verb(Frame::Intransitive);
        let mut clause = self.clause(verb);
        if self.percent(chance) {
            clause.place = self.spot(verb);
        }
        clause
    }

    /// Somebody whose pronoun is not reflexive with the subject.
    fn somebody_else(&mut self, subject: &Subject) -> Object {
        let person = self.pronoun();
        let clash = match subject {
            Subject::Pronoun(Person::I | Person::We) => matches!(person, Person::I | Person::We),
            Subject::Pronoun(Person::You) => person == Person::You,
            _ => false,
        };
        Object::Pronoun(if clash { Person::They } else { person })
    }

    fn recipient(&mut self, subject: &Subject) -> Object {
        if self.percent(40) { self.somebody_else(subject) } else { Object::Phrase(self.plain_phrase(HUMANS)) }
    }

    /// A statement with negation, or an adverb, or a time that the tense allows, the latter with
    /// this chance.
    fn dressed(&mut self, draw: impl FnOnce(&mut Self) -> Clause, time: usize) -> Sentence {
        let mut clause = draw(self);
        clause.polarity = self.polarity(clause.tense);
        let state = matches!(clause.predicate, Predicate::Act { verb, .. } if verb.state);
        let positive = clause.polarity == POSITIVE;
        let time = if positive { time } else { time / 2 };
        if positive && clause.tense == Tense::Present && self.percent(10) {
            clause.adverb = Some(self.pick(&[("often", "souvent"), ("always", "toujours")]));
        } else if (positive || clause.polarity == NOT) && !state && self.percent(time) {
            clause.time = Some(self.time(clause.tense));
        }
        Sentence::Statement(clause)
    }

    fn polarity(&mut self, tense: Tense) -> Gloss {
        match self.below(100) {
            0..76 => POSITIVE,
            76..90 => NOT,
            90..96 => NEVER,
            _ if tense == Tense::Past => NOT,
            _ => NO_LONGER,
        }
    }

    fn giving(&mut self) -> Sentence {
        let verb = self.verb(Frame::Ditransitive);
        let clause = self.clause(verb);
        let gift = Object::Phrase(self.object(verb));
        let recipient = self.recipient(&clause.subject);
        self.dressed(|_| clause.with_object(gift).with_recipient(recipient), 0)
    }

    fn speaking(&mut self) -> Sentence {
        let verb = self.verb(Frame::ToSomebody);
        let clause = self.clause(verb);
        let recipient = self.recipient(&clause.subject);
        self.dressed(|_| clause.with_recipient(recipient), 20)
    }

    fn pronoun_object(&mut self) -> Sentence {
        let verb = self.transitive(|v| v.objects.contains(&Kind::Person));
        let clause = self.clause(verb);
        let somebody = self.somebody_else(&clause.subject);
        self.dressed(|_| clause.with_object(somebody), 15)
    }

    fn motion_clause(&mut self) -> Clause {
        let verb = self.one(&VERBS, |v| matches!(v.frame, Frame::Motion(_)));
        let mut clause = self.clause(verb);
        // "À la maison" would be "home".
        let place = self.one(&NOUNS, |n| n.kind == Kind::Place && n.en != "house");
        let place = self.singular(place, &[(80, Det::The), (20, Det::Possessive)]);
        if let Frame::Motion(preposition) = verb.frame {
            clause.place = Some((preposition, place));
        }
        clause
    }

    fn modal(&mut self) -> Sentence {
        let modal = find_verb(self.pick(&["can", "must", "want"]));
        let mut clause = match self.below(10) {
            0..6 => {
                let verb = self.transitive(|v| !v.state);
                let subject = self.subject(verb);
                let object = if verb.objects.contains(&Kind::Person) && self.percent(40) {
                    self.somebody_else(&subject)
                } else {
                    Object::Phrase(self.object(verb))
                };
                Clause::act(subject, Tense::Present, verb).with_object(object)
            }
            6..8 => {
                let verb = self.verb(Frame::Intransitive);
                let clause = Clause::act(self.subject(verb), Tense::Present, verb);
                Clause { place: self.spot(verb), ..clause }
            }
            _ => Clause { tense: Tense::Present, ..self.motion_clause() },
        };
        clause.polarity = self.weighted(&[(75, POSITIVE), (20, NOT), (5, NEVER)]);
        Sentence::Statement(clause.with_modal(modal))
    }

    fn be_clause(&mut self) -> Clause {
        let tense = self.weighted(&TENSES);
        if self.percent(25) {
            let subject = Subject::Pronoun(self.pronoun());
            return Clause::new(subject, tense, Predicate::Be(self.adjective(Kind::Kin)));
        }
        let noun = self.one(&NOUNS, |n| n.kind != Kind::Money);
        let adjective = self.adjective(noun.kind);
        Clause::new(Subject::Phrase(self.phrase(noun, KNOWN)), tense, Predicate::Be(adjective))
    }

    fn comparison(&mut self) -> Sentence {
        let noun = self.one(&NOUNS, |n| !n.is_mass() && n.kind != Kind::Money);
        let adjective =
            self.one(&ADJECTIVES, |a| a.kinds.contains(&noun.kind) && !a.en_comparative.is_empty());
        let standard = if noun.is_human() && self.percent(40) {
            Subject::Pronoun(self.pronoun())
        } else {
            let other = self.one(&NOUNS, |n| n.kind == noun.kind);
            Subject::Phrase(self.phrase(other, KNOWN))
        };
        let subject = Subject::Phrase(self.phrase(noun, KNOWN));
        let degree = self.weighted(&[(60, MORE), (20, LESS), (20, AS)]);
        let tense = self.weighted(&[(75, Tense::Present), (25, Tense::Past)]);
        Sentence::Statement(Clause::new(subject, tense, Predicate::Compare(adjective, degree, standard)))
    }

    /// Something that can be somewhere, and is not itself where things are.
    fn located_noun(&mut self) -> &'static Noun {
        let kind = self.pick(&[Kind::Person, Kind::Animal, Kind::Food, Kind::Thing, Kind::Thing]);
        self.one(&NOUNS, |n| n.kind == kind && n.spots.is_empty() && n.en != "story")
    }

    fn located(&mut self) -> Sentence {
        let noun = self.located_noun();
        let tense = self.weighted(&TENSES);
        let mut clause = Clause::new(Subject::Phrase(self.phrase(noun, KNOWN)), tense, Predicate::Located);
        clause.place = Some(self.spot_for(noun.kind));
        clause.polarity = self.polarity(tense);
        Sentence::Statement(clause)
    }

    fn exists(&mut self) -> Sentence {
        let noun = self.located_noun();
        let negated = self.percent(20);
        let determiners: &[(usize, Det)] =
            if negated { &[(1, Det::Indefinite)] } else { &[(50, Det::Indefinite), (50, Det::Count)] };
        let mut phrase = self.phrase(noun, determiners);
        self.maybe_adjective(&mut phrase, 20);
        Sentence::Exists { phrase, negated, place: self.spot_for(noun.kind) }
    }

    fn age(&mut self) -> Sentence {
        let subject = if self.percent(40) {
            Subject::Pronoun(self.pronoun())
        } else {
            Subject::Phrase(self.plain_phrase(HUMANS))
        };
        let years = self.number();
        let tense = self.weighted(&[(70, Tense::Present), (15, Tense::Past), (15, Tense::Future)]);
        Sentence::Statement(Clause::new(subject, tense, Predicate::Age(years)))
    }

    /// In the present and the future only: the English past "cost" is also the plural present.
    fn price(&mut self) -> Sentence {
        let goods = self.one(&NOUNS, |n| matches!(n.kind, Kind::Thing | Kind::Food));
        let goods = self.phrase(goods, &[(60, Det::The), (25, Det::This), (15, Det::Possessive)]);
        let tense = self.weighted(&[(75, Tense::Present), (25, Tense::Future)]);
        let price = NounPhrase::new(Determiner::Count(self.number()), find_noun("euro"), true);
        let clause = Clause::act(Subject::Phrase(goods), tense, find_verb("cost"));
        Sentence::Statement(clause.with_object(Object::Phrase(price)))
    }

    fn question_clause(&mut self) -> Clause {
        match self.below(10) {
            0..5 => self.clause_with_object(),
            5..7 => self.clause_with_place(50),
            7 => self.motion_clause(),
            _ => self.be_clause(),
        }
    }

    fn adverbial_question(&mut self) -> Sentence {
        let verb =
            self.one(&VERBS, |v| matches!(v.frame, Frame::Intransitive | Frame::Transitive) && !v.state);
        let mut clause = self.clause(verb);
        if verb.frame == Frame::Transitive {
            clause = clause.with_object(Object::Phrase(self.object(verb)));
        }
        let question = match self.below(3) {
            0 if verb.en[0] != "leave" => ("where", "où est-ce que"),
            1 => ("why", "pourquoi est-ce que"),
            _ => ("when", "quand est-ce que"),
        };
        Sentence::Question(question, clause)
    }

    fn what(&mut self) -> Sentence {
        let things = [Kind::Food, Kind::Meal, Kind::Drink, Kind::Thing];
        let verb = self.transitive(|v| v.objects.iter().any(|kind| things.contains(kind)));
        let clause = self.clause(verb).with_object(Object::Gap(None));
        Sentence::Question(("what", "qu'est-ce que"), clause)
    }

    fn how_many(&mut self) -> Sentence {
        // There is no number of what is drunk.
        let verb = self.transitive(|v| v.objects != [Kind::Drink]);
        let noun = self.one(&NOUNS, |n| verb.takes(n) && n.kind != Kind::Kin && !n.is_mass());
        let gap = NounPhrase::new(Determiner::Indefinite, noun, true).agreement();
        Sentence::HowMany(noun, self.clause(verb).with_object(Object::Gap(Some(gap))))
    }

    /// A short clause for joining.
    fn simple_clause(&mut self) -> Clause {
        if self.percent(50) {
            let verb = self.verb(Frame::Intransitive);
            return self.clause(verb);
        }
        let verb = self.transitive(Verb::has_progressive);
        let noun = self.one(&NOUNS, |n| verb.takes(n));
        let clause = self.clause(verb);
        clause.with_object(Object::Phrase(self.phrase(noun, KNOWN)))
    }

    fn joined(&mut self) -> Sentence {
        let conjunction = self.weighted(&[(25, AND), (15, BUT), (25, BECAUSE), (20, WHEN), (15, IF)]);
        let mut first = self.simple_clause();
        let second = if conjunction == BECAUSE {
            let subject = Subject::Pronoun(self.pronoun());
            let adjective = self.adjective(Kind::Kin);
            let before = matches!(first.tense, Tense::Past | Tense::Progressive);
            let tense = if before { Tense::Past } else { Tense::Present };
            Clause::new(subject, tense, Predicate::Be(adjective))
        } else if conjunction == WHEN {
            first.tense = Tense::Progressive;
            self.make_third_person(&mut first.subject);
            let verb = self.one(&VERBS, |v| v.with_etre && !matches!(v.en[0], "go" | "stay"));
            Clause::act(self.subject(verb), Tense::Past, verb)
        } else if conjunction == IF {
            first.tense = Tense::Future;
            let verb = self.one(&VERBS, |v| v.frame == Frame::Intransitive || v.en[0] == "come back");
            Clause::act(self.subject(verb), Tense::Present, verb)
        } else {
            let mut second = self.simple_clause();
            if first.tense == Tense::Progressive {
                self.make_third_person(&mut second.subject);
            }
            let polarity = if conjunction == BUT { NOT } else { POSITIVE };
            Clause { tense: first.tense, polarity, ..second }
        };
        Sentence::Joined(Box::new((first, second)), conjunction)
    }

    fn make_third_person(&mut self, subject: &mut Subject) {
        if let Subject::Pronoun(person) = subject {
            *person = self.pick(&[Person::He, Person::She, Person::They]);
        }
    }

    /// "The girl who sings is happy", "I see the girl who sings".
    fn subject_relative(&mut self) -> Sentence {
        let head = self.one(&NOUNS, |n| matches!(n.kind, Kind::Person | Kind::Animal));
        let mut phrase = NounPhrase::new(Determiner::The, head, self.percent(30));
        let verb = self.one(&VERBS, |v| {
            !v.state
                && matches!(v.frame, Frame::Transitive | Frame::Intransitive)
                && (v.animals || head.kind == Kind::Person)
        });
        let tense = self.tense(verb);
        let mut relative = Clause::act(Subject::Gap(phrase.agreement()), tense, verb);
        if verb.frame == Frame::Transitive {
            let noun = self.one(&NOUNS, |n| verb.takes(n));
            relative = relative.with_object(Object::Phrase(self.phrase(noun, KNOWN)));
        }
        phrase.relative = Some(Box::new(relative));
        self.around(phrase)
    }

    /// "The book that my mother bought is red", "I have the book that my mother bought".
    fn object_relative(&mut self) -> Sentence {
        let verb = self.transitive(|v| !v.objects.contains(&Kind::Kin));
        let head = self.one(&NOUNS, |n| verb.takes(n) && !n.is_human());
        let mut phrase = NounPhrase::new(Determiner::The, head, !head.is_mass() && self.percent(35));
        let tense = self.weighted(&[(25, Tense::Present), (60, Tense::Past), (15, Tense::Future)]);
        let gap = Object::Gap(Some(phrase.agreement()));
        phrase.relative = Some(Box::new(Clause::act(self.subject(verb), tense, verb).with_object(gap)));
        self.around(phrase)
    }

    /// A main clause around a phrase with a relative clause.
    fn around(&mut self, phrase: NounPhrase) -> Sentence {
        let seeing = self.transitive(|v| v.only.is_empty() && v.en[0] != "visit");
        if seeing.takes(phrase.noun) && self.percent(50) {
            let clause = Clause::act(Subject::Pronoun(self.pronoun()), Tense::Present, seeing);
            return Sentence::Statement(clause.with_object(Object::Phrase(phrase)));
        }
        let adjective = self.adjective(phrase.noun.kind);
        let tense = self.weighted(&[(70, Tense::Present), (30, Tense::Past)]);
        Sentence::Statement(Clause::new(Subject::Phrase(phrase), tense, Predicate::Be(adjective)))
    }
}
