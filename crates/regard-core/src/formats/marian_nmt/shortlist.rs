//! `lex*.bin`: the likely target words for each source word.
//!
//! The file has six u64 (a magic number, a checksum of all that follows it, the number of words
//! that are always allowed, the maximum length of a list, the numbers of offsets and of ids), the
//! offsets of the source words' lists and the end of the last, u64 each, and the lists, u32 each.

use crate::decode::Shortlist;
use std::io::{self, Write};

const MAGIC: u64 = 0xf11a_48d5_0134_17f5;
/// The size of the six numbers in bytes.
const HEADER: usize = 48;
/// The checksum covers what follows it.
const UNCHECKED: usize = 16;

/// A lexical shortlist in the form of Marian and Bergamot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LexicalShortlist {
    /// The number of words at the start of the target vocabulary that are always allowed.
    first: u32,
    /// The maximum length of a list when the file was made.
    best: u32,
    /// Indexed by source word, plus the end of the last list.
    offsets: Vec<u32>,
    ids: Vec<u32>,
}

impl LexicalShortlist {
    /// A shortlist with the `first` words and a list for each source word.
    pub fn new(first: u32, best: u32, lists: &[Vec<u32>]) -> Self {
        let ends = lists.iter().scan(0u32, |end, list| {
            *end += list.len() as u32;
            Some(*end)
        });
        let offsets = std::iter::once(0).chain(ends).collect();
        let mut ids = lists.concat();
        // Lists are sorted in the files.
        let mut rest = ids.as_mut_slice();
        for list in lists {
            let (own, others) = rest.split_at_mut(list.len());
            own.sort_unstable();
            rest = others;
        }
        LexicalShortlist { first, best, offsets, ids }
    }

    /// Converts it to our own shortlist, for vocabularies of these sizes: with one vocabulary for
    /// both sides (`joint`), source words are allowed too, as in Bergamot.
    pub fn shortlist(self, vocabularies: (usize, usize), joint: bool) -> Shortlist {
        let offsets = self.offsets.iter().map(|&offset| offset as usize).collect();
        let first = u32::try_from(vocabularies.1).map_or(self.first, |words| self.first.min(words));
        Shortlist::new(vocabularies, 0..first, (offsets, self.ids), joint)
    }

    /// Reads the bytes of an uncompressed file. An error says what is wrong and where.
    pub fn read(file: &[u8]) -> Result<Self, String> {
        let number = |at: usize| {
            let bytes = file.get(at..at.checked_add(8)?)?.first_chunk()?;
            Some(u64::from_le_bytes(*bytes))
        };
        let header = [0, 8, 16, 24, 32, 40].map(|at| number(at).unwrap_or(0));
        let [magic, checksum, first, best, offsets, ids] = header;
        if magic != MAGIC || file.len() < HEADER {
            return Err(format!("{} bytes that are no lexical shortlist of Marian", file.len()));
        }
        let size = |count: u64, width: usize| usize::try_from(count).ok()?.checked_mul(width);
        let data = size(offsets, 8).and_then(|bytes| bytes.checked_add(HEADER));
        let end = data.zip(size(ids, 4)).and_then(|(data, bytes)| data.checked_add(bytes));
        let (Some(data), true) = (data, end == Some(file.len())) else {
            let has = file.len();
            return Err(format!(
                "says at byte 32 that it has {offsets} offsets and {ids} ids, which is not its {has} bytes"
            ));
        };
        if self::checksum(file) != checksum {
            return Err("is damaged: its checksum at byte 8 does not match".into());
        }
        let small = |value: u64, at: usize| {
            u32::try_from(value).map_err(|_| format!("the number {value} at byte {at} is no number of words"))
        };
        let (first, best) = (small(first, 16)?, small(best, 24)?);
        let ids_count = ids;
        let (numbers, _) = file[HEADER..data].as_chunks::<8>();
        let mut before = 0;
        let mut offsets = Vec::with_capacity(numbers.len());
        for (i, number) in numbers.iter().enumerate() {
            let offset = u64::from_le_bytes(*number);
            let is_last = i + 1 == numbers.len();
            if offset < before
                || offset > ids_count
                || (i == 0 && offset != 0)
                || (is_last && offset != ids_count)
            {
                let at = HEADER + 8 * i;
                return Err(format!("the offset {offset} of source word {i} at byte {at} is out of order"));
            }
            before = offset;
            offsets.push(small(offset, HEADER + 8 * i)?);
        }
        if offsets.is_empty() {
            return Err("has no offsets at byte 48: a list for each source word is expected".into());
        }
        let (ids, _) = file[data..].as_chunks::<4>();
        let ids = ids.iter().map(|id| u32::from_le_bytes(*id)).collect();
        Ok(LexicalShortlist { first, best, offsets, ids })
    }

    /// Writes a file.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut file = Vec::with_capacity(HEADER + 8 * self.offsets.len() + 4 * self.ids.len());
        let sizes = [self.offsets.len(), self.ids.len()].map(|n| n as u64);
        let header = [MAGIC, 0, u64::from(self.first), u64::from(self.best), sizes[0], sizes[1]];
        let offsets = self.offsets.iter().map(|&offset| u64::from(offset));
        header.into_iter().chain(offsets).for_each(|number| file.extend(number.to_le_bytes()));
        self.ids.iter().for_each(|id| file.extend(id.to_le_bytes()));
        let checksum = checksum(&file);
        file[8..16].copy_from_slice(&checksum.to_le_bytes());
        to.write_all(&file)
    }

    /// The number of source words with lists.
    pub fn source_words(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The number of words at the start of the target vocabulary that are always allowed.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// The largest id in the lists, which must be in the target vocabulary.
    pub fn largest_id(&self) -> Option<u32> {
        self.ids.iter().copied().max()
    }

    /// The likely words of one source word, ascending; empty for a word that is not in the file.
    pub fn list(&self, source: u32) -> &[u32] {
        let at = source as usize;
        match self.offsets.get(at..at + 2) {
            Some(&[start, end]) => &self.ids[start as usize..end as usize],
            _ => &[],
        }
    }
}

/// Marian's hash of the 64-bit words after the checksum; ignores a trailing half word.
fn checksum(file: &[u8]) -> u64 {
    let (words, _) = file.get(UNCHECKED..).unwrap_or_default().as_chunks::<8>();
    words.iter().fold(0u64, |seed, word| {
        let shifted = (seed << 6).wrapping_add(seed >> 2);
        seed ^ u64::from_le_bytes(*word).wrapping_add(0x9e37_79b9).wrapping_add(shifted)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> LexicalShortlist {
        LexicalShortlist::new(2, 3, &[vec![], vec![9, 4], vec![4, 30, 12], vec![1]])
    }

    fn bytes(list: &LexicalShortlist) -> Vec<u8> {
        let mut file = Vec::new();
        list.write(&mut file).unwrap();
        file
    }

    #[test]
    fn what_is_written_is_read() {
        let list = example();
        let read = LexicalShortlist::read(&bytes(&list)).unwrap();
        assert_eq!(read, list);
        assert_eq!((read.source_words(), read.first(), read.largest_id()), (4, 2, Some(30)));
        assert_eq!((read.list(1), read.list(3), read.list(99)), (&[4, 9][..], &[1][..], &[][..]));
    }

    #[test]
    fn a_shortlist_of_ours_has_the_same_words() {
        let ours = example().shortlist((4, 20), false);
        let mut words = Vec::new();
        ours.words(&[1, 2], &mut words);
        assert_eq!(words, [0, 1, 4, 9, 12]);
        example().shortlist((4, 40), true).words(&[2, 3], &mut words);
        assert_eq!(words, [0, 1, 2, 3, 4, 12, 30]);
    }

    #[test]
    fn files_that_lie_are_refused() {
        let file = bytes(&example());
        let change = |at: usize, value: u64| {
            let mut file = file.clone();
            file[at..at + 8].copy_from_slice(&value.to_le_bytes());
            if at != 8 {
                let checksum = checksum(&file);
                file[8..16].copy_from_slice(&checksum.to_le_bytes());
            }
            LexicalShortlist::read(&file).unwrap_err()
        };
        assert!(change(0, 1).ends_with("bytes that are no lexical shortlist of Marian"));
        assert_eq!(change(8, 1), "is damaged: its checksum at byte 8 does not match");
        assert_eq!(change(16, 1 << 40), "the number 1099511627776 at byte 16 is no number of words");
        for count in [7, u64::MAX, 1 << 61] {
            for at in [32, 40] {
                assert!(
                    change(at, count).starts_with("says at byte 32 that it has"),
                    "{}",
                    change(at, count)
                );
            }
        }
        assert_eq!(change(48, 1), "the offset 1 of source word 0 at byte 48 is out of order");
        assert_eq!(change(64, 7), "the offset 7 of source word 2 at byte 64 is out of order");
        assert_eq!(change(80, 5), "the offset 5 of source word 4 at byte 80 is out of order");
        for length in 0..file.len() {
            assert!(LexicalShortlist::read(&file[..length]).is_err(), "{length} bytes");
        }
    }
}
