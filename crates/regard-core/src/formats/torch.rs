//! `pytorch_model.bin`: a state dict as written by `torch.save`, in either of its formats.
//!
//! Since torch 1.6 it is a zip archive of uncompressed entries: the pickled state dict and one
//! entry per storage. Before, it was a sequence of pickles (a magic number, a version, the machine,
//! the state dict, the keys of the storages) followed by the storages, each preceded by its size.
//! Tensors are views of storages and may share them.

use super::pickle::{Pickle, Storage, StridedView, Value};
use super::tensor::is_contiguous;
use super::weights::{Entry, Tensors};
use super::zip;
use crate::DType;
use std::collections::HashMap;
use std::ops::Range;

type Result<T> = std::result::Result<T, String>;

/// The magic number of the older format.
const MAGIC: i128 = 0x1950_a86a_20f9_469c_fc6c;
/// The only version of the older format.
const VERSION: i128 = 1001;

/// Reads the tensors of a file and checks that all lie inside it.
pub(super) fn read(file: &[u8]) -> Result<Tensors> {
    match file {
        [b'P', b'K', 3, 4, ..] => read_archive(file),
        [0x80, ..] => read_older(file),
        _ => Err(format!("{} bytes that are not a torch.save file, or a truncated one", file.len())),
    }
}

fn read_archive(file: &[u8]) -> Result<Tensors> {
    let entries = zip::entries(file)?;
    // All entries are in one folder, named after the original file.
    let folder = entries.keys().find_map(|name| name.strip_suffix("/data.pkl"));
    let folder = folder.filter(|folder| !folder.contains('/')).ok_or("the archive has no data.pkl")?;
    let find = |name: String| entries.get(name.as_str()).cloned();
    if let Some(order) = find(format!("{folder}/byteorder"))
        && &file[order.clone()] != b"little"
    {
        let order = String::from_utf8_lossy(&file[order]).chars().take(20).collect::<String>();
        return Err(format!("its numbers are in the byte order {order:?}; \"little\" can be read"));
    }
    let table = find(format!("{folder}/data.pkl")).unwrap_or_default();
    let pickle = Pickle::read(&file[table])?;
    tensors(&pickle, |key| find(format!("{folder}/data/{key}")))
}

fn read_older(file: &[u8]) -> Result<Tensors> {
    let mut at = 0;
    let mut next = || {
        let pickle = Pickle::read(&file[at..])?;
        at += pickle.length;
        Ok::<_, String>(pickle)
    };
    if !matches!(next()?.root(), Value::Int(MAGIC)) {
        return Err("a pickle, but not one of torch.save".into());
    }
    match next()?.root() {
        Value::Int(VERSION) => {}
        Value::Int(other) => {
            return Err(format!("version {other} of torch.save's file; {VERSION} can be read"));
        }
        _ => return Err("the version of torch.save's file is missing".into()),
    }
    let machine = next()?;
    if let Value::Dict(pairs) = machine.root()
        && pairs.iter().any(|&(key, value)| {
            machine.text(key) == Some("little_endian") && matches!(machine.get(value), Value::Bool(false))
        })
    {
        return Err("its numbers are big-endian; little-endian ones can be read".into());
    }
    let table = next()?;
    let keys = next()?;
    let storages = storages(&table, &keys, file, at)?;
    tensors(&table, |key| storages.get(key).cloned())
}

/// The storages of the older format, which follow each other from `at` on.
fn storages<'a>(
    table: &Pickle<'a>,
    keys: &Pickle<'a>,
    file: &[u8],
    mut at: usize,
) -> Result<HashMap<&'a str, Range<usize>>> {
    let mut dtypes: HashMap<&str, DType> = HashMap::new();
    for value in &table.values {
        if let Value::Storage(Storage { dtype, key, .. }) = value
            && dtypes.insert(*key, *dtype).is_some_and(|before| before != *dtype)
        {
            return Err(format!("storage {key:?} is of two types"));
        }
    }
    let Value::Sequence(keys_in_order) = keys.root() else {
        return Err("the keys of the storages are missing".into());
    };
    let mut found = HashMap::new();
    for &key in keys_in_order {
        let key = keys.text(key).ok_or("the key of a storage is no text")?;
        let dtype = dtypes.get(key).ok_or_else(|| format!("storage {key:?} belongs to no tensor"))?;
        let cut = || format!("storage {key:?} is missing or not whole: the file is cut off");
        let (count, _) = file.get(at..).and_then(|rest| rest.split_first_chunk::<8>()).ok_or_else(cut)?;
        at += 8;
        let count = usize::try_from(u64::from_le_bytes(*count)).ok();
        let bytes = count.and_then(|count| count.checked_mul(dtype.bytes())).ok_or_else(cut)?;
        let end = at.checked_add(bytes).filter(|&end| end <= file.len()).ok_or_else(cut)?;
        found.insert(key, at..end);
        at = end;
    }
    Ok(found)
}

/// The tensors of a state dict; `find` locates the bytes of a storage.
fn tensors(pickle: &Pickle<'_>, find: impl Fn(&str) -> Option<Range<usize>>) -> Result<Tensors> {
    let Value::Dict(pairs) = pickle.root() else { return Err("it holds no table of tensors".into()) };
    let mut tensors = Tensors::new();
    for &(key, value) in pairs {
        // State dicts may also hold settings.
        let Value::Tensor(view) = pickle.get(value) else { continue };
        let Value::Storage(storage) = pickle.get(view.storage) else { continue };
        let name = pickle.text(key).filter(|name| !name.is_empty()).ok_or("a tensor has no name")?;
        let bytes = find(storage.key)
            .ok_or_else(|| format!("storage {:?} of tensor {name} is not in the file", storage.key))?;
        tensors.insert(name.to_owned(), place(name, view, storage, bytes)?);
    }
    Ok(tensors)
}

/// The location of a tensor's elements in the file.
fn place(name: &str, view: &StridedView, storage: &Storage<'_>, bytes: Range<usize>) -> Result<Entry> {
    let StridedView { offset, shape, strides, .. } = view;
    let &Storage { dtype, key, size, from, count } = storage;
    let width = dtype.bytes();
    let has = bytes.len() / width;
    if size > has || from.checked_add(count).is_none_or(|end| end > size) {
        let code = dtype.code();
        return Err(format!(
            "storage {key:?} of tensor {name} should have {size} numbers of {code}, but has {has}"
        ));
    }
    let numbers = shape.iter().try_fold(1usize, |product, &n| product.checked_mul(n));
    let numbers = numbers.ok_or_else(|| format!("tensor {name} has the impossible shape {shape:?}"))?;
    // One element may not stand for many: the memory of a tensor is bounded by the file.
    if numbers > count {
        return Err(format!(
            "tensor {name} of shape {shape:?} has more numbers than its storage, which has {count}"
        ));
    }
    let reach = |sum: usize, (&n, &stride): (&usize, &usize)| sum.checked_add((n - 1).checked_mul(stride)?);
    let last = if numbers == 0 {
        None
    } else {
        let last = shape.iter().zip(strides).try_fold(*offset, reach).filter(|&last| last < count);
        let outside = || format!("tensor {name} reaches beyond its storage, which has {count} numbers");
        Some(last.ok_or_else(outside)?)
    };
    let at = |number: usize| bytes.start + (from + number) * width;
    let range = last.map_or(bytes.start..bytes.start, |last| at(*offset)..at(last + 1));
    let strides = (!is_contiguous(shape, strides)).then(|| strides.clone());
    Ok(Entry { dtype, shape: shape.clone(), strides, range })
}

#[cfg(test)]
mod tests;
