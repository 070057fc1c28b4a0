//! `regard export`: writes a model for Marian or for Firefox's engine.

use super::dtypes::{EXPORTED, one_of};
use super::input::read_lines;
use super::{CommandResult, resolve, shortlist};
use clap::{Args, ValueEnum};
use regard::DType;
use regard::formats::Model;
use regard::formats::marian_nmt::{ExportFormat, ExportOptions, export};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    regard export --model model --to marian --out model-marian\n  \
    regard export --model model --to bergamot --sample train.en --out model-firefox\n\n\
    For Firefox's engine (Bergamot) the weights are stored in 8 bits, with fixed multipliers of the inputs that are measured while the\n\
    model translates --sample; with --precision f32 they stay as they are. The folder has the model, the vocabulary as .spm and, if the\n\
    model has one or --shortlist is given, the lexical shortlist. Only what Marian can express can be exported: models of preset\n\
    student, and fine-tuned models of Firefox and Marian.")]
pub(crate) struct Arguments {
    /// Model folder, or its name on the Hugging Face hub
    #[arg(long, short, value_name = "DIR")]
    model: PathBuf,
    /// Program that will read the result
    #[arg(long, value_enum)]
    to: Program,
    /// Folder to write
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// Number format of the weights
    /// [default: int8 for bergamot, f32 for marian, which has no other]
    #[arg(long, value_parser = one_of(EXPORTED))]
    precision: Option<DType>,
    /// Source text, one sentence per line, used to calibrate the 8-bit inputs and to check the
    /// tokenizer
    #[arg(long, value_name = "FILE")]
    sample: Option<PathBuf>,
    /// Lexical shortlist written by `regard shortlist`
    #[arg(long, value_name = "FILE")]
    shortlist: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Program {
    Bergamot,
    Marian,
}

/// The number of lines of the sample to use: enough for means and deviations.
const LINES: usize = 500;

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    let format = match (arguments.to, arguments.precision) {
        (Program::Marian, Some(DType::Int8)) => {
            let message = "--to marian writes f32; leave out --precision int8, or use --to bergamot";
            return Err(super::Usage(message.into()).into());
        }
        (Program::Marian, _) => ExportFormat::Marian,
        (Program::Bergamot, None | Some(DType::Int8)) => ExportFormat::BergamotInt8,
        (Program::Bergamot, Some(_)) => ExportFormat::BergamotF32,
    };
    let sample = match (&arguments.sample, format) {
        (Some(file), _) => read_lines(file, LINES)?,
        (None, ExportFormat::BergamotInt8) => {
            let message = "--to bergamot needs --sample: source text on which the 8-bit inputs are calibrated (or --precision f32)";
            return Err(super::Usage(message.into()).into());
        }
        (None, _) => Vec::new(),
    };
    let sample: Vec<&str> = sample.iter().map(String::as_str).collect();
    let model = Model::load(&resolve(&arguments.model)?)?;
    let shortlist = arguments.shortlist.as_deref().map(shortlist::load).transpose()?;
    let options = ExportOptions { format, sample: &sample, shortlist: shortlist.as_ref() };
    export(&model, &options, &arguments.out)?;
    note!(
        "{}: written for {}",
        arguments.out.display(),
        if arguments.to == Program::Marian { "Marian" } else { "Bergamot" }
    );
    Ok(())
}
