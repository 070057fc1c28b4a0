//! The speed of the matmuls of a Firefox model on one core, with the inputs quantized for each, and
//! how long a shortlist takes to select:
//! `cargo run --release -p regard-kernels --example gemm_int8`, with `REGARD_ISA` for another
//! instruction set.

use regard_kernels::mapped::Int8Values;
use regard_kernels::{
    Epilogue, Isa, IsaError, MarianScales, Mat, MatMut, PackedB, RowLists, RowScratch, quantize_rows,
};
use std::time::Instant;

/// What a shape is for, and its `n` and `k`.
const SHAPES: [(&str, usize, usize); 4] = [
    ("projection", 256, 256),
    ("feed-forward, up", 1536, 256),
    ("feed-forward, down", 256, 1536),
    ("shortlist", 1000, 256),
];
const ROWS: [usize; 4] = [1, 8, 64, 512];
/// The standard deviation of the integers of trained weights, and the range of those of their inputs.
const WEIGHTS: f32 = 20.0;
const INPUTS: f32 = 25.0;

fn main() -> Result<(), IsaError> {
    let isa = Isa::from_env()?;
    println!("GMAC/s, best of 20, by rows of the input");
    println!("{:10} {:20} {:>12} {:>7} {:>7} {:>7} {:>7}", "isa", "weights", "", "1", "8", "64", "512");
    for (name, n, k) in SHAPES {
        let w = normal(n * k, WEIGHTS);
        let values: Vec<i8> = w.iter().map(|x| x.round().clamp(-127.0, 127.0) as i8).collect();
        let (rescaled, scales) = quantize_rows(&w, k);
        let fixed = PackedB::int8_fixed(
            isa,
            &values,
            MarianScales { multipliers: &vec![1.0; n], input: Some(1.0), bias: None },
            k,
        );
        let affine = PackedB::int8(isa, &rescaled, &scales, k);
        // Alternately, so that what else the machine does is the same for all.
        let mut best = [[0.0; ROWS.len()]; 3];
        for _ in 0..20 {
            for (i, &m) in ROWS.iter().enumerate() {
                let signed = normal(m * k, INPUTS);
                let unsigned: Vec<f32> = signed.iter().map(|x| x.max(0.0)).collect();
                let trials = [(&affine, &signed), (&fixed, &signed), (&fixed, &unsigned)];
                for (best, (packed, x)) in best.iter_mut().zip(trials) {
                    best[i] = f64::max(best[i], speed(packed, x, m));
                }
            }
        }
        for (what, best) in ["int8", "fixed", "fixed, ReLU"].iter().zip(best) {
            let speeds = best.map(|speed| format!("{speed:7.1}"));
            println!("{:10} {name:20} {what:>12} {}", isa.name(), speeds.join(" "));
        }
    }
    let (choose, multiply) = shortlist(isa);
    println!(
        "{:10} 1,000 of 32,000 rows: {choose:.0} µs to choose them, {multiply:.1} µs to multiply with",
        isa.name()
    );
    Ok(())
}

/// Sums of four uniform numbers with this standard deviation, which is near enough.
fn normal(count: usize, deviation: f32) -> Vec<f32> {
    let mut state = 1u32;
    let mut uniform = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) as f32 / (1 << 24) as f32 - 0.5) * deviation * f32::sqrt(3.0)
    };
    (0..count).map(|_| uniform() + uniform() + uniform() + uniform()).collect()
}

fn speed(w: &PackedB, x: &[f32], m: usize) -> f64 {
    let (n, k) = (w.outputs(), w.inputs());
    let (mut y, mut scratch) = (vec![0.0; m * n], RowScratch::default());
    let times = (5_000_000 / (m * n * k)).max(1);
    let start = Instant::now();
    for _ in 0..times {
        let rows = w.rows(Mat::new(x, m, k), &mut scratch);
        w.matmul(rows, 0..n, Epilogue::default(), MatMut::new(&mut y, m, n));
    }
    (times * m * n * k) as f64 / start.elapsed().as_secs_f64() / 1e9
}

/// The microseconds that it takes to choose the rows of a shortlist, and to multiply an input with them.
fn shortlist(isa: Isa) -> (f64, f64) {
    let (n, k) = (32_000, 256);
    let values: Vec<i8> = normal(n * k, WEIGHTS).iter().map(|&x| x as i8).collect();
    let table = PackedB::int8_table(
        isa,
        Int8Values::Owned(values),
        MarianScales { multipliers: &vec![1.0; n], input: Some(1.0), bias: None },
        k,
    );
    let words: Vec<u32> = (0..1000).map(|i| i * 31 + i % 7).collect();
    let x = normal(k, INPUTS);
    let (rows, offsets): (Vec<u32>, _) = ((0..1000).collect(), [0, 1000]);
    let (mut scratch, mut y) = (RowScratch::default(), vec![0.0; 1000]);
    let (mut choose, mut multiply) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..20 {
        let start = Instant::now();
        let chosen = table.choose(&words, None);
        choose = f64::min(choose, start.elapsed().as_secs_f64() * 1e6);
        let start = Instant::now();
        let input = chosen.rows(Mat::new(&x, 1, k), &mut scratch);
        chosen.matmul(input, RowLists { offsets: &offsets, rows: &rows }, None, &mut y);
        multiply = f64::min(multiply, start.elapsed().as_secs_f64() * 1e6);
    }
    (choose, multiply)
}
