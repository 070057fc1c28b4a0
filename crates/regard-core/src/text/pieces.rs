//! A vocabulary's pieces by id and by text, in little memory.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

/// Pieces by id and by text. All texts are in one string: 256,000 pieces take 8 MB here, and 40 MB
/// as a map and a list with a string for each.
#[derive(Clone, Debug)]
pub struct Pieces {
    text: String,
    /// Where the text of each id ends; that of the next begins there.
    ends: Vec<u32>,
    /// A hash table with open addressing: the id of a piece is in the slot that its text is hashed
    /// to, or in one after it. The number of slots is a power of two, of which at most two thirds
    /// are used.
    slots: Vec<u32>,
    hasher: RandomState,
}

/// A slot without an id.
const EMPTY: u32 = u32::MAX;

impl Pieces {
    /// The number of ids.
    #[expect(clippy::len_without_is_empty, reason = "no vocabulary is empty")]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The piece of an id.
    pub fn get(&self, id: u32) -> Option<&str> {
        self.ends.get(id as usize)?;
        Some(&self.text[self.range(id)]).filter(|piece| !piece.is_empty())
    }

    /// The id of a piece; of several, the last.
    pub fn id(&self, piece: &str) -> Option<u32> {
        Some(self.slots[self.slot(piece)]).filter(|&id| id != EMPTY)
    }

    /// The pieces of all ids, with `""` for an id without a piece.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).map(|id| &self.text[self.range(id)])
    }

    /// The pieces and the ids by which they are found.
    fn found(&self) -> impl Iterator<Item = (&str, u32)> {
        self.iter().zip(0..).filter(|&(piece, id)| self.id(piece) == Some(id))
    }

    fn range(&self, id: u32) -> Range<usize> {
        let start = (id as usize).checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[id as usize] as usize
    }

    /// The slot of a piece, or the empty one where it would be.
    fn slot(&self, piece: &str) -> usize {
        let last = self.slots.len() - 1;
        let mut at = self.hasher.hash_one(piece) as usize & last;
        while self.slots[at] != EMPTY && self.get(self.slots[at]) != Some(piece) {
            at = (at + 1) & last;
        }
        at
    }
}

/// The pieces of the ids 0, 1, …; `""` for an id without a piece.
///
/// # Panics
/// If the texts have 4 GiB together; files are limited to much less.
impl<S: AsRef<str>> FromIterator<S> for Pieces {
    fn from_iter<I: IntoIterator<Item = S>>(pieces: I) -> Self {
        let (mut text, mut ends) = (String::new(), Vec::new());
        for piece in pieces {
            text.push_str(piece.as_ref());
            ends.push(u32::try_from(text.len()).expect("less than 4 GiB of pieces"));
        }
        text.shrink_to_fit();
        ends.shrink_to_fit();
        let slots = vec![EMPTY; (ends.len() * 3 / 2 + 1).next_power_of_two()];
        let mut pieces = Pieces { text, ends, slots, hasher: RandomState::new() };
        for id in 0..pieces.len() as u32 {
            if let Some(piece) = pieces.get(id) {
                let slot = pieces.slot(piece);
                pieces.slots[slot] = id;
            }
        }
        pieces
    }
}

/// Whether the same texts have the same ids.
impl PartialEq for Pieces {
    fn eq(&self, other: &Self) -> bool {
        self.found().eq(other.found())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_found_by_id_and_by_text() {
        let list = ["</s>", "▁a", "", "b", "▁a", "ab"];
        let pieces: Pieces = list.into_iter().collect();
        assert_eq!(pieces.len(), 6);
        assert!(pieces.iter().eq(list));
        assert_eq!([0, 2, 5, 6].map(|id| pieces.get(id)), [Some("</s>"), None, Some("ab"), None]);
        let ids = ["</s>", "▁a", "", "b", "ab", "a", "bab"].map(|piece| pieces.id(piece));
        assert_eq!(ids, [Some(0), Some(4), None, Some(3), Some(5), None, None]);
        assert_eq!(pieces, list.map(str::to_owned).iter().collect());
        assert_eq!(pieces, ["</s>", "", "", "b", "▁a", "ab"].iter().collect());
        assert_ne!(pieces, list[1..].iter().collect());
        let none: Pieces = [""; 0].into_iter().collect();
        assert_eq!((none.len(), none.get(0), none.id("a")), (0, None, None));
    }

    #[test]
    fn many_pieces_are_found() {
        let pieces: Pieces = (0..10_000).map(|id| format!("piece {id}")).collect();
        assert!((0..10_000).all(|id| pieces.id(&format!("piece {id}")) == Some(id)));
        assert_eq!(pieces.id("piece 10000"), None);
    }
}
