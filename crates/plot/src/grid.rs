//! A grid of heat maps, for example of every head of every layer.

use super::heat::{HeatMap, MARGIN, MapLayout, SizeLimits, draw_scale};
use super::matrix::scale_range;
use super::scene::{Paint, Scene, Text};
use super::svg;
use super::text::{clean, truncate};
use super::ticks::brief;
use crate::Result;

/// The gap between two maps.
const GAP: f64 = 18.0;

/// Heat maps in rows of `columns`, each with a title.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    /// The title above all maps.
    pub title: String,
    /// The maps, row by row. Labels that equal those of the neighbouring map are not repeated.
    pub maps: Vec<HeatMap>,
    /// The number of maps per row: the number of heads, if each row is a layer.
    pub columns: usize,
    /// The quantity that the colours show, with its unit.
    pub scale_label: String,
    /// Whether each map has a separate scale, written above it, instead of a common one.
    pub own_scales: bool,
}

impl Grid {
    /// A grid of maps with a common colour scale.
    pub fn new(title: impl Into<String>, columns: usize, maps: Vec<HeatMap>) -> Self {
        Grid { title: title.into(), maps, columns, ..Grid::default() }
    }

    /// Sets the label of the colour scale.
    pub fn scale_label(mut self, label: impl Into<String>) -> Self {
        self.scale_label = label.into();
        self
    }

    /// Gives each map a separate colour scale.
    pub fn own_scales(mut self) -> Self {
        self.own_scales = true;
        self
    }

    /// The grid as an SVG document, which can also be embedded in a page.
    pub fn to_svg(&self) -> String {
        svg::render(&self.scene())
    }

    /// The grid as a PNG file; 2 is a good `scale` for screens. Needs the cargo feature `png`.
    pub fn to_png(&self, scale: f64) -> Result<Vec<u8>> {
        self.scene().to_png(scale)
    }

    fn range(&self) -> (f64, f64) {
        let ends = |f: fn(&HeatMap) -> Option<(f32, f32)>| {
            self.maps.iter().filter_map(f).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
        };
        scale_range(ends(|m| m.range), ends(|m| m.matrix.extent()))
    }

    pub(super) fn scene(&self) -> Scene {
        let mut scene = Scene { title: clean(&self.title), ..Scene::default() };
        let columns = self.columns.clamp(1, self.maps.len().max(1));
        scene.description = format!("{} heat maps in rows of {columns}.", self.maps.len());
        let layouts: Vec<MapLayout> = (0..self.maps.len()).map(|i| self.layout(i, columns)).collect();
        let rows = self.maps.len().div_ceil(columns);
        // Cells are aligned across each row and column of maps, even if only some of the maps have
        // labels.
        let most = |keep: &dyn Fn(usize) -> bool, of: &dyn Fn(&MapLayout) -> f64| {
            layouts.iter().enumerate().filter(|(i, _)| keep(*i)).map(|(_, b)| of(b)).fold(0.0, f64::max)
        };
        let lefts: Vec<f64> = (0..columns).map(|c| most(&|i| i % columns == c, &|b| b.left)).collect();
        let titles: Vec<(Text, Text)> = self.maps.iter().map(|m| self.map_title(m)).collect();
        let widths: Vec<f64> = (0..columns)
            .map(|c| {
                let above = titles
                    .iter()
                    .skip(c)
                    .step_by(columns)
                    .map(|t| t.0.width() + t.1.width())
                    .fold(0.0, f64::max);
                most(&|i| i % columns == c, &|b| b.inner().0).max(above)
            })
            .collect();
        let tops: Vec<f64> = (0..rows).map(|r| most(&|i| i / columns == r, &|b| b.top)).collect();
        let heights: Vec<f64> = (0..rows).map(|r| most(&|i| i / columns == r, &|b| b.inner().1)).collect();

        let title = Text::new(MARGIN, MARGIN + 14.0, 16.0, truncate(&scene.title, 90)).bold();
        let title_width = title.width();
        let mut y = MARGIN + if self.title.is_empty() { 0.0 } else { 34.0 };
        scene.text(title);
        let shared = self.range();
        let (first, mut right) = (y + 18.0 + tops.first().unwrap_or(&0.0), MARGIN);
        for r in 0..rows {
            let mut x = MARGIN;
            for c in 0..columns {
                let Some((map, layout)) = self.maps.get(r * columns + c).zip(layouts.get(r * columns + c))
                else {
                    break;
                };
                let range =
                    if self.own_scales { scale_range(map.range, map.matrix.extent()) } else { shared };
                let (left, top) = (x + lefts[c], y + 18.0 + tops[r]);
                let (name, extent) = titles[r * columns + c].clone();
                let beside = left + name.width();
                scene.text(Text { x: left, y: y + 11.0, ..name });
                scene.text(Text { x: beside, y: y + 11.0, ..extent });
                layout.draw(&mut scene, (left - layout.left, top - layout.top), range, Vec::new(), false);
                x = left + widths[c] + GAP;
                right = f64::max(right, x);
            }
            y += 18.0 + tops[r] + heights[r] + GAP;
        }
        if self.maps.is_empty() {
            scene.text(Text::new(MARGIN, y + 12.0, 12.0, "no data").paint(Paint::Soft));
            y += 30.0;
            right = 160.0;
        } else if !self.own_scales {
            let label = truncate(&clean(&self.scale_label), 40);
            let height = heights.iter().sum::<f64>().max(72.0);
            let (w, h) = draw_scale(&mut scene, (right + 4.0, first), height, shared, &label);
            right += w + 4.0;
            y = y.max(first + h + GAP);
        } else {
            right -= GAP;
        }
        scene.width = (right + MARGIN).max(title_width + 2.0 * MARGIN).ceil();
        scene.height = (y - GAP + MARGIN).ceil();
        scene
    }

    /// The title of a map and, if it has a separate scale, the ends of that scale; neither is
    /// positioned yet.
    fn map_title(&self, map: &HeatMap) -> (Text, Text) {
        let name = Text::new(0.0, 0.0, 12.0, truncate(&clean(&map.title), 28)).bold();
        let (lo, hi) = scale_range(map.range, map.matrix.extent());
        let extent =
            if self.own_scales { format!("  {} to {}", brief(lo), brief(hi)) } else { String::new() };
        (name, Text::new(0.0, 0.0, 11.0, extent).paint(Paint::Soft))
    }

    fn layout(&self, i: usize, columns: usize) -> MapLayout {
        let map = &self.maps[i];
        let beside = (!i.is_multiple_of(columns)).then(|| &self.maps[i - 1]);
        let above = i.checked_sub(columns).map(|i| &self.maps[i]);
        let side = |n: usize| (10.0 * n as f64).clamp(150.0, 320.0);
        let limits = SizeLimits {
            side: (side(map.matrix.columns()), side(map.matrix.rows())),
            cell: 20.0,
            label: 14,
            rows: beside.is_none_or(|b| b.rows != map.rows || b.matrix.rows() != map.matrix.rows()),
            columns: above
                .is_none_or(|a| a.columns != map.columns || a.matrix.columns() != map.matrix.columns()),
        };
        MapLayout::new(map, limits)
    }
}
