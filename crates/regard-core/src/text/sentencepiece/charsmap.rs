//! The compiled rules of a normaliser: which character sequences are replaced by which.
//!
//! The bytes are the length of a double-array trie in bytes, the trie, and all replacements, each
//! ended by a zero byte. The trie has the units of the library `darts-clone`; a leaf holds the
//! offset of its replacement.

use std::collections::{BTreeMap, HashMap};

use super::double_array;
use super::proto::Problem;

/// The rules, ready for lookup.
#[derive(Debug)]
pub(super) struct CharsMap {
    units: Vec<u32>,
    replacements: String,
}

/// A unit with this bit is a leaf; the remaining bits are the value.
const LEAF: u32 = 1 << 31;
/// The maximum length of a replacement in bytes: a much longer one than in real models would only
/// fill memory.
const MAX_REPLACEMENT: usize = 4096;

impl CharsMap {
    /// Reads the bytes of a non-empty `precompiled_charsmap`.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Problem> {
        let Some((length, rest)) = bytes.split_first_chunk() else {
            return Err("precompiled_charsmap is shorter than 4 bytes".into());
        };
        let length = u32::from_le_bytes(*length) as usize;
        let Some((trie, replacements)) =
            rest.split_at_checked(length).filter(|_| length > 0 && length.is_multiple_of(4))
        else {
            return Err(format!(
                "precompiled_charsmap says that its trie has {length} bytes; accepted are 4 to {} in steps of 4",
                rest.len()
            ));
        };
        let units: Vec<u32> = trie.as_chunks().0.iter().map(|unit| u32::from_le_bytes(*unit)).collect();
        let replacements = str::from_utf8(replacements)
            .map_err(|_| "precompiled_charsmap has replacements that are not UTF-8")?
            .to_owned();
        if let Some(long) = replacements.split('\0').find(|text| text.len() > MAX_REPLACEMENT) {
            let length = long.len();
            return Err(format!(
                "precompiled_charsmap has a replacement of {length} bytes; {MAX_REPLACEMENT} are allowed"
            ));
        }
        let ended = replacements.ends_with('\0');
        let inside =
            |place: u32| ended && replacements.get(place as usize..).is_some_and(|text| !text.is_empty());
        if let Some(leaf) = units.iter().find(|&&unit| unit & LEAF != 0 && !inside(unit & !LEAF)) {
            let (place, all) = (leaf & !LEAF, replacements.len());
            return Err(format!("precompiled_charsmap has a rule with replacement {place} of {all} bytes"));
        }
        Ok(CharsMap { units, replacements })
    }

    /// The longest rule that matches the start of `text`: the number of bytes to replace, and the
    /// replacement.
    pub(super) fn longest(&self, text: &[u8]) -> Option<(usize, &str)> {
        let mut found = None;
        let mut at = offset(*self.units.first()?);
        for (i, &byte) in text.iter().enumerate() {
            at ^= usize::from(byte);
            let Some(&unit) = self.units.get(at) else { break };
            if unit & (LEAF | 0xff) != u32::from(byte) {
                break;
            }
            at ^= offset(unit);
            if unit & (1 << 8) != 0 {
                let leaf = self.units.get(at).copied().unwrap_or_default();
                found = Some((i + 1, leaf & !LEAF));
            }
        }
        let (length, place) = found?;
        let replacement = self.replacements.get(place as usize..)?;
        Some((length, replacement.split('\0').next().unwrap_or_default()))
    }
}

/// The bytes of a `precompiled_charsmap` with these rules, all with non-empty keys; `None` if there
/// are too many of them, or one contains a zero byte.
pub(in crate::text) fn compile(rules: &BTreeMap<String, String>) -> Option<Vec<u8>> {
    let mut places: HashMap<&str, u32> = HashMap::new();
    let mut replacements = Vec::new();
    for replacement in rules.values() {
        if replacement.contains('\0') {
            return None;
        }
        if !places.contains_key(replacement.as_str()) {
            places.insert(replacement, u32::try_from(replacements.len()).ok()?);
            replacements.extend(replacement.bytes().chain([0]));
        }
    }
    let units = double_array::build(rules.iter().map(|(key, to)| (key.as_str(), places[to.as_str()])))?;
    let mut bytes = u32::try_from(4 * units.len()).ok()?.to_le_bytes().to_vec();
    units.iter().for_each(|unit| bytes.extend(unit.to_le_bytes()));
    bytes.extend(replacements);
    Some(bytes)
}

/// The offset of a unit's children, to be XORed with the unit's index and the child's byte.
fn offset(unit: u32) -> usize {
    ((unit >> 10) as usize) << ((unit & (1 << 9)) >> 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trie of the one rule "a" → "b": root, the unit of `a` at 0x61 ^ 1, its leaf next to it.
    fn one_rule(replacements: &[u8]) -> Vec<u8> {
        let mut units = [0u32; 256];
        units[0] = 1 << 10;
        let at = 1 ^ usize::from(b'a');
        let leaf = at ^ 2;
        units[at] = (2 << 10) | (1 << 8) | u32::from(b'a');
        units[leaf] = LEAF;
        let mut bytes = 1024u32.to_le_bytes().to_vec();
        units.iter().for_each(|unit| bytes.extend(unit.to_le_bytes()));
        bytes.extend(replacements);
        bytes
    }

    #[test]
    fn a_rule_is_found() {
        let map = CharsMap::read(&one_rule(b"b\0")).unwrap();
        assert_eq!(map.longest(b"ab"), Some((1, "b")));
        assert_eq!(map.longest(b"b"), None);
        assert_eq!(map.longest(b"\0"), None);
        assert_eq!(map.longest(b""), None);
    }

    /// Many keys, including prefixes of each other and keys that end in every possible UTF-8 byte.
    #[test]
    fn compiled_rules_are_found() {
        let mut rules = BTreeMap::new();
        for key in ["a", "ab", "abcd", "b", "é", "e\u{301}", "\u{10ffff}", "\x01", "\x7f"] {
            rules.insert(key.to_owned(), format!("<{key}>"));
        }
        for (i, c) in ('\u{4e00}'..'\u{6e00}').enumerate() {
            rules.insert(format!("{c}"), format!("{}", i % 100));
            rules.insert(format!("가{c}"), "two".to_owned());
        }
        rules.insert("gone".to_owned(), String::new());
        let map = CharsMap::read(&compile(&rules).unwrap()).unwrap();
        for (key, to) in &rules {
            assert_eq!(map.longest(key.as_bytes()), Some((key.len(), to.as_str())), "{key:?}");
            assert_eq!(map.longest(format!("{key}\0").as_bytes()), Some((key.len(), to.as_str())));
        }
        assert_eq!(map.longest("abce".as_bytes()), Some((2, "<ab>")));
        for text in ["", "\0", "\0a", "e", "ea", "가", "가a", "c", "gon", "\u{6e00}", "\u{10fffe}"] {
            assert_eq!(map.longest(text.as_bytes()), None, "{text:?}");
        }
        for c in ('\u{1}'..=char::MAX).filter(|c| !rules.contains_key(&c.to_string())) {
            assert_eq!(map.longest(c.to_string().as_bytes()), None, "U+{:04X}", c as u32);
        }
    }

    #[test]
    fn rules_that_cannot_be_compiled_are_none() {
        let rules = |key: &str, to: &str| BTreeMap::from([(key.to_owned(), to.to_owned())]);
        for (key, to) in [("", "a"), ("a\0", "b"), ("a", "b\0c")] {
            assert_eq!(compile(&rules(key, to)), None, "{key:?} {to:?}");
        }
    }

    #[test]
    fn broken_rules_are_refused() {
        for (bytes, want) in [
            (b"abc".to_vec(), "precompiled_charsmap is shorter than 4 bytes"),
            (
                vec![8, 0, 0, 0, 1, 2, 3, 4],
                "precompiled_charsmap says that its trie has 8 bytes; accepted are 4 to 4",
            ),
            (vec![3, 0, 0, 0, 1, 2, 3, 4], "precompiled_charsmap says that its trie has 3 bytes"),
            (vec![0; 8], "precompiled_charsmap says that its trie has 0 bytes"),
            (one_rule(b"\xff\0"), "precompiled_charsmap has replacements that are not UTF-8"),
            (one_rule(b"b"), "precompiled_charsmap has a rule with replacement 0 of 1 bytes"),
            (one_rule(b""), "precompiled_charsmap has a rule with replacement 0 of 0 bytes"),
            (
                one_rule(&[b'b'; 5000]),
                "precompiled_charsmap has a replacement of 5000 bytes; 4096 are allowed",
            ),
        ] {
            let problem = CharsMap::read(&bytes).unwrap_err();
            assert!(problem.starts_with(want), "{problem}");
        }
    }
}
