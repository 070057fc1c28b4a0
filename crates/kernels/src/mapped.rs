//! Read-only memory-mapped files, viewed as bytes.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A whole file in memory: mapped where the system supports it, read otherwise.
#[derive(Debug)]
pub struct Mapped(Backing);

#[derive(Debug)]
enum Backing {
    Map(memmap2::Mmap),
    /// Words of eight bytes, so that integer views are aligned here too; the second field is the
    /// length in bytes.
    Read(Vec<u64>, usize),
}

impl Mapped {
    /// Opens `path`. The file must not be modified in place while it is open: write a new file and
    /// rename it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        // SAFETY: the mapping is private to this value and read-only. Its bytes do not change as
        // long as nobody writes to or truncates this inode; the callers' files are only ever
        // replaced by a rename, which leaves the mapped inode alone, and no reference outlives the
        // map, which `self` owns.
        match unsafe { memmap2::Mmap::map(&file) } {
            Ok(map) => Ok(Mapped(Backing::Map(map))),
            Err(_) => Self::read(&mut file),
        }
    }

    fn read(file: &mut impl Read) -> io::Result<Self> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let length = bytes.len();
        bytes.resize(length.next_multiple_of(8), 0);
        let (words, _) = bytes.as_chunks::<8>();
        Ok(Mapped(Backing::Read(words.iter().map(|w| u64::from_ne_bytes(*w)).collect(), length)))
    }

    /// Lets the system reclaim the memory of these bytes, which are read from the file again at the
    /// next access. This way, a large file can be read through once without being held in memory.
    pub fn release(&self, range: Range<usize>) {
        #[cfg(unix)]
        if let Backing::Map(map) = &self.0
            && range.start < range.end
            && range.end <= map.len()
        {
            // SAFETY: `DontNeed` drops the pages of the range; the mapping is of a file and never
            // written to, so the next access reads the same bytes again. The range lies within the
            // map. A failure changes nothing.
            let _ = unsafe {
                map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, range.start, range.len())
            };
        }
        #[cfg(not(unix))]
        let _ = range;
    }

    /// All bytes of the file; the first is aligned to at least eight.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Backing::Map(map) => map,
            Backing::Read(words, length) => {
                // SAFETY: the words are initialised, `length` is at most their size in bytes (see
                // `read`), every bit pattern is a valid u8, and the borrow of `self` keeps the
                // vector alive and unchanged.
                unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), *length) }
            }
        }
    }
}

/// Signed integers in memory, or in a file that stays open for them.
#[derive(Clone, Debug)]
pub enum Int8Values {
    /// In memory.
    Owned(Vec<i8>),
    /// This range of a file's bytes.
    Mapped(Arc<Mapped>, Range<usize>),
}

impl Int8Values {
    /// All values; empty if the file does not have the range.
    pub fn as_slice(&self) -> &[i8] {
        match self {
            Int8Values::Owned(values) => values,
            Int8Values::Mapped(file, range) => {
                let bytes = file.bytes().get(range.clone()).unwrap_or_default();
                // SAFETY: both types have the same layout and all their bit patterns are valid; the
                // lifetime is that of the borrow.
                unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_and_read_files_show_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for length in [0, 1, 7, 8, 9, 4097] {
            let bytes: Vec<u8> = (0..length).map(|i| (i * 7 % 251) as u8).collect();
            std::fs::write(&path, &bytes).unwrap();
            let mapped = Mapped::open(&path).unwrap();
            assert_eq!(mapped.bytes(), bytes);
            for range in [0..length, length / 2..length, 1..2, 5..usize::MAX, 0..0] {
                mapped.release(range);
                assert_eq!(mapped.bytes(), bytes);
            }
            assert_eq!(Mapped::read(&mut bytes.as_slice()).unwrap().bytes(), bytes);
        }
    }

    #[test]
    fn bytes_of_a_file_are_signed_integers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, [0, 1, 127, 128, 255]).unwrap();
        let file = Arc::new(Mapped::open(&path).unwrap());
        let values = |range| Int8Values::Mapped(Arc::clone(&file), range);
        assert_eq!(values(1..5).as_slice(), [1, 127, -128, -1]);
        assert!(values(1..6).as_slice().is_empty());
        assert_eq!(Int8Values::Owned(vec![-3]).as_slice(), [-3]);
    }

    #[test]
    fn a_missing_file_is_an_error() {
        assert_eq!(Mapped::open(Path::new("no/such/file")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
