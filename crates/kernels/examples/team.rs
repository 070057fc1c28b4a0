//! How long a team takes for pieces of work of some microseconds, on a machine that may be busy.
//!
//!     cargo run --release -p regard-kernels --example team [THREADS] [MICROSECONDS]

use regard_kernels::Team;
use std::hint::black_box;
use std::time::{Duration, Instant};

fn work(microseconds: u64) {
    let mut x = 0.5_f64;
    // About a nanosecond each, whatever the clock says: a thread that loses its core does not count that time as work.
    for _ in 0..microseconds * 250 {
        x = black_box(x * 0.999 + 0.001);
    }
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|argument| argument.parse().expect("a number"));
    let threads: u64 = numbers.next().unwrap_or(2);
    let microseconds: u64 = numbers.next().unwrap_or(20);
    let mut team = Team::new(threads as usize);
    let mut rounds: Vec<Duration> = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(3) {
        let start = Instant::now();
        team.run(&|_| work(microseconds));
        rounds.push(start.elapsed());
    }
    rounds.sort();
    let mean = begin.elapsed() / rounds.len() as u32;
    let at = |share: f64| rounds[(share * (rounds.len() - 1) as f64) as usize];
    println!(
        "{threads} threads, pieces of {microseconds} µs: mean {mean:?}, median {:?}, 99 % {:?}",
        at(0.5),
        at(0.99)
    );
}
