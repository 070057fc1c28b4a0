//! Reads a pickle as data. Pickles are programs; this supports the few instructions that state
//! dicts need and executes nothing: what a pickle refers to must be on a short list, and everything
//! else is rejected by name.
//!
//! Values live in one list and refer to each other by index, so that shared and even circular
//! values cost nothing. An instruction creates at most one value, and the number of instructions is
//! limited.

use super::tensor::MAX_DIMENSIONS;
use crate::DType;
use std::collections::HashMap;

/// The maximum number of instructions: a state dict of a thousand tensors has about fifty thousand.
const MAX_INSTRUCTIONS: usize = 1 << 18;
/// The maximum number of arguments of an allowed function.
const MAX_ARGUMENTS: usize = 16;

type Result<T> = std::result::Result<T, String>;

/// The index of a value.
pub(super) type Ref = u32;

/// A value in a pickle.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    /// A float or `None`: not part of a tensor.
    Other,
    Bool(bool),
    /// Integers of up to 16 bytes, as in the magic number of a file.
    Int(i128),
    Text(&'a str),
    Sequence(Vec<Ref>),
    Dict(Vec<(Ref, Ref)>),
    Global(Global),
    Storage(Storage<'a>),
    Tensor(StridedView),
}

/// What a pickle may refer to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Global {
    OrderedDict,
    RebuildTensor,
    RebuildParameter,
    /// A storage of elements in this format.
    Storage(DType),
}

/// Elements stored outside the pickle, under a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Storage<'a> {
    pub(super) dtype: DType,
    pub(super) key: &'a str,
    /// The number of elements under the key.
    pub(super) size: usize,
    /// The first element of this storage.
    pub(super) from: usize,
    pub(super) count: usize,
}

/// A view of a storage.
#[derive(Clone, Debug)]
pub(super) struct StridedView {
    pub(super) storage: Ref,
    pub(super) offset: usize,
    pub(super) shape: Vec<usize>,
    pub(super) strides: Vec<usize>,
}

/// A pickle that has been read.
#[derive(Debug)]
pub(super) struct Pickle<'a> {
    pub(super) values: Vec<Value<'a>>,
    root: Ref,
    /// Its length in bytes.
    pub(super) length: usize,
}

impl<'a> Pickle<'a> {
    /// Reads the pickle at the start of `bytes`.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self> {
        let mut machine = Machine { bytes, ..Machine::default() };
        let root = machine.run().map_err(|e| format!("the pickle at its byte {}: {e}", machine.last))?;
        Ok(Pickle { values: machine.values, root, length: machine.at })
    }

    /// The value with this index.
    pub(super) fn get(&self, at: Ref) -> &Value<'a> {
        self.values.get(at as usize).unwrap_or(&Value::Other)
    }

    /// The top-level value.
    pub(super) fn root(&self) -> &Value<'a> {
        self.get(self.root)
    }

    /// The text with this index, if it is a text.
    pub(super) fn text(&self, at: Ref) -> Option<&'a str> {
        match self.get(at) {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

#[derive(Default)]
struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the current instruction began.
    last: usize,
    values: Vec<Value<'a>>,
    stack: Vec<Ref>,
    /// The height of the stack at each mark.
    marks: Vec<usize>,
    memo: HashMap<u32, Ref>,
}

const CUT: &str = "it is cut off";

impl<'a> Machine<'a> {
    fn run(&mut self) -> Result<Ref> {
        for _ in 0..MAX_INSTRUCTIONS {
            self.last = self.at;
            let [code] = self.take::<1>()?;
            if code == b'.' {
                return self.pop();
            }
            self.step(code)?;
        }
        Err(format!("more than {MAX_INSTRUCTIONS} instructions: this is not a table of tensors"))
    }

    fn step(&mut self, code: u8) -> Result<()> {
        match code {
            0x80 => {
                let [version] = self.take()?;
                if version > 5 {
                    return Err(format!("protocol {version} is not known; 5 is the last"));
                }
            }
            0x95 => return self.take::<8>().map(drop),
            b'(' => self.marks.push(self.stack.len()),
            b'0' => return self.pop().map(drop),
            b'1' => return self.since_mark().map(drop),
            b'N' => self.push(Value::Other),
            0x88 | 0x89 => self.push(Value::Bool(code == 0x88)),
            b'K' | b'M' | b'J' | 0x8a | 0x8b => return self.whole_number(code),
            b'G' => {
                self.take::<8>()?;
                self.push(Value::Other);
            }
            b'X' | b'U' | b'T' | 0x8c | 0x8d => return self.text(code),
            b')' | b']' => self.push(Value::Sequence(Vec::new())),
            b't' | b'l' => {
                let items = self.since_mark()?;
                self.push(Value::Sequence(items));
            }
            0x85..=0x87 => {
                let mut items = Vec::new();
                for _ in 0x85..=code {
                    items.insert(0, self.pop()?);
                }
                self.push(Value::Sequence(items));
            }
            b'}' => self.push(Value::Dict(Vec::new())),
            b'd' | b'u' | b's' | b'a' | b'e' => return self.collect(code),
            b'c' => {
                let (module, name) = (self.line()?, self.line()?);
                self.push(Value::Global(global(module, name)?));
            }
            0x93 => {
                let (name, module) = (self.pop_text()?, self.pop_text()?);
                self.push(Value::Global(global(module, name)?));
            }
            b'R' => return self.call(),
            // The attributes of an object; those of a state dict do not matter.
            b'b' => return self.pop().map(drop),
            b'Q' => {
                let id = self.pop_sequence()?;
                let storage = self.storage(&id).ok_or("a reference to something else than a storage")?;
                self.push(Value::Storage(storage));
            }
            b'q' | b'r' | 0x94 | b'h' | b'j' => return self.remember(code),
            _ => return Err(format!("instruction {code:#04x} is not one that tables of tensors need")),
        }
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let (bytes, _) = rest.split_first_chunk::<N>().ok_or(CUT)?;
        self.at += N;
        Ok(*bytes)
    }

    fn take_bytes(&mut self, count: u64) -> Result<&'a [u8]> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let bytes = usize::try_from(count).ok().and_then(|count| rest.get(..count)).ok_or(CUT)?;
        self.at += bytes.len();
        Ok(bytes)
    }

    /// The rest of a line; a reference consists of two.
    fn line(&mut self) -> Result<&'a str> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|&b| b == b'\n').ok_or(CUT)?;
        let line = &rest[..length];
        self.at += length + 1;
        std::str::from_utf8(line).map_err(|_| "a name is not UTF-8".into())
    }

    fn push(&mut self, value: Value<'a>) {
        self.stack.push(self.values.len() as Ref);
        self.values.push(value);
    }

    /// The last value since the mark.
    fn pop(&mut self) -> Result<Ref> {
        let low = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= low {
            return Err("it takes a value that is not there".into());
        }
        self.stack.pop().ok_or_else(|| CUT.into())
    }

    fn since_mark(&mut self) -> Result<Vec<Ref>> {
        let from = self.marks.pop().ok_or("it goes back to a mark that is not there")?;
        Ok(self.stack.split_off(from.min(self.stack.len())))
    }

    fn get(&self, at: Ref) -> &Value<'a> {
        self.values.get(at as usize).unwrap_or(&Value::Other)
    }

    fn pop_text(&mut self) -> Result<&'a str> {
        let at = self.pop()?;
        match self.get(at) {
            Value::Text(text) => Ok(text),
            _ => Err("a text is expected".into()),
        }
    }

    fn pop_sequence(&mut self) -> Result<Vec<Ref>> {
        let at = self.pop()?;
        match self.get(at) {
            Value::Sequence(items) if items.len() <= MAX_ARGUMENTS => Ok(items.clone()),
            _ => Err(format!("a tuple of at most {MAX_ARGUMENTS} values is expected")),
        }
    }

    fn whole_number(&mut self, code: u8) -> Result<()> {
        let value = match code {
            b'K' => self.take::<1>()?[0].into(),
            b'M' => u16::from_le_bytes(self.take()?).into(),
            b'J' => i32::from_le_bytes(self.take()?).into(),
            _ => {
                let length = match code {
                    0x8a => u64::from(self.take::<1>()?[0]),
                    _ => u64::from(u32::from_le_bytes(self.take()?)),
                };
                if length > 16 {
                    return Err(format!("a number of {length} bytes"));
                }
                let bytes = self.take_bytes(length)?;
                // Two's complement: the last byte has the sign.
                let negative = bytes.last().is_some_and(|b| b & 0x80 != 0);
                let mut all = [if negative { 0xff } else { 0 }; 16];
                all.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
                i128::from_le_bytes(all)
            }
        };
        self.push(Value::Int(value));
        Ok(())
    }

    fn text(&mut self, code: u8) -> Result<()> {
        let length = match code {
            b'U' | 0x8c => self.take::<1>()?[0].into(),
            b'X' | b'T' => u32::from_le_bytes(self.take()?).into(),
            _ => u64::from_le_bytes(self.take()?),
        };
        let bytes = self.take_bytes(length)?;
        let text = std::str::from_utf8(bytes).map_err(|_| "a text is not UTF-8")?;
        self.push(Value::Text(text));
        Ok(())
    }

    /// Adds values to a dict or a list.
    fn collect(&mut self, code: u8) -> Result<()> {
        let items = match code {
            b'a' => vec![self.pop()?],
            b's' => {
                let value = self.pop()?;
                vec![self.pop()?, value]
            }
            _ => self.since_mark()?,
        };
        if code == b'd' {
            self.push(Value::Dict(Vec::new()));
        }
        let to = self.stack.last().and_then(|&at| self.values.get_mut(at as usize));
        match (to, code) {
            (Some(Value::Sequence(to)), b'a' | b'e') => to.extend(items),
            (Some(Value::Dict(to)), b'd' | b'u' | b's') => {
                let (pairs, rest) = items.as_chunks::<2>();
                if !rest.is_empty() {
                    return Err("a key has no value".into());
                }
                to.extend(pairs.iter().map(|[key, value]| (*key, *value)));
            }
            _ => return Err("values are added to what is neither table nor list".into()),
        }
        Ok(())
    }

    fn remember(&mut self, code: u8) -> Result<()> {
        let number = match code {
            b'q' | b'h' => self.take::<1>()?[0].into(),
            0x94 => self.memo.len() as u32,
            _ => u32::from_le_bytes(self.take()?),
        };
        if matches!(code, b'h' | b'j') {
            let at = *self.memo.get(&number).ok_or("it recalls a value that was never kept")?;
            self.stack.push(at);
        } else {
            let at = *self.stack.last().ok_or("it keeps a value that is not there")?;
            self.memo.insert(number, at);
        }
        Ok(())
    }

    fn call(&mut self) -> Result<()> {
        let arguments = self.pop_sequence()?;
        let function = self.pop()?;
        let value = match self.get(function) {
            Value::Global(Global::OrderedDict) if arguments.is_empty() => Value::Dict(Vec::new()),
            Value::Global(Global::RebuildTensor) => {
                let tensor = self.tensor(&arguments).ok_or("a tensor that makes no sense")?;
                Value::Tensor(tensor)
            }
            Value::Global(Global::RebuildParameter) => match arguments.first().map(|&at| self.get(at)) {
                Some(Value::Tensor(tensor)) => Value::Tensor(tensor.clone()),
                _ => return Err("a parameter that is no tensor".into()),
            },
            _ => return Err("it calls something that is not supported".into()),
        };
        self.push(value);
        Ok(())
    }

    fn size(&self, at: Ref) -> Option<usize> {
        match self.get(at) {
            Value::Int(value) => usize::try_from(*value).ok(),
            _ => None,
        }
    }

    fn sizes(&self, at: Ref) -> Option<Vec<usize>> {
        match self.get(at) {
            Value::Sequence(items) if items.len() <= MAX_DIMENSIONS => {
                items.iter().map(|&at| self.size(at)).collect()
            }
            _ => None,
        }
    }

    /// `('storage', type, key, device, size)`, and in older files a part of it: `None` or
    /// `(key, first, count)`.
    fn storage(&self, id: &[Ref]) -> Option<Storage<'a>> {
        let [word, dtype, key, _, size, rest @ ..] = id else { return None };
        let (Value::Text("storage"), &Value::Global(Global::Storage(dtype)), Value::Text(key)) =
            (self.get(*word), self.get(*dtype), self.get(*key))
        else {
            return None;
        };
        let size = self.size(*size)?;
        let (from, count) = match rest.first().map(|&at| self.get(at)) {
            None | Some(Value::Other) => (0, size),
            Some(Value::Sequence(view)) => match view[..] {
                [_, from, count] => (self.size(from)?, self.size(count)?),
                _ => return None,
            },
            Some(_) => return None,
        };
        Some(Storage { dtype, key, size, from, count })
    }

    /// `(storage, offset, shape, strides, …)`.
    fn tensor(&self, arguments: &[Ref]) -> Option<StridedView> {
        let [storage, offset, shape, strides, ..] = *arguments else { return None };
        let Value::Storage(_) = self.get(storage) else { return None };
        let (shape, strides) = (self.sizes(shape)?, self.sizes(strides)?);
        let offset = self.size(offset)?;
        (shape.len() == strides.len()).then_some(StridedView { storage, offset, shape, strides })
    }
}

/// What state dicts may refer to.
fn global(module: &str, name: &str) -> Result<Global> {
    const STORAGES: [(&str, DType); 10] = [
        ("FloatStorage", DType::F32),
        ("HalfStorage", DType::F16),
        ("BFloat16Storage", DType::Bf16),
        ("DoubleStorage", DType::F64),
        ("LongStorage", DType::I64),
        ("IntStorage", DType::I32),
        ("ShortStorage", DType::I16),
        ("CharStorage", DType::Int8),
        ("ByteStorage", DType::U8),
        ("BoolStorage", DType::Bool),
    ];
    let storage =
        || STORAGES.iter().find(|(known, _)| *known == name).map(|&(_, dtype)| Global::Storage(dtype));
    let known = match (module, name) {
        ("collections", "OrderedDict") => Some(Global::OrderedDict),
        ("torch._utils", "_rebuild_tensor_v2" | "_rebuild_tensor") => Some(Global::RebuildTensor),
        ("torch._utils", "_rebuild_parameter") => Some(Global::RebuildParameter),
        ("torch" | "torch.storage", _) => storage(),
        _ => None,
    };
    known.ok_or_else(|| {
        let name: String = format!("{module}.{name}").chars().take(120).collect();
        format!("it refers to {name:?}, which no table of tensors needs; nothing of it was run")
    })
}

#[cfg(test)]
mod tests;
