//! The weights of attention, as people look at them.

/// Which attention a map shows.
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

/// The weights of all heads of one attention for one sentence: `[heads, rows, columns]`, each row summing to one.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionMap {
    /// Which attention.
    pub kind: AttentionKind,
    /// Counted through the stack, from 0.
    pub layer: usize,
    /// How many heads.
    pub heads: usize,
    /// Tokens that attend.
    pub rows: usize,
    /// Tokens attended to.
    pub columns: usize,
    /// The weights.
    pub weights: Vec<f32>,
}

impl AttentionMap {
    /// The weights of one head, `[rows, columns]`.
    ///
    /// # Panics
    /// If there is no such head.
    pub fn head(&self, head: usize) -> &[f32] {
        &self.weights[head * self.rows * self.columns..][..self.rows * self.columns]
    }

    /// All heads on average.
    pub fn mean(&self) -> Vec<f32> {
        let size = self.rows * self.columns;
        let share = 1.0 / self.heads as f32;
        (0..size).map(|i| (0..self.heads).map(|h| self.weights[h * size + i]).sum::<f32>() * share).collect()
    }
}
