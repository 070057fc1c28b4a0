//! `POST /translate`.

use crate::App;
use crate::error::{ApiError, ApiResult, ok};
use crate::languages::Route;
use crate::params::{Call, Texts};
use crate::service::{Outcome, Wishes};
use axum::extract::State;
use regard_documents::{Document, html};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The language that a text was found to be in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Detected {
    pub(crate) confidence: f64,
    pub(crate) language: String,
}

/// One value for a text, a list for a list.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    translated_text: OneOrMany<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detected_language: Option<OneOrMany<Detected>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alternatives: Option<OneOrMany<Vec<String>>>,
    /// For each text, which characters belong together.
    #[serde(skip_serializing_if = "Option::is_none")]
    alignment: Option<Vec<Vec<[usize; 4]>>>,
}

/// Where a text goes: its source language, if that had to be found out, and its route.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) route: Route,
    pub(super) detected: Option<Detected>,
}

/// What a request wants to be translated.
pub(super) struct Wanted {
    pub(super) texts: Texts,
    pub(super) ways: Vec<Way>,
    pub(super) markup: bool,
}

impl Wanted {
    /// Reads and checks a request, in the order in which LibreTranslate does.
    pub(super) fn read(app: &App, call: &Call) -> ApiResult<Self> {
        let texts = call.texts()?;
        let (source, target) = (call.required("source")?, call.required("target")?);
        let limits = &app.settings.limits;
        if texts.list().len() > limits.texts {
            return Err(ApiError::too_long(texts.list().len(), limits.texts));
        }
        let characters = texts.list().iter().map(|text| text.chars().count()).sum();
        if characters > limits.characters {
            return Err(ApiError::too_long(characters, limits.characters));
        }
        let markup = match call.text("format").unwrap_or("text") {
            "text" => false,
            "html" => true,
            other => return Err(ApiError::bad(format!("{other} format is not supported"))),
        };
        let way = |text: &String| match markup && source.eq_ignore_ascii_case("auto") {
            true => way(app, &document(text, true).words(), source, target),
            false => way(app, text, source, target),
        };
        let ways = texts.list().iter().map(way).collect::<ApiResult<_>>()?;
        app.metrics.characters.add(characters);
        Ok(Wanted { texts, ways, markup })
    }
}

/// The way from a language, or from whatever the text is in, to another.
pub(super) fn way(app: &App, text: &str, source: &str, target: &str) -> ApiResult<Way> {
    let languages = &app.languages;
    let (source, detected) = match source.eq_ignore_ascii_case("auto") {
        true => {
            let (language, confidence) = languages.detect_for(text, &languages.known(target)?);
            (language.clone(), Some(Detected { confidence, language }))
        }
        false => (languages.known(source)?, None),
    };
    let target = languages.known(target)?;
    Ok(Way { route: languages.route(&source, &target)?.clone(), detected })
}

/// The sentences of a text.
pub(super) fn document(text: &str, markup: bool) -> Document {
    if markup { html::document(text) } else { Document::plain(text) }
}

pub(super) async fn translate(State(app): State<Arc<App>>, call: Call) -> ApiResult {
    let alternatives = call.alternatives(app.settings.limits.alternatives)?;
    let wanted = Wanted::read(&app, &call)?;
    let wishes = Wishes { alternatives, alignment: call.flag("alignment") };
    let outcomes = app.in_time(translate_all(&app, &wanted, wishes)).await?;
    let one = matches!(wanted.texts, Texts::One(_));
    let found: Option<Vec<Detected>> = wanted.ways.into_iter().map(|way| way.detected).collect();
    let alignment = outcomes.iter().map(|o| o.best.alignment.clone()).collect();
    let (texts, others): (Vec<String>, Vec<Vec<String>>) =
        outcomes.into_iter().map(|o| (o.best.text, o.alternatives)).unzip();
    ok(&Answer {
        translated_text: shaped(one, texts),
        detected_language: found.map(|found| shaped(one, found)),
        alternatives: (alternatives > 0).then(|| shaped(one, others)),
        alignment: wishes.alignment.then_some(alignment),
    })
}

fn shaped<T>(one: bool, mut list: Vec<T>) -> OneOrMany<T> {
    match (one, list.pop()) {
        (true, Some(value)) => OneOrMany::One(value),
        (_, last) => {
            list.extend(last);
            OneOrMany::Many(list)
        }
    }
}

/// Translates texts of one route together, routes one after the other.
async fn translate_all(app: &App, wanted: &Wanted, wishes: Wishes) -> ApiResult<Vec<Outcome>> {
    let mut routes: BTreeMap<&Route, Vec<usize>> = BTreeMap::new();
    for (i, way) in wanted.ways.iter().enumerate() {
        routes.entry(&way.route).or_default().push(i);
    }
    let mut outcomes = vec![Outcome::default(); wanted.ways.len()];
    for (route, numbers) in routes {
        let list = wanted.texts.list();
        let texts: Vec<(&str, Document)> =
            numbers.iter().map(|&i| (list[i].as_str(), document(&list[i], wanted.markup))).collect();
        for (i, outcome) in numbers.into_iter().zip(app.translate(route, &texts, wishes).await?) {
            outcomes[i] = outcome;
        }
    }
    Ok(outcomes)
}
