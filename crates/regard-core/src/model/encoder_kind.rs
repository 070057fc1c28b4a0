//! The kinds of encoder (attention, window, recurrent, convolutional) and their settings.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// How source tokens exchange information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncoderKind {
    /// Self-attention, as in the paper: `y_t = f(x_t, X, X)`.
    Attention {
        /// The window of self-attention, including the decoder's, on each side; unlimited if not
        /// given.
        window: Option<usize>,
    },
    /// Self-attention within a window; the decoder's is not restricted.
    Window {
        /// The number of tokens on each side.
        window: usize,
    },
    /// A gated recurrent unit (GRU): `y_t = f(y_{t-1}, x_t)`.
    Recurrent {
        /// The direction of reading.
        direction: Direction,
    },
    /// A convolution over adjacent tokens: `y_t = f(x_{t-1}, x_t, x_{t+1})`.
    Convolutional {
        /// The kernel width in tokens, centred on the token itself.
        kernel_width: usize,
        /// Whether the dilation grows by the factor k with each layer (1, k, k², …), so that log_k
        /// n layers cover all tokens.
        dilated: bool,
    },
}

/// The direction in which a recurrent encoder reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the beginning and from the end, each with half of the width.
    #[default]
    Both,
    /// Only from the beginning.
    Forward,
}

impl Default for EncoderKind {
    fn default() -> Self {
        EncoderKind::Attention { window: None }
    }
}

/// The default kernel width.
const KERNEL_WIDTH: usize = 3;

/// The default window of `encoder = window`.
const WINDOW: usize = 4;

impl EncoderKind {
    /// Self-attention within a window of the default size.
    pub const WINDOW: Self = EncoderKind::Window { window: WINDOW };
    /// A bidirectional recurrent unit.
    pub const RECURRENT: Self = EncoderKind::Recurrent { direction: Direction::Both };

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            EncoderKind::Attention { .. } => "attention",
            EncoderKind::Window { .. } => "window",
            EncoderKind::Recurrent { .. } => "recurrent",
            EncoderKind::Convolutional { .. } => "convolutional",
        }
    }

    /// Whether it is self-attention.
    pub fn attends(self) -> bool {
        matches!(self, EncoderKind::Attention { .. } | EncoderKind::Window { .. })
    }

    /// The window of its self-attention, if it is restricted.
    pub(crate) fn window(self) -> Option<usize> {
        match self {
            EncoderKind::Attention { window } => window,
            EncoderKind::Window { window } => Some(window),
            _ => None,
        }
    }

    /// The dilation of layer `layer` of a convolutional encoder.
    pub(crate) fn dilation(self, layer: usize, most: usize) -> usize {
        match self {
            EncoderKind::Convolutional { kernel_width, dilated: true } => {
                kernel_width.saturating_pow(u32::try_from(layer).unwrap_or(u32::MAX)).min(most)
            }
            _ => 1,
        }
    }
}

/// The name of the kind in files.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Attention,
    Window,
    Recurrent,
    Convolutional,
}

/// The form in files: the settings of all kinds side by side, so that each has its key whatever the
/// kind is.
#[derive(Serialize, Deserialize)]
#[serde(default)]
struct Flat {
    window: Option<usize>,
    encoder: Kind,
    encoder_direction: Direction,
    kernel_width: usize,
    dilated: bool,
}

impl Default for Flat {
    fn default() -> Self {
        Flat {
            window: None,
            encoder: Kind::Attention,
            encoder_direction: Direction::Both,
            kernel_width: KERNEL_WIDTH,
            dilated: false,
        }
    }
}

impl From<EncoderKind> for Flat {
    fn from(kind: EncoderKind) -> Self {
        let flat = Flat::default();
        match kind {
            EncoderKind::Attention { window } => Flat { window, ..flat },
            EncoderKind::Window { window } => Flat { encoder: Kind::Window, window: Some(window), ..flat },
            EncoderKind::Recurrent { direction } => {
                Flat { encoder: Kind::Recurrent, encoder_direction: direction, ..flat }
            }
            EncoderKind::Convolutional { kernel_width, dilated } => {
                Flat { encoder: Kind::Convolutional, kernel_width, dilated, ..flat }
            }
        }
    }
}

impl TryFrom<Flat> for EncoderKind {
    type Error = String;

    /// Rejects settings of another kind, unless they have their default values.
    fn try_from(flat: Flat) -> Result<Self, String> {
        let Flat { window, encoder, encoder_direction: direction, kernel_width, dilated } = flat;
        let kind = match encoder {
            Kind::Attention => EncoderKind::Attention { window },
            Kind::Window => EncoderKind::Window { window: window.unwrap_or(WINDOW) },
            Kind::Recurrent => EncoderKind::Recurrent { direction },
            Kind::Convolutional => EncoderKind::Convolutional { kernel_width, dilated },
        };
        let name = kind.name();
        if let Some(window) = window.filter(|_| !kind.attends()) {
            return Err(format!(
                "window: {window} restricts self-attention, which a {name} encoder does not have; use encoder = window or attention"
            ));
        }
        if !matches!(kind, EncoderKind::Recurrent { .. }) && direction != Direction::Both {
            return Err(format!("encoder_direction: only encoder = recurrent has one, not {name}"));
        }
        if !matches!(kind, EncoderKind::Convolutional { .. }) {
            if kernel_width != KERNEL_WIDTH {
                return Err(format!("kernel_width: only encoder = convolutional has one, not {name}"));
            }
            if dilated {
                return Err(format!("dilated: only valid with encoder = convolutional, not {name}"));
            }
        }
        Ok(kind)
    }
}

impl Serialize for EncoderKind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Flat::from(*self).serialize(to)
    }
}

impl<'de> Deserialize<'de> for EncoderKind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Flat::deserialize(from)?.try_into().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<EncoderKind, String> {
        serde_json::from_str(text).map_err(|e| e.to_string())
    }

    #[test]
    fn each_kind_is_read_back() {
        for kind in [
            EncoderKind::default(),
            EncoderKind::Attention { window: Some(7) },
            EncoderKind::WINDOW,
            EncoderKind::Recurrent { direction: Direction::Forward },
            EncoderKind::RECURRENT,
            EncoderKind::Convolutional { kernel_width: 5, dilated: true },
        ] {
            assert_eq!(read(&serde_json::to_string(&kind).unwrap()), Ok(kind));
        }
        assert_eq!(read("{}"), Ok(EncoderKind::default()));
        assert_eq!(read(r#"{"encoder": "window"}"#), Ok(EncoderKind::WINDOW));
    }

    #[test]
    fn a_kind_has_no_settings_of_another() {
        for (text, refusal) in [
            (
                r#"{"encoder": "convolutional", "window": 3}"#,
                "window: 3 restricts self-attention, which a convolutional encoder does not have; use encoder = window or attention",
            ),
            (
                r#"{"encoder_direction": "forward"}"#,
                "encoder_direction: only encoder = recurrent has one, not attention",
            ),
            (r#"{"kernel_width": 5}"#, "kernel_width: only encoder = convolutional has one, not attention"),
            (
                r#"{"encoder": "recurrent", "dilated": true}"#,
                "dilated: only valid with encoder = convolutional, not recurrent",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), refusal);
        }
        assert!(read(r#"{"encoder": "none"}"#).unwrap_err().contains("unknown variant `none`"));
    }

    #[test]
    fn reach_and_dilation() {
        assert_eq!(EncoderKind::WINDOW.window(), Some(4));
        assert_eq!(EncoderKind::Attention { window: Some(9) }.window(), Some(9));
        assert_eq!(EncoderKind::RECURRENT.window(), None);
        let convolutional = |dilated| EncoderKind::Convolutional { kernel_width: 3, dilated };
        assert_eq!([0, 1, 2, 999].map(|i| convolutional(true).dilation(i, 5000)), [1, 3, 9, 5000]);
        assert_eq!([0, 1, 2].map(|i| convolutional(false).dilation(i, 5000)), [1, 1, 1]);
    }
}
