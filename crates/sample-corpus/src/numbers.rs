//! Numbers, dates and times of day in words. French numbers are hyphenated in the traditional way.

use super::lexicon::{Gender, Gloss};

/// A text in English and in French.
pub(super) type Text = (String, String);

const EN_SMALL: &str = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen \
                        sixteen seventeen eighteen nineteen";
const EN_TENS: &str = "- - twenty thirty forty fifty sixty seventy eighty ninety";
const EN_ORDINALS: &str = "- first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth \
                           fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth";
const FR_SMALL: &str = "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize \
                        dix-sept dix-huit dix-neuf";
const FR_TENS: &str = "- - vingt trente quarante cinquante soixante";

const MONTHS_EN: &str =
    "January February March April May June July August September October November December";
const MONTHS_FR: &str =
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre";
const DAYS_EN: &str = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday";
const DAYS_FR: &str = "lundi mardi mercredi jeudi vendredi samedi dimanche";

/// The word at a place of a list.
fn nth(list: &'static str, n: usize) -> &'static str {
    list.split(' ').nth(n).unwrap_or_default()
}

/// A month, from 0 to 11.
pub(super) fn month(n: usize) -> Gloss {
    (nth(MONTHS_EN, n), nth(MONTHS_FR, n))
}

/// A day of the week, from 0 to 6.
pub(super) fn weekday(n: usize) -> Gloss {
    (nth(DAYS_EN, n), nth(DAYS_FR, n))
}

/// A number from 0 to 100 in English.
pub(super) fn english(n: usize) -> String {
    match (n, n % 10) {
        (0..20, _) => nth(EN_SMALL, n).to_owned(),
        (100.., _) => "one hundred".to_owned(),
        (_, 0) => nth(EN_TENS, n / 10).to_owned(),
        (_, unit) => format!("{}-{}", nth(EN_TENS, n / 10), nth(EN_SMALL, unit)),
    }
}

/// A number from 0 to 100 in French before a noun of that gender.
pub(super) fn french(n: usize, gender: Gender) -> String {
    let one = if gender == Gender::Feminine { "une" } else { "un" };
    let small = |n: usize| if n == 1 { one } else { nth(FR_SMALL, n) };
    match (n, n % 10) {
        (0..20, _) => small(n).to_owned(),
        (20..70, 0) => nth(FR_TENS, n / 10).to_owned(),
        (20..70, 1) => format!("{} et {one}", nth(FR_TENS, n / 10)),
        (20..70, unit) => format!("{}-{}", nth(FR_TENS, n / 10), small(unit)),
        (71, _) => "soixante et onze".to_owned(),
        (70..80, _) => format!("soixante-{}", small(n - 60)),
        (80, _) => "quatre-vingts".to_owned(),
        (81..100, _) => format!("quatre-vingt-{}", small(n - 80)),
        _ => "cent".to_owned(),
    }
}

/// "third" for 3, from 1 to 31.
fn english_ordinal(n: usize) -> String {
    match (n, n % 10) {
        (0..20, _) => nth(EN_ORDINALS, n).to_owned(),
        (_, 0) => format!("{}ieth", nth(EN_TENS, n / 10).trim_end_matches('y')),
        (_, unit) => format!("{}-{}", nth(EN_TENS, n / 10), nth(EN_ORDINALS, unit)),
    }
}

/// "the third of May", "trois mai": in French without the article, and only the first is an
/// ordinal.
pub(super) fn date(day: usize, month_number: usize) -> Text {
    let (en, fr) = month(month_number);
    let number = if day == 1 { "premier".to_owned() } else { french(day, Gender::Masculine) };
    (format!("the {} of {en}", english_ordinal(day)), format!("{number} {fr}"))
}

/// English before the hour and French after it, but "o'clock" follows the hour.
pub(super) const MINUTES: [Gloss; 10] = [
    ("o'clock", ""),
    ("five past", "cinq"),
    ("ten past", "dix"),
    ("a quarter past", "et quart"),
    ("twenty past", "vingt"),
    ("half past", "et demie"),
    ("twenty to", "moins vingt"),
    ("a quarter to", "moins le quart"),
    ("ten to", "moins dix"),
    ("five to", "moins cinq"),
];

/// The time by the hour that is named, 1 to 11, and an index into [`MINUTES`].
pub(super) fn clock(hour: usize, minutes: usize) -> Text {
    let (before, after) = MINUTES[minutes];
    let en = if minutes == 0 {
        format!("{} {before}", english(hour))
    } else {
        format!("{before} {}", english(hour))
    };
    let noun = if hour == 1 { "heure" } else { "heures" };
    (en, format!("{} {noun} {after}", french(hour, Gender::Feminine)).trim_end().to_owned())
}
