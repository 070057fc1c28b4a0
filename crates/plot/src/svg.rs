//! Renders a scene as a self-contained SVG: with its own styles, system fonts, no ids (so that many
//! can be embedded in one page) and no scripts.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::colour::{LEVELS, SERIES, hex};
use super::scene::{Anchor, Cells, Item, Paint, Scene, Text, mark_corners};
use super::text::clean;

/// Escapes the special characters of XML and HTML.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

fn label(text: &str) -> String {
    escape(&clean(text))
}

/// Formats a number with at most two decimals and without trailing zeros.
fn number(v: f64) -> String {
    let v = if v.is_finite() { (v * 100.0).round() / 100.0 + 0.0 } else { 0.0 };
    format!("{v}")
}

fn class(paint: Paint) -> String {
    match paint {
        Paint::Panel => "panel".to_string(),
        Paint::Ink => "ink".to_string(),
        Paint::Soft => "soft".to_string(),
        Paint::Rule => "rule".to_string(),
        Paint::Axis => "axis".to_string(),
        Paint::Series(i) => format!("s{}", i % SERIES),
        Paint::Heat(level) => format!("h{level}"),
        Paint::Missing => "none".to_string(),
        Paint::OnLow => "low".to_string(),
        Paint::OnHigh => "high".to_string(),
    }
}

/// The styles for the elements of a scene. Avoids `var()`, which some SVG viewers do not support.
fn style(scene: &Scene) -> String {
    let fills = [Paint::Panel, Paint::Ink, Paint::Soft, Paint::Missing, Paint::OnLow, Paint::OnHigh];
    let strokes = [Paint::Rule, Paint::Axis];
    let has_heat = scene.items.iter().any(|item| matches!(item, Item::Cells(_)));
    let has_series = scene.items.iter().any(|item| match item {
        Item::Line { paint, .. } | Item::Mark { paint, .. } => matches!(paint, Paint::Series(_)),
        _ => false,
    });
    let mut out = String::from(
        ".rp text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif;white-space:pre}\
         .rp .m{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}\
         .rp .b{font-weight:600}.rp polyline{fill:none;stroke-linejoin:round;stroke-linecap:round}\
         .rp .d{stroke-dasharray:7 5;stroke-linecap:butt}",
    );
    for dark in [false, true] {
        if dark {
            out.push_str("@media screen and (prefers-color-scheme:dark){");
        }
        let colour = |paint: Paint| hex(if dark { paint.colours().1 } else { paint.colours().0 });
        for paint in fills {
            let _ = write!(out, ".rp .{}{{fill:{}}}", class(paint), colour(paint));
        }
        for paint in strokes {
            let _ = write!(out, ".rp .{}{{stroke:{}}}", class(paint), colour(paint));
        }
        if has_series {
            for paint in (0..SERIES).map(Paint::Series) {
                let (name, colour) = (class(paint), colour(paint));
                let _ = write!(out, ".rp polyline.{name}{{stroke:{colour}}}.rp .{name}{{fill:{colour}}}");
                let _ = write!(out, ".rp polyline.{name}{{fill:none}}");
            }
        }
        if has_heat {
            for paint in (0..LEVELS as u8).map(Paint::Heat) {
                let _ = write!(out, ".rp .{}{{fill:{}}}", class(paint), colour(paint));
            }
        }
        if dark {
            out.push('}');
        }
    }
    out
}

/// The scene as an SVG document.
pub(super) fn render(scene: &Scene) -> String {
    let (w, h) = (number(scene.width), number(scene.height));
    let name = if scene.title.is_empty() { "chart" } else { &scene.title };
    let mut out = String::new();
    // The minimum width keeps the text legible on a narrow screen, where the page scrolls the
    // picture instead.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"rp\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" \
         role=\"img\" aria-label=\"{}\" style=\"max-width:100%;min-width:min({w}px,34rem);height:auto\">\n<title>{}</title>\n",
        label(name),
        label(name),
    );
    if !scene.description.is_empty() {
        let _ = writeln!(out, "<desc>{}</desc>", label(&scene.description));
    }
    let _ = writeln!(out, "<style>{}</style>", style(scene));
    let _ = writeln!(out, "<rect class=\"panel\" width=\"{w}\" height=\"{h}\" rx=\"8\"/>");
    for item in &scene.items {
        match item {
            Item::Rect { x, y, w, h, paint } => {
                let (x, y, w, h) = (number(*x), number(*y), number(*w), number(*h));
                let _ = writeln!(
                    out,
                    "<rect class=\"{}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"/>",
                    class(*paint)
                );
            }
            Item::Line { points, paint, pen } => {
                let points: Vec<String> =
                    points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect();
                let dash = if pen.dashed { " d" } else { "" };
                let faint = match pen.opacity {
                    opacity if opacity < 1.0 => format!(" stroke-opacity=\"{}\"", number(opacity)),
                    _ => String::new(),
                };
                let _ = writeln!(
                    out,
                    "<polyline class=\"{}{dash}\" stroke-width=\"{}\"{faint} points=\"{}\"/>",
                    class(*paint),
                    number(pen.width),
                    points.join(" ")
                );
            }
            Item::Mark { x, y, size, shape, paint } => {
                let corners = mark_corners(*shape);
                let class = class(*paint);
                let _ = if corners.is_empty() {
                    let (x, y, r) = (number(*x), number(*y), number(*size));
                    writeln!(out, "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{r}\"/>")
                } else {
                    let corners: Vec<String> = corners
                        .iter()
                        .map(|(dx, dy)| format!("{},{}", number(x + dx * size), number(y + dy * size)))
                        .collect();
                    writeln!(out, "<polygon class=\"{class}\" points=\"{}\"/>", corners.join(" "))
                };
            }
            Item::Text(text) => write_text(&mut out, text),
            Item::Cells(cells) => write_cells(&mut out, cells),
        }
    }
    out.push_str("</svg>\n");
    out
}

fn write_text(out: &mut String, text: &Text) {
    let mut class = class(text.paint);
    if text.mono {
        class.push_str(" m");
    }
    if text.bold {
        class.push_str(" b");
    }
    let anchor = match text.anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let (x, y, size) = (number(text.x), number(text.y), number(text.size));
    let turn = if text.upward { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
    let _ = writeln!(
        out,
        "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{anchor}{turn}>{}</text>",
        label(&text.text)
    );
}

/// Cells with tooltips are one rectangle each; without them, there is one path per colour, which
/// makes a large grid ten times smaller.
fn write_cells(out: &mut String, cells: &Cells) {
    if cells.columns == 0 || cells.paints.is_empty() {
        return;
    }
    let (cw, ch) = cells.cell;
    let _ = writeln!(
        out,
        "<g transform=\"translate({} {}) scale({} {})\" shape-rendering=\"crispEdges\">",
        number(cells.x),
        number(cells.y),
        number(cw),
        number(ch)
    );
    if cells.tips.len() == cells.paints.len() {
        for (i, (paint, tip)) in cells.paints.iter().zip(&cells.tips).enumerate() {
            let (x, y) = (i % cells.columns, i / cells.columns);
            let _ = writeln!(
                out,
                "<rect class=\"{}\" x=\"{x}\" y=\"{y}\" width=\"1\" height=\"1\"><title>{}</title></rect>",
                class(*paint),
                label(tip)
            );
        }
    } else {
        let mut paths: BTreeMap<String, String> = BTreeMap::new();
        for (y, row) in cells.paints.chunks(cells.columns).enumerate() {
            let mut x = 0;
            for run in row.chunk_by(|a, b| a == b) {
                let n = run.len();
                let path = paths.entry(class(run[0])).or_default();
                let _ = write!(path, "M{x} {y}h{n}v1h-{n}z");
                x += n;
            }
        }
        for (class, path) in paths {
            let _ = writeln!(out, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }
    out.push_str("</g>\n");
}
