//! The sinusoids: curves, heat map, comparison with a binary counter, similarity, linear map.

use crate::report::significant;
use crate::{Column, Report, Setup, Table};
use regard_core::Result;
use regard_core::model::positions::{interleaved, linear_map, similarity, sinusoidal};
use regard_plot::{Grid, HeatMap, LineChart, Matrix, Series};
use std::ops::Range;

/// The model width for the tables to draw.
const WIDTH: usize = 128;
/// The bits of a counter to compare with the sinusoids; the last two change faster than any wave.
const BITS: Range<usize> = 2..7;
/// The number of periods of a bit to compare.
const PERIODS: usize = 4;

/// Draws and measures the sinusoids, and returns the largest error of the linear map as text.
pub(super) fn study(setup: &Setup<'_>, report: &mut Report) -> Result<String> {
    setup.progress("sinusoids");
    curves(report);
    counter(report);
    distance(report);
    map(setup, report)
}

fn curves(report: &mut Report) {
    report.heading("Sines and cosines");
    report.text(format!(
        "Every position $p$ gets the vector $PE(p, 2i) = sin(p/10000^{{2i/d}})$, $PE(p, 2i+1) = cos(p/10000^{{2i/d}})$. A sine and its cosine share \
         a frequency; from one pair of columns to the next the waves get longer, from {} tokens to {} at $d = {WIDTH}$.",
        significant(period(0)),
        significant(period(WIDTH / 2 - 1))
    ));
    let positions = 64;
    let table = interleaved(positions, WIDTH);
    let mut chart = LineChart::new("Columns 6 to 9 of the positions", "position p (tokens)", "PE(p, column)");
    for column in 6..10 {
        let points = (0..positions).map(|p| (p as f64, f64::from(table[p * WIDTH + column])));
        let wave = if column % 2 == 0 { "sine" } else { "cosine" };
        chart = chart.series(Series::new(format!("column {column} ({wave})"), points.collect()));
    }
    report.picture("curves", "Two frequencies, a sine and a cosine of each.", chart);
    let rows: Vec<&[f32]> = table.chunks_exact(WIDTH).collect();
    let heat = HeatMap::new("Positions as vectors", Matrix::from_rows(&rows))
        .axes("position p (tokens)", "column")
        .scale_label("PE(p, column)")
        .range(-1.0, 1.0);
    report.picture(
        "heat",
        "Each row is a position. The columns on the left change fast, those on the right hardly.",
        heat,
    );
}

/// The period of frequency `i` in tokens.
fn period(i: usize) -> f64 {
    std::f64::consts::TAU * 10_000f64.powf(2.0 * i as f64 / WIDTH as f64)
}

fn counter(report: &mut Report) {
    report.heading("Similarity to a binary counter");
    let table = sinusoidal(PERIODS << BITS.end, WIDTH);
    let mut rows = Table::new(
        "counter",
        format!("Each bit of a counter over {PERIODS} of its periods, and the frequency that fits it best"),
        [
            Column::new("bit"),
            Column::new("period of the bit").unit("tokens"),
            Column::new("frequency i"),
            Column::new("period of the waves").unit("tokens"),
            Column::new("correlation").decimals(3),
        ],
    );
    let mut fits: Vec<Follower> = Vec::new();
    for bit in BITS {
        let positions = PERIODS * (2 << bit);
        let bits: Vec<f64> = (0..positions).map(|p| sign(p, bit)).collect();
        let wave = |c: usize| (0..positions).map(|p| f64::from(table[p * WIDTH + c])).collect::<Vec<_>>();
        let all = (0..WIDTH / 2).map(|i| (i, fit(&wave(i), &wave(WIDTH / 2 + i), &bits)));
        let Some((i, best)) = all.max_by(|a, b| a.1.correlation.total_cmp(&b.1.correlation)) else {
            continue;
        };
        rows.row([bit.into(), (2usize << bit).into(), i.into(), period(i).into(), best.correlation.into()]);
        fits.push((bit, i, best));
    }
    let least = fits.iter().map(|(_, _, fit)| fit.correlation).fold(1.0, f64::min);
    report.text(format!(
        "A binary counter writes $p$ with bits that flip at different rates: the last one at every step, the next at every second, and so on. \
         The sinusoids do the same with smooth waves, the fastest of which takes {} tokens, so that the last two bits have none. For each of \
         the next bits the table shows the pair of columns whose sine and cosine, mixed as well as possible, follow it best; a wave of \
         the very same period reaches {:.2} where a bit has many steps. The worst here reaches {least:.2}.",
        significant(period(0)),
        2.0 * std::f64::consts::SQRT_2 / std::f64::consts::PI
    ));
    report.table(rows);
    let matrix = |value: &dyn Fn(usize, &Follower) -> f64| {
        let row = |p: usize| fits.iter().rev().map(|fit| value(p, fit) as f32).collect::<Vec<_>>();
        Matrix::from_rows(&(0..1 << BITS.end).map(row).collect::<Vec<_>>())
    };
    let bits = matrix(&|p, (bit, _, _)| sign(p, *bit));
    let waves = matrix(&|p, (_, i, fit)| {
        let at = |c: usize| f64::from(table[p * WIDTH + c]);
        fit.sine * at(*i) + fit.cosine * at(WIDTH / 2 + i)
    });
    let names: Vec<String> = fits.iter().rev().map(|(bit, _, _)| format!("bit {bit}")).collect();
    let map = |title: &str, matrix| {
        HeatMap::new(title, matrix)
            .labels::<&str, _>(&[], &names)
            .axes("position p (tokens)", "")
            .range(-1.0, 1.0)
    };
    let maps = vec![map("bits (−1 and 1)", bits), map("sines and cosines", waves)];
    report.picture(
        "counter",
        "The positions from 0 downwards, in the bits of a counter and in the waves that fit them best.",
        Grid::new("A counter and its waves", 2, maps).scale_label("value"),
    );
}

/// A bit of a number, as −1 or 1.
fn sign(p: usize, bit: usize) -> f64 {
    if p >> bit & 1 == 1 { 1.0 } else { -1.0 }
}

/// A bit, the index of the frequency that fits it best, and the fit.
type Follower = (usize, usize, Fit);

/// The best linear combination of a sine and its cosine.
#[derive(Clone, Copy, Default)]
struct Fit {
    sine: f64,
    cosine: f64,
    correlation: f64,
}

/// Fits `y` as a linear combination of `a`, `b` and a constant, by least squares.
fn fit(a: &[f64], b: &[f64], y: &[f64]) -> Fit {
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let centred = |x: &[f64]| x.iter().map(|v| v - mean(x)).collect::<Vec<f64>>();
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let (a, b, y) = (centred(a), centred(b), centred(y));
    let (aa, ab, bb) = (dot(&a, &a), dot(&a, &b), dot(&b, &b));
    let determinant = aa * bb - ab * ab;
    // Very long waves are almost constant and cannot be fitted.
    if determinant < 1e-6 * aa * bb {
        return Fit::default();
    }
    let (ay, by) = (dot(&a, &y), dot(&b, &y));
    let (sine, cosine) = ((ay * bb - by * ab) / determinant, (by * aa - ay * ab) / determinant);
    let explained = sine * ay + cosine * by;
    Fit { sine, cosine, correlation: (explained / dot(&y, &y)).max(0.0).sqrt() }
}

fn distance(report: &mut Report) {
    report.heading("Similarity against distance");
    report.text(
        "The dot product of two positions is $Σ cos(δω)$ over the frequencies $ω$: it depends on their distance $δ$ alone, is largest at 0 and \
         falls off to both sides, so that near positions are alike.",
    );
    let mut chart =
        LineChart::new("Dot product of two positions", "distance δ (tokens)", "PE(p)·PE(p + δ) / (d/2)");
    for d in [32, 128, 512] {
        let point = |delta: isize| (delta as f64, similarity(delta, d) / similarity(0, d));
        chart = chart.series(Series::new(format!("d = {d}"), (-100..=100).map(point).collect()));
    }
    report.picture(
        "similarity",
        "The similarity of two positions, relative to that of a position with itself.",
        chart,
    );
}

fn map(setup: &Setup<'_>, report: &mut Report) -> Result<String> {
    report.heading("A linear map for every distance");
    let positions = setup.choose(200, 2000, 10_000);
    let table = sinusoidal(positions, WIDTH);
    let mut rows = Table::new(
        "linear-map",
        format!("Largest difference between $M(δ)·PE(p)$ and $PE(p + δ)$, over {positions} positions"),
        [Column::new("δ"), Column::new("error"), Column::new("error of M(δ + 1)")],
    );
    let mut most = 0f64;
    for delta in [-100isize, -10, -1, 1, 2, 5, 10, 50, 100] {
        let errors = [delta, delta + 1].map(|by| largest_error(&table, &linear_map(by, WIDTH), delta));
        most = most.max(errors[0]);
        rows.row([delta.to_string().into(), errors[0].into(), errors[1].into()]);
    }
    report.text(format!(
        "$sin(a + b) = sin a·cos b + cos a·sin b$: a sine and its cosine, turned by the angle $δω$, are those of $p + δ$. Put together, the turns \
         are one matrix $M(δ)$ with $PE(p + δ) = M(δ)·PE(p)$ for every $p$. A model can therefore learn \"the token before\" as one linear \
         map for all positions. The error is that of 32-bit numbers, at most {}; the matrix of the next distance, for comparison, misses by far.",
        significant(most)
    ));
    report.table(rows);
    let shown = 32;
    let rows: Vec<Vec<f32>> = linear_map(1, shown).chunks_exact(shown).map(<[f32]>::to_vec).collect();
    let heat = HeatMap::new("M(1) at d = 32", Matrix::from_rows(&rows))
        .axes("column of PE(p + 1)", "column of PE(p)")
        .scale_label("weight")
        .range(-1.0, 1.0);
    report.picture(
        "map",
        "Each sine (upper half) and its cosine (lower half) turn together; nothing else is mixed.",
        heat,
    );
    Ok(significant(most))
}

fn largest_error(table: &[f32], map: &[f32], delta: isize) -> f64 {
    let positions = table.len() / WIDTH;
    let row = |p: usize| &table[p * WIDTH..(p + 1) * WIDTH];
    let mut most = 0f64;
    for p in 0..positions {
        let Some(to) = p.checked_add_signed(delta).filter(|to| *to < positions) else { continue };
        for (weights, want) in map.chunks_exact(WIDTH).zip(row(to)) {
            let got: f32 = weights.iter().zip(row(p)).map(|(m, x)| m * x).sum();
            most = most.max(f64::from((got - want).abs()));
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mixture_of_its_parts_correlates_fully() {
        let a = [0.0, 1.0, 0.0, -1.0, 0.5];
        let b = [1.0, 0.0, -1.0, 0.0, 0.5];
        let y: Vec<f64> = a.iter().zip(b).map(|(a, b)| 3.0 * a - 2.0 * b + 7.0).collect();
        let found = fit(&a, &b, &y);
        assert!((found.correlation - 1.0).abs() < 1e-12);
        assert!((found.sine - 3.0).abs() < 1e-12 && (found.cosine + 2.0).abs() < 1e-12);
        assert_eq!(fit(&a, &a, &y).correlation, 0.0);
        assert!((period(0) - std::f64::consts::TAU).abs() < 1e-12);
    }
}
