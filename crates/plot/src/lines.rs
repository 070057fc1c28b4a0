//! Attention as lines: queries on the left, keys on the right, and lines whose strength shows the
//! weight.

use super::matrix::Matrix;
use super::scene::{Anchor, Item, Paint, Pen, Scene, Text};
use super::svg;
use super::text::{clean, truncate};
use crate::Result;

const ROW: f64 = 30.0;
const TOP: f64 = 74.0;
const WIDTH: f64 = 640.0;
/// The width of the labels on each side.
const SIDE: f64 = 200.0;
/// Lines below this weight would be invisible and are not drawn: a long sentence has thousands of
/// them.
const LEAST: f32 = 0.02;
/// The number of vertices with which a curve is drawn.
const CORNERS: usize = 16;

/// Two columns of labels and the lines between them.
///
/// ```
/// use regard_plot::{Lines, Matrix};
/// let weights = Matrix::from_rows(&[[0.9, 0.1], [0.2, 0.8]]);
/// let picture = Lines::new("Attention", weights)
///     .labels(&["le", "chat"], &["the", "cat"])
///     .axes("translation", "sentence");
/// assert!(picture.to_svg().contains("chat"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// The title above the picture.
    pub title: String,
    /// The strength of the line from each row to each column, from 0 to 1.
    pub matrix: Matrix,
    /// The row labels, on the left.
    pub rows: Vec<String>,
    /// The column labels, on the right.
    pub columns: Vec<String>,
    /// The headings of the left and the right column.
    pub axes: (String, String),
    /// The index of the colour.
    pub colour: usize,
}

impl Lines {
    /// Lines whose strengths are the values of the matrix.
    pub fn new(title: impl Into<String>, matrix: Matrix) -> Self {
        Lines { title: title.into(), matrix, ..Lines::default() }
    }

    /// Sets the labels on the left and on the right.
    pub fn labels<R: AsRef<str>, C: AsRef<str>>(mut self, rows: &[R], columns: &[C]) -> Self {
        self.rows = rows.iter().map(|label| label.as_ref().to_owned()).collect();
        self.columns = columns.iter().map(|label| label.as_ref().to_owned()).collect();
        self
    }

    /// Sets the headings of the two columns.
    pub fn axes(mut self, rows: impl Into<String>, columns: impl Into<String>) -> Self {
        self.axes = (rows.into(), columns.into());
        self
    }

    /// The picture as an SVG document, which can also be embedded in a page.
    pub fn to_svg(&self) -> String {
        svg::render(&self.scene())
    }

    /// The picture as a PNG file; 2 is a good `scale` for screens. Needs the cargo feature `png`.
    pub fn to_png(&self, scale: f64) -> Result<Vec<u8>> {
        self.scene().to_png(scale)
    }

    fn scene(&self) -> Scene {
        let count = self.matrix.rows().max(self.matrix.columns());
        let mut scene = Scene {
            width: WIDTH,
            height: TOP + ROW * count as f64 + 14.0,
            title: clean(&self.title),
            description: format!(
                "Lines between {} and {} tokens.",
                self.matrix.rows(),
                self.matrix.columns()
            ),
            ..Scene::default()
        };
        let (left, right) = (SIDE, WIDTH - SIDE);
        scene.text(Text::new(20.0, 28.0, 16.0, truncate(&clean(&self.title), 70)).bold());
        let name = |x, text: &str, anchor| {
            Text::new(x, TOP - 18.0, 13.0, clean(text)).paint(Paint::Soft).anchor(anchor)
        };
        scene.text(name(left - 10.0, &self.axes.0, Anchor::End));
        scene.text(name(right + 10.0, &self.axes.1, Anchor::Start));
        let columns = self.matrix.columns().max(1);
        for (i, row) in self.matrix.values().chunks(columns).enumerate() {
            for (j, &weight) in row.iter().enumerate() {
                if weight >= LEAST {
                    scene.items.push(self.strand((left + 3.0, height(i)), (right - 3.0, height(j)), weight));
                }
            }
        }
        let label = |labels: &[String], i: usize| {
            truncate(&labels.get(i).map_or_else(|| i.to_string(), |label| clean(label)), 22)
        };
        for i in 0..self.matrix.rows() {
            let text = Text::new(left - 10.0, height(i) + 5.0, 14.0, label(&self.rows, i));
            scene.text(text.anchor(Anchor::End));
        }
        for j in 0..self.matrix.columns() {
            scene.text(Text::new(right + 10.0, height(j) + 5.0, 14.0, label(&self.columns, j)));
        }
        scene
    }

    /// A curve with horizontal tangents at both ends.
    fn strand(&self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), weight: f32) -> Item {
        let point = |i: usize| {
            let t = i as f64 / CORNERS as f64;
            (x1 + (x2 - x1) * t, y1 + (y2 - y1) * t * t * (3.0 - 2.0 * t))
        };
        let weight = f64::from(weight.min(1.0));
        Item::Line {
            points: (0..=CORNERS).map(point).collect(),
            paint: Paint::Series(self.colour),
            pen: Pen { width: 0.8 + 3.2 * weight, dashed: false, opacity: weight.powf(0.8) },
        }
    }
}

/// The vertical centre of a row.
fn height(i: usize) -> f64 {
    TOP + ROW * (i as f64 + 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_strong_as_its_weight() {
        let weights = Matrix::from_rows(&[[0.99, 0.01], [0.25, f32::NAN]]);
        let svg = Lines::new("A <title>", weights).labels(&["a", "b"], &["c"]).axes("from", "to").to_svg();
        roxmltree::Document::parse(&svg).unwrap();
        assert_eq!(svg.matches("<polyline").count(), 2, "{svg}");
        assert!(svg.contains("stroke-opacity=\"0.33\"") && svg.contains("&lt;title&gt;"), "{svg}");
        // A missing label becomes a number.
        assert!(svg.contains(">1</text>"), "{svg}");
        let empty = Lines::new("", Matrix::default()).to_svg();
        roxmltree::Document::parse(&empty).unwrap();
    }
}
