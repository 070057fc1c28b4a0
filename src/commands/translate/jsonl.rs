//! `regard translate --jsonl`: reads an object per line and writes the same object with its
//! translation, to standard output or, with `--out`, to a file (`bulk.rs`).

use super::super::input::Lines;
use super::inputs::{Input, for_each_part};
use super::route::Route;
use super::{Arguments, CommandResult};
use regard::Error;
use regard::translator::Candidate;
use regard_documents::{Match, TermReport, Texts, TranslatedLine};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The fields that may hold the text, in order of preference.
const FIELDS: [&str; 2] = ["text", "source"];

/// Translates the objects of all inputs to standard output.
pub(super) fn run(
    arguments: &Arguments,
    route: &Route,
    inputs: &[Input],
    signals: (&AtomicBool, &AtomicBool),
) -> CommandResult {
    for_each_part(inputs, signals, route.part(), Lines::next_batch, |path, before, part, output| {
        for line in translate(arguments, route, path, before, part)? {
            output.line(line)?;
        }
        output.flush()
    })
}

/// The lines with their translations; `before` lines of the file precede them.
pub(super) fn translate<T: AsRef<str>>(
    arguments: &Arguments,
    route: &Route,
    path: &Path,
    before: usize,
    lines: &[T],
) -> Result<Vec<String>, Error> {
    let read = lines.iter().enumerate().map(|(i, line)| record(path, before + i + 1, line.as_ref()));
    let records = read.collect::<Result<Vec<_>, Error>>()?;
    let (texts, objects): (Vec<String>, Vec<Option<Map<String, Value>>>) = records.into_iter().unzip();
    let texts = Texts::new(&texts);
    let translated = route.translate(texts.lines())?;
    let notes = notes(&texts, &translated);
    let found = texts.join(translated.into_iter().map(|line| line.line).collect());
    let mut written = Vec::with_capacity(objects.len());
    for ((object, candidates), notes) in objects.into_iter().zip(found).zip(notes) {
        written.push(object.map_or_else(String::new, |object| {
            let mut object = filled(arguments, object, &candidates);
            object.extend(notes);
            Value::Object(object).to_string()
        }));
    }
    Ok(written)
}

/// The text of a line and its object; an empty line stays empty.
fn record(path: &Path, line: usize, text: &str) -> Result<(String, Option<Map<String, Value>>), Error> {
    if text.trim().is_empty() {
        return Ok((String::new(), None));
    }
    let wrong = |message: String| Error::Line { path: path.to_path_buf(), line, message };
    let object: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| wrong(format!("not a JSON object: {error}")))?;
    match FIELDS.iter().find_map(|field| object.get(*field)) {
        Some(Value::String(text)) => Ok((text.clone(), Some(object))),
        Some(other) => Err(wrong(format!("the text is {other}; a string is needed"))),
        None => Err(wrong("there is no field `text` or `source`".into())),
    }
}

/// The object with the translations added.
fn filled(arguments: &Arguments, mut object: Map<String, Value>, found: &[Candidate]) -> Map<String, Value> {
    let text = |candidate: &Candidate| Value::from(candidate.text.as_str());
    object.insert("translation".into(), found.first().map_or_else(|| Value::from(""), text));
    if arguments.scores {
        object.insert("score".into(), json!(found.first().map_or(0.0, |best| best.score)));
    }
    if arguments.alignment {
        object.insert("alignment".into(), json!(found.first().map_or(&[][..], |best| &best.alignment[..])));
    }
    if arguments.nbest > 1 {
        object.insert("alternatives".into(), found.iter().skip(1).map(text).collect());
    }
    object
}

/// The notes on each text: what came from the memory, and the glossary terms.
fn notes(texts: &Texts<'_>, translated: &[TranslatedLine]) -> Vec<Map<String, Value>> {
    let mut lines = translated.iter();
    let of_text = |count: usize| {
        let own: Vec<&TranslatedLine> = lines.by_ref().take(count).collect();
        let mut notes = Map::new();
        if own.iter().any(|line| line.memory.is_some()) {
            let whole = own.iter().all(|line| line.memory == Some(Match::Segment));
            let found = if whole { Match::Segment } else { Match::Sentences };
            notes.insert("memory".into(), json!(found.name()));
        }
        let mut terms = TermReport::default();
        own.iter().for_each(|line| terms.add(&line.terms));
        if terms.wanted > 0 {
            notes.insert("terms".into(), json!(terms));
        }
        notes
    };
    texts.line_counts().map(of_text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_a_text() {
        let of = |text: &str| record(Path::new("r.jsonl"), 7, text).map_err(|error| error.to_string());
        assert_eq!(of(r#"{"id": 1, "source": "A dog."}"#).unwrap().0, "A dog.");
        assert_eq!(of(r#"{"source": "b", "text": "a"}"#).unwrap().0, "a");
        assert_eq!(of("  ").unwrap(), (String::new(), None));
        assert_eq!(of("{}").unwrap_err(), "r.jsonl:7: there is no field `text` or `source`");
        assert_eq!(of(r#"{"text": 3}"#).unwrap_err(), "r.jsonl:7: the text is 3; a string is needed");
        assert!(of("[1]").unwrap_err().starts_with("r.jsonl:7: not a JSON object: "));
    }
}
