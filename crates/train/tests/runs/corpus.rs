//! Corpora: reading every kind of file, what is dropped and counted, the cache and when it is
//! rebuilt.

use crate::sentences::{sentences, trained};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use regard_core::formats::Languages;
use regard_core::model::Preset;
use regard_core::text::{PieceList, Segmentation, Tokenizer, TokenizerPair, TokenizerSettings};
use regard_train::TrainConfig;
use regard_train::corpus::{
    CacheState, Corpus, Filters, Inputs, Pair, Pairs, Reason, Side, count_pairs, train_tokenizers,
};
use tempfile::TempDir;

fn write(folder: &TempDir, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn files(source: &Path, target: &Path) -> Inputs {
    Inputs::Files { source: vec![source.into()], target: vec![target.into()] }
}

fn read(inputs: &Inputs) -> Result<Vec<Pair>, String> {
    Pairs::open(inputs, 1000).and_then(|pairs| pairs.collect()).map_err(|e| e.to_string())
}

fn texts(inputs: &Inputs) -> Vec<(String, String)> {
    let text = |side| match side {
        Side::Text(text) => text,
        other => panic!("{other:?}"),
    };
    read(inputs).unwrap().into_iter().map(|pair| (text(pair.source), text(pair.target))).collect()
}

fn pairs_of(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn lines_are_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let source = write(&folder, "a", "\u{feff}one\r\ntwo\rtwo\n\n\u{feff}four\r\r\nfive");
    let target = write(&folder, "b", "1\n2\n3\n4\n5\n");
    let expected = [("one", "1"), ("two\rtwo", "2"), ("", "3"), ("\u{feff}four\r", "4"), ("five", "5")];
    assert_eq!(texts(&files(&source, &target)), pairs_of(&expected));
    let empty = write(&folder, "c", "");
    assert_eq!(read(&files(&empty, &empty)).unwrap(), []);
}

#[test]
fn compressed_files_are_read_whatever_their_name() {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (0..20_000).map(|i| format!("line {i} of the file\n")).collect();
    let (first, second) = lines.split_at(lines.len() / 3);
    let two = |pack: fn(&[u8]) -> Vec<u8>| [pack(first.as_bytes()), pack(second.as_bytes())].concat();
    let skippable = [&[0x52, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9], two(zstd).as_slice()].concat();
    let expected: Vec<String> = lines.lines().map(str::to_owned).collect();
    for (name, bytes) in [
        ("plain.txt", lines.as_bytes().to_vec()),
        ("one.gz", gzip(lines.as_bytes())),
        ("two.gz", two(gzip)),
        ("one.zst", zstd(lines.as_bytes())),
        ("two.zst", two(zstd)),
        ("skippable.zst", skippable),
        ("misnamed.txt", gzip(lines.as_bytes())),
    ] {
        let path = write(&folder, name, bytes);
        let read: Vec<String> = texts(&files(&path, &path)).into_iter().map(|p| p.0).collect();
        assert!(read == expected, "{name}: {} lines", read.len());
    }
}

#[test]
fn damaged_compression_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let lines: String = (0..5_000).map(|i| format!("line {i} {}\n", i * i % 977)).collect();
    for (name, bytes) in [("x.gz", gzip(lines.as_bytes())), ("x.zst", zstd(lines.as_bytes()))] {
        let path = write(&folder, name, &bytes[..bytes.len() / 2]);
        let error = read(&files(&path, &path)).unwrap_err();
        assert!(error.contains(name), "{error}");
        let mut flipped = bytes.clone();
        for byte in flipped.iter_mut().skip(bytes.len() / 2).take(40) {
            *byte ^= 0x5a;
        }
        let path = write(&folder, name, flipped);
        assert!(read(&files(&path, &path)).is_err(), "{name}");
    }
}

#[test]
fn files_of_different_length_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (write(&folder, "a.en", "1\n2\n3\n"), write(&folder, "b.de", "1\n2\n3\n4\n5"));
    let (a, b) = (a.as_path(), b.as_path());
    let rest = "line i of one must be the translation of line i of the other";
    let expected = format!("{}: 3 lines, but {} has 5; {rest}", a.display(), b.display());
    assert_eq!(read(&files(a, b)).unwrap_err(), expected);
    let expected = format!("{}: 5 lines, but {} has 3; {rest}", b.display(), a.display());
    assert_eq!(read(&files(b, a)).unwrap_err(), expected);
    // Two files that are even only together are not even.
    let inputs = Inputs::Files { source: vec![a.into(), b.into()], target: vec![b.into(), a.into()] };
    assert!(read(&inputs).is_err());
    let inputs = Inputs::Files { source: vec![a.into(), b.into()], target: vec![a.into()] };
    let expected = "src/tgt: 2 source and 1 target files; give one target file for each source file";
    assert_eq!(read(&inputs).unwrap_err(), expected);
    let missing = folder.path().join("none");
    assert!(read(&files(&missing, a)).unwrap_err().contains("none: "));
    assert!(read(&files(folder.path(), a)).unwrap_err().contains("is a folder"));
    let inputs = Inputs::Files { source: vec![a.into(), b.into()], target: vec![a.into(), b.into()] };
    let lines: Vec<_> = read(&inputs).unwrap().into_iter().map(|p| (p.file, p.line)).collect();
    assert_eq!(lines, [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5)]);
}

#[test]
fn objects_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(1001);
    let text = format!(
        "{{\"source\": \"A dog.\", \"target\": \"Ein Hund.\"}}\r\n\
         {{\"id\": 3, \"translation\": {{\"en\": \"two\\nlines\", \"de\": \"zwei\\tZeilen\"}}}}\n\
         not an object\n{{\"src\": \"{long}\", \"tgt\": \"b\"}}\n\n"
    );
    let file = write(&folder, "a.jsonl.gz", gzip(text.as_bytes()));
    let languages = Languages { source: Some("en".into()), target: Some("de".into()) };
    let inputs = Inputs::Pairs { files: vec![file.clone()], languages };
    let found: Vec<_> = read(&inputs).unwrap().into_iter().map(|p| (p.source, p.target, p.line)).collect();
    let text = |text: &str| Side::Text(text.into());
    let expected = [
        (text("A dog."), text("Ein Hund."), 1),
        (text("two lines"), text("zwei Zeilen"), 2),
        (Side::NoObject, Side::NoObject, 3),
        (Side::TooLong, text("b"), 4),
        (text(""), text(""), 5),
    ];
    assert_eq!(found, expected);
    // Without the languages, the second has no known fields.
    assert_eq!(read(&Inputs::pairs(file)).unwrap()[1].source, Side::NoObject);
}

const CATALOGUE: &str = r#"# A comment
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"

#: src/main.c:12
msgctxt "menu"
msgid "_Open \"file\""
msgstr "\"Datei\" öffnen"

msgid ""
"Two\n"
"lines"
msgstr ""
"Zwei\n"
"Zeilen"

#, fuzzy, c-format
#| msgid "old"
msgid "New"
msgstr "Alt"

msgid "Nothing"
msgstr ""

msgid "%d dog"
msgid_plural "%d dogs"
msgstr[0] "%d Hund"
msgstr[1] "%d Hunde"
msgid "last"
msgstr "letzter"

#~ msgid "gone"
#~ msgstr "fort"
"#;

#[test]
fn catalogues_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder, "de.po", CATALOGUE);
    let found: Vec<_> =
        read(&Inputs::pairs(&path)).unwrap().into_iter().map(|p| (p.source, p.target, p.line)).collect();
    let text = |text: &str| Side::Text(text.into());
    let none = |line| (Side::Untranslated, Side::Untranslated, line);
    let expected = [
        (text("_Open \"file\""), text("\"Datei\" öffnen"), 8),
        (text("Two lines"), text("Zwei Zeilen"), 11),
        none(20),
        none(23),
        (text("%d dog"), text("%d Hund"), 26),
        (text("%d dogs"), text("%d Hunde"), 26),
        (text("last"), text("letzter"), 30),
    ];
    assert_eq!(found, expected);
    assert_eq!(count_pairs(&Inputs::pairs(path)).unwrap().to_string(), "5 pairs");
    for (broken, says) in [
        ("msgid \"a\nmsgstr \"b\"\n", ":1: a string has no end on its line"),
        ("msgstr \"b\"\n", ":1: msgstr without msgid before it"),
        ("msgid \"a\"\nmsgid \"b\"\n", ":2: a second msgid before msgstr"),
        ("hello\n", ":1: \"hello\" is neither a comment nor a string"),
        ("\"text\"\n", ":1: a string without msgid or msgstr before it"),
        ("msgid \"a\"\nmsgstr[1] \"b\"\n", ":2: msgstr[1] cannot stand here"),
    ] {
        let path = write(&folder, "broken.po", broken);
        let error = read(&Inputs::pairs(path)).unwrap_err();
        assert!(error.ends_with(says), "{error}");
    }
}

/// Files of several kinds are one corpus.
#[test]
fn a_corpus_of_several_formats() {
    let folder = tempfile::tempdir().unwrap();
    let files = vec![
        write(&folder, "a.tsv", "one dog\tein Hund\nno tab\n"),
        write(&folder, "b.jsonl", "{\"src\": \"two dogs\", \"tgt\": \"zwei Hunde\"}\n{}\n"),
        write(&folder, "c.po", CATALOGUE),
    ];
    let inputs = Inputs::Pairs { files, languages: Languages::default() };
    let tokenizers = train_tokenizers(&inputs, &Filters::default(), &TokenizerSettings::default()).unwrap();
    let corpus = Corpus::prepare(&inputs, &Filters::default(), &tokenizers, folder.path(), "x", 1).unwrap();
    let summary = corpus.summary();
    assert_eq!((summary.read, summary.kept), (11, 7), "{summary}");
    assert_eq!(
        [Reason::NoTab, Reason::NoObject, Reason::Untranslated].map(|reason| summary.dropped(reason)),
        [1, 1, 2]
    );
    assert!(summary.to_string().contains("message without a translation"), "{summary}");
}

#[test]
fn a_tsv_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(1001);
    let path = write(&folder, "a.tsv", format!("a\tb\nc d\te f\textra\r\nnone\n{long}\tb\n\t\n").as_bytes());
    let sides: Vec<_> =
        read(&Inputs::pairs(path)).unwrap().into_iter().map(|p| (p.source, p.target)).collect();
    let text = |text: &str| Side::Text(text.into());
    let expected = [
        (text("a"), text("b")),
        (text("c d"), text("e f")),
        (Side::NoTab, Side::NoTab),
        (Side::TooLong, text("b")),
        (text(""), text("")),
    ];
    assert_eq!(sides, expected);
}

#[test]
fn everything_dropped_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizers = trained(Segmentation::Bpe, false);
    let long = "dog ".repeat(400);
    let rows: Vec<(&[u8], &[u8])> = vec![
        (b"The dog sees.", b"Der Hund sieht."),
        (b"", b"leer"),
        (b"voll", b" \t\xc2\xa0"),
        (b"caf\xe9", b"Kaffee"),
        (b"The dog sees.", b"  Der Hund  sieht."),
        (b"same text", b"same  text"),
        (b"one", b"zwei Worte"),
        (b"one two three four five six seven", b"acht neun"),
        (b"a b", b"das ist ein sehr langer Satz"),
        (b"two words", long.as_bytes()),
        (b"too \xef\xbb\xbf", b"\x00\x01"),
    ];
    let column = |i: usize| -> Vec<u8> {
        let side = |row: &(&[u8], &[u8])| [if i == 0 { row.0 } else { row.1 }, b"\n"].concat();
        rows.iter().flat_map(side).collect()
    };
    let inputs = files(&write(&folder, "s", column(0)), &write(&folder, "t", column(1)));
    let filters = Filters {
        max_line_bytes: 1500,
        min_words: 2,
        max_words: Some(6),
        max_ratio: Some(3.0),
        drop_duplicates: true,
        drop_identical: true,
        ..Filters::default()
    };
    let corpus = Corpus::prepare(&inputs, &filters, &tokenizers, folder.path(), "train", 2).unwrap();
    let summary = corpus.summary();
    assert_eq!((summary.read, summary.kept), (11, 1));
    let counts: Vec<_> =
        summary.dropped.iter().map(|(&reason, d)| (reason, d.count, d.first.clone())).collect();
    let at = |file: &str, line: usize| format!("{}:{line}", folder.path().join(file).display());
    assert_eq!(
        counts,
        [
            (Reason::InvalidUtf8, 1, at("s", 4)),
            (Reason::LineTooLong, 1, at("t", 10)),
            (Reason::Empty, 2, at("s", 2)),
            (Reason::Identical, 1, at("s", 6)),
            (Reason::Duplicate, 1, at("s", 5)),
            (Reason::TooFewWords, 2, at("s", 7)),
            (Reason::TooManyWords, 1, at("s", 8)),
            (Reason::Ratio, 1, at("t", 9)),
        ]
    );
    assert_eq!(summary.read - summary.kept, summary.dropped.values().map(|d| d.count).sum::<u64>());

    let gentle = Filters { max_tokens: 40, ..Filters::default() };
    let corpus = Corpus::prepare(&inputs, &gentle, &tokenizers, folder.path(), "gentle", 1).unwrap();
    assert_eq!(corpus.len(), 6);
    assert_eq!(corpus.summary().dropped(Reason::TooManyTokens), 1);
    // A side of control characters alone is empty once normalised.
    assert_eq!(corpus.summary().dropped(Reason::Empty), 3);
    assert_eq!(corpus.summary().unknown_tokens, 0);
    assert_eq!(
        corpus.summary().longest as usize,
        corpus.lengths().iter().map(|l| l.0.max(l.1)).max().unwrap() as usize
    );
}

/// Of a large document some pairs are kept; a column of something else limits nothing.
#[test]
fn pairs_of_a_document_can_be_limited() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["</s>", "<unk>", "a", "b"];
    let pieces = PieceList { pieces: Arc::new(words.into_iter().collect()), eos: 0, unk: 1 };
    let tokenizers = TokenizerPair::joint(Tokenizer::from_json(pieces.to_json(), folder.path()).unwrap());
    // Documents of 5 lines and one of 400.
    let sizes = |document: usize| if document == 5 { 400 } else { 5 };
    let line = |document: usize| format!("a\tb\tprogram {document}\n").repeat(sizes(document));
    // The last three go on with documents that were there before.
    let together: String = (0..30).map(|i| line(if i < 27 { i } else { i - 20 })).collect();
    let apart: String = (0..600).map(|i| format!("a\tb\t0.{}\n", i % 30)).collect();
    let few: String = (0..10).map(line).collect();
    let filters = Filters { max_per_document: Some(50), ..Filters::default() };
    for (name, text, all) in [("together", together, 545), ("apart", apart, 600), ("few", few, 445)] {
        let inputs = Inputs::pairs(write(&folder, &format!("{name}.tsv"), text));
        let corpus = Corpus::prepare(&inputs, &filters, &tokenizers, folder.path(), name, 1).unwrap();
        let (summary, dropped) = (corpus.summary(), corpus.summary().dropped(Reason::LargeDocument));
        assert_eq!((summary.read, summary.kept + dropped), (all, all));
        match name {
            // About 50 of the 400.
            "together" => assert!((320..380).contains(&dropped), "{dropped}"),
            _ => assert_eq!(dropped, 0, "{name}"),
        }
    }
}

/// A model learns to leave out what its vocabulary cannot write: fine-tuning drops such targets.
#[test]
fn targets_with_unknown_characters_can_be_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["</s>", "<unk>", "The", "dog", "sees", "Der", "Hund", "sieht"];
    let pieces = PieceList { pieces: Arc::new(words.into_iter().collect()), eos: 0, unk: 1 };
    let tokenizers = TokenizerPair::joint(Tokenizer::from_json(pieces.to_json(), folder.path()).unwrap());
    let inputs = files(
        &write(&folder, "s", "The dog sees\nThe dog sees\nThe cat sees\n"),
        &write(&folder, "t", "Der Hund sieht\nDer Kater sieht\nDer Hund sieht\n"),
    );
    for (drop_unknown, kept) in [(false, 3), (true, 2)] {
        let filters = Filters { drop_unknown, ..Filters::default() };
        let name = format!("{drop_unknown}");
        let corpus = Corpus::prepare(&inputs, &filters, &tokenizers, folder.path(), &name, 1).unwrap();
        assert_eq!(
            (corpus.summary().kept, corpus.summary().dropped(Reason::UnknownTarget)),
            (kept, 3 - kept)
        );
    }
    assert!(TrainConfig::new(Preset::Tiny).fine_tuning().filters.drop_unknown);
}

#[test]
fn the_ids_are_those_of_the_tokenizers() {
    let folder = tempfile::tempdir().unwrap();
    for (separate, name) in [(false, "joint"), (true, "separate")] {
        let tokenizers = trained(Segmentation::Bpe, separate);
        let pairs = sentences();
        let source: String = pairs.iter().map(|p| format!("{}\n", p.0)).collect();
        let target: String = pairs.iter().map(|p| format!("{}\n", p.1)).collect();
        let inputs = files(&write(&folder, "s", source), &write(&folder, "t", target));
        let corpus =
            Corpus::prepare(&inputs, &Filters::default(), &tokenizers, &folder.path().join("cache"), name, 2)
                .unwrap();
        assert_eq!(corpus.len(), pairs.len());
        let lengths = corpus.lengths();
        for (i, (from, to)) in pairs.iter().enumerate() {
            let pair = corpus.pair(i).unwrap();
            assert_eq!(pair.source(), tokenizers.source().encode(from).unwrap());
            assert_eq!(pair.target(), tokenizers.target().encode(to).unwrap());
            assert_eq!(lengths[i], (pair.source().len() as u32, pair.target().len() as u32));
        }
        let (sources, targets) =
            lengths.iter().fold((0, 0), |(s, t), l| (s + u64::from(l.0), t + u64::from(l.1)));
        assert_eq!((corpus.summary().source_tokens, corpus.summary().target_tokens), (sources, targets));
    }
    let left: Vec<_> =
        fs::read_dir(folder.path().join("cache")).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "only the caches are left: {left:?}");
}

#[test]
fn the_cache_is_reused_until_something_changes() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizers = trained(Segmentation::Bpe, false);
    let (source, target) =
        (write(&folder, "s", "The dog.\nA cat.\n"), write(&folder, "t", "Der Hund.\nEin Kater.\n"));
    let inputs = files(&source, &target);
    let cache = folder.path().join("cache");
    let prepare = |filters: &Filters, tokenizers: &TokenizerPair| {
        let corpus = Corpus::prepare(&inputs, filters, tokenizers, &cache, "train", 1).unwrap();
        let ids: Vec<_> = (0..corpus.len()).map(|i| corpus.pair(i).unwrap()).collect();
        (corpus.state().clone(), ids)
    };
    let filters = Filters::default();
    let changed = CacheState::Rebuilt("the inputs, filters or tokenizers have changed".into());
    let (state, ids) = prepare(&filters, &tokenizers);
    assert_eq!(state, CacheState::Built);
    assert_eq!(prepare(&filters, &tokenizers), (CacheState::Reused, ids.clone()));
    assert_eq!(prepare(&Filters { min_words: 2, ..filters.clone() }, &tokenizers).0, changed);
    assert_eq!(prepare(&filters, &trained(Segmentation::Unigram, false)).0, changed);
    assert_eq!(prepare(&filters, &tokenizers), (changed.clone(), ids.clone()));
    fs::write(&source, "The dog!\nA cat.\n").unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    fs::File::options().write(true).open(&source).unwrap().set_modified(later).unwrap();
    let (state, other) = prepare(&filters, &tokenizers);
    assert_eq!(state, changed);
    assert_ne!(other, ids);

    // Damage of every kind, at every place.
    let path = cache.join("train.ids");
    let good = fs::read(&path).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        fs::remove_file(&path).unwrap();
        fs::write(&path, bad).unwrap();
        let (state, ids) = prepare(&filters, &tokenizers);
        assert!(matches!(state, CacheState::Rebuilt(_)), "byte {at}: {state:?}");
        assert_eq!(ids, other, "byte {at}");
    }
    for length in [0, 1, 79, 80, 81, good.len() - 1] {
        fs::remove_file(&path).unwrap();
        fs::write(&path, &good[..length]).unwrap();
        let (state, ids) = prepare(&filters, &tokenizers);
        assert!(matches!(state, CacheState::Rebuilt(_)), "length {length}");
        assert_eq!(ids, other);
    }
    fs::remove_file(&path).unwrap();
    fs::write(&path, [good.as_slice(), b"more"].concat()).unwrap();
    assert_eq!(prepare(&filters, &tokenizers).0, CacheState::Rebuilt("it is cut off".into()));
    assert_eq!(fs::read(&path).unwrap(), good);
}

/// What others do to the file of an open corpus is an error, and not the end of the process.
#[test]
fn a_cache_that_is_changed_while_it_is_in_use_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizers = trained(Segmentation::Bpe, false);
    let text = "The dog sees the cat.\n".repeat(3000);
    let inputs = files(&write(&folder, "s", text.clone()), &write(&folder, "t", text));
    let corpus =
        Corpus::prepare(&inputs, &Filters::default(), &tokenizers, folder.path(), "train", 1).unwrap();
    let last = corpus.len() - 1;
    let before = corpus.pair(last).unwrap();
    let path = folder.path().join("train.ids");
    let file = fs::File::options().write(true).open(&path).unwrap();
    let good = fs::read(&path).unwrap();
    file.set_len(100).unwrap();
    let error = corpus.pair(last).unwrap_err().to_string();
    assert_eq!(error, format!("{}: was cut off while it was in use", path.display()));
    fs::write(&path, vec![0xff; good.len()]).unwrap();
    let error = corpus.pair(last).unwrap_err().to_string();
    assert!(error.contains("train.ids: was changed while it was in use: 4294967295 is not an id"), "{error}");
    // A new file in its place is another file.
    fs::write(&path, &good).unwrap();
    fs::write(path.with_extension("new"), "x").unwrap();
    fs::rename(path.with_extension("new"), &path).unwrap();
    assert_eq!(corpus.pair(last).unwrap(), before);
}

#[test]
fn a_failed_build_leaves_the_old_cache_and_no_scraps() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizers = trained(Segmentation::Bpe, false);
    let (source, target) = (write(&folder, "s", "The dog.\n"), write(&folder, "t", "Der Hund.\n"));
    let inputs = files(&source, &target);
    let cache = folder.path().join("cache");
    let prepare = || Corpus::prepare(&inputs, &Filters::default(), &tokenizers, &cache, "train", 1);
    prepare().unwrap();
    let good = fs::read(cache.join("train.ids")).unwrap();
    fs::write(&source, "The dog.\nOne more.\n").unwrap();
    assert!(prepare().unwrap_err().to_string().contains("2 lines, but"));
    fs::write(&source, "\n").unwrap();
    let error = prepare().unwrap_err().to_string();
    assert!(
        error.contains("no pair of this corpus can be used\n1 pairs read\n1 dropped: empty line"),
        "{error}"
    );
    assert_eq!(fs::read(cache.join("train.ids")).unwrap(), good);
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
    let error = Corpus::prepare(&inputs, &Filters::default(), &tokenizers, &source, "train", 1).unwrap_err();
    assert!(error.to_string().starts_with(&source.display().to_string()), "{error}");
}

#[test]
fn senseless_filters_are_refused() {
    let message = |filters: Filters| filters.check().unwrap_err().to_string();
    let filters = Filters::default();
    assert!(filters.check().is_ok());
    assert!(message(Filters { max_line_bytes: 0, ..filters.clone() }).starts_with("max_line_bytes: 0"));
    assert!(message(Filters { max_tokens: 1, ..filters.clone() }).starts_with("max_tokens: 1 leaves"));
    assert!(message(Filters { max_words: Some(0), ..filters.clone() }).starts_with("max_words: 0 is below"));
    for ratio in [0.5, -1.0, f64::NAN] {
        assert!(message(Filters { max_ratio: Some(ratio), ..filters.clone() }).starts_with("max_ratio: "));
    }
}

#[test]
fn tokenizers_are_trained_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = sentences().iter().map(|(from, to)| format!("{from}\t{to}\n")).collect();
    let inputs = Inputs::pairs(write(&folder, "c.tsv", gzip(rows.as_bytes())));
    let settings = TokenizerSettings { size: Some(400), ..TokenizerSettings::default() };
    let tokenizers = train_tokenizers(&inputs, &Filters::default(), &settings).unwrap();
    assert_eq!(tokenizers.source().hash(), trained(Segmentation::Bpe, false).source().hash());
}
