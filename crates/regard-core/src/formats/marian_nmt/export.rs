//! Converts a model to the items of a file: its options, its weights in f32 or int8, and the
//! multipliers of the inputs of its matmuls.
//!
//! Quantization follows `marian-conv`: the multiplier of a matrix is 127 / its largest magnitude
//! (unless it was int8 before it was fine-tuned). Weights are rounded to the nearest integers or,
//! if a sample of the inputs is known, to those that change the outputs least (`rounding`).
//! Matrices are the items whose names end with `_W` or `_W` and one character, or contain `Wemb`;
//! everything else stays f32. A fixed multiplier of inputs ("alpha") is 127 / (mean + 1.1 standard
//! deviations) of the largest magnitudes of the inputs of that matmul, one per observed matmul, as
//! in the scripts of `browsermt/marian-dev`.

use super::items::{Int8Matrix, is_embedding};
use super::parameters::{OUTPUT, OUTPUT_BIAS, SOURCE_EMBEDDINGS};
use super::rounding::{Feedback, Moments, nearest};
use super::{LexicalShortlist, MarianOptions, NewData, NewItem, OPTIONS};
use crate::decode::Shortlist;
use crate::model::{DecoderKind, NormPlace, Tying};
use regard_kernels::{Activation, Isa};
use std::collections::{BTreeMap, HashMap};

type Result<T> = std::result::Result<T, String>;

/// The widths of inputs and outputs must be multiples of these for Bergamot's int8 matmuls.
const INPUTS_MULTIPLE: usize = 64;
const OUTPUTS_MULTIPLE: usize = 8;
/// The output bias of words that must never be generated. Not infinite, because engines add to it.
const NEVER: f32 = -1e9;
/// Where inputs are clamped: this many standard deviations above the mean of the largest
/// magnitudes.
const DEVIATIONS: f64 = 1.1;
/// The first version of Marian with the exact `gelu`.
const VERSION: &str = "v1.12.42";

/// The largest magnitudes and the second moments of the inputs of each matmul, keyed by the names
/// of the matrices.
#[derive(Clone, Debug, Default)]
pub struct InputStatistics {
    ranges: BTreeMap<String, Range>,
    moments: BTreeMap<String, Moments>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Range {
    count: f64,
    sum: f64,
    squares: f64,
}

impl InputStatistics {
    /// Records the inputs of one matmul.
    pub fn observe(&mut self, matrix: &str, inputs: &[f32]) {
        let largest = f64::from(inputs.iter().fold(0.0f32, |most, x| most.max(x.abs())));
        if !self.ranges.contains_key(matrix) {
            self.ranges.insert(matrix.to_owned(), Range::default());
        }
        if let Some(range) = self.ranges.get_mut(matrix) {
            range.count += 1.0;
            range.sum += largest;
            range.squares += largest * largest;
        }
    }

    /// Records the second moments of the inputs of a matmul, `[rows, k]`: the weights are then
    /// rounded so that the outputs change least.
    pub fn observe_moments(&mut self, isa: Isa, matrix: &str, inputs: &[f32], k: usize) {
        if !self.moments.contains_key(matrix) {
            self.moments.insert(matrix.to_owned(), Moments::new(k));
        }
        if let Some(moments) = self.moments.get_mut(matrix) {
            moments.observe(isa, inputs);
        }
    }

    /// How to compensate rounding errors of a matrix with `k` inputs, if its inputs were recorded.
    fn feedback(&self, matrix: &str, k: usize) -> Option<Feedback> {
        self.moments.get(matrix).and_then(|moments| moments.feedback(k))
    }

    /// The multiplier of the inputs of a matrix, if any non-zero inputs were recorded.
    pub fn multiplier(&self, matrix: &str) -> Option<f32> {
        let Range { count, sum, squares } = *self.ranges.get(matrix)?;
        let mean = sum / count;
        let deviation = (squares / count - mean * mean).max(0.0).sqrt();
        let multiplier = (127.0 / (mean + DEVIATIONS * deviation)) as f32;
        (multiplier.is_finite() && multiplier > 0.0).then_some(multiplier)
    }
}

impl Int8Matrix {
    /// Quantizes a matrix, with a row for each output or word, to the nearest integers.
    pub fn quantize(rows: usize, columns: usize, values: &[f32]) -> Self {
        let multiplier = multiplier(values);
        let values = values.iter().map(|&x| nearest(x, multiplier)).collect();
        Int8Matrix { rows, columns, values, multiplier }
    }

    /// The same with the rounding that changes the outputs least.
    fn quantize_with(feedback: &Feedback, rows: usize, columns: usize, values: &[f32]) -> Self {
        let (multiplier, mut integers) = (multiplier(values), Vec::with_capacity(values.len()));
        values.chunks_exact(columns).for_each(|row| feedback.round(row, multiplier, &mut integers));
        Int8Matrix { rows, columns, values: integers, multiplier }
    }
}

/// Factors to try on the usual multiplier, until the weights are no longer close to integers.
const GRIDS: [f32; 4] = [1.0, 0.94, 0.97, 0.91];

/// If the mean distance to the nearest integer is below this, the weights are assumed to have been
/// integers: for other weights it is 0.25. Too few weights are no evidence.
const NEAR_INTEGERS: f64 = 0.235;
const MIN_WEIGHTS: usize = 1024;

/// The multiplier of a matrix: 127 / its largest magnitude, unless the matrix was int8 before it
/// was fine-tuned. Its weights are then close to integers, and rounding would undo what training
/// changed, which is less than half a step for most of them; on another grid the changes remain.
fn multiplier(values: &[f32]) -> f32 {
    let largest = values.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    // Any non-zero multiplier will do for a matrix of zeros.
    let usual = if largest > 0.0 { 127.0 / largest } else { 1.0 };
    let nonzero = || values.iter().filter(|x| **x != 0.0);
    let distance = |grid: &f32| {
        let scaled = nonzero().map(|x| x * (grid * usual));
        scaled.map(|x| f64::from((x - x.round()).abs())).sum::<f64>() / nonzero().count().max(1) as f64
    };
    let exact = distance(&1.0) < 1e-3;
    let apart = |grid: &&f32| exact || values.len() < MIN_WEIGHTS || distance(grid) >= NEAR_INTEGERS;
    usual * GRIDS.iter().find(apart).unwrap_or(&1.0)
}

/// Whether `marian-conv` stores an item in 8 bits.
fn is_quantized(name: &str) -> bool {
    let ending = name.rfind("_W").map(|at| name.len() - at);
    matches!(ending, Some(2 | 3)) || is_embedding(name)
}

/// The items of a `.npz` file, or of a `.bin` file in f32, which every engine can read: the
/// weights, checked to be those that the options need and sorted by name, and the options.
pub fn float_items(options: &MarianOptions, weights: Vec<NewItem>) -> Result<Vec<NewItem>> {
    let mut items = checked(options, weights)?;
    items.sort_by(|a, b| a.name.cmp(&b.name));
    items.push(NewItem { name: OPTIONS.to_owned(), data: NewData::Text(options.to_yaml()?) });
    Ok(items)
}

/// The items of an int8 `.bin` file; with `inputs`, their multipliers are fixed ("alphas").
pub fn int8_items(
    options: &MarianOptions,
    weights: Vec<NewItem>,
    inputs: Option<&InputStatistics>,
) -> Result<Vec<NewItem>> {
    check_widths(options)?;
    let mut items = Vec::new();
    for item in checked(options, weights)? {
        let name = item.name.clone();
        let NewData::F32(shape, values) = &item.data else { continue };
        let (true, &[rows, columns]) = (is_quantized(&name), shape.as_slice()) else {
            items.push(item);
            continue;
        };
        let matrix = match is_embedding(&name) {
            true => Int8Matrix::quantize(rows, columns, values),
            false => {
                let values = transposed(rows, columns, values);
                match inputs.and_then(|inputs| inputs.feedback(&name, rows)) {
                    Some(feedback) => Int8Matrix::quantize_with(&feedback, columns, rows, &values),
                    None => Int8Matrix::quantize(columns, rows, &values),
                }
            }
        };
        items.push(NewItem { name: name.clone(), data: NewData::Int8(matrix) });
        let is_output = name == options.output_matrix();
        if let Some(inputs) = inputs.filter(|_| is_output || !is_embedding(&name)) {
            let multiplier = inputs.multiplier(&name);
            let multiplier =
                multiplier.ok_or_else(|| format!("the sample gave no inputs of {name} to calibrate"))?;
            // With a shortlist, the engine uses the name "none" for the output matrix.
            for name in [Some(name.as_str()), is_output.then_some("none")].into_iter().flatten() {
                items.push(NewItem::floats(&format!("{name}_QuantMultA"), &[1, 1], vec![multiplier]));
            }
        }
    }
    items.sort_by(|a, b| a.name.cmp(&b.name));
    items.push(NewItem { name: OPTIONS.to_owned(), data: NewData::Text(options.to_yaml()?) });
    Ok(items)
}

/// Appends words until there are `words` of them on the source and the target side, and keeps the
/// output layer from choosing any target word from `banned` on. Embeddings of new words are zero.
pub fn grow_vocabularies(
    options: &mut MarianOptions,
    weights: &mut Vec<NewItem>,
    words: (usize, usize),
    banned: usize,
) {
    let (d, old) = (options.d_model, options.target_vocabulary);
    if !options.output_bias {
        weights.push(NewItem::floats(OUTPUT_BIAS, &[1, old], vec![0.0; old]));
        options.output_bias = true;
    }
    (options.source_vocabulary, options.target_vocabulary) = words;
    for item in weights {
        let NewData::F32(shape, values) = &mut item.data else { continue };
        if item.name == OUTPUT_BIAS {
            values.resize(words.1, NEVER);
            values.iter_mut().skip(banned).for_each(|bias| *bias = NEVER);
            *shape = vec![1, words.1];
        } else if is_embedding(&item.name) || item.name == OUTPUT {
            let words = if item.name == SOURCE_EMBEDDINGS { words.0 } else { words.1 };
            values.resize(words * d, 0.0);
            *shape = vec![words, d];
        }
    }
}

/// A learned shortlist in the form that Marian's engines use, for vocabularies of this many source
/// words. Words that are always allowed go on the list of `</s>`, which ends every source sentence:
/// Marian's own method, the first words of the vocabulary, would require the frequent words to come
/// first.
pub fn lexical_shortlist(list: &Shortlist, eos: u32, source_words: usize) -> LexicalShortlist {
    let mut lists: Vec<Vec<u32>> = (0..source_words).map(|word| list.likely(word as u32).to_vec()).collect();
    if let Some(end) = lists.get_mut(eos as usize) {
        end.extend_from_slice(list.always());
        end.push(eos);
        end.sort_unstable();
        end.dedup();
    }
    // Marian treats an empty list after the last id as a damaged file.
    if let Some(last) = lists.last_mut().filter(|last| last.is_empty()) {
        last.push(eos);
    }
    let best = lists.iter().map(Vec::len).max().unwrap_or(0);
    LexicalShortlist::new(1, best as u32, &lists)
}

/// The weights, after checking that they are the parameters that the options need.
fn checked(options: &MarianOptions, weights: Vec<NewItem>) -> Result<Vec<NewItem>> {
    let mut needed: HashMap<String, [usize; 2]> = options.parameters().into_iter().collect();
    for item in &weights {
        let name = &item.name;
        let NewData::F32(shape, values) = &item.data else {
            return Err(format!("item {name} does not hold floats"));
        };
        let Some(want) = needed.remove(name) else {
            return Err(format!("item {name} is none that these options need, or is there twice"));
        };
        if *shape != want || values.len() != want[0] * want[1] {
            let count = values.len();
            return Err(format!(
                "item {name} has the shape {shape:?} and {count} numbers; {want:?} is expected"
            ));
        }
        if let Some(at) = values.iter().position(|x| !x.is_finite()) {
            return Err(format!("item {name} holds {} at {at}", values[at]));
        }
    }
    match needed.into_keys().min() {
        Some(name) => Err(format!("item {name} is missing")),
        None => Ok(weights),
    }
}

/// Checks that Bergamot's int8 matmuls can handle the widths.
fn check_widths(options: &MarianOptions) -> Result<()> {
    let MarianOptions { d_model, encoder_feed_forward, decoder_feed_forward, target_vocabulary, .. } =
        *options;
    for (key, value, multiple) in [
        ("dim-emb", d_model, INPUTS_MULTIPLE),
        ("transformer-dim-ffn", encoder_feed_forward, INPUTS_MULTIPLE),
        ("transformer-decoder-dim-ffn", decoder_feed_forward, INPUTS_MULTIPLE),
        ("dim-vocabs", target_vocabulary, OUTPUTS_MULTIPLE),
    ] {
        if !value.is_multiple_of(multiple) {
            return Err(format!(
                "{key}: {value} cannot be multiplied in 8 bits; a multiple of {multiple} is expected"
            ));
        }
    }
    match options.tying {
        Tying::ThreeWay | Tying::Decoder => Ok(()),
        Tying::Embeddings | Tying::None => {
            Err("tied-embeddings: false: in 8 bits, engines expect the output matrix to be the target's embeddings".into())
        }
    }
}

fn transposed(rows: usize, columns: usize, values: &[f32]) -> Vec<f32> {
    (0..columns).flat_map(|c| (0..rows).map(move |r| values[r * columns + c])).collect()
}

impl MarianOptions {
    /// The text of `special:model.yml`, with every key that Marian and Bergamot require.
    pub fn to_yaml(&self) -> Result<String> {
        let activation = match self.activation {
            Activation::Relu => "relu",
            Activation::Silu => "swish",
            Activation::Gelu => "gelu",
            Activation::GeluTanh => {
                return Err("transformer-ffn-activation: gelu is the exact one, not gelu_new".into());
            }
            Activation::Identity => {
                return Err("transformer-ffn-activation: there is none without activation".into());
            }
        };
        let (autoregression, cell) = match self.decoder {
            DecoderKind::Attention => ("self-attention", "gru"),
            DecoderKind::Ssru => ("rnn", "ssru"),
        };
        let (before, after) = match self.norm {
            NormPlace::Post => ("\"\"", "dan"),
            NormPlace::Pre => ("n", "da"),
        };
        let flag = |on: bool| if on { "true" } else { "false" }.to_owned();
        let text = str::to_owned;
        let mut keys = BTreeMap::from(UNUSED.map(|(key, value)| (key, text(value))));
        keys.extend([
            ("type", text("transformer")),
            ("version", text(if self.version.is_empty() { VERSION } else { &self.version })),
            ("dim-vocabs", format!("[{}, {}]", self.source_vocabulary, self.target_vocabulary)),
            ("dim-emb", self.d_model.to_string()),
            ("transformer-heads", self.heads.to_string()),
            ("enc-depth", self.encoder_layers.to_string()),
            ("dec-depth", self.decoder_layers.to_string()),
            ("transformer-dim-ffn", self.encoder_feed_forward.to_string()),
            ("transformer-decoder-dim-ffn", self.decoder_feed_forward.to_string()),
            ("transformer-ffn-activation", text(activation)),
            ("transformer-decoder-autoreg", text(autoregression)),
            ("dec-cell", text(cell)),
            ("transformer-preprocess", text(before)),
            ("transformer-postprocess", text(after)),
            ("transformer-postprocess-emb", text(if self.norm_embeddings { "nd" } else { "d" })),
            ("transformer-postprocess-top", text(if self.norm_top { "n" } else { "\"\"" })),
            ("tied-embeddings-all", flag(self.tying == Tying::ThreeWay)),
            ("tied-embeddings", flag(self.tying == Tying::Decoder)),
            ("tied-embeddings-src", flag(self.tying == Tying::Embeddings)),
            ("output-omit-bias", flag(!self.output_bias)),
            ("transformer-train-position-embeddings", flag(self.trained_positions)),
        ]);
        Ok(keys.iter().map(|(key, value)| format!("{key}: {value}\n")).collect())
    }
}

/// Keys that do not matter for these models, but that one of the engines requires.
const UNUSED: [(&str, &str); 28] = [
    ("bert-train-type-embeddings", "true"),
    ("bert-type-vocab-size", "2"),
    ("dec-cell-base-depth", "2"),
    ("dec-cell-high-depth", "1"),
    ("dim-rnn", "1024"),
    ("enc-cell", "gru"),
    ("enc-cell-depth", "1"),
    ("enc-type", "bidirectional"),
    ("factors-combine", "sum"),
    ("factors-dim-emb", "0"),
    ("input-types", "[]"),
    ("layer-normalization", "false"),
    ("lemma-dim-emb", "0"),
    ("right-left", "false"),
    ("skip", "false"),
    ("transformer-aan-activation", "swish"),
    ("transformer-aan-depth", "2"),
    ("transformer-aan-nogate", "false"),
    ("transformer-decoder-ffn-depth", "0"),
    ("transformer-dim-aan", "2048"),
    ("transformer-ffn-depth", "2"),
    ("transformer-guided-alignment-layer", "last"),
    ("transformer-no-projection", "false"),
    ("transformer-pool", "false"),
    ("transformer-tied-layers", "[]"),
    ("ulr", "false"),
    ("ulr-dim-emb", "0"),
    ("ulr-trainable-transformation", "false"),
];
