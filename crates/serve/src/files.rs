//! Detects changes to files while the server runs.

use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;

/// The modification time, length and inode number of a file, at least one of which changes with the
/// file; `None` if there is no file.
pub(crate) type Stamp = Option<(SystemTime, u64, u64)>;

/// The current stamp of a file.
pub(crate) fn stamp(path: &Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len(), number(&metadata)))
}

#[cfg(unix)]
fn number(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn number(_: &Metadata) -> u64 {
    0
}
