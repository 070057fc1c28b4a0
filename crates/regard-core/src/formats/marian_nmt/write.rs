//! Writers of `.bin` and `.npz` files.

use super::bin::{ALIGNMENT, HEADER, VERSION, number_of};
use super::items::{Int8Matrix, is_embedding};
use crate::DType;
use flate2::Crc;
use std::io::{self, Write};

/// An item to write.
#[derive(Clone, Debug, PartialEq)]
pub struct NewItem {
    /// Its name.
    pub name: String,
    /// Its data.
    pub data: NewData,
}

/// The data of an item.
#[derive(Clone, Debug, PartialEq)]
pub enum NewData {
    /// Values in rows of this shape.
    F32(Vec<usize>, Vec<f32>),
    /// A matrix of integers, with a row for each output or word. `.npz` files cannot hold it.
    Int8(Int8Matrix),
    /// Text; the writer appends the NUL.
    Text(String),
}

impl NewItem {
    /// An item of values in rows of this shape.
    pub fn floats(name: &str, shape: &[usize], values: Vec<f32>) -> Self {
        NewItem { name: name.to_owned(), data: NewData::F32(shape.to_vec(), values) }
    }

    fn dtype(&self) -> DType {
        match self.data {
            NewData::F32(..) => DType::F32,
            NewData::Int8(_) => DType::Int8,
            NewData::Text(_) => DType::U8,
        }
    }

    /// The declared shape: that of the matrix before it was transposed, except for embeddings.
    fn shape(&self) -> Vec<usize> {
        match &self.data {
            NewData::F32(shape, _) => shape.clone(),
            NewData::Int8(Int8Matrix { rows, columns, .. }) if is_embedding(&self.name) => {
                vec![*rows, *columns]
            }
            NewData::Int8(Int8Matrix { rows, columns, .. }) => vec![*columns, *rows],
            NewData::Text(text) => vec![text.len() + 1],
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match &self.data {
            NewData::F32(_, values) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            NewData::Int8(matrix) => {
                let values = matrix.values.iter().map(|value| value.cast_unsigned());
                values.chain(matrix.multiplier.to_le_bytes()).collect()
            }
            NewData::Text(text) => text.bytes().chain([0]).collect(),
        }
    }
}

/// Writes a `.bin` file. Numeric data is padded to multiples of 256 bytes, so that engines can map
/// the file.
pub fn write_bin(items: &[NewItem], to: &mut impl Write) -> io::Result<()> {
    let padded = |item: &NewItem| {
        let mut bytes = item.bytes();
        if item.dtype() != DType::U8 {
            bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        }
        bytes
    };
    let number = |to: &mut dyn Write, value: usize| to.write_all(&(value as u64).to_le_bytes());
    to.write_all(&VERSION.to_le_bytes())?;
    number(to, items.len())?;
    let mut written = 16 + HEADER * items.len();
    for item in items {
        let length = match item.dtype() {
            DType::U8 => item.bytes().len(),
            _ => item.bytes().len().next_multiple_of(ALIGNMENT),
        };
        number(to, item.name.len() + 1)?;
        to.write_all(&number_of(item.dtype()).to_le_bytes())?;
        number(to, item.shape().len())?;
        number(to, length)?;
    }
    for item in items {
        to.write_all(item.name.as_bytes())?;
        to.write_all(&[0])?;
        written += item.name.len() + 1;
    }
    for item in items {
        for n in item.shape() {
            let n = i32::try_from(n).map_err(|_| unwritable(item, "has a dimension past 31 bits"))?;
            to.write_all(&n.to_le_bytes())?;
            written += 4;
        }
    }
    // Marian always leaves a gap, of a whole block if necessary.
    let gap = ((written + 8) / ALIGNMENT + 1) * ALIGNMENT - written - 8;
    number(to, gap)?;
    to.write_all(&vec![0; gap])?;
    items.iter().try_for_each(|item| to.write_all(&padded(item)))
}

fn unwritable(item: &NewItem, problem: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("item {} {problem}", item.name))
}

/// Writes a `.npz` file with uncompressed members, as Marian does.
pub fn write_npz(items: &[NewItem], to: &mut impl Write) -> io::Result<()> {
    let mut directory = Vec::new();
    let mut offset = 0;
    for item in items {
        let member = npy(item)?;
        let mut crc = Crc::new();
        crc.update(&member);
        let name = format!("{}.npy", item.name);
        let size = u32::try_from(member.len()).map_err(|_| unwritable(item, "is larger than 4 GB"))?;
        let header = common_header(crc.sum(), size, &name);
        let start = u32::try_from(offset).map_err(|_| unwritable(item, "lies past 4 GB"))?;
        to.write_all(b"PK\x03\x04")?;
        to.write_all(&header)?;
        to.write_all(name.as_bytes())?;
        to.write_all(&member)?;
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(header);
        // No comment, disk 0, no attributes.
        directory.extend([0; 10]);
        directory.extend(start.to_le_bytes());
        directory.extend(name.as_bytes());
        offset += 4 + header.len() + name.len() + member.len();
    }
    let too_large = |_| io::Error::new(io::ErrorKind::InvalidInput, "the archive is larger than 4 GB");
    let count = u16::try_from(items.len()).map_err(too_large)?;
    let (size, start) =
        (u32::try_from(directory.len()).map_err(too_large)?, u32::try_from(offset).map_err(too_large)?);
    to.write_all(&directory)?;
    to.write_all(b"PK\x05\x06\0\0\0\0")?;
    to.write_all(&count.to_le_bytes())?;
    to.write_all(&count.to_le_bytes())?;
    to.write_all(&size.to_le_bytes())?;
    to.write_all(&start.to_le_bytes())?;
    to.write_all(&[0, 0])
}

/// The fields that the header of a member and its directory entry have in common.
fn common_header(crc: u32, size: u32, name: &str) -> [u8; 26] {
    let mut header = [0; 26];
    // Version 2.0, stored, dated the first day of 1980.
    header[0] = 20;
    header[8] = 0x21;
    header[10..14].copy_from_slice(&crc.to_le_bytes());
    header[14..18].copy_from_slice(&size.to_le_bytes());
    header[18..22].copy_from_slice(&size.to_le_bytes());
    header[22..24].copy_from_slice(&(name.len() as u16).to_le_bytes());
    header
}

/// An array with NumPy's header, which ends at a multiple of 16 bytes.
fn npy(item: &NewItem) -> io::Result<Vec<u8>> {
    let descr = match item.dtype() {
        DType::F32 => "<f4",
        DType::U8 => "|i1",
        _ => return Err(unwritable(item, "is a matrix of integers, which .npz files do not have")),
    };
    let shape: String = item.shape().iter().map(|n| format!("{n}, ")).collect();
    let shape = if item.shape().len() == 1 { shape.trim_end() } else { shape.trim_end_matches(", ") };
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    let length = (10 + header.len() + 1).next_multiple_of(16) - 10;
    let short = u16::try_from(length).map_err(|_| unwritable(item, "has too many dimensions"))?;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(short.to_le_bytes());
    bytes.extend(format!("{header:<width$}\n", width = length - 1).bytes());
    bytes.extend(item.bytes());
    Ok(bytes)
}
