//! Classifies attention heads by their attention weights, and removes heads from a model.

use super::{AttentionKind, Side, Transformer};
use crate::{Error, Result};
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// The minimum share of a head's weight that a pattern must hold, and the minimum margin over its
/// share in a uniform head.
const SHARE: f64 = 0.4;
const LIFT: f64 = 0.25;
/// Patterns that contain others (a neighbourhood contains the previous token) must hold more.
const WIDE_SHARE: f64 = 0.75;
/// Above this share of the maximum entropy, a head attends uniformly.
const UNIFORM: f64 = 0.93;

/// What a head seems to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HeadPattern {
    /// The token itself.
    Diagonal,
    /// In cross-attention, along the diagonal of the map.
    Aligned,
    /// In the decoder, the token that was just read.
    JustRead,
    /// The previous token.
    Previous,
    /// The next token.
    Next,
    /// The first token, whatever the query.
    First,
    /// The end token.
    End,
    /// Punctuation.
    Punctuation,
    /// Other positions with the same token.
    Same,
    /// A single token, whatever the query.
    SingleToken,
    /// At most two tokens away.
    Near,
    /// Everything uniformly.
    Uniform,
    /// None of these.
    Mixed,
    /// The sentence is too short to tell.
    Short,
}

impl HeadPattern {
    /// Every pattern.
    pub const ALL: [HeadPattern; 14] = {
        use HeadPattern::*;
        [
            Diagonal,
            Aligned,
            JustRead,
            Previous,
            Next,
            First,
            End,
            Punctuation,
            Same,
            SingleToken,
            Near,
            Uniform,
            Mixed,
            Short,
        ]
    };

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// A word or two, for tight spaces.
    pub fn short(self) -> &'static str {
        self.words().1
    }

    /// A sentence.
    pub fn text(self) -> &'static str {
        self.words().2
    }

    /// Name, a word or two, a sentence.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            HeadPattern::Diagonal => ("diagonal", "itself", "Looks at the token itself."),
            HeadPattern::Aligned => {
                ("aligned", "diagonal", "Follows the diagonal: words are translated in order.")
            }
            HeadPattern::JustRead => ("read", "just read", "Looks at the token that was just read."),
            HeadPattern::Previous => ("previous", "previous", "Looks at the previous token."),
            HeadPattern::Next => ("next", "next", "Looks at the next token."),
            HeadPattern::First => ("first", "first", "Looks at the first token, whatever the query."),
            HeadPattern::End => (
                "end",
                "end",
                "Attends to the end of the sentence, which often means to nothing in particular.",
            ),
            HeadPattern::Punctuation => ("punctuation", "marks", "Looks at punctuation."),
            HeadPattern::Same => ("same", "same", "Looks at other places with the same token."),
            HeadPattern::SingleToken => ("one", "one word", "All tokens look at one and the same token."),
            HeadPattern::Near => ("near", "near", "Looks around itself, at most two tokens away."),
            HeadPattern::Uniform => ("even", "even", "Attends to all tokens about equally."),
            HeadPattern::Mixed => ("mixed", "mixed", "No simple pattern: it depends on the words."),
            HeadPattern::Short => ("short", "–", "The sentence is too short to tell."),
        }
    }
}

/// What a head does in one sentence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadHint {
    /// The pattern.
    pub pattern: HeadPattern,
    /// The share of the weight that the pattern holds; for a uniform head, its entropy relative to
    /// the maximum.
    pub share: f64,
    /// The number of tokens that a row attends to: the mean exponential of its entropy.
    pub spread: f64,
}

/// The weights of a head to classify.
struct Head<'a> {
    kind: AttentionKind,
    weights: &'a [f32],
    rows: usize,
    columns: usize,
}

/// A pattern and the cells (row, column) that belong to it.
type Cells<'a> = (HeadPattern, Box<dyn Fn(usize, usize) -> bool + 'a>);

/// Describes one head: `weights [rows, columns]`, the pieces that attend and those attended to.
///
/// In the decoder, `columns` are the pieces that it reads (the start first) and `rows` those that
/// it generates.
///
/// ```
/// use regard_core::model::{AttentionKind, HeadPattern, describe_head};
/// let pieces = ["▁a", "▁b", "▁c", "</s>"];
/// let weights = [0., 1., 0., 0., 0., 0., 1., 0., 0., 0., 0., 1., 0., 0., 0., 1.];
/// let hint = describe_head(AttentionKind::Encoder, &weights, &pieces, &pieces)?;
/// assert_eq!((hint.pattern, hint.share), (HeadPattern::Next, 0.75));
/// # Ok::<(), regard_core::Error>(())
/// ```
pub fn describe_head<T: AsRef<str>>(
    kind: AttentionKind,
    weights: &[f32],
    rows: &[T],
    columns: &[T],
) -> Result<HeadHint> {
    if weights.len() != rows.len() * columns.len() {
        let (got, m, n) = (weights.len(), rows.len(), columns.len());
        let message = format!("{got} weights for {m} rows of {n} columns");
        return Err(Error::Input { operation: "describing a head", message });
    }
    let head = Head { kind, weights, rows: rows.len(), columns: columns.len() };
    let spread = mean(head.used().map(|i| entropy(head.row(i)).exp()));
    let hint = |pattern, share| HeadHint { pattern, share, spread };
    if head.used().len() < 2 || columns.len() < 3 {
        return Ok(hint(HeadPattern::Short, 0.0));
    }
    if let Some((pattern, share)) = head.best(narrow(&head, rows, columns), SHARE) {
        return Ok(hint(pattern, share));
    }
    let even = mean(head.used().map(|i| entropy(head.row(i)) / (head.seen(i) as f64).ln()));
    if even >= UNIFORM {
        return Ok(hint(HeadPattern::Uniform, even));
    }
    Ok(match head.best(wide(kind), WIDE_SHARE) {
        Some((pattern, share)) => hint(pattern, share),
        None => hint(HeadPattern::Mixed, 0.0),
    })
}

impl Head<'_> {
    fn row(&self, i: usize) -> &[f32] {
        &self.weights[i * self.columns..][..self.columns]
    }

    /// The informative rows: the first row of the decoder can only see one token.
    fn used(&self) -> std::ops::Range<usize> {
        usize::from(self.kind == AttentionKind::Decoder).min(self.rows)..self.rows
    }

    /// The number of columns that row `i` sees.
    fn seen(&self, i: usize) -> usize {
        if self.kind == AttentionKind::Decoder { (i + 1).min(self.columns) } else { self.columns }
    }

    /// The share of the weight in some cells, and what it would be in a uniform head.
    fn share(&self, picks: impl Fn(usize, usize) -> bool) -> (f64, f64) {
        let (mut held, mut even) = (0.0, 0.0);
        for i in self.used() {
            let seen = self.seen(i);
            for (_, &weight) in self.row(i)[..seen].iter().enumerate().filter(|(j, _)| picks(i, *j)) {
                held += f64::from(weight);
                even += 1.0 / seen as f64;
            }
        }
        let rows = self.used().len() as f64;
        (held / rows, even / rows)
    }

    /// The pattern that holds most, if it holds enough; ties go to the earlier one.
    fn best(&self, candidates: Vec<Cells<'_>>, least: f64) -> Option<(HeadPattern, f64)> {
        let mut best: Option<(HeadPattern, f64)> = None;
        for (pattern, picks) in candidates {
            let (held, even) = self.share(picks);
            if held >= least && held >= even + LIFT && best.is_none_or(|(_, most)| held > most) {
                best = Some((pattern, held));
            }
        }
        best
    }

    /// The column with the largest total weight.
    fn heaviest(&self) -> usize {
        let total = |j: usize| (0..self.rows).map(|i| f64::from(self.row(i)[j])).sum::<f64>();
        let totals: Vec<f64> = (0..self.columns).map(total).collect();
        (0..self.columns).reduce(|a, b| if totals[b] > totals[a] { b } else { a }).unwrap_or(0)
    }
}

fn narrow<'a, T: AsRef<str>>(head: &Head<'_>, rows: &'a [T], columns: &'a [T]) -> Vec<Cells<'a>> {
    let ends: Vec<bool> = columns.iter().map(|c| is_end(c.as_ref())).collect();
    let marks: Vec<bool> = columns.iter().map(|c| is_punctuation(c.as_ref())).collect();
    let heaviest = head.heaviest();
    let mut list: Vec<Cells<'a>> = match head.kind {
        AttentionKind::Cross => Vec::new(),
        // Column i is what row i has just read: the token before the one it generates.
        AttentionKind::Decoder => vec![
            (HeadPattern::JustRead, Box::new(|i, j| j == i)),
            (HeadPattern::Previous, Box::new(|i, j| j + 1 == i)),
        ],
        AttentionKind::Encoder => vec![
            (HeadPattern::Diagonal, Box::new(|i, j| j == i)),
            (HeadPattern::Previous, Box::new(|i, j| j + 1 == i)),
            (HeadPattern::Next, Box::new(|i, j| j == i + 1)),
        ],
    };
    list.push((HeadPattern::First, Box::new(|_, j| j == 0)));
    list.push((HeadPattern::End, Box::new(move |_, j| ends[j])));
    list.push((HeadPattern::Punctuation, Box::new(move |_, j| marks[j])));
    match head.kind {
        AttentionKind::Encoder => {
            let same = move |i: usize, j: usize| i != j && rows[i].as_ref() == columns[j].as_ref();
            list.push((HeadPattern::Same, Box::new(same)));
        }
        AttentionKind::Decoder => {}
        AttentionKind::Cross => {
            // One cell to each side of the diagonal, or of a line parallel to it: a translation may
            // begin late.
            let slope = (head.columns - 1) as f64 / (head.rows - 1) as f64;
            for shift in [0.0, -1.0, 1.0, -2.0, 2.0] {
                let near = move |i: usize, j: usize| (j as f64 - i as f64 * slope - shift).abs() <= 1.0;
                list.push((HeadPattern::Aligned, Box::new(near)));
            }
        }
    }
    list.push((HeadPattern::SingleToken, Box::new(move |_, j| j == heaviest)));
    list
}

fn wide(kind: AttentionKind) -> Vec<Cells<'static>> {
    match kind {
        AttentionKind::Cross => Vec::new(),
        _ => vec![(HeadPattern::Near, Box::new(|i, j| i.abs_diff(j) <= 2))],
    }
}

/// `−Σ w ln w` of weights normalised to the sum 1.
fn entropy(row: &[f32]) -> f64 {
    let total: f64 = row.iter().map(|&w| f64::from(w)).sum();
    if total.is_nan() || total <= 0.0 {
        return 0.0;
    }
    let shares = row.iter().map(|&w| f64::from(w) / total);
    shares.filter(|&w| w > 0.0).map(|w| -w * w.ln()).sum()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len().max(1) as f64;
    values.sum::<f64>() / n
}

fn is_end(piece: &str) -> bool {
    ["</s>", "<eos>", "<end>", "[SEP]"].contains(&piece)
}

/// Whether a piece consists only of punctuation; this includes a word-boundary marker by itself.
fn is_punctuation(piece: &str) -> bool {
    let plain = piece.trim_start_matches(['▁', 'Ġ']);
    let plain = plain.strip_suffix("@@").unwrap_or(plain);
    let special = piece.len() >= 2 && piece.starts_with('<') && piece.ends_with('>');
    let mark = |c: char| {
        let group = c.general_category_group();
        matches!(group, GeneralCategoryGroup::Punctuation | GeneralCategoryGroup::Symbol)
    };
    !special && plain.chars().all(mark)
}

/// Removes a head from a model: sets its columns of the output projection `W_O` to zero, so that it
/// adds nothing. All other weights stay.
pub fn remove_head(
    model: &Transformer,
    weights: &mut [f32],
    kind: AttentionKind,
    layer: usize,
    head: usize,
) -> Result<()> {
    let refuse = |message| Err(Error::Input { operation: "removing a head", message });
    let (side, name) = match kind {
        AttentionKind::Encoder => (Side::Source, format!("encoder.layers.{layer}.self_attn.out.weight")),
        AttentionKind::Decoder => (Side::Target, format!("decoder.layers.{layer}.self_attn.out.weight")),
        AttentionKind::Cross => (Side::Target, format!("decoder.layers.{layer}.cross_attn.out.weight")),
    };
    let shape = model.config().head_shape(side);
    let Some(out) = model.parameters().get(&name) else {
        return refuse(format!("there is no parameter {name}"));
    };
    if head >= shape.heads {
        return refuse(format!("there is no head {head}, a layer has 0 to {}", shape.heads - 1));
    }
    let (has, needs) = (weights.len(), model.parameters().len());
    if has != needs {
        return refuse(format!("{has} weights for a model of {needs}"));
    }
    for row in weights[out.param.range()].chunks_exact_mut(shape.values()) {
        row[head * shape.d_v..][..shape.d_v].fill(0.0);
    }
    Ok(())
}

#[cfg(test)]
#[path = "heads/tests.rs"]
mod tests;
