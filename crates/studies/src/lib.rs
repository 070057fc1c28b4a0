//! Comparisons around the Transformer, each measured by a run of this code.
//!
//! A [`Study`] has a name and a function that makes a [`Report`]: sentences, tables and pictures.
//! Every number in a report comes from the run that made it. [`studies`] lists them; `regard study`
//! runs them.
//!
//! ```
//! use regard_studies::{Scale, Setup, find};
//! let study = find("scale").expect("a study of that name");
//! let report = study.run(&Setup::new(Scale::Smoke))?;
//! assert!(report.tables_as_text().contains("dₖ"));
//! # Ok::<(), regard_core::Error>(())
//! ```

// A study, its scale, seed and threads.
mod setup;
// Sentences, tables and pictures; as text, CSV, SVG and a page.
mod report;
// A small translator on the built-in corpus, for the studies that compare quality.
pub mod small;

// What encodes a sequence.
mod cost;
mod encoders;
mod encoder_kinds;
mod path;

// How a model knows the order of its tokens.
mod kinds;
mod order;
mod positions;
mod ridge;

// The numbers inside attention.
mod normalisation;
mod scale;
pub mod smooth;
mod smooth_maximum;

// What a model is built of, and what else it reads.
mod heads;
mod patches;
mod reading;

// Small models for tasks that are not translation, and what those are drawn with.
mod net;

#[cfg(test)]
mod testing;

pub use report::{Cell, Column, Drawing, Part, Picture, Report, Table, write_index};
pub use setup::{Scale, Setup, Study};

/// All studies, in the order in which they are best read.
pub fn studies() -> &'static [Study] {
    &[
        // What encodes a sequence.
        encoders::STUDY,
        cost::STUDY,
        path::STUDY,
        // How a model knows the order of its tokens.
        positions::STUDY,
        order::STUDY,
        // The numbers inside attention.
        scale::STUDY,
        smooth_maximum::STUDY,
        normalisation::STUDY,
        // What a model is built of, and what else it reads.
        heads::STUDY,
        patches::STUDY,
        reading::STUDY,
    ]
}

/// The study of that name.
pub fn find(name: &str) -> Option<&'static Study> {
    studies().iter().find(|study| study.name == name)
}
