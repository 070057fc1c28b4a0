//! The documents: a command that they show exists, and so does each of its flags; links lead
//! somewhere; what the guide shows runs; both READMEs show the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::cli::{listed_commands, run};

/// What precedes a command of ours in a line of a code block.
const CALLS: [&[&str]; 5] = [
    &["regard"],
    &["mpirun", "-n", "4", "regard"],
    &["mpirun", "-n", "8", "regard"],
    &["cargo", "run", "--release", "--"],
    &["cargo", "run", "--release", "-q", "--"],
];

/// The lines of code blocks with their numbers, fenced ones and commands that are indented by four
/// spaces; a backslash at the end joins the next line.
fn code_lines(document: &str) -> Vec<(usize, String)> {
    let (mut lines, mut fenced, mut open): (Vec<(usize, String)>, _, _) = (Vec::new(), false, false);
    for (number, line) in (1..).zip(document.lines()) {
        let indented = line.starts_with("    ") && (open || line.trim_start().starts_with("regard "));
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            (fenced, open) = (!fenced, false);
        } else if fenced || indented {
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

/// What stands between backquotes in the text of a document, with the numbers of the lines. A span
/// ends with its paragraph.
fn code_spans(document: &str) -> Vec<(usize, String)> {
    let (mut spans, mut fenced, mut span) = (Vec::new(), false, None::<(usize, String)>);
    for (number, line) in (1..).zip(document.lines()) {
        let fence = line.trim().starts_with("```");
        fenced ^= fence;
        if fenced || fence || line.trim().is_empty() {
            span = None;
            continue;
        }
        if let Some((_, text)) = &mut span {
            text.push(' ');
        }
        for c in line.trim().chars() {
            match (&mut span, c) {
                (None, '`') => span = Some((number, String::new())),
                (Some(_), '`') => spans.extend(span.take()),
                (Some((_, text)), _) => text.push(c),
                (None, _) => {}
            }
        }
    }
    spans
}

/// Every document of the repository: its name from the root, and its text.
fn documents() -> Vec<(String, String)> {
    fn add(root: &Path, folder: &Path, found: &mut Vec<(String, String)>) {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            if path.extension().is_some_and(|end| end == "md") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
                found.push((name, fs::read_to_string(&path).unwrap()));
            } else if path.is_dir() && folder != root {
                add(root, &path, found);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    add(root, root, &mut found);
    add(root, &root.join("docs"), &mut found);
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let path = entry.unwrap().path().join("README.md");
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
        found.push((name, fs::read_to_string(&path).unwrap()));
    }
    assert!(found.len() > 20, "{} documents", found.len());
    found
}

fn document(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
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

/// The settings that a help text lists by section.
fn settings(help: &str) -> BTreeSet<String> {
    let list = help.lines().skip_while(|line| !line.starts_with("Settings for --set")).skip(1);
    let words = list.take_while(|line| line.starts_with("  ")).flat_map(str::split_whitespace);
    words.filter(|word| !word.starts_with('[')).map(str::to_owned).collect()
}

/// What is wrong in a document's commands, and how many it has.
fn check(name: &str, document: &str, helps: &mut Helps) -> (Vec<String>, usize) {
    let (mut faults, mut count) = (Vec::new(), 0);
    let train = ["train".to_owned()];
    let spans = code_spans(document).into_iter().filter(|(_, text)| text.starts_with("regard "));
    for (line, text) in code_lines(document).into_iter().chain(spans) {
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
            // The settings of `distill` are those of `train`.
            let trains = path == ["distill"];
            let settings = settings(helps.of(if trains { &train } else { &path }));
            let known = flags(helps.of(&path));
            for pair in words.windows(2).filter(|pair| pair[0] == "--set") {
                let setting = pair[1].split('=').next().and_then(|key| key.split('.').next_back());
                if !setting.is_some_and(|setting| settings.contains(setting)) {
                    faults.push(format!("{name}:{line}: `--set {}` is no setting", pair[1]));
                }
            }
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
    let (mut faults, mut all) = (Vec::new(), 0);
    for (name, text) in documents() {
        let (found, count) = check(&name, &text, &mut helps);
        faults.extend(found);
        all += count;
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(all > 150, "{all} commands");
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
regard nothing again\n\
a command in a sentence: `regard scor --hyp a`, and `regard score\n--loud` over two lines\n\n    regard tokenize --nope\n    regard train --set model.dropout=0 --set depth=3\n";
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
            "F.md:16: `regard tokenize` has no flag --nope",
            "F.md:17: `--set depth=3` is no setting",
            "F.md:13: `regard scor` is no command",
            "F.md:13: `regard score` has no flag --loud",
        ]
    );
    assert_eq!(count, 11);
}

/// What a heading is called in an address, as GitHub does it.
fn anchor(heading: &str) -> String {
    let mut name = String::new();
    for c in heading.trim().to_lowercase().chars() {
        match c {
            ' ' => name.push('-'),
            '-' | '_' => name.push(c),
            _ if c.is_alphanumeric() => name.push(c),
            _ => {}
        }
    }
    name
}

/// The anchors of a document's headings.
fn anchors(document: &str) -> BTreeSet<String> {
    let (mut found, mut fenced) = (BTreeSet::new(), false);
    for line in document.lines() {
        fenced ^= line.trim().starts_with("```");
        let heading = line.trim_start_matches('#');
        if !fenced && heading.len() < line.len() && heading.starts_with(' ') {
            // The second heading of a name is `name-1`.
            let (name, mut number) = (anchor(heading), 0);
            while !found.insert(if number == 0 { name.clone() } else { format!("{name}-{number}") }) {
                number += 1;
            }
        }
    }
    found
}

/// Where the links and pictures of a document lead, with the numbers of the lines.
fn links(document: &str) -> Vec<(usize, String)> {
    let (mut found, mut fenced) = (Vec::new(), false);
    for (number, line) in (1..).zip(document.lines()) {
        fenced ^= line.trim().starts_with("```");
        if fenced {
            continue;
        }
        let mut text = String::new();
        // Code is no link.
        for (n, part) in line.split('`').enumerate() {
            text.push_str(if n % 2 == 0 { part } else { "code" });
        }
        for (start, end) in [("](", ')'), ("src=\"", '"'), ("srcset=\"", '"'), ("href=\"", '"')] {
            let targets = text.split(start).skip(1).filter_map(|rest| rest.split(end).next());
            found.extend(targets.map(|target| (number, target.to_owned())));
        }
    }
    found
}

/// Links of a document that lead nowhere in this repository, and how many it has.
fn broken_links(root: &Path, name: &str, document: &str) -> (Vec<String>, usize) {
    let (mut faults, mut count) = (Vec::new(), 0);
    for (line, target) in links(document) {
        if target.starts_with("http://") || target.starts_with("https://") || target.starts_with("mailto:") {
            continue;
        }
        count += 1;
        let (file, fragment) = target.split_once('#').unwrap_or((&target, ""));
        let folder = Path::new(name).parent().unwrap();
        let path = if file.is_empty() { root.join(name) } else { root.join(folder).join(file) };
        if !path.exists() {
            faults.push(format!("{name}:{line}: {target} is not there"));
        } else if !fragment.is_empty() {
            let other = if file.is_empty() { document.to_owned() } else { fs::read_to_string(path).unwrap() };
            if !anchors(&other).contains(fragment) {
                faults.push(format!("{name}:{line}: {target}: no such heading"));
            }
        }
    }
    (faults, count)
}

#[test]
fn links_between_documents_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut faults, mut all) = (Vec::new(), 0);
    for (name, text) in documents() {
        let (found, count) = broken_links(root, &name, &text);
        faults.extend(found);
        all += count;
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(all > 80, "{all} links");
    let text = "# A b `c`, d!\n[x](#a-b-c-d) [y](#a) ![z](nothing.png) [w](docs/README) `[v](u)`\n";
    let (faults, count) = broken_links(root, "README.md", text);
    let expected = ["README.md:2: #a: no such heading", "README.md:2: nothing.png is not there"];
    assert_eq!((&faults[..2], faults.len(), count), (&expected.map(str::to_owned)[..], 3, 4));
}

/// Every document can be reached from the README.
#[test]
fn every_document_is_linked() {
    let all: BTreeMap<String, String> = documents().into_iter().collect();
    let (mut seen, mut open) = (BTreeSet::new(), vec!["README.md".to_owned()]);
    while let Some(name) = open.pop() {
        let Some(text) = all.get(&name).filter(|_| seen.insert(name.clone())) else { continue };
        for (_, target) in links(text) {
            let file = target.split('#').next().unwrap_or_default();
            let mut path: Vec<&str> = name.split('/').collect();
            path.pop();
            for part in file.split('/') {
                match part {
                    ".." => drop(path.pop()),
                    part => path.push(part),
                }
            }
            open.push(path.join("/"));
        }
    }
    let missing: Vec<&String> = all.keys().filter(|name| !seen.contains(*name)).collect();
    assert!(missing.is_empty(), "no way from README.md to {missing:?}");
}

/// Files that a document names by their path exist.
#[test]
fn files_that_documents_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["crates/", "tests/", "tools/", "docs/", "examples/", "fuzz/", "packaging/"];
    let (mut missing, mut count) = (Vec::new(), 0);
    for (name, text) in documents() {
        for (line, span) in code_spans(&text) {
            let path = span.split(' ').next().unwrap_or_default();
            if folders.iter().any(|folder| path.starts_with(folder))
                && !path.contains(['*', '{', '…', '<', '$'])
            {
                count += 1;
                if !root.join(path).exists() && !path.contains("MACHINE") {
                    missing.push(format!("{name}:{line}: {path}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(count > 100, "{count} paths");
}

/// The lines of a document's code blocks, without comments.
fn shown(document: &str) -> Vec<String> {
    let lines = code_lines(document).into_iter().map(|(_, line)| line);
    let code = lines.map(|line| line.split("  #").next().unwrap_or_default().trim().to_owned());
    code.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

#[test]
fn both_readmes_show_the_same_commands() {
    let (english, chinese) = (document("README.md"), document("README.zh-CN.md"));
    assert_eq!(shown(&english), shown(&chinese));
    assert!(shown(&english).len() > 15);
    let pictures = |text: &str| links(text).into_iter().map(|(_, to)| to).collect::<BTreeSet<_>>();
    let other = |name: &str| name == "README.md" || name == "README.zh-CN.md";
    let [a, b] = [&english, &chinese].map(|text| {
        pictures(text).into_iter().filter(|to| !other(to) && !to.contains('#')).collect::<BTreeSet<_>>()
    });
    assert_eq!(a, b, "links of README.md and README.zh-CN.md");
    assert!(english.lines().count() < 130, "README.md has {} lines", english.lines().count());
}

/// The blocks of a document that are marked to be run.
#[cfg(unix)]
fn marked(document: &str) -> Vec<(usize, String)> {
    let (mut blocks, mut lines) = (Vec::new(), (1..).zip(document.lines()));
    while let Some((number, line)) = lines.next() {
        if line.trim() != "<!-- run -->" {
            continue;
        }
        assert!(
            lines.next().is_some_and(|(_, line)| line.starts_with("```")),
            "line {number}: no code follows"
        );
        let code: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with("```")).collect();
        blocks.push((number, code.join("\n")));
    }
    blocks
}

/// A model and runs that take seconds, in place of those of the documents.
#[cfg(unix)]
const SMALL: &str = r#"
set -eu
regard() {
  name=$1
  shift
  case $name in
    quickstart) set -- "$@" --steps 40 --pairs 1600 ;;
    study) set -- "$@" --smoke ;;
    train | distill)
      for set in d_model=32 heads=2 d_ff=64 encoder_layers=1 decoder_layers=1 norm=pre dropout=0 peak=0.01 \
        batch.max_tokens=500 validation.max_sentences=20 warmup=20; do
        case "$*" in *--resume* | *--init*) ;; *) set -- "$@" --set $set ;; esac
      done
      ;;
  esac
  command regard "$name" "$@"
}
"#;

/// What the guide shows runs, in its order, with a corpus of a few hundred pairs in place of the
/// reader's; every command has an example there that runs, or is on the list of those that cannot.
#[cfg(unix)]
#[test]
fn the_examples_of_the_guide_run() {
    use std::process::Command;
    let guide = document("docs/guide.md");
    let blocks = marked(&guide);
    let program = Path::new(env!("CARGO_BIN_EXE_regard"));
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    for (line, code) in &blocks {
        let code = ["20", "60"].iter().fold(code.clone(), |code, minutes| {
            code.replace(&format!("--minutes {minutes}"), "--steps 60 --set tokenizer.size=400")
        });
        let output = Command::new("sh")
            .args(["-c", &format!("{SMALL}{code}")])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env("REGARD_MODELS", folder.path().join("models"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "docs/guide.md:{line}:\n{code}\n{said}");
    }
    let ran: BTreeSet<String> = blocks
        .iter()
        .flat_map(|(_, code)| code_lines(&format!("```\n{code}\n```")))
        .flat_map(|(_, line)| shell_commands(&line))
        .filter_map(|words| ours(&words)?.first().cloned())
        .collect();
    let all = listed_commands(&run(Path::new("."), &["--help"]).out);
    // A server runs until it is stopped, and the shape of a student takes minutes to train.
    let not_run = ["serve", "export"];
    let missing: Vec<&String> =
        all.iter().filter(|name| !ran.contains(*name) && !not_run.contains(&name.as_str())).collect();
    assert!(missing.is_empty(), "the guide has no example that runs of {missing:?}");
    let shown = code_lines(&guide);
    for name in not_run {
        assert!(shown.iter().any(|(_, line)| line.starts_with(&format!("regard {name}"))), "{name}");
    }
}
