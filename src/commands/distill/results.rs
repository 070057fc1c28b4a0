//! The final table: size, speed and quality of each model.

use super::super::input::read_text;
use super::super::{CommandResult, print_line};
use regard::formats::{Languages, Model};
use regard::metrics::{Bleu, Chrf, Metric, Tokenizer, lines};
use regard::translator::Translator;
use regard::{Error, Isa};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The results of one model on the test set.
struct Row {
    name: String,
    megabytes: f64,
    beam: usize,
    bleu: f64,
    chrf: f64,
    words_per_second: f64,
}

/// The results of all models on the test set.
pub(super) struct Results {
    source: Vec<String>,
    reference: Vec<String>,
    languages: Languages,
    machine: (Isa, usize),
    rows: Vec<Row>,
}

impl Results {
    /// Reads the test set, in the student's languages.
    pub(super) fn new(
        source: &Path,
        reference: &Path,
        languages: Languages,
        machine: (Isa, usize),
    ) -> Result<Self, Error> {
        let ((from, source), (to, reference)) = (read_text(source)?, read_text(reference)?);
        let (source, reference) = (lines(&source), lines(&reference));
        if source.is_empty() || source.len() != reference.len() {
            let (a, b) = (source.len(), reference.len());
            let message = format!(
                "{a} lines, but {} has {b}; a test set needs some, and as many of each",
                to.display()
            );
            return Err(Error::file(from, message));
        }
        Ok(Results { source, reference, languages, machine, rows: Vec::new() })
    }

    /// Adds one teacher, or several as an ensemble; `reverse` if they translate in the opposite
    /// direction.
    pub(super) fn teacher(
        &mut self,
        name: &str,
        folders: &[PathBuf],
        beam: usize,
        reverse: bool,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let name = if reverse { format!("{name}, the other way") } else { name.to_owned() };
        self.add(name, folders, beam, reverse)
    }

    /// Adds a student, which decodes greedily.
    pub(super) fn student(&mut self, name: &str, folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
        self.add(name.to_owned(), &[folder.to_owned()], 1, false)
    }

    fn add(
        &mut self,
        name: String,
        folders: &[PathBuf],
        beam: usize,
        reverse: bool,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let (from, to, language) = match reverse {
            true => (&self.reference, &self.source, &self.languages.source),
            false => (&self.source, &self.reference, &self.languages.target),
        };
        let mut bytes = 0;
        for folder in folders {
            bytes += Model::describe(folder)?.weight_bytes;
        }
        let translator = Translator::load(folders, self.machine.0, self.machine.1)?;
        let mut options = translator.options();
        options.beam = beam;
        let start = Instant::now();
        let found = translator.translate(from, &options)?;
        let seconds = start.elapsed().as_secs_f64();
        let texts: Vec<String> = found.iter().map(|line| line.best().text).collect();
        let words: usize = from.iter().map(|line| line.split_whitespace().count()).sum();
        let references = std::slice::from_ref(to);
        let tokenizer = language.as_deref().map_or_else(Tokenizer::default, Tokenizer::for_language);
        let bleu = Bleu { tokenizer, ..Bleu::default() }.corpus(&texts, references)?.score;
        let chrf = Chrf::default().corpus(&texts, references)?.score;
        let words_per_second = words as f64 / seconds.max(1e-9);
        self.rows.push(Row { name, megabytes: bytes as f64 / 1e6, beam, bleu, chrf, words_per_second });
        Ok(())
    }

    /// Prints the table to standard output, and writes it to `results.md` in the folder.
    pub(super) fn print(&self, out: &Path) -> CommandResult {
        let path = out.join("results.md");
        let table = self.table();
        std::fs::write(&path, format!("{table}\n")).map_err(|e| Error::io(&path, e))?;
        print_line(table)
    }

    fn table(&self) -> String {
        let width = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).max(5);
        let mut text = format!(
            "| {:width$} | size (MB) | beam |  BLEU |  chrF | words/s |\n|-{:-<width$}-|----------:|-----:|------:|------:|--------:|",
            "model", ""
        );
        for Row { name, megabytes, beam, bleu, chrf, words_per_second } in &self.rows {
            text += &format!(
                "\n| {name:width$} | {megabytes:9.1} | {beam:4} | {bleu:5.2} | {chrf:5.2} | {words_per_second:7.0} |"
            );
        }
        text
    }
}
