//! Folders as models: matrices in 8 bits, vocabularies and shortlists that belong to them or not.

use super::export::{options, weights};
use super::*;
use crate::decode::{Values, score_pairs};
use crate::formats::Model;
use crate::model::{DecoderKind, Tying};
use crate::{DType, Isa};

/// The pieces `</s>`, `<unk>`, `w2` and so on.
fn vocabulary(words: usize) -> String {
    let words: String = (2..words).map(|id| format!("w{id}: {id}\n")).collect();
    format!("</s>: 0\n<unk>: 1\n{words}")
}

/// A folder with a model and its vocabularies in YAML.
fn folder(options: &MarianOptions, model: &[u8]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("model.bin", model);
    write("source.yml", vocabulary(options.source_vocabulary).as_bytes());
    write("target.yml", vocabulary(options.target_vocabulary).as_bytes());
    let target = match options.tying {
        Tying::ThreeWay | Tying::Embeddings => "source.yml",
        _ => "target.yml",
    };
    write("config.yml", format!("models: [model.bin]\nvocabs: [source.yml, {target}]\n").as_bytes());
    folder
}

fn small(tying: Tying) -> MarianOptions {
    let mut options = options(DecoderKind::Ssru, tying);
    if matches!(tying, Tying::ThreeWay | Tying::Embeddings) {
        options.source_vocabulary = options.target_vocabulary;
    }
    options
}

/// What `marian-conv` makes of an item: names with `Wemb` in the declared order, other matrices
/// transposed.
fn quantized(item: NewItem) -> NewItem {
    let NewItem { name, data } = item;
    let is_matrix = name.rsplit_once("_W").is_some_and(|(_, rest)| rest.len() < 2);
    let data = match data {
        NewData::F32(shape, values) if name.contains("Wemb") => {
            NewData::Int8(Int8Matrix::quantize(shape[0], shape[1], &values))
        }
        NewData::F32(shape, values) if is_matrix => {
            let [rows, columns] = [shape[0], shape[1]];
            let order = (0..columns).flat_map(|c| (0..rows).map(move |r| r * columns + c));
            let values: Vec<f32> = order.map(|i| values[i]).collect();
            NewData::Int8(Int8Matrix::quantize(columns, rows, &values))
        }
        other => other,
    };
    NewItem { name, data }
}

#[test]
fn integers_are_the_same_numbers_as_floats() {
    for tying in [Tying::ThreeWay, Tying::Decoder, Tying::Embeddings, Tying::None] {
        let options = small(tying);
        let items = float_items(&options, weights(&options)).unwrap();
        let items: Vec<NewItem> = items.into_iter().map(quantized).collect();
        let folder = folder(&options, &bin(&items));
        let marian = MarianModel::open(folder.path()).unwrap().unwrap();
        let transformer = marian.transformer().unwrap();
        let mut words = 0;
        for parameter in transformer.parameters() {
            let floats = marian.floats(parameter).unwrap();
            let Values::FixedInt8 { values, multipliers, .. } = marian.values(parameter).unwrap() else {
                continue;
            };
            let ([rows, columns], values) = (parameter.shape, values.as_slice());
            assert_eq!(multipliers.len(), rows, "{}", parameter.name);
            // Padding is not in the file.
            words += rows - values.len() / columns;
            for (i, (q, x)) in values.iter().zip(&floats).enumerate() {
                let integer = f32::from(*q) * (1.0 / multipliers[i / columns]);
                assert_eq!(integer, *x, "{tying:?}: {} at {i}", parameter.name);
            }
        }
        let matrices = match tying {
            Tying::ThreeWay => 1,
            Tying::Decoder | Tying::Embeddings => 2,
            Tying::None => 3,
        };
        assert_eq!(words, matrices, "{tying:?}");
        let pairs: Vec<_> = (0..options.target_vocabulary as u32).map(|w| (vec![3, 7, 0], vec![w])).collect();
        let scores = |dtype| {
            let (_, engine) = Model::load_engine(folder.path(), Some(dtype), Isa::best()).unwrap();
            score_pairs(&[&engine], &pairs, 1).unwrap().concat()
        };
        for (a, b) in scores(DType::Int8).into_iter().zip(scores(DType::F32)) {
            assert!((a - b).abs() < 0.1, "{tying:?}: {a} in 8 bits, {b} in f32");
        }
    }
}
