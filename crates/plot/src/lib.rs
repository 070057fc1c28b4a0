//! Pictures of numbers: line charts and heat maps as SVG, PNG, terminal text, and pages that hold
//! them.
//!
//! A chart describes itself as a `scene` of rectangles, lines and texts, and `svg` draws any scene.
//! A PNG is that SVG, drawn by `resvg` with an embedded font (cargo feature `png`): a server often
//! has no fonts.
//!
//! Nothing here fails on bad numbers: NaN is drawn as missing, infinities at the end of the scale,
//! empty data as an empty frame that says so.

mod chart;
mod colour;
mod error;
mod grid;
mod heat;
pub mod html;
mod line;
mod lines;
pub mod math;
mod matrix;
#[cfg(feature = "png")]
mod png;
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
pub use lines::Lines;
pub use matrix::Matrix;
pub use ticks::{format_number, grouped, linear_ticks, log_ticks, power_of_ten};

#[cfg(test)]
mod tests;
