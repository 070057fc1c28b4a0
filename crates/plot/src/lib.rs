//! Plots: line charts and heat maps as SVG, PNG, terminal text and HTML pages.
//!
//! A chart describes itself as a `scene` of rectangles, lines and texts, and `svg` renders any
//! scene. For a PNG, `resvg` renders that SVG with an embedded font (cargo feature `png`), because
//! servers often have no fonts.
//!
//! Nothing here fails on bad numbers: NaN is drawn as missing, infinities at the end of the scale,
//! and empty data as an empty frame with a note.

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
