//! Atomic file replacement: write a temporary file, sync, rename.

use crate::{Error, Result};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes `path` with `write`. A kill or a full disk at any moment leaves the old file, or none if
/// there was none.
pub fn replace(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let written = (|| {
        let mut file = BufWriter::with_capacity(1 << 18, File::create(&beside)?);
        write(&mut file)?;
        file.flush()?;
        file.get_ref().sync_all()?;
        drop(file);
        fs::rename(&beside, path)?;
        sync_folder(path)
    })();
    written.map_err(|e| {
        let _ = fs::remove_file(&beside);
        Error::io(path, e)
    })
}

/// Makes the rename durable. Only Unix can open a folder for that.
fn sync_folder(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        replace(&path, |to| to.write_all(b"old")).unwrap();
        let full = replace(&path, |to| {
            to.write_all(b"new")?;
            Err(io::Error::new(io::ErrorKind::StorageFull, "the disk is full"))
        });
        assert_eq!(full.unwrap_err().to_string(), format!("{}: the disk is full", path.display()));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        replace(&path, |to| to.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = replace(Path::new("no/such/folder/file"), |_| Ok(())).unwrap_err().to_string();
        assert!(error.starts_with("no/such/folder/file: "), "{error}");
    }
}
