//! The buffers of a pass through a stack: they are kept, so that a step allocates nothing.

use super::lists::Lists;
use regard_kernels::{Mat, RowScratch, Scratch};

/// A value of this pass.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tensor {
    /// In the workspace, by number.
    Value(usize),
    /// The encoder's output, which layers read through the keys and values in the cache.
    Source,
}

/// A value that lives until its layer is over; its memory is kept for the next one.
#[derive(Debug, Default)]
struct Value {
    rows: usize,
    cols: usize,
    data: Vec<f32>,
}

/// Everything that a pass writes to beside the cache.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    values: Vec<Value>,
    used: usize,
    /// Of attention over whole sentences.
    pub(super) attention: Scratch,
    /// One operation's own, of any length.
    pub(super) scratch: Vec<f32>,
    /// The rows of a matrix multiplication's input in 8 bits.
    pub(super) quantized: RowScratch,
    /// Of recurrent layers: the states, and for each step what it leaves behind.
    pub(super) states: (Vec<f32>, Vec<f32>),
    /// The cache rows inside of a window.
    pub(super) windowed: Lists<u32>,
}

impl Workspace {
    /// Begins a pass: no value is needed any more.
    pub(super) fn clear(&mut self) {
        self.used = 0;
    }

    /// A new value `[rows, cols]`, filled by `fill`, which sees the others.
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
            value.data.resize(rows * cols, 0.0);
        }
        fill(self, &mut value.data[..rows * cols]);
        self.values[at] = value;
        Tensor::Value(at)
    }

    /// A layer is over: of its values only `x` is needed.
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

    /// The numbers of a value, row by row.
    pub(super) fn data(&self, x: Tensor) -> &[f32] {
        self.mat(x).data()
    }

    /// A value beside the memory that a matrix multiplication with it needs.
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
