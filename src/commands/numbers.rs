//! Numbers on the command line: every option has a range, and the message of a value outside of it
//! states the range.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Cores of one machine.
pub(crate) const THREADS: RangeInclusive<usize> = 1..=1024;
/// Hypotheses of a sentence.
pub(crate) const BEAM: RangeInclusive<usize> = 1..=1000;
/// Tokens of a sentence.
pub(crate) const TOKENS: RangeInclusive<usize> = 1..=100_000;
/// Sentences, lines and pairs.
pub(crate) const SENTENCES: RangeInclusive<usize> = 1..=1_000_000_000;
/// Steps or passes of a training.
pub(crate) const STEPS: RangeInclusive<u64> = 1..=1_000_000_000_000;
/// Seconds of a measurement or a wait: a week.
pub(crate) const SECONDS: RangeInclusive<f64> = 0.0..=604_800.0;

// One function for each type: the type of a literal range would not follow from the field that it is for.

/// Reads a whole number within a range.
pub(crate) fn whole(range: RangeInclusive<usize>) -> impl Parse<usize> {
    within(range, "whole number")
}

/// The same for steps, which may be more than memory holds.
pub(crate) fn whole_u64(range: RangeInclusive<u64>) -> impl Parse<u64> {
    within(range, "whole number")
}

/// The same for rates.
pub(crate) fn whole_u32(range: RangeInclusive<u32>) -> impl Parse<u32> {
    within(range, "whole number")
}

/// The same for ports.
pub(crate) fn whole_u16(range: RangeInclusive<u16>) -> impl Parse<u16> {
    within(range, "whole number")
}

/// Reads a number within a range; NaN lies in none.
pub(crate) fn decimal(range: RangeInclusive<f64>) -> impl Parse<f64> {
    within(range, "number")
}

/// The same for what models compute with.
pub(crate) fn decimal_f32(range: RangeInclusive<f32>) -> impl Parse<f32> {
    within(range, "number")
}

/// What clap accepts as the reader of a value.
pub(crate) trait Parse<T>: Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {}

impl<T, F: Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static> Parse<T> for F {}

fn within<T>(range: RangeInclusive<T>, kind: &'static str) -> impl Parse<T>
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text: &str| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("a {kind} from {} to {} is needed", range.start(), range.end()))
    }
}
