//! The terms of lines: phrases that translations must contain, and translations that a model reads
//! inside its source.

use super::{Line, LineObserver, Part, Phrase, Translator};
use crate::Result;
use crate::decode::SearchOptions;
use crate::text::TermIds;
use std::ops::Range;

/// A term of a line and its translation, for a model that is trained to read both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The byte range of the term in the line.
    pub range: Range<usize>,
    /// Its translation; the model may inflect it.
    pub target: String,
}

/// The terms of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineTerms {
    /// Phrases that its translations must contain.
    pub phrases: Vec<Phrase>,
    /// Translations of terms that the model reads with the line, in order; ignored by a model that
    /// is not trained for it ([`Translator::reads_terms`]).
    pub annotations: Vec<Annotation>,
}

impl Translator {
    /// Whether the models are trained to read translations of terms inside their source.
    pub fn reads_terms(&self) -> bool {
        self.model().tokenizers.terms().is_some()
    }

    /// [`Translator::translate_observed`] with the terms of each line; none for lines beyond the
    /// end of the list, and for those that are longer than the model's limit. Skips phrases that
    /// the vocabulary cannot spell, and annotations that do not begin and end between tokens. Beams
    /// are as wide as the phrases need.
    pub fn translate_with_terms<T: AsRef<str> + Sync>(
        &self,
        lines: &[T],
        terms: &[LineTerms],
        options: &SearchOptions,
        threads: usize,
        observer: &dyn LineObserver,
    ) -> Result<Vec<Line>> {
        let of_line =
            |terms: &LineTerms| terms.phrases.iter().map(|p| self.constraint(p)).collect::<Result<Vec<_>>>();
        let constraints = terms.iter().map(of_line).collect::<Result<Vec<_>>>()?;
        self.translate_constrained(lines, terms, &constraints, options, threads, observer)
    }

    /// The parts of a line annotated with the translations of its terms, if it has one part and
    /// they fit.
    pub(super) fn annotate(
        &self,
        mut parts: Vec<Part>,
        line: &str,
        annotations: &[Annotation],
        options: &SearchOptions,
    ) -> Result<Vec<Part>> {
        let (Some(tokens), [part], false) =
            (self.model().tokenizers.terms(), &mut parts[..], annotations.is_empty())
        else {
            return Ok(parts);
        };
        let before = self.source().prefix_ids().len();
        let mut terms = Vec::with_capacity(annotations.len());
        for Annotation { range, target } in annotations {
            let place = |at: usize| self.token_at(line, at, &part.ids[before..], options);
            let (Some(start), Some(end)) = (place(range.start)?, place(range.end)?) else { continue };
            let target = self.source().text_ids(target)?;
            terms.push(TermIds { range: before + start..before + end, target });
        }
        let annotated = tokens.annotate(&part.ids, &terms);
        if annotated.ids.len() > part.ids.len() && annotated.ids.len() <= self.longest {
            part.annotated = Some(annotated);
        }
        Ok(parts)
    }

    /// The number of tokens before a byte offset of a line, if a token begins there.
    fn token_at(&self, line: &str, at: usize, ids: &[u32], options: &SearchOptions) -> Result<Option<usize>> {
        let Some(text) = line.get(..at) else { return Ok(None) };
        let text = self.source().prepare(&self.readable(text, options));
        let before = self.source().text_ids(&text)?;
        Ok(ids.starts_with(&before).then_some(before.len()))
    }
}
