//! Decodes the records with a small protobuf reader that shares no code with the writer.

use std::collections::BTreeMap;

use super::*;

/// A decoded protobuf value.
#[derive(Debug, Clone, PartialEq)]
enum Field {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    Bytes(Vec<u8>),
}

impl Field {
    fn bytes(&self) -> &[u8] {
        match self {
            Field::Bytes(b) => b,
            other => panic!("expected bytes, found {other:?}"),
        }
    }
}

fn decode(mut bytes: &[u8]) -> BTreeMap<u64, Vec<Field>> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let b = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(b & 0x7F) << shift;
            if b < 0x80 {
                return value;
            }
            shift += 7;
        }
    }
    let mut fields: BTreeMap<u64, Vec<Field>> = BTreeMap::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Field::Varint(varint(&mut bytes)),
            1 => {
                let (head, tail) = bytes.split_at(8);
                bytes = tail;
                Field::Fixed64(head.try_into().unwrap())
            }
            2 => {
                let n = varint(&mut bytes) as usize;
                let (head, tail) = bytes.split_at(n);
                bytes = tail;
                Field::Bytes(head.to_vec())
            }
            5 => {
                let (head, tail) = bytes.split_at(4);
                bytes = tail;
                Field::Fixed32(head.try_into().unwrap())
            }
            other => panic!("wire type {other}"),
        };
        fields.entry(key >> 3).or_default().push(value);
    }
    fields
}

fn events(path: &Path) -> Vec<BTreeMap<u64, Vec<Field>>> {
    let bytes = fs::read(path).unwrap();
    let mut rest = &bytes[..];
    let mut events = Vec::new();
    while !rest.is_empty() {
        let n = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
        assert_eq!(u32::from_le_bytes(rest[8..12].try_into().unwrap()), masked_crc(&rest[..8]));
        let payload = &rest[12..12 + n];
        assert_eq!(u32::from_le_bytes(rest[12 + n..16 + n].try_into().unwrap()), masked_crc(payload));
        events.push(decode(payload));
        rest = &rest[16 + n..];
    }
    events
}

/// Tag, step and value of every scalar in a file.
fn scalars(path: &Path) -> Vec<(String, u64, f32)> {
    let mut found = Vec::new();
    for event in events(path) {
        let Field::Varint(step) = event[&2][0] else { panic!("step is no varint") };
        for summary in event.get(&5).into_iter().flatten() {
            for entry in decode(summary.bytes()).get(&1).into_iter().flatten() {
                let entry = decode(entry.bytes());
                if let Some(Field::Fixed32(value)) = entry.get(&2).map(|v| v[0].clone()) {
                    let tag = String::from_utf8(entry[&1][0].bytes().to_vec()).unwrap();
                    found.push((tag, step, f32::from_le_bytes(value)));
                }
            }
        }
    }
    found
}

#[test]
fn checksums_of_the_standard_vectors() {
    // RFC 3720, appendix B.4, and the usual check value.
    assert_eq!(crc32c(b"123456789"), 0xE306_9283);
    assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
    assert_eq!(crc32c(&[0xFF; 32]), 0x62A8_AB43);
    assert_eq!(crc32c(&(0..32).collect::<Vec<u8>>()), 0x46DD_794E);
    assert_eq!(crc32c(&(0..32).rev().collect::<Vec<u8>>()), 0x113F_DB5C);
    assert_eq!(crc32c(b""), 0);
    assert_eq!(masked_crc(b""), 0xA282_EAD8);
}

#[test]
fn varints_at_their_boundaries() {
    for (value, expected) in [(0, vec![0]), (127, vec![0x7F]), (128, vec![0x80, 1]), (300, vec![0xAC, 2])] {
        let mut out = Vec::new();
        varint(&mut out, value);
        assert_eq!(out, expected);
    }
    let mut out = Vec::new();
    varint(&mut out, u64::MAX);
    assert_eq!(out.len(), 10);
}

#[test]
fn a_file_begins_with_its_version_and_holds_the_scalars() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = EventWriter::create(folder.path().join("logs")).unwrap();
    writer.scalars(1, &[("train/loss", 9.25), ("train/learning_rate", 1e-7)]).unwrap();
    writer.scalar("valid/bleu", 300, f32::INFINITY).unwrap();
    let path = writer.path().to_path_buf();
    drop(writer);

    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let rest = name.strip_prefix("events.out.tfevents.").unwrap();
    let (seconds, host) = rest.split_once('.').unwrap();
    assert_eq!(seconds.len(), 10);
    assert!(seconds.parse::<u64>().unwrap() > 1_600_000_000);
    assert!(!host.is_empty());

    let all = events(&path);
    assert_eq!(all.len(), 3);
    assert_eq!(all[0][&3][0].bytes(), b"brain.Event:2");
    let Field::Fixed64(time) = all[0][&1][0] else { panic!("time is no double") };
    assert!(f64::from_le_bytes(time) > 1.6e9);
    assert_eq!(
        scalars(&path),
        [
            ("train/loss".to_string(), 1, 9.25),
            ("train/learning_rate".to_string(), 1, 1e-7),
            ("valid/bleu".to_string(), 300, f32::INFINITY),
        ]
    );
}

#[test]
fn a_text_is_a_string_tensor_of_the_text_plugin() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = EventWriter::create(folder.path()).unwrap();
    writer.text("samples", 7, "Grüße → 你好").unwrap();
    writer.flush().unwrap();
    let all = events(writer.path());
    let entry = decode(decode(all[1][&5][0].bytes())[&1][0].bytes());
    assert_eq!(entry[&1][0].bytes(), b"samples");
    let tensor = decode(entry[&8][0].bytes());
    assert_eq!(tensor[&1][0], Field::Varint(7));
    assert_eq!(tensor[&8][0].bytes(), "Grüße → 你好".as_bytes());
    assert_eq!(decode(decode(tensor[&2][0].bytes())[&2][0].bytes())[&1][0], Field::Varint(1));
    let metadata = decode(entry[&9][0].bytes());
    assert_eq!(decode(metadata[&1][0].bytes())[&1][0].bytes(), b"text");
}

#[test]
fn two_files_within_a_second_are_two_files() {
    let folder = tempfile::tempdir().unwrap();
    let first = EventWriter::create(folder.path()).unwrap();
    let second = EventWriter::create(folder.path()).unwrap();
    assert_ne!(first.path(), second.path());
    assert_eq!(newest(folder.path()).unwrap().unwrap(), second.path());
}

#[test]
fn resume_appends_after_cutting_off_a_torn_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = EventWriter::create(folder.path()).unwrap();
    let path = writer.path().to_path_buf();
    let mut last = 0;
    for step in 1..=5 {
        writer.flush().unwrap();
        last = fs::metadata(&path).unwrap().len() as usize;
        writer.scalar("loss", step, step as f32).unwrap();
    }
    drop(writer);
    let whole = fs::read(&path).unwrap();
    for cut in 1..whole.len() - last {
        fs::write(&path, &whole[..whole.len() - cut]).unwrap();
        let mut writer = EventWriter::resume(folder.path(), 3).unwrap();
        assert_eq!(writer.path(), path);
        writer.scalar("loss", 4, 40.0).unwrap();
        drop(writer);
        assert_eq!(&fs::read(&path).unwrap()[..last], &whole[..last]);
        let steps: Vec<_> = scalars(&path).into_iter().map(|(_, step, v)| (step, v)).collect();
        assert_eq!(steps, [(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0), (4, 40.0)]);
        let all = events(&path);
        let start = &all[all.len() - 2];
        assert_eq!(start[&2][0], Field::Varint(4));
        assert_eq!(decode(start[&7][0].bytes())[&1][0], Field::Varint(1));
    }
}

#[test]
fn resume_without_a_usable_file_starts_one() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none");
    let writer = EventWriter::resume(&missing, 10).unwrap();
    assert_eq!(events(writer.path()).len(), 1);

    let other = tempfile::tempdir().unwrap();
    let foreign = other.path().join("events.out.tfevents.0000000001.x");
    fs::write(&foreign, b"not an event file").unwrap();
    let writer = EventWriter::resume(other.path(), 10).unwrap();
    assert_ne!(writer.path(), foreign);
    assert_eq!(fs::read(&foreign).unwrap(), b"not an event file");
}

#[test]
fn a_folder_that_cannot_be_made_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let message = EventWriter::create(file.join("logs")).unwrap_err().to_string();
    assert!(message.contains("file"), "{message}");
    assert!(message.contains("logs"), "{message}");
}
