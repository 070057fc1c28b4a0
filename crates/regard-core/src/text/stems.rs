//! Recognises forms of the same word by their common letters: without a dictionary, for every
//! language that inflects at the end of its words.

use tokenizers::NormalizedString;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// A word lowercased and without accents, for comparing forms of a word.
///
/// ```
/// assert_eq!(regard_core::text::fold("Ações"), "acoes");
/// ```
pub fn fold(word: &str) -> String {
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    let mut normalised = NormalizedString::from(word);
    normalised.nfd();
    let is_mark = |c: &char| c.general_category_group() == GeneralCategoryGroup::Mark;
    normalised.get().chars().filter(|c| !is_mark(c)).flat_map(char::to_lowercase).collect()
}

/// The maximum number of letters of an ending.
const ENDING: usize = 3;
/// The minimum length of a word that another word extends.
const EXTENDED: usize = 3;
/// The minimum number of common letters of words with two different endings.
const COMMON: usize = 5;

/// Whether two [`fold`]ed words are likely to be forms of the same word: one extends the other by
/// an ending of at most three letters, or both have such an ending after at least five common
/// letters that make up two thirds of the longer word.
///
/// ```
/// use regard_core::text::share_stem;
/// assert!(share_stem("ficheiro", "ficheiros") && share_stem("configuracao", "configuracoes"));
/// assert!(!share_stem("porta", "porto") && !share_stem("datei", "dateiname"));
/// ```
pub fn share_stem(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    let common = a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    let (rest_a, rest_b) = (a.chars().count() - common, b.chars().count() - common);
    if rest_a > ENDING || rest_b > ENDING {
        return false;
    }
    match rest_a == 0 || rest_b == 0 {
        true => common >= EXTENDED,
        false => common >= COMMON && common >= 2 * rest_a.max(rest_b),
    }
}

/// Whether the script of a character separates words by spaces.
pub fn is_spaced(c: char) -> bool {
    !matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{2e80}'..='\u{a4cf}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_share_its_stem() {
        let share = |a: &str, b: &str| share_stem(&fold(a), &fold(b));
        for (a, b) in [
            ("Haus", "Häuser"),
            ("Datei", "Dateien"),
            ("configurações", "Configuração"),
            ("файл", "файлами"),
            ("Hund", "hunde"),
            ("nome", "nomes"),
        ] {
            assert!(share(a, b) && share(b, a), "{a} {b}");
        }
        for (a, b) in [("casa", "caso"), ("de", "des"), ("Ordner", "Ort"), ("", "a"), ("Zeit", "Zeitung ab")]
        {
            assert!(!share(a, b) && !share(b, a), "{a} {b}");
        }
    }
}
