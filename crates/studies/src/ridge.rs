//! Ridge regression for linear probes.

/// An affine map from `d` inputs to `classes` scores.
pub(crate) struct Ridge {
    inputs: usize,
    /// `[d + 1, classes]`
    weights: Vec<f64>,
    classes: usize,
}

impl Ridge {
    /// Fits `x` `[rows, d]` to the one-hot classes of the rows. `penalty` applies to the weights,
    /// relative to the mean square of the inputs; the intercept is not penalised.
    pub(crate) fn classes(x: &[f32], d: usize, class: &[usize], classes: usize, penalty: f64) -> Self {
        let n = d + 1;
        let mut normal = vec![0.0; n * n];
        let mut right = vec![0.0; n * classes];
        let mut row = vec![1.0; n];
        for (values, class) in x.chunks_exact(d).zip(class) {
            for (to, from) in row.iter_mut().zip(values) {
                *to = f64::from(*from);
            }
            for i in 0..n {
                for (sum, x) in normal[i * n..=i * n + i].iter_mut().zip(&row) {
                    *sum += row[i] * x;
                }
                right[i * classes + class] += row[i];
            }
        }
        let trace: f64 = (0..d).map(|i| normal[i * n + i]).sum();
        for i in 0..d {
            normal[i * n + i] += penalty * trace / d as f64 + f64::MIN_POSITIVE;
        }
        cholesky(&mut normal, n);
        solve(&normal, n, &mut right, classes);
        Ridge { inputs: d, weights: right, classes }
    }

    /// The class with the highest score.
    pub(crate) fn class(&self, x: &[f32]) -> usize {
        let mut scores = self.weights[self.inputs * self.classes..].to_vec();
        for (x, weights) in x.iter().zip(self.weights.chunks_exact(self.classes)) {
            for (score, weight) in scores.iter_mut().zip(weights) {
                *score += f64::from(*x) * weight;
            }
        }
        (0..self.classes).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap_or(0)
    }
}

/// The Cholesky decomposition `A = L·Lᵀ` of a symmetric positive definite matrix, of which the
/// lower half is given; `L` replaces it in place.
fn cholesky(a: &mut [f64], n: usize) {
    for i in 0..n {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| a[i * n + k] * a[j * n + k]).sum();
            let rest = a[i * n + j] - sum;
            a[i * n + j] = if i == j { rest.max(1e-12).sqrt() } else { rest / a[j * n + j] };
        }
    }
}

/// Solves `L·Lᵀ·X = B` for `B` with this many columns; `X` replaces `B` in place.
fn solve(l: &[f64], n: usize, b: &mut [f64], columns: usize) {
    let mut eliminate = |i: usize, k: usize, factor: f64| {
        for c in 0..columns {
            b[i * columns + c] -= factor * b[k * columns + c];
        }
    };
    for i in 0..n {
        (0..i).for_each(|k| eliminate(i, k, l[i * n + k] / l[k * n + k]));
    }
    // The forward pass leaves L⁻¹·B times the diagonal; the backward pass needs it divided twice.
    for i in 0..n {
        let diagonal = l[i * n + i];
        b[i * columns..(i + 1) * columns].iter_mut().for_each(|x| *x /= diagonal * diagonal);
    }
    for i in (0..n).rev() {
        for k in i + 1..n {
            let factor = l[k * n + i] / l[i * n + i];
            for c in 0..columns {
                b[i * columns + c] -= factor * b[k * columns + c];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_core::Key;

    #[test]
    fn a_system_is_solved() {
        // A = [[4, 2], [2, 3]], B = [[2, 8], [5, 4]]: X = [[−1/2, 2], [2, 0]].
        let mut a = vec![4.0, 0.0, 2.0, 3.0];
        let mut b = vec![2.0, 8.0, 5.0, 4.0];
        cholesky(&mut a, 2);
        solve(&a, 2, &mut b, 2);
        for (got, want) in b.iter().zip([-0.5, 2.0, 2.0, 0.0]) {
            assert!((got - want).abs() < 1e-12, "{b:?}");
        }
    }

    #[test]
    fn what_is_linear_is_read_and_noise_is_not() {
        let (rows, d, classes) = (400usize, 5, 4);
        let key = Key::new(4);
        let class: Vec<usize> = (0..rows).map(|i| (key.bits(i as u32) % classes) as usize).collect();
        let noise = |i: usize| key.child(1).normal(i as u32);
        let told: Vec<f32> =
            (0..rows * d).map(|i| 0.1 * noise(i) + if i % d == class[i / d] { 1.0 } else { 0.0 }).collect();
        let blind: Vec<f32> = (0..rows * d).map(noise).collect();
        let right = |x: &[f32]| {
            let probe = Ridge::classes(&x[..200 * d], d, &class[..200], 4, 1e-3);
            x[200 * d..].chunks_exact(d).zip(&class[200..]).filter(|(x, c)| probe.class(x) == **c).count()
        };
        assert!(right(&told) > 195);
        assert!(right(&blind) < 90);
    }
}
