//! Character encodings of text files, and line numbers for error messages.

use super::{FileError, Format};

/// The character encoding of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// UTF-8, with or without a byte order mark.
    Utf8 { mark: bool },
    /// UTF-16 with a byte order mark.
    Utf16 { big_endian: bool },
    /// ISO 8859-1.
    Latin1,
}

impl Encoding {
    /// Encodes a text. Characters that the encoding lacks become question marks; formats that can
    /// escape them do so first.
    pub(super) fn encode(self, text: &str) -> Vec<u8> {
        match self {
            Encoding::Utf8 { mark: false } => text.as_bytes().to_vec(),
            Encoding::Utf8 { mark: true } => ["\u{feff}", text].concat().into_bytes(),
            Encoding::Utf16 { big_endian } => {
                let units = "\u{feff}".encode_utf16().chain(text.encode_utf16());
                units
                    .flat_map(|unit| if big_endian { unit.to_be_bytes() } else { unit.to_le_bytes() })
                    .collect()
            }
            Encoding::Latin1 => text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect(),
        }
    }
}

/// Decodes a file in UTF-8, or in UTF-16 with a byte order mark. The text does not include the
/// mark.
pub(super) fn decode(format: Format, bytes: &[u8]) -> Result<(String, Encoding), FileError> {
    if let Some(rest) = bytes.strip_prefix(b"\xff\xfe") {
        return utf16(format, rest, false);
    }
    if let Some(rest) = bytes.strip_prefix(b"\xfe\xff") {
        return utf16(format, rest, true);
    }
    let (rest, mark) = bytes.strip_prefix(b"\xef\xbb\xbf").map_or((bytes, false), |rest| (rest, true));
    match std::str::from_utf8(rest) {
        Ok(text) => Ok((text.to_owned(), Encoding::Utf8 { mark })),
        Err(error) => {
            let before = String::from_utf8_lossy(&rest[..error.valid_up_to()]);
            let problem = "this is not UTF-8; save the file as UTF-8";
            Err(at(format, &before, before.len(), problem))
        }
    }
}

fn utf16(format: Format, bytes: &[u8], big_endian: bool) -> Result<(String, Encoding), FileError> {
    let units = bytes.chunks(2).map(|pair| match *pair {
        [a, b] if big_endian => u16::from_be_bytes([a, b]),
        [a, b] => u16::from_le_bytes([a, b]),
        // An odd trailing byte becomes a lone surrogate, which decoding rejects.
        _ => 0xd800,
    });
    let mut text = String::new();
    for c in char::decode_utf16(units) {
        match c {
            Ok(c) => text.push(c),
            Err(_) => {
                return Err(at(format, &text, text.len(), "this is not UTF-16, despite its byte order mark"));
            }
        }
    }
    Ok((text, Encoding::Utf16 { big_endian }))
}

/// An error at a byte offset of a text.
pub(super) fn at(format: Format, text: &str, byte: usize, problem: impl Into<String>) -> FileError {
    FileError::Line { format, line: line_of(text, byte), problem: problem.into() }
}

/// The line that contains a byte offset, counted from 1.
pub(super) fn line_of(text: &str, byte: usize) -> usize {
    1 + text.as_bytes()[..byte.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}
