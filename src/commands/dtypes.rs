//! Number formats on the command line.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use regard::DType;

/// What decoding multiplies in.
pub(crate) const DECODING: &[DType] = &[DType::F32, DType::Int8];
/// What a training run can store weights in.
pub(crate) const STORED: &[DType] = &[DType::F32, DType::Bf16, DType::F16];
/// What a model for Bergamot can have.
pub(crate) const EXPORTED: &[DType] = &[DType::Int8, DType::F32];
/// What training multiplies in and ranks exchange.
pub(crate) const TRAINING: &[DType] = &[DType::F32, DType::Bf16];

/// Reads one of some number formats.
pub(crate) fn one_of(possible: &'static [DType]) -> impl TypedValueParser<Value = DType> {
    PossibleValuesParser::new(possible.iter().map(|dtype| dtype.name())).try_map(|name| name.parse())
}

/// What training multiplies in, or nothing: the fastest on this CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrainingDType(pub(crate) Option<DType>);

/// Reads one of [`TRAINING`] or `auto`.
pub(crate) fn training_or_auto() -> impl TypedValueParser<Value = TrainingDType> {
    let names = TRAINING.iter().map(|dtype| dtype.name()).chain(["auto"]);
    // Whatever is no format is `auto`: other names are refused before.
    PossibleValuesParser::new(names).map(|name| TrainingDType(name.parse().ok()))
}
