//! The stages around the model in `tokenizer.json`, and the normalisation as a function.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};
use tokenizers::normalizers::replace::{Replace, ReplacePattern};
use tokenizers::normalizers::{NFC, Strip};
use tokenizers::{NormalizedString, Normalizer};

use super::{EOS, PAD, UNK};

/// White space and control characters, spelled out because regular expression engines disagree on
/// `\s`; also the byte-order mark, and `▁` (U+2581), which marks a space inside pieces.
pub(super) const BLANK: &str = r"[\x{00}-\x{20}\x{7F}-\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{2581}\x{3000}\x{FEFF}]+";

/// A word: letters, digits or anything else, with the space before it. Combining marks and the
/// joiners of Persian and Indic scripts stay with what they follow.
const WORD: &str = concat!(
    r"▁?[\p{Han}\p{Hiragana}\p{Katakana}\x{30FC}]+",
    r"|▁?[\p{L}&&[^\p{Han}\p{Hiragana}\p{Katakana}\x{30FC}]]",
    r"[\p{L}\p{M}\x{200C}\x{200D}&&[^\p{Han}\p{Hiragana}\p{Katakana}\x{30FC}]]*",
    r"|▁?\p{N}[\p{N}\p{M}]*",
    r"|▁?[^▁\p{L}\p{N}]+",
);

/// The normalisation as a stage of `tokenizer.json`.
pub(super) fn normaliser() -> Value {
    json!({"type": "Sequence", "normalizers": [
        {"type": "NFC"},
        {"type": "Replace", "pattern": {"Regex": BLANK}, "content": " "},
        {"type": "Strip", "strip_left": true, "strip_right": true},
    ]})
}

/// The split into words as a stage of `tokenizer.json`.
pub(super) fn word_splitter() -> Value {
    json!({"type": "Sequence", "pretokenizers": [
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
        {"type": "Split", "pattern": {"Regex": WORD}, "behavior": "Isolated", "invert": false},
    ]})
}

/// A complete `tokenizer.json` around `model`, whose vocabulary ends with `pad`.
#[cfg(feature = "tokenizer-training")]
pub(super) fn tokenizer_json(model: Value, pad: usize) -> Value {
    let special = |id: usize, content: &str| {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
               "normalized": false, "special": true})
    };
    let sequence = |id: &str| json!({"Sequence": {"id": id, "type_id": 0}});
    let end = json!({"SpecialToken": {"id": EOS, "type_id": 0}});
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [special(0, EOS), special(1, UNK), special(pad, PAD)],
        "normalizer": normaliser(),
        "pre_tokenizer": word_splitter(),
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [sequence("A"), end],
            "pair": [sequence("A"), sequence("B"), end],
            "special_tokens": {EOS: {"id": EOS, "ids": [0], "tokens": [EOS]}},
        },
        // The marker becomes a space before bytes become text, so that bytes that spell the marker
        // are kept.
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ]},
        "model": model,
    })
}

/// The contents of a `tokenizer_config.json` with which `transformers` segments and decodes like
/// this library: the class that reads `tokenizer.json`, the special tokens, no parsing of special
/// tokens in text, no cleanup of spaces.
pub fn hugging_face_config(max_length: usize) -> Value {
    json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": EOS,
        "unk_token": UNK,
        "pad_token": PAD,
        "model_max_length": max_length,
        "split_special_tokens": true,
        "clean_up_tokenization_spaces": false,
    })
}

/// The same for a tokenizer from `.spm` files.
pub(super) fn marian_config(max_length: usize) -> Value {
    let mut config = hugging_face_config(max_length);
    config["tokenizer_class"] = "MarianTokenizer".into();
    config
}

/// The text as the model sees it: composed (NFC); control characters, line breaks, byte-order
/// marks, `▁` and white space of every kind become a space, runs of them one space; none at the
/// ends. Casing, punctuation, symbols, zero-width joiners and everything else are kept. The
/// function is idempotent.
pub fn normalise(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    normalise_by_stage(text)
}

fn normalise_by_stage(text: &str) -> String {
    static BLANKS: LazyLock<Replace> = LazyLock::new(|| {
        Replace::new(ReplacePattern::Regex(BLANK.into()), " ").expect("the pattern above is valid")
    });
    let mut normalised = NormalizedString::from(text);
    let stages: [&dyn Normalizer; 3] = [&NFC, &*BLANKS, &Strip::new(true, true)];
    match stages.iter().try_for_each(|stage| stage.normalize(&mut normalised)) {
        Ok(()) => normalised.get().to_owned(),
        // None of the three stages can fail.
        Err(_) => text.to_owned(),
    }
}

/// Whether there is nothing to normalise: only single inner spaces, and only characters that NFC
/// leaves unchanged and that do not compose with each other. It need not recognise all such
/// characters, only the common ones.
fn is_plain(text: &str) -> bool {
    let mut before = ' ';
    for character in text.chars() {
        match character {
            ' ' if before == ' ' => return false,
            ' '..='~'
            | '\u{a1}'..='\u{2ff}' // Latin
            | '\u{400}'..='\u{482}' // Cyrillic
            | '\u{621}'..='\u{64a}' // Arabic
            | '\u{2010}'..='\u{2027}' // dashes, quotes, ellipsis
            | '€'
            | '\u{3001}'..='\u{3003}' // Chinese and Japanese from here
            | '\u{3041}'..='\u{3096}'
            | '\u{30a1}'..='\u{30fa}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7a3}' => before = character,
            _ => return false,
        }
    }
    before != ' ' || text.is_empty()
}

/// The words of normalised text, each with its `▁`: the same result as the stage [`word_splitter`],
/// many times faster.
pub(super) fn for_each_word(normalised: &str, mut action: impl FnMut(&str)) {
    static WORDS: LazyLock<Regex> = LazyLock::new(|| Regex::new(WORD).expect("the pattern above is valid"));
    if !normalised.is_empty() {
        let marked = format!(" {normalised}").replace(' ', "▁");
        WORDS.find_iter(&marked).for_each(|word| action(word.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalisation_is_mild() {
        for (text, expected) in [
            ("", ""),
            ("Two  Dogs,\ta \"cat\" & 3½ €…", "Two Dogs, a \"cat\" & 3½ €…"),
            ("\u{feff}\r\n a\u{0}b\u{7f}c\u{85}d\u{2028}e ", "a b c d e"),
            ("a\u{a0}b\u{202f}c\u{3000}d\u{2003}e", "a b c d e"),
            ("e\u{301}t\u{e9} \u{212b}", "\u{e9}t\u{e9} \u{c5}"),
            ("\u{301}a", "\u{301}a"),
            ("▁a▁▁b▁", "a b"),
            ("ﬁ ² Ａ", "ﬁ ² Ａ"),
            ("می\u{200c}خواهم 👩\u{200d}🚀 x\u{200b}y", "می\u{200c}خواهم 👩\u{200d}🚀 x\u{200b}y"),
            (" \t ", ""),
            (" a", "a"),
            ("a ", "a"),
        ] {
            assert_eq!(normalise(text), expected, "{text:?}");
            assert_eq!(normalise(expected), expected);
        }
    }

    /// Every character by itself, and between letters, through the fast path and the stage.
    #[test]
    fn the_short_cut_agrees_with_the_stage() {
        for character in '\0'..=char::MAX {
            let text = format!("a{character}b");
            if is_plain(&text) {
                assert_eq!(normalise_by_stage(&text), text, "U+{:04X}", character as u32);
            }
        }
    }

    #[test]
    fn plain_text_is_recognised() {
        for text in ["", "a", "A dog runs.", "~!", "Straße", "два", "犬が"] {
            assert!(is_plain(text), "{text:?}");
        }
        for text in [" ", " a", "a ", "a  b", "e\u{301}", "a\tb", "\u{7f}", "\u{a0}", "\u{2126}"] {
            assert!(!is_plain(text), "{text:?}");
        }
    }
}
