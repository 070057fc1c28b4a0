//! Tests with a linear probe on every layer's output whether positions survive attention.

use super::quality::Models;
use crate::kinds::Kind;
use crate::ridge::Ridge;
use crate::small::{Pairs, Task, Trained};
use crate::{Cell, Column, Report, Setup, Table};
use regard_core::Result;
use regard_core::batch::Batch;
use regard_plot::{LineChart, Series};
use regard_train::autograd::Tape;
use regard_train::layer_outputs;

/// Probes every layer of every model, and returns a one-sentence summary.
pub(super) fn study(setup: &Setup<'_>, report: &mut Report, task: &Task, models: &Models) -> Result<String> {
    setup.progress("probing the layers for positions");
    let learn: Pairs = models.pairs.iter().take(setup.choose(60, 1500, 6000)).cloned().collect();
    let held_out = task.encode(&task.held_out, setup.threads)?;
    let limit = learn.iter().map(|(source, _)| source.len()).max().unwrap_or(0);
    let test: Pairs = held_out.into_iter().filter(|(source, _)| source.len() <= limit).collect();
    let layers = models.trained.first().map_or(0, |(_, t)| t.model.config().encoder_layers);

    let mut columns = vec![Column::new("positions"), Column::new("half")];
    columns.push(Column::new("embedding").unit("% right").decimals(1));
    columns.extend((1..=layers).map(|i| Column::new(format!("layer {i}")).unit("% right").decimals(1)));
    columns.push(Column::new("always the commonest").unit("% right").decimals(1));
    let mut table =
        Table::new("probe", "Positions that a linear probe reads correctly, of held-out sentences", columns);
    let mut chart = LineChart::new(
        "Reading the position back",
        "layer (0 is the embedding)",
        "positions read correctly (%)",
    );
    chart.y.range = Some((0.0, 100.0));
    chart.x.ticks = (0..=layers).map(|i| i as f64).collect();
    let mut found = Vec::new();
    for (kind, trained) in &models.trained {
        let halves = probe(setup, trained, &learn, &test)?;
        for (half, Half { accuracy, chance }) in ["encoder", "decoder"].into_iter().zip(&halves) {
            let cells = [kind.name().into(), half.into()].into_iter();
            table.row(cells.chain(accuracy.iter().chain([chance]).map(|x| Cell::from(*x))));
        }
        let points = halves[0].accuracy.iter().enumerate().map(|(i, x)| (i as f64, *x)).collect();
        chart = chart.series(Series::new(kind.name(), points).markers());
        found.push((*kind, halves[0].accuracy.clone()));
    }
    report.heading("Does position survive attention?");
    report.text(format!(
        "A probe is a linear map, fitted by least squares on the vectors of {} training sentences, that names the position of a token from its \
         vector alone. It is tested on {} held-out sentences, after the embedding and after every layer. A model without positions has \
         nothing to read in its embedding but the habits of words (the first word is often an article); what later layers of it know, \
         they have found out from the words around. The last column is what naming always the commonest position would give.",
        learn.len(),
        test.len()
    ));
    report.table(table);
    report.picture("probe", "The encoder's layers: positions that the probe names correctly.", chart);
    let show = |kind: Kind| {
        let accuracy = found.iter().find(|(k, _)| *k == kind).map(|(_, a)| (a[0], a[a.len() - 1]));
        accuracy.map_or_else(String::new, |(first, last)| {
            format!("{first:.0} % behind the embedding and {last:.0} % behind the last layer")
        })
    };
    Ok(format!(
        "A linear probe reads the positions of the sinusoidal encoder's tokens to {}; without positions, to {}.",
        show(Kind::Sinusoidal),
        show(Kind::None)
    ))
}

/// The results for the encoder or the decoder.
struct Half {
    /// The accuracy in percent after the embedding and after each layer.
    accuracy: Vec<f64>,
    /// The accuracy in percent of always naming the most frequent position.
    chance: f64,
}

/// The number of sentences per forward pass.
const SENTENCES: usize = 200;

/// The vectors after each layer and the position of each token, for encoder and decoder.
#[derive(Default)]
struct Read {
    layers: [Vec<Vec<f32>>; 2],
    positions: [Vec<usize>; 2],
}

fn read(setup: &Setup<'_>, trained: &Trained, pairs: &Pairs) -> Result<Read> {
    let pad = trained.model.config().start();
    let mut tape = Tape::new(setup.isa, setup.threads);
    let mut read = Read::default();
    for part in pairs.chunks(SENTENCES) {
        let batch = Batch::new(part.iter().map(|(s, t)| (&s[..], &t[..])), pad)?;
        let outputs = layer_outputs(&mut tape, &trained.model, &trained.weights, &batch)?;
        let sides = [(outputs.encoder, &batch.source), (outputs.decoder, &batch.input)];
        for (side, (layers, tokens)) in sides.into_iter().enumerate() {
            read.layers[side].resize(layers.len(), Vec::new());
            for (to, from) in read.layers[side].iter_mut().zip(layers) {
                to.extend(from);
            }
            read.positions[side].extend(tokens.positions());
        }
    }
    Ok(read)
}

fn probe(setup: &Setup<'_>, trained: &Trained, learn: &Pairs, test: &Pairs) -> Result<[Half; 2]> {
    let (learn, test) = (read(setup, trained, learn)?, read(setup, trained, test)?);
    let d = trained.model.config().d_model;
    let half = |side: usize| {
        let (positions, wanted) = (&learn.positions[side], &test.positions[side]);
        let classes = positions.iter().max().map_or(1, |p| p + 1);
        let percent = |right: usize| 100.0 * right as f64 / wanted.len().max(1) as f64;
        let accuracy = learn.layers[side].iter().zip(&test.layers[side]).map(|(learn, test)| {
            let probe = Ridge::classes(learn, d, positions, classes, 1e-3);
            let right = test.chunks_exact(d).zip(wanted).filter(|(x, p)| probe.class(x) == **p);
            percent(right.count())
        });
        let commonest = (0..classes).map(|p| wanted.iter().filter(|w| **w == p).count()).max();
        Half { accuracy: accuracy.collect(), chance: percent(commonest.unwrap_or(0)) }
    };
    Ok([half(0), half(1)])
}
