//! The flags of the search, which every command that translates has.

use super::cores;
use super::numbers::{BEAM, THREADS, TOKENS, decimal_f32, whole};
use clap::{Args, ValueEnum};
use regard::decode::{EarlyStopping, LengthPenalty, Precision, Sampling, SearchOptions, Shortlist};
use regard::formats::resolve;
use regard::group::{Facts, model_facts};
use regard::translator::Translator;
use regard::{Isa, Result};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, Args)]
pub(super) struct ModelFlags {
    /// The folder of the model, or its name on the Hugging Face hub; given several times, the models make an ensemble
    #[arg(long, value_name = "DIR", required = true)]
    model: Vec<PathBuf>,
    /// How many cores to use [default: all]
    #[arg(long, value_name = "N", value_parser = whole(THREADS))]
    threads: Option<usize>,
    /// The number format of the matrix products [default: int8 for a quantised model, else f32]
    #[arg(long, value_enum)]
    precision: Option<PrecisionFlag>,
}

/// The number format of matrix products while decoding.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum PrecisionFlag {
    F32,
    Int8,
}

impl From<PrecisionFlag> for Precision {
    fn from(flag: PrecisionFlag) -> Self {
        match flag {
            PrecisionFlag::F32 => Precision::F32,
            PrecisionFlag::Int8 => Precision::Int8,
        }
    }
}

impl ModelFlags {
    pub(super) fn load(&self) -> std::result::Result<Translator, Box<dyn std::error::Error>> {
        let (isa, threads) = (Isa::from_env()?, self.threads.unwrap_or_else(cores));
        let folders = self.model.iter().map(resolve).collect::<Result<Vec<_>>>()?;
        Ok(Translator::load_as(&folders, self.precision.map(Precision::from), isa, threads)?)
    }
}

impl ModelFlags {
    /// What the ranks of an MPI job must have the same of.
    pub(super) fn facts(&self) -> Result<Facts> {
        let mut facts = Facts::new();
        for folder in &self.model {
            facts.extend(model_facts(&resolve(folder)?)?);
        }
        facts.push(("--precision".into(), format!("{:?}", self.precision)));
        Ok(facts)
    }
}

/// What is not given comes from the model's `generation_config.json`, else it is the default.
#[derive(Debug, Args)]
#[command(next_help_heading = "Search (a flag, else the model's generation_config.json, else the default)")]
pub(super) struct SearchFlags {
    /// Hypotheses a sentence; 1 is greedy search [default: 4]
    #[arg(long, value_name = "N", value_parser = whole(BEAM))]
    beam: Option<usize>,
    /// α of the length penalty [default: 0.6]
    #[arg(long, value_name = "ALPHA", allow_negative_numbers = true)]
    #[arg(value_parser = decimal_f32(-100.0..=100.0))]
    length_penalty: Option<f32>,
    /// What a score is divided by: length^α, or the paper's ((5 + length) / 6)^α
    #[arg(long, value_enum, value_name = "FORM")]
    penalty: Option<PenaltyForm>,
    /// When the search stops, as in transformers
    #[arg(long, value_enum, value_name = "RULE")]
    early_stopping: Option<Stopping>,
    /// At most so many tokens [default: 50 more than the source has]
    #[arg(long, value_name = "N", value_parser = whole(TOKENS))]
    max_length: Option<usize>,
    /// At least so many tokens
    #[arg(long, value_name = "N", value_parser = whole(0..=100_000))]
    min_length: Option<usize>,
    /// No sequence of so many tokens twice
    #[arg(long, value_name = "N", value_parser = whole(0..=100_000))]
    no_repeat_ngram: Option<usize>,
    /// Above 1 makes tokens that are already there less likely
    #[arg(long, value_name = "FACTOR", value_parser = decimal_f32(0.001..=1000.0))]
    repetition_penalty: Option<f32>,
    /// Text that every translation begins with
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// Only words that this file lists for the source, which is faster; `regard shortlist` makes it
    #[arg(long, value_name = "FILE")]
    shortlist: Option<PathBuf>,
    /// Draw from the distribution instead of searching
    #[arg(long)]
    sample: bool,
    /// Sharpens (below 1) or flattens the distribution that is drawn from
    #[arg(long, requires = "sample", value_name = "T", value_parser = decimal_f32(0.001..=1000.0))]
    temperature: Option<f32>,
    /// Draw from so many of the likeliest tokens
    #[arg(long, requires = "sample", value_name = "N", value_parser = whole(0..=100_000_000))]
    top_k: Option<usize>,
    /// Draw from the likeliest tokens that together have this probability
    #[arg(long, requires = "sample", value_name = "P", value_parser = decimal_f32(0.0..=1.0))]
    top_p: Option<f32>,
    /// The seed of the draws
    #[arg(long, requires = "sample", value_name = "N")]
    seed: Option<u64>,
    /// Sentences that are translated together
    #[arg(long, value_name = "N", value_parser = whole(1..=100_000))]
    batch: Option<usize>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PenaltyForm {
    Power,
    Paper,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Stopping {
    False,
    True,
    Never,
}

impl SearchFlags {
    pub(super) fn options(&self, translator: &Translator) -> Result<SearchOptions> {
        let mut options = translator.options();
        let set = |to: &mut usize, from: Option<usize>| *to = from.unwrap_or(*to);
        set(&mut options.beam, self.beam);
        set(&mut options.min_length, self.min_length);
        set(&mut options.no_repeat_ngram, self.no_repeat_ngram);
        set(&mut options.batch, self.batch);
        options.max_length = self.max_length.or(options.max_length);
        options.length_penalty = self.length_penalty.unwrap_or(options.length_penalty);
        options.repetition_penalty = self.repetition_penalty.unwrap_or(options.repetition_penalty);
        match self.penalty {
            Some(PenaltyForm::Power) => options.penalty = LengthPenalty::Power,
            Some(PenaltyForm::Paper) => options.penalty = LengthPenalty::Paper,
            None => {}
        }
        match self.early_stopping {
            Some(Stopping::False) => options.early_stopping = EarlyStopping::No,
            Some(Stopping::True) => options.early_stopping = EarlyStopping::Yes,
            Some(Stopping::Never) => options.early_stopping = EarlyStopping::Never,
            None => {}
        }
        if let Some(text) = &self.prefix {
            let mut ids = translator.target().encode(text)?;
            ids.pop(); // its end
            options.prefix = ids;
        }
        if let Some(file) = &self.shortlist {
            options.shortlist = Some(Arc::new(Shortlist::load(file)?));
        }
        if self.sample {
            let d = Sampling::default();
            options.sampling = Some(Sampling {
                temperature: self.temperature.unwrap_or(d.temperature),
                top_k: self.top_k.unwrap_or(d.top_k),
                top_p: self.top_p.unwrap_or(d.top_p),
                seed: self.seed.unwrap_or(d.seed),
            });
        }
        options.validate()?;
        Ok(options)
    }
}
