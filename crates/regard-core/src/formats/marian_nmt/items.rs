//! The named arrays of a model file, in either format.

use super::{MarianOptions, bin, npz};
use crate::formats::compressed::FileBytes;
use crate::{DType, Error, Result};
use half::f16;
use regard_kernels::mapped::{Int8Values, Mapped};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The item that holds the options.
pub const OPTIONS: &str = "special:model.yml";
/// The suffix of the name of a matrix's input multiplier.
const INPUT_MULTIPLIER: &str = "_QuantMultA";
/// The name that the engine uses for the transposed output matrix.
const UNNAMED: &str = "none";
/// The prefix of the name of an untied output matrix.
const OUTPUT: &str = "decoder_ff_logit_out_W";
/// The names of embeddings contain this; they are the only 8-bit matrices that are not stored
/// transposed.
const EMBEDDING: &str = "Wemb";

/// The size of an item with this many elements in bytes, without padding. A matrix of 8-bit
/// integers, `intgemm8`, ends with its multiplier.
pub(super) fn data_bytes(dtype: DType, elements: usize) -> Option<usize> {
    match dtype {
        DType::Int8 => elements.checked_add(4),
        _ => elements.checked_mul(dtype.bytes()),
    }
}

/// Marian's name of a type. Its `int8` items are the bytes of a text.
pub(super) fn type_name(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "float32",
        DType::F16 => "float16",
        DType::U8 => "int8",
        DType::Int8 => "intgemm8",
        other => other.name(),
    }
}

/// The product of a shape's dimensions.
pub(super) fn elements(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |product, &n| product.checked_mul(n))
}

/// Whether an 8-bit item is stored in its declared shape.
pub(super) fn is_embedding(name: &str) -> bool {
    name.contains(EMBEDDING)
}

/// The location of an item.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    pub(super) dtype: DType,
    /// Its data without padding, checked to lie in the file or in the inflated data.
    pub(super) range: Range<usize>,
    pub(super) inflated: bool,
}

/// Checks that an 8-bit item is a matrix with a valid multiplier.
pub(super) fn check_entry(entry: &Entry, bytes: &[u8]) -> std::result::Result<(), String> {
    let Entry { name, shape, dtype, range, .. } = entry;
    if *dtype != DType::Int8 {
        return Ok(());
    }
    let at = range.start;
    if shape.len() != 2 {
        return Err(format!(
            "item {name} at byte {at} is of type {}, but its shape {shape:?} is no matrix",
            type_name(*dtype)
        ));
    }
    let multiplier = bytes.get(range.clone()).and_then(multiplier);
    match multiplier {
        Some(x) if x.is_finite() && x > 0.0 => Ok(()),
        Some(x) => {
            Err(format!("item {name} at byte {at} has the multiplier {x}; a positive number is expected"))
        }
        None => Err(format!("item {name} at byte {at} is cut off")),
    }
}

/// The multiplier after the data of an 8-bit matrix.
fn multiplier(data: &[u8]) -> Option<f32> {
    data.last_chunk().map(|bytes| f32::from_le_bytes(*bytes))
}

/// The items of a `.bin` or `.npz` file, in the file's order.
pub(super) struct ParsedItems {
    pub(super) entries: Vec<Entry>,
    /// The data of compressed members.
    pub(super) inflated: Vec<u8>,
}

/// Reads the bytes of a model file that is not compressed as a whole; its compressed parts may
/// unpack to `most` bytes.
pub(super) fn parse(file: &[u8], most: u64) -> std::result::Result<ParsedItems, String> {
    if file.starts_with(b"PK") {
        return npz::read(file, most);
    }
    match file.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)) {
        // Versions are small numbers, unlike the first bytes of other files.
        Some(0..=255) => Ok(ParsedItems { entries: bin::read(file)?, inflated: Vec::new() }),
        _ => Err(format!("{} bytes that are neither Marian's .bin nor .npz", file.len())),
    }
}

/// A model file in memory, all of whose items are checked to lie in it.
#[derive(Debug)]
pub struct ItemFile {
    path: PathBuf,
    bytes: FileBytes,
    inflated: Vec<u8>,
    entries: Vec<Entry>,
    places: HashMap<String, usize>,
}

impl ItemFile {
    /// Opens a `.bin` or `.npz` file, which may be compressed.
    pub fn open(path: &Path) -> Result<Self> {
        let bytes = FileBytes::open(path)?;
        let parsed = parse(bytes.bytes(), bytes.max_unpacked());
        let ParsedItems { entries, inflated } = parsed.map_err(|e| Error::file(path, e))?;
        let places = entries.iter().enumerate().map(|(i, entry)| (entry.name.clone(), i)).collect();
        Ok(ItemFile { path: path.to_path_buf(), bytes, inflated, entries, places })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The size of the file, unpacked.
    pub fn bytes(&self) -> usize {
        self.bytes.bytes().len()
    }

    /// All items in the file's order.
    pub fn items(&self) -> impl Iterator<Item = Item<'_>> {
        self.entries.iter().map(|entry| self.item(entry))
    }

    fn item<'a>(&'a self, entry: &'a Entry) -> Item<'a> {
        let Entry { name, shape, dtype, range, inflated } = entry;
        let bytes = if *inflated { &self.inflated } else { self.bytes.bytes() };
        // Checked when the file was opened.
        let data = bytes.get(range.clone()).unwrap_or_default();
        let file = match &self.bytes {
            FileBytes::Mapped(file) if !inflated => Some(file),
            _ => None,
        };
        Item { path: &self.path, name, shape, dtype: *dtype, offset: range.start, data, file }
    }

    /// Lets the system reclaim the memory of all items except some, until they are read again.
    pub(super) fn release(&self, keep: impl Fn(&Item<'_>) -> bool) {
        let FileBytes::Mapped(file) = &self.bytes else { return };
        for item in self.items().filter(|item| item.file.is_some() && !keep(item)) {
            file.release(item.offset..item.offset + item.data.len());
        }
    }

    /// The item with this name.
    pub fn get(&self, name: &str) -> Option<Item<'_>> {
        self.places.get(name).map(|&i| self.item(&self.entries[i]))
    }

    /// The item with this name, which is required.
    pub fn need(&self, name: &str) -> Result<Item<'_>> {
        self.get(name).ok_or_else(|| Error::file(&self.path, format!("item {name} is missing")))
    }

    /// The options of the model.
    pub fn options(&self) -> Result<MarianOptions> {
        let text = self.need(OPTIONS)?.text()?;
        MarianOptions::parse(text).map_err(|message| Error::file(&self.path, format!("{OPTIONS}: {message}")))
    }

    /// The fixed multiplier of the inputs of a matrix, if the file has one (`alphas`). The output
    /// matrix, tied or not, has two names.
    pub fn input_multiplier(&self, matrix: &str) -> Result<Option<f32>> {
        let own = format!("{matrix}{INPUT_MULTIPLIER}");
        let unnamed = format!("{UNNAMED}{INPUT_MULTIPLIER}");
        let is_output = is_embedding(matrix) || matrix.starts_with(OUTPUT);
        let unnamed = is_output.then(|| self.get(&unnamed)).flatten();
        let Some(item) = unnamed.or_else(|| self.get(&own)) else { return Ok(None) };
        match item.floats()?[..] {
            [x] if x > 0.0 => Ok(Some(x)),
            ref other => Err(item.wrong(format!("is {other:?}; one positive number is expected"))),
        }
    }
}

/// One item of a model file.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    path: &'a Path,
    /// Its name.
    pub name: &'a str,
    /// Its shape; for an 8-bit matrix that is stored transposed, the shape before.
    pub shape: &'a [usize],
    /// The format of its data: `F32`, `F16`, `Int8` with a multiplier, or `U8`, the bytes of a
    /// text.
    pub dtype: DType,
    /// The offset of its data in bytes, in the unpacked file (or in the inflated members of an
    /// archive).
    pub offset: usize,
    data: &'a [u8],
    /// The file, if it is mapped and contains the data.
    file: Option<&'a Arc<Mapped>>,
}

impl<'a> Item<'a> {
    /// An error about this item.
    pub fn wrong(&self, problem: impl fmt::Display) -> Error {
        Error::file(self.path, format!("item {} at byte {} {problem}", self.name, self.offset))
    }

    /// Its text.
    pub fn text(&self) -> Result<&'a str> {
        if self.dtype != DType::U8 {
            return Err(self.wrong(format!("is of type {}; text is expected", type_name(self.dtype))));
        }
        let end = self.data.iter().position(|&byte| byte == 0).unwrap_or(self.data.len());
        std::str::from_utf8(&self.data[..end]).map_err(|_| self.wrong("is not UTF-8 text"))
    }

    /// Its values in rows of the declared shape; 8-bit ones divided by their multiplier.
    pub fn floats(&self) -> Result<Vec<f32>> {
        let floats: Vec<f32> = match self.dtype {
            DType::F32 => self.data.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            DType::F16 => self.data.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect(),
            DType::Int8 => {
                let matrix = self.int8()?;
                // Multiply by the reciprocal, as Marian does.
                let step = 1.0 / matrix.multiplier;
                let value = |i: usize| f32::from(matrix.values[i]) * step;
                let (rows, columns) = (matrix.rows, matrix.columns);
                match is_embedding(self.name) {
                    true => (0..rows * columns).map(value).collect(),
                    false => (0..columns)
                        .flat_map(|c| (0..rows).map(move |r| r * columns + c))
                        .map(value)
                        .collect(),
                }
            }
            other => {
                return Err(self.wrong(format!("is of type {}; numbers are expected", type_name(other))));
            }
        };
        match floats.iter().position(|x| !x.is_finite()) {
            Some(at) => Err(self.wrong(format!("holds {} at {at}: these weights are damaged", floats[at]))),
            None => Ok(floats),
        }
    }

    /// Its integers as stored, with the multiplier.
    pub fn int8(&self) -> Result<Int8Matrix> {
        let mut values = Vec::new();
        let (rows, multiplier) = self.append_int8(&mut values)?;
        Ok(Int8Matrix { rows, columns: values.len() / rows, values, multiplier })
    }

    /// Appends its integers as stored. Returns the number of rows, and the multiplier.
    pub(super) fn append_int8(&self, to: &mut Vec<i8>) -> Result<(usize, f32)> {
        let found = self.check_int8()?;
        to.extend(self.data[..self.shape[0] * self.shape[1]].iter().map(|&byte| byte.cast_signed()));
        Ok(found)
    }

    /// The rows and the multiplier of a matrix of integers, after checking its values.
    pub(super) fn check_int8(&self) -> Result<(usize, f32)> {
        let (DType::Int8, &[first, second], Some(multiplier)) =
            (self.dtype, self.shape, multiplier(self.data))
        else {
            return Err(
                self.wrong(format!("is of type {}; an intgemm8 matrix is expected", type_name(self.dtype)))
            );
        };
        let (bytes, smallest) = (&self.data[..first * second], i8::MIN.cast_unsigned());
        if let Some(at) = memchr::memchr(smallest, bytes) {
            return Err(self.wrong(format!("holds -128 at {at}; integers from -127 to 127 are expected")));
        }
        Ok((if is_embedding(self.name) { first } else { second }, multiplier))
    }

    /// Its integers in the mapped file, if it is mapped; not checked.
    pub(super) fn mapped_int8(&self) -> Option<Int8Values> {
        let (DType::Int8, &[first, second]) = (self.dtype, self.shape) else { return None };
        let range = self.offset..self.offset + first * second;
        self.file.map(|file| Int8Values::Mapped(Arc::clone(file), range))
    }
}

/// A row-major matrix of 8-bit integers: a row for each output (or each word), a column for each
/// input. A weight is approximately its integer divided by the multiplier.
#[derive(Clone, Debug, PartialEq)]
pub struct Int8Matrix {
    /// The number of outputs or words.
    pub rows: usize,
    /// The number of inputs.
    pub columns: usize,
    /// From −127 to 127.
    pub values: Vec<i8>,
    /// The quantization multiplier of the weights.
    pub multiplier: f32,
}
