//! The documents: a command that they show exists, and so does each of its flags.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::cli::{listed_commands, run};

/// What precedes a command of ours in a line of a code block.
const CALLS: [&[&str]; 5] = [
    &["regard"],
    &["mpirun", "-n", "4", "regard"],
    &["mpirun", "-n", "8", "regard"],
    &["cargo", "run", "--release", "--"],
    &["cargo", "run", "--release", "-q", "--"],
];

/// The lines of fenced code blocks with their numbers; a backslash at the end joins the next line.
fn code_lines(document: &str) -> Vec<(usize, String)> {
    let (mut lines, mut fenced, mut open): (Vec<(usize, String)>, _, _) = (Vec::new(), false, false);
    for (number, line) in (1..).zip(document.lines()) {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            (fenced, open) = (!fenced, false);
        } else if fenced {
            let (text, continues) = match line.strip_suffix('\\') {
                Some(text) => (text, true),
                None => (line, false),
            };
            match lines.last_mut().filter(|_| open) {
                Some((_, whole)) => whole.push_str(text),
                None => lines.push((number, text.to_owned())),
            }
            open = continues;
        }
    }
    lines
}

/// The words of each command of a shell line: quotes hold words together, comments and redirections
/// end or part them.
fn shell_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let (mut word, mut quote) = (None::<String>, None);
    let end = |word: &mut Option<String>, commands: &mut Vec<Vec<String>>| {
        if let (Some(word), Some(last)) = (word.take(), commands.last_mut()) {
            last.push(word);
        }
    };
    for c in line.chars() {
        match (quote, c) {
            (Some(q), _) if c == q => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            (None, '#') if word.is_none() => break,
            (None, '|' | ';' | '&' | '(' | ')') => {
                end(&mut word, &mut commands);
                commands.push(Vec::new());
            }
            (None, ' ' | '\t') => end(&mut word, &mut commands),
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    end(&mut word, &mut commands);
    commands
}

/// What follows `regard` in a command, if it is one of ours; settings of the environment and a
/// prompt may stand before it.
fn ours(words: &[String]) -> Option<&[String]> {
    let setting = |word: &String| {
        word == "$"
            || word == "time"
            || word.split_once('=').is_some_and(|(name, _)| {
                !name.is_empty()
                    && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
            })
    };
    let words = &words[words.iter().take_while(|word| setting(word)).count()..];
    CALLS.iter().find_map(|call| {
        words.strip_prefix(call.iter().map(|s| s.to_string()).collect::<Vec<_>>().as_slice())
    })
}

/// The help of each command, asked for once.
#[derive(Default)]
struct Helps(BTreeMap<Vec<String>, String>);

impl Helps {
    fn of(&mut self, words: &[String]) -> &str {
        self.0.entry(words.to_vec()).or_insert_with(|| {
            let arguments: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
            run(Path::new("."), &arguments).out
        })
    }
}

/// The flags that a help text explains, their other names included.
fn flags(help: &str) -> BTreeSet<String> {
    let lines =
        help.lines().map(str::trim).filter(|line| line.starts_with('-') || line.contains("[aliases:"));
    let words = lines.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-'));
    words.filter(|word| word.starts_with('-') && word.len() > 1).map(str::to_owned).collect()
}

/// What is wrong in a document's commands, and how many it has.
fn check(name: &str, document: &str, helps: &mut Helps) -> (Vec<String>, usize) {
    let (mut faults, mut count) = (Vec::new(), 0);
    for (line, text) in code_lines(document) {
        'commands: for words in shell_commands(&text) {
            let Some(words) = ours(&words) else { continue };
            count += 1;
            // `regard bench train`: words are commands as long as the help lists them.
            let mut path: Vec<String> = Vec::new();
            for word in words {
                let known = listed_commands(helps.of(&path));
                if known.contains(word) {
                    path.push(word.clone());
                } else if path.is_empty() && !word.starts_with('-') {
                    faults.push(format!("{name}:{line}: `regard {word}` is no command"));
                    continue 'commands;
                } else {
                    break;
                }
            }
            let known = flags(helps.of(&path));
            for word in &words[path.len()..] {
                // A synopsis has brackets, and `…` or `...` where more may follow.
                let flag =
                    word.trim_start_matches('[').split(['=', ']', '|', '…', '.']).next().unwrap_or_default();
                let is_flag = flag.strip_prefix("--").unwrap_or(flag.strip_prefix('-').unwrap_or_default());
                if is_flag.starts_with(|c: char| c.is_ascii_alphabetic()) && !known.contains(flag) {
                    faults.push(format!("{name}:{line}: `regard {}` has no flag {flag}", path.join(" ")));
                }
            }
        }
    }
    (faults, count)
}

#[test]
fn documents_show_commands_that_exist() {
    let mut helps = Helps::default();
    let mut faults = Vec::new();
    for name in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/deployment.md",
        "docs/scaling.md",
        "docs/security.md",
        "docs/benchmarks.md",
        "docs/studies.md",
        "docs/training.md",
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        let document = std::fs::read_to_string(path).unwrap();
        faults.extend(check(name, &document, &mut helps).0);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The test above can fail.
#[test]
fn a_document_with_other_commands_is_found_out() {
    let document = "\
regard nothing outside a block\n\
```sh\n\
$ regard score --hyp out.de --ref a.de b.de \\\n    --metric bleu --jsno   # --none\n\
REGARD_ISA=portable regard bench train --preset tiny --sekonds 3\n\
cat x | cargo run --release -- tokenise --model M && regard tokenize --model '--none' -x > y\n\
regard score [--lowercase] [--metric=bleu,chrf] [--loud]\n\
regard --version\n\
regard score --paired-bs-n 10\n\
cargo run --release --example other --none\n\
```\n\
regard nothing again\n";
    let (faults, count) = check("F.md", document, &mut Helps::default());
    assert_eq!(
        faults,
        [
            "F.md:3: `regard score` has no flag --jsno",
            "F.md:5: `regard bench train` has no flag --sekonds",
            "F.md:6: `regard tokenise` is no command",
            "F.md:6: `regard tokenize` has no flag --none",
            "F.md:6: `regard tokenize` has no flag -x",
            "F.md:7: `regard score` has no flag --loud",
        ]
    );
    assert_eq!(count, 7);
}
