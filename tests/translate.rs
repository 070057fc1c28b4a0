//! `regard translate`, `evaluate` and `look` on a small model of random weights, as a user would
//! run them.

use regard::DType;
use regard::decode::SearchOptions;
use regard::formats::{Languages, Model};
use regard::model::{ModelConfig, Transformer};
use regard::text::{TextSample, TokenizerPair, TokenizerSettings};
use regard::translator::Translator;
use regard::{Isa, Result};
use regard_sample_corpus as builtin;
use std::fs;
#[cfg(unix)]
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Output;
#[cfg(unix)]
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// A model folder that all tests share.
pub(crate) fn folder() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            let folder = TempDir::new().unwrap();
            small_model(3, |_| ()).unwrap().save(folder.path(), DType::F32).unwrap();
            folder
        })
        .path()
}

/// A model of random weights.
pub(crate) fn small_model(seed: u64, change: impl FnOnce(&mut ModelConfig)) -> Result<Model> {
    let corpus = builtin::corpus(1, 300);
    let (source, target): (TextSample, TextSample) = corpus.train.into_iter().unzip();
    let settings = TokenizerSettings { size: Some(500), ..TokenizerSettings::default() };
    let tokenizers = TokenizerPair::train(&source, &target, &settings)?;
    let words = tokenizers.target().size();
    let mut config = ModelConfig {
        source_vocabulary: words,
        target_vocabulary: words,
        d_model: 16,
        heads: 2,
        d_ff: 24,
        encoder_layers: 2,
        decoder_layers: 2,
        max_positions: 24,
        ..ModelConfig::default()
    };
    change(&mut config);
    let transformer = Transformer::new(config)?;
    let weights = transformer.parameters().initialise(seed);
    let languages = Languages { source: Some("en".into()), target: Some("fr".into()) };
    Ok(Model { transformer, weights, tokenizers, languages, generation: Default::default(), shortlist: None })
}

fn regard(arguments: &[&str], input: &[u8]) -> Output {
    let mut command = crate::command::regard();
    command.args(arguments);
    crate::command::output(command, input)
}

fn translate(flags: &[&str], input: &[u8]) -> (String, String) {
    let model = folder().to_str().unwrap();
    // Random weights know no end: a limit keeps the tests quick.
    let limit: &[&str] = if flags.contains(&"--max-length") { &[] } else { &["--max-length", "9"] };
    let output = regard(&[&["translate", "--model", model], limit, flags].concat(), input);
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{err}");
    // Random weights repeat themselves, and nothing helps.
    let err =
        err.lines().filter(|line| !line.contains("degenerate")).map(|line| format!("{line}\n")).collect();
    (out, err)
}

#[test]
fn one_line_in_is_one_line_out_in_order() {
    let lines = ["The dog sleeps.", "", "   ", "Two cats eat the red apples.", "A", ".", "The dog sleeps."];
    let (out, err) = translate(&[], (lines.join("\n") + "\n").as_bytes());
    let got: Vec<&str> = out.lines().collect();
    assert_eq!(got.len(), lines.len(), "{out}");
    assert_eq!((got[1], got[2]), ("", ""));
    assert_eq!(got[0], got[6]);
    assert_ne!(got[0], "");
    assert_eq!(err, "");
    // Alone, on one thread, in batches of one, without a last line feed: the same.
    let (alone, _) = translate(&["--threads", "1", "--batch", "1"], b"Two cats eat the red apples.");
    assert_eq!(alone.lines().collect::<Vec<_>>(), [got[3]]);
    assert_eq!(translate(&[], b"").0, "");
}

#[test]
fn odd_text_goes_through_and_is_warned_of() {
    let mut input = "\u{feff}The dog sleeps.\r\n".as_bytes().to_vec();
    input.extend(b"The \xff dog\nA\x00b\n");
    input.extend("e\u{301}\u{301} 🙂 漢字 \u{202e}abc\n".as_bytes());
    let (out, err) = translate(&[], &input);
    assert_eq!(out.lines().count(), 4);
    assert_eq!(out.lines().next(), translate(&[], b"The dog sleeps.\n").0.lines().next());
    assert_eq!(err, "regard: standard input:2: not UTF-8; invalid bytes are replaced by U+FFFD\n");
}

#[test]
fn long_lines_are_translated_sentence_by_sentence() {
    let sentence = "The dog sleeps.";
    let (one, _) = translate(&[], sentence.as_bytes());
    let many = [sentence; 12].join(" ");
    let (out, err) = translate(&["--max-length", "7"], many.as_bytes());
    assert_eq!(out.lines().count(), 1);
    assert!(out.len() > one.len() && err.is_empty(), "{out} {err}");
    let endless = "dog ".repeat(80);
    let (out, err) = translate(&[], endless.as_bytes());
    assert_eq!(out.lines().count(), 1);
    assert_eq!(
        err,
        "regard: standard input:1: a sentence is longer than the model can read and was cut into pieces\n"
    );
    // No space at all.
    let (out, _) = translate(&[], "x".repeat(5_000).as_bytes());
    assert_eq!(out.lines().count(), 1);
}

#[test]
fn sentences_of_a_line_are_translated_one_by_one() {
    let sentences = ["The dog sleeps.", "A cat eats.", "We see the sea."];
    let alone: Vec<String> =
        sentences.iter().map(|s| translate(&[], s.as_bytes()).0.trim_end().to_owned()).collect();
    assert_eq!(translate(&[], sentences.join(" ").as_bytes()).0, alone.join(" ") + "\n");
    // Whatever random weights say, what is protected is there; a line of nothing else is left
    // alone.
    let input = "Dear {name}, see https://a.example/b?c=1 now. Pay 3.50.\n  12 % \n🙂\n";
    let (out, _) = translate(&[], input.as_bytes());
    let lines: Vec<&str> = out.lines().collect();
    assert!(
        ["{name}", "https://a.example/b?c=1", "3.50"].iter().all(|span| lines[0].contains(span)),
        "{out}"
    );
    assert_eq!(lines[1..], ["  12 % ", "🙂"]);
    // n-best, scores, alignment and JSON of several sentences.
    let flags = ["--nbest", "3", "--scores", "--alignment"];
    let (out, _) = translate(&flags, b"The dog sleeps. A cat eats.\n12 %\n\n");
    let lines: Vec<Vec<&str>> = out.lines().map(|l| l.split('\t').collect()).collect();
    assert!(lines.len() == 9 && lines.iter().all(|columns| columns.len() == 3), "{out}");
    assert_eq!((lines[3][1], lines[6][1]), ("12 %", ""));
    let words = lines[0][1].split_whitespace().count();
    for pair in lines[0][2].split(' ') {
        let (s, t) = pair.split_once('-').unwrap();
        assert!(s.parse::<usize>().unwrap() < 6 && t.parse::<usize>().unwrap() < words, "{out}");
    }
    let json = |text: &str| -> serde_json::Value {
        serde_json::from_str(translate(&["--json"], text.as_bytes()).0.trim()).unwrap()
    };
    let (one, two) = (json("The dog sleeps."), json("A cat eats."));
    let both = json("The dog sleeps. A cat eats.");
    let score = |v: &serde_json::Value| v["translations"][0]["score"].as_f64().unwrap();
    assert!((score(&both) - (score(&one) + score(&two)) / 2.0).abs() < 1e-5);
    let tokens = |v: &serde_json::Value| v["translations"][0]["tokens"].as_array().unwrap().len();
    assert_eq!(tokens(&both), tokens(&one) + tokens(&two));
}

#[test]
fn without_splitting_the_line_is_the_models() {
    let line = "The dog sleeps. See {name}.";
    let translator = Translator::load(&[folder()], Isa::best(), 1).unwrap();
    let options = SearchOptions { max_length: Some(9), ..translator.options() };
    let raw = translator.translate(&[line], &options).unwrap()[0].best().text;
    assert_eq!(translate(&["--no-split"], line.as_bytes()).0, raw + "\n");
}

/// A model that says nothing but this piece.
fn model_that_says(piece: &str) -> TempDir {
    let mut model = small_model(3, |_| ()).unwrap();
    let target = model.tokenizers.target();
    let mut bias = vec![0.0; target.size()];
    bias[target.id(piece).unwrap() as usize] = 50.0;
    model.transformer.set_output_bias(Some(bias)).unwrap();
    let folder = TempDir::new().unwrap();
    model.save(folder.path(), DType::F32).unwrap();
    folder
}

#[test]
fn a_model_that_says_line_breaks_still_gives_one_line() {
    for piece in ["<0x0A>", "<0x0D>", "<0x0B>", "<0x0C>", "<0x09>"] {
        let folder = model_that_says(piece);
        let model = folder.path().to_str().unwrap();
        let columns: &[&str] = &["--scores", "--alignment"];
        for flags in [&[][..], &["--no-split"], &["--sample"], &["--sample", "--no-split"], columns] {
            let base = ["translate", "--model", model, "--max-length", "4"];
            let output = regard(&[&base[..], flags].concat(), b"The dog sleeps. A cat 3.\nA dog.\n");
            let text = String::from_utf8(output.stdout).unwrap();
            assert_eq!(text.matches('\n').count(), 2, "{piece} {flags:?}: {text:?}");
            assert!(!text.contains(['\r', '\u{b}', '\u{c}']), "{piece} {flags:?}: {text:?}");
            let tabs = if flags == columns { 4 } else { 0 };
            assert_eq!(text.matches('\t').count(), tabs, "{piece} {flags:?}: {text:?}");
        }
    }
    // Breaks and tabs of the source, CRLF included.
    let (out, _) = translate(&["--scores"], "One\tdog. Two\u{2028}dogs.\tThree.\r\n".as_bytes());
    assert_eq!((out.matches('\t').count(), out.matches(['\r', '\u{2028}']).count()), (1, 0), "{out:?}");
    assert_eq!(out.lines().count(), 1);
}

#[test]
fn more_translations_than_beams_widen_the_beam() {
    let (out, _) = translate(&["--nbest", "8"], b"The dog sleeps.\n");
    assert_eq!(out.lines().count(), 8);
    assert_eq!(
        translate(&["--nbest", "8", "--beam", "2"], b"The dog sleeps.\n").0,
        translate(&["--nbest", "8", "--beam", "8"], b"The dog sleeps.\n").0
    );
}

#[test]
fn given_translations_are_scored() {
    let input = b"The dog sleeps.\nA cat.\n";
    let files = tempfile::tempdir().unwrap();
    let target = files.path().join("target");
    fs::write(&target, "Le chien dort.\n\n").unwrap();
    let target = target.to_str().unwrap();
    let of = |precision: &str| -> Vec<f64> {
        let (plain, _) = translate(&["--score-target", target, "--precision", precision], input);
        let (json, _) = translate(&["--score-target", target, "--json", "--precision", precision], input);
        let lines = plain.lines().zip(json.lines()).zip(["Le chien dort.", ""]);
        lines
            .map(|((plain, json), text)| {
                let json: serde_json::Value = serde_json::from_str(json).unwrap();
                let found = &json["translations"][0];
                let scores = found["token_scores"].as_array().unwrap();
                assert_eq!(scores.len(), found["tokens"].as_array().unwrap().len() + 1);
                let total: f64 = scores.iter().map(|s| s.as_f64().unwrap()).sum();
                let score = total / (scores.len() as f64).powf(0.6);
                assert_eq!(plain, format!("{score:.4}\t{text}"));
                score
            })
            .collect()
    };
    let (exact, rough) = (of("f32"), of("int8"));
    assert!(exact.len() == 2 && exact != rough);
    assert!(exact.iter().zip(&rough).all(|(a, b)| (a - b).abs() < 0.05 * a.abs()), "{exact:?} {rough:?}");
    let model = folder().to_str().unwrap();
    let refused = regard(&["translate", "--model", model, "--score-target", target], b"one line\n");
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.ends_with("2 lines, but the input has 1; each needs one\n"), "{message}");
}

#[test]
fn nbest_scores_alignment_and_json() {
    let (out, _) = translate(&["--nbest", "3", "--scores", "--alignment"], b"The dog sleeps.\n\n");
    let lines: Vec<Vec<&str>> = out.lines().map(|l| l.split('\t').collect()).collect();
    assert_eq!(lines.len(), 6);
    let scores: Vec<f32> = lines[..3].iter().map(|l| l[0].parse().unwrap()).collect();
    assert!(scores.windows(2).all(|w| w[0] >= w[1]), "{scores:?}");
    for line in &lines[..3] {
        for pair in line[2].split_whitespace() {
            let (s, t) = pair.split_once('-').unwrap();
            assert!(s.parse::<usize>().unwrap() < 3 && t.parse::<usize>().is_ok(), "{pair}");
        }
    }
    assert_eq!(lines[3], ["0.0000", "", ""]);
    let (out, _) = translate(&["--json", "--alignment", "--nbest", "2"], b"The dog sleeps.\n");
    let value: serde_json::Value = serde_json::from_str(out.trim()).unwrap();
    assert_eq!(value["translations"].as_array().unwrap().len(), 2);
    let first = &value["translations"][0];
    assert_eq!(
        first["token_scores"].as_array().unwrap().len(),
        first["tokens"].as_array().unwrap().len() + 1
    );
    assert!(first["alignment"].is_array() && value["source_tokens"].is_array());
}

#[test]
fn statistics_go_to_standard_error() {
    let (lines, said) = translate(&["--stats"], b"a b c\n\nb\n");
    assert_eq!(lines.lines().count(), 3);
    let stats: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert_eq!((&stats["lines"], &stats["source_words"]), (&3.into(), &4.into()));
    let seconds = stats["seconds"].as_f64().unwrap();
    assert!(seconds > 0.0 && stats["load_seconds"].as_f64().unwrap() > 0.0);
    let rate = stats["source_words_per_second"].as_f64().unwrap();
    assert!((rate * seconds - 4.0).abs() < 1e-6, "{said}");
    let (_, said) = translate(&[], b"a\n");
    assert_eq!(said, "");
}

#[test]
fn prefixes_and_samples() {
    let (out, _) = translate(&["--prefix", "Le chien"], b"The dog sleeps.\nA cat.\n");
    assert!(out.lines().all(|l| l.starts_with("Le chien")), "{out}");
    let draw = |seed| {
        translate(&["--sample", "--temperature", "2", "--top-k", "90", "--seed", seed], b"The dog.\n").0
    };
    assert_eq!(draw("1"), draw("1"));
    assert_ne!(draw("1"), draw("2"));
}

#[test]
fn wrong_values_get_one_message() {
    let model = folder().to_str().unwrap();
    for (flags, message) in [
        (vec!["--beam", "0"], ""),
        (vec!["--nbest", "0"], ""),
        (vec!["--max-length", "0"], ""),
        (
            vec!["--max-length", "3", "--min-length", "5"],
            "min_length: 5 leaves no room for the end token within max_length 3",
        ),
        (vec!["--sample", "--temperature", "-1"], ""),
        (vec!["--sample", "--top-p", "7"], ""),
        (vec!["--sample", "--top-p", "0"], "top_p: 0 is not above 0 and at most 1"),
        (vec!["--threads", "0"], ""),
        (vec!["--prefix", "un deux trois quatre cinq", "--max-length", "3"], ""),
    ] {
        let output = regard(&[&["translate", "--model", model][..], &flags].concat(), b"The dog.\n");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{flags:?}");
        assert_eq!(output.stdout, b"", "{flags:?}");
        if !message.is_empty() {
            assert_eq!(error, format!("regard: {message}\n"));
            assert_eq!(output.status.code(), Some(1));
        }
    }
    let output = regard(&["translate", "--model", "no-such-folder"], b"");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("regard: no-such-folder: no such folder; a model is a folder with"), "{error}");
    let output = regard(&["translate", "--model", model, "no-such-file"], b"");
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("regard: no-such-file: "));
}

#[test]
fn a_beam_larger_than_the_vocabulary_works() {
    let (out, _) = translate(&["--beam", "600", "--nbest", "600", "--max-length", "3"], b"The dog.\n");
    assert!(out.lines().count() > 400, "{}", out.lines().count());
}

/// Starts `regard translate`; its output is read line by line.
#[cfg(unix)]
fn start(flags: &[&str]) -> (std::process::Child, std::io::BufReader<std::process::ChildStdout>) {
    let model = folder().to_str().unwrap();
    let mut child = crate::command::regard()
        .args([&["translate", "--model", model, "--max-length", "9"], flags].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = std::io::BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

#[cfg(unix)]
fn interrupt(child: &std::process::Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_complete_lines() {
    use std::io::{BufRead, Read};
    // While it waits for input it ends at once, and what it had got is out.
    let (mut child, mut output) = start(&[]);
    child.stdin.as_mut().unwrap().write_all(b"The dog sleeps.\n").unwrap();
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.len() > 1 && line.ends_with('\n'));
    interrupt(&child);
    assert!(!child.wait().unwrap().success());
    // In the middle of a file it finishes what is at hand and says how far it came.
    let (mut child, mut output) = start(&["--threads", "1", "--beam", "2"]);
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all("The dog sleeps in the big red house.\n".repeat(5_000).as_bytes());
    });
    let mut text = String::new();
    output.read_line(&mut text).unwrap();
    interrupt(&child);
    output.read_to_string(&mut text).unwrap();
    let mut error = String::new();
    child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    child.wait().unwrap();
    writer.join().unwrap();
    assert!(text.ends_with('\n'));
    let lines = text.lines().count();
    assert!((1..=5_000).contains(&lines), "{lines}");
    assert!(
        lines == 5_000
            || error.is_empty()
            || error == format!("regard: stopped after {lines} lines, which are complete\n"),
        "{lines}: {error}"
    );
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_ends_quietly() {
    let (mut child, output) = start(&[]);
    drop(output);
    let _ = child.stdin.take().unwrap().write_all("The dog sleeps.\n".repeat(50).as_bytes());
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success());
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
}

fn files(folder: &Path, source: &[&str], reference: &[&str]) -> (PathBuf, PathBuf) {
    let (s, r) = (folder.join("test.en"), folder.join("test.fr"));
    fs::write(&s, source.join("\n") + "\n").unwrap();
    fs::write(&r, reference.join("\n") + "\n").unwrap();
    (s, r)
}

#[test]
fn evaluate_scores_what_translate_says() {
    let scratch = TempDir::new().unwrap();
    let source = ["The dog sleeps.", "A cat eats.", "We see the sea."];
    let (s, r) = files(scratch.path(), &source, &["Le chien dort.", "Un chat mange.", "Nous voyons la mer."]);
    let out = scratch.path().join("out.fr");
    let (model, s, r) = (folder().to_str().unwrap(), s.to_str().unwrap(), r.to_str().unwrap());
    let output = regard(
        &[
            "evaluate",
            "--model",
            model,
            "--src",
            s,
            "--ref",
            r,
            "--json",
            "--max-length",
            "9",
            "--out",
            out.to_str().unwrap(),
        ],
        b"",
    );
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let written = fs::read_to_string(&out).unwrap();
    assert_eq!(written, translate(&["--no-split"], (source.join("\n") + "\n").as_bytes()).0);
    assert!(value["seconds"].as_f64().unwrap() > 0.0 && value["target_tokens_per_s"].as_f64().unwrap() > 0.0);
    let scored = regard(&["score", "--hyp", out.to_str().unwrap(), "--ref", r, "--json"], b"");
    let scored: serde_json::Value = serde_json::from_slice(&scored.stdout).unwrap();
    for metric in ["bleu", "chrf", "ter"] {
        assert_eq!(value[metric], scored[metric]);
    }
    // The model's target language is French; another one has another tokenizer.
    let chinese =
        ["evaluate", "--model", model, "--src", s, "--ref", r, "--max-length", "9", "--target-lang", "zh"];
    let chinese = regard(&chinese, b"");
    assert!(String::from_utf8(chinese.stdout).unwrap().contains("|tok:zh|"));
    assert!(value["bleu"]["signature"].as_str().unwrap().contains("tok:13a"));
    assert!(
        String::from_utf8(chinese.stderr).unwrap().contains("tokenizer zh, chosen for target language zh")
    );
    fs::write(r, "Le chien dort.\n").unwrap();
    let output = regard(&["evaluate", "--model", model, "--src", s, "--ref", r], b"");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.ends_with("has 1; the numbers must be equal\n") && error.contains("has 3 lines"),
        "{error}"
    );
}

#[test]
fn look_fits_the_terminal_and_writes_pictures() {
    let model = folder().to_str().unwrap();
    let scratch = TempDir::new().unwrap();
    let base = ["look", "--model", model, "--src", "The dog sleeps.", "--tgt", "Le chien dort."];
    let output = regard(&base, b"");
    let text = String::from_utf8(output.stdout).unwrap();
    let title = text.lines().next().unwrap();
    assert!(title.starts_with("Cross-attention, layer ") && title.ends_with(" (the sharpest)"), "{text}");
    assert!(title.contains(" of 2 (the sharpest), head "), "{text}");
    assert_eq!(text.lines().nth(1), Some("The dog sleeps. → Le chien dort."));
    assert!(text.lines().all(|l| l.chars().count() <= 100) && text.contains("▁ch"), "{text}");
    assert!(text.contains("━━") || text.contains("──") || text.contains("┄┄"), "{text}");
    let matrix = String::from_utf8(regard(&[&base[..], &["--draw", "matrix"]].concat(), b"").stdout).unwrap();
    assert!(matrix.starts_with(title) && !matrix.contains("──"), "{matrix}");
    for (name, start) in [("a.html", &b"<!"[..]), ("a.svg", b"<svg"), ("a.png", b"\x89PNG")] {
        let file = scratch.path().join(name);
        let output = regard(&[&base[..], &["--out", file.to_str().unwrap()]].concat(), b"");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(
            fs::read(&file).unwrap().to_ascii_lowercase().starts_with(&start.to_ascii_lowercase()),
            "{name}"
        );
    }
    // A picture shows what the flags choose, and everything without them.
    let titles = |flags: &[&str]| {
        let file = scratch.path().join("chosen.html");
        let output = regard(&[&base[..], &["--out", file.to_str().unwrap()], flags].concat(), b"");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let page = fs::read_to_string(&file).unwrap();
        // Both sentences can be read without the script.
        assert!(page.contains(">The dog sleeps.</p>") && page.contains(">Le chien dort.</p>"), "{page}");
        let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
        let data = &page[start..start + page[start..].find("</script>").unwrap()];
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        let maps = data["sentences"][0]["maps"].as_array().unwrap();
        let has = |kind: &str| maps.iter().any(|map| map["kind"] == kind);
        let heads = |layer: u64, head: &str| {
            maps.iter().any(|map| map["layer"] == layer && map["heads"].get(head).is_some())
        };
        (
            ["cross", "encoder", "decoder"].map(has),
            [(1, "1"), (1, "2"), (2, "1"), (2, "2")].map(|(l, h)| heads(l, h)),
        )
    };
    let (yes, no) = (true, false);
    assert_eq!(titles(&[]), ([yes; 3], [yes; 4]));
    assert_eq!(titles(&["--kind", "encoder"]), ([no, yes, no], [yes; 4]));
    assert_eq!(titles(&["--kind", "cross", "--layer", "2"]), ([yes, no, no], [no, no, yes, yes]));
    assert_eq!(titles(&["--head", "1"]), ([yes; 3], [yes, no, yes, no]));
    for name in ["b.svg", "b.png"] {
        let (one, all) = (scratch.path().join(format!("one-{name}")), scratch.path().join(name));
        let chosen = ["--draw", "matrix", "--kind", "decoder", "--layer", "1", "--head", "2"];
        regard(&[&base[..], &chosen, &["--out", one.to_str().unwrap()]].concat(), b"");
        regard(&[&base[..], &["--draw", "matrix", "--out", all.to_str().unwrap()]].concat(), b"");
        assert!(fs::read(&one).unwrap().len() < fs::read(&all).unwrap().len(), "{name}");
    }
    for (flags, message) in [
        (["--layer", "3"], "--layer 3: the model has layers 1 to 2"),
        (["--head", "0"], "--head 0: the layer has heads 1 to 2"),
        (["--sentence", "2"], "--sentence 2: the text has sentences 1 to 1"),
        (["--out", "a.gif"], "--out a.gif: the name must end in .html, .svg or .png"),
    ] {
        let output = regard(&[&base[..], &flags].concat(), b"");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("regard: {message}\n"));
    }
}

#[test]
fn look_takes_a_text_sentence_by_sentence() {
    let model = folder().to_str().unwrap();
    let base = ["look", "--model", model, "--max-length", "8", "--src", "The dog sleeps. The cat runs."];
    let second = regard(&[&base[..], &["--sentence", "2"]].concat(), b"");
    let text = String::from_utf8(second.stdout).unwrap();
    assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("The cat runs. → ")), "{text}");
    assert_eq!(
        String::from_utf8(second.stderr).unwrap(),
        "regard: sentence 2 of 2; --sentence shows another\n"
    );
    let scratch = TempDir::new().unwrap();
    let file = scratch.path().join("both.html");
    regard(&[&base[..], &["--out", file.to_str().unwrap()]].concat(), b"");
    let page = fs::read_to_string(&file).unwrap();
    assert_eq!(page.matches("\"texts\":").count(), 2);
}

#[test]
fn the_library_translates_from_several_threads_at_once() {
    let translator = Translator::load(&[folder()], Isa::best(), 1).unwrap();
    let options = SearchOptions { max_length: Some(8), ..translator.options() };
    let want = translator.translate(&["The dog sleeps."], &options).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(translator.translate(&["The dog sleeps."], &options).unwrap(), want));
        }
    });
    assert!(translator.translate::<&str>(&[], &options).unwrap().is_empty());
    let ensemble = Translator::load(&[folder(), folder()], Isa::best(), 1).unwrap();
    let both = ensemble.translate(&["The dog sleeps."], &options).unwrap();
    assert_eq!(both[0].best().text, want[0].best().text);
}

#[test]
fn text_on_the_command_line_is_translated() {
    let (wanted, _) = translate(&[], b"The cat sleeps.\nA dog.\n");
    let (found, _) = translate(&["--text", "The cat sleeps.", "A dog."], b"");
    assert_eq!(found, wanted);
    // Short flags are the long ones.
    let model = folder().to_str().unwrap();
    let short = ["translate", "-m", model, "-b", "4", "--max-length", "9", "The cat sleeps.", "A dog."];
    assert_eq!(String::from_utf8(regard(&short, b"").stdout).unwrap(), wanted);
    let output = regard(&["translate", "-m", model, "dog"], b"");
    let message = String::from_utf8(output.stderr).unwrap();
    let wanted = "regard: dog: No such file or directory; if it is text to translate, use --text \"dog\"\n";
    assert_eq!((output.status.code(), message.as_str()), (Some(1), wanted));
}

#[test]
fn records_are_translated_in_place() {
    let (plain, _) = translate(&["--nbest", "2"], b"The cat sleeps.\nA dog.\n");
    let plain: Vec<&str> = plain.lines().collect();
    let input = b"{\"id\": 1, \"text\": \"The cat sleeps.\"}\n\n{\"source\": \"The cat sleeps.\\nA dog.\"}\n";
    let (found, _) = translate(&["--jsonl", "--nbest", "2", "--scores", "--alignment"], input);
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!((lines.len(), lines[1]), (3, ""));
    let first: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!((&first["id"], &first["translation"]), (&1.into(), &plain[0].into()));
    assert_eq!(first["alternatives"], serde_json::json!([plain[1]]));
    assert!(first["score"].is_number() && first["alignment"].is_array());
    let last: serde_json::Value = serde_json::from_str(lines[2]).unwrap();
    assert_eq!(last["translation"], format!("{}\n{}", plain[0], plain[2]));

    // Into a file, the same.
    let files = tempfile::tempdir().unwrap();
    let [records, out] = ["r.jsonl", "o.jsonl"].map(|name| files.path().join(name).display().to_string());
    fs::write(&records, input).unwrap();
    let model = folder().to_str().unwrap();
    let flags = ["--jsonl", "--nbest", "2", "--scores", "--alignment", &records, "-o", &out];
    assert_eq!(translate(&flags, b"").0, "");
    assert_eq!(fs::read_to_string(&out).unwrap(), found);
    assert!(!fs::exists(out.clone() + ".part").unwrap() && !fs::exists(out.clone() + ".part.json").unwrap());
    fs::write(&records, b"{\"text\": \"A dog.\"}\n{\"text\": \"\xff\"}\n").unwrap();
    let output = regard(&[&["translate", "-m", model][..], &flags].concat(), b"");
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message, format!("regard: {records}:2: not UTF-8\n"));
    assert_eq!(fs::read_to_string(&out).unwrap(), found, "what was complete stays");

    let output = regard(&["translate", "-m", model, "--jsonl"], b"{\"text\": \"A dog.\"}\n{\"txt\": \"\"}\n");
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message, "regard: standard input:2: there is no field `text` or `source`\n");
}
