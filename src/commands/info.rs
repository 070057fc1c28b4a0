//! `regard info`: describes a model folder.

use super::{CommandResult, Output, resolve};
use clap::Args;
use regard::formats::{Description, GenerationConfig, Languages, Licence, Model, licence};
use regard::model::{Direction, EncoderKind, ModelConfig, Parts};
use regard::text::TokenizerPair;
use serde::Serialize;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  regard info --model my-model\n  regard info --model my-model --json\n\n\
    The licence of the weights is what the folder states: in the front matter of its README.md, in metadata.json, or written down\n\
    by `regard models download`."
)]
pub(crate) struct Arguments {
    /// The model folder, or the model's name on the Hugging Face hub
    #[arg(long, short, value_name = "DIR")]
    model: PathBuf,
    /// Print one JSON object on one line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Vocabulary {
    source: usize,
    target: usize,
    joint: bool,
    /// The files of the source and the target vocabulary.
    files: (&'static str, &'static str),
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    description: Description,
    languages: &'a Languages,
    /// The licence of the weights, if the folder states it.
    licence: Option<Licence>,
    /// The codes of a multilingual model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    language_codes: Vec<&'a str>,
    /// Whether the model is trained to use the terms of a glossary in its source.
    reads_terms: bool,
    vocabulary: Vocabulary,
    parameters: Parts,
    config: &'a ModelConfig,
    generation: &'a GenerationConfig,
}

/// A setting in the spelling of a configuration file.
fn spelt(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default().trim_matches('"').to_owned()
}

/// A number with separated thousands.
fn grouped(n: usize) -> String {
    regard_plot::grouped(n as u64)
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    let folder = resolve(&arguments.model)?;
    let model = Model::load_without_weights(&folder)?;
    let report = Report {
        description: Model::describe(&folder)?,
        languages: &model.languages,
        licence: licence(&folder)?,
        language_codes: model.tokenizers.languages().map_or_else(Vec::new, |languages| {
            languages.list.iter().map(|language| language.code.as_str()).collect()
        }),
        reads_terms: model.tokenizers.terms().is_some(),
        vocabulary: Vocabulary {
            source: model.tokenizers.source().size(),
            target: model.tokenizers.target().size(),
            joint: model.tokenizers.is_joint(),
            files: model.tokenizers.vocabulary_files(),
        },
        parameters: model.transformer.parameters().parts(),
        config: model.transformer.config(),
        generation: &model.generation,
    };
    let mut output = Output::new();
    match arguments.json {
        true => output.line(serde_json::to_string(&report)?)?,
        false => output.bytes(describe(&report)?.as_bytes())?,
    }
    output.flush()
}

/// The kind of encoder, unless it is the paper's.
fn encoder(config: &ModelConfig) -> String {
    match config.encoder {
        EncoderKind::Attention { .. } => String::new(),
        EncoderKind::Window { .. } => ", encoder attention within a window".into(),
        EncoderKind::Recurrent { direction: Direction::Both } => {
            ", recurrent encoder of both directions".into()
        }
        EncoderKind::Recurrent { direction: Direction::Forward } => {
            ", recurrent encoder of one direction".into()
        }
        EncoderKind::Convolutional { kernel_width, dilated } => {
            let dilated = if dilated { "dilated " } else { "" };
            format!(", {dilated}convolutional encoder over {kernel_width} tokens")
        }
    }
}

/// The licence of the weights, with a hint about NLLB-200, whose folders are often copied without
/// their card.
fn stated_licence(report: &Report<'_>) -> String {
    if let Some(licence) = &report.licence {
        return licence.to_string();
    }
    let is_nllb = report.description.model_type == "m2m_100"
        && report.language_codes.iter().any(|code| matches!(code.split_once('_'), Some((_, "Latn"))));
    match is_nllb {
        true => {
            "not stated; the published weights of NLLB-200 are cc-by-nc-4.0, which forbids commercial use"
                .into()
        }
        false => "not stated".into(),
    }
}

/// The text before the reasons.
const ONLY_OURS: &str = "only regard can run it, because";

/// Which other programs can load the model.
fn readers(report: &Report<'_>) -> &'static str {
    match report.description.model_type {
        "m2m_100" | "mbart" | "t5" => "transformers and CTranslate2 can load it too",
        "ctranslate2" => "CTranslate2 can load it too",
        "argos" => "a package of Argos Translate",
        _ if !report.description.why_not_marian.is_empty() => ONLY_OURS,
        _ if report.vocabulary.joint => "transformers and CTranslate2 can load it too",
        _ if report.vocabulary.files.1 == TokenizerPair::TARGET_FILE => {
            "transformers can load it too; its output is decoded with target_tokenizer.json"
        }
        _ => "transformers can load it too",
    }
}

fn describe(report: &Report<'_>) -> Result<String, serde_json::Error> {
    let Report { description, languages, language_codes, vocabulary, parameters, config, generation, .. } =
        report;
    let mut lines = Vec::new();
    let mut line = |title: &str, text: String| lines.push(format!("{title:<12}{text}\n"));
    let readers = readers(report);
    line("type", format!("{}: {readers}", description.model_type));
    for reason in description.why_not_marian.iter().filter(|_| readers == ONLY_OURS) {
        line("", format!("- {reason}"));
    }
    let language = |name: &Option<String>| name.clone().unwrap_or_else(|| "unknown".into());
    let pair = format!("{} → {}", language(&languages.source), language(&languages.target));
    line(
        "languages",
        match language_codes.len() {
            0 => pair,
            count => format!("{count}: {}", language_codes.join(" ")),
        },
    );
    line("licence", stated_licence(report));
    line(
        "vocabulary",
        if vocabulary.joint {
            format!("{} pieces for both languages", grouped(vocabulary.source))
        } else {
            format!("{} source and {} target pieces", grouped(vocabulary.source), grouped(vocabulary.target))
        },
    );
    if report.reads_terms {
        line("glossaries", "read in the source (trained with --terms)".into());
    }
    line("sizes", config.sizes());
    let written = serde_json::to_value(config)?;
    line(
        "layers",
        format!(
            "{}-norm, {}, {} positions, {} tying{}",
            spelt(&config.norm),
            spelt(&written["activation"]),
            spelt(&config.positions),
            spelt(&config.tying),
            encoder(config)
        ),
    );
    line(
        "parameters",
        format!(
            "{}: embeddings {}, encoder {}, decoder {}",
            grouped(parameters.total),
            grouped(parameters.embeddings),
            grouped(parameters.encoder),
            grouped(parameters.decoder)
        ),
    );
    let size = match description.weight_bytes as f64 {
        bytes if bytes < 1e6 => format!("{:.1} kB", bytes / 1e3),
        bytes => format!("{:.1} MB", bytes / 1e6),
    };
    line("precision", format!("{}, {size}", description.dtype));
    // Via text, so that 0.6 in f32 stays 0.6.
    let settings: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&serde_json::to_string(generation)?)?;
    let settings: Vec<String> = settings.iter().map(|(key, value)| format!("{key} {value}")).collect();
    line("generation", if settings.is_empty() { "defaults".into() } else { settings.join(", ") });
    Ok(lines.concat())
}
