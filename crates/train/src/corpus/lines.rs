//! The lines of one file, plain or compressed, without ever holding more than one of them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use regard_core::{Error, Result};

/// One line of a file, or why it cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(String),
    InvalidUtf8,
    TooLong,
}

/// A file being read line by line.
pub(super) struct Lines {
    path: PathBuf,
    reader: Box<dyn BufRead>,
    count: usize,
    max_bytes: usize,
}

impl Lines {
    pub(super) fn open(path: &Path, max_bytes: usize) -> Result<Self> {
        let reader = open_text(path)?;
        Ok(Lines { path: path.to_path_buf(), reader, count: 0, max_bytes })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Lines read so far.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The next line, `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Line>> {
        let mut line = Vec::new();
        let mut too_long = false;
        let mut any = false;
        loop {
            let buffer = match self.reader.fill_buf() {
                Ok(buffer) => buffer,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(self.broken(e)),
            };
            if buffer.is_empty() {
                break;
            }
            any = true;
            let end = buffer.iter().position(|&b| b == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            // The rest of an overlong line is skipped as it streams by. Five bytes of grace: a byte-order mark, a
            // CR, and one to tell too long from just fitting.
            if line.len() + part.len() > self.max_bytes.saturating_add(5) {
                too_long = true;
            } else {
                line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        if !any {
            return Ok(None);
        }
        self.count += 1;
        if self.count == 1 && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if too_long || line.len() > self.max_bytes {
            return Ok(Some(Line::TooLong));
        }
        Ok(Some(String::from_utf8(line).map_or(Line::InvalidUtf8, Line::Text)))
    }

    fn broken(&self, error: io::Error) -> Error {
        let message = format!("{error} (after line {})", self.count);
        Error::io(&self.path, io::Error::new(error.kind(), message))
    }
}

/// Opens a text file, plain, gzip or zstd.
pub fn open_text(path: &Path) -> Result<Box<dyn BufRead>> {
    let opened = File::open(path).and_then(|file| {
        if file.metadata()?.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a folder, not a text file"));
        }
        decompress(BufReader::with_capacity(1 << 16, file))
    });
    opened.map_err(|e| Error::io(path, e))
}

pub(super) fn decompress(mut file: BufReader<File>) -> io::Result<Box<dyn BufRead>> {
    // Neither magic number can start a UTF-8 text.
    let start = file.fill_buf()?;
    if start.starts_with(&[0x1f, 0x8b]) {
        return Ok(Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file))));
    }
    if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || is_skippable(start) {
        return Ok(Box::new(BufReader::with_capacity(1 << 16, Zstd::new(file))));
    }
    Ok(Box::new(file))
}

/// A zstd frame that holds no data, such as `pzstd` writes.
fn is_skippable(start: &[u8]) -> bool {
    matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// All frames of a zstd file; the decoder of `ruzstd` knows one frame at a time.
struct Zstd {
    file: BufReader<File>,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl Zstd {
    fn new(file: BufReader<File>) -> Self {
        Zstd { file, decoder: FrameDecoder::new(), in_frame: false }
    }

    /// Starts the next frame; `false` at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.file.fill_buf()?.is_empty() {
                return Ok(false);
            }
            // Four bytes of magic may straddle the buffer, so they are read and put back in front.
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
            self.decoder.reset((&magic[..]).chain(&mut self.file)).map_err(damaged)?;
            self.in_frame = true;
            return Ok(true);
        }
    }
}

impl Read for Zstd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame && !self.next_frame()? {
                return Ok(0);
            }
            while self.decoder.can_collect() < buffer.len() && !self.decoder.is_finished() {
                let some = BlockDecodingStrategy::UptoBytes(buffer.len());
                self.decoder.decode_blocks(&mut self.file, some).map_err(damaged)?;
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
