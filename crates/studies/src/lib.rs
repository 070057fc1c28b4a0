//! Studies of the Transformer, each measured by running this code.
//!
//! A [`Study`] has a name and a function that makes a [`Report`] of text, tables and pictures.
//! Every number in a report comes from the run that made it. [`studies`] lists the studies;
//! `regard study` runs them.
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

// Ways to encode a sequence.
mod cost;
mod encoders;
mod encoder_kinds;
mod path;

// Ways to represent the order of tokens.
mod kinds;
mod order;
mod positions;
mod ridge;

// The numbers inside attention.
mod normalisation;
mod scale;
pub mod smooth;
mod smooth_maximum;

// The parts of a model, and inputs other than text.
mod heads;
mod patches;
mod reading;

// Small models for tasks other than translation, and the pictures of their inputs.
mod net;

#[cfg(test)]
mod testing;

pub use report::{Cell, Column, Drawing, Part, Picture, Report, Table, write_index};
pub use setup::{Scale, Setup, Study};

/// All studies, in recommended reading order.
pub fn studies() -> &'static [Study] {
    &[
        // Ways to encode a sequence.
        encoders::STUDY,
        cost::STUDY,
        path::STUDY,
        // Ways to represent the order of tokens.
        positions::STUDY,
        order::STUDY,
        // The numbers inside attention.
        scale::STUDY,
        smooth_maximum::STUDY,
        normalisation::STUDY,
        // The parts of a model, and inputs other than text.
        heads::STUDY,
        patches::STUDY,
        reading::STUDY,
    ]
}

/// The study with this name.
pub fn find(name: &str) -> Option<&'static Study> {
    studies().iter().find(|study| study.name == name)
}
