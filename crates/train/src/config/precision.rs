//! The number format of training's matmuls.

use regard_core::{DType, Error, Result};
use regard_kernels::{Gemm, Isa};

/// The formats for matmuls in training and for gradients exchanged between ranks.
pub(crate) const TRAINABLE: [DType; 2] = [DType::F32, DType::Bf16];

/// The environment variable that, set to `emulate`, makes every CPU count as one with bf16: bf16 is
/// emulated in software, slower than f32 and with the same rounding of the operands. For tests.
pub const BF16_VARIABLE: &str = "REGARD_BF16";

/// Chooses the number format of the matmuls: f32 or bf16, or the faster one if none is given.
/// Master weights, Adam, attention, softmax, normalisation, loss and all sums are always in f32.
///
/// The faster one is bf16 if [`Isa::bf16_is_faster`], and f32 otherwise. On Zen 4, bf16 trains base
/// at 1.8 times the speed of f32; on a Xeon with AVX-512 BF16 at 0.73 times, because one bf16
/// instruction per cycle does no more multiplications than two f32 ones, and the operands have to
/// be rounded.
pub fn choose_dtype(asked: Option<DType>, isa: Isa) -> Result<Choice> {
    let emulate = match std::env::var_os(BF16_VARIABLE) {
        None => false,
        Some(value) if value == "emulate" => true,
        Some(value) => {
            let message = format!("{} is unknown; emulate is possible", value.to_string_lossy());
            return Err(Error::config(BF16_VARIABLE, message));
        }
    };
    Ok(choose(asked, isa, emulate))
}

fn choose(asked: Option<DType>, isa: Isa, emulate: bool) -> Choice {
    let bf16 = if emulate { Some(Gemm::bf16_in_software(isa)) } else { Gemm::bf16(isa) };
    let asked = asked.or((isa.bf16_is_faster() && !emulate).then_some(DType::Bf16));
    match (asked, bf16) {
        (Some(DType::Bf16), Some(gemm)) => Choice { dtype: DType::Bf16, gemm, note: None },
        (asked, _) => {
            let note = (asked == Some(DType::Bf16)).then(|| {
                format!("precision bf16: {isa} on this CPU has no bf16 instructions (AVX-512 BF16 has); training in f32")
            });
            Choice { dtype: DType::F32, gemm: Gemm::f32(isa), note }
        }
    }
}

/// The result of [`choose_dtype`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// f32 or bf16.
    pub dtype: DType,
    /// The matching GEMM.
    pub gemm: Gemm,
    /// Why it differs from the setting, if it does.
    pub note: Option<String>,
}

/// The serialised form of the setting: `auto` if none is given.
pub(crate) mod auto {
    use super::{DType, TRAINABLE};
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(dtype: &Option<DType>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(dtype.map_or("auto", DType::name))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<DType>, D::Error> {
        let name = String::deserialize(from)?;
        if name == "auto" {
            return Ok(None);
        }
        let known = TRAINABLE.into_iter().find(|dtype| dtype.name() == name);
        known
            .map(Some)
            .ok_or_else(|| de::Error::custom(format!("{name:?} is unknown; auto, f32 and bf16 are possible")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_is_used_where_there_is_one_and_its_lack_is_told() {
        let (bf16, f32) = (Some(DType::Bf16), Some(DType::F32));
        let isa = Isa::PORTABLE;
        for (asked, emulate, dtype, name, told) in [
            (None, false, DType::F32, "f32", false),
            (bf16, false, DType::F32, "f32", true),
            (f32, false, DType::F32, "f32", false),
            (None, true, DType::F32, "f32", false),
            (bf16, true, DType::Bf16, "bf16 in software", false),
            (f32, true, DType::F32, "f32", false),
        ] {
            let choice = choose(asked, isa, emulate);
            assert_eq!((choice.dtype, choice.gemm.name()), (dtype, name), "{asked:?} {emulate}");
            assert_eq!(choice.note.is_some(), told, "{asked:?} {emulate}");
        }
        let note = choose(bf16, isa, false).note.unwrap();
        assert!(note.starts_with("precision bf16: portable on this CPU has no bf16 instructions"), "{note}");
        if let Some(gemm) = Gemm::bf16(Isa::best()) {
            assert_eq!(choose(bf16, Isa::best(), false).gemm, gemm);
            let fastest = if Isa::best().bf16_is_faster() { DType::Bf16 } else { DType::F32 };
            assert_eq!(choose(None, Isa::best(), false).dtype, fastest);
        }
    }
}
