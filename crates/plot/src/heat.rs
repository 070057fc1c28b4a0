//! A heat map: a matrix as coloured cells, with row and column labels and a colour scale.

use super::colour::LEVELS;
use super::matrix::{Matrix, position, scale_range};
use super::scene::{Anchor, Cells, Item, Paint, Scene, Text};
use super::svg;
use super::text::{clean, columns, fit, mono_width, truncate};
use super::ticks::{brief, format_number, labels, linear_ticks};
use crate::Result;

/// The margin around every picture.
pub(super) const MARGIN: f64 = 16.0;
/// Matrices with longer sides are averaged down to this size, because there are no more pixels.
const MAX_SIDE: usize = 1024;
/// Maps with more cells than this get no tooltips, which take forty times the space of a cell.
const MAX_TIPS: usize = 2500;

/// A matrix drawn as a heat map, such as the attention of target tokens (rows) to source tokens
/// (columns).
///
/// ```
/// use regard_plot::{HeatMap, Matrix};
/// let attention = Matrix::from_rows(&[[0.9, 0.1], [0.2, 0.8]]);
/// let map = HeatMap::new("Attention", attention)
///     .labels(&["das", "Haus"], &["the", "house"])
///     .axes("target", "source");
/// assert!(map.to_svg().contains("Haus"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct HeatMap {
    /// The title above the map, which is also its name for screen readers.
    pub title: String,
    /// The values.
    pub matrix: Matrix,
    /// The row labels; row numbers if empty.
    pub rows: Vec<String>,
    /// The column labels; column numbers if empty.
    pub columns: Vec<String>,
    /// The label of the row axis.
    pub row_axis: String,
    /// The label of the column axis.
    pub column_axis: String,
    /// The quantity that the colours show, with its unit.
    pub scale_label: String,
    /// The ends of the colour scale; derived from the values if `None`.
    pub range: Option<(f32, f32)>,
    /// Whether to write the value into each cell.
    pub values: bool,
}

impl HeatMap {
    /// A map with a title and no labels.
    pub fn new(title: impl Into<String>, matrix: Matrix) -> Self {
        HeatMap { title: title.into(), matrix, ..HeatMap::default() }
    }

    /// Sets the row and column labels.
    pub fn labels<R: AsRef<str>, C: AsRef<str>>(mut self, rows: &[R], columns: &[C]) -> Self {
        self.rows = rows.iter().map(|l| l.as_ref().to_string()).collect();
        self.columns = columns.iter().map(|l| l.as_ref().to_string()).collect();
        self
    }

    /// Sets the labels of the row and column axes.
    pub fn axes(mut self, rows: impl Into<String>, columns: impl Into<String>) -> Self {
        (self.row_axis, self.column_axis) = (rows.into(), columns.into());
        self
    }

    /// Sets the label of the colour scale.
    pub fn scale_label(mut self, label: impl Into<String>) -> Self {
        self.scale_label = label.into();
        self
    }

    /// Sets the colour scale to the range from `lo` to `hi`.
    pub fn range(mut self, lo: f32, hi: f32) -> Self {
        self.range = Some((lo, hi));
        self
    }

    /// Writes the value into each cell.
    pub fn values(mut self) -> Self {
        self.values = true;
        self
    }

    /// The map as an SVG document, which can also be embedded in a page.
    pub fn to_svg(&self) -> String {
        svg::render(&self.scene())
    }

    /// The map as a PNG file; 2 is a good `scale` for screens. Needs the cargo feature `png`.
    pub fn to_png(&self, scale: f64) -> Result<Vec<u8>> {
        self.scene().to_png(scale)
    }

    pub(super) fn scene(&self) -> Scene {
        let mut scene = Scene { title: clean(&self.title), description: self.describe(), ..Scene::default() };
        let range = scale_range(self.range, self.matrix.extent());
        let layout = MapLayout::new(
            self,
            SizeLimits { side: (720.0, 560.0), cell: 26.0, label: 24, rows: true, columns: true },
        );
        let (mut x, mut y) = (MARGIN, MARGIN);
        let title = Text::new(x, y + 14.0, 16.0, truncate(&scene.title, 90)).bold();
        let title_width = title.width();
        if !self.title.is_empty() {
            scene.text(title);
            y += 30.0;
        }
        if !self.row_axis.is_empty() {
            x += 18.0;
        }
        if !self.column_axis.is_empty() {
            y += 18.0;
        }
        let (w, h) = layout.size();
        let label = |text: &str| truncate(&clean(text), 60);
        scene.text(
            Text::new(x + layout.left + layout.inner().0 / 2.0, y - 6.0, 12.0, label(&self.column_axis))
                .paint(Paint::Soft)
                .anchor(Anchor::Middle),
        );
        scene.text(
            Text::new(x - 8.0, y + layout.top + layout.inner().1 / 2.0, 12.0, label(&self.row_axis))
                .paint(Paint::Soft)
                .anchor(Anchor::Middle)
                .upward(),
        );
        let tips = self.tips(&layout);
        layout.draw(&mut scene, (x, y), range, tips, self.values);
        let legend = draw_scale(
            &mut scene,
            (x + w + 20.0, y + layout.top),
            layout.inner().1,
            range,
            &label(&self.scale_label),
        );
        let mut bottom = (y + h).max(y + layout.top + legend.1);
        if let Some(note) = layout.note() {
            bottom += 20.0;
            scene.text(Text::new(x, bottom, 11.0, note).paint(Paint::Soft));
        }
        scene.width = (x + w + 20.0 + legend.0 + MARGIN).max(title_width + 2.0 * MARGIN).ceil();
        scene.height = (bottom + MARGIN).ceil();
        scene
    }

    /// A textual description of the map.
    pub(super) fn describe(&self) -> String {
        let (rows, columns) = (self.matrix.rows(), self.matrix.columns());
        let size = format!("Heat map of {rows} rows and {columns} columns");
        match self.matrix.extent() {
            Some((lo, hi)) => {
                format!("{size}, values from {} to {}.", brief(f64::from(lo)), brief(f64::from(hi)))
            }
            None => format!("{size} without a value."),
        }
    }

    fn tips(&self, layout: &MapLayout) -> Vec<String> {
        if layout.block != (1, 1) || self.matrix.values().len() > MAX_TIPS {
            return Vec::new();
        }
        let name = |labels: &[String], i: usize| {
            labels.get(i).map_or_else(|| i.to_string(), |l| truncate(&clean(l), 40))
        };
        let cells = self.matrix.values().iter().enumerate();
        cells
            .map(|(i, v)| {
                let (row, column) = (i / self.matrix.columns(), i % self.matrix.columns());
                format!(
                    "{} · {}: {}",
                    name(&self.rows, row),
                    name(&self.columns, column),
                    brief(f64::from(*v))
                )
            })
            .collect()
    }
}

/// The space limits of a map: the total size of its cells, the largest cell, the longest label, and
/// which labels it draws.
#[derive(Clone, Copy)]
pub(super) struct SizeLimits {
    pub(super) side: (f64, f64),
    pub(super) cell: f64,
    pub(super) label: usize,
    pub(super) rows: bool,
    pub(super) columns: bool,
}

/// The measured cells and labels of a map.
pub(super) struct MapLayout {
    matrix: Matrix,
    block: (usize, usize),
    cell: (f64, f64),
    /// The index and label of each labelled cell.
    rows: Vec<(usize, String)>,
    columns: Vec<(usize, String)>,
    upward: bool,
    sizes: (f64, f64),
    /// The space that the labels take.
    pub(super) left: f64,
    pub(super) top: f64,
}

impl MapLayout {
    pub(super) fn new(map: &HeatMap, limits: SizeLimits) -> Self {
        let (matrix, block) = map.matrix.shrunk(MAX_SIDE);
        let cell = cell_size(&matrix, limits, map.values);
        let size = |cell: f64| (cell - 1.0).clamp(9.0, 12.0);
        let sizes = (size(cell.1), size(cell.0));
        let shorten = |names: &[String], i: usize| truncate(&clean(&names[i]), limits.label);
        // Names are placed as densely as possible, numbers with some space.
        let pitch = sizes.0 * if map.rows.is_empty() { 1.6 } else { 1.0 };
        let rows = select_labels(&map.rows, matrix.rows(), block.0, (pitch / cell.1).ceil(), shorten);
        let widest = |labels: &[(usize, String)]| labels.iter().map(|l| columns(&l.1)).max().unwrap_or(0);
        // Horizontal if every label fits above its cell, or can skip cells because it is a number;
        // otherwise vertical.
        let mut names =
            select_labels(&map.columns, matrix.columns(), block.1, (sizes.1 / cell.0).ceil(), shorten);
        let width = (widest(&names) as f64 + 1.0) * sizes.1 * 0.6;
        let upward = width > cell.0 && !map.columns.is_empty();
        if !upward {
            names = select_labels(&map.columns, matrix.columns(), block.1, (width / cell.0).ceil(), shorten);
        }
        let rows = if limits.rows { rows } else { Vec::new() };
        let names = if limits.columns { names } else { Vec::new() };
        let left = rows.iter().map(|l| mono_width(&l.1, sizes.0)).fold(0.0, f64::max);
        let high = if upward { widest(&names) as f64 * sizes.1 * 0.6 } else { sizes.1 * 0.8 };
        MapLayout {
            left: if rows.is_empty() { 0.0 } else { left + 7.0 },
            top: if names.is_empty() { 0.0 } else { high + 7.0 },
            matrix,
            block,
            cell,
            rows,
            columns: names,
            upward,
            sizes,
        }
    }

    fn empty(&self) -> bool {
        self.matrix.values().is_empty()
    }

    /// The width and height of the cells.
    pub(super) fn inner(&self) -> (f64, f64) {
        if self.empty() {
            return (180.0, 90.0);
        }
        (self.matrix.columns() as f64 * self.cell.0, self.matrix.rows() as f64 * self.cell.1)
    }

    /// The width and height including labels.
    pub(super) fn size(&self) -> (f64, f64) {
        (self.left + self.inner().0, self.top + self.inner().1)
    }

    fn note(&self) -> Option<String> {
        let (rows, columns) = self.block;
        (self.block != (1, 1)).then(|| format!("each cell is the mean of {rows} × {columns} values"))
    }

    pub(super) fn draw(
        &self,
        scene: &mut Scene,
        at: (f64, f64),
        range: (f64, f64),
        tips: Vec<String>,
        values: bool,
    ) {
        let (x, y) = (at.0 + self.left, at.1 + self.top);
        let (w, h) = self.inner();
        if self.empty() {
            scene.frame((x, y), (w, h));
            let note = Text::new(x + w / 2.0, y + h / 2.0 + 4.0, 12.0, "no data");
            return scene.text(note.paint(Paint::Soft).anchor(Anchor::Middle));
        }
        for (row, label) in &self.rows {
            let middle = y + (*row as f64 + 0.5) * self.cell.1 + self.sizes.0 * 0.35;
            scene.text(Text::new(x - 6.0, middle, self.sizes.0, label.clone()).anchor(Anchor::End).mono());
        }
        for (column, label) in &self.columns {
            let middle = x + (*column as f64 + 0.5) * self.cell.0;
            let text = Text::new(middle, y - 6.0, self.sizes.1, label.clone()).mono();
            scene.text(if self.upward {
                Text { x: middle + self.sizes.1 * 0.35, ..text }.upward()
            } else {
                text.anchor(Anchor::Middle)
            });
        }
        let paints: Vec<Paint> = self.matrix.values().iter().map(|v| paint(*v, range)).collect();
        scene.items.push(Item::Cells(Cells {
            x,
            y,
            cell: self.cell,
            columns: self.matrix.columns(),
            paints: paints.clone(),
            tips,
        }));
        scene.frame((x, y), (w, h));
        if values && self.cell.0 >= 24.0 {
            let step = 10f64.powf((range.1 - range.0).log10().ceil() - 2.0);
            for (i, (value, paint)) in self.matrix.values().iter().zip(paints).enumerate() {
                let (row, column) = (i / self.matrix.columns(), i % self.matrix.columns());
                let (cx, cy) =
                    (x + (column as f64 + 0.5) * self.cell.0, y + (row as f64 + 0.5) * self.cell.1);
                let ink = match paint {
                    Paint::Heat(level) if level as usize >= LEVELS / 2 => Paint::OnHigh,
                    Paint::Heat(_) => Paint::OnLow,
                    _ => Paint::Ink,
                };
                let text =
                    Text::new(cx, cy + 3.6, 10.0, truncate(&format_number(f64::from(*value), step), 6));
                scene.text(text.mono().anchor(Anchor::Middle).paint(ink));
            }
        }
    }
}

fn paint(value: f32, range: (f64, f64)) -> Paint {
    match position(value, range) {
        Some(t) => Paint::Heat((t * (LEVELS - 1) as f64).round() as u8),
        None => Paint::Missing,
    }
}

/// Square cells of whole pixels if they are large enough to be visible, otherwise any size that
/// fills the space.
fn cell_size(matrix: &Matrix, limits: SizeLimits, values: bool) -> (f64, f64) {
    if values && matrix.rows().max(matrix.columns()) <= 64 {
        return (42.0, 24.0);
    }
    let fit = |side: f64, count: usize| side / count.max(1) as f64;
    let (w, h) = (fit(limits.side.0, matrix.columns()), fit(limits.side.1, matrix.rows()));
    let whole = |v: f64| if v >= 4.0 { v.floor() } else { v };
    let square = w.min(h).min(limits.cell);
    if square >= 8.0 {
        return (square.floor(), square.floor());
    }
    (whole(w.min(limits.cell)), whole(h.min(limits.cell)))
}

/// Selects the cells that get a label: names at the given stride, or numbers at round values.
fn select_labels(
    names: &[String],
    cells: usize,
    block: usize,
    stride: f64,
    name: impl Fn(&[String], usize) -> String,
) -> Vec<(usize, String)> {
    let stride = stride.max(1.0) as usize;
    if names.is_empty() {
        let step = (0..).flat_map(|p| [1, 2, 5].map(|m| m * 10usize.pow(p))).find(|s| *s >= stride * block);
        let step = step.unwrap_or(stride * block);
        return (0..cells * block).step_by(step).map(|i| (i / block, i.to_string())).collect();
    }
    (0..cells)
        .step_by(stride)
        .map(|i| (i, if i * block < names.len() { name(names, i * block) } else { (i * block).to_string() }))
        .collect()
}

/// Draws the colour scale next to a map, and returns its width and height.
pub(super) fn draw_scale(
    scene: &mut Scene,
    at: (f64, f64),
    height: f64,
    range: (f64, f64),
    label: &str,
) -> (f64, f64) {
    let bar = height.clamp(72.0, 220.0);
    let steps = LEVELS as f64;
    scene.items.push(Item::Cells(Cells {
        x: at.0,
        y: at.1,
        cell: (12.0, bar / steps),
        columns: 1,
        paints: (0..LEVELS as u8).rev().map(Paint::Heat).collect(),
        tips: Vec::new(),
    }));
    scene.frame(at, (12.0, bar));
    let ticks = linear_ticks(range.0, range.1, (bar / 28.0) as usize);
    let mut widest: f64 = 0.0;
    for (tick, label) in ticks.iter().zip(labels(&ticks, false)) {
        let y = at.1 + bar * (1.0 - (tick - range.0) / (range.1 - range.0));
        scene.line(vec![(at.0 + 12.0, y), (at.0 + 16.0, y)], Paint::Axis, 1.0);
        let text = Text::new(at.0 + 20.0, y + 4.0, 11.0, label);
        widest = widest.max(text.width());
        scene.text(text);
    }
    let mut width = 20.0 + widest;
    let mut height = bar;
    if !label.is_empty() {
        // A label longer than the bar is aligned to its top, so that it stays inside the picture.
        let text = Text::new(at.0 + width + 16.0, at.1, 12.0, fit(label, 12.0, bar.max(180.0)))
            .paint(Paint::Soft)
            .upward();
        let length = text.width();
        let middle = at.1 + bar.max(length) / 2.0;
        height = bar.max(length);
        scene.text(Text { y: middle, ..text }.anchor(Anchor::Middle));
        width += 20.0;
    }
    let missing = scene.items.iter().any(|item| match item {
        Item::Cells(cells) => cells.paints.contains(&Paint::Missing),
        _ => false,
    });
    if missing {
        let y = at.1 + height + 14.0;
        scene.items.push(Item::Rect { x: at.0, y, w: 12.0, h: 12.0, paint: Paint::Missing });
        let text = Text::new(at.0 + 20.0, y + 10.0, 11.0, "no value");
        width = width.max(20.0 + text.width());
        scene.text(text);
        height += 26.0;
    }
    (width, height)
}
