//! The safetensors format: eight bytes of header length, a JSON header, then the data.
//!
//! The reader is our own because the `safetensors` crate (0.7) adds the offsets of a hostile header
//! without a check and does not say which tensor is wrong. No allocation depends on a number that
//! the file merely claims.

use super::tensor::MAX_DIMENSIONS;
use super::weights::{Entry, Tensors};
use crate::replace::replace;
use crate::{DType, Error, Result};
use half::f16;
use regard_kernels::{bf16, quantize_rows};
use serde::Deserialize as DeriveDeserialize;
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::io::Write;
use std::path::Path;

/// The maximum length of a header, as in every other reader of the format.
const MAX_HEADER_BYTES: u64 = 100_000_000;
/// Reads the tensors of a file and checks that all lie inside it.
pub(super) fn read(file: &[u8]) -> std::result::Result<Tensors, String> {
    let size = file.len();
    let Some((length, rest)) = file.split_first_chunk::<8>() else {
        return Err(format!("{size} bytes are too few for a safetensors file"));
    };
    let length = u64::from_le_bytes(*length);
    if length > MAX_HEADER_BYTES || length > rest.len() as u64 {
        return Err(format!(
            "the header should be {length} bytes long, but the file has {size}: it is cut off or not safetensors"
        ));
    }
    let (header, data) = rest.split_at(length as usize);
    let RawHeader(raw) = serde_json::from_slice(header)
        .map_err(|e| format!("the header of the safetensors file cannot be read: {e}"))?;
    let mut order = Vec::with_capacity(raw.len());
    for (name, info) in &raw {
        order.push((info.check(name)?, name));
    }
    order.sort();
    let mut end = 0;
    for ((from, to), name) in &order {
        if *from != end {
            let problem = if *from < end { "overlaps another" } else { "leaves a gap before it" };
            return Err(format!("tensor {name} at bytes {from} to {to} {problem}: byte {end} comes next"));
        }
        end = *to;
    }
    if end != data.len() as u64 {
        return Err(format!(
            "the tensors take {end} bytes, but the file has {} for them: it is cut off or damaged",
            data.len()
        ));
    }
    // Every offset is at most `end`, which is a length in memory.
    let place = |offset: u64| 8 + length as usize + offset as usize;
    let entry = |info: RawInfo| Entry {
        dtype: info.dtype,
        shape: info.shape,
        strides: None,
        range: place(info.offsets[0])..place(info.offsets[1]),
    };
    let mut tensors = Tensors::with_capacity(raw.len());
    for (name, info) in raw {
        if let Some((name, _)) = tensors.get_key_value(&name) {
            return Err(format!("tensor {name} is there twice"));
        }
        tensors.insert(name, entry(info));
    }
    Ok(tensors)
}

/// A header as read; nothing in it is trusted yet.
struct RawHeader(Vec<(String, RawInfo)>);

#[derive(DeriveDeserialize)]
struct RawInfo {
    #[serde(deserialize_with = "dtype")]
    dtype: DType,
    #[serde(deserialize_with = "shape")]
    shape: Vec<usize>,
    #[serde(rename = "data_offsets")]
    offsets: [u64; 2],
}

impl RawInfo {
    /// The first byte and the end, if the distance matches type and shape.
    fn check(&self, name: &str) -> std::result::Result<(u64, u64), String> {
        let RawInfo { dtype, shape, offsets: [from, to] } = self;
        if name.is_empty() {
            return Err("a tensor has no name".into());
        }
        let needed = shape.iter().try_fold(dtype.bytes(), |product, &n| product.checked_mul(n));
        match (needed, to.checked_sub(*from)) {
            (None, _) => Err(format!("tensor {name} has the impossible shape {shape:?}")),
            (_, None) => Err(format!("tensor {name} ends at byte {to}, before it begins at {from}")),
            (Some(needed), Some(has)) if needed as u64 != has => {
                let code = dtype.code();
                Err(format!("tensor {name} of shape {shape:?} needs {needed} bytes of {code}, but has {has}"))
            }
            _ => Ok((*from, *to)),
        }
    }
}

fn dtype<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<DType, D::Error> {
    let code = String::deserialize(from)?;
    DType::from_code(&code).ok_or_else(|| D::Error::custom(format!("unknown type {code:?}")))
}

fn shape<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Vec<usize>, D::Error> {
    struct Dimensions;
    impl<'de> Visitor<'de> for Dimensions {
        type Value = Vec<usize>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a shape of at most {MAX_DIMENSIONS} dimensions")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Vec<usize>, A::Error> {
            let mut shape = Vec::new();
            while let Some(n) = seq.next_element()? {
                if shape.len() == MAX_DIMENSIONS {
                    return Err(A::Error::invalid_length(MAX_DIMENSIONS + 1, &self));
                }
                shape.push(n);
            }
            Ok(shape)
        }
    }
    from.deserialize_seq(Dimensions)
}

impl<'de> Deserialize<'de> for RawHeader {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct Tensors;
        impl<'de> Visitor<'de> for Tensors {
            type Value = RawHeader;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<RawHeader, A::Error> {
                let mut tensors = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        let info =
                            map.next_value().map_err(|e| A::Error::custom(format!("tensor {name}: {e}")))?;
                        tensors.push((name, info));
                    }
                }
                Ok(RawHeader(tensors))
            }
        }
        from.deserialize_map(Tensors)
    }
}

/// A tensor to write.
pub(crate) struct Writable<'a> {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: &'a [f32],
    /// Whether it is quantized in [`DType::Int8`].
    pub(crate) matrix: bool,
}

/// The suffix of the name of a tensor of scales; the rest is the name of the tensor whose rows they
/// scale.
pub(crate) const SCALE: &str = ".scale";

/// The values of a tensor as stored in the file.
enum Stored<'a> {
    Floats(Cow<'a, [f32]>),
    Bytes(Vec<i8>),
}

/// Writes the file; rejects values that are not finite, or would not be in that format.
pub(crate) fn write(path: &Path, tensors: &[Writable<'_>], dtype: DType) -> Result<()> {
    if !DType::WEIGHTS.contains(&dtype) {
        let known = DType::WEIGHTS.map(DType::name).join(", ");
        return Err(Error::config(
            "dtype",
            format!("weights are not stored in {dtype}; {known} are possible"),
        ));
    }
    let mut stored: Vec<(String, Vec<usize>, Stored<'_>)> = Vec::with_capacity(tensors.len());
    for Writable { name, shape, values, matrix } in tensors {
        check(name, values, dtype).map_err(|message| Error::file(path, message))?;
        if dtype == DType::Int8 && *matrix {
            let (bytes, scales) = quantize_rows(values, shape.last().copied().unwrap_or(1));
            stored.push((name.clone(), shape.clone(), Stored::Bytes(bytes)));
            stored.push((format!("{name}{SCALE}"), vec![scales.len()], Stored::Floats(scales.into())));
        } else {
            stored.push((name.clone(), shape.clone(), Stored::Floats(Cow::Borrowed(values))));
        }
    }
    let floats = if dtype == DType::Int8 { DType::F32 } else { dtype };
    let (mut header, mut at) = (serde_json::Map::new(), 0);
    // `transformers` requires the name of the library whose conventions the tensors follow.
    header.insert("__metadata__".into(), serde_json::json!({"format": "pt"}));
    for (name, shape, values) in &stored {
        let (code, bytes) = match values {
            Stored::Floats(values) => (floats.code(), values.len() * floats.bytes()),
            Stored::Bytes(values) => (DType::Int8.code(), values.len()),
        };
        let entry = serde_json::json!({"dtype": code, "shape": shape, "data_offsets": [at, at + bytes]});
        header.insert(name.clone(), entry);
        at += bytes;
    }
    let mut header = serde_json::Value::Object(header).to_string();
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
    replace(path, |to| {
        to.write_all(&(header.len() as u64).to_le_bytes())?;
        to.write_all(header.as_bytes())?;
        for (_, _, values) in &stored {
            match values {
                Stored::Floats(values) => write_floats(to, values, floats)?,
                Stored::Bytes(values) => values.iter().try_for_each(|x| to.write_all(&x.to_le_bytes()))?,
            }
        }
        Ok(())
    })
}

/// What is wrong with the values of a tensor in that format.
fn check(name: &str, values: &[f32], dtype: DType) -> std::result::Result<(), String> {
    let Some(i) = values.iter().position(|x| !stored(*x, dtype).is_finite()) else { return Ok(()) };
    Err(if values[i].is_finite() {
        format!(
            "tensor {name} holds {}, which is too large for {}; use {}",
            values[i],
            dtype.name(),
            if dtype == DType::F16 { "bf16 or f32" } else { "f32" }
        )
    } else {
        format!("tensor {name} holds {} at {i}: a model like this is not saved", values[i])
    })
}

/// The value of `x` after it is stored.
fn stored(x: f32, dtype: DType) -> f32 {
    match dtype {
        DType::Bf16 => bf16::to_f32(bf16::from_f32(x)),
        DType::F16 => f16::from_f32(x).to_f32(),
        _ => x,
    }
}

fn write_floats(to: &mut dyn Write, values: &[f32], dtype: DType) -> std::io::Result<()> {
    values.iter().try_for_each(|x| match dtype {
        DType::Bf16 => to.write_all(&bf16::from_f32(*x).to_le_bytes()),
        DType::F16 => to.write_all(&f16::from_f32(*x).to_le_bytes()),
        _ => to.write_all(&x.to_le_bytes()),
    })
}

#[cfg(test)]
mod tests;
