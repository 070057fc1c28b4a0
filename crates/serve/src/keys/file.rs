//! The key file: one key per line, with its hash, its name and its limits.
//!
//! ```text
//! sha256:9f86d081… name=office created=2026-11-17 requests-per-minute=60 char-limit=5000
//! ```
//!
//! Any other line that is not empty and does not begin with `#` is a key in plain text.

use super::{KeyHash, KeyLimits, KeySet, hex};
use regard_core::{Error, Result};
use ring::rand::{SecureRandom, SystemRandom};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The prefix of a hashed key.
const HASHED: &str = "sha256:";

/// The prefix of new keys, so that people and secret scanners recognise them.
const PREFIX: &str = "rgd_";

/// The minimum length of a key that a user chooses: short keys could be recovered from their hash.
const SHORTEST: usize = 16;

/// The key file of `regard serve --api-keys`.
#[derive(Clone, Debug, Default)]
pub struct KeyFile(Vec<Line>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    Hashed(Record),
    Plain(String),
    /// Comments and empty lines.
    Other(String),
}

/// A hashed key in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    hash: KeyHash,
    name: String,
    created: String,
    limits: KeyLimits,
}

/// A key as `regard keys list` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedKey {
    /// Its name; a key in plain text has none.
    pub name: Option<String>,
    /// The date of its creation, if the file has it.
    pub created: Option<String>,
    /// Its limits.
    pub limits: KeyLimits,
}

impl KeyFile {
    /// Reads a key file.
    pub fn read(path: &Path) -> Result<Self> {
        Self::parse(path, &fs::read_to_string(path).map_err(|e| Error::io(path, e))?)
    }

    fn parse(path: &Path, text: &str) -> Result<Self> {
        let line = |(i, line): (usize, &str)| {
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with('#') {
                return Ok(Line::Other(line.to_owned()));
            }
            if !trimmed.starts_with(HASHED) {
                return Ok(Line::Plain(trimmed.to_owned()));
            }
            let record = Record::parse(trimmed);
            record
                .map(Line::Hashed)
                .map_err(|message| Error::file(path, format!("line {}: {message}", i + 1)))
        };
        Ok(KeyFile(text.lines().enumerate().map(line).collect::<Result<_>>()?))
    }

    pub(super) fn set(&self) -> KeySet {
        let key = |line: &Line| match line {
            Line::Hashed(record) => Some((record.hash, record.limits)),
            Line::Plain(key) => Some((KeyHash::of(key), KeyLimits::default())),
            Line::Other(_) => None,
        };
        KeySet(self.0.iter().filter_map(key).collect())
    }

    /// All keys, in file order.
    pub fn list(&self) -> Vec<ListedKey> {
        let key = |line: &Line| match line {
            Line::Hashed(Record { name, created, limits, .. }) => Some(ListedKey {
                name: Some(name.clone()),
                created: Some(created.clone()).filter(|day| !day.is_empty()),
                limits: *limits,
            }),
            Line::Plain(_) => Some(ListedKey { name: None, created: None, limits: KeyLimits::default() }),
            Line::Other(_) => None,
        };
        self.0.iter().filter_map(key).collect()
    }

    /// Adds a key to the file at `path`, a random one unless `key` is given, and returns it. The
    /// file does not store the key itself.
    pub fn add(path: &Path, name: &str, limits: KeyLimits, key: Option<&str>) -> Result<String> {
        check_name(name).map_err(|message| Error::config("name", message))?;
        let key = match key.map(str::trim) {
            None => random_key()?,
            Some(key) if key.chars().count() < SHORTEST => {
                let message = format!("a key needs at least {SHORTEST} characters");
                return Err(Error::config("key", message));
            }
            Some(key) => key.to_owned(),
        };
        change(path, true, |file| {
            if file.records().any(|record| record.name == name) {
                return Err(Error::file(path, format!("there is a key {name:?} already")));
            }
            if file.set().find(&KeyHash::of(&key)).is_some() {
                return Err(Error::file(path, "this key is in it already"));
            }
            let record = Record { hash: KeyHash::of(&key), name: name.to_owned(), created: today(), limits };
            file.0.push(Line::Hashed(record));
            Ok(())
        })?;
        Ok(key)
    }

    /// Removes keys by name; removes none if one of the names does not exist.
    pub fn revoke(path: &Path, names: &[String]) -> Result<()> {
        change(path, false, |file| {
            if let Some(name) = names.iter().find(|name| !file.records().any(|r| r.name == **name)) {
                let known: Vec<&str> = file.records().map(|record| record.name.as_str()).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(Error::file(
                    path,
                    format!("there is no key {name:?}; those with names: {known}"),
                ));
            }
            file.0.retain(|line| !matches!(line, Line::Hashed(record) if names.contains(&record.name)));
            Ok(())
        })
    }

    fn records(&self) -> impl Iterator<Item = &Record> {
        self.0.iter().filter_map(|line| match line {
            Line::Hashed(record) => Some(record),
            _ => None,
        })
    }

    fn text(&self) -> String {
        let line = |line: &Line| match line {
            Line::Hashed(record) => record.line(),
            Line::Plain(line) | Line::Other(line) => line.clone(),
        };
        self.0.iter().map(|l| line(l) + "\n").collect()
    }
}

impl Record {
    fn parse(line: &str) -> std::result::Result<Self, String> {
        let mut fields = line.split_whitespace();
        let hash = fields.next().and_then(|field| KeyHash::parse(field.strip_prefix(HASHED)?));
        let hash = hash.ok_or("sha256: needs 64 hexadecimal digits")?;
        let mut record =
            Record { hash, name: String::new(), created: String::new(), limits: KeyLimits::default() };
        for field in fields {
            let (key, value) = field.split_once('=').ok_or_else(|| format!("{field:?} is no NAME=VALUE"))?;
            let number = |most: u64| {
                let number = value.parse::<u64>().ok().filter(|n| (1..=most).contains(n));
                number.ok_or_else(|| format!("{key} must be a number from 1 to {most}"))
            };
            match key {
                "name" => {
                    check_name(value)?;
                    value.clone_into(&mut record.name);
                }
                "created" => value.clone_into(&mut record.created),
                "requests-per-minute" => {
                    record.limits.requests_per_minute = Some(number(1_000_000)? as u32);
                }
                "char-limit" => record.limits.characters = Some(number(100_000_000)? as usize),
                _ => {
                    let known = "name, created, requests-per-minute and char-limit";
                    return Err(format!("{key:?} is not known; {known} are"));
                }
            }
        }
        match record.name.is_empty() {
            true => Err("name= is missing".to_owned()),
            false => Ok(record),
        }
    }

    fn line(&self) -> String {
        let mut line = format!("{HASHED}{} name={}", self.hash.hex(), self.name);
        if !self.created.is_empty() {
            line += &format!(" created={}", self.created);
        }
        if let Some(limit) = self.limits.requests_per_minute {
            line += &format!(" requests-per-minute={limit}");
        }
        if let Some(limit) = self.limits.characters {
            line += &format!(" char-limit={limit}");
        }
        line
    }
}

fn check_name(name: &str) -> std::result::Result<(), String> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._@-".contains(&b);
    match (1..=64).contains(&name.len()) && name.bytes().all(allowed) {
        true => Ok(()),
        false => Err(format!("{name:?}: a name has 1 to 64 letters, digits, dots, hyphens, @ and _")),
    }
}

/// A key of 32 random bytes from the operating system.
fn random_key() -> Result<String> {
    let mut bytes = [0; 32];
    let failed = |_| Error::config("key", "the operating system provides no random numbers");
    SystemRandom::new().fill(&mut bytes).map_err(failed)?;
    Ok(format!("{PREFIX}{}", hex(&bytes)))
}

/// The current date in UTC.
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    day(seconds / 86_400)
}

/// The date that is this number of days after 1970-01-01.
fn day(mut days: u64) -> String {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", days + 1)
}

/// Edits a key file under a lock: the new version is written next to the old one and renamed over
/// it. With `create`, a missing file counts as empty.
fn change(path: &Path, create: bool, edit: impl FnOnce(&mut KeyFile) -> Result<()>) -> Result<()> {
    let failed = |e| Error::io(path, e);
    let locked = lock(path, create).map_err(failed)?;
    let mut file = KeyFile::read(path)?;
    let is_new = file.0.is_empty();
    let edited = edit(&mut file);
    let written = edited.and_then(|()| write(path, &locked, &file.text()).map_err(failed));
    if written.is_err() && is_new && create {
        // Removes the empty file that was created for the lock.
        let _ = fs::remove_file(path);
    }
    written
}

/// Opens and locks the file. If another process has replaced it in the meantime, locks the new one
/// instead.
fn lock(path: &Path, create: bool) -> io::Result<File> {
    loop {
        let mut options = OpenOptions::new();
        options.read(true);
        if create {
            options.append(true).create(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let file = options.open(path)?;
        file.lock()?;
        if is_at(&file, path) {
            return Ok(file);
        }
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: io::Result<fs::Metadata>| metadata.ok().map(|m| (m.dev(), m.ino()));
    id(file.metadata()).is_some_and(|own| id(fs::metadata(path)) == Some(own))
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Replaces the file with `text` and keeps its owner and group: a server that runs as another user
/// must still be able to read the file after an administrator has changed it. Other users lose
/// access.
fn write(path: &Path, old: &File, text: &str) -> io::Result<()> {
    // A symbolic link stays a link.
    let path = fs::canonicalize(path)?;
    let beside = PathBuf::from({
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}.part", std::process::id()));
        beside
    });
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // A leftover of an earlier process with the same id.
    let _ = fs::remove_file(&beside);
    let written = (|| {
        let mut file = options.open(&beside)?;
        keep_owner(&file, old)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &path)?;
        sync_folder(&path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

#[cfg(unix)]
fn keep_owner(new: &File, old: &File) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let (new_data, old_data) = (new.metadata()?, old.metadata()?);
    if (new_data.uid(), new_data.gid()) != (old_data.uid(), old_data.gid()) {
        fchown(new, Some(old_data.uid()), Some(old_data.gid()))?;
    }
    new.set_permissions(fs::Permissions::from_mode(old_data.mode() & 0o640 | 0o600))
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &File) -> io::Result<()> {
    Ok(())
}

/// Makes the rename durable. This needs an open directory, which only Unix supports.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// Parses arbitrary bytes as a key file, for a target in `fuzz/`: this gives an error, or keys that
/// are written as they were read.
#[cfg(any(test, feature = "fuzzing"))]
pub fn read_any_keys(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let path = Path::new("keys");
    let Ok(file) = KeyFile::parse(path, &text) else { return };
    assert_eq!(file.list().len(), file.set().0.len());
    let again = KeyFile::parse(path, &file.text()).expect("what was read can be written");
    assert_eq!(again.list(), file.list());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_any_kind() {
        regard_core::formats::fuzzing::damage_seeds("keys", read_any_keys);
    }

    #[test]
    fn keys_are_added_listed_and_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let limits = KeyLimits { requests_per_minute: Some(60), characters: Some(500) };
        let first = KeyFile::add(&path, "office", limits, None).unwrap();
        let second = KeyFile::add(&path, "home", KeyLimits::default(), None).unwrap();
        assert!(first.starts_with("rgd_") && first.len() == 68 && first != second, "{first} {second}");
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&first) && !text.contains(&first[4..]), "{text}");
        let file = KeyFile::read(&path).unwrap();
        let listed: Vec<_> = file.list().into_iter().map(|key| (key.name.unwrap(), key.limits)).collect();
        assert_eq!(listed, [("office".to_owned(), limits), ("home".to_owned(), KeyLimits::default())]);
        assert_eq!(file.set().find(&KeyHash::of(&first)), Some(limits));
        let error = KeyFile::add(&path, "home", limits, None).unwrap_err().to_string();
        assert!(error.ends_with("there is a key \"home\" already"), "{error}");
        let error = KeyFile::revoke(&path, &["home".into(), "other".into()]).unwrap_err().to_string();
        assert!(error.ends_with("there is no key \"other\"; those with names: office, home"), "{error}");
        KeyFile::revoke(&path, &["office".into()]).unwrap();
        let set = KeyFile::read(&path).unwrap().set();
        assert!(set.find(&KeyHash::of(&first)).is_none() && set.find(&KeyHash::of(&second)).is_some());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "something is left over");
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_may_read_the_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        KeyFile::add(&path, "a", KeyLimits::default(), None).unwrap();
        assert_eq!(mode(), 0o600);
        // The keys and comments of an older file are kept, and other users lose access.
        fs::write(&path, "# ours\nplain text\n\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        KeyFile::add(&link, "b", KeyLimits::default(), Some("sixteen or more characters")).unwrap();
        assert_eq!(mode(), 0o640);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# ours\nplain text\n\nsha256:"), "{text}");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let set = KeyFile::read(&path).unwrap().set();
        for key in ["plain text", "sixteen or more characters"] {
            assert!(set.find(&KeyHash::of(key)).is_some(), "{key}");
        }
    }

    #[test]
    fn a_refused_key_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let limits = KeyLimits::default();
        for (name, key, message) in [
            ("a b", None, "a name has 1 to 64 letters"),
            ("", None, "a name has 1 to 64 letters"),
            ("a", Some("short"), "at least 16 characters"),
        ] {
            let error = KeyFile::add(&path, name, limits, key).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        assert!(KeyFile::revoke(&path, &["a".into()]).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn wrong_lines_are_named() {
        let hash = "0".repeat(64);
        for (line, message) in [
            ("sha256:00 name=a".to_owned(), "line 2: sha256: needs 64 hexadecimal digits"),
            (format!("sha256:{hash}"), "line 2: name= is missing"),
            (format!("sha256:{hash} name=a b"), "line 2: \"b\" is no NAME=VALUE"),
            (
                format!("sha256:{hash} name=a requests-per-minute=0"),
                "line 2: requests-per-minute must be a number",
            ),
            (format!("sha256:{hash} name=a limit=1"), "line 2: \"limit\" is not known"),
        ] {
            let error = KeyFile::parse(Path::new("keys"), &format!("# x\n{line}\n")).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn two_processes_lose_none_of_their_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    for n in 0..8 {
                        KeyFile::add(path, &format!("{thread}-{n}"), KeyLimits::default(), None).unwrap();
                    }
                });
            }
        });
        assert_eq!(KeyFile::read(&path).unwrap().list().len(), 32);
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for (days, wanted) in
            [(0, "1970-01-01"), (11_016, "2000-02-29"), (19_782, "2024-02-29"), (20_774, "2026-11-17")]
        {
            assert_eq!(day(days), wanted);
        }
    }
}
