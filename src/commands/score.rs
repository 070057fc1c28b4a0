//! `regard score`: scores translations against references, with sacreBLEU's numbers and signatures.

use super::input::{is_stdin, read_text};
use super::numbers::whole;
use super::{CommandResult, Output, Usage, bleu_tokenizer, tokenizer_parser};
use clap::{Args, ValueEnum};
use regard::Error;
use regard::metrics::{
    Bleu, Bootstrap, Chrf, Comparison, Details, Interval, Metric, Score, Scores, Smoothing, Ter, Tokenizer,
    is_unspaced, lines, paired_bootstrap,
};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    regard score --hyp output.de --ref reference.de\n  \
    regard score --hyp output.zh --ref first.zh second.zh.gz --metric bleu --target-lang zh --json\n  \
    regard score --hyp output.de --ref reference.de --paired baseline.de\n\n\
    With --width 1 the output equals that of `sacrebleu --format text`.")]
pub(crate) struct Arguments {
    /// Translations to score, one sentence per line; - is standard input
    #[arg(long, value_name = "FILE")]
    hyp: PathBuf,
    /// Reference translations: one or more files with as many lines as the translations
    #[arg(long = "ref", value_name = "FILE", num_args = 1.., required = true)]
    references: Vec<PathBuf>,
    /// Metrics to compute, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_value = "bleu,chrf,ter")]
    metric: Vec<MetricName>,
    /// Language of the translations; chooses BLEU's tokenizer: zh for Chinese, char for Japanese,
    /// Korean, Thai, Lao, Khmer, Burmese and Tibetan, 13a for all others
    #[arg(long, value_name = "CODE")]
    target_lang: Option<String>,
    /// BLEU's tokenizer [default: chosen by --target-lang, else 13a]
    #[arg(long, value_parser = tokenizer_parser())]
    tokenize: Option<Tokenizer>,
    /// Ignore case in BLEU (TER ignores it by default)
    #[arg(long)]
    lowercase: bool,
    /// Smoothing of n-gram orders without a match in BLEU: exp, floor[:N], add-k[:N] or none
    #[arg(long, default_value = "exp", value_name = "METHOD")]
    smooth: Smoothing,
    /// Ignore case in chrF
    #[arg(long)]
    chrf_lowercase: bool,
    /// Longest word n-grams of `--metric chrf`; 2 makes it chrF++
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole(0..=100))]
    chrf_word_order: usize,
    /// Respect case in TER
    #[arg(long)]
    ter_case_sensitive: bool,
    /// Print a score for each sentence; BLEU then uses the effective n-gram order of the sentence
    #[arg(long, conflicts_with_all = ["confidence", "paired"])]
    sentence_level: bool,
    /// Add a 95 % confidence interval by bootstrap resampling
    #[arg(long)]
    confidence: bool,
    /// Baseline translations of the same text; test whether the difference is significant, by
    /// paired bootstrap resampling
    #[arg(long, value_name = "BASELINE_HYP")]
    paired: Option<PathBuf>,
    /// Number of bootstrap samples
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(visible_aliases = ["confidence-n", "paired-bs-n"], value_parser = whole(1..=1_000_000))]
    samples: usize,
    /// Seed of the bootstrap
    #[arg(long, value_name = "N", default_value_t = 12345, env = "SACREBLEU_SEED")]
    seed: u64,
    /// Digits after the decimal point [default: 2; with --json all]
    #[arg(long, value_name = "DIGITS", value_parser = clap::value_parser!(u8).range(..=15))]
    width: Option<u8>,
    /// Print one JSON object on one line
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum MetricName {
    Bleu,
    Chrf,
    #[value(name = "chrf++")]
    ChrfPlusPlus,
    Ter,
}

impl Arguments {
    fn metrics(&self) -> Result<Vec<Box<dyn Metric>>, Usage> {
        let chrf = Chrf { lowercase: self.chrf_lowercase, ..Chrf::default() };
        let mut metrics: Vec<Box<dyn Metric>> = Vec::new();
        for name in &self.metric {
            let metric: Box<dyn Metric> = match name {
                MetricName::Bleu => Box::new(Bleu {
                    tokenizer: bleu_tokenizer(self.tokenize, self.target_lang.as_deref()),
                    lowercase: self.lowercase,
                    smoothing: self.smooth,
                    effective_order: self.sentence_level,
                    ..Bleu::default()
                }),
                MetricName::Chrf => Box::new(Chrf { word_order: self.chrf_word_order, ..chrf.clone() }),
                MetricName::ChrfPlusPlus => Box::new(Chrf { word_order: 2, ..chrf.clone() }),
                MetricName::Ter => {
                    Box::new(Ter { case_sensitive: self.ter_case_sensitive, ..Ter::default() })
                }
            };
            if metrics.iter().any(|m| m.key() == metric.key()) {
                return Err(Usage(format!("--metric: {} is given twice", metric.key())));
            }
            metrics.push(metric);
        }
        Ok(metrics)
    }
}

impl Arguments {
    /// Warns about BLEU over words in Chinese or Thai text, which has no word boundaries.
    fn warn_of_unspaced(&self, hypotheses: &[String]) {
        let words = self.tokenize.is_none() && self.target_lang.is_none();
        let sample: String = hypotheses.iter().take(100).flat_map(|line| line.chars()).collect();
        if words && self.metric.contains(&MetricName::Bleu) && is_unspaced(&sample) {
            note!(
                "regard: this text has no spaces between words; set --target-lang (for example zh or ja) to choose BLEU's tokenizer"
            );
        }
    }
}

/// The lines of the files, which all have the same number of lines, at least 1.
struct Texts {
    hypotheses: Vec<String>,
    baseline: Option<Vec<String>>,
    references: Vec<Vec<String>>,
}

impl Texts {
    fn read(arguments: &Arguments) -> Result<Self, Box<dyn std::error::Error>> {
        let files = std::iter::once(&arguments.hyp).chain(&arguments.references).chain(&arguments.paired);
        if files.filter(|path| is_stdin(path)).count() > 1 {
            return Err(Usage("only one of the files can be - (standard input)".into()).into());
        }
        let (hyp, hypotheses) = read_lines(&arguments.hyp)?;
        if hypotheses.is_empty() {
            return Err(Error::file(hyp, "0 lines; there is no sentence to score").into());
        }
        let read = |path: &PathBuf| -> Result<Vec<String>, Error> {
            let (path, found) = read_lines(path)?;
            if found.len() != hypotheses.len() {
                let message = format!(
                    "{}, but {} has {}; line i of every file must belong to the same sentence",
                    number_of_lines(found.len()),
                    hyp.display(),
                    hypotheses.len()
                );
                return Err(Error::file(path, message));
            }
            Ok(found)
        };
        let references = arguments.references.iter().map(read).collect::<Result<_, _>>()?;
        let baseline = arguments.paired.as_ref().map(read).transpose()?;
        arguments.warn_of_unspaced(&hypotheses);
        Ok(Texts { hypotheses, baseline, references })
    }
}

fn read_lines(path: &Path) -> Result<(PathBuf, Vec<String>), Error> {
    let (path, text) = read_text(path)?;
    Ok((path, lines(&text)))
}

fn number_of_lines(n: usize) -> String {
    if n == 1 { "1 line".into() } else { format!("{n} lines") }
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    let metrics = arguments.metrics()?;
    let texts = Texts::read(&arguments)?;
    let bootstrap = Bootstrap { samples: arguments.samples, seed: arguments.seed };
    let mut output = Output::new();
    if let Some(baseline) = &texts.baseline {
        let mut comparisons = Vec::new();
        for metric in &metrics {
            let compared =
                paired_bootstrap(metric.as_ref(), baseline, &texts.hypotheses, &texts.references, &bootstrap);
            comparisons.push((metric.key(), compared?));
        }
        print_comparisons(&mut output, comparisons, &arguments)?;
    } else if arguments.sentence_level {
        for (i, hypothesis) in texts.hypotheses.iter().enumerate() {
            let references: Vec<&str> = texts.references.iter().map(|r| r[i].as_str()).collect();
            let scores = metrics
                .iter()
                .map(|m| Ok((m.key(), m.sentence(hypothesis, &references).map_err(Error::other)?)));
            print_scores(&mut output, Scores(scores.collect::<Result<_, Error>>()?), &arguments)?;
        }
    } else {
        let scores = metrics.iter().map(|metric| {
            let score = match arguments.confidence {
                true => metric.corpus_with_interval(&texts.hypotheses, &texts.references, &bootstrap),
                false => metric.corpus(&texts.hypotheses, &texts.references),
            };
            Ok((metric.key(), score.map_err(Error::other)?))
        });
        print_scores(&mut output, Scores(scores.collect::<Result<_, Error>>()?), &arguments)?;
    }
    output.flush()
}

fn print_scores(output: &mut Output, mut scores: Scores, arguments: &Arguments) -> CommandResult {
    if arguments.json {
        scores.0.iter_mut().for_each(|(_, score)| round_score(score, arguments.width));
        return output.line(serde_json::to_string(&scores)?);
    }
    // Align the equals signs.
    let title = |score: &Score| score.name.chars().count() + 1 + score.signature.chars().count();
    let longest = scores.0.iter().map(|(_, score)| title(score)).max().unwrap_or(0);
    let width = arguments.width.unwrap_or(2).into();
    for (_, score) in &scores.0 {
        let blank = longest - title(score);
        output.line(format_args!("{:blank$}{score:.width$}", ""))?;
    }
    Ok(())
}

fn print_comparisons(
    output: &mut Output,
    comparisons: Vec<(&'static str, Comparison)>,
    arguments: &Arguments,
) -> CommandResult {
    if arguments.json {
        let mut object = Map::new();
        for (key, mut comparison) in comparisons {
            round_score(&mut comparison.baseline, arguments.width);
            round_score(&mut comparison.system, arguments.width);
            object.insert(key.to_owned(), serde_json::to_value(&comparison)?);
        }
        return output.line(Value::Object(object));
    }
    let width = arguments.width.unwrap_or(2).into();
    for (_, Comparison { baseline, system, p_value }) in comparisons {
        let star = if p_value < 0.05 { " *" } else { "" };
        output.line(format_args!("{}|{}", system.name, system.signature))?;
        output.line(format_args!("  baseline {}", numbers(&baseline, width)))?;
        output.line(format_args!("  system   {}  p = {p_value:.4}{star}", numbers(&system, width)))?;
    }
    Ok(())
}

fn numbers(score: &Score, width: usize) -> String {
    let interval = score
        .interval
        .map(|Interval { mean, half_width }| format!(" (μ = {mean:.width$} ± {half_width:.width$})"));
    let details = match &score.details {
        Details::Bleu { brevity_penalty, .. } => format!(" BP = {brevity_penalty:.3}"),
        _ => String::new(),
    };
    format!("{:.width$}{}{details}", score.score, interval.unwrap_or_default())
}

/// Rounds to the digits of the text output, so that both forms give the same number.
fn round_score(score: &mut Score, width: Option<u8>) {
    let Some(width) = width.map(usize::from) else { return };
    let round = |x: &mut f64| *x = format!("{x:.width$}").parse().unwrap_or(*x);
    round(&mut score.score);
    if let Some(interval) = &mut score.interval {
        round(&mut interval.mean);
        round(&mut interval.half_width);
    }
}
