//! A tokenized corpus in a file.
//!
//! The file, little-endian: a header of 80 bytes (magic, version, fingerprint of everything that
//! determines the content, numbers of pairs, ids and summary bytes, hash of the rest, hash of the
//! header); the ids, `u32`, source and target of each pair in turn; zeros up to a multiple of
//! eight; the offsets of all sentences and the end, `u64`; the summary as JSON. It is written to a
//! temporary file and renamed when complete.
//!
//! Opening a cache reads the whole file once to verify it; later, the ids of a pair are read when
//! needed. The file is not memory-mapped: truncating a mapped file ends the process with SIGBUS,
//! while a read that fails is an error with a message. A read takes about a microsecond, and a
//! batch needs a few hundred.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_128};

use super::build::build;
use super::{Filters, Inputs, Summary};
use regard_core::formats::Languages;
use regard_core::text::TokenizerPair;
use regard_core::{Error, Result, bounded};

pub(super) const MAGIC: &[u8; 8] = b"RGDIDS\r\n";
/// Since version 2, the summary counts the pairs of each file.
pub(super) const VERSION: u64 = 2;
pub(super) const HEADER: usize = 80;

/// Whether an existing cache could be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheState {
    /// Nothing has changed since it was written.
    Reused,
    /// There was no cache.
    Built,
    /// The existing cache did not match; the reason.
    Rebuilt(String),
}

/// A tokenized corpus on disk: `len` pairs of sentences. The index takes twelve bytes of memory per
/// pair.
#[derive(Debug)]
pub struct Corpus {
    path: PathBuf,
    file: File,
    /// The number of ids before each pair, and the total.
    starts: Vec<u64>,
    /// The number of source tokens of each pair.
    source_lengths: Vec<u32>,
    largest_id: u32,
    content_hash: u64,
    summary: Summary,
    state: CacheState,
}

/// The ids of the two sentences of a pair, each with `</s>` at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairIds {
    ids: Vec<u32>,
    source_length: usize,
}

impl PairIds {
    /// The ids of the source sentence.
    pub fn source(&self) -> &[u32] {
        &self.ids[..self.source_length]
    }

    /// The ids of the target sentence.
    pub fn target(&self) -> &[u32] {
        &self.ids[self.source_length..]
    }
}

impl Corpus {
    /// Opens the cache `folder/name.ids`, and builds it first if it is missing, damaged, or made
    /// from other inputs, filters or tokenizers. Encodes on `threads` threads.
    pub fn prepare(
        inputs: &Inputs,
        filters: &Filters,
        tokenizers: &TokenizerPair,
        folder: &Path,
        name: &str,
        threads: usize,
    ) -> Result<Self> {
        Self::prepare_each(inputs, filters, std::slice::from_ref(tokenizers), folder, name, threads)
    }

    /// The same with separate tokenizers for each pair of files; the last ones serve all further
    /// files.
    pub fn prepare_each(
        inputs: &Inputs,
        filters: &Filters,
        tokenizers: &[TokenizerPair],
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

    /// Opens the cache `folder/name.ids` if it exists and matches these inputs, filters and
    /// tokenizers.
    pub fn reuse(
        inputs: &Inputs,
        filters: &Filters,
        tokenizers: &[TokenizerPair],
        folder: &Path,
        name: &str,
    ) -> Result<Option<Self>> {
        let path = folder.join(format!("{name}.ids"));
        Ok(Self::open(&path, fingerprint(inputs, filters, tokenizers)?).ok())
    }

    fn open(path: &Path, fingerprint: u128) -> std::result::Result<Self, Unusable> {
        let unreadable = |e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => Unusable::Missing,
            io::ErrorKind::UnexpectedEof => Unusable::Because("it is cut off".into()),
            _ => Unusable::Because(format!("it cannot be read: {e}")),
        };
        match bounded::check_regular(path) {
            Ok(()) => {}
            Err(Error::Io { source, .. }) => return Err(unreadable(source)),
            Err(e) => return Err(Unusable::Because(e.to_string())),
        }
        let file = File::open(path).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        let mut reader = HashingReader { from: BufReader::with_capacity(1 << 18, &file), hash: Xxh3::new() };
        let mut header = [0; HEADER];
        let read = reader.from.read_exact(&mut header);
        read.map_err(|_| Unusable::Because("it is not a cache of ids".into()))?;
        let because = |why: &str| Unusable::Because(why.to_owned());
        let layout = Layout::read(&header, length, fingerprint).map_err(because)?;
        let largest_id = reader.ids(layout.ids).map_err(unreadable)?;
        let offsets = reader.offsets(&layout).map_err(unreadable)?;
        let content_hash = reader.hash.digest();
        let mut summary = Vec::new();
        reader.read_to_end(&mut summary).map_err(unreadable)?;
        if layout.hash != reader.hash.digest() {
            return Err(because("its content is damaged"));
        }
        let Some((starts, source_lengths)) = offsets else { return Err(because("its offsets are damaged")) };
        let summary = serde_json::from_slice(&summary).map_err(|_| because("its summary is damaged"))?;
        let (path, state) = (path.to_owned(), CacheState::Reused);
        Ok(Corpus { path, file, starts, source_lengths, largest_id, content_hash, summary, state })
    }

    /// The number of pairs.
    pub fn len(&self) -> usize {
        self.source_lengths.len()
    }

    /// Never true: a corpus without pairs is not built.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ids of pair `i`, read from the file; an error if the file has changed since it was
    /// opened.
    ///
    /// # Panics
    /// If `i` is out of range.
    pub fn pair(&self, i: usize) -> Result<PairIds> {
        let (start, end) = (self.starts[i], self.starts[i + 1]);
        let mut bytes = vec![0; 4 * (end - start) as usize];
        read_at(&self.file, &mut bytes, HEADER as u64 + 4 * start).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => Error::file(&self.path, "was cut off while it was in use"),
            _ => Error::io(&self.path, e),
        })?;
        let ids: Vec<u32> = bytes.as_chunks().0.iter().map(|id| u32::from_le_bytes(*id)).collect();
        if let Some(id) = ids.iter().find(|&&id| id > self.largest_id) {
            let message = format!("was changed while it was in use: {id} is not an id of its text");
            return Err(Error::file(&self.path, message));
        }
        Ok(PairIds { ids, source_length: self.source_lengths[i] as usize })
    }

    /// The numbers of source and target tokens of every pair, for
    /// [`plan_epoch`](crate::batches::plan_epoch).
    pub fn lengths(&self) -> Vec<(u32, u32)> {
        let both = self.starts.windows(2).map(|w| u32::try_from(w[1] - w[0]).unwrap_or(u32::MAX));
        both.zip(&self.source_lengths).map(|(both, &source)| (source, both - source)).collect()
    }

    /// The index of each pair's file: pairs are in the order of the files.
    pub(crate) fn files(&self) -> impl Iterator<Item = usize> {
        let counts = &self.summary.kept_by_file;
        let files = counts.iter().enumerate().flat_map(|(i, &kept)| std::iter::repeat_n(i, kept as usize));
        // A forged summary may count fewer pairs than there are.
        files.chain(std::iter::repeat(counts.len())).take(self.len())
    }

    /// A hash of all ids and sentence boundaries: equal for equal text and tokenizers, wherever the
    /// files are.
    pub fn content_hash(&self) -> u64 {
        self.content_hash
    }

    /// The counts of kept and dropped pairs.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Whether the cache was reused or built.
    pub fn state(&self) -> &CacheState {
        &self.state
    }
}

/// Reads exactly `to.len()` bytes at an offset.
#[cfg(unix)]
fn read_at(file: &File, to: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, to, at)
}

/// The same for systems without such a call; only one thread reads a corpus.
#[cfg(not(unix))]
fn read_at(mut file: &File, to: &mut [u8], at: u64) -> io::Result<()> {
    use std::io::{Seek, SeekFrom};
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(to)
}

/// Hashes everything that is read through it.
struct HashingReader<R> {
    from: R,
    hash: Xxh3,
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(to)?;
        self.hash.update(&to[..read]);
        Ok(read)
    }
}

/// Where each pair begins, and its number of source tokens.
type Offsets = (Vec<u64>, Vec<u32>);

impl<R: Read> HashingReader<R> {
    /// Calls `action` for each of the next `count` numbers of `N` bytes.
    fn numbers<const N: usize>(&mut self, count: u64, mut action: impl FnMut([u8; N])) -> io::Result<()> {
        let mut buffer = vec![0; N << 14];
        let mut left = count;
        while left > 0 {
            let now = left.min(1 << 14);
            let bytes = &mut buffer[..N * now as usize];
            self.read_exact(bytes)?;
            bytes.as_chunks().0.iter().copied().for_each(&mut action);
            left -= now;
        }
        Ok(())
    }

    /// Reads the ids and their padding; returns the largest id.
    fn ids(&mut self, count: u64) -> io::Result<u32> {
        let mut largest = 0;
        self.numbers(count, |id| largest = largest.max(u32::from_le_bytes(id)))?;
        self.numbers(count % 2, |_: [u8; 4]| ())?;
        Ok(largest)
    }

    /// Reads the offsets of all sentences; `None` if they are inconsistent.
    fn offsets(&mut self, layout: &Layout) -> io::Result<Option<Offsets>> {
        let (mut starts, mut source_lengths) = (Vec::new(), Vec::new());
        let (mut number, mut before, mut sound) = (0u64, 0, true);
        self.numbers(2 * layout.pairs + 1, |offset| {
            let offset = u64::from_le_bytes(offset);
            let length = offset.checked_sub(before).and_then(|n| u32::try_from(n).ok());
            sound &= length.is_some() && (number > 0 || offset == 0);
            match number % 2 {
                0 => starts.push(offset),
                _ => source_lengths.push(length.unwrap_or(0)),
            }
            (number, before) = (number + 1, offset);
        })?;
        Ok((sound && before == layout.ids).then_some((starts, source_lengths)))
    }
}

enum Unusable {
    Missing,
    Because(String),
}

/// The contents of a header, checked against the length of its file.
#[derive(Debug)]
struct Layout {
    pairs: u64,
    ids: u64,
    hash: u64,
}

impl Layout {
    fn read(
        header: &[u8; HEADER],
        length: u64,
        fingerprint: u128,
    ) -> std::result::Result<Self, &'static str> {
        if !header.starts_with(MAGIC) {
            return Err("it is not a cache of ids");
        }
        let (words, _) = header.as_chunks::<8>();
        let field = |i: usize| u64::from_le_bytes(words[i]);
        if field(1) != VERSION {
            return Err("it is of another version");
        }
        if field(9) != xxh3_64(&header[..HEADER - 8]) {
            return Err("its header is damaged");
        }
        if u128::from(field(2)) << 64 | u128::from(field(3)) != fingerprint {
            return Err("the inputs, filters or tokenizers have changed");
        }
        let [pairs, ids, summary, hash] = [4, 5, 6, 7].map(field);
        // Checked arithmetic, because the header may be forged.
        let whole = || {
            let ids_end = ids.checked_mul(4)?.checked_add(HEADER as u64)?.checked_next_multiple_of(8)?;
            let offsets = pairs.checked_mul(2)?.checked_add(1)?.checked_mul(8)?;
            ids_end.checked_add(offsets)?.checked_add(summary)
        };
        if whole() != Some(length) {
            return Err("it is cut off");
        }
        Ok(Layout { pairs, ids, hash })
    }
}

/// Reads arbitrary bytes as a cache, both unchanged and with a matching header and hashes: gives an
/// error or pairs, never a panic, and allocates no more memory than their size warrants. For
/// fuzzing.
#[cfg(any(test, feature = "fuzzing"))]
pub fn read_any_cache(bytes: &[u8]) {
    let thread = std::thread::current().id();
    let path = std::env::temp_dir().join(format!("regard-{}-{thread:?}.ids", std::process::id()));
    for file in [Some(bytes.to_vec()), repaired(bytes)].into_iter().flatten() {
        fs::write(&path, &file).expect("the temporary folder can be written to");
        let Ok(corpus) = Corpus::open(&path, 0) else { continue };
        assert!(corpus.len() <= file.len() && corpus.lengths().len() == corpus.len());
        for (i, (source, target)) in corpus.lengths().into_iter().enumerate() {
            let pair = corpus.pair(i).expect("nobody has changed the file");
            assert_eq!((pair.source().len(), pair.target().len()), (source as usize, target as usize));
        }
    }
    let _ = fs::remove_file(&path);
}

/// The bytes with the header of a cache with as many pairs and ids as they claim, if that is
/// possible.
#[cfg(any(test, feature = "fuzzing"))]
fn repaired(bytes: &[u8]) -> Option<Vec<u8>> {
    let (header, content) = bytes.split_first_chunk::<HEADER>()?;
    let field = |i: usize| u64::from_le_bytes(header.as_chunks::<8>().0[i]);
    let (pairs, ids) = (field(4) % 100, field(5) % 2_000);
    let before = (4 * ids).next_multiple_of(8) + 8 * (2 * pairs + 1);
    let summary = (content.len() as u64).checked_sub(before)?;
    let mut file = MAGIC.to_vec();
    for number in [VERSION, 0, 0, pairs, ids, summary, xxh3_64(content), field(8)] {
        file.extend(number.to_le_bytes());
    }
    file.extend(xxh3_64(&file).to_le_bytes());
    file.extend(content);
    Some(file)
}

/// A hash of everything that determines the content of the cache.
fn fingerprint(inputs: &Inputs, filters: &Filters, tokenizers: &[TokenizerPair]) -> Result<u128> {
    let mut text = format!("{VERSION}\n{filters:?}\n");
    text += match inputs {
        Inputs::Files { .. } => "files\n",
        Inputs::Pairs { .. } => "tsv\n",
    };
    // The languages select the fields of files that name their languages.
    if let Inputs::Pairs { languages, .. } = inputs
        && *languages != Languages::default()
    {
        text += &format!("{languages:?}\n");
    }
    for pair in tokenizers {
        text += &format!("{:x} {:x}\n", pair.source().hash(), pair.target().hash());
    }
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

#[cfg(test)]
mod tests {
    #[test]
    fn caches_of_any_kind() {
        regard_core::formats::fuzzing::damage_seeds("cache", super::read_any_cache);
    }

    /// The seed is a valid cache, so that mutations get past the hashes.
    #[test]
    fn a_seed_can_be_opened() {
        let seed = include_bytes!("../../../../fuzz/corpus/cache/small.ids");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("small.ids");
        std::fs::write(&path, super::repaired(seed).unwrap()).unwrap();
        assert!(super::Corpus::open(&path, 0).is_ok_and(|corpus| corpus.len() == 60));
    }
}
