//! A Marian or Firefox model in f32 against the plain implementation in
//! `tools/marian_reference.py`, which reads the same file: the encoder's output, and the
//! log-probabilities of the likeliest first tokens.
//!
//! ```text
//! head -n 20 FILE | python tools/marian_reference.py MODEL --json |
//!     cargo run --release -p regard-core --example compare_reference MODEL
//! ```

use regard_core::decode::{encoder_output, score_pairs};
use regard_core::formats::Model;
use regard_core::{DType, Isa};
use serde_json::Value;
use std::error::Error;
use std::io::{BufRead, stdin};
use std::path::Path;

/// How many of the likeliest first tokens are compared.
const TOKENS: usize = 50;
/// The largest differences that are accepted, of numbers of the size of 1.
const ENCODER: f32 = 1e-4;
const LOG_PROBABILITIES: f32 = 1e-3;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("which model folder?")?;
    let (model, engine) = Model::load_engine(Path::new(&folder), Some(DType::F32), Isa::best())?;
    let eos = model.tokenizers.target().eos();
    let (mut sentences, mut encoder, mut first) = (0, 0.0f32, 0.0f32);
    for line in stdin().lock().lines() {
        let line: Value = serde_json::from_str(&line?)?;
        let source: Vec<u32> = serde_json::from_value(line["source"].clone())?;
        let want: Vec<Vec<f32>> = serde_json::from_value(line["encoder"].clone())?;
        let got = encoder_output(&engine, &source)?;
        let want = want.concat();
        if got.len() != want.len() {
            return Err(format!("{} numbers for {}", got.len(), want.len()).into());
        }
        encoder = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(encoder, larger);
        let logits: Vec<f64> = serde_json::from_value(line["logits"].clone())?;
        let total = logits.iter().map(|x| x.exp()).sum::<f64>().ln();
        let mut tokens: Vec<usize> = (0..logits.len()).collect();
        tokens.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
        tokens.truncate(TOKENS);
        let pairs: Vec<_> = tokens.iter().map(|&token| (source.clone(), vec![token as u32, eos])).collect();
        for (scores, &token) in score_pairs(&[&engine], &pairs, 2)?.iter().zip(&tokens) {
            first = larger(first, (scores[0] - (logits[token] - total) as f32).abs());
        }
        sentences += 1;
    }
    println!(
        "{sentences} sentences: encoder output within {encoder:.1e}, first log-probabilities within {first:.1e}"
    );
    match sentences > 0 && encoder <= ENCODER && first <= LOG_PROBABILITIES {
        true => Ok(()),
        false => Err("the two differ".into()),
    }
}

/// The larger of two numbers, or NaN if one of them is.
fn larger(a: f32, b: f32) -> f32 {
    if a.is_nan() || a >= b { a } else { b }
}
