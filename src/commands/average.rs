//! `regard average`: one model whose weights are the mean of several.

use super::dtypes::{STORED, one_of};
use super::{CommandResult, resolve};
use clap::Args;
use regard::DType;
use regard::formats::{self, Model};
use regard::train::{load_checkpoint, to_average};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  regard average run/checkpoints/* --out averaged\n\n\
    The models must have the same shape and tokenizer, as the checkpoints of one training run have. Everything but the weights\n\
    comes from the first model. Of a run's checkpoints, the saved weights (weights-*.ckpt) are averaged; the saved training states\n\
    (state-*.ckpt) only if there are no saved weights.")]
pub(crate) struct Arguments {
    /// Model folders, checkpoint files of a training run, or names on the Hugging Face hub
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<PathBuf>,
    /// The model folder to write
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// Number format of the stored weights
    #[arg(long, value_parser = one_of(STORED), default_value = "f32")]
    precision: DType,
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    let paths = arguments.models.iter().map(resolve).collect::<regard::Result<Vec<_>>>()?;
    let paths = to_average(&paths);
    let model = formats::average_with(&paths, |path| match path.is_file() {
        true => load_checkpoint(path),
        false => Model::load(path),
    })?;
    model.save(&arguments.out, arguments.precision)?;
    note!("{}: the average of {} models", arguments.out.display(), paths.len());
    Ok(())
}
