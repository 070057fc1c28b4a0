//! Trains a small English–French translator on the built-in corpus and translates a sentence with
//! it.
//!
//!     cargo run --release --example train -- DIR [STEPS]

use regard::model::Preset;
use regard::train::config::Every;
use regard::train::{Progress, StepRecord, TrainConfig, ValidationRecord, train};
use regard::{Isa, Translator};
use std::path::Path;
use std::sync::atomic::AtomicBool;

struct Print;

impl Progress for Print {
    fn message(&mut self, text: &str) {
        println!("{text}");
    }

    fn step(&mut self, record: &StepRecord, total: Option<u64>) {
        if record.step.is_multiple_of(50) {
            println!("step {} of {}: loss {:.3}", record.step, total.unwrap_or(0), record.loss);
        }
    }

    fn validated(&mut self, record: &ValidationRecord, _best: bool) {
        println!("validation: loss {:.3}, BLEU {:.1}", record.loss, record.bleu);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let out = arguments.next().ok_or("usage: train DIR [STEPS]")?;
    let steps = arguments.next().map_or(Ok(300), |n| n.parse())?;
    let out = Path::new(&out);
    std::fs::create_dir_all(out)?;

    // One sentence per line, its translation on the same line of the other file.
    let pairs = regard_sample_corpus::corpus(1, 5_000).train;
    let (source, target) = (out.join("train.en"), out.join("train.fr"));
    std::fs::write(&source, pairs.iter().map(|(english, _)| format!("{english}\n")).collect::<String>())?;
    std::fs::write(&target, pairs.iter().map(|(_, french)| format!("{french}\n")).collect::<String>())?;

    let mut config = TrainConfig::new(Preset::Tiny);
    config.data.src = vec![source];
    config.data.tgt = vec![target];
    config.steps = Some(steps);
    config.validation.every = Every::Steps(steps);
    train(config, &out.join("model"), false, Isa::best(), &AtomicBool::new(false), &mut Print)?;

    let translator = Translator::load(&[out.join("model")], Isa::best(), 2)?;
    let lines = translator.translate(&["The cat sleeps."], &translator.options())?;
    println!("The cat sleeps. → {}", lines[0].best().text);
    Ok(())
}
