//! Averages the weights of several models.

use super::Model;
use crate::model::{ModelConfig, Positions};
use crate::{Error, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The model whose weights are the mean of those of the folders' models; everything else comes from
/// the first.
///
/// Rejects models of different shapes or vocabularies, naming both folders.
pub fn average(folders: &[PathBuf]) -> Result<Model> {
    average_with(folders, Model::load)
}

/// The same for models that `load` reads from any paths.
pub fn average_with(paths: &[PathBuf], load: impl Fn(&Path) -> Result<Model>) -> Result<Model> {
    let Some((first, others)) = paths.split_first() else {
        return Err(Error::config("average", "at least one model folder is needed"));
    };
    let mut model = load(first)?;
    let words = model.transformer.config().target_vocabulary;
    // Take the weights out, so that only the sum and one model are in memory.
    let mut sum: Vec<f64> = std::mem::take(&mut model.weights).into_iter().map(f64::from).collect();
    let mut bias = vec![0f64; words];
    add(&mut bias, model.transformer.output_bias().unwrap_or_default());
    for path in others {
        let other = load(path)?;
        if let Some(difference) = difference(&model, &other) {
            let message =
                format!("{difference}; {} and {} cannot be averaged", first.display(), path.display());
            return Err(Error::Input { operation: "average", message });
        }
        add(&mut sum, &other.weights);
        add(&mut bias, other.transformer.output_bias().unwrap_or_default());
    }
    let mean = |sum: &f64| (sum / paths.len() as f64) as f32;
    model.weights = sum.iter().map(mean).collect();
    let bias = bias.iter().any(|&x| x != 0.0).then(|| bias.iter().map(mean).collect());
    model.transformer.set_output_bias(bias)?;
    Ok(model)
}

fn add(sum: &mut [f64], values: &[f32]) {
    sum.iter_mut().zip(values).for_each(|(sum, &x)| *sum += f64::from(x));
}

/// The difference that prevents averaging two models.
fn difference(a: &Model, b: &Model) -> Option<String> {
    let fields = |config: &ModelConfig| {
        // Dropout does not matter after training.
        let mut config =
            ModelConfig { dropout: 0.0, attention_dropout: 0.0, activation_dropout: 0.0, ..config.clone() };
        // Computed positions have no weights, so their maximum length does not matter.
        if config.positions != Positions::Learned {
            config.max_positions = 0;
        }
        serde_json::to_value(config).unwrap_or_default()
    };
    let (ours, theirs) = (fields(a.transformer.config()), fields(b.transformer.config()));
    let empty = serde_json::Map::new();
    for (field, value) in ours.as_object().unwrap_or(&empty) {
        let other = theirs.get(field).unwrap_or(&Value::Null);
        if value != other {
            return Some(format!("{field} is {value} in one and {other} in the other"));
        }
    }
    let same_tokenizers = a.tokenizers.source().is_same_as(b.tokenizers.source())
        && a.tokenizers.target().is_same_as(b.tokenizers.target());
    (!same_tokenizers).then(|| "their tokenizers differ".into())
}
