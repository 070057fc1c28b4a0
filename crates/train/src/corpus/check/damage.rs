//! Detection of encoding errors.

/// Whether a text shows signs of an encoding error: lost characters (U+FFFD), UTF-8 decoded as
/// Windows-1252 (`Ã¼` for `ü`), or control characters.
pub(super) fn is_damaged(text: &str) -> bool {
    if text.bytes().all(|b| (0x20..0x7f).contains(&b) || b == b'\t') {
        return false;
    }
    let lost = |c: char| c == '\u{fffd}' || (c.is_control() && c != '\t');
    text.chars().any(lost) || has_mojibake(text)
}

/// Whether some characters, encoded as Windows-1252, form one UTF-8 character.
fn has_mojibake(text: &str) -> bool {
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let more = match single_byte(c) {
            Some(0xc2..=0xdf) => 1,
            Some(0xe0..=0xef) => 2,
            Some(0xf0..=0xf4) => 3,
            _ => continue,
        };
        let mut next = rest.clone();
        if (0..more).all(|_| next.next().and_then(single_byte).is_some_and(|b| (0x80..0xc0).contains(&b)))
            // A quotation mark after a capital letter is legitimate: `„Ä“`.
            && !(more == 1 && matches!(rest.clone().next(), Some('“' | '”' | '’' | '»' | '«' | '…' | '–' | '—' | '·' | '°')))
        {
            return true;
        }
    }
    false
}

/// The byte of a character in Windows-1252, or in Latin-1 if Windows-1252 has none.
fn single_byte(c: char) -> Option<u8> {
    const HIGH: [(char, u8); 27] = [
        ('€', 0x80),
        ('‚', 0x82),
        ('ƒ', 0x83),
        ('„', 0x84),
        ('…', 0x85),
        ('†', 0x86),
        ('‡', 0x87),
        ('ˆ', 0x88),
        ('‰', 0x89),
        ('Š', 0x8a),
        ('‹', 0x8b),
        ('Œ', 0x8c),
        ('Ž', 0x8e),
        ('‘', 0x91),
        ('’', 0x92),
        ('“', 0x93),
        ('”', 0x94),
        ('•', 0x95),
        ('–', 0x96),
        ('—', 0x97),
        ('˜', 0x98),
        ('™', 0x99),
        ('š', 0x9a),
        ('›', 0x9b),
        ('œ', 0x9c),
        ('ž', 0x9e),
        ('Ÿ', 0x9f),
    ];
    match u32::from(c) {
        code @ 0x80..=0xff => Some(code as u8),
        _ => HIGH.iter().find(|(high, _)| *high == c).map(|(_, byte)| *byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_told_from_foreign_text() {
        for text in
            ["FÃ¼nf MÃ¤nner", "Itâ€™s a dog", "caf\u{fffd}", "ÐŸÑ€Ð¸Ð²ÐµÑ‚", "naÃ¯ve", "a\u{0}b", "\u{85}x"]
        {
            assert!(is_damaged(text), "{text}");
        }
        for text in [
            "Fünf Männer",
            "It’s a dog",
            "«É», „Ä“ und „Ö“",
            "Привет",
            "狗在跑。",
            "NÃO É ASSIM",
            "À 5 € près…",
            "São Tomé – Brasil",
            "a\tb",
            "Ángel",
            "ÇA",
        ] {
            assert!(!is_damaged(text), "{text}");
        }
    }
}
