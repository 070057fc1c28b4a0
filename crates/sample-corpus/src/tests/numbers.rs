//! Numbers, dates and times of day.

use crate::lexicon::Gender::{Feminine, Masculine};
use crate::numbers::{clock, date, english, french};
use std::collections::HashSet;

#[test]
fn french_numbers_are_traditional() {
    let masculine = "7 sept, 16 seize, 17 dix-sept, 21 vingt et un, 22 vingt-deux, 31 trente et un, 48 quarante-huit, \
                     61 soixante et un, 70 soixante-dix, 71 soixante et onze, 77 soixante-dix-sept, 80 quatre-vingts, \
                     81 quatre-vingt-un, 90 quatre-vingt-dix, 91 quatre-vingt-onze, 99 quatre-vingt-dix-neuf, 100 cent";
    let feminine =
        "1 une, 21 vingt et une, 71 soixante et onze, 81 quatre-vingt-une, 91 quatre-vingt-onze, 100 cent";
    for (gender, list) in [(Masculine, masculine), (Feminine, feminine)] {
        for (n, text) in list.split(", ").filter_map(|pair| pair.split_once(' ')) {
            assert_eq!(french(n.parse().unwrap(), gender), text);
        }
    }
}

#[test]
fn english_numbers() {
    for (n, text) in [(4, "four"), (14, "fourteen"), (40, "forty"), (85, "eighty-five"), (100, "one hundred")]
    {
        assert_eq!(english(n), text);
    }
    let distinct: HashSet<_> = (0..=100).flat_map(|n| [english(n), french(n, Masculine)]).collect();
    // Only "six" is the same in both.
    assert_eq!(distinct.len(), 201);
}

#[test]
fn dates() {
    for (day, month, en, fr) in [
        (1, 4, "the first of May", "premier mai"),
        (2, 1, "the second of February", "deux février"),
        (3, 4, "the third of May", "trois mai"),
        (8, 7, "the eighth of August", "huit août"),
        (12, 11, "the twelfth of December", "douze décembre"),
        (20, 2, "the twentieth of March", "vingt mars"),
        (21, 7, "the twenty-first of August", "vingt et un août"),
        (22, 5, "the twenty-second of June", "vingt-deux juin"),
        (30, 8, "the thirtieth of September", "trente septembre"),
        (31, 0, "the thirty-first of January", "trente et un janvier"),
    ] {
        assert_eq!(date(day, month), (en.into(), fr.into()));
    }
}

#[test]
fn times_of_day() {
    for (hour, minutes, en, fr) in [
        (1, 0, "one o'clock", "une heure"),
        (3, 0, "three o'clock", "trois heures"),
        (3, 3, "a quarter past three", "trois heures et quart"),
        (1, 5, "half past one", "une heure et demie"),
        (9, 7, "a quarter to nine", "neuf heures moins le quart"),
        (11, 8, "ten to eleven", "onze heures moins dix"),
    ] {
        assert_eq!(clock(hour, minutes), (en.into(), fr.into()));
    }
}
