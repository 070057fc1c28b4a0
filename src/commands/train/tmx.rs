//! Translation memories (TMX) as training text: their pairs are converted to a file of
//! tab-separated lines in the cache of the run, which is then used for training.

use super::Arguments;
use regard::formats::compressed::decompress;
use regard::train::has_run;
use regard_documents::files::tmx;
use std::error::Error;
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

/// A memory to train on, and the file for its pairs.
#[derive(Debug)]
pub(super) struct Conversion {
    memory: PathBuf,
    pairs: PathBuf,
}

/// Whether a file is a memory, judging by its name.
fn is_memory(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_lowercase();
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    name.ends_with(".tmx")
}

/// Replaces a translation memory by the file that its pairs will be in.
pub(super) fn plan(arguments: &mut Arguments) -> Option<Conversion> {
    let memory = arguments.corpus.tsv.take_if(|path| is_memory(path))?;
    let pairs = arguments.out.join("cache").join("tmx.tsv");
    arguments.corpus.tsv = Some(pairs.clone());
    Some(Conversion { memory, pairs })
}

impl Conversion {
    /// Writes the pairs.
    pub(super) fn run(&self, arguments: &Arguments) -> Result<(), Box<dyn Error>> {
        if !arguments.resume && has_run(&arguments.out) {
            // The run will be rejected, and the existing text stays unchanged.
            return Ok(());
        }
        let memory = self.memory.display();
        let (Some(source), Some(target)) = (&arguments.corpus.source_lang, &arguments.corpus.target_lang)
        else {
            let message =
                "a translation memory holds many languages; name two with --source-lang and --target-lang";
            return Err(format!("{memory}: {message}").into());
        };
        let named = |e: &dyn std::fmt::Display| format!("{memory}: {e}");
        let file = File::open(&self.memory).map_err(|e| named(&e))?;
        let reader = decompress(BufReader::new(file)).map_err(|e| named(&e))?;
        if let Some(folder) = self.pairs.parent() {
            std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        let (mut count, mut damaged) = (0, None);
        regard::replace(&self.pairs, |to| {
            for pair in tmx::pairs(reader, source, target) {
                match pair {
                    // White space in a segment is already single spaces.
                    Ok((source, target)) => writeln!(to, "{source}\t{target}")?,
                    Err(error) => {
                        damaged = Some(error);
                        break;
                    }
                }
                count += 1;
            }
            Ok(())
        })?;
        match damaged {
            Some(error) => Err(named(&error).into()),
            None if count == 0 => {
                Err(format!("{memory}: no unit of a TMX file with both {source} and {target}").into())
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_are_told_by_their_names() {
        for name in ["a.tmx", "b/A.TMX", "a.tmx.gz", "a.tmx.zst"] {
            assert!(is_memory(Path::new(name)), "{name}");
        }
        for name in ["a.tsv", "tmx", "a.tmx.tsv", "a.gz"] {
            assert!(!is_memory(Path::new(name)), "{name}");
        }
    }
}
