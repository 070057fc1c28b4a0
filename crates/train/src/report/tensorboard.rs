//! Event files for TensorBoard: scalars and texts by step.
//!
//! A file is a sequence of TFRecords; each holds one protobuf `Event`. The few messages needed are
//! encoded by hand, which is less code than a protobuf compiler would bring. Layout of a record
//! (all little-endian):
//!
//! ```text
//! u64 length | u32 masked CRC32C of length | payload | u32 masked CRC32C of payload
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use regard_core::{Error, Result};

const PREFIX: &str = "events.out.tfevents.";
const FILE_VERSION: &[u8] = b"brain.Event:2";

/// Writes one event file. Records are buffered: call [`flush`](EventWriter::flush) when they must
/// be visible; dropping flushes too.
#[derive(Debug)]
pub struct EventWriter {
    path: PathBuf,
    file: BufWriter<File>,
}

impl EventWriter {
    /// Starts a new file in `folder` (created if missing), named after the time and the machine.
    pub fn create(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        let host = host_name();
        let mut seconds = wall_time() as u64;
        loop {
            // A run that restarts within the second must not write into the file of the previous
            // one.
            let path = folder.join(format!("{PREFIX}{seconds:010}.{host}"));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    let mut writer = EventWriter { path, file: BufWriter::new(file) };
                    let mut event = event_header(0);
                    put_bytes(&mut event, 3, FILE_VERSION);
                    writer.record(&event)?;
                    writer.flush()?;
                    return Ok(writer);
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => seconds += 1,
                Err(e) => return Err(Error::io(&path, e)),
            }
        }
    }

    /// Continues the newest event file of `folder` after `last_step`, or starts one if there is
    /// none.
    ///
    /// Truncates a record that a killed run left incomplete. What that run logged after `last_step`
    /// stays in the file, followed by a session start that tells TensorBoard to discard it.
    pub fn resume(folder: impl AsRef<Path>, last_step: u64) -> Result<Self> {
        let Some(path) = newest(folder.as_ref())? else { return Self::create(folder) };
        let mut file =
            OpenOptions::new().read(true).write(true).open(&path).map_err(|e| Error::io(&path, e))?;
        let intact = intact_length(&mut BufReader::new(&file)).map_err(|e| Error::io(&path, e))?;
        if intact == 0 {
            return Self::create(folder);
        }
        file.set_len(intact).map_err(|e| Error::io(&path, e))?;
        file.seek(SeekFrom::End(0)).map_err(|e| Error::io(&path, e))?;
        let mut writer = EventWriter { path, file: BufWriter::new(file) };
        let mut session = Vec::new();
        put_varint(&mut session, 1, 1); // SessionLog.status = START
        let mut event = event_header(last_step.saturating_add(1));
        put_bytes(&mut event, 7, &session);
        writer.record(&event)?;
        writer.flush()?;
        Ok(writer)
    }

    /// The file being written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one scalar. NaN and infinities are kept: TensorBoard marks them.
    pub fn scalar(&mut self, tag: &str, step: u64, value: f32) -> Result<()> {
        self.scalars(step, &[(tag, value)])
    }

    /// Writes several scalars of one step in one record.
    pub fn scalars(&mut self, step: u64, values: &[(&str, f32)]) -> Result<()> {
        let mut summary = Vec::new();
        for (tag, value) in values {
            let mut entry = Vec::new();
            put_bytes(&mut entry, 1, tag.as_bytes());
            put_key(&mut entry, 2, 5);
            entry.extend_from_slice(&value.to_le_bytes());
            put_bytes(&mut summary, 1, &entry);
        }
        self.summary(step, &summary)
    }

    /// Writes a text (TensorBoard shows it as Markdown), such as sample translations or the
    /// configuration.
    pub fn text(&mut self, tag: &str, step: u64, text: &str) -> Result<()> {
        let mut plugin = Vec::new();
        put_bytes(&mut plugin, 1, b"text");
        let mut metadata = Vec::new();
        put_bytes(&mut metadata, 1, &plugin);
        put_varint(&mut metadata, 4, 2); // data_class = TENSOR

        let mut dimension = Vec::new();
        put_varint(&mut dimension, 1, 1);
        let mut shape = Vec::new();
        put_bytes(&mut shape, 2, &dimension);
        let mut tensor = Vec::new();
        put_varint(&mut tensor, 1, 7); // dtype = DT_STRING
        put_bytes(&mut tensor, 2, &shape);
        put_bytes(&mut tensor, 8, text.as_bytes());

        let mut entry = Vec::new();
        put_bytes(&mut entry, 1, tag.as_bytes());
        put_bytes(&mut entry, 8, &tensor);
        put_bytes(&mut entry, 9, &metadata);
        let mut summary = Vec::new();
        put_bytes(&mut summary, 1, &entry);
        self.summary(step, &summary)
    }

    /// Flushes everything written so far to the system.
    pub fn flush(&mut self) -> Result<()> {
        self.file.flush().map_err(|e| Error::io(&self.path, e))
    }

    fn summary(&mut self, step: u64, summary: &[u8]) -> Result<()> {
        let mut event = event_header(step);
        put_bytes(&mut event, 5, summary);
        self.record(&event)
    }

    fn record(&mut self, payload: &[u8]) -> Result<()> {
        let length = (payload.len() as u64).to_le_bytes();
        let mut record = Vec::with_capacity(payload.len() + 16);
        record.extend_from_slice(&length);
        record.extend_from_slice(&masked_crc(&length).to_le_bytes());
        record.extend_from_slice(payload);
        record.extend_from_slice(&masked_crc(payload).to_le_bytes());
        self.file.write_all(&record).map_err(|e| Error::io(&self.path, e))
    }
}

fn wall_time() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64())
}

fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok())
        .or_else(|| std::env::var("COMPUTERNAME").ok())
        .unwrap_or_default();
    let name: String =
        name.trim().chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')).collect();
    if name.is_empty() { "localhost".to_string() } else { name }
}

/// The event file of `folder` with the last name: names begin with the time, so that is the newest.
fn newest(folder: &Path) -> Result<Option<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io(folder, e)),
    };
    let mut best: Option<PathBuf> = None;
    for entry in entries {
        let path = entry.map_err(|e| Error::io(folder, e))?.path();
        let named = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(PREFIX));
        if named && path.is_file() && best.as_ref().is_none_or(|b| *b < path) {
            best = Some(path);
        }
    }
    Ok(best)
}

/// The length of the prefix of a file that consists of complete records with valid checksums.
fn intact_length(file: &mut impl Read) -> io::Result<u64> {
    let mut intact = 0;
    while let Some(payload) = read_record(file)? {
        intact += payload.len() as u64 + 16;
    }
    Ok(intact)
}

/// The next payload, or `None` at the end of the file or of its intact part.
fn read_record(file: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    file.by_ref().take(12).read_to_end(&mut head)?;
    let (Some(length), Some(check)) = (head.first_chunk::<8>(), head.last_chunk::<4>()) else {
        return Ok(None);
    };
    if head.len() < 12 || masked_crc(length) != u32::from_le_bytes(*check) {
        return Ok(None);
    }
    // `take` bounds the read, so a huge length with a valid checksum allocates no more than the
    // size of the file.
    let length = u64::from_le_bytes(*length);
    let mut payload = Vec::new();
    file.by_ref().take(length.saturating_add(4)).read_to_end(&mut payload)?;
    if (payload.len() as u64) < length.saturating_add(4) {
        return Ok(None);
    }
    let check = payload.split_off(length as usize);
    let right = check.first_chunk::<4>().is_some_and(|c| masked_crc(&payload) == u32::from_le_bytes(*c));
    Ok(right.then_some(payload))
}

fn event_header(step: u64) -> Vec<u8> {
    let mut event = Vec::new();
    put_key(&mut event, 1, 1);
    event.extend_from_slice(&wall_time().to_le_bytes());
    put_varint(&mut event, 2, step);
    event
}

fn put_key(out: &mut Vec<u8>, field: u64, wire_type: u64) {
    varint(out, field << 3 | wire_type);
}

fn put_varint(out: &mut Vec<u8>, field: u64, value: u64) {
    put_key(out, field, 0);
    varint(out, value);
}

fn put_bytes(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_key(out, field, 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// CRC32C (Castagnoli, reflected polynomial 0x82F63B78), one byte at a time: an event is a few
/// hundred bytes.
const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
};

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &b| crc >> 8 ^ CRC_TABLE[((crc ^ u32::from(b)) & 0xFF) as usize])
}

/// The format masks its checksums, so that a checksum over data that contains checksums remains
/// effective.
fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xA282_EAD8)
}

#[cfg(test)]
mod tests;
