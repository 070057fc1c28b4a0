//! `/v1/beam`: a beam search as a tree.

use super::inside::{Rounded, encoded, look_inside, model_of};
use super::steps::{Token, prefix, sentence};
use crate::App;
use crate::error::{ApiError, ApiResult, ok};
use crate::params::Call;
use crate::service::Cancellation;
use axum::extract::State;
use regard_core::decode::{BeamSteps, LengthPenalty, SearchOptions};
use regard_core::translator::Translator;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;

/// The maximum beam width for this endpoint.
const WIDEST: usize = 8;

/// A hypothesis, identified by its last token.
#[derive(JsonSchema, Serialize)]
struct Node {
    /// The index of the hypothesis that it extends; null for the first tokens.
    parent: Option<usize>,
    /// The number of its tokens.
    length: usize,
    id: u32,
    text: String,
    /// The sum of the log-probabilities of its tokens.
    #[schemars(with = "f64")]
    log_probability: Rounded,
    /// The log-probability divided by the length penalty.
    #[schemars(with = "f64")]
    score: Rounded,
    /// `extended`, `pruned` or `ended`.
    state: &'static str,
    /// Whether it is part of the best translation.
    best: bool,
}

#[derive(JsonSchema, Serialize)]
struct Found {
    text: String,
    #[schemars(with = "f64")]
    log_probability: Rounded,
    #[schemars(with = "f64")]
    score: Rounded,
}

#[derive(JsonSchema, Serialize)]
pub(crate) struct BeamTree {
    beam: usize,
    /// The exponent α of the length penalty.
    #[schemars(with = "f64")]
    length_penalty: Rounded,
    /// The formula of the length penalty for n tokens: `power` is n^α, `paper` ((5 + n) / 6)^α.
    penalty: &'static str,
    source: Vec<Token>,
    /// Parents come before their children.
    nodes: Vec<Node>,
    /// The translations, best first.
    translations: Vec<Found>,
}

/// `POST /v1/beam`.
pub(super) async fn beam(State(app): State<Arc<App>>, call: Call) -> ApiResult {
    let text = sentence(&call)?;
    let width = call.beam(WIDEST)?;
    app.in_time(async {
        let model = model_of(&app, &call, &text).await?;
        let prefix = prefix(&app, &call, &model)?;
        let wanted = (width, prefix);
        look_inside(&app, move |app, cancellation| ok(&tree(app, &model, &text, wanted, cancellation)?)).await
    })
    .await
}

fn tree(
    app: &App,
    translator: &Translator,
    text: &str,
    (width, prefix): (Option<usize>, Vec<u32>),
    cancellation: &Cancellation,
) -> ApiResult<BeamTree> {
    let source = encoded(app, translator.source(), text)?;
    let mut options = translator.options();
    options.beam = width.unwrap_or(options.beam.min(WIDEST));
    options.nbest = options.beam;
    options.prefix = prefix;
    let limit = app.settings.limits.attention_tokens;
    options.max_length = Some(options.max_length.map_or(limit, |most| most.min(limit)));
    let wanted = || cancellation.check().is_ok();
    let steps = translator.beam_steps(&source, &options, &wanted);
    let steps = steps.map_err(|e| ApiError::bad(e.to_string()))?;
    cancellation.check()?;
    let found = |h: &regard_core::decode::Hypothesis| Found {
        text: translator.target().decode(&h.ids),
        log_probability: Rounded(h.log_probability),
        score: Rounded(h.score),
    };
    Ok(BeamTree {
        beam: options.beam,
        length_penalty: Rounded(options.length_penalty),
        penalty: match options.penalty {
            LengthPenalty::Power => "power",
            LengthPenalty::Paper => "paper",
        },
        source: source.iter().map(|&id| Token::new(translator.source(), id)).collect(),
        nodes: nodes(&steps, &options, translator),
        translations: steps.found.iter().map(found).collect(),
    })
}

/// Every hypothesis that was in the beam after any step, without duplicates.
fn nodes(steps: &BeamSteps, options: &SearchOptions, translator: &Translator) -> Vec<Node> {
    let mut numbers: HashMap<&[u32], usize> = HashMap::new();
    let mut nodes: Vec<Node> = Vec::new();
    for entry in steps.steps.iter().flatten() {
        let Some((&id, before)) = entry.tokens.split_last() else { continue };
        if numbers.contains_key(entry.tokens.as_slice()) {
            continue;
        }
        let parent = numbers.get(before).copied();
        if let Some(parent) = parent.and_then(|i| nodes.get_mut(i)) {
            parent.state = "extended";
        }
        numbers.insert(&entry.tokens, nodes.len());
        let Token { id, text } = Token::new(translator.target(), id);
        nodes.push(Node {
            parent,
            length: entry.tokens.len(),
            id,
            text,
            log_probability: Rounded(entry.log_probability),
            score: Rounded(entry.score),
            state: if entry.ended { "ended" } else { "pruned" },
            best: false,
        });
    }
    if let Some(best) = steps.found.first() {
        let mut tokens = best.ids.clone();
        tokens.extend(best.ended.then_some(options.end));
        let mut at = numbers.get(tokens.as_slice()).copied();
        while let Some(node) = at.and_then(|i| nodes.get_mut(i)) {
            node.best = true;
            at = node.parent;
        }
    }
    nodes
}
