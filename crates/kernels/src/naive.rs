//! The naive twins: what each kernel computes, in `f64` and plain loops. Tests compare the kernels
//! and their gradients with these.

/// `A·B` with `A [m, k]`, `B [k, n]`.
pub fn matmul(a: &[f64], b: &[f64], m: usize, n: usize, k: usize) -> Vec<f64> {
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            c[i * n + j] = (0..k).map(|t| a[i * k + t] * b[t * n + j]).sum();
        }
    }
    c
}

/// `softmax` of one row.
pub fn softmax(x: &[f64]) -> Vec<f64> {
    log_softmax(x).into_iter().map(f64::exp).collect()
}

/// `x − ln Σ eˣ` of one row.
pub fn log_softmax(x: &[f64]) -> Vec<f64> {
    let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total = top + x.iter().map(|x| (x - top).exp()).sum::<f64>().ln();
    x.iter().map(|x| x - total).collect()
}

/// Layer normalisation of one row: `γ · (x − mean) / √(variance + ε) + β`.
pub fn layer_norm(x: &[f64], gamma: &[f64], beta: &[f64], epsilon: f64) -> Vec<f64> {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    let scale = 1.0 / (variance + epsilon).sqrt();
    x.iter().zip(gamma.iter().zip(beta)).map(|(x, (g, b))| (x - mean) * scale * g + b).collect()
}

/// `max(x, 0)`.
pub fn relu(x: f64) -> f64 {
    x.max(0.0)
}

/// `x · σ(x)`.
pub fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// `x · Φ(x)`, the exact form.
pub fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + erf(x / std::f64::consts::SQRT_2))
}

/// `x · (1 + tanh(√(2/π)·(x + 0.044715·x³))) / 2`: GELU as in T5.
pub fn gelu_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
}

/// RMS normalisation of one row: `γ · x / √(mean of squares + ε)`.
pub fn rms_norm(x: &[f64], gamma: &[f64], epsilon: f64) -> Vec<f64> {
    let square = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    let scale = 1.0 / (square + epsilon).sqrt();
    x.iter().zip(gamma).map(|(x, g)| x * scale * g).collect()
}

/// The outputs of a simpler simple recurrent unit for `x` and `z [rows, d]`, over sentences that
/// begin at `offsets`.
pub fn ssru(x: &[f64], z: &[f64], offsets: &[usize], d: usize) -> Vec<f64> {
    let mut y = vec![0.0; x.len()];
    for sentence in offsets.windows(2) {
        let mut state = vec![0.0; d];
        for i in sentence[0] * d..sentence[1] * d {
            let forget = 1.0 / (1.0 + (-z[i]).exp());
            state[i % d] = forget * state[i % d] + (1.0 - forget) * x[i];
            y[i] = relu(state[i % d]);
        }
    }
    y
}

/// The error function by its Maclaurin series, which converges for every argument and suffices
/// for |x| < 5.
pub fn erf(x: f64) -> f64 {
    if x.abs() > 5.0 {
        return x.signum();
    }
    let (mut term, mut total) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        total += term / f64::from(2 * n + 1);
    }
    total * 2.0 / std::f64::consts::PI.sqrt()
}

/// One step of a gated recurrent unit: `x [3·h]` from the token and `u [3·h]` from the state
/// `before [h]`, each as reset, update and candidate. Returns the new state.
pub fn gru_step(x: &[f64], u: &[f64], before: &[f64]) -> Vec<f64> {
    let h = before.len();
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    (0..h)
        .map(|i| {
            let reset = sigmoid(x[i] + u[i]);
            let update = sigmoid(x[h + i] + u[h + i]);
            let candidate = (x[2 * h + i] + reset * u[2 * h + i]).tanh();
            (1.0 - update) * candidate + update * before[i]
        })
        .collect()
}

/// The sizes of an [`attention`].
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Queries of the sentence.
    pub m: usize,
    /// Keys of the sentence.
    pub n: usize,
    /// Width of a query and of a key.
    pub d_k: usize,
    /// Width of a value.
    pub d_v: usize,
}

/// Scaled dot-product attention of one sentence and one head: `softmax(q·kᵀ/√d_k)·v` over
/// the keys that `visible(i, j)` lets a query see. `relative(i, j)` is the vector added to key `j`
/// for query `i`, `factor(i, j)` the dropout of its weight. Returns the outputs `[m, d_v]` and the
/// weights before dropout `[m, n]`.
pub fn attention(
    q: &[f64],
    k: &[f64],
    v: &[f64],
    Sizes { m, n, d_k, d_v }: Sizes,
    visible: impl Fn(usize, usize) -> bool,
    relative: impl Fn(usize, usize, usize) -> f64,
    factor: impl Fn(usize, usize) -> f64,
) -> (Vec<f64>, Vec<f64>) {
    let scale = (d_k as f64).sqrt().recip();
    biased_attention(q, k, v, Sizes { m, n, d_k, d_v }, scale, visible, relative, |_, _| 0.0, factor)
}

/// The same with scores multiplied by `scale`, to which `bias(i, j)` is added:
/// `softmax(scale·q·kᵀ + bias)·v`.
#[allow(clippy::too_many_arguments)]
pub fn biased_attention(
    q: &[f64],
    k: &[f64],
    v: &[f64],
    Sizes { m, n, d_k, d_v }: Sizes,
    scale: f64,
    visible: impl Fn(usize, usize) -> bool,
    relative: impl Fn(usize, usize, usize) -> f64,
    bias: impl Fn(usize, usize) -> f64,
    factor: impl Fn(usize, usize) -> f64,
) -> (Vec<f64>, Vec<f64>) {
    let (mut out, mut weights) = (vec![0.0; m * d_v], vec![0.0; m * n]);
    for i in 0..m {
        let seen: Vec<usize> = (0..n).filter(|&j| visible(i, j)).collect();
        let scores: Vec<f64> = seen
            .iter()
            .map(|&j| {
                let product = |c| q[i * d_k + c] * (k[j * d_k + c] + relative(i, j, c));
                scale * (0..d_k).map(product).sum::<f64>() + bias(i, j)
            })
            .collect();
        for (&j, w) in seen.iter().zip(softmax(&scores)) {
            weights[i * n + j] = w;
            for c in 0..d_v {
                out[i * d_v + c] += w * factor(i, j) * v[j * d_v + c];
            }
        }
    }
    (out, weights)
}

/// Cross-entropy with label smoothing for one row of logits: the target has probability `1 − ε`,
/// and `ε` is spread evenly over all classes, including the target.
pub fn cross_entropy(logits: &[f64], target: usize, epsilon: f64) -> f64 {
    let log_p = log_softmax(logits);
    let even: f64 = log_p.iter().sum::<f64>() / log_p.len() as f64;
    -(1.0 - epsilon) * log_p[target] - epsilon * even
}

/// `KL(p‖q) + KL(q‖p)` of the distributions with these logits.
pub fn symmetric_divergence(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (log_softmax(a), log_softmax(b));
    a.iter().zip(&b).map(|(a, b)| (a.exp() - b.exp()) * (a - b)).sum()
}

/// One step of Adam (Kingma and Ba, algorithm 1) for one weight: returns the new weight and
/// moments.
pub fn adam(
    weight: f64,
    gradient: f64,
    (m, v): (f64, f64),
    rate: f64,
    betas: (f64, f64),
    epsilon: f64,
    step: i32,
) -> (f64, f64, f64) {
    let m = betas.0 * m + (1.0 - betas.0) * gradient;
    let v = betas.1 * v + (1.0 - betas.1) * gradient * gradient;
    let (m_hat, v_hat) = (m / (1.0 - betas.0.powi(step)), v / (1.0 - betas.1.powi(step)));
    (weight - rate * m_hat / (v_hat.sqrt() + epsilon), m, v)
}

/// `(f(x + h) − f(x − h)) / 2h` for each element of `x`: the gradient that a backward pass must
/// agree with.
pub fn finite_differences(x: &[f64], h: f64, f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let mut x = x.to_vec();
    (0..x.len())
        .map(|i| {
            let old = x[i];
            x[i] = old + h;
            let up = f(&x);
            x[i] = old - h;
            let down = f(&x);
            x[i] = old;
            (up - down) / (2.0 * h)
        })
        .collect()
}
