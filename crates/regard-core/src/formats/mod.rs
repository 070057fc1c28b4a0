//! Model folders.
//!
//! A model is a MarianMT directory, which `transformers` and CTranslate2 read as well:
//! `config.json`, `generation_config.json`, `model.safetensors`, `tokenizer.json` (and
//! `target_tokenizer.json` if the vocabularies are separate; or the `.spm` files and `vocab.json`
//! of published models) and `tokenizer_config.json`. Weights are also read from
//! `pytorch_model.bin`, and from several files with an index; [`resolve`] finds models by their
//! names on the Hugging Face hub. A model that this format cannot express has the same files under
//! `model_type: regard`; [`Model::why_not_marian`] says why. Folders of M2M100, NLLB-200, mBART-50
//! and T5 are read as well (`families`, `t5`).

mod average;
pub mod compressed;
mod ctranslate2;
mod families;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod generation;
mod hub;
mod json;
mod licence;
mod marian;
pub mod marian_nmt;
mod pickle;
mod safetensors;
mod t5;
mod tensor;
mod torch;
mod training_log;
mod weights;
mod zip;

pub use average::{average, average_with};
pub use generation::GenerationConfig;
pub use hub::{find_on_hub, resolve, resolve_with};
pub use licence::{Licence, licence};
pub(crate) use marian_nmt::metadata_file;
pub use training_log::{Record, StepRecord, ValidationRecord, read_log};

use crate::decode::{Engine, Shortlist, Values};
use crate::model::{Combine, EncoderKind, ModelConfig, Parameter, Positions, Side, Transformer};
use crate::parallel;
use crate::replace::replace;
use crate::text::{self, TokenizerPair};
use crate::{DType, Error, Isa, Result};
use ctranslate2::Ct2Model;
use families::Family;
use json::Keys;
use marian::{Place, WrittenConfig};
use marian_nmt::{MarianModel, lexical_shortlist, read_shortlist};
use regard_kernels::PromptRelease;
use safetensors::Writable;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tensor::Tensor;
use weights::Weights;

const CONFIG: &str = "config.json";
const GENERATION: &str = "generation_config.json";
const WEIGHTS: &str = weights::SAFETENSORS;
/// The lexical shortlist, in Marian's format.
const SHORTLIST: &str = "lex.s2t.bin";
const TOKENIZER_CONFIG: &str = "tokenizer_config.json";

/// Everything that is needed to translate.
#[derive(Clone, Debug)]
pub struct Model {
    /// The layers.
    pub transformer: Transformer,
    /// Their weights.
    pub weights: Vec<f32>,
    /// The tokenizers.
    pub tokenizers: TokenizerPair,
    /// The languages that it translates between.
    pub languages: Languages,
    /// Its default search settings.
    pub generation: GenerationConfig,
    /// The lexical shortlist, if the folder has one: the search is restricted to its words.
    pub shortlist: Option<Arc<Shortlist>>,
}

/// The languages of a model, with the codes that the user gave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Languages {
    /// The source language, for example `en`.
    #[serde(rename = "source_lang")]
    pub source: Option<String>,
    /// The target language, for example `de`.
    #[serde(rename = "target_lang")]
    pub target: Option<String>,
}

impl Languages {
    /// These languages, with missing ones taken from `other`.
    pub fn or(self, other: Self) -> Self {
        Languages { source: self.source.or(other.source), target: self.target.or(other.target) }
    }
}

/// The description of a model folder, besides the model.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    /// `marian`, `regard`, `marian-nmt`, `ctranslate2`, `argos`, or the name of another family.
    pub model_type: &'static str,
    /// Why the Marian format cannot express it; empty if it can.
    pub why_not_marian: Vec<String>,
    /// The format in which most of the weights are stored.
    #[serde(rename = "precision")]
    pub dtype: DType,
    /// The size of the weights file.
    pub weight_bytes: u64,
}

impl Model {
    /// Reads a model folder.
    pub fn load(folder: &Path) -> Result<Self> {
        if let Some(foreign) = open_foreign(folder)? {
            let model = foreign.model(foreign.transformer()?)?;
            let mut weights = Vec::with_capacity(model.transformer.parameters().len());
            for parameter in model.transformer.parameters() {
                weights.extend(foreign.floats(parameter)?);
            }
            return Ok(Model { weights, ..model });
        }
        let (model, file) = Self::open(folder)?;
        let weights = read_weights(&model.transformer, &file)?;
        Ok(Model { weights, ..model })
    }

    /// Reads a model folder without its weights, but checks that they exist in the right shapes.
    pub fn load_without_weights(folder: &Path) -> Result<Self> {
        if let Some(foreign) = open_foreign(folder)? {
            return foreign.model(foreign.transformer()?);
        }
        let (model, file) = Self::open(folder)?;
        check_places(&model.transformer, &file)?;
        Ok(model)
    }

    /// Reads a model folder and packs its weights, which are then not in the model; in the number
    /// format they are stored in, unless `dtype` names another. At most one matrix exists twice in
    /// memory.
    pub fn load_engine(folder: &Path, dtype: Option<DType>, isa: Isa) -> Result<(Self, Engine)> {
        let _prompt = PromptRelease::begin();
        if let Some(foreign) = open_foreign(folder)? {
            let transformer = foreign.transformer()?;
            let dtype = dtype.unwrap_or(foreign.dtype()).for_decoding();
            // Reading the vocabularies takes as long as packing the weights.
            let (model, engine) = parallel::join(
                || foreign.model(transformer.clone()),
                || {
                    Engine::build(&transformer, dtype, isa, |parameter| match dtype {
                        DType::Int8 => foreign.values(parameter),
                        _ => foreign.floats(parameter).map(|values| Values::F32(values.into())),
                    })
                },
            );
            let (model, engine) = (model?, engine?);
            foreign.release();
            return Ok((model, engine));
        }
        let (model, file) = Self::open(folder)?;
        check_places(&model.transformer, &file)?;
        let dtype = dtype.unwrap_or_else(|| stored_dtype(&file)).for_decoding();
        let config = model.transformer.config();
        let engine = Engine::build(&model.transformer, dtype, isa, |parameter| {
            let places = marian::places_of(parameter, config);
            match dtype {
                DType::Int8 => read_values(parameter, &places, &file),
                _ => read_floats(parameter, &places, &file).map(|v| Values::F32(v.into())),
            }
        })?;
        Ok((model, engine))
    }

    /// Everything except the weights, and the weights.
    fn open(folder: &Path) -> Result<(Self, Weights)> {
        let (keys, config) = read_config(folder)?;
        let file = Weights::open(folder)?;
        check_sizes(&config, &file)?;
        let transformer = Transformer::new(config)?;
        let family = Family::of(&keys)?;
        let (tokenizers, languages) = open_tokenizers(folder, family)?;
        check_tokenizers(&tokenizers, transformer.config(), marian::read_eos(&keys)?)
            .map_err(|(tokenizer, message)| Error::file(folder.join(tokenizer), message))?;
        let generation = read_generation(folder, &keys, family, tokenizers.target().eos())?;
        let bias = read_bias(transformer.config().target_vocabulary, &file)?;
        let transformer = transformer.with_output_bias(bias)?;
        let weights = Vec::new();
        let path = folder.join(SHORTLIST);
        let (config, joint) = (transformer.config(), tokenizers.is_joint());
        let vocabularies = (config.source_vocabulary, config.target_vocabulary);
        let shortlist = path.exists().then(|| read_shortlist(&path, vocabularies, 0, joint)).transpose()?;
        Ok((Model { transformer, weights, tokenizers, languages, generation, shortlist }, file))
    }

    /// Writes a model folder, each file atomically. If `generation` is empty,
    /// [`GenerationConfig::standard`] is written.
    pub fn save(&self, folder: &Path, dtype: DType) -> Result<()> {
        let config = self.transformer.config();
        let target = self.tokenizers.target();
        check_tokenizers(&self.tokenizers, config, Some(target.eos()))
            .map_err(|(tokenizer, message)| Error::file(folder.join(tokenizer), message))?;
        fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        self.tokenizers.save(folder)?;
        let tokenizer_config = tokenizer_config(&self.tokenizers, &self.languages, config.max_positions);
        json::write(&folder.join(TOKENIZER_CONFIG), &tokenizer_config)?;
        let standard = GenerationConfig::standard(target.pad(), target.eos(), config.max_positions);
        let standard = GenerationConfig { decoder_start_token_id: Some(config.start()), ..standard };
        let silent = self.generation == GenerationConfig::default();
        json::write(&folder.join(GENERATION), if silent { &standard } else { &self.generation })?;
        let bias = self.transformer.output_bias();
        write_weights(&self.transformer, &self.weights, bias, &folder.join(WEIGHTS), dtype)?;
        if let Some(list) = &self.shortlist {
            let list = lexical_shortlist(list, self.tokenizers.source().eos(), config.source_vocabulary);
            replace(&folder.join(SHORTLIST), |to| list.write(to))?;
        }
        // Write it last: from here on, a new folder is a complete model.
        json::write(&folder.join(CONFIG), &WrittenConfig::new(config, (target.pad(), target.eos()), dtype))
    }

    /// The same model, set to translate from one of its languages to another; a language that is
    /// not given stays unchanged. All spellings of codes are accepted
    /// ([`languages`](crate::languages)).
    pub fn for_languages(&self, source: Option<&str>, target: Option<&str>) -> Result<Self> {
        let asked = Languages { source: source.map(str::to_owned), target: target.map(str::to_owned) };
        let (tokenizers, languages) = choose_languages(&self.tokenizers, asked.or(self.languages.clone()))?;
        Ok(Model { tokenizers, languages, ..self.clone() })
    }

    /// The configuration of a folder's model, without its weights.
    pub fn config(folder: &Path) -> Result<ModelConfig> {
        if let Some(foreign) = open_foreign(folder)? {
            return Ok(foreign.config().clone());
        }
        Ok(read_config(folder)?.1)
    }

    /// The languages of a folder's model, if the folder states them.
    pub fn languages(folder: &Path) -> Result<Languages> {
        if let Some(foreign) = open_foreign(folder)? {
            return Ok(foreign.model(foreign.transformer()?)?.languages);
        }
        let family = Family::of(&Keys::open_if_there(&folder.join(CONFIG))?)?;
        Ok(open_tokenizers(folder, family)?.1)
    }

    /// The bias of the logits of a folder's model with `words` words.
    pub fn output_bias(folder: &Path, words: usize) -> Result<Option<Vec<f32>>> {
        read_bias(words, &Weights::open(folder)?)
    }

    /// Writes only a weights file, atomically.
    pub fn save_weights(transformer: &Transformer, weights: &[f32], file: &Path, dtype: DType) -> Result<()> {
        write_weights(transformer, weights, transformer.output_bias(), file, dtype)
    }

    /// Why `transformers` and CTranslate2 cannot run a model with this configuration; empty if they
    /// can.
    pub fn why_not_marian(config: &ModelConfig) -> Vec<String> {
        marian::why_not(config)
    }

    /// How a folder stores its model.
    pub fn describe(folder: &Path) -> Result<Description> {
        if let Some(foreign) = open_foreign(folder)? {
            return Ok(Description {
                model_type: foreign.model_type(),
                why_not_marian: marian::why_not(foreign.config()),
                dtype: foreign.dtype(),
                weight_bytes: foreign.bytes() as u64,
            });
        }
        let (keys, config) = read_config(folder)?;
        let file = Weights::open(folder)?;
        let (mut why_not_marian, dtype) = (marian::why_not(&config), stored_dtype(&file));
        if dtype == DType::Int8 {
            why_not_marian.push("weights in 8 bits: Marian has f32, bf16 and f16".into());
        }
        let own = if why_not_marian.is_empty() { marian::MARIAN } else { marian::REGARD };
        Ok(Description {
            model_type: Family::of(&keys)?.map_or(own, Family::name),
            why_not_marian,
            dtype,
            weight_bytes: file.bytes() as u64,
        })
    }
}

/// A model in the files of another program, converted to ours in memory.
pub(crate) trait Foreign: Sync {
    /// The name of this kind of folder.
    fn model_type(&self) -> &'static str;
    /// The shape.
    fn config(&self) -> &ModelConfig;
    /// The layers, after checking that the files have all of their weights.
    fn transformer(&self) -> Result<Transformer>;
    /// Everything except the weights, for these layers.
    fn model(&self, transformer: Transformer) -> Result<Model>;
    /// The values of a parameter.
    fn floats(&self, parameter: &Parameter) -> Result<Vec<f32>>;
    /// The same as stored.
    fn values(&self, parameter: &Parameter) -> Result<Values<'static>>;
    /// The format in which most of the weights are stored.
    fn dtype(&self) -> DType;
    /// The size of the weights file.
    fn bytes(&self) -> usize;
    /// Releases the memory of the file after it has been read.
    fn release(&self);
}

/// The model of another program in a folder or package, if it is not in our own format.
fn open_foreign(folder: &Path) -> Result<Option<Box<dyn Foreign>>> {
    if let Some(model) = Ct2Model::open(folder)? {
        return Ok(Some(Box::new(model)));
    }
    match folder.is_dir() && !folder.join(CONFIG).exists() {
        true => Ok(MarianModel::open(folder)?.map(|model| Box::new(model) as Box<dyn Foreign>)),
        false => Ok(None),
    }
}

/// The format in which most of the weights are stored.
fn stored_dtype(file: &Weights) -> DType {
    let most = file.dtypes().into_iter().max_by_key(|(_, numbers)| *numbers);
    most.map(|(dtype, _)| dtype).filter(|dtype| DType::WEIGHTS.contains(dtype)).unwrap_or_default()
}

fn read_config(folder: &Path) -> Result<(Keys, ModelConfig)> {
    let expected = format!(
        "a model is a folder with {CONFIG}, {WEIGHTS} and tokenizer.json, or a folder of Marian or Firefox \
         with model*.npz or model*.bin and its vocabularies, a folder of CTranslate2 with model.bin and its \
         vocabularies, or a package of Argos Translate (.argosmodel)"
    );
    if !folder.is_dir() {
        let found = if folder.exists() { "is a file, not a folder" } else { "no such folder" };
        return Err(Error::file(folder, format!("{found}; {expected}")));
    }
    if !folder.join(CONFIG).exists() {
        if folder.join("cache").join("lock").exists() {
            let message =
                "is not a model yet: the training run in this folder has not reached its first step";
            return Err(Error::file(folder, message));
        }
        return Err(Error::file(folder.join(CONFIG), format!("there is no such file; {expected}")));
    }
    let keys = Keys::open(&folder.join(CONFIG))?;
    let mut config = marian::read_config(&keys)?;
    if Family::of(&keys)? == Some(Family::T5) {
        config.tying = t5::tying(Weights::open(folder)?.tensor(marian::OUTPUT).is_some());
    }
    Ok((keys, config))
}

/// The model's default search settings; `keys` are those of [`CONFIG`], and `eos` is the end token
/// of the target side.
fn read_generation(folder: &Path, keys: &Keys, family: Option<Family>, eos: u32) -> Result<GenerationConfig> {
    let file = Keys::open_if_there(&folder.join(GENERATION))?;
    let generation: GenerationConfig = if !file.is_empty() {
        GenerationConfig::read(&file, eos)?
    } else {
        // Older folders have the search settings in the model's configuration, where the end is
        // forced unless a null disables it.
        let mut generation = GenerationConfig::read(keys, eos)?;
        let unforced = [Some(Family::M2m100), Some(Family::T5)].contains(&family);
        if !keys.has("forced_eos_token_id") && !unforced {
            generation.forced_eos_token_id = marian::read_eos(keys)?;
        }
        generation
    };
    Ok(generation.or(GenerationConfig::implied()))
}

/// The contents of `tokenizer_config.json` for these tokenizers.
fn tokenizer_config(
    tokenizers: &TokenizerPair,
    languages: &Languages,
    max_positions: usize,
) -> serde_json::Value {
    let mut config = tokenizers.hugging_face_config(max_positions);
    for (key, language) in [("source_lang", &languages.source), ("target_lang", &languages.target)] {
        if let Some(language) = language {
            config[key] = language.as_str().into();
        }
    }
    let source = tokenizers.source();
    if !source.ends() {
        config[families::SOURCE_END] = false.into();
    }
    if let (Some(first), None) = (source.prefix_ids().first(), tokenizers.languages()) {
        config[families::SOURCE_BEGIN] = (*first).into();
    }
    if let Some(languages) = tokenizers.languages() {
        let tokens: Vec<&str> = languages.list.iter().map(|language| language.token.as_str()).collect();
        config[families::LISTED] = tokens.into();
        config[families::PLACEMENT] = serde_json::to_value(languages.placement).unwrap_or_default();
    }
    if let Some(terms) = tokenizers.terms() {
        let tokens = terms.ids().map(|id| source.piece(id).unwrap_or_default());
        config[families::TERMS] = tokens.to_vec().into();
    }
    config
}

/// Writes tokenizers and their languages to a folder, from which [`load_tokenizers`] reads them.
pub fn save_tokenizers(tokenizers: &TokenizerPair, folder: &Path) -> Result<()> {
    tokenizers.save(folder)?;
    let [source, target] = tokenizers.chosen().clone();
    let config = tokenizer_config(tokenizers, &Languages { source, target }, 0);
    json::write(&folder.join(TOKENIZER_CONFIG), &config)
}

/// The tokenizers of a model folder, for the languages that it is set to.
pub fn load_tokenizers(folder: &Path) -> Result<TokenizerPair> {
    if let Some(model) = Ct2Model::open(folder)? {
        return Ok(model.model(model.transformer()?)?.tokenizers);
    }
    let family = Family::of(&Keys::open_if_there(&folder.join(CONFIG))?)?;
    Ok(open_tokenizers(folder, family)?.0)
}

fn open_tokenizers(folder: &Path, family: Option<Family>) -> Result<(TokenizerPair, Languages)> {
    let keys = Keys::open_if_there(&folder.join(TOKENIZER_CONFIG))?;
    let languages: Languages = keys.all()?;
    let (tokenizers, languages) = match family {
        Some(family) => (family.load_tokenizers(folder)?, languages.or(families::chosen(&keys)?)),
        None => {
            let pair = families::own_languages(TokenizerPair::load(folder)?, &keys)?;
            (families::own_terms(pair, &keys)?, languages)
        }
    };
    choose_languages(&tokenizers, languages)
}

/// The tokenizers for the languages that a folder is set to.
fn choose_languages(tokenizers: &TokenizerPair, languages: Languages) -> Result<(TokenizerPair, Languages)> {
    let (pair, [source, target]) =
        tokenizers.for_languages(languages.source.as_deref(), languages.target.as_deref())?;
    Ok((pair, Languages { source, target }))
}

/// Checks that the vocabularies have the sizes of the embeddings, and that padding comes last. An
/// error includes the tokenizer's file.
fn check_tokenizers(
    tokenizers: &TokenizerPair,
    config: &ModelConfig,
    eos: Option<u32>,
) -> std::result::Result<(), (&'static str, String)> {
    let (source_file, target_file) = tokenizers.vocabulary_files();
    for (file, tokenizer, words) in [
        (source_file, tokenizers.source(), config.source_vocabulary),
        (target_file, tokenizers.target(), config.target_vocabulary),
    ] {
        let size = tokenizer.size();
        if config.start_token.is_some() {
            // Other models have larger matrices than vocabularies, and padding at any id. Padding
            // after the last word is never generated.
            if size - usize::from(tokenizer.pad() as usize == size - 1) > words {
                return Err((
                    file,
                    format!("the vocabulary has {size} pieces, but the embeddings only {words}"),
                ));
            }
        } else if size != words {
            return Err((file, format!("the vocabulary has {size} pieces, but the embeddings have {words}")));
        }
        if config.start_token.is_none() && tokenizer.pad() as usize != size - 1 {
            let message =
                format!("{} is {}, but must be the last id, {}", text::PAD, tokenizer.pad(), size - 1);
            return Err((file, message));
        }
        if let Some(eos) = eos.filter(|&eos| eos != tokenizer.eos()) {
            let message =
                format!("{} is {}, but eos_token_id of the model is {eos}", text::EOS, tokenizer.eos());
            return Err((file, message));
        }
    }
    Ok(())
}

/// Checks that the file is large enough for a model of this configuration, so that building one
/// allocates no more than the file warrants.
fn check_sizes(config: &ModelConfig, file: &Weights) -> Result<()> {
    let refuse = |message: String| Err(Error::file(file.path(), message));
    for place in marian::vocabulary_places(config) {
        find(&place, file)?;
    }
    for (stack, layers) in [("encoder", config.encoder_layers), ("decoder", config.decoder_layers)] {
        if layers > file.len() {
            return refuse(format!("{} tensors cannot be {layers} {stack} layers", file.len()));
        }
        let next = [format!("model.{stack}.layers.{layers}.fc1.weight"), t5::layer_tensor(stack, layers)];
        if let Some(next) = next.iter().find(|next| file.tensor(next).is_some()) {
            return refuse(format!("{next} is there, but {CONFIG} says {stack}_layers {layers}"));
        }
    }
    let d = config.d_model as u128;
    let sides = [Side::Source, Side::Target];
    let heads = sides.map(|side| config.head_shape(side));
    let d_k = heads.iter().map(|heads| heads.d_k).max().unwrap_or(0);
    let positions = match config.positions {
        Positions::Learned => (config.max_positions + config.position_offset) as u128 * d,
        Positions::Relative => (2 * config.relative_reach as u128 + 1) * d_k as u128,
        Positions::Bucketed => config.relative_buckets as u128,
        Positions::Sinusoidal | Positions::None => 0,
    };
    let joined = if config.combine == Combine::Concatenate { 2 * d * d } else { 0 };
    let mixing = match config.encoder {
        EncoderKind::Attention { .. } | EncoderKind::Window { .. } => 0,
        EncoderKind::Recurrent { .. } => 3 * d * d,
        EncoderKind::Convolutional { kernel_width, .. } => kernel_width as u128 * d * d,
    };
    let rows = heads.iter().flat_map(|heads| [heads.keys(), heads.values()]);
    let rows = rows.chain(sides.map(|side| config.feed_forward_width(side)));
    let projections = rows.map(|rows| rows as u128 * d);
    let largest = projections.chain([positions, joined, mixing]).max().unwrap_or(0);
    let numbers = file.most_numbers() as u128;
    if largest > numbers {
        return refuse(format!(
            "{CONFIG} describes a matrix of {largest} numbers, but the file has {numbers} at most"
        ));
    }
    Ok(())
}

/// The tensor of a place, which must exist with the right shape, and its name.
fn find<'a>(place: &'a Place, file: &'a Weights) -> Result<(&'a str, Tensor<'a>)> {
    let mut names = std::iter::once(&place.name).chain(&place.also).map(String::as_str);
    let found = names.find_map(|name| Some((name, file.tensor(name)?)));
    let Some((name, tensor)) = found else {
        let message = format!("tensor {} of shape {:?} is missing", place.name, place.shape);
        return Err(Error::file(file.path(), message));
    };
    if tensor.shape != place.shape {
        let problem =
            format!("has the shape {:?}, but {:?} is expected from {CONFIG}", tensor.shape, place.shape);
        return Err(file.wrong(name, problem));
    }
    Ok((name, tensor))
}

/// Checks that all tensors of the model exist, and that it needs no more values than the files
/// have: their tensors may share values, ours do not.
fn check_places(model: &Transformer, file: &Weights) -> Result<()> {
    let (mut counted, mut needed) = (HashSet::new(), 0);
    for place in marian::places(model) {
        let (name, _) = find(&place, file)?;
        if counted.insert(name.to_owned()) {
            needed += place.range.len();
        }
    }
    let most = file.most_numbers();
    if needed > most {
        let message = format!("{CONFIG} describes {needed} weights, but there are {most} at most");
        return Err(Error::file(file.path(), message));
    }
    Ok(())
}

fn read_weights(model: &Transformer, file: &Weights) -> Result<Vec<f32>> {
    check_places(model, file)?;
    let mut weights = vec![0.0; model.parameters().len()];
    for place in marian::places(model) {
        let (name, tensor) = find(&place, file)?;
        file.read(name, tensor, &mut weights[place.range.clone()])?;
    }
    Ok(weights)
}

/// The values of one parameter from its tensors.
fn read_floats(parameter: &Parameter, places: &[Place], file: &Weights) -> Result<Vec<f32>> {
    let (start, mut values) = (parameter.param.range().start, vec![0.0; parameter.param.len]);
    for place in places {
        let (name, tensor) = find(place, file)?;
        file.read(name, tensor, &mut values[place.range.start - start..place.range.end - start])?;
    }
    Ok(values)
}

/// The same as stored: in 8 bits, if all tensors are.
fn read_values(parameter: &Parameter, places: &[Place], file: &Weights) -> Result<Values<'static>> {
    let (mut values, mut scales) = (Vec::with_capacity(parameter.param.len), Vec::new());
    for place in places {
        let (name, tensor) = find(place, file)?;
        match file.read_int8(name, tensor)? {
            Some((these, of_these)) => {
                values.extend(these);
                scales.extend(of_these);
            }
            None => return Ok(Values::F32(read_floats(parameter, places, file)?.into())),
        }
    }
    Ok(Values::Int8 { values: values.into(), scales })
}

fn read_bias(words: usize, file: &Weights) -> Result<Option<Vec<f32>>> {
    let name = marian::BIAS;
    let Some(tensor) = file.tensor(name) else { return Ok(None) };
    if tensor.shape != [1, words] && tensor.shape != [words] {
        let problem = format!("has the shape {:?}, but [1, {words}] is expected", tensor.shape);
        return Err(file.wrong(name, problem));
    }
    let mut bias = vec![0.0; words];
    tensor.read(&mut bias).map_err(|problem| file.wrong(name, problem))?;
    Ok(bias.iter().any(|&x| x != 0.0).then_some(bias))
}

fn write_weights(
    model: &Transformer,
    weights: &[f32],
    bias: Option<&[f32]>,
    file: &Path,
    dtype: DType,
) -> Result<()> {
    let (words, size) = (model.config().target_vocabulary, model.parameters().len());
    let refuse = |message| Err(Error::Input { operation: "saving a model", message });
    if weights.len() != size {
        return refuse(format!("there are {} weights, but the model has {size}", weights.len()));
    }
    let zeros = vec![0.0; words];
    let bias = bias.unwrap_or(&zeros);
    if bias.len() != words {
        return refuse(format!("{} has {} numbers for {words} words", marian::BIAS, bias.len()));
    }
    let mut tensors =
        vec![Writable { name: marian::BIAS.into(), shape: vec![1, words], values: bias, matrix: false }];
    for parameter in model.parameters() {
        let matrix = parameter.is_matrix();
        let places = marian::places_of(parameter, model.config()).into_iter();
        tensors.extend(places.map(|Place { name, shape, range, .. }| Writable {
            name,
            shape,
            values: &weights[range],
            matrix,
        }));
    }
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    safetensors::write(file, &tensors, dtype)
}
