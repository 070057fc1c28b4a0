//! The number format of the matrix products of training.

use regard_kernels::{Isa, Products};
use serde::{Deserialize, Serialize};

use regard_core::{Error, Result};

/// The environment variable that, set to `emulate`, makes every CPU count as one that has bf16: it is done in software, slower than
/// f32 and with the same rounding of the operands. It is for tests.
pub const BF16_VARIABLE: &str = "REGARD_BF16";

/// The number format of the matrix products of training. Master weights, Adam, attention, softmax, normalisation, loss and all sums
/// are in f32 in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrainPrecision {
    /// The fastest that was measured: f32. On a Xeon with AVX-512 BF16, bf16 trains at 0.73 of its speed (base) and 0.74 (tiny):
    /// one bf16 instruction a cycle multiplies no more numbers than two f32 ones, and its operands are rounded on the way.
    #[default]
    Auto,
    /// f32.
    F32,
    /// bf16; f32, with a note, where the CPU lacks it.
    Bf16,
}

impl TrainPrecision {
    /// What that is on this machine, and what to tell the user if it is not what was asked for.
    pub fn choose(self, isa: Isa) -> Result<Choice> {
        let emulate = match std::env::var_os(BF16_VARIABLE) {
            None => false,
            Some(value) if value == "emulate" => true,
            Some(value) => {
                let message = format!("{} is unknown; emulate is possible", value.to_string_lossy());
                return Err(Error::config(BF16_VARIABLE, message));
            }
        };
        Ok(self.choose_from(isa, emulate))
    }

    fn choose_from(self, isa: Isa, emulate: bool) -> Choice {
        let bf16 = if emulate { Some(Products::bf16_in_software(isa)) } else { Products::bf16(isa) };
        match (self, bf16) {
            (TrainPrecision::Bf16, Some(products)) => {
                Choice { precision: TrainPrecision::Bf16, products, note: None }
            }
            (asked, _) => {
                let note = (asked == TrainPrecision::Bf16).then(|| {
                    format!("precision bf16: {isa} on this CPU has no bf16 products (AVX-512 BF16 has); training in f32")
                });
                Choice { precision: TrainPrecision::F32, products: Products::f32(isa), note }
            }
        }
    }
}

/// What a [`TrainPrecision`] came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// f32 or bf16.
    pub precision: TrainPrecision,
    /// The products.
    pub products: Products,
    /// That it is not what was asked for.
    pub note: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_is_used_where_there_is_one_and_its_lack_is_told() {
        use TrainPrecision::{Auto, Bf16, F32};
        let isa = Isa::PORTABLE;
        for (asked, emulate, precision, name, told) in [
            (Auto, false, F32, "f32", false),
            (Bf16, false, F32, "f32", true),
            (F32, false, F32, "f32", false),
            (Auto, true, F32, "f32", false),
            (Bf16, true, Bf16, "bf16 in software", false),
            (F32, true, F32, "f32", false),
        ] {
            let choice = asked.choose_from(isa, emulate);
            assert_eq!((choice.precision, choice.products.name()), (precision, name), "{asked:?} {emulate}");
            assert_eq!(choice.note.is_some(), told, "{asked:?} {emulate}");
        }
        let note = Bf16.choose_from(isa, false).note.unwrap();
        assert!(note.starts_with("precision bf16: portable on this CPU has no bf16 products"), "{note}");
        if let Some(products) = Products::bf16(Isa::best()) {
            assert_eq!(Bf16.choose_from(Isa::best(), false).products, products);
            assert_eq!(Auto.choose_from(Isa::best(), false).precision, F32);
        }
    }
}
