//! The speed of f32 matrix multiplication in three crates on one core, at the sizes of a training
//! step and of decoding, as lines of JSON: `cargo run --release`.

use faer_with_gemm as with_gemm;
use faer_with_private_gemm as with_private_gemm;
use regard_kernels::{Accumulate, Isa, Mat, MatMut, matmul};
use std::time::Instant;

/// What a matmul is for, and its `m`, `n` and `k`. Micro-batches have about 1,024 tokens; a batch of
/// 32 sentences and a beam of 4 has 128 rows.
const SHAPES: [(&str, usize, usize, usize); 10] = [
    ("tiny, projection", 1024, 128, 128),
    ("tiny, feed-forward, up", 1024, 512, 128),
    ("tiny, logits", 1024, 8_496, 128),
    ("tiny, gradient of the output layer", 8_496, 128, 1024),
    ("base, projection", 1024, 512, 512),
    ("base, feed-forward, up", 1024, 2048, 512),
    ("base, feed-forward, down", 1024, 512, 2048),
    ("base, logits", 1024, 37_000, 512),
    ("base, gradient of feed-forward", 512, 2048, 1024),
    ("base, projection, decoding", 128, 512, 512),
];

fn main() {
    for (name, m, n, k) in SHAPES {
        let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
        let mut c = vec![0.0f32; m * n];
        let (regard, first) = speed((m, n, k), &mut c, |c| {
            let c = MatMut::new(c, m, n);
            matmul(Isa::best(), c, Mat::new(&a, m, k), Mat::new(&b, k, n), Accumulate::Overwrite, 1);
        });
        let (gemm, second) = speed((m, n, k), &mut c, |c| {
            let a = with_gemm::mat::from_row_major_slice(&a, m, k);
            let b = with_gemm::mat::from_row_major_slice(&b, k, n);
            let c = with_gemm::mat::from_row_major_slice_mut(c, m, n);
            with_gemm::linalg::matmul::matmul(c, a, b, None, 1.0, with_gemm::Parallelism::None);
        });
        let (private_gemm, third) = speed((m, n, k), &mut c, |c| {
            let a = with_private_gemm::MatRef::from_row_major_slice(&a, m, k);
            let b = with_private_gemm::MatRef::from_row_major_slice(&b, k, n);
            let c = with_private_gemm::MatMut::from_row_major_slice_mut(c, m, n);
            let (replace, one_thread) = (with_private_gemm::Accum::Replace, with_private_gemm::Par::Seq);
            with_private_gemm::linalg::matmul::matmul(c, replace, a, b, 1.0, one_thread);
        });
        for other in [second, third] {
            let differences = first.iter().zip(&other).map(|(a, b)| (a - b).abs());
            assert!(
                other.iter().all(|x| x.is_finite()) && differences.fold(0.0, f32::max) < 1e-3,
                "{name}"
            );
        }
        println!(
            "{{\"shape\":\"{name}\",\"m\":{m},\"n\":{n},\"k\":{k},\"regard\":{regard:.1},\"gemm\":{gemm:.1},\"private_gemm\":{private_gemm:.1}}}"
        );
    }
}

/// GMAC/s of the matmul in `multiply`, and the matrix that it wrote.
fn speed(
    (m, n, k): (usize, usize, usize),
    c: &mut [f32],
    mut multiply: impl FnMut(&mut [f32]),
) -> (f64, Vec<f32>) {
    let times = (2_000_000_000 / (m * n * k)).max(1);
    c.fill(f32::NAN);
    multiply(c);
    let start = Instant::now();
    (0..times).for_each(|_| multiply(c));
    let speed = (times * m * n * k) as f64 / start.elapsed().as_secs_f64() / 1e9;
    (speed, c.to_vec())
}

/// Numbers between -0.5 and 0.5.
fn numbers(count: usize, mut state: u32) -> Vec<f32> {
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..count).map(|_| next()).collect()
}
