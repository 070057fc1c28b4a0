//! Downloads files from a server or copies them from a folder, with resumption and verification.

use super::http::{self, Request, Response};
use super::sha256::Sha256;
use crate::formats::compressed::FileBytes;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file to download, and what is known about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteFile {
    /// Its name in the model's folder.
    pub name: String,
    /// Its URL, or the path of a file on this machine.
    pub location: String,
    /// Its size.
    pub bytes: Option<u64>,
    /// Its SHA-256, as hexadecimal digits.
    pub sha256: Option<String>,
    /// The SHA-256 of its contents, if it is compressed.
    pub unpacked_sha256: Option<String>,
}

/// A downloaded file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct FileRecord {
    /// Its name in the model's folder.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, as hexadecimal digits.
    pub sha256: String,
}

/// The progress of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The file.
    pub file: &'a str,
    /// The number of bytes downloaded so far.
    pub done: u64,
    /// Its size, if known.
    pub total: Option<u64>,
}

/// Whether this is a supported URL.
pub(crate) fn is_url(location: &str) -> bool {
    location.starts_with("http://") || location.starts_with("https://")
}

/// Reads a file of at most `most` bytes.
pub(crate) fn read(location: &str, most: u64, token: Option<&str>) -> Result<Vec<u8>> {
    let failed = |message: String| Error::file(location, message);
    let mut bytes = Vec::new();
    let response = open(location, Request { token, ..Request::default() })?;
    response.body.take(most + 1).read_to_end(&mut bytes).map_err(|e| failed(e.to_string()))?;
    match bytes.len() as u64 > most {
        true => Err(failed(format!("is larger than {most} bytes, the most that is read of such a file"))),
        false => Ok(bytes),
    }
}

fn open(location: &str, request: Request<'_>) -> Result<Response> {
    if is_url(location) {
        return http::get(location, request).map_err(|message| Error::file(location, message));
    }
    let path = Path::new(location);
    crate::bounded::check_regular(path)?;
    let open = || -> io::Result<Response> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let start = if request.from <= length { request.from } else { 0 };
        file.seek(SeekFrom::Start(start))?;
        Ok(Response { start, length: Some(length - start), tag: None, body: Box::new(file) })
    };
    open().map_err(|e| Error::io(path, e))
}

/// A path with a suffix appended to its name.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Downloads a file into a folder. Skips a complete file, resumes a partial one, and returns an
/// error if the result is not what it should be.
pub(crate) fn download(
    file: &RemoteFile,
    folder: &Path,
    token: Option<&str>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<FileRecord> {
    let to = folder.join(&file.name);
    if let Some(record) = already_there(file, &to)? {
        progress(Progress { file: &file.name, done: record.bytes, total: Some(record.bytes) });
        return Ok(record);
    }
    let (part, tag) = (beside(&to, ".part"), beside(&to, ".part.tag"));
    let failed = |e: io::Error| Error::io(&part, e);
    let known_tag = fs::read_to_string(&tag).ok();
    // Without either, a file that was replaced in the meantime would go unnoticed.
    let can_continue = known_tag.is_some() || file.sha256.is_some();
    let had = fs::metadata(&part).map(|metadata| metadata.len()).unwrap_or(0);
    let from = if can_continue { had } else { 0 };
    let response = open(&file.location, Request { from, tag: known_tag.as_deref(), token })?;
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    let mut target = options.open(&part).map_err(failed)?;
    let mut hash = Sha256::new();
    target.set_len(response.start).map_err(failed)?;
    hash_all(&mut target, &mut hash).map_err(failed)?;
    match &response.tag {
        Some(text) => fs::write(&tag, text).map_err(|e| Error::io(&tag, e))?,
        None => drop(fs::remove_file(&tag)),
    }
    let total = response.length.map(|length| response.start + length).or(file.bytes);
    let mut done = response.start;
    let mut body = response.body;
    let mut buffer = vec![0; 1 << 16];
    let most = file.bytes.or(total).unwrap_or(u64::MAX);
    loop {
        progress(Progress { file: &file.name, done, total });
        let read = body.read(&mut buffer).map_err(|e| cut_off(file, done, total, &e.to_string()))?;
        if read == 0 || done > most {
            break;
        }
        target.write_all(&buffer[..read]).map_err(failed)?;
        hash.update(&buffer[..read]);
        done += read as u64;
    }
    target.sync_all().map_err(failed)?;
    if total.is_some_and(|total| done < total) {
        return Err(cut_off(file, done, total, "the connection ended"));
    }
    let record = FileRecord { name: file.name.clone(), bytes: done, sha256: hash.finish() };
    if let Err(message) = check(file, &record, &part) {
        // Resuming it would not fix it.
        let _ = fs::remove_file(&part);
        let _ = fs::remove_file(&tag);
        return Err(Error::file(&file.location, message));
    }
    let _ = fs::remove_file(&tag);
    fs::rename(&part, &to).map_err(|e| Error::io(&to, e))?;
    Ok(record)
}

fn cut_off(file: &RemoteFile, done: u64, total: Option<u64>, why: &str) -> Error {
    let total = total.map_or_else(String::new, |total| format!(" of {total}"));
    let message =
        format!("{why} after {done}{total} bytes, which are kept: the next attempt continues there");
    Error::file(&file.location, message)
}

fn hash_all(file: &mut File, hash: &mut Sha256) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            read => hash.update(&buffer[..read]),
        }
    }
}

/// The record of a file on this machine.
pub(crate) fn record(path: &Path) -> Result<FileRecord> {
    let failed = |e: io::Error| Error::io(path, e);
    let (mut file, mut hash) = (File::open(path).map_err(failed)?, Sha256::new());
    hash_all(&mut file, &mut hash).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(FileRecord { name, bytes, sha256: hash.finish() })
}

/// The record of a file that an earlier attempt has completed.
fn already_there(file: &RemoteFile, path: &Path) -> Result<Option<FileRecord>> {
    if !path.exists() {
        return Ok(None);
    }
    let record = record(path)?;
    Ok(check(file, &record, path).is_ok().then_some(record))
}

/// Checks that a file matches what was announced.
fn check(file: &RemoteFile, record: &FileRecord, path: &Path) -> std::result::Result<(), String> {
    if let Some(bytes) = file.bytes.filter(|&bytes| bytes != record.bytes) {
        return Err(format!("{} should have {bytes} bytes, but {} came", file.name, record.bytes));
    }
    let differs = |expected: &Option<String>, found: &str| {
        let expected = expected.as_deref().filter(|expected| !expected.eq_ignore_ascii_case(found))?;
        Some(format!("{} should have the SHA-256 {expected}, but has {found}", file.name))
    };
    if let Some(message) = differs(&file.sha256, &record.sha256) {
        return Err(message);
    }
    if file.unpacked_sha256.is_some() {
        let unpacked = FileBytes::open(path).map_err(|error| error.to_string())?;
        if let Some(message) = differs(&file.unpacked_sha256, &Sha256::of(unpacked.bytes())) {
            return Err(format!("what is in {message}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch(file: &RemoteFile, folder: &Path) -> (Result<FileRecord>, Vec<u64>) {
        let mut seen = Vec::new();
        let record = download(file, folder, None, &mut |progress| seen.push(progress.done));
        (record, seen)
    }

    #[test]
    fn a_file_is_copied_checked_and_not_copied_again() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let source = from.path().join("x.bin");
        let content: Vec<u8> = (0..200_000u32).map(|i| (i * 7 % 251) as u8).collect();
        fs::write(&source, &content).unwrap();
        let mut file = RemoteFile {
            name: "model.bin".into(),
            location: source.to_str().unwrap().into(),
            bytes: Some(200_000),
            sha256: Some(Sha256::of(&content).to_uppercase()),
            unpacked_sha256: None,
        };
        // Resumes what an earlier attempt left.
        fs::write(to.path().join("model.bin.part"), &content[..150_000]).unwrap();
        let (record, seen) = fetch(&file, to.path());
        assert_eq!(record.unwrap().sha256, Sha256::of(&content));
        assert_eq!((seen.first(), seen.last()), (Some(&150_000), Some(&200_000)));
        assert_eq!(fs::read(to.path().join("model.bin")).unwrap(), content);
        fs::remove_file(&source).unwrap();
        assert_eq!(fetch(&file, to.path()).1, [200_000]);
        // Another file of the same size is rejected and removed.
        fs::write(&source, vec![0; 200_000]).unwrap();
        fs::remove_file(to.path().join("model.bin")).unwrap();
        let message = fetch(&file, to.path()).0.unwrap_err().to_string();
        assert!(message.contains("model.bin should have the SHA-256 "), "{message}");
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
        (file.sha256, file.bytes) = (None, Some(199_999));
        let message = fetch(&file, to.path()).0.unwrap_err().to_string();
        assert!(message.ends_with("model.bin should have 199999 bytes, but 200000 came"), "{message}");
        file.location = from.path().join("none").to_str().unwrap().into();
        assert!(fetch(&file, to.path()).0.unwrap_err().to_string().contains("none: "));
    }

    #[test]
    fn the_checksum_may_be_of_what_is_unpacked() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let source = from.path().join("x.gz");
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"weights").unwrap();
        fs::write(&source, gzip.finish().unwrap()).unwrap();
        let mut file = RemoteFile {
            name: "x.gz".into(),
            location: source.to_str().unwrap().into(),
            unpacked_sha256: Some(Sha256::of(b"weights")),
            ..RemoteFile::default()
        };
        fetch(&file, to.path()).0.unwrap();
        file.unpacked_sha256 = Some(Sha256::of(b"others"));
        let message = fetch(&file, to.path()).0.unwrap_err().to_string();
        assert!(message.contains("what is in x.gz should have the SHA-256 "), "{message}");
    }
}
