//! `POST /translate`.

use crate::App;
use crate::error::{ApiError, ApiResult, ok};
use crate::languages::Route;
use crate::params::{Call, Texts};
use crate::service::{Outcome, Parsed, TranslateOptions};
use axum::extract::State;
use regard_documents::{Document, Fault, Guarded, Match, TermReport, html, language};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The detected language of a text.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
pub(crate) struct Detected {
    #[schemars(range(min = 0, max = 100))]
    pub(crate) confidence: f64,
    pub(crate) language: String,
}

/// A single value for a single text, a list for a list.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

/// The translation of each text. Members that were not requested are omitted, not null.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TranslateAnswer {
    translated_text: OneOrMany<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OneOrMany<Detected>")]
    detected_language: Option<OneOrMany<Detected>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OneOrMany<Vec<String>>")]
    alternatives: Option<OneOrMany<Vec<String>>>,
    /// For each text, the aligned character ranges: [source start, source end, target start, target
    /// end].
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<Vec<[usize; 4]>>")]
    alignment: Option<Vec<Vec<[usize; 4]>>>,
    /// For each text, the expected quality of its translation as a chrF score from 0 to 1; null if
    /// no model was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OneOrMany<Option<f32>>")]
    confidence: Option<OneOrMany<Option<f32>>>,
    /// The expected quality for each sentence of each text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OneOrMany<Vec<Option<f32>>>")]
    sentence_confidence: Option<OneOrMany<Vec<Option<f32>>>>,
    /// A warning that a text does not seem to be in the source language.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    warning: Option<String>,
    /// For each text, what came from the translation memory: `segment`, `sentences` or null;
    /// omitted if nothing did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OneOrMany<Option<String>>")]
    memory: Option<OneOrMany<Option<&'static str>>>,
    /// For each text, the sentences whose first translation was degenerate; omitted if there are
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OneOrMany<Vec<Faulty>>")]
    guarded: Option<OneOrMany<Vec<Faulty>>>,
    /// For each text, its glossary terms; omitted if no text has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OneOrMany<Terms>")]
    terms: Option<OneOrMany<Terms>>,
}

/// The glossary terms in a text.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
pub(crate) struct Terms {
    /// The number of terms, each counted once per sentence.
    wanted: usize,
    /// The terms that the translation lacks: source term and target term.
    missing: Vec<[String; 2]>,
}

impl From<TermReport> for Terms {
    fn from(report: TermReport) -> Self {
        let missing = report.missing.into_iter().map(|(source, target)| [source, target]).collect();
        Terms { wanted: report.wanted, missing }
    }
}

/// A sentence whose first translation was degenerate and which was translated again.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
pub(crate) struct Faulty {
    /// The fault of the first translation: `not translated`, `far too short`, `far too long`,
    /// `repeats itself` or `empty`.
    fault: &'static str,
    /// The fault of the translation that was kept; null if it has none.
    left: Option<&'static str>,
}

impl From<Guarded> for Faulty {
    fn from(guarded: Guarded) -> Self {
        Faulty { fault: guarded.fault.describe(), left: guarded.left.map(Fault::describe) }
    }
}

/// A route, and its source language if it was detected.
#[derive(Debug)]
pub(super) struct Routed {
    pub(super) route: Route,
    pub(super) source: String,
    pub(super) detected: Option<Detected>,
    /// A warning that the text seems to be in another language.
    pub(super) warning: Option<String>,
}

/// A parsed text with its route.
#[derive(Debug)]
pub(super) struct RoutedText {
    pub(super) parsed: Parsed,
    pub(super) routed: Routed,
}

/// The texts and languages of a translation request.
pub(super) struct TranslateRequest {
    pub(super) texts: Texts,
    source: String,
    target: String,
    markup: bool,
}

impl TranslateRequest {
    /// Parses and validates a request, in the same order as LibreTranslate.
    pub(super) fn read(app: &App, call: &Call) -> ApiResult<Self> {
        let texts = call.texts()?;
        let (source, target) = (call.required("source")?, call.required("target")?);
        let limits = &app.settings.limits;
        if texts.list().len() > limits.texts {
            return Err(ApiError::too_long(texts.list().len(), limits.texts));
        }
        let characters = texts.list().iter().map(|text| text.chars().count()).sum();
        if characters > call.characters {
            return Err(ApiError::too_long(characters, call.characters));
        }
        let markup = match call.text("format").unwrap_or("text") {
            "text" => false,
            "html" => true,
            other => return Err(ApiError::bad(format!("{other} format is not supported"))),
        };
        let (source, target) = (source.to_owned(), target.to_owned());
        app.metrics.characters.add(characters);
        Ok(TranslateRequest { texts, source, target, markup })
    }

    /// Determines the routes of its texts and splits them into sentences.
    pub(super) async fn parse(self, app: &Arc<App>) -> ApiResult<Vec<RoutedText>> {
        let TranslateRequest { texts, source, target, markup } = self;
        parse(app, texts.list().to_vec(), source, target, markup).await
    }
}

/// Determines the routes of texts and splits them into sentences.
pub(super) async fn parse(
    app: &Arc<App>,
    texts: Vec<String>,
    source: String,
    target: String,
    markup: bool,
) -> ApiResult<Vec<RoutedText>> {
    let _reserved = app.reserve(&source, &target)?;
    let shared = Arc::clone(app);
    let bytes = texts.iter().map(String::len).sum();
    app.compute_text(bytes, move |cancellation| {
        let parse_text = |text: String| {
            cancellation.check()?;
            if markup {
                let language = (!source.eq_ignore_ascii_case("auto")).then_some(source.as_str());
                let document = html::document_in(&text, language);
                let routed = route(&shared, &document.words(), &source, &target)?;
                return Ok(RoutedText { parsed: Parsed { source: text, document }, routed });
            }
            let routed = route(&shared, &text, &source, &target)?;
            let document = Document::plain_in(&text, Some(&routed.source));
            Ok(RoutedText { parsed: Parsed { source: text, document }, routed })
        };
        texts.into_iter().map(parse_text).collect()
    })
    .await
}

/// The route from a language, which is detected for `auto`, to another.
pub(super) fn route(app: &App, text: &str, source: &str, target: &str) -> ApiResult<Routed> {
    let languages = &app.languages;
    let (source, detected) = match source.eq_ignore_ascii_case("auto") {
        true => {
            let (language, confidence) = languages.detect_for(text, &languages.known(target)?);
            (language.clone(), Some(Detected { confidence, language }))
        }
        false => (languages.known(source)?, None),
    };
    let target = languages.known(target)?;
    let route = languages.route(&source, &target)?.clone();
    let other = detected.is_none().then(|| language::other_than(text, &source)).flatten();
    let warning = other.map(|other| language::warning(other, &source));
    Ok(Routed { route, source, detected, warning })
}

pub(super) async fn translate(State(app): State<Arc<App>>, call: Call) -> ApiResult {
    let alternatives = call.alternatives(app.settings.limits.alternatives)?;
    let request = TranslateRequest::read(&app, &call)?;
    let options = TranslateOptions {
        alternatives,
        alignment: call.flag("alignment"),
        glossary: call.glossary(&app)?,
        without_memory: call.refuses_memory(),
    };
    let (alignment, confidence) = (options.alignment, options.alignment || call.flag("confidence"));
    let one = matches!(request.texts, Texts::One(_));
    let work = async {
        let (parsed, routed): (Vec<Parsed>, Vec<Routed>) =
            request.parse(&app).await?.into_iter().map(|text| (text.parsed, text.routed)).unzip();
        let outcomes = translate_all(&app, parsed, &routed, options).await?;
        Ok((outcomes, routed))
    };
    let (outcomes, routed) = app.in_time(work).await?;
    let warning = routed.iter().find_map(|routed| routed.warning.clone());
    let found: Option<Vec<Detected>> = routed.into_iter().map(|routed| routed.detected).collect();
    let places = outcomes.iter().map(|o| o.best.alignment.clone()).collect();
    let confidences: Vec<Option<f32>> = outcomes.iter().map(|o| o.report.confidence).collect();
    let sentences: Vec<Vec<Option<f32>>> = outcomes.iter().map(|o| o.report.sentences.clone()).collect();
    let terms: Vec<Terms> = outcomes.iter().map(|o| o.report.terms.clone().into()).collect();
    let memory: Vec<Option<&str>> = outcomes.iter().map(|o| o.report.memory.map(Match::name)).collect();
    let faulty = |outcome: &Outcome| outcome.report.guarded.iter().map(|&g| Faulty::from(g)).collect();
    let guarded: Vec<Vec<Faulty>> = outcomes.iter().map(faulty).collect();
    let (texts, others): (Vec<String>, Vec<Vec<String>>) =
        outcomes.into_iter().map(|o| (o.best.text, o.alternatives)).unzip();
    ok(&TranslateAnswer {
        translated_text: shaped(one, texts),
        detected_language: found.map(|found| shaped(one, found)),
        alternatives: (alternatives > 0).then(|| shaped(one, others)),
        alignment: alignment.then_some(places),
        confidence: confidence.then(|| shaped(one, confidences)),
        sentence_confidence: confidence.then(|| shaped(one, sentences)),
        warning,
        memory: memory.iter().any(Option::is_some).then(|| shaped(one, memory)),
        guarded: guarded.iter().any(|list| !list.is_empty()).then(|| shaped(one, guarded)),
        terms: terms.iter().any(|terms| terms.wanted > 0).then(|| shaped(one, terms)),
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

/// Translates the texts, grouped by route; routes run one after another.
async fn translate_all(
    app: &App,
    mut parsed: Vec<Parsed>,
    routed: &[Routed],
    options: TranslateOptions,
) -> ApiResult<Vec<Outcome>> {
    let mut routes: BTreeMap<&Route, Vec<usize>> = BTreeMap::new();
    for (i, routed) in routed.iter().enumerate() {
        routes.entry(&routed.route).or_default().push(i);
    }
    let mut outcomes = vec![Outcome::default(); parsed.len()];
    for (route, numbers) in routes {
        let texts = numbers.iter().map(|&i| std::mem::take(&mut parsed[i])).collect();
        for (i, outcome) in numbers.into_iter().zip(app.translate(route, texts, options.clone()).await?) {
            outcomes[i] = outcome;
        }
    }
    Ok(outcomes)
}
