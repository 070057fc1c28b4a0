//! Presets on the command line.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use regard::model::Preset;

/// Parses the name of one of some presets.
pub(crate) fn one_of(possible: &'static [Preset]) -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(possible.iter().map(|preset| preset.name())).try_map(move |name| {
        let found = possible.iter().find(|preset| preset.name() == name);
        found.copied().ok_or_else(|| format!("{name:?} is not a preset"))
    })
}
