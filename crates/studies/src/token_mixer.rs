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
        (config.encoder, config.window, config.dilated) = (EncoderKind::Attention, None, false);
        (config.kernel_width, config.encoder_direction) = (WIDTH, Direction::Both);
        match self {
            TokenMixer::Attention => {}
            TokenMixer::Window => (config.encoder, config.window) = (EncoderKind::Window, Some(reach)),
            TokenMixer::BothDirections => config.encoder = EncoderKind::Recurrent,
            TokenMixer::Recurrent => {
                (config.encoder, config.encoder_direction) = (EncoderKind::Recurrent, Direction::Forward);
            }
            TokenMixer::Convolution => config.encoder = EncoderKind::Convolutional,
            TokenMixer::Dilated => (config.encoder, config.dilated) = (EncoderKind::Convolutional, true),
        }
    }
}
