//! `/v1/steps`: the computation for a sentence, step by step.

use super::inside::{Rounded, encoded, look_inside, model_of};
use crate::App;
use crate::error::{ApiError, ApiResult, ok};
use crate::params::{Call, Texts};
use crate::service::Cancellation;
use axum::extract::State;
use regard_core::decode::{
    Ablation, AttentionTrace, EmbeddingTrace, FeedForwardTrace, Matrix, NextWord, SsruTrace,
};
use regard_core::model::{AttentionKind, ModelConfig, Side};
use regard_core::text::Tokenizer;
use regard_core::translator::Translator;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};
use std::borrow::Cow;
use std::sync::Arc;

/// The number of candidates to return for each target position.
const CANDIDATES: usize = 5;

/// The number of components to return of a vector of model width: as many as the page shows.
const SHOWN: usize = 32;

/// A matrix whose entries are rounded to four digits.
struct RoundedMatrix(Matrix);

impl Serialize for RoundedMatrix {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let rows = self.0.rows();
        let mut list = to.serialize_seq(Some(rows.len()))?;
        for row in rows {
            list.serialize_element(&row.iter().map(|&x| Rounded(x)).collect::<Vec<_>>())?;
        }
        list.end()
    }
}

impl JsonSchema for RoundedMatrix {
    fn schema_name() -> Cow<'static, str> {
        "RoundedMatrix".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        <Vec<Vec<f64>>>::json_schema(generator)
    }
}

/// A vector of model width: its norm and its first components.
#[derive(JsonSchema, Serialize)]
struct Vector {
    #[schemars(with = "f64")]
    norm: Rounded,
    #[schemars(with = "Vec<f64>")]
    values: Vec<Rounded>,
}

fn vectors(matrix: &Matrix) -> Vec<Vector> {
    let vector = |row: &[f32]| Vector {
        norm: Rounded(norm(row)),
        values: row.iter().take(SHOWN).map(|&x| Rounded(x)).collect(),
    };
    matrix.rows().map(vector).collect()
}

fn norm(row: &[f32]) -> f32 {
    row.iter().map(|x| x * x).sum::<f32>().sqrt()
}

#[derive(JsonSchema, Serialize)]
pub(super) struct Token {
    pub(super) id: u32,
    pub(super) text: String,
}

impl Token {
    pub(super) fn new(tokenizer: &Tokenizer, id: u32) -> Self {
        Token { id, text: tokenizer.piece(id).unwrap_or_default() }
    }
}

/// A candidate token and its probability.
#[derive(JsonSchema, Serialize)]
struct CandidateToken {
    id: u32,
    text: String,
    /// Its logit minus that of the most probable token; softmax depends only on such differences.
    #[schemars(with = "f64")]
    logit: Rounded,
    #[schemars(with = "f64")]
    p: Rounded,
}

/// A target position.
#[derive(JsonSchema, Serialize)]
struct TargetPosition {
    /// The probability of the token at this position.
    #[schemars(with = "Option<f64>")]
    p: Option<Rounded>,
    /// The most probable tokens, best first.
    best: Vec<CandidateToken>,
}

impl TargetPosition {
    fn new(tokenizer: &Tokenizer, word: &NextWord) -> Self {
        let largest = word.best.first().map_or(0.0, |&(_, log_p)| log_p);
        let candidate = |&(id, log_p): &(u32, f32)| CandidateToken {
            id,
            text: tokenizer.piece(id).unwrap_or_default(),
            logit: Rounded(log_p - largest),
            p: Rounded(log_p.exp()),
        };
        let p = word.given.map(|log_p| Rounded(log_p.exp()));
        TargetPosition { p, best: word.best.iter().map(candidate).collect() }
    }
}

#[derive(JsonSchema, Serialize)]
struct Embedding {
    #[schemars(with = "f64")]
    scale: Rounded,
    words: Vec<Vector>,
    positions: Option<Vec<Vector>>,
    output: Vec<Vector>,
}

impl Embedding {
    fn new(trace: &EmbeddingTrace) -> Self {
        Embedding {
            scale: Rounded(trace.scale),
            words: vectors(&trace.words),
            positions: trace.positions.as_ref().map(vectors),
            output: vectors(&trace.output),
        }
    }
}

/// An attention: the chosen head in full, and the weights of all heads.
#[derive(JsonSchema, Serialize)]
struct AttentionSteps {
    head: usize,
    d_k: usize,
    /// The factor that scores are multiplied by.
    #[schemars(with = "f64")]
    scale: Rounded,
    queries: RoundedMatrix,
    keys: RoundedMatrix,
    values: RoundedMatrix,
    /// q·k, including masked positions.
    scores: RoundedMatrix,
    /// The scores multiplied by the scale.
    scaled: RoundedMatrix,
    /// For each token, the range of tokens that it can attend to: start and exclusive end.
    seen: Vec<[usize; 2]>,
    /// `[head][row][column]`
    weights: Vec<RoundedMatrix>,
    /// The weighted sums of the values for the chosen head.
    sums: RoundedMatrix,
    /// The norms of the weighted sums of each head: `[head][row]`.
    norms: RoundedMatrix,
    output: Vec<Vector>,
    result: Vec<Vector>,
}

impl AttentionSteps {
    fn new(trace: &AttentionTrace, head: usize) -> Self {
        let scores = trace.rows_of_head(&trace.scores, head);
        let scaled = scores.data.iter().map(|x| x * trace.scale).collect();
        let norms = (0..trace.heads).flat_map(|head| {
            let sums = trace.of_head(&trace.sums, head);
            sums.rows().map(norm).collect::<Vec<_>>()
        });
        let queries = trace.of_head(&trace.queries, head);
        AttentionSteps {
            head,
            d_k: queries.columns,
            scale: Rounded(trace.scale),
            keys: RoundedMatrix(trace.of_head(&trace.keys, head)),
            values: RoundedMatrix(trace.of_head(&trace.values, head)),
            scaled: RoundedMatrix(Matrix { columns: scores.columns, data: scaled }),
            scores: RoundedMatrix(scores),
            seen: trace.seen.iter().map(|range| [range.start, range.end]).collect(),
            weights: (0..trace.heads).map(|h| RoundedMatrix(trace.rows_of_head(&trace.weights, h))).collect(),
            sums: RoundedMatrix(trace.of_head(&trace.sums, head)),
            norms: RoundedMatrix(Matrix { columns: trace.seen.len(), data: norms.collect() }),
            output: vectors(&trace.output),
            result: vectors(&trace.result),
            queries: RoundedMatrix(queries),
        }
    }
}

/// An SSRU, which replaces the decoder's self-attention.
#[derive(JsonSchema, Serialize)]
struct SsruSteps {
    candidate: Vec<Vector>,
    forget: Vec<Vector>,
    /// The mean of the forget gate for each token: the fraction of the state that is kept.
    #[schemars(with = "Vec<f64>")]
    kept: Vec<Rounded>,
    state: Vec<Vector>,
    output: Vec<Vector>,
    result: Vec<Vector>,
}

impl SsruSteps {
    fn new(trace: &SsruTrace) -> Self {
        let mean = |row: &[f32]| Rounded(row.iter().sum::<f32>() / row.len().max(1) as f32);
        SsruSteps {
            candidate: vectors(&trace.candidate),
            forget: vectors(&trace.forget),
            kept: trace.forget.rows().map(mean).collect(),
            state: vectors(&trace.state),
            output: vectors(&trace.output),
            result: vectors(&trace.result),
        }
    }
}

#[derive(JsonSchema, Serialize)]
struct FeedForwardSteps {
    width: usize,
    /// The number of positive activations in the hidden layer, for each token.
    active: Vec<usize>,
    hidden: Vec<Vector>,
    output: Vec<Vector>,
    result: Vec<Vector>,
}

impl FeedForwardSteps {
    fn new(trace: &FeedForwardTrace) -> Self {
        let active = |row: &[f32]| row.iter().filter(|&&x| x > 0.0).count();
        FeedForwardSteps {
            width: trace.hidden.columns,
            active: trace.hidden.rows().map(active).collect(),
            hidden: vectors(&trace.hidden),
            output: vectors(&trace.output),
            result: vectors(&trace.result),
        }
    }
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct Steps {
    /// The data type of the matrix multiplications: f32 or int8.
    precision: String,
    source: Vec<Token>,
    /// The translation, including the end-of-sentence token if it was generated.
    target: Vec<Token>,
    translation: String,
    /// The candidates at each target position, and at one more if the translation has no
    /// end-of-sentence token.
    places: Vec<TargetPosition>,
    /// `encoder` or `decoder`.
    stack: &'static str,
    layer: usize,
    layers: usize,
    heads: usize,
    d_model: usize,
    embedding: Embedding,
    attention: Option<AttentionSteps>,
    ssru: Option<SsruSteps>,
    cross: Option<AttentionSteps>,
    feed_forward: FeedForwardSteps,
}

/// The part of the computation that a request asks for.
struct View {
    stack: Side,
    layer: usize,
    head: usize,
    ablation: Ablation,
    /// The tokens that the translation begins with.
    prefix: Vec<u32>,
    /// The whole translation, if the request gives one.
    translation: Option<String>,
}

/// `POST /v1/steps`.
pub(super) async fn steps(State(app): State<Arc<App>>, call: Call) -> ApiResult {
    let text = sentence(&call)?;
    app.in_time(async {
        let model = model_of(&app, &call, &text).await?;
        let view = view(&app, &call, &model)?;
        look_inside(&app, move |app, cancellation| ok(&trace(app, &model, &text, &view, cancellation)?)).await
    })
    .await
}

/// The sentence of a request that inspects a model.
pub(super) fn sentence(call: &Call) -> ApiResult<String> {
    let Texts::One(text) = call.texts()? else {
        return Err(ApiError::bad("Invalid request: q must be a string; one sentence is looked at"));
    };
    let (count, limit) = (text.chars().count(), call.characters);
    if count > limit { Err(ApiError::too_long(count, limit)) } else { Ok(text) }
}

fn view(app: &App, call: &Call, translator: &Translator) -> ApiResult<View> {
    let config = translator.model().transformer.config();
    let (stack, layers) = match call.text("stack").unwrap_or("encoder") {
        "encoder" => (Side::Source, config.encoder_layers),
        "decoder" => (Side::Target, config.decoder_layers),
        _ => return Err(ApiError::bad("Invalid request: stack must be encoder or decoder")),
    };
    let translation = call.text("translation").map(str::to_owned);
    let prefix = prefix(app, call, translator)?;
    if translation.is_some() && !prefix.is_empty() {
        return Err(ApiError::bad("Invalid request: there is a prefix and a translation; send one of them"));
    }
    Ok(View {
        stack,
        layer: call.index("layer", layers)?,
        head: call.index("head", config.head_shape(stack).heads)?,
        ablation: ablation(call.text("without").unwrap_or_default(), config)?,
        prefix,
        translation,
    })
}

/// The token ids that the translation begins with; they must be valid, and not too many.
pub(super) fn prefix(app: &App, call: &Call, translator: &Translator) -> ApiResult<Vec<u32>> {
    let list = call.text("prefix").unwrap_or_default();
    let (size, limit) = (translator.target().size(), app.settings.limits.attention_tokens);
    let id = |text: &str| {
        let id = text.parse::<u32>().ok().filter(|&id| (id as usize) < size);
        id.ok_or_else(|| {
            let shown: String = text.chars().take(20).collect();
            let message =
                format!("prefix must be token ids below {size}, separated by spaces; {shown:?} is none");
            ApiError::bad(format!("Invalid request: {message}"))
        })
    };
    let ids = list.split_whitespace().take(limit + 1).map(id).collect::<ApiResult<Vec<_>>>()?;
    match ids.len() > limit {
        true => Err(ApiError::bad(format!("Invalid request: prefix has more than {limit} tokens"))),
        false => Ok(ids),
    }
}

/// Parses a list such as `positions mask cross.0.3`; the heads must exist in the model.
fn ablation(list: &str, config: &ModelConfig) -> ApiResult<Ablation> {
    let mut ablation = Ablation::default();
    for part in list.split([' ', ',']).filter(|part| !part.is_empty()) {
        match part {
            "positions" => ablation.positions = true,
            "scale" => ablation.scale = true,
            "mask" => ablation.mask = true,
            _ => ablation.heads.push(head(part, config).ok_or_else(|| {
                let shown: String = part.chars().take(20).collect();
                ApiError::bad(format!(
                    "Invalid request: without must be a list of positions, scale, mask and heads of this model such \
                     as encoder.0.1 or cross.1.0; {shown:?} is none of them"
                ))
            })?),
        }
    }
    Ok(ablation)
}

/// Parses `kind.layer.head`, counted from 0; `None` if the model has no such head.
fn head(text: &str, config: &ModelConfig) -> Option<(AttentionKind, usize, usize)> {
    let mut parts = text.split('.');
    let kind = match parts.next()? {
        "encoder" => AttentionKind::Encoder,
        "decoder" => AttentionKind::Decoder,
        "cross" => AttentionKind::Cross,
        _ => return None,
    };
    let (layers, side) = match kind {
        AttentionKind::Encoder => (config.encoder_layers, Side::Source),
        AttentionKind::Decoder | AttentionKind::Cross => (config.decoder_layers, Side::Target),
    };
    let layer = parts.next()?.parse().ok().filter(|&layer| layer < layers)?;
    let head = parts.next()?.parse().ok().filter(|&head| head < config.head_shape(side).heads)?;
    parts.next().is_none().then_some((kind, layer, head))
}

fn trace(
    app: &App,
    translator: &Translator,
    text: &str,
    view: &View,
    cancellation: &Cancellation,
) -> ApiResult<Steps> {
    let refused = |e: regard_core::Error| ApiError::bad(e.to_string());
    let source = encoded(app, translator.source(), text)?;
    let mut tracer = translator.trace(&source, view.ablation.clone(), view.layer).map_err(refused)?;
    let mut options = translator.options();
    let limit = app.settings.limits.attention_tokens;
    options.max_length = Some(options.max_length.map_or(limit, |most| most.min(limit)));
    let target = match &view.translation {
        Some(translation) => encoded(app, translator.target(), translation)?,
        None => {
            let mut target = view.prefix.clone();
            let ended = target.iter().position(|&id| id == options.end);
            match ended {
                // Tokens after the end-of-sentence token are not part of the translation.
                Some(end) => target.truncate(end + 1),
                None => {
                    let wanted = || cancellation.check().is_ok();
                    tracer.extend(&mut target, &options, wanted).map_err(refused)?;
                }
            }
            target
        }
    };
    cancellation.check()?;
    let ended = target.last() == Some(&options.end);
    let read = &target[..target.len() - usize::from(ended)];
    let next = ended.then_some(options.end);
    let (decoder, words) = tracer.decode(read, next, CANDIDATES).map_err(refused)?;
    let (stack, name) = match view.stack {
        Side::Source => (tracer.encoder(), "encoder"),
        Side::Target => (&decoder, "decoder"),
    };
    let config = translator.model().transformer.config();
    let tokens = |tokenizer, ids: &[u32]| ids.iter().map(|&id| Token::new(tokenizer, id)).collect();
    let attention =
        |trace: &Option<AttentionTrace>| trace.as_ref().map(|t| AttentionSteps::new(t, view.head));
    Ok(Steps {
        precision: translator.dtype().to_string(),
        source: tokens(translator.source(), &source),
        target: tokens(translator.target(), &target),
        translation: translator.target().decode(read),
        places: words.iter().map(|word| TargetPosition::new(translator.target(), word)).collect(),
        stack: name,
        layer: view.layer,
        layers: if name == "encoder" { config.encoder_layers } else { config.decoder_layers },
        heads: config.head_shape(view.stack).heads,
        d_model: config.d_model,
        embedding: Embedding::new(&stack.embedding),
        attention: attention(&stack.layer.attention),
        ssru: stack.layer.ssru.as_ref().map(SsruSteps::new),
        cross: attention(&stack.layer.cross),
        feed_forward: FeedForwardSteps::new(&stack.layer.feed_forward),
    })
}
