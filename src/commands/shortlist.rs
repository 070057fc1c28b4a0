//! `regard shortlist`: learns the likely target words of each source word from a corpus.

use super::numbers::{SENTENCES, THREADS, whole};
use super::{CommandResult, cores, resolve};
use clap::Args;
use regard::decode::{Shortlist, ShortlistSize};
use regard::formats::Model;
use regard::train::corpus::{Corpus, Filters, Inputs};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    regard shortlist --model model --src train.en --tgt train.de --out model/shortlist.txt\n  \
    regard translate --model model --shortlist model/shortlist.txt < input.en > output.de\n\n\
    With a shortlist, translation considers only the words that the source makes likely; the larger the vocabulary, the more time\n\
    that saves. Words that are not on the list cannot be produced: compare `regard evaluate` with and without --shortlist.")]
pub(crate) struct Arguments {
    /// Model folder, or its name on the Hugging Face hub
    #[arg(long, short, value_name = "DIR")]
    model: PathBuf,
    /// Source text, one sentence per line; plain, .gz or .zst
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    src: Vec<PathBuf>,
    /// Its translation, line by line, in as many files
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    tgt: Vec<PathBuf>,
    /// File to write
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Number of most frequent target words that are always allowed
    #[arg(long, value_name = "N", default_value_t = ShortlistSize::default().frequent)]
    #[arg(value_parser = whole(0..=100_000_000))]
    frequent: usize,
    /// Number of likely target words for each source word
    #[arg(long, value_name = "N", default_value_t = ShortlistSize::default().per_word)]
    #[arg(value_parser = whole(0..=100_000_000))]
    per_word: usize,
    /// Learn from at most N pairs, spread over the corpus
    #[arg(long, value_name = "N", default_value_t = PAIRS, value_parser = whole(SENTENCES))]
    pairs: usize,
    /// Number of cores to use [default: all]
    #[arg(long, value_name = "N", value_parser = whole(THREADS))]
    threads: Option<usize>,
}

/// The maximum number of pairs to learn a shortlist from.
pub(super) const PAIRS: usize = 500_000;

/// Reads a shortlist for another command. The error for an invalid file names the command that
/// creates one.
pub(super) fn load(file: &Path) -> Result<Shortlist, regard::Error> {
    Shortlist::load(file).map_err(|error| match error {
        regard::Error::Line { path, line, message } => {
            let message = format!("{message}; `regard shortlist` makes such a file");
            regard::Error::Line { path, line, message }
        }
        other => other,
    })
}

/// A temporary folder for the encoded corpus.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    let Arguments { src, tgt, out, frequent, per_word, .. } = arguments;
    let model = Model::load(&resolve(&arguments.model)?)?;
    let inputs = Inputs::Files { source: src, target: tgt };
    let threads = arguments.threads.unwrap_or_else(cores);
    let learned = learn(&model, &inputs, ShortlistSize { frequent, per_word }, arguments.pairs, threads)?;
    learned.list.save(&out)?;
    note!(
        "{}: learned from {} pairs; on average, {} of {} target words are considered for a sentence",
        out.display(),
        learned.pairs,
        learned.words,
        model.transformer.config().target_vocabulary
    );
    Ok(())
}

/// A shortlist, and what it was learned from.
pub(super) struct LearnedShortlist {
    pub(super) list: Shortlist,
    pub(super) pairs: usize,
    /// The mean number of candidate words per sentence.
    pub(super) words: usize,
}

/// Learns the shortlist of a model from at most `most` pairs, sampled evenly from a corpus.
pub(super) fn learn(
    model: &Model,
    inputs: &Inputs,
    size: ShortlistSize,
    most: usize,
    threads: usize,
) -> Result<LearnedShortlist, regard::Error> {
    let config = model.transformer.config();
    let scratch = Scratch(std::env::temp_dir().join(format!("regard-shortlist-{}", std::process::id())));
    let corpus =
        Corpus::prepare(inputs, &Filters::default(), &model.tokenizers, &scratch.0, "corpus", threads)?;
    let step = corpus.len().div_ceil(most.max(1)).max(1);
    let pairs =
        (0..corpus.len()).step_by(step).map(|i| corpus.pair(i)).collect::<Result<Vec<_>, regard::Error>>()?;
    let pairs: Vec<_> = pairs.iter().map(|pair| (pair.source(), pair.target())).collect();
    let vocabularies = (config.source_vocabulary, config.target_vocabulary);
    let list = Shortlist::learn(&pairs, vocabularies, size);
    let mut words = Vec::new();
    let sample = pairs.iter().take(1000);
    let count = sample.len().max(1);
    let total: usize = sample.map(|(source, _)| (list.words(source, &mut words), words.len()).1).sum();
    Ok(LearnedShortlist { pairs: pairs.len(), words: total / count, list })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_shortlist_is_told_from_one_that_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.txt");
        let missing = load(&path).unwrap_err().to_string();
        assert!(!missing.contains("regard shortlist"), "{missing}");
        std::fs::write(&path, "a b c\n").unwrap();
        let wrong = load(&path).unwrap_err().to_string();
        assert!(wrong.contains("list.txt:1: not a shortlist"), "{wrong}");
        assert!(wrong.ends_with("; `regard shortlist` makes such a file"), "{wrong}");
    }
}
