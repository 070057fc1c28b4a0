//! `model.bin`: reads the variables of a file and checks that they lie inside it.

use crate::DType;
use crate::formats::tensor::MAX_DIMENSIONS;
use std::collections::HashMap;
use std::ops::Range;

/// The specification name in every file of an encoder-decoder Transformer.
const TRANSFORMER: &str = "TransformerSpec";

/// The variables of a file by name.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) version: u32,
    pub(super) variables: HashMap<String, Variable>,
}

/// The location of a variable.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Variable {
    pub(super) dtype: DType,
    pub(super) shape: Vec<usize>,
    pub(super) range: Range<usize>,
}

/// A position in a file from which numbers are read in sequence.
struct Reader<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let bytes = self.file.get(self.at..self.at.checked_add(n)?)?;
        self.at += n;
        Some(bytes)
    }

    fn number<const N: usize>(&mut self) -> Option<usize> {
        let bytes = self.take(N)?;
        Some(bytes.iter().rev().fold(0, |value, &byte| value << 8 | usize::from(byte)))
    }

    fn string(&mut self) -> Option<&'a str> {
        let n = self.number::<2>()?;
        let bytes = self.take(n)?;
        std::str::from_utf8(bytes.strip_suffix(&[0]).unwrap_or(bytes)).ok()
    }
}

/// Reads the variables of a file.
pub(super) fn contents(file: &[u8]) -> Result<Contents, String> {
    let mut reader = Reader { file, at: 0 };
    let cut =
        |reader: &Reader<'_>, what: &str| format!("is cut off or damaged at byte {}, in {what}", reader.at);
    let version = reader.number::<4>().ok_or_else(|| cut(&reader, "the version"))?;
    if !(2..=6).contains(&version) {
        return Err(format!("is of version {version} of CTranslate2's files; 2 to 6 can be read"));
    }
    let name = reader.string().ok_or_else(|| cut(&reader, "the name of the specification"))?;
    if name != TRANSFORMER {
        return Err(format!(
            "is a model of the kind {name:?}; only {TRANSFORMER:?}, an encoder and decoder, is supported"
        ));
    }
    reader.number::<4>().ok_or_else(|| cut(&reader, "the revision"))?;
    let count = reader.number::<4>().ok_or_else(|| cut(&reader, "the number of variables"))?;
    let mut variables = HashMap::new();
    for i in 0..count {
        let (name, variable) = variable(&mut reader, version >= 4)
            .map_err(|problem| problem.unwrap_or_else(|| cut(&reader, &format!("variable {i}"))))?;
        if variables.insert(name.to_owned(), variable).is_some() {
            return Err(format!("has the variable {name:?} twice"));
        }
    }
    let aliases = match version {
        2 => 0,
        _ => reader.number::<4>().ok_or_else(|| cut(&reader, "the number of aliases"))?,
    };
    for i in 0..aliases {
        let (Some(alias), Some(name)) = (reader.string(), reader.string()) else {
            return Err(cut(&reader, &format!("alias {i}")));
        };
        for (alias, name) in
            [(alias.to_owned(), name.to_owned()), (format!("{alias}_scale"), format!("{name}_scale"))]
        {
            match variables.get(&name).cloned() {
                Some(variable) => drop(variables.insert(alias, variable)),
                None if name.ends_with("_scale") => {}
                None => return Err(format!("has the alias {alias:?} for {name:?}, which is not there")),
            }
        }
    }
    Ok(Contents { version: version as u32, variables })
}

/// The next variable; an error without a message means the end of the file.
fn variable<'a>(reader: &mut Reader<'a>, typed: bool) -> Result<(&'a str, Variable), Option<String>> {
    let name = reader.string().ok_or(None)?;
    let rank = reader.number::<1>().ok_or(None)?;
    if rank > MAX_DIMENSIONS {
        return Err(Some(format!(
            "has the variable {name:?} of {rank} dimensions; at most {MAX_DIMENSIONS} are possible"
        )));
    }
    let shape: Option<Vec<usize>> = (0..rank).map(|_| reader.number::<4>()).collect();
    let shape = shape.ok_or(None)?;
    let kind = reader.number::<1>().ok_or(None)?;
    let dtype = match (typed, kind) {
        (true, 0) | (false, 4) => DType::F32,
        (true, 1) | (false, 1) => DType::Int8,
        (true, 2) | (false, 2) => DType::I16,
        (true, 3) => DType::I32,
        (true, 4) => DType::F16,
        (true, 5) => DType::Bf16,
        _ => return Err(Some(format!("has the variable {name:?} of the unknown type {kind}"))),
    };
    let size = reader.number::<4>().ok_or(None)?;
    let size = if typed { Some(size) } else { size.checked_mul(dtype.bytes()) };
    let numbers = shape.iter().try_fold(1usize, |n, &dimension| n.checked_mul(dimension));
    let expected = numbers.and_then(|n| n.checked_mul(dtype.bytes()));
    if size.is_none() || size != expected {
        return Err(Some(format!(
            "has the variable {name:?} of shape {shape:?}, whose bytes are not as many as that needs"
        )));
    }
    let start = reader.at;
    reader.take(size.unwrap_or(0)).ok_or(None)?;
    Ok((name, Variable { dtype, shape, range: start..reader.at }))
}
