//! The items of a model.

use super::MarianOptions;
use crate::model::{DecoderKind, NormPlace, Tying};

/// The output bias.
pub(super) const OUTPUT_BIAS: &str = "decoder_ff_logit_out_b";
/// The output matrix, if it is not tied.
pub(super) const OUTPUT: &str = "decoder_ff_logit_out_Wt";

/// The source embeddings, if they are not shared with the target.
pub(super) const SOURCE_EMBEDDINGS: &str = "encoder_Wemb";

/// Collects names and shapes.
struct Listing<'a> {
    options: &'a MarianOptions,
    items: Vec<(String, [usize; 2])>,
}

impl MarianOptions {
    /// The names and shapes of all parameters, without multipliers and with sinusoids for
    /// positions: the table of this module's documentation.
    pub fn parameters(&self) -> Vec<(String, [usize; 2])> {
        let mut listing = Listing { options: self, items: Vec::new() };
        for layer in 1..=self.encoder_layers {
            listing.attention(&format!("encoder_l{layer}_self"));
            listing.feed_forward(&format!("encoder_l{layer}_ffn"), self.encoder_feed_forward);
        }
        for layer in 1..=self.decoder_layers {
            match self.decoder {
                DecoderKind::Attention => listing.attention(&format!("decoder_l{layer}_self")),
                DecoderKind::Ssru => listing.ssru(&format!("decoder_l{layer}_rnn")),
            }
            listing.attention(&format!("decoder_l{layer}_context"));
            listing.feed_forward(&format!("decoder_l{layer}_ffn"), self.decoder_feed_forward);
        }
        for stack in ["encoder", "decoder"] {
            if self.norm_embeddings {
                listing.norm(&format!("{stack}_emb"), "_pre");
            }
            if self.norm_top {
                listing.norm(&format!("{stack}_top"), "");
            }
        }
        listing.words();
        listing.items
    }

    /// The name of the output matrix, which may be the embeddings.
    pub fn output_matrix(&self) -> &'static str {
        match self.tying {
            Tying::ThreeWay => "Wemb",
            Tying::Decoder => "decoder_Wemb",
            Tying::Embeddings | Tying::None => OUTPUT,
        }
    }
}

impl Listing<'_> {
    fn add(&mut self, name: String, shape: [usize; 2]) {
        self.items.push((name, shape));
    }

    fn norm(&mut self, prefix: &str, suffix: &str) {
        for part in ["scale", "bias"] {
            self.add(format!("{prefix}_ln_{part}{suffix}"), [1, self.options.d_model]);
        }
    }

    /// The norm of a sub-layer.
    fn own_norm(&mut self, prefix: &str) {
        self.norm(prefix, if self.options.norm == NormPlace::Pre { "_pre" } else { "" });
    }

    fn attention(&mut self, prefix: &str) {
        let d = self.options.d_model;
        for part in ["q", "k", "v", "o"] {
            self.add(format!("{prefix}_W{part}"), [d, d]);
            self.add(format!("{prefix}_b{part}"), [1, d]);
        }
        self.own_norm(&format!("{prefix}_Wo"));
    }

    fn ssru(&mut self, prefix: &str) {
        let d = self.options.d_model;
        self.add(format!("{prefix}_W"), [d, d]);
        self.add(format!("{prefix}_Wf"), [d, d]);
        self.add(format!("{prefix}_bf"), [1, d]);
        match self.options.norm {
            NormPlace::Pre => self.own_norm(prefix),
            NormPlace::Post => self.own_norm(&format!("{prefix}_ffn")),
        }
    }

    fn feed_forward(&mut self, prefix: &str, inner: usize) {
        let d = self.options.d_model;
        self.add(format!("{prefix}_W1"), [d, inner]);
        self.add(format!("{prefix}_b1"), [1, inner]);
        self.add(format!("{prefix}_W2"), [inner, d]);
        self.add(format!("{prefix}_b2"), [1, d]);
        self.own_norm(&format!("{prefix}_ffn"));
    }

    /// Embeddings and output layer.
    fn words(&mut self) {
        let MarianOptions { d_model, source_vocabulary, target_vocabulary, tying, output_bias, .. } =
            *self.options;
        match tying {
            Tying::ThreeWay | Tying::Embeddings => self.add("Wemb".into(), [target_vocabulary, d_model]),
            Tying::Decoder | Tying::None => {
                self.add(SOURCE_EMBEDDINGS.into(), [source_vocabulary, d_model]);
                self.add("decoder_Wemb".into(), [target_vocabulary, d_model]);
            }
        }
        if matches!(tying, Tying::Embeddings | Tying::None) {
            self.add(OUTPUT.into(), [target_vocabulary, d_model]);
        }
        if output_bias {
            self.add(OUTPUT_BIAS.into(), [1, target_vocabulary]);
        }
    }
}
