//! The layout of Marian's `.bin` files, little-endian:
//!
//! | what | bytes |
//! |---|---|
//! | version, 1 | u64 |
//! | number of items | u64 |
//! | per item: length of the name with its NUL, type, dimensions, bytes of data | four u64 each |
//! | names | each with a NUL |
//! | shapes | i32 per dimension |
//! | gap | u64, then that many zero bytes, so that data begins at a multiple of 256 |
//! | data | one after another, each padded to a multiple of 256 bytes by most writers |
//!
//! Padding is not zero in every published file: after an `intgemm8` matrix it contains leftover
//! memory of the writer.

use super::items::{Entry, check_entry, data_bytes, elements, type_name};
use crate::DType;
use crate::formats::tensor::MAX_DIMENSIONS;
use std::collections::HashSet;
use std::ops::Range;

/// The only version.
pub(super) const VERSION: u64 = 1;
/// Data begins at multiples of this.
pub(super) const ALIGNMENT: usize = 256;
/// The size of an item's header in bytes.
pub(super) const HEADER: usize = 32;

/// Types by their numbers. `browsermt/marian-dev`, which created the browsers' models, and
/// `marian-nmt/marian-dev` number 8-bit matrices differently but lay them out alike.
const TYPES: [(u64, DType); 5] = [
    (0x404, DType::F32),
    (0x402, DType::F16),
    (0x101, DType::U8),
    (0x4101, DType::Int8),
    (0x1_0001, DType::Int8),
];

/// Unsupported types, for messages.
const REFUSED: [(u64, &str); 17] = [
    (0x102, "int16"),
    (0x104, "int32"),
    (0x108, "int64"),
    (0x201, "uint8"),
    (0x204, "uint32"),
    (0x408, "float64"),
    (0x802, "packed16"),
    (0x1801, "packed8avx2"),
    (0x2801, "packed8avx512"),
    (0x4102, "intgemm16"),
    (0x1_0002, "intgemm16"),
    (0x1_8001, "intgemm8ssse3"),
    (0x1_1001, "intgemm8avx2"),
    (0x1_2001, "intgemm8avx512"),
    (0x1_3001, "intgemm8avx512vnni"),
    (0x1_1002, "intgemm16avx2"),
    (0x1_2002, "intgemm16avx512"),
];

/// The number of a type in the browsers' models.
pub(super) fn number_of(dtype: DType) -> u64 {
    TYPES.iter().find(|(_, known)| *known == dtype).map_or(0, |(number, _)| *number)
}

/// A position in the file from which numbers are read in sequence.
struct Cursor<'a> {
    file: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    /// The range of the next `length` bytes.
    fn take(&mut self, length: usize, what: &str) -> Result<Range<usize>, String> {
        let end = self.at.checked_add(length).filter(|&end| end <= self.file.len());
        let end = end.ok_or_else(|| {
            let (at, has) = (self.at, self.file.len());
            format!(
                "{what} at byte {at} needs {length} bytes, but the file has {has}: it is cut off or damaged"
            )
        })?;
        let range = self.at..end;
        self.at = end;
        Ok(range)
    }

    fn u64(&mut self, what: &str) -> Result<u64, String> {
        let range = self.take(8, what)?;
        let bytes = self.file[range].first_chunk().copied().unwrap_or_default();
        Ok(u64::from_le_bytes(bytes))
    }

    /// Reads a number that must be a valid length on this machine.
    fn length(&mut self, what: &str) -> Result<usize, String> {
        let at = self.at;
        let value = self.u64(what)?;
        usize::try_from(value).map_err(|_| format!("{what} at byte {at} is {value}, which no file has"))
    }
}

struct Header {
    name_length: usize,
    kind: u64,
    dimensions: usize,
    data_length: usize,
}

/// Reads the items of a file and checks that all lie inside it.
pub(super) fn read(file: &[u8]) -> Result<Vec<Entry>, String> {
    let mut cursor = Cursor { file, at: 0 };
    let version = cursor.u64("the version")?;
    if version != VERSION {
        return Err(format!("version {version} of Marian's .bin file; version {VERSION} can be read"));
    }
    let count = cursor.length("the number of items")?;
    let left = file.len() - cursor.at;
    if count > left / HEADER {
        return Err(format!("says that it has {count} items, but has {left} bytes for all of them"));
    }
    let headers: Vec<Header> = (0..count)
        .map(|_| {
            Ok(Header {
                name_length: cursor.length("the length of a name")?,
                kind: cursor.u64("a type")?,
                dimensions: cursor.length("a number of dimensions")?,
                data_length: cursor.length("a length of data")?,
            })
        })
        .collect::<Result<_, String>>()?;
    let mut seen = HashSet::new();
    let mut names = Vec::new();
    for header in &headers {
        let at = cursor.at;
        let name = name(&file[cursor.take(header.name_length, "a name")?], at)?;
        if !seen.insert(name) {
            return Err(format!("item {name} is there twice"));
        }
        names.push(name);
    }
    let mut shapes = Vec::new();
    for (header, name) in headers.iter().zip(&names) {
        let what = format!("the shape of item {name}");
        let length = header.dimensions.saturating_mul(4);
        let range = cursor.take(length, &what)?;
        shapes.push(shape(&file[range.clone()]).ok_or_else(|| {
            format!("{what} at byte {} has a dimension below 1 or more than 8 of them", range.start)
        })?);
    }
    let gap = cursor.length("the gap before the data")?;
    cursor.take(gap, "the gap before the data")?;
    let items = headers.iter().zip(names).zip(shapes);
    items.map(|((header, name), shape)| entry(&mut cursor, header, name, shape)).collect()
}

/// The name, which must end with its only NUL.
fn name(bytes: &[u8], at: usize) -> Result<&str, String> {
    let name = match bytes.split_last() {
        Some((0, name)) if !name.is_empty() && !name.contains(&0) => std::str::from_utf8(name).ok(),
        _ => None,
    };
    name.ok_or_else(|| format!("the name at byte {at} is not text that ends with a NUL"))
}

fn shape(bytes: &[u8]) -> Option<Vec<usize>> {
    let (numbers, _) = bytes.as_chunks::<4>();
    if numbers.len() > MAX_DIMENSIONS {
        return None;
    }
    let positive = |number: &[u8; 4]| usize::try_from(i32::from_le_bytes(*number)).ok().filter(|&n| n > 0);
    numbers.iter().map(positive).collect()
}

/// The next item in the data.
fn entry(cursor: &mut Cursor<'_>, header: &Header, name: &str, shape: Vec<usize>) -> Result<Entry, String> {
    let at = cursor.at;
    let Some(&(_, dtype)) = TYPES.iter().find(|(number, _)| *number == header.kind) else {
        let known = REFUSED.iter().find(|(number, _)| *number == header.kind).map(|(_, name)| *name);
        let found = known.map_or_else(|| format!("{:#x}", header.kind), str::to_owned);
        return Err(format!(
            "item {name} at byte {at} is of type {found}; float32, float16, int8 and intgemm8 can be read"
        ));
    };
    let range = cursor.take(header.data_length, &format!("the data of item {name}"))?;
    let too_many = || format!("item {name} at byte {at} has the impossible shape {shape:?}");
    let needed = elements(&shape).and_then(|n| data_bytes(dtype, n)).ok_or_else(too_many)?;
    let padded = needed.checked_next_multiple_of(ALIGNMENT).ok_or_else(too_many)?;
    if range.len() < needed || range.len() > padded {
        return Err(format!(
            "item {name} at byte {at} of type {} and shape {shape:?} has {} bytes, but {needed} are expected",
            type_name(dtype),
            range.len()
        ));
    }
    let entry = Entry { name: name.to_owned(), shape, dtype, range: at..at + needed, inflated: false };
    check_entry(&entry, cursor.file)?;
    Ok(entry)
}
