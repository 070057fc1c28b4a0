//! Positions: the shape of the sinusoids, their effect on quality, and whether they survive the
//! layers.

mod columns;
mod probe;
mod quality;
mod sinusoids;

use crate::small::Task;
use crate::{Report, Setup, Study};
use regard_core::Result;

/// See [`crate::studies`].
pub(crate) const STUDY: Study = Study {
    name: "positions",
    title: "How a model knows where a token is",
    question: "How does a model know where a word stands, and does it matter which kind of positions it has?",
    zh: ["模型如何知道一个词元的位置", "模型如何知道一个词在哪里？位置的表示方式不同，有区别吗？"],
    about: "sinusoids and their linear map; five kinds of positions trained and tested beyond their lengths; a probe",
    body: run,
};

fn run(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let map = sinusoids::study(setup, report)?;
    let task = Task::new(setup)?;
    let models = quality::study(setup, report, &task)?;
    let order = columns::study(setup, report, &task, models.sinusoidal())?;
    let probe = probe::study(setup, report, &task, &models)?;
    let [en, zh] = models.answer();
    report.answer(en, zh);
    report.summary(format!(
        "One matrix $M(δ)$ moves every position by $δ$, within {map}. {} {order} {probe}",
        models.summary()
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;
    use crate::testing::smoke;

    #[test]
    fn maps_are_exact_columns_do_not_matter_and_positions_can_be_read() {
        let report = smoke(&STUDY);
        let map = report.find_table("linear-map").unwrap();
        for row in 0..map.rows.len() {
            assert!(map.number(row, "error").unwrap() < 1e-4);
            assert!(map.number(row, "error of M(δ + 1)").unwrap() > 0.1);
        }
        let counter = report.find_table("counter").unwrap();
        assert!((0..counter.rows.len()).all(|row| counter.number(row, "correlation").unwrap() > 0.8));
        let quality = report.find_table("quality").unwrap();
        assert_eq!(quality.rows.len(), kinds::ALL.len());
        let columns = report.find_table("columns").unwrap();
        let loss = |row| columns.number(row, "loss").unwrap();
        assert!((loss(0) - loss(1)).abs() < 1e-4, "{} and {}", loss(0), loss(1));
        assert!((loss(0) - loss(2)).abs() > 1e-3, "{} and {}", loss(0), loss(2));
        // Before any layer, a probe can read sinusoids, but finds nothing in a model without
        // positions.
        let probe = report.find_table("probe").unwrap();
        let accuracy = |kind: &str| {
            let row = probe.rows.iter().position(|row| row[0] == kind.into() && row[1] == "encoder".into());
            probe.number(row.unwrap(), "embedding").unwrap()
        };
        assert!(
            accuracy("sinusoidal") > accuracy("none") + 10.0,
            "{} {}",
            accuracy("sinusoidal"),
            accuracy("none")
        );
    }
}
