//! Zip archives: every entry is a range of the file. `torch.save` stores its entries uncompressed;
//! `.npz` files and packages may have deflated ones, which [`inflate`] unpacks.

use flate2::Crc;
use flate2::read::DeflateDecoder;
use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;

/// The entries of an archive by name, all checked to lie in it.
pub(super) fn entries(file: &[u8]) -> Result<HashMap<&str, Range<usize>>, String> {
    let mut entries = HashMap::new();
    for Member { name, range, packing, .. } in members(file)? {
        if packing == Packing::Uneven {
            return Err(format!("{name:?} in the archive {UNEVEN}"));
        }
        if packing != Packing::Stored {
            return Err(format!(
                "{name:?} in the archive is compressed or encrypted, which torch.save never does"
            ));
        }
        entries.insert(name, range);
    }
    Ok(entries)
}

/// The error for [`Packing::Uneven`].
pub(super) const UNEVEN: &str =
    "is not compressed, but the archive's directory gives it two sizes; they should be the same";

/// How the bytes of an entry are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    /// Uncompressed.
    Stored,
    Deflated,
    /// Uncompressed, but with two different sizes.
    Uneven,
    /// Encrypted, or compressed with another method.
    Unknown,
}

/// One entry of an archive.
#[derive(Debug)]
pub(super) struct Member<'a> {
    pub(super) name: &'a str,
    /// Its bytes in the archive, checked to lie in it.
    pub(super) range: Range<usize>,
    pub(super) packing: Packing,
    /// Its unpacked size according to the directory.
    pub(super) unpacked: u64,
    /// The CRC-32 of the unpacked bytes.
    pub(super) crc: u32,
}

/// The entries of an archive in the order of its directory.
pub(super) fn members(file: &[u8]) -> Result<Vec<Member<'_>>, String> {
    let mut members = Vec::new();
    let directory = directory(file).ok_or("the archive's directory is missing: the file is cut off")?;
    let end = directory.end;
    let mut at = directory.start;
    while at < end {
        let (name, member, next) = entry(file, at).ok_or("the archive's directory is damaged")?;
        members.push(member.map_err(|problem| format!("{name:?} in the archive {problem}"))?);
        at = next;
    }
    Ok(members)
}

/// Appends the bytes of a deflated member; memory grows with the actual data.
pub(super) fn inflate(file: &[u8], member: &Member<'_>, most: u64, to: &mut Vec<u8>) -> Result<(), String> {
    let left = most.saturating_sub(to.len() as u64);
    if member.unpacked > left {
        let unpacked = member.unpacked;
        return Err(format!(
            "unpacks to {unpacked} bytes, but all items of an archive of {} bytes may unpack to {most}",
            file.len()
        ));
    }
    let start = to.len();
    let mut reader = DeflateDecoder::new(&file[member.range.clone()]).take(member.unpacked + 1);
    reader.read_to_end(to).map_err(|e| format!("is damaged: {e}"))?;
    if (to.len() - start) as u64 != member.unpacked {
        return Err(format!("does not unpack to the {} bytes that the directory says", member.unpacked));
    }
    Ok(())
}

/// Verifies the checksum of a member.
pub(super) fn check_crc(bytes: &[u8], expected: u32) -> Result<(), String> {
    let mut crc = Crc::new();
    crc.update(bytes);
    match crc.sum() == expected {
        true => Ok(()),
        false => Err("is damaged: its checksum does not match".into()),
    }
}

/// A little-endian number of `N` bytes.
fn number<const N: usize>(file: &[u8], at: usize) -> Option<u64> {
    let bytes = file.get(at..at.checked_add(N)?)?;
    Some(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

fn size<const N: usize>(file: &[u8], at: usize) -> Option<usize> {
    usize::try_from(number::<N>(file, at)?).ok()
}

const END: u64 = 0x0605_4b50;
const END_64: u64 = 0x0606_4b50;
const LOCATOR_64: u64 = 0x0706_4b50;
const ENTRY: u64 = 0x0201_4b50;
const LOCAL: u64 = 0x0403_4b50;
/// The value of a 32-bit field whose actual value is in a 64-bit one.
const ELSEWHERE: u64 = 0xffff_ffff;

/// The range of the central directory, found from the end of the file, where a comment may follow.
fn directory(file: &[u8]) -> Option<Range<usize>> {
    let last = file.len().checked_sub(22)?;
    let is_end =
        |&at: &usize| number::<4>(file, at) == Some(END) && size::<2>(file, at + 20) == Some(last - at);
    let end = (last.saturating_sub(0xffff)..=last).rev().find(is_end)?;
    // Zip64 archives have a second end record before the first.
    let locator = end.checked_sub(20).filter(|&at| number::<4>(file, at) == Some(LOCATOR_64));
    let (length, start) = match locator {
        None => (size::<4>(file, end + 12)?, size::<4>(file, end + 16)?),
        Some(at) => {
            let at = size::<8>(file, at + 8)?;
            (number::<4>(file, at)? == END_64).then_some(())?;
            (size::<8>(file, at.checked_add(40)?)?, size::<8>(file, at.checked_add(48)?)?)
        }
    };
    let range = start..start.checked_add(length)?;
    (range.end <= file.len()).then_some(range)
}

type FoundEntry<'a> = (&'a str, Result<Member<'a>, &'static str>, usize);

/// The entry described at `at`: its name, its bytes, and the offset of the next description.
fn entry(file: &[u8], at: usize) -> Option<FoundEntry<'_>> {
    (number::<4>(file, at)? == ENTRY).then_some(())?;
    let (flags, method) = (number::<2>(file, at + 8)?, number::<2>(file, at + 10)?);
    let [name, extra, comment] = [28, 30, 32].map(|field| size::<2>(file, at + field));
    let name_end = at.checked_add(46)?.checked_add(name?)?;
    let extra_end = name_end.checked_add(extra?)?;
    let next = extra_end.checked_add(comment?)?;
    let name = std::str::from_utf8(file.get(at + 46..name_end)?).ok()?;
    let mut large = large_fields(file.get(name_end..extra_end)?);
    let mut field = |at: usize| match number::<4>(file, at)? {
        ELSEWHERE => large.next(),
        value => Some(value),
    };
    // The zip64 fields have the same order.
    let (unpacked, packed, local) = (field(at + 24)?, field(at + 20)?, field(at + 42)?);
    let packing = match (flags & 1, method) {
        (0, 0) if packed == unpacked => Packing::Stored,
        (0, 0) => Packing::Uneven,
        (0, 8) => Packing::Deflated,
        _ => Packing::Unknown,
    };
    let crc = u32::try_from(number::<4>(file, at + 16)?).ok()?;
    let member = stored(file, local, packed).map(|range| Member { name, range, packing, unpacked, crc });
    Some((name, member.ok_or("reaches beyond the end of the file: it is cut off"), next))
}

/// The values of the zip64 field, if it is among the extra fields.
fn large_fields(extra: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let mut at = 0;
    let mut found: &[u8] = &[];
    while let (Some(id), Some(length)) = (number::<2>(extra, at), size::<2>(extra, at + 2)) {
        if id == 1 {
            found = extra.get(at + 4..at + 4 + length).unwrap_or_default();
        }
        at += 4 + length;
    }
    found.chunks_exact(8).filter_map(|bytes| number::<8>(bytes, 0))
}

/// The bytes of an entry, after its local header.
fn stored(file: &[u8], local: u64, length: u64) -> Option<Range<usize>> {
    let at = usize::try_from(local).ok()?;
    (number::<4>(file, at)? == LOCAL).then_some(())?;
    let start = at + 30 + size::<2>(file, at + 26)? + size::<2>(file, at + 28)?;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    (end <= file.len()).then_some(start..end)
}
