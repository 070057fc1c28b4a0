//! The elements of a picture, before rendering to SVG.

use super::colour::{self, LEVELS, Rgb};
use super::text;
use crate::Result;

/// The role of an element; the theme determines its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    /// The background of the whole picture.
    Panel,
    /// Titles and labels.
    Ink,
    /// Secondary text.
    Soft,
    /// Grid lines.
    Rule,
    /// Axes and frames.
    Axis,
    /// The line of a series.
    Series(usize),
    /// A step of the heat scale.
    Heat(u8),
    /// A cell without a value.
    Missing,
    /// Text on the lower half of the heat scale.
    OnLow,
    /// Text on the upper half.
    OnHigh,
}

impl Paint {
    /// The colour on a light background, and on a dark one.
    pub(super) fn colours(self) -> (Rgb, Rgb) {
        match self {
            Paint::Panel => ([255, 255, 255], [20, 24, 31]),
            Paint::Ink => ([28, 36, 48], [230, 234, 240]),
            Paint::Soft => ([86, 97, 112], [160, 170, 184]),
            Paint::Rule => ([228, 232, 238], [46, 54, 66]),
            Paint::Axis => ([140, 150, 164], [104, 115, 131]),
            Paint::Series(i) => colour::series(i),
            Paint::Heat(level) => {
                let t = f64::from(level) / (LEVELS - 1) as f64;
                (colour::light(t), colour::dark(t))
            }
            Paint::Missing => ([205, 205, 205], [88, 88, 88]),
            Paint::OnLow => ([20, 26, 36], [236, 240, 246]),
            Paint::OnHigh => ([255, 255, 255], [16, 20, 27]),
        }
    }
}

/// The alignment of a text relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// One line of text; `y` is its baseline.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) size: f64,
    pub(super) anchor: Anchor,
    pub(super) paint: Paint,
    pub(super) text: String,
    /// Rotated to read from bottom to top.
    pub(super) upward: bool,
    /// Monospaced.
    pub(super) mono: bool,
    pub(super) bold: bool,
}

impl Text {
    pub(super) fn new(x: f64, y: f64, size: f64, text: impl Into<String>) -> Self {
        Text {
            x,
            y,
            size,
            anchor: Anchor::Start,
            paint: Paint::Ink,
            text: text.into(),
            upward: false,
            mono: false,
            bold: false,
        }
    }

    pub(super) fn anchor(mut self, anchor: Anchor) -> Self {
        self.anchor = anchor;
        self
    }

    pub(super) fn paint(mut self, paint: Paint) -> Self {
        self.paint = paint;
        self
    }

    pub(super) fn upward(mut self) -> Self {
        self.upward = true;
        self
    }

    pub(super) fn mono(mut self) -> Self {
        self.mono = true;
        self
    }

    pub(super) fn bold(mut self) -> Self {
        self.bold = true;
        self
    }

    /// The estimated width.
    pub(super) fn width(&self) -> f64 {
        let width = if self.mono {
            text::mono_width(&self.text, self.size)
        } else {
            text::sans_width(&self.text, self.size)
        };
        if self.bold { width * 1.06 } else { width }
    }
}

/// A matrix of coloured cells in row-major order.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) cell: (f64, f64),
    pub(super) columns: usize,
    pub(super) paints: Vec<Paint>,
    /// Tooltips: empty, or one per cell.
    pub(super) tips: Vec<String>,
}

/// The style of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pen {
    pub(super) width: f64,
    pub(super) dashed: bool,
    /// The opacity, from 0 to 1.
    pub(super) opacity: f64,
}

/// The opacity of a line that lies behind another one.
pub(super) const FAINT: f64 = 0.35;

/// A drawn element.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Rect {
        x: f64,
        y: f64,
        w: f64,
        h: f64,
        paint: Paint,
    },
    Line {
        points: Vec<(f64, f64)>,
        paint: Paint,
        pen: Pen,
    },
    /// A filled marker, whose shape depends on the index.
    Mark {
        x: f64,
        y: f64,
        size: f64,
        shape: usize,
        paint: Paint,
    },
    Text(Text),
    Cells(Cells),
}

/// A picture: its size, its name for screen readers, and its elements from back to front.
#[derive(Clone, Debug, Default)]
pub(super) struct Scene {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) items: Vec<Item>,
}

impl Scene {
    /// The scene as a PNG file with `scale` pixels per unit of length.
    #[cfg(feature = "png")]
    pub(super) fn to_png(&self, scale: f64) -> Result<Vec<u8>> {
        super::png::render(self, scale, &super::png::FONTS)
    }

    /// Fails, because this build does not support PNG.
    #[cfg(not(feature = "png"))]
    pub(super) fn to_png(&self, _scale: f64) -> Result<Vec<u8>> {
        Err(crate::Error::NoPng)
    }

    pub(super) fn text(&mut self, text: Text) {
        if !text.text.is_empty() {
            self.items.push(Item::Text(text));
        }
    }

    pub(super) fn line(&mut self, points: Vec<(f64, f64)>, paint: Paint, width: f64) {
        self.items.push(Item::Line { points, paint, pen: Pen { width, dashed: false, opacity: 1.0 } });
    }

    /// The outline of a rectangle.
    pub(super) fn frame(&mut self, (x, y): (f64, f64), (w, h): (f64, f64)) {
        self.line(vec![(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)], Paint::Axis, 1.0);
    }
}

/// The vertices of a marker around the origin, within the unit circle; empty for a circle.
pub(super) fn mark_corners(shape: usize) -> &'static [(f64, f64)] {
    match shape % 4 {
        0 => &[],
        1 => &[(-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)],
        2 => &[(0.0, -1.15), (1.15, 0.0), (0.0, 1.15), (-1.15, 0.0)],
        _ => &[(0.0, -1.1), (1.05, 0.8), (-1.05, 0.8)],
    }
}
