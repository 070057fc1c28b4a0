//! The translations of the teachers, saved in parts so that an interrupted run loses little.

use super::super::input::Lines;
use super::super::interrupted;
use regard::Error;
use regard::translator::Translator;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The number of lines per part, which is written when complete.
const PART: usize = 1000;

/// What the translations in a folder were made from: teachers and text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct TeachingRecord {
    teachers: Vec<String>,
    beam: usize,
    /// Files and their sizes in bytes.
    files: Vec<(PathBuf, u64)>,
}

/// The translations of a text in a folder.
pub(super) struct TeacherTranslations {
    folder: PathBuf,
    made: TeachingRecord,
}

/// The filter for translations.
pub(super) struct Filter {
    /// The share to keep, those with the best scores.
    pub(super) keep: f64,
    /// The minimum mean log-probability per token.
    pub(super) min_score: Option<f32>,
}

/// A line of a part.
struct TaughtLine<'a> {
    source: &'a str,
    translation: &'a str,
    score: f32,
}

impl<'a> TaughtLine<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut columns = line.split('\t');
        let (score, source, translation) = (columns.next()?, columns.next()?, columns.next()?);
        Some(TaughtLine { source, translation, score: score.parse().ok()? })
    }

    /// Whether the translation is empty, or many times as long as its source.
    fn is_degenerate(&self) -> bool {
        let words = |text: &str| text.split_whitespace().count();
        let (source, translation) = (self.source.chars().count(), self.translation.chars().count());
        words(self.translation) == 0 || translation > 4 * source + 40 || source > 4 * translation + 40
    }
}

impl TeacherTranslations {
    /// Starts, or continues what is in `out`, which must be from the same teachers and text.
    pub(super) fn open(
        out: &Path,
        teachers: Vec<String>,
        beam: usize,
        sources: &[PathBuf],
    ) -> Result<Self, Error> {
        let folder = out.join("text");
        fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, e))?;
        let size =
            |path: &PathBuf| Ok((path.clone(), fs::metadata(path).map_err(|e| Error::io(path, e))?.len()));
        let files = sources.iter().map(size).collect::<Result<Vec<_>, Error>>()?;
        let made = TeachingRecord { teachers, beam, files };
        let record = folder.join("made.json");
        match fs::read(&record) {
            Ok(bytes) => {
                if serde_json::from_slice::<TeachingRecord>(&bytes).ok().as_ref() != Some(&made) {
                    let message =
                        "holds translations by other teachers or of other text; choose another folder";
                    return Err(Error::file(out, message));
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let text = serde_json::to_vec(&made).map_err(|e| Error::file(&record, e.to_string()))?;
                fs::write(&record, text).map_err(|e| Error::io(&record, e))?;
            }
            Err(e) => return Err(Error::io(&record, e)),
        }
        Ok(TeacherTranslations { folder, made })
    }

    fn part(&self, number: usize) -> PathBuf {
        self.folder.join(format!("part-{number:06}.tsv"))
    }

    /// Translates the lines that have no translation yet.
    pub(super) fn translate(
        &self,
        teachers: &Translator,
        stop: &AtomicBool,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let mut options = teachers.options();
        options.beam = self.made.beam;
        let (start, mut number, mut lines, mut new) = (Instant::now(), 0, 0, 0);
        for (file, _) in &self.made.files {
            let mut text = Lines::open(file)?;
            loop {
                let mut part = Vec::new();
                while part.len() < PART
                    && let Some(line) = text.next_text()?
                {
                    let line = line.trim();
                    if !line.is_empty() {
                        part.push(line.replace('\t', " "));
                    }
                }
                if part.is_empty() {
                    break;
                }
                lines += part.len();
                if !self.part(number).exists() {
                    if stop.load(Ordering::Relaxed) {
                        note!("stopped after {lines} lines; the same command continues");
                        return Err(interrupted());
                    }
                    self.write_part(number, teachers, &part, &options)?;
                    new += part.len();
                    let speed = new as f64 / start.elapsed().as_secs_f64();
                    note!("{} lines translated, {speed:.0} per second", regard_plot::grouped(lines as u64));
                }
                number += 1;
            }
        }
        if lines == 0 {
            return Err("the text to translate is empty".into());
        }
        Ok(())
    }

    fn write_part(
        &self,
        number: usize,
        teachers: &Translator,
        lines: &[String],
        options: &regard::decode::SearchOptions,
    ) -> Result<(), Error> {
        let mut out = String::new();
        for (line, translated) in lines.iter().zip(teachers.translate(lines, options)?) {
            let best = translated.best();
            let tokens = best.token_scores.len().max(1) as f32;
            let score = best.token_scores.iter().sum::<f32>() / tokens;
            out += &format!("{score:.4}\t{line}\t{}\n", best.text);
        }
        let (path, beside) = (self.part(number), self.folder.join("part.tmp"));
        let written = fs::write(&beside, out).and_then(|()| fs::rename(&beside, &path));
        written.map_err(|e| Error::io(&path, e))
    }

    /// Calls `action` with each translated line.
    fn each(&self, mut action: impl FnMut(TaughtLine<'_>) -> Result<(), Error>) -> Result<(), Error> {
        for path in (0..).map(|number| self.part(number)).take_while(|path| path.exists()) {
            let file = File::open(&path).map_err(|e| Error::io(&path, e))?;
            for (number, line) in BufReader::new(file).lines().enumerate() {
                let line = line.map_err(|e| Error::io(&path, e))?;
                let Some(taught) = TaughtLine::parse(&line) else {
                    let message =
                        "not a score, a text and its translation; remove the file to make it again".into();
                    return Err(Error::Line { path, line: number + 1, message });
                };
                action(taught)?;
            }
        }
        Ok(())
    }

    /// Writes the text and the translations that pass to two files, and reports their number.
    pub(super) fn select(&self, filter: &Filter) -> Result<[PathBuf; 2], Box<dyn std::error::Error>> {
        let (mut scores, mut all) = (Vec::new(), 0u64);
        self.each(|taught| {
            all += 1;
            if !taught.is_degenerate() {
                scores.push(taught.score);
            }
            Ok(())
        })?;
        let usable = scores.len();
        scores.sort_by(|a, b| b.total_cmp(a));
        let kept = ((usable as f64 * filter.keep).ceil() as usize).clamp(1, usable.max(1));
        let least = scores.get(kept - 1).copied().unwrap_or(f32::NEG_INFINITY);
        let least = least.max(filter.min_score.unwrap_or(f32::NEG_INFINITY));
        let paths = ["text.txt", "translation.txt"].map(|name| self.folder.join(name));
        let create = |path: &PathBuf| File::create(path).map(BufWriter::new).map_err(|e| Error::io(path, e));
        let (mut text, mut translation) = (create(&paths[0])?, create(&paths[1])?);
        let mut count = 0u64;
        self.each(|taught| {
            if taught.is_degenerate() || taught.score < least {
                return Ok(());
            }
            count += 1;
            let written = writeln!(text, "{}", taught.source).map_err(|e| Error::io(&paths[0], e));
            written.and(writeln!(translation, "{}", taught.translation).map_err(|e| Error::io(&paths[1], e)))
        })?;
        text.flush().map_err(|e| Error::io(&paths[0], e))?;
        translation.flush().map_err(|e| Error::io(&paths[1], e))?;
        if count == 0 {
            return Err("no translation is good enough; see --keep and --min-score".into());
        }
        let grouped = regard_plot::grouped;
        note!(
            "{} of {} translations are kept, with a mean log-probability of a token of at least {least:.2}; {} are \
             empty or far too long or short",
            grouped(count),
            grouped(all),
            grouped(all - usable as u64)
        );
        Ok(paths)
    }
}
