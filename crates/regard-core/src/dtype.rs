//! The number formats of tensors: in files, in memory, and in matmuls.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// A number format.
///
/// Weights are stored as one of [`DType::WEIGHTS`]. Decoding multiplies in `F32` or `Int8`,
/// training in `F32` or `Bf16`. The others occur in files of other programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// 32 bits: the weights exactly as trained.
    #[default]
    F32,
    /// 16 bits with the range of `F32` and 8 bits of precision.
    Bf16,
    /// 16 bits with 11 bits of precision, up to 65504.
    F16,
    /// 8 bits for the matrices, with a scale for each row, and `F32` for the vectors.
    Int8,
    /// 64 bits.
    F64,
    /// 8 bits with a 4-bit exponent.
    F8E4M3,
    /// 8 bits with a 5-bit exponent.
    F8E5M2,
    /// A complex number: two `F32`.
    C64,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// A byte: 0 or 1.
    Bool,
}

/// Each format, its name in settings, its code in a safetensors header, and its size in bytes.
const TABLE: [(DType, &str, &str, usize); 16] = [
    (DType::F32, "f32", "F32", 4),
    (DType::Bf16, "bf16", "BF16", 2),
    (DType::F16, "f16", "F16", 2),
    (DType::Int8, "int8", "I8", 1),
    (DType::F64, "f64", "F64", 8),
    (DType::F8E4M3, "f8_e4m3", "F8_E4M3", 1),
    (DType::F8E5M2, "f8_e5m2", "F8_E5M2", 1),
    (DType::C64, "c64", "C64", 8),
    (DType::I16, "int16", "I16", 2),
    (DType::I32, "int32", "I32", 4),
    (DType::I64, "int64", "I64", 8),
    (DType::U8, "uint8", "U8", 1),
    (DType::U16, "uint16", "U16", 2),
    (DType::U32, "uint32", "U32", 4),
    (DType::U64, "uint64", "U64", 8),
    (DType::Bool, "bool", "BOOL", 1),
];

impl DType {
    /// The formats in which the weights of a model can be stored.
    pub const WEIGHTS: [DType; 4] = [DType::F32, DType::Bf16, DType::F16, DType::Int8];

    fn row(self) -> &'static (DType, &'static str, &'static str, usize) {
        // The table has the variants in the order of their declaration; a test checks this.
        &TABLE[self as usize]
    }

    /// Its name in settings and on the command line.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Its code in a safetensors header.
    pub(crate) fn code(self) -> &'static str {
        self.row().2
    }

    /// The format with this code in a safetensors header.
    pub(crate) fn from_code(code: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.2 == code).map(|row| row.0)
    }

    /// The size of one element in bytes.
    pub fn bytes(self) -> usize {
        self.row().3
    }

    /// The format in which decoding multiplies weights stored like this: `Int8` stays `Int8`, all
    /// others become `F32`.
    pub fn for_decoding(self) -> Self {
        if self == DType::Int8 { DType::Int8 } else { DType::F32 }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = TABLE.iter().find(|row| row.1 == name).map(|row| row.0);
        found.ok_or_else(|| {
            let known = Self::WEIGHTS.map(Self::name).join(", ");
            format!("{name:?} is not a number format; {known} are possible")
        })
    }
}

impl Serialize for DType {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for DType {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_variants_and_names_are_read_back() {
        for (i, (dtype, name, code, bytes)) in TABLE.into_iter().enumerate() {
            assert_eq!(dtype as usize, i, "{dtype:?}");
            assert_eq!((dtype.name(), dtype.code(), dtype.bytes()), (name, code, bytes));
            assert_eq!((name.parse(), DType::from_code(code)), (Ok(dtype), Some(dtype)));
        }
        assert_eq!(
            "fp32".parse::<DType>().unwrap_err(),
            "\"fp32\" is not a number format; f32, bf16, f16, int8 are possible"
        );
        assert_eq!(DType::from_code("f32"), None);
    }

    #[test]
    fn settings_hold_the_name() {
        assert_eq!(serde_json::to_string(&DType::Bf16).unwrap(), "\"bf16\"");
        assert_eq!(serde_json::from_str::<DType>("\"int8\"").unwrap(), DType::Int8);
        assert!(
            serde_json::from_str::<DType>("\"half\"").unwrap_err().to_string().contains("\"half\" is no")
        );
    }
}
