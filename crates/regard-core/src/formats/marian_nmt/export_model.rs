//! Exports one of our models as a folder for Marian or Firefox.

use super::folder::{metadata_file, other_model_file};
use super::items::is_embedding;
use super::model::{EPSILON, item_names};
use super::{
    InputStatistics, MarianOptions, NewItem, float_items, grow_vocabularies, int8_items, lexical_shortlist,
    write_bin, write_npz,
};
use crate::decode::{Engine, LayerInputs, SearchOptions, Shortlist, layer_inputs, search_ensemble};
use crate::formats::Model;
use crate::model::{
    Activation, Combine, EncoderKind, Frequencies, ModelConfig, NormKind, NormPlace, Parameter, Positions,
    Role, Side,
};
use crate::replace::replace;
use crate::text::{SPM_MULTIPLE, Tokenizer};
use crate::{DType, Error, Isa, Result};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

/// The format to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Firefox's engine, in int8 with fixed multipliers of the inputs.
    BergamotInt8,
    /// The same engine, in f32.
    BergamotF32,
    /// Marian itself: a `.npz` file.
    Marian,
}

/// The settings of an export.
#[derive(Clone, Copy, Debug)]
pub struct ExportOptions<'a> {
    /// The format to write.
    pub format: ExportFormat,
    /// Lines of source text on which to measure the inputs of matmuls and check the tokenizer.
    pub sample: &'a [&'a str],
    /// The lexical shortlist, if there is to be one.
    pub shortlist: Option<&'a Shortlist>,
}

/// Writes the model to a folder, each file atomically. Rejects a model that Marian cannot express,
/// naming the settings.
pub fn export(model: &Model, options: &ExportOptions<'_>, folder: &Path) -> Result<()> {
    let mut marian = marian_options(model.transformer.config())?;
    marian.output_bias = model.transformer.output_bias().is_some();
    let (source, target) = (model.tokenizers.source(), model.tokenizers.target());
    let spm = [source, target].map(|tokenizer| tokenizer.to_sentencepiece(options.sample));
    let [source_spm, target_spm] = spm;
    let (source_spm, target_spm) = (source_spm?, target_spm?);
    if let Some(list) = options.shortlist {
        let (has, needs) = (list.vocabularies(), (source.size(), target.size()));
        if has != needs {
            let message =
                format!("is for vocabularies of {has:?} words (source, target), the model has {needs:?}");
            return Err(Error::config("shortlist", message));
        }
    }
    let mut weights = items(model, marian.norm);
    // Marian has no padding: a vocabulary with a padding piece must never generate it.
    let words = |tokenizer: &Tokenizer| match tokenizer.is_sentencepiece() {
        true => tokenizer.size() - 1,
        false => tokenizer.size().next_multiple_of(SPM_MULTIPLE),
    };
    let sizes = (words(source), words(target));
    if !target.is_sentencepiece() {
        grow_vocabularies(&mut marian, &mut weights, sizes, target.size() - 1);
    }
    let wrong = |message: String| Error::file(folder, message);
    let items = match options.format {
        ExportFormat::BergamotInt8 => {
            let inputs = measure(model, options.sample)?;
            int8_items(&marian, weights, Some(&inputs)).map_err(wrong)?
        }
        ExportFormat::BergamotF32 | ExportFormat::Marian => float_items(&marian, weights).map_err(wrong)?,
    };
    let pair = pair(model);
    let list = options.shortlist.or(model.shortlist.as_deref());
    let list = list.map(|list| lexical_shortlist(list, source.eos(), sizes.0));
    let mut files: Vec<(String, Contents)> = match source_spm == target_spm {
        true => vec![(format!("vocab.{pair}spm"), Box::new(|to| to.write_all(&source_spm)))],
        false => vec![
            (format!("srcvocab.{pair}spm"), Box::new(|to| to.write_all(&source_spm))),
            (format!("trgvocab.{pair}spm"), Box::new(|to| to.write_all(&target_spm))),
        ],
    };
    if let Some(list) = &list {
        files.push((format!("lex.50.50.{pair}s2t.bin"), Box::new(|to| list.write(to))));
    }
    if let Some((name, text)) = metadata_file(&model.languages) {
        files.push((name.to_owned(), Box::new(move |to| to.write_all(text.as_bytes()))));
    }
    files.push(match options.format {
        ExportFormat::BergamotInt8 => {
            (format!("model.{pair}intgemm.alphas.bin"), Box::new(|to| write_bin(&items, to)))
        }
        ExportFormat::BergamotF32 => (format!("model.{pair}bin"), Box::new(|to| write_bin(&items, to))),
        ExportFormat::Marian => (format!("model.{pair}npz"), Box::new(|to| write_npz(&items, to))),
    });
    write_folder(folder, &files)
}

/// Writes the contents of a file.
type Contents<'a> = Box<dyn Fn(&mut BufWriter<File>) -> std::io::Result<()> + 'a>;

/// Writes the files of a model to a folder without another model: a folder with two could not be
/// read.
fn write_folder(folder: &Path, files: &[(String, Contents<'_>)]) -> Result<()> {
    fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    let names: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
    if let Some(other) = other_model_file(folder, &names)? {
        let message = format!("holds {other}, which is part of another model; an empty folder is expected");
        return Err(Error::file(folder, message));
    }
    files.iter().try_for_each(|(name, write)| replace(&folder.join(name), |to| write(to)))
}

/// Both languages and a dot, if they have two letters each, as in the names of Firefox's files.
fn pair(model: &Model) -> String {
    let code = |language: &Option<String>| language.clone().filter(|code| code.len() == 2);
    match (code(&model.languages.source), code(&model.languages.target)) {
        (Some(source), Some(target)) => format!("{source}{target}."),
        _ => String::new(),
    }
}

/// The options of a model with this configuration, without an output bias.
fn marian_options(config: &ModelConfig) -> Result<MarianOptions> {
    let refuse = |field: &str, message: &str| {
        Err(Error::config(field, format!("{message}; Marian cannot express it")))
    };
    let [source, target] = [Side::Source, Side::Target].map(|side| config.head_shape(side));
    let even = |heads: usize, width: usize| heads * width == config.d_model;
    let checks = [
        ("positions", config.positions == Positions::Sinusoidal, "positions that are not sinusoidal"),
        (
            "frequencies",
            config.frequencies == Frequencies::Tensor2tensor,
            "the paper's frequencies instead of tensor2tensor's",
        ),
        ("combine", config.combine == Combine::Add, "positions that are not added"),
        ("norm_kind", config.norm_kind == NormKind::Layer, "RMS norms"),
        ("gated", !config.gated, "feed-forward layers with a gate"),
        ("linear_bias", config.linear_bias, "linear layers without a bias"),
        ("scale_scores", config.scale_scores, "scores that are not divided by √d_k"),
        ("scale_output", !config.scale_output, "a decoder whose output is scaled"),
        ("activation", config.activation != Activation::GeluTanh, "gelu_new"),
        (
            "encoder",
            config.encoder == EncoderKind::Attention { window: None },
            "an encoder other than attention to all tokens",
        ),
        (
            "norm",
            config.norm == NormPlace::Post,
            "norms before the layers, of which Marian leaves some out when it decodes",
        ),
        ("norm_epsilon", config.norm_epsilon == EPSILON, "another ε than 1e-6"),
        ("scale_embeddings", config.scale_embeddings, "embeddings that are not multiplied by √d_model"),
        ("decoder_heads", source.heads == target.heads, "another number of heads in the decoder"),
        ("d_k", even(source.heads, source.d_k), "heads of another width than d_model / heads"),
        ("d_v", even(source.heads, source.d_v), "heads of another width than d_model / heads"),
    ];
    if let Some((field, _, message)) = checks.into_iter().find(|(_, fits, _)| !fits) {
        return refuse(field, message);
    }
    Ok(MarianOptions {
        source_vocabulary: config.source_vocabulary - 1,
        target_vocabulary: config.target_vocabulary - 1,
        d_model: config.d_model,
        heads: config.heads,
        encoder_layers: config.encoder_layers,
        decoder_layers: config.decoder_layers,
        encoder_feed_forward: config.feed_forward_width(Side::Source),
        decoder_feed_forward: config.feed_forward_width(Side::Target),
        activation: config.activation,
        decoder: config.decoder,
        norm: config.norm,
        norm_embeddings: config.norm_embeddings,
        norm_top: config.norm == NormPlace::Pre,
        tying: config.tying,
        output_bias: false,
        trained_positions: false,
        version: String::new(),
    })
}

/// All weights under Marian's names, without padding.
fn items(model: &Model, norm: NormPlace) -> Vec<NewItem> {
    let parameters = model.transformer.parameters().iter();
    let mut items: Vec<NewItem> =
        parameters.flat_map(|p| items_of(p, &model.weights[p.param.range()], norm)).collect();
    if let Some(bias) = model.transformer.output_bias() {
        let words = bias.len() - 1;
        items.push(NewItem::floats(super::parameters::OUTPUT_BIAS, &[1, words], bias[..words].to_vec()));
    }
    items
}

fn items_of(parameter: &Parameter, values: &[f32], norm: NormPlace) -> Vec<NewItem> {
    let [rows, columns] = parameter.shape;
    let names = item_names(&parameter.name, norm);
    if parameter.role == Role::Vocabulary {
        let words = rows - 1;
        return names
            .iter()
            .map(|name| NewItem::floats(name, &[words, columns], values[..words * columns].to_vec()))
            .collect();
    }
    let share = values.len() / names.len().max(1);
    let parts = names.iter().zip(values.chunks_exact(share.max(1)));
    parts
        .map(|(name, part)| match parameter.is_matrix() {
            false => NewItem::floats(name, &[1, part.len()], part.to_vec()),
            true => {
                let rows = part.len() / columns;
                let transposed =
                    (0..columns).flat_map(|c| (0..rows).map(move |r| part[r * columns + c])).collect();
                NewItem::floats(name, &[columns, rows], transposed)
            }
        })
        .collect()
}

/// Measures the inputs of all matmuls while the model translates the sample.
fn measure(model: &Model, sample: &[&str]) -> Result<InputStatistics> {
    if sample.is_empty() {
        return Err(Error::config("sample", "there is no text to calibrate the int8 inputs on"));
    }
    let engine = Engine::new(&model.transformer, &model.weights, DType::F32, Isa::best());
    let (source, target) = (model.tokenizers.source(), model.tokenizers.target());
    let longest = model.transformer.config().max_positions;
    let encode = |line: &&str| source.encode(&source.prepare(line));
    let mut sources = sample.iter().map(encode).collect::<Result<Vec<_>>>()?;
    sources.retain(|ids| ids.len() > 1 && ids.len() <= longest);
    let options = SearchOptions { beam: 1, end: target.eos(), ..SearchOptions::default() };
    let found = search_ensemble(&[&engine], &sources, &options, 1)?;
    let norm = marian_options(model.transformer.config())?.norm;
    let mut statistics = InputStatistics::default();
    for (source, found) in sources.iter().zip(found) {
        let Some(best) = found.first() else { continue };
        let said = [&best.ids[..], &[target.eos()]].concat();
        for LayerInputs { weight, values, columns } in layer_inputs(&engine, source, &said)? {
            let parameter = model.transformer.parameters().iter().find(|p| p.param.offset == weight);
            for name in parameter.map(|p| item_names(&p.name, norm)).unwrap_or_default() {
                statistics.observe(&name, &values);
                // Embeddings, which the output layer may share, are also looked up.
                if !is_embedding(&name) {
                    statistics.observe_moments(engine.isa(), &name, &values, columns);
                }
            }
        }
    }
    Ok(statistics)
}
