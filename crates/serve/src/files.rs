//! Files that may change while the server runs.

use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;

/// What a file was when it was looked at: its time, its length and its number. A changed one
/// differs in some of it. Nothing where there is no file.
pub(crate) type Stamp = Option<(SystemTime, u64, u64)>;

/// What a file is now.
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
