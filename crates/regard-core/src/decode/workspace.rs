//! The buffers of a pass through a stack: they are reused, so that a step allocates nothing.

use super::ragged_vec::RaggedVec;
use regard_kernels::{Mat, RowScratch, Scratch};

/// A value of this pass.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tensor {
    /// An index into the workspace.
    Value(usize),
    /// The encoder's output, which layers read through the keys and values in the cache.
    Source,
}

/// A value that lives until its layer ends; its memory is reused.
#[derive(Debug, Default)]
struct Value {
    rows: usize,
    cols: usize,
    data: Vec<f32>,
}

/// Everything that a pass writes to besides the cache.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    values: Vec<Value>,
    used: usize,
    /// Scratch memory of attention over whole sentences.
    pub(super) attention: Scratch,
    /// Scratch memory of attention over rows of the cache, one per thread.
    pub(super) scores: Vec<Vec<f32>>,
    /// Scratch memory of one operation.
    pub(super) scratch: Vec<f32>,
    /// The quantized rows of a matmul's input.
    pub(super) quantized: RowScratch,
    /// For recurrent layers: the states, and what each step saves.
    pub(super) states: (Vec<f32>, Vec<f32>),
    /// The cache rows inside a window.
    pub(super) windowed: RaggedVec<u32>,
}

impl Workspace {
    /// Begins a pass: discards all values.
    pub(super) fn clear(&mut self) {
        self.used = 0;
    }

    /// A new value `[rows, cols]`, filled by `fill`, which can read the others.
    pub(super) fn make(
        &mut self,
        rows: usize,
        cols: usize,
        fill: impl FnOnce(&mut Self, &mut [f32]),
    ) -> Tensor {
        if self.values.len() == self.used {
            self.values.push(Value::default());
        }
        let at = self.used;
        self.used += 1;
        let mut value = std::mem::take(&mut self.values[at]);
        (value.rows, value.cols) = (rows, cols);
        if value.data.len() < rows * cols {
            // The old values need not be kept.
            value.data = vec![0.0; rows * cols];
        }
        fill(self, &mut value.data[..rows * cols]);
        self.values[at] = value;
        Tensor::Value(at)
    }

    /// Ends a layer: discards all its values except `x`.
    pub(super) fn keep(&mut self, x: Tensor) -> Tensor {
        let Tensor::Value(i) = x else { return x };
        self.values.swap(0, i);
        self.used = 1;
        Tensor::Value(0)
    }

    /// A value `[rows, cols]`.
    pub(super) fn mat(&self, x: Tensor) -> Mat<'_> {
        mat(&self.values, x)
    }

    /// The elements of a value, in row-major order.
    pub(super) fn data(&self, x: Tensor) -> &[f32] {
        self.mat(x).data()
    }

    /// A value along with the scratch memory that a matmul with it needs.
    pub(super) fn operand(&mut self, x: Tensor) -> (Mat<'_>, &mut RowScratch) {
        (mat(&self.values, x), &mut self.quantized)
    }
}

fn mat(values: &[Value], x: Tensor) -> Mat<'_> {
    let Tensor::Value(i) = x else { unreachable!("only cross-attention reads the source") };
    let Value { rows, cols, data } = &values[i];
    Mat::new(&data[..rows * cols], *rows, *cols)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_see_those_before_them_and_one_outlives_its_layer() {
        let mut workspace = Workspace::default();
        let a = workspace.make(1, 2, |_, y| y.copy_from_slice(&[1.0, 2.0]));
        let b = workspace.make(1, 2, |w, y| y.iter_mut().zip(w.data(a)).for_each(|(y, x)| *y = 10.0 * x));
        assert_eq!((workspace.data(a), workspace.data(b)), (&[1.0, 2.0][..], &[10.0, 20.0][..]));
        let kept = workspace.keep(b);
        let c = workspace.make(2, 1, |w, y| y.copy_from_slice(w.data(kept)));
        assert_eq!((workspace.mat(c).rows(), workspace.data(kept)), (2, &[10.0, 20.0][..]));
        assert_eq!(workspace.values.len(), 2);
    }
}
