//! Lines of plain text, each translated sentence by sentence: one line in, one line out.

use crate::{Document, Sentence, Translation};
use regard_core::Result;
use regard_core::decode::SearchOptions;
use regard_core::translator::{Candidate, Line, Translator, single_line};
use std::collections::{BTreeMap, HashSet};

/// Translates each line sentence by sentence. What lies between sentences is kept, and so are
/// addresses, placeholders, numbers and emoji; a line that holds nothing else comes back as it is.
/// As many lines come out as went in.
///
/// Candidate `n` of a line has the `n`-th best translation of each of its sentences, and its score
/// is their mean. Its tokens are those that the model generated. Words of the alignment are counted
/// in the whole line, as white space parts them.
///
/// A prefix is what the translation of a line begins with, so only the first sentence gets it.
pub fn translate_lines<T: AsRef<str>>(
    translator: &Translator,
    lines: &[T],
    options: &SearchOptions,
) -> Result<Vec<Line>> {
    let lines = lines.iter().map(|line| {
        let line = line.as_ref().trim_end_matches(['\r', '\n']);
        // A token such as `>>de<<` is for every sentence of the line.
        let trimmed = line.trim_start();
        match translator.source().split_language(trimmed) {
            (Some(_), rest) => PlainLine::new(trimmed, trimmed.len() - rest.trim_start().len()),
            (None, _) => PlainLine::new(line, 0),
        }
    });
    let lines: Vec<PlainLine<'_>> = lines.collect();
    translate_with(&lines, options, |sentences, options| translator.translate(sentences, options))
}

/// A line taken apart.
struct PlainLine<'a> {
    /// The language token and the space behind it, or nothing.
    language: &'a str,
    /// What follows the language token.
    text: &'a str,
    document: Document,
}

impl<'a> PlainLine<'a> {
    /// A line that begins with `language` bytes of language token and space.
    fn new(line: &'a str, language: usize) -> Self {
        let (language, text) = line.split_at(language);
        PlainLine { language, text, document: Document::plain(text) }
    }

    /// What the model reads of a sentence.
    fn input(&self, sentence: &Sentence) -> String {
        format!("{}{}", self.language, sentence.text)
    }

    /// The line made of the translations of its sentences.
    fn assemble(&self, found: Vec<Line>, options: &SearchOptions) -> Line {
        let kept = self.document.sentences.is_empty() && self.text.contains(is_visible);
        // A sentence without a single token has no candidate, and its place stays empty.
        let counts = found.iter().map(|line| line.candidates.len()).filter(|&count| count > 0);
        let count = if kept { options.nbest } else { counts.min().unwrap_or(0) };
        let candidates = (0..count).map(|n| {
            let chosen: Vec<Option<&Candidate>> = found.iter().map(|line| line.candidates.get(n)).collect();
            self.candidate(&chosen, options.attention)
        });
        Line {
            candidates: candidates.collect(),
            parts: found.iter().map(|line| line.parts).sum(),
            cut: found.iter().map(|line| line.cut).sum(),
            source: found.into_iter().flat_map(|line| line.source).collect(),
        }
    }

    /// One candidate for each sentence as a candidate for the line.
    fn candidate(&self, chosen: &[Option<&Candidate>], alignment: bool) -> Candidate {
        let sentences = self.document.sentences.iter().zip(chosen);
        let translations = sentences.map(|(sentence, candidate)| {
            let mut translation = match candidate {
                Some(candidate) if self.language.is_empty() => Translation::new(candidate),
                Some(candidate) => Translation::new(&without_first_word(candidate)),
                None => Translation::default(),
            };
            sentence.restore(&mut translation);
            translation
        });
        let rendered = self.document.render(self.text, &translations.collect::<Vec<_>>());
        let chosen: Vec<&Candidate> = chosen.iter().flatten().copied().collect();
        let (mut pairs, mut known) = (Vec::new(), HashSet::new());
        if alignment {
            let before = self.language.chars().count();
            let source = words_of_characters(self.language.chars().chain(self.text.chars()));
            let target = words_of_characters(rendered.text.chars());
            for [from, _, start, end] in rendered.alignment {
                let pair = source.get(before + from).copied().zip(target.get(start).copied());
                pairs.extend(pair.filter(|pair| start < end && known.insert(*pair)));
            }
        }
        Candidate {
            text: single_line(&rendered.text).into_owned(),
            score: chosen.iter().map(|c| c.score).sum::<f32>() / chosen.len().max(1) as f32,
            tokens: chosen.iter().flat_map(|c| c.tokens.iter().cloned()).collect(),
            token_scores: chosen.iter().flat_map(|c| c.token_scores.iter().copied()).collect(),
            alignment: pairs,
        }
    }
}

/// Neither white space nor a character without a shape, such as a zero-width space.
fn is_visible(c: char) -> bool {
    !c.is_whitespace()
        && !c.is_control()
        && !matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// The candidate of a sentence that was read behind a language token, which is the first word of
/// the model's source.
fn without_first_word(candidate: &Candidate) -> Candidate {
    let pairs = candidate.alignment.iter().filter_map(|&(s, t)| Some((s.checked_sub(1)?, t)));
    Candidate { alignment: pairs.collect(), ..candidate.clone() }
}

/// The number of the word that each character belongs to, as white space parts them.
fn words_of_characters(text: impl Iterator<Item = char>) -> Vec<usize> {
    let (mut begun, mut inside) = (0usize, false);
    text.map(|c| {
        begun += usize::from(!c.is_whitespace() && !inside);
        inside = !c.is_whitespace();
        begun.saturating_sub(1)
    })
    .collect()
}

/// Sends the sentences of all lines through `translate`, those together that are searched alike,
/// and puts the lines together again.
fn translate_with(
    lines: &[PlainLine<'_>],
    options: &SearchOptions,
    mut translate: impl FnMut(&[String], &SearchOptions) -> Result<Vec<Line>>,
) -> Result<Vec<Line>> {
    // Attention costs time, so only sentences that need it have it.
    let mut searches: BTreeMap<(bool, bool), Vec<(usize, usize)>> = BTreeMap::new();
    for (i, line) in lines.iter().enumerate() {
        for (k, sentence) in line.document.sentences.iter().enumerate() {
            let attention = options.attention || sentence.needs_alignment();
            let prefix = k == 0 || options.prefix.is_empty();
            searches.entry((attention, prefix)).or_default().push((i, k));
        }
    }
    let mut found: Vec<Vec<Line>> =
        lines.iter().map(|line| vec![Line::default(); line.document.sentences.len()]).collect();
    for ((attention, prefix), places) in searches {
        let mut options = SearchOptions { attention, ..options.clone() };
        if !prefix {
            options.prefix.clear();
        }
        let input = |&(i, k): &(usize, usize)| lines[i].input(&lines[i].document.sentences[k]);
        let texts: Vec<String> = places.iter().map(input).collect();
        for ((i, k), line) in places.into_iter().zip(translate(&texts, &options)?) {
            found[i][k] = line;
        }
    }
    Ok(lines.iter().zip(found).map(|(line, found)| line.assemble(found, options)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A model that says everything in capitals and loses braces, digits and addresses; the second
    /// best has a question mark.
    fn capitals(sentence: &str, options: &SearchOptions) -> Line {
        let lost = |word: &str| word.contains(['{', ':']) || word.chars().all(|c| c.is_ascii_digit());
        let words: Vec<&str> = sentence.split_whitespace().collect();
        let language = words.first().is_some_and(|word| word.starts_with(">>"));
        let said: Vec<(usize, String)> = (words.iter().enumerate().skip(usize::from(language)))
            .filter(|(_, word)| !lost(word))
            .map(|(i, word)| (i, word.to_uppercase()))
            .collect();
        let candidate = |n: usize| Candidate {
            text: said.iter().map(|(_, word)| word.as_str()).collect::<Vec<_>>().join(" ") + &"?".repeat(n),
            score: -(said.len() as f32) - n as f32,
            tokens: said.iter().map(|(_, word)| word.clone()).collect(),
            token_scores: vec![-1.0; said.len() + 1],
            alignment: match options.attention {
                true => said.iter().enumerate().map(|(t, (s, _))| (*s, t)).collect(),
                false => Vec::new(),
            },
        };
        let source = words.iter().map(|word| word.to_string()).collect();
        Line { candidates: (0..options.nbest).map(candidate).collect(), source, parts: 1, cut: 0 }
    }

    /// What becomes of the lines, and the sentences of each search.
    fn translated(lines: &[&str], options: &SearchOptions) -> (Vec<Line>, Vec<(Vec<String>, SearchOptions)>) {
        let mut searches = Vec::new();
        let language = |line: &str| if line.starts_with(">>") { 7 } else { 0 };
        let lines: Vec<PlainLine<'_>> =
            lines.iter().map(|line| PlainLine::new(line, language(line))).collect();
        let found = translate_with(&lines, options, |sentences, options| {
            searches.push((sentences.to_vec(), options.clone()));
            Ok(sentences.iter().map(|sentence| capitals(sentence, options)).collect())
        });
        (found.unwrap(), searches)
    }

    fn texts(lines: &[&str]) -> Vec<String> {
        translated(lines, &SearchOptions::default()).0.iter().map(|line| line.best().text).collect()
    }

    #[test]
    fn sentences_are_translated_one_by_one_and_spans_come_through() {
        let lines = [
            "One dog. Two dogs!  Three",
            "Hi {name} see http://a.example now. Go.",
            "",
            "  12 % ",
            "🙂 Ha 🙂",
        ];
        let want = [
            "ONE DOG. TWO DOGS!  THREE",
            "HI {name} SEE http://a.example NOW. GO.",
            "",
            "  12 % ",
            "🙂 HA 🙂",
        ];
        assert_eq!(texts(&lines), want);
        let (found, searches) = translated(&lines, &SearchOptions::default());
        let sentences: Vec<&[String]> = searches.iter().map(|(s, _)| s.as_slice()).collect();
        assert_eq!(sentences[0], ["One dog.", "Two dogs!", "Three", "Go.", "Ha"]);
        assert_eq!(sentences[1], ["Hi {name} see http://a.example now."]);
        assert!(!searches[0].1.attention && searches[1].1.attention);
        // An empty line has no candidate, one without words has one.
        assert_eq!(found.iter().map(|l| l.candidates.len()).collect::<Vec<_>>(), [1, 1, 0, 1, 1]);
        assert!(found.iter().all(|line| line.candidates.iter().all(|c| c.alignment.is_empty())));
        assert_eq!((found[0].parts, found[0].source.len(), found[0].best().token_scores.len()), (3, 5, 8));
        assert_eq!(found[0].best().score, -5.0 / 3.0);
    }

    #[test]
    fn one_line_in_is_one_line_out() {
        for line in ["a.\u{2028}B", "a.\rB", "One.\u{85}Two", "A\u{b}b.\u{c}C", "12\u{2029}%"] {
            let found = texts(&[line]);
            assert!(
                found.len() == 1 && !found[0].contains(regard_core::translator::is_line_break),
                "{found:?}"
            );
        }
        assert_eq!(texts(&["one\tdog.\tTwo"]), ["ONE DOG.\tTWO"]);
        assert_eq!(texts(&[" \t ", "\u{200b}", "\u{feff}"]), ["", "", ""]);
    }

    #[test]
    fn the_nth_best_of_a_line_has_the_nth_best_of_each_sentence() {
        let options = SearchOptions { nbest: 2, ..SearchOptions::default() };
        let (found, _) = translated(&["One dog. Two", "12 %", ""], &options);
        let of = |line: &Line| line.candidates.iter().map(|c| (c.text.clone(), c.score)).collect::<Vec<_>>();
        assert_eq!(of(&found[0]), [("ONE DOG. TWO".into(), -1.5), ("ONE DOG.? TWO?".into(), -2.5)]);
        assert_eq!(of(&found[1]), [("12 %".into(), 0.0), ("12 %".into(), 0.0)]);
        assert_eq!(of(&found[2]), []);
    }

    #[test]
    fn words_are_counted_in_the_whole_line() {
        let options = SearchOptions { attention: true, ..SearchOptions::default() };
        let (found, searches) = translated(&["🙂 One dog. Give {name} that"], &options);
        assert_eq!(searches.len(), 1);
        let best = found[0].best();
        assert_eq!(best.text, "🙂 ONE DOG. GIVE {name} THAT");
        assert_eq!(best.alignment, [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]);
        // Two sentences of one word, by white space.
        assert_eq!(translated(&["一。二。"], &options).0[0].best().alignment, [(0, 0)]);
    }

    #[test]
    fn a_language_token_is_for_every_sentence() {
        let options = SearchOptions { attention: true, ..SearchOptions::default() };
        let (found, searches) = translated(&[">>de<< One {n} dog. Two"], &options);
        assert_eq!(searches[0].0, [">>de<< One {n} dog.", ">>de<< Two"]);
        assert_eq!(found[0].best().text, "ONE {n} DOG. TWO");
        assert_eq!(found[0].best().alignment, [(1, 0), (2, 1), (3, 2), (4, 3)]);
    }

    #[test]
    fn a_prefix_is_for_the_first_sentence() {
        let options = SearchOptions { prefix: vec![5], ..SearchOptions::default() };
        let (_, searches) = translated(&["One. Two. Three.", "Four"], &options);
        let of = |prefix: &[u32]| searches.iter().find(|(_, o)| o.prefix == prefix).map(|(s, _)| s.clone());
        assert_eq!(of(&[5]).unwrap(), ["One.", "Four"]);
        assert_eq!(of(&[]).unwrap(), ["Two.", "Three."]);
    }
}
