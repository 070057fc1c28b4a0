//! Locates the files of a model: in a folder of CTranslate2, in one of Argos Translate, or in the
//! zip archive that Argos distributes.

use crate::formats::compressed::{FileBytes, max_unpacked};
use crate::formats::json::Keys;
use crate::formats::zip::{self, Packing, check_crc, inflate};
use crate::{Error, Result};
use regard_kernels::mapped::Mapped;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The weights.
pub(super) const MODEL: &str = "model.bin";
/// The names of vocabularies, with one of [`VOCABULARY_ENDINGS`].
pub(super) const VOCABULARIES: [&str; 3] = ["shared_vocabulary", "target_vocabulary", "source_vocabulary"];
pub(super) const VOCABULARY_ENDINGS: [&str; 2] = ["json", "txt"];
/// The metadata of an Argos package.
const METADATA: &str = "metadata.json";
/// The folder of the model in an Argos package.
const INNER: &str = "model";

/// The files of a model.
#[derive(Debug)]
pub(super) struct ModelFiles {
    /// The folder or the archive.
    path: PathBuf,
    place: Place,
    /// `metadata.json`, if it is an Argos package.
    metadata: Option<Keys>,
}

#[derive(Debug)]
enum Place {
    /// The folder of `model.bin`, or that of the package.
    Folder(PathBuf),
    /// An archive, and the one folder at its top.
    Archive(Arc<Mapped>, String),
}

impl ModelFiles {
    /// The files in a folder or in an archive, if it is one of these.
    pub(super) fn open(path: &Path) -> Result<Option<Self>> {
        if path.is_dir() {
            return Self::open_folder(path);
        }
        if is_package(path) && path.exists() { Self::open_archive(path).map(Some) } else { Ok(None) }
    }

    fn open_folder(path: &Path) -> Result<Option<Self>> {
        let has_model = |folder: &Path| {
            let vocabulary = |name: &str| {
                VOCABULARY_ENDINGS.iter().any(|ending| folder.join(format!("{name}.{ending}")).exists())
            };
            folder.join(MODEL).exists() && VOCABULARIES.iter().any(|name| vocabulary(name))
        };
        if has_model(path) {
            let place = Place::Folder(path.to_path_buf());
            return Ok(Some(ModelFiles { path: path.to_path_buf(), place, metadata: None }));
        }
        let metadata = path.join(METADATA);
        if !(metadata.exists() && has_model(&path.join(INNER))) {
            return only_package(path)?.map(|package| Self::open_archive(&package)).transpose();
        }
        let place = Place::Folder(path.to_path_buf());
        Ok(Some(ModelFiles { path: path.to_path_buf(), place, metadata: Some(Keys::open(&metadata)?) }))
    }

    fn open_archive(path: &Path) -> Result<Self> {
        crate::bounded::check_regular(path)?;
        let map = Mapped::open(path).map_err(|e| Error::io(path, e))?;
        let names = |file: &[u8]| -> Vec<String> {
            zip::members(file).into_iter().flatten().map(|member| member.name.to_owned()).collect()
        };
        let members = names(map.bytes());
        let top = top_folder(map.bytes()).map_err(|problem| Error::file(path, problem))?;
        let mut files = ModelFiles {
            path: path.to_path_buf(),
            place: Place::Archive(Arc::new(map), top),
            metadata: None,
        };
        let Some(metadata) = files.read_outer(METADATA)? else {
            return Err(Error::file(path, format!("has no {METADATA}; a package of Argos Translate has")));
        };
        files.metadata = Some(Keys::parse(&files.path_of(METADATA), metadata.bytes())?);
        let model = format!("{}/{INNER}/{MODEL}", files.top());
        if !members.contains(&model) {
            return Err(Error::file(
                path,
                format!("has no {INNER}/{MODEL}: it contains no translation model"),
            ));
        }
        Ok(files)
    }

    /// The folder at the top of an archive.
    fn top(&self) -> &str {
        match &self.place {
            Place::Archive(_, top) => top,
            Place::Folder(_) => "",
        }
    }

    /// The folder or the archive.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The metadata of an Argos package.
    pub(super) fn metadata(&self) -> Option<&Keys> {
        self.metadata.as_ref()
    }

    /// A file's path for messages.
    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        match &self.place {
            Place::Folder(folder) => folder.join(name),
            Place::Archive(_, top) => self.path.join(top).join(name),
        }
    }

    /// The file of that name beside `model.bin`, if it exists.
    pub(super) fn read(&self, name: &str) -> Result<Option<FileBytes>> {
        match self.metadata.is_some() || matches!(self.place, Place::Archive(..)) {
            true => self.read_outer(&format!("{INNER}/{name}")),
            false => self.read_outer(name),
        }
    }

    /// The file of that name in the package, if it exists.
    pub(super) fn read_outer(&self, name: &str) -> Result<Option<FileBytes>> {
        match &self.place {
            Place::Folder(folder) => {
                let path = folder.join(name);
                path.exists().then(|| FileBytes::open(&path)).transpose()
            }
            Place::Archive(map, top) => {
                let found = unpack_member(map.bytes(), &format!("{top}/{name}"));
                found
                    .map(|bytes| bytes.map(|bytes| FileBytes::Unpacked(bytes, map.bytes().len())))
                    .map_err(|problem| Error::file(&self.path, format!("{name} in the archive {problem}")))
            }
        }
    }
}

fn is_package(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("argosmodel"))
}

/// The package in a folder, if there is exactly one: in the download folder, each model has its own
/// folder.
fn only_package(folder: &Path) -> Result<Option<PathBuf>> {
    let io = |e| Error::io(folder, e);
    let mut found = None;
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if is_package(&path) && found.replace(path).is_some() {
            return Err(Error::file(
                folder,
                "has more than one package of Argos Translate; name one of them",
            ));
        }
    }
    Ok(found)
}

/// The single folder at the top of a package; nothing may lie outside it.
pub(super) fn top_folder(file: &[u8]) -> std::result::Result<String, String> {
    let mut top: Option<String> = None;
    for member in zip::members(file).map_err(|problem| format!("is not a package: {problem}"))? {
        let out = || format!("is refused, because {:?} leads out of the package", member.name);
        let mut parts = Path::new(member.name).components();
        let first = match parts.next() {
            Some(Component::Normal(first)) => first.to_string_lossy().into_owned(),
            _ => return Err(out()),
        };
        if parts.any(|part| !matches!(part, Component::Normal(_))) || member.name.contains('\\') {
            return Err(out());
        }
        match &top {
            Some(top) if *top != first => {
                return Err(format!("has {top:?} and {first:?} at its top; a package has one folder there"));
            }
            _ => top = Some(first),
        }
    }
    top.ok_or_else(|| "is an empty archive".into())
}

/// The bytes of a member, if it exists. The unpacked size has the same limit as for any compressed
/// file.
pub(super) fn unpack_member(file: &[u8], name: &str) -> std::result::Result<Option<Vec<u8>>, String> {
    let Some(member) = zip::members(file)?.into_iter().find(|member| member.name == name) else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    match member.packing {
        Packing::Stored => bytes.extend_from_slice(&file[member.range.clone()]),
        Packing::Deflated => inflate(file, &member, max_unpacked(file.len()), &mut bytes)?,
        Packing::Uneven => return Err(zip::UNEVEN.into()),
        Packing::Unknown => return Err("is encrypted, or compressed other than by deflate".into()),
    }
    check_crc(&bytes, member.crc)?;
    Ok(Some(bytes))
}
