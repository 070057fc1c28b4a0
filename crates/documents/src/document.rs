//! A text split into the sentences to translate and everything between them, which is kept.

use crate::markup::Markup;
use crate::protect::{is_translatable, protected, within, without_outer_emoji};
use crate::restore::restore;
use crate::words::Translation;
use crate::{html, message};
use regard_core::text::{sentence_ranges, trimmed};
use std::ops::Range;
use std::sync::Arc;

/// A text and its sentences.
#[derive(Debug, Default)]
pub struct Document {
    /// The language code of the text, if known.
    pub(crate) language: Option<String>,
    pieces: Vec<Piece>,
    /// The sentences to translate, in text order.
    pub sentences: Vec<Sentence>,
}

/// A part of a text.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    /// Text that is copied unchanged.
    Keep(String),
    /// The translation of the sentence with this index.
    Sentence(usize),
    /// Two renderings of the same content: `raw`, the original text, if the translation of each of
    /// these sentences is identical to its source, and `translated` otherwise.
    Either { raw: Vec<Piece>, translated: Vec<Piece>, sentences: Range<usize> },
}

/// Appends text that is copied unchanged.
pub(crate) fn keep(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(Piece::Keep(kept)) => kept.push_str(text),
        _ => pieces.push(Piece::Keep(text.to_owned())),
    }
}

/// A sentence to translate.
#[derive(Debug)]
pub struct Sentence {
    /// The input of the model.
    pub text: String,
    /// The byte offset at which it begins in the text; unknown in HTML.
    start: usize,
    /// Spans that must survive translation unchanged, as byte ranges of the sentence.
    pub protected: Vec<Range<usize>>,
    /// The tags inside it.
    pub(crate) markup: Option<Arc<Markup>>,
}

impl Sentence {
    /// Whether the word alignment is needed to restore protected spans or to place tags.
    pub fn needs_alignment(&self) -> bool {
        !self.protected.is_empty() || self.markup.is_some()
    }

    /// Puts back the protected spans that are missing from the translation.
    pub fn restore(&self, translation: &mut Translation) {
        self.restore_spans(&self.protected, translation);
    }

    /// Puts back those of `spans` that are missing from the translation.
    pub(crate) fn restore_spans(&self, spans: &[Range<usize>], translation: &mut Translation) {
        if !spans.is_empty() {
            restore(&self.text, spans, translation);
        }
    }

    /// Whether the translation has the same words as the source.
    fn is_same(&self, translation: &Translation) -> bool {
        let words = translation.0.iter().flat_map(|word| word.text.split_whitespace());
        self.text.split_whitespace().eq(words)
    }
}

/// A translated text and its word alignment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    /// The translated text.
    pub text: String,
    /// `[source start, source end, target start, target end]` in characters, for each aligned word
    /// pair.
    pub alignment: Vec<[usize; 4]>,
}

/// The maximum length of a sentence in bytes: more than most models can read at once.
const LONGEST: usize = 1_500;

/// The byte ranges of the sentences of a text. No sentence boundary lies inside any of `spans`,
/// which are sorted. A sentence longer than [`LONGEST`] is split after a punctuation mark if
/// possible, otherwise between two words, otherwise anywhere.
pub(crate) fn sentences(text: &str, spans: &[Range<usize>], language: Option<&str>) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut whole = spans.iter().peekable();
    for range in joined(sentence_ranges(text, language), whole.clone()) {
        let mut start = range.start;
        while range.end - start > LONGEST {
            let most =
                (start..=start + LONGEST).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(range.end);
            while whole.next_if(|span| span.end <= most).is_some() {}
            let end = match whole.peek().filter(|span| span.start < most) {
                Some(span) if span.start > start => span.start,
                Some(span) => span.end.min(range.end),
                None => start + split_point(&text[start..most]),
            };
            found.push(trimmed(text, start..end));
            start = end;
        }
        found.push(trimmed(text, start..range.end));
    }
    let mut found: Vec<Range<usize>> =
        found.into_iter().flat_map(|range| split_at_leaders(text, range, spans)).collect();
    found.retain(|range| !range.is_empty());
    found
}

/// The number of repetitions from which a run of one character is a rule or leader, not text.
const MIN_LEADER_RUN: usize = 5;

/// Splits a sentence at rules and leaders such as rows of dots or lines in tables of contents and
/// forms: they are not words, and models repeat them endlessly. Those that touch one of `spans`
/// stay.
fn split_at_leaders(text: &str, range: Range<usize>, spans: &[Range<usize>]) -> Vec<Range<usize>> {
    let is_leader = |c: char| matches!(c, '.' | '…' | '·' | '•' | '_' | '-' | '–' | '—' | '=' | '*' | '~');
    let (mut found, mut start, mut at) = (Vec::new(), range.start, range.start);
    while let Some(c) = text[at..range.end].chars().next() {
        let mut end = at + c.len_utf8();
        if is_leader(c) {
            let mut count = 1;
            loop {
                let rest = &text[end..range.end];
                let next = rest.trim_start_matches(' ');
                if !next.starts_with(c) {
                    break;
                }
                (count, end) = (count + 1, range.end - next.len() + c.len_utf8());
            }
            let touched = spans.get(spans.partition_point(|span| span.end <= at));
            if count >= MIN_LEADER_RUN && touched.is_none_or(|span| span.start >= end) {
                found.push(trimmed(text, start..at));
                start = end;
            }
        }
        at = end;
    }
    found.push(trimmed(text, start..range.end));
    found
}

/// Merges sentences whose boundary lies inside a span.
fn joined<'a>(
    sentences: Vec<Range<usize>>,
    mut spans: std::iter::Peekable<impl Iterator<Item = &'a Range<usize>>>,
) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for sentence in sentences {
        while spans.next_if(|span| span.end <= sentence.start).is_some() {}
        match found.last_mut() {
            Some(last) if spans.peek().is_some_and(|span| span.start < last.end) => last.end = sentence.end,
            _ => found.push(sentence),
        }
    }
    found
}

/// The byte offset of the best place to split a text that is too long.
fn split_point(text: &str) -> usize {
    let later = |at: &usize| *at > text.len() / 2;
    let spaces =
        || text.char_indices().rev().filter(|(_, c)| c.is_whitespace()).map(|(at, _)| at).filter(later);
    let marked = spaces().find(|&at| text[..at].ends_with([',', ';', ':', '.', '!', '?', ')', '–', '—']));
    marked.or_else(|| spaces().next()).unwrap_or(text.len())
}

impl Document {
    /// An empty document for a text in the language with this code.
    pub(crate) fn in_language(language: Option<&str>) -> Self {
        Document { language: language.map(str::to_owned), ..Document::default() }
    }

    /// A document that consists of one text, which is copied unchanged.
    pub(crate) fn kept(text: &str) -> Self {
        let mut document = Document::default();
        document.add([Piece::Keep(text.to_owned())]);
        document
    }

    /// Splits plain text into sentences; every line is split separately. A line with tags, such as
    /// `<b>Height</b>`, is read as a program message, and its tags move with their words.
    pub fn plain(text: &str) -> Self {
        Self::plain_in(text, None)
    }

    /// Like [`Document::plain`], for a text in the language with this code: its abbreviations do
    /// not end a sentence.
    pub fn plain_in(text: &str, language: Option<&str>) -> Self {
        let mut document = Document::in_language(language);
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            // In a list of messages, the tags of a message move with their words. Word positions
            // are then unknown.
            match html::is_marked_up(line) {
                true => message::add(line, &mut document),
                false => document.add_sentences(line, at, language),
            }
            at += line.len();
        }
        document
    }

    fn add_sentences(&mut self, line: &str, offset: usize, language: Option<&str>) {
        let mut at = 0;
        let all = protected(line);
        for range in sentences(line, &all, language) {
            let range = without_outer_emoji(line, range);
            let sentence = &line[range.clone()];
            let spans = within(&all, &range);
            if is_translatable(sentence, &spans) {
                self.keep(&line[at..range.start]);
                let piece = self.sentence(sentence.to_owned(), offset + range.start, spans, None);
                self.pieces.push(piece);
                at = range.end;
            }
        }
        self.keep(&line[at..]);
    }

    /// Appends text that is copied unchanged.
    pub(crate) fn keep(&mut self, text: &str) {
        keep(&mut self.pieces, text);
    }

    /// Appends pieces whose sentences are already in the document.
    pub(crate) fn add(&mut self, pieces: impl IntoIterator<Item = Piece>) {
        for piece in pieces {
            match piece {
                Piece::Keep(text) => self.keep(&text),
                piece => self.pieces.push(piece),
            }
        }
    }

    /// Adds a sentence, and returns the piece that stands for its translation.
    pub(crate) fn sentence(
        &mut self,
        text: String,
        start: usize,
        protected: Vec<Range<usize>>,
        markup: Option<Arc<Markup>>,
    ) -> Piece {
        self.sentences.push(Sentence { text, start, protected, markup });
        Piece::Sentence(self.sentences.len() - 1)
    }

    /// All sentences joined by spaces, for language detection.
    pub fn words(&self) -> String {
        self.sentences.iter().map(|sentence| sentence.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// The text with its sentences replaced by their translations; `source` is the text that the
    /// document was made from. Where the translation is identical to the source, the original
    /// spelling is kept.
    pub fn render(&self, source: &str, translation: &[Translation]) -> Rendered {
        let mut writer = Writer::new(self, source, translation);
        writer.write(&self.pieces);
        writer.out
    }

    /// Like [`Document::render`], but never reuses the original spelling.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn render_normalised(&self, source: &str, translation: &[Translation]) -> Rendered {
        let mut writer = Writer::new(self, source, translation);
        writer.ignore_source_spelling = true;
        writer.write(&self.pieces);
        writer.out
    }

    /// The beginning of the translation that can be shown while sentences are still being
    /// translated: everything before the first sentence for which `partial` returns `None`.
    /// `partial` takes a sentence index and returns the partial translation.
    pub fn render_partial(&self, partial: impl Fn(usize) -> Option<String>) -> String {
        let mut out = String::new();
        self.append_partial(&self.pieces, &partial, &mut out);
        out
    }

    /// Appends the pieces that can be shown, and returns whether those are all of them.
    fn append_partial(
        &self,
        pieces: &[Piece],
        partial: &impl Fn(usize) -> Option<String>,
        out: &mut String,
    ) -> bool {
        pieces.iter().all(|piece| match piece {
            Piece::Keep(text) => {
                out.push_str(text);
                true
            }
            Piece::Either { translated, .. } => self.append_partial(translated, partial, out),
            Piece::Sentence(number) => {
                let Some(text) = partial(*number) else { return false };
                match &self.sentences[*number].markup {
                    Some(markup) => out.push_str(&markup.escaping.write(&text)),
                    None => out.push_str(&text),
                }
                true
            }
        })
    }
}

/// The state of rendering a document.
struct Writer<'a> {
    document: &'a Document,
    translation: &'a [Translation],
    /// Whether to write new text even for sentences that are identical to their translation.
    ignore_source_spelling: bool,
    source_characters: Characters<'a>,
    target_characters: usize,
    /// The sentence that was written last, if nothing has been written after it.
    last: Option<&'a Sentence>,
    out: Rendered,
}

impl<'a> Writer<'a> {
    fn new(document: &'a Document, source: &'a str, translation: &'a [Translation]) -> Self {
        Writer {
            document,
            translation,
            ignore_source_spelling: false,
            source_characters: Characters::new(source),
            target_characters: 0,
            last: None,
            out: Rendered::default(),
        }
    }

    fn write(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            match piece {
                Piece::Keep(text) => {
                    self.push(text);
                    self.last = None;
                }
                Piece::Sentence(number) => self.write_sentence(*number),
                Piece::Either { raw, translated, sentences } => {
                    self.write(if self.is_same(sentences) { raw } else { translated });
                }
            }
        }
    }

    fn push(&mut self, text: &str) {
        self.out.text.push_str(text);
        self.target_characters += text.chars().count();
    }

    fn is_same(&self, sentences: &Range<usize>) -> bool {
        let pairs =
            || self.document.sentences[sentences.clone()].iter().zip(&self.translation[sentences.clone()]);
        !self.ignore_source_spelling
            && self.translation.len() >= sentences.end
            && pairs().all(|(source, words)| source.is_same(words))
    }

    fn write_sentence(&mut self, number: usize) {
        let Some(words) = self.translation.get(number) else { return };
        let sentence = &self.document.sentences[number];
        let translated = words.text();
        if self.last.is_some_and(|last| needs_space(last, &self.out.text, &translated)) {
            self.push(" ");
        }
        match &sentence.markup {
            Some(markup) => {
                let text = markup.render(&sentence.text, words, &|pieces| self.text_of(pieces));
                self.push(&text);
            }
            None => {
                let same = !self.ignore_source_spelling && sentence.is_same(words);
                let text = if same { sentence.text.clone() } else { translated };
                let pairs = words.pairs(&sentence.text, &text);
                if !pairs.is_empty() {
                    let start = self.source_characters.at(sentence.start);
                    let (from, to) = (characters(&sentence.text), characters(&text));
                    self.out.alignment.extend(pairs.into_iter().map(|(s, t)| {
                        let target = [t.start, t.end].map(|at| self.target_characters + to[at]);
                        [start + from[s.start], start + from[s.end], target[0], target[1]]
                    }));
                }
                self.push(&text);
            }
        }
        self.last = Some(sentence);
    }

    /// Renders pieces on their own.
    fn text_of(&self, pieces: &[Piece]) -> String {
        let mut writer = Writer::new(self.document, "", self.translation);
        writer.ignore_source_spelling = self.ignore_source_spelling;
        writer.write(pieces);
        writer.out.text
    }
}

/// Whether to insert a space between the translations of two sentences that have none between them
/// in the source, as in Chinese: only if the target script uses spaces.
fn needs_space(sentence: &Sentence, translated: &str, next: &str) -> bool {
    let spaced = |c: char| {
        !c.is_whitespace()
            && !matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
                | '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}'
                | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
    };
    sentence.text.ends_with(['。', '！', '？', '」', '』', '）'])
        && translated.ends_with(spaced)
        && next.starts_with(spaced)
}

/// The number of characters before each byte of a text, and before its end.
fn characters(text: &str) -> Vec<usize> {
    let begins = |at: usize| usize::from(text.is_char_boundary(at));
    let before = (0..text.len()).scan(0, |count, at| {
        *count += begins(at);
        Some(*count - 1)
    });
    before.chain([text.chars().count()]).collect()
}

/// Converts byte offsets to character offsets. Sentences come in order, so the text is scanned only
/// once.
struct Characters<'a> {
    text: &'a str,
    byte: usize,
    count: usize,
}

impl<'a> Characters<'a> {
    fn new(text: &'a str) -> Self {
        Characters { text, byte: 0, count: 0 }
    }

    /// The number of characters before `byte`, which must not be less than in the last call.
    fn at(&mut self, byte: usize) -> usize {
        let byte = byte.clamp(self.byte, self.text.len());
        self.count += self.text.get(self.byte..byte).map_or(0, |passed| passed.chars().count());
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
        let same: Vec<Translation> = document.sentences.iter().map(|s| Translation::same(&s.text)).collect();
        assert_eq!(document.render(text, &same).text, text);
        let upper: Vec<Translation> =
            document.sentences.iter().map(|s| Translation::same(&s.text.to_uppercase())).collect();
        let wanted = "  ONE DOG. TWO DOGS!\r\n\r\n\tTHREE \n12 %\n🙂 FOUR 🙂\n\n";
        assert_eq!(document.render(text, &upper).text, wanted);
    }

    #[test]
    fn rows_of_dots_are_not_translated() {
        for (text, wanted) in [
            ("1.2 The first steps ........... 17", &["1.2 The first steps"][..]),
            ("The end . . . . . . 9\nName: ________ Date: ________", &["The end", "Name:", "Date:"]),
            ("Well... so be it.... Good", &["Well... so be it....", "Good"]),
            ("See https://a.example/-------/b now", &["See https://a.example/-------/b now"]),
            ("-----\nBEGIN", &["BEGIN"]),
        ] {
            let document = Document::plain(text);
            assert_eq!(texts(&document), wanted, "{text}");
            let same: Vec<Translation> =
                document.sentences.iter().map(|s| Translation::same(&s.text)).collect();
            assert_eq!(document.render(text, &same).text, text);
        }
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
    fn long_sentences_are_cut_where_it_does_no_harm() {
        let text = |long: &str| format!("{}, {long} {}", "dog ".repeat(300), "cat ".repeat(300));
        for long in [
            "dog ".repeat(400),
            "d".repeat(5_000),
            "日本".repeat(2_000),
            format!("https://a.example/{}", "x".repeat(4_000)),
            "🙂\u{200d}".repeat(2_000),
            "<x y='".to_owned() + &"z. Z ".repeat(900) + "'>",
        ] {
            let text = text(&long);
            let document = Document::plain(&text);
            let same: Vec<Translation> =
                document.sentences.iter().map(|s| Translation::same(&s.text)).collect();
            assert_eq!(document.render(&text, &same).text, text);
            assert!(texts(&document).iter().all(|s| s.len() <= LONGEST), "{:?}", texts(&document));
            let spans = protected(&long).len();
            assert!(
                texts(&document).iter().filter(|s| s.contains("https://") || s.contains("<x")).count() == 0
            );
            assert!(spans <= 1);
        }
        let document = Document::plain(&format!("{}, {}", "dog ".repeat(300).trim_end(), "cat ".repeat(300)));
        assert!(texts(&document)[0].ends_with("dog,"), "{:?}", texts(&document));
    }

    #[test]
    fn a_placeholder_is_not_cut_into_sentences() {
        let text = "Say {Hello. World} now. Then go.";
        assert_eq!(texts(&Document::plain(text)), ["Say {Hello. World} now.", "Then go."]);
    }

    #[test]
    fn places_are_counted_in_characters() {
        let text = "é: ja.\nDer Hund";
        let document = Document::plain(text);
        assert_eq!(texts(&document), ["é: ja.", "Der Hund"]);
        let words = |list: &[(&str, usize)]| {
            Translation(list.iter().map(|(text, from)| Word::new(*text, Some(*from))).collect())
        };
        let translation = [words(&[("yés", 1)]), words(&[("dog", 1), ("the", 0)])];
        let rendered = document.render(text, &translation);
        assert_eq!(rendered.text, "yés\ndog the");
        assert_eq!(rendered.alignment, [[3, 6, 0, 3], [11, 15, 4, 7], [7, 10, 8, 11]]);
    }

    #[test]
    fn tags_of_a_line_go_with_their_words() {
        let text = "<b>Height</b>\n<qt>Open <i>%1</i> now.<br />Save it?</qt>\ncp <source> <target>\n";
        let document = Document::plain(text);
        assert_eq!(texts(&document), ["Height", "Open %1 now.", "Save it?", "cp <source> <target>"]);
        let same: Vec<Translation> = document.sentences.iter().map(|s| Translation::same(&s.text)).collect();
        assert_eq!(document.render(text, &same).text, text);
        let upper: Vec<Translation> =
            document.sentences.iter().map(|s| Translation::same(&s.text.to_uppercase())).collect();
        let wanted = "<b>HEIGHT</b>\n<qt>OPEN <i>%1</i> NOW.<br />SAVE IT?</qt>\nCP <SOURCE> <TARGET>\n";
        assert_eq!(document.render(text, &upper).text, wanted);
    }

    #[test]
    fn what_only_looks_like_tags_is_plain_text() {
        for text in [
            "copy <source> to <target>",
            "if a <b and c> d",
            "Written by Benedikt <benny@xfce.org>.",
            "a </b2> c",
            "see <script>x</script> here",
            "<!-- hidden --> text",
        ] {
            assert_eq!(html::is_marked_up(text), text.contains("<b and"), "{text}");
        }
        assert!(["<b>x", "a<br>b", "<x/> y", "<para>y</para>"].into_iter().all(html::is_marked_up));
    }

    #[test]
    fn a_script_with_spaces_gets_them_between_sentences() {
        let text = "一。二。";
        let document = Document::plain(text);
        let words = |text: &str| Translation(vec![Word::new(text, Some(0))]);
        let rendered = document.render(text, &[words("One."), words("Two.")]);
        assert_eq!(rendered.text, "One. Two.");
        assert_eq!(rendered.alignment, [[0, 2, 0, 4], [2, 4, 5, 9]]);
        assert_eq!(document.render(text, &[words("いち。"), words("に。")]).text, "いち。に。");
    }

    #[test]
    fn a_partial_rendering_ends_at_the_first_untranslated_sentence() {
        let document = Document::plain("One. Two.\nThree.");
        let partial = |list: &[Option<&str>]| document.render_partial(|i| list[i].map(str::to_owned));
        assert_eq!(partial(&[None, Some("b"), None]), "");
        assert_eq!(partial(&[Some("a"), Some("b"), None]), "a b\n");
    }
}
