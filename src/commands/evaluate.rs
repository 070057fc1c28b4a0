//! `regard evaluate`: translates a test set and scores the translations.

use super::input::read_text;
use super::search::{ModelFlags, SearchFlags, choose_languages};
use super::{CommandResult, Output, bleu_tokenizer, tokenizer_parser};
use clap::Args;
use regard::metrics::{Tokenizer, lines, score_all, select};
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    regard evaluate --model model --src test.en --ref test.de\n  \
    regard evaluate --model model --src test.en --ref test.de --beam 5 --json --out output.de\n\n\
    Each line is passed to the model whole, as with `regard translate --no-split`, so that scores compare with those of other\n\
    toolkits.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    search: SearchFlags,
    /// Source text, one sentence per line
    #[arg(long, value_name = "FILE")]
    src: PathBuf,
    /// Reference translations: one or more files with as many lines as the source
    #[arg(long = "ref", value_name = "FILE", num_args = 1.., required = true)]
    references: Vec<PathBuf>,
    /// Metrics to compute, separated by commas: bleu, chrf, chrf++, ter
    #[arg(long, default_value = "bleu,chrf,ter")]
    metric: String,
    /// Language of the source, for multilingual models
    #[arg(long, value_name = "CODE")]
    source_lang: Option<String>,
    /// Language of the translations, which chooses BLEU's tokenizer as in `regard score`, and what
    /// a multilingual model translates into [default: the model's target language]
    #[arg(long, value_name = "CODE")]
    target_lang: Option<String>,
    /// BLEU's tokenizer [default: chosen by the target language]
    #[arg(long, value_parser = tokenizer_parser())]
    tokenize: Option<Tokenizer>,
    /// Ignore case in BLEU (TER ignores it by default)
    #[arg(long)]
    lowercase: bool,
    /// Write the translations to this file
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object on one line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    // Check this before loading the model, which takes a while.
    let mut metrics = select(&arguments.metric, Tokenizer::default(), arguments.lowercase)?;
    let (path, source) = read_text(&arguments.src)?;
    let source = lines(&source);
    let references = arguments
        .references
        .iter()
        .map(|file| {
            let (path, text) = read_text(file)?;
            Ok((path, lines(&text)))
        })
        .collect::<regard::Result<Vec<_>>>()?;
    if source.is_empty() {
        return Err(format!("{}: empty; there is nothing to translate", path.display()).into());
    }
    // Check this before translating, which takes a while.
    for (file, reference) in &references {
        if reference.len() != source.len() {
            let (a, b) = (source.len(), reference.len());
            let message = format!(
                "{} has {a} lines and {} has {b}; the numbers must be equal",
                path.display(),
                file.display()
            );
            return Err(message.into());
        }
    }
    let (source_lang, target_lang) = (arguments.source_lang.as_deref(), arguments.target_lang.as_deref());
    let mut translator = arguments.model.load()?;
    // For a model with one language pair, the flag only chooses BLEU's tokenizer.
    if translator.model().tokenizers.languages().is_some() {
        translator = choose_languages(translator, source_lang, target_lang)?;
    }
    if metrics.iter().any(|metric| metric.key() == "bleu") {
        let target_lang = arguments.target_lang.as_ref().or(translator.model().languages.target.as_ref());
        let tokenizer = bleu_tokenizer(arguments.tokenize, target_lang.map(String::as_str));
        metrics = select(&arguments.metric, tokenizer, arguments.lowercase)?;
    }
    let options = arguments.search.options(&translator)?;
    let start = Instant::now();
    let translated = translator.translate(&source, &options)?;
    let seconds = start.elapsed().as_secs_f64();
    let tokens: usize = translated.iter().map(|line| line.best().token_scores.len()).sum();
    let texts: Vec<String> = translated.iter().map(|line| line.best().text).collect();
    if let Some(out) = &arguments.out {
        let mut text = texts.join("\n");
        text.push('\n');
        std::fs::write(out, text).map_err(|e| format!("{}: {e}", out.display()))?;
    }
    let references: Vec<Vec<String>> = references.into_iter().map(|(_, lines)| lines).collect();
    let scores = score_all(&metrics, &texts, &references)?;
    let mut output = Output::new();
    if arguments.json {
        let mut value = serde_json::to_value(&scores)?;
        value["seconds"] = json!((seconds * 1e3).round() / 1e3);
        value["target_tokens_per_s"] = json!((tokens as f64 / seconds).round());
        output.line(value)?;
    } else {
        for (_, score) in &scores.0 {
            output.line(score)?;
        }
        let rate = tokens as f64 / seconds;
        output.line(format!(
            "{} lines in {seconds:.2} s, {rate:.0} target tokens/s, beam {}",
            source.len(),
            options.beam
        ))?;
    }
    output.flush()
}
