//! How far a signal can travel: a token has to be copied over a distance.

mod copy;

use crate::encoder_kinds::{ATTENTION, CONVOLUTION, DILATED, RECURRENT, WIDTH, kind_name, kind_name_zh};
use crate::{Cell, Column, Report, Setup, Study, Table};
use copy::{Sizes, accuracies};
use regard_core::Result;
use regard_core::model::EncoderKind;
use regard_plot::{LineChart, Series};

/// See [`crate::studies`].
pub(crate) const STUDY: Study = Study {
    name: "path",
    title: "How far a signal must travel",
    question: "How far apart may two words be for an encoder to connect them?",
    zh: ["信号要走多远", "两个词最远可以相隔多远，编码器还能把它们联系起来？"],
    about: "a token is copied over a distance: accuracy after equal training, for every kind of encoder",
    body: run,
};

/// How far the window reaches to each side.
const REACH: usize = 2;
const WINDOW: EncoderKind = EncoderKind::Window { window: REACH };

const KINDS: [EncoderKind; 5] = [ATTENTION, WINDOW, RECURRENT, CONVOLUTION, DILATED];

/// The accuracy from which a distance counts as solved.
const SOLVED: f64 = 0.9;

struct Curve {
    kind: EncoderKind,
    /// The accuracy by distance.
    points: Vec<(usize, f64)>,
}

impl Curve {
    /// The longest distance up to which all distances are solved.
    fn solved(&self) -> usize {
        self.points.iter().take_while(|p| p.1 >= SOLVED).last().map_or(0, |p| p.0)
    }
}

/// How far an output token can see to each side through this many layers; `None` if unlimited.
fn reach(kind: EncoderKind, layers: usize) -> Option<usize> {
    match kind {
        EncoderKind::Attention { window } => window.map(|window| layers * window),
        EncoderKind::Window { window } => Some(layers * window),
        EncoderKind::Recurrent { .. } => None,
        EncoderKind::Convolutional { kernel_width, dilated } => {
            let apart = |layer: usize| if dilated { kernel_width.pow(layer as u32) } else { 1 };
            Some((0..layers).map(|layer| kernel_width / 2 * apart(layer)).sum())
        }
    }
}

/// The path length between two tokens at this distance, given enough layers.
fn path(kind: EncoderKind, distance: usize) -> usize {
    match kind {
        EncoderKind::Attention { window: None } => 1,
        EncoderKind::Recurrent { .. } => distance,
        kind => (1..=distance).find(|&layers| reach(kind, layers).is_none_or(|r| r >= distance)).unwrap_or(0),
    }
}

fn theory(kind: EncoderKind) -> &'static str {
    match kind {
        EncoderKind::Attention { window: None } => "1",
        EncoderKind::Attention { window: Some(_) } | EncoderKind::Window { .. } => "n/r",
        EncoderKind::Recurrent { .. } => "n",
        EncoderKind::Convolutional { dilated: false, .. } => "n/k",
        EncoderKind::Convolutional { dilated: true, .. } => "$log_k n$",
    }
}

fn run(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let sizes = setup.choose(Sizes::SMOKE, Sizes::QUICK, Sizes::FULL);
    // Trains one model per core.
    let mut curves = Vec::new();
    for kinds in KINDS.chunks(setup.threads.max(1)) {
        let results: Vec<Result<Curve>> = std::thread::scope(|scope| {
            let work =
                |kind: EncoderKind| move || Ok(Curve { kind, points: accuracies(setup, kind, &sizes)? });
            let handles: Vec<_> = kinds.iter().map(|&kind| scope.spawn(work(kind))).collect();
            handles.into_iter().map(|h| h.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
        });
        for curve in results {
            curves.push(curve?);
        }
    }
    explain(report, &curves, &sizes);
    report.table(summary_table(&curves, &sizes));
    report.table(accuracy_table(&curves));
    report.picture(
        "distance",
        "Each kind falls to chance where its layers no longer reach the token; the recurrent unit reaches it but has to carry it there.",
        picture(&curves),
    );
    Ok(())
}

fn explain(report: &mut Report, curves: &[Curve], sizes: &Sizes) {
    let said: Vec<String> = curves
        .iter()
        .map(|curve| match curve.solved() {
            0 => format!("{} at none", kind_name(curve.kind)),
            solved if solved == sizes.longest() => {
                format!("{} at all, up to {solved}", kind_name(curve.kind))
            }
            solved => format!("{} up to {solved}", kind_name(curve.kind)),
        })
        .collect();
    let (all, some): (Vec<&Curve>, Vec<&Curve>) =
        curves.iter().partition(|curve| curve.solved() == sizes.longest());
    let names = |curves: &[&Curve]| curves.iter().map(|c| kind_name(c.kind)).collect::<Vec<_>>().join("; ");
    let names_zh =
        |curves: &[&Curve]| curves.iter().map(|c| kind_name_zh(c.kind)).collect::<Vec<_>>().join("、");
    match (all.is_empty(), some.is_empty()) {
        (true, _) => report.answer(
            "After this much training, none of the encoders connects words at every distance that was tried.",
            "经过这些训练，没有一种编码器能在试过的所有距离上把两个词联系起来。",
        ),
        (_, true) => report.answer(
            "All encoders that were tried connect words at every distance.",
            "试过的编码器都能在任何距离上把两个词联系起来。",
        ),
        _ => report.answer(
            format!(
                "As far as one likes with: {}. These lose the connection on the way, because each of their layers reaches only so far, or \
                 because the signal has to be carried through every word in between: {}.",
                names(&all),
                names(&some)
            ),
            format!(
                "想多远就多远的是：{}。在半路上失去联系的是：{}，因为它们的每一层只能看那么远，或者信号必须穿过中间的每一个词。",
                names_zh(&all),
                names_zh(&some)
            ),
        ),
    }
    report.summary(format!(
        "Distances at which the token is copied with an accuracy of at least {:.0} %, after {} steps each: {}.",
        100.0 * SOLVED,
        sizes.steps,
        said.join("; "),
    ));
    report.text(format!(
        "A sentence is {} random tokens, a symbol, one of {}, then more random tokens and a question mark, and the encoder's last output must \
         say which symbol it was. There is no decoder, whose attention would reach everything at once. One model of {} layers and width {} for each kind, {} \
         steps of {} sentences with all distances mixed, sinusoidal positions, the same learning rates.",
        copy::BEFORE,
        copy::SYMBOLS,
        sizes.layers,
        sizes.width,
        sizes.steps,
        sizes.batch,
    ));
    report.text(format!(
        "The longest path is the number of steps that a signal takes between two tokens n apart: 1 with attention, $n/r$ with attention to {REACH} \
         tokens on each side, $n$ with a recurrent unit, $n/k$ with a convolution of {WIDTH} tokens, $log_k n$ when its tokens lie 1, {WIDTH}, {}, … \
         apart in one layer after the other. A stack whose layers are fewer than that cannot know the symbol at all and guesses: {:.1} % \
         are right by chance.",
        WIDTH * WIDTH,
        100.0 / copy::SYMBOLS as f64,
    ));
}

fn summary_table(curves: &[Curve], sizes: &Sizes) -> Table {
    let longest = sizes.longest();
    let mut table = Table::new(
        "paths",
        format!("Paths through {} layers", sizes.layers),
        [
            Column::new("encoder"),
            Column::new("longest path, theory"),
            Column::new(format!("steps over {longest} tokens")),
            Column::new("reach of the stack"),
            Column::new(format!("solved up to ({:.0} %)", 100.0 * SOLVED)),
        ],
    );
    for curve in curves {
        let reach = reach(curve.kind, sizes.layers).map_or(Cell::from("any"), |r| r.to_string().into());
        table.row([
            kind_name(curve.kind).into(),
            theory(curve.kind).into(),
            path(curve.kind, longest).into(),
            reach,
            curve.solved().into(),
        ]);
    }
    table
}

fn accuracy_table(curves: &[Curve]) -> Table {
    let columns = curves.iter().map(|c| Column::new(kind_name(c.kind)).unit("%").decimals(1));
    let columns: Vec<Column> = std::iter::once(Column::new("distance")).chain(columns).collect();
    let mut table = Table::new("accuracy", "Accuracy of the copy by distance", columns);
    for (i, (distance, _)) in curves.first().map(|c| &c.points[..]).unwrap_or_default().iter().enumerate() {
        let cells = curves.iter().map(|c| Cell::from(c.points.get(i).map(|p| 100.0 * p.1)));
        table.row(std::iter::once(Cell::from(*distance)).chain(cells));
    }
    table
}

fn picture(curves: &[Curve]) -> LineChart {
    let mut chart = LineChart::new("Accuracy of the copy", "distance (tokens)", "accuracy (%)").log_x();
    chart.y.range = Some((0.0, 100.0));
    for curve in curves {
        let points = curve.points.iter().map(|(d, a)| (*d as f64, 100.0 * a)).collect();
        chart = chart.series(Series::new(kind_name(curve.kind), points).markers());
    }
    let ends = |curve: &Curve| {
        let chance = 100.0 / copy::SYMBOLS as f64;
        [curve.points.first(), curve.points.last()]
            .into_iter()
            .flatten()
            .map(|p| (p.0 as f64, chance))
            .collect()
    };
    match curves.first() {
        Some(curve) => chart.series(Series::new("chance", ends(curve)).dashed()),
        None => chart,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::smoke;

    #[test]
    fn a_stack_that_does_not_reach_the_token_guesses() {
        let report = smoke(&STUDY);
        let table = report.find_table("accuracy").unwrap();
        assert_eq!(table.columns.len(), KINDS.len() + 1);
        let last = table.rows.len() - 1;
        // At distance 1, every kind has learnt something; at the longest distance, a one-layer
        // convolution cannot reach the symbol.
        assert!(table.number(last, "convolution").unwrap() < 40.0);
        assert!(table.number(0, "convolution").unwrap() > 60.0, "{}", table.to_text());
        assert!(table.number(last, "attention").unwrap() > 60.0, "{}", table.to_text());
    }

    #[test]
    fn reaches_and_paths_are_those_of_the_theory() {
        let reaches = [4, 8, 40];
        for (kind, want) in [CONVOLUTION, WINDOW, DILATED].into_iter().zip(reaches) {
            assert_eq!(reach(kind, 4), Some(want), "{kind:?}");
            assert_eq!((path(kind, want), path(kind, want + 1)), (4, 5), "{kind:?}");
        }
        assert_eq!((path(ATTENTION, 99), path(RECURRENT, 99)), (1, 99));
    }
}
