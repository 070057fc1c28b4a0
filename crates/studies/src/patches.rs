//! Images as sequences: pictures are cut into patches, and a Transformer reads them with and
//! without position vectors.

mod model;
mod pictures;

use crate::net::{self, Fitted, Net as _, Recipe};
use crate::{Column, Report, Setup, Study, Table};
use model::{Answer, Model, PositionKind, QUESTIONS};
use pictures::{PATCH, Picture};
use regard_core::{Key, Result};
use regard_plot::{Grid, HeatMap, LineChart, Matrix, Series};

pub(crate) const STUDY: Study = Study {
    name: "patches",
    title: "Images as sequences of patches",
    question: "Can a Transformer read a picture, and must it know where each piece of it belongs?",
    zh: ["把图像看作图块的序列", "Transformer 能看懂图片吗？它必须知道每一块在什么位置吗？"],
    about: "where is the square? learned positions, two-dimensional sinusoids and none, on drawn pictures",
    body: run,
};

/// The number of pictures for measuring progress during training.
const WATCHED: usize = 256;

/// The sizes of a run.
struct Sizes {
    grid: usize,
    model: (usize, usize, usize),
    recipe: Recipe,
    tested: usize,
}

fn sizes(setup: &Setup<'_>) -> Sizes {
    Sizes {
        grid: setup.choose(3, 5, 8),
        model: setup.choose((16, 2, 1), (64, 4, 2), (96, 4, 3)),
        recipe: Recipe {
            steps: setup.choose(60, 1400, 6000),
            batch: setup.choose(16, 64, 128),
            losses: QUESTIONS,
            peak: setup.choose(0.004, 0.002, 0.001),
        },
        tested: setup.choose(200, 2000, 5000),
    }
}

/// A trained model and its answers for unseen pictures.
struct Trained {
    positions: PositionKind,
    model: Model,
    fitted: Fitted,
    /// The fraction of correct positions on the watched pictures, against the number of training
    /// pictures.
    learning_curve: Vec<(f64, f64)>,
    answers: Vec<Answer>,
    /// The answers for the same pictures with their patches shuffled.
    shuffled: Vec<Answer>,
}

fn run(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let sizes = sizes(setup);
    let key = Key::new(setup.seed).child(PICTURES);
    let draw = |stream: u64, i: u64| Picture::draw(sizes.grid, key.child(stream).child(i));
    let unseen: Vec<Picture> = (0..sizes.tested as u64).map(|i| draw(1, i)).collect();
    let shuffled: Vec<Picture> =
        unseen.iter().enumerate().map(|(i, p)| p.shuffled(key.child(2).child(i as u64))).collect();
    let mut all = Vec::new();
    for positions in PositionKind::ALL {
        let model = Model::new(sizes.grid, positions, sizes.model);
        let (fitted, learning_curve) = train(setup, &sizes, &model, &unseen, |i| draw(0, i))?;
        let ask = |pictures: &[Picture]| net::answers(setup, &model, &fitted.weights, pictures);
        let (answers, shuffled) = (ask(&unseen)?, ask(&shuffled)?);
        all.push(Trained { positions, fitted, learning_curve, answers, shuffled, model });
    }
    describe(report, &sizes, &unseen);
    results(report, &sizes, &unseen, &all);
    order(report, &unseen, &shuffled, &all);
    likeness(report, &sizes, &all);
    Ok(())
}

/// The random stream for all pictures of the study.
const PICTURES: u64 = 10;

/// Trains a model, and records the fraction of correct positions during training.
fn train(
    setup: &Setup<'_>,
    sizes: &Sizes,
    model: &Model,
    unseen: &[Picture],
    draw: impl Fn(u64) -> Picture + Sync,
) -> Result<(Fitted, Vec<(f64, f64)>)> {
    let recipe = sizes.recipe;
    let watched = &unseen[..WATCHED.min(unseen.len())];
    let mut learning_curve = Vec::new();
    let watch = |step: u64, loss: f64, weights: &[f32]| {
        if step.is_multiple_of((recipe.steps / 20).max(1)) {
            let answers = net::answers(setup, model, weights, watched)?;
            let right = fraction(watched, &answers, |p, a| a.row() == p.row && a.column() == p.column);
            learning_curve.push(((step * recipe.batch as u64) as f64, 100.0 * right));
        }
        if step.is_multiple_of((recipe.steps / 4).max(1)) {
            setup.progress(format!("{}: step {step} of {}, loss {loss:.2}", model.name(), recipe.steps));
        }
        Ok(())
    };
    let fitted = net::fit(setup, model, recipe, draw, watch)?;
    Ok((fitted, learning_curve))
}

/// The fraction of pictures with a correct answer.
fn fraction(pictures: &[Picture], answers: &[Answer], right: impl Fn(&Picture, &Answer) -> bool) -> f64 {
    let count = pictures.iter().zip(answers).filter(|(p, a)| right(p, a)).count();
    count as f64 / pictures.len().max(1) as f64
}

fn describe(report: &mut Report, sizes: &Sizes, unseen: &[Picture]) {
    let side = sizes.grid * PATCH;
    report.text(format!(
        "Pictures of {side} × {side} grey pixels are drawn by the program: one square, other shapes, noise. Each is cut into {0} × {0} \
         patches of {PATCH} × {PATCH} pixels, and a linear layer makes a vector of each patch: the picture is now a sequence of {1} \
         tokens, and an encoder reads it as it would read a sentence. Two learned vectors then look at the encoder's output by \
         cross-attention and answer in which row, and in which column, the square is. Every shape lies inside one patch, so that \
         the patches of a picture tell nothing about where they belong.",
        sizes.grid,
        sizes.grid * sizes.grid,
    ));
    let maps = unseen.iter().take(6).map(|p| {
        let title = format!("row {}, column {}", p.row + 1, p.column + 1);
        HeatMap::new(title, Matrix::from_rows(&p.lines())).range(0.0, 1.0)
    });
    let grid = Grid::new("Where is the square?", 3, maps.collect()).scale_label("brightness");
    report.picture(
        "pictures",
        "Six of the pictures that were asked about, pixel by pixel, and the answers.",
        grid,
    );
}

fn results(report: &mut Report, sizes: &Sizes, unseen: &[Picture], all: &[Trained]) {
    report.heading("Where is the square?");
    let grid = sizes.grid as f64;
    let percent = |name: &str| Column::new(name).unit("%").decimals(1);
    let mut table = Table::new(
        "accuracy",
        format!("Answers about {} pictures that were not trained on", unseen.len()),
        [
            Column::new("positions"),
            Column::new("parameters"),
            percent("row right"),
            percent("column right"),
            percent("both right"),
            percent("attention on the square"),
            Column::new("training").unit("s").decimals(1),
        ],
    );
    for t in all {
        let right = |f: fn(&Picture, &Answer) -> bool| 100.0 * fraction(unseen, &t.answers, f);
        let looked: f32 = unseen.iter().zip(&t.answers).map(|(p, a)| a.attention[p.place()]).sum();
        table.row([
            t.positions.name().into(),
            t.model.parameters().len().into(),
            right(|p, a| a.row() == p.row).into(),
            right(|p, a| a.column() == p.column).into(),
            right(|p, a| a.row() == p.row && a.column() == p.column).into(),
            (100.0 * f64::from(looked) / unseen.len() as f64).into(),
            t.fitted.seconds.into(),
        ]);
    }
    let chance = [100.0 / grid, 100.0 / grid, 100.0 / (grid * grid)];
    let guess = ["guessing".into(), None::<f64>.into()].into_iter().chain(chance.map(Into::into));
    table.row(guess.chain([chance[2].into(), None::<f64>.into()]));
    let both: Vec<f64> = (0..all.len()).filter_map(|i| table.number(i, "both right")).collect();
    if let [learned, sinusoids, none] = both[..] {
        // Three standard deviations of guessing on this many pictures.
        let p = chance[2] / 100.0;
        let spread = 300.0 * (p * (1.0 - p) / unseen.len() as f64).sqrt();
        let verdict = if (none - chance[2]).abs() <= spread { "which is no more than" } else { "against" };
        let knows = |right: f64| right > 3.0 * chance[2];
        let (en, zh) = match (knows(learned) || knows(sinusoids), knows(none)) {
            (true, false) => (
                "Yes to both. Cut into patches, a picture is a sequence that an encoder reads like a sentence; without positions it sees \
                 the patches as a bag and can only guess where they belong.",
                "两个问题的答案都是肯定的。切成图块之后，图片就是一个序列，编码器可以像读句子一样读它；没有位置，它看到的只是一袋图块，\
                 只能猜它们在哪里。",
            ),
            (true, true) => (
                "It can read it, and in this run it finds the place even without positions.",
                "它能看懂，而且在这次运行中，没有位置也能找到地方。",
            ),
            (false, _) => (
                "After this little training, no model finds the place yet.",
                "训练这么少，还没有一个模型能找到地方。",
            ),
        };
        report.answer(en, zh);
        report.summary(format!(
            "Asked where the square is in pictures it had not seen, a Transformer over patches was right in {learned:.1} % with one learned \
             vector a patch, in {sinusoids:.1} % with two-dimensional sinusoids, and in {none:.1} % without positions, {verdict} the \
             {:.1} % of guessing: without them, the patches of a picture are a bag.",
            chance[2],
        ));
    }
    report.table(table);
    let mut chart =
        LineChart::new("Places found while training", "pictures trained on", "right (% of unseen pictures)");
    for t in all {
        chart = chart.series(Series::new(t.positions.name(), t.learning_curve.clone()).markers());
    }
    let last = all.iter().flat_map(|t| t.learning_curve.last()).map(|p| p.0).fold(0.0, f64::max);
    chart = chart.series(Series::new("guessing", vec![(0.0, chance[2]), (last, chance[2])]).dashed());
    chart.y.range = Some((0.0, 100.0));
    let caption = format!("Measured on {} of the unseen pictures.", WATCHED.min(unseen.len()));
    report.picture("course", caption, chart);
}

fn order(report: &mut Report, unseen: &[Picture], shuffled: &[Picture], all: &[Trained]) {
    report.heading("The same patches in another order");
    report.text(
        "Each picture again, its patches in a random order. Without positions, the answer cannot change: attention sums over its \
         keys, whatever their order, and all else is done patch by patch. With positions the model should say where the square is now.",
    );
    let percent = |name: &str| Column::new(name).unit("%").decimals(1);
    let columns = [
        Column::new("positions"),
        percent("answers that changed"),
        percent("new place right"),
        Column::new("largest change of a score"),
    ];
    let mut table = Table::new("order", "Pictures with their patches shuffled", columns);
    for t in all {
        let pairs = || t.answers.iter().zip(&t.shuffled);
        let changed = pairs().filter(|(a, b)| (a.row(), a.column()) != (b.row(), b.column())).count();
        let new = fraction(shuffled, &t.shuffled, |p, a| a.row() == p.row && a.column() == p.column);
        let scores = pairs().flat_map(|(a, b)| a.scores.iter().zip(&b.scores));
        let most = scores.map(|(a, b)| f64::from((a - b).abs())).fold(0.0, f64::max);
        table.row([
            t.positions.name().into(),
            (100.0 * changed as f64 / unseen.len().max(1) as f64).into(),
            (100.0 * new).into(),
            most.into(),
        ]);
    }
    report.table(table);
}

fn likeness(report: &mut Report, sizes: &Sizes, all: &[Trained]) {
    report.heading("What the position vectors are like");
    report.text(
        "How similar the vector of one position is to those of all others: the cosine of their angle, drawn where the positions are. Learned \
         vectors began as small random numbers; whatever order they show, they have learned. Sinusoids have it from the start: \
         places of one row, and of one column, share half of their numbers.",
    );
    let grid = sizes.grid;
    let chosen = [0, grid / 2 * grid + grid / 2, grid * grid - 1];
    let mut maps = Vec::new();
    for t in all.iter().filter(|t| t.positions != PositionKind::None) {
        let vectors = t.model.position_vectors(&t.fitted.weights);
        let d = vectors.len() / (grid * grid);
        let vector = |place: usize| &vectors[place * d..][..d];
        for place in chosen {
            let values: Vec<f32> =
                (0..grid * grid).map(|other| cosine(vector(place), vector(other))).collect();
            let rows: Vec<&[f32]> = values.chunks(grid).collect();
            let kind = if t.positions == PositionKind::Learned { "learned" } else { "sinusoids" };
            let title = format!("{kind}, ({}, {})", place / grid + 1, place % grid + 1);
            maps.push(numbered(HeatMap::new(title, Matrix::from_rows(&rows)).range(-1.0, 1.0), grid));
        }
    }
    let picture = Grid::new("Position vectors: a place and all others", 3, maps).scale_label("cosine");
    report.picture("likeness", "Rows and columns are those of the patches.", picture);
}

/// Labels rows and columns with numbers from 1.
fn numbered(map: HeatMap, grid: usize) -> HeatMap {
    let names: Vec<String> = (1..=grid).map(|i| i.to_string()).collect();
    map.labels(&names, &names)
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f32::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::smoke;

    #[test]
    fn positions_are_what_finds_the_place() {
        let report = smoke(&STUDY);
        let accuracy = report.find_table("accuracy").unwrap();
        let both = |row| accuracy.number(row, "both right").unwrap();
        let guessing = both(3);
        assert!((guessing - 100.0 / 9.0).abs() < 1e-9);
        // Nine positions, 200 pictures: guessing has a standard deviation of 2.2 percent.
        assert!((both(2) - guessing).abs() < 9.0, "{}", both(2));
        let order = report.find_table("order").unwrap();
        assert_eq!(order.number(2, "answers that changed"), Some(0.0));
        // Sums in a different order differ in their last bits.
        let change = |row| order.number(row, "largest change of a score").unwrap();
        assert!(change(2) < 1e-5 && change(0) > 1e-3 && change(1) > 1e-3);
    }
}
