//! `regard quantize`: converts a model to int8.

use super::{CommandResult, resolve};
use clap::Args;
use regard::DType;
use regard::formats::Model;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  regard quantize --model model --out model-int8\n  \
    regard translate --model model-int8 < input.en > output.de\n\n\
    Every matrix is stored in 8 bits per number with one scale per row: a quarter of the size, and the fastest decoding. All other\n\
    weights stay in 32 bits. `--precision int8` of translate, evaluate and serve does the same while loading a model. Other\n\
    programs cannot read the result.")]
pub(crate) struct Arguments {
    /// Model folder, or its name on the Hugging Face hub
    #[arg(long, short, value_name = "DIR")]
    model: PathBuf,
    /// Folder to write
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    let folder = resolve(&arguments.model)?;
    let (out, same) = (&arguments.out, arguments.out.canonicalize().ok());
    if same.is_some() && same == folder.canonicalize().ok() {
        return Err(format!("--out {}: that is the model itself; give another folder", out.display()).into());
    }
    let before = Model::describe(&folder)?;
    Model::load(&folder)?.save(out, DType::Int8)?;
    let after = Model::describe(out)?;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    note!(
        "{}: {:.1} MB of weights in 8 bits (was {:.1} MB in {})",
        out.display(),
        megabytes(after.weight_bytes),
        megabytes(before.weight_bytes),
        before.dtype
    );
    Ok(())
}
