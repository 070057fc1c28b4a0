//! BLEU, chrF and TER.

use crate::errors::of_metrics;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use regard::metrics::{Bleu, Bootstrap, Chrf, Details, Metric, Score, Ter};

/// What every metric is given.
type References = Vec<Vec<String>>;

/// Runs a metric: over the corpus, or for each sentence.
fn scores<'py>(
    py: Python<'py>,
    metric: &(dyn Metric + Sync),
    hypotheses: Vec<String>,
    references: References,
    sentence_level: bool,
    bootstrap: Option<(usize, u64)>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let bootstrap = bootstrap.map(|(samples, seed)| Bootstrap { samples, seed });
    let compute = || match (sentence_level, &bootstrap) {
        (true, _) => {
            metric.statistics(&hypotheses, &references)?; // the numbers of lines
            let each = hypotheses.iter().enumerate().map(|(i, hypothesis)| {
                let of_line: Vec<&str> = references.iter().map(|document| document[i].as_str()).collect();
                metric.sentence(hypothesis, &of_line)
            });
            each.collect()
        }
        (false, Some(bootstrap)) => {
            Ok(vec![metric.corpus_with_interval(&hypotheses, &references, bootstrap)?])
        }
        (false, None) => Ok(vec![metric.corpus(&hypotheses, &references)?]),
    };
    let found: Vec<Score> =
        py.detach(compute).map_err(|error: regard::metrics::Error| of_metrics(py, &error))?;
    found.into_iter().map(|score| to_dict(py, &score)).collect()
}

fn to_dict<'py>(py: Python<'py>, score: &Score) -> PyResult<Bound<'py, PyDict>> {
    let (found, details) = (PyDict::new(py), PyDict::new(py));
    found.set_item("name", &score.name)?;
    found.set_item("score", score.score)?;
    found.set_item("signature", &score.signature)?;
    found.set_item("text", score.to_string())?;
    found.set_item("interval", score.interval.map(|interval| (interval.mean, interval.half_width)))?;
    match &score.details {
        Details::Bleu { counts, totals, precisions, brevity_penalty, hyp_len, ref_len } => {
            details.set_item("counts", counts)?;
            details.set_item("totals", totals)?;
            details.set_item("precisions", precisions)?;
            details.set_item("brevity_penalty", brevity_penalty)?;
            details.set_item("hyp_len", hyp_len)?;
            details.set_item("ref_len", ref_len)?;
        }
        Details::Chrf {} => {}
        Details::Ter { edits, ref_len } => {
            details.set_item("edits", edits)?;
            details.set_item("ref_len", ref_len)?;
        }
    }
    found.set_item("details", details)?;
    Ok(found)
}

/// BLEU of a corpus, or of each of its sentences.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the settings of sacreBLEU")]
pub(crate) fn bleu<'py>(
    py: Python<'py>,
    hypotheses: Vec<String>,
    references: References,
    tokenize: &str,
    lowercase: bool,
    smooth: &str,
    max_order: usize,
    effective_order: bool,
    sentence_level: bool,
    bootstrap: Option<(usize, u64)>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let tokenizer = tokenize.parse().map_err(|error| of_metrics(py, &error))?;
    let smoothing = smooth.parse().map_err(|error| of_metrics(py, &error))?;
    let effective_order = effective_order || sentence_level;
    let metric = Bleu { tokenizer, lowercase, smoothing, max_order, effective_order };
    scores(py, &metric, hypotheses, references, sentence_level, bootstrap)
}

/// chrF of a corpus, or of each of its sentences.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the settings of sacreBLEU")]
pub(crate) fn chrf<'py>(
    py: Python<'py>,
    hypotheses: Vec<String>,
    references: References,
    char_order: usize,
    word_order: usize,
    beta: u32,
    lowercase: bool,
    whitespace: bool,
    eps_smoothing: bool,
    sentence_level: bool,
    bootstrap: Option<(usize, u64)>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let metric = Chrf { char_order, word_order, beta, lowercase, whitespace, eps_smoothing };
    scores(py, &metric, hypotheses, references, sentence_level, bootstrap)
}

/// TER of a corpus, or of each of its sentences.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the settings of sacreBLEU")]
pub(crate) fn ter<'py>(
    py: Python<'py>,
    hypotheses: Vec<String>,
    references: References,
    normalized: bool,
    no_punct: bool,
    asian_support: bool,
    case_sensitive: bool,
    sentence_level: bool,
    bootstrap: Option<(usize, u64)>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let metric = Ter { normalized, no_punct, asian_support, case_sensitive };
    scores(py, &metric, hypotheses, references, sentence_level, bootstrap)
}
