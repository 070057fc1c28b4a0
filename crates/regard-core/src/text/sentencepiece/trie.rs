//! Pieces by their bytes: one walk finds all pieces that begin at a position of the text.

/// A trie of bytes. The children of a node are contiguous and sorted.
#[derive(Debug)]
pub(super) struct Trie {
    /// The byte that leads to a node; the root is node 0.
    bytes: Vec<u8>,
    /// The first child of each node; the children end where those of the next node begin.
    children: Vec<u32>,
    /// The value of each node, or [`NONE`].
    values: Vec<u32>,
}

/// No value.
const NONE: u32 = u32::MAX;

impl Trie {
    pub(super) const ROOT: u32 = 0;

    /// Builds the trie from keys and values, which must be below `u32::MAX`. Returns a duplicate
    /// key as error.
    pub(super) fn build(mut keys: Vec<(&str, u32)>) -> Result<Self, &str> {
        keys.sort_unstable();
        if let Some(twice) = keys.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(twice[0].0);
        }
        let mut trie = Trie { bytes: vec![0], children: Vec::new(), values: Vec::new() };
        // The keys below each node and its depth in bytes, level by level.
        let mut nodes = vec![(0..keys.len() as u32, 0u32)];
        while let Some((below, depth)) = nodes.get(trie.values.len()).cloned() {
            let mut rest = &keys[below.start as usize..below.end as usize];
            let mut at = below.start;
            match rest.split_first() {
                // A key sorts before its extensions.
                Some(((key, value), others)) if key.len() == depth as usize => {
                    trie.values.push(*value);
                    rest = others;
                    at += 1;
                }
                _ => trie.values.push(NONE),
            }
            trie.children.push(nodes.len() as u32);
            while let Some((key, _)) = rest.first() {
                let byte = key.as_bytes()[depth as usize];
                let same = rest.partition_point(|(key, _)| key.as_bytes()[depth as usize] == byte);
                nodes.push((at..at + same as u32, depth + 1));
                trie.bytes.push(byte);
                rest = &rest[same..];
                at += same as u32;
            }
        }
        trie.children.push(nodes.len() as u32);
        Ok(trie)
    }

    /// The node that a byte leads to.
    pub(super) fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let (first, end) = (self.children[node as usize], self.children[node as usize + 1]);
        let found = self.bytes[first as usize..end as usize].binary_search(&byte).ok()?;
        Some(first + found as u32)
    }

    /// The value of a node.
    pub(super) fn value(&self, node: u32) -> Option<u32> {
        Some(self.values[node as usize]).filter(|&value| value != NONE)
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<u32> {
        self.value(key.bytes().try_fold(Self::ROOT, |node, byte| self.child(node, byte))?)
    }

    /// The length of the longest key that is a prefix of `text`.
    pub(super) fn longest(&self, text: &[u8]) -> Option<usize> {
        let (mut node, mut longest) = (Self::ROOT, None);
        for (i, &byte) in text.iter().enumerate() {
            let Some(child) = self.child(node, byte) else { break };
            node = child;
            longest = self.value(node).map(|_| i + 1).or(longest);
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_and_nothing_else() {
        let keys = ["b", "a", "abc", "ab", "bca", "é", "ê", "▁", "▁a"];
        let trie = Trie::build(keys.into_iter().zip(0..).collect()).unwrap();
        for (key, value) in keys.into_iter().zip(0..) {
            assert_eq!(trie.get(key), Some(value), "{key}");
        }
        for other in ["", "c", "bc", "abcd", "e", "▁b"] {
            assert_eq!(trie.get(other), None, "{other}");
        }
        assert_eq!(trie.longest(b"abcd"), Some(3));
        assert_eq!(trie.longest(b"bcd"), Some(1));
        assert_eq!(trie.longest(b"\xc3\xaax"), Some(2));
        assert_eq!(trie.longest(b"\xc3x"), None);
        assert_eq!(trie.longest(b""), None);
    }

    #[test]
    fn no_key_is_there_twice() {
        assert_eq!(Trie::build(vec![("a", 0), ("b", 1), ("a", 2)]).unwrap_err(), "a");
        let empty = Trie::build(Vec::new()).unwrap();
        assert_eq!((empty.get("a"), empty.longest(b"a")), (None, None));
    }
}
