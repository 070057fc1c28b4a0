//! Number formats on the command line.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use regard::DType;

/// The formats for matmuls in decoding.
pub(crate) const DECODING: &[DType] = &[DType::F32, DType::Int8];
/// The formats in which a training run can store weights.
pub(crate) const STORED: &[DType] = &[DType::F32, DType::Bf16, DType::F16];
/// The formats of models for Bergamot.
pub(crate) const EXPORTED: &[DType] = &[DType::Int8, DType::F32];
/// The formats for matmuls in training and for the exchange between ranks.
pub(crate) const TRAINING: &[DType] = &[DType::F32, DType::Bf16];

/// Parses one of some number formats.
pub(crate) fn one_of(possible: &'static [DType]) -> impl TypedValueParser<Value = DType> {
    PossibleValuesParser::new(possible.iter().map(|dtype| dtype.name())).try_map(|name| name.parse())
}

/// The format for matmuls in training; `None` for the fastest on this CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrainingDType(pub(crate) Option<DType>);

/// Parses one of [`TRAINING`] or `auto`.
pub(crate) fn training_or_auto() -> impl TypedValueParser<Value = TrainingDType> {
    let names = TRAINING.iter().map(|dtype| dtype.name()).chain(["auto"]);
    // What is not a format is `auto`: other names have already been rejected.
    PossibleValuesParser::new(names).map(|name| TrainingDType(name.parse().ok()))
}
