//! `regard look`: shows the attention between a sentence and its translation in the terminal, as a
//! picture or as a page.
//!
//! It opens like the view Attention of the server's page: on the sharpest head of the clearest
//! layer, drawn as lines, one sentence at a time.

mod page;

use super::numbers::whole;
use super::search::{LanguageFlags, ModelFlags, SearchFlags};
use super::{CommandResult, Output};
use clap::{Args, ValueEnum};
use page::ShownSentence;
use regard::model::{AttentionKind, AttentionMap, sharpest};
use regard::text::{Tokenizer, sentence_ranges, trimmed};
use regard::translator::Translator;
use regard_plot::{Grid, HeatMap, Lines, Matrix, terminal};
use std::error::Error;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    regard look --model model --src 'A dog runs.'\n  \
    regard look --model model --src 'A dog runs.' --tgt 'Ein Hund rennt.' --kind encoder --layer 1 --head 2\n  \
    regard look --model model --src 'A dog runs.' --out attention.html\n  \
    regard look --model model --src 'A dog runs.' --layer 4 --draw matrix --out layer4.png\n\n\
    The terminal and a picture show one head as lines: by default the sharpest, whose tokens each look at one other. With\n\
    --draw matrix the terminal shows a grid, and a picture has all heads of the chosen layers. An .html file is a page on which\n\
    sentences, layers and heads can be chosen, and tokens pointed at. Of a longer text, one sentence is shown at a time.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    languages: LanguageFlags,
    #[command(flatten)]
    search: SearchFlags,
    /// Source sentence, or a text of several
    #[arg(long, value_name = "TEXT")]
    src: String,
    /// Translation of the sentence, which is then not split [default: the model's own]
    #[arg(long, value_name = "TEXT")]
    tgt: Option<String>,
    /// Sentence of the text to show, from 1; an .html file has all of them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(1..=1_000_000))]
    sentence: usize,
    /// Which attention to show [default: cross; in an .html file all three]
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Layer to show, from 1 [default: the sharpest]
    #[arg(long, value_name = "N")]
    layer: Option<usize>,
    /// Head to show, from 1 [default: the sharpest]
    #[arg(long, value_name = "N")]
    head: Option<usize>,
    /// How to draw it
    #[arg(long, value_enum, default_value = "lines")]
    draw: Drawing,
    /// Write a picture to this file (.svg or .png), or a page (.html)
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Drawing {
    /// A line from each token to those that it looks at
    Lines,
    /// A grid: each row shows where that token looks
    Matrix,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Kind {
    Cross,
    Encoder,
    Decoder,
}

impl From<Kind> for AttentionKind {
    fn from(flag: Kind) -> Self {
        match flag {
            Kind::Cross => AttentionKind::Cross,
            Kind::Encoder => AttentionKind::Encoder,
            Kind::Decoder => AttentionKind::Decoder,
        }
    }
}

/// A sentence, its translation, and the attention between them.
struct View {
    text: String,
    translation: String,
    source: Vec<String>,
    /// The input of the decoder: the start, then the tokens.
    decoder_input: Vec<String>,
    /// The output of the decoder: the tokens, then the end.
    decoder_output: Vec<String>,
    maps: Vec<AttentionMap>,
}

impl View {
    /// The labels of the rows and columns of a map.
    fn labels(&self, kind: AttentionKind) -> (&[String], &[String]) {
        match kind {
            AttentionKind::Encoder => (&self.source, &self.source),
            AttentionKind::Decoder => (&self.decoder_output, &self.decoder_input),
            AttentionKind::Cross => (&self.decoder_output, &self.source),
        }
    }
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    let translator = arguments.languages.choose(arguments.model.load()?)?;
    let sentences = arguments.sentences(&translator)?;
    let page = arguments.out.as_deref().is_some_and(|file| file.extension().is_some_and(|e| e == "html"));
    let chosen = match page {
        true => &sentences[..],
        false => &sentences[arguments.sentence - 1..arguments.sentence],
    };
    let views = chosen.iter().map(|text| arguments.view(&translator, text)).collect::<Result<Vec<_>, _>>()?;
    if sentences.len() > 1 && !page {
        note!("regard: sentence {} of {}; --sentence shows another", arguments.sentence, sentences.len());
    }
    match (&arguments.out, &views[..]) {
        (Some(file), views) => write(views, &arguments, file),
        (None, [view, ..]) => show(view, &arguments),
        (None, []) => Ok(()),
    }
}

impl Arguments {
    /// The sentences of the text; if a translation is given, the text is one sentence.
    fn sentences(&self, translator: &Translator) -> Result<Vec<String>, String> {
        let language = translator.model().languages.source.as_deref();
        let whole = 0..self.src.len();
        let ranges = if self.tgt.is_some() { vec![whole] } else { sentence_ranges(&self.src, language) };
        let texts = ranges.into_iter().map(|range| self.src[trimmed(&self.src, range)].to_owned());
        let sentences: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
        match sentences.len() {
            0 => Err("--src: the text is empty".to_owned()),
            count if !(1..=count).contains(&self.sentence) => {
                Err(format!("--sentence {}: the text has sentences 1 to {count}", self.sentence))
            }
            _ => Ok(sentences),
        }
    }

    /// A sentence and its translation by the model.
    fn view(&self, translator: &Translator, text: &str) -> Result<View, Box<dyn Error>> {
        let source = translator.source().encode(text)?;
        if source.len() < 2 {
            return Err("--src: the text is empty".into());
        }
        let translation = match &self.tgt {
            Some(text) => text.clone(),
            None => translator.translate(&[text], &self.search.options(translator)?)?.remove(0).best().text,
        };
        let target = translator.target().encode(&translation)?;
        let maps = translator.attention_maps(&source, &target)?;
        let pieces = |tokenizer: &Tokenizer, ids: &[u32]| -> Vec<String> {
            ids.iter().map(|&id| tokenizer.piece(id).unwrap_or_default()).collect()
        };
        let decoder_output = pieces(translator.target(), &target);
        let mut decoder_input = vec!["<start>".to_owned()];
        decoder_input.extend_from_slice(&decoder_output[..decoder_output.len() - 1]);
        let source = pieces(translator.source(), &source);
        Ok(View { text: text.to_owned(), translation, source, decoder_input, decoder_output, maps })
    }

    fn kind(&self) -> AttentionKind {
        self.kind.map_or(AttentionKind::Cross, AttentionKind::from)
    }

    /// The head to show, as a layer and a head index: the one that the flags choose, or else the
    /// sharpest.
    fn one<'a>(&self, view: &'a View, kind: AttentionKind) -> Result<(&'a AttentionMap, usize), String> {
        let maps = self.chosen(view, kind)?;
        let sharp = sharpest(&view.maps, kind).filter(|_| self.layer.is_none());
        let map = sharp.or(maps.first().copied()).ok_or_else(|| missing(kind, &view.maps))?;
        Ok((map, self.head.map_or_else(|| map.sharpest_head(), |head| head - 1)))
    }

    /// The maps of one kind that `--layer` and `--head` choose; all layers if none is given.
    fn chosen<'a>(&self, view: &'a View, kind: AttentionKind) -> Result<Vec<&'a AttentionMap>, String> {
        let maps: Vec<&AttentionMap> = view.maps.iter().filter(|map| map.kind == kind).collect();
        let Some(last) = maps.last() else {
            return Err(missing(kind, &view.maps));
        };
        if let Some(head) = self.head.filter(|head| !(1..=last.heads).contains(head)) {
            return Err(format!("--head {head}: the layer has heads 1 to {}", last.heads));
        }
        match self.layer {
            Some(layer) if !(1..=maps.len()).contains(&layer) => {
                Err(format!("--layer {layer}: the model has layers 1 to {}", maps.len()))
            }
            Some(layer) => Ok(vec![maps[layer - 1]]),
            None => Ok(maps),
        }
    }
}

/// The error for a kind of attention that the model does not have.
fn missing(kind: AttentionKind, maps: &[AttentionMap]) -> String {
    let name = |kind| match kind {
        AttentionKind::Cross => "cross",
        AttentionKind::Encoder => "encoder",
        AttentionKind::Decoder => "decoder",
    };
    let lacks = match kind {
        AttentionKind::Cross => "this model has no cross-attention".to_owned(),
        _ => format!("this model's {} has no attention of its own", name(kind)),
    };
    let kinds = [AttentionKind::Cross, AttentionKind::Encoder, AttentionKind::Decoder];
    let has = |kind: &AttentionKind| maps.iter().any(|map| map.kind == *kind);
    let others: Vec<&str> = kinds.into_iter().filter(has).map(name).collect();
    let advice = if others.is_empty() { String::new() } else { format!("; use {}", others.join(" or ")) };
    format!("--kind {}: {lacks}{advice}", name(kind))
}

fn show(view: &View, arguments: &Arguments) -> CommandResult {
    let (map, head) = arguments.one(view, arguments.kind())?;
    let matrix = Matrix::new(map.rows, map.columns, map.head(head).to_vec())?;
    let (rows, columns) = view.labels(map.kind);
    let width = terminal_width();
    let mut output = Output::new();
    output.line(title(view, arguments, map, head))?;
    output.line(format!("{} → {}", view.text, view.translation))?;
    let drawn = match arguments.draw {
        Drawing::Lines => terminal::lines(&matrix, rows, columns, width),
        Drawing::Matrix => {
            let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            terminal::heat_map(&matrix, rows, columns, width, colour)
        }
    };
    output.line(drawn.trim_end_matches('\n'))?;
    output.flush()
}

/// A title that names a head and says why it was chosen.
fn title(view: &View, arguments: &Arguments, map: &AttentionMap, head: usize) -> String {
    let layers = view.maps.iter().filter(|other| other.kind == map.kind).count();
    let why = |given: Option<usize>| if given.is_none() { " (the sharpest)" } else { "" };
    format!(
        "{}, layer {} of {layers}{}, head {}{}",
        kind_title(map.kind),
        map.layer + 1,
        why(arguments.layer),
        head + 1,
        why(arguments.head)
    )
}

fn kind_title(kind: AttentionKind) -> &'static str {
    match kind {
        AttentionKind::Cross => "Cross-attention",
        AttentionKind::Encoder => "Encoder self-attention",
        AttentionKind::Decoder => "Decoder self-attention",
    }
}

/// The width to fit: the terminal's, else the value of COLUMNS, else 100.
fn terminal_width() -> usize {
    let said = || std::env::var("COLUMNS").ok()?.parse().ok();
    let size = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
    size.or_else(said).unwrap_or(100).max(20)
}

fn write(views: &[View], arguments: &Arguments, file: &Path) -> CommandResult {
    let extension = file.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let Some(view) = views.first() else { return Ok(()) };
    let failed = |e: regard_plot::Error| format!("--out {}: {e}", file.display());
    let bytes = match (extension, arguments.draw) {
        ("html", _) => html(views, arguments)?.into_bytes(),
        ("svg", Drawing::Lines) => lines(view, arguments)?.to_svg().into_bytes(),
        ("svg", Drawing::Matrix) => grid(view, arguments, arguments.kind())?.to_svg().into_bytes(),
        ("png", Drawing::Lines) => lines(view, arguments)?.to_png(2.0).map_err(failed)?,
        ("png", Drawing::Matrix) => grid(view, arguments, arguments.kind())?.to_png(2.0).map_err(failed)?,
        _ => return Err(format!("--out {}: the name must end in .html, .svg or .png", file.display()).into()),
    };
    std::fs::write(file, bytes).map_err(|e| format!("{}: {e}", file.display()))?;
    note!("regard: wrote {}", file.display());
    Ok(())
}

/// One head as lines.
fn lines(view: &View, arguments: &Arguments) -> Result<Lines, Box<dyn Error>> {
    let kind = page_kinds(view, arguments).first().copied().unwrap_or(arguments.kind());
    let (map, head) = arguments.one(view, kind)?;
    let (rows, columns) = view.labels(kind);
    let matrix = Matrix::new(map.rows, map.columns, map.head(head).to_vec())?;
    let (from, to) = match kind {
        AttentionKind::Cross => ("translation", "sentence"),
        AttentionKind::Encoder => ("from", "to"),
        AttentionKind::Decoder => ("about to say", "has read"),
    };
    Ok(Lines::new(title(view, arguments, map, head), matrix).labels(rows, columns).axes(from, to))
}

/// The kinds that a page shows: the chosen one, or every kind that has the layer and head that the
/// flags choose: an encoder may have no attention, and one stack may have fewer layers than the
/// other.
fn page_kinds(view: &View, arguments: &Arguments) -> Vec<AttentionKind> {
    let kinds = [AttentionKind::Cross, AttentionKind::Encoder, AttentionKind::Decoder];
    let wanted =
        kinds.into_iter().filter(|kind| arguments.kind.is_none_or(|k| AttentionKind::from(k) == *kind));
    wanted.filter(|kind| arguments.chosen(view, *kind).is_ok()).collect()
}

/// A page of all sentences, with everything that the flags choose.
fn html(views: &[View], arguments: &Arguments) -> Result<String, Box<dyn Error>> {
    let mut sentences = Vec::new();
    let mut first = None;
    for view in views {
        let kinds = page_kinds(view, arguments);
        // Nothing matches: report the error for the requested kind.
        first = first.or(kinds.first().copied());
        if kinds.is_empty() {
            arguments.chosen(view, arguments.kind())?;
        }
        let mut maps = Vec::new();
        for map in kinds.into_iter().flat_map(|kind| arguments.chosen(view, kind).unwrap_or_default()) {
            let heads = arguments.head.map_or(0..map.heads, |head| head - 1..head);
            maps.push((map, heads.collect()));
        }
        sentences.push(ShownSentence { view, maps });
    }
    let picture = views.first().map(|view| lines(view, arguments)).transpose()?;
    let picture = picture.map(|picture| picture.to_svg()).unwrap_or_default();
    Ok(page::render(&sentences, first.unwrap_or(arguments.kind()), arguments.draw, &picture))
}

/// The chosen layers and heads of one kind of attention, one layer per row.
fn grid(view: &View, arguments: &Arguments, kind: AttentionKind) -> Result<Grid, Box<dyn Error>> {
    let (rows, columns) = view.labels(kind);
    let mut maps = Vec::new();
    let chosen = arguments.chosen(view, kind)?;
    let in_a_row = match arguments.head {
        Some(_) => chosen.len().min(4),
        None => chosen.first().map_or(1, |map| map.heads),
    };
    for map in chosen {
        let heads = arguments.head.map_or(0..map.heads, |head| head - 1..head);
        for head in heads {
            let matrix = Matrix::new(map.rows, map.columns, map.head(head).to_vec())?;
            let title = format!("layer {}, head {}", map.layer + 1, head + 1);
            maps.push(HeatMap::new(title, matrix).labels(rows, columns));
        }
    }
    let title = match kind {
        AttentionKind::Cross => "Cross-attention: the translation over the source",
        AttentionKind::Encoder => "Encoder self-attention: the source over itself",
        AttentionKind::Decoder => "Decoder self-attention: the translation over its own beginning",
    };
    Ok(Grid::new(title, in_a_row, maps).scale_label("attention weight"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_a_model_lacks_is_named_with_those_that_it_has() {
        let map = |kind| AttentionMap { kind, layer: 0, heads: 1, rows: 1, columns: 1, weights: vec![1.0] };
        let maps = [map(AttentionKind::Encoder), map(AttentionKind::Cross)];
        assert_eq!(
            missing(AttentionKind::Decoder, &maps),
            "--kind decoder: this model's decoder has no attention of its own; use cross or encoder"
        );
        assert_eq!(
            missing(AttentionKind::Encoder, &maps[1..]),
            "--kind encoder: this model's encoder has no attention of its own; use cross"
        );
        assert_eq!(
            missing(AttentionKind::Cross, &maps[..1]),
            "--kind cross: this model has no cross-attention; use encoder"
        );
    }
}
