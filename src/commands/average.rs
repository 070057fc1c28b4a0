//! `regard average`: one model of the mean weights of several.

use super::CommandResult;
use clap::{Args, ValueEnum};
use regard::formats;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  regard average run/checkpoints/* --out averaged\n\n\
    The models must have the same shape and tokenizer, as checkpoints of one training have. Everything but the weights\n\
    is taken from the first.")]
pub(crate) struct Arguments {
    /// Model folders, or names on the Hugging Face hub
    #[arg(required = true, value_name = "DIR")]
    models: Vec<PathBuf>,
    /// The folder to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// How the weights are stored
    #[arg(long, value_enum, default_value = "f32")]
    precision: Precision,
}

/// How weights are stored.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Precision {
    F32,
    Bf16,
    F16,
}

impl From<Precision> for formats::Precision {
    fn from(flag: Precision) -> Self {
        match flag {
            Precision::F32 => formats::Precision::F32,
            Precision::Bf16 => formats::Precision::Bf16,
            Precision::F16 => formats::Precision::F16,
        }
    }
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    let folders = arguments.models.iter().map(formats::resolve).collect::<regard::Result<Vec<_>>>()?;
    let model = formats::average(&folders)?;
    model.save(&arguments.out, arguments.precision.into())?;
    eprintln!("{}: the average of {} models", arguments.out.display(), arguments.models.len());
    Ok(())
}
