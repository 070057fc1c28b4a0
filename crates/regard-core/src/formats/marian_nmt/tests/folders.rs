//! Tests of folders: 8-bit matrices, and vocabularies and shortlists that match or do not.

use super::export::{options, weights};
use super::*;
use crate::decode::{Values, score_pairs};
use crate::formats::Model;
use crate::model::{DecoderKind, Tying};
use crate::translator::Translator;
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

/// Converts an item like `marian-conv`: names with `Wemb` in the declared order, other matrices
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

#[test]
fn ids_without_a_piece_are_neither_read_nor_said() {
    let options = small(Tying::Decoder);
    let items = float_items(&options, weights(&options)).unwrap();
    let folder = folder(&options, &bin(&items));
    // Words 5 and 30 are missing, and the last eight of the target.
    let gaps = |words: usize| vocabulary(words).replace("w5: 5\n", "").replace("w30: 30\n", "");
    fs::write(folder.path().join("source.yml"), gaps(40)).unwrap();
    fs::write(folder.path().join("target.yml"), gaps(40)).unwrap();
    let model = Model::load(folder.path()).unwrap();
    let (source, target) = (model.tokenizers.source(), model.tokenizers.target());
    assert_eq!((source.size(), target.size()), (41, 49));
    assert_eq!(source.encode("w4 5 w5 w6").unwrap(), [4, 1, 1, 6, 0]);
    assert_eq!(source.encode("w4  5 w6").unwrap(), [4, 1, 6, 0]);
    let banned: Vec<u32> = [48, 1, 5, 30].into_iter().chain(40..48).collect();
    assert_eq!(model.generation.bad_words_ids.clone().unwrap().concat(), banned);
    // A model saved in our format is the same.
    let ours = tempfile::tempdir().unwrap();
    model.save(ours.path(), DType::F32).unwrap();
    assert_eq!(Model::load(ours.path()).unwrap().generation.bad_words_ids.unwrap().concat(), banned);
    let translator = Translator::new(vec![model], DType::F32, Isa::best(), 1).unwrap();
    let translation = translator.translate(&["w2 w3 w4", "w7 w9"], &translator.options()).unwrap();
    for line in translation {
        let text = line.best().text;
        assert!(text.split_whitespace().all(|word| word.starts_with('w')), "{text:?}");
    }
    // A vocabulary with more pieces than the model has words belongs to another model.
    fs::write(folder.path().join("target.yml"), vocabulary(49)).unwrap();
    let message = Model::load(folder.path()).unwrap_err().to_string();
    assert!(message.ends_with("the vocabulary has 49 pieces, but the model 48 (dim-vocabs)"), "{message}");
}

#[test]
fn a_shortlist_belongs_to_its_model() {
    let options = small(Tying::Decoder);
    let items = float_items(&options, weights(&options)).unwrap();
    let folder = folder(&options, &bin(&items));
    let load = |words: usize, id: u32| {
        let mut lists = vec![vec![2]; words];
        lists[3].push(id);
        let mut file = Vec::new();
        LexicalShortlist::new(u32::MAX, 50, &lists).write(&mut file).unwrap();
        fs::write(folder.path().join("lex.s2t.bin"), file).unwrap();
        Model::load(folder.path()).map(|model| model.shortlist.is_some()).map_err(|e| e.to_string())
    };
    for words in [33, 39, 40, 41, 47] {
        assert_eq!(load(words, 47), Ok(true), "{words} words");
    }
    for words in [4, 32, 48, 500] {
        let want = format!("has lists of {words} words, but the source has 40: it is of another model");
        let message = load(words, 47).unwrap_err();
        assert!(message.ends_with(&want), "{message}");
    }
    for id in [48, 4_000_000_000] {
        let want =
            format!("lists the word {id}, but the target has 48 words, from 0: it is of another model");
        let message = load(40, id).unwrap_err();
        assert!(message.ends_with(&want), "{message}");
    }
}

#[test]
fn matrices_with_the_same_inputs_have_one_multiplier_for_them() {
    let options = small(Tying::ThreeWay);
    let mut items: Vec<NewItem> =
        float_items(&options, weights(&options)).unwrap().into_iter().map(quantized).collect();
    items.push(NewItem::floats("encoder_l1_self_Wq_QuantMultA", &[1, 1], vec![5.0]));
    let refused = |items: &[NewItem]| {
        let folder = folder(&options, &bin(items));
        Model::load_engine(folder.path(), None, Isa::best()).unwrap_err().to_string()
    };
    let want = "model.bin: encoder_l1_self_Wq has the multiplier 5 for its inputs, but \
                encoder_l1_self_Wk, which has the same inputs, has no multiplier; one for both is expected";
    let message = refused(&items);
    assert!(message.ends_with(want), "{message}");
    items.push(NewItem::floats("encoder_l1_self_Wk_QuantMultA", &[1, 1], vec![0.5]));
    let message = refused(&items);
    assert!(message.ends_with("has the multiplier 0.5; one for both is expected"), "{message}");
}
