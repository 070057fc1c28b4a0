//! The tick positions of an axis and the format of their labels.

/// A range with finite, ordered and distinct ends, for any input.
pub(super) fn sane_range(lo: f64, hi: f64) -> (f64, f64) {
    match (lo.is_finite(), hi.is_finite()) {
        (true, true) => {}
        (true, false) => return sane_range(lo, lo),
        (false, true) => return sane_range(hi, hi),
        (false, false) => return (0.0, 1.0),
    }
    // Clamped, so that the difference of the extremes of f64 does not overflow.
    let (lo, hi) = (lo.min(hi).clamp(-1e300, 1e300), lo.max(hi).clamp(-1e300, 1e300));
    let size = lo.abs().max(hi.abs());
    if hi - lo > size * 1e-9 && hi - lo > 1e-300 {
        (lo, hi)
    } else if size < 1e-290 {
        (-1.0, 1.0)
    } else {
        (lo - size * 0.5, hi + size * 0.5)
    }
}

/// The step of 1, 2 or 5 times a power of ten that divides `span` into at most `most` parts.
fn nice_step(span: f64, most: usize) -> f64 {
    let rough = span / most.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|m| m * power)
        .into_iter()
        .find(|s| *s >= rough * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// At most `most` + 1 round numbers within `lo..=hi`, at steps of 1, 2 or 5 times a power of ten.
pub fn linear_ticks(lo: f64, hi: f64, most: usize) -> Vec<f64> {
    let (lo, hi) = sane_range(lo, hi);
    let step = nice_step(hi - lo, most);
    let first = (lo / step - 1e-9).ceil();
    let count = ((hi / step + 1e-9).floor() - first).max(-1.0) as usize;
    // Divides by the inverse if the step is below one: 3 / 10 is the number nearest to 0.3, 3 × 0.1
    // is not.
    let inverse = (1.0 / step).round();
    let tick = |k: f64| if step < 1.0 && inverse < 1e15 { k / inverse } else { k * step };
    (0..=count).map(|i| tick(first + i as f64) + 0.0).filter(|t| *t <= hi + step * 1e-6).collect()
}

/// Round numbers for a logarithmic axis: powers of ten, and for short ranges also 2 and 5 times
/// those.
pub fn log_ticks(lo: f64, hi: f64, most: usize) -> Vec<f64> {
    let (lo, hi) = sane_range(lo, hi);
    if lo <= 0.0 {
        return Vec::new();
    }
    let (from, to) = (lo.log10().floor() as i32, hi.log10().ceil() as i32);
    let within = |folds: &[f64], stride: i32| -> Vec<f64> {
        let powers = (from..=to).filter(|p| p.rem_euclid(stride) == 0);
        let all =
            powers.flat_map(|p| folds.iter().map(move |m| format!("{m}e{p}").parse().unwrap_or(f64::NAN)));
        all.filter(|t| (lo * (1.0 - 1e-9)..=hi * (1.0 + 1e-9)).contains(t)).collect()
    };
    let most = most.max(2);
    for folds in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]] {
        let ticks = within(folds, 1);
        if ticks.len() < 2 {
            break;
        }
        if ticks.len() <= most {
            return ticks;
        }
    }
    let decades = within(&[1.0], 1).len();
    if decades < 2 {
        return linear_ticks(lo, hi, most).into_iter().filter(|t| *t > 0.0).collect();
    }
    (2..).map(|stride| within(&[1.0], stride)).find(|t| t.len() <= most).unwrap_or_default()
}

/// Formats a number for an axis: with as many digits as steps of `step` need, grouped thousands,
/// and `e` notation for very large and small numbers.
pub fn format_number(value: f64, step: f64) -> String {
    if value.is_nan() {
        return "NaN".to_string();
    }
    let sign = if value < 0.0 { "−" } else { "" };
    let size = value.abs();
    if size.is_infinite() {
        return format!("{sign}∞");
    }
    if size == 0.0 {
        return "0".to_string();
    }
    let step = if step.is_finite() && step != 0.0 { step.abs() } else { size };
    let exponent = |v: f64| (v.log10() + 1e-9).floor() as i32;
    if size >= 1e7 || (size < 1e-3 && exponent(step) < -4) {
        let digits = (exponent(size) - exponent(step)).clamp(0, 15) as usize;
        let text = format!("{size:.digits$e}");
        let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa = if mantissa.contains('.') {
            mantissa.trim_end_matches('0').trim_end_matches('.')
        } else {
            mantissa
        };
        return format!("{sign}{mantissa}e{power}");
    }
    let decimals = (-exponent(step)).clamp(0, 12) as usize;
    let text = format!("{size:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    // Four digits are not grouped: 2000, but 20,000.
    let whole = if whole.len() > 4 { with_commas(whole) } else { whole.to_owned() };
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// A whole number with grouped thousands: 1234567 as `1,234,567`.
pub fn grouped(number: u64) -> String {
    with_commas(&number.to_string())
}

fn with_commas(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The labels of ticks, all with the digits that the smallest distance between them needs.
pub(super) fn labels(ticks: &[f64], log: bool) -> Vec<String> {
    let step = ticks.windows(2).map(|w| (w[1] - w[0]).abs()).fold(f64::INFINITY, f64::min);
    ticks.iter().map(|&t| power_of_ten(&format_number(t, if log { own_step(t) } else { step }))).collect()
}

/// Converts `e` notation to a power of ten: `2.5e-7` to 2.5 × 10⁻⁷, `1e-5` to 10⁻⁵.
pub fn power_of_ten(number: &str) -> String {
    let Some((mantissa, exponent)) = number.split_once('e') else { return number.to_owned() };
    let raised: String = exponent
        .chars()
        .map(|c| match c {
            '-' => '⁻',
            c => c
                .to_digit(10)
                .map_or(c, |digit| ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize]),
        })
        .collect();
    match mantissa {
        "1" => format!("10{raised}"),
        "−1" => format!("−10{raised}"),
        mantissa => format!("{mantissa} × 10{raised}"),
    }
}

/// A number rounded to three digits, without trailing zeros.
pub(super) fn brief(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format_number(value, 1.0);
    }
    let rounded = format!("{value:.2e}").parse().unwrap_or(value);
    format_number(rounded, own_step(rounded))
}

/// The largest power of ten that divides a number of at most four digits.
fn own_step(value: f64) -> f64 {
    let power = 10f64.powf((value.abs().log10() + 1e-9).floor());
    let steps = [1.0, 0.1, 0.01, 0.001].map(|s| s * power);
    let whole = |s: &f64| (value / s - (value / s).round()).abs() < 1e-6;
    steps.into_iter().find(whole).unwrap_or(steps[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        for (n, want) in [(0, "0"), (999, "999"), (1000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(grouped(n), want);
        }
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(linear_ticks(0.0, 1.0, 5), [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        assert_eq!(linear_ticks(0.0, 0.3, 3), [0.0, 0.1, 0.2, 0.3]);
        assert_eq!(linear_ticks(3.2, 9.7, 7), [4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
        assert_eq!(linear_ticks(-1.0, 1.0, 4), [-1.0, -0.5, 0.0, 0.5, 1.0]);
        assert_eq!(
            linear_ticks(0.0, 8000.0, 8),
            [0.0, 1000.0, 2000.0, 3000.0, 4000.0, 5000.0, 6000.0, 7000.0, 8000.0]
        );
        assert_eq!(linear_ticks(0.0, 0.0007, 4), [0.0, 0.0002, 0.0004, 0.0006]);
        assert_eq!(linear_ticks(10.0, 0.0, 2), [0.0, 5.0, 10.0]);
    }

    #[test]
    fn ticks_of_impossible_ranges_are_few_and_finite() {
        let values =
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 5.0, -1e308, 1e308, 1e-310, 1.0 + 1e-15];
        for lo in values {
            for hi in values {
                for most in [0, 1, 7] {
                    for ticks in [linear_ticks(lo, hi, most), log_ticks(lo, hi, most)] {
                        assert!(ticks.len() <= most.max(2) + 2, "{lo} {hi} {most}: {ticks:?}");
                        assert!(ticks.iter().all(|t| t.is_finite()), "{lo} {hi}: {ticks:?}");
                        labels(&ticks, true);
                        labels(&ticks, false);
                    }
                }
            }
        }
    }

    #[test]
    fn log_ticks_are_powers_and_their_folds() {
        assert_eq!(log_ticks(1.0, 1000.0, 5), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(log_ticks(64.0, 4096.0, 8), [100.0, 200.0, 500.0, 1000.0, 2000.0]);
        assert_eq!(log_ticks(1e-9, 1.0, 5), [1e-8, 1e-6, 1e-4, 1e-2, 1.0]);
        assert_eq!(log_ticks(3.0, 4.0, 5), [3.0, 3.2, 3.4, 3.6, 3.8, 4.0]);
        assert!(log_ticks(-1.0, 10.0, 5).is_empty());
    }

    #[test]
    fn numbers_have_the_digits_that_their_step_needs() {
        assert_eq!(format_number(0.3, 0.1), "0.3");
        assert_eq!(format_number(0.25, 0.05), "0.25");
        assert_eq!(format_number(2000.0, 1000.0), "2000");
        assert_eq!(format_number(20000.0, 5000.0), "20,000");
        assert_eq!(format_number(1_250_000.0, 250_000.0), "1,250,000");
        assert_eq!(format_number(2.5e7, 5e6), "2.5e7");
        assert_eq!(format_number(2e-5, 1e-5), "2e-5");
        assert_eq!(format_number(0.0002, 0.0001), "0.0002");
        assert_eq!(format_number(-1.5, 0.5), "−1.5");
        assert_eq!(format_number(-0.0, 0.5), "0");
        assert_eq!(format_number(f64::NAN, 1.0), "NaN");
        assert_eq!(format_number(f64::NEG_INFINITY, 1.0), "−∞");
        assert_eq!(format_number(5.0, f64::NAN), "5");
        assert_eq!(labels(&[1e-6, 1e-5, 0.01], true), ["10⁻⁶", "10⁻⁵", "0.01"]);
        assert_eq!(["2.5e7", "−1e-12", "0.5"].map(power_of_ten), ["2.5 × 10⁷", "−10⁻¹²", "0.5"]);
        assert_eq!(labels(&[0.0, 0.5, 1.0], false), ["0", "0.5", "1.0"]);
        assert_eq!(labels(&[0.01, 0.1, 1.0, 10.0], true), ["0.01", "0.1", "1", "10"]);
        assert_eq!(labels(&[2.5, 3.2, 64.0, 4096.0, 0.0], true), ["2.5", "3.2", "64", "4096", "0"]);
        assert_eq!(
            [3.0, 0.51234, -12.345, 99_999.0, 1.5e-7].map(brief),
            ["3", "0.512", "−12.3", "100,000", "1.5e-7"]
        );
        assert_eq!([0.0, f64::NAN, f64::INFINITY, 1e300].map(brief), ["0", "NaN", "∞", "1e300"]);
    }
}
