//! Converts the variables of a `model.bin` to our model.

use super::file::{Contents, Variable, contents};
use super::files::{MODEL, ModelFiles};
use super::vocabulary::read_vocabularies;
use crate::decode::{BeamRule, EarlyStopping, Values};
use crate::formats::compressed::FileBytes;
use crate::formats::families::scan_languages;
use crate::formats::json::Keys;
use crate::formats::tensor::Tensor;
use crate::formats::{Foreign, GenerationConfig, Model};
use crate::model::{ModelConfig, Parameter, Transformer};
use crate::text::PieceList;
use crate::{DType, Error, Result};
use std::ops::Range;
use std::path::{Path, PathBuf};

const CONFIG: &str = "config.json";

/// A folder of CTranslate2 or a package of Argos Translate.
#[derive(Debug)]
pub(crate) struct Ct2Model {
    pub(super) files: ModelFiles,
    path: PathBuf,
    file: FileBytes,
    pub(super) contents: Contents,
    /// `config.json`.
    pub(super) keys: Keys,
    pub(super) source: PieceList,
    pub(super) target: PieceList,
    pub(super) is_joint: bool,
    config: ModelConfig,
}

impl Ct2Model {
    /// Opens the model in a folder or a package, if it is one.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>> {
        let Some(files) = ModelFiles::open(path)? else { return Ok(None) };
        let path = files.path_of(MODEL);
        let Some(file) = files.read(MODEL)? else {
            return Err(Error::file(path, "is missing"));
        };
        let contents = contents(file.bytes()).map_err(|problem| Error::file(&path, problem))?;
        let keys = match files.read(CONFIG)? {
            Some(bytes) => Keys::parse(&files.path_of(CONFIG), bytes.bytes())?,
            None => Keys::parse(&files.path_of(CONFIG), b"{}")?,
        };
        let vocabularies = read_vocabularies(&files, &contents, &keys)?;
        let (source, target, is_joint) = vocabularies;
        let mut model = Ct2Model {
            files,
            path,
            file,
            contents,
            keys,
            source,
            target,
            is_joint,
            config: ModelConfig::default(),
        };
        model.config = model.read_config()?;
        model.config.validate().map_err(|e| model.wrong(e.to_string()))?;
        Ok(Some(model))
    }

    pub(super) fn wrong(&self, message: impl Into<String>) -> Error {
        Error::file(&self.path, message.into())
    }

    pub(super) fn variable(&self, name: &str) -> Option<&Variable> {
        self.contents.variables.get(name)
    }

    pub(super) fn need(&self, name: &str) -> Result<&Variable> {
        self.variable(name).ok_or_else(|| self.wrong(format!("the variable {name} is missing")))
    }

    /// The value of a scalar variable, under the first of these names that exists.
    pub(super) fn scalar(&self, names: &[String]) -> Result<Option<f32>> {
        let Some((name, variable)) = names.iter().find_map(|name| Some((name, self.variable(name)?))) else {
            return Ok(None);
        };
        let mut to = [0.0];
        if variable.shape.iter().product::<usize>() != 1 {
            return Err(self.wrong(format!(
                "the variable {name} has the shape {:?}, a number is expected",
                variable.shape
            )));
        }
        self.read(name, variable, &mut to)?;
        Ok(Some(to[0]))
    }

    /// A setting of a stack; older files have one for both.
    pub(super) fn setting(&self, stack: &str, name: &str) -> Result<Option<f32>> {
        self.scalar(&[format!("{stack}/{name}"), name.to_owned()])
    }

    /// Reads the values of a variable, without dequantization.
    fn read(&self, name: &str, variable: &Variable, to: &mut [f32]) -> Result<()> {
        let bytes = &self.file.bytes()[variable.range.clone()];
        match variable.dtype {
            DType::I16 => {
                let numbers = bytes.as_chunks::<2>().0.iter().map(|b| f32::from(i16::from_le_bytes(*b)));
                to.iter_mut().zip(numbers).for_each(|(to, number)| *to = number);
                Ok(())
            }
            DType::I32 => {
                let numbers = bytes.as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b) as f32);
                to.iter_mut().zip(numbers).for_each(|(to, number)| *to = number);
                Ok(())
            }
            dtype => Tensor { dtype, shape: &variable.shape, strides: None, bytes }
                .read(to)
                .map_err(|problem| self.wrong(format!("the variable {name} {problem}"))),
        }
    }

    /// The divisors of the rows of integers.
    fn scales(&self, name: &str, rows: usize) -> Result<Vec<f32>> {
        let scale = format!("{name}_scale");
        let variable = self.need(&scale)?;
        let numbers: usize = variable.shape.iter().product();
        if numbers != rows && numbers != 1 {
            return Err(self
                .wrong(format!("the variable {scale} has the shape {:?} for {rows} rows", variable.shape)));
        }
        let mut scales = vec![1.0; numbers];
        self.read(&scale, variable, &mut scales)?;
        if scales.contains(&0.0) {
            return Err(
                self.wrong(format!("the variable {scale} has a zero, by which nothing can be divided"))
            );
        }
        Ok(if numbers == rows { scales } else { vec![scales[0]; rows] })
    }

    /// The variable of a parameter, and its expected shape.
    fn of(&self, parameter: &Parameter) -> Result<(String, Vec<usize>)> {
        let config = &self.config;
        let padding = usize::from(config.start_token.is_none());
        let [rows, cols] = parameter.shape;
        let name = parameter.name.as_str();
        let words = |name: &str| (name.to_owned(), vec![rows - padding, cols]);
        Ok(match name {
            "embeddings" | "decoder.embeddings" => words("decoder/embeddings/weight"),
            "encoder.embeddings" => words(self.embeddings("encoder")?),
            "output" => words("decoder/projection/weight"),
            "encoder.positions" => ("encoder/position_encodings/encodings".into(), vec![rows, cols]),
            "decoder.positions" => ("decoder/position_encodings/encodings".into(), vec![rows, cols]),
            _ => {
                let (layer, kind) = name.rsplit_once('.').unwrap_or((name, ""));
                let theirs =
                    theirs(layer, kind).ok_or_else(|| self.wrong(format!("has no place for {name}")))?;
                (theirs, if rows == 1 { vec![cols] } else { vec![rows, cols] })
            }
        })
    }

    /// The variable of a parameter, checked; `None` if it is a bias that the file omits.
    fn find(&self, parameter: &Parameter) -> Result<Option<(String, &Variable)>> {
        let (name, shape) = self.of(parameter)?;
        let Some(variable) = self.variable(&name) else {
            return match name.ends_with("/bias") {
                true => Ok(None),
                false => Err(self.wrong(format!("the variable {name} of shape {shape:?} is missing"))),
            };
        };
        if variable.shape != shape {
            return Err(self.wrong(format!(
                "the variable {name} has the shape {:?}, {shape:?} is expected",
                variable.shape
            )));
        }
        Ok(Some((name, variable)))
    }

    /// Releases the memory of a part of the file that has been read.
    fn release_range(&self, range: Range<usize>) {
        if let FileBytes::Mapped(map) = &self.file {
            map.release(range);
        }
    }

    fn output_bias(&self) -> Result<Option<Vec<f32>>> {
        let name = "decoder/projection/bias";
        let Some(variable) = self.variable(name) else { return Ok(None) };
        let words = self.target.pieces.len();
        if variable.shape != [words] {
            return Err(self.wrong(format!(
                "the variable {name} has the shape {:?}, [{words}] is expected",
                variable.shape
            )));
        }
        let mut bias = vec![0.0; words];
        self.read(name, variable, &mut bias)?;
        bias.resize(self.config.target_vocabulary, 0.0);
        Ok(bias.iter().any(|&x| x != 0.0).then_some(bias))
    }
}

impl Foreign for Ct2Model {
    fn model_type(&self) -> &'static str {
        if self.files.metadata().is_some() { "argos" } else { "ctranslate2" }
    }

    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn transformer(&self) -> Result<Transformer> {
        let transformer = Transformer::new(self.config.clone())?.with_output_bias(self.output_bias()?)?;
        // Check that the file has all parameters before allocating their size.
        for parameter in transformer.parameters() {
            self.find(parameter)?;
        }
        Ok(transformer)
    }

    fn model(&self, transformer: Transformer) -> Result<Model> {
        let (tokenizers, published) = self.tokenizers()?;
        let (begins, ends) = self.source_ends(published)?;
        let first = if begins { tokenizers.source().id("<s>") } else { None };
        let prefix = self.target_prefix(&tokenizers)?;
        let tokenizers = scan_languages(tokenizers.with_frames(first, ends, prefix));
        let argos = self.files.metadata().is_some();
        let generation = GenerationConfig {
            num_beams: argos.then_some(4),
            max_length: Some(257),
            length_penalty: Some(if argos { 0.2 } else { 1.0 }),
            beam_rule: Some(BeamRule::Ctranslate2),
            early_stopping: Some(EarlyStopping::Yes),
            renormalize_logits: Some(true),
            eos_token_id: Some(tokenizers.target().eos()),
            decoder_start_token_id: Some(transformer.config().start()),
            ..GenerationConfig::default()
        };
        Ok(Model {
            shortlist: None,
            transformer,
            weights: Vec::new(),
            tokenizers,
            languages: self.languages()?,
            generation,
        })
    }

    fn floats(&self, parameter: &Parameter) -> Result<Vec<f32>> {
        let mut values = vec![0.0; parameter.param.len];
        let Some((name, variable)) = self.find(parameter)? else { return Ok(values) };
        // Padding, which is our own token, is the last row of a vocabulary and zero.
        let n = variable.shape.iter().product();
        self.read(&name, variable, &mut values[..n])?;
        if matches!(variable.dtype, DType::Int8 | DType::I16) {
            let rows = variable.shape.first().copied().unwrap_or(0);
            let scales = self.scales(&name, rows)?;
            let width = n.checked_div(rows).unwrap_or(0).max(1);
            for (row, scale) in values[..n].chunks_exact_mut(width).zip(scales) {
                row.iter_mut().for_each(|x| *x /= scale);
            }
        }
        self.release_range(variable.range.clone());
        Ok(values)
    }

    fn values(&self, parameter: &Parameter) -> Result<Values<'static>> {
        let Some((name, variable)) = self.find(parameter)?.filter(|(_, v)| v.dtype == DType::Int8) else {
            return Ok(Values::F32(self.floats(parameter)?.into()));
        };
        let [rows, _] = parameter.shape;
        let bytes = &self.file.bytes()[variable.range.clone()];
        let mut values: Vec<i8> = bytes.iter().map(|&b| i8::from_le_bytes([b])).collect();
        values.resize(parameter.param.len, 0);
        let scales = self.scales(&name, variable.shape.first().copied().unwrap_or(0))?;
        let mut scales: Vec<f32> = scales.into_iter().map(|scale| 1.0 / scale).collect();
        scales.resize(rows, 1.0);
        self.release_range(variable.range.clone());
        Ok(Values::CTranslate2Int8 { values: values.into(), scales })
    }

    fn dtype(&self) -> DType {
        let weight = self.variable("encoder/layer_0/ffn/linear_0/weight");
        match weight.map(|weight| weight.dtype) {
            Some(DType::I16) | None => DType::F32,
            Some(dtype) => dtype,
        }
    }

    fn bytes(&self) -> usize {
        self.file.bytes().len()
    }

    fn release(&self) {
        self.release_range(0..self.bytes());
    }
}

/// The variable name for a layer's weights.
fn theirs(layer: &str, kind: &str) -> Option<String> {
    const ENDINGS: [(&str, &str); 12] = [
        ("self_attn.qkv", "self_attention/linear_0"),
        ("self_attn.out", "self_attention/linear_1"),
        ("self_attn_norm", "self_attention/layer_norm"),
        ("cross_attn.q", "attention/linear_0"),
        ("cross_attn.kv", "attention/linear_1"),
        ("cross_attn.out", "attention/linear_2"),
        ("cross_attn_norm", "attention/layer_norm"),
        ("ffn.up", "ffn/linear_0"),
        ("ffn.down", "ffn/linear_1"),
        ("ffn_norm", "ffn/layer_norm"),
        ("embedding_norm", "layernorm_embedding"),
        ("norm", "layer_norm"),
    ];
    let (stem, theirs) =
        ENDINGS.iter().find_map(|(ending, theirs)| Some((layer.strip_suffix(ending)?, theirs)))?;
    let kind = match (kind, theirs.contains("norm")) {
        ("weight", true) => "gamma",
        ("bias", true) => "beta",
        (kind, _) => kind,
    };
    Some(format!("{}{theirs}/{kind}", stem.replace(".layers.", "/layer_").replace('.', "/")))
}
