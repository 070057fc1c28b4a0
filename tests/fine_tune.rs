//! A trained model learns another domain: measured as a user would, by the commands.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const ADJECTIVES: [(&str, &str); 4] =
    [("red", "rouge"), ("old", "vieux"), ("small", "petit"), ("kind", "gentil")];
const VERBS: [(&str, &str); 4] =
    [("sleeps", "dort"), ("runs", "court"), ("eats", "mange"), ("sings", "chante")];
const NOUNS: [(&str, &str); 4] = [("dog", "chien"), ("cat", "chat"), ("horse", "cheval"), ("man", "homme")];
/// What the other domain calls them.
const TERMS: [(&str, &str); 4] =
    [("dog", "gardien"), ("cat", "chasseur"), ("horse", "coursier"), ("man", "maitre")];

/// Every sentence of a domain; a quarter of them, in which each word occurs, is for validation.
fn write_domain(folder: &Path, name: &str, nouns: [(&str, &str); 4]) {
    let mut texts = [[String::new(), String::new()], [String::new(), String::new()]];
    for i in 0..64 {
        let (a, n, v) = (i / 16, i / 4 % 4, i % 4);
        let (adjective, noun, verb) = (ADJECTIVES[a], nouns[n], VERBS[v]);
        let [source, target] = &mut texts[usize::from(n == v)];
        *source += &format!("the {} {} {}\n", adjective.0, noun.0, verb.0);
        *target += &format!("le {} {} {}\n", noun.1, adjective.1, verb.1);
    }
    for (part, [source, target]) in ["train", "valid"].iter().zip(&texts) {
        fs::write(folder.join(format!("{name}.{part}.en")), source).unwrap();
        fs::write(folder.join(format!("{name}.{part}.fr")), target).unwrap();
    }
}

fn regard(folder: &Path, arguments: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_regard"))
        .current_dir(folder)
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn train(folder: &Path, domain: &str, out: &str, more: &str) {
    let files = "--src D.train.en --tgt D.train.fr --valid-src D.valid.en --valid-tgt D.valid.fr";
    let sizes = "--set batch.max_tokens=300 --set schedule.kind=constant --set schedule.peak=0.005 \
                 --set schedule.warmup=10 --set dropout=0 --threads 1";
    regard(folder, &format!("train {} --out {out} {sizes} {more}", files.replace('D', domain)));
}

fn bleu(folder: &Path, model: &str, domain: &str) -> f64 {
    let (src, reference) = (format!("{domain}.valid.en"), format!("{domain}.valid.fr"));
    let report = regard(folder, &format!("evaluate --model {model} --src {src} --ref {reference} --json"));
    serde_json::from_str::<Value>(&report).unwrap()["bleu"]["score"].as_f64().unwrap()
}

#[test]
fn a_new_domain_improves() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_domain(folder, "usual", NOUNS);
    write_domain(folder, "other", TERMS);
    let shape = "--preset tiny --set d_model=32 --set model.heads=2 --set d_ff=32 --set encoder_layers=1 \
                 --set decoder_layers=1 --set tokenizer.size=330 --steps 200";
    train(folder, "usual", "model", shape);
    let (usual, before) = (bleu(folder, "model", "usual"), bleu(folder, "model", "other"));
    assert!(usual > 90.0 && before < 30.0, "{usual} and {before}");
    train(folder, "other", "tuned", "--init model --steps 100");
    let after = bleu(folder, "tuned", "other");
    assert!(after > before + 40.0, "{before} became {after}");
}
