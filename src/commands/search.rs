//! The model and search flags, shared by all commands that translate.

use super::dtypes::{DECODING, one_of};
use super::numbers::{BEAM, THREADS, TOKENS, decimal_f32, whole};
use super::{Usage, cores, resolve, shortlist};
use clap::{Args, ValueEnum};
use regard::DType;
use regard::decode::{EarlyStopping, LengthPenalty, Sampling, SearchOptions};
use regard::formats::Languages;
use regard::languages;
use regard::train::distributed::{ConsistencyCheck, model_check};
use regard::translator::Translator;
use regard::{Isa, Result};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, Args)]
pub(super) struct ModelFlags {
    /// Model folder, or name of a model: one of `regard models`, or on the Hugging Face hub; repeat
    /// the flag for an ensemble
    #[arg(long, short, value_name = "DIR", required = true)]
    model: Vec<PathBuf>,
    /// Number of cores to use [default: all]
    #[arg(long, value_name = "N", value_parser = whole(THREADS))]
    threads: Option<usize>,
    /// Number format of matrix multiplications [default: int8 for a quantized model, else f32]
    #[arg(long, value_parser = one_of(DECODING))]
    precision: Option<DType>,
}

impl ModelFlags {
    pub(super) fn load(&self) -> std::result::Result<Translator, Box<dyn std::error::Error>> {
        let (isa, threads) = (Isa::from_env()?, self.threads.unwrap_or_else(cores));
        let folders = self.model.iter().map(resolve).collect::<Result<Vec<_>>>()?;
        Ok(Translator::load_as(&folders, self.precision, isa, threads)?)
    }
}

impl ModelFlags {
    /// Loads each model separately.
    pub(super) fn load_each(&self) -> std::result::Result<Vec<Translator>, Box<dyn std::error::Error>> {
        let (isa, threads) = (Isa::from_env()?, self.threads.unwrap_or_else(cores));
        let load = |folder: &PathBuf| Translator::load_as(&[resolve(folder)?], self.precision, isa, threads);
        Ok(self.model.iter().map(load).collect::<Result<Vec<_>>>()?)
    }

    /// The model names that were given.
    pub(super) fn names(&self) -> String {
        self.model.iter().map(|model| model.display().to_string()).collect::<Vec<_>>().join(", ")
    }

    /// What must be equal on all ranks of an MPI job.
    pub(super) fn consistency_check(&self) -> Result<ConsistencyCheck> {
        let mut check = ConsistencyCheck::new();
        for folder in &self.model {
            check.extend(model_check(&resolve(folder)?)?);
        }
        check.push(("--precision".into(), format!("{:?}", self.precision)));
        Ok(check)
    }
}

/// The languages of a multilingual model.
#[derive(Debug, Args)]
pub(super) struct LanguageFlags {
    /// Language of the input, for multilingual models: de, deu_Latn, de_DE and __de__ all work
    #[arg(long, value_name = "CODE")]
    source_lang: Option<String>,
    /// Language to translate into, for multilingual models
    #[arg(long, value_name = "CODE")]
    target_lang: Option<String>,
}

impl LanguageFlags {
    /// The translator for these languages.
    pub(super) fn choose(&self, translator: Translator) -> std::result::Result<Translator, Box<dyn Error>> {
        choose_languages(translator, self.source_lang.as_deref(), self.target_lang.as_deref())
    }
}

/// The translator for one of its language pairs. For a model with one pair, naming that pair is
/// accepted.
pub(super) fn choose_languages(
    translator: Translator,
    source: Option<&str>,
    target: Option<&str>,
) -> std::result::Result<Translator, Box<dyn Error>> {
    Ok(languages_for(&translator, source, target)?.unwrap_or(translator))
}

/// A translator for one language pair of a multilingual model; `None` for a model with a single
/// pair, which must match the given languages, if any.
pub(super) fn languages_for(
    translator: &Translator,
    source: Option<&str>,
    target: Option<&str>,
) -> std::result::Result<Option<Translator>, Box<dyn Error>> {
    let model = translator.model();
    if let Some(languages) = model.tokenizers.languages() {
        let open = |given: Option<&str>, set: &Option<String>| given.is_none() && set.is_none();
        let missing = [
            ("--source-lang", languages.needs_source() && open(source, &model.languages.source)),
            ("--target-lang", open(target, &model.languages.target)),
        ];
        if let Some((flag, _)) = missing.iter().find(|(_, missing)| *missing) {
            let count = languages.list.len();
            return Err(Box::new(Usage(format!("this model has {count} languages; name one with {flag}"))));
        }
        return Ok(Some(translator.for_languages(source, target)?));
    }
    for (flag, given, own) in [
        ("--source-lang", source, &model.languages.source),
        ("--target-lang", target, &model.languages.target),
    ] {
        if let (Some(given), Some(own)) = (given, own)
            && languages::find(given, &[own]).is_err()
        {
            let message = format!("{flag} {given}: this model translates only {}", pair(&model.languages));
            return Err(Box::new(Usage(message)));
        }
    }
    Ok(None)
}

/// For example `from en to de`.
fn pair(languages: &Languages) -> String {
    let name = |code: &Option<String>| code.clone().unwrap_or_else(|| "an unknown language".into());
    format!("from {} to {}", name(&languages.source), name(&languages.target))
}

/// A flag that is not given has the value in the model's `generation_config.json`, else its
/// default.
#[derive(Clone, Debug, Args)]
#[command(
    next_help_heading = "Search (a flag overrides the model's generation_config.json, which overrides the default)"
)]
pub(super) struct SearchFlags {
    /// Beam size (1 = greedy) [default: 4]
    #[arg(long, short, value_name = "N", value_parser = whole(BEAM))]
    beam: Option<usize>,
    /// Exponent α of the length penalty [default: 0.6]
    #[arg(long, value_name = "ALPHA", allow_negative_numbers = true)]
    #[arg(value_parser = decimal_f32(-100.0..=100.0))]
    length_penalty: Option<f32>,
    /// Form of the length penalty: power divides scores by length^α, paper by ((5 + length) / 6)^α
    #[arg(long, value_enum, value_name = "FORM")]
    penalty: Option<PenaltyForm>,
    /// When the search stops; the same values as in transformers
    #[arg(long, value_enum, value_name = "RULE")]
    early_stopping: Option<EarlyStoppingFlag>,
    /// Maximum translation length in tokens [default: 50 more than the source has]
    #[arg(long, value_name = "N", value_parser = whole(TOKENS))]
    max_length: Option<usize>,
    /// Minimum translation length in tokens
    #[arg(long, value_name = "N", value_parser = whole(0..=100_000))]
    min_length: Option<usize>,
    /// Never repeat a sequence of N tokens
    #[arg(long, value_name = "N", value_parser = whole(0..=100_000))]
    no_repeat_ngram: Option<usize>,
    /// Values above 1 make repeated tokens less likely
    #[arg(long, value_name = "FACTOR", value_parser = decimal_f32(0.001..=1000.0))]
    repetition_penalty: Option<f32>,
    /// Text that each translation begins with
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// Lexical shortlist written by `regard shortlist`: only its tokens are considered, which is
    /// faster
    #[arg(long, value_name = "FILE")]
    shortlist: Option<PathBuf>,
    /// Consider all tokens, even if the model has a lexical shortlist (lex*.bin)
    #[arg(long, conflicts_with = "shortlist")]
    no_shortlist: bool,
    /// Sample from the model's distribution instead of searching
    #[arg(long)]
    sample: bool,
    /// Sampling temperature: below 1 sharpens the distribution, above 1 flattens it
    #[arg(long, requires = "sample", value_name = "T", value_parser = decimal_f32(0.001..=1000.0))]
    temperature: Option<f32>,
    /// Sample from the N most likely tokens
    #[arg(long, requires = "sample", value_name = "N", value_parser = whole(0..=100_000_000))]
    top_k: Option<usize>,
    /// Sample from the most likely tokens whose probabilities sum to P
    #[arg(long, requires = "sample", value_name = "P", value_parser = decimal_f32(0.0..=1.0))]
    top_p: Option<f32>,
    /// Seed of the sampling
    #[arg(long, requires = "sample", value_name = "N")]
    seed: Option<u64>,
    /// Number of sentences decoded together
    #[arg(long, value_name = "N", value_parser = whole(1..=100_000))]
    batch: Option<usize>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PenaltyForm {
    Power,
    Paper,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum EarlyStoppingFlag {
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
            Some(EarlyStoppingFlag::False) => options.early_stopping = EarlyStopping::No,
            Some(EarlyStoppingFlag::True) => options.early_stopping = EarlyStopping::Yes,
            Some(EarlyStoppingFlag::Never) => options.early_stopping = EarlyStopping::Never,
            None => {}
        }
        if let Some(text) = &self.prefix {
            let mut ids = translator.target().encode(text)?;
            ids.pop(); // its end
            options.prefix = ids;
        }
        if self.no_shortlist {
            options.shortlist = None;
        }
        if let Some(file) = &self.shortlist {
            options.shortlist = Some(Arc::new(shortlist::load(file)?));
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
