//! The record of a forward pass and the walk back over it.

use super::Weights;
use super::ops::RecurrentScratch;
use regard_core::model::Param;
use regard_kernels::{Accumulate, Gemm, Isa, Mat, Scratch};

/// A `[rows, cols]` value on the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Var(usize);

/// An operation that the tape can run both ways.
///
/// Its inputs are [`Var`]s and [`Param`]s that it keeps in its own fields.
pub trait Op: Send {
    /// What it is called in messages.
    fn name(&self) -> &'static str;

    /// Rows and columns of the output.
    fn shape(&self, cx: &Forward<'_>) -> (usize, usize);

    /// How many numbers the backward pass needs besides inputs and output.
    fn saves(&self, cx: &Forward<'_>) -> usize;

    /// Fills `y`, the output, and `saved`; what they hold before is arbitrary.
    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], saved: &mut [f32]);

    /// Given `dy`, the gradient of the loss by the output, adds the gradients with respect to
    /// inputs and parameters to theirs. `dy` is free to be overwritten.
    fn backward(&self, cx: &mut Backward<'_>, y: &[f32], saved: &[f32], dy: &mut [f32]);
}

/// A buffer that is kept and reused: it only ever grows.
#[derive(Debug, Default)]
struct Slot {
    rows: usize,
    cols: usize,
    data: Vec<f32>,
}

impl Slot {
    fn shape(&mut self, rows: usize, cols: usize) -> &mut [f32] {
        (self.rows, self.cols) = (rows, cols);
        if self.data.len() < rows * cols {
            self.data.resize(rows * cols, 0.0);
        }
        &mut self.data[..rows * cols]
    }

    fn get(&self) -> &[f32] {
        &self.data[..self.rows * self.cols]
    }
}

/// What an operation sees on the way forward.
#[derive(Debug)]
pub struct Forward<'a> {
    /// The instruction set.
    pub isa: Isa,
    /// How matrix multiplications are made.
    pub gemm: Gemm,
    /// How many cores a matrix multiplication may use.
    pub threads: usize,
    /// All weights.
    pub weights: Weights<'a>,
    /// The gradients of all weights when training, for a loss that makes its gradient on the way.
    pub gradients: Option<&'a mut [f32]>,
    /// Reused memory.
    pub scratch: &'a mut Workspace,
    values: &'a [Slot],
}

impl<'a> Forward<'a> {
    /// The value of an input.
    pub fn value(&self, var: Var) -> Mat<'a> {
        let slot = &self.values[var.0];
        Mat::new(slot.get(), slot.rows, slot.cols)
    }

    /// A parameter.
    pub fn weight(&self, param: Param) -> &'a [f32] {
        &self.weights.flat[param.range()]
    }
}

/// Memory that operations reuse.
#[derive(Debug, Default)]
pub struct Workspace {
    /// The attention kernels'.
    pub attention: Scratch,
    /// Logits of a block.
    pub logits: Vec<f32>,
    /// The recurrent operation's.
    pub recurrent: RecurrentScratch,
    /// The sum of `−log p` of the target words that cross-entropies have seen, without label smoothing.
    pub nll: f64,
}

/// What an operation sees on the way back.
#[derive(Debug)]
pub struct Backward<'a> {
    /// The instruction set.
    pub isa: Isa,
    /// How matrix multiplications are made.
    pub gemm: Gemm,
    /// How many cores a matrix multiplication may use.
    pub threads: usize,
    /// All weights.
    pub weights: Weights<'a>,
    /// The gradients of all weights, to be added to.
    pub gradients: &'a mut [f32],
    /// Reused memory.
    pub scratch: &'a mut Workspace,
    values: &'a [Slot],
    grads: &'a mut [Option<Vec<f32>>],
    pool: &'a mut Pool,
}

impl<'a> Backward<'a> {
    /// The value of an input.
    pub fn value(&self, var: Var) -> Mat<'a> {
        let slot = &self.values[var.0];
        Mat::new(slot.get(), slot.rows, slot.cols)
    }

    /// A parameter.
    pub fn weight(&self, param: Param) -> &'a [f32] {
        &self.weights.flat[param.range()]
    }

    /// The gradient of a parameter.
    pub fn gradient(&mut self, param: Param) -> &mut [f32] {
        &mut self.gradients[param.range()]
    }

    /// Takes the gradient with respect to an input, to write to (if it is the first) or to add to;
    /// it must be [given back](Self::put).
    pub fn take(&mut self, var: Var) -> (Vec<f32>, Accumulate) {
        match self.grads[var.0].take() {
            Some(grad) => (grad, Accumulate::Add),
            None => (self.pool.take(self.values[var.0].get().len()), Accumulate::Overwrite),
        }
    }

    /// The same with zeros in place of nothing, for those that can only add.
    pub fn take_zeroed(&mut self, var: Var) -> Vec<f32> {
        let (mut grad, into) = self.take(var);
        if into == Accumulate::Overwrite {
            grad.fill(0.0);
        }
        grad
    }

    /// Gives back what [`take`](Self::take) gave.
    pub fn put(&mut self, var: Var, grad: Vec<f32>) {
        self.grads[var.0] = Some(grad);
    }
}

/// Free gradient buffers.
#[derive(Debug, Default)]
struct Pool(Vec<Vec<f32>>);

impl Pool {
    /// A buffer of `n` numbers with arbitrary contents: the smallest free one that suffices, else
    /// the largest, grown.
    fn take(&mut self, n: usize) -> Vec<f32> {
        let fit =
            (0..self.0.len()).filter(|&i| self.0[i].capacity() >= n).min_by_key(|&i| self.0[i].capacity());
        let largest = || (0..self.0.len()).max_by_key(|&i| self.0[i].capacity());
        let mut buffer = fit.or_else(largest).map(|i| self.0.swap_remove(i)).unwrap_or_default();
        buffer.resize(n, 0.0);
        buffer
    }

    fn give(&mut self, buffer: Vec<f32>) {
        self.0.push(buffer);
    }
}

/// Called when a backward pass has passed a [mark](Tape::mark), with its number and the gradients
/// of all weights at that time.
pub type BackwardHook = Box<dyn FnMut(usize, &[f32]) + Send>;

struct Node {
    op: Box<dyn Op>,
    output: Var,
    saved: usize,
}

/// The record of one forward pass.
pub struct Tape {
    gemm: Gemm,
    threads: usize,
    values: Vec<Slot>,
    used: usize,
    nodes: Vec<Node>,
    /// How many nodes there were at each mark.
    marks: Vec<usize>,
    hook: Option<BackwardHook>,
    grads: Vec<Option<Vec<f32>>>,
    pool: Pool,
    workspace: Workspace,
}

impl std::fmt::Debug for Tape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.nodes.iter().map(|n| n.op.name())).finish()
    }
}

impl Tape {
    /// An empty tape whose matrix multiplications are in f32 and may use `threads` cores.
    pub fn new(isa: Isa, threads: usize) -> Self {
        Self::with_gemm(Gemm::f32(isa), threads)
    }

    /// An empty tape whose matrix multiplications are made in this way and may use `threads` cores.
    pub fn with_gemm(gemm: Gemm, threads: usize) -> Self {
        Tape {
            gemm,
            threads,
            values: Vec::new(),
            used: 0,
            nodes: Vec::new(),
            marks: Vec::new(),
            hook: None,
            grads: Vec::new(),
            pool: Pool::default(),
            workspace: Workspace::default(),
        }
    }

    /// The instruction set it runs on.
    pub fn isa(&self) -> Isa {
        self.gemm.isa()
    }

    /// Multiplies matrices in this number format from now on.
    pub fn set_gemm(&mut self, gemm: Gemm) {
        self.gemm = gemm;
    }

    /// Forgets everything recorded, and keeps the memory.
    pub fn clear(&mut self) {
        self.used = 0;
        self.nodes.clear();
        self.marks.clear();
    }

    /// Marks this place of the record; marks are counted from 0.
    pub fn mark(&mut self) {
        self.marks.push(self.nodes.len());
    }

    /// What is called at each mark from now on.
    pub fn set_backward_hook(&mut self, hook: Option<BackwardHook>) {
        self.hook = hook;
    }

    /// A value from outside.
    ///
    /// # Panics
    /// If `data` is not `rows · cols` long.
    pub fn input(&mut self, data: &[f32], rows: usize, cols: usize) -> Var {
        assert_eq!(data.len(), rows * cols);
        self.reserve(1);
        self.values[self.used].shape(rows, cols).copy_from_slice(data);
        self.used += 1;
        Var(self.used - 1)
    }

    fn reserve(&mut self, slots: usize) {
        if self.values.len() < self.used + slots {
            self.values.resize_with(self.used + slots, Slot::default);
        }
    }

    /// Runs an operation forward and records it. `gradients` are those of the weights, while training.
    pub fn push<'w>(
        &mut self,
        weights: impl std::convert::Into<Weights<'w>>,
        gradients: Option<&mut [f32]>,
        mut op: impl Op + 'static,
    ) -> Var {
        self.reserve(2);
        let (before, after) = self.values.split_at_mut(self.used);
        let mut cx = Forward {
            isa: self.gemm.isa(),
            gemm: self.gemm,
            threads: self.threads,
            weights: weights.into(),
            gradients,
            scratch: &mut self.workspace,
            values: before,
        };
        let (rows, cols) = op.shape(&cx);
        let saves = op.saves(&cx);
        let (output, saved) = after.split_at_mut(1);
        op.forward(&mut cx, output[0].shape(rows, cols), saved[0].shape(saves, 1));
        let output = Var(self.used);
        self.nodes.push(Node { op: Box::new(op), output, saved: self.used + 1 });
        self.used += 2;
        output
    }

    /// A value.
    pub fn value(&self, var: Var) -> Mat<'_> {
        let slot = &self.values[var.0];
        Mat::new(slot.get(), slot.rows, slot.cols)
    }

    /// Walks back from `last`, whose gradient is `dy` (an empty one for a loss, which knows its
    /// own), and adds the gradients with respect to all weights to `gradients`.
    ///
    /// # Panics
    /// If `dy` is neither empty nor as long as the value of `last`.
    pub fn backward<'w>(
        &mut self,
        weights: impl std::convert::Into<Weights<'w>>,
        gradients: &mut [f32],
        last: Var,
        dy: &[f32],
    ) {
        let weights = weights.into();
        self.grads.resize_with(self.values.len(), || None);
        let mut first = self.pool.take(self.values[last.0].get().len());
        if dy.is_empty() {
            first.fill(1.0);
        } else {
            first.copy_from_slice(dy);
        }
        self.grads[last.0] = Some(first);
        let mut marks = self.marks.iter().copied().enumerate().rev().peekable();
        let hook = &mut self.hook;
        let mut passed = |node: usize, gradients: &[f32]| {
            while let Some((mark, _)) = marks.next_if(|(_, at)| *at >= node) {
                hook.iter_mut().for_each(|hook| hook(mark, gradients));
            }
        };
        for (i, node) in self.nodes.iter().enumerate().rev() {
            passed(i + 1, gradients);
            // Nothing that was computed later depends on it: it does not touch the loss.
            let Some(mut dy) = self.grads[node.output.0].take() else { continue };
            let mut cx = Backward {
                isa: self.gemm.isa(),
                gemm: self.gemm,
                threads: self.threads,
                weights,
                gradients,
                scratch: &mut self.workspace,
                values: &self.values,
                grads: &mut self.grads,
                pool: &mut self.pool,
            };
            let (y, saved) = (self.values[node.output.0].get(), self.values[node.saved].get());
            node.op.backward(&mut cx, y, saved, &mut dy);
            self.pool.give(dy);
        }
        passed(0, gradients);
    }

    /// The gradient with respect to an input value after [`backward`](Self::backward), if it has one.
    pub fn grad(&self, var: Var) -> Option<&[f32]> {
        self.grads[var.0].as_deref()
    }

    /// Gives the gradients with respect to input values back to the pool.
    pub fn clear_grads(&mut self) {
        for grad in &mut self.grads {
            if let Some(grad) = grad.take() {
                self.pool.give(grad);
            }
        }
    }

    /// The sum of `−log p` of the target words since the last call, without label smoothing.
    pub fn take_nll(&mut self) -> f64 {
        std::mem::take(&mut self.workspace.nll)
    }

    /// How many numbers of memory it holds: what must stop growing after the first steps.
    pub fn capacity(&self) -> usize {
        let values: usize = self.values.iter().map(|s| s.data.capacity()).sum();
        let Workspace { logits, recurrent, .. } = &self.workspace;
        let pool: usize = self.pool.0.iter().map(Vec::capacity).sum();
        values + pool + logits.capacity() + recurrent.capacity()
    }
}
