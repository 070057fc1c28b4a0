//! Dependencies point downwards only, a translator can be embedded without training, plots, server
//! or studies, and the libraries know nothing of the command line.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What each crate may depend on among ours, lowest first. The facade may use all of them.
const BELOW: [(&str, &[&str]); 11] = [
    ("regard-random", &[]),
    ("regard-kernels", &["regard-random"]),
    ("regard-metrics", &[]),
    ("regard-plot", &[]),
    ("regard-sample-corpus", &["regard-random"]),
    ("regard-core", &["regard-kernels", "regard-random"]),
    ("regard-documents", &["regard-core"]),
    ("regard-train", &["regard-core", "regard-kernels", "regard-metrics", "regard-plot"]),
    (
        "regard-studies",
        &[
            "regard-core",
            "regard-kernels",
            "regard-metrics",
            "regard-plot",
            "regard-sample-corpus",
            "regard-train",
        ],
    ),
    ("regard-serve", &["regard-core", "regard-documents"]),
    // The Python package is a user of the facade.
    ("regard-python", &["regard", "regard-documents"]),
];

#[test]
fn crates_depend_on_those_below_them() {
    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--format-version", "1", "--no-deps"])).unwrap();
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let normal = package["dependencies"].as_array().unwrap().iter().filter(|d| d["kind"].is_null());
        let ours = normal.map(|d| d["name"].as_str().unwrap()).filter(|name| name.starts_with("regard"));
        found.insert(package["name"].as_str().unwrap(), ours.collect());
    }
    let all: BTreeSet<&str> = BELOW.iter().map(|(name, _)| *name).chain(["regard"]).collect();
    assert_eq!(found.keys().copied().collect::<BTreeSet<_>>(), all, "a crate without a place in the layout");
    for (name, below) in BELOW {
        let below: BTreeSet<&str> = below.iter().copied().collect();
        assert!(found[name].is_subset(&below), "{name} depends on {:?}", found[name]);
    }
}

#[test]
fn a_plain_build_has_every_crate_but_the_python_package() {
    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--format-version", "1", "--no-deps"])).unwrap();
    let ids = |key: &str| -> BTreeSet<&str> {
        metadata[key].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect()
    };
    let (all, default) = (ids("workspace_members"), ids("workspace_default_members"));
    let left_out: Vec<_> = all.difference(&default).collect();
    assert!(left_out.len() == 1 && left_out[0].contains("crates/python"), "{left_out:?}");
}

#[test]
fn the_library_alone_is_inference_and_metrics() {
    let tree = cargo(&["tree", "-p", "regard", "--no-default-features", "-e", "normal", "--prefix", "none"]);
    let ours: BTreeSet<&str> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| name.starts_with("regard"))
        .collect();
    assert_eq!(
        ours,
        BTreeSet::from(["regard", "regard-core", "regard-kernels", "regard-metrics", "regard-random"])
    );
    for unwanted in ["axum", "clap", "indicatif", "resvg", "tokio", "toml", "ureq"] {
        assert!(!tree.lines().any(|line| line.split_whitespace().next() == Some(unwanted)), "{unwanted}");
    }
}

/// Vocabularies are trained by `regard-train`; a program that only translates compiles nothing of it.
#[test]
fn only_training_enables_the_training_of_tokenizers() {
    let enables = |package: &[&str]| {
        let tree = ["tree", "-e", "normal", "--prefix", "none", "--format", "{p} features:{f}", "-p"];
        let tree = cargo(&[&tree, package].concat());
        let core: Vec<&str> = tree.lines().filter(|line| line.starts_with("regard-core ")).collect();
        assert!(!core.is_empty(), "{tree}");
        core.iter().any(|line| line.contains("tokenizer-training"))
    };
    assert!(enables(&["regard-train"]) && enables(&["regard"]));
    for package in [
        &["regard", "--no-default-features"][..],
        &["regard", "--no-default-features", "--features", "hub,serve,tls"],
        &["regard-core"],
        &["regard-documents"],
        &["regard-serve"],
    ] {
        assert!(!enables(package), "{package:?}");
    }
}

/// Each crate that we depend on has a reason in docs/decisions/dependencies.md, and no other has.
#[test]
fn dependencies_have_reasons() {
    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--format-version", "1", "--no-deps"])).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let used: BTreeSet<&str> = packages
        .flat_map(|package| package["dependencies"].as_array().unwrap())
        .map(|dependency| dependency["name"].as_str().unwrap())
        .filter(|name| !name.starts_with("regard"))
        .collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/decisions/dependencies.md");
    let page = fs::read_to_string(path).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ")).skip(1);
    let named: BTreeSet<&str> =
        rows.flat_map(|row| row.split('|').nth(1).unwrap().trim().split(", ")).collect();
    assert_eq!(used, named);
}

/// The time of day may jump: it is written into files and compared with itself, and nothing waits
/// for it. Every wait and limit goes by `Instant`.
#[test]
fn the_time_of_day_is_read_in_few_places() {
    let allowed = [
        // Whether a file has changed: its time is another than before.
        "crates/serve/src/files.rs",
        "crates/serve/src/models.rs",
        "crates/train/src/corpus/cache.rs",
        // The day on which a key was added, and the time of an event in TensorBoard's files.
        "crates/serve/src/keys/file.rs",
        "crates/train/src/report/tensorboard.rs",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    add_sources(&root.join("src"), &mut files);
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        add_sources(&entry.unwrap().path().join("src"), &mut files);
    }
    let found: BTreeSet<String> = files
        .iter()
        .filter(|path| {
            let text = fs::read_to_string(path).unwrap();
            ["SystemTime", "UNIX_EPOCH"].iter().any(|name| text.contains(name))
        })
        .map(|path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(found, BTreeSet::from(allowed.map(str::to_owned)));
}

/// Adds the sources of a library below `folder`, without its tests.
fn add_sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.trim_end_matches(".rs").ends_with("tests") {
            continue;
        }
        if path.is_dir() {
            add_sources(&path, files);
        } else if name.ends_with(".rs") {
            files.push(path);
        }
    }
}

/// Whether a line of code quotes a flag of the command line: two hyphens and a letter, at the start
/// of a string or of a word in it. (Rust has no `--`; what it has in CSS follows a sign.)
fn quotes_a_flag(line: &str) -> bool {
    line.match_indices("--").any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + 2..].chars().next();
        before.is_none_or(|c| c.is_whitespace() || "\"'`".contains(c))
            && after.is_some_and(|c| c.is_ascii_lowercase())
    })
}

/// Whether a line of code quotes a command of the binary.
fn quotes_a_command(line: &str) -> bool {
    line.contains("`regard ")
}

#[test]
fn messages_of_the_libraries_do_not_quote_flags_or_commands() {
    assert!(
        quotes_a_flag("--out is missing")
            && quotes_a_flag("`--out`")
            && !quotes_a_flag("{--ink:#000} a -- b")
    );
    assert!(quotes_a_command("\"`regard train` makes it\"") && !quotes_a_command("# regard shortlist"));
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    let mut files = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        add_sources(&entry.unwrap().path().join("src"), &mut files);
    }
    assert!(files.len() > 200, "{} files", files.len());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.lines().take_while(|line| *line != "mod tests {");
        for (number, line) in code.enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            let wrong = quotes_a_flag(line) || quotes_a_command(line);
            assert!(!wrong, "{}:{}: {}", file.display(), number + 1, line.trim());
        }
    }
}
