//! `&amp;` and its kind.

use crate::protect::is_private_use;
use std::collections::{HashMap, HashSet};

/// Entities that stand for a character which matters to a translation.
const NAMED: [(&str, char); 69] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", '\u{a0}'),
    ("copy", '©'),
    ("reg", '®'),
    ("trade", '™'),
    ("hellip", '…'),
    ("mdash", '—'),
    ("ndash", '–'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("sbquo", '‚'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("bdquo", '„'),
    ("laquo", '«'),
    ("raquo", '»'),
    ("euro", '€'),
    ("pound", '£'),
    ("yen", '¥'),
    ("cent", '¢'),
    ("sect", '§'),
    ("deg", '°'),
    ("middot", '·'),
    ("bull", '•'),
    ("times", '×'),
    ("iexcl", '¡'),
    ("iquest", '¿'),
    ("Agrave", 'À'),
    ("Aacute", 'Á'),
    ("Acirc", 'Â'),
    ("Atilde", 'Ã'),
    ("Auml", 'Ä'),
    ("Aring", 'Å'),
    ("AElig", 'Æ'),
    ("Ccedil", 'Ç'),
    ("Egrave", 'È'),
    ("Eacute", 'É'),
    ("Ecirc", 'Ê'),
    ("Ntilde", 'Ñ'),
    ("Ouml", 'Ö'),
    ("Oslash", 'Ø'),
    ("Uuml", 'Ü'),
    ("szlig", 'ß'),
    ("agrave", 'à'),
    ("aacute", 'á'),
    ("acirc", 'â'),
    ("atilde", 'ã'),
    ("auml", 'ä'),
    ("aring", 'å'),
    ("aelig", 'æ'),
    ("ccedil", 'ç'),
    ("egrave", 'è'),
    ("eacute", 'é'),
    ("ecirc", 'ê'),
    ("euml", 'ë'),
    ("iacute", 'í'),
    ("icirc", 'î'),
    ("ntilde", 'ñ'),
    ("oacute", 'ó'),
    ("ocirc", 'ô'),
    ("ouml", 'ö'),
    ("oslash", 'ø'),
    ("uacute", 'ú'),
    ("ugrave", 'ù'),
    ("uuml", 'ü'),
];

/// Characters of the private use areas that stand for the entities of a document that are not known: they
/// come through the translation and are written as the entities again. None of them is in the document
/// itself.
#[derive(Debug, Default)]
pub(super) struct StandIns {
    /// Characters that are in the document.
    reserved: HashSet<char>,
    taken: HashMap<String, char>,
    /// The last one that was tried.
    last: Option<char>,
}

impl StandIns {
    /// For a document, whose own characters are no stand-ins.
    pub(super) fn new(html: &str) -> Self {
        let reserved = html.chars().filter(|c| is_private_use(*c)).collect();
        StandIns { reserved, ..StandIns::default() }
    }

    /// The stand-in of an entity; nothing if there is none left.
    fn of(&mut self, entity: &str) -> Option<char> {
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

/// How the characters were written that stood as entities.
#[derive(Debug, Default)]
pub struct Entities {
    written: HashMap<char, String>,
}

/// Adds the text with its entities as characters, and notes which were written so: `all` of them, or only
/// those that have stand-ins.
pub(super) fn decode(
    raw: &str,
    text: &mut String,
    stand_ins: &mut StandIns,
    entities: &mut Entities,
    all: bool,
) {
    let mut rest = raw;
    while let Some(at) = rest.find('&') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some(entity) = entity(rest) else {
            text.push('&');
            rest = &rest[1..];
            continue;
        };
        match character(&entity[1..entity.len() - 1]).or_else(|| stand_ins.of(entity)) {
            Some(c) => {
                text.push(c);
                if all || is_private_use(c) {
                    entities.written.entry(c).or_insert_with(|| entity.to_owned());
                }
            }
            None => text.push_str(entity),
        }
        rest = &rest[entity.len()..];
    }
    text.push_str(rest);
}

/// The entity at the start of the text, from `&` to `;`.
fn entity(text: &str) -> Option<&str> {
    let name = text[1..].bytes().take(32).take_while(|b| b.is_ascii_alphanumeric() || *b == b'#').count();
    (name > 0 && text[1 + name..].starts_with(';')).then(|| &text[..name + 2])
}

fn character(name: &str) -> Option<char> {
    match name.strip_prefix('#') {
        None => NAMED.iter().find(|(n, _)| *n == name).map(|(_, c)| *c),
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok()?,
                None => number.parse().ok()?,
            };
            // A private character could be taken for the stand-in of another entity.
            char::from_u32(code).filter(|c| !c.is_control() && !is_private_use(*c))
        }
    }
}

/// The text as HTML: characters that were written as entities are written so again, and none can be taken
/// for markup.
pub fn escape_with(text: &str, entities: &Entities) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match (entities.written.get(&c), c) {
            (Some(entity), _) => out.push_str(entity),
            (None, '&') => out.push_str("&amp;"),
            (None, '<') => out.push_str("&lt;"),
            (None, '>') => out.push_str("&gt;"),
            _ => out.push(c),
        }
    }
    out
}
