//! `generation_config.json`: the search settings of a model.

use super::json::Keys;
use crate::Result;
use crate::decode::{BeamRule, EarlyStopping};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The contents of a model's `generation_config.json`; a missing field is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GenerationConfig {
    /// The beam size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_beams: Option<usize>,
    /// The maximum number of output tokens, including the start token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<usize>,
    /// The maximum number of output tokens, without the start token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_new_tokens: Option<usize>,
    /// The minimum number of output tokens, including the start token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<usize>,
    /// The minimum number of output tokens, without the start token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_new_tokens: Option<usize>,
    /// The maximum number of output tokens, including the end, as a multiple of the source's:
    /// Marian's `max-length-factor`, not a key of `transformers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length_factor: Option<f32>,
    /// How finished hypotheses affect the beam; not a key of `transformers`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beam_rule: Option<BeamRule>,
    /// α of the length penalty: scores are divided by the length to this power.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length_penalty: Option<f32>,
    /// When the search stops looking for better hypotheses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub early_stopping: Option<EarlyStopping>,
    /// Sequences of ids that are never generated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bad_words_ids: Option<Vec<Vec<u32>>>,
    /// The id that is forced as first token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forced_bos_token_id: Option<u32>,
    /// The id that is forced at the maximum length; if not set, the sentence is truncated there.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "first")]
    pub forced_eos_token_id: Option<u32>,
    /// The decoder's start token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decoder_start_token_id: Option<u32>,
    /// The end token; the first if there are several.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "first")]
    pub eos_token_id: Option<u32>,
    /// Padding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pad_token_id: Option<u32>,
    /// Whether to renormalise the probabilities after bans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renormalize_logits: Option<bool>,
    /// No n-gram of this order occurs twice; 0 allows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_repeat_ngram_size: Option<usize>,
    /// The penalty for ids that have already occurred; 1 for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repetition_penalty: Option<f32>,
    /// Whether to sample instead of searching.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub do_sample: Option<bool>,
    /// The divisor of the logits before sampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// The number of likeliest ids to sample from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<usize>,
    /// Sample from the likeliest ids whose probabilities sum to this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f32>,
}

/// Settings of `transformers` that are not supported, each with the number that turns it off, if it
/// is not `null` alone. `transformers` has more of them for sampling.
const UNSUPPORTED: &[(&str, Option<f64>)] = &[
    ("begin_suppress_tokens", None),
    ("constraints", None),
    ("diversity_penalty", Some(0.0)),
    ("encoder_no_repeat_ngram_size", Some(0.0)),
    ("encoder_repetition_penalty", Some(1.0)),
    ("exponential_decay_length_penalty", None),
    ("force_words_ids", None),
    ("forced_decoder_ids", None),
    ("guidance_scale", Some(1.0)),
    ("num_beam_groups", Some(1.0)),
    ("penalty_alpha", Some(0.0)),
    ("sequence_bias", None),
    ("stop_strings", None),
];

/// Whether a setting with this value changes nothing.
fn is_neutral(value: &Value, neutral: Option<f64>) -> bool {
    let is_empty =
        value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(|o| o.is_empty());
    value.is_null() || is_empty || neutral.is_some() && value.as_f64() == neutral
}

impl GenerationConfig {
    /// The search that our own models are saved with: four beams, and the padding token banned.
    pub fn standard(pad: u32, eos: u32, max_positions: usize) -> Self {
        GenerationConfig {
            num_beams: Some(4),
            max_length: Some(max_positions.min(512)),
            length_penalty: Some(0.6),
            early_stopping: Some(EarlyStopping::No),
            bad_words_ids: Some(vec![vec![pad]]),
            forced_eos_token_id: Some(eos),
            decoder_start_token_id: Some(pad),
            eos_token_id: Some(eos),
            pad_token_id: Some(pad),
            renormalize_logits: Some(true),
            ..Self::default()
        }
    }

    /// Marian's search; greedy if `is_greedy`, as in browsers.
    pub fn marian(pad: u32, eos: u32, unk: u32, is_greedy: bool) -> Self {
        GenerationConfig {
            num_beams: is_greedy.then_some(1),
            max_length_factor: Some(if is_greedy { 2.5 } else { 3.0 }),
            beam_rule: Some(BeamRule::Marian),
            length_penalty: Some(1.0),
            bad_words_ids: Some(vec![vec![pad], vec![unk]]),
            decoder_start_token_id: Some(pad),
            eos_token_id: Some(eos),
            pad_token_id: Some(pad),
            renormalize_logits: Some(false),
            ..Self::default()
        }
    }

    /// What a model's file implies by what it omits.
    ///
    /// A setting comes from the flag, else the file, else our default. But a file that omits how
    /// hypotheses are compared still implies it: its author measured with the defaults of
    /// `transformers`, and ours would rank other translations first. So these are filled in when a
    /// model is read, and stay with it when it is saved again. Other omitted settings (beams,
    /// lengths) are a matter of effort, and our defaults apply.
    pub fn implied() -> Self {
        GenerationConfig {
            length_penalty: Some(1.0),
            early_stopping: Some(EarlyStopping::No),
            renormalize_logits: Some(false),
            ..Self::default()
        }
    }

    /// Reads the settings of a file of `transformers`; rejects those that would lead to other
    /// translations and are not supported. `eos` is the end token of the target side.
    pub(super) fn read(keys: &Keys, eos: u32) -> Result<Self> {
        let mut generation: GenerationConfig = keys.all()?;
        // Another `forced_eos_token_id` is accepted and not forced: it is often the default of a class,
        // which a file has from an author who chose another end token.
        let ends: Option<OneOrMore> = keys.get("eos_token_id")?;
        if let Some(other) = ends.iter().flat_map(OneOrMore::ids).find(|&&id| id != eos) {
            let message = format!(
                "token {other} is listed, but the end token of the vocabulary is {eos}; other end tokens are not supported"
            );
            return Err(keys.wrong("eos_token_id", message));
        }
        for (setting, neutral) in UNSUPPORTED {
            if let Some(value) = keys.get::<Value>(setting)?.filter(|value| !is_neutral(value, *neutral)) {
                let accepted = neutral.map_or("null".to_owned(), |neutral| neutral.to_string());
                let value: String = value.to_string().chars().take(60).collect();
                return Err(keys.wrong(setting, format!("{value} is not supported; only {accepted} is")));
            }
        }
        if generation.bad_words_ids.iter().flatten().any(Vec::is_empty) {
            return Err(keys.wrong("bad_words_ids", "a sequence is empty; each needs an id"));
        }
        if let Some(ids) = keys.get::<Vec<u32>>("suppress_tokens")?.filter(|ids| !ids.is_empty()) {
            if ids.contains(&eos) {
                return Err(keys.wrong(
                    "suppress_tokens",
                    format!("{eos} is the end token, which cannot be suppressed"),
                ));
            }
            generation.bad_words_ids.get_or_insert_default().extend(ids.into_iter().map(|id| vec![id]));
        }
        Ok(generation)
    }

    /// These settings, with missing ones taken from `other`.
    pub fn or(self, other: Self) -> Self {
        GenerationConfig {
            num_beams: self.num_beams.or(other.num_beams),
            max_length: self.max_length.or(other.max_length),
            max_new_tokens: self.max_new_tokens.or(other.max_new_tokens),
            min_length: self.min_length.or(other.min_length),
            min_new_tokens: self.min_new_tokens.or(other.min_new_tokens),
            max_length_factor: self.max_length_factor.or(other.max_length_factor),
            beam_rule: self.beam_rule.or(other.beam_rule),
            length_penalty: self.length_penalty.or(other.length_penalty),
            early_stopping: self.early_stopping.or(other.early_stopping),
            bad_words_ids: self.bad_words_ids.or(other.bad_words_ids),
            forced_bos_token_id: self.forced_bos_token_id.or(other.forced_bos_token_id),
            forced_eos_token_id: self.forced_eos_token_id.or(other.forced_eos_token_id),
            decoder_start_token_id: self.decoder_start_token_id.or(other.decoder_start_token_id),
            eos_token_id: self.eos_token_id.or(other.eos_token_id),
            pad_token_id: self.pad_token_id.or(other.pad_token_id),
            renormalize_logits: self.renormalize_logits.or(other.renormalize_logits),
            no_repeat_ngram_size: self.no_repeat_ngram_size.or(other.no_repeat_ngram_size),
            repetition_penalty: self.repetition_penalty.or(other.repetition_penalty),
            do_sample: self.do_sample.or(other.do_sample),
            temperature: self.temperature.or(other.temperature),
            top_k: self.top_k.or(other.top_k),
            top_p: self.top_p.or(other.top_p),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected an id or a list of ids")]
enum OneOrMore {
    One(u32),
    More(Vec<u32>),
}

impl OneOrMore {
    fn ids(&self) -> &[u32] {
        match self {
            OneOrMore::One(id) => std::slice::from_ref(id),
            OneOrMore::More(ids) => ids,
        }
    }
}

/// An id, or the first of a list.
pub(super) fn first<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<u32>, D::Error> {
    Ok(match Option::<OneOrMore>::deserialize(from)? {
        None => None,
        Some(ids) => ids.ids().first().copied(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_others_are_understood() {
        let text = r#"{"_from_model_config": true, "bad_words_ids": [[58100]], "bos_token_id": null, "eos_token_id": [0, 2],
            "early_stopping": "never", "num_beams": 6, "max_length": 512, "length_penalty": 1, "transformers_version": "4.2"}"#;
        let config: GenerationConfig = serde_json::from_str(text).unwrap();
        let want = GenerationConfig {
            num_beams: Some(6),
            max_length: Some(512),
            length_penalty: Some(1.0),
            early_stopping: Some(EarlyStopping::Never),
            bad_words_ids: Some(vec![vec![58100]]),
            eos_token_id: Some(0),
            ..GenerationConfig::default()
        };
        assert_eq!(config, want);
        let both = config.or(GenerationConfig::standard(7, 0, 100));
        assert_eq!((both.num_beams, both.max_length, both.pad_token_id), (Some(6), Some(512), Some(7)));
        assert_eq!(both.bad_words_ids, Some(vec![vec![58100]]));
    }

    #[test]
    fn settings_that_are_not_supported_are_refused() {
        let read = |text: &str| {
            let keys = Keys::parse("generation_config.json".as_ref(), text.as_bytes()).unwrap();
            GenerationConfig::read(&keys, 7).map_err(|e| e.to_string())
        };
        for neutral in [
            r#"{"num_beam_groups": 1, "diversity_penalty": 0.0, "sequence_bias": {}, "begin_suppress_tokens": null}"#,
            r#"{"encoder_repetition_penalty": 1, "forced_decoder_ids": [], "typical_p": 0.3}"#,
            r#"{"forced_eos_token_id": null, "stop_strings": null}"#,
        ] {
            assert_eq!(read(neutral), Ok(GenerationConfig::default()));
        }
        let suppressed = read(r#"{"bad_words_ids": [[7, 8]], "suppress_tokens": [3, 5]}"#).unwrap();
        assert_eq!(suppressed.bad_words_ids, Some(vec![vec![7, 8], vec![3], vec![5]]));
        for (setting, message) in [
            (r#""num_beam_groups": 2"#, "num_beam_groups: 2 is not supported; only 1 is"),
            (
                r#""suppress_tokens": [3, 7]"#,
                "suppress_tokens: 7 is the end token, which cannot be suppressed",
            ),
            (r#""begin_suppress_tokens": [3]"#, "begin_suppress_tokens: [3] is not supported; only null is"),
            (
                r#""eos_token_id": 3"#,
                "eos_token_id: token 3 is listed, but the end token of the vocabulary is 7; other end tokens are not supported",
            ),
            (
                r#""eos_token_id": [7, 9]"#,
                "eos_token_id: token 9 is listed, but the end token of the vocabulary is 7; other end tokens are not supported",
            ),
            (r#""diversity_penalty": "x""#, "diversity_penalty: \"x\" is not supported; only 0 is"),
        ] {
            let error = read(&format!("{{{setting}}}")).unwrap_err();
            assert_eq!(error, format!("generation_config.json: {message}"));
        }
    }

    #[test]
    fn the_standard_is_written_as_it_is_meant() {
        let standard = GenerationConfig::standard(39, 0, 512);
        let text = serde_json::to_string(&standard).unwrap();
        assert_eq!(
            text,
            r#"{"num_beams":4,"max_length":512,"length_penalty":0.6,"early_stopping":false,"bad_words_ids":[[39]],"forced_eos_token_id":0,"decoder_start_token_id":39,"eos_token_id":0,"pad_token_id":39,"renormalize_logits":true}"#
        );
        assert_eq!(serde_json::from_str::<GenerationConfig>(&text).unwrap(), standard);
    }
}
