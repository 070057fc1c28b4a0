//! Marian's `.npz` files: a zip archive of NumPy arrays, each `NAME.npy`, with the options as an
//! array of bytes.
//!
//! Marian stores its members uncompressed; `numpy.savez_compressed` deflates them. A deflated
//! member may unpack to the size in the directory, and all of them together to the limit for any
//! compressed file with the size of the archive on disk. Every member's checksum is verified.

use super::items::{Entry, ParsedItems, data_bytes, elements, type_name};
use crate::DType;
use crate::formats::tensor::MAX_DIMENSIONS;
use crate::formats::zip::{self, Packing, check_crc, inflate};
use std::collections::HashSet;

/// The extension of a member.
const ENDING: &str = ".npy";
const MAGIC: &[u8] = b"\x93NUMPY";

/// The arrays of a file, checked to lie in it or inflated, to at most `most` bytes together.
pub(super) fn read(file: &[u8], most: u64) -> Result<ParsedItems, String> {
    let mut parsed = ParsedItems { entries: Vec::new(), inflated: Vec::new() };
    let mut seen = HashSet::new();
    for member in zip::members(file)? {
        let name = member.name.strip_suffix(ENDING).unwrap_or(member.name);
        if name.is_empty() || !seen.insert(name) {
            return Err(format!("the archive has two items called {name:?}, or one without a name"));
        }
        let at = member.range.start;
        let wrong = |problem: String| format!("item {name} at byte {at} {problem}");
        let (start, bytes) = match member.packing {
            Packing::Stored => (at, &file[member.range.clone()]),
            Packing::Deflated => {
                let start = parsed.inflated.len();
                inflate(file, &member, most, &mut parsed.inflated).map_err(wrong)?;
                (start, &parsed.inflated[start..])
            }
            Packing::Uneven => return Err(wrong(zip::UNEVEN.into())),
            Packing::Unknown => {
                return Err(wrong("is encrypted, or compressed other than by deflate".into()));
            }
        };
        let (dtype, shape, data) = array(bytes).map_err(wrong)?;
        check_crc(bytes, member.crc).map_err(wrong)?;
        let (name, range) = (name.to_owned(), start + data..start + bytes.len());
        let inflated = member.packing == Packing::Deflated;
        parsed.entries.push(Entry { name, shape, dtype, range, inflated });
    }
    Ok(parsed)
}

/// The type and shape of a `.npy` array, and the offset of its data.
fn array(bytes: &[u8]) -> Result<(DType, Vec<usize>, usize), String> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("is not a NumPy array")?;
    let cut = "is cut off in its header";
    let (length, before) = match rest {
        [1, _, a, b, ..] => (usize::from(u16::from_le_bytes([*a, *b])), 10),
        [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, 12),
        [version, ..] => return Err(format!("is a NumPy array of version {version}; 1 to 3 can be read")),
        [] => return Err(cut.into()),
    };
    let data = length.checked_add(before).filter(|&data| data <= bytes.len()).ok_or(cut)?;
    let header = std::str::from_utf8(&bytes[before..data]).map_err(|_| "has a header that is not text")?;
    let (dtype, shape) = describe(header)?;
    let needed = elements(&shape).and_then(|n| data_bytes(dtype, n));
    if needed != Some(bytes.len() - data) {
        let (name, has) = (type_name(dtype), bytes.len() - data);
        return Err(format!("of type {name} and shape {shape:?} has {has} bytes of data"));
    }
    // A vector is a row, as in Marian.
    let shape = if let [n] = shape[..]
        && dtype != DType::U8
    {
        vec![1, n]
    } else {
        shape
    };
    Ok((dtype, shape, data))
}

/// Parses the type and shape in `{'descr': '<f4', 'fortran_order': False, 'shape': (32, 16), }`.
fn describe(header: &str) -> Result<(DType, Vec<usize>), String> {
    let after = |key: &str| {
        let (_, rest) = header.split_once(&format!("'{key}'"))?;
        Some(rest.trim_start().strip_prefix(':')?.trim_start())
    };
    let missing = |key: &str| format!("has a header without {key}");
    let descr = after("descr").and_then(|rest| rest.strip_prefix('\'')?.split('\'').next());
    let dtype = match descr.ok_or_else(|| missing("descr"))? {
        "<f4" => DType::F32,
        "<f2" => DType::F16,
        "|i1" | "<i1" | "|u1" | "<u1" => DType::U8,
        other => return Err(format!("is of type {other:?}; <f4, <f2 and |i1 can be read")),
    };
    if !after("fortran_order").ok_or_else(|| missing("fortran_order"))?.starts_with("False") {
        return Err("is in Fortran's order; rows end to end are expected".into());
    }
    let shape = after("shape").and_then(|rest| rest.strip_prefix('(')?.split_once(')'));
    let (shape, _) = shape.ok_or_else(|| missing("shape"))?;
    let numbers = shape.split(',').map(str::trim).filter(|part| !part.is_empty());
    let numbers: Option<Vec<usize>> =
        numbers.map(|part| part.parse().ok().filter(|&n| n > 0)).take(MAX_DIMENSIONS + 1).collect();
    match numbers {
        Some(shape) if shape.len() <= MAX_DIMENSIONS => Ok((dtype, shape)),
        _ => Err(format!("has the shape ({shape}), with a dimension below 1 or more than 8 of them")),
    }
}
