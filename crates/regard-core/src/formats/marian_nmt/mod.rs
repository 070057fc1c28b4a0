//! The files of Marian NMT itself, and of Firefox (Bergamot), whose engine is a fork of it.
//! (`formats/marian.rs` is about something else: the folders of `transformers`' MarianMT.)
//!
//! [`MarianFolder`] finds the files of a folder, [`ItemFile`] reads the weights and
//! [`MarianOptions`] the architecture inside them, [`MarianVocabulary`] vocabularies in YAML
//! (`.spm` files are read by `text::sentencepiece`), [`LexicalShortlist`] the `lex*.bin` files; all
//! of them may be compressed (`formats/compressed.rs`). [`write_bin`] and [`write_npz`] write what
//! [`float_items`] and [`int8_items`] make of weights.
//! `tools/marian_reference.py` implements the following in NumPy, and agrees with Marian 1.12.42 on
//! the cases of `tools/goldens/marian_nmt.py` (greedy and beam search, every n-best list, scores to
//! 6e-5).
//!
//! # Items
//!
//! `x` is a row and matmuls are `x · W`, so an item of shape `[in, out]` is declared the other way
//! round than a linear layer of PyTorch. [`Item::floats`] returns that declared shape; 8-bit
//! matrices are *stored* transposed, and [`Item::int8`] returns them in the stored order, with a
//! row for each output. Only items with `Wemb` in their name are stored as declared, `[words, d]`,
//! which is also a row for each output when they are the output matrix; `decoder_ff_logit_out_Wt`,
//! declared alike, is stored as `[d, words]`. Biases and norms are `[1, n]`. Layers count from 1.
//!
//! | item | shape | what |
//! |---|---|---|
//! | `Wemb` | `[v, d]` | embeddings of both sides, and with [`Tying::ThreeWay`] the output matrix |
//! | `encoder_Wemb`, `decoder_Wemb` | `[v, d]` | embeddings if they are not shared |
//! | `decoder_ff_logit_out_Wt` | `[v, d]` | the output matrix if untied; in old models `…_W` `[d, v]` |
//! | `decoder_ff_logit_out_b` | `[1, v]` | the output bias, absent with `output-omit-bias` |
//! | `Wpos` | `[positions, d]` | trained positions, of both sides |
//! | `encoder_lN_self_{Wq,Wk,Wv,Wo}` | `[d, d]` | self-attention; heads are columns side by side |
//! | `encoder_lN_self_{bq,bk,bv,bo}` | `[1, d]` | their biases |
//! | `encoder_lN_self_Wo_ln_{scale,bias}` | `[1, d]` | the norm of that sub-layer |
//! | `encoder_lN_ffn_{W1,b1}`, `{W2,b2}` | `[d, f]`, `[f, d]` | the feed-forward layer |
//! | `encoder_lN_ffn_ffn_ln_{scale,bias}` | `[1, d]` | its norm |
//! | `decoder_lN_self_…` | as the encoder's | [`DecoderKind::Attention`] |
//! | `decoder_lN_rnn_{W,Wf,bf}` | `[d, d]`, `[d, d]`, `[1, d]` | [`DecoderKind::Ssru`] |
//! | `decoder_lN_rnn_ffn_ln_{scale,bias}` | `[1, d]` | its norm |
//! | `decoder_lN_context_…` | as the encoder's `self` | attention to the source |
//! | `decoder_lN_ffn_…` | as the encoder's | |
//! | `NAME_QuantMultA` | `[1, 1]` | fixed multiplier of the inputs of `NAME` ("alpha") |
//! | `none_QuantMultA` | `[1, 1]` | that of the output layer; `Wemb_QuantMultA` is it, quantized |
//!
//! With [`NormPlace::Pre`] the name of a norm ends with `_pre` (`encoder_l1_self_Wo_ln_scale_pre`),
//! and that of the SSRU is `decoder_lN_rnn_ln_{scale,bias}_pre`, without `_ffn`. With
//! `norm_embeddings` there are `encoder_emb_ln_{scale,bias}_pre` and the decoder's, with `norm_top`
//! `encoder_top_ln_{scale,bias}` and the decoder's.
//!
//! # Computation
//!
//! - **Embeddings** are multiplied by √d, and the sinusoids of their positions, which count from 0,
//!   are added: column `i < d/2` has `sin(p · 10000^(−i / (d/2 − 1)))`, column `d/2 + i` the
//!   cosine. (`transformers` divides by d/2 instead in the models that it converted.) With `Wpos`
//!   they are not multiplied, the row of the position is added, and positions beyond the last row
//!   use the last row. None of Firefox's models has `Wpos`, and Marian 1.12 cannot decode with it.
//! - **Sub-layers** with [`NormPlace::Post`] are `norm(f(x) + x)`, with [`NormPlace::Pre`]
//!   `f(norm(x)) + x`. A norm is `(x − mean) / √(variance + 1e-6) · scale + bias` with the biased
//!   variance.
//! - **Keys and values** with [`NormPlace::Pre`]: in the encoder they are computed from the
//!   normalized input. In the decoder's self-attention Marian trains the same way, but when it
//!   decodes, only the first step normalizes them; from the second step on they are computed from
//!   the inputs without the norm, including the input of the first step. `browsermt/marian-dev`
//!   never normalizes them, not even in the encoder. With an SSRU decoder, training and decoding do
//!   not differ.
//! - **Attention** is scaled by 1/√(d/heads). **Activations**: `relu`; `swish` is `x·σ(x)`; `gelu`
//!   is exact since Marian 1.12.3.
//! - **SSRU**: `f = σ(x·Wf + bf)`, `c ← f∘c + (1 − f)∘(x·W)` with `c = 0` before the first token,
//!   and the output is `relu(c)`. The residual connection goes around all of it. The state is one
//!   vector per layer and hypothesis.
//! - **The decoder begins** with a zero vector instead of an embedding, plus the sinusoids of
//!   position 0; the first token is at position 1.
//! - **Logits** are `x · Wᵀ + b`, and the log-softmax is over the allowed words (the shortlist, if
//!   there is one).
//!
//! # Search
//!
//! `</s>` ends a sentence, on the source side too; sentences have no start token. `<unk>` is never
//! generated. In the browsers' vocabularies these are 0 and 1, as the `.spm` file states. Marian's
//! beam takes the best `k` of all continuations, where `k` is the number of open hypotheses (all
//! continuations of one hypothesis in the first step); those that end with `</s>` leave the beam,
//! and it continues until none is open, or until they have ⌈`max-length-factor` · source tokens⌉
//! tokens (ends count on both sides): then the open ones count as finished without an end. A score
//! is the sum of the log-probabilities divided by the number of tokens, including the end if there
//! is one, to the power of `normalize`.
//!
//! # Integers
//!
//! An input `x` is multiplied by its multiplier `a` (without alphas 127 / the largest magnitude of
//! the whole input matrix), rounded to the nearest integer, ties to even, and clamped to ±127. With
//! `q` the integers of `x` and `w` those of a row of weights with multiplier `m`, Bergamot computes
//! in f32, without FMA,
//!
//! ```text
//! (Σ (q + 127)·w) · (1 / (a·m))  +  (Σ w · (−((127/a)·(127/m)) / 127) + bias)
//! ```
//!
//! where both sums are exact integers on CPUs with VNNI. The order matters: a result that rounds
//! differently changes an integer of the next matmul, and after a few layers nearly all matmuls
//! differ in places. On 60 lines of FLORES, 7 of which Bergamot splits into sentences at other
//! places, the reference agrees with Bergamot on 51 lines in this order and on 38 with `Σ q·w /
//! (a·m) + bias`; in f32, with the same weights, on all 53.
//!
//! Bergamot treats the output layer the same way, but looks embeddings up in f32. Its shortlist
//! covers all sentences of a batch, so a sentence's translation may depend on its neighbours
//! ([`Shortlist::words`]).
//!
//! [`DecoderKind::Attention`]: crate::model::DecoderKind::Attention
//! [`DecoderKind::Ssru`]: crate::model::DecoderKind::Ssru
//! [`NormPlace::Post`]: crate::model::NormPlace::Post
//! [`NormPlace::Pre`]: crate::model::NormPlace::Pre
//! [`Shortlist::words`]: crate::decode::Shortlist::words
//! [`Tying::ThreeWay`]: crate::model::Tying::ThreeWay

mod bin;
mod export;
mod export_model;
mod folder;
mod foreign;
mod items;
mod model;
mod npz;
mod options;
mod parameters;
mod rounding;
mod shortlist;
mod vocabulary;
mod write;
mod yaml;

pub use export::{InputStatistics, float_items, grow_vocabularies, int8_items, lexical_shortlist};
pub use export_model::{ExportFormat, ExportOptions, export};
pub(crate) use folder::metadata_file;
pub use folder::{MarianFolder, MarianSearch};
pub use items::{Int8Matrix, Item, ItemFile, OPTIONS};
pub(crate) use model::{MarianModel, read_shortlist};
pub use options::MarianOptions;
pub use shortlist::LexicalShortlist;
pub use vocabulary::MarianVocabulary;
pub use write::{NewData, NewItem, write_bin, write_npz};

#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzzing;
#[cfg(test)]
mod tests;
