//! Tests on files written here, variable by variable, in every version.

use super::file::contents;
use super::*;
use crate::DType;
use crate::formats::Foreign;
use std::fs;
use std::path::Path;

/// A variable: name, shape, type and bytes.
struct Variable(String, Vec<u32>, u8, Vec<u8>);

fn floats(name: &str, shape: &[u32]) -> Variable {
    let n: u32 = shape.iter().product();
    let seed = name.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let norm = if name.ends_with("gamma") { 1.0 } else { 0.0 };
    let number = |i: u32| {
        norm + ((seed.wrapping_add(i.wrapping_mul(2_654_435_761)) >> 16) % 1000) as f32 / 1000.0 - 0.5
    };
    let bytes = (0..n).flat_map(|i| number(i).to_le_bytes()).collect();
    Variable(name.into(), shape.to_vec(), 0, bytes)
}

fn flag(name: &str, value: u8) -> Variable {
    Variable(name.into(), vec![], 1, vec![value])
}

fn string(to: &mut Vec<u8>, text: &str) {
    to.extend((text.len() as u16 + 1).to_le_bytes());
    to.extend(text.bytes().chain([0]));
}

fn write(version: u32, spec: &str, variables: &[Variable], aliases: &[(&str, &str)]) -> Vec<u8> {
    let mut file = version.to_le_bytes().to_vec();
    string(&mut file, spec);
    file.extend(7u32.to_le_bytes());
    file.extend((variables.len() as u32).to_le_bytes());
    for Variable(name, shape, kind, bytes) in variables {
        string(&mut file, name);
        file.push(shape.len() as u8);
        shape.iter().for_each(|n| file.extend(n.to_le_bytes()));
        match version {
            4.. => {
                file.push(*kind);
                file.extend((bytes.len() as u32).to_le_bytes());
            }
            _ => {
                let size = [4, 1, 2][usize::from(*kind)];
                file.push(size);
                file.extend((bytes.len() as u32 / u32::from(size)).to_le_bytes());
            }
        }
        file.extend(bytes);
    }
    if version >= 3 {
        file.extend((aliases.len() as u32).to_le_bytes());
        for (alias, name) in aliases {
            string(&mut file, alias);
            string(&mut file, name);
        }
    }
    file
}

const WORDS: u32 = 8;
const D: u32 = 4;

/// The variables of a small pre-norm model, as converted from OpenNMT.
fn variables() -> Vec<Variable> {
    let mut all = vec![
        floats("encoder/embeddings_0/weight", &[WORDS, D]),
        floats("decoder/embeddings/weight", &[WORDS, D]),
    ];
    all.push(floats("decoder/projection/weight", &[WORDS, D]));
    all.push(floats("decoder/projection/bias", &[WORDS]));
    for stack in ["encoder", "decoder"] {
        all.push(flag(&format!("{stack}/num_heads"), 2));
        all.push(flag(&format!("{stack}/pre_norm"), 1));
        all.push(floats(&format!("{stack}/layer_norm/gamma"), &[D]));
        all.push(floats(&format!("{stack}/layer_norm/beta"), &[D]));
        let mut layer = |name: &str, rows: u32, cols: u32| {
            all.push(floats(&format!("{stack}/layer_0/{name}/weight"), &[rows, cols]));
            all.push(floats(&format!("{stack}/layer_0/{name}/bias"), &[rows]));
        };
        layer("self_attention/linear_0", 3 * D, D);
        layer("self_attention/linear_1", D, D);
        layer("ffn/linear_0", 6, D);
        layer("ffn/linear_1", D, 6);
        let mut norms = vec!["self_attention", "ffn"];
        if stack == "decoder" {
            layer("attention/linear_0", D, D);
            layer("attention/linear_1", 2 * D, D);
            layer("attention/linear_2", D, D);
            norms.push("attention");
        }
        for norm in norms {
            all.push(floats(&format!("{stack}/layer_0/{norm}/layer_norm/gamma"), &[D]));
            all.push(floats(&format!("{stack}/layer_0/{norm}/layer_norm/beta"), &[D]));
        }
    }
    all
}

fn folder(version: u32, variables: &[Variable], aliases: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("model.bin"), write(version, "TransformerSpec", variables, aliases))
        .unwrap();
    fs::write(folder.path().join("shared_vocabulary.txt"), "<blank>\n<unk>\n<s>\n</s>\na\nb\nc\nd\n")
        .unwrap();
    folder
}

fn open(folder: &Path) -> Ct2Model {
    Ct2Model::open(folder).unwrap().unwrap()
}

fn refusal(folder: &Path) -> String {
    let error =
        Ct2Model::open(folder).and_then(|model| model.unwrap().transformer()).unwrap_err().to_string();
    error.replace(&format!("{}/", folder.display()), "")
}

#[test]
fn every_version_gives_the_same_weights() {
    let weights = |version| {
        let folder = folder(version, &variables(), &[]);
        let model = open(folder.path());
        let transformer = model.transformer().unwrap();
        let config = transformer.config();
        assert_eq!((config.start_token, config.position_offset, config.d_ff), (Some(2), 1, 6));
        assert_eq!(transformer.output_bias().map(<[f32]>::len), Some(8));
        transformer.parameters().iter().map(|parameter| model.floats(parameter).unwrap()).collect::<Vec<_>>()
    };
    let all: Vec<_> = (2..=6).map(weights).collect();
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn aliases_are_one_matrix_and_a_zero_start_is_padding() {
    let mut variables = variables();
    variables.retain(|Variable(name, ..)| {
        !name.starts_with("decoder/projection") && name != "decoder/embeddings/weight"
    });
    variables.push(flag("decoder/start_from_zero_embedding", 1));
    let aliases = [
        ("decoder/embeddings/weight", "encoder/embeddings_0/weight"),
        ("decoder/projection/weight", "encoder/embeddings_0/weight"),
    ];
    let folder = folder(6, &variables, &aliases);
    let model = open(folder.path());
    let transformer = model.transformer().unwrap();
    let config = transformer.config();
    assert_eq!((config.start_token, config.target_vocabulary), (None, 9));
    let table = transformer.parameters().get("embeddings").unwrap();
    let values = model.floats(table).unwrap();
    assert!(values[..32].iter().any(|&x| x != 0.0) && values[32..] == [0.0; 4]);
}

#[test]
fn integers_are_divided_by_their_scales() {
    let quantised = |kind: u8, scales: usize| {
        let mut variables = variables();
        let at = variables.iter().position(|v| v.0 == "encoder/layer_0/ffn/linear_0/weight").unwrap();
        let bytes = match kind {
            1 => (0..24).map(|i| i as u8).collect(),
            _ => (0..24i16).flat_map(i16::to_le_bytes).collect(),
        };
        variables[at] = Variable("encoder/layer_0/ffn/linear_0/weight".into(), vec![6, 4], kind, bytes);
        let scale = (0..scales).flat_map(|i| (2.0 * (i + 1) as f32).to_le_bytes()).collect();
        let shape = if scales == 1 { vec![] } else { vec![scales as u32] };
        variables.push(Variable("encoder/layer_0/ffn/linear_0/weight_scale".into(), shape, 0, scale));
        folder(6, &variables, &[])
    };
    for (kind, scales) in [(1, 6), (2, 1)] {
        let folder = quantised(kind, scales);
        let model = open(folder.path());
        let transformer = model.transformer().unwrap();
        let up = transformer.parameters().get("encoder.layers.0.ffn.up.weight").unwrap();
        let scale = |i: usize| if scales == 1 { 2.0 } else { 2.0 * (i / 4 + 1) as f32 };
        let want: Vec<f32> = (0..24).map(|i| i as f32 / scale(i)).collect();
        assert_eq!(model.floats(up).unwrap(), want);
        assert_eq!(model.dtype(), if kind == 1 { DType::Int8 } else { DType::F32 });
    }
    let folder = quantised(1, 5);
    let model = open(folder.path());
    let transformer = model.transformer().unwrap();
    let up = transformer.parameters().get("encoder.layers.0.ffn.up.weight").unwrap();
    assert!(
        model
            .floats(up)
            .unwrap_err()
            .to_string()
            .ends_with("linear_0/weight_scale has the shape [5] for 6 rows")
    );
}

#[test]
fn what_cannot_be_run_is_named() {
    let change = |change: fn(&mut Vec<Variable>)| {
        let mut variables = variables();
        change(&mut variables);
        let folder = folder(6, &variables, &[]);
        refusal(folder.path())
    };
    for (change_to, want) in [
        (
            change(|v| v.push(floats("encoder/layer_0/self_attention/relative_attention_bias", &[2, 2]))),
            "model.bin: has a relative attention bias (T5), which are not supported in CTranslate2's files",
        ),
        (
            change(|v| v.push(flag("encoder/activation", 1))),
            "model.bin: has the activations 1 and 0; 0 (relu), 2 (swish) and 3 (gelu) are supported, the same on both sides",
        ),
        (
            change(|v| v.retain(|v| v.0 != "encoder/layer_norm/gamma")),
            "model.bin: the encoder is pre-norm and has no norm at the end: not supported",
        ),
        (
            change(|v| v.retain(|v| v.0 != "decoder/layer_0/attention/linear_1/weight")),
            "model.bin: the variable decoder/layer_0/attention/linear_1/weight of shape [8, 4] is missing",
        ),
    ] {
        assert_eq!(change_to, want);
    }
}

#[test]
fn damaged_files_are_refused() {
    let whole = write(6, "TransformerSpec", &variables(), &[("x", "decoder/embeddings/weight")]);
    assert!(contents(&whole).is_ok());
    for n in 0..whole.len() {
        assert!(contents(&whole[..n]).is_err(), "cut after {n} bytes");
    }
    let message = |file: &[u8]| contents(file).unwrap_err();
    assert_eq!(
        message(&write(7, "TransformerSpec", &[], &[])),
        "is of version 7 of CTranslate2's files; 2 to 6 can be read"
    );
    assert_eq!(
        message(&write(6, "WhisperSpec", &[], &[])),
        "is a model of the kind \"WhisperSpec\"; only \"TransformerSpec\", an encoder and decoder, is supported"
    );
    assert_eq!(
        message(&write(6, "TransformerSpec", &[], &[("a", "b")])),
        "has the alias \"a\" for \"b\", which is not there"
    );
    let twice = [flag("a", 1), flag("a", 1)];
    assert_eq!(message(&write(6, "TransformerSpec", &twice, &[])), "has the variable \"a\" twice");
    let wrong = [Variable("a".into(), vec![3], 0, vec![0; 8])];
    assert!(message(&write(6, "TransformerSpec", &wrong, &[])).contains("whose bytes are not as many"));
    let huge = [Variable("a".into(), vec![u32::MAX; 8], 0, vec![])];
    assert!(message(&write(6, "TransformerSpec", &huge, &[])).contains("whose bytes are not as many"));
}
