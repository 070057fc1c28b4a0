//! A scene as pixels, and those as PNG: rectangles, lines, marks and text with smooth edges, in the colours of light ground.

use super::colour::Rgb;
use super::font::{self, ASCENT};
use super::scene::{Anchor, Cells, FAINT, Item, Paint, Scene, Text, mark_corners};
use super::text;
use crate::{Error, Result};

/// What a picture may have at most: 64 million pixels are 192 MB while it is drawn.
const MAX_PIXELS: f64 = 64e6;

struct Canvas {
    width: usize,
    height: usize,
    scale: f64,
    pixels: Vec<u8>,
}

/// The scene as a PNG file, `scale` pixels for each unit of length.
pub(super) fn png(scene: &Scene, scale: f64) -> Result<Vec<u8>> {
    if !(scale.is_finite() && (0.1..=10.0).contains(&scale)) {
        return Err(Error::config("scale", format!("{scale} is not between 0.1 and 10")));
    }
    let (width, height) = ((scene.width * scale).ceil().max(1.0), (scene.height * scale).ceil().max(1.0));
    let too_large = || {
        input(format!("a picture of {width} × {height} pixels is too large; draw fewer maps, or write SVG"))
    };
    if width * height > MAX_PIXELS {
        return Err(too_large());
    }
    let mut canvas = Canvas {
        width: width as usize,
        height: height as usize,
        scale,
        pixels: vec![255; width as usize * height as usize * 3],
    };
    canvas.draw(scene);

    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let failed = |e: png::EncodingError| input(e.to_string());
    if !scene.title.is_empty() {
        encoder.add_itxt_chunk("Title".to_string(), text::clean(&scene.title)).map_err(failed)?;
    }
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&canvas.pixels).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(file)
}

fn input(message: String) -> Error {
    Error::Input { operation: "drawing a PNG", message }
}

impl Canvas {
    fn draw(&mut self, scene: &Scene) {
        for item in &scene.items {
            match item {
                Item::Rect { x, y, w, h, paint } => self.rect(*x, *y, x + w, y + h, colour(*paint)),
                Item::Line { points, paint, pen } => {
                    let parts = if pen.dashed { dashes(points, 7.0, 5.0) } else { vec![points.clone()] };
                    // Faint lines are pale instead of transparent: their segments overlap, and would darken each other.
                    let pale = |v: u8| (255.0 - (255.0 - f64::from(v)) * FAINT).round() as u8;
                    let colour = if pen.faint { colour(*paint).map(pale) } else { colour(*paint) };
                    for part in parts {
                        self.stroke(&part, pen.width, colour);
                    }
                }
                Item::Mark { x, y, size, shape, paint } => self.mark(*x, *y, *size, *shape, colour(*paint)),
                Item::Text(text) => self.text(text),
                Item::Cells(cells) => self.cells(cells),
            }
        }
    }

    /// Edges go to the nearest pixel, so that neighbouring cells leave no seam.
    fn rect(&mut self, x0: f64, y0: f64, x1: f64, y1: f64, colour: Rgb) {
        let snap = |v: f64, most: usize| ((v * self.scale).round().max(0.0) as usize).min(most);
        let (x0, x1) = (snap(x0, self.width), snap(x1, self.width));
        for y in snap(y0, self.height)..snap(y1, self.height) {
            for pixel in
                self.pixels[(y * self.width + x0) * 3..(y * self.width + x1.max(x0)) * 3].chunks_exact_mut(3)
            {
                pixel.copy_from_slice(&colour);
            }
        }
    }

    fn cells(&mut self, cells: &Cells) {
        let (cw, ch) = cells.cell;
        for (i, paint) in cells.paints.iter().enumerate() {
            let (x, y) = (i % cells.columns.max(1), i / cells.columns.max(1));
            let (x, y) = (cells.x + x as f64 * cw, cells.y + y as f64 * ch);
            self.rect(x, y, x + cw, y + ch, colour(*paint));
        }
    }

    /// Blends the colour into every pixel of a box by what `coverage` says of the pixel's centre.
    fn shade(&mut self, x: (f64, f64), y: (f64, f64), colour: Rgb, coverage: impl Fn(f64, f64) -> f64) {
        let from = |v: f64, most: usize| (v.floor().max(0.0) as usize).min(most);
        let to = |v: f64, most: usize| (v.ceil().max(0.0) as usize).min(most);
        for py in from(y.0, self.height)..to(y.1, self.height) {
            for px in from(x.0, self.width)..to(x.1, self.width) {
                let part = coverage(px as f64 + 0.5, py as f64 + 0.5).clamp(0.0, 1.0);
                if part > 0.0 {
                    let at = (py * self.width + px) * 3;
                    for (pixel, ink) in self.pixels[at..at + 3].iter_mut().zip(colour) {
                        *pixel = (f64::from(*pixel) * (1.0 - part) + f64::from(ink) * part).round() as u8;
                    }
                }
            }
        }
    }

    fn stroke(&mut self, points: &[(f64, f64)], width: f64, colour: Rgb) {
        let s = self.scale;
        let radius = (width * s / 2.0).max(0.5);
        for pair in points.windows(2) {
            let (a, b) = ((pair[0].0 * s, pair[0].1 * s), (pair[1].0 * s, pair[1].1 * s));
            if a.0 == b.0 || a.1 == b.1 {
                // Straight rules are kept sharp instead of being spread over two rows of pixels.
                let half = width / 2.0;
                let (x0, x1) = (pair[0].0.min(pair[1].0), pair[0].0.max(pair[1].0));
                let (y0, y1) = (pair[0].1.min(pair[1].1), pair[0].1.max(pair[1].1));
                self.rect(x0 - half, y0 - half, x1 + half, y1 + half, colour);
                continue;
            }
            let margin = radius + 1.0;
            let (x, y) = (
                (a.0.min(b.0) - margin, a.0.max(b.0) + margin),
                (a.1.min(b.1) - margin, a.1.max(b.1) + margin),
            );
            self.shade(x, y, colour, |px, py| radius + 0.5 - distance((px, py), a, b));
        }
    }

    fn mark(&mut self, x: f64, y: f64, size: f64, shape: usize, colour: Rgb) {
        let (x, y, size) = (x * self.scale, y * self.scale, size * self.scale);
        let corners: Vec<(f64, f64)> =
            mark_corners(shape).iter().map(|(dx, dy)| (x + dx * size, y + dy * size)).collect();
        let reach = size * 1.2 + 1.0;
        self.shade((x - reach, x + reach), (y - reach, y + reach), colour, |px, py| {
            if corners.is_empty() {
                return size + 0.5 - (px - x).hypot(py - y);
            }
            // Inside a convex shape with corners in clockwise order, the point lies on one side of every edge.
            let edges = corners.iter().zip(corners.iter().cycle().skip(1));
            let inside = edges.map(|(a, b)| {
                let (ex, ey) = (b.0 - a.0, b.1 - a.1);
                (ex * (py - a.1) - ey * (px - a.0)) / ex.hypot(ey)
            });
            inside.fold(f64::INFINITY, f64::min) + 0.5
        });
    }

    fn text(&mut self, text: &Text) {
        let label = joined(&text::clean(&text.text));
        // Dots of a tenth of the size give the capitals 0.7 and fixed pitch 0.6 of it, as in the usual system fonts.
        let dot = text.size * self.scale * if text.mono { 0.1 } else { 0.092 };
        let advance = |c: char| -> (f64, f64) {
            let glyph = font::glyph(c);
            if text.mono {
                let step = text::columns(c.encode_utf8(&mut [0; 4])) as f64 * 6.0;
                ((step - 6.0) / 2.0, step)
            } else {
                (-(glyph.ink.0 as f64), glyph.ink.1 as f64 + 1.2)
            }
        };
        let length: f64 = label.chars().map(|c| advance(c).1).sum::<f64>() * dot;
        let mut along = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -length / 2.0,
            Anchor::End => -length,
        };
        let origin = (text.x * self.scale, text.y * self.scale);
        let radius = (dot * if text.bold { 0.72 } else { 0.48 }).max(0.35);
        let colour = colour(text.paint);
        for c in label.chars() {
            let (shift, step) = advance(c);
            let place = |(x, y): (f64, f64)| {
                let right = along + (x + shift + 0.5) * dot;
                let up = (ASCENT as f64 - 0.5 - y) * dot;
                if text.upward {
                    (origin.0 - up, origin.1 - right)
                } else {
                    (origin.0 + right, origin.1 - up)
                }
            };
            let strokes: Vec<_> = font::glyph(c).strokes.iter().map(|s| (place(s.0), place(s.1))).collect();
            let ends = || strokes.iter().flat_map(|s| [s.0, s.1]);
            let margin = radius + 1.0;
            let low = ends().fold((f64::INFINITY, f64::INFINITY), |m, p| (m.0.min(p.0), m.1.min(p.1)));
            let high =
                ends().fold((f64::NEG_INFINITY, f64::NEG_INFINITY), |m, p| (m.0.max(p.0), m.1.max(p.1)));
            if !strokes.is_empty() {
                self.shade(
                    (low.0 - margin, high.0 + margin),
                    (low.1 - margin, high.1 + margin),
                    colour,
                    |px, py| {
                        // A dot alone is drawn larger than a stroke is thick, or a full stop would be lost.
                        let far = |s: &((f64, f64), (f64, f64))| {
                            distance((px, py), s.0, s.1) - if s.0 == s.1 { dot * 0.3 } else { 0.0 }
                        };
                        radius + 0.5 - strokes.iter().map(far).fold(f64::INFINITY, f64::min)
                    },
                );
            }
            along += step * dot;
        }
    }
}

fn colour(paint: Paint) -> Rgb {
    paint.colours().0
}

/// The text with marks joined to their letters; other marks of no width would be boxes over the letter and are left out.
fn joined(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if text::columns(c.encode_utf8(&mut [0; 4])) > 0 {
            out.push(c);
        } else if let Some(whole) = out.chars().next_back().and_then(|last| font::compose(last, c)) {
            out.pop();
            out.push(whole);
        }
    }
    out
}

/// From a point to the nearest of a segment.
fn distance(p: (f64, f64), a: (f64, f64), b: (f64, f64)) -> f64 {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let square = dx * dx + dy * dy;
    let t = if square > 0.0 { (((p.0 - a.0) * dx + (p.1 - a.1) * dy) / square).clamp(0.0, 1.0) } else { 0.0 };
    (p.0 - a.0 - t * dx).hypot(p.1 - a.1 - t * dy)
}

/// A line cut into dashes.
fn dashes(points: &[(f64, f64)], on: f64, off: f64) -> Vec<Vec<(f64, f64)>> {
    let mut parts = Vec::new();
    let mut part = Vec::new();
    let (mut drawing, mut left) = (true, on);
    for pair in points.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        let length = (b.0 - a.0).hypot(b.1 - a.1);
        let mut done = 0.0;
        if drawing && part.is_empty() {
            part.push(a);
        }
        while length - done > left {
            done += left;
            let at = (a.0 + (b.0 - a.0) * done / length, a.1 + (b.1 - a.1) * done / length);
            if drawing {
                part.push(at);
                parts.push(std::mem::take(&mut part));
            } else {
                part.push(at);
            }
            drawing = !drawing;
            left = if drawing { on } else { off };
        }
        left -= length - done;
        if drawing {
            part.push(b);
        }
    }
    if part.len() > 1 {
        parts.push(part);
    }
    parts
}
