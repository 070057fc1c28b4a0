//! The files of weights: `pytorch_model.bin`, several files with an index, 8 bits.

use crate::formats::{copy, golden_folder, joint, ours, refusal};
use regard_core::DType;
use regard_core::Isa;
use regard_core::formats::{Model, average};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn torch_file(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/torch").join(name)).unwrap()
}

/// The golden folder with a file of torch.save in the place of its weights.
fn torch_folder(name: &str) -> TempDir {
    let folder = copy("swish-shared");
    fs::remove_file(folder.path().join("model.safetensors")).unwrap();
    fs::write(folder.path().join("pytorch_model.bin"), torch_file(name)).unwrap();
    folder
}

#[test]
fn pytorch_files_are_read_and_their_shared_matrix_is_trusted() {
    let want = Model::load(&golden_folder("swish-shared")).unwrap();
    for name in ["model-archive.bin", "model-older.bin"] {
        let folder = torch_folder(name);
        let model = Model::load(folder.path()).unwrap();
        assert_eq!(model.weights, want.weights, "{name}");
        assert_eq!(model.transformer.output_bias(), want.transformer.output_bias(), "{name}");
        let description = Model::describe(folder.path()).unwrap();
        assert_eq!(description.dtype, DType::F32);
        assert_eq!(description.weight_bytes, torch_file(name).len() as u64);
        let paths = [golden_folder("swish-shared"), folder.path().to_path_buf()];
        assert_eq!(average(&paths).unwrap().weights, want.weights, "{name}");
        // And written as safetensors.
        let saved = tempfile::tempdir().unwrap();
        model.save(saved.path(), DType::F32).unwrap();
        assert_eq!(Model::load(saved.path()).unwrap().weights, want.weights);
        // Safetensors come first.
        fs::write(folder.path().join("model.safetensors"), "").unwrap();
        assert_eq!(refusal(folder.path()), "model.safetensors: 0 bytes are too few for a safetensors file");
    }
}

#[test]
fn broken_pytorch_files_are_refused() {
    for (name, step) in [("model-archive.bin", 61), ("model-older.bin", 37)] {
        let folder = torch_folder(name);
        let path = folder.path().join("pytorch_model.bin");
        let whole = torch_file(name);
        for length in (0..whole.len()).step_by(step) {
            fs::write(&path, &whole[..length]).unwrap();
            let error = refusal(folder.path());
            assert!(error.starts_with("pytorch_model.bin: "), "{length}: {error}");
        }
    }
    let folder = torch_folder("model-older.bin");
    let path = folder.path().join("pytorch_model.bin");
    fs::write(&path, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n").unwrap();
    let want = "pytorch_model.bin: is a pointer of Git LFS, not the weights; `git lfs pull` fetches them";
    assert_eq!(refusal(folder.path()), want);
    fs::write(&path, b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.").unwrap();
    assert!(refusal(folder.path()).contains("it refers to \"os.system\""), "{}", refusal(folder.path()));
    // One storage for all layers is not many weights: the configuration decides nothing that the
    // file has not.
    let folder = torch_folder("views-older.bin");
    assert_eq!(
        refusal(folder.path()),
        "pytorch_model.bin: tensor model.shared.weight of shape [40, 8] is missing"
    );
}

/// A golden folder whose weights are in several files.
fn sharded(change: impl FnOnce(&mut Value)) -> TempDir {
    let folder = copy("swish-shared");
    let whole = fs::read(folder.path().join("model.safetensors")).unwrap();
    fs::remove_file(folder.path().join("model.safetensors")).unwrap();
    let (length, rest) = whole.split_first_chunk::<8>().unwrap();
    let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let header: serde_json::Map<String, Value> = serde_json::from_slice(header).unwrap();
    let mut map = serde_json::Map::new();
    for shard in 0..3 {
        let name = format!("model-{}-of-3.safetensors", shard + 1);
        let (mut part, mut bytes) = (serde_json::Map::new(), Vec::new());
        let tensors = header.iter().filter(|(key, _)| *key != "__metadata__");
        for (key, value) in tensors.enumerate().filter(|(i, _)| i % 3 == shard).map(|(_, tensor)| tensor) {
            let at = |i: usize| value["data_offsets"][i].as_u64().unwrap() as usize;
            let start = bytes.len();
            bytes.extend(&data[at(0)..at(1)]);
            let mut value = value.clone();
            value["data_offsets"] = json!([start, bytes.len()]);
            part.insert(key.clone(), value);
            map.insert(key.clone(), name.clone().into());
        }
        let part = Value::Object(part).to_string();
        let file = [&(part.len() as u64).to_le_bytes(), part.as_bytes(), &bytes].concat();
        fs::write(folder.path().join(name), file).unwrap();
    }
    let mut index = json!({"metadata": {"total_size": data.len()}, "weight_map": map});
    change(&mut index);
    fs::write(folder.path().join("model.safetensors.index.json"), index.to_string()).unwrap();
    folder
}

#[test]
fn weights_in_several_files_are_read() {
    let want = Model::load(&golden_folder("swish-shared")).unwrap();
    let folder = sharded(|_| ());
    let model = Model::load(folder.path()).unwrap();
    assert_eq!(model.transformer.output_bias(), want.transformer.output_bias());
    assert_eq!(model.weights, want.weights);
    let description = Model::describe(folder.path()).unwrap();
    assert!(description.weight_bytes > 4 * want.weights.len() as u64);
    // The same for files of torch.save: here two of them, each with all tensors.
    let folder = torch_folder("model-older.bin");
    fs::rename(folder.path().join("pytorch_model.bin"), folder.path().join("a.bin")).unwrap();
    fs::write(folder.path().join("b.bin"), torch_file("model-archive.bin")).unwrap();
    let names = ["final_logits_bias", "model.shared.weight"].map(str::to_owned).into_iter();
    let layers = Model::load(&golden_folder("swish-shared")).unwrap();
    let stacks = [("encoder", layers.transformer.config().encoder_layers, 1), ("decoder", 1, 2)];
    let mut names: Vec<String> = names.collect();
    for (stack, count, attentions) in stacks {
        for layer in 0..count {
            let base = format!("model.{stack}.layers.{layer}");
            for attention in &["self_attn", "encoder_attn"][..attentions] {
                names.extend(["q", "k", "v", "out"].map(|x| format!("{base}.{attention}.{x}_proj")));
                names.push(format!("{base}.{attention}_layer_norm"));
            }
            names.extend(["fc1", "fc2", "final_layer_norm"].map(|x| format!("{base}.{x}")));
        }
    }
    let mut map = serde_json::Map::new();
    for (i, name) in names.iter().enumerate() {
        let ends = if name.contains("layers") { &[".weight", ".bias"][..] } else { &[""] };
        for end in ends {
            map.insert(format!("{name}{end}"), ["a.bin", "b.bin"][i % 2].into());
        }
    }
    let index = json!({"weight_map": map}).to_string();
    fs::write(folder.path().join("pytorch_model.bin.index.json"), index).unwrap();
    assert_eq!(Model::load(folder.path()).unwrap().weights, want.weights);
}

#[test]
fn an_index_that_lies_is_refused() {
    let index = "model.safetensors.index.json";
    let key = "model.shared.weight";
    for (shard, want) in [
        ("../model-1-of-3.safetensors", "\"../model-1-of-3.safetensors\" leads out of the folder"),
        ("/etc/passwd", "\"/etc/passwd\" leads out of the folder"),
        ("sub/model.safetensors", "\"sub/model.safetensors\" leads out of the folder"),
        ("./model-1-of-3.safetensors", "\"./model-1-of-3.safetensors\" leads out of the folder"),
        ("..", "\"..\" leads out of the folder"),
        ("", "\"\" leads out of the folder"),
        ("C:\\x", "\"C:\\\\x\" leads out of the folder"),
    ] {
        let folder = sharded(|index| index["weight_map"][key] = shard.into());
        let error = refusal(folder.path());
        assert!(error.starts_with(&format!("{index}: weight_map: {want}")), "{error}");
    }
    let folder = sharded(|index| index["weight_map"]["more"] = "model-1-of-3.safetensors".into());
    let want = "model.safetensors.index.json: weight_map: tensor more is not in model-1-of-3.safetensors";
    assert_eq!(refusal(folder.path()), want);
    let folder = sharded(|index| drop(index["weight_map"].as_object_mut().unwrap().remove(key)));
    assert_eq!(refusal(folder.path()), format!("{index}: tensor {key} of shape [40, 8] is missing"));
    for (map, want) in [
        (json!(null), "weight_map: is missing"),
        (json!(["x"]), "weight_map: invalid type: sequence, expected a map"),
        (json!({"a": 1}), "weight_map: invalid type: integer `1`, expected a string"),
    ] {
        let folder = sharded(|index| index["weight_map"] = map);
        assert_eq!(refusal(folder.path()), format!("{index}: {want}"));
    }
    let folder = sharded(|_| ());
    fs::write(folder.path().join("model-2-of-3.safetensors"), "").unwrap();
    let want = "model-2-of-3.safetensors: 0 bytes are too few for a safetensors file";
    assert_eq!(refusal(folder.path()), want);
    fs::remove_file(folder.path().join("model-2-of-3.safetensors")).unwrap();
    let error = refusal(folder.path());
    assert!(error.starts_with("model-2-of-3.safetensors: ") && error.contains("os error 2"), "{error}");
}

/// A quantised folder: smaller, its numbers near the old ones, and the same to the bit whether it
/// is read or packed.
#[test]
fn models_in_8_bits_are_saved_and_read() {
    let model = ours(|_| (), joint());
    let folder = TempDir::new().unwrap();
    let (plain, small) = (folder.path().join("plain"), folder.path().join("small"));
    model.save(&plain, DType::F32).unwrap();
    Model::load(&plain).unwrap().save(&small, DType::Int8).unwrap();
    let description = Model::describe(&small).unwrap();
    assert_eq!((description.dtype, description.model_type), (DType::Int8, "regard"));
    assert_eq!(description.why_not_marian, ["weights in 8 bits: Marian has f32, bf16 and f16"]);
    assert!(description.weight_bytes < Model::describe(&plain).unwrap().weight_bytes);

    let read = Model::load(&small).unwrap();
    for parameter in model.transformer.parameters() {
        let range = parameter.param.range();
        let (old, new) = (&model.weights[range.clone()], &read.weights[range]);
        for (old, new) in old.chunks(parameter.shape[1]).zip(new.chunks(parameter.shape[1])) {
            let largest = old.iter().fold(0.0f32, |m, x| m.max(x.abs()));
            let step = if parameter.is_matrix() { largest / 127.0 } else { 0.0 };
            assert!(old.iter().zip(new).all(|(a, b)| (a - b).abs() <= 0.501 * step), "{}", parameter.name);
        }
    }
    let (_, stored) = Model::load_engine(&small, None, Isa::best()).unwrap();
    let (_, packed) = Model::load_engine(&plain, Some(DType::Int8), Isa::best()).unwrap();
    assert_eq!((stored.dtype(), packed.dtype()), (DType::Int8, DType::Int8));
    assert_eq!(stored.weights(), packed.weights());
    assert_eq!(stored.weights(), read.weights);
    let (_, widened) = Model::load_engine(&small, Some(DType::F32), Isa::best()).unwrap();
    assert_eq!(widened.weights(), read.weights);

    // Scales that are missing or too few are named.
    let file = small.join("model.safetensors");
    let bytes = fs::read(&file).unwrap();
    let name = b"model.shared.weight.scale";
    let at = bytes.windows(name.len()).position(|w| w == name).unwrap();
    let broken: Vec<u8> = bytes[..at]
        .iter()
        .chain(b"model.shared.weight.scalX")
        .chain(&bytes[at + name.len()..])
        .copied()
        .collect();
    fs::write(&file, broken).unwrap();
    let error = Model::load(&small).unwrap_err().to_string();
    assert!(
        error.contains(
            "tensor model.shared.weight is in 8 bits, but there is no model.shared.weight.scale with"
        ),
        "{error}"
    );
}
