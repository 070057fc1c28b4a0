//! The flags that name parallel text, for commands that read it like training does.

use clap::Args;
use regard::train::config::DataConfig;
use std::path::PathBuf;

/// Parallel text, validation text, and their languages.
#[derive(Debug, Args)]
pub(crate) struct CorpusArguments {
    /// Source text, one sentence per line; plain, .gz or .zst
    #[arg(long, num_args = 1.., value_name = "FILE")]
    pub(crate) src: Vec<PathBuf>,
    /// Its translation, line by line, in as many files
    #[arg(long, num_args = 1.., value_name = "FILE")]
    pub(crate) tgt: Vec<PathBuf>,
    /// One file with source and target separated by a tab, instead of --src and --tgt
    #[arg(long, value_name = "FILE", conflicts_with_all = ["src", "tgt"])]
    pub(crate) tsv: Option<PathBuf>,
    /// Files that hold both sides, instead of --src and --tgt: .tsv, .jsonl (source and target, src
    /// and tgt, or the two languages) or .po
    #[arg(long, num_args = 1.., value_name = "FILE", conflicts_with_all = ["src", "tgt", "tsv"])]
    pub(crate) pairs: Vec<PathBuf>,
    /// Source text to validate on
    #[arg(long, value_name = "FILE")]
    pub(crate) valid_src: Option<PathBuf>,
    /// Its translation
    #[arg(long, value_name = "FILE")]
    pub(crate) valid_tgt: Option<PathBuf>,
    /// One file that holds both sides, instead of --valid-src and --valid-tgt
    #[arg(long, value_name = "FILE", conflicts_with_all = ["valid_src", "valid_tgt"])]
    pub(crate) valid_pairs: Option<PathBuf>,
    /// Source language [default: from the names of the files]
    #[arg(long, value_name = "TAG")]
    pub(crate) source_lang: Option<String>,
    /// Target language [default: from the names of the files]
    #[arg(long, value_name = "TAG")]
    pub(crate) target_lang: Option<String>,
}

impl CorpusArguments {
    /// Whether no training text is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.src.is_empty() && self.tsv.is_none() && self.pairs.is_empty()
    }

    /// Applies the given flags to the settings.
    pub(crate) fn apply(&self, data: &mut DataConfig) {
        for (setting, flag) in
            [(&mut data.src, &self.src), (&mut data.tgt, &self.tgt), (&mut data.pairs, &self.pairs)]
        {
            if !flag.is_empty() {
                setting.clone_from(flag);
            }
        }
        put(&mut data.tsv, &self.tsv);
        put(&mut data.valid_src, &self.valid_src);
        put(&mut data.valid_tgt, &self.valid_tgt);
        put(&mut data.valid_pairs, &self.valid_pairs);
        put(&mut data.source_lang, &self.source_lang);
        put(&mut data.target_lang, &self.target_lang);
    }
}

/// Replaces a setting if its flag is given.
pub(crate) fn put<T: Clone>(setting: &mut Option<T>, flag: &Option<T>) {
    if flag.is_some() {
        setting.clone_from(flag);
    }
}
