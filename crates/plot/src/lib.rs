//! Pictures of numbers: line charts and heat maps as SVG, PNG, terminal text, and pages that hold them.
//!
//! A chart describes itself as a `scene` of rectangles, lines and texts; `svg` and `raster` draw any scene. PNG text uses a
//! small font of our own: an SVG renderer would need fonts on the machine, and a server often has none.
//!
//! Nothing here fails on bad numbers: NaN is drawn as missing, infinities at the end of the scale, empty data as an
//! empty frame that says so.

mod chart;
mod colour;
mod error;
mod font;
mod grid;
mod heat;
pub mod html;
mod line;
mod matrix;
mod raster;
mod scene;
mod svg;
pub mod terminal;
mod text;
mod ticks;

pub use chart::{Axis, LineChart, Series};
pub use error::{Error, Result};
pub use grid::Grid;
pub use heat::HeatMap;
pub use line::smooth;
pub use matrix::Matrix;
pub use ticks::{format_number, linear_ticks, log_ticks};

#[cfg(test)]
mod tests;
