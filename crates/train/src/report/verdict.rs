//! A verdict on how a run is going.

use regard_core::formats::{Record, StepRecord, ValidationRecord};

/// How a run is going.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// There has been at most one validation.
    Unknown,
    /// The last validations are the best.
    Improving,
    /// The best validation was several validations ago.
    Stalled,
    /// The validation loss rises while the training loss falls.
    Overfitting,
    /// The training loss rises.
    RateTooHigh,
}

/// A verdict on a run, with advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The trend.
    pub trend: Trend,
    /// The verdict as a sentence.
    pub text: String,
    /// What to do; may be empty.
    pub advice: &'static str,
}

/// A rise of the validation loss, in nats, that exceeds noise.
const RISE: f64 = 0.02;
/// A rise of the training loss that exceeds noise: in nats, and relative to the loss.
const TRAINING_RISE: (f64, f64) = (0.15, 0.08);
/// The number of validations without improvement after which a run has stalled.
const STALLED: usize = 3;

/// The verdict on a run from the lines of its log.
pub fn verdict(records: &[Record]) -> Verdict {
    let (mut steps, mut validations): (Vec<&StepRecord>, Vec<&ValidationRecord>) = (Vec::new(), Vec::new());
    for record in records {
        match record {
            Record::Step(r) => steps.push(r),
            Record::Validation(r) if r.weights == "step" => validations.push(r),
            Record::Validation(_) => {}
        }
    }
    rate_too_high(&steps).unwrap_or_else(|| of_validations(&steps, &validations))
}

/// Whether the training loss has risen and stayed high.
fn rate_too_high(steps: &[&StepRecord]) -> Option<Verdict> {
    const MEAN: usize = 5;
    let means: Vec<(u64, f64)> = steps
        .windows(MEAN)
        .map(|w| (w[MEAN - 1].step, w.iter().map(|r| r.nll.unwrap_or(r.loss)).sum::<f64>() / MEAN as f64))
        .collect();
    let (&(_, last), before) = means.split_last()?;
    let &(at, least) = before.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    if last < least + TRAINING_RISE.0.max(TRAINING_RISE.1 * least) {
        return None;
    }
    Some(Verdict {
        trend: Trend::RateTooHigh,
        text: format!(
            "The learning rate is too high: the training loss has risen from {least:.2} (around step {at}) to {last:.2}."
        ),
        advice: "Halve schedule.peak and resume (a run with a time limit must be started again), or start again with a \
                 longer schedule.warmup; optimizer.clip=1 helps against single bad steps.",
    })
}

fn of_validations(steps: &[&StepRecord], validations: &[&ValidationRecord]) -> Verdict {
    let Some((last, before)) = validations.split_last().filter(|(_, before)| !before.is_empty()) else {
        let text = "It is too early to say how the run is going.".to_owned();
        return Verdict { trend: Trend::Unknown, text, advice: "" };
    };
    let least = before.iter().min_by(|a, b| a.loss.total_cmp(&b.loss)).unwrap_or(last);
    let since = validations.iter().filter(|r| r.step > least.step);
    let rising = since.clone().count() >= 2 && since.clone().all(|r| r.loss > least.loss);
    if rising && last.loss > least.loss + RISE && training_falls(steps, least.step) {
        let still = before.iter().all(|r| r.bleu < last.bleu);
        return Verdict {
            trend: Trend::Overfitting,
            text: format!(
                "Overfitting since step {}: the validation loss has risen from {:.3} to {:.3} while the training loss fell{}.",
                least.step,
                least.loss,
                last.loss,
                if still { "; BLEU still improves" } else { "" }
            ),
            advice: "More text helps most, then more dropout (model.dropout), a smaller model, or fewer steps. \
                     The best model so far is the one that is kept.",
        };
    }
    let best = before.iter().max_by(|a, b| a.bleu.total_cmp(&b.bleu)).unwrap_or(last);
    if last.bleu > best.bleu || last.loss < least.loss {
        let previous = before[before.len() - 1];
        return Verdict {
            trend: Trend::Improving,
            text: format!(
                "Still improving: BLEU {:+.2} and loss {:+.3} since the validation at step {}.",
                last.bleu - previous.bleu,
                last.loss - previous.loss,
                previous.step
            ),
            advice: "A run that ends like this gains from more steps.",
        };
    }
    let waited = validations.iter().filter(|r| r.step > best.step).count();
    if waited < STALLED {
        let text = format!("No better than at step {} (BLEU {:.2}) for the moment.", best.step, best.bleu);
        return Verdict { trend: Trend::Improving, text, advice: "" };
    }
    Verdict {
        trend: Trend::Stalled,
        text: format!(
            "No improvement since step {} (BLEU {:.2}), for {waited} validations.",
            best.step, best.bleu
        ),
        advice: "More steps will hardly help; more text, a larger model or a learning rate that falls to 0 may.",
    }
}

/// Whether the training loss is lower now than it was around a step.
fn training_falls(steps: &[&StepRecord], step: u64) -> bool {
    let loss = |r: &&StepRecord| r.nll.unwrap_or(r.loss);
    let then = steps.iter().rfind(|r| r.step <= step).map(loss);
    let now = steps.last().map(loss);
    then.zip(now).is_some_and(|(then, now)| now < then)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(step: u64, nll: f64) -> Record {
        Record::Step(StepRecord {
            step,
            epoch: 1.0,
            loss: nll + 1.0,
            nll: Some(nll),
            rate: 1e-3,
            gradient_norm: 1.0,
            tokens_per_second: 1000.0,
            seconds: step as f64,
        })
    }

    fn validation(step: u64, loss: f64, bleu: f64) -> Record {
        Record::Validation(ValidationRecord {
            step,
            loss,
            perplexity: loss.exp(),
            bleu,
            chrf: bleu,
            seconds: step as f64,
            weights: "step".into(),
            samples: Vec::new(),
        })
    }

    /// A log of validations every 100 steps, with a training loss that changes linearly.
    fn log(training: (f64, f64), validations: &[(f64, f64)]) -> Vec<Record> {
        let n = 10 * validations.len() as u64;
        let mut records = Vec::new();
        for i in 1..=n {
            let part = i as f64 / n as f64;
            records.push(step(10 * i, training.0 + part * (training.1 - training.0)));
            if i.is_multiple_of(10) {
                let (loss, bleu) = validations[i as usize / 10 - 1];
                records.push(validation(10 * i, loss, bleu));
            }
        }
        records
    }

    #[test]
    fn the_words_fit_the_curves() {
        let falling = (4.0, 2.0);
        for (name, records, trend, says) in [
            ("nothing", Vec::new(), Trend::Unknown, "too early"),
            ("one validation", log(falling, &[(4.0, 1.0)]), Trend::Unknown, "too early"),
            (
                "better each time",
                log(falling, &[(4.0, 1.0), (3.0, 9.0), (2.8, 9.8)]),
                Trend::Improving,
                "BLEU +0.80 and loss -0.200 since the validation at step 200",
            ),
            (
                "one worse",
                log(falling, &[(4.0, 1.0), (3.0, 9.0), (3.0, 8.8)]),
                Trend::Improving,
                "No better than at step 200",
            ),
            (
                "overfitting",
                log(falling, &[(4.0, 1.0), (2.5, 9.0), (2.6, 9.0), (2.7, 8.0)]),
                Trend::Overfitting,
                "Overfitting since step 200: the validation loss has risen from 2.500 to 2.700",
            ),
            (
                "overfitting, and BLEU improves",
                log(falling, &[(4.0, 1.0), (2.5, 9.0), (2.6, 9.1), (2.7, 9.5)]),
                Trend::Overfitting,
                "BLEU still improves",
            ),
            (
                "stalled",
                log(falling, &[(4.0, 1.0), (2.5, 9.0), (2.5, 8.9), (2.5, 8.8), (2.5, 8.9)]),
                Trend::Stalled,
                "No improvement since step 200 (BLEU 9.00), for 3 validations",
            ),
            (
                "diverging",
                log((2.0, 4.0), &[(4.0, 1.0), (4.5, 0.5)]),
                Trend::RateTooHigh,
                "The learning rate is too high: the training loss has risen from 2.",
            ),
        ] {
            let found = verdict(&records);
            assert_eq!(found.trend, trend, "{name}: {found:?}");
            assert!(found.text.contains(says), "{name}: {found:?}");
        }
    }
}
