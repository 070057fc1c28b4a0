//! Text preprocessing: what sacreBLEU does to a line before counting.
//!
//! Its tokenizers are chains of regular-expression substitutions. Each replaces one character or
//! two adjacent ones, so they are written here as two scans, [`surround`] and [`split_pairs`], with
//! the same left-to-right, non-overlapping matching.

use std::fmt;
use std::str::FromStr;

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use crate::{Error, Result};

/// The tokenizers for BLEU, under sacreBLEU's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tokenizer {
    /// `13a`: mteval-v13a, the default.
    #[default]
    V13a,
    /// `intl`: mteval-v14 international, by Unicode punctuation and symbols.
    Intl,
    /// `char`: every character is a token.
    Char,
    /// `zh`: separates Chinese characters, tokenizes the rest like `13a`.
    Zh,
    /// `none`: the text is already tokenized; splits at white space only.
    None,
}

impl Tokenizer {
    /// Every tokenizer, in the order of the help text.
    pub const ALL: [Tokenizer; 5] =
        [Tokenizer::V13a, Tokenizer::Intl, Tokenizer::Char, Tokenizer::Zh, Tokenizer::None];

    /// The name in signatures and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Tokenizer::V13a => "13a",
            Tokenizer::Intl => "intl",
            Tokenizer::Char => "char",
            Tokenizer::Zh => "zh",
            Tokenizer::None => "none",
        }
    }

    /// The tokenizer for a target language, by its code (`zh`, `zh-TW`, `zho_Hans`): sacreBLEU's
    /// `zh` for Chinese, `char` for Japanese, Korean and the scripts that put no spaces between
    /// words, `13a` for all others. sacreBLEU itself takes MeCab for Japanese and Korean, which
    /// needs a dictionary.
    ///
    /// ```
    /// use regard_metrics::Tokenizer;
    /// assert_eq!(Tokenizer::for_language("zh-CN"), Tokenizer::Zh);
    /// assert_eq!(Tokenizer::for_language("jpn_Jpan"), Tokenizer::Char);
    /// assert_eq!(Tokenizer::for_language("de"), Tokenizer::V13a);
    /// ```
    pub fn for_language(code: &str) -> Self {
        let code = code.to_ascii_lowercase();
        let mut parts = code.split(['-', '_']);
        let language = parts.next().unwrap_or_default();
        // A script subtag takes precedence over the language.
        let of_script = parts.find_map(|script| match script {
            "hans" | "hant" | "hani" => Some(Tokenizer::Zh),
            "jpan" | "kore" | "hang" | "thai" | "laoo" | "khmr" | "mymr" | "tibt" => Some(Tokenizer::Char),
            "latn" | "cyrl" => Some(Tokenizer::V13a),
            _ => None,
        });
        of_script.unwrap_or(match language {
            "zh" | "zho" | "chi" | "cmn" | "yue" | "wuu" | "nan" | "lzh" => Tokenizer::Zh,
            "ja" | "jpn" | "ko" | "kor" | "th" | "tha" | "lo" | "lao" | "km" | "khm" | "my" | "mya"
            | "bur" | "bo" | "bod" | "tib" | "dz" | "dzo" | "shn" => Tokenizer::Char,
            _ => Tokenizer::V13a,
        })
    }

    /// The text with its tokens separated by white space.
    pub fn apply(self, line: &str) -> String {
        match self {
            Tokenizer::V13a => western(&format!(" {} ", unescape(&join_lines_13a(line)))),
            Tokenizer::Intl => international(line),
            Tokenizer::Char => surround(line, |_| true),
            Tokenizer::Zh => western(&surround(trim(line), is_chinese)),
            Tokenizer::None => line.to_owned(),
        }
    }
}

impl fmt::Display for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Tokenizer {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let known = Tokenizer::ALL.into_iter().find(|t| t.name() == name);
        known.ok_or_else(|| {
            let names = Tokenizer::ALL.map(Tokenizer::name).join(", ");
            Error::config("tokenize", format!("unknown tokenizer {name:?}; accepted: {names}"))
        })
    }
}

/// Whether most letters of a text belong to scripts without spaces between words, where `13a` finds
/// no word boundaries.
pub fn is_unspaced(text: &str) -> bool {
    let unspaced = |c: char| {
        matches!(c, '\u{e00}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
    };
    let (mut letters, mut without) = (0usize, 0usize);
    for c in text.chars().filter(|c| c.is_alphabetic()) {
        letters += 1;
        without += usize::from(unspaced(c));
    }
    2 * without > letters
}

/// White space as in Python's `str.split`: Unicode's, plus the four ASCII separators that Rust
/// leaves out.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Python's `str.split()`.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

/// Python's `str.rstrip()`.
pub(super) fn trim_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Puts a space on both sides of every matching character.
fn surround(text: &str, chosen: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 2);
    for c in text.chars() {
        if chosen(c) {
            out.extend([' ', c, ' ']);
        } else {
            out.push(c);
        }
    }
    out
}

/// Where [`split_pairs`] puts its second space; the first always goes between the two characters.
#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

/// Separates every two adjacent characters that match `first` and `second`. The match consumes
/// both, so a character belongs to one pair only, as in a regular-expression substitution.
fn split_pairs(
    text: &str,
    side: Side,
    first: impl Fn(char) -> bool,
    second: impl Fn(char) -> bool,
) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    let mut chars = text.chars().peekable();
    while let Some(a) = chars.next() {
        match chars.peek().copied() {
            Some(b) if first(a) && second(b) => {
                chars.next();
                match side {
                    Side::Before => out.extend([' ', a, ' ', b]),
                    Side::After => out.extend([a, ' ', b, ' ']),
                }
            }
            _ => out.push(a),
        }
    }
    out
}

/// The ASCII punctuation that is always a token of its own: all but `'`, `,`, `-` and `.`; the
/// class also includes the space.
fn is_western_symbol(c: char) -> bool {
    matches!(c, '{'..='~' | '['..='`' | ' '..='&' | '('..='+' | ':'..='@' | '/')
}

fn is_period_or_comma(c: char) -> bool {
    matches!(c, '.' | ',')
}

/// The language-dependent half of mteval-v13a: symbols, then periods and commas not inside a
/// number, then a dash after a digit.
fn western(text: &str) -> String {
    western_numbers(&surround(text, is_western_symbol))
}

fn western_numbers(text: &str) -> String {
    let text = split_pairs(text, Side::After, |c| !c.is_ascii_digit(), is_period_or_comma);
    let text = split_pairs(&text, Side::Before, is_period_or_comma, |c| !c.is_ascii_digit());
    split_pairs(&text, Side::After, |c| c.is_ascii_digit(), |c| c == '-')
}

fn join_lines_13a(line: &str) -> String {
    line.replace("<skipped>", "").replace("-\n", "").replace('\n', " ")
}

/// Resolves the four escapes of mteval in sequence: `&amp;lt;` therefore becomes `<`.
fn unescape(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    text.replace("&quot;", "\"").replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")
}

fn international(line: &str) -> String {
    let group = |c: char| c.general_category_group();
    let number = |c: char| group(c) == GeneralCategoryGroup::Number;
    let punctuation = |c: char| group(c) == GeneralCategoryGroup::Punctuation;
    let text = split_pairs(line, Side::After, |c| !number(c), punctuation);
    let text = split_pairs(&text, Side::Before, punctuation, |c| !number(c));
    surround(&text, |c| group(c) == GeneralCategoryGroup::Symbol)
}

/// sacreBLEU's "Chinese" characters. Its two supplementary ranges were written with `\u` and five
/// digits, which Python reads as a character and a digit: they became U+2001 to U+2A6D (with
/// dashes, quotes, arrows and mathematics), while the ideographs beyond U+FFFF are missing. Equal
/// scores require the same set.
fn is_chinese(c: char) -> bool {
    matches!(c,
        '\u{2001}'..='\u{2a6d}'
        | '\u{2e80}'..='\u{2eff}'
        | '\u{2f00}'..='\u{2fdf}'
        | '\u{2ff0}'..='\u{303f}'
        | '\u{3100}'..='\u{312f}'
        | '\u{31a0}'..='\u{31bf}'
        | '\u{31c0}'..='\u{31ef}'
        | '\u{3200}'..='\u{4db5}'
        | '\u{4e00}'..='\u{9fbb}'
        | '\u{f900}'..='\u{fa2d}'
        | '\u{fa30}'..='\u{fa6a}'
        | '\u{fa70}'..='\u{fad9}'
        | '\u{fe10}'..='\u{fe1f}'
        | '\u{fe30}'..='\u{fe4f}'
        | '\u{ff00}'..='\u{ffef}')
}

/// TER's preprocessing of a line; the options are those of [`super::Ter`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Tercom {
    pub(super) normalized: bool,
    pub(super) no_punct: bool,
    pub(super) asian_support: bool,
    pub(super) case_sensitive: bool,
}

impl Tercom {
    /// The text with its tokens separated by white space.
    pub(super) fn apply(self, line: &str) -> String {
        let mut text = if self.case_sensitive { line.to_owned() } else { line.to_lowercase() };
        if self.normalized {
            text = tercom_western(&text);
            if self.asian_support {
                text = surround(&text, |c| is_asian_apart(c) || is_asian_punctuation(c));
            }
        }
        if self.no_punct {
            text.retain(|c| !matches!(c, '.' | ',' | '?' | ':' | ';' | '!' | '"' | '(' | ')'));
            if self.asian_support {
                text.retain(|c| !is_asian_punctuation(c));
            }
        }
        text
    }
}

fn tercom_western(line: &str) -> String {
    let joined = line.replace("\n-", "").replace('\n', " ");
    let text = surround(&format!(" {} ", unescape(&joined)), is_western_symbol);
    // Possessives. The text ends with a space here, so this pattern also covers the end of the
    // line.
    western_numbers(&text.replace("'s ", " 's "))
}

/// Characters that tercom separates one by one: strokes, radicals, ideographs, enclosed and
/// compatibility forms. (Its rules for kana apply only at the very start of the text, where
/// normalisation has put a space, so they never fire.)
fn is_asian_apart(c: char) -> bool {
    matches!(c,
        '\u{2e80}'..='\u{2eff}'
        | '\u{31c0}'..='\u{31ef}'
        | '\u{3200}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe4f}')
}

fn is_asian_punctuation(c: char) -> bool {
    matches!(c,
        '\u{3001}' | '\u{3002}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}'
        | '\u{30fb}' | '\u{ff61}'..='\u{ff65}'
        | '\u{ff01}' | '\u{ff02}' | '\u{ff08}' | '\u{ff09}' | '\u{ff0c}' | '\u{ff0e}'
        | '\u{ff1a}' | '\u{ff1b}' | '\u{ff1f}')
}
