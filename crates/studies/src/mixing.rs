//! The ways in which an encoder's tokens can get to know each other.

use regard_core::model::{Direction, EncoderKind, ModelConfig};

/// One way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mixing {
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

impl Mixing {
    /// All of them.
    pub(crate) const ALL: [Mixing; 6] = [
        Mixing::Attention,
        Mixing::Window,
        Mixing::Recurrent,
        Mixing::BothDirections,
        Mixing::Convolution,
        Mixing::Dilated,
    ];

    /// Its name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mixing::Attention => "attention",
            Mixing::Window => "attention in a window",
            Mixing::Recurrent => "recurrent",
            Mixing::BothDirections => "recurrent, both directions",
            Mixing::Convolution => "convolution",
            Mixing::Dilated => "dilated convolution",
        }
    }

    /// Makes it the model's; a window reaches `reach` tokens to each side.
    pub(crate) fn apply(self, config: &mut ModelConfig, reach: usize) {
        (config.encoder, config.window, config.dilated) = (EncoderKind::Attention, None, false);
        (config.kernel_width, config.encoder_direction) = (WIDTH, Direction::Both);
        match self {
            Mixing::Attention => {}
            Mixing::Window => (config.encoder, config.window) = (EncoderKind::Window, Some(reach)),
            Mixing::BothDirections => config.encoder = EncoderKind::Recurrent,
            Mixing::Recurrent => {
                (config.encoder, config.encoder_direction) = (EncoderKind::Recurrent, Direction::Forward);
            }
            Mixing::Convolution => config.encoder = EncoderKind::Convolutional,
            Mixing::Dilated => (config.encoder, config.dilated) = (EncoderKind::Convolutional, true),
        }
    }
}
