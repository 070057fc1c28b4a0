//! The settings of a resumed run, and which of them may change.

use super::folder::config_file;
use crate::config::TrainConfig;
use regard_core::{Error, Result};
use std::path::Path;

/// Settings that may change when a run is resumed: none that determines the model's shape or which
/// batch comes next.
const CHANGEABLE: [&str; 13] = [
    "threads",
    "precision",
    "steps",
    "epochs",
    "log_every",
    "data.license",
    "model.dropout",
    "model.attention_dropout",
    "model.activation_dropout",
    "optimizer.",
    "schedule.",
    "validation.",
    "checkpoints.",
];
/// Those of them that a plan for a time limit determines.
const PLANNED: [&str; 5] = ["steps", "epochs", "schedule.", "validation.every", "checkpoints.every"];

/// The settings of the run in `out`, with the changes that `change` makes, if they are allowed.
pub fn resumed_config(
    out: &Path,
    change: impl FnOnce(&mut TrainConfig) -> Result<()>,
) -> Result<TrainConfig> {
    let saved = TrainConfig::load(&config_file(out))?;
    let mut config = saved.clone();
    change(&mut config)?;
    config.absolute_paths()?;
    let fits =
        |list: &[&str], key: &str| list.iter().any(|c| key == *c || (c.ends_with('.') && key.starts_with(c)));
    for key in saved.differences(&config) {
        if !fits(&CHANGEABLE, &key) {
            return Err(Error::config(
                key,
                "cannot change in the middle of a run; start another one for that",
            ));
        }
        if saved.minutes.is_some() && fits(&PLANNED, &key) {
            let message = "this run has a time limit and plans its steps itself; start another one for that";
            return Err(Error::config(key, message));
        }
    }
    Ok(config)
}
