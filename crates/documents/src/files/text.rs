//! Plain text; every line is translated separately.

use super::{FileDocument, FileError, FileOptions, Format, Unit, WriteFile};

const BYTE_ORDER_MARK: &str = "\u{feff}";

#[derive(Debug)]
struct TextFile {
    byte_order_mark: bool,
}

pub(super) fn open(format: Format, bytes: &[u8], options: &FileOptions) -> Result<FileDocument, FileError> {
    let (byte_order_mark, text) = marked(format, bytes)?;
    let language = options.source_language.as_deref();
    let units = text.split_inclusive('\n').map(|line| Unit::plain_in(line, language)).collect();
    Ok(FileDocument::new(units, TextFile { byte_order_mark }))
}

/// Whether a text begins with a byte order mark, and the text after it.
fn marked(format: Format, bytes: &[u8]) -> Result<(bool, &str), FileError> {
    let text = utf8(format, bytes)?;
    Ok(text.strip_prefix(BYTE_ORDER_MARK).map_or((false, text), |rest| (true, rest)))
}

impl WriteFile for TextFile {
    fn write(&self, texts: Vec<String>) -> Result<Vec<u8>, FileError> {
        let mark = if self.byte_order_mark { BYTE_ORDER_MARK } else { "" };
        Ok((mark.to_owned() + &texts.concat()).into_bytes())
    }
}

/// The bytes as UTF-8 text, or an error with the line that is not UTF-8.
pub(super) fn utf8(format: Format, bytes: &[u8]) -> Result<&str, FileError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        FileError::Line { format, line, problem: "this is not UTF-8; save the file as UTF-8".to_owned() }
    })
}
