//! `regard shortlist`: the likely words of each source word, from a corpus.

use super::numbers::{SENTENCES, THREADS, whole};
use super::{CommandResult, cores};
use clap::Args;
use regard::corpus::{Corpus, Filters, Inputs};
use regard::decode::{Shortlist, ShortlistSize};
use regard::formats::{Model, resolve};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    regard shortlist --model model --src train.en --tgt train.de --out model/shortlist.txt\n  \
    regard translate --model model --shortlist model/shortlist.txt < input.en > output.de\n\n\
    With it, translation looks only at the words that the source makes likely, which is faster the larger the vocabulary is. What\n\
    is not on the list cannot come: `regard evaluate` with --shortlist and without says what that costs.")]
pub(crate) struct Arguments {
    /// The folder of the model, or its name on the Hugging Face hub
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// Source sentences: one file or several, plain, .gz or .zst
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    src: Vec<PathBuf>,
    /// Their translations, as many files
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    tgt: Vec<PathBuf>,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// So many of the most frequent target words may always come
    #[arg(long, value_name = "N", default_value_t = ShortlistSize::default().frequent)]
    #[arg(value_parser = whole(0..=100_000_000))]
    frequent: usize,
    /// So many of the likeliest target words for each source word
    #[arg(long, value_name = "N", default_value_t = ShortlistSize::default().per_word)]
    #[arg(value_parser = whole(0..=100_000_000))]
    per_word: usize,
    /// Learn from so many pairs at most, spread over the corpus
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = whole(SENTENCES))]
    pairs: usize,
    /// How many cores to use [default: all]
    #[arg(long, value_name = "N", value_parser = whole(THREADS))]
    threads: Option<usize>,
}

/// A folder for the encoded corpus, gone at the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    let Arguments { src, tgt, out, frequent, per_word, .. } = arguments;
    let model = Model::load(&resolve(&arguments.model)?)?;
    let config = model.transformer.config();
    let scratch = Scratch(std::env::temp_dir().join(format!("regard-shortlist-{}", std::process::id())));
    let inputs = Inputs::Files { source: src, target: tgt };
    let threads = arguments.threads.unwrap_or_else(cores);
    let corpus =
        Corpus::prepare(&inputs, &Filters::default(), &model.tokenizers, &scratch.0, "corpus", threads)?;
    let step = corpus.len().div_ceil(arguments.pairs.max(1)).max(1);
    let pairs: Vec<_> =
        (0..corpus.len()).step_by(step).map(|i| (corpus.source(i), corpus.target(i))).collect();
    let vocabularies = (config.source_vocabulary, config.target_vocabulary);
    let list = Shortlist::learn(&pairs, vocabularies, ShortlistSize { frequent, per_word });
    list.save(&out)?;
    let mut words = Vec::new();
    let sample = pairs.iter().take(1000);
    let count = sample.len().max(1);
    let total: usize = sample.map(|(source, _)| (list.words(source, &mut words), words.len()).1).sum();
    eprintln!(
        "{}: from {} pairs; a sentence has {} of {} words on average",
        out.display(),
        pairs.len(),
        total / count,
        config.target_vocabulary
    );
    Ok(())
}
