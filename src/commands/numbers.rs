//! Numbers on the command line: every option has a range, and the error for a value outside it
//! states the range.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The number of cores of one machine.
pub(crate) const THREADS: RangeInclusive<usize> = 1..=1024;
/// The beam size.
pub(crate) const BEAM: RangeInclusive<usize> = 1..=1000;
/// The number of tokens of a sentence.
pub(crate) const TOKENS: RangeInclusive<usize> = 1..=100_000;
/// The number of sentences, lines or pairs.
pub(crate) const SENTENCES: RangeInclusive<usize> = 1..=1_000_000_000;
/// The number of steps or passes of a training.
pub(crate) const STEPS: RangeInclusive<u64> = 1..=1_000_000_000_000;
/// The duration of a measurement or a wait in seconds: up to a week.
pub(crate) const SECONDS: RangeInclusive<f64> = 0.0..=604_800.0;

// One function for each type, because the type of a literal range would not be inferred from its
// field.

/// Parses an integer within a range.
pub(crate) fn whole(range: RangeInclusive<usize>) -> impl Parse<usize> {
    within(range, "whole number")
}

/// The same for steps, which may exceed `usize`.
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

/// Parses a number within a range, which excludes NaN.
pub(crate) fn decimal(range: RangeInclusive<f64>) -> impl Parse<f64> {
    within(range, "number")
}

/// The same in f32, for model settings.
pub(crate) fn decimal_f32(range: RangeInclusive<f32>) -> impl Parse<f32> {
    within(range, "number")
}

/// What clap accepts as a value parser.
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, ArgAction, Command, Parser};
    use std::any::TypeId;

    #[test]
    fn numbers_lie_in_their_range() {
        let (few, part) = (whole(1..=9), decimal(0.0..=1.0));
        assert_eq!((few("1"), few("9"), part("0"), part("1e-3")), (Ok(1), Ok(9), Ok(0.0), Ok(0.001)));
        for text in ["0", "10", "-1", "", "x", "1.5", "99999999999999999999999"] {
            assert_eq!(few(text).unwrap_err(), "a whole number from 1 to 9 is needed", "{text}");
        }
        for text in ["1.1", "-0.1", "nan", "inf", "-inf", "1e400", ""] {
            assert_eq!(part(text).unwrap_err(), "a number from 0 to 1 is needed", "{text}");
        }
    }

    /// Values that must be rejected for every option of this type, if the option takes a number.
    fn refused(argument: &Arg) -> Option<&'static [&'static str]> {
        let kind = argument.get_value_parser().type_id();
        let is = |id: TypeId| kind == id;
        if is(TypeId::of::<f64>()) || is(TypeId::of::<f32>()) {
            Some(&["nan", "inf", "-inf", "1e19", "-1e19", "1e300"])
        } else if is(TypeId::of::<usize>()) || is(TypeId::of::<u32>()) || is(TypeId::of::<i32>()) {
            Some(&["-1", "4294967295", "18446744073709551615", "1e3", "nan"])
        } else if is(TypeId::of::<u64>()) || is(TypeId::of::<i64>()) {
            Some(&["-1", "18446744073709551615", "1e3", "nan"])
        } else {
            (is(TypeId::of::<u16>()) || is(TypeId::of::<u8>())).then_some(&["-1", "65536"])
        }
    }

    /// The arguments that an option needs besides those that its command requires.
    fn company(flag: &str, command: &Command) -> &'static [&'static str] {
        let samples = command.get_arguments().any(|argument| argument.get_id() == "sample");
        match (command.get_name(), flag) {
            (_, "temperature" | "top-k" | "top-p") => &["--sample"],
            (_, "seed") if samples => &["--sample"],
            // For `bench`, which measures a preset or a model.
            ("translate", _) if command.get_arguments().any(|a| a.get_id() == "preset") => {
                &["--preset", "tiny"]
            }
            ("tokenize", "top") => &["--model", "m", "--count"],
            ("tokenize", "vocabulary") => &["--train", "f", "--out", "o"],
            ("tokenize", _) => &["--model", "m"],
            _ => &[],
        }
    }

    /// A value that an argument accepts.
    fn acceptable(argument: &Arg) -> String {
        let default = argument.get_default_values().first().and_then(|value| value.to_str());
        let possible = argument.get_possible_values();
        // A vocabulary has an end token and a word.
        let usual = if argument.get_id() == "vocabulary" { "2" } else { "1" };
        let value = default.or_else(|| possible.first().map(|value| value.get_name())).unwrap_or(usual);
        value.to_owned()
    }

    fn check(command: &Command, path: &[String], count: &mut usize) {
        for argument in command.get_arguments() {
            let flag = argument.get_long().unwrap_or(argument.get_id().as_str());
            let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
            let Some(values) = refused(argument).filter(|_| takes_value) else { continue };
            *count += 1;
            // The value must have the type of its field, or parsing panics.
            let mut line = path.to_vec();
            for required in command.get_arguments().filter(|other| other.is_required_set()) {
                line.extend(required.get_long().map(|long| format!("--{long}")));
                line.push(acceptable(required));
            }
            line.extend(company(flag, command).iter().map(|word| word.to_string()));
            line.extend([format!("--{flag}"), acceptable(argument)]);
            if let Err(error) = crate::cli::Arguments::try_parse_from(&line) {
                panic!("{line:?}: {error}");
            }
            // Every number is a valid seed; the others are checked against the model or the text.
            if ["seed", "layer", "head", "vocabulary"].contains(&flag) {
                continue;
            }
            for value in values {
                let parser = argument.get_value_parser().clone();
                let number = Arg::new("n").long("n").value_parser(parser).allow_hyphen_values(true);
                let outcome = Command::new("test").arg(number).try_get_matches_from(["test", "--n", value]);
                let Err(error) = outcome else { panic!("{path:?} --{flag} {value} is accepted") };
                let message = error.to_string();
                let states_range = message.contains(" to ") || message.contains(" is not in ");
                assert!(states_range, "{path:?} --{flag}: {message}");
            }
        }
        for inner in command.get_subcommands() {
            check(inner, &[path, &[inner.get_name().to_owned()]].concat(), count);
        }
    }

    /// Every option of every command that takes a number rejects values that overflow, exhaust
    /// memory or wait forever.
    #[test]
    fn every_number_has_a_range() {
        let mut count = 0;
        check(&crate::cli::definitions(), &["regard".to_owned()], &mut count);
        assert!(count > 60, "{count} options with numbers were found");
    }
}
