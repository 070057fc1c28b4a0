//! A corpus as ids in a memory-mapped file.
//!
//! The file, little-endian: a header of 80 bytes (magic, version, fingerprint of everything that decides the content,
//! numbers of pairs, ids and summary bytes, hash of the rest, hash of the header); the ids, `u32`, source and target of
//! each pair in turn; zeros up to a multiple of eight; the offsets of all sentences and the end, `u64`; the summary as
//! JSON. It is written beside its place and renamed when complete, so that it is never changed under a reader.

use std::fs;
use std::io;
use std::path::Path;

use regard_kernels::mapped::{Mapped, as_u32s, as_u64s};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::build::build;
use super::{Filters, Inputs, Summary};
use regard_core::text::TokenizerPair;
use regard_core::{Error, Result};

pub(super) const MAGIC: &[u8; 8] = b"RGDIDS\r\n";
pub(super) const VERSION: u64 = 1;
pub(super) const HEADER: usize = 80;

/// Whether the cache could be used as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheState {
    /// Nothing has changed since it was written.
    Reused,
    /// There was none.
    Built,
    /// The one that was there did not fit; this is why.
    Rebuilt(String),
}

/// A tokenized corpus, mapped into memory: `len` pairs of sentences.
#[derive(Debug)]
pub struct Corpus {
    map: Mapped,
    layout: Layout,
    summary: Summary,
    state: CacheState,
}

impl Corpus {
    /// Opens the cache `folder/name.ids`, and builds it first if it is missing, damaged, or of other inputs, filters
    /// or tokenizers. `threads` are used for encoding.
    pub fn prepare(
        inputs: &Inputs,
        filters: &Filters,
        tokenizers: &TokenizerPair,
        folder: &Path,
        name: &str,
        threads: usize,
    ) -> Result<Self> {
        filters.check()?;
        let path = folder.join(format!("{name}.ids"));
        let fingerprint = fingerprint(inputs, filters, tokenizers)?;
        let state = match Self::open(&path, fingerprint) {
            Ok(corpus) => return Ok(corpus),
            Err(Unusable::Missing) => CacheState::Built,
            Err(Unusable::Because(why)) => CacheState::Rebuilt(why),
        };
        fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        build(inputs, filters, tokenizers, &path, fingerprint, threads)?;
        match Self::open(&path, fingerprint) {
            Ok(corpus) => Ok(Corpus { state, ..corpus }),
            Err(Unusable::Missing) => Err(Error::file(path, "vanished while it was being opened")),
            Err(Unusable::Because(why)) => Err(Error::file(path, format!("just written, but {why}"))),
        }
    }

    /// Opens the cache `folder/name.ids` if it is there and of these inputs, filters and tokenizers.
    pub fn reuse(
        inputs: &Inputs,
        filters: &Filters,
        tokenizers: &TokenizerPair,
        folder: &Path,
        name: &str,
    ) -> Result<Option<Self>> {
        let path = folder.join(format!("{name}.ids"));
        Ok(Self::open(&path, fingerprint(inputs, filters, tokenizers)?).ok())
    }

    fn open(path: &Path, fingerprint: u128) -> std::result::Result<Self, Unusable> {
        let map = match Mapped::open(path) {
            Ok(map) => map,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(Unusable::Missing),
            Err(e) => return Err(Unusable::Because(format!("it cannot be read: {e}"))),
        };
        let because = |why: &str| Unusable::Because(why.to_owned());
        let bytes = map.bytes();
        let layout = Layout::read(bytes, fingerprint).map_err(because)?;
        let summary = serde_json::from_slice(&bytes[layout.offsets_end()..]);
        let summary = summary.map_err(|_| because("its summary is damaged"))?;
        let corpus = Corpus { map, layout, summary, state: CacheState::Reused };
        let offsets = corpus.offsets();
        let ends = offsets.first() == Some(&0) && offsets.last() == Some(&(corpus.layout.ids as u64));
        if !ends || offsets.windows(2).any(|w| w[0] > w[1]) {
            return Err(because("its offsets are damaged"));
        }
        Ok(corpus)
    }

    /// Pairs in the corpus.
    pub fn len(&self) -> usize {
        self.layout.pairs
    }

    /// Never true: a corpus without pairs is not built.
    pub fn is_empty(&self) -> bool {
        self.layout.pairs == 0
    }

    /// The ids of source sentence `i`, `</s>` at the end.
    ///
    /// # Panics
    /// If there is no pair `i`.
    pub fn source(&self, i: usize) -> &[u32] {
        self.sentence(2 * i)
    }

    /// The ids of target sentence `i`, `</s>` at the end.
    ///
    /// # Panics
    /// If there is no pair `i`.
    pub fn target(&self, i: usize) -> &[u32] {
        self.sentence(2 * i + 1)
    }

    /// Source and target tokens of every pair, as [`plan_epoch`](crate::batches::plan_epoch) wants them.
    pub fn lengths(&self) -> Vec<(u32, u32)> {
        let length = |from: u64, to: u64| u32::try_from(to - from).unwrap_or(u32::MAX);
        let starts = self.offsets().windows(3).step_by(2);
        starts.map(|w| (length(w[0], w[1]), length(w[1], w[2]))).collect()
    }

    /// A hash of all ids and of where sentences begin: equal for equal text and tokenizers, wherever the files lie.
    pub fn content_hash(&self) -> u64 {
        xxh3_64(&self.map.bytes()[HEADER..self.layout.offsets_end()])
    }

    /// What became of the pairs of the inputs.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Whether the cache was built now.
    pub fn state(&self) -> &CacheState {
        &self.state
    }

    fn sentence(&self, k: usize) -> &[u32] {
        let offsets = self.offsets();
        let ids = as_u32s(&self.map.bytes()[HEADER..self.layout.ids_end()]).unwrap_or_default();
        &ids[offsets[k] as usize..offsets[k + 1] as usize]
    }

    fn offsets(&self) -> &[u64] {
        as_u64s(&self.map.bytes()[self.layout.offsets_start()..self.layout.offsets_end()]).unwrap_or_default()
    }
}

enum Unusable {
    Missing,
    Because(String),
}

/// Where things are in a file whose numbers have been checked against its length.
#[derive(Debug)]
struct Layout {
    pairs: usize,
    ids: usize,
}

impl Layout {
    fn ids_end(&self) -> usize {
        HEADER + 4 * self.ids
    }

    fn offsets_start(&self) -> usize {
        self.ids_end().next_multiple_of(8)
    }

    fn offsets_end(&self) -> usize {
        self.offsets_start() + 8 * (2 * self.pairs + 1)
    }

    fn read(bytes: &[u8], fingerprint: u128) -> std::result::Result<Self, &'static str> {
        if bytes.len() < HEADER || !bytes.starts_with(MAGIC) {
            return Err("it is not a cache of ids");
        }
        let field = |i: usize| {
            let (words, _) = bytes[..HEADER].as_chunks::<8>();
            u64::from_le_bytes(words[i])
        };
        if field(1) != VERSION {
            return Err("it is of another version");
        }
        if field(9) != xxh3_64(&bytes[..HEADER - 8]) {
            return Err("its header is damaged");
        }
        if u128::from(field(2)) << 64 | u128::from(field(3)) != fingerprint {
            return Err("the inputs, filters or tokenizers have changed");
        }
        let [pairs, ids, summary] = [4, 5, 6].map(|i| usize::try_from(field(i)).ok());
        let (Some(pairs), Some(ids), Some(summary)) = (pairs, ids, summary) else {
            return Err("it is too large for this machine");
        };
        let layout = Layout { pairs, ids };
        // Each number by itself first, so that the sum cannot overflow.
        let fits = |n: usize, size: usize| n <= bytes.len() / size;
        if !fits(pairs, 16)
            || !fits(ids, 4)
            || !fits(summary, 1)
            || layout.offsets_end() + summary != bytes.len()
        {
            return Err("it is cut off");
        }
        if field(7) != xxh3_64(&bytes[HEADER..]) {
            return Err("its content is damaged");
        }
        if cfg!(target_endian = "big") {
            return Err("big-endian machines are not supported");
        }
        Ok(layout)
    }
}

/// A hash of everything that decides what is in the cache.
fn fingerprint(inputs: &Inputs, filters: &Filters, tokenizers: &TokenizerPair) -> Result<u128> {
    let mut text = format!("{VERSION}\n{filters:?}\n");
    text += match inputs {
        Inputs::Files { .. } => "files\n",
        Inputs::Tsv(_) => "tsv\n",
    };
    text += &format!("{:x} {:x}\n", tokenizers.source().hash(), tokenizers.target().hash());
    for path in inputs.paths() {
        let facts = || -> io::Result<String> {
            let facts = fs::metadata(path)?;
            let changed = facts.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            Ok(format!("{:?} {} {}\n", fs::canonicalize(path)?, facts.len(), changed.as_nanos()))
        };
        text += &facts().map_err(|e| Error::io(path, e))?;
    }
    Ok(xxh3_128(text.as_bytes()))
}
