//! Sentence splitting: the only place that decides where sentences end.
//!
//! The text is read once. At every run of marks that can end a sentence, including closing
//! quotation marks and brackets, [`Splitter::ends`] looks at a few words on either side, never
//! further, so the time is linear in the length of the text.

mod language;

use language::{Kinds, Language};
use std::ops::Range;

/// The byte ranges of the sentences of a text, with only white space between them.
///
/// Sentences end after `.`, `!`, `?` or `…`, optionally followed by closing quotation marks or
/// brackets, and a space, or after the marks of other scripts (`。`, `।`, `؟`, `։`, `။`), which need
/// no space. A sentence does not end before a lowercase letter, nor after an initial, an
/// abbreviation of the language, or an ordinal number (`J. Smith`, `Art. 5 Abs. 3`, `am 3.
/// Oktober`).
///
/// `language` is a code such as `de`, `deu` or `de-AT`. Without it, the abbreviations of all
/// languages are considered.
///
/// ```
/// use regard_core::text::sentence_ranges;
/// assert_eq!(sentence_ranges("Dr. No came. Why?  Ask.", Some("en")), [0..12, 13..17, 19..23]);
/// assert_eq!(sentence_ranges("Am 3. Oktober. Ja.", Some("de")), [0..14, 15..18]);
/// ```
pub fn sentence_ranges(text: &str, language: Option<&str>) -> Vec<Range<usize>> {
    let mut splitter = Splitter::new(text, Language::new(language));
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(mark) = splitter.next_mark(at) {
        at = mark.end;
        if splitter.ends(&mark) {
            found.push(trimmed(text, splitter.start..mark.end));
            splitter.begin(mark.end);
        }
    }
    found.push(trimmed(text, splitter.start..text.len()));
    found.retain(|range| !range.is_empty());
    found
}

/// The range without white space at its ends.
pub fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let inside = &text[range.clone()];
    let start = range.start + (inside.len() - inside.trim_start().len());
    start..start + inside.trim().len()
}

/// Marks that end a sentence without a following space.
fn is_hard(c: char) -> bool {
    matches!(
        c,
        '。' | '！'
            | '？'
            | '｡'
            | '।'
            | '॥'
            | '۔'
            | '؟'
            | '։'
            | '။'
            | '។'
            | '៕'
            | '።'
            | '፧'
            | '᠃'
            | '꓿'
            | '܀'
    )
}

/// Marks that end a sentence if a space follows.
fn is_soft(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '‽' | '\u{37e}')
}

fn is_closer(c: char) -> bool {
    matches!(
        c,
        '"' | '”'
            | '“'
            | '»'
            | '«'
            | '›'
            | '‹'
            | '\''
            | '’'
            | '‘'
            | ')'
            | ']'
            | '}'
            | '」'
            | '』'
            | '）'
            | '】'
            | '》'
            | '〉'
    )
}

fn is_opening_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„' | '«' | '»' | '‹' | '›' | '‘' | '’' | '\'' | '‚' | '「' | '『')
}

/// What may precede the first letter of a sentence.
fn is_opener(c: char) -> bool {
    is_opening_quote(c)
        || matches!(c, '(' | '[' | '{' | '（' | '【' | '《' | '¿' | '¡' | '-' | '–' | '—' | '―' | '*' | '•')
}

/// Chinese and Japanese, which have no spaces.
fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

fn is_thai(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}')
}

/// The maximum number of bytes examined on either side of a mark.
const NEARBY: usize = 96;

/// A run of marks, with the closing marks after it.
#[derive(Debug)]
struct Mark {
    /// Where its first mark is.
    start: usize,
    /// Where it ends.
    end: usize,
    first: char,
    /// Whether one of them needs no space.
    hard: bool,
    /// The last quotation mark or bracket after it.
    closer: Option<char>,
    /// Three full stops, or the ellipsis character.
    ellipsis: bool,
}

struct Splitter<'a> {
    text: &'a str,
    language: Language,
    /// Where the sentence begins.
    start: usize,
    /// Where its first word begins: after spaces, quotation marks, brackets and dashes.
    first_word: usize,
    /// Its first non-space character.
    first: Option<char>,
}

impl<'a> Splitter<'a> {
    fn new(text: &'a str, language: Language) -> Self {
        let mut splitter = Splitter { text, language, start: 0, first_word: 0, first: None };
        splitter.begin(0);
        splitter
    }

    /// Begins a sentence at `start`. Its beginning is examined once, however long that is.
    fn begin(&mut self, start: usize) {
        let rest = self.text[start..].trim_start();
        (self.start, self.first) = (start, rest.chars().next());
        let first_word = rest.find(|c: char| !c.is_whitespace() && !is_opener(c)).unwrap_or(rest.len());
        self.first_word = self.text.len() - rest.len() + first_word;
    }

    /// The next run of marks that begins at `from` or later.
    fn next_mark(&self, from: usize) -> Option<Mark> {
        let mut previous = ' ';
        for (at, c) in self.text.get(from..)?.char_indices() {
            if is_hard(c) || is_soft(c) || self.is_mark_of_language(c, previous) {
                return Some(self.mark(from + at, c));
            }
            previous = c;
        }
        None
    }

    /// The Greek question mark is a semicolon, and many write a colon for the Armenian full stop.
    fn is_mark_of_language(&self, c: char, previous: char) -> bool {
        match c {
            ';' => matches!(previous, '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}'),
            ':' => matches!(previous, '\u{530}'..='\u{58f}'),
            _ => false,
        }
    }

    fn mark(&self, start: usize, first: char) -> Mark {
        let mut mark = Mark {
            start,
            end: start + first.len_utf8(),
            first,
            hard: is_hard(first),
            closer: None,
            ellipsis: first == '…',
        };
        let mut stops = usize::from(first == '.');
        let mut bracket_of_note = false;
        while let Some(c) = self.text[mark.end..].chars().next() {
            let rest = &self.text[mark.end + c.len_utf8()..];
            // `end.[3]` is a note, `end. [3]` is not.
            let digit = |c: char| c.is_ascii_digit();
            if c == '[' && rest.starts_with(digit) && rest.trim_start_matches(digit).starts_with(']') {
                let digits = rest.len() - rest.trim_start_matches(digit).len();
                if digits > 4 {
                    break;
                }
                mark.end += 2 + digits;
                bracket_of_note = true;
            } else if is_hard(c) || is_soft(c) {
                mark.hard |= is_hard(c);
                stops += usize::from(c == '.');
                mark.ellipsis |= c == '…' || stops == 3;
                mark.end += c.len_utf8();
            } else if is_closer(c) && !bracket_of_note {
                mark.closer = Some(c);
                mark.end += c.len_utf8();
            } else if c.is_whitespace() && mark.closer.is_none() && spaced_mark(rest) {
                // `. . .`, `? !`
                mark.end += c.len_utf8();
            } else if c.is_whitespace() && rest.starts_with(['»', '›']) && self.closes(rest) {
                // French puts a space before the closing guillemet.
                let closer = rest.chars().next();
                mark.end += c.len_utf8() + closer.map_or(0, char::len_utf8);
                mark.closer = closer;
            } else {
                break;
            }
        }
        mark
    }

    /// Whether the guillemet at the beginning of `rest` closes: no word follows it directly.
    fn closes(&self, rest: &str) -> bool {
        rest.chars().nth(1).is_none_or(|c| c.is_whitespace() || matches!(c, ',' | '.' | ';' | ':' | ')'))
    }

    /// Whether the sentence ends after the mark.
    fn ends(&self, mark: &Mark) -> bool {
        let rest = &self.text[mark.end..];
        let Some(next) = rest.chars().next() else { return true };
        if mark.hard {
            let nearby =
                &self.text[floor(self.text, mark.start.saturating_sub(NEARBY)).max(self.start)..mark.start];
            if nearby.rfind('《').is_some_and(|at| !nearby[at..].contains('》')) && mark.closer.is_none() {
                // Inside a title.
                return false;
            }
            return !self.goes_on_behind_quote(mark, rest);
        }
        if !next.is_whitespace() {
            // Chinese and Japanese with ASCII punctuation.
            let before = self.text[..mark.start].chars().next_back();
            return matches!(mark.first, '!' | '?')
                && is_cjk(next)
                && before.is_some_and(is_cjk)
                && mark.closer.is_none();
        }
        let follow = Follow::new(rest);
        if !follow.can_begin(mark) {
            return false;
        }
        if mark.closer.is_some() && self.quote_goes_on(mark, &follow) {
            return false;
        }
        match mark.first {
            '.' if mark.ellipsis => !follow.uncased(),
            '.' => self.full_stop_ends(mark, &follow),
            '…' => !follow.uncased(),
            _ => true,
        }
    }

    /// After `。」` and similar: whether the sentence continues with a particle, or with who said it.
    fn goes_on_behind_quote(&self, mark: &Mark, rest: &str) -> bool {
        let Some(closer) = mark.closer else { return false };
        let follow = Follow::new(rest);
        let next = rest.chars().next().unwrap_or(' ');
        if "とってなのがをにはもでかや、，,；".contains(next) || follow.first.is_some_and(char::is_lowercase)
        {
            return true;
        }
        if matches!(closer, '”' | '』' | '」' | '"' | '’') && is_cjk(next) {
            let clause = rest.chars().take(9).collect::<String>();
            let end = clause.find(['。', '，', '：', '！', '？', ',', '、']);
            let spoken = ['说', '說', '道', '问', '問', '喊', '叫', '答', '想', '写', '寫', '示', '称', '稱'];
            return end.is_some_and(|end| clause[..end].ends_with(spoken));
        }
        // `"कौन है?" उसने पूछा।`: a question within quotation marks that begins the sentence.
        matches!(mark.first, '؟' | '？') && !is_cjk(next) && follow.uncased() && self.begins_with_quote()
    }

    /// Whether the sentence continues although a quotation or a bracket in it has ended.
    fn quote_goes_on(&self, mark: &Mark, follow: &Follow<'_>) -> bool {
        if mark.closer == Some(')') {
            return matches!(mark.first, '!' | '?') && self.first != Some('(');
        }
        if !matches!(mark.first, '!' | '?' | '…' | ';' | '\u{37e}') || !self.begins_with_quote() {
            return false;
        }
        follow.uncased() || follow.words().take(3).any(|word| self.language.is_speech(&word.to_lowercase()))
    }

    fn begins_with_quote(&self) -> bool {
        self.first.is_some_and(is_opening_quote)
    }

    /// The word that ends at a byte offset of this sentence, and where it begins.
    fn word_before(&self, end: usize) -> (&'a str, usize) {
        let floor = floor(self.text, end.saturating_sub(NEARBY)).max(self.start);
        let text = &self.text[floor..end];
        let parts =
            |c: char| c.is_whitespace() || (is_opener(c) && !matches!(c, '-' | '\'' | '’' | '"')) || c == '/';
        let start =
            text.rfind(parts).map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
        let word = text[start..].trim_start_matches(is_opener);
        (word, end - word.len())
    }

    /// Whether a single full stop ends the sentence, given that what follows can begin one.
    fn full_stop_ends(&self, mark: &Mark, follow: &Follow<'_>) -> bool {
        let (word, start) = self.word_before(mark.start);
        if word.is_empty() || mark.closer.is_some_and(|c| c != '\'' && c != '’') && !is_initial(word) {
            // `"… ." Next`, `etc.) Next`: the abbreviation only counts before a lowercase letter.
            return true;
        }
        if word.ends_with(is_thai) || follow.first.is_some_and(is_thai) {
            return false;
        }
        let at_start = start <= self.first_word;
        if let Some(ends) = self.number_ends(word, start, at_start, follow) {
            return ends;
        }
        let kinds = self.abbreviation(word, start);
        let initial =
            is_initial(word) && !kinds.is(Kinds::BEFORE) && !kinds.is(Kinds::END) && !kinds.is(Kinds::MAYBE);
        if kinds.is_abbreviation() && !(initial && follow.first.is_some_and(char::is_uppercase)) {
            return self.abbreviation_ends(kinds, follow);
        }
        if is_initial(word) {
            // `Plan B. The …`, but `J. S. Bach`, and `a. …` in a list.
            let alone =
                !at_start && !self.word_before(start).0.ends_with('.') && !self.follows_initial(start);
            return alone && self.begins(follow) && !follow.uncased();
        }
        if is_acronym(word) || has_no_vowel(word) {
            return self.abbreviation_ends(Kinds::MAYBE, follow);
        }
        // In Indic scripts sentences end with a danda; a short word before a full stop is an
        // abbreviation.
        let indic = |c: char| matches!(c, '\u{900}'..='\u{dff}');
        !(word.chars().all(indic) && word.chars().count() <= 2)
    }

    /// Whether the word before the one at `start` is an initial.
    fn follows_initial(&self, start: usize) -> bool {
        let before = self.text[..start].trim_end();
        match before.strip_suffix('.') {
            Some(before) if before.len() > self.start => is_initial(self.word_before(before.len()).0),
            _ => false,
        }
    }

    /// Whether the next word often begins a sentence and is not an initial.
    fn begins(&self, follow: &Follow<'_>) -> bool {
        let Some(word) = follow.words().next() else { return false };
        let initial =
            is_initial(word) && follow.text.strip_prefix(word).is_some_and(|rest| rest.starts_with('.'));
        !initial && self.language.begins_sentences(&word.to_lowercase())
    }

    /// Whether the sentence ends after a number or a Roman numeral; `None` if the word is neither.
    fn number_ends(&self, word: &str, start: usize, at_start: bool, follow: &Follow<'_>) -> Option<bool> {
        let digits = word.chars().all(|c| c.is_numeric() || c == '.' || c == '-' || c == '–');
        let roman = is_roman(word);
        if !(digits || roman && word.len() > 1) {
            return None;
        }
        if at_start && (roman || word.len() <= 3 || word.contains('.')) {
            // The number of a list item.
            return Some(false);
        }
        if !self.language.has_ordinals() || word.contains('.') {
            return Some(true);
        }
        let next = follow.words().next().unwrap_or_default().to_lowercase();
        if self.language.begins_sentences(&next) {
            return Some(true);
        }
        let before = self.word_before(self.text[..start].trim_end().len()).0.to_lowercase();
        let before = before.trim_end_matches([',', '.']);
        if digits
            && (self.language.is_before_ordinal(before) || self.language.is_counted(&next))
            && word.len() <= 3
        {
            return Some(false);
        }
        // German nouns are capitalised: `Platz 3. Sieger` is rare, `kam als 3. Läufer an` is not.
        let small = word.parse::<u32>().is_ok_and(|n| n <= 31) && self.language.is("de");
        Some(!((small || roman) && follow.first.is_some_and(char::is_uppercase) && !self.language.is("")))
    }

    /// The kinds of the word before a full stop that begins at `start`.
    fn abbreviation(&self, word: &str, start: usize) -> Kinds {
        let lower = word.to_lowercase();
        // `z. B.` is listed as `z.b`.
        let before = self.text[..start].trim_end();
        if let Some(earlier) =
            before.strip_suffix('.').filter(|b| b.len() > self.start && start - before.len() <= 3)
        {
            let (first, _) = self.word_before(earlier.len());
            if first.chars().count() <= 3 {
                let kinds = self.language.kinds(&format!("{}.{lower}", first.to_lowercase()));
                if kinds.is_abbreviation() {
                    return kinds;
                }
            }
        }
        let kinds = self.language.kinds(&lower);
        if kinds.is_abbreviation() {
            return kinds;
        }
        // `l'art. 5`, `Dipl.-Ing.`, `وأ.`
        let tail = lower.rsplit(['\'', '’', '-']).next().unwrap_or_default();
        let tail = tail.strip_prefix('و').unwrap_or(tail);
        if tail.len() < lower.len() {
            let kinds = self.language.kinds(tail);
            if kinds.is_abbreviation() {
                return kinds;
            }
        }
        let street = lower.ends_with("str") && ["", "de", "nl"].iter().any(|code| self.language.is(code));
        if street { Kinds::MAYBE } else { Kinds::default() }
    }

    fn abbreviation_ends(&self, kinds: Kinds, follow: &Follow<'_>) -> bool {
        let Some(first) = follow.first else { return true };
        let next = follow.words().next().unwrap_or_default();
        // `App. B`, `No. IV`; but `No. I think so.`
        let lettered =
            kinds.is(Kinds::NUMBER) && next.len() == 1 && !matches!(next, "A" | "E" | "I" | "O" | "Y");
        if first.is_numeric() || lettered || (next.len() > 1 && is_roman(next)) {
            return false;
        }
        if follow.uncased() {
            return kinds.is(Kinds::END);
        }
        if kinds.is(Kinds::END) {
            return !self.language.is_counted(&next.to_lowercase());
        }
        if kinds.is(Kinds::MAYBE) {
            return self.begins(follow);
        }
        !kinds.is(Kinds::BEFORE)
    }
}

/// What follows a mark.
struct Follow<'a> {
    /// From the first letter or digit on, or from the first other character that is not an opener.
    text: &'a str,
    first: Option<char>,
    /// The openers before it.
    openers: &'a str,
}

impl<'a> Follow<'a> {
    fn new(rest: &'a str) -> Self {
        let nearby = &rest[..floor(rest, NEARBY * 2)];
        let text = nearby.trim_start_matches(|c: char| c.is_whitespace() || is_opener(c));
        let openers = nearby[..nearby.len() - text.len()].trim_start();
        Follow { text, first: text.chars().next(), openers }
    }

    fn words(&self) -> impl Iterator<Item = &'a str> {
        self.text
            .split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’')
            .filter(|word| !word.is_empty())
    }

    /// Whether it begins with letters of a script without case.
    fn uncased(&self) -> bool {
        self.first.is_some_and(|c| c.is_alphabetic() && !c.is_lowercase() && !c.is_uppercase())
    }

    /// Whether it can begin a sentence: it does not continue with a lowercase letter.
    fn can_begin(&self, mark: &Mark) -> bool {
        let Some(first) = self.first else { return true };
        if !first.is_lowercase() {
            return !matches!(first, ',' | ';' | ':');
        }
        let mut letters = self.text.chars().skip(1);
        let second = letters.next();
        // `iPhone`; `b) …` in a list; `¿` and `¡` begin a sentence whatever follows.
        second.is_some_and(char::is_uppercase)
            || (second == Some(')')
                && self.openers.is_empty()
                && letters.next().is_some_and(char::is_whitespace))
            || (self.openers.contains(['¿', '¡']) && mark.first != '.')
    }
}

/// Whether a text begins with a mark that no word follows directly.
fn spaced_mark(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(is_soft)
        && characters.next().is_none_or(|c| c.is_whitespace() || is_soft(c) || is_closer(c))
}

/// The last character boundary at or before a byte.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// A single letter.
fn is_initial(word: &str) -> bool {
    let mut letters = word.chars();
    matches!((letters.next(), letters.next()), (Some(c), None) if c.is_alphabetic() && !is_cjk(c) && !matches!(c, '\u{ac00}'..='\u{d7af}'))
}

fn is_roman(word: &str) -> bool {
    !word.is_empty()
        && word.len() <= 8
        && word.chars().all(|c| matches!(c, 'I' | 'V' | 'X' | 'L' | 'C' | 'D' | 'M'))
}

/// Short parts with full stops between them: `U.S`, `S.p.A`.
fn is_acronym(word: &str) -> bool {
    let part = |part: &str| {
        let count = part.trim_start_matches('-').chars().count();
        (1..=3).contains(&count) && part.chars().all(|c| c.is_alphabetic() || c == '-')
    };
    word.contains('.') && word.split('.').all(part)
}

/// A short word of consonants, which is an abbreviation in most languages; all capitals are a name.
fn has_no_vowel(word: &str) -> bool {
    let consonant = |c: char| match c.to_ascii_lowercase() {
        'a' | 'e' | 'i' | 'o' | 'u' | 'y' => false,
        c if c.is_ascii_alphabetic() => true,
        c => matches!(c, 'б'..='д' | 'ж' | 'з' | 'к'..='н' | 'п'..='т' | 'ф'..='щ'),
    };
    let count = word.chars().count();
    (2..=5).contains(&count) && word.chars().all(consonant) && word.chars().skip(1).any(char::is_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(text: &str) -> Vec<&str> {
        sentence_ranges(text, Some("en")).into_iter().map(|range| &text[range]).collect()
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
        assert_eq!(sentences("It ended.[12] Then it began."), ["It ended.[12]", "Then it began."]);
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

    #[test]
    fn nothing_breaks_the_splitter() {
        let pieces = [
            "a", ".", "»", " ", "…", "[1]", "é", "。", "」", "1.", "\u{a0}", "«", "A", "\"", "ß", "\n", "🙂",
        ];
        let mut state = 7usize;
        for _ in 0..20_000 {
            let text: String = (0..12)
                .map(|_| {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    pieces[(state >> 33) % pieces.len()]
                })
                .collect();
            for language in [None, Some("de"), Some("xx")] {
                let ranges = sentence_ranges(&text, language);
                let joined: String = ranges.iter().map(|range| &text[range.clone()]).collect();
                let visible = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
                assert_eq!(visible(&joined), visible(&text));
            }
        }
    }
}
