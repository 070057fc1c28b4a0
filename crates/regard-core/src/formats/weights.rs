//! The weights of a model folder in any supported format: safetensors or `pytorch_model.bin`, one
//! file or several.

use super::json::Keys;
use super::tensor::Tensor;
use super::{safetensors, torch};
use crate::{DType, Error, Result, bounded};
use regard_kernels::mapped::Mapped;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

/// The tensors of a file by name.
pub(super) type Tensors = HashMap<String, Entry>;

/// The location of a tensor in its file.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
    /// `None` if the tensor is contiguous.
    pub(super) strides: Option<Vec<usize>>,
    /// From the first element to the last, checked to lie inside the file.
    pub(super) range: Range<usize>,
}

/// The reader of a file format: returns the tensors, or what is wrong.
pub(super) type Format = fn(&[u8]) -> std::result::Result<Tensors, String>;

/// A weights file in memory, all of whose tensors are checked to lie in it.
#[derive(Debug)]
struct WeightsFile {
    path: PathBuf,
    map: Mapped,
    tensors: Tensors,
}

impl WeightsFile {
    /// Maps and checks a file.
    fn open(path: PathBuf, format: Format) -> Result<Self> {
        bounded::check_regular(&path)?;
        let map = Mapped::open(&path).map_err(|e| Error::io(&path, e))?;
        if map.bytes().starts_with(b"version https://git-lfs") {
            let message = "is a pointer of Git LFS, not the weights; `git lfs pull` fetches them";
            return Err(Error::file(path, message));
        }
        let tensors = format(map.bytes()).map_err(|message| Error::file(&path, message))?;
        Ok(WeightsFile { path, map, tensors })
    }
}

/// All weights of a model.
#[derive(Debug)]
pub(crate) struct Weights {
    /// The file, or the index of the files.
    path: PathBuf,
    files: Vec<WeightsFile>,
    /// Which file has which tensor, if there is an index.
    listed: Option<HashMap<String, usize>>,
}

/// The file that we write.
pub(super) const SAFETENSORS: &str = "model.safetensors";
/// All names of weights files, the preferred first, their formats, and whether the file is an
/// index.
pub(super) const NAMES: [(&str, Format, bool); 4] = [
    (SAFETENSORS, safetensors::read, false),
    ("model.safetensors.index.json", safetensors::read, true),
    ("pytorch_model.bin", torch::read, false),
    ("pytorch_model.bin.index.json", torch::read, true),
];

impl Weights {
    /// Opens the weights of a folder.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let found = NAMES.iter().find(|(name, ..)| folder.join(name).exists());
        let Some((name, format, is_index)) = found else {
            let message =
                format!("no weights: neither {} is there", NAMES.map(|(name, ..)| name).join(" nor "));
            return Err(Error::file(folder, message));
        };
        let path = folder.join(name);
        match is_index {
            true => Self::open_listed(&path, folder, *format),
            false => Self::open_file(&path, *format),
        }
    }

    pub(super) fn open_file(path: &Path, format: Format) -> Result<Self> {
        let file = WeightsFile::open(path.to_path_buf(), format)?;
        Ok(Weights { path: path.to_path_buf(), files: vec![file], listed: None })
    }

    /// Opens the files that an index lists.
    fn open_listed(path: &Path, folder: &Path, format: Format) -> Result<Self> {
        let keys = Keys::open(path)?;
        // Sorted, so that messages are deterministic.
        let map: BTreeMap<String, String> = keys.need("weight_map")?;
        let mut files: Vec<WeightsFile> = Vec::new();
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let mut listed = HashMap::new();
        for (tensor, shard) in &map {
            let number = match numbers.get(shard.as_str()) {
                Some(number) => *number,
                None => {
                    check_name(shard).map_err(|message| keys.wrong("weight_map", message))?;
                    files.push(WeightsFile::open(folder.join(shard), format)?);
                    numbers.insert(shard, files.len() - 1);
                    files.len() - 1
                }
            };
            if !files[number].tensors.contains_key(tensor) {
                return Err(keys.wrong("weight_map", format!("tensor {tensor} is not in {shard}")));
            }
            listed.insert(tensor.clone(), number);
        }
        Ok(Weights { path: path.to_path_buf(), files, listed: Some(listed) })
    }

    /// The file to name in messages about all of them.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn file_of(&self, name: &str) -> Option<&WeightsFile> {
        match &self.listed {
            None => self.files.first(),
            Some(listed) => self.files.get(*listed.get(name)?),
        }
    }

    /// An error about a tensor, with the name of its file.
    pub(crate) fn wrong(&self, name: &str, problem: impl std::fmt::Display) -> Error {
        let path = self.file_of(name).map_or(self.path(), |file| file.path.as_path());
        Error::file(path, format!("tensor {name} {problem}"))
    }

    /// The number of tensors.
    pub(crate) fn len(&self) -> usize {
        match &self.listed {
            None => self.files.iter().map(|file| file.tensors.len()).sum(),
            Some(listed) => listed.len(),
        }
    }

    /// The total size of the files in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.files.iter().map(|file| file.map.bytes().len()).sum()
    }

    /// The tensor with this name.
    pub(crate) fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        let file = self.file_of(name)?;
        let Entry { dtype, shape, strides, range } = file.tensors.get(name)?;
        let bytes = file.map.bytes().get(range.clone())?;
        Some(Tensor { dtype: *dtype, shape, strides: strides.as_deref(), bytes })
    }

    /// An upper bound of the number of values in the files, at two bytes each or, if quantised,
    /// one.
    pub(crate) fn most_numbers(&self) -> usize {
        if self.dtypes().contains_key(&DType::Int8) { self.bytes() } else { self.bytes() / 2 }
    }

    /// Writes the values of a tensor to `to`, which has its size; int8 values are multiplied by
    /// their scales.
    pub(crate) fn read(&self, name: &str, tensor: Tensor<'_>, to: &mut [f32]) -> Result<()> {
        tensor.read(to).map_err(|problem| self.wrong(name, problem))?;
        if let Some(scales) = self.scales(name, tensor)? {
            let rows = to.chunks_exact_mut(to.len().checked_div(scales.len()).unwrap_or(0).max(1));
            rows.zip(scales).for_each(|(row, scale)| row.iter_mut().for_each(|x| *x *= scale));
        }
        self.release(name);
        Ok(())
    }

    /// The values of an int8 tensor as stored, and the scales of its rows.
    pub(crate) fn read_int8(&self, name: &str, tensor: Tensor<'_>) -> Result<Option<(Vec<i8>, Vec<f32>)>> {
        let Some(scales) = self.scales(name, tensor)? else { return Ok(None) };
        let values = tensor.bytes.iter().map(|&b| i8::from_le_bytes([b])).collect();
        self.release(name);
        Ok(Some((values, scales)))
    }

    /// The scales of the rows of a tensor, if it is int8.
    fn scales(&self, name: &str, tensor: Tensor<'_>) -> Result<Option<Vec<f32>>> {
        if tensor.dtype != DType::Int8 {
            return Ok(None);
        }
        let rows = tensor.shape.first().copied().unwrap_or(0);
        let scale = format!("{name}{}", safetensors::SCALE);
        let found = self.tensor(&scale).filter(|scales| scales.shape == [rows] && scales.dtype == DType::F32);
        let (Some(found), None) = (found, tensor.strides) else {
            return Err(
                self.wrong(name, format!("is in 8 bits, but there is no {scale} with {rows} numbers"))
            );
        };
        let mut scales = vec![0.0; rows];
        found.read(&mut scales).map_err(|problem| self.wrong(&scale, problem))?;
        Ok(Some(scales))
    }

    /// Releases the memory of a tensor after it has been read.
    pub(crate) fn release(&self, name: &str) {
        if let Some(file) = self.file_of(name)
            && let Some(entry) = file.tensors.get(name)
        {
            file.map.release(entry.range.clone());
        }
    }

    /// The number formats of the tensors, and the number of values in each.
    pub(crate) fn dtypes(&self) -> BTreeMap<DType, usize> {
        let mut dtypes = BTreeMap::new();
        for entry in self.files.iter().flat_map(|file| file.tensors.values()) {
            *dtypes.entry(entry.dtype).or_default() += entry.shape.iter().product::<usize>();
        }
        dtypes
    }
}

/// Checks that an index only names files beside it.
fn check_name(name: &str) -> std::result::Result<(), String> {
    let mut parts = Path::new(name).components();
    let plain = matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name);
    if !plain || name.contains(['\\', ':', '\0']) {
        return Err(format!(
            "{name:?} leads out of the folder; the name of a file beside the index is expected"
        ));
    }
    Ok(())
}
