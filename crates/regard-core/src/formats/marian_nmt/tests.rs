//! Tests on files from our writers, and on damaged files.

mod export;
mod folders;
mod goldens;
mod options;

use super::*;
use crate::DType;
use std::path::Path;
use std::{fs, io};

/// The options of a published model, without irrelevant keys.
const STUDENT: &str = "dec-cell: ssru\ndec-depth: 2\ndim-emb: 256\ndim-rnn: 1024\ndim-vocabs:\n  - 32000\n  - 32000\nenc-cell: gru\n\
    enc-depth: 6\ninput-types: []\nlayer-normalization: false\nlemma-dim-emb: 0\noutput-omit-bias: false\nright-left: false\n\
    tied-embeddings: false\ntied-embeddings-all: true\ntied-embeddings-src: false\ntransformer-decoder-autoreg: rnn\n\
    transformer-dim-ffn: 1536\ntransformer-ffn-activation: relu\ntransformer-ffn-depth: 2\ntransformer-guided-alignment-layer: last\n\
    transformer-heads: 8\ntransformer-postprocess: dan\ntransformer-postprocess-emb: d\ntransformer-postprocess-top: \"\"\n\
    transformer-preprocess: \"\"\ntransformer-tied-layers: []\ntype: transformer\nulr: false\nversion: v1.9.56 94aeaa46 2021-04-28 00:28:35 +0100\n";

/// Items of every kind: `W` is a linear layer's matrix [in 3, out 2], stored as [2, 3].
fn example() -> Vec<NewItem> {
    let int8 = |rows, columns, values: &[i8], multiplier| {
        NewData::Int8(Int8Matrix { rows, columns, values: values.to_vec(), multiplier })
    };
    let item = |name: &str, data| NewItem { name: name.to_owned(), data };
    vec![
        item("Wemb", int8(2, 3, &[1, 2, 3, -4, -5, 127], 2.0)),
        item("layer_W", int8(2, 3, &[1, 2, 3, -4, -5, -127], 4.0)),
        item("layer_W_QuantMultA", NewData::F32(vec![1, 1], vec![12.5])),
        item("Wemb_QuantMultA", int8(1, 1, &[127], 12.7)),
        NewItem::floats("layer_b", &[1, 2], vec![0.5, -1.0]),
        item(OPTIONS, NewData::Text(STUDENT.into())),
    ]
}

fn bin(items: &[NewItem]) -> Vec<u8> {
    let mut file = Vec::new();
    write_bin(items, &mut file).unwrap();
    file
}

fn npz(items: &[NewItem]) -> Vec<u8> {
    let mut file = Vec::new();
    write_npz(items, &mut file).unwrap();
    file
}

fn open(bytes: &[u8]) -> crate::Result<ItemFile> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    fs::write(&path, bytes).unwrap();
    ItemFile::open(&path)
}

/// The error for a file, without its path.
fn refusal(bytes: &[u8]) -> String {
    let error = open(bytes).unwrap_err().to_string();
    error.split_once("model: ").expect("the file is named").1.to_owned()
}

#[test]
fn a_bin_file_that_is_written_is_read() {
    let mut bytes = bin(&example());
    // Published files have arbitrary bytes after an 8-bit matrix.
    let data = bytes.windows(4).position(|window| window == [1, 2, 3, 0xfc]).unwrap();
    assert_eq!(data % 256, 0);
    bytes[data + 10..data + 256].fill(0xab);
    let file = open(&bytes).unwrap();
    assert_eq!(
        file.items().map(|item| item.name).collect::<Vec<_>>(),
        example().iter().map(|i| &i.name).collect::<Vec<_>>()
    );
    let words = file.need("Wemb").unwrap();
    assert_eq!((words.shape, words.dtype, words.offset), (&[2, 3][..], DType::Int8, data));
    assert_eq!(words.floats().unwrap(), [0.5, 1.0, 1.5, -2.0, -2.5, 63.5]);
    assert_eq!(words.int8().unwrap().rows, 2);
    // Declared as [in, out], stored as [out, in].
    let matrix = file.need("layer_W").unwrap();
    assert_eq!(matrix.shape, [3, 2]);
    assert_eq!(matrix.floats().unwrap(), [0.25, -1.0, 0.5, -1.25, 0.75, -31.75]);
    let Int8Matrix { rows, columns, values, multiplier } = matrix.int8().unwrap();
    assert_eq!((rows, columns, multiplier), (2, 3, 4.0));
    assert_eq!(values, [1, 2, 3, -4, -5, -127]);
    assert_eq!(file.need("layer_b").unwrap().floats().unwrap(), [0.5, -1.0]);
    assert_eq!(file.need(OPTIONS).unwrap().text().unwrap(), STUDENT);
    assert_eq!(file.input_multiplier("layer_W").unwrap(), Some(12.5));
    assert!((file.input_multiplier("Wemb").unwrap().unwrap() - 10.0).abs() < 1e-5);
    assert_eq!(file.input_multiplier("layer_b").unwrap(), None);
    assert_eq!(file.options().unwrap().d_model, 256);
    let missing = file.need("x").unwrap_err().to_string();
    assert!(missing.ends_with("model: item x is missing"), "{missing}");
    let wrong = file.need("layer_b").unwrap().int8().unwrap_err().to_string();
    assert!(
        wrong.contains("item layer_b at byte ")
            && wrong.ends_with("is of type float32; an intgemm8 matrix is expected"),
        "{wrong}"
    );
}

#[test]
fn the_numbers_of_both_engines_mean_8_bits() {
    let mut bytes = bin(&example());
    assert_eq!(bytes[24..32], 0x4101u64.to_le_bytes());
    bytes[24..32].copy_from_slice(&0x1_0001u64.to_le_bytes());
    assert_eq!(open(&bytes).unwrap().need("Wemb").unwrap().int8().unwrap().values[5], 127);
}

#[test]
fn an_npz_file_that_is_written_is_read() {
    let items: Vec<NewItem> =
        example().into_iter().filter(|item| !matches!(item.data, NewData::Int8(_))).collect();
    let file = open(&npz(&items)).unwrap();
    assert_eq!(file.items().count(), 3);
    let bias = file.need("layer_b").unwrap();
    assert_eq!((bias.shape, bias.dtype), (&[1, 2][..], DType::F32));
    assert_eq!(bias.floats().unwrap(), [0.5, -1.0]);
    assert_eq!(file.options().unwrap().heads, 8);
    // A vector is a row.
    let vector = open(&npz(&[NewItem::floats("v", &[3], vec![1.0, 2.0, 3.0])])).unwrap();
    assert_eq!(vector.need("v").unwrap().shape, [1, 3]);
    let error = write_npz(&example(), &mut io::sink()).unwrap_err().to_string();
    assert!(error.starts_with("item Wemb is a matrix of integers"), "{error}");
}

/// Created by NumPy: `savez_compressed` with f16 and f32 arrays and the bytes of a text.
#[test]
fn deflated_members_are_inflated() {
    let seed =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/marian_npz/numpy-compressed.npz");
    let bytes = fs::read(seed).unwrap();
    let file = open(&bytes).unwrap();
    let half = file.need("half").unwrap();
    assert_eq!((half.dtype, half.shape), (DType::F16, &[1, 3][..]));
    assert_eq!(half.floats().unwrap(), [0.5, -1.0, 65504.0]);
    let matrix = file.need("encoder_l1_self_Wq").unwrap();
    assert_eq!(
        (matrix.shape, matrix.floats().unwrap()[..4].to_vec()),
        (&[8, 8][..], vec![0.0, 1.0, 2.0, 3.0])
    );
    assert_eq!(file.need(OPTIONS).unwrap().text().unwrap(), "type: transformer\n");
    // Flip one bit of the packed data.
    let start = bytes.windows(8).position(|window| window == b"half.npy").unwrap();
    let mut damaged = bytes.clone();
    damaged[start + 40] ^= 4;
    let message = refusal(&damaged);
    assert!(message.starts_with("item half at byte "), "{message}");
}

#[test]
fn bin_files_that_lie_are_refused() {
    let file = bin(&example());
    let put = |at: usize, value: u64| {
        let mut file = file.clone();
        file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        refusal(&file)
    };
    let starts = |message: String, want: &str| assert!(message.starts_with(want), "{message}");
    starts(put(0, 2), "version 2 of Marian's .bin file; version 1 can be read");
    starts(put(0, 1 << 40), &format!("{} bytes that are neither Marian's .bin nor .npz", file.len()));
    for count in [u64::MAX, 1 << 59, 1 << 40] {
        starts(put(8, count), &format!("says that it has {count} items, but has "));
    }
    for length in [u64::MAX, 1 << 63, 1 << 33] {
        starts(put(16, length), &format!("a name at byte 208 needs {length} bytes, but the file has"));
        starts(put(32, length), "the shape of item Wemb at byte ");
        starts(
            put(40, length),
            &format!("the data of item Wemb at byte 512 needs {length} bytes, but the file has"),
        );
    }
    starts(put(16, 0), "the name at byte 208 is not text that ends with a NUL");
    starts(put(16, 4), "the name at byte 208 is not text that ends with a NUL");
    starts(put(16, 14), "the name at byte 208 is not text that ends with a NUL");
    starts(
        put(24, 0x1801),
        "item Wemb at byte 512 is of type packed8avx2; float32, float16, int8 and intgemm8 can be read",
    );
    starts(put(24, 0x77), "item Wemb at byte 512 is of type 0x77;");
    starts(put(32, 9), "the shape of item Wemb at byte ");
    starts(
        put(40, 9),
        "item Wemb at byte 512 of type intgemm8 and shape [2, 3] has 9 bytes, but 10 are expected",
    );
    starts(
        put(40, 257),
        "item Wemb at byte 512 of type intgemm8 and shape [2, 3] has 257 bytes, but 10 are expected",
    );
    for (multiplier, shown) in [(0.0f32, "0"), (-1.0, "-1"), (f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        let mut file = file.clone();
        file[518..522].copy_from_slice(&multiplier.to_le_bytes());
        let want = format!("item Wemb at byte 512 has the multiplier {shown}; a positive number is expected");
        starts(refusal(&file), &want);
    }
    for length in 0..file.len() {
        assert!(bin::read(&file[..length]).is_err(), "{length} bytes");
    }
    let mut vector = bin(&[NewItem::floats("a", &[6], vec![0.0; 6])]);
    vector[24..32].copy_from_slice(&0x4101u64.to_le_bytes());
    assert_eq!(refusal(&vector), "item a at byte 256 is of type intgemm8, but its shape [6] is no matrix");
    let twice = bin(&[NewItem::floats("a", &[1], vec![1.0]), NewItem::floats("a", &[1], vec![1.0])]);
    assert_eq!(refusal(&twice), "item a is there twice");
    let nan = open(&bin(&[NewItem::floats("a", &[2], vec![1.0, f32::NAN])])).unwrap();
    let error = nan.need("a").unwrap().floats().unwrap_err().to_string();
    assert!(error.ends_with("holds NaN at 1: these weights are damaged"), "{error}");
}

#[test]
fn shapes_that_overflow_are_refused() {
    let file = bin(&[NewItem::floats("a", &[2, 2, 2, 2], vec![0.0; 16])]);
    // After two numbers, a header and the name with its NUL.
    let shape = 16 + 32 + 2;
    for n in [i32::MAX, -1, 0, i32::MIN] {
        let mut file = file.clone();
        (0..4).for_each(|i| file[shape + 4 * i..shape + 4 * i + 4].copy_from_slice(&n.to_le_bytes()));
        let want = if n > 0 {
            "item a at byte 256 has the impossible shape"
        } else {
            "the shape of item a at byte "
        };
        assert!(refusal(&file).starts_with(want), "{n}: {}", refusal(&file));
    }
}

#[test]
fn npz_files_that_lie_are_refused() {
    let items = [NewItem::floats("a", &[2, 3], vec![0.0; 6]), NewItem::floats("b", &[1], vec![0.0])];
    let file = npz(&items);
    let replace = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = file.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        let mut file = file.clone();
        file[at..at + to.len()].copy_from_slice(to.as_bytes());
        refusal(&file)
    };
    for (from, to, want) in [
        ("<f4", ">f4", "item a at byte 35 is of type \">f4\"; <f4, <f2 and |i1 can be read"),
        ("<f4", "<f8", "item a at byte 35 is of type \"<f8\""),
        ("<f4", "<f2", "item a at byte 35 of type float16 and shape [2, 3] has 24 bytes of data"),
        ("False", "True ", "item a at byte 35 is in Fortran's order"),
        ("(2, 3)", "(2, 0)", "item a at byte 35 has the shape (2, 0), with a dimension below 1"),
        ("(2, 3)", "(2, x)", "item a at byte 35 has the shape (2, x)"),
        ("(2, 3)", "(2, 4)", "item a at byte 35 of type float32 and shape [2, 4] has 24 bytes of data"),
        ("'shape'", "'shade'", "item a at byte 35 has a header without shape"),
        ("'descr'", "'drcse'", "item a at byte 35 has a header without descr"),
        ("\u{93}NUMPY".trim_start_matches('\u{93}'), "NUMBY", "item a at byte 35 is not a NumPy array"),
    ] {
        let message = replace(from, to);
        assert!(message.starts_with(want), "{from} to {to}: {message}");
    }
    for length in 0..file.len() {
        assert!(items::parse(&file[..length], u64::MAX).is_err(), "{length} bytes");
    }
    let same = npz(&[items[0].clone(), items[0].clone()]);
    assert!(refusal(&same).starts_with("the archive has two items called \"a\""));
}

/// An archive with one deflated member `a.npy`, which holds zeros.
fn deflated_zeros(count: usize) -> Vec<u8> {
    let stored = npz(&[NewItem::floats("a", &[1, count], vec![0.0; count])]);
    let data = 30 + "a.npy".len();
    let directory = stored.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    io::Write::write_all(&mut encoder, &stored[data..directory]).unwrap();
    let packed = encoder.finish().unwrap();
    let mut file = [&stored[..data], &packed[..], &stored[directory..]].concat();
    let moved = data + packed.len();
    let mut put = |at: usize, value: u32| file[at..at + 4].copy_from_slice(&value.to_le_bytes());
    // Packed sizes, and the offset of the directory.
    put(18, packed.len() as u32);
    put(moved + 20, packed.len() as u32);
    put(moved + stored.len() - directory - 6, moved as u32);
    // The method.
    (file[8], file[moved + 10]) = (8, 8);
    file
}

#[test]
fn archives_that_unpack_to_too_much_are_refused() {
    assert_eq!(open(&deflated_zeros(200_000)).unwrap().need("a").unwrap().shape, [1, 200_000]);
    let file = deflated_zeros(1 << 20);
    let message = refusal(&file);
    let most = 64 * file.len() + (1 << 20);
    let want = format!("but all items of an archive of {} bytes may unpack to {most}", file.len());
    assert!(message.starts_with("item a at byte 35 unpacks to 41943"), "{message}");
    assert!(message.ends_with(&want), "{message}");
    // An archive that is compressed once more may not unpack to more than its compressed size
    // allows.
    let file = deflated_zeros(270_000);
    assert_eq!(open(&file).unwrap().need("a").unwrap().shape, [1, 270_000]);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    io::Write::write_all(&mut encoder, &file).unwrap();
    let twice = encoder.finish().unwrap();
    assert!(twice.len() < file.len() / 4);
    let message = refusal(&twice);
    assert!(message.starts_with("item a at byte 35 unpacks to 1080"), "{message}");
}

#[test]
fn an_output_matrix_has_the_multiplier_that_names_no_matrix() {
    let mut items = example();
    items.push(NewItem::floats("none_QuantMultA", &[1, 1], vec![3.0]));
    let file = open(&bin(&items)).unwrap();
    for name in ["Wemb", "decoder_ff_logit_out_Wt", "decoder_ff_logit_out_W"] {
        assert_eq!(file.input_multiplier(name).unwrap(), Some(3.0), "{name}");
    }
    assert_eq!(file.input_multiplier("layer_W").unwrap(), Some(12.5));
}

#[test]
fn stored_members_that_are_damaged_are_refused() {
    let mut file = npz(&[NewItem::floats("a", &[2, 3], vec![1.0; 6])]);
    let at = items::parse(&file, u64::MAX).unwrap().entries[0].range.start;
    file[at + 2] ^= 1;
    assert_eq!(refusal(&file), "item a at byte 35 is damaged: its checksum does not match");
    // One of the two sizes in the directory.
    let directory = file.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    file[directory + 24] ^= 1;
    let message = refusal(&file);
    assert!(message.starts_with("item a at byte 35 is not compressed, but the archive's "), "{message}");
}

#[test]
fn compressed_files_are_opened() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    io::Write::write_all(&mut encoder, &bin(&example())).unwrap();
    assert_eq!(open(&encoder.finish().unwrap()).unwrap().items().count(), 6);
    let zst =
        ruzstd::encoding::compress_to_vec(&bin(&example())[..], ruzstd::encoding::CompressionLevel::Fastest);
    assert_eq!(open(&zst).unwrap().items().count(), 6);
}

/// The seeds of the fuzz targets come from our writers; REGARD_SEEDS=1 writes them.
#[test]
fn seeds_are_files_of_the_writers() {
    let floats: Vec<NewItem> =
        example().into_iter().filter(|item| !matches!(item.data, NewData::Int8(_))).collect();
    let mut lex = Vec::new();
    LexicalShortlist::new(2, 3, &[vec![], vec![9, 4], vec![4, 30, 12], vec![1]]).write(&mut lex).unwrap();
    let vocabulary = "\"</s>\": 0\n<unk>: 1\n▁a: 2\n\"\\\"\\x41\": 3\n'#': 4\n";
    for (name, bytes) in [
        ("marian_bin/items.bin", bin(&example())),
        ("marian_npz/items.npz", npz(&floats)),
        ("marian_lex/lists.bin", lex),
        ("marian_yml/student.yml", STUDENT.as_bytes().to_vec()),
        ("marian_yml/vocabulary.yml", vocabulary.as_bytes().to_vec()),
        ("marian_yml/vocabulary.json", br#"{"</s>": 0, "<unk>": 1, "a": 2}"#.to_vec()),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
        if std::env::var_os("REGARD_SEEDS").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        assert!(fs::read(&path).unwrap() == bytes, "{name}: REGARD_SEEDS=1 writes it anew");
    }
}
