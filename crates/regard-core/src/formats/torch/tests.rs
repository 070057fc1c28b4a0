//! Tests on files of torch.save (goldens from tools/goldens/torch_files.py), on synthetic and on
//! damaged ones.

use super::*;
use crate::formats::weights::Weights;
use std::fs;

fn golden(name: &str) -> Vec<u8> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/torch");
    fs::read(root.join(name)).unwrap()
}

const VIEWS: [&str; 2] = ["views-archive.bin", "views-older.bin"];

#[test]
fn both_forms_hold_the_same_tensors() {
    let count = |n: usize| (0..n).map(|i| i as f32).collect::<Vec<_>>();
    let transposed: Vec<f32> = (0..4).flat_map(|c| (0..3).map(move |r| (4 * r + c) as f32)).collect();
    for name in VIEWS {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pytorch_model.bin");
        fs::write(&path, golden(name)).unwrap();
        let file = Weights::open(folder.path()).unwrap();
        assert_eq!(file.len(), 12, "{name}");
        for (tensor, shape, want) in [
            ("whole", &[3, 4][..], count(12)),
            ("transposed", &[4, 3], transposed.clone()),
            ("row", &[4], vec![4.0, 5.0, 6.0, 7.0]),
            ("column", &[3], vec![2.0, 6.0, 10.0]),
            ("corner", &[2, 2], vec![6.0, 7.0, 10.0, 11.0]),
            ("half", &[3, 4], count(12)),
            ("rough", &[3, 4], count(12)),
            ("parameter", &[3, 4], count(12)),
            ("nothing", &[0, 3], vec![]),
            ("number", &[], vec![3.5]),
        ] {
            let found = file.tensor(tensor).unwrap();
            assert_eq!(found.shape, shape, "{name}: {tensor}");
            let mut got = vec![-1.0; want.len()];
            found.read(&mut got).unwrap();
            assert_eq!(got, want, "{name}: {tensor}");
            file.release(tensor);
        }
        for (tensor, kind) in [("ids", "I64"), ("wide", "F64")] {
            let error = file.tensor(tensor).unwrap().read(&mut [0.0; 12]).unwrap_err();
            assert_eq!(error, format!("is of type {kind}; F32, F16, BF16 and I8 can be read"));
        }
    }
}

#[test]
fn a_file_cut_off_anywhere_is_refused() {
    for name in VIEWS {
        let whole = golden(name);
        for length in 0..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{name} cut to {length}");
        }
    }
    assert_eq!(read(b"").unwrap_err(), "0 bytes that are not a torch.save file, or a truncated one");
}

/// Changing any single byte gives an error or not, but no panic and no range outside the file.
#[test]
fn a_wrong_byte_does_no_harm() {
    for name in VIEWS {
        let whole = golden(name);
        for at in 0..whole.len() {
            for value in [0, 1, b'(', b'.', 0x7f, 0x80, 0xff] {
                let mut broken = whole.clone();
                broken[at] = value;
                for entry in read(&broken).unwrap_or_default().into_values() {
                    assert!(entry.range.start <= entry.range.end && entry.range.end <= whole.len());
                }
            }
        }
    }
}

fn text(text: &str) -> Vec<u8> {
    [b"X", &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

fn int(n: i64) -> Vec<u8> {
    [b"\x8a\x08", &n.to_le_bytes()[..]].concat()
}

fn tuple(items: &[Vec<u8>]) -> Vec<u8> {
    [b"(", &items.concat()[..], b"t"].concat()
}

fn ints(items: &[i64]) -> Vec<u8> {
    tuple(&items.iter().map(|&n| int(n)).collect::<Vec<_>>())
}

/// A tensor `w` of floats: the storage's size and view, offset, shape, strides.
fn table(size: i64, view: &[u8], offset: i64, shape: &[i64], strides: &[i64]) -> Vec<u8> {
    let storage = b"ctorch\nFloatStorage\n".to_vec();
    let id = tuple(&[text("storage"), storage, text("k"), text("cpu"), int(size), view.to_vec()]);
    let arguments = tuple(&[[id, b"Q".to_vec()].concat(), int(offset), ints(shape), ints(strides)]);
    [b"\x80\x02}", &text("w")[..], b"ctorch._utils\n_rebuild_tensor_v2\n", &arguments, b"Rs."].concat()
}

/// A file in the older format with one storage of this many floats.
fn older(table: &[u8], numbers: u64) -> Vec<u8> {
    let mut file = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}.".to_vec();
    file.extend(table);
    file.extend([b"\x80\x02](", &text("k")[..], b"e.", &numbers.to_le_bytes()].concat());
    file.extend((0..numbers.min(100)).flat_map(|i| (i as f32).to_le_bytes()));
    file
}

/// An archive of uncompressed entries; with `large`, sizes are in the zip64 fields.
fn archive(entries: &[(&str, &[u8])], large: bool) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in entries {
        let at = file.len() as u64;
        let (short, extra) = match large {
            false => ([bytes.len() as u32, at as u32], Vec::new()),
            true => {
                let sizes = [bytes.len() as u64, bytes.len() as u64, at].map(u64::to_le_bytes).concat();
                ([u32::MAX; 2], [&[1, 0, 24, 0], &sizes[..]].concat())
            }
        };
        let size = short[0].to_le_bytes();
        let lengths = [(name.len() as u16).to_le_bytes(), (extra.len() as u16).to_le_bytes()].concat();
        file.extend(
            [&b"PK\x03\x04"[..], &[0; 14], &size, &size, &(name.len() as u16).to_le_bytes(), &[3, 0]]
                .concat(),
        );
        file.extend([name.as_bytes(), &[9; 3], bytes].concat());
        directory.extend(
            [&b"PK\x01\x02"[..], &[0; 16], &size, &size, &lengths, &[0; 10], &short[1].to_le_bytes()]
                .concat(),
        );
        directory.extend([name.as_bytes(), &extra].concat());
    }
    let (start, length) = (file.len() as u64, directory.len() as u64);
    file.extend(directory);
    if large {
        let end = file.len() as u64;
        file.extend([&b"PK\x06\x06"[..], &[0; 36], &length.to_le_bytes(), &start.to_le_bytes()].concat());
        file.extend([&b"PK\x06\x07"[..], &[0; 4], &end.to_le_bytes(), &[0; 4]].concat());
    }
    let places = if large { [u32::MAX; 2] } else { [length as u32, start as u32] };
    file.extend(
        [&b"PK\x05\x06"[..], &[0; 8], &places[0].to_le_bytes(), &places[1].to_le_bytes(), &[0; 2]].concat(),
    );
    file
}

fn floats(n: usize) -> Vec<u8> {
    (0..n).flat_map(|i| (i as f32).to_le_bytes()).collect()
}

#[test]
fn archives_small_and_large_are_read() {
    let table = table(6, b"N", 1, &[2, 2], &[2, 1]);
    let numbers = floats(6);
    for large in [false, true] {
        let entries =
            [("x/data.pkl", &table[..]), ("x/byteorder", &b"little"[..]), ("x/data/k", &numbers[..])];
        let file = archive(&entries, large);
        let found = &read(&file).unwrap()["w"];
        assert_eq!((found.shape.as_slice(), &found.strides), (&[2, 2][..], &None));
        assert_eq!(file[found.range.clone()], numbers[4..20]);
        for (change, want) in [
            (
                (1, ("x/byteorder", &b"big"[..])),
                "its numbers are in the byte order \"big\"; \"little\" can be read",
            ),
            ((2, ("x/data/other", &numbers[..])), "storage \"k\" of tensor w is not in the file"),
            (
                (2, ("x/data/k", &numbers[..20])),
                "storage \"k\" of tensor w should have 6 numbers of F32, but has 5",
            ),
            ((0, ("x/y/data.pkl", &table[..])), "the archive has no data.pkl"),
            ((0, ("x/data.pkl", &[][..])), "the pickle at its byte 0: it is cut off"),
        ] {
            let mut entries = entries;
            entries[change.0] = change.1;
            assert_eq!(read(&archive(&entries, large)).unwrap_err(), want);
        }
    }
}

#[test]
fn a_part_of_a_storage_is_a_storage() {
    let view = tuple(&[text("part"), int(2), int(3)]);
    let file = older(&table(6, &view, 1, &[2], &[1]), 6);
    let found = &read(&file).unwrap()["w"];
    assert_eq!(file[found.range.clone()], floats(5)[12..20]);
    // Outside the view, though within the storage.
    let error = read(&older(&table(6, &view, 2, &[2], &[1]), 6)).unwrap_err();
    assert_eq!(error, "tensor w reaches beyond its storage, which has 3 numbers");
    let beyond = tuple(&[text("part"), int(4), int(3)]);
    let error = read(&older(&table(6, &beyond, 0, &[2], &[1]), 6)).unwrap_err();
    assert_eq!(error, "storage \"k\" of tensor w should have 6 numbers of F32, but has 6");
}

#[test]
fn tensors_that_lie_are_refused() {
    let huge = i64::MAX;
    for (size, offset, shape, strides, want) in [
        (6, 0, &[7][..], &[1][..], "tensor w of shape [7] has more numbers than its storage, which has 6"),
        (
            6,
            0,
            &[1_000_000, 6],
            &[0, 1],
            "tensor w of shape [1000000, 6] has more numbers than its storage, which has 6",
        ),
        (6, 5, &[2], &[1], "tensor w reaches beyond its storage, which has 6 numbers"),
        (6, huge, &[1], &[1], "tensor w reaches beyond its storage, which has 6 numbers"),
        (6, 1, &[2, 2], &[huge, huge], "tensor w reaches beyond its storage, which has 6 numbers"),
        (6, 0, &[2], &[6], "tensor w reaches beyond its storage, which has 6 numbers"),
        (
            6,
            0,
            &[huge, huge],
            &[1, 1],
            "tensor w has the impossible shape [9223372036854775807, 9223372036854775807]",
        ),
        (7, 0, &[1], &[1], "storage \"k\" of tensor w should have 7 numbers of F32, but has 6"),
        (
            huge,
            0,
            &[1],
            &[1],
            "storage \"k\" of tensor w should have 9223372036854775807 numbers of F32, but has 6",
        ),
    ] {
        assert_eq!(read(&older(&table(size, b"N", offset, shape, strides), 6)).unwrap_err(), want);
    }
    for (size, offset, shape, strides) in [
        (6, -1, &[1][..], &[1][..]),
        (6, 0, &[-1], &[1]),
        (6, 0, &[1], &[-1]),
        (6, 0, &[1], &[1, 1]),
        (6, 0, &[1; 9], &[1; 9]),
    ] {
        let error = read(&older(&table(size, b"N", offset, shape, strides), 6)).unwrap_err();
        assert!(error.ends_with("a tensor that makes no sense"), "{error}");
    }
    assert!(
        read(&older(&table(-6, b"N", 0, &[1], &[1]), 6))
            .unwrap_err()
            .ends_with("something else than a storage")
    );
    // Empty ones may have any strides.
    let empty = read(&older(&table(6, b"N", huge, &[0, 1 << 40, 1 << 40], &[huge, huge, huge]), 6)).unwrap();
    assert!(empty["w"].range.is_empty());
}

#[test]
fn older_files_that_lie_are_refused() {
    let good = table(6, b"N", 0, &[6], &[1]);
    let whole = older(&good, 6);
    for numbers in [7, u64::MAX, u64::MAX / 4, 1 << 40] {
        let mut file = whole.clone();
        let at = file.len() - 32;
        file[at..at + 8].copy_from_slice(&numbers.to_le_bytes());
        assert_eq!(read(&file).unwrap_err(), "storage \"k\" is missing or not whole: the file is cut off");
    }
    let change = |from: &[u8], to: &[u8]| {
        let at = whole.windows(from.len()).position(|window| window == from).unwrap();
        read(&[&whole[..at], to, &whole[at + from.len()..]].concat()).unwrap_err()
    };
    assert_eq!(change(b"M\xe9\x03", b"M\xea\x03"), "version 1002 of torch.save's file; 1001 can be read");
    assert_eq!(change(b"M\xe9\x03", b"N"), "the version of torch.save's file is missing");
    assert_eq!(change(b"\x8a\x0al", b"\x8a\x0am"), "a pickle, but not one of torch.save");
    let big = [b"\x80\x02}", &text("little_endian")[..], b"\x89s."].concat();
    assert_eq!(change(b"\x80\x02}.", &big), "its numbers are big-endian; little-endian ones can be read");
    assert_eq!(
        change(b"](", b"N("),
        "the pickle at its byte 10: values are added to what is neither table nor list"
    );
    let error = change(&[b"](", &text("k")[..]].concat(), &[b"](", &text("z")[..]].concat());
    assert_eq!(error, "storage \"z\" belongs to no tensor");
    assert_eq!(read(&older(b"\x80\x02N.", 0)).unwrap_err(), "storage \"k\" belongs to no tensor");
}

#[test]
fn archives_that_lie_are_refused() {
    let table = table(6, b"N", 0, &[6], &[1]);
    let file = archive(&[("x/data.pkl", &table), ("x/data/k", &floats(6))], false);
    let directory = file.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    let put = |at: usize, bytes: &[u8]| {
        let mut file = file.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        read(&file).unwrap_err()
    };
    let compressed = "\"x/data.pkl\" in the archive is compressed or encrypted, which torch.save never does";
    assert_eq!(put(directory + 10, &[8]), compressed);
    assert_eq!(put(directory + 8, &[1]), compressed);
    let outside = "\"x/data.pkl\" in the archive reaches beyond the end of the file: it is cut off";
    assert_eq!(put(directory + 20, &[0xfe, 0xff, 0xff, 0x7f, 0xfe, 0xff, 0xff, 0x7f]), outside);
    assert_eq!(put(directory + 42, &[0xfe, 0xff, 0xff, 0xff]), outside);
    assert_eq!(put(directory + 42, &[1]), outside);
    for (at, bytes) in [(directory, [0; 4]), (directory + 28, [0xff; 4]), (directory + 42, [0xff; 4])] {
        assert_eq!(put(at, &bytes), "the archive's directory is damaged");
    }
    let end = file.len() - 22;
    let cut = "the archive's directory is missing: the file is cut off";
    assert_eq!(put(end + 12, &[0xff; 4]), cut);
    assert_eq!(put(end + 16, &[0xff; 4]), cut);
    assert_eq!(put(end + 20, &[1]), cut);
    // A comment after the end is allowed.
    let mut commented = file.clone();
    commented[end + 20] = 5;
    commented.extend(b"hello");
    assert_eq!(read(&commented).unwrap().len(), 1);
}
