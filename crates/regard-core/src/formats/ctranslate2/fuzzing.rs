//! Runs the readers of CTranslate2's and Argos' files on arbitrary bytes; a panic is a bug.

use super::file::contents;
use super::files::{top_folder, unpack_member};
use crate::formats::compressed::max_unpacked;

/// A `model.bin`: every variable lies in the file, with as many bytes as its shape needs.
pub(crate) fn model(file: &[u8]) {
    let Ok(contents) = contents(file) else { return };
    for (name, variable) in &contents.variables {
        let numbers: usize = variable.shape.iter().product();
        assert_eq!(file[variable.range.clone()].len(), numbers * variable.dtype.bytes(), "{name}");
    }
}

/// A package: nothing unpacks to more than the limit.
pub(crate) fn package(file: &[u8]) {
    let Ok(top) = top_folder(file) else { return };
    assert!(!top.contains(['/', '\\']) && top != "..");
    for name in ["metadata.json", "model/model.bin", "sentencepiece.model"] {
        if let Ok(Some(bytes)) = unpack_member(file, &format!("{top}/{name}")) {
            assert!(bytes.len() as u64 <= max_unpacked(file.len()).max(file.len() as u64));
        }
    }
}
