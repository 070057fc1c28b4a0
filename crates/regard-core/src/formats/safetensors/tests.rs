//! Tests on valid files and on damaged ones.

use super::*;
use crate::formats::weights::Weights;
use std::fs;

fn open(path: &Path) -> Result<Weights> {
    Weights::open_file(path, read)
}

/// A file with this header, preceded by its correct length, and `data` zero bytes.
fn file(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

fn refusal(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    fs::write(&path, bytes).unwrap();
    let error = open(&path).unwrap_err().to_string();
    error.strip_prefix(&format!("{}: ", path.display())).expect("the file is named").to_owned()
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let (a, b) = ([1.0, -2.5, 0.0, 1e-3, 65504.0, f32::MIN_POSITIVE], [0.1f32]);
    for (dtype, tolerance) in [(DType::F32, 0.0), (DType::F16, 1e-3), (DType::Bf16, 8e-3)] {
        let tensors = [
            Writable { name: "a".into(), shape: vec![3, 2], values: &a, matrix: false },
            Writable { name: "b".into(), shape: vec![1], values: &b, matrix: false },
        ];
        write(&path, &tensors, dtype).unwrap();
        let read = open(&path).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read.bytes(), fs::read(&path).unwrap().len());
        assert_eq!(read.dtypes().into_iter().collect::<Vec<_>>(), [(dtype, 7)]);
        for (name, shape, want) in [("a", &[3, 2][..], &a[..]), ("b", &[1], &b)] {
            let tensor = read.tensor(name).unwrap();
            assert_eq!(tensor.shape, shape);
            let mut got = vec![0.0; want.len()];
            tensor.read(&mut got).unwrap();
            for (got, want) in got.iter().zip(want) {
                assert!((got - want).abs() <= tolerance * want.abs().max(1e-4), "{got} is not {want}");
            }
        }
        assert!(read.tensor("c").is_none());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn damaged_numbers_are_neither_written_nor_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let save = |values: &[f32], dtype| {
        let tensors = [Writable { name: "w".into(), shape: vec![values.len()], values, matrix: false }];
        write(&path, &tensors, dtype).map_err(|e| e.to_string())
    };
    save(&[1.0, 70000.0], DType::F32).unwrap();
    let error = save(&[1.0, 70000.0], DType::F16).unwrap_err();
    assert!(error.ends_with("tensor w holds 70000, which is too large for f16; use bf16 or f32"), "{error}");
    let error = save(&[1.0, f32::NAN], DType::F32).unwrap_err();
    assert!(error.ends_with("tensor w holds NaN at 1: a model like this is not saved"), "{error}");
    // The previous file is untouched.
    assert_eq!(open(&path).unwrap().dtypes().into_values().sum::<usize>(), 2);

    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.len() - 4;
    bytes[at..].copy_from_slice(&f32::NEG_INFINITY.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    let read = open(&path).unwrap();
    let error = read.tensor("w").unwrap().read(&mut [0.0; 2]).unwrap_err();
    assert_eq!(error, "holds -inf at 1: these weights are damaged");
}

#[test]
fn other_types_are_measured_and_refused() {
    let header = r#"{"w":{"dtype":"I64","shape":[2],"data_offsets":[0,16]}}"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    fs::write(&path, file(header, 16)).unwrap();
    let error = open(&path).unwrap().tensor("w").unwrap().read(&mut [0.0; 2]).unwrap_err();
    assert_eq!(error, "is of type I64; F32, F16, BF16 and I8 can be read");
    let error = refusal(&file(&header.replace("I64", "Q3"), 16));
    assert!(error.contains("tensor w: unknown type \"Q3\""), "{error}");
}

#[test]
fn lengths_that_lie_are_refused() {
    let good = file(r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, 8);
    for length in
        [u64::MAX, i64::MIN as u64, u64::MAX - 7, 1 << 40, MAX_HEADER_BYTES + 1, good.len() as u64 - 7]
    {
        let mut bytes = good.clone();
        bytes[..8].copy_from_slice(&length.to_le_bytes());
        let want = format!(
            "the header should be {length} bytes long, but the file has {}: it is cut off or not safetensors",
            good.len()
        );
        assert_eq!(refusal(&bytes), want);
    }
    assert_eq!(refusal(b""), "0 bytes are too few for a safetensors file");
    assert_eq!(refusal(&[0; 7]), "7 bytes are too few for a safetensors file");
    assert!(refusal(&[0; 8]).starts_with("the header of the safetensors file cannot be read: EOF"));
}

#[test]
fn a_file_cut_off_anywhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let values = [1.0; 6];
    let tensors = [
        Writable { name: "a".into(), shape: vec![2, 2], values: &values[..4], matrix: false },
        Writable { name: "b".into(), shape: vec![2], values: &values[4..], matrix: false },
    ];
    write(&path, &tensors, DType::F16).unwrap();
    let bytes = fs::read(&path).unwrap();
    for length in 0..bytes.len() {
        refusal(&bytes[..length]);
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(
        refusal(&longer),
        "the tensors take 12 bytes, but the file has 13 for them: it is cut off or damaged"
    );
    // Change any single byte of the header: an error or not, but no panic and no range outside the
    // file.
    for at in 0..bytes.len() - 12 {
        for value in [0, b'"', b'9', b'-', b'{', b']', 0xff] {
            let mut broken = bytes.clone();
            broken[at] = value;
            if let Ok(tensors) = super::read(&broken) {
                assert!(tensors.values().all(|entry| entry.range.end <= bytes.len()));
            }
        }
    }
}

#[test]
fn tensors_that_lie_are_refused() {
    let one = |shape: &str, offsets: &str| {
        file(&format!(r#"{{"w":{{"dtype":"F32","shape":{shape},"data_offsets":{offsets}}}}}"#), 8)
    };
    let two = |first: &str, second: &str| {
        let entry = |name: &str, offsets: &str| {
            format!(r#""{name}":{{"dtype":"F32","shape":[2],"data_offsets":{offsets}}}"#)
        };
        file(&format!("{{{},{}}}", entry("v", first), entry("w", second)), 16)
    };
    for (bytes, want) in [
        (one("[2]", "[8,0]"), "tensor w ends at byte 0, before it begins at 8"),
        (one("[3]", "[0,8]"), "tensor w of shape [3] needs 12 bytes of F32, but has 8"),
        (one("[0]", "[0,8]"), "tensor w of shape [0] needs 0 bytes of F32, but has 8"),
        (
            one("[]", "[0,4]"),
            "the tensors take 4 bytes, but the file has 8 for them: it is cut off or damaged",
        ),
        (
            one("[4294967296,4294967296]", "[0,8]"),
            "tensor w has the impossible shape [4294967296, 4294967296]",
        ),
        (one("[9223372036854775807]", "[0,8]"), "tensor w has the impossible shape [9223372036854775807]"),
        (
            one("[4611686018427387903]", "[3,18446744073709551615]"),
            "tensor w at bytes 3 to 18446744073709551615 leaves a gap before it: byte 0 comes next",
        ),
        (two("[0,8]", "[4,12]"), "tensor w at bytes 4 to 12 overlaps another: byte 8 comes next"),
        (two("[0,8]", "[0,8]"), "tensor w at bytes 0 to 8 overlaps another: byte 8 comes next"),
        (two("[8,16]", "[16,24]"), "tensor v at bytes 8 to 16 leaves a gap before it: byte 0 comes next"),
    ] {
        assert_eq!(refusal(&bytes), want);
    }
    for (bytes, part) in [
        (one("[-1]", "[0,8]"), "tensor w: invalid value: integer `-1`"),
        (one("[2]", "[-8,0]"), "tensor w: invalid value: integer `-8`"),
        (one("[2]", "[0]"), "tensor w: invalid length 1"),
        (one("[1e99]", "[0,8]"), "tensor w: invalid type: floating point"),
        (one("[1,1,1,1,1,1,1,1,2]", "[0,8]"), "tensor w: invalid length 9, expected a shape of at most 8"),
        (one("\"2\"", "[0,8]"), "tensor w: invalid type: string \"2\""),
        (file(r#"{"w":[]}"#, 0), "tensor w: invalid length 0"),
        (file("[]", 0), "invalid type: sequence, expected an object of tensors"),
        (file(&"[".repeat(10_000), 0), "invalid type: sequence"),
        (file(&format!(r#"{{"__metadata__":{}"#, "[".repeat(10_000)), 0), "EOF while parsing a list"),
        (file("\u{0}\u{1}", 0), "expected value"),
        (file(r#"{"":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, 8), "a tensor has no name"),
        (
            file(
                r#"{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#,
                8,
            ),
            "tensor w is there twice",
        ),
    ] {
        let error = refusal(&bytes);
        assert!(error.contains(part), "{error:?} lacks {part:?}");
    }
}

/// Eight tensors of valid sizes, whose sum overflows.
#[test]
fn offsets_whose_sum_overflows_are_refused() {
    let size = (1u64 << 61) - 1;
    let entries: Vec<String> = (0..8)
        .map(|i| {
            let (from, to) = (i * size, (i + 1) * size);
            format!(r#""t{i}":{{"dtype":"U8","shape":[{size}],"data_offsets":[{from},{to}]}}"#)
        })
        .collect();
    let error = refusal(&file(&format!("{{{}}}", entries.join(",")), 0));
    assert!(error.starts_with("the tensors take 18446744073709551608 bytes, but the file has 0"), "{error}");
}
