//! The ways to represent the order of tokens.

use regard_core::model::{Combine, ModelConfig, Positions};

/// A kind of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The paper's sines and cosines, added to the token vectors.
    Sinusoidal,
    /// A learned vector for each position, added to the token vectors.
    Learned,
    /// A learned vector for each distance, in every self-attention.
    Relative,
    /// Sines and cosines concatenated with the token vectors.
    Concatenated,
    /// No positions.
    None,
}

/// All kinds.
pub(crate) const ALL: [Kind; 5] =
    [Kind::Sinusoidal, Kind::Learned, Kind::Relative, Kind::Concatenated, Kind::None];

impl Kind {
    /// The name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Sinusoidal => "sinusoidal",
            Kind::Learned => "learned",
            Kind::Relative => "relative",
            Kind::Concatenated => "concatenated",
            Kind::None => "none",
        }
    }

    /// The Chinese name, for answers.
    pub(crate) fn name_zh(self) -> &'static str {
        match self {
            Kind::Sinusoidal => "正弦位置",
            Kind::Learned => "学习得到的位置",
            Kind::Relative => "相对位置",
            Kind::Concatenated => "拼接的位置",
            Kind::None => "没有位置的模型",
        }
    }

    /// Applies this kind to a model configuration.
    pub(crate) fn apply(self, config: &mut ModelConfig) {
        (config.positions, config.combine) = match self {
            Kind::Sinusoidal => (Positions::Sinusoidal, Combine::Add),
            Kind::Learned => (Positions::Learned, Combine::Add),
            Kind::Relative => (Positions::Relative, Combine::Add),
            Kind::Concatenated => (Positions::Sinusoidal, Combine::Concatenate),
            Kind::None => (Positions::None, Combine::Add),
        };
    }
}
