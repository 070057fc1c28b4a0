//! `y = LayerNorm(x + dropout(f))` or `y = LayerNorm(x)`, or the same with an RMS norm.

use crate::autograd::{Backward, Forward, Op, Param, Var};
use regard_kernels::{Dropout, Norm, NormSaved, add_norm, add_norm_backward};

/// The residual sum and layer normalisation of a post-norm layer; without a branch, plain layer
/// normalisation.
#[derive(Debug)]
pub struct AddNorm {
    /// x `[rows, d]`
    pub x: Var,
    /// f `[rows, d]`
    pub branch: Option<Var>,
    /// Dropout of f.
    pub dropout: Option<Dropout>,
    /// γ `[d]`
    pub gamma: Param,
    /// β `[d]`; an RMS norm has none.
    pub beta: Option<Param>,
    /// ε
    pub epsilon: f32,
}

impl Op for AddNorm {
    fn name(&self) -> &'static str {
        if self.branch.is_some() { "add_norm" } else { "norm" }
    }

    fn shape(&self, cx: &Forward<'_>) -> (usize, usize) {
        let x = cx.value(self.x);
        (x.rows(), x.cols())
    }

    /// The normalised rows, then the scale of each.
    fn saves(&self, cx: &Forward<'_>) -> usize {
        let x = cx.value(self.x);
        x.rows() * (x.cols() + 1)
    }

    fn forward(&mut self, cx: &mut Forward<'_>, y: &mut [f32], saved: &mut [f32]) {
        let (normalised, scale) = saved.split_at_mut(y.len());
        let beta = self.beta.map(|beta| cx.weight(beta));
        let norm = Norm { gamma: cx.weight(self.gamma), beta, epsilon: self.epsilon };
        let branch = self.branch.map(|f| cx.value(f).data());
        let saved = NormSaved { normalised, scale };
        add_norm(cx.isa, cx.value(self.x).data(), branch, self.dropout, norm, y, saved);
    }

    fn backward(&self, cx: &mut Backward<'_>, y: &[f32], saved: &[f32], dy: &mut [f32]) {
        let (mut dx, into_x) = cx.take(self.x);
        let mut branch = self.branch.map(|f| (f, cx.take(f)));
        let gamma = cx.weight(self.gamma);
        let (d_gamma, d_beta) = match self.beta {
            Some(beta) => {
                let both = cx.gradients.get_disjoint_mut([self.gamma.range(), beta.range()]);
                let [d_gamma, d_beta] = both.expect("γ and β are two parameters");
                (d_gamma, Some(d_beta))
            }
            None => (&mut cx.gradients[self.gamma.range()], None),
        };
        add_norm_backward(
            cx.isa,
            dy,
            gamma,
            saved.split_at(y.len()),
            self.dropout,
            (&mut dx, into_x),
            branch.as_mut().map(|(_, (df, into))| (&mut df[..], *into)),
            (d_gamma, d_beta),
        );
        cx.put(self.x, dx);
        if let Some((f, (df, _))) = branch {
            cx.put(f, df);
        }
    }
}
