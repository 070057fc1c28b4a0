//! Splits multi-line texts for a translator that takes single lines.

use regard_core::translator::{Candidate, Line};

/// Texts split into lines, which are translated together and joined again.
///
/// ```
/// use regard_documents::Texts;
///
/// let texts = ["A dog.\r\nA cat.".to_owned(), "One line.".to_owned()];
/// assert_eq!(Texts::new(&texts).lines(), ["A dog.", "A cat.", "One line."]);
/// ```
#[derive(Debug)]
pub struct Texts<'a> {
    lines: Vec<&'a str>,
    /// For each text the line ends: a line break, or an empty string after the last line.
    ends: Vec<Vec<&'a str>>,
}

impl<'a> Texts<'a> {
    /// Splits texts at their line breaks.
    pub fn new<T: AsRef<str>>(texts: &'a [T]) -> Self {
        let (mut lines, mut ends) = (Vec::new(), Vec::new());
        for text in texts.iter().map(AsRef::as_ref) {
            let mut of_text = Vec::new();
            for line in text.split_inclusive('\n') {
                let bare = line.trim_end_matches(['\n', '\r']);
                of_text.push(&line[bare.len()..]);
                lines.push(bare);
            }
            ends.push(of_text);
        }
        Texts { lines, ends }
    }

    /// The lines of all texts in order, without their line ends.
    pub fn lines(&self) -> &[&'a str] {
        &self.lines
    }

    /// The number of lines in each text.
    pub fn line_counts(&self) -> impl Iterator<Item = usize> {
        self.ends.iter().map(Vec::len)
    }

    /// The translations of each text, best first, from those of all lines. Translation `n` of a
    /// text consists of translation `n` of each of its lines, and its score is their mean; word
    /// indices of the alignment refer to the whole text.
    pub fn join(&self, translated: Vec<Line>) -> Vec<Vec<Candidate>> {
        let mut lines = self.lines.iter().copied().zip(translated);
        let texts = self.ends.iter().map(|ends| {
            if let [""] = ends[..] {
                return lines.next().map(|(_, line)| line.candidates).unwrap_or_default();
            }
            let of_text: Vec<(&str, Line)> = lines.by_ref().take(ends.len()).collect();
            join_lines(&of_text, ends)
        });
        texts.collect()
    }
}

fn join_lines(lines: &[(&str, Line)], ends: &[&str]) -> Vec<Candidate> {
    let counts = lines.iter().map(|(_, line)| line.candidates.len()).filter(|&count| count > 0);
    // A text that consists of line breaks only is returned unchanged.
    let count = counts.min().unwrap_or(usize::from(!lines.is_empty()));
    let words = |text: &str| text.split_whitespace().count();
    let candidates = (0..count).map(|n| {
        let mut joined = Candidate {
            text: String::new(),
            score: 0.0,
            tokens: Vec::new(),
            token_scores: Vec::new(),
            alignment: Vec::new(),
        };
        let (mut scored, mut before) = (0, (0, 0));
        for ((source, line), end) in lines.iter().zip(ends) {
            if let Some(candidate) = line.candidates.get(n) {
                let moved = candidate.alignment.iter().map(|&(s, t)| (s + before.0, t + before.1));
                joined.alignment.extend(moved);
                before.1 += words(&candidate.text);
                joined.text.push_str(&candidate.text);
                joined.tokens.extend_from_slice(&candidate.tokens);
                joined.token_scores.extend_from_slice(&candidate.token_scores);
                joined.score += candidate.score;
                scored += 1;
            }
            before.0 += words(source);
            joined.text.push_str(end);
        }
        joined.score /= scored.max(1) as f32;
        joined
    });
    candidates.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(texts: &[&str]) -> Line {
        let candidate = |text: &&str| Candidate {
            text: (*text).to_owned(),
            score: -(text.len() as f32),
            tokens: vec![(*text).to_owned()],
            token_scores: vec![-1.0, -2.0],
            alignment: vec![(0, 0)],
        };
        Line { candidates: texts.iter().map(candidate).collect(), ..Line::default() }
    }

    #[test]
    fn lines_come_back_with_their_ends() {
        let texts = ["a b\r\n\nc\n", "", "d", "e\n", "\n\n"];
        let texts = Texts::new(&texts);
        assert_eq!(texts.lines(), ["a b", "", "c", "d", "e", "", ""]);
        let mut lines = vec![line(&["A B C", "x"]), Line::default(), line(&["D", "yy"]), line(&["E"])];
        lines.extend([line(&["F"]), Line::default(), Line::default()]);
        let found = texts.join(lines);
        let texts: Vec<Vec<&str>> =
            found.iter().map(|text| text.iter().map(|c| c.text.as_str()).collect()).collect();
        assert_eq!(
            texts,
            [vec!["A B C\r\n\nD\n", "x\r\n\nyy\n"], vec![], vec!["E"], vec!["F\n"], vec!["\n\n"]]
        );
        assert_eq!(found[0][0].score, -3.0);
        assert_eq!(found[0][0].tokens, ["A B C", "D"]);
        assert_eq!(found[0][0].token_scores.len(), 4);
        // Two source words and three target words precede the third line.
        assert_eq!(found[0][0].alignment, [(0, 0), (2, 3)]);
    }
}
