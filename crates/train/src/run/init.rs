//! The model that a run starts from, if any.

use super::texts::languages;
use crate::config::TrainConfig;
use regard_core::formats::{Languages, Model};
use regard_core::model::ModelConfig;
use regard_core::text::Tokenizer;
use regard_core::{Error, Result};
use std::path::Path;

/// The model to start from.
pub(crate) fn load_init(config: &TrainConfig) -> Result<Option<Model>> {
    let Some(folder) = &config.data.init else { return Ok(None) };
    let model = Model::load(folder)?;
    check_init(config, &model, folder)?;
    let Languages { source, target } = languages(&config.data);
    let model = match model.tokenizers.languages() {
        Some(_) => model.for_languages(source.as_deref(), target.as_deref())?,
        None => model,
    };
    Ok(Some(model))
}

/// Rejects a shape that differs from that of the model in `folder`, the one to start from. Settings
/// equal to those in `usual` are ignored.
pub fn check_shape(
    asked: &ModelConfig,
    has: &ModelConfig,
    usual: Option<&ModelConfig>,
    folder: &Path,
) -> Result<()> {
    /// These depend on the tokenizer or may change.
    const FREE: [&str; 5] =
        ["source_vocabulary", "target_vocabulary", "dropout", "attention_dropout", "activation_dropout"];
    let fields = |config: &ModelConfig| serde_json::to_value(config).unwrap_or_default();
    let (asked, has, usual) = (fields(asked), fields(has), usual.map(fields));
    for (field, value) in asked.as_object().into_iter().flatten() {
        let free =
            FREE.contains(&field.as_str()) || usual.as_ref().is_some_and(|usual| usual[field] == *value);
        if !free && *value != has[field] {
            return Err(other_than(
                folder,
                &format!("model.{field}"),
                value.to_string(),
                has[field].to_string(),
            ));
        }
    }
    Ok(())
}

fn other_than(folder: &Path, field: &str, asked: String, has: String) -> Error {
    let folder = folder.display();
    Error::config(
        field,
        format!("{asked} does not fit the model to start from, {folder}, which has {has}; leave this out"),
    )
}

/// Rejects settings that request another shape or vocabulary than that of the model to start from,
/// naming both.
fn check_init(config: &TrainConfig, model: &Model, folder: &Path) -> Result<()> {
    // A setting that equals the preset's may not have been set by the user.
    let usual = TrainConfig::new(config.preset).model;
    check_shape(&config.model, model.transformer.config(), Some(&usual), folder)?;
    let refuse = |field, wanted, has| Err(other_than(folder, field, wanted, has));
    let (source, target) = (model.tokenizers.source(), model.tokenizers.target());
    let pieces = |n: usize| format!("a vocabulary of {n} pieces");
    if let Some(file) = &config.tokenizer.file {
        let wanted = Tokenizer::load(file)?;
        if [source, target].iter().any(|tokenizer| !tokenizer.is_same_as(&wanted)) {
            let wanted = format!("{} ({} pieces)", file.display(), wanted.size());
            return refuse("tokenizer.file", wanted, format!("another tokenizer ({} pieces)", source.size()));
        }
    }
    if let Some(size) = config.tokenizer.vocabulary.size.filter(|&size| size != source.size()) {
        return refuse("tokenizer.size", pieces(size), pieces(source.size()));
    }
    if config.tokenizer.vocabulary.separate && model.tokenizers.is_joint() {
        return refuse("tokenizer.separate", "a vocabulary for each language".into(), "a joint one".into());
    }
    Ok(())
}
