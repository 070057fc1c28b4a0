//! Checks that all ranks agree before anything is done.

use super::Communicator;
use crate::config::TrainConfig;
use crate::run::Data;
use regard_core::{Error, Result};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

/// Names and values that must be equal on all ranks.
pub type ConsistencyCheck = Vec<(String, String)>;

/// The version of the program and a hash of its binary.
pub fn program_check() -> ConsistencyCheck {
    let hash = std::env::current_exe().and_then(|path| file_hash(&path));
    let hash = hash.map_or_else(|_| "unknown".into(), |hash| format!("{hash:016x}"));
    vec![("the program".into(), format!("regard {} ({hash})", env!("CARGO_PKG_VERSION")))]
}

/// A hash of each file of a model folder.
pub fn model_check(folder: &Path) -> Result<ConsistencyCheck> {
    let error = |e| Error::io(folder, e);
    let mut check = ConsistencyCheck::new();
    for entry in std::fs::read_dir(folder).map_err(error)? {
        let path = entry.map_err(error)?.path();
        let of_model =
            path.extension().is_some_and(|e| ["json", "safetensors", "bin", "spm"].iter().any(|x| e == *x));
        if of_model && path.is_file() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let hash = file_hash(&path).map_err(|e| Error::io(&path, e))?;
            check.push((format!("the model's {name}"), format!("{hash:016x}")));
        }
    }
    check.sort();
    Ok(check)
}

/// The settings that must be equal on all ranks of a job. File paths and the number of cores may
/// differ.
pub fn config_check(config: &TrainConfig) -> ConsistencyCheck {
    const OWN: [&str; 8] = [
        "threads",
        "data.src",
        "data.tgt",
        "data.tsv",
        "data.valid_src",
        "data.valid_tgt",
        "data.init",
        "tokenizer.file",
    ];
    config.shown().filter(|(key, _)| !OWN.contains(&key.as_str())).collect()
}

/// The properties of the corpus that must be equal on all ranks.
pub(super) fn corpus_check(data: &Data) -> ConsistencyCheck {
    let tokens: u64 = data.lengths.iter().map(|l| u64::from(l.0) + u64::from(l.1)).sum();
    let (pairs, content) = (data.corpus.len(), data.corpus.content_hash());
    vec![("the corpus".into(), format!("{pairs} pairs of {tokens} tokens ({content:016x})"))]
}

fn file_hash(path: &Path) -> io::Result<u64> {
    let (mut file, mut hash, mut buffer) = (File::open(path)?, Xxh3::new(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hash.digest()),
            n => hash.update(&buffer[..n]),
        }
    }
}

/// Returns if all ranks have the same names and values; otherwise gives all of them the same error,
/// which names the first difference from rank 0. A rank that cannot determine its own values
/// reports the reason to all ranks.
pub fn check_consistency(
    communicator: &dyn Communicator,
    mine: std::result::Result<ConsistencyCheck, impl Display>,
) -> Result<()> {
    if communicator.size() == 1 {
        return mine.map(drop).map_err(|e| Error::Inconsistent(e.to_string()));
    }
    let mine: (String, std::result::Result<ConsistencyCheck, String>) =
        (communicator.host(), mine.map_err(|e| e.to_string()));
    let mine = serde_json::to_vec(&mine).unwrap_or_default();
    let mut all = Vec::with_capacity(communicator.size());
    for (rank, bytes) in communicator.all_gather_bytes(&mine).iter().enumerate() {
        let read: (String, std::result::Result<ConsistencyCheck, String>) = serde_json::from_slice(bytes)
            .map_err(|_| Error::Inconsistent(format!("rank {rank} sent something that cannot be read")))?;
        all.push(read);
    }
    let mut first = None;
    for (rank, (host, check)) in all.iter().enumerate() {
        let check = check.as_ref().map_err(|why| Error::Inconsistent(at(rank, host, why)))?;
        let of_first = *first.get_or_insert(check);
        if let Some(difference) = difference(of_first, check) {
            return Err(Error::Inconsistent(at(rank, host, &difference)));
        }
    }
    Ok(())
}

fn at(rank: usize, host: &str, what: &str) -> String {
    format!("rank {rank} on {host}: {what}")
}

/// The first value that differs, with both values.
fn difference(first: &ConsistencyCheck, other: &ConsistencyCheck) -> Option<String> {
    let value = |check: &ConsistencyCheck, name: &str| {
        check.iter().find(|(n, _)| n == name).map_or("nothing".to_owned(), |(_, value)| value.clone())
    };
    let names = first.iter().chain(other).map(|(name, _)| name);
    names.map(|name| (name, value(first, name), value(other, name))).find(|(_, a, b)| a != b).map(
        |(name, of_first, its)| {
            format!("{name} is {its}, but {of_first} on rank 0; all ranks must have the same")
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_name_both_values() {
        let check =
            |text: &str| vec![("seed".to_owned(), "1".to_owned()), ("clip".to_owned(), text.to_owned())];
        assert_eq!(difference(&check("2"), &check("2")), None);
        assert_eq!(
            difference(&check("2"), &check("0.5")).as_deref(),
            Some("clip is 0.5, but 2 on rank 0; all ranks must have the same")
        );
        let missing = vec![("seed".to_owned(), "1".to_owned())];
        assert!(difference(&missing, &check("2")).unwrap().starts_with("clip is 2, but nothing on rank 0"));
    }

    #[test]
    fn a_program_knows_itself() {
        let check = program_check();
        assert!(check[0].1.starts_with("regard ") && !check[0].1.contains("unknown"), "{check:?}");
    }
}
