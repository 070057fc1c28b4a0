//! The model card: what the model translates, what it was trained on, how good it is.

use crate::config::TrainConfig;
use crate::corpus::Summary;
use crate::run::write_text;
use regard_core::formats::Languages;
use regard_core::{Error, Result};
use regard_plot::grouped;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// Commands to show on a card, known only to the program that runs the training.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CardCommands {
    /// The command that trained the model.
    pub train: Option<String>,
    /// The command that uses it.
    pub translate: Option<String>,
}

/// The contents of a card besides the settings.
#[derive(Debug)]
pub(crate) struct Card<'a> {
    pub(crate) config: &'a TrainConfig,
    pub(crate) languages: &'a Languages,
    pub(crate) commands: &'a CardCommands,
    pub(crate) corpus: &'a Summary,
    pub(crate) weights: usize,
    pub(crate) vocabulary: (usize, usize),
    pub(crate) steps: u64,
    pub(crate) minutes: f64,
    /// BLEU, chrF and loss on the validation set.
    pub(crate) scores: Option<(f64, f64, f64)>,
    pub(crate) validation_pairs: usize,
}

/// A card with this line was written by a run and may be overwritten.
const MARK: &str = "<!-- Written by the training run. Remove this line to keep changes that you make. -->";

impl Card<'_> {
    /// Writes `README.md` into the model folder, unless a user has edited it.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join("README.md");
        match std::fs::read_to_string(&path) {
            Ok(text) if !text.contains(MARK) => Ok(()),
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(&path, e)),
            _ => write_text(&path, &self.render()),
        }
    }

    fn render(&self) -> String {
        let Languages { source, target } = self.languages;
        let name = |code: &Option<String>| code.clone().unwrap_or_else(|| "unknown".into());
        let licence = self.config.data.license.as_deref();
        let mut text = String::from("---\n");
        let codes: Vec<&str> = [source, target].into_iter().flatten().map(String::as_str).collect();
        if !codes.is_empty() {
            text += "language:\n";
            codes.iter().for_each(|code| text += &format!("- {}\n", quoted(code)));
        }
        let _ = write!(
            text,
            "license: {}\npipeline_tag: translation\ntags:\n- translation\n- marian\n---\n{MARK}\n\n# Translation: {} → {}\n\n",
            quoted(licence.unwrap_or("unknown")),
            name(source),
            name(target)
        );
        if let Some(command) = &self.commands.translate {
            let _ = write!(text, "```\n{command}\n```\n\n");
        }
        let (d, sizes) = (&self.config.model, self.vocabulary);
        let vocabulary = if sizes.0 == sizes.1 {
            grouped(sizes.0 as u64)
        } else {
            format!("{} and {}", grouped(sizes.0 as u64), grouped(sizes.1 as u64))
        };
        let _ = write!(
            text,
            "| | |\n|---|---|\n| languages | {} → {} |\n| model | {:.1} million weights: {} + {} layers, {} wide, \
             vocabulary of {vocabulary} |\n| licence | {} |\n",
            name(source),
            name(target),
            self.weights as f64 / 1e6,
            d.encoder_layers,
            d.decoder_layers,
            d.d_model,
            licence.unwrap_or("not stated; that of the training data may bind the model")
        );
        text += "\n## Scores\n\n";
        match self.scores {
            Some((bleu, chrf, loss)) => {
                let _ = writeln!(
                    text,
                    "On {} validation sentences, beam {}: **BLEU {bleu:.2}**, chrF {chrf:.2}, loss {loss:.4} per token.",
                    grouped(self.validation_pairs as u64),
                    self.config.validation.beam
                );
            }
            None => text += "Not validated yet: these are the weights that the run began with.\n",
        }
        self.render_training(&mut text);
        text
    }

    fn render_training(&self, text: &mut String) {
        text.push_str("\n## Training\n\n");
        let data = &self.config.data;
        // Only file names, because folders may be private.
        let files: BTreeSet<String> = (data.src.iter().chain(&data.tgt).chain(&data.tsv).chain(&data.pairs))
            .filter_map(|path| Some(format!("`{}`", path.file_name()?.to_string_lossy().replace('`', "'"))))
            .collect();
        let _ = writeln!(
            text,
            "- data: {} ({} pairs, {} target tokens)",
            files.into_iter().collect::<Vec<_>>().join(", "),
            grouped(self.corpus.kept),
            grouped(self.corpus.target_tokens)
        );
        if let Some(init) = data.init.as_ref().and_then(|path| path.file_name()) {
            let _ = writeln!(text, "- started from the model `{}`", init.to_string_lossy());
        }
        let _ = writeln!(
            text,
            "- {} steps in {:.1} minutes, preset {}",
            self.steps,
            self.minutes,
            self.config.preset.name()
        );
        if let Some(command) = &self.commands.train {
            let _ = write!(text, "- command:\n\n```\n{command}\n```\n");
        }
        text.push_str("\nAll settings are in `logs/config.toml`, curves in `logs/report.html`.\n");
    }
}

/// A value as a YAML string, quoted if necessary.
fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    // `no` means false in YAML, and Norwegian here.
    let word = ["no", "yes", "on", "off", "true", "false", "null", "y", "n"]
        .contains(&value.to_lowercase().as_str());
    if !value.is_empty() && value.chars().all(plain) && !word && !value.starts_with(['-', '.']) {
        value.to_owned()
    } else {
        serde_json::Value::String(value.to_owned()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use regard_core::model::Preset;

    #[test]
    fn a_card_tells_what_is_needed_and_changes_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = TrainConfig::new(Preset::Tiny);
        config.data.src = vec!["secret/place/train.en".into()];
        config.data.tgt = vec!["secret/place/train.no".into()];
        config.data.license = Some("CC-BY-4.0".into());
        let languages = Languages { source: Some("en".into()), target: Some("no".into()) };
        let commands = CardCommands { train: Some("train it".into()), translate: Some("use it".into()) };
        let card = Card {
            config: &config,
            languages: &languages,
            commands: &commands,
            corpus: &Summary { kept: 29_000, target_tokens: 400_000, ..Summary::default() },
            weights: 2_400_000,
            vocabulary: (8000, 8000),
            steps: 5000,
            minutes: 41.5,
            scores: Some((39.71, 63.2, 1.5)),
            validation_pairs: 1014,
        };
        card.write(folder.path()).unwrap();
        let path = folder.path().join("README.md");
        let text = std::fs::read_to_string(&path).unwrap();
        for part in [
            "---\nlanguage:\n- en\n- \"no\"\nlicense: CC-BY-4.0\n",
            "**BLEU 39.71**, chrF 63.20",
            "`train.en`, `train.no` (29,000 pairs, 400,000 target tokens)",
            "5000 steps in 41.5 minutes, preset tiny",
            "```\ntrain it\n```",
            "```\nuse it\n```",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
        assert!(!text.contains("secret"));
        card.write(folder.path()).unwrap();
        std::fs::write(&path, "my own words").unwrap();
        card.write(folder.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "my own words");
    }
}
