//! From the absolute value to softmax: smooth maxima, their accuracy, and their gradients.

use crate::report::significant;
use crate::smooth::{
    Generator, log_sum_exp, log_sum_exp_unsafe_form, maximum, smooth_absolute, smooth_step, softmax, step,
};
use crate::{Column, Report, Setup, Study, Table};
use regard_core::{Key, Result};
use regard_plot::{LineChart, Series};

/// See [`crate::studies`].
pub(crate) const STUDY: Study = Study {
    name: "smooth-maximum",
    title: "A smooth maximum, and softmax as its gradient",
    question: "Where does softmax come from, and why the exponential?",
    zh: ["平滑的最大值，以及作为其梯度的 softmax", "softmax 从何而来？为什么是指数函数？"],
    about: "from |x| and the step to ln(Σ eᵏˣ)/k: error against k, other generators, overflow, softmax as the gradient",
    body: run,
};

/// The sharpness values k of the first pictures.
const SHARPNESS: [f64; 3] = [1.0, 3.0, 10.0];
/// The numbers of arguments n.
const COUNTS: [usize; 3] = [2, 10, 100];

fn run(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let draws = setup.choose(50, 2000, 20_000);
    setup.progress(format!("{draws} draws of 2, 10 and 100 numbers"));
    curves(report);
    let exact = errors(report, Key::new(setup.seed), draws);
    let family = generators(report, Key::new(setup.seed).child(1), draws);
    let off = gradient(report, Key::new(setup.seed).child(2), draws.min(1000));
    let limit = overflow(report);
    let (en, zh) = if off < 1e-3 && family.errors[0] > family.errors[1] {
        (
            "Softmax is the gradient of a smooth version of the maximum: it says how much each of several numbers is the largest. The \
         exponential comes closer to the maximum than a power does, and it alone treats all numbers alike, so that the weights add up \
         to one.",
            "softmax 是平滑的最大值的梯度：它说明几个数当中，每一个在多大程度上是最大的。指数函数比幂函数更接近最大值，而且只有它对所有的数\
          一视同仁，使权重之和为一。",
        )
    } else {
        (
            "In this run the numbers do not confirm that softmax is the gradient of the smooth maximum.",
            "在这次运行中，数字没有证实 softmax 是平滑最大值的梯度。",
        )
    };
    report.answer(en, zh);
    report.summary(format!(
        "$ln(Σ e^{{kx}})/k$ is never below the maximum and at most $ln(n)/k$ above it: {} equal numbers at $k = {}$ reach that, {}, and random \
         ones are {} above on average. At $k = {}$ a power is off by {}, the exponential by {} and a double exponential by {}. Softmax is \
         the gradient to within {}. As written, the formula is infinite from $kx = {limit}$ on; with the largest number taken out it \
         never is.",
        exact.n,
        exact.k,
        significant(exact.equal),
        significant(exact.mean),
        family.k,
        significant(family.errors[0]),
        significant(family.errors[1]),
        significant(family.errors[2]),
        significant(off),
    ));
    Ok(())
}

/// A curve over [−2, 2].
fn curve(name: String, f: impl Fn(f64) -> f64) -> Series {
    let points = (-200..=200).map(|i| f64::from(i) / 100.0);
    Series::new(name, points.map(|x| (x, f(x))).collect())
}

/// Plots the steps of the derivation.
fn curves(report: &mut Report) {
    report.heading("From $|x|$ to a smooth maximum");
    report.text(
        "The maximum of two numbers is $(x + y + |x − y|)/2$, so that a smooth $|x|$ gives a smooth maximum. The derivative of $|x|$ is a step, \
         −1 before 0 and 1 behind it. In place of the step stands the logistic curve $\\frac{1}{1 + e^{−kx}}$; integrated, it gives \
         $ln(e^{kx} + e^{−kx})/k$ in place of $|x|$, and with $x$ and $y$ in place of $x$ and $−x$ the smooth maximum $ln(e^{kx} + e^{ky})/k$. \
         The larger $k$, the sharper the corner.",
    );
    let mut steps = LineChart::new("The step and the logistic curve", "x", "derivative of max(x, 0)");
    let mut corners = LineChart::new("|x| and its smooth form", "x", "y");
    let mut maxima = LineChart::new("The maximum of x and 0", "x", "y");
    for k in SHARPNESS {
        steps = steps.series(curve(format!("1/(1 + e⁻ᵏˣ), k = {k}"), |x| smooth_step(x, k)));
        corners =
            corners.series(curve(format!("ln(eᵏˣ + e⁻ᵏˣ)/k, k = {k}"), |x| smooth_absolute(x, k)));
        maxima = maxima.series(curve(format!("ln(eᵏˣ + 1)/k, k = {k}"), |x| log_sum_exp(&[x, 0.0], k)));
    }
    // A step has no value to draw at 0, so it is drawn as two lines with one name.
    let flat = |from: f64, to: f64| vec![(from, step(from)), (to, step(from))];
    let mut points = flat(-2.0, -1e-9);
    points.extend(flat(1e-9, 2.0));
    steps = steps.series(Series::new("step", points).dashed());
    corners = corners.series(curve("|x|".into(), f64::abs).dashed());
    maxima = maxima.series(curve("max(x, 0)".into(), |x| maximum(x, 0.0)).dashed());
    report.picture("step", "The derivative of $max(x, 0)$, and what stands in its place.", steps);
    report.picture("absolute", "Its integral: a smooth absolute value, $ln(2)/k$ too high at 0.", corners);
    report.picture("two", "The smooth maximum of two numbers, of which one is 0.", maxima);
}

/// The errors at the largest n and the largest k.
struct Exact {
    n: usize,
    k: f64,
    mean: f64,
    equal: f64,
}

/// `n` uniform random numbers in [1, 2) for draw `draw`.
fn numbers(key: Key, draw: usize, n: usize) -> Vec<f64> {
    let key = key.child(n as u64).child(draw as u64);
    (0..n as u32).map(|i| 1.0 + f64::from(key.uniform(i))).collect()
}

fn top(xs: &[f64]) -> f64 {
    xs.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// How far `f` is above the maximum: the mean over random draws, and for n equal numbers, where the
/// error is largest.
fn error(key: Key, draws: usize, n: usize, f: impl Fn(&[f64]) -> f64) -> (f64, f64) {
    let over = |xs: &[f64]| f(xs) - top(xs);
    let mean = (0..draws).map(|draw| over(&numbers(key, draw, n))).sum::<f64>() / draws as f64;
    (mean, over(&vec![1.5; n]))
}

fn errors(report: &mut Report, key: Key, draws: usize) -> Exact {
    report.heading("$n$ numbers: the error against $k$");
    report.text(format!(
        "The same with $n$ numbers is $ln(Σ e^{{kx}})/k$. It is farthest from the maximum where all numbers are equal: then the sum is \
         $n·e^{{kx}}$, and the error is $ln(n)/k$. Below, {draws} draws of $n$ numbers between 1 and 2 for each $k$; the dashed lines are $ln(n)/k$."
    ));
    let mut table = Table::new(
        "error",
        "$ln(Σ e^{kx})/k$ minus the maximum of $n$ numbers between 1 and 2",
        [
            Column::new("n"),
            Column::new("k").decimals(2),
            Column::new("mean error"),
            Column::new("error of equal numbers"),
            Column::new("ln(n)/k"),
        ],
    );
    let mut chart = LineChart::new("Error of the smooth maximum", "k", "above the maximum").log_x().log_y();
    let mut exact = Exact { n: 0, k: 0.0, mean: 0.0, equal: 0.0 };
    for (colour, n) in COUNTS.into_iter().enumerate() {
        let (mut means, mut bounds) = (Vec::new(), Vec::new());
        for power in (-2..=8).step_by(2) {
            let k = 2f64.powi(power);
            let (mean, equal) = error(key, draws, n, |xs| log_sum_exp(xs, k));
            let bound = (n as f64).ln() / k;
            table.row([n.into(), k.into(), mean.into(), equal.into(), bound.into()]);
            means.push((k, mean));
            bounds.push((k, bound));
            exact = Exact { n, k, mean, equal };
        }
        chart = chart
            .series(Series::new(format!("{n} numbers, mean"), means).markers().colour(colour))
            .series(Series::new(format!("ln({n})/k"), bounds).dashed().colour(colour));
    }
    report.table(table);
    report.picture(
        "error",
        "Random numbers are closer to their maximum than the bound, and all the closer the larger k.",
        chart,
    );
    exact
}

/// The errors of the generators at one k: power, exponential, double exponential.
struct Family {
    k: f64,
    errors: [f64; 3],
}

fn generators(report: &mut Report, key: Key, draws: usize) -> Family {
    report.heading("Other generators: $g^{−1}(Σ g(x))$");
    report.text(
        "Any $g$ that grows fast enough makes a smooth maximum $g^{−1}(Σ g(x))$. A power $x^k$ is simple (it is the $k$-norm), but grows slowly and \
         takes no negative numbers: with equal numbers it is wrong by the factor $n^{1/k}$. The double exponential $e^{e^{kx}}$ grows \
         faster and is closer, but where $kx$ is far below 0 it cannot tell numbers apart. Only the exponential treats all numbers alike: \
         adding $c$ to all of them adds $c$ to the result, and its gradient sums to one.",
    );
    let mut table = Table::new(
        "generators",
        "Mean error of 10 numbers between 1 and 2, and the sum of the gradient, by generator",
        [
            Column::new("k").decimals(0),
            Column::new("power"),
            Column::new("exponential"),
            Column::new("double exponential"),
            Column::new("Σ gradient, power").decimals(4),
            Column::new("Σ gradient, exponential").decimals(4),
            Column::new("Σ gradient, double").decimals(4),
        ],
    );
    let names = ["xᵏ", "eᵏˣ", "exp(eᵏˣ)"];
    let mut curves = names.map(|_| Vec::new());
    let sample = numbers(key, 0, 10);
    let mut found = Family { k: 0.0, errors: [0.0; 3] };
    for power in 0..=5 {
        let k = 2f64.powi(power);
        let family = [Generator::Power(k), Generator::Exponential(k), Generator::DoubleExponential(k)];
        let errors = family.map(|generator| error(key, draws, 10, |xs| generator.maximum(xs)).0);
        let sums = family.map(|generator| generator.gradient(&sample).iter().sum::<f64>());
        table.row([k].iter().chain(&errors).chain(&sums).map(|x| (*x).into()));
        for (curve, error) in curves.iter_mut().zip(errors) {
            curve.push((k, error));
        }
        if power == 1 {
            found = Family { k, errors };
        }
    }
    let mut chart =
        LineChart::new("Three generators", "k", "mean error, 10 numbers of [1, 2)").log_x().log_y();
    // Below this, only rounding errors remain.
    chart.y.range = Some((1e-8, 100.0));
    for (name, points) in names.into_iter().zip(curves) {
        chart = chart.series(Series::new(format!("g = {name}"), points).markers());
    }
    report.table(table);
    report.picture(
        "generators",
        "The faster $g$ grows, the closer $g^{−1}(Σ g(x))$ is to the maximum.",
        chart,
    );
    found
}

/// Compares softmax with finite differences, and returns the largest difference.
fn gradient(report: &mut Report, key: Key, draws: usize) -> f64 {
    report.heading("Softmax is the gradient");
    let (k, h) = (2.0, 1e-5);
    let (mut most, mut sum) = (0f64, 0f64);
    for draw in 0..draws {
        let xs = numbers(key, draw, 10);
        let soft = softmax(&xs, k);
        sum = sum.max((soft.iter().sum::<f64>() - 1.0).abs());
        for (i, weight) in soft.iter().enumerate() {
            let at = |step: f64| {
                let mut moved = xs.clone();
                moved[i] += step;
                log_sum_exp(&moved, k)
            };
            most = most.max((weight - (at(h) - at(-h)) / (2.0 * h)).abs());
        }
    }
    report.text(format!(
        "The derivative of $ln(Σ e^{{kx}})/k$ with respect to one of its numbers is $\\frac{{e^{{kx}}}}{{Σ e^{{kx}}}}$: softmax. It says how much each number is the largest, \
         and is what attention weighs its values with. Against differences of the smooth maximum itself, over {draws} draws of 10 numbers, \
         softmax differs by at most {}; its weights sum to one within {}.",
        significant(most),
        significant(sum)
    ));
    let mut chart = LineChart::new("Softmax of (x, 0)", "x", "weight of x");
    for k in SHARPNESS {
        chart = chart.series(curve(format!("k = {k}"), |x| softmax(&[x, 0.0], k)[0]));
    }
    report.picture(
        "softmax",
        "With two numbers softmax is the logistic curve that the derivation began with.",
        chart,
    );
    most
}

/// Shows where the direct formula overflows, and returns the first size of kx at which it is
/// infinite.
fn overflow(report: &mut Report) -> f64 {
    report.heading("The form that does not overflow");
    report.text(
        "$e^{kx}$ leaves the range of 64-bit numbers near $kx = 709$ and vanishes near −745, and a 32-bit one near 88. With the largest number taken out, \
         $max + ln(Σ e^{k(x − max)})/k$, every exponent is 0 or less and one of them is 0: nothing overflows, and the logarithm is of at \
         least 1.",
    );
    let mut table = Table::new(
        "overflow",
        "The smooth maximum of $x$ and $x − 1$ at $k = 1$, as written and in the safe form",
        [Column::new("x"), Column::new("as written").decimals(6), Column::new("safe form").decimals(6)],
    );
    let mut limit = f64::INFINITY;
    for x in [-1000.0, -100.0, 0.0, 100.0, 700.0, 709.0, 710.0, 1000.0, 1e6] {
        let xs = [x, x - 1.0];
        let written = log_sum_exp_unsafe_form(&xs, 1.0);
        if written == f64::INFINITY {
            limit = limit.min(x);
        }
        table.row([x.into(), written.into(), log_sum_exp(&xs, 1.0).into()]);
    }
    report.table(table);
    limit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::smoke;

    #[test]
    fn errors_keep_the_bound_and_faster_generators_are_closer() {
        let report = smoke(&STUDY);
        let errors = report.find_table("error").unwrap();
        assert_eq!(errors.rows.len(), 18);
        for row in 0..errors.rows.len() {
            let get = |column| errors.number(row, column).unwrap();
            assert!(get("mean error") >= 0.0 && get("mean error") <= get("ln(n)/k"));
            assert!((get("error of equal numbers") - get("ln(n)/k")).abs() < 1e-9);
        }
        let family = report.find_table("generators").unwrap();
        for row in 0..family.rows.len() {
            let get = |column| family.number(row, column).unwrap();
            assert!(get("power") > get("exponential") && get("exponential") > get("double exponential"));
            assert!((get("Σ gradient, exponential") - 1.0).abs() < 1e-12);
        }
        let overflow = report.find_table("overflow").unwrap();
        assert_eq!(overflow.number(6, "as written"), Some(f64::INFINITY));
        assert!((0..9).all(|row| overflow.number(row, "safe form").unwrap().is_finite()));
    }
}
