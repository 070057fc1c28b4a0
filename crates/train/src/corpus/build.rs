//! Builds the cache: reads, filters, encodes and writes in blocks, in memory that does not grow
//! with the corpus (except for eight bytes per pair if duplicates are dropped).

use std::fs::{self, File};
use std::io::{BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::cache::{HEADER, MAGIC, VERSION};
use super::documents::Documents;
use super::filter::TextFilter;
use super::{Filters, Inputs, Pair, Pairs, Reason, Summary, nothing_usable};
use regard_core::text::TokenizerPair;
use regard_core::{Error, Result};

/// The number of pairs encoded together.
const BLOCK: usize = 16_384;

/// Reads, filters and encodes the inputs into the cache at `path`, with one pair of tokenizers per
/// pair of files, the last one serving all further files.
pub(super) fn build(
    inputs: &Inputs,
    filters: &Filters,
    tokenizers: &[TokenizerPair],
    path: &Path,
    fingerprint: u128,
    threads: usize,
) -> Result<()> {
    let mut writer = CacheWriter::create(path)?;
    let mut filter = TextFilter::new(filters);
    let mut summary = Summary::default();
    let count = |most| Documents::count(inputs, filters.max_line_bytes, most);
    let documents = filters.max_per_document.map(count).transpose()?;
    let mut pairs = Pairs::open(inputs, filters.max_line_bytes)?;
    loop {
        let block: Vec<Pair> = pairs.by_ref().take(BLOCK).collect::<Result<_>>()?;
        if block.is_empty() {
            break;
        }
        summary.read += block.len() as u64;
        let (mut places, mut sources, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        for pair in &block {
            if documents.as_ref().is_some_and(|documents| !documents.keeps(pair)) {
                summary.drop_pair(Reason::LargeDocument, || inputs.place(pair, false));
                continue;
            }
            match filter.pass(pair) {
                Ok((source, target)) => {
                    places.push(pair);
                    sources.push(source);
                    targets.push(target);
                }
                Err((reason, of_target)) => summary.drop_pair(reason, || inputs.place(pair, of_target)),
            }
        }
        let encoded = encode(&places, &sources, &targets, tokenizers, threads)?;
        for (pair, (source, target)) in places.into_iter().zip(&encoded) {
            let tokenizers = of_file(tokenizers, pair.file)?;
            if let Some(reason) = filters.by_tokens(source, target, tokenizers.target().unk()) {
                summary.drop_pair(reason, || {
                    let of_target = reason == Reason::UnknownTarget || target.len() > source.len();
                    inputs.place(pair, of_target)
                });
                continue;
            }
            writer.add(source)?;
            writer.add(target)?;
            let unknown = |ids: &[u32], unk: u32| ids.iter().filter(|&&id| id == unk).count() as u64;
            summary.keep_pair(pair.file);
            summary.source_tokens += source.len() as u64;
            summary.target_tokens += target.len() as u64;
            summary.longest = summary.longest.max(source.len().max(target.len()) as u64);
            summary.unknown_tokens +=
                unknown(source, tokenizers.source().unk()) + unknown(target, tokenizers.target().unk());
        }
    }
    let first = inputs.paths()[0];
    if summary.kept == 0 {
        return Err(nothing_usable(inputs, &summary));
    }
    if summary.kept > u64::from(u32::MAX) {
        return Err(Error::file(
            first,
            format!("{} pairs are more than {} can be used", summary.kept, u32::MAX),
        ));
    }
    writer.finish(fingerprint, &summary)
}

/// The tokenizers of a pair of files.
fn of_file(tokenizers: &[TokenizerPair], file: usize) -> Result<&TokenizerPair> {
    let missing = || Error::Input { operation: "encoding a corpus", message: "no tokenizers".into() };
    tokenizers.get(file).or(tokenizers.last()).ok_or_else(missing)
}

/// Encodes pairs, those of one file together.
fn encode(
    places: &[&Pair],
    sources: &[&str],
    targets: &[&str],
    tokenizers: &[TokenizerPair],
    threads: usize,
) -> Result<Vec<(Vec<u32>, Vec<u32>)>> {
    let mut encoded = Vec::with_capacity(places.len());
    for run in places.chunk_by(|a, b| a.file == b.file) {
        let range = encoded.len()..encoded.len() + run.len();
        let pair = of_file(tokenizers, run[0].file)?;
        let sources = pair.source().encode_batch(&sources[range.clone()], threads)?;
        let targets = pair.target().encode_batch(&targets[range], threads)?;
        encoded.extend(sources.into_iter().zip(targets));
    }
    Ok(encoded)
}

/// A cache file being written; it is removed if it is not finished.
struct CacheWriter {
    path: PathBuf,
    ids: Scratch,
    /// The offsets go to a separate file until the number of ids is known: a corpus may be larger
    /// than memory.
    offsets: Scratch,
    hash: Xxh3,
    count: u64,
    sentences: u64,
}

impl CacheWriter {
    fn create(path: &Path) -> Result<Self> {
        let mut writer = CacheWriter {
            path: path.to_path_buf(),
            ids: Scratch::create(path, "ids")?,
            offsets: Scratch::create(path, "offsets")?,
            hash: Xxh3::new(),
            count: 0,
            sentences: 0,
        };
        writer.ids.write(&[0; HEADER])?;
        writer.offsets.write(&0u64.to_le_bytes())?;
        Ok(writer)
    }

    fn add(&mut self, ids: &[u32]) -> Result<()> {
        let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        self.write_hashed(&bytes)?;
        self.count += ids.len() as u64;
        self.sentences += 1;
        self.offsets.write(&self.count.to_le_bytes())
    }

    fn write_hashed(&mut self, bytes: &[u8]) -> Result<()> {
        self.hash.update(bytes);
        self.ids.write(bytes)
    }

    fn finish(mut self, fingerprint: u128, summary: &Summary) -> Result<()> {
        if self.count % 2 == 1 {
            self.write_hashed(&[0; 4])?;
        }
        self.offsets.rewind()?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = self.offsets.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            self.write_hashed(&buffer[..read])?;
        }
        let summary = serde_json::to_vec(summary)
            .map_err(|e| Error::Input { operation: "writing a corpus cache", message: e.to_string() })?;
        self.write_hashed(&summary)?;

        let mut header = MAGIC.to_vec();
        let (high, low) = ((fingerprint >> 64) as u64, fingerprint as u64);
        let numbers =
            [VERSION, high, low, self.sentences / 2, self.count, summary.len() as u64, self.hash.digest(), 0];
        header.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
        header.extend(xxh3_64(&header).to_le_bytes());
        self.ids.finish(&header, &self.path)
    }
}

/// A temporary file beside its target; removed when dropped, unless it was renamed to the target.
struct Scratch {
    path: PathBuf,
    file: BufWriter<File>,
    renamed: bool,
}

impl Scratch {
    fn create(beside: &Path, kind: &str) -> Result<Self> {
        let mut path = beside.as_os_str().to_owned();
        path.push(format!(".{}.{kind}.part", std::process::id()));
        let path = PathBuf::from(path);
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
        let file = BufWriter::with_capacity(1 << 18, file.map_err(|e| Error::io(&path, e))?);
        Ok(Scratch { path, file, renamed: false })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| Error::io(&self.path, e))
    }

    /// Seeks to the start, to reread or overwrite what has been written.
    fn rewind(&mut self) -> Result<()> {
        let rewound = self.file.flush().and_then(|()| self.file.get_mut().rewind());
        rewound.map_err(|e| Error::io(&self.path, e))
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.file.get_mut().read(buffer).map_err(|e| Error::io(&self.path, e))
    }

    /// Writes the header at the start and renames the file to `target`.
    fn finish(&mut self, header: &[u8], target: &Path) -> Result<()> {
        self.rewind()?;
        let file = self.file.get_mut();
        let written = file.write_all(header).and_then(|()| file.sync_all());
        written.and_then(|()| fs::rename(&self.path, target)).map_err(|e| Error::io(&self.path, e))?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = fs::remove_file(&self.path);
        }
    }
}
