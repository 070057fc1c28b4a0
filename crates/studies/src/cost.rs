//! The cost of a layer: time against sequence length and model width.

mod layer;

use crate::encoder_kinds::{ATTENTION, CONVOLUTION, RECURRENT, WIDTH, kind_name};
use crate::{Column, Report, Setup, Study, Table};
use layer::{KINDS, Part, REACH, Times, WINDOW};
use regard_core::Result;
use regard_core::model::EncoderKind;
use regard_plot::{LineChart, Series};

/// See [`crate::studies`].
pub(crate) const STUDY: Study = Study {
    name: "cost",
    title: "What a layer costs",
    question: "What does a layer cost when sentences get longer, and when the model gets wider?",
    zh: ["一层的代价", "句子变长、模型变宽时，一层的代价如何变化？"],
    about: "time of an encoder layer against n and d, forward and backward; fitted exponents beside the theory's",
    body: run,
};

/// The minimum length for fitting exponents: at shorter lengths, costs that do not grow with n are
/// still visible.
const FIT_LENGTH: usize = 512;

/// The lengths and widths to measure.
struct Grid {
    /// The lengths, measured at `width`.
    lengths: Vec<usize>,
    width: usize,
    /// The widths, measured at `length`.
    widths: Vec<usize>,
    length: usize,
}

impl Grid {
    fn new(setup: &Setup<'_>) -> Self {
        let powers = |from: u32, to: u32| (from..=to).map(|p| 1usize << p).collect::<Vec<_>>();
        match setup.choose(true, false, false) {
            true => Grid { lengths: powers(3, 5), width: 16, widths: powers(4, 5), length: 16 },
            false => Grid {
                lengths: powers(6, setup.choose(12, 12, 13)),
                width: 128,
                widths: powers(5, setup.choose(9, 9, 10)),
                length: 1024,
            },
        }
    }
}

/// The curves of one encoder kind: against n, and against d.
struct Curves {
    kind: EncoderKind,
    by_length: Vec<(usize, Times)>,
    by_width: Vec<(usize, Times)>,
}

/// The name of a pass and its time.
type Pass = (&'static str, fn(&Times) -> f64);

const PASSES: [Pass; 2] = [("forward", |t| t.forward), ("backward", |t| t.backward)];

impl Curves {
    /// The fitted exponents of n and of d.
    fn exponents(&self, pass: Pass) -> (f64, f64) {
        let long = self.by_length.iter().filter(|(n, _)| *n >= FIT_LENGTH);
        let mut points: Vec<_> = long.map(|(n, t)| (*n as f64, pass.1(t))).collect();
        if points.len() < 2 {
            points = self.by_length.iter().map(|(n, t)| (*n as f64, pass.1(t))).collect();
        }
        let widths: Vec<_> = self.by_width.iter().map(|(d, t)| (*d as f64, pass.1(t))).collect();
        (slope(&points), slope(&widths))
    }
}

/// The exponent `e` that fits `y = c·x^e` best on the log-log plot, by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let n = logs.len() as f64;
    let (x, y) = (logs.iter().map(|p| p.0).sum::<f64>() / n, logs.iter().map(|p| p.1).sum::<f64>() / n);
    let covariance: f64 = logs.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    covariance / logs.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>()
}

fn run(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let grid = Grid::new(setup);
    let mixing = measure(setup, &grid, Part::TokenMixer)?;
    let layers = measure(setup, &grid, Part::Layer)?;
    explain(report, &grid, &mixing, &layers);
    report.heading("Token mixing alone");
    report.table(exponents("exponents", "Fitted exponents of token mixing alone", &mixing, true));
    pictures(report, "mixing", &grid, &mixing);
    report.heading("The whole layer");
    report.table(exponents("layer-exponents", "Fitted exponents of the whole layer", &layers, false));
    pictures(report, "layer", &grid, &layers);
    report.heading("All times");
    report.table(times("times", "Times of token mixing alone", &grid, &mixing));
    report.table(times("layer-times", "Times of the whole layer", &grid, &layers));
    Ok(())
}

fn measure(setup: &Setup<'_>, grid: &Grid, part: Part) -> Result<Vec<Curves>> {
    let mut all = Vec::new();
    for kind in KINDS {
        setup.progress(format!("{}, {}", kind_name(kind), part.name()));
        let time = |n: usize, d: usize| layer::time(setup, kind, part, n, d);
        let by_length = grid.lengths.iter().map(|&n| Ok((n, time(n, grid.width)?))).collect::<Result<_>>()?;
        let by_width = grid.widths.iter().map(|&d| Ok((d, time(grid.length, d)?))).collect::<Result<_>>()?;
        all.push(Curves { kind, by_length, by_width });
    }
    Ok(all)
}

/// The point at which the first curve becomes slower than the second, interpolated linearly on the
/// log-log plot.
fn crossing(first: &[(usize, Times)], second: &[(usize, Times)]) -> Option<f64> {
    let total = |t: &Times| t.forward + t.backward;
    let ratios: Vec<(f64, f64)> = first
        .iter()
        .zip(second)
        .map(|((n, a), (_, b))| ((*n as f64).ln(), (total(a) / total(b)).ln()))
        .collect();
    let between = ratios.windows(2).find(|w| w[0].1 < 0.0 && w[1].1 >= 0.0)?;
    let part = between[0].1 / (between[0].1 - between[1].1);
    Some((between[0].0 + part * (between[1].0 - between[0].0)).exp())
}

fn explain(report: &mut Report, grid: &Grid, mixing: &[Curves], layers: &[Curves]) {
    let said: Vec<String> = mixing
        .iter()
        .map(|curves| {
            let (n, d) = curves.exponents(PASSES[0]);
            let theory = layer::theory(curves.kind).0;
            format!("{} $n^{{{n:.2}}}·d^{{{d:.2}}}$ (theory ${theory}$)", kind_name(curves.kind))
        })
        .collect();
    let meet = |all: &[Curves], kind: EncoderKind| {
        let of = |kind: EncoderKind| {
            all.iter().find(|c| c.kind == kind).map(|c| &c.by_length[..]).unwrap_or_default()
        };
        match crossing(of(ATTENTION), of(kind)) {
            Some(n) => format!("from about {n:.0} tokens on"),
            None => "nowhere in this range".into(),
        }
    };
    let growth = |kind: EncoderKind| {
        let found = mixing.iter().find(|curves| curves.kind == kind);
        found.map_or(f64::NAN, |curves| curves.exponents(PASSES[0]).0)
    };
    let others = [WINDOW, CONVOLUTION, RECURRENT].map(growth);
    let (en, zh) = if growth(ATTENTION) > 1.3 && others.iter().all(|&n| n < 1.3) {
        (
            "Each token of a longer sentence costs attention more, because it looks at every other token. A window, a convolution and a \
         recurrent unit cost about the same for each token, however long the sentence is. Wider models cost all of them more. In a whole \
         layer this shows only in long sentences, because projections and feed-forward layers take most of the time in short ones.",
            "句子越长，注意力在每个词元上花的代价越大，因为它要看其他所有词元。窗口、卷积和循环单元在每个词元上的代价基本不变，无论句子多长。\
          模型变宽，它们全都变贵。就整个层而言，这种差别只有在长句子里才看得出来，因为在短句子里，投影和前馈层占了大部分时间。",
        )
    } else {
        (
            "In the range measured here, longer sentences do not yet cost attention clearly more for each token than they cost the others.",
            "在这里测量的范围内，句子变长时，注意力在每个词元上的代价还没有明显比其他方式增加得更多。",
        )
    };
    report.answer(en, zh);
    report.summary(format!(
        "Forward, token mixing takes time as {}. As whole layers of width {}, attention is slower than attention in a window {}, \
         than the convolution {}, than the recurrent unit {}.",
        said.join(", "),
        grid.width,
        meet(layers, WINDOW),
        meet(layers, CONVOLUTION),
        meet(layers, RECURRENT),
    ));
    report.text(format!(
        "One sequence, one core. Against n the width is {}, against d the length is {}. The window reaches {REACH} tokens to each side, \
         r = {}; the convolution sees k = {WIDTH} tokens; heads are {} wide. Each time is the best of several runs; other work on the machine still distorts them. Exponents are \
         slopes of straight lines through the points of the log-log plot, in n from {FIT_LENGTH} on.",
        grid.width,
        grid.length,
        2 * REACH + 1,
        layer::HEAD,
    ));
    report.text(
        "Theory counts multiplications: $n^2·d$ for attention, $n·d^2$ for the recurrent unit, $k·n·d^2$ for the convolution, $r·n·d$ for \
         attention in a window (table 1 of the paper, which leaves the projections of queries, keys and values out). Time also has parts that theory \
         leaves out: exponentials and sums that grow with $n^2$ or $n$ alone, memory, and matmuls that a processor does better the larger they \
         are. So small widths cost more than their share, and exponents of d stay below the theory's. The recurrent unit takes n steps, \
         one after the other, each a matmul with a single vector; that costs a factor, not an exponent.",
    );
    report.text(
        "The second half measures a whole layer with projections, norms and a feed-forward layer four times as wide. These cost $n·d^2$, so that \
         attention looks linear in n until n is a few times d.",
    );
}

fn exponents(name: &str, caption: &str, all: &[Curves], theory: bool) -> Table {
    let mut columns = vec![Column::new("kind")];
    if theory {
        columns.extend([Column::new("theory"), Column::new("n, theory").decimals(0)]);
    }
    columns.extend([Column::new("n, forward").decimals(2), Column::new("n, backward").decimals(2)]);
    if theory {
        columns.push(Column::new("d, theory").decimals(0));
    }
    columns.extend([Column::new("d, forward").decimals(2), Column::new("d, backward").decimals(2)]);
    let mut table = Table::new(name, caption, columns);
    for curves in all {
        let [forward, backward] = PASSES.map(|pass| curves.exponents(pass));
        let (n, d) = layer::theory(curves.kind).1;
        let mut row = vec![kind_name(curves.kind).into()];
        if theory {
            row.extend([layer::theory(curves.kind).0.into(), n.into()]);
        }
        row.extend([forward.0.into(), backward.0.into()]);
        if theory {
            row.push(d.into());
        }
        row.extend([forward.1.into(), backward.1.into()]);
        table.row(row);
    }
    table
}

fn times(name: &str, caption: &str, grid: &Grid, all: &[Curves]) -> Table {
    let columns = [
        Column::new("kind"),
        Column::new("n"),
        Column::new("d"),
        Column::new("forward").unit("ms"),
        Column::new("backward").unit("ms"),
    ];
    let mut table = Table::new(name, caption, columns);
    for curves in all {
        let lengths = curves.by_length.iter().map(|(n, t)| (*n, grid.width, t));
        for (n, d, t) in lengths.chain(curves.by_width.iter().map(|(d, t)| (grid.length, *d, t))) {
            let (forward, backward) = (1e3 * t.forward, 1e3 * t.backward);
            table.row([kind_name(curves.kind).into(), n.into(), d.into(), forward.into(), backward.into()]);
        }
    }
    table
}

/// Plots the times against n and against d; for the token mixer alone, also dashed lines with the
/// theoretical slopes through the last points.
fn pictures(report: &mut Report, part: &str, grid: &Grid, all: &[Curves]) {
    let theory = part == "mixing";
    for pass in PASSES {
        let title = |letter: &str| format!("The {part}, {}: time against {letter}", pass.0);
        let (length, width) = (format!("n (tokens), d = {}", grid.width), format!("d, n = {}", grid.length));
        let mut by_length = LineChart::new(title("n"), length, "time (ms)").log_x().log_y();
        let mut by_width = LineChart::new(title("d"), width, "time (ms)").log_x().log_y();
        for (i, curves) in all.iter().enumerate() {
            let line = |points: &[(usize, Times)]| -> Vec<(f64, f64)> {
                points.iter().map(|(x, t)| (*x as f64, 1e3 * pass.1(t))).collect()
            };
            let (lengths, widths) = (line(&curves.by_length), line(&curves.by_width));
            let name = kind_name(curves.kind);
            let (n, d) = layer::theory(curves.kind).1;
            let ideal = |points: &[(f64, f64)], exponent: f64, letter: &str| {
                let last = points.last().copied().unwrap_or((1.0, 1.0));
                let at = |x: f64| (x, last.1 * (x / last.0).powf(exponent));
                let label = if exponent == 1.0 { letter.to_owned() } else { format!("{letter}²") };
                Series::new(format!("theory: {label}"), points.iter().map(|p| at(p.0)).collect())
                    .dashed()
                    .colour(i)
            };
            by_length = by_length.series(Series::new(name, lengths.clone()).markers().colour(i));
            by_width = by_width.series(Series::new(name, widths.clone()).markers().colour(i));
            if theory {
                by_length = by_length.series(ideal(&lengths, n, "n"));
                by_width = by_width.series(ideal(&widths, d, "d"));
            }
        }
        let dashes = if theory { " Dashed: the theory's slope through the last point." } else { "" };
        let caption =
            |letter: &str| format!("Both axes logarithmic; a slope is an exponent of {letter}.{dashes}");
        report.picture(format!("{part}-{}-n", pass.0), caption("n"), by_length);
        report.picture(format!("{part}-{}-d", pass.0), caption("d"), by_width);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::smoke;

    #[test]
    fn all_times_and_exponents_are_there() {
        let report = smoke(&STUDY);
        let table = report.find_table("times").unwrap();
        assert_eq!(table.rows.len(), KINDS.len() * 5);
        assert!((0..table.rows.len()).all(|row| table.number(row, "backward").unwrap() > 0.0));
        let table = report.find_table("exponents").unwrap();
        let theory = |column: &str| (0..4).map(|row| table.number(row, column).unwrap()).collect::<Vec<_>>();
        assert_eq!(
            (theory("n, theory"), theory("d, theory")),
            (vec![2.0, 1.0, 1.0, 1.0], vec![1.0, 1.0, 2.0, 2.0])
        );
        assert_eq!(report.pictures().count(), 8);
    }

    #[test]
    fn slopes_and_crossings_are_those_of_known_curves() {
        let square: Vec<(f64, f64)> = [1.0, 2.0, 4.0].iter().map(|x| (*x, 3.0 * x * x)).collect();
        assert!((slope(&square) - 2.0).abs() < 1e-12);
        let curve = |f: fn(f64) -> f64| -> Vec<(usize, Times)> {
            [1usize, 10, 100].iter().map(|&n| (n, Times { forward: f(n as f64), backward: 0.0 })).collect()
        };
        let (square, line) = (curve(|n| n * n), curve(|n| 30.0 * n));
        assert!((crossing(&square, &line).unwrap() - 30.0).abs() < 1e-9);
        assert_eq!(crossing(&line, &curve(|n| 100.0 * n)), None);
    }
}
