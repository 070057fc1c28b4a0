//! Sentences of a text: the one place that decides where they end.

use std::ops::Range;

/// Where the sentences of a text lie, in bytes; only white space lies between them.
///
/// They end behind `.`, `!`, `?` or `…`, perhaps within quotation marks or brackets, and a space,
/// or behind the CJK forms of these. What goes on with a small letter is no new sentence, and
/// neither is what follows an initial or one of a few titles (`J. Smith`, `Dr. Smith`).
///
/// ```
/// use regard_core::text::sentence_ranges;
/// assert_eq!(sentence_ranges("Dr. No came. Why?  Ask."), [0..12, 13..17, 19..23]);
/// ```
pub fn sentence_ranges(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut previous = ' ';
    for (at, c) in text.char_indices() {
        let ends = match previous {
            '。' | '！' | '？' | '」' | '』' | '）' => {
                let marks = ['。', '！', '？'];
                let closers = ['」', '』', '）'];
                !marks.contains(&c)
                    && !closers.contains(&c)
                    && text[start..at].trim_end_matches(closers).ends_with(marks)
            }
            '.' | '!' | '?' | '…' | '"' | '”' | '»' | ')' | '\'' | '’' => {
                c.is_whitespace() && ends_sentence(&text[start..at]) && begins_sentence(&text[at..])
            }
            _ => false,
        };
        if ends {
            found.push(start..at);
            start = at;
        }
        previous = c;
    }
    found.push(start..text.len());
    found.into_iter().map(|range| trimmed(text, range)).filter(|range| !range.is_empty()).collect()
}

/// The range without the white space at its ends.
pub fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let inside = &text[range.clone()];
    let start = range.start + (inside.len() - inside.trim_start().len());
    start..start + inside.trim().len()
}

/// Whether the text ends with a mark that ends a sentence, perhaps within quotation marks or brackets.
fn ends_sentence(text: &str) -> bool {
    let text = text.trim_end_matches(['"', '”', '»', ')', '\'', '’']);
    match text.strip_suffix('.') {
        None => text.ends_with(['!', '?', '…']),
        Some(before) => {
            let word = before.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
            let mut letters = word.chars();
            let initial = matches!((letters.next(), letters.next()), (Some(c), None) if c.is_uppercase());
            !initial && !TITLES.contains(&word)
        }
    }
}

/// What stands before a name or a number, with a full stop that ends nothing.
const TITLES: [&str; 21] = [
    "Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Mt", "vs", "No", "Nr", "Fig", "Vol", "pp", "e.g", "i.e", "z.B",
    "Hr", "Fr", "Mme", "Mlle", "Sr",
];

/// Whether what follows can be the beginning of a sentence: it does not go on with a small letter.
fn begins_sentence(rest: &str) -> bool {
    rest.trim_start().chars().next().is_none_or(|c| !c.is_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(text: &str) -> Vec<&str> {
        sentence_ranges(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn text_is_split_behind_its_sentences() {
        assert_eq!(sentences("One. Two! \"Three?\" Four"), ["One.", "Two!", "\"Three?\"", "Four"]);
        assert_eq!(sentences("Pi is 3.14 (about) and so on"), ["Pi is 3.14 (about) and so on"]);
        assert_eq!(sentences("一。二！三"), ["一。", "二！", "三"]);
        assert_eq!(sentences(""), [""; 0]);
        assert_eq!(sentences(" \n "), [""; 0]);
        assert_eq!(sentences("One.\n Two ! Three"), ["One.", "Two !", "Three"]);
        assert_eq!(sentences("「一。」二。"), ["「一。」", "二。"]);
    }

    #[test]
    fn a_full_stop_may_end_nothing() {
        for text in
            ["J. S. Bach played.", "Ask Dr. No.", "See (Fig. 3) and e.g. this.", "He said \"No!\" and left."]
        {
            assert_eq!(sentences(text), [text]);
        }
        assert_eq!(sentences("It was he. J. Smith left."), ["It was he.", "J. Smith left."]);
    }
}
