//! Character references such as `&amp;`, as the HTML standard defines them.

use crate::protect::is_private_use;
use crate::segment::Escaping;
use htmlize::{Context, ENTITIES};
use std::collections::{HashMap, HashSet};

/// Private-use characters that stand for unknown entities of a document. They pass through
/// translation and are then written as the entities again. None of them occurs in the document
/// itself.
#[derive(Debug, Default)]
pub(crate) struct EntityPlaceholders {
    /// Private-use characters that occur in the document.
    reserved: HashSet<char>,
    taken: HashMap<String, char>,
    /// The last candidate that was tried.
    last: Option<char>,
}

impl EntityPlaceholders {
    /// Placeholders that do not occur in this document.
    pub(crate) fn new(html: &str) -> Self {
        let reserved = html.chars().filter(|c| is_private_use(*c)).collect();
        EntityPlaceholders { reserved, ..EntityPlaceholders::default() }
    }

    /// The placeholder of an entity; `None` if no character is left.
    fn placeholder(&mut self, entity: &str) -> Option<char> {
        if let Some(&c) = self.taken.get(entity) {
            return Some(c);
        }
        let first =
            self.last.map_or('\u{e000}', |last| char::from_u32(u32::from(last) + 1).unwrap_or(char::MAX));
        let c = (first..=char::MAX).find(|c| is_private_use(*c) && !self.reserved.contains(c));
        self.last = Some(c.unwrap_or(char::MAX));
        self.taken.insert(entity.to_owned(), c?);
        c
    }
}

/// Appends the text with its entities decoded, and records their spelling: of `all` entities, or
/// only of those with placeholders.
pub(crate) fn decode(
    raw: &str,
    context: Context,
    text: &mut String,
    entities: &mut EntityPlaceholders,
    (escaping, all): (&mut Escaping, bool),
) {
    let mut rest = raw;
    while let Some(at) = rest.find('&') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some((entity, c)) = entity(rest, context) else {
            text.push('&');
            rest = &rest[1..];
            continue;
        };
        // Without its semicolon, an entity could absorb the text that follows it.
        let whole = || format!("{};", entity.trim_end_matches(';'));
        match c.or_else(|| entities.placeholder(&whole())) {
            Some(c) => {
                text.push(c);
                if (all && !c.is_ascii_alphanumeric()) || is_private_use(c) {
                    escaping.record(c, whole);
                }
            }
            None => text.push_str(entity),
        }
        rest = &rest[entity.len()..];
    }
    text.push_str(rest);
}

/// The maximum length of an entity in bytes.
const LONGEST: usize = 40;

/// The entity at the start of the text and the character it stands for. The character is `None` if
/// the entity stands for several characters, is unknown, or stands for a character that a
/// translation could lose.
fn entity(text: &str, context: Context) -> Option<(&str, Option<char>)> {
    let name = text[1..].bytes().take(LONGEST).take_while(u8::is_ascii_alphanumeric).count();
    if name > 0 {
        return named(text, name + 1, context);
    }
    let digits = text.strip_prefix("&#")?;
    let (prefix, radix) = if digits.starts_with(['x', 'X']) { (3, 16) } else { (2, 10) };
    let digits = text[prefix..].bytes().take(LONGEST).take_while(|b| char::from(*b).is_digit(radix)).count();
    if digits == 0 || digits == LONGEST {
        return None;
    }
    let end = prefix + digits;
    let entity = &text[..end + usize::from(text[end..].starts_with(';'))];
    Some((entity, single(&htmlize::unescape(entity))))
}

/// The longest known entity at the start of a name, with its `;` or without it where that is
/// allowed. An unknown name with a `;` is an entity, too.
fn named(text: &str, name: usize, context: Context) -> Option<(&str, Option<char>)> {
    let known = |entity: &str| ENTITIES.get(entity.as_bytes()).copied();
    let closed = text[name..].starts_with(';').then(|| &text[..name + 1]);
    if let Some(entity) = closed
        && let Some(characters) = known(entity)
    {
        return Some((entity, std::str::from_utf8(characters).ok().and_then(single)));
    }
    for end in (2..=name).rev() {
        let Some(characters) = known(&text[..end]) else { continue };
        // `?a=1&copy=2` is part of a URL, not a copyright sign.
        let goes_on = text[end..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '=');
        if context == Context::General || !goes_on {
            return Some((&text[..end], std::str::from_utf8(characters).ok().and_then(single)));
        }
    }
    closed.map(|entity| (entity, None))
}

/// The only character of a text, if it survives translation unambiguously: control characters would
/// separate words, and a private-use character could be mistaken for a placeholder.
fn single(text: &str) -> Option<char> {
    let mut characters = text.chars();
    let c = characters.next().filter(|_| characters.next().is_none())?;
    (!c.is_control() && !is_private_use(c)).then_some(c)
}
