//! Attention weights for display: by layer, head, query and key.

/// The kind of attention that a map shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AttentionKind {
    /// Source over source.
    Encoder,
    /// Target over target.
    Decoder,
    /// Target over source.
    Cross,
}

/// The weights of all heads of one attention for one sentence: `[heads, rows, columns]`; each row
/// sums to one.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionMap {
    /// The kind of attention.
    pub kind: AttentionKind,
    /// The layer in its stack, from 0.
    pub layer: usize,
    /// The number of heads.
    pub heads: usize,
    /// The number of tokens that attend.
    pub rows: usize,
    /// The number of tokens attended to.
    pub columns: usize,
    /// The weights.
    pub weights: Vec<f32>,
}

impl AttentionMap {
    /// The weights of one head, `[rows, columns]`.
    ///
    /// # Panics
    /// If the head does not exist.
    pub fn head(&self, head: usize) -> &[f32] {
        &self.weights[head * self.rows * self.columns..][..self.rows * self.columns]
    }

    /// The mean over all heads.
    pub fn mean(&self) -> Vec<f32> {
        let size = self.rows * self.columns;
        let share = 1.0 / self.heads as f32;
        (0..size).map(|i| (0..self.heads).map(|h| self.weights[h * size + i]).sum::<f32>() * share).collect()
    }

    /// The head whose rows have the largest maximum weights on average, the first if several: the
    /// one to show first.
    pub fn sharpest_head(&self) -> usize {
        let largest = |row: &[f32]| f64::from(row.iter().copied().fold(0.0, f32::max));
        let score = |head: &usize| -> f64 { self.head(*head).chunks(self.columns.max(1)).map(largest).sum() };
        let heads = (0..self.heads).map(|head| (head, score(&head)));
        heads.reduce(|best, next| if next.1 > best.1 { next } else { best }).map_or(0, |(head, _)| head)
    }

    /// How clearly its rows point at different tokens, averaged over all heads, in nats: the mutual
    /// information of rows and columns. 0 if all rows are the same, whether they attend to
    /// everything or to one token; ln(n) if each of n rows attends to a different token.
    pub fn sharpness(&self) -> f64 {
        let weights = self.mean();
        let entropy = |p: &[f64]| -p.iter().filter(|&&x| x > 0.0).map(|x| x * x.ln()).sum::<f64>();
        let mut all = vec![0.0; self.columns];
        let mut of_rows = 0.0;
        for row in weights.chunks(self.columns.max(1)) {
            let row: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
            all.iter_mut().zip(&row).for_each(|(sum, x)| *sum += x / self.rows as f64);
            of_rows += entropy(&row) / self.rows as f64;
        }
        entropy(&all) - of_rows
    }
}

/// The map of one kind whose rows point most clearly at different tokens: the layer to show first.
/// `None` if there is no map of that kind.
///
/// ```
/// use regard_core::model::{AttentionKind::Cross, AttentionMap, sharpest};
/// let map = |layer, weights: [f32; 4]| AttentionMap {
///     kind: Cross, layer, heads: 1, rows: 2, columns: 2, weights: weights.to_vec(),
/// };
/// let maps = [
///     map(0, [0.6, 0.4, 0.4, 0.6]), // diffuse
///     map(1, [0.1, 0.9, 0.9, 0.1]), // each row at a token of its own
///     map(2, [0.0, 1.0, 0.0, 1.0]), // both at the same token
/// ];
/// assert_eq!(sharpest(&maps, Cross).unwrap().layer, 1);
/// ```
pub fn sharpest(maps: &[AttentionMap], kind: AttentionKind) -> Option<&AttentionMap> {
    let of_kind = maps.iter().filter(|map| map.kind == kind);
    of_kind.max_by(|a, b| a.sharpness().total_cmp(&b.sharpness()))
}
