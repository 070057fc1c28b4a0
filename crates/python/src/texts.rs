//! Texts of several lines: a translator takes lines, Python gives strings.

use regard::translator::{Candidate, Line};

/// Texts taken apart into their lines.
pub(crate) struct Texts<'a> {
    /// All lines, of the first text, the second, …
    pub(crate) lines: Vec<&'a str>,
    /// For each text the ends of its lines: a line break, or nothing behind the last.
    ends: Vec<Vec<&'a str>>,
}

impl<'a> Texts<'a> {
    pub(crate) fn new(texts: &'a [String]) -> Self {
        let (mut lines, mut ends) = (Vec::new(), Vec::new());
        for text in texts {
            let mut of_text = Vec::new();
            // A text that ends with a line break has an empty line behind it, which comes back as one.
            for line in text.split('\n') {
                let bare = line.strip_suffix('\r').unwrap_or(line);
                let is_last = line.as_ptr_range().end == text.as_ptr_range().end;
                of_text.push(match (is_last, bare.len() == line.len()) {
                    (true, true) => "",
                    (true, false) => "\r",
                    (false, true) => "\n",
                    (false, false) => "\r\n",
                });
                lines.push(bare);
            }
            ends.push(of_text);
        }
        Texts { lines, ends }
    }

    /// The translations of each text, best first, from those of all lines.
    pub(crate) fn join(&self, translated: Vec<Line>) -> Vec<Vec<Candidate>> {
        let mut lines = self.lines.iter().copied().zip(translated);
        let texts = self.ends.iter().map(|ends| {
            let of_text: Vec<(&str, Line)> = lines.by_ref().take(ends.len()).collect();
            match &of_text[..] {
                [(_, line)] => line.candidates.clone(),
                _ => join_lines(&of_text, ends),
            }
        });
        texts.collect()
    }
}

/// Translation `n` of a text has translation `n` of each of its lines; its score is their mean.
fn join_lines(lines: &[(&str, Line)], ends: &[&str]) -> Vec<Candidate> {
    let counts = lines.iter().map(|(_, line)| line.candidates.len()).filter(|&count| count > 0);
    let count = counts.min().unwrap_or(0);
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
