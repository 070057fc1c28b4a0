//! The command itself: exact output, exit statuses, messages, closed pipes.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// What a run of the command left behind.
#[derive(Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = crate::command::regard();
    command.args(arguments).current_dir(folder).env_remove("REGARD_ISA").env_remove("SACREBLEU_SEED");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn finish(command: Command, input: &[u8]) -> Run {
    let output = crate::command::answer(command, input);
    Run {
        code: output.status.code().expect("no signal ended it"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn run_with(folder: &Path, arguments: &[&str], input: &[u8]) -> Run {
    finish(command(folder, arguments), input)
}

/// Runs the command in a folder without input.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Run {
    run_with(folder, arguments, b"")
}

fn ok(out: impl Into<String>) -> Run {
    Run { code: 0, out: out.into(), err: String::new() }
}

fn failure(message: &str) -> Run {
    Run { code: 1, out: String::new(), err: format!("regard: {message}\n") }
}

/// The commands that a help text lists.
pub(crate) fn listed_commands(help: &str) -> Vec<String> {
    let list =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = list.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !["", "help"].contains(name)).map(str::to_owned).collect()
}

/// Every command, as the words that call it: `["bench", "train"]`.
fn all_commands() -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![Vec::<String>::new()];
    while let Some(words) = open.pop() {
        let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        for name in listed_commands(&run(Path::new("."), &arguments).out) {
            open.push(words.iter().cloned().chain([name]).collect());
        }
        found.push(words);
    }
    found
}

// ---- usage
// -------------------------------------------------------------------------------------------------

#[test]
fn every_command_shows_an_example_in_its_help() {
    let commands = all_commands();
    for known in ["score", "tokenize", "completions", "man", "bench train"] {
        assert!(commands.iter().any(|words| words.join(" ") == known), "{known} in {commands:?}");
    }
    for words in commands {
        let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let help = run(Path::new("."), &arguments);
        assert_eq!((help.code, help.err.as_str()), (0, ""), "{words:?}");
        assert!(help.out.contains("Example"), "regard {} --help has no example", words.join(" "));
    }
}

#[test]
fn wrong_usage_is_status_2_and_says_what_is_accepted() {
    let here = Path::new(".");
    for (arguments, message) in [
        (&["bench", "train", "--preset", "nope"][..], "[possible values: tiny, small, base"),
        (&["scor"], "unrecognized subcommand 'scor'"),
        (&["score", "--ref", "r"], "--hyp <FILE>"),
        (&["score", "--hyp", "h", "--ref", "r", "--metric", "rouge"], "bleu, chrf, chrf++, ter"),
        (&["score", "--hyp", "h", "--ref", "r", "--metric", "ter,bleu,ter"], "--metric: ter is given twice"),
        (
            &["score", "--hyp", "h", "--ref", "r", "--metric", "chrf,chrf++", "--chrf-word-order", "2"],
            "--metric: chrf++ is given twice",
        ),
        (&["score", "--hyp", "h", "--ref", "r", "--tokenize", "ja"], "13a, intl, char, zh, none"),
        (&["score", "--hyp", "h", "--ref", "r", "--smooth", "some"], "accepted: none, exp, floor, add-k"),
        (&["score", "--hyp", "h", "--ref", "r", "--sentence-level", "--confidence"], "cannot be used with"),
        (&["score", "--hyp", "-", "--ref", "-"], "only one of the files can be -"),
        (&["score", "--hyp", "h", "--ref", "r", "--width", "16"], "16 is not in 0..=15"),
        (&["tokenize"], "--model <DIR|FILE>"),
        (&["tokenize", "--train", "a"], "--out <FILE>"),
        (&["tokenize", "--out", "t.json"], "--train <FILE>..."),
        (&["tokenize", "--model", "m", "--out", "t.json"], "cannot be used with"),
        (&["tokenize", "--model", "m", "--unigram"], "cannot be used with"),
        (&["tokenize", "--model", "m", "--vocabulary", "900"], "cannot be used with"),
        (&["tokenize", "--model", "m", "--top", "3"], "--count"),
        (&["tokenize", "--model", "m", "--train", "a", "--out", "t.json"], "cannot be used with"),
        (&["completions", "tcsh"], "bash, elvish, fish, powershell, zsh"),
        (&["bench", "translate", "--model", "m", "--vocabulary", "9"], "cannot be used with"),
        (
            &["bench", "train", "--preset", "tiny", "--tokens", "0"],
            "a whole number from 1 to 100000 is needed",
        ),
        (&["man", "scor"], "scor: no such command of regard; accepted: "),
        (&["man", "bench", "test"], "test: no such command of bench; accepted: train"),
    ] {
        let result = run(here, arguments);
        assert_eq!((result.code, result.out.as_str()), (2, ""), "{arguments:?}: {}", result.err);
        assert!(result.err.contains(message), "{arguments:?}: {}", result.err);
    }
    let nothing = run(here, &[]);
    assert_eq!((nothing.code, nothing.out.as_str()), (2, ""));
    assert!(nothing.err.contains("Usage: regard <COMMAND>"));
}

#[test]
fn the_workload_of_a_benchmark_can_be_chosen() {
    let sizes = ["--sentences", "3", "--tokens", "4", "--vocabulary", "30", "--json"];
    for kind in [&["translate", "--beam", "2", "--batch", "2"][..], &["train", "--seconds", "0"]] {
        let result = run(Path::new("."), &[&["bench"], kind, &["--preset", "tiny"], &sizes].concat());
        assert_eq!(result.code, 0, "{kind:?}: {}", result.err);
        let report: serde_json::Value = serde_json::from_str(&result.out).unwrap();
        assert!(report["target_tokens_per_s"].as_f64().unwrap() > 0.0, "{kind:?}: {report}");
        assert_eq!([&report["sentences"], &report["tokens"], &report["vocabulary"]], [3, 4, 30], "{kind:?}");
    }
}

#[test]
fn a_batch_of_a_benchmark_has_a_limit() {
    let sizes = ["bench", "train", "--preset", "tiny", "--sentences", "100000", "--tokens", "100000"];
    let result = run(Path::new("."), &sizes);
    assert_eq!(result.code, 1);
    assert!(result.err.contains("a batch has at most 10000000 tokens"), "{}", result.err);
}

#[test]
fn a_wrong_instruction_set_is_one_message() {
    let missing = if cfg!(target_arch = "x86_64") { "neon" } else { "avx2" };
    for (name, message) in [
        ("sse9", "REGARD_ISA=sse9: unknown instruction set; this machine has: portable".to_owned()),
        (missing, format!("REGARD_ISA={missing}: this CPU does not have it; this machine has: portable")),
    ] {
        let mut bench = command(Path::new("."), &["bench", "train", "--preset", "tiny", "--seconds", "0"]);
        bench.env("REGARD_ISA", name);
        let result = finish(bench, b"");
        assert_eq!((result.code, result.out.as_str()), (1, ""));
        assert!(result.err.starts_with(&format!("regard: {message}")), "{}", result.err);
        assert_eq!(result.err.lines().count(), 1, "{}", result.err);
    }
}

// ---- score
// -------------------------------------------------------------------------------------------------

/// Four sentences, two references and a worse system; the numbers below are what sacreBLEU 2.6.0's
/// command prints.
fn texts() -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, text) in [
        ("hyp", "The cat sat on the red mat.\nHello, World!\n\nIt costs 3.50 euros today\n"),
        ("ref", "The cat sat on the mat.\nHello world!\n\nToday it costs 3.50 euros.\n"),
        ("ref2", "A cat was sitting on the mat.\nHello, world.\nx\nIt costs 3.50 euros.\n"),
        ("base", "A cat sits on a mat\nhi world\n\nIt is costing euros\n"),
        ("short", "The cat sat on the mat.\nHello world!\n"),
        ("one", "x"),
        ("empty", ""),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    fs::write(folder.path().join("latin1"), b"The cat\nna\xefve\n").unwrap();
    let gz = fs::File::create(folder.path().join("ref.gz")).unwrap();
    let mut gz = flate2::write::GzEncoder::new(gz, flate2::Compression::default());
    gz.write_all(&fs::read(folder.path().join("ref")).unwrap()).unwrap();
    gz.finish().unwrap();
    folder
}

const BLEU: &str = "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = ";
const CHRF: &str = "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0 = ";
const TER: &str = "TER|nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0 = ";
const PRECISIONS: &str = "70.6/50.0/36.4/25.0 (BP = 1.000 ratio = 1.062 hyp_len = 17 ref_len = 16)";

#[test]
fn score_prints_what_sacrebleu_prints() {
    let folder = texts();
    let score =
        |rest: &[&str]| run(folder.path(), &[&["score", "--hyp", "hyp", "--ref", "ref"][..], rest].concat());
    let all = format!("        {BLEU}42.32 {PRECISIONS}\n      {CHRF}71.71\n{TER}30.77\n");
    assert_eq!(score(&[]), ok(&all));
    let coarse = format!("        {BLEU}42.3 {PRECISIONS}\n      {CHRF}71.7\n{TER}30.8\n");
    assert_eq!(score(&["--width", "1"]), ok(coarse));
    assert_eq!(score(&["--metric", "ter,bleu"]).out.lines().count(), 2);
    for (rest, line) in [
        (
            &["--metric", "bleu", "--lowercase"][..],
            "BLEU|nrefs:1|case:lc|eff:no|tok:13a|smooth:exp|version:2.6.0 = 55.76 88.2/64.3/45.5/37.5 (BP = 1.000 ratio = 1.062 hyp_len = 17 ref_len = 16)",
        ),
        (
            &["--metric", "bleu", "--tokenize", "char"],
            "BLEU|nrefs:1|case:mixed|eff:no|tok:char|smooth:exp|version:2.6.0 = 75.72 87.0/80.4/72.9/64.4 (BP = 1.000 ratio = 1.059 hyp_len = 54 ref_len = 51)",
        ),
        (
            &["--metric", "bleu", "--tokenize", "none"],
            "BLEU|nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.6.0 = 42.45 57.1/45.5/37.5/33.3 (BP = 1.000 ratio = 1.077 hyp_len = 14 ref_len = 13)",
        ),
        (
            &["--metric", "bleu", "--smooth", "add-k"],
            "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:add-k[1.00]|version:2.6.0 = 47.82 70.6/53.3/41.7/33.3 (BP = 1.000 ratio = 1.062 hyp_len = 17 ref_len = 16)",
        ),
        (
            &["--metric", "chrf", "--chrf-lowercase"],
            "chrF2|nrefs:1|case:lc|eff:yes|nc:6|nw:0|space:no|version:2.6.0 = 78.15",
        ),
        (
            &["--metric", "chrf++"],
            "chrF2++|nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:2.6.0 = 69.67",
        ),
        (
            &["--metric", "chrf", "--chrf-word-order", "2"],
            "chrF2++|nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:2.6.0 = 69.67",
        ),
        (
            &["--metric", "ter", "--ter-case-sensitive"],
            "TER|nrefs:1|case:mixed|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0 = 53.85",
        ),
        (
            &["ref2", "--metric", "chrf"],
            "chrF2|nrefs:2|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0 = 77.59",
        ),
        (
            &["--ref", "ref2", "--metric", "ter"],
            "TER|nrefs:2|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0 = 29.63",
        ),
    ] {
        assert_eq!(score(rest), ok(format!("{line}\n")), "{rest:?}");
    }
    let sentences = "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0 = ";
    let expected: String = ["80.61", "51.58", "0.00", "72.52"].map(|n| format!("{sentences}{n}\n")).concat();
    assert_eq!(score(&["--metric", "chrf", "--sentence-level"]), ok(expected));
    assert!(
        score(&["--metric", "bleu", "--sentence-level"])
            .out
            .lines()
            .nth(1)
            .unwrap()
            .contains("eff:yes|tok:13a|smooth:exp|version:2.6.0 = 19.00 50.0/16.7/12.5/12.5")
    );
    // Standard input and compressed files are files like any other.
    let hyp = fs::read(folder.path().join("hyp")).unwrap();
    assert_eq!(run_with(folder.path(), &["score", "--hyp", "-", "--ref", "ref.gz"], &hyp), ok(&all));
}

#[test]
fn score_as_json() {
    let folder = texts();
    let score = |rest: &[&str]| {
        run(folder.path(), &[&["score", "--hyp", "hyp", "--ref", "ref", "--json"][..], rest].concat())
    };
    let bleu = r#"{"score":42.3,"signature":"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"}"#;
    let chrf = r#"{"score":71.7,"signature":"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0"}"#;
    let ter =
        r#"{"score":30.8,"signature":"nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0"}"#;
    let expected = format!("{{\"bleu\":{bleu},\"chrf\":{chrf},\"ter\":{ter}}}\n");
    assert_eq!(score(&["--width", "1"]), ok(expected));
    assert_eq!(score(&["--metric", "ter", "--width", "1"]), ok(format!("{{\"ter\":{ter}}}\n")));

    let exact: Value = serde_json::from_str(&score(&[]).out).unwrap();
    for (key, expected) in
        [("bleu", 42.323094193118685), ("chrf", 71.71239123632988), ("ter", 30.76923076923077)]
    {
        let score = exact[key]["score"].as_f64().unwrap();
        assert!((score - expected).abs() < 1e-9, "{key}: {score}");
        assert_eq!(exact[key].as_object().unwrap().len(), 2, "{key}");
    }
    let lines = score(&["--sentence-level", "--metric", "ter", "--width", "2"]).out;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let scores: Vec<f64> = lines.iter().map(|line| line["ter"]["score"].as_f64().unwrap()).collect();
    assert_eq!(scores, [16.67, 50.0, 0.0, 40.0]);
}

#[test]
fn score_resamples_as_sacrebleu_does() {
    let folder = texts();
    let score = |rest: &[&str]| {
        let result =
            run(folder.path(), &[&["score", "--hyp", "hyp", "--ref", "ref", "--json"][..], rest].concat());
        assert_eq!((result.code, result.err.as_str()), (0, ""));
        serde_json::from_str::<Value>(&result.out).unwrap()
    };
    // Of `sacrebleu ref -i base hyp --paired-bs`, which computes in 32 bits.
    let paired = score(&["--paired", "base"]);
    for (key, who, score, mean, half) in [
        ("bleu", "baseline", 5.309137, 5.355804, 4.844232),
        ("chrf", "baseline", 23.769939, 24.060113, 3.790649),
        ("ter", "baseline", 76.923077, 78.809317, 16.666664),
        ("bleu", "system", 42.323094, 38.179382, 25.563512),
        ("chrf", "system", 71.712391, 70.187874, 14.511444),
        ("ter", "system", 30.769231, 32.616134, 16.666666),
    ] {
        let found = &paired[key][who];
        for (name, expected) in [("score", score), ("confidence_mean", mean), ("confidence_var", half)] {
            let value = found[name].as_f64().unwrap();
            assert!((value - expected).abs() < 1e-4, "{key} {who} {name}: {value}, not {expected}");
        }
        assert_eq!(paired[key]["p_value"], json!(1.0 / 1001.0), "{key}");
    }
    let signature = "nrefs:1|bs:1000|seed:12345|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0";
    assert_eq!(paired["ter"]["system"]["signature"], signature);

    // The interval alone is drawn alike, and another seed draws another.
    let alone = score(&["--metric", "ter", "--confidence"]);
    assert_eq!(alone["ter"], paired["ter"]["system"]);
    let other = score(&["--metric", "ter", "--confidence", "--seed", "7", "--samples", "100"]);
    assert_ne!(alone["ter"]["confidence_mean"], other["ter"]["confidence_mean"]);
    assert!(other["ter"]["signature"].as_str().unwrap().starts_with("nrefs:1|bs:100|seed:7|"));

    let text =
        run(folder.path(), &["score", "--hyp", "hyp", "--ref", "ref", "--metric", "ter", "--paired", "base"]);
    let expected = format!(
        "TER|{signature}\n  baseline 76.92 (μ = 78.81 ± 16.67)\n  system   30.77 (μ = 32.62 ± 16.67)  p = 0.0010 *\n"
    );
    assert_eq!(text, ok(expected));
}

#[test]
fn score_refuses_files_that_cannot_be_scored() {
    let folder = texts();
    for (arguments, message) in [
        (
            &["--hyp", "hyp", "--ref", "ref", "short"][..],
            "short: 2 lines, but hyp has 4; line i of every file must belong to the same sentence",
        ),
        (
            &["--hyp", "hyp", "--ref", "one"],
            "one: 1 line, but hyp has 4; line i of every file must belong to the same sentence",
        ),
        (
            &["--hyp", "hyp", "--ref", "ref", "--paired", "empty"],
            "empty: 0 lines, but hyp has 4; line i of every file must belong to the same sentence",
        ),
        (&["--hyp", "empty", "--ref", "empty"], "empty: 0 lines; there is no sentence to score"),
        (&["--hyp", "-", "--ref", "ref"], "standard input: 0 lines; there is no sentence to score"),
        (&["--hyp", "hyp", "--ref", "none"], missing("none").as_str()),
        (&["--hyp", "latin1", "--ref", "ref"], "latin1:2: not UTF-8 (byte 3 of the line)"),
        (&["--hyp", ".", "--ref", "ref"], ".: is a folder, not a text file"),
        (
            &["--hyp", "hyp", "--ref", "ref", "--confidence", "--samples", "1"],
            "bootstrap samples: 1 drawn corpora make no interval; at least 2 are needed",
        ),
        (
            &["--hyp", "hyp", "--ref", "ref", "--smooth", "floor:-1"],
            "smoothing: -1 is not a smoothing value; at least 0 is needed",
        ),
    ] {
        assert_eq!(run(folder.path(), &[&["score"], arguments].concat()), failure(message));
    }
}

// ---- tokenize
// -------------------------------------------------------------------------------------------------

/// A folder with `text`, and `tokenizer.json` trained on it by the command.
fn trained(rest: &[&str]) -> TempDir {
    let folder = TempDir::new().unwrap();
    let mut text = b"the dog sees the cat\n\nthe cat sees the dog\n".repeat(20);
    text.extend(b"\xff is not UTF-8\n");
    fs::write(folder.path().join("text"), text).unwrap();
    let arguments = ["tokenize", "--train", "text", "--vocabulary", "320", "--out", "tokenizer.json"];
    let result = run(folder.path(), &[&arguments, rest].concat());
    assert_eq!((result.code, result.out.as_str()), (0, ""), "{}", result.err);
    assert!(result.err.starts_with("tokenizer.json: "), "{}", result.err);
    assert!(
        result.err.ends_with(" trained on 61 lines; lines skipped that are not UTF-8: 1\n"),
        "{}",
        result.err
    );
    folder
}

#[test]
fn tokenize_trains_shows_and_decodes() {
    let folder = trained(&[]);
    let tokenize = |rest: &[&str], input: &str| {
        run_with(
            folder.path(),
            &[&["tokenize", "--model", "tokenizer.json"], rest].concat(),
            input.as_bytes(),
        )
    };
    // A line for a line, the last without LF, CR and empty lines included.
    let input = "the dog sees\n\nthe  cät\r\nthe dog";
    let pieces = "▁the ▁dog ▁sees\n\n▁the ▁ c <0xC3> <0xA4> t\n▁the ▁dog\n";
    assert_eq!(tokenize(&[], input), ok(pieces));
    assert_eq!(tokenize(&["--threads", "3"], input), ok(pieces));
    assert_eq!(tokenize(&["--decode"], pieces), ok("the dog sees\n\nthe cät\nthe dog\n"));
    let ids = tokenize(&["--ids"], input);
    assert_eq!(ids.out.lines().count(), 4);
    assert_eq!(ids.out.lines().nth(1), Some(""));
    assert!(ids.out.lines().nth(2).unwrap().contains(" 197 166 "), "{}", ids.out);
    assert_eq!(tokenize(&["--ids", "--decode"], &ids.out), ok("the dog sees\n\nthe cät\nthe dog\n"));
    assert_eq!(tokenize(&["--eos"], "dog\n"), ok("▁dog </s>\n"));
    assert!(tokenize(&["--eos", "--ids"], "dog\n").out.ends_with(" 0\n"));

    let id: u32 = tokenize(&["--ids"], "dog\n").out.trim().parse().unwrap();
    let lines = tokenize(&["--json"], "dog\n\n");
    assert_eq!(
        lines,
        ok(format!("{{\"ids\":[{id}],\"pieces\":[\"▁dog\"]}}\n{{\"ids\":[],\"pieces\":[]}}\n"))
    );
    assert_eq!(tokenize(&["--decode", "--json"], "▁dog"), ok("{\"text\":\"dog\"}\n"));
    // Bytes that spell a line feed do not make a second line.
    assert_eq!(tokenize(&["--decode"], "▁the <0x0A> ▁dog"), ok("the  dog\n"));

    // A model's folder does as well as the file, and so do files in place of standard input.
    fs::write(folder.path().join("one"), "the dog\n").unwrap();
    assert_eq!(run(folder.path(), &["tokenize", "--model", ".", "one", "one"]), ok("▁the ▁dog\n▁the ▁dog\n"));
}

#[test]
fn tokenize_trains_unigram_models_too() {
    let folder = trained(&["--unigram"]);
    let file: Value =
        serde_json::from_slice(&fs::read(folder.path().join("tokenizer.json")).unwrap()).unwrap();
    assert_eq!(file["model"]["type"], "Unigram");
    let tokenize = ["tokenize", "--model", "tokenizer.json"];
    let pieces = run_with(folder.path(), &tokenize, "the dog sees 猫\n".as_bytes());
    let text = run_with(folder.path(), &[&tokenize[..], &["--decode"]].concat(), pieces.out.as_bytes());
    assert_eq!(text, ok("the dog sees 猫\n"));
}

#[test]
fn tokenize_counts() {
    let folder = trained(&[]);
    let count = |rest: &[&str], input: &str| {
        let arguments = ["tokenize", "--model", "tokenizer.json", "--count"];
        run_with(folder.path(), &[&arguments, rest].concat(), input.as_bytes())
    };
    let size: usize = {
        let found: Value = serde_json::from_str(&count(&["--json"], "").out).unwrap();
        assert_eq!((&found["lines"], &found["tokens_per_line"]), (&json!(0), &json!(0.0)));
        found["vocabulary"].as_u64().unwrap() as usize
    };
    let input = "the dog sees the cat\n\nthe ä\n";
    let expected = format!(
        "lines                     3\n\
         tokens                    9\n\
         tokens per line        3.00  longest 5\n\
         byte fallback             2  22.22 %\n\
         unknown                   0  0.00 %\n\
         pieces used               7  of {size}\n\
         \n     count  share %  piece\n         \
         3    33.33  ▁the\n         \
         1    11.11  <0xA4>\n"
    );
    let table = count(&["--top", "2"], input);
    // `ä` is a space and two bytes.
    let found: Value = serde_json::from_str(&count(&["--json", "--top", "1"], input).out).unwrap();
    assert_eq!(
        found,
        json!({"lines": 3, "tokens": 9, "tokens_per_line": 3.0, "longest": 5, "byte_tokens": 2,
               "byte_share": 2.0 / 9.0, "unknown": 0, "vocabulary": size, "vocabulary_used": 7,
               "pieces": [{"piece": "▁the", "count": 3}]})
    );
    assert_eq!(table, ok(expected));
}

/// The message about a file that is not there, in the words of the operating system.
fn missing(file: &str) -> String {
    format!("{file}: {}", std::io::Error::from_raw_os_error(2))
}

#[test]
fn tokenize_refuses_what_it_cannot_read() {
    let folder = trained(&[]);
    fs::write(folder.path().join("broken.json"), "{}").unwrap();
    fs::create_dir(folder.path().join("model")).unwrap();
    let size = {
        let file = fs::read_to_string(folder.path().join("tokenizer.json")).unwrap();
        serde_json::from_str::<Value>(&file).unwrap()["model"]["vocab"].as_object().unwrap().len()
    };
    let last = size - 1;
    let refused = |arguments: &[&str], input: &[u8], message: &str| {
        let result = run_with(folder.path(), &[&["tokenize"], arguments].concat(), input);
        assert_eq!(result.code, 1, "{arguments:?}");
        assert!(result.err.starts_with(&format!("regard: {message}")), "{arguments:?}: {}", result.err);
        assert_eq!(result.err.lines().count(), 1, "{}", result.err);
    };
    let file = ["--model", "tokenizer.json"];
    let with = |rest: &[&'static str]| [&file[..], rest].concat();
    refused(&file, b"a dog\nna\xefve\n", "standard input:2: not UTF-8 (byte 3 of the line)");
    refused(&with(&["none"]), b"", &missing("none"));
    refused(&with(&["text"]), b"", "text:61: not UTF-8 (byte 1 of the line)");
    refused(&["--model", "none"], b"", &missing("none"));
    let inside = Path::new("model").join("tokenizer.json").display().to_string();
    refused(&["--model", "model"], b"", &missing(&inside));
    refused(&["--model", "broken.json"], b"", "broken.json: not a tokenizer.json that can be used");
    refused(&with(&["--decode"]), "▁the\n▁zebra".as_bytes(), "standard input:2: \"▁zebra\" is not a piece");
    refused(&with(&["--decode", "--ids"]), b"1 x", "standard input:1: \"x\" is not an id; accepted: 0 to ");
    let outside = format!("standard input:1: \"{size}\" is not an id; accepted: 0 to {last}");
    refused(&with(&["--decode", "--ids"]), size.to_string().as_bytes(), &outside);
    let train = |rest: &[&'static str]| [&["--train"][..], rest].concat();
    refused(&train(&["text", "--vocabulary", "9", "--out", "t"]), b"", "--vocabulary: 9 is not between 300");
    fs::write(folder.path().join("empty"), "").unwrap();
    refused(&train(&["empty", "--out", "t"]), b"", "--train: there is no text to train on");
    let no_folder = fs::write(folder.path().join("no/t.json"), "").unwrap_err();
    refused(&train(&["text", "--out", "no/t.json"]), b"", &format!("no/t.json: {no_folder}"));
}

// ---- pipes
// -------------------------------------------------------------------------------------------------

/// More output than a pipe holds, and a reader that leaves after the first line.
#[test]
fn a_closed_pipe_ends_quietly() {
    let folder = trained(&[]);
    fs::write(folder.path().join("long"), "the dog sees the cat\n".repeat(50_000)).unwrap();
    fs::write(folder.path().join("x"), "the dog sees the cat\n".repeat(5_000)).unwrap();
    for arguments in [
        &["tokenize", "--model", "tokenizer.json", "long"][..],
        &["tokenize", "--model", "tokenizer.json", "--json", "long"],
        &["score", "--hyp", "x", "--ref", "x", "--sentence-level", "--metric", "bleu"],
    ] {
        let mut child = command(folder.path(), arguments).spawn().unwrap();
        let mut first = [0; 4];
        let mut reader = child.stdout.take().unwrap();
        reader.read_exact(&mut first).unwrap();
        drop(reader);
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    }
}

/// A reader that has gone before the first byte: every command that prints ends quietly, as `head`
/// expects.
#[test]
fn every_command_survives_a_reader_that_has_gone() {
    let folder = texts();
    let model = crate::translate::folder().to_str().unwrap();
    for arguments in [
        &["info", "--model", model][..],
        &["info", "--model", model, "--json"],
        &["look", "--model", model, "--src", "The dog.", "--tgt", "Le chien."],
        &["translate", "--model", model, "--max-length", "5", "hyp"],
        &["translate", "--model", model, "--score-target", "ref", "hyp"],
        &["evaluate", "--model", model, "--max-length", "5", "--src", "hyp", "--ref", "ref"],
        &["score", "--hyp", "hyp", "--ref", "ref"],
        &["score", "--hyp", "hyp", "--ref", "ref", "--json"],
        &["tokenize", "--model", model, "hyp"],
        &["tokenize", "--model", model, "--count", "hyp"],
        &["bench", "train", "--preset", "tiny", "--seconds", "0"],
        &["study"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
        &["translate", "--help"],
        &["--version"],
        &["quickstart", "--out", "q", "--pairs", "240", "--steps", "3"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut closed = command(folder.path(), arguments);
        closed.stdout(writer);
        let result = finish(closed, b"");
        assert!(result.code == 0 && !result.err.contains("panicked"), "{arguments:?}: {}", result.err);
    }
}

#[test]
fn the_target_language_chooses_the_tokenizer_of_bleu() {
    let folder = TempDir::new().unwrap();
    for (name, text) in [("zh", "我喜欢猫和狗。\n今天天气很好。\n"), ("ja", "犬が走る。\n猫は寝ている。\n")]
    {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let score = |file: &str, rest: &[&str]| {
        let arguments = ["score", "--hyp", file, "--ref", file, "--metric", "bleu"];
        run(folder.path(), &[&arguments[..], rest].concat())
    };
    for (file, code, name) in [("zh", "zh", "zh"), ("zh", "zho_Hans", "zh"), ("ja", "ja", "char")] {
        let result = score(file, &["--target-lang", code]);
        assert!(
            result.out.contains(&format!("|tok:{name}|")) && result.out.contains(" = 100.00 "),
            "{result:?}"
        );
        let note = format!("regard: BLEU tokenizer {name}, chosen for target language {code}\n");
        assert_eq!(result.err, note);
    }
    // What is given wins, and a language with spaces has the default.
    let explicit = score("zh", &["--target-lang", "zh", "--tokenize", "char"]);
    assert!(explicit.out.contains("|tok:char|") && explicit.err.is_empty(), "{explicit:?}");
    let german = score("zh", &["--target-lang", "de"]);
    assert!(german.out.contains("|tok:13a|") && german.err.is_empty(), "{german:?}");
    let json = score("ja", &["--target-lang", "ja", "--json"]);
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert!(json["bleu"]["signature"].as_str().unwrap().contains("tok:char"), "{json}");
    // Without a language the number is sacreBLEU's, and a note says what is missing.
    let plain = score("zh", &[]);
    assert!(plain.out.contains("|tok:13a|") && plain.err.contains("set --target-lang"), "{plain:?}");
}

/// Someone who types a line gets its answer before the next.
#[test]
fn tokenize_answers_line_by_line() {
    let folder = trained(&[]);
    let mut child = command(folder.path(), &["tokenize", "--model", "tokenizer.json"]).spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    for _ in 0..3 {
        stdin.write_all(b"the dog\n").unwrap();
        let mut answer = [0; "▁the ▁dog\n".len()];
        stdout.read_exact(&mut answer).unwrap();
        assert_eq!(str::from_utf8(&answer), Ok("▁the ▁dog\n"));
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_a_failure() {
    let folder = texts();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut score = command(folder.path(), &["score", "--hyp", "hyp", "--ref", "ref"]);
    score.stdout(full);
    assert_eq!(finish(score, b""), failure("standard output: No space left on device (os error 28)"));
}

// ---- completions and manual
// -----------------------------------------------------------------------------------------

#[test]
fn completions_know_every_command() {
    let commands = listed_commands(&run(Path::new("."), &["--help"]).out);
    assert!(commands.len() >= 5);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(Path::new("."), &["completions", shell]);
        assert_eq!((script.code, script.err.as_str()), (0, ""));
        for name in &commands {
            assert!(script.out.contains(name.as_str()), "{shell}: {name}");
        }
        assert!(script.out.contains("chrf-word-order"), "{shell}");
    }
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let folder = TempDir::new().unwrap();
    assert_eq!(run(folder.path(), &["man", "--out", "share/man1"]), ok(""));
    let mut pages: Vec<String> = fs::read_dir(folder.path().join("share/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let mut expected: Vec<String> = all_commands()
        .iter()
        .map(|words| {
            format!(
                "{}.1",
                ["regard"].into_iter().chain(words.iter().map(String::as_str)).collect::<Vec<_>>().join("-")
            )
        })
        .collect();
    expected.sort();
    assert_eq!(pages, expected);

    let page = run(folder.path(), &["man", "score"]);
    assert_eq!(page.out, fs::read_to_string(folder.path().join("share/man1/regard-score.1")).unwrap());
    assert!(page.out.contains(".SH EXAMPLES\n.nf\n\\&  regard score \\-\\-hyp output.de"), "{}", page.out);
    assert!(page.out.contains("\\-\\-chrf\\-word\\-order"));
    assert!(run(folder.path(), &["man"]).out.contains("regard\\-score(1)"));
    fs::write(folder.path().join("file"), "").unwrap();
    let refused = run(folder.path(), &["man", "--out", "file"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.starts_with("regard: file: "), "{}", refused.err);
}

#[test]
fn the_help_begins_with_what_is_used_first() {
    let help = run(Path::new("."), &["--help"]).out;
    let names = listed_commands(&help);
    assert_eq!(names[..5], ["quickstart", "train", "translate", "models", "serve"].map(str::to_owned));
    let examples = help.split("Examples:\n").nth(1).unwrap();
    assert!(examples.starts_with("  regard translate --model model \"A dog runs.\"\n"), "{examples}");
}
