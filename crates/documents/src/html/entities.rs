//! `&amp;` and its kind.

use std::collections::HashMap;

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

/// How the characters were written that stood as entities.
#[derive(Debug, Default)]
pub struct Entities {
    written: HashMap<char, String>,
    read: HashMap<String, char>,
    /// How many stand-ins of the private use area are taken.
    stand_ins: u32,
}

impl Entities {
    /// The character of an entity. One that is not known becomes a character of the private use area, which comes through the
    /// translation and is written as the entity again; nothing, if there is none left.
    fn character(&mut self, entity: &str) -> Option<char> {
        if let Some(&c) = self.read.get(entity) {
            return Some(c);
        }
        let c = character(&entity[1..entity.len() - 1]).or_else(|| {
            let c = char::from_u32(0xe000 + self.stand_ins).filter(|c| *c <= '\u{f8ff}')?;
            self.stand_ins += 1;
            Some(c)
        })?;
        self.read.insert(entity.to_owned(), c);
        self.written.entry(c).or_insert_with(|| entity.to_owned());
        Some(c)
    }
}

/// Adds the text with its entities as characters, and notes which were written so.
pub(super) fn decode(raw: &str, text: &mut String, entities: &mut Entities) {
    let mut rest = raw;
    while let Some(at) = rest.find('&') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some(entity) = entity(rest) else {
            text.push('&');
            rest = &rest[1..];
            continue;
        };
        match entities.character(entity) {
            Some(c) => text.push(c),
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
            char::from_u32(code).filter(|c| !c.is_control())
        }
    }
}

/// The text as HTML: characters that were written as entities are written so again, and none can be taken for markup.
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
