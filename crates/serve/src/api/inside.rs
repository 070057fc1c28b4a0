//! `/v1/attention`, `/v1/positions` and `/v1/model`: the internals of a model.

use super::translate::route;
use crate::App;
use crate::batcher::{QueuedSentence, Search};
use crate::error::{ApiError, ApiResult, ok};
use crate::languages::{Pairs, Stage, canonical};
use crate::models::{Example, History, Point, Served};
use crate::params::{Call, Texts};
use crate::resident::Details;
use crate::service::Cancellation;
use axum::extract::State;
use regard_core::model::{
    AttentionKind, AttentionMap, HeadHint, ModelConfig, Parts, Positions, describe_head, positions as table,
    sharpest,
};
use regard_core::text::Tokenizer;
use regard_core::translator::Translator;
use regard_documents::pipeline::Attempt;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};
use std::borrow::Cow;
use std::sync::Arc;

/// The maximum number of positions to return.
const POSITIONS: usize = 100;

/// A number rounded for display: four digits are more than a picture can show.
pub(super) struct Rounded(pub(super) f32);

impl Serialize for Rounded {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64((f64::from(self.0) * 1e4).round() / 1e4)
    }
}

/// A matrix serialized as a list of rows.
struct Rows<'a> {
    data: &'a [f32],
    columns: usize,
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let rows = self.data.chunks(self.columns.max(1));
        let mut list = to.serialize_seq(Some(rows.len()))?;
        for row in rows {
            list.serialize_element(&row.iter().map(|&x| Rounded(x)).collect::<Vec<_>>())?;
        }
        list.end()
    }
}

impl JsonSchema for Rows<'_> {
    fn schema_name() -> Cow<'static, str> {
        "Rows".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        <Vec<Vec<f64>>>::json_schema(generator)
    }
}

/// `[layer][head][row][column]`
type Maps<'a> = Vec<Vec<Rows<'a>>>;

/// A description of what a head does in this sentence.
#[derive(JsonSchema, Serialize)]
struct Hint {
    name: &'static str,
    short: &'static str,
    text: &'static str,
    share: f64,
    spread: f64,
}

/// The hints for all heads of a layer, and for their average.
#[derive(JsonSchema, Serialize)]
struct LayerHints {
    mean: Hint,
    heads: Vec<Hint>,
    /// The index of the head to show first.
    sharpest: usize,
}

#[derive(JsonSchema, Serialize)]
struct ByKind<T> {
    encoder: T,
    decoder: T,
    cross: T,
}

impl<T> ByKind<T> {
    fn new(of: impl Fn(AttentionKind) -> ApiResult<T>) -> ApiResult<Self> {
        let (encoder, decoder) = (of(AttentionKind::Encoder)?, of(AttentionKind::Decoder)?);
        Ok(ByKind { encoder, decoder, cross: of(AttentionKind::Cross)? })
    }
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct Attention<'a> {
    source: Vec<String>,
    target: Vec<String>,
    #[serde(flatten)]
    maps: ByKind<Maps<'a>>,
    hints: ByKind<Vec<LayerHints>>,
    /// The index of the layer to show first.
    sharpest: ByKind<Option<usize>>,
    translation: String,
}

/// `POST /v1/attention`.
pub(super) async fn attention(State(app): State<Arc<App>>, call: Call) -> ApiResult {
    let Texts::One(text) = call.texts()? else {
        return Err(ApiError::bad("Invalid request: q must be a string; attention is that of one sentence"));
    };
    let limit = call.characters;
    if text.chars().count() > limit {
        return Err(ApiError::too_long(text.chars().count(), limit));
    }
    app.in_time(attention_of(&app, &call, text)).await
}

async fn attention_of(app: &Arc<App>, call: &Call, text: String) -> ApiResult {
    let asked = |name| call.text(name).map(str::to_owned);
    let (from, to, shared, q) = (asked("source"), asked("target"), Arc::clone(app), text.clone());
    let (stage, source) = app
        .compute(move |_| {
            let stage = direct(&shared, from.as_deref(), to.as_deref(), &q)?;
            Ok((stage, encoded(&shared, translator(&shared, stage)?.source(), &q)?))
        })
        .await?;
    let translation = match call.text("translation") {
        Some(translation) => translation.to_owned(),
        None => {
            let search = Search { nbest: 1, attention: false, attempt: Attempt::Plain, pair: None };
            let mut lines = app.submit(stage, vec![QueuedSentence::new(text, search)])?.wait().await?;
            lines.pop().map(|line| line.best().text).unwrap_or_default()
        }
    };
    look_inside(app, move |app, _| {
        let translator = translator(app, stage)?;
        let target = encoded(app, translator.target(), &translation)?;
        look(&translator, &source, &target, translation)
    })
    .await
}

/// The model that a request inspects, loaded if necessary.
pub(super) async fn model_of(app: &Arc<App>, call: &Call, text: &str) -> ApiResult<Arc<Translator>> {
    let asked = |name| call.text(name).map(str::to_owned);
    let (from, to, shared, q) = (asked("source"), asked("target"), Arc::clone(app), text.to_owned());
    let stage = app.compute(move |_| direct(&shared, from.as_deref(), to.as_deref(), &q)).await?;
    let shared = Arc::clone(app);
    app.compute(move |_| translator(&shared, stage)).await
}

/// Inspects a model; only one request at a time does this.
pub(super) async fn look_inside<T: Send + 'static>(
    app: &Arc<App>,
    work: impl FnOnce(&App, &Cancellation) -> ApiResult<T> + Send + 'static,
) -> ApiResult<T> {
    let slot = Arc::clone(&app.inside).acquire_owned();
    let slot = slot.await.map_err(|_| ApiError::busy("the server is shutting down"))?;
    let shared = Arc::clone(app);
    app.compute(move |cancellation| {
        let _slot = slot;
        work(&shared, cancellation)
    })
    .await
}

/// The model for the requested languages, or the first model.
fn direct(app: &App, source: Option<&str>, target: Option<&str>, text: &str) -> ApiResult<Stage> {
    let first = app.models.first().ok_or_else(|| ApiError::internal("there is no model"))?;
    let source = source.unwrap_or(if target.is_some() { "auto" } else { &first.source });
    let target = match target {
        Some(target) => target,
        None => {
            let source = canonical(source);
            let model = app.models.iter().find(|m| m.source == source).unwrap_or(first);
            &model.target
        }
    };
    match route(app, text, source, target)?.route.as_slice() {
        [stage] => Ok(*stage),
        _ => Err(ApiError::bad(format!("there is no single model from {source} to {target} to look into"))),
    }
}

pub(super) fn served(app: &App, number: usize) -> ApiResult<&Served> {
    app.models.get(number).ok_or_else(|| ApiError::internal("there is no such model"))
}

/// The model of a stage, set to its languages. It may have to be loaded, so this must run in
/// [`App::compute`].
fn translator(app: &App, stage: Stage) -> ApiResult<Arc<Translator>> {
    served(app, stage.model)?.translator(stage).map_err(|error| ApiError::internal(error.to_string()))
}

/// The token ids of a text, which must be neither empty nor too long.
pub(super) fn encoded(app: &App, tokenizer: &Tokenizer, text: &str) -> ApiResult<Vec<u32>> {
    let ids = tokenizer.encode(text).map_err(|e| ApiError::internal(e.to_string()))?;
    let limit = app.settings.limits.attention_tokens;
    if ids.len() > limit {
        return Err(ApiError::bad(format!(
            "This text has {} tokens; attention can be shown for at most {limit}",
            ids.len()
        )));
    }
    Ok(ids)
}

/// The response with all attention weights of a sentence and its translation.
fn look(translator: &Translator, source: &[u32], target: &[u32], translation: String) -> ApiResult {
    let maps = translator.attention_maps(source, target).map_err(|e| ApiError::bad(e.to_string()))?;
    let pieces = |tokenizer: &Tokenizer, ids: &[u32]| -> Vec<String> {
        ids.iter().map(|&id| tokenizer.piece(id).unwrap_or_default()).collect()
    };
    let (source, target) = (pieces(translator.source(), source), pieces(translator.target(), target));
    let read: Vec<String> =
        std::iter::once("<start>").chain(target.iter().map(String::as_str)).map(str::to_owned).collect();
    let axes = |kind| match kind {
        AttentionKind::Encoder => (&source[..], &source[..]),
        AttentionKind::Decoder => (&target[..], &read[..target.len()]),
        AttentionKind::Cross => (&target[..], &source[..]),
    };
    let hints = ByKind::new(|kind| hints(&maps, kind, axes(kind)))?;
    let sharpest = ByKind::new(|kind| Ok(sharpest(&maps, kind).map(|map| map.layer)))?;
    let maps = ByKind::new(|kind| Ok(of_kind(&maps, kind)))?;
    ok(&Attention { source, target, maps, hints, sharpest, translation })
}

/// Describes what each head of one attention kind does, layer by layer.
fn hints(
    maps: &[AttentionMap],
    kind: AttentionKind,
    axes: (&[String], &[String]),
) -> ApiResult<Vec<LayerHints>> {
    let hint = |weights: &[f32]| {
        let found =
            describe_head(kind, weights, axes.0, axes.1).map_err(|e| ApiError::internal(e.to_string()))?;
        let HeadHint { pattern, share, spread } = found;
        // A number that is not finite would be serialized as null.
        let [share, spread] = [share, spread].map(|x| if x.is_finite() { x } else { 0.0 });
        Ok(Hint { name: pattern.name(), short: pattern.short(), text: pattern.text(), share, spread })
    };
    let layer = |map: &AttentionMap| {
        let heads = (0..map.heads).map(|head| hint(map.head(head))).collect::<ApiResult<_>>()?;
        Ok(LayerHints { mean: hint(&map.mean())?, heads, sharpest: map.sharpest_head() })
    };
    maps.iter().filter(|map| map.kind == kind).map(layer).collect()
}

fn of_kind(maps: &[AttentionMap], kind: AttentionKind) -> Maps<'_> {
    let mut found = Vec::new();
    for map in maps.iter().filter(|map| map.kind == kind) {
        found.push((0..map.heads).map(|h| Rows { data: map.head(h), columns: map.columns }).collect());
    }
    found
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct PositionTables<'a> {
    #[schemars(with = "String")]
    kind: Positions,
    interleaved: Rows<'a>,
    own: Option<Rows<'a>>,
}

/// `GET /v1/positions?model=en-de`.
pub(super) async fn positions(State(app): State<Arc<App>>, call: Call) -> ApiResult {
    let (shared, pair) = (Arc::clone(&app), call.text("model").map(str::to_owned));
    app.in_time(app.compute(move |_| tables(&shared, pair.as_deref()))).await
}

fn tables(app: &App, pair: Option<&str>) -> ApiResult {
    let model = match pair {
        None => served(app, 0)?,
        Some(pair) => {
            let found = app.models.iter().find(|m| m.pair().eq_ignore_ascii_case(pair) || m.name == pair);
            found.ok_or_else(|| {
                let pairs: Vec<String> = app.models.iter().map(Served::pair).collect();
                ApiError::bad(format!("{pair} is not supported, use one of {}", pairs.join(", ")))
            })?
        }
    };
    let details = model.resident.details();
    let config = &details.config;
    let d = config.d_model;
    let n = POSITIONS.min(config.max_positions);
    let interleaved = table::interleaved(n, d);
    let own = match config.positions {
        Positions::Sinusoidal => Some(config.sinusoids(n)),
        Positions::Learned => {
            let translator = model.resident.get().map_err(|e| ApiError::internal(e.to_string()))?;
            let parameters = translator.model().transformer.parameters();
            parameters
                .get("encoder.positions")
                .and_then(|p| translator.weights().get(p.param.range())?.get(..n * d).map(<[f32]>::to_vec))
        }
        Positions::Relative | Positions::Bucketed | Positions::None => None,
    };
    ok(&PositionTables {
        kind: config.positions,
        interleaved: Rows { data: &interleaved, columns: d },
        own: own.as_deref().map(|data| Rows { data, columns: d }),
    })
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct ModelReport<'a> {
    source: &'a str,
    target: &'a str,
    /// The languages of a multilingual model, which translates from each to every other.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    languages: Option<&'a [String]>,
    name: &'a str,
    parameters: usize,
    parts: PartsReport,
    /// The configuration of the model.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    config: &'a ModelConfig,
    training: &'a [Point],
    examples: &'a [Example],
    speed: Speed,
}

#[derive(JsonSchema, Serialize)]
struct PartsReport {
    embeddings: usize,
    encoder: usize,
    decoder: usize,
}

#[derive(JsonSchema, Serialize)]
struct Speed {
    tokens_per_s: f64,
    requests: u64,
}

/// `GET /v1/model`.
pub(super) async fn models(State(app): State<Arc<App>>, _: Call) -> ApiResult {
    let shared = Arc::clone(&app);
    let work = app.compute(move |_| {
        let known: Vec<(Arc<History>, Arc<Details>)> =
            shared.models.iter().map(|m| (m.history.current(), m.resident.details())).collect();
        ok(&shared.models.iter().zip(&known).map(|(m, (h, d))| report(m, h, d)).collect::<Vec<_>>())
    });
    app.in_time(work).await
}

fn report<'a>(model: &'a Served, history: &'a History, details: &'a Details) -> ModelReport<'a> {
    let Parts { total, embeddings, encoder, decoder } = details.parts;
    ModelReport {
        source: &model.source,
        target: &model.target,
        languages: match &model.pairs {
            Pairs::All(codes) => Some(codes.as_slice()),
            Pairs::One(..) => None,
        },
        name: &model.name,
        parameters: total,
        parts: PartsReport { embeddings, encoder, decoder },
        config: &details.config,
        training: &history.training,
        examples: &history.examples,
        speed: Speed {
            tokens_per_s: model.metrics.tokens_per_second().round(),
            requests: model.metrics.requests.get(),
        },
    }
}
