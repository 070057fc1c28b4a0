//! Runs the readers of Marian's files on arbitrary bytes; a panic is a bug.

use super::items::{self, data_bytes, elements};
use super::{LexicalShortlist, MarianOptions, MarianVocabulary};
use crate::formats::compressed::max_unpacked;

/// A `.bin` or `.npz` file: every item lies in the file or in the inflated data, with as many bytes
/// as its shape needs.
pub(crate) fn model(file: &[u8]) {
    let most = max_unpacked(file.len());
    let Ok(parsed) = items::parse(file, most) else { return };
    assert!(parsed.inflated.len() as u64 <= most);
    for entry in &parsed.entries {
        let bytes = if entry.inflated { &parsed.inflated } else { file };
        let data = &bytes[entry.range.clone()];
        let needed = elements(&entry.shape).and_then(|n| data_bytes(entry.dtype, n));
        assert_eq!(needed, Some(data.len()), "{}", entry.name);
    }
}

/// A `lex*.bin` file; looks up various words.
pub(crate) fn shortlist(file: &[u8]) {
    let Ok(list) = LexicalShortlist::read(file) else { return };
    let mut words = Vec::new();
    for joint in [false, true] {
        let ours = list.clone().shortlist((list.source_words(), 100), joint);
        ours.words(&[0, 1, 2, 7, u32::MAX], &mut words);
        assert!(words.is_sorted_by(|a, b| a < b) && words.iter().all(|&word| word < 100));
    }
    let mut written = Vec::new();
    list.write(&mut written).expect("memory can be written");
    assert_eq!(LexicalShortlist::read(&written).as_ref(), Ok(&list));
}

/// Arbitrary text as options and as a vocabulary.
pub(crate) fn yaml(file: &[u8]) {
    let Ok(text) = std::str::from_utf8(file) else { return };
    let _ = MarianOptions::parse(text);
    let _ = MarianVocabulary::from_lines(text);
    if let Ok(vocabulary) = MarianVocabulary::from_yaml(text) {
        assert!((vocabulary.eos().max(vocabulary.unk()) as usize) < vocabulary.size().max(2));
        let id = vocabulary.id("▁a");
        assert!(id == vocabulary.unk() || vocabulary.piece(id) == Some("▁a"));
    }
}
