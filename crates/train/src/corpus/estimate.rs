//! Estimates the number of pairs in a corpus without reading all of it.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek};
use std::path::Path;

use super::readers::PairFormat;
use super::{Inputs, Pairs, Side};
use regard_core::formats::compressed::decompress;
use regard_plot::grouped;

/// The amount of text to read from each file; the number of lines of a longer file is extrapolated.
/// Counting them takes a tenth of a second.
const LOOKED_AT: u64 = 64 << 20;

/// The number of pairs in a corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairCount {
    /// Lines of the source side.
    pub pairs: u64,
    /// Whether they were counted rather than estimated.
    pub exact: bool,
}

impl fmt::Display for PairCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.exact {
            f.write_str("about ")?;
        }
        let ending = if self.pairs == 1 { "" } else { "s" };
        write!(f, "{} pair{ending}", grouped(self.pairs))
    }
}

/// Counts or estimates the pairs of a corpus; `None` if a file cannot be read, or only once (a
/// pipe).
pub fn count_pairs(inputs: &Inputs) -> Option<PairCount> {
    count(inputs, LOOKED_AT)
}

fn count(inputs: &Inputs, looked_at: u64) -> Option<PairCount> {
    let files: Vec<&Path> = match inputs {
        Inputs::Files { source, .. } => source.iter().map(|path| path.as_path()).collect(),
        Inputs::Pairs { files, .. } => files.iter().map(|path| path.as_path()).collect(),
    };
    let mut all = PairCount { pairs: 0, exact: true };
    for path in files {
        let PairCount { pairs, exact } = match PairFormat::of(path) {
            // Catalogues are small, and their lines are not pairs.
            PairFormat::Po if matches!(inputs, Inputs::Pairs { .. }) => messages(path)?,
            _ => lines(path, looked_at).ok()?,
        };
        all.pairs = all.pairs.saturating_add(pairs);
        all.exact &= exact;
    }
    (all.pairs > 0).then_some(all)
}

/// The maximum size of a message in bytes.
const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// Counts the messages of a catalogue.
fn messages(path: &Path) -> Option<PairCount> {
    let pairs = Pairs::open(&Inputs::pairs(path), MAX_MESSAGE_BYTES).ok()?;
    let translated = pairs.flatten().filter(|pair| pair.source != Side::Untranslated);
    Some(PairCount { pairs: translated.count() as u64, exact: true })
}

fn lines(path: &Path, looked_at: u64) -> io::Result<PairCount> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    // The clone shares the file position, which tells how much compressed text has been read.
    let mut place = file.try_clone()?;
    let mut text = decompress(BufReader::with_capacity(1 << 16, file))?;
    let (mut lines, mut bytes, mut in_line) = (0u64, 0u64, false);
    while bytes < looked_at {
        let buffer = text.fill_buf()?;
        let Some(&last) = buffer.last() else {
            return Ok(PairCount { pairs: lines + u64::from(in_line), exact: true });
        };
        lines += buffer.iter().filter(|&&b| b == b'\n').count() as u64;
        in_line = last != b'\n';
        let length = buffer.len();
        bytes += length as u64;
        text.consume(length);
    }
    let read = place.stream_position()?.clamp(1, size.max(1));
    let estimate = lines as f64 * (size as f64 / read as f64);
    // Round to significant digits.
    let digits = 10f64.powf((estimate.max(1.0).log10().floor() - 1.0).max(0.0));
    Ok(PairCount { pairs: ((estimate / digits).round() * digits) as u64, exact: read >= size && !in_line })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::path::PathBuf;

    fn tsv(path: &Path) -> Inputs {
        Inputs::pairs(path)
    }

    #[test]
    fn small_files_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| -> PathBuf {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let (a, b) = (write("a.zh", "狗跑。\n猫睡。\n"), write("b.zh", "一\n二\n三"));
        let source = vec![a.clone(), b];
        let inputs = Inputs::Files { target: source.clone(), source };
        let found = count_pairs(&inputs).unwrap();
        assert_eq!((found.pairs, found.exact, found.to_string().as_str()), (5, true, "5 pairs"));
        assert_eq!(count_pairs(&tsv(&write("one.tsv", "a\tb"))).unwrap().to_string(), "1 pair");
        assert_eq!(count_pairs(&tsv(&write("empty.tsv", ""))), None);
        assert_eq!(count_pairs(&tsv(&folder.path().join("none"))), None);
        assert_eq!(count_pairs(&tsv(folder.path())), None);
    }

    #[test]
    fn large_files_are_estimated_from_their_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let text: String = (0..100_000).map(|i| format!("sentence {i}\tSatz {i}\n")).collect();
        let plain = folder.path().join("plain.tsv");
        std::fs::write(&plain, &text).unwrap();
        let packed = folder.path().join("packed.tsv.gz");
        let mut gz =
            flate2::write::GzEncoder::new(File::create(&packed).unwrap(), flate2::Compression::fast());
        gz.write_all(text.as_bytes()).unwrap();
        gz.finish().unwrap();
        for path in [&plain, &packed] {
            assert_eq!(count_pairs(&tsv(path)), Some(PairCount { pairs: 100_000, exact: true }));
            let found = count(&tsv(path), 1 << 20).unwrap();
            assert!((80_000..125_000).contains(&found.pairs) && !found.exact, "{found:?}");
            assert!(found.to_string().starts_with("about "), "{found}");
        }
    }
}
