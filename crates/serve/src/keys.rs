//! API keys: the file that stores them, the changes that `regard keys` makes to it, and the set
//! that requests are checked against.
//!
//! A key consists of 32 random bytes, and the file stores only its SHA-256 hash: a deliberately
//! slow hash would add no protection, since the keys are too many to try. The key of a request is
//! hashed, too, and compared with every key of the file in constant time, so that the timing of a
//! rejection reveals nothing about them.

mod file;

#[cfg(any(test, feature = "fuzzing"))]
pub use file::read_any_keys;
pub use file::{KeyFile, ListedKey};

use crate::files::{Stamp, stamp};
use regard_core::{Error, Result};
use ring::digest::{SHA256, digest};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// The SHA-256 hash of a key, which is stored, compared and counted instead of the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct KeyHash([u8; 32]);

impl KeyHash {
    pub(crate) fn of(key: &str) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, key.as_bytes()).as_ref());
        KeyHash(hash)
    }

    /// Parses 64 hexadecimal digits.
    fn parse(text: &str) -> Option<Self> {
        let mut hash = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(KeyHash(hash))
    }

    fn hex(&self) -> String {
        hex(&self.0)
    }
}

impl std::fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyHash")
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The limits of a key, where they differ from those of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyLimits {
    /// Requests per minute.
    pub requests_per_minute: Option<u32>,
    /// Characters per request.
    pub characters: Option<usize>,
}

/// The keys of a file at a point in time.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeySet(Vec<(KeyHash, KeyLimits)>);

impl KeySet {
    /// The limits of a key, if it is valid. Always compares all keys, so that the time does not
    /// depend on the match.
    pub(crate) fn find(&self, wanted: &KeyHash) -> Option<KeyLimits> {
        let (mut found, mut at) = (Choice::from(0), 0u64);
        for (i, (hash, _)) in self.0.iter().enumerate() {
            let same = hash.0.ct_eq(&wanted.0);
            found |= same;
            at.conditional_assign(&(i as u64), same);
        }
        bool::from(found).then(|| self.0.get(at as usize).map(|(_, limits)| *limits)).flatten()
    }
}

/// The accepted API keys: those of a file, which may change while the server runs.
#[derive(Clone, Debug)]
pub struct Keys(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stamp: Stamp,
    set: Arc<KeySet>,
}

impl Keys {
    /// Reads a key file, as `regard keys` writes it or with one key per line in plain text; empty
    /// lines and lines that begin with `#` are ignored.
    pub fn load(path: &Path) -> Result<Self> {
        // Taken before reading, so that a change in the meantime is noticed.
        let stamp = stamp(path);
        let set = KeyFile::read(path)?.set();
        if set.0.is_empty() {
            return Err(Error::file(path, "there is no key in it; one per line is expected"));
        }
        let state = Mutex::new(State { stamp, set: Arc::new(set) });
        Ok(Keys(Arc::new(Shared { path: path.to_owned(), state })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys that are currently valid.
    pub(crate) fn current(&self) -> Arc<KeySet> {
        Arc::clone(&self.lock().set)
    }

    /// Reads the file again if it has changed, or unconditionally with `always`, and returns
    /// whether it did. If the file cannot be read, the keys stay valid; if it has no keys, none is
    /// valid, because the last key was revoked.
    pub(crate) fn reload(&self, always: bool) -> Result<bool> {
        let now = stamp(&self.0.path);
        {
            let mut state = self.lock();
            if !always && state.stamp == now {
                return Ok(false);
            }
            // A file that cannot be read is reported only once.
            state.stamp = now;
        }
        let set = Arc::new(KeyFile::read(&self.0.path)?.set());
        self.lock().set = set;
        Ok(true)
    }

    /// The number of keys that are currently valid.
    pub(crate) fn count(&self) -> usize {
        self.lock().set.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_by_its_hash() {
        let limits = |n| KeyLimits { requests_per_minute: Some(n), characters: None };
        let set = KeySet((0..5).map(|n| (KeyHash::of(&n.to_string()), limits(n))).collect());
        for n in 0..5 {
            assert_eq!(set.find(&KeyHash::of(&n.to_string())), Some(limits(n)));
        }
        assert_eq!(set.find(&KeyHash::of("5")), None);
        assert_eq!(KeySet::default().find(&KeyHash::of("")), None);
        // The test vector of FIPS 180-2 for "abc".
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(KeyHash::of("abc").hex(), known);
        assert_eq!(KeyHash::parse(known), Some(KeyHash::of("abc")));
        assert_eq!(KeyHash::parse(&known[1..]), None);
        assert_eq!(KeyHash::parse(&known.replace('b', "x")), None);
        assert_eq!(format!("{:?}", KeyHash::of("abc")), "KeyHash");
    }

    #[test]
    fn a_changed_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        std::fs::write(&path, "first\n").unwrap();
        let keys = Keys::load(&path).unwrap();
        let valid = |key: &str| keys.current().find(&KeyHash::of(key)).is_some();
        assert!(!keys.reload(false).unwrap() && keys.reload(true).unwrap());
        std::fs::write(&path, "first\nsecond\n").unwrap();
        assert!(!valid("second"));
        assert!(keys.reload(false).unwrap() && valid("second") && valid("first"));
        // A damaged file changes nothing and is reported only once.
        std::fs::write(&path, "sha256:12 name=x\n").unwrap();
        assert!(keys.reload(false).unwrap_err().to_string().contains("line 1: "));
        assert!(!keys.reload(false).unwrap() && valid("first"));
        std::fs::remove_file(&path).unwrap();
        assert!(keys.reload(false).is_err() && valid("first"));
        std::fs::write(&path, "# all are revoked\n").unwrap();
        assert!(keys.reload(false).unwrap() && !valid("first") && keys.count() == 0);
    }
}
