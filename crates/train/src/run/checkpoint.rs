//! Checkpoints: files that are either complete or rejected.
//!
//! Little-endian: magic, version, the length of the whole file, the length of the head, the number
//! of vectors, their length; the head as JSON; zeros up to a multiple of eight; the vectors, `f32`;
//! the hash of everything before it. It is written to a temporary file, synced and renamed, and the
//! folder is synced: after a crash either the old file or the new one exists.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use xxhash_rust::xxh3::Xxh3;

use regard_core::{Error, Result, bounded, replace};

const MAGIC: &[u8; 8] = b"RGDCKP\r\n";
const VERSION: u64 = 1;
const FIXED: usize = 48;

/// Writes `head` and vectors of equal length to `path`.
pub(super) fn write(path: &Path, head: &impl Serialize, vectors: &[&[f32]]) -> Result<()> {
    let head = serde_json::to_vec(head).map_err(|e| Error::file(path, e.to_string()))?;
    replace(path, |file| {
        let mut out = HashingWriter { to: file, hash: Xxh3::new() };
        let length = vectors.first().map_or(0, |v| v.len());
        let padding = head.len().next_multiple_of(8) - head.len();
        let whole = FIXED + head.len() + padding + 4 * length * vectors.len() + 8;
        out.put(MAGIC)?;
        for number in [VERSION, whole as u64, head.len() as u64, vectors.len() as u64, length as u64] {
            out.put(&number.to_le_bytes())?;
        }
        out.put(&head)?;
        out.put(&[0; 8][..padding])?;
        let mut bytes = Vec::new();
        for vector in vectors {
            for block in vector.chunks(1 << 16) {
                bytes.clear();
                bytes.extend(block.iter().flat_map(|x| x.to_le_bytes()));
                out.put(&bytes)?;
            }
        }
        let hash = out.hash.digest();
        out.to.write_all(&hash.to_le_bytes())
    })
}

/// Reads what [`write()`] wrote: the head, and vectors of `length` elements each. Rejects anything
/// else.
pub(super) fn read<H: DeserializeOwned>(path: &Path, length: usize) -> Result<(H, Vec<Vec<f32>>)> {
    let bytes = bounded::read(path, u64::MAX)?;
    parse(&bytes, length).map_err(|why| Error::file(path, format!("this checkpoint cannot be used: {why}")))
}

/// The same for the bytes of a file. A file with a valid checksum may still be forged: no number in
/// it is trusted, and allocations are limited to the size of the file.
pub(super) fn parse<H: DeserializeOwned>(
    bytes: &[u8],
    length: usize,
) -> std::result::Result<(H, Vec<Vec<f32>>), String> {
    if bytes.len() < FIXED + 8 || !bytes.starts_with(MAGIC) {
        return Err("it does not begin like a checkpoint".into());
    }
    let (words, _) = bytes[..FIXED].as_chunks::<8>();
    let [version, whole, head, vectors, stored] = [1, 2, 3, 4, 5].map(|i| u64::from_le_bytes(words[i]));
    if version != VERSION {
        return Err(format!("version {version}, {VERSION} is needed"));
    }
    if whole != bytes.len() as u64 {
        return Err(format!("it is cut off, {} of {whole} bytes", bytes.len()));
    }
    let (content, hash) = bytes.split_at(bytes.len() - 8);
    if hash != xxhash_rust::xxh3::xxh3_64(content).to_le_bytes() {
        return Err("its checksum is wrong".into());
    }
    if stored != length as u64 {
        return Err(format!("it is of a model of {stored} weights, this one has {length}"));
    }
    let head_end = usize::try_from(head).ok().and_then(|head| FIXED.checked_add(head));
    let start = head_end.and_then(|end| end.checked_next_multiple_of(8));
    let numbers = usize::try_from(vectors).ok().and_then(|n| n.checked_mul(length)?.checked_mul(4));
    let end = start.zip(numbers).and_then(|(start, numbers)| start.checked_add(numbers));
    let (Some(head_end), Some(start), true) = (head_end, start, end == Some(content.len())) else {
        return Err("its lengths do not fit".into());
    };
    let head = serde_json::from_slice(&content[FIXED..head_end]).map_err(|e| e.to_string())?;
    let (numbers, _) = content[start..].as_chunks::<4>();
    let vectors =
        numbers.chunks(length.max(1)).map(|v| v.iter().map(|b| f32::from_le_bytes(*b)).collect()).collect();
    Ok((head, vectors))
}

/// Writes a valid beginning, length and checksum into bytes that are long enough, so that a test
/// reaches the code behind these checks. For tests and fuzzing.
#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn seal(bytes: &mut [u8]) {
    let Some(end) = bytes.len().checked_sub(8).filter(|&end| end >= FIXED) else { return };
    let whole = bytes.len() as u64;
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..16].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..24].copy_from_slice(&whole.to_le_bytes());
    let hash = xxhash_rust::xxh3::xxh3_64(&bytes[..end]);
    bytes[end..].copy_from_slice(&hash.to_le_bytes());
}

struct HashingWriter<'a> {
    to: &'a mut BufWriter<File>,
    hash: Xxh3,
}

impl HashingWriter<'_> {
    fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.hash.update(bytes);
        self.to.write_all(bytes)
    }
}

/// Writes a small text file atomically.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<()> {
    replace(path, |file| file.write_all(text.as_bytes()))
}

/// The files `prefix-STEP.ckpt` of a folder, newest first.
pub(super) fn list(folder: &Path, prefix: &str) -> Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|e| Error::io(folder, e))? {
        let path = entry.map_err(|e| Error::io(folder, e))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let step =
            name.strip_prefix(prefix).and_then(|n| n.strip_prefix('-')?.strip_suffix(".ckpt")?.parse().ok());
        if let Some(step) = step {
            found.push((step, path));
        }
    }
    found.sort_unstable_by(|a, b| b.cmp(a));
    Ok(found)
}

/// The path of the file of a step.
pub(super) fn place(folder: &Path, prefix: &str, step: u64) -> PathBuf {
    folder.join(format!("{prefix}-{step:08}.ckpt"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = place(folder.path(), "state", 12);
        let (a, b) = ([1.5f32, -0.0, f32::MIN_POSITIVE], [3.0f32, f32::INFINITY, 0.1]);
        write(&path, &("head", 7), &[&a, &b]).unwrap();
        let ((text, number), vectors): ((String, u32), _) = read(&path, 3).unwrap();
        assert_eq!((text.as_str(), number), ("head", 7));
        assert_eq!(vectors, [a.to_vec(), b.to_vec()]);
        assert!(vectors[0][1].is_sign_negative());
        let other = read::<(String, u32)>(&path, 4).unwrap_err().to_string();
        assert!(other.ends_with("it is of a model of 3 weights, this one has 4"), "{other}");
        assert_eq!(list(folder.path(), "state").unwrap(), [(12, path)]);
    }

    /// Every file that is shorter, longer, or differs in one byte is rejected without a panic.
    #[test]
    fn damage_is_refused_at_every_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = place(folder.path(), "state", 1);
        write(&path, &"h", &[&[1.0, 2.0], &[3.0, 4.0]]).unwrap();
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            assert!(read::<String>(&path, 2).is_err(), "cut to {cut}");
            let mut changed = whole.clone();
            changed[cut] ^= 0x40;
            fs::write(&path, &changed).unwrap();
            assert!(read::<String>(&path, 2).is_err(), "byte {cut}");
        }
        fs::write(&path, [&whole[..], b"more"].concat()).unwrap();
        assert!(read::<String>(&path, 2).is_err());
        fs::write(&path, &whole).unwrap();
        assert!(read::<String>(&path, 2).is_ok());
    }

    /// Arbitrary lengths with a valid checksum are rejected, and nothing overflows.
    #[test]
    fn lengths_that_someone_made_up_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = place(folder.path(), "state", 1);
        write(&path, &"h", &[&[1.0, 2.0], &[3.0, 4.0]]).unwrap();
        let whole = fs::read(&path).unwrap();
        for field in 3..6 {
            for value in [0, 1, 7, 1 << 31, 1 << 32, 1 << 61, 1 << 62, 1 << 63, u64::MAX - 48, u64::MAX] {
                for length in [2, usize::MAX, 1 << 62] {
                    let mut made_up = whole.clone();
                    made_up[8 * field..][..8].copy_from_slice(&value.to_le_bytes());
                    if length != 2 {
                        made_up[40..48].copy_from_slice(&(length as u64).to_le_bytes());
                    }
                    seal(&mut made_up);
                    assert!(parse::<String>(&made_up, length).is_err(), "field {field} is {value}");
                }
            }
        }
    }

    /// On a full disk or in a read-only folder, the message names the file, and the old file stays.
    #[test]
    fn what_cannot_be_written_leaves_the_old() {
        let folder = tempfile::tempdir().unwrap();
        let path = place(folder.path(), "state", 1);
        write(&path, &"old", &[&[1.0]]).unwrap();
        fs::create_dir(folder.path().join(format!("state-00000001.ckpt.{}.part", std::process::id())))
            .unwrap();
        let error = write(&path, &"new", &[&[2.0]]).unwrap_err().to_string();
        assert!(error.contains("state-00000001.ckpt: "), "{error}");
        assert_eq!(read::<String>(&path, 1).unwrap(), ("old".into(), vec![vec![1.0]]));
        let nowhere = folder.path().join("missing").join("a.toml");
        assert!(write_text(&nowhere, "x").unwrap_err().to_string().contains("a.toml"));
    }
}
