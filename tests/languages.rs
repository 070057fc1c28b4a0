//! The commands on multilingual models, and on those of CTranslate2 and Argos Translate.

use std::fs;
use std::path::{Path, PathBuf};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/regard-core/tests/goldens").join(name)
}

/// The exit status, what is printed, and what is said besides.
fn run(folder: &Path, model: &str, command: &str, more: &str) -> (Option<i32>, String, String) {
    let mut process = crate::command::regard();
    process.current_dir(folder).arg(command).arg("--model").arg(golden(model));
    process.args(more.split_whitespace());
    let output = crate::command::output(process, b"kano tinser\n\nbader kano\n");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn works(folder: &Path, model: &str, command: &str, more: &str) -> String {
    let (status, out, said) = run(folder, model, command, more);
    assert_eq!(status, Some(0), "{command} {more}: {said}");
    out
}

#[test]
fn one_model_translates_between_all_its_languages() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let to = |code: &str| {
        let flags = format!("--source-lang en --target-lang {code} --max-length 8 --no-split");
        works(folder, "families/m2m100", "translate", &flags)
    };
    let german = to("de");
    assert_eq!(german.lines().count(), 3, "{german}");
    assert_eq!(german.lines().nth(1), Some(""));
    assert!(["deu_Latn", "de_DE", "__de__", "DEU"].iter().all(|code| to(code) == german));
    // Some of the others lead a model of random weights elsewhere.
    assert!(["ast", "fr", "zh", "pl", "ko"].iter().any(|code| to(code) != german));
    let (status, out, said) =
        run(folder, "families/m2m100", "translate", "--source-lang en --target-lang dex");
    assert_eq!((status, out.as_str()), (Some(1), ""), "{said}");
    assert!(
        said.contains(
            "target_lang: \"dex\" is none of the 100 languages of the model; similar ones are de, da"
        ),
        "{said}"
    );
    let info = works(folder, "families/m2m100", "info", "");
    assert!(info.contains("languages   100: af am ar ") && info.contains("type        m2m_100"), "{info}");
    let json: serde_json::Value =
        serde_json::from_str(&works(folder, "families/nllb", "info", "--json")).unwrap();
    assert_eq!(json["language_codes"].as_array().unwrap().len(), 202);
    fs::write(folder.join("text"), "kano\nbader\n").unwrap();
    let scores = works(
        folder,
        "families/mbart50",
        "evaluate",
        "--src text --ref text --source-lang fr --target-lang pt --max-length 6",
    );
    assert!(scores.contains("BLEU"), "{scores}");
}

#[test]
fn a_package_of_argos_translates_its_pair() {
    let folder = tempfile::tempdir().unwrap();
    let flags = "--source-lang en --target-lang de --max-length 6";
    let lines = works(folder.path(), "ctranslate2/argos.argosmodel", "translate", flags);
    assert_eq!(lines.lines().count(), 3, "{lines}");
    let info = works(folder.path(), "ctranslate2/argos.argosmodel", "info", "");
    assert!(info.contains("argos") && info.contains("en → de") && info.contains("int8"), "{info}");
}

#[test]
fn a_model_of_many_languages_learns_on() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let lines = "kano tinser bader\nbader kano\nnin sora kano\n".repeat(20);
    for file in ["train.en", "train.de", "valid.en", "valid.de"] {
        fs::write(folder.join(file), &lines).unwrap();
    }
    for family in ["m2m100", "nllb", "mbart50", "madlad"] {
        let mut process = crate::command::regard();
        let init = golden("families").join(family);
        let files =
            "--src train.en --tgt train.de --valid-src valid.en --valid-tgt valid.de --steps 3 --threads 1";
        process.current_dir(folder).arg("train").arg("--init").arg(init).args(files.split(' '));
        process.args([
            "--out",
            family,
            "--set",
            "validation.max_sentences=4",
            "--set",
            "filters.max_tokens=40",
        ]);
        let output = crate::command::output(process, b"");
        assert!(output.status.success(), "{family}: {}", String::from_utf8_lossy(&output.stderr));
        let mut process = crate::command::regard();
        process.current_dir(folder).args([
            "translate",
            "--model",
            family,
            "--max-length",
            "5",
            "--target-lang",
            "fr",
        ]);
        let output = crate::command::output(process, b"kano\n");
        assert!(output.status.success(), "{family}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
