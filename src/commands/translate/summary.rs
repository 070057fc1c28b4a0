//! A final summary of what the guard, the memory and the glossary did, one line each.

use regard_documents::{Match, Report, TranslatedLine};

#[derive(Debug, Default)]
pub(super) struct Summary {
    lines: usize,
    /// Whole lines, and lines with a part from the memory.
    segments: usize,
    partly: usize,
    retried: usize,
    faulty: usize,
    terms: usize,
    missing_terms: usize,
}

impl Summary {
    pub(super) fn add(&mut self, line: &TranslatedLine) {
        self.lines += 1;
        match line.memory {
            Some(Match::Segment) => self.segments += 1,
            Some(Match::Sentences) => self.partly += 1,
            None => {}
        }
        self.retried += line.guarded.len();
        self.terms += line.terms.wanted;
        self.missing_terms += line.terms.missing.len();
        self.faulty += line.guarded.iter().filter(|guarded| guarded.left.is_some()).count();
    }

    /// Prints the summary, if there is anything to report.
    pub(super) fn print(&self) {
        if self.segments + self.partly > 0 {
            let (lines, whole, partly) = (self.lines, self.segments, self.partly);
            note!("regard: {whole} of {lines} lines came from the translation memory, {partly} more in part");
        }
        say_retried(self.retried, self.faulty);
        say_terms(self.terms, self.missing_terms);
    }
}

/// Prints what was done to a document.
pub(super) fn print_report(report: &Report) {
    report.warnings.iter().for_each(|warning| note!("regard: {warning}"));
    if report.from_memory > 0 {
        let (known, all) = (report.from_memory, report.sentences);
        note!("regard: {known} of {all} sentences came from the translation memory");
    }
    say_retried(report.guarded.len(), report.faults_left());
    for (source, target) in &report.terms.missing {
        note!("regard: a translation lacks {target:?}, which the glossary has for {source:?}");
    }
    say_terms(report.terms.wanted, report.terms.missing.len());
}

fn say_terms(wanted: usize, missing: usize) {
    if wanted > 0 {
        let found = wanted - missing;
        note!("regard: {found} of {wanted} terms of the glossary are in the translations");
    }
}

fn say_retried(retried: usize, faulty: usize) {
    if retried > 0 {
        let plural = if retried == 1 { "sentence was" } else { "sentences were" };
        note!(
            "regard: {retried} {plural} translated again because the first result was degenerate; {faulty} still are"
        );
    }
}
