//! The ways in which the tokens of an encoder exchange information.

use regard_core::model::{Direction, EncoderKind, ModelConfig};

/// One way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MixerKind {
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

impl MixerKind {
    /// All of them.
    pub(crate) const ALL: [MixerKind; 6] = [
        MixerKind::Attention,
        MixerKind::Window,
        MixerKind::Recurrent,
        MixerKind::BothDirections,
        MixerKind::Convolution,
        MixerKind::Dilated,
    ];

    /// Its name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            MixerKind::Attention => "attention",
            MixerKind::Window => "attention in a window",
            MixerKind::Recurrent => "recurrent",
            MixerKind::BothDirections => "recurrent, both directions",
            MixerKind::Convolution => "convolution",
            MixerKind::Dilated => "dilated convolution",
        }
    }

    /// Makes it the model's; a window reaches `reach` tokens to each side.
    pub(crate) fn apply(self, config: &mut ModelConfig, reach: usize) {
        config.encoder = match self {
            MixerKind::Attention => EncoderKind::default(),
            MixerKind::Window => EncoderKind::Window { window: reach },
            MixerKind::BothDirections => EncoderKind::RECURRENT,
            MixerKind::Recurrent => EncoderKind::Recurrent { direction: Direction::Forward },
            MixerKind::Convolution => EncoderKind::Convolutional { kernel_width: WIDTH, dilated: false },
            MixerKind::Dilated => EncoderKind::Convolutional { kernel_width: WIDTH, dilated: true },
        };
    }
}
