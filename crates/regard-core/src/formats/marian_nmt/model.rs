//! Converts a folder of Marian or Firefox to our model: its configuration, its weights under our
//! names, its tokenizers.

use super::items::is_embedding;
use super::{Item, ItemFile, LexicalShortlist, MarianFolder, MarianOptions, MarianVocabulary};
use crate::decode::{Shortlist, Values};
use crate::formats::compressed::FileBytes;
use crate::formats::{GenerationConfig, Model};
use crate::model::{Frequencies, ModelConfig, NormPlace, Parameter, Role, Transformer};
use crate::text::{PieceList, SpmFile, Tokenizer, TokenizerPair};
use crate::{DType, Error, Result};
use regard_kernels::mapped::Int8Values;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// ε of Marian's layer norms.
pub(crate) const EPSILON: f32 = 1e-6;
/// The number of tokens after which the browsers' engine splits a sentence.
const BROWSER_MAX_TOKENS: usize = 128;
/// The maximum number of source tokens of other models.
const MAX_TOKENS: usize = 512;
/// Vocabularies are padded to a multiple of this. A lexical shortlist may have been made without
/// the padding of a model, or with more of it.
const PADDED: usize = 8;
/// The bias of the logits.
const OUTPUT_BIAS: &str = "decoder_ff_logit_out_b";

/// The opened files of a model.
#[derive(Debug)]
pub(crate) struct MarianModel {
    folder: MarianFolder,
    file: ItemFile,
    options: MarianOptions,
    config: ModelConfig,
}

impl MarianModel {
    /// Opens a folder, if it holds such a model.
    pub(crate) fn open(folder: &Path) -> Result<Option<Self>> {
        let Some(folder) = MarianFolder::find(folder)? else { return Ok(None) };
        let file = ItemFile::open(&folder.model)?;
        let options = file.options()?;
        let config = config(&options, &file)?;
        Ok(Some(MarianModel { folder, file, options, config }))
    }

    /// The shape of the model.
    pub(crate) fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Whether its matrices are stored in 8 bits.
    pub(crate) fn is_int8(&self) -> bool {
        self.file.items().any(|item| item.dtype == DType::Int8)
    }

    /// The size of the weights file, unpacked.
    pub(crate) fn bytes(&self) -> usize {
        self.file.bytes()
    }

    /// The layers.
    pub(crate) fn transformer(&self) -> Result<Transformer> {
        let transformer = Transformer::new(self.config.clone())?.with_output_bias(self.output_bias()?)?;
        // Check that the file has all parameters before allocating their size.
        for parameter in transformer.parameters() {
            self.blocks(parameter)?;
        }
        Ok(transformer)
    }

    /// Everything except the weights, for these layers.
    pub(crate) fn model(&self, transformer: Transformer) -> Result<Model> {
        let tokenizers = self.tokenizers()?;
        let target = tokenizers.target();
        let search = self.folder.search;
        let bans = search.allow_unknown.then(|| vec![vec![target.pad()]]);
        let configured = GenerationConfig {
            num_beams: search.beam,
            length_penalty: search.length_penalty,
            max_length_factor: search.max_length_factor,
            bad_words_ids: bans,
            ..GenerationConfig::default()
        };
        let usual = GenerationConfig::marian(target.pad(), target.eos(), target.unk(), self.is_int8());
        let mut generation = configured.or(usual);
        generation.bad_words_ids.get_or_insert_default().extend(self.unnamed(target).map(|id| vec![id]));
        Ok(Model {
            shortlist: self.shortlist()?,
            transformer,
            weights: Vec::new(),
            tokenizers,
            languages: self.folder.languages.clone(),
            generation,
        })
    }

    fn output_bias(&self) -> Result<Option<Vec<f32>>> {
        if !self.options.output_bias {
            return Ok(None);
        }
        let item = self.file.need(OUTPUT_BIAS)?;
        check_shape(&item, &[1, self.options.target_vocabulary])?;
        // Padding, which is our own token, comes last.
        let mut bias = item.floats()?;
        bias.push(0.0);
        Ok(Some(bias))
    }

    fn shortlist(&self) -> Result<Option<Arc<Shortlist>>> {
        let vocabularies = (self.config.source_vocabulary, self.config.target_vocabulary);
        // Padding is our own token.
        let read = |path: &PathBuf| read_shortlist(path, vocabularies, 1, self.folder.is_joint());
        self.folder.shortlist.as_ref().map(read).transpose()
    }

    fn tokenizers(&self) -> Result<TokenizerPair> {
        let MarianFolder { source_vocabulary: source, target_vocabulary: target, segmenters, .. } =
            &self.folder;
        let sizes = (self.options.source_vocabulary, self.options.target_vocabulary);
        let spm = |path: &'_ Path| FileBytes::open(path).map(|file| file.bytes().to_vec());
        let pair = match (segmenters, is_spm(source) && is_spm(target)) {
            (_, true) => {
                let file = |path| Ok::<_, Error>(SpmFile { bytes: spm(path)?, path, vocabulary: None });
                let target = (!self.folder.is_joint()).then(|| file(target)).transpose()?;
                TokenizerPair::from_spm(file(source)?, target)?
            }
            (Some((source_spm, target_spm)), false) => {
                let file = |path, vocabulary, size| {
                    let vocabulary = Some(pieces(&read_vocabulary(vocabulary)?, size));
                    Ok::<_, Error>(SpmFile { bytes: spm(path)?, path, vocabulary })
                };
                let target = file(target_spm.as_path(), target, sizes.1)?;
                TokenizerPair::from_spm(file(source_spm.as_path(), source, sizes.0)?, Some(target))?
            }
            (None, false) => {
                let words = |path: &Path, size| {
                    let words = pieces(&read_vocabulary(path)?, size);
                    Tokenizer::from_json(words.to_json(), path)
                };
                match self.folder.is_joint() {
                    true => TokenizerPair::joint(words(source, sizes.0)?),
                    false => TokenizerPair::separate(words(source, sizes.0)?, words(target, sizes.1)?),
                }
            }
        };
        for (path, tokenizer, size) in [(source, pair.source(), sizes.0), (target, pair.target(), sizes.1)] {
            // Our vocabulary has padding after the last piece.
            if tokenizer.size() != size + 1 {
                let has = tokenizer.size() - 1;
                let message = format!("the vocabulary has {has} pieces, but the model {size} (dim-vocabs)");
                return Err(Error::file(path, message));
            }
        }
        Ok(pair)
    }

    /// The target ids without a piece in the vocabulary, which must never be generated.
    fn unnamed(&self, target: &Tokenizer) -> impl Iterator<Item = u32> {
        // A SentencePiece model has a piece for each id.
        let ids = if is_spm(&self.folder.target_vocabulary) { 0..0 } else { 0..target.size() as u32 };
        ids.filter(|&id| target.piece(id).is_none_or(|piece| piece == PieceList::placeholder(id)))
    }

    /// The values of a parameter.
    pub(crate) fn floats(&self, parameter: &Parameter) -> Result<Vec<f32>> {
        let mut values = Vec::with_capacity(parameter.param.len);
        for block in self.blocks(parameter)? {
            let floats = block.item.floats()?;
            match block.transposed {
                false => values.extend(floats),
                true => {
                    let (rows, columns) = (block.item.shape[1], block.item.shape[0]);
                    values.extend(
                        (0..rows).flat_map(|r| (0..columns).map(move |c| c * rows + r)).map(|i| floats[i]),
                    );
                }
            }
        }
        // Padding, which is our own token, is the last row of a vocabulary and zero.
        values.resize(parameter.param.len, 0.0);
        Ok(values)
    }

    /// The values of a parameter as stored.
    pub(crate) fn values(&self, parameter: &Parameter) -> Result<Values<'static>> {
        let blocks = self.blocks(parameter)?;
        if blocks.iter().any(|block| block.item.dtype != DType::Int8) {
            return Ok(Values::F32(self.floats(parameter)?.into()));
        }
        let [rows, columns] = parameter.shape;
        let input_multiplier = self.input_multiplier(&blocks)?;
        let mut multipliers = Vec::with_capacity(rows);
        let mut values = Vec::new();
        let mapped = match &blocks[..] {
            // Most rows are never read: leave them in the file.
            [block] if parameter.role == Role::Vocabulary && block.has_stored_rows() => {
                block.item.mapped_int8()
            }
            _ => None,
        };
        if mapped.is_none() {
            values.reserve_exact(rows * columns);
        }
        for block in &blocks {
            let (rows, multiplier) = match mapped {
                Some(_) => block.item.check_int8()?,
                None if block.has_stored_rows() => block.item.append_int8(&mut values)?,
                None => {
                    let matrix = block.item.int8()?;
                    let (rows, columns) = (matrix.columns, matrix.rows);
                    let order = (0..rows).flat_map(|r| (0..columns).map(move |c| c * rows + r));
                    values.extend(order.map(|i| matrix.values[i]));
                    (rows, matrix.multiplier)
                }
            };
            multipliers.resize(multipliers.len() + rows, multiplier);
        }
        // Padding, which is our own token, is the last row of a vocabulary.
        multipliers.resize(rows, multipliers.last().copied().unwrap_or(1.0));
        let values = mapped.unwrap_or(Int8Values::Owned(values));
        Ok(Values::FixedInt8 { values, multipliers, input_multiplier })
    }

    /// Lets the system reclaim the memory of the weights that were copied.
    pub(crate) fn release(&self) {
        self.file.release(|item| item.dtype == DType::Int8 && is_embedding(item.name));
    }

    /// The fixed multiplier of the inputs of matrices that are multiplied as one.
    fn input_multiplier(&self, blocks: &[Block<'_>]) -> Result<Option<f32>> {
        let multipliers = blocks
            .iter()
            .map(|block| self.file.input_multiplier(block.item.name))
            .collect::<Result<Vec<_>>>()?;
        if let Some(other) = multipliers.iter().position(|m| *m != multipliers[0]) {
            let (a, b) = (blocks[0].item.name, blocks[other].item.name);
            let shown = |m: Option<f32>| m.map_or("no multiplier".into(), |m| format!("the multiplier {m}"));
            let message = format!(
                "{a} has {} for its inputs, but {b}, which has the same inputs, has {}; one for both is expected",
                shown(multipliers[0]),
                shown(multipliers[other])
            );
            return Err(Error::file(self.file.path(), message));
        }
        Ok(multipliers.first().copied().flatten())
    }

    /// The items with the rows of a parameter, in order, after checking that they exist with the
    /// right shapes.
    fn blocks(&self, parameter: &Parameter) -> Result<Vec<Block<'_>>> {
        let [rows, columns] = parameter.shape;
        let names = item_names(&parameter.name, self.options.norm);
        if names.is_empty() {
            let message = format!("Marian has no item for {}", parameter.name);
            return Err(Error::file(self.file.path(), message));
        }
        let is_vocabulary = parameter.role == Role::Vocabulary;
        let block = |name: &String| {
            if is_vocabulary {
                // Padding is our own token.
                return self.vocabulary(name, rows - 1);
            }
            let item = self.file.need(name)?;
            let transposed = parameter.is_matrix();
            let shape = match transposed {
                true => [columns, rows / names.len()],
                false => [1, columns / names.len()],
            };
            check_shape(&item, &shape)?;
            Ok(Block { item, transposed })
        };
        names.iter().map(block).collect()
    }

    /// A vocabulary matrix, which old models store transposed.
    fn vocabulary(&self, name: &str, words: usize) -> Result<Block<'_>> {
        let d = self.config.d_model;
        if let Some(old) = name.strip_suffix('t').filter(|_| self.file.get(name).is_none())
            && let Some(item) = self.file.get(old)
        {
            check_shape(&item, &[d, words])?;
            return Ok(Block { item, transposed: true });
        }
        let item = self.file.need(name)?;
        check_shape(&item, &[words, d])?;
        Ok(Block { item, transposed: false })
    }
}

/// One of the items of a parameter.
struct Block<'a> {
    item: Item<'a>,
    /// Whether a column of the item is a row of the parameter.
    transposed: bool,
}

impl Block<'_> {
    /// Whether the rows of the parameter are the stored rows of an 8-bit item. They are not for an
    /// untied output matrix: declared as `[words, d]`, it is stored as `[d, words]`.
    fn has_stored_rows(&self) -> bool {
        self.transposed != is_embedding(self.item.name)
    }
}

fn check_shape(item: &Item<'_>, shape: &[usize]) -> Result<()> {
    if item.shape != shape {
        return Err(item.wrong(format!("has the shape {:?}, but {shape:?} is expected", item.shape)));
    }
    Ok(())
}

/// The configuration of a model with these options.
fn config(options: &MarianOptions, file: &ItemFile) -> Result<ModelConfig> {
    let refuse = |message: &str| Err(Error::file(file.path(), message.to_owned()));
    if file.get("Wpos").is_some() {
        return refuse("item Wpos: trained positions are not supported; sinusoidal ones are");
    }
    match (options.norm, options.norm_top) {
        (NormPlace::Post, false) | (NormPlace::Pre, true) => {}
        (NormPlace::Post, true) => {
            return refuse(
                "transformer-postprocess-top: \"n\" is supported with transformer-preprocess \"n\" alone",
            );
        }
        (NormPlace::Pre, false) => {
            return refuse(
                "transformer-preprocess: \"n\" is supported with transformer-postprocess-top \"n\" alone",
            );
        }
    }
    let is_int8 = file.items().any(|item| item.dtype == DType::Int8);
    let decoder_d_ff = options.decoder_feed_forward;
    let config = ModelConfig {
        source_vocabulary: options.source_vocabulary + 1,
        target_vocabulary: options.target_vocabulary + 1,
        d_model: options.d_model,
        heads: options.heads,
        d_ff: options.encoder_feed_forward,
        decoder_d_ff: Some(decoder_d_ff).filter(|&d_ff| d_ff != options.encoder_feed_forward),
        encoder_layers: options.encoder_layers,
        decoder_layers: options.decoder_layers,
        norm: options.norm,
        norm_embeddings: options.norm_embeddings,
        norm_epsilon: EPSILON,
        activation: options.activation,
        tying: options.tying,
        frequencies: Frequencies::Tensor2tensor,
        max_positions: if is_int8 { BROWSER_MAX_TOKENS } else { MAX_TOKENS },
        decoder: options.decoder,
        ..ModelConfig::default()
    };
    // A file that claims to be larger than it is must not make us allocate.
    let layers = config.encoder_layers.max(config.decoder_layers);
    if layers > file.items().count() {
        return refuse(&format!("enc-depth or dec-depth: {layers} layers need more items than there are"));
    }
    config.validate().map_err(|e| Error::file(file.path(), e.to_string()))?;
    Ok(config)
}

/// Marian's names of the items of our parameter, in the order of its rows.
pub(crate) fn item_names(ours: &str, norm: NormPlace) -> Vec<String> {
    match ours {
        "embeddings" => return vec!["Wemb".into()],
        "encoder.embeddings" => return vec!["encoder_Wemb".into()],
        "decoder.embeddings" => return vec!["decoder_Wemb".into()],
        "output" => return vec!["decoder_ff_logit_out_Wt".into()],
        _ => {}
    }
    let Some((path, kind)) = ours.rsplit_once('.') else { return Vec::new() };
    let Some((stack, path)) = path.split_once('.') else { return Vec::new() };
    let is_bias = kind == "bias";
    let norm_part = if is_bias { "bias" } else { "scale" };
    match path {
        "embedding_norm" => return vec![format!("{stack}_emb_ln_{norm_part}_pre")],
        "norm" => return vec![format!("{stack}_top_ln_{norm_part}")],
        _ => {}
    }
    let mut parts = path.splitn(3, '.');
    let (Some("layers"), Some(layer), Some(part)) = (parts.next(), parts.next(), parts.next()) else {
        return Vec::new();
    };
    let Ok(layer) = layer.parse::<usize>() else { return Vec::new() };
    let prefix = format!("{stack}_l{}", layer + 1);
    let suffix = if norm == NormPlace::Pre { "_pre" } else { "" };
    let letter = if is_bias { 'b' } else { 'W' };
    let of = |block: &str, ends: &[&str]| {
        ends.iter().map(|end| format!("{prefix}_{block}_{letter}{end}")).collect::<Vec<_>>()
    };
    let norm_of = |stem: &str| vec![format!("{prefix}_{stem}_ln_{norm_part}{suffix}")];
    match part {
        "self_attn.qkv" => of("self", &["q", "k", "v"]),
        "self_attn.out" => of("self", &["o"]),
        "self_attn_norm" => norm_of("self_Wo"),
        "cross_attn.q" => of("context", &["q"]),
        "cross_attn.kv" => of("context", &["k", "v"]),
        "cross_attn.out" => of("context", &["o"]),
        "cross_attn_norm" => norm_of("context_Wo"),
        "ffn.up" => of("ffn", &["1"]),
        "ffn.down" => of("ffn", &["2"]),
        "ffn_norm" => norm_of("ffn_ffn"),
        "ssru.candidate" => of("rnn", &[""]),
        "ssru.forget" => of("rnn", &["f"]),
        "ssru_norm" if norm == NormPlace::Pre => norm_of("rnn"),
        "ssru_norm" => norm_of("rnn_ffn"),
        _ => Vec::new(),
    }
}

/// Reads a `lex*.bin` file for vocabularies of these sizes, of which the last `unlisted` words are
/// not in the file.
pub(crate) fn read_shortlist(
    path: &Path,
    vocabularies: (usize, usize),
    unlisted: usize,
    joint: bool,
) -> Result<Arc<Shortlist>> {
    let bytes = FileBytes::open(path)?;
    let list = LexicalShortlist::read(bytes.bytes()).map_err(|e| Error::file(path, e))?;
    let (has, words) = (list.source_words(), vocabularies.0 - unlisted);
    if has.abs_diff(words) >= PADDED {
        return Err(Error::file(
            path,
            format!("has lists of {has} words, but the source has {words}: it is of another model"),
        ));
    }
    let words = vocabularies.1 - unlisted;
    if let Some(id) = list.largest_id().filter(|&id| id as usize >= words) {
        return Err(Error::file(
            path,
            format!("lists the word {id}, but the target has {words} words, from 0: it is of another model"),
        ));
    }
    Ok(Arc::new(list.shortlist(vocabularies, joint)))
}

fn is_spm(path: &Path) -> bool {
    super::folder::file_name(path).ends_with(".spm")
}

fn read_vocabulary(path: &Path) -> Result<MarianVocabulary> {
    let bytes = FileBytes::open(path)?;
    let text = std::str::from_utf8(bytes.bytes()).map_err(|_| Error::file(path, "is not UTF-8 text"))?;
    MarianVocabulary::read(text, path)
}

/// The pieces of a vocabulary for a model of `size` words, which may be more: Marian pads its
/// matrices.
fn pieces(vocabulary: &MarianVocabulary, size: usize) -> PieceList {
    let piece = |id| vocabulary.piece(id).unwrap_or_default();
    PieceList {
        pieces: Arc::new((0..size.max(vocabulary.size()) as u32).map(piece).collect()),
        eos: vocabulary.eos(),
        unk: vocabulary.unk(),
    }
}
