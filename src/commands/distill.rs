//! `regard distill`: trains a small fast model on the translations of larger ones.

mod results;
mod teach;

use super::numbers::{BEAM, STEPS, THREADS, decimal, decimal_f32, whole, whole_u64};
use super::shortlist::{self, learn};
use super::train::{View, card_commands};
use super::{CommandResult, Usage, cores, interrupted, presets, resolve, stop_on_signals};
use clap::Args;
use regard::decode::ShortlistSize;
use regard::formats::{Languages, Model};
use regard::model::Preset;
use regard::train::corpus::Inputs;
use regard::train::{End, Start, TrainConfig, has_run, resumed_config};
use regard::translator::Translator;
use regard::{DType, Isa};
use results::Results;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use teach::{Filter, TeacherTranslations};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    regard distill --teacher en-de --src train.en --test-src test.en --test-ref test.de --out small --minutes 20\n  \
    regard distill --teacher a --teacher b --src train.en more.en.gz --real-src train.en --real-tgt train.de \\\n      \
    --valid-src val.en --valid-tgt val.de --out small --set tokenizer.size=8000\n  \
    regard distill --reverse --teacher de-en --src news.de --real-src train.en --real-tgt train.de \\\n      \
    --valid-src val.en --valid-tgt val.de --preset tiny --out en-de\n\n\
    Steps: the teachers, as an ensemble, translate the text; the worst translations are left out; the student is trained on the\n\
    others; a shortlist is learned and an int8 model with it is written; all models translate the test set, and a table shows their\n\
    sizes, BLEU and speeds. DIR/text has the translations, DIR/student the model, DIR/student-int8 the small one, DIR/results.md the\n\
    table. The same command continues where an interrupted one stopped.\n\
    With --reverse (back-translation), the text is in the student's target language: the teachers translate the other way, and the\n\
    student learns to write real text.")]
pub(crate) struct Arguments {
    /// Model to learn from: a folder or its name on the Hugging Face hub; repeat the flag for an
    /// ensemble
    #[arg(long, value_name = "DIR", required = true)]
    teacher: Vec<PathBuf>,
    /// Text for the teachers to translate, one sentence per line; plain, .gz or .zst
    #[arg(long, value_name = "FILE", num_args = 1.., required = true)]
    src: Vec<PathBuf>,
    /// Folder to write everything to
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// Back-translation: the text is what the student should write, and the teachers translate it
    /// into what it reads
    #[arg(long)]
    reverse: bool,
    /// Beam size of the teachers
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole(BEAM))]
    beam: usize,
    /// Share of the translations to keep, those with the best scores
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = decimal(0.01..=1.0))]
    keep: f64,
    /// Leave out translations whose mean log-probability of a token is below this
    #[arg(long, value_name = "SCORE", allow_negative_numbers = true, value_parser = decimal_f32(-1000.0..=1000.0))]
    min_score: Option<f32>,
    /// Source text of real pairs to train on as well
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "real_tgt")]
    real_src: Vec<PathBuf>,
    /// Their translations, in as many files
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "real_src")]
    real_tgt: Vec<PathBuf>,
    /// Source text to validate on [default: pairs of the training data, held out]
    #[arg(long, value_name = "FILE", requires = "valid_tgt")]
    valid_src: Option<PathBuf>,
    /// Its translation
    #[arg(long, value_name = "FILE", requires = "valid_src")]
    valid_tgt: Option<PathBuf>,
    /// Source text to evaluate all models on [default: --valid-src]
    #[arg(long, value_name = "FILE", requires = "test_ref")]
    test_src: Option<PathBuf>,
    /// Its reference translation
    #[arg(long, value_name = "FILE", requires = "test_src")]
    test_ref: Option<PathBuf>,
    /// Size of the student and its training recipe
    #[arg(long, value_parser = presets::one_of(&Preset::ALL), default_value = "student")]
    preset: Preset,
    /// Change one setting of the training, of those that `regard train --help` lists; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Train the student for about N minutes
    #[arg(long, value_name = "N", conflicts_with = "steps", value_parser = decimal(0.001..=5_256_000.0))]
    minutes: Option<f64>,
    /// Train the student for N steps
    #[arg(long, value_name = "N", value_parser = whole_u64(STEPS))]
    steps: Option<u64>,
    /// Number of cores to use [default: all]
    #[arg(long, value_name = "N", value_parser = whole(THREADS))]
    threads: Option<usize>,
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    let (isa, threads) = (Isa::from_env()?, arguments.threads.unwrap_or_else(cores));
    let test = test_set(&arguments)?;
    if !has_run(&student_folder(&arguments.out)) {
        // Check the settings before hours of translating.
        settings(&arguments, &Languages::default(), Vec::new(), Vec::new())?.check()?;
    }
    let stop = stop_on_signals()?;
    let folders = arguments.teacher.iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
    let teachers = Translator::load(&folders, isa, threads)?;
    let languages = student_languages(&teachers, arguments.reverse);
    let [translated, translations] = taught(&arguments, &teachers, &stop)?;
    drop(teachers);
    let (source, target) = match arguments.reverse {
        true => (translations, translated),
        false => (translated, translations),
    };
    let source: Vec<PathBuf> = [source].into_iter().chain(arguments.real_src.clone()).collect();
    let target: Vec<PathBuf> = [target].into_iter().chain(arguments.real_tgt.clone()).collect();
    let pairs = Inputs::Files { source: source.clone(), target: target.clone() };
    train_student(&arguments, settings(&arguments, &languages, source, target)?, isa, &stop)?;
    let small = make_small(&arguments.out, &pairs, threads)?;
    if stop.load(std::sync::atomic::Ordering::Relaxed) {
        return Err(interrupted());
    }
    let mut results = Results::new(test.0, test.1, languages, (isa, threads))?;
    for (i, folder) in folders.iter().enumerate().filter(|_| folders.len() > 1) {
        results.teacher(
            &format!("teacher {}", i + 1),
            std::slice::from_ref(folder),
            arguments.beam,
            arguments.reverse,
        )?;
    }
    let name = if folders.len() > 1 { "teachers together" } else { "teacher" };
    results.teacher(name, &folders, arguments.beam, arguments.reverse)?;
    results.student("student", &student_folder(&arguments.out))?;
    results.student("student, int8, shortlist", &small)?;
    results.print(&arguments.out)
}

/// The files on which all models are evaluated.
fn test_set(arguments: &Arguments) -> Result<(&Path, &Path), Usage> {
    let given = arguments.test_src.as_deref().zip(arguments.test_ref.as_deref());
    let valid = arguments.valid_src.as_deref().zip(arguments.valid_tgt.as_deref());
    given.or(valid).ok_or_else(|| {
        Usage(
            "there is nothing to evaluate on: give --test-src and --test-ref, or --valid-src and --valid-tgt"
                .into(),
        )
    })
}

fn student_folder(out: &Path) -> PathBuf {
    out.join("student")
}

/// The student's source and target languages.
fn student_languages(teachers: &Translator, reverse: bool) -> Languages {
    let Languages { source, target } = teachers.model().languages.clone();
    match reverse {
        true => Languages { source: target, target: source },
        false => Languages { source, target },
    }
}

/// Selects the text and its translations that are good enough, as files.
fn taught(
    arguments: &Arguments,
    teachers: &Translator,
    stop: &AtomicBool,
) -> Result<[PathBuf; 2], Box<dyn Error>> {
    let names = arguments.teacher.iter().map(|path| path.display().to_string()).collect();
    let teaching = TeacherTranslations::open(&arguments.out, names, arguments.beam, &arguments.src)?;
    teaching.translate(teachers, stop)?;
    let filter = Filter { keep: arguments.keep, min_score: arguments.min_score };
    teaching.select(&filter)
}

fn settings(
    arguments: &Arguments,
    languages: &Languages,
    src: Vec<PathBuf>,
    tgt: Vec<PathBuf>,
) -> Result<TrainConfig, regard::Error> {
    let mut config = TrainConfig::new(arguments.preset);
    (config.data.src, config.data.tgt) = (src, tgt);
    config.data.valid_src.clone_from(&arguments.valid_src);
    config.data.valid_tgt.clone_from(&arguments.valid_tgt);
    config.data.source_lang.clone_from(&languages.source);
    config.data.target_lang.clone_from(&languages.target);
    config.threads = arguments.threads;
    config.minutes = arguments.minutes;
    config.steps = arguments.steps.or(config.steps);
    for set in &arguments.set {
        config.set(set)?;
    }
    Ok(config)
}

fn train_student(arguments: &Arguments, config: TrainConfig, isa: Isa, stop: &AtomicBool) -> CommandResult {
    let out = student_folder(&arguments.out);
    let resume = has_run(&out);
    let config = if resume { resumed_config(&out, |_| Ok(()))? } else { config };
    let mut view = View::new();
    let start = Start::new(&out, resume, isa, stop, &mut view).with_commands(card_commands(&out));
    let outcome = start.run(config);
    view.close();
    match outcome?.end {
        End::Finished => Ok(()),
        End::Interrupted => {
            note!("the same command continues");
            Err(interrupted())
        }
    }
}

/// Writes the student in int8 with a shortlist; returns its folder.
fn make_small(out: &Path, pairs: &Inputs, threads: usize) -> Result<PathBuf, regard::Error> {
    let mut model = Model::load(&student_folder(out))?;
    let learned = learn(&model, pairs, ShortlistSize::default(), shortlist::PAIRS, threads)?;
    model.shortlist = Some(Arc::new(learned.list));
    let folder = out.join("student-int8");
    model.save(&folder, DType::Int8)?;
    note!(
        "{}: int8, with a shortlist of {} words for a sentence on average",
        folder.display(),
        learned.words
    );
    Ok(folder)
}
