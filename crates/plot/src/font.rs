//! A small typeface for pictures made of pixels: `font.txt` draws each character on a grid of 5 × 9 dots, and neighbouring dots
//! are joined by strokes, so that the letters are smooth at any size.

use std::collections::HashMap;
use std::sync::OnceLock;

/// Rows above the baseline; two more lie below it.
pub(super) const ASCENT: usize = 7;
const ROWS: usize = 9;

/// The strokes of one character, between dots counted from the top left; accents have negative rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Glyph {
    pub(super) strokes: Vec<((f64, f64), (f64, f64))>,
    /// The first dot column used, and how many.
    pub(super) ink: (usize, usize),
}

type Dots = Vec<(i32, i32)>;

/// Letters with a mark: the letter with it, without it, and the mark. Latin scripts of Europe; the rest shows as a box.
const MARKED: &str = "àa` áa´ âa^ ãa~ äa¨ åa˚ āa¯ ăa˘ ąa˛ çc¸ ćc´ čcˇ ċc˙ ďdˇ èe` ée´ êe^ ëe¨ ēe¯ ěeˇ ęe˛ ėe˙ ğg˘ ģg¸ ìı` íı´ îı^ ïı¨ īı¯ ķk¸ ļl¸ ľlˇ \
ñn~ ńn´ ňnˇ ņn¸ òo` óo´ ôo^ õo~ öo¨ őo˝ ōo¯ ŕr´ řrˇ śs´ šsˇ şs¸ șs¸ ťtˇ ţt¸ țt¸ ùu` úu´ ûu^ üu¨ ůu˚ űu˝ ūu¯ ųu˛ ýy´ ÿy¨ źz´ žzˇ żz˙ \
ÀA` ÁA´ ÂA^ ÃA~ ÄA¨ ÅA˚ ĀA¯ ĂA˘ ĄA˛ ÇC¸ ĆC´ ČCˇ ĎDˇ ÈE` ÉE´ ÊE^ ËE¨ ĒE¯ ĚEˇ ĘE˛ ĖE˙ ĞG˘ ÌI` ÍI´ ÎI^ ÏI¨ ĪI¯ İI˙ ÑN~ ŃN´ ŇNˇ ÒO` ÓO´ ÔO^ ÕO~ ÖO¨ \
ŐO˝ ŘRˇ ŚS´ ŠSˇ ŞS¸ ȘS¸ ŤTˇ ȚT¸ ÙU` ÚU´ ÛU^ ÜU¨ ŮU˚ ŰU˝ ŪU¯ ÝY´ ŹZ´ ŽZˇ ŻZ˙";

/// Characters that look like another.
const ALIKE: &str = "−- ‐- ‑- ―— ‹< ›> ‟“ ′' ″\" ∙· •· ⁄/ μµ ";

/// The dots of a mark: two rows, which stand one row above the letter or, for the last two, below the baseline.
fn mark(mark: char) -> &'static [(i32, i32)] {
    match mark {
        '`' => &[(1, 0), (2, 1)],
        '´' => &[(3, 0), (2, 1)],
        '^' => &[(1, 1), (2, 0), (3, 1)],
        'ˇ' => &[(1, 0), (2, 1), (3, 0)],
        '~' => &[(0, 1), (1, 0), (2, 1), (3, 1), (4, 0)],
        '¨' => &[(1, 1), (3, 1)],
        '˝' => &[(2, 0), (1, 1), (4, 0), (3, 1)],
        '˚' => &[(2, -1), (1, 0), (3, 0), (2, 1)],
        '˙' => &[(2, 1)],
        '¯' => &[(1, 1), (2, 1), (3, 1)],
        '˘' => &[(1, 0), (2, 1), (3, 0)],
        '¸' => &[(2, 7), (1, 8)],
        '˛' => &[(3, 7), (4, 8)],
        _ => &[],
    }
}

/// The letter that a letter and a combining mark after it make together, if the font has it.
pub(super) fn compose(letter: char, combining: char) -> Option<char> {
    const COMBINING: [(char, char); 13] = [
        ('\u{300}', '`'),
        ('\u{301}', '´'),
        ('\u{302}', '^'),
        ('\u{303}', '~'),
        ('\u{304}', '¯'),
        ('\u{306}', '˘'),
        ('\u{307}', '˙'),
        ('\u{308}', '¨'),
        ('\u{30A}', '˚'),
        ('\u{30B}', '˝'),
        ('\u{30C}', 'ˇ'),
        ('\u{327}', '¸'),
        ('\u{328}', '˛'),
    ];
    let mark = COMBINING.iter().find(|(c, _)| *c == combining)?.1;
    let letter = if letter == 'i' { 'ı' } else { letter };
    let entry = MARKED.split_whitespace().find(|e| e.chars().skip(1).eq([letter, mark]))?;
    entry.chars().next()
}

fn drawn() -> HashMap<char, Dots> {
    let mut glyphs: HashMap<char, Dots> = HashMap::new();
    let lines: Vec<&str> = include_str!("font.txt").lines().collect();
    for block in lines.chunks(ROWS + 1) {
        for (i, name) in block[0].split(' ').filter_map(|n| n.chars().next()).enumerate() {
            let mut dots = Vec::new();
            for (y, row) in block[1..].iter().enumerate() {
                let cells = row.split(' ').nth(i).unwrap_or_default();
                dots.extend(
                    cells.chars().enumerate().filter(|(_, c)| *c == '#').map(|(x, _)| (x as i32, y as i32)),
                );
            }
            glyphs.insert(name, dots);
        }
    }
    for entry in MARKED.split_whitespace() {
        let mut parts = entry.chars();
        let (Some(c), Some(base), Some(accent)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let Some(mut dots) = glyphs.get(&base).cloned() else { continue };
        let top = dots.iter().map(|d| d.1).min().unwrap_or(0);
        let below = matches!(accent, '¸' | '˛');
        dots.extend(mark(accent).iter().map(|&(x, y)| (x, if below { y } else { y + top - 3 })));
        glyphs.insert(c, dots);
    }
    for entry in ALIKE.split_whitespace() {
        let mut parts = entry.chars();
        if let (Some(c), Some(like)) = (parts.next(), parts.next())
            && let Some(dots) = glyphs.get(&like).cloned()
        {
            glyphs.insert(c, dots);
        }
    }
    glyphs
}

/// Neighbouring dots joined; diagonal ones only where no corner joins them already.
fn strokes(dots: &Dots) -> Glyph {
    let has = |x: i32, y: i32| dots.contains(&(x, y));
    let point = |x: i32, y: i32| (f64::from(x), f64::from(y));
    let mut glyph = Glyph::default();
    for &(x, y) in dots {
        let mut alone = true;
        for (dx, dy) in [(1, 0), (0, 1), (1, 1), (-1, 1), (-1, 0), (0, -1), (-1, -1), (1, -1)] {
            let corner = dx != 0 && dy != 0;
            if has(x + dx, y + dy) && !(corner && (has(x + dx, y) || has(x, y + dy))) {
                alone = false;
                // Each pair is met from both sides; the first four directions keep one of them.
                if dy > 0 || (dy == 0 && dx > 0) {
                    glyph.strokes.push((point(x, y), point(x + dx, y + dy)));
                }
            }
        }
        if alone {
            glyph.strokes.push((point(x, y), point(x, y)));
        }
    }
    let first = dots.iter().map(|d| d.0).min().unwrap_or(0);
    let last = dots.iter().map(|d| d.0).max().unwrap_or(2);
    glyph.ink = (first as usize, (last - first + 1) as usize);
    glyph
}

/// The drawing of a character; a box for those that the font lacks, nothing for a space.
pub(super) fn glyph(c: char) -> &'static Glyph {
    static GLYPHS: OnceLock<(HashMap<char, Glyph>, Glyph, Glyph)> = OnceLock::new();
    let (glyphs, blank, unknown) = GLYPHS.get_or_init(|| {
        let glyphs = drawn().iter().map(|(c, dots)| (*c, strokes(dots))).collect();
        let edge = (0..4).flat_map(|i| [(i, 0), (i + 1, 6)]).chain((0..6).flat_map(|i| [(0, i + 1), (4, i)]));
        (glyphs, Glyph { strokes: Vec::new(), ink: (0, 3) }, strokes(&edge.collect()))
    });
    match glyphs.get(&c) {
        Some(glyph) => glyph,
        None if c.is_whitespace() => blank,
        None => unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printable_ascii_character_is_drawn_and_no_two_alike() {
        let glyphs = drawn();
        for c in '!'..='~' {
            let dots = glyphs.get(&c).unwrap_or_else(|| panic!("{c} is missing"));
            assert!(!dots.is_empty(), "{c} is empty");
            for other in '!'..c {
                assert_ne!(glyphs[&other], *dots, "{other} and {c}");
            }
        }
    }

    #[test]
    fn accents_stand_above_their_letter() {
        let top = |c: char| glyph(c).strokes.iter().map(|s| s.0.1.min(s.1.1)).fold(f64::INFINITY, f64::min);
        assert_eq!(top('u'), 2.0);
        assert_eq!(top('ü'), 0.0);
        assert_eq!(top('É'), -3.0);
        assert!(glyph('ç').strokes.iter().any(|s| s.1.1 == 8.0));
    }

    #[test]
    fn unknown_characters_are_a_box_and_spaces_nothing() {
        assert_eq!(glyph('你').strokes.len(), glyph('\u{10FFFF}').strokes.len());
        assert!(!glyph('你').strokes.is_empty());
        assert!(glyph(' ').strokes.is_empty());
        assert_eq!(glyph('l').ink, (1, 3));
    }

    #[test]
    fn marks_join_their_letter() {
        assert_eq!(compose('e', '\u{301}'), Some('é'));
        assert_eq!(compose('i', '\u{308}'), Some('ï'));
        assert_eq!(compose('q', '\u{308}'), None);
        assert_eq!(compose('e', 'x'), None);
    }

    #[test]
    fn corners_are_not_filled() {
        // An L has a vertical of seven dots and a horizontal of five: ten joints, none diagonal.
        let l = glyph('L');
        assert_eq!(l.strokes.len(), 10);
        assert!(l.strokes.iter().all(|(a, b)| a.0 == b.0 || a.1 == b.1));
    }
}
