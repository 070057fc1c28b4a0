//! Commands that read and write model folders: `info`, `average`, `quantize`.

use crate::translate::{folder as model_folder, small_model};
use regard::DType;
use regard::formats::Model;
use regard::model::{EncoderKind, NormPlace};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A MarianMT folder as `transformers` saves it.
pub(crate) fn marian_folder(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/regard-core/tests/goldens/marian").join(case)
}

/// Exit status, stdout and stderr of a command.
pub(crate) fn regard(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = crate::command::regard().args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn info_tells_what_a_folder_holds() {
    let folder = marian_folder("gelu-separate");
    let (status, out, err) = regard(&["info", "--model", folder.to_str().unwrap()]);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    for part in [
        "type        marian: transformers can load it too; its output is decoded with target_tokenizer.json\n",
        "languages   aa → bb\n",
        "vocabulary  40 source and 40 target pieces\n",
        "sizes       d_model 8, heads 2, d_ff 12, encoder layers 1, decoder layers 1\n",
        "layers      post-norm, gelu, sinusoidal positions, decoder tying\n",
        "parameters  2,008: embeddings 640, encoder 532, decoder 836\n",
        "precision   f32, 12.8 kB\n",
        "num_beams 6",
    ] {
        assert!(out.contains(part), "{out} lacks {part}");
    }
    let folder = tempfile::tempdir().unwrap();
    let window = EncoderKind::Attention { window: Some(3) };
    let mut model = small_model(5, |c| (c.norm, c.encoder) = (NormPlace::Pre, window)).unwrap();
    model.generation.num_beams = Some(5);
    model.save(folder.path(), DType::Bf16).unwrap();
    let name = folder.path().to_str().unwrap();
    let (_, out, _) = regard(&["info", "--model", name]);
    let want = "type        regard: only regard can run it, because\n            - norm: Marian is post-norm\n            \
                - window: Marian attends to whole sentences\n";
    assert!(out.starts_with(want), "{out}");
    let (_, out, _) = regard(&["info", "--model", name, "--json"]);
    let out: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(out["model_type"], "regard");
    assert_eq!(out["precision"], "bf16");
    assert_eq!(out["why_not_marian"].as_array().unwrap().len(), 2);
    assert_eq!(out["parameters"]["total"], model.weights.len());
    assert_eq!(out["languages"]["source_lang"], "en");
    assert_eq!(out["config"]["window"], 3);
    assert_eq!(out["generation"]["num_beams"], 5);
    let (status, out, err) = regard(&["info", "--model", "no/such/model"]);
    assert_eq!((status, out.as_str()), (Some(1), ""));
    assert!(err.starts_with("regard: no/such/model: no such folder"), "{err}");
}

#[test]
fn average_writes_a_folder() {
    let (swish, relu) = (marian_folder("swish-shared"), marian_folder("relu-shared"));
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let (swish, relu, name) = (swish.to_str().unwrap(), relu.to_str().unwrap(), out.to_str().unwrap());
    let (status, stdout, err) = regard(&["average", swish, swish, "--out", name, "--precision", "bf16"]);
    assert_eq!((status, stdout), (Some(0), String::new()), "{err}");
    assert_eq!(Model::describe(&out).unwrap().dtype, DType::Bf16);
    let (status, _, err) = regard(&["average", swish, relu, "--out", name]);
    assert_eq!(status, Some(1));
    assert!(err.contains("activation is \"silu\" in one and \"relu\" in the other"), "{err}");
    assert!(err.contains(swish) && err.contains(relu), "{err}");
    assert_eq!(regard(&["average", "--out", name]).0, Some(2));
}

#[test]
fn quantize_writes_a_folder_in_8_bits() {
    let model = model_folder();
    let folder = tempfile::tempdir().unwrap();
    let small = folder.path().join("small");
    let [from, to] = [model, &small].map(|path| path.to_str().unwrap());
    let (status, out, err) = regard(&["quantize", "--model", from, "--out", to]);
    assert_eq!((status, out.as_str()), (Some(0), ""), "{err}");
    let description = Model::describe(&small).unwrap();
    assert_eq!((description.dtype, description.model_type), (DType::Int8, "regard"));
    assert!(description.weight_bytes < Model::describe(model).unwrap().weight_bytes);
    let (status, _, err) = regard(&["quantize", "--model", to, "--out", to]);
    assert!(status == Some(1) && err.ends_with("that is the model itself; give another folder\n"), "{err}");
}
