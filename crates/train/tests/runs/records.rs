//! What a run writes down: its log, its report, and by which tokenizer it validates.

use crate::common::{run, small_config};
use regard_core::Isa;
use regard_train::config::Every;
use regard_train::{Progress, Record, StepRecord, ValidationRecord, read_log, train};
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Step, weights, loss and chrF of each validation, exact.
pub(crate) fn validations(out: &Path) -> Vec<(u64, String, f64, f64)> {
    let records = read_log(&out.join("logs/log.jsonl")).unwrap();
    let of = |r: Record| match r {
        Record::Step(_) => None,
        Record::Validation(r) => Some((r.step, r.weights, r.loss, r.chrf)),
    };
    records.into_iter().filter_map(of).collect()
}

/// Validation BLEU of a language without spaces counts characters.
#[test]
fn validation_chooses_the_tokenizer_by_the_target_language() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config(folder.path());
    (config.data.target_lang, config.steps) = (Some("ja".into()), Some(2));
    let messages = run(&config, &folder.path().join("run"), false, 99).1;
    assert!(
        messages.contains("validation BLEU: tokenizer char, chosen for target language ja\n"),
        "{messages}"
    );
    let _ = config.data.target_lang.take();
    let messages = run(&config, &folder.path().join("other"), false, 99).1;
    assert!(!messages.contains("validation BLEU: tokenizer"), "{messages}");
}

/// The report shows both curves without label smoothing, and training from the first step on.
#[test]
fn the_report_compares_like_with_like() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config(folder.path());
    (config.steps, config.log_every) = (Some(24), 10);
    config.optimizer.step.label_smoothing = 0.4;
    config.model.dropout = 0.0;
    config.validation.every = Every::Steps(8);
    let out = folder.path().join("out");
    run(&config, &out, false, u64::MAX).0.unwrap();
    let records = read_log(&out.join("logs/log.jsonl")).unwrap();
    let steps: Vec<StepRecord> = records
        .iter()
        .filter_map(|r| match r {
            Record::Step(r) => Some(r.clone()),
            Record::Validation(_) => None,
        })
        .collect();
    assert_eq!(steps.iter().map(|r| r.step).collect::<Vec<_>>(), [1, 2, 4, 8, 10, 20, 24]);
    // Smoothing adds to the loss of a model that has learned something, and hardly to that of one
    // that has not.
    let (first, last) = (&steps[0], &steps[6]);
    assert!((first.loss - first.nll.unwrap()).abs() < 0.5, "{first:?}");
    assert!(last.nll.unwrap() < first.nll.unwrap(), "{first:?} {last:?}");
    let page = fs::read_to_string(out.join("logs/report.html")).unwrap();
    assert!(page.contains("without label smoothing") && !page.contains("cannot be compared"));
    // It is over.
    assert!(page.contains("Finished after 24 steps") && !page.contains("http-equiv=\"refresh\""));

    // Without smoothing the two are the same number.
    config.optimizer.step.label_smoothing = 0.0;
    let plain = folder.path().join("plain");
    run(&config, &plain, false, u64::MAX).0.unwrap();
    for record in read_log(&plain.join("logs/log.jsonl")).unwrap() {
        if let Record::Step(r) = record {
            assert!((r.loss - r.nll.unwrap()).abs() < 1e-5 * r.loss, "{r:?}");
        }
    }
}

/// Looks at the report after each validation.
struct Reader<'a> {
    report: &'a Path,
    pages: Vec<Option<String>>,
}

impl Progress for Reader<'_> {
    fn message(&mut self, _: &str) {}

    fn step(&mut self, record: &StepRecord, _: Option<u64>) {
        // After a validation comes a step, and the page is there by then.
        if record.step % 5 == 1 {
            self.pages.push(fs::read_to_string(self.report).ok());
        }
    }

    fn validated(&mut self, _: &ValidationRecord, _: bool) {}
}

#[test]
fn the_report_is_there_from_the_first_validation_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_config(folder.path());
    config.validation.samples = 2;
    let out = folder.path().join("out");
    let report = out.join("logs/report.html");
    let mut reader = Reader { report: &report, pages: Vec::new() };
    let stop = AtomicBool::new(false);
    train(config, &out, false, Isa::best(), &stop, &mut reader).unwrap();
    let [None, Some(first), Some(second)] = &reader.pages[..] else { panic!("{:?}", reader.pages) };
    for (page, step) in [(first, 5), (second, 10)] {
        assert!(page.contains(&format!("Running after {step} steps")), "{page}");
        assert!(page.contains("http-equiv=\"refresh\"") && page.contains("are left."), "{page}");
        assert!(page.contains("Memory: "), "{page}");
    }
    assert!(first.contains("too early to say"));
    assert!(
        second.contains("Δ BLEU")
            && second.contains("<th scope=\"col\">step 5</th><th scope=\"col\">step 10</th>")
    );
    // The same sentences each time.
    let records = read_log(&out.join("logs/log.jsonl")).unwrap();
    let sources: Vec<Vec<String>> = records
        .into_iter()
        .filter_map(|record| match record {
            Record::Validation(r) => Some(r.samples.into_iter().map(|sample| sample.0).collect()),
            Record::Step(_) => None,
        })
        .collect();
    assert!(sources.len() > 3 && sources.iter().all(|s| s.len() == 2 && *s == sources[0]), "{sources:?}");
    // The card has the scores of the model in the folder.
    let card = fs::read_to_string(out.join("README.md")).unwrap();
    assert!(card.contains("language:\n- en\n- fr\n") && card.contains("On 6 validation sentences"), "{card}");
}
