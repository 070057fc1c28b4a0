//! The ways in which an encoder's tokens can get to know each other.

use regard_core::model::{Direction, EncoderKind, ModelConfig};

/// One way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenMixer {
    /// Every token looks at every token.
    Attention,
    /// Every token looks at those near it.
    Window,
    /// A recurrent unit reads from the beginning.
    Recurrent,
    /// One reads from the beginning and one from the end.
    BothDirections,
    /// A convolution over neighbours.
    Convolution,
    /// A convolution over tokens that lie further apart from layer to layer.
    Dilated,
}

/// Tokens that a convolution sees at once: k.
pub(crate) const WIDTH: usize = 3;

impl TokenMixer {
    /// All of them.
    pub(crate) const ALL: [TokenMixer; 6] = [
        TokenMixer::Attention,
        TokenMixer::Window,
        TokenMixer::Recurrent,
        TokenMixer::BothDirections,
        TokenMixer::Convolution,
        TokenMixer::Dilated,
    ];

    /// Its name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TokenMixer::Attention => "attention",
            TokenMixer::Window => "attention in a window",
            TokenMixer::Recurrent => "recurrent",
            TokenMixer::BothDirections => "recurrent, both directions",
            TokenMixer::Convolution => "convolution",
            TokenMixer::Dilated => "dilated convolution",
        }
    }

    /// Makes it the model's; a window reaches `reach` tokens to each side.
    pub(crate) fn apply(self, config: &mut ModelConfig, reach: usize) {
        config.encoder = match self {
            TokenMixer::Attention => EncoderKind::default(),
            TokenMixer::Window => EncoderKind::Window { window: reach },
            TokenMixer::BothDirections => EncoderKind::RECURRENT,
            TokenMixer::Recurrent => EncoderKind::Recurrent { direction: Direction::Forward },
            TokenMixer::Convolution => EncoderKind::Convolutional { kernel_width: WIDTH, dilated: false },
            TokenMixer::Dilated => EncoderKind::Convolutional { kernel_width: WIDTH, dilated: true },
        };
    }
}
