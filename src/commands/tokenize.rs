//! `regard tokenize`: the pieces of text, and standalone tokenizers.

mod count;

use super::input::Lines;
use super::numbers::{THREADS, whole};
use super::{CommandResult, Output, cores, resolve};
use clap::Args;
use regard::Error;
use regard::formats::load_tokenizers;
use regard::text::{Segmentation, TextSample, Tokenizer, TokenizerPair, TokenizerSettings};
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    echo 'A dog runs.' | regard tokenize --model MODEL\n  \
    regard tokenize --model MODEL --count train.en\n  \
    regard tokenize --model tokenizer.json --ids train.en | regard tokenize --model tokenizer.json --ids --decode\n  \
    regard tokenize --train train.en train.de.gz --vocabulary 8000 --out tokenizer.json")]
pub(crate) struct Arguments {
    /// Model folder, name on the Hugging Face hub, or tokenizer.json file
    #[arg(long, short, value_name = "DIR|FILE", required_unless_present = "train")]
    model: Option<PathBuf>,
    /// Text files; - or no file reads standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Use the target language's tokenizer, if the model has one per language
    #[arg(long)]
    target: bool,
    /// Read or write ids instead of pieces
    #[arg(long)]
    ids: bool,
    /// Convert pieces, or with --ids ids, back to text
    #[arg(long)]
    decode: bool,
    /// Also write the end-of-sentence token, </s>
    #[arg(long, conflicts_with_all = ["decode", "count"])]
    eos: bool,
    /// Print a summary and the most frequent pieces instead of the text
    #[arg(long, conflicts_with_all = ["ids", "decode"])]
    count: bool,
    /// Number of most frequent pieces that --count lists
    #[arg(long, value_name = "N", default_value_t = 20, requires = "count")]
    #[arg(value_parser = whole(0..=1_000_000_000))]
    top: usize,
    /// Print one JSON object per line, or for the summary
    #[arg(long)]
    json: bool,
    /// Number of cores to use [default: all]
    #[arg(long, value_name = "N", value_parser = whole(THREADS))]
    threads: Option<usize>,
    /// Train a tokenizer on these files
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "out")]
    #[arg(conflicts_with_all = ["model", "files", "target", "ids", "decode", "eos", "count", "json", "threads"])]
    train: Vec<PathBuf>,
    // clap drops a `requires` whose argument conflicts with a given one; hence the second condition
    // from here on.
    /// Vocabulary size, 259 special tokens and bytes included
    /// [default: chosen by the size of the text]
    #[arg(long, value_name = "N", requires = "train", conflicts_with = "model")]
    vocabulary: Option<usize>,
    /// Train a unigram model instead of BPE
    #[arg(long, requires = "train", conflicts_with = "model")]
    unigram: bool,
    /// File or folder for the trained tokenizer
    #[arg(long, short, value_name = "FILE", requires = "train", conflicts_with = "model")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    if let Some(out) = &arguments.out {
        return train(&arguments, out);
    }
    // clap has ensured that there is a model.
    let tokenizers = load(&resolve(arguments.model.as_deref().unwrap_or(Path::new(".")))?)?;
    let tokenizer = if arguments.target { tokenizers.target() } else { tokenizers.source() };
    let stdin = [PathBuf::from("-")];
    let files = if arguments.files.is_empty() { &stdin[..] } else { &arguments.files };
    let mut output = Output::new();
    let mut counts = count::Counts::new(tokenizer);
    let threads = arguments.threads.unwrap_or_else(cores);
    for file in files {
        let mut lines = Lines::open(file)?;
        loop {
            let before = lines.count();
            let batch = lines.next_batch()?;
            if batch.is_empty() {
                break;
            }
            if arguments.decode {
                for (i, line) in batch.iter().enumerate() {
                    let text = decode(tokenizer, line, arguments.ids).map_err(|message| Error::Line {
                        path: lines.path().to_path_buf(),
                        line: before + i + 1,
                        message,
                    })?;
                    match arguments.json {
                        true => output.line(json!({"text": text}))?,
                        // A model may generate any byte; keep the output on one line.
                        false => output.line(text.replace(['\n', '\r'], " "))?,
                    }
                }
            } else {
                let texts: Vec<&str> = batch.iter().map(String::as_str).collect();
                for mut ids in tokenizer.encode_batch(&texts, threads)? {
                    if !arguments.eos {
                        ids.pop();
                    }
                    match arguments.count {
                        true => counts.add(&ids),
                        false => output.line(show(tokenizer, &ids, &arguments))?,
                    }
                }
            }
            output.flush()?;
        }
    }
    if arguments.count {
        counts.print(&mut output, arguments.top, arguments.json)?;
    }
    output.flush()
}

fn load(model: &Path) -> Result<TokenizerPair, Error> {
    if model.is_dir() {
        return load_tokenizers(model);
    }
    Tokenizer::load(model).map(TokenizerPair::joint)
}

fn show(tokenizer: &Tokenizer, ids: &[u32], arguments: &Arguments) -> String {
    let pieces = || ids.iter().map(|&id| tokenizer.piece(id).unwrap_or_default()).collect::<Vec<_>>();
    match (arguments.json, arguments.ids) {
        (true, _) => json!({"pieces": pieces(), "ids": ids}).to_string(),
        (false, true) => ids.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
        (false, false) => pieces().join(" "),
    }
}

fn decode(tokenizer: &Tokenizer, line: &str, from_ids: bool) -> Result<String, String> {
    let id = |word: &str| {
        let id = match from_ids {
            true => word.parse().ok().filter(|&id| (id as usize) < tokenizer.size()),
            false => tokenizer.id(word),
        };
        id.ok_or_else(|| match from_ids {
            true => format!("{word:?} is not an id; accepted: 0 to {}", tokenizer.size() - 1),
            false => format!("{word:?} is not a piece of the vocabulary; pieces are separated by spaces"),
        })
    };
    // Split at ASCII spaces only: the pieces of a foreign vocabulary may contain any other kind.
    let words = line.trim_end_matches('\r').split(' ').filter(|word| !word.is_empty());
    Ok(tokenizer.decode(&words.map(id).collect::<Result<Vec<u32>, _>>()?))
}

fn train(arguments: &Arguments, out: &Path) -> CommandResult {
    let mut sample = TextSample::default();
    let (mut total, mut invalid) = (0, 0);
    for file in &arguments.train {
        let mut lines = Lines::open(file)?;
        while let Some(line) = lines.next_bytes()? {
            match String::from_utf8(line) {
                Ok(text) => sample.add(&text),
                Err(_) => invalid += 1,
            }
        }
        total += lines.count();
    }
    let segmentation = if arguments.unigram { Segmentation::Unigram } else { Segmentation::Bpe };
    let settings = TokenizerSettings { segmentation, size: arguments.vocabulary, separate: false };
    let tokenizer = Tokenizer::train(&[&sample], &settings).map_err(|error| match error {
        Error::Config { field, message } if field == "tokenizer.size" => {
            Error::config("--vocabulary", message)
        }
        Error::Config { message, .. } => Error::config("--train", message),
        other => other,
    })?;
    let out = if out.is_dir() { out.join(TokenizerPair::FILE) } else { out.to_path_buf() };
    tokenizer.save(&out)?;
    let left_out =
        if invalid > 0 { format!("; lines skipped that are not UTF-8: {invalid}") } else { String::new() };
    note!(
        "{}: {} pieces ({}) trained on {total} lines{left_out}",
        out.display(),
        tokenizer.size(),
        if arguments.unigram { "unigram" } else { "BPE" },
    );
    Ok(())
}
