//! Line charts: losses against steps, times against lengths.

use super::heat::MARGIN;
use super::line::{self, Area};
use super::scene::{Anchor, FAINT, Item, Paint, Pen, Scene, Text};
use super::text::{clean, truncate};
use super::ticks::{labels, linear_ticks, log_ticks, sane_range};
use super::{colour, svg};
use crate::Result;

/// The minimum and maximum of some numbers, if there are any.
type Extent = Option<(f64, f64)>;

/// The height of the first row of a legend.
const LEGEND: f64 = 22.0;

/// One axis of a chart.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// The label: the quantity with its unit.
    pub label: String,
    /// Whether the scale is logarithmic; points at or below zero are then omitted, and counted in a
    /// note.
    pub log: bool,
    /// The ends of the axis; derived from the points if `None`.
    pub range: Option<(f64, f64)>,
    /// The tick positions; round numbers if empty.
    pub ticks: Vec<f64>,
}

/// One named curve.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The points, connected in this order. The line breaks at points that are not finite.
    pub points: Vec<(f64, f64)>,
    /// Whether the line is dashed, for a theory next to a measurement.
    pub dashed: bool,
    /// Whether to draw a marker at each point.
    pub markers: bool,
    /// Whether the line is thin and pale, for raw values behind their smoothed curve.
    pub faint: bool,
    /// The index of its colour, so that related curves can share one; by default its index in the
    /// chart.
    pub colour: Option<usize>,
}

impl Series {
    /// A solid line.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Series { name: name.into(), points, ..Series::default() }
    }

    /// Makes the line dashed.
    pub fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }

    /// Adds a marker at each point.
    pub fn markers(mut self) -> Self {
        self.markers = true;
        self
    }

    /// Makes the line thin and pale.
    pub fn faint(mut self) -> Self {
        self.faint = true;
        self
    }

    /// Sets the colour (and marker shape) by index.
    pub fn colour(mut self, number: usize) -> Self {
        self.colour = Some(number);
        self
    }

    fn pen(&self, i: usize) -> Pen {
        // If there are more curves than colours, the second round is dashed.
        let second = (self.colour.unwrap_or(i) / colour::SERIES) % 2 == 1;
        let (width, opacity) = if self.faint { (1.0, FAINT) } else { (2.0, 1.0) };
        Pen { width, dashed: self.dashed != second, opacity }
    }
}

/// A chart of one or more curves.
///
/// ```
/// use regard_plot::{LineChart, Series};
/// let svg = LineChart::new("Loss", "step", "loss (nats per token)")
///     .series(Series::new("training", vec![(1.0, 9.1), (100.0, 5.2), (200.0, 4.0)]))
///     .log_y()
///     .to_svg();
/// assert!(svg.starts_with("<svg"));
/// ```
#[derive(Clone, Debug)]
pub struct LineChart {
    /// The title above the chart, which is also its name for screen readers.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves, in legend order.
    pub series: Vec<Series>,
    /// The size of the whole picture.
    pub size: (f64, f64),
}

impl LineChart {
    /// A chart with labelled axes and no curves yet.
    pub fn new(title: impl Into<String>, x: impl Into<String>, y: impl Into<String>) -> Self {
        let axis = |label: String| Axis { label, ..Axis::default() };
        LineChart {
            title: title.into(),
            x: axis(x.into()),
            y: axis(y.into()),
            series: Vec::new(),
            size: (720.0, 420.0),
        }
    }

    /// Adds a curve.
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Makes the horizontal axis logarithmic.
    pub fn log_x(mut self) -> Self {
        self.x.log = true;
        self
    }

    /// Makes the vertical axis logarithmic.
    pub fn log_y(mut self) -> Self {
        self.y.log = true;
        self
    }

    /// The chart as an SVG document, which can also be embedded in a page.
    pub fn to_svg(&self) -> String {
        svg::render(&self.scene())
    }

    /// The chart as a PNG file; 2 is a good `scale` for screens. Needs the cargo feature `png`.
    pub fn to_png(&self, scale: f64) -> Result<Vec<u8>> {
        self.scene().to_png(scale)
    }

    pub(super) fn scene(&self) -> Scene {
        let bound = |v: f64, least: f64| if v.is_finite() { v.clamp(least, 4000.0) } else { least };
        let (width, mut height) = (bound(self.size.0, 240.0), bound(self.size.1, 180.0));
        let mut scene = Scene { width, height, title: clean(&self.title), ..Scene::default() };
        scene.description = self.describe();
        scene.text(
            Text::new(MARGIN, MARGIN + 14.0, 16.0, truncate(&scene.title, (width / 9.0) as usize)).bold(),
        );

        let mut top = MARGIN + if self.title.is_empty() { 6.0 } else { 34.0 };
        let legend = self.legend(&mut scene, top, width);
        // Further rows of the legend make the picture taller, so that the plot keeps its height.
        height += (legend - top - LEGEND).max(0.0);
        (top, scene.height) = (legend, height);
        let note = self.left_out();
        let bottom = height - MARGIN - 20.0 - if self.x.label.is_empty() { 0.0 } else { 20.0 };
        let bottom = (bottom - if note.is_some() { 16.0 } else { 0.0 }).max(top + 40.0);

        // The vertical labels determine the width of the plot, which determines how many horizontal
        // labels fit.
        let (xs, ys) = self.extents();
        let y_scale = Scale::new(&self.y, ys, ((bottom - top) / 36.0) as usize, true);
        let y_width =
            y_scale.labels.iter().map(|l| Text::new(0.0, 0.0, 12.0, l.clone()).width()).fold(0.0, f64::max);
        let left = MARGIN + if self.y.label.is_empty() { 0.0 } else { 22.0 } + y_width + 8.0;
        let right = (width - MARGIN - 12.0).max(left + 40.0);
        let x_scale = (1..=10)
            .rev()
            .map(|most| Scale::new(&self.x, xs, most, false))
            .find(|scale| scale.crowding(right - left) <= 1.0)
            .unwrap_or_else(|| Scale::new(&self.x, xs, 1, false));
        let area = (left, top, right, bottom);
        self.draw_axes(&mut scene, area, &x_scale, &y_scale);
        let mut empty = true;
        for (i, series) in self.series.iter().enumerate() {
            let place = |p: &(f64, f64)| {
                (left + x_scale.place(p.0) * (right - left), bottom - y_scale.place(p.1) * (bottom - top))
            };
            let points: Vec<(f64, f64)> = series.points.iter().map(place).collect();
            empty &= !draw_series(&mut scene, area, i, series, &points);
        }
        if empty {
            let middle = Text::new((left + right) / 2.0, (top + bottom) / 2.0, 13.0, "no data");
            scene.text(middle.paint(Paint::Soft).anchor(Anchor::Middle));
        }
        if let Some(note) = note {
            scene.text(
                Text::new(width - MARGIN, height - 10.0, 11.0, note).paint(Paint::Soft).anchor(Anchor::End),
            );
        }
        scene
    }

    /// The range of each coordinate, over the points that can be drawn on both axes.
    fn extents(&self) -> (Extent, Extent) {
        let shown = |axis: &Axis, v: f64| v.is_finite() && (!axis.log || v > 0.0);
        let points = self.series.iter().flat_map(|s| &s.points);
        let points = points.filter(|p| shown(&self.x, p.0) && shown(&self.y, p.1));
        let wider = |e: Extent, v: f64| Some(e.map_or((v, v), |(lo, hi)| (lo.min(v), hi.max(v))));
        points.fold((None, None), |(xs, ys), p| (wider(xs, p.0), wider(ys, p.1)))
    }

    /// A note on the points that cannot be drawn.
    fn left_out(&self) -> Option<String> {
        let points = || self.series.iter().flat_map(|s| &s.points);
        let broken = points().filter(|p| !(p.0.is_finite() && p.1.is_finite())).count();
        let finite = points().filter(|p| p.0.is_finite() && p.1.is_finite());
        let low = finite.filter(|p| (self.x.log && p.0 <= 0.0) || (self.y.log && p.1 <= 0.0)).count();
        let count = |n: usize, what: &str| {
            (n > 0).then(|| format!("{n} point{} {what}", if n == 1 { "" } else { "s" }))
        };
        let parts: Vec<String> =
            [count(broken, "not finite"), count(low, "not above zero")].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("not shown: {}", parts.join(", ")))
    }

    fn describe(&self) -> String {
        let names: Vec<String> = self.series.iter().map(|s| truncate(&clean(&s.name), 60)).collect();
        format!(
            "Line chart of {} against {}: {}.",
            clean(&self.y.label),
            clean(&self.x.label),
            names.join(", ")
        )
    }

    /// Draws the names of the curves in as many rows as they need, and returns the y coordinate
    /// below them.
    fn legend(&self, scene: &mut Scene, mut y: f64, width: f64) -> f64 {
        if self.series.iter().all(|s| s.name.is_empty()) {
            return y;
        }
        let mut x = MARGIN;
        for (i, series) in self.series.iter().enumerate() {
            let label = truncate(&clean(&series.name), 48);
            let text = Text::new(x + 30.0, y + 4.0, 12.0, label.clone());
            let wide = 30.0 + text.width() + 18.0;
            if x > MARGIN && x + wide > width - MARGIN {
                (x, y) = (MARGIN, y + 18.0);
            }
            let number = series.colour.unwrap_or(i);
            let paint = Paint::Series(number);
            let points = vec![(x, y), (x + 24.0, y)];
            let pen = Pen { width: 2.0, ..series.pen(i) };
            scene.items.push(Item::Line { points, paint, pen });
            if series.markers {
                scene.items.push(Item::Mark { x: x + 12.0, y, size: 3.5, shape: number, paint });
            }
            scene.text(Text::new(x + 30.0, y + 4.0, 12.0, label));
            x += wide;
        }
        y + LEGEND
    }

    fn draw_axes(&self, scene: &mut Scene, (left, top, right, bottom): Area, x: &Scale, y: &Scale) {
        for (tick, label) in y.ticks.iter().zip(&y.labels) {
            let at = bottom - y.place(*tick) * (bottom - top);
            scene.line(vec![(left, at), (right, at)], Paint::Rule, 1.0);
            scene.text(
                Text::new(left - 8.0, at + 4.0, 12.0, label.clone()).paint(Paint::Soft).anchor(Anchor::End),
            );
        }
        for (tick, label) in x.ticks.iter().zip(&x.labels) {
            let at = left + x.place(*tick) * (right - left);
            scene.line(vec![(at, top), (at, bottom)], Paint::Rule, 1.0);
            scene.line(vec![(at, bottom), (at, bottom + 4.0)], Paint::Axis, 1.0);
            let text = Text::new(at, bottom + 18.0, 12.0, label.clone());
            scene.text(text.paint(Paint::Soft).anchor(Anchor::Middle));
        }
        scene.line(vec![(left, top), (left, bottom)], Paint::Axis, 1.0);
        scene.line(vec![(left, bottom), (right, bottom)], Paint::Axis, 1.0);
        let name = |label: &str, room: f64| truncate(&clean(label), (room / 7.0) as usize);
        scene.text(
            Text::new((left + right) / 2.0, bottom + 38.0, 12.5, name(&self.x.label, right - left))
                .anchor(Anchor::Middle),
        );
        scene.text(
            Text::new(MARGIN + 10.0, (top + bottom) / 2.0, 12.5, name(&self.y.label, bottom - top))
                .anchor(Anchor::Middle)
                .upward(),
        );
    }
}

/// Draws a curve, and returns whether anything was drawn.
fn draw_series(scene: &mut Scene, area: Area, i: usize, series: &Series, points: &[(f64, f64)]) -> bool {
    let number = series.colour.unwrap_or(i);
    let paint = Paint::Series(number);
    let mut drawn = false;
    for run in line::runs(points) {
        let alone = run.len() == 1;
        let run = line::thin(run, area.2 - area.0);
        for points in line::clip(&run, area) {
            drawn = true;
            scene.items.push(Item::Line { points, paint, pen: series.pen(i) });
        }
        // A point without neighbours would not be visible as a line.
        if series.markers || alone {
            for &(x, y) in run.iter().filter(|p| line::inside(**p, area)) {
                drawn = true;
                scene.items.push(Item::Mark { x, y, size: 3.5, shape: number, paint });
            }
        }
    }
    drawn
}

/// An axis with its final ends and ticks.
struct Scale {
    log: bool,
    lo: f64,
    hi: f64,
    ticks: Vec<f64>,
    labels: Vec<String>,
}

impl Scale {
    /// If `round` is set, the ends may move out to the next ticks.
    fn new(axis: &Axis, extent: Extent, most: usize, round: bool) -> Self {
        let asked =
            axis.range.filter(|r| r.0.is_finite() && r.1.is_finite() && (!axis.log || r.0.min(r.1) > 0.0));
        let (mut lo, mut hi) = match (asked, extent) {
            (Some((lo, hi)), _) if axis.log => (lo.min(hi), lo.max(hi)),
            (Some((lo, hi)), _) => sane_range(lo, hi),
            (None, None) => (if axis.log { 0.1 } else { 0.0 }, 1.0),
            (None, Some(ends)) if axis.log => ends,
            // An axis that begins near zero begins at zero.
            (None, Some((lo, hi))) => {
                let near = if round { 0.25 } else { 0.02 };
                sane_range(if lo > 0.0 && lo < near * hi { 0.0 } else { lo }, hi)
            }
        };
        if axis.log && hi / lo < 1.0 + 1e-9 {
            // `sane_range` could reach below zero, so a single value gets a decade around it
            // instead.
            (lo, hi) = (lo / 3.2, hi * 3.2);
        }
        let most = most.max(1);
        if asked.is_none() && round {
            if axis.log {
                // A small margin above and below.
                let air = (hi / lo).powf(0.04);
                (lo, hi) = (lo / air, hi * air);
            } else if let [first, second, ..] = linear_ticks(lo, hi, most)[..] {
                let step = second - first;
                (lo, hi) = ((lo / step + 1e-9).floor() * step, (hi / step - 1e-9).ceil() * step);
            }
        }
        let ticks = if !axis.ticks.is_empty() {
            let within = |t: &f64| (lo..=hi).contains(t);
            axis.ticks.iter().copied().filter(within).collect()
        } else if axis.log {
            log_ticks(lo, hi, most)
        } else {
            linear_ticks(lo, hi, most)
        };
        let labels = labels(&ticks, axis.log);
        Scale { log: axis.log, lo, hi, ticks, labels }
    }

    /// The position along the axis, from 0 to 1; NaN for a value that cannot be drawn.
    fn place(&self, v: f64) -> f64 {
        if self.log {
            let (lo, hi) = (self.lo.ln(), self.hi.ln());
            if v > 0.0 { (v.ln() - lo) / (hi - lo) } else { f64::NAN }
        } else {
            (v - self.lo) / (self.hi - self.lo)
        }
    }

    /// The largest fraction of the distance between two labels that the labels fill; above 1 they
    /// touch.
    fn crowding(&self, width: f64) -> f64 {
        let half: Vec<f64> =
            self.labels.iter().map(|l| Text::new(0.0, 0.0, 12.0, l.clone()).width() / 2.0 + 6.0).collect();
        let at: Vec<f64> = self.ticks.iter().map(|t| self.place(*t) * width).collect();
        (1..at.len())
            .map(|i| (half[i - 1] + half[i]) / (at[i] - at[i - 1]).abs().max(1e-9))
            .fold(0.0, f64::max)
    }
}
