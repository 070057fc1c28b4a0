//! `regard look`: the attention between a sentence and its translation, in the terminal or as a picture.

use super::search::{LanguageFlags, ModelFlags, SearchFlags};
use super::{CommandResult, Output};
use clap::{Args, ValueEnum};
use regard::model::{AttentionKind, AttentionMap, sharpest};
use regard_plot::{Grid, HeatMap, Matrix, html, terminal};
use std::error::Error;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    regard look --model model --src 'A dog runs.'\n  \
    regard look --model model --src 'A dog runs.' --tgt 'Ein Hund rennt.' --kind encoder --layer 1 --head 2\n  \
    regard look --model model --src 'A dog runs.' --out attention.html\n  \
    regard look --model model --src 'A dog runs.' --kind cross --layer 4 --out layer4.png\n\n\
    The terminal shows one layer: by default the sharpest one, whose rows point most clearly at different tokens. A file has all\n\
    layers and heads, or those that --kind, --layer and --head choose.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    languages: LanguageFlags,
    #[command(flatten)]
    search: SearchFlags,
    /// Source sentence
    #[arg(long, value_name = "TEXT")]
    src: String,
    /// Translation of the sentence [default: the model's own]
    #[arg(long, value_name = "TEXT")]
    tgt: Option<String>,
    /// Which attention to show [default: cross; in an .html file all three]
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Layer to show, from 1 [default: the sharpest; in a file all]
    #[arg(long, value_name = "N")]
    layer: Option<usize>,
    /// Head to show, from 1 [default: the average of all; in a file each of them]
    #[arg(long, value_name = "N")]
    head: Option<usize>,
    /// Write a picture to this file: .html, .svg or .png
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
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
    source: Vec<String>,
    /// The input of the decoder: the start, then the tokens.
    read: Vec<String>,
    /// The output of the decoder: the tokens, then the end.
    said: Vec<String>,
    maps: Vec<AttentionMap>,
}

impl View {
    /// The labels of the rows and columns of a map.
    fn labels(&self, kind: AttentionKind) -> (&[String], &[String]) {
        match kind {
            AttentionKind::Encoder => (&self.source, &self.source),
            AttentionKind::Decoder => (&self.said, &self.read),
            AttentionKind::Cross => (&self.said, &self.source),
        }
    }
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    let translator = arguments.languages.choose(arguments.model.load()?)?;
    let source = translator.source().encode(&arguments.src)?;
    if source.len() < 2 {
        return Err("--src: the text is empty".into());
    }
    let target = match &arguments.tgt {
        Some(text) => translator.target().encode(text)?,
        None => {
            let options = arguments.search.options(&translator)?;
            let best = translator.translate(&[&arguments.src], &options)?.remove(0).best();
            translator.target().encode(&best.text)?
        }
    };
    let maps = translator.attention_maps(&source, &target)?;
    let pieces = |tokenizer: &regard::text::Tokenizer, ids: &[u32]| -> Vec<String> {
        ids.iter().map(|&id| tokenizer.piece(id).unwrap_or_default()).collect()
    };
    let said = pieces(translator.target(), &target);
    let mut read = vec!["<start>".to_owned()];
    read.extend_from_slice(&said[..said.len() - 1]);
    let view = View { source: pieces(translator.source(), &source), read, said, maps };
    match &arguments.out {
        Some(file) => write(&view, &arguments, file),
        None => show(&view, &arguments),
    }
}

impl Arguments {
    /// The maps of one kind that `--layer` and `--head` choose, all layers if none is given.
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

/// What is wrong with a kind of attention that the model does not have.
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
    let kind = arguments.kind.map_or(AttentionKind::Cross, AttentionKind::from);
    let chosen = arguments.chosen(view, kind)?;
    let layers = view.maps.iter().filter(|map| map.kind == kind).count();
    let (map, why) = match arguments.layer {
        Some(_) => (chosen.first().copied(), ""),
        None => (sharpest(&view.maps, kind), " (the sharpest)"),
    };
    let Some(map) = map else { return Ok(()) };
    let weights = match arguments.head {
        None => map.mean(),
        Some(head) => map.head(head - 1).to_vec(),
    };
    let matrix = Matrix::new(map.rows, map.columns, weights)?;
    let (rows, columns) = view.labels(map.kind);
    let width = terminal_width();
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut output = Output::new();
    let head = arguments.head.map_or("average of all heads".to_owned(), |h| format!("head {h}"));
    let title = match kind {
        AttentionKind::Cross => "Cross-attention",
        AttentionKind::Encoder => "Encoder self-attention",
        AttentionKind::Decoder => "Decoder self-attention",
    };
    output.line(format!("{title}, layer {} of {layers}{why}, {head}", map.layer + 1))?;
    output.line(terminal::heat_map(&matrix, rows, columns, width, colour).trim_end_matches('\n'))?;
    output.flush()
}

/// The width to fit: the terminal's, else the value of COLUMNS, else 100.
fn terminal_width() -> usize {
    let said = || std::env::var("COLUMNS").ok()?.parse().ok();
    let size = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
    size.or_else(said).unwrap_or(100).max(20)
}

fn write(view: &View, arguments: &Arguments, file: &Path) -> CommandResult {
    let one = || grid(view, arguments, arguments.kind.map_or(AttentionKind::Cross, AttentionKind::from));
    let extension = file.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let bytes = match extension {
        "html" => {
            let mut page = html::Page::new("Attention").paragraph(&arguments.src);
            for grid in page_grids(view, arguments)? {
                let caption = "One grid per head. Each row shows where that token looks.";
                page = page.heading(&grid.title).figure(grid.to_svg(), caption);
            }
            page.render().into_bytes()
        }
        "svg" => one()?.to_svg().into_bytes(),
        "png" => one()?.to_png(2.0).map_err(|e| format!("--out {}: {e}", file.display()))?,
        _ => return Err(format!("--out {}: the name must end in .html, .svg or .png", file.display()).into()),
    };
    std::fs::write(file, bytes).map_err(|e| format!("{}: {e}", file.display()))?;
    note!("regard: wrote {}", file.display());
    Ok(())
}

/// The grids of a page: of the chosen kind, or of every kind that has what `--layer` and `--head` choose.
fn page_grids(view: &View, arguments: &Arguments) -> Result<Vec<Grid>, Box<dyn Error>> {
    if let Some(kind) = arguments.kind {
        return Ok(vec![grid(view, arguments, kind.into())?]);
    }
    let kinds = [AttentionKind::Cross, AttentionKind::Encoder, AttentionKind::Decoder];
    // An encoder may have no attention, and one stack fewer layers than the other.
    let (found, failed): (Vec<_>, Vec<_>) =
        kinds.into_iter().map(|kind| grid(view, arguments, kind)).partition(Result::is_ok);
    if found.is_empty() { failed } else { found }.into_iter().collect()
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
