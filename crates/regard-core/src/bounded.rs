//! Reads whole files, but only regular ones of bounded size.

use crate::{Error, Result};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// The size limit for text files of tokenizers and vocabularies: those of published models have a
/// few dozen megabytes.
pub const MAX_TEXT_BYTES: u64 = 512 << 20;

/// Rejects anything but a regular file, without opening it: opening a named pipe waits for a
/// writer, and a device may never end.
pub fn check_regular(path: &Path) -> Result<()> {
    let metadata = fs::metadata(path).map_err(|e| Error::io(path, e))?;
    let kind = metadata.file_type();
    if kind.is_dir() {
        return Err(Error::file(path, "is a folder; a regular file is expected"));
    }
    if !kind.is_file() {
        return Err(Error::file(path, "is a pipe, a socket or a device; a regular file is expected"));
    }
    Ok(())
}

/// Reads a regular file of at most `most` bytes.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    check_regular(path)?;
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let mut bytes = Vec::new();
    // The file may grow while it is read, so checking its length does not bound the read.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(|e| Error::io(path, e))?;
    if bytes.len() as u64 > most {
        return Err(Error::file(
            path,
            format!("is larger than {most} bytes, the most that is read of such a file"),
        ));
    }
    Ok(bytes)
}

/// The same as text.
pub fn read_text(path: &Path, most: u64) -> Result<String> {
    String::from_utf8(read(path, most)?).map_err(|_| Error::file(path, "is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_a_bounded_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "eight by").unwrap();
        assert_eq!(read(&path, 8).unwrap(), b"eight by");
        let message = |path: &Path, most| read(path, most).unwrap_err().to_string();
        assert!(message(&path, 7).contains("is larger than 7 bytes"), "{}", message(&path, 7));
        assert!(message(folder.path(), 8).ends_with("is a folder; a regular file is expected"));
        assert!(message(&folder.path().join("none"), 8).contains("none: "));
        fs::write(&path, b"\xff").unwrap();
        assert!(read_text(&path, 8).unwrap_err().to_string().ends_with("is not UTF-8 text"));
        if cfg!(unix) {
            // It has neither an end nor a length.
            assert!(message(Path::new("/dev/zero"), 8).contains("a regular file is expected"));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_named_pipe_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        if !made.is_ok_and(|status| status.success()) {
            eprintln!("skipped: there is no mkfifo");
            return;
        }
        assert!(read(&path, 8).unwrap_err().to_string().contains("is a pipe"));
    }
}
