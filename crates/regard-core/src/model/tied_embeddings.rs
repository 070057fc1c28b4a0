//! Tied embeddings (section 3.4 of the paper): which of the vocabulary matrices are shared.

use super::builder::LayerBuilder;
use super::config::ModelConfig;
use super::parameters::Param;
use serde::{Deserialize, Serialize};

/// Which of the three vocabulary matrices (source, target, output) are shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tying {
    /// All three, as in the paper; needs one vocabulary for both languages.
    #[default]
    ThreeWay,
    /// Target and output.
    Decoder,
    /// Source and target; needs one vocabulary for both languages.
    Embeddings,
    /// None.
    None,
}

/// The embedding of the source, that of the target, and the output matrix.
pub(super) fn vocabulary_matrices(b: &mut LayerBuilder<'_>, config: &ModelConfig) -> (Param, Param, Param) {
    match config.tying {
        Tying::ThreeWay => {
            let shared = b.words("embeddings", config.target_vocabulary);
            (shared, shared, shared)
        }
        Tying::Embeddings => {
            let shared = b.words("embeddings", config.target_vocabulary);
            (shared, shared, b.words("output", config.target_vocabulary))
        }
        Tying::Decoder => {
            let source = b.words("encoder.embeddings", config.source_vocabulary);
            let target = b.words("decoder.embeddings", config.target_vocabulary);
            (source, target, target)
        }
        Tying::None => (
            b.words("encoder.embeddings", config.source_vocabulary),
            b.words("decoder.embeddings", config.target_vocabulary),
            b.words("output", config.target_vocabulary),
        ),
    }
}
