//! The page that `regard look --out FILE.html` writes: both sentences, every chosen head, and a
//! script that shows one at a time. It is self-contained: nothing is fetched, and without scripts
//! it shows the sharpest head.

use super::{Drawing, View};
use regard::model::{AttentionKind, AttentionMap};
use std::hash::{DefaultHasher, Hash, Hasher};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A sentence with the maps to show, each with its heads, counted from 0.
pub(super) struct ShownSentence<'a> {
    pub(super) view: &'a View,
    pub(super) maps: Vec<(&'a AttentionMap, Vec<usize>)>,
}

/// A page of several sentences. `first` is the kind of attention that it opens with; `picture` is
/// shown if scripts are disabled.
pub(super) fn render(
    sentences: &[ShownSentence<'_>],
    first: AttentionKind,
    drawn: Drawing,
    picture: &str,
) -> String {
    let data = data(sentences, first, drawn);
    // The policy allows no other script, whatever the sentences are; their text is also escaped.
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    let nonce = format!("{:016x}", hasher.finish());
    let texts = sentences.first().map(|shown| (&shown.view.text, &shown.view.translation));
    let (source, translation) = texts.map_or_else(Default::default, |(s, t)| (escape(s), escape(t)));
    let controls: String = [
        ("sentence", "Sentence"),
        ("kind", "Attention"),
        ("layer", "Layer"),
        ("head", "Head"),
        ("draw", "Drawn as"),
    ]
    .iter()
    .map(|(id, name)| format!("<label>{name}<select id=\"{id}\"></select></label>"))
    .collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'\">\n\
         <title>Attention: {source}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>Attention</h1>\n\
         <div class=\"card texts\"><div><div class=\"soft\">Sentence</div><p id=\"source\">{source}</p></div>\
         <div><div class=\"soft\">Translation</div><p id=\"translation\">{translation}</p></div></div>\n\
         <div class=\"card\"><div class=\"controls\" id=\"controls\" hidden>{controls}</div><h2 id=\"title\"></h2>\
         <div class=\"scroll\" id=\"drawing\">{picture}</div><p class=\"readout soft\" id=\"readout\" aria-live=\"polite\"></p></div>\n\
         <div class=\"card\" id=\"all\" hidden><h2>All heads</h2><p class=\"soft\">One picture per head, named by layer and head. \
         Each row shows where that token looks. Select one to see it above.</p><div class=\"heads\" id=\"heads\"></div></div>\n\
         </main>\n<script type=\"application/json\" id=\"data\">{data}</script>\n<script nonce=\"{nonce}\">{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

fn data(sentences: &[ShownSentence<'_>], first: AttentionKind, drawn: Drawing) -> String {
    let sentences: Vec<String> = sentences.iter().map(sentence).collect();
    let drawn = match drawn {
        Drawing::Lines => "lines",
        Drawing::Matrix => "matrix",
    };
    format!("{{\"kind\":\"{}\",\"draw\":\"{drawn}\",\"sentences\":[{}]}}", name(first), sentences.join(","))
}

fn sentence(shown: &ShownSentence<'_>) -> String {
    let View { text, translation, source, decoder_input, decoder_output, .. } = shown.view;
    let list =
        |pieces: &[String]| format!("[{}]", pieces.iter().map(|p| string(p)).collect::<Vec<_>>().join(","));
    let maps: Vec<String> = shown.maps.iter().map(|(one, heads)| map(shown.view, one, heads)).collect();
    format!(
        "{{\"texts\":{{\"source\":{},\"translation\":{}}},\"source\":{},\"read\":{},\"said\":{},\"maps\":[{}]}}",
        string(text),
        string(translation),
        list(source),
        list(decoder_input),
        list(decoder_output),
        maps.join(","),
    )
}

/// Weights are integers in thousandths: more precise than a picture shows, in a third of the space.
fn map(view: &View, map: &AttentionMap, heads: &[usize]) -> String {
    let head = |&head: &usize| {
        let weights: Vec<String> =
            map.head(head).iter().map(|weight| format!("{:.0}", 1000.0 * weight.clamp(0.0, 1.0))).collect();
        format!("\"{}\":[{}]", head + 1, weights.join(","))
    };
    let first = if heads.contains(&map.sharpest_head()) {
        map.sharpest_head()
    } else {
        heads.first().copied().unwrap_or(0)
    };
    let sharpest = regard::model::sharpest(&view.maps, map.kind).is_some_and(|best| best.layer == map.layer);
    format!(
        "{{\"kind\":\"{}\",\"layer\":{},\"rows\":{},\"columns\":{},\"sharpest\":{sharpest},\"head\":{},\"heads\":{{{}}}}}",
        name(map.kind),
        map.layer + 1,
        map.rows,
        map.columns,
        first + 1,
        heads.iter().map(head).collect::<Vec<_>>().join(","),
    )
}

fn name(kind: AttentionKind) -> &'static str {
    match kind {
        AttentionKind::Cross => "cross",
        AttentionKind::Encoder => "encoder",
        AttentionKind::Decoder => "decoder",
    }
}

/// A JSON string that is safe inside a script element.
fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('<', "\\u003c").replace('>', "\\u003e")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_cannot_leave_its_script() {
        assert_eq!(string("</script><b>\"\\\n"), "\"\\u003c/script\\u003e\\u003cb\\u003e\\\"\\\\\\n\"");
        let parsed: String = serde_json::from_str(&string("a\"\\\u{1}<é>")).unwrap();
        assert_eq!(parsed, "a\"\\\u{1}<é>");
        assert_eq!(escape("<a & b>"), "&lt;a &amp; b&gt;");
        assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
    }
}
