//! The speed of matmuls with packed weights on one core, at the sizes of a base model:
//! `cargo run --release -p regard-kernels --example gemm`.

use regard_kernels::{Isa, Mat, MatMut, PackedB, RowScratch, quantize_rows};
use std::time::Instant;

/// What a shape is for, and its `n` and `k`.
const SHAPES: [(&str, usize, usize); 5] = [
    ("first cache", 32, 256),
    ("projection", 512, 512),
    ("feed-forward, up", 2048, 512),
    ("feed-forward, down", 512, 2048),
    ("vocabulary", 32_000, 512),
];
const ROWS: [usize; 4] = [1, 4, 32, 128];

fn main() {
    println!("GMAC/s, best of ten, by rows of the input");
    println!("{:10} {:20} {:>5} {:>7} {:>7} {:>7} {:>7}", "isa", "weights", "", "1", "4", "32", "128");
    for isa in Isa::available() {
        for (name, n, k) in SHAPES {
            let w = normal(n * k);
            let (values, scales) = quantize_rows(&w, k);
            for (precision, packed) in
                [("f32", PackedB::f32(isa, &w, n, k)), ("int8", PackedB::int8(isa, &values, &scales, k))]
            {
                let speeds = ROWS.map(|m| format!("{:7.1}", speed(&packed, m)));
                println!("{:10} {name:20} {precision:>5} {}", isa.name(), speeds.join(" "));
            }
        }
    }
}

/// Sums of four uniform numbers, which is near enough.
fn normal(count: usize) -> Vec<f32> {
    let mut state = 1u32;
    let mut uniform = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..count).map(|_| uniform() + uniform() + uniform() + uniform()).collect()
}

fn speed(w: &PackedB, m: usize) -> f64 {
    let (n, k) = (w.outputs(), w.inputs());
    let (x, mut y, mut scratch) = (normal(m * k), vec![0.0; m * n], RowScratch::default());
    let rows = w.rows(Mat::new(&x, m, k), &mut scratch);
    let times = (20_000_000 / (m * n * k)).max(1);
    let trial = |_| {
        let start = Instant::now();
        for _ in 0..times {
            w.matmul(rows, 0..n, None, MatMut::new(&mut y, m, n));
        }
        (times * m * n * k) as f64 / start.elapsed().as_secs_f64() / 1e9
    };
    (0..10).map(trial).fold(0.0, f64::max)
}
