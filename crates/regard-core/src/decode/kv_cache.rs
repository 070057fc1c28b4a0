//! The key/value cache of the decoders: keys and values of the target tokens so far, and of the
//! source.
//!
//! A step assigns a row index to every running hypothesis, and each layer of each model stores its
//! state for the new token in the row with that index. A hypothesis is a list of row indices:
//! reordering a beam copies such lists and no keys or values, and the extensions of a hypothesis
//! share its rows. A row that no running hypothesis refers to is reused.
//!
//! Each layer decides what a row holds. Self-attention stores keys and values and reads all rows of
//! the list. A recurrent layer works in the same way with one state vector per row: it reads the
//! row of the last token and writes that of the new one, and a hypothesis of a purely recurrent
//! decoder only needs to refer to its last row.

use regard_kernels::{Mat, MatMut};

/// The decoder state of one batch, for all models of an ensemble.
#[derive(Debug, Default)]
pub(super) struct KvCache {
    /// Whether a running hypothesis refers to the row.
    taken: Vec<bool>,
    /// Rows for reuse; the last is taken first.
    free: Vec<u32>,
    /// One per model.
    models: Vec<ModelCache>,
}

/// The cache of one model.
#[derive(Debug, Default)]
pub(super) struct ModelCache {
    /// The target tokens so far, layer by layer.
    steps: Vec<LayerRows>,
    /// Keys and values of the encoder's output, layer by layer: computed once per batch and shared
    /// by all hypotheses.
    source: Vec<LayerRows>,
}

/// The indexed rows of one layer.
#[derive(Debug, Default)]
pub(super) struct LayerRows {
    /// The width of a row: for attention, keys and values side by side.
    width: usize,
    data: Vec<f32>,
}

/// The distance between rows in floats. Attention reads one head of all rows of a sentence, then
/// the next head: with a stride of whole pages, all rows would map to the same few sets of the L1
/// cache.
fn stride(width: usize) -> usize {
    const LINE: usize = 16;
    if width.is_multiple_of(16 * LINE) { width + LINE } else { width }
}

impl KvCache {
    /// A cache for this many models.
    pub(super) fn new(models: usize) -> Self {
        KvCache { models: (0..models).map(|_| ModelCache::default()).collect(), ..KvCache::default() }
    }

    /// Clears the state of the last batch.
    pub(super) fn clear(&mut self) {
        self.taken.clear();
        self.free.clear();
    }

    /// Keeps the rows that running hypotheses refer to, and frees the others.
    pub(super) fn retain<'r>(&mut self, hypotheses: impl Iterator<Item = &'r [u32]>) {
        self.taken.fill(false);
        for rows in hypotheses {
            rows.iter().for_each(|&row| self.taken[row as usize] = true);
        }
        self.free.clear();
        self.free.extend((0..self.taken.len() as u32).rev().filter(|&row| !self.taken[row as usize]));
    }

    /// Allocates a row for a new token.
    pub(super) fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.taken.push(true);
            self.taken.len() as u32 - 1
        })
    }

    /// The cache of model `i`.
    pub(super) fn model(&mut self, i: usize) -> &mut ModelCache {
        &mut self.models[i]
    }
}

impl ModelCache {
    /// Clears the target tokens of the last batch, in this many layers; keeps the memory.
    pub(super) fn clear(&mut self, layers: usize) {
        self.steps.resize_with(layers, LayerRows::default);
        self.steps.iter_mut().for_each(|rows| rows.data.clear());
        self.source.resize_with(layers, LayerRows::default);
    }

    /// The rows of the target tokens in decoder layer `layer`.
    pub(super) fn steps(&mut self, layer: usize) -> &mut LayerRows {
        &mut self.steps[layer]
    }

    /// The keys and values of the source in decoder layer `layer`: row `i` is source token `i` of
    /// the batch.
    pub(super) fn source(&mut self, layer: usize) -> &mut LayerRows {
        &mut self.source[layer]
    }
}

impl LayerRows {
    /// Writes values to the rows with these indices, in order.
    pub(super) fn write<'v>(&mut self, rows: &[u32], width: usize, values: impl Iterator<Item = &'v [f32]>) {
        self.width = width;
        let stride = stride(width);
        let needed = rows.iter().max().map_or(0, |&row| row as usize + 1);
        self.data.resize(self.data.len().max(needed * stride), 0.0);
        for (&row, values) in rows.iter().zip(values) {
            self.data[row as usize * stride..][..width].copy_from_slice(values);
        }
    }

    /// Resizes to `rows` rows and discards the old values.
    pub(super) fn replace(&mut self, rows: usize, width: usize) {
        self.width = width;
        self.data.resize(rows * stride(width), 0.0);
    }

    /// The number of rows.
    fn rows(&self) -> usize {
        self.data.len() / stride(self.width).max(1)
    }

    /// `[rows, width]`, mutable.
    pub(super) fn mat_mut(&mut self) -> MatMut<'_> {
        let (rows, width) = (self.rows(), self.width);
        MatMut::new(&mut self.data, rows, stride(width)).split_columns(width).0
    }

    /// `[rows, width]`
    pub(super) fn mat(&self) -> Mat<'_> {
        Mat::new(&self.data, self.rows(), stride(self.width)).columns(0, self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_nobody_names_are_used_again() {
        let mut cache = KvCache::new(1);
        assert_eq!([cache.take(), cache.take(), cache.take()], [0, 1, 2]);
        cache.retain([&[0, 2][..], &[0]].into_iter());
        assert_eq!([cache.take(), cache.take()], [1, 3]);
        cache.retain([].into_iter());
        assert_eq!([cache.take(), cache.take()], [0, 1]);
        cache.clear();
        assert_eq!(cache.take(), 0);
    }

    #[test]
    fn a_layer_keeps_what_was_written_to_other_rows() {
        let mut cache = KvCache::new(2);
        cache.model(1).clear(3);
        let layer = cache.model(1).steps(2);
        layer.write(&[2, 0], 2, [&[5.0, 6.0][..], &[1.0, 2.0]].into_iter());
        layer.write(&[1], 2, [&[3.0, 4.0][..]].into_iter());
        let mat = layer.mat();
        assert_eq!((mat.rows(), mat.data()), (3, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0][..]));
        cache.model(1).clear(3);
        assert_eq!(cache.model(1).steps(2).mat().rows(), 0);
        cache.model(1).source(0).replace(2, 3);
        cache.model(1).source(0).mat_mut().row(1).fill(7.0);
        assert_eq!(cache.model(1).source(0).mat().row(1), [7.0; 3]);
    }

    #[test]
    fn rows_of_whole_pages_lie_apart() {
        let mut layer = LayerRows::default();
        let values: Vec<f32> = (0..1024).map(|i| i as f32).collect();
        layer.write(&[1, 0], 512, values.chunks_exact(512));
        assert_eq!((layer.mat().rows(), layer.mat().cols()), (2, 512));
        assert_eq!((layer.mat().row(1), layer.mat().row(0)), (&values[..512], &values[512..]));
        layer.mat_mut().row(0).fill(1.0);
        assert_eq!((layer.mat().row(1), layer.mat().row(0)), (&values[..512], &[1.0; 512][..]));
    }

    /// One state per hypothesis: two extensions read the row of their parent and write their own.
    #[test]
    fn a_recurrent_state_fits() {
        let mut cache = KvCache::new(1);
        cache.model(0).clear(1);
        let parent = cache.take();
        cache.model(0).steps(0).write(&[parent], 1, [&[1.0][..]].into_iter());
        cache.retain([&[parent][..], &[parent]].into_iter());
        let children = [cache.take(), cache.take()];
        let states = cache.model(0).steps(0);
        let last = states.mat().row(parent as usize)[0];
        states.write(&children, 1, [&[last + 1.0][..], &[last + 2.0]].into_iter());
        assert_eq!(states.mat().data(), [1.0, 2.0, 3.0]);
        // Nothing refers to the parent's row any more.
        cache.retain(children.iter().map(std::slice::from_ref));
        assert_eq!(cache.take(), parent);
    }
}
