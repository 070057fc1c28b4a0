//! Regard: the Transformer of *Attention Is All You Need*, from raw parallel text to a translator,
//! on CPUs.
//!
//! This crate is the front of a workspace. Without default features it is the library that
//! translates, plus [`metrics`]; the feature `train` adds [`train`]; `cli`, on by default, adds the
//! command `regard`.
//!
//! # Train
//!
//! Two text files, one sentence per line, become a model folder that `transformers` and CTranslate2
//! read too:
//!
//! ```
//! use regard::Isa;
//! use regard::model::Preset;
//! use regard::train::{TrainConfig, train};
//! use std::sync::atomic::AtomicBool;
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let (english, french) = (folder.path().join("train.en"), folder.path().join("train.fr"));
//! # let pairs = regard_sample_corpus::corpus(1, 200).train;
//! # let side = |of: fn(&(String, String)) -> &String| {
//! #     pairs.iter().map(|p| format!("{}\n", of(p))).collect::<String>()
//! # };
//! # std::fs::write(&english, side(|p| &p.0)).unwrap();
//! # std::fs::write(&french, side(|p| &p.1)).unwrap();
//! let mut config = TrainConfig::new(Preset::Tiny);
//! config.data.src = vec![english];
//! config.data.tgt = vec![french];
//! config.steps = Some(2); // 5,000 for a translator
//! # config.threads = Some(1);
//!
//! // Setting the flag from another thread ends the run early, with everything saved.
//! let stop = AtomicBool::new(false);
//! let outcome = train(config, &folder.path().join("model"), false, Isa::best(), &stop, &mut ())?;
//! assert_eq!(outcome.steps, 2);
//! # Ok::<(), regard::Error>(())
//! ```
//!
//! # Translate
//!
//! ```
//! use regard::{Isa, Translator};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path();
//! # {
//! #     use regard::train::{TrainConfig, train};
//! #     let pairs = regard_sample_corpus::corpus(1, 200).train;
//! #     let side = |of: fn(&(String, String)) -> &String| {
//! #         pairs.iter().map(|p| format!("{}\n", of(p))).collect::<String>()
//! #     };
//! #     std::fs::write(path.join("train.en"), side(|p| &p.0)).unwrap();
//! #     std::fs::write(path.join("train.fr"), side(|p| &p.1)).unwrap();
//! #     let mut config = TrainConfig::new(regard::model::Preset::Tiny);
//! #     config.data.src = vec![path.join("train.en")];
//! #     config.data.tgt = vec![path.join("train.fr")];
//! #     (config.steps, config.threads) = (Some(1), Some(1));
//! #     train(config, &path.join("model"), false, Isa::best(), &false.into(), &mut ())?;
//! # }
//! let translator = Translator::load(&[path.join("model")], Isa::best(), 2)?;
//! let options = translator.options();
//! let lines = translator.translate(&["The cat sleeps.", "Where is the red house?"], &options)?;
//! assert_eq!(lines.len(), 2);
//! println!("{}", lines[0].best().text);
//! # Ok::<(), regard::Error>(())
//! ```
//!
//! # Score
//!
//! ```
//! use regard::metrics::{Bleu, Metric};
//!
//! let hypotheses = ["The cat sat on the red mat.".to_owned()];
//! let references = [vec!["The cat sat on the mat.".to_owned()]];
//! let score = Bleu::default().corpus(&hypotheses, &references)?;
//! assert_eq!(format!("{:.2}", score.score), "59.46");
//! # Ok::<(), regard::metrics::Error>(())
//! ```
//!
//! `examples/` has these as programs, and one that reads the attention of a sentence.

// The commands name this library as other programs do.
#[cfg(feature = "cli")]
extern crate self as regard;

/// Prints a line to standard error. If that is closed, as after `2>&1 | head`, the line is lost and
/// the work continues: `eprintln!` would panic.
#[cfg(feature = "cli")]
macro_rules! note {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($argument)*);
    }};
}

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cli")]
#[doc(hidden)]
// These macros panic when the reader of a pipe is gone; `commands::Output` does not.
#[warn(clippy::print_stderr, clippy::print_stdout)]
// The comments of the commands are the help texts of the command line.
#[allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags)]
mod commands;

pub use regard_core::translator::Translator;
pub use regard_core::{
    DType, Error, Gemm, Isa, IsaError, Key, Result, batch, decode, formats, languages, model, replace, store,
    text, translator,
};
pub use regard_metrics as metrics;
#[cfg(feature = "train")]
pub use regard_train as train;
