use super::*;
use crate::Document;

/// A line with one candidate, which `translate` makes from the text, aligned word by word.
fn line(text: &str, translate: impl Fn(&str) -> String) -> Line {
    let words: Vec<&str> = text.split_whitespace().collect();
    let translation = translate(text);
    let count = translation.split(' ').count();
    let candidate = Candidate {
        text: translation,
        score: -1.0,
        tokens: Vec::new(),
        token_scores: vec![-0.5; 3],
        alignment: (0..count.min(words.len())).map(|i| (i, i)).collect(),
    };
    Line { candidates: vec![candidate], source: Vec::new(), parts: 1, cut: 0 }
}

fn job(document: &Document, stages: usize, options: JobOptions) -> Job {
    let mut job = Job::new(stages, options);
    for (i, sentence) in document.sentences.iter().enumerate() {
        job.add(sentence, i == 0, "");
    }
    job
}

fn run(
    text: &str,
    stages: usize,
    options: JobOptions,
    translate: impl Fn(&Query, usize) -> String,
) -> (String, Vec<Outcome>, Vec<Round>) {
    let document = Document::plain(text);
    let mut job = job(&document, stages, options);
    let mut rounds = Vec::new();
    let answer = |round: &Round| -> Result<Vec<Line>> {
        rounds.push(round.clone());
        Ok(round.queries.iter().map(|query| line(&query.text, |_| translate(query, round.stage))).collect())
    };
    job.run(answer).unwrap();
    let outcomes = job.finish(&document.sentences);
    let best: Vec<Translation> = outcomes.iter().map(|outcome| outcome.translations[0].clone()).collect();
    (document.render(text, &best).text, outcomes, rounds)
}

#[test]
fn sentences_go_through_all_models() {
    let translate = |query: &Query, stage: usize| match stage {
        0 => query.text.to_uppercase(),
        _ => query.text.replace('O', "0"),
    };
    let (text, outcomes, rounds) = run("One dog. Two dogs {n}!", 2, JobOptions::default(), translate);
    assert_eq!(text, "0NE D0G. TW0 D0GS {n}!");
    assert_eq!(rounds.iter().map(|round| round.stage).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(rounds[1].queries[0].text, "ONE DOG.");
    assert!(!rounds[0].queries[0].attention && rounds[0].queries[1].attention);
    assert!(outcomes.iter().all(|outcome| outcome.guarded.is_none() && outcome.confidence.is_some()));
}

#[test]
fn a_degenerate_translation_is_tried_again() {
    let looping = |query: &Query, _: usize| match query.text.contains("bad") && !query.retry {
        true => "sim ".repeat(20),
        false => query.text.to_uppercase(),
    };
    let options = JobOptions { guard: true, ..JobOptions::default() };
    let (text, outcomes, rounds) = run("Good. A bad one.", 1, options.clone(), looping);
    assert_eq!(text, "GOOD. A BAD ONE.");
    assert_eq!(rounds.len(), 2);
    assert_eq!(rounds[1].queries.iter().map(|query| query.text.as_str()).collect::<Vec<_>>(), ["A bad one."]);
    assert!(rounds[1].queries[0].retry);
    let guarded = Guarded { fault: Fault::Repetition, left: None };
    assert_eq!((outcomes[0].guarded, outcomes[1].guarded), (None, Some(guarded)));
    // If the second attempt is no better, the first is kept, and the outcome records both faults.
    let (text, outcomes, _) = run("A bad one.", 1, options, |_, _| "sim ".repeat(20).trim_end().to_owned());
    assert!(text.starts_with("sim sim"));
    assert_eq!(outcomes[0].guarded.unwrap().left, Some(Fault::Repetition));
    // Without the guard there is one round.
    let (_, outcomes, rounds) = run("A bad one.", 1, JobOptions::default(), looping);
    assert!(rounds.len() == 1 && outcomes[0].guarded.is_none());
}

#[test]
fn what_the_memory_knows_is_not_translated() {
    let memory = Memory::new([("One dog 1.".to_owned(), "Ein Hund I.".to_owned())]);
    let options = JobOptions { memory: Some(Arc::new(memory)), ..JobOptions::default() };
    let (text, outcomes, rounds) =
        run("One dog 1. Two.", 2, options.clone(), |query, _| query.text.to_uppercase());
    assert_eq!(text, "Ein Hund I. TWO.");
    assert_eq!(outcomes.iter().map(|o| o.from_memory).collect::<Vec<_>>(), [true, false]);
    assert!(rounds.iter().all(|round| round.queries.len() == 1));
    assert!(run("One dog 1.", 1, options, |_, _| String::new()).2.is_empty());
}

#[test]
fn sentences_that_are_searched_alike_go_together() {
    let query = |text: &str, attention, prefix, retry| Query {
        text: text.into(),
        nbest: 2,
        attention,
        prefix,
        retry,
        phrases: Vec::new(),
        annotations: Vec::new(),
    };
    let queries = vec![
        query("a", false, true, false),
        query("b", true, false, false),
        query("c", false, true, false),
        query("d", false, true, true),
    ];
    let options = SearchOptions { beam: 1, prefix: vec![7], ..SearchOptions::default() };
    let mut searches = Vec::new();
    let found = search_round(
        &Round { stage: 0, numbers: vec![0, 1, 2, 3], queries },
        &options,
        |texts, _, options| {
            searches.push((texts.join(""), options.clone()));
            Ok(texts.iter().map(|text| line(text, str::to_uppercase)).collect())
        },
    );
    let texts: Vec<String> = found.unwrap().iter().map(|line| line.best().text).collect();
    assert_eq!(texts, ["A", "B", "C", "D"]);
    assert_eq!(searches.iter().map(|(texts, _)| texts.as_str()).collect::<Vec<_>>(), ["ac", "b", "d"]);
    assert!(searches[1].1.prefix.is_empty() && searches[1].1.attention && searches[0].1.beam == 2);
    assert_eq!((searches[2].1.no_repeat_ngram, searches[2].1.beam), (3, 4));
}

fn with_glossary(pairs: &[(&str, &str)]) -> JobOptions {
    let glossary = Glossary::new(pairs.iter().copied()).unwrap();
    JobOptions { glossary: Some(Arc::new(glossary)), guard: true, ..JobOptions::default() }
}

#[test]
fn a_sentence_that_lacks_a_term_is_searched_for_it() {
    let translate = |query: &Query, _: usize| match query.phrases.is_empty() {
        true => query.text.to_uppercase(),
        false => format!("{} {}", query.text.to_uppercase(), query.phrases[0].spellings[0]),
    };
    let options = with_glossary(&[("dog", "Hund"), ("two", "TWO")]);
    let (text, outcomes, rounds) = run("One dog {n}. Two cats. Three.", 1, options.clone(), translate);
    assert_eq!(text, "ONE DOG {n}. Hund TWO CATS. THREE.");
    assert_eq!(rounds.len(), 2);
    assert_eq!(rounds[1].numbers, [0]);
    assert!(rounds[1].queries[0].attempt() == Attempt::Constrained && rounds[1].queries[0].nbest == 4);
    let wanted: Vec<usize> = outcomes.iter().map(|outcome| outcome.terms.wanted).collect();
    assert_eq!(wanted, [1, 1, 0]);
    assert!(outcomes.iter().all(|outcome| outcome.terms.missing.is_empty()));
    // Terms that the second search does not find are reported.
    let (text, outcomes, _) = run("One dog.", 1, options, |query, _| query.text.to_uppercase());
    assert_eq!(text, "ONE DOG.");
    assert_eq!(outcomes[0].terms.missing, [("dog".to_owned(), "Hund".to_owned())]);
}

#[test]
fn terms_that_are_not_translated_come_through_every_model() {
    let loses = |query: &Query, _: usize| match query.phrases.is_empty() {
        true => query.text.replace("Fire fox", "X"),
        false => query.text.clone(),
    };
    let options = with_glossary(&[("Fire fox", "="), ("dog", "Hund")]);
    let (text, outcomes, rounds) = run("Fire fox! See Fire fox.", 2, options, loses);
    assert_eq!(text, "Fire fox! See Fire fox.");
    // The first sentence consists of terms only and is not sent to a model.
    assert!(outcomes[0].kept && rounds.iter().all(|round| round.numbers == [1]));
    assert_eq!(rounds.iter().map(|round| round.stage).collect::<Vec<_>>(), [0, 0, 1, 1]);
    // The term is kept even if no search finds it.
    let options = with_glossary(&[("fox", "=")]);
    let (text, _, _) = run("The fox runs.", 1, options, |_, _| "Der Fuchs rennt.".to_owned());
    assert_eq!(text, "Der fox rennt.");
}

#[test]
fn a_model_that_reads_terms_is_given_those_that_it_left_out() {
    // Knows one of the words, and reads the first annotation.
    let annotated = |query: &Query, _: usize| {
        let text = match &query.annotations[..] {
            [] => query.text.clone(),
            [first, ..] => query.text.replace(&query.text[first.range.clone()], &first.target),
        };
        text.replace("bird", "Vogel")
    };
    let glossary = [("dog", "Hund"), ("cat", "Katze"), ("bird", "Vogel")];
    let options = JobOptions { reads_terms: true, ..with_glossary(&glossary) };
    let (text, outcomes, rounds) =
        run("One dog and a bird. Two cats. One bird.", 1, options.clone(), annotated);
    assert_eq!(text, "One Hund and a Vogel. Two Katze. One Vogel.");
    assert!(outcomes.iter().all(|outcome| outcome.terms.missing.is_empty()));
    assert_eq!(rounds.len(), 2);
    assert!(rounds[0].queries.iter().all(|query| query.attempt() == Attempt::Plain));
    // The sentence that has its term already is not searched again, and its term is not annotated.
    assert_eq!(rounds[1].numbers, [0, 1]);
    let queries = &rounds[1].queries;
    assert_eq!(queries[0].annotations, [Annotation { range: 4..7, target: "Hund".into() }]);
    assert_eq!(queries[1].annotations, [Annotation { range: 4..8, target: "Katze".into() }]);
    assert!(queries.iter().all(|query| query.attempt() == Attempt::Constrained));
    // Each method on its own.
    let of = |glossary_method| JobOptions { glossary_method, ..options.clone() };
    let (text, _, rounds) = run("One dog.", 1, of(GlossaryMethod::Annotate), annotated);
    assert_eq!((text.as_str(), rounds.len()), ("One Hund.", 2));
    assert_eq!(rounds[1].queries[0].attempt(), Attempt::Annotated);
    let (_, _, rounds) = run("One dog.", 1, of(GlossaryMethod::Constrain), annotated);
    assert!(rounds.len() == 2 && rounds.iter().all(|round| round.queries[0].annotations.is_empty()));
    // A translation that repeats the term is not taken.
    let repeats = |query: &Query, _: usize| match query.annotations.is_empty() {
        true => "Ein Tier.".to_owned(),
        false => "Hund Hund.".to_owned(),
    };
    let (text, outcomes, _) = run("One dog.", 1, of(GlossaryMethod::Annotate), repeats);
    assert_eq!((text.as_str(), outcomes[0].terms.missing.len()), ("Ein Tier.", 1));
}

#[test]
fn annotations_are_behind_a_language_token_and_not_in_second_attempts() {
    let options = JobOptions { reads_terms: true, ..with_glossary(&[("dog", "Hund"), ("Fox", "=")]) };
    let document = Document::plain("A Fox and a dog");
    let mut job = Job::new(1, options);
    job.add(&document.sentences[0], true, ">>de<< ");
    let round = job.next_round().unwrap();
    job.answer(vec![line(&round.queries[0].text, |_| "ja ".repeat(30))]);
    let retry = job.next_round().unwrap();
    assert!(retry.queries[0].retry && retry.queries[0].annotations.is_empty());
    job.answer(vec![line(&retry.queries[0].text, |_| "Ein Fuchs und ein Tier".to_owned())]);
    let round = job.next_round().unwrap();
    let query = &round.queries[0];
    let found: Vec<(&str, &str)> =
        query.annotations.iter().map(|a| (&query.text[a.range.clone()], a.target.as_str())).collect();
    assert_eq!(found, [("Fox", "Fox"), ("dog", "Hund")]);
}
