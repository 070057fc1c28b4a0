//! The folder of a run.

use regard_core::{Error, Result};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

/// The output folder, locked as long as this value lives.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) out: PathBuf,
    pub(crate) checkpoints: PathBuf,
    pub(crate) logs: PathBuf,
    pub(crate) cache: PathBuf,
    _lock: File,
}

/// Whether `out` is the folder of a training run.
pub fn has_run(out: &Path) -> bool {
    config_file(out).exists()
}

pub(crate) fn config_file(out: &Path) -> PathBuf {
    out.join("logs").join("config.toml")
}

impl Folder {
    /// Creates the folder, or opens that of a run to resume; rejects a folder that holds anything
    /// else.
    pub(crate) fn open(out: &Path, resume: bool) -> Result<Self> {
        if !resume && has_run(out) {
            let message = "already holds a training run: resume it, or choose another folder";
            return Err(Error::file(out, message));
        }
        if !has_run(out)
            && let Some(other) = foreign_entry(out)?
        {
            let message = format!("is not empty ({other}): a run needs a new or an empty folder");
            return Err(Error::file(out, message));
        }
        let [checkpoints, logs, cache] = ["checkpoints", "logs", "cache"].map(|name| out.join(name));
        for folder in [&checkpoints, &logs, &cache] {
            fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        }
        let path = cache.join("lock");
        let lock = File::options().write(true).create(true).truncate(false).open(&path);
        let lock = lock.map_err(|e| Error::io(&path, e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::file(out, "another process is training here; wait for it or end it"));
            }
            // Some network file systems have no locks.
            Err(TryLockError::Error(_)) => {}
        }
        remove_leftovers(out, is_of_a_process);
        for folder in [&checkpoints, &logs, &cache] {
            remove_leftovers(folder, |_| true);
        }
        Ok(Folder { out: out.to_owned(), checkpoints, logs, cache, _lock: lock })
    }
}

/// Removes temporary files of a run that was killed. They cannot belong to another process, because
/// the folder is locked.
fn remove_leftovers(folder: &Path, is_ours: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_ours = name.strip_suffix(".part").is_some_and(&is_ours);
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            // A file that cannot be removed does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether a name ends with a process id: there may be other files beside the model.
fn is_of_a_process(name: &str) -> bool {
    let (_, number) = name.rsplit_once('.').unwrap_or_default();
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

/// An entry of the folder that an earlier start of a run has not created; the cache and the run's
/// own folders, while empty, are allowed.
fn foreign_entry(out: &Path) -> Result<Option<String>> {
    let entries = match fs::read_dir(out) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io(out, e)),
    };
    for entry in entries {
        let entry = entry.map_err(|e| Error::io(out, e))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let empty = || {
            fs::read_dir(entry.path()).is_ok_and(|inside| {
                let leftover = |name: &str| name.ends_with(".part");
                inside.flatten().all(|e| leftover(&e.file_name().to_string_lossy()))
            })
        };
        let ours = name == "cache" || (["logs", "checkpoints"].contains(&name.as_str()) && empty());
        if !ours {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_unfinished_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path();
        drop(Folder::open(out, false).unwrap());
        fs::write(config_file(out), "").unwrap();
        let stale = [
            "model.safetensors.4711.part",
            "README.md.4711.part",
            "cache/train.ids.4711.lines.part",
            "checkpoints/state-00000002.ckpt.part",
            "logs/report.html.part",
        ];
        let kept =
            ["model.safetensors", "notes.part", "v1.5-notes.txt.part", "checkpoints/state-00000002.ckpt"];
        for name in stale.iter().chain(&kept) {
            fs::write(out.join(name), "x").unwrap();
        }
        let held = Folder::open(out, true).unwrap();
        assert!(stale.iter().all(|name| !out.join(name).exists()));
        assert!(kept.iter().all(|name| out.join(name).exists()));
        // Nothing is removed while another process holds the folder.
        fs::write(out.join(stale[0]), "x").unwrap();
        assert!(Folder::open(out, true).is_err() && out.join(stale[0]).exists());
        drop(held);
    }

    #[test]
    fn a_folder_with_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.txt"), "x").unwrap();
        let error = Folder::open(folder.path(), false).unwrap_err().to_string();
        assert!(
            error.ends_with("is not empty (thesis.txt): a run needs a new or an empty folder"),
            "{error}"
        );
        assert!(Folder::open(folder.path(), true).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

        let folder = tempfile::tempdir().unwrap();
        let held = Folder::open(folder.path(), false).unwrap();
        let error = Folder::open(folder.path(), false).unwrap_err().to_string();
        assert!(error.contains("another process is training here"), "{error}");
        drop(held);
        let open = Folder::open(folder.path(), false).unwrap();
        fs::write(config_file(folder.path()), "").unwrap();
        drop(open);
        let error = Folder::open(folder.path(), false).unwrap_err().to_string();
        assert!(error.contains("already holds a training run: resume it"), "{error}");
        assert!(Folder::open(folder.path(), true).is_ok());
    }
}
