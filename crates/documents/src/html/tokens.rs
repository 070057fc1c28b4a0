//! HTML as tags and text. Nothing is refused: what is no tag is text, and all tokens together are the input.

/// A piece of HTML.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Text with its entities.
    Text(&'a str),
    /// A tag that parts the text, or a comment or script between such tags.
    Break(&'a str),
    /// The start of an element inside a line.
    Open { name: String, raw: &'a str },
    /// Its end.
    Close { name: String, raw: &'a str },
    /// Something inside a line without text: an image, a comment.
    Point(&'a str),
    /// A whole element inside a line whose text is not translated.
    Opaque { raw: &'a str, text: &'a str },
}

/// Elements inside a line.
const INLINE: [&str; 36] = [
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font",
    "i", "img", "ins", "kbd", "label", "mark", "math", "q", "s", "samp", "small", "span", "strike", "strong",
    "sub", "sup", "svg", "time", "tt", "u", "var", "wbr",
];
/// Of these, those that have no content.
const EMPTY: [&str; 2] = ["img", "wbr"];
/// Elements whose text is shown, but not translated.
const OPAQUE: [&str; 4] = ["code", "kbd", "samp", "var"];
/// Elements whose content is no text.
const HIDDEN: [&str; 7] = ["script", "style", "svg", "math", "template", "textarea", "pre"];

/// Bytes that are looked through in vain for the end of tags: in a text of nothing but `<a` that would be
/// the square of its length.
const PATIENCE: usize = 1 << 24;

/// The tokens of a text.
pub(super) fn tokens(html: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut text = 0;
    let mut at = 0;
    let mut patience = PATIENCE;
    while let Some(step) = html[at..].find('<') {
        let start = at + step;
        match token(html, start) {
            Some((token, end)) => {
                if text < start {
                    found.push(Token::Text(&html[text..start]));
                }
                found.push(token);
                (text, at) = (end, end);
            }
            None => {
                at = start + 1;
                if html[at..].starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')) {
                    patience = patience.saturating_sub(html.len() - at);
                }
                if patience == 0 {
                    break;
                }
            }
        }
    }
    if text < html.len() {
        found.push(Token::Text(&html[text..]));
    }
    found
}

/// The token that begins with the `<` at `start`, and where it ends; nothing if it is a mere character.
fn token(html: &str, start: usize) -> Option<(Token<'_>, usize)> {
    let rest = &html[start..];
    if let Some(comment) = rest.strip_prefix("<!--") {
        // What is not closed takes in all that follows: nothing of a sentence may come behind it.
        let Some(end) = comment.find("-->").map(|n| start + n + 7) else {
            return Some((Token::Break(rest), html.len()));
        };
        return Some((Token::Point(&html[start..end]), end));
    }
    if rest.starts_with("<!") || rest.starts_with("<?") {
        let end = start + rest.find('>')? + 1;
        return Some((Token::Break(&html[start..end]), end));
    }
    let closes = rest.starts_with("</");
    let name_at = if closes { 2 } else { 1 };
    let name = &rest[name_at..];
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let length = name.find(|c: char| c.is_whitespace() || c == '>' || c == '/').unwrap_or(name.len());
    let name = name[..length].to_ascii_lowercase();
    let end = start + tag_length(rest)?;
    let raw = &html[start..end];
    let inline = INLINE.contains(&name.as_str());
    if closes {
        return Some((if inline { Token::Close { name, raw } } else { Token::Break(raw) }, end));
    }
    if raw.ends_with("/>") || EMPTY.contains(&name.as_str()) {
        return Some((if inline { Token::Point(raw) } else { Token::Break(raw) }, end));
    }
    let untouched = OPAQUE.contains(&name.as_str()) || is_marked(raw);
    if untouched || HIDDEN.contains(&name.as_str()) {
        let (content, whole) = element(html, end, &name);
        let raw = &html[start..whole];
        let closed = content < whole;
        return Some(match inline && closed {
            true if untouched => (Token::Opaque { raw, text: &html[end..content] }, whole),
            true => (Token::Point(raw), whole),
            false => (Token::Break(raw), whole),
        });
    }
    Some((if inline { Token::Open { name, raw } } else { Token::Break(raw) }, end))
}

/// How long a tag is, up to the `>` that is not within quotation marks.
fn tag_length(tag: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in tag.char_indices() {
        match (quote, c) {
            (None, '>') => return Some(at + 1),
            (None, '"' | '\'') if tag[..at].trim_end().ends_with('=') => quote = Some(c),
            (Some(q), _) if q == c => quote = None,
            _ => {}
        }
    }
    None
}

/// Whether a tag says that its content is not to be translated.
fn is_marked(tag: &str) -> bool {
    let tag = tag.to_ascii_lowercase();
    tag.contains("translate=\"no\"") || tag.contains("translate='no'") || tag.contains("translate=no") || {
        tag.contains("class=")
            && tag.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "notranslate")
    }
}

/// Where the content of an element ends that begins at `from`, and where the element ends. Elements of the
/// same name may lie in it.
fn element(html: &str, from: usize, name: &str) -> (usize, usize) {
    let mut depth = 1;
    let mut at = from;
    while let Some(step) = html[at..].find('<') {
        let start = at + step;
        let rest = &html[start + 1..];
        let (closes, rest) = rest.strip_prefix('/').map_or((false, rest), |rest| (true, rest));
        let named = rest.get(..name.len()).is_some_and(|n| n.eq_ignore_ascii_case(name))
            && rest[name.len()..].starts_with(|c: char| c.is_whitespace() || c == '>' || c == '/');
        at = start + 1;
        if !named {
            continue;
        }
        let Some(end) = tag_length(&html[start..]).map(|n| start + n) else { break };
        // Inside a script, `<script` is text.
        match closes {
            true => depth -= 1,
            false if !matches!(name, "script" | "style" | "textarea") => depth += 1,
            false => {}
        }
        if depth == 0 {
            return (start, end);
        }
        at = end;
    }
    (html.len(), html.len())
}
