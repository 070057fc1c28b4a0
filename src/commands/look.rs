//! `regard look`: the attention of a sentence and its translation, in the terminal or as a picture.

use super::search::{ModelFlags, SearchFlags};
use super::{CommandResult, Output};
use clap::{Args, ValueEnum};
use regard::model::{AttentionKind, AttentionMap};
use regard_plot::{Grid, HeatMap, Matrix, html, terminal};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    regard look --model model --src 'A dog runs.'\n  \
    regard look --model model --src 'A dog runs.' --tgt 'Ein Hund rennt.' --kind encoder --layer 1 --head 2\n  \
    regard look --model model --src 'A dog runs.' --out attention.html")]
pub(crate) struct Arguments {
    #[command(flatten)]
    model: ModelFlags,
    #[command(flatten)]
    search: SearchFlags,
    /// The sentence to read
    #[arg(long, value_name = "TEXT")]
    src: String,
    /// Its translation; without one, the model's own
    #[arg(long, value_name = "TEXT")]
    tgt: Option<String>,
    /// Which attention the terminal shows
    #[arg(long, value_enum, default_value = "cross")]
    kind: Kind,
    /// The layer to show, from 1 [default: the last but one]
    #[arg(long, value_name = "N")]
    layer: Option<usize>,
    /// The head to show, from 1 [default: the average of all]
    #[arg(long, value_name = "N")]
    head: Option<usize>,
    /// Write all layers and heads to this file: .html, .svg or .png
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Kind {
    Cross,
    Encoder,
    Decoder,
}

impl Kind {
    fn is(self, kind: AttentionKind) -> bool {
        matches!(
            (self, kind),
            (Kind::Cross, AttentionKind::Cross)
                | (Kind::Encoder, AttentionKind::Encoder)
                | (Kind::Decoder, AttentionKind::Decoder)
        )
    }
}

/// A sentence, its translation, and how the one attended to the other.
struct View {
    source: Vec<String>,
    /// What the decoder reads: the start, then the tokens.
    read: Vec<String>,
    /// What the decoder says: the tokens, then the end.
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
    let translator = arguments.model.load()?;
    let source = translator.source().encode(&arguments.src)?;
    if source.len() < 2 {
        return Err("--src: there is no word in it".into());
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
        Some(file) => write(&view, &arguments.src, file),
        None => show(&view, &arguments),
    }
}

fn show(view: &View, arguments: &Arguments) -> CommandResult {
    let maps: Vec<&AttentionMap> = view.maps.iter().filter(|m| arguments.kind.is(m.kind)).collect();
    if maps.is_empty() {
        return Err(
            "--kind encoder: this model's encoder has no attention; there is cross and decoder".into()
        );
    }
    let layer = arguments.layer.unwrap_or((maps.len() - 1).max(1));
    let Some(map) = layer.checked_sub(1).and_then(|i| maps.get(i)) else {
        return Err(format!("--layer {layer}: the model has layers 1 to {}", maps.len()).into());
    };
    let weights = match arguments.head {
        None => map.mean(),
        Some(head) if (1..=map.heads).contains(&head) => map.head(head - 1).to_vec(),
        Some(head) => return Err(format!("--head {head}: the layer has heads 1 to {}", map.heads).into()),
    };
    let matrix = Matrix::new(map.rows, map.columns, weights)?;
    let (rows, columns) = view.labels(map.kind);
    let width = terminal_width();
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut output = Output::new();
    let head = arguments.head.map_or("all heads on average".to_owned(), |h| format!("head {h}"));
    output.line(format!("{:?} attention, layer {layer} of {}, {head}", map.kind, maps.len()))?;
    output.line(terminal::heat_map(&matrix, rows, columns, width, colour).trim_end_matches('\n'))?;
    output.flush()
}

/// The width to fit: the terminal's, else what COLUMNS says, else 100.
fn terminal_width() -> usize {
    let said = || std::env::var("COLUMNS").ok()?.parse().ok();
    let size = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
    size.or_else(said).unwrap_or(100).max(20)
}

fn write(view: &View, sentence: &str, file: &Path) -> CommandResult {
    let grids =
        [AttentionKind::Cross, AttentionKind::Encoder, AttentionKind::Decoder].map(|kind| grid(view, kind));
    let extension = file.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let bytes = match extension {
        "html" => {
            let mut page = html::Page::new("Attention").paragraph(sentence);
            for grid in grids {
                let grid = grid?;
                // An encoder may have no attention.
                if grid.maps.is_empty() {
                    continue;
                }
                page = page
                    .heading(&grid.title)
                    .figure(grid.to_svg(), "One picture a head; a row is a token that attends.");
            }
            page.render().into_bytes()
        }
        "svg" => grid(view, AttentionKind::Cross)?.to_svg().into_bytes(),
        "png" => {
            let drawable = |c: char| c.is_ascii() || ('\u{a0}'..'\u{17f}').contains(&c) || c == '▁';
            if view.source.iter().chain(&view.said).flat_map(|s| s.chars()).any(|c| !drawable(c)) {
                eprintln!(
                    "regard: the picture shows letters beyond Latin as boxes; .html and .svg show them all"
                );
            }
            grid(view, AttentionKind::Cross)?.to_png(2.0)?
        }
        _ => return Err(format!("--out {}: the name must end in .html, .svg or .png", file.display()).into()),
    };
    std::fs::write(file, bytes).map_err(|e| format!("{}: {e}", file.display()))?;
    eprintln!("regard: wrote {}", file.display());
    Ok(())
}

/// All layers and heads of one kind of attention.
fn grid(view: &View, kind: AttentionKind) -> regard::Result<Grid> {
    let (rows, columns) = view.labels(kind);
    let mut maps = Vec::new();
    let mut heads = 1;
    for map in view.maps.iter().filter(|m| m.kind == kind) {
        heads = map.heads;
        for head in 0..map.heads {
            let matrix =
                Matrix::new(map.rows, map.columns, map.head(head).to_vec()).map_err(regard::Error::other)?;
            let title = format!("layer {}, head {}", map.layer + 1, head + 1);
            maps.push(HeatMap::new(title, matrix).labels(rows, columns));
        }
    }
    let title = match kind {
        AttentionKind::Cross => "Cross-attention: the translation over the source",
        AttentionKind::Encoder => "Encoder self-attention: the source over itself",
        AttentionKind::Decoder => "Decoder self-attention: the translation over what it has said",
    };
    Ok(Grid::new(title, heads, maps).scale_label("attention weight"))
}
