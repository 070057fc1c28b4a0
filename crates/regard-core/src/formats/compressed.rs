//! Files that may be compressed with gzip or zstd, read whole ([`FileBytes`]) or as a stream
//! ([`decompress`]).
//!
//! The unpacked size of a compressed file that is read whole is bounded: [`MAX_RATIO`] times its
//! own size plus [`ALWAYS_ALLOWED`], and never more than [`MAX_UNPACKED`]. Model files of published
//! folders unpack to less than ten times their size.

use crate::{Error, Result, bounded};
use flate2::bufread::MultiGzDecoder;
use regard_kernels::mapped::Mapped;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// The maximum unpacked size of any compressed file.
pub const MAX_UNPACKED: u64 = 4 << 30;
/// The maximum ratio of unpacked to compressed size.
pub const MAX_RATIO: u64 = 64;
/// The unpacked size that is always allowed, whatever the compressed size.
pub const ALWAYS_ALLOWED: u64 = 1 << 20;

/// The error for a truncated file.
const CUT: &str = "the file is cut off";

/// The extensions of compressed files.
const ENDINGS: [&str; 2] = [".gz", ".zst"];

/// A file name without the extension of a compressed file.
pub fn without_ending(name: &str) -> &str {
    ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// The bytes of a file: mapped if it is not compressed, unpacked if it is.
#[derive(Debug)]
pub enum FileBytes {
    /// The file itself.
    Mapped(Arc<Mapped>),
    /// The unpacked contents, and the size of the file itself.
    Unpacked(Vec<u8>, usize),
}

impl FileBytes {
    /// Opens a regular file. Its first bytes, not its name, determine whether it is compressed.
    pub fn open(path: &Path) -> Result<Self> {
        bounded::check_regular(path)?;
        let map = Mapped::open(path).map_err(|e| Error::io(path, e))?;
        if map.bytes().starts_with(b"version https://git-lfs") {
            let message = "is a pointer of Git LFS, not the file; `git lfs pull` fetches it";
            return Err(Error::file(path, message));
        }
        match unpack(map.bytes()) {
            None => Ok(FileBytes::Mapped(Arc::new(map))),
            Some(Ok(bytes)) => Ok(FileBytes::Unpacked(bytes, map.bytes().len())),
            Some(Err(message)) => Err(Error::file(path, message)),
        }
    }

    /// All bytes, unpacked.
    pub fn bytes(&self) -> &[u8] {
        match self {
            FileBytes::Mapped(map) => map.bytes(),
            FileBytes::Unpacked(bytes, _) => bytes,
        }
    }

    /// The maximum unpacked size of compressed parts of it: determined by the size of the file
    /// itself, so that an archive in a compressed file may not unpack to more than the archive
    /// alone.
    pub fn max_unpacked(&self) -> u64 {
        match self {
            FileBytes::Mapped(map) => max_unpacked(map.bytes().len()),
            FileBytes::Unpacked(_, size) => max_unpacked(*size),
        }
    }
}

/// How a file is compressed. Neither magic number can start a UTF-8 text.
#[derive(Clone, Copy, Debug)]
enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    /// Detects the compression from the first bytes of a file.
    fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
            _ => is_skippable(start).then_some(Compression::Zstd),
        }
    }
}

/// The maximum unpacked size of a compressed file of this size.
pub fn max_unpacked(size: usize) -> u64 {
    (size as u64).saturating_mul(MAX_RATIO).saturating_add(ALWAYS_ALLOWED).min(MAX_UNPACKED)
}

/// Unpacks a compressed file; `None` if it is not compressed.
pub fn unpack(file: &[u8]) -> Option<std::result::Result<Vec<u8>, String>> {
    let most = max_unpacked(file.len());
    Compression::of(file).map(|compression| match compression {
        Compression::Gzip => read_bounded(MultiGzDecoder::new(file), most, "gzip"),
        Compression::Zstd => read_bounded(Zstd::new(file), most, "zstd"),
    })
}

/// A stream of the contents of a file, compressed or not.
pub fn decompress(mut file: impl BufRead + 'static) -> io::Result<Box<dyn BufRead>> {
    Ok(match Compression::of(file.fill_buf()?) {
        None => Box::new(file),
        Some(Compression::Gzip) => Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file))),
        Some(Compression::Zstd) => Box::new(BufReader::with_capacity(1 << 16, Zstd::new(file))),
    })
}

/// Reads at most `most` bytes; memory grows with the actual data, not with what a header announces.
fn read_bounded(reader: impl Read, most: u64, kind: &str) -> std::result::Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    reader.take(most + 1).read_to_end(&mut bytes).map_err(|e| match e.to_string() {
        message if message.starts_with("damaged ") => message,
        _ if e.kind() == io::ErrorKind::UnexpectedEof => format!("damaged {kind} data: {CUT}"),
        message => format!("damaged {kind} data: {message}"),
    })?;
    if bytes.len() as u64 > most {
        return Err(format!("the {kind} data unpacks to more than {most} bytes, which no model file does"));
    }
    Ok(bytes)
}

/// Whether this is a zstd frame without data, such as `pzstd` writes.
fn is_skippable(start: &[u8]) -> bool {
    matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// All frames of a zstd file; the decoder of `ruzstd` handles one frame at a time.
struct Zstd<R> {
    file: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(file: R) -> Self {
        Zstd { file, decoder: FrameDecoder::new(), in_frame: false }
    }

    /// Starts the next frame; `false` at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.file.fill_buf()?.is_empty() {
                return Ok(false);
            }
            // The four bytes of magic may straddle the buffer, so read them and chain them in
            // front.
            let mut magic = [0; 4];
            self.file.read_exact(&mut magic)?;
            if is_skippable(&magic) {
                let mut length = [0; 4];
                self.file.read_exact(&mut length)?;
                let length = u64::from(u32::from_le_bytes(length));
                if io::copy(&mut self.file.by_ref().take(length), &mut io::sink())? < length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                continue;
            }
            self.decoder.reset((&magic[..]).chain(&mut self.file)).map_err(undecoded)?;
            self.in_frame = true;
            return Ok(true);
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame && !self.next_frame()? {
                return Ok(0);
            }
            while self.decoder.can_collect() < buffer.len() && !self.decoder.is_finished() {
                let some = BlockDecodingStrategy::UptoBytes(buffer.len());
                self.decoder.decode_blocks(&mut self.file, some).map_err(undecoded)?;
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            if let (Some(read), Some(computed)) =
                (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum())
                && read != computed
            {
                return Err(damaged("the checksum does not match"));
            }
            self.in_frame = false;
        }
    }
}

fn damaged(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("damaged zstd data: {error}"))
}

/// The innermost of the decoder's errors: the others only have debug output as text.
fn undecoded(error: impl std::error::Error + 'static) -> io::Error {
    let mut inner: &(dyn std::error::Error + 'static) = &error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    match inner.downcast_ref::<io::Error>() {
        Some(e) if e.kind() == io::ErrorKind::UnexpectedEof => damaged(CUT),
        _ => damaged(inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::fs;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        compress_to_vec(bytes, CompressionLevel::Fastest)
    }

    #[test]
    fn compressed_files_are_unpacked_whatever_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let text = b"one two three ".repeat(1000);
        for bytes in [text.clone(), gzip(&text), zstd(&text), [gzip(&text[..99]), gzip(&text[99..])].concat()]
        {
            fs::write(&path, bytes).unwrap();
            assert_eq!(FileBytes::open(&path).unwrap().bytes(), text);
        }
        let parts = [b"\x50\x2a\x4d\x18\x02\0\0\0xx".to_vec(), zstd(&text[..7]), zstd(&text[7..])].concat();
        fs::write(&path, parts).unwrap();
        assert_eq!(FileBytes::open(&path).unwrap().bytes(), text);
        assert_eq!(without_ending("vocab.spm.gz"), "vocab.spm");
        assert_eq!(without_ending("lex.bin.zst"), "lex.bin");
        assert_eq!(without_ending("model.npz"), "model.npz");
    }

    #[test]
    fn what_unpacks_to_too_much_or_is_damaged_is_refused() {
        let zeros = vec![0; 4 << 20];
        for (bytes, kind) in [(gzip(&zeros), "gzip"), (zstd(&zeros), "zstd")] {
            let message = unpack(&bytes).unwrap().unwrap_err();
            assert!(message.contains(&format!("the {kind} data unpacks to more than")), "{message}");
        }
        // A megabyte is always allowed.
        assert_eq!(unpack(&gzip(&zeros[..1 << 20])).unwrap().unwrap().len(), 1 << 20);
        for (mut bytes, kind) in [(gzip(b"abc"), "gzip"), (zstd(b"abc"), "zstd")] {
            bytes.truncate(bytes.len() - 2);
            let message = unpack(&bytes).unwrap().unwrap_err();
            assert_eq!(message, format!("damaged {kind} data: the file is cut off"));
        }
        // Truncated anywhere.
        let whole = zstd(&b"one two three ".repeat(99));
        for length in 4..whole.len() {
            let message = unpack(&whole[..length]).unwrap().unwrap_err();
            assert_eq!(message, "damaged zstd data: the file is cut off", "{length} bytes");
        }
        assert!(unpack(b"plain").is_none());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.bin.gz");
        fs::write(&path, "version https://git-lfs.github.com/spec/v1\n").unwrap();
        assert!(FileBytes::open(&path).unwrap_err().to_string().contains("Git LFS"));
    }
}
