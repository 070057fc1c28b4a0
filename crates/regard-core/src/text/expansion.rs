//! Limits how much longer the stages of a foreign `tokenizer.json` can make a text: a sequence of a
//! few replacements, each of which looks harmless, could otherwise turn a line into gigabytes.

use regex::Regex;
use serde_json::Value;

/// The maximum factor by which all replacements of a stage together may lengthen a text. Those of
/// published tokenizers lengthen it by at most three, where a space becomes `▁`.
const MAX_GROWTH: usize = 64;
/// The maximum number of bytes that a stage may prepend to a text.
const MAX_PREFIX_BYTES: usize = 1024;

/// Rejects a stage (a normalizer or a decoder, including nested stages) that could make texts many
/// times longer.
pub(super) fn check_expansion(stage: &Value) -> Result<(), String> {
    let times = expansion(stage)?;
    if times > MAX_GROWTH {
        return Err(format!(
            "its replacements could make a text {times} times as long; at most {MAX_GROWTH} times is allowed"
        ));
    }
    Ok(())
}

/// The maximum factor by which the replacements of a stage can lengthen a text.
fn expansion(stage: &Value) -> Result<usize, String> {
    if let Some(prefix) = stage["prepend"].as_str().filter(|prefix| prefix.len() > MAX_PREFIX_BYTES) {
        return Err(format!(
            "it puts {} bytes in front of every text; at most {MAX_PREFIX_BYTES} are allowed",
            prefix.len()
        ));
    }
    let mut times = replacement(stage);
    for inner in ["normalizers", "decoders"] {
        for stage in stage[inner].as_array().into_iter().flatten() {
            times = times.saturating_mul(expansion(stage)?);
        }
    }
    Ok(times)
}

/// The same for the stage's own replacement.
fn replacement(stage: &Value) -> usize {
    let pattern = &stage["pattern"];
    let Some(content) = stage["content"].as_str().filter(|_| !pattern.is_null()) else { return 1 };
    let text = pattern["String"].as_str().or(pattern.as_str());
    let shortest = match (text, pattern["Regex"].as_str()) {
        (Some(text), _) => text.len(),
        (None, Some(regex)) => usize::from(!may_match_nothing(regex)),
        (None, None) => 0,
    };
    match shortest {
        // Before, between and after all bytes.
        0 => content.len().saturating_mul(2).saturating_add(1),
        shortest => content.len().div_ceil(shortest).max(1),
    }
}

/// Whether a pattern may match the empty string. Patterns that are not understood here may.
fn may_match_nothing(pattern: &str) -> bool {
    const PROBES: [&str; 7] = ["", "a", " ", "a b, 1", ".", "\n", "é 中\u{301}"];
    let Ok(regex) = Regex::new(pattern) else { return true };
    PROBES.iter().any(|probe| regex.find_iter(probe).any(|found| found.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn replace(pattern: Value, content: &str) -> Value {
        json!({"type": "Replace", "pattern": pattern, "content": content})
    }

    fn sequence(stages: &[Value]) -> Value {
        json!({"type": "Sequence", "normalizers": stages})
    }

    #[test]
    fn usual_stages_pass() {
        for stage in [
            Value::Null,
            json!({"type": "NFKC"}),
            json!({"type": "Prepend", "prepend": "▁"}),
            replace(json!({"String": " "}), "▁"),
            replace(json!({"Regex": " {2,}"}), "▁"),
            sequence(&vec![replace(json!({"Regex": "[。．]"}), "."); 40]),
            json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}),
            super::super::pipeline::normaliser(),
        ] {
            assert_eq!(check_expansion(&stage), Ok(()), "{stage}");
        }
    }

    #[test]
    fn stages_that_multiply_a_text_are_refused() {
        let long = "x".repeat(100);
        let doubled = replace(json!({"String": "a"}), "aa");
        for (stage, times) in [
            (replace(json!({"String": "a"}), &long), "100 times"),
            (replace(json!({"Regex": "a|b"}), &long), "100 times"),
            (replace(json!({"Regex": "a*"}), &"y".repeat(40)), "81 times"),
            (replace(json!({"Regex": "(?=a)"}), &"y".repeat(40)), "81 times"),
            (replace(json!({"String": ""}), &"y".repeat(40)), "81 times"),
            (sequence(&vec![doubled.clone(); 30]), "1073741824 times"),
            (sequence(&[sequence(&vec![doubled.clone(); 4]), sequence(&vec![doubled; 3])]), "128 times"),
            (json!({"type": "Prepend", "prepend": "x".repeat(2000)}), "2000 bytes in front"),
        ] {
            let problem = check_expansion(&stage).unwrap_err();
            assert!(problem.contains(times), "{problem}");
        }
    }
}
