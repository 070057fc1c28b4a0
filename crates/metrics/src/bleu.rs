//! BLEU (Papineni et al., 2002): the geometric mean of clipped n-gram precisions, times a brevity
//! penalty.

use std::fmt;
use std::str::FromStr;

use super::ngram::{Interner, Ngrams, overlap};
use super::tokenize::{Tokenizer, trim_end, words};
use super::{Details, MAX_ORDER, Metric};
use crate::{Error, Result};

/// How to score an n-gram order without a match (Chen and Cherry, 2014).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Smoothing {
    /// No smoothing: the score becomes 0.
    None,
    /// Replaces zero matches by this count; sacreBLEU's default is 0.1.
    Floor(f64),
    /// Adds this count to matches and totals from order 2 on; sacreBLEU's default is 1.
    AddK(f64),
    /// Counts ½, ¼, … of a match for successive orders without one, as mteval does.
    #[default]
    Exp,
}

impl fmt::Display for Smoothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Smoothing::None => f.write_str("none"),
            Smoothing::Floor(value) => write!(f, "floor[{value:.2}]"),
            Smoothing::AddK(value) => write!(f, "add-k[{value:.2}]"),
            Smoothing::Exp => f.write_str("exp"),
        }
    }
}

impl FromStr for Smoothing {
    type Err = Error;

    /// Parses `none`, `floor`, `add-k` or `exp`; `floor:0.2` and `add-k:0.5` set the value.
    fn from_str(text: &str) -> Result<Self> {
        let (name, value) = match text.split_once(':') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let parsed = match value.map(str::parse::<f64>) {
            Some(Ok(value)) => Some(value),
            None => None,
            Some(Err(_)) => return Err(unknown_smoothing(text)),
        };
        match (name, parsed) {
            ("none", None) => Ok(Smoothing::None),
            ("exp", None) => Ok(Smoothing::Exp),
            ("floor", value) => Ok(Smoothing::Floor(value.unwrap_or(0.1))),
            ("add-k", value) => Ok(Smoothing::AddK(value.unwrap_or(1.0))),
            _ => Err(unknown_smoothing(text)),
        }
    }
}

fn unknown_smoothing(text: &str) -> Error {
    let accepted = "accepted: none, exp, floor, add-k, floor:NUMBER, add-k:NUMBER";
    Error::config("smoothing", format!("unknown smoothing {text:?}; {accepted}"))
}

/// BLEU and its settings; the default is sacreBLEU's.
#[derive(Clone, Debug, PartialEq)]
pub struct Bleu {
    /// How to split text into tokens.
    pub tokenizer: Tokenizer,
    /// Whether case is ignored.
    pub lowercase: bool,
    /// How to score an order without a match.
    pub smoothing: Smoothing,
    /// The maximum n-gram order.
    pub max_order: usize,
    /// Whether to skip orders for which the hypothesis is too short; meant for single sentences.
    pub effective_order: bool,
}

impl Default for Bleu {
    fn default() -> Self {
        Bleu {
            tokenizer: Tokenizer::V13a,
            lowercase: false,
            smoothing: Smoothing::Exp,
            max_order: 4,
            effective_order: false,
        }
    }
}

impl Bleu {
    fn prepare(&self, line: &str) -> String {
        if self.lowercase {
            self.tokenizer.apply(trim_end(&line.to_lowercase()))
        } else {
            self.tokenizer.apply(trim_end(line))
        }
    }
}

impl Metric for Bleu {
    fn key(&self) -> &'static str {
        "bleu"
    }

    fn name(&self) -> String {
        "BLEU".into()
    }

    fn check(&self) -> Result<()> {
        if !(1..=MAX_ORDER).contains(&self.max_order) {
            let message = format!("{} is not an n-gram order; accepted: 1 to {MAX_ORDER}", self.max_order);
            return Err(Error::config("max_order", message));
        }
        match self.smoothing {
            Smoothing::Floor(value) | Smoothing::AddK(value) if !value.is_finite() || value < 0.0 => Err(
                Error::config("smoothing", format!("{value} is not a smoothing value; at least 0 is needed")),
            ),
            _ => Ok(()),
        }
    }

    /// Returns the hypothesis length, the length of the closest reference, the matches of each
    /// order and the totals of each order.
    fn segment(&self, hypothesis: &str, references: &[&str]) -> Vec<f64> {
        let texts: Vec<String> =
            std::iter::once(&hypothesis).chain(references).map(|text| self.prepare(text)).collect();
        let mut interner = Interner::new();
        let tokens: Vec<Vec<u32>> = texts.iter().map(|text| interner.sequence(words(text))).collect();

        let hyp_len = tokens[0].len();
        let lengths = tokens[1..].iter().map(Vec::len);
        let ref_len = lengths.min_by_key(|&len| (len.abs_diff(hyp_len), len)).unwrap_or(0);

        let mut counts = vec![0.0; 2 + 2 * self.max_order];
        counts[0] = hyp_len as f64;
        counts[1] = ref_len as f64;
        let mut ngrams = Ngrams::new(&tokens);
        for order in 0..self.max_order {
            if order > 0 {
                ngrams.lengthen();
            }
            if ngrams.len(0) == 0 {
                break;
            }
            // Clip the matches of an n-gram at its maximum count in any one reference.
            let in_hypothesis = ngrams.counts(0);
            let mut allowed = vec![0; in_hypothesis.len()];
            for reference in 1..tokens.len() {
                allowed.iter_mut().zip(ngrams.counts(reference)).for_each(|(a, b)| *a = b.max(*a));
            }
            counts[2 + order] = overlap(&in_hypothesis, &allowed) as f64;
            counts[2 + self.max_order + order] = ngrams.len(0) as f64;
        }
        counts
    }

    fn compute(&self, counts: &[f64]) -> (f64, Details) {
        let (hyp_len, ref_len) = (counts[0], counts[1]);
        let (matches, totals) = counts[2..].split_at(self.max_order);
        let brevity_penalty = if hyp_len >= ref_len {
            1.0
        } else if hyp_len > 0.0 {
            (1.0 - ref_len / hyp_len).exp()
        } else {
            0.0
        };
        let (precisions, orders) = self.precisions(matches, totals);
        let score = if matches.iter().all(|&m| m == 0.0) {
            0.0
        } else {
            let logs: f64 = precisions[..orders].iter().map(|&p| floored_ln(p)).sum();
            brevity_penalty * (logs / orders as f64).exp()
        };
        let integers = |values: &[f64]| values.iter().map(|&v| v as u64).collect();
        let details = Details::Bleu {
            counts: integers(matches),
            totals: integers(totals),
            precisions,
            brevity_penalty,
            hyp_len: hyp_len as u64,
            ref_len: ref_len as u64,
        };
        (score, details)
    }

    fn settings(&self) -> String {
        let case = if self.lowercase { "lc" } else { "mixed" };
        let effective = if self.effective_order { "yes" } else { "no" };
        format!("case:{case}|eff:{effective}|tok:{}|smooth:{}", self.tokenizer, self.smoothing)
    }
}

impl Bleu {
    /// The smoothed precision of each order in percent, and the number of orders that count.
    fn precisions(&self, matches: &[f64], totals: &[f64]) -> (Vec<f64>, usize) {
        let mut precisions = vec![0.0; self.max_order];
        let mut orders = self.max_order;
        if matches.iter().all(|&m| m == 0.0) {
            return (precisions, orders);
        }
        let mut halving = 1.0;
        for (i, (&matched, &total)) in matches.iter().zip(totals).enumerate() {
            let (matched, total) = match self.smoothing {
                Smoothing::AddK(k) if i > 0 => (matched + k, total + k),
                _ => (matched, total),
            };
            if total == 0.0 {
                break;
            }
            if self.effective_order {
                orders = i + 1;
            }
            precisions[i] = if matched > 0.0 {
                100.0 * matched / total
            } else {
                match self.smoothing {
                    Smoothing::Exp => {
                        halving *= 2.0;
                        100.0 / (halving * total)
                    }
                    Smoothing::Floor(value) => 100.0 * value / total,
                    Smoothing::None | Smoothing::AddK(_) => 0.0,
                }
            };
        }
        (precisions, orders)
    }
}

/// sacreBLEU's logarithm: a precision of 0 gives a score of 0 rather than an undefined one.
fn floored_ln(value: f64) -> f64 {
    if value == 0.0 { -9_999_999_999.0 } else { value.ln() }
}
