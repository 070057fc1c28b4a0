//! Why attention scores are divided by √d_k.

use crate::report::significant;
use crate::{Column, Report, Setup, Study, Table};
use regard_core::{Key, Result};
use regard_plot::{LineChart, Series};

/// See [`crate::studies`].
pub(crate) const STUDY: Study = Study {
    name: "scale",
    title: "Why attention divides by $√{d_k}$",
    question: "Why does attention divide its scores by the square root of a head's width?",
    zh: ["注意力为什么要除以 $√{d_k}$", "注意力为什么要把得分除以头宽度的平方根？"],
    about: "variance of q·k, entropy of the weights and size of the gradient against dₖ, with and without 1/√dₖ",
    body: run,
};

/// The number of keys per query.
const KEYS: usize = 64;

/// Measurements on the softmax of one query's scores.
#[derive(Clone, Copy, Default)]
struct Softmax {
    /// The entropy in nats.
    entropy: f64,
    /// The Frobenius norm of the Jacobian of the weights with respect to the scores,
    /// `diag(p) − p·pᵀ`.
    jacobian: f64,
    largest: f64,
}

/// The measurements over all queries for one d_k and one scale.
#[derive(Clone, Copy)]
struct Measured {
    /// The variance of the scores.
    variance: f64,
    entropy: f64,
    /// The Jacobian norm of the median query.
    jacobian: f64,
    /// The fraction of queries that give one key a weight above 0.99.
    saturated: f64,
}

struct Point {
    d_k: usize,
    plain: Measured,
    scaled: Measured,
}

fn run(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let largest = setup.choose(9, 10, 12);
    let queries = setup.choose(100, 2000, 8000);
    let mut points = Vec::new();
    for d_k in (0..=largest).map(|power| 1usize << power) {
        setup.progress(format!("d_k = {d_k}"));
        points.push(measure(Key::new(setup.seed).child(d_k as u64), d_k, queries));
    }
    explain(report, &points, queries);
    report.table(table(&points));
    pictures(report, &points);
    Ok(())
}

/// Measures the scores of random queries and keys with independent components of mean 0 and
/// variance 1.
fn measure(key: Key, d_k: usize, queries: usize) -> Point {
    let scale = (d_k as f64).sqrt().recip();
    let (mut scores, mut softmaxes) = (Vec::new(), [Vec::new(), Vec::new()]);
    for query in 0..queries {
        let stream = key.child(query as u64);
        let normals = |from: usize| (from * d_k..(from + 1) * d_k).map(move |i| stream.normal(i as u32));
        let q: Vec<f32> = normals(0).collect();
        let dot = |j: usize| q.iter().zip(normals(j)).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        let row: Vec<f64> = (1..=KEYS).map(dot).collect();
        softmaxes[0].push(softmax(&row));
        softmaxes[1].push(softmax(&row.iter().map(|s| s * scale).collect::<Vec<_>>()));
        scores.extend(row);
    }
    let variance = scores.iter().map(|s| s * s).sum::<f64>() / scores.len() as f64;
    let [plain, scaled] = &softmaxes;
    Point { d_k, plain: summarise(plain, variance), scaled: summarise(scaled, variance * scale * scale) }
}

fn softmax(scores: &[f64]) -> Softmax {
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
    let sum: f64 = powers.iter().sum();
    let p: Vec<f64> = powers.iter().map(|x| x / sum).collect();
    let entropy = -p.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>();
    let squares: f64 = p.iter().map(|p| p * p).sum();
    // Σ p_i²(1−p_i)² on the diagonal and Σ p_i²p_j² off it.
    let diagonal: f64 = p.iter().map(|p| (p * (1.0 - p)).powi(2)).sum();
    let off = (squares * squares - p.iter().map(|p| p.powi(4)).sum::<f64>()).max(0.0);
    Softmax { entropy, jacobian: (diagonal + off).sqrt(), largest: 1.0 / sum }
}

fn summarise(all: &[Softmax], variance: f64) -> Measured {
    let n = all.len() as f64;
    let mut norms: Vec<f64> = all.iter().map(|s| s.jacobian).collect();
    norms.sort_by(f64::total_cmp);
    Measured {
        variance,
        entropy: all.iter().map(|s| s.entropy).sum::<f64>() / n,
        jacobian: norms[norms.len() / 2],
        saturated: all.iter().filter(|s| s.largest > 0.99).count() as f64 / n,
    }
}

/// The entropy of the softmax of many normal scores with this variance: `ln n − σ²/2` as long as
/// that is sufficiently positive, up to σ² = 2 ln n, where a few keys take all the weight (the
/// random energy model of physics).
fn theory(variance: f64) -> f64 {
    let n = KEYS as f64;
    if variance < 2.0 * n.ln() { n.ln() - variance / 2.0 } else { 0.0 }
}

fn explain(report: &mut Report, points: &[Point], queries: usize) {
    let Some(last) = points.last() else { return };
    let d_k = last.d_k;
    let (en, zh) = if last.plain.saturated > last.scaled.saturated + 0.2 {
        (
            "Because without it, the scores of a wide head lie so far apart that softmax gives nearly everything to one word, and hardly any \
         gradient is left to learn from. Divided by the root, scores have the same spread at every width, and the weights stay soft.",
            "因为不除的话，宽的头的得分彼此相差太远，softmax 几乎把全部权重给了一个词，可供学习的梯度所剩无几。除以平方根之后，\
          得分在任何宽度下都一样分散，权重保持柔和。",
        )
    } else {
        (
            "At the widths of this run the division does not make a clear difference yet.",
            "在这次运行的宽度下，除与不除还没有明显差别。",
        )
    };
    report.answer(en, zh);
    report.summary(format!(
        "At $d_k = {d_k}$ the variance of $q·k$ is {}, and softmax gives one of {KEYS} keys more than 0.99 in {:.0} % of the queries: the \
         Jacobian of softmax at the median query has norm {}. Divided by $√{{d_k}}$ the variance is {}, the entropy of the weights stays at {:.2} of at most \
         {:.2} nats, and that norm is {}.",
        significant(last.plain.variance),
        100.0 * last.plain.saturated,
        significant(last.plain.jacobian),
        significant(last.scaled.variance),
        last.scaled.entropy,
        (KEYS as f64).ln(),
        significant(last.scaled.jacobian),
    ));
    report.text(format!(
        "The numbers of $q$ and $k$ are independent, with mean 0 and variance 1. Then $q·k$, a sum of $d_k$ products, has mean 0 and variance \
         $d_k$ (section 3.2.1 of the paper). Here {queries} random queries look at {KEYS} random keys each, for every $d_k$."
    ));
    report.text(
        "Softmax of scores that lie far apart gives nearly everything to the largest. Its Jacobian, the matrix $diag(p) − p·p^T$, is then \
         nearly zero, and so is the gradient that reaches queries and keys. Dividing the scores by $√{d_k}$ brings their variance back to 1, \
         whatever $d_k$ is.",
    );
    let freezing = 2.0 * (KEYS as f64).ln();
    report.text(format!(
        "For very many keys with normal scores of variance $σ^2$ theory expects the entropy $ln n − σ^2/2$, up to $σ^2 = 2 ln n = {freezing:.1}$; \
         beyond that a handful of keys takes everything. Without the scale $σ^2 = d_k$, so that heads wider than that begin saturated. The dashed \
         line shows this; with {KEYS} keys the fall is less steep. The norm of the Jacobian is that of the median query, because a few \
         queries whose two best keys happen to be close keep a large one. \"Saturated\" is the part of the queries that give one key more than \
         0.99; divided by $√{{d_k}}$ it is {:.1} % at the largest $d_k$.",
        100.0 * last.scaled.saturated
    ));
}

fn table(points: &[Point]) -> Table {
    let mut table = Table::new(
        "scale",
        format!("Scores of {KEYS} keys with and without $1/√{{d_k}}$"),
        [
            Column::new("dₖ"),
            Column::new("variance"),
            Column::new("variance, scaled"),
            Column::new("entropy").unit("nats").decimals(3),
            Column::new("entropy, scaled").unit("nats").decimals(3),
            Column::new("Jacobian norm"),
            Column::new("Jacobian norm, scaled"),
            Column::new("saturated").unit("%").decimals(1),
        ],
    );
    for Point { d_k, plain, scaled } in points {
        table.row([
            (*d_k).into(),
            plain.variance.into(),
            scaled.variance.into(),
            plain.entropy.into(),
            scaled.entropy.into(),
            plain.jacobian.into(),
            scaled.jacobian.into(),
            (100.0 * plain.saturated).into(),
        ]);
    }
    table
}

fn pictures(report: &mut Report, points: &[Point]) {
    let series = |name: &str, of: &dyn Fn(&Point) -> f64| {
        Series::new(name, points.iter().map(|p| (p.d_k as f64, of(p))).collect())
    };
    let variance = LineChart::new("Variance of the scores", "dₖ", "variance")
        .series(series("q·k", &|p| p.plain.variance).markers())
        .series(series("q·k / √dₖ", &|p| p.scaled.variance).markers())
        .series(series("theory: dₖ", &|p| p.d_k as f64).dashed().colour(0))
        .series(series("theory: 1", &|_| 1.0).dashed().colour(1))
        .log_x()
        .log_y();
    report.picture(
        "variance",
        "The variance of $q·k$ grows with $d_k$; divided by $√{d_k}$ it stays at 1.",
        variance,
    );
    let entropy = LineChart::new("Entropy of the attention weights", "dₖ", "entropy (nats)")
        .series(series("softmax(q·k)", &|p| p.plain.entropy).markers())
        .series(series("softmax(q·k / √dₖ)", &|p| p.scaled.entropy).markers())
        .series(series("theory for many keys", &|p| theory(p.d_k as f64)).dashed().colour(0))
        .series(series("uniform weights", &|_| (KEYS as f64).ln()).dashed().colour(2))
        .log_x();
    report.picture("entropy", "Without the scale the weights of wide heads fall on one key.", entropy);
    let jacobian = LineChart::new("Jacobian of softmax, median query", "dₖ", "‖∂p/∂s‖")
        .series(series("without 1/√dₖ", &|p| p.plain.jacobian).markers())
        .series(series("with 1/√dₖ", &|p| p.scaled.jacobian).markers())
        .log_x()
        .log_y();
    report.picture("jacobian", "How much of a gradient softmax lets through to its scores.", jacobian);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::smoke;

    #[test]
    fn the_variance_is_d_k_and_softmax_saturates_without_the_scale() {
        let report = smoke(&STUDY);
        let table = report.find_table("scale").unwrap();
        let last = table.rows.len() - 1;
        let get = |row, column: &str| table.number(row, column).unwrap();
        for row in 0..=last {
            let d_k = get(row, "dₖ");
            let off = (get(row, "variance") / d_k - 1.0).abs();
            assert!(off < 0.1 + 0.4 / d_k.sqrt(), "{d_k}: {off}");
        }
        assert!(get(last, "entropy") < 0.4 && get(last, "entropy, scaled") > 3.5);
        assert!(get(last, "Jacobian norm") < 0.2 * get(0, "Jacobian norm"), "{}", get(last, "Jacobian norm"));
        assert!(get(last, "Jacobian norm, scaled") > 0.5 * get(0, "Jacobian norm, scaled"));
        assert!(get(last, "saturated") > 30.0);
    }

    #[test]
    fn the_jacobian_is_that_of_finite_differences() {
        let scores = [0.3, -1.2, 2.0, 0.0];
        let p = |s: &[f64]| {
            let sum: f64 = s.iter().map(|x| x.exp()).sum();
            s.iter().map(|x| x.exp() / sum).collect::<Vec<f64>>()
        };
        let mut squares = 0.0;
        for j in 0..4 {
            let step = |h: f64| {
                let mut moved = scores;
                moved[j] += h;
                p(&moved)
            };
            squares += step(1e-5).iter().zip(step(-1e-5)).map(|(a, b)| ((a - b) / 2e-5).powi(2)).sum::<f64>();
        }
        let got = softmax(&scores);
        assert!((got.jacobian - squares.sqrt()).abs() < 1e-8);
        let want = p(&scores);
        assert!((got.largest - want[2]).abs() < 1e-12);
        assert!((got.entropy + want.iter().map(|p| p * p.ln()).sum::<f64>()).abs() < 1e-12);
    }
}
