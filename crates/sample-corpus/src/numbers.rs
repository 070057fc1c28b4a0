//! Numbers, dates and times of day in words. French numbers are hyphenated in the traditional way.

use super::lexicon::Gender;

const EN_SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const EN_TENS: [&str; 10] =
    ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const EN_ORDINALS: [&str; 20] = [
    "",
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
];
const FR_SMALL: [&str; 20] = [
    "zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze", "douze",
    "treize", "quatorze", "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf",
];
const FR_TENS: [&str; 7] = ["", "", "vingt", "trente", "quarante", "cinquante", "soixante"];

/// English name and length of each month, and the French name.
pub(super) const MONTHS: [(&str, u8, &str); 12] = [
    ("January", 31, "janvier"),
    ("February", 29, "février"),
    ("March", 31, "mars"),
    ("April", 30, "avril"),
    ("May", 31, "mai"),
    ("June", 30, "juin"),
    ("July", 31, "juillet"),
    ("August", 31, "août"),
    ("September", 30, "septembre"),
    ("October", 31, "octobre"),
    ("November", 30, "novembre"),
    ("December", 31, "décembre"),
];

pub(super) const WEEKDAYS: [(&str, &str); 7] = [
    ("Monday", "lundi"),
    ("Tuesday", "mardi"),
    ("Wednesday", "mercredi"),
    ("Thursday", "jeudi"),
    ("Friday", "vendredi"),
    ("Saturday", "samedi"),
    ("Sunday", "dimanche"),
];

/// A number from 0 to 100 in English.
pub(super) fn english(n: u8) -> String {
    match n {
        0..20 => EN_SMALL[usize::from(n)].to_owned(),
        20..100 => {
            let (tens, unit) = (EN_TENS[usize::from(n / 10)], usize::from(n % 10));
            if unit == 0 { tens.to_owned() } else { format!("{tens}-{}", EN_SMALL[unit]) }
        }
        _ => "one hundred".to_owned(),
    }
}

/// A number from 0 to 100 in French before a noun of that gender.
pub(super) fn french(n: u8, gender: Gender) -> String {
    let one = if gender == Gender::Feminine { "une" } else { "un" };
    let small = |n: u8| if n == 1 { one } else { FR_SMALL[usize::from(n)] };
    match n {
        0..20 => small(n).to_owned(),
        20..70 => {
            let tens = FR_TENS[usize::from(n / 10)];
            match n % 10 {
                0 => tens.to_owned(),
                1 => format!("{tens} et {one}"),
                unit => format!("{tens}-{}", small(unit)),
            }
        }
        71 => "soixante et onze".to_owned(),
        70..80 => format!("soixante-{}", small(n - 60)),
        80 => "quatre-vingts".to_owned(),
        81..100 => format!("quatre-vingt-{}", small(n - 80)),
        _ => "cent".to_owned(),
    }
}

/// "third" for 3, from 1 to 31.
pub(super) fn english_ordinal(n: u8) -> String {
    match (n, n % 10) {
        (0..20, _) => EN_ORDINALS[usize::from(n)].to_owned(),
        (_, 0) => format!("{}ieth", EN_TENS[usize::from(n / 10)].trim_end_matches('y')),
        (_, unit) => format!("{}-{}", EN_TENS[usize::from(n / 10)], EN_ORDINALS[usize::from(unit)]),
    }
}

/// A day of the year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    /// From 1.
    pub(super) day: u8,
    /// Index into [`MONTHS`].
    pub(super) month: usize,
}

impl Date {
    /// "the third of May".
    pub(super) fn english(self) -> String {
        format!("the {} of {}", english_ordinal(self.day), MONTHS[self.month].0)
    }

    /// "trois mai", without the article; only the first is an ordinal.
    pub(super) fn french(self) -> String {
        let month = MONTHS[self.month].2;
        if self.day == 1 {
            format!("premier {month}")
        } else {
            format!("{} {month}", french(self.day, Gender::Masculine))
        }
    }
}

/// English before the hour and French after it, but "o'clock" follows the hour.
pub(super) const MINUTES: [(&str, &str); 10] = [
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

/// A time of day as it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    Noon,
    Midnight,
    /// The hour that is named, 1 to 11, and an index into [`MINUTES`].
    Hour(u8, usize),
}

impl Clock {
    pub(super) fn english(self) -> String {
        match self {
            Clock::Noon => "noon".to_owned(),
            Clock::Midnight => "midnight".to_owned(),
            Clock::Hour(hour, 0) => format!("{} o'clock", english(hour)),
            Clock::Hour(hour, minutes) => format!("{} {}", MINUTES[minutes].0, english(hour)),
        }
    }

    pub(super) fn french(self) -> String {
        match self {
            Clock::Noon => "midi".to_owned(),
            Clock::Midnight => "minuit".to_owned(),
            Clock::Hour(hour, minutes) => {
                let noun = if hour == 1 { "heure" } else { "heures" };
                let text = format!("{} {noun} {}", french(hour, Gender::Feminine), MINUTES[minutes].1);
                text.trim_end().to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Gender::{Feminine, Masculine};

    #[test]
    fn french_numbers_are_traditional() {
        for (n, text) in [
            (7, "sept"),
            (16, "seize"),
            (17, "dix-sept"),
            (21, "vingt et un"),
            (22, "vingt-deux"),
            (31, "trente et un"),
            (48, "quarante-huit"),
            (61, "soixante et un"),
            (70, "soixante-dix"),
            (71, "soixante et onze"),
            (77, "soixante-dix-sept"),
            (80, "quatre-vingts"),
            (81, "quatre-vingt-un"),
            (90, "quatre-vingt-dix"),
            (91, "quatre-vingt-onze"),
            (99, "quatre-vingt-dix-neuf"),
            (100, "cent"),
        ] {
            assert_eq!(french(n, Masculine), text);
        }
        for (n, text) in [
            (1, "une"),
            (21, "vingt et une"),
            (71, "soixante et onze"),
            (81, "quatre-vingt-une"),
            (91, "quatre-vingt-onze"),
        ] {
            assert_eq!(french(n, Feminine), text);
        }
    }

    #[test]
    fn english_numbers_and_ordinals() {
        for (n, text) in
            [(4, "four"), (14, "fourteen"), (40, "forty"), (85, "eighty-five"), (100, "one hundred")]
        {
            assert_eq!(english(n), text);
        }
        for (n, text) in [
            (1, "first"),
            (2, "second"),
            (8, "eighth"),
            (12, "twelfth"),
            (20, "twentieth"),
            (21, "twenty-first"),
            (22, "twenty-second"),
            (30, "thirtieth"),
            (31, "thirty-first"),
        ] {
            assert_eq!(english_ordinal(n), text);
        }
    }

    #[test]
    fn numbers_are_distinct() {
        let (mut en, mut fr): (Vec<_>, Vec<_>) =
            (0..=100).map(|n| (english(n), french(n, Masculine))).unzip();
        en.sort();
        en.dedup();
        fr.sort();
        fr.dedup();
        assert_eq!((en.len(), fr.len()), (101, 101));
    }

    #[test]
    fn dates() {
        let pair = |day, month| (Date { day, month }.english(), Date { day, month }.french());
        assert_eq!(pair(1, 4), ("the first of May".into(), "premier mai".into()));
        assert_eq!(pair(3, 4), ("the third of May".into(), "trois mai".into()));
        assert_eq!(pair(21, 7), ("the twenty-first of August".into(), "vingt et un août".into()));
    }

    #[test]
    fn times_of_day() {
        for (clock, en, fr) in [
            (Clock::Noon, "noon", "midi"),
            (Clock::Midnight, "midnight", "minuit"),
            (Clock::Hour(1, 0), "one o'clock", "une heure"),
            (Clock::Hour(3, 0), "three o'clock", "trois heures"),
            (Clock::Hour(3, 3), "a quarter past three", "trois heures et quart"),
            (Clock::Hour(1, 5), "half past one", "une heure et demie"),
            (Clock::Hour(9, 7), "a quarter to nine", "neuf heures moins le quart"),
            (Clock::Hour(11, 8), "ten to eleven", "onze heures moins dix"),
        ] {
            assert_eq!((clock.english().as_str(), clock.french().as_str()), (en, fr));
        }
    }
}
