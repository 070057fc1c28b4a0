//! SentencePiece models of any bytes: they are refused, or segment text of every kind without
//! losing any of it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use regard_core::text::SentencePiece;
use std::path::Path;

const TEXT: &str = " kan  kou ﬁ e\u{301} ▁\t\u{200b}山 <sep>\u{0}\u{10ffff}👩\u{200d}👧 babanban. ";

fuzz_target!(|file: &[u8]| {
    if let Ok(model) = SentencePiece::read(file, Path::new("x.spm")) {
        // Bytes as text, too, so that a file can meet its own pieces.
        for text in [TEXT, &String::from_utf8_lossy(&file[..file.len().min(300)])] {
            let pieces = model.encode(text);
            assert!(pieces.iter().all(|piece| !piece.is_empty()));
            model.decode(pieces.iter().map(String::as_str));
        }
    }
});
