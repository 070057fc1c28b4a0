//! A text as the sentences that are translated and everything between them, which is kept.

use crate::html::{Markup, escape_with};
use crate::protect::{is_translatable, protected, without_outer_emoji};
use crate::words::Spoken;
use regard::translator::sentence_ranges;
use std::ops::Range;
use std::sync::Arc;

/// A text on its way.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pieces: Vec<Piece>,
    pub(crate) sentences: Vec<Sentence>,
}

#[derive(Debug)]
enum Piece {
    Keep(String),
    Sentence,
}

/// A sentence that is translated.
#[derive(Debug)]
pub(crate) struct Sentence {
    pub(crate) text: String,
    /// Where it begins in the text, in bytes; not known in HTML.
    start: usize,
    /// What must come through unharmed, in bytes of the sentence.
    pub(crate) protected: Vec<Range<usize>>,
    /// The tags inside it.
    pub(crate) markup: Option<Arc<Markup>>,
}

impl Sentence {
    /// Whether its translation needs to know which word belongs to which.
    pub(crate) fn needs_alignment(&self) -> bool {
        !self.protected.is_empty() || self.markup.is_some()
    }
}

/// A translated text, and which of its characters belong to which: start and end in the source, start and end in the translation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rendered {
    pub(crate) text: String,
    pub(crate) alignment: Vec<[usize; 4]>,
}

impl Document {
    /// Plain text: every line by itself, its sentences one by one.
    pub(crate) fn plain(text: &str) -> Self {
        let mut document = Document::default();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            document.add_sentences(line, at);
            at += line.len();
        }
        document
    }

    fn add_sentences(&mut self, line: &str, offset: usize) {
        let mut at = 0;
        for range in sentence_ranges(line) {
            let range = without_outer_emoji(line, range);
            let sentence = &line[range.clone()];
            let spans = protected(sentence);
            if is_translatable(sentence, &spans) {
                self.keep(&line[at..range.start]);
                self.translate(sentence.to_owned(), offset + range.start, spans, None);
                at = range.end;
            }
        }
        self.keep(&line[at..]);
    }

    /// Adds what stays as it is.
    pub(crate) fn keep(&mut self, text: &str) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Keep(kept)) => kept.push_str(text),
            _ => self.pieces.push(Piece::Keep(text.to_owned())),
        }
    }

    /// Adds what is translated.
    pub(crate) fn translate(
        &mut self,
        text: String,
        start: usize,
        protected: Vec<Range<usize>>,
        markup: Option<Arc<Markup>>,
    ) {
        self.pieces.push(Piece::Sentence);
        self.sentences.push(Sentence { text, start, protected, markup });
    }

    /// All that is translated, for finding out its language.
    pub(crate) fn words(&self) -> String {
        self.sentences.iter().map(|sentence| sentence.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// The text with its sentences replaced; `source` is what the document was made of.
    pub(crate) fn render(&self, source: &str, spoken: &[Spoken]) -> Rendered {
        let mut out = Rendered::default();
        let mut source_characters = Characters::new(source);
        let mut target_characters = 0;
        let mut sentences = self.sentences.iter().zip(spoken);
        for piece in &self.pieces {
            let before = out.text.len();
            match (piece, piece.is_sentence().then(|| sentences.next()).flatten()) {
                (Piece::Keep(text), _) => out.text.push_str(text),
                (Piece::Sentence, Some((sentence, words))) => match &sentence.markup {
                    Some(markup) => out.text.push_str(&markup.render(&sentence.text, words)),
                    None => {
                        let text = words.text();
                        for (from, to) in words.pairs(&sentence.text) {
                            let count = |at: usize| target_characters + text[..at].chars().count();
                            let place =
                                [from.start, from.end].map(|at| source_characters.at(sentence.start + at));
                            out.alignment.push([place[0], place[1], count(to.start), count(to.end)]);
                        }
                        out.text.push_str(&text);
                    }
                },
                (Piece::Sentence, None) => {}
            }
            target_characters += out.text[before..].chars().count();
        }
        out
    }

    /// What can be shown while the sentences come in: all before the first that has said nothing yet.
    pub(crate) fn so_far(&self, said: &[Option<String>]) -> String {
        let mut out = String::new();
        let mut said = said.iter().zip(&self.sentences);
        for piece in &self.pieces {
            match (piece, piece.is_sentence().then(|| said.next()).flatten()) {
                (Piece::Keep(text), _) => out.push_str(text),
                (Piece::Sentence, Some((Some(text), sentence))) => match &sentence.markup {
                    Some(_) => out.push_str(&escape_with(text, &[])),
                    None => out.push_str(text),
                },
                (Piece::Sentence, _) => break,
            }
        }
        out
    }
}

impl Piece {
    fn is_sentence(&self) -> bool {
        matches!(self, Piece::Sentence)
    }
}

/// Counts the characters before a byte; sentences come in order, so that the whole text is walked about once.
struct Characters<'a> {
    text: &'a str,
    byte: usize,
    count: usize,
}

impl<'a> Characters<'a> {
    fn new(text: &'a str) -> Self {
        Characters { text, byte: 0, count: 0 }
    }

    fn at(&mut self, byte: usize) -> usize {
        let byte = byte.min(self.text.len());
        let span = |from: usize, to: usize| self.text.get(from..to).map_or(0, |t| t.chars().count());
        self.count = match byte >= self.byte {
            true => self.count + span(self.byte, byte),
            false => self.count - span(byte, self.byte),
        };
        self.byte = byte;
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Word;

    fn texts(document: &Document) -> Vec<&str> {
        document.sentences.iter().map(|s| s.text.as_str()).collect()
    }

    #[test]
    fn lines_and_spaces_are_kept() {
        let text = "  One dog. Two dogs!\r\n\r\n\tThree \n12 %\n🙂 Four 🙂\n\n";
        let document = Document::plain(text);
        assert_eq!(texts(&document), ["One dog.", "Two dogs!", "Three", "Four"]);
        let same: Vec<Spoken> = document.sentences.iter().map(|s| Spoken::same(&s.text)).collect();
        assert_eq!(document.render(text, &same).text, text);
        let upper: Vec<Spoken> =
            document.sentences.iter().map(|s| Spoken::same(&s.text.to_uppercase())).collect();
        let wanted = "  ONE DOG. TWO DOGS!\r\n\r\n\tTHREE \n12 %\n🙂 FOUR 🙂\n\n";
        assert_eq!(document.render(text, &upper).text, wanted);
    }

    #[test]
    fn nothing_to_translate_is_kept() {
        for text in ["", " ", "\n\n", "🙂", "https://a.example\n12:30"] {
            let document = Document::plain(text);
            assert!(document.sentences.is_empty(), "{text}");
            assert_eq!(document.render(text, &[]).text, text);
        }
    }

    #[test]
    fn places_are_counted_in_characters() {
        let text = "é: ja.\nDer Hund";
        let document = Document::plain(text);
        assert_eq!(texts(&document), ["é: ja.", "Der Hund"]);
        let words = |list: &[(&str, usize)]| {
            Spoken(list.iter().map(|(text, from)| Word::new(*text, Some(*from))).collect())
        };
        let spoken = [words(&[("yés", 1)]), words(&[("dog", 1), ("the", 0)])];
        let rendered = document.render(text, &spoken);
        assert_eq!(rendered.text, "yés\ndog the");
        assert_eq!(rendered.alignment, [[3, 6, 0, 3], [11, 15, 4, 7], [7, 10, 8, 11]]);
    }

    #[test]
    fn what_is_said_so_far_ends_at_the_first_silence() {
        let document = Document::plain("One. Two.\nThree.");
        let said = |list: &[Option<&str>]| {
            document.so_far(&list.iter().map(|t| t.map(str::to_owned)).collect::<Vec<_>>())
        };
        assert_eq!(said(&[None, Some("b"), None]), "");
        assert_eq!(said(&[Some("a"), Some("b"), None]), "a b\n");
    }
}
