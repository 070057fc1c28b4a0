//! Dependencies point downwards only, and a translator can be embedded without training, plots, server or studies.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
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
const BELOW: [(&str, &[&str]); 10] = [
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
    for unwanted in ["axum", "clap", "hf-hub", "indicatif", "resvg", "tokio", "toml"] {
        assert!(!tree.lines().any(|line| line.split_whitespace().next() == Some(unwanted)), "{unwanted}");
    }
}
