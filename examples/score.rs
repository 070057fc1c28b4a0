//! BLEU, chrF and TER of a file of translations against a file of references, with sacreBLEU's
//! numbers.
//!
//!     cargo run --release --example score -- output.de reference.de

use regard::metrics::{Bleu, Chrf, Metric, Ter, lines};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut files = std::env::args().skip(1);
    let mut next = || files.next().ok_or("usage: score HYPOTHESES REFERENCES");
    let hypotheses = lines(&std::fs::read_to_string(next()?)?);
    let references = [lines(&std::fs::read_to_string(next()?)?)];
    for metric in [&Bleu::default() as &dyn Metric, &Chrf::default(), &Ter::default()] {
        let score = metric.corpus(&hypotheses, &references)?;
        println!("{} {:.2} ({})", metric.name(), score.score, score.signature);
    }
    Ok(())
}
