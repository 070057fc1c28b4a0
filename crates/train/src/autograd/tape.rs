//! The tape records a forward pass and runs it backward.

use super::Weights;
use super::memory::{Arena, GradientPool, Values};
use super::ops::RecurrentScratch;
use regard_core::model::Param;
use regard_kernels::{Accumulate, Gemm, Isa, Mat, Scratch};

/// A `[rows, cols]` value on the tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Var(usize);

/// An operation that the tape can run forward and backward.
///
/// Its inputs are the [`Var`]s and [`Param`]s in its own fields.
pub trait Op: Send {
    /// The name in messages.
    fn name(&self) -> &'static str;

    /// Rows and columns of the output.
    fn shape(&self, cx: &Forward<'_>) -> (usize, usize);

    /// The number of floats that the backward pass needs besides inputs and output.
    fn saves(&self, cx: &Forward<'_>) -> usize;

    /// Computes the output `y` and `saved`, whose initial contents are arbitrary.
    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], saved: &mut [f32]);

    /// Given `dy`, the gradient of the loss with respect to the output, accumulates the gradients
    /// with respect to inputs and parameters. May overwrite `dy`.
    fn backward(&self, cx: &mut Backward<'_>, y: &[f32], saved: &[f32], dy: &mut [f32]);
}

/// The context of an operation in the forward pass.
#[derive(Debug)]
pub struct Forward<'a> {
    /// The instruction set.
    pub isa: Isa,
    /// The kind of matmul.
    pub gemm: Gemm,
    /// The number of threads per matmul.
    pub threads: usize,
    /// All weights.
    pub weights: Weights<'a>,
    /// The gradients of all weights in training, for a loss that computes its gradient in the
    /// forward pass.
    pub gradients: Option<&'a mut [f32]>,
    /// Reused memory.
    pub scratch: &'a mut Workspace,
    values: Values<'a>,
}

impl<'a> Forward<'a> {
    /// The value of an input.
    pub fn value(&self, var: Var) -> Mat<'a> {
        self.values.mat(var.0)
    }

    /// A parameter.
    pub fn weight(&self, param: Param) -> &'a [f32] {
        &self.weights.flat[param.range()]
    }
}

/// Memory that operations reuse.
#[derive(Debug, Default)]
pub struct Workspace {
    /// Scratch memory of the attention kernels.
    pub attention: Scratch,
    /// Logits of a block.
    pub logits: Vec<f32>,
    /// The gradient of the rows of a sampled softmax.
    pub sampled_rows: Vec<f32>,
    /// Scratch memory of recurrent operations.
    pub recurrent: RecurrentScratch,
    /// The sum of `−log p` over the target words that cross-entropies have seen, without label
    /// smoothing.
    pub nll: f64,
}

/// The context of an operation in the backward pass.
#[derive(Debug)]
pub struct Backward<'a> {
    /// The instruction set.
    pub isa: Isa,
    /// The kind of matmul.
    pub gemm: Gemm,
    /// The number of threads per matmul.
    pub threads: usize,
    /// All weights.
    pub weights: Weights<'a>,
    /// The gradients of all weights, to accumulate in.
    pub gradients: &'a mut [f32],
    /// Reused memory.
    pub scratch: &'a mut Workspace,
    values: Values<'a>,
    grads: &'a mut [Option<Vec<f32>>],
    pool: &'a mut GradientPool,
}

impl<'a> Backward<'a> {
    /// The value of an input.
    pub fn value(&self, var: Var) -> Mat<'a> {
        self.values.mat(var.0)
    }

    /// A parameter.
    pub fn weight(&self, param: Param) -> &'a [f32] {
        &self.weights.flat[param.range()]
    }

    /// The gradient of a parameter.
    pub fn gradient(&mut self, param: Param) -> &mut [f32] {
        &mut self.gradients[param.range()]
    }

    /// Takes the gradient with respect to an input, to overwrite (if it is the first) or to
    /// accumulate in; it must be [returned](Self::put).
    pub fn take(&mut self, var: Var) -> (Vec<f32>, Accumulate) {
        match self.grads[var.0].take() {
            Some(grad) => (grad, Accumulate::Add),
            None => (self.pool.take(self.values.get(var.0).len()), Accumulate::Overwrite),
        }
    }

    /// The same, zeroed if it is the first, for operations that can only accumulate.
    pub fn take_zeroed(&mut self, var: Var) -> Vec<f32> {
        let (mut grad, into) = self.take(var);
        if into == Accumulate::Overwrite {
            grad.fill(0.0);
        }
        grad
    }

    /// Returns a gradient obtained from [`take`](Self::take).
    pub fn put(&mut self, var: Var, grad: Vec<f32>) {
        self.grads[var.0] = Some(grad);
    }
}

/// Called when a backward pass reaches a [mark](Tape::mark), with its number and the gradients of
/// all weights at that time.
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
    values: Arena,
    nodes: Vec<Node>,
    /// The number of nodes at each mark.
    marks: Vec<usize>,
    hook: Option<BackwardHook>,
    grads: Vec<Option<Vec<f32>>>,
    pool: GradientPool,
    workspace: Workspace,
}

impl std::fmt::Debug for Tape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.nodes.iter().map(|n| n.op.name())).finish()
    }
}

impl Tape {
    /// An empty tape with f32 matmuls on up to `threads` threads each.
    pub fn new(isa: Isa, threads: usize) -> Self {
        Self::with_gemm(Gemm::f32(isa), threads)
    }

    /// An empty tape with matmuls of this kind on up to `threads` threads each.
    pub fn with_gemm(gemm: Gemm, threads: usize) -> Self {
        Tape {
            gemm,
            threads,
            values: Arena::default(),
            nodes: Vec::new(),
            marks: Vec::new(),
            hook: None,
            grads: Vec::new(),
            pool: GradientPool::default(),
            workspace: Workspace::default(),
        }
    }

    /// The instruction set it runs on.
    pub fn isa(&self) -> Isa {
        self.gemm.isa()
    }

    /// The kind of matmul.
    pub fn gemm(&self) -> Gemm {
        self.gemm
    }

    /// Sets the kind of matmul for future operations.
    pub fn set_gemm(&mut self, gemm: Gemm) {
        self.gemm = gemm;
    }

    /// Clears the recording but keeps the memory.
    pub fn clear(&mut self) {
        self.values.clear();
        self.nodes.clear();
        self.marks.clear();
    }

    /// Clears the recording and frees the memory.
    pub fn release(&mut self) {
        self.clear();
        self.values.release();
        (self.pool, self.workspace) = (GradientPool::default(), Workspace::default());
    }

    /// Marks this point of the recording; marks are counted from 0.
    pub fn mark(&mut self) {
        self.marks.push(self.nodes.len());
    }

    /// Sets the hook to call at each mark.
    pub fn set_backward_hook(&mut self, hook: Option<BackwardHook>) {
        self.hook = hook;
    }

    /// Adds an input value.
    ///
    /// # Panics
    /// If `data` is not `rows · cols` long.
    pub fn input(&mut self, data: &[f32], rows: usize, cols: usize) -> Var {
        assert_eq!(data.len(), rows * cols);
        let (var, [to]) = self.values.add([(rows, cols)]);
        to.copy_from_slice(data);
        Var(var)
    }

    /// Runs an operation forward and records it. `gradients` are those of the weights, in training.
    pub fn push<'w>(
        &mut self,
        weights: impl std::convert::Into<Weights<'w>>,
        gradients: Option<&mut [f32]>,
        mut op: impl Op + 'static,
    ) -> Var {
        let weights = weights.into();
        let mut gradients = gradients;
        let (isa, gemm, threads) = (self.gemm.isa(), self.gemm, self.threads);
        let (scratch, values) = (&mut self.workspace, self.values.values());
        let cx =
            Forward { isa, gemm, threads, weights, gradients: gradients.as_deref_mut(), scratch, values };
        let (output, saved) = (op.shape(&cx), (op.saves(&cx), 1));
        let (before, first, [y, saved]) = self.values.add_after([output, saved]);
        let scratch = &mut self.workspace;
        let mut cx = Forward { isa, gemm, threads, weights, gradients, scratch, values: before };
        op.forward(&mut cx, y, saved);
        self.nodes.push(Node { op: Box::new(op), output: Var(first), saved: first + 1 });
        Var(first)
    }

    /// A value.
    pub fn value(&self, var: Var) -> Mat<'_> {
        self.values.values().mat(var.0)
    }

    /// Runs backward from `last`, whose gradient is `dy` (empty for a loss, which has computed its
    /// own), and accumulates the gradients with respect to all weights in `gradients`.
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
        let values = self.values.values();
        self.grads.resize_with(values.len(), || None);
        let mut first = self.pool.take(values.get(last.0).len());
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
            // Nothing computed later depends on it, so it does not affect the loss.
            let Some(mut dy) = self.grads[node.output.0].take() else { continue };
            let mut cx = Backward {
                isa: self.gemm.isa(),
                gemm: self.gemm,
                threads: self.threads,
                weights,
                gradients,
                scratch: &mut self.workspace,
                values,
                grads: &mut self.grads,
                pool: &mut self.pool,
            };
            let (y, saved) = (values.get(node.output.0), values.get(node.saved));
            node.op.backward(&mut cx, y, saved, &mut dy);
            self.pool.put(dy);
        }
        passed(0, gradients);
    }

    /// The gradient with respect to an input value after [`backward`](Self::backward), if it has
    /// one.
    pub fn grad(&self, var: Var) -> Option<&[f32]> {
        self.grads[var.0].as_deref()
    }

    /// Returns the gradients with respect to input values to the pool.
    pub fn clear_grads(&mut self) {
        for grad in &mut self.grads {
            if let Some(grad) = grad.take() {
                self.pool.put(grad);
            }
        }
    }

    /// The sum of `−log p` over the target words since the last call, without label smoothing.
    pub fn take_nll(&mut self) -> f64 {
        std::mem::take(&mut self.workspace.nll)
    }

    /// The memory held, in floats: must stop growing after the first steps.
    pub fn capacity(&self) -> usize {
        let Workspace { logits, recurrent, .. } = &self.workspace;
        self.values.capacity() + self.pool.capacity() + logits.capacity() + recurrent.capacity()
    }
}
