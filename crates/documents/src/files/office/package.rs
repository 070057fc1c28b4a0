//! The zip package of a document: reads its parts within size limits, and copies unchanged parts in
//! their compressed form.

use crate::files::{FileError, Format};
use std::collections::HashMap;
use std::io::{Cursor, Read, Write};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// The size in bytes to which the parts of any package may decompress…
const SMALL: u64 = 64 << 20;
/// … for larger packages, the maximum ratio to the compressed size …
const RATIO: u64 = 200;
/// … and the absolute maximum in bytes.
const LARGE: u64 = 1 << 30;
/// The maximum number of parts in a package.
const PARTS: usize = 100_000;

/// An open package. Parts are decompressed only when they are read.
#[derive(Debug)]
pub(super) struct Package {
    format: Format,
    bytes: Vec<u8>,
    /// The index of each part by name.
    parts: HashMap<String, usize>,
    /// The number of bytes that may still be decompressed.
    left: u64,
    limit: u64,
}

type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;

impl Package {
    pub(super) fn open(format: Format, bytes: &[u8]) -> Result<Self, FileError> {
        recognise(format, bytes)?;
        let damaged = |problem: String| FileError::Damaged { format, problem };
        let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged(format!("{error}")))?;
        if archive.len() > PARTS {
            return Err(damaged(format!("it has more than {PARTS} parts")));
        }
        if archive.has_duplicate_names() {
            return Err(damaged("it has two parts with the same name".to_owned()));
        }
        let mut parts = HashMap::new();
        for number in 0..archive.len() {
            let file = archive.by_index_raw(number).map_err(|error| damaged(format!("{error}")))?;
            let name = file.name().map_err(|error| damaged(format!("{error}")))?.into_owned();
            if !is_safe(&name) {
                let problem = "its name leads out of the package".to_owned();
                return Err(FileError::Part { format, part: name.escape_debug().to_string(), problem });
            }
            if file.encrypted() {
                return Err(FileError::Encrypted { format });
            }
            parts.insert(name, number);
        }
        let limit = (bytes.len() as u64).saturating_mul(RATIO).clamp(SMALL, LARGE);
        Ok(Package { format, bytes: bytes.to_vec(), parts, left: limit, limit })
    }

    /// The format of the document.
    pub(super) fn format(&self) -> Format {
        self.format
    }

    pub(super) fn has(&self, part: &str) -> bool {
        self.parts.contains_key(part)
    }

    /// Decompresses a part, which must exist.
    pub(super) fn read(&mut self, part: &str) -> Result<Vec<u8>, FileError> {
        let format = self.format;
        let problem = |problem: String| FileError::Part { format, part: part.to_owned(), problem };
        let Some(&number) = self.parts.get(part) else {
            return Err(problem("it is missing".to_owned()));
        };
        let mut archive = self.archive()?;
        let mut file = archive.by_index(number).map_err(|error| problem(explain(&error)))?;
        let mut content = Vec::new();
        let read = file.by_ref().take(self.left.saturating_add(1)).read_to_end(&mut content);
        read.map_err(|error| problem(format!("it cannot be decompressed: {error}")))?;
        drop(file);
        match self.left.checked_sub(content.len() as u64) {
            Some(left) => self.left = left,
            None => {
                let what = format!("{part}, decompressed together with the parts before it,");
                return Err(FileError::TooLarge { format, what, limit: self.limit });
            }
        }
        Ok(content)
    }

    fn archive(&self) -> Result<Archive<'_>, FileError> {
        ZipArchive::new(Cursor::new(self.bytes.as_slice()))
            .map_err(|error| FileError::Damaged { format: self.format, problem: format!("{error}") })
    }

    /// Writes the package with new contents for some of its parts.
    pub(super) fn write(&self, mut changed: HashMap<&str, Vec<u8>>) -> Result<Vec<u8>, FileError> {
        let problem = |error: ZipError| FileError::Damaged {
            format: self.format,
            problem: format!("it cannot be copied: {}", explain(&error)),
        };
        let mut archive = self.archive()?;
        let mut writer = ZipWriter::new(Cursor::new(Vec::with_capacity(self.bytes.len())));
        writer.set_raw_comment(archive.comment().into()).map_err(problem)?;
        // E-readers and office programs expect `mimetype` to be the first file.
        let first = archive.index_for_name("mimetype");
        let order = first.into_iter().chain((0..archive.len()).filter(|number| Some(*number) != first));
        for number in order {
            let file = archive.by_index_raw(number).map_err(problem)?;
            let name = file.name().map_err(problem)?.into_owned();
            match changed.remove(name.as_str()) {
                None => writer.raw_copy_file(file).map_err(problem)?,
                Some(content) => {
                    let mut options = SimpleFileOptions::default()
                        .compression_method(CompressionMethod::Deflated)
                        .large_file(u32::try_from(content.len()).is_err());
                    if let Some(time) = file.last_modified() {
                        options = options.last_modified_time(time);
                    }
                    drop(file);
                    writer.start_file(name, options).map_err(problem)?;
                    writer.write_all(&content).map_err(|error| problem(error.into()))?;
                }
            }
        }
        Ok(writer.finish().map_err(problem)?.into_inner())
    }
}

fn explain(error: &ZipError) -> String {
    match error {
        ZipError::CompressionMethodNotSupported(_) => {
            "it uses a compression method that is not supported in documents".to_owned()
        }
        error => error.to_string(),
    }
}

/// Whether the name of a part stays inside the package.
pub(super) fn is_safe(name: &str) -> bool {
    !name.starts_with('/') && !name.contains(['\\', '\0', ':']) && name.split('/').all(|step| step != "..")
}

/// Rejects files that are not zip packages, with advice where possible.
fn recognise(format: Format, bytes: &[u8]) -> Result<(), FileError> {
    const OLE: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
    let other = |found: &str| Err(FileError::OtherFormat { format, found: found.to_owned() });
    if bytes.starts_with(OLE) {
        let has = |name: &str| {
            let wide: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
            bytes.windows(wide.len()).any(|window| window == wide)
        };
        return match () {
            () if has("EncryptedPackage") => Err(FileError::Encrypted { format }),
            () if has("WordDocument") => other("it is a Word 97-2003 document (doc); save it as docx"),
            () if has("PowerPoint Document") => {
                other("it is a PowerPoint 97-2003 presentation (ppt); save it as pptx")
            }
            () if has("Workbook") || has("Book") => {
                other("it is an Excel 97-2003 workbook (xls); save it as xlsx")
            }
            () => other("it is a file of an old office program; save it in the new format"),
        };
    }
    match bytes {
        [] => Err(FileError::Damaged { format, problem: "it is empty".to_owned() }),
        [b'P', b'K', ..] => Ok(()),
        _ if bytes.starts_with(b"{\\rtf") => other("it is an RTF document; save it in the new format"),
        _ if bytes.starts_with(b"%PDF") => other("it is a PDF document, which cannot be translated"),
        _ => other("it is no zip package"),
    }
}
