//! Tables with named columns: as text, as CSV and as HTML.

use regard_plot::{grouped, html, math, power_of_ten};
use std::fmt::Write;

/// One cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A measured number.
    Number(f64),
    /// A whole number.
    Count(u64),
    /// A name.
    Text(String),
    /// No value.
    Missing,
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Cell::Number(value)
    }
}

impl From<f32> for Cell {
    fn from(value: f32) -> Self {
        Cell::Number(f64::from(value))
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Self {
        Cell::Count(value as u64)
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Cell::Count(value)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Cell::Text(value.to_owned())
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Cell::Text(value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Missing, Into::into)
    }
}

/// One column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name of the quantity.
    pub name: String,
    /// The unit, or an empty string.
    pub unit: String,
    /// The number of decimals to show; `None` for four significant digits. CSV files contain all
    /// digits.
    pub decimals: Option<usize>,
}

impl Column {
    /// A column without a unit.
    pub fn new(name: impl Into<String>) -> Self {
        Column { name: name.into(), unit: String::new(), decimals: None }
    }

    /// Sets the unit.
    pub fn unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = unit.into();
        self
    }

    /// Sets the number of decimals.
    pub fn decimals(mut self, decimals: usize) -> Self {
        self.decimals = Some(decimals);
        self
    }

    /// The name with the unit.
    pub fn head(&self) -> String {
        if self.unit.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, self.unit) }
    }

    fn show(&self, cell: &Cell) -> String {
        match (cell, self.decimals) {
            (Cell::Number(value), Some(decimals)) if value.is_finite() => format!("{value:.decimals$}"),
            (Cell::Number(value), _) => significant(*value),
            (Cell::Count(value), _) => grouped(*value),
            (Cell::Text(text), _) => text.clone(),
            (Cell::Missing, _) => "–".to_owned(),
        }
    }
}

/// A number with four significant digits, as in tables.
pub(crate) fn significant(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "∞" } else { "−∞" }.to_owned();
    }
    if value == 0.0 || value.is_nan() {
        return value.to_string();
    }
    let exponent = value.abs().log10().floor() as i32;
    if !(-4..7).contains(&exponent) {
        return power_of_ten(&format!("{value:.3e}"));
    }
    format!("{value:.*}", (3 - exponent).max(0) as usize)
}

/// A table with named columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The file name without extension: lower-case letters, digits and hyphens.
    pub name: String,
    /// The caption above it.
    pub caption: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, with one cell per column.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub fn new(
        name: impl Into<String>,
        caption: impl Into<String>,
        columns: impl IntoIterator<Item = Column>,
    ) -> Self {
        let columns = columns.into_iter().collect();
        Table { name: name.into(), caption: caption.into(), columns, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The number in a row and the column with this name.
    pub fn number(&self, row: usize, column: &str) -> Option<f64> {
        let column = self.columns.iter().position(|c| c.name == column)?;
        match self.rows.get(row)?.get(column)? {
            Cell::Number(value) => Some(*value),
            Cell::Count(value) => Some(*value as f64),
            Cell::Text(_) | Cell::Missing => None,
        }
    }

    pub(super) fn shown(&self, row: &[Cell]) -> Vec<String> {
        self.columns.iter().zip(row).map(|(column, cell)| column.show(cell)).collect()
    }

    /// Text with aligned columns; numbers are right-aligned.
    pub fn to_text(&self) -> String {
        let plain = |text: &String| math::plain(text);
        let head: Vec<String> = self.columns.iter().map(|column| math::plain(&column.head())).collect();
        let rows: Vec<Vec<String>> =
            self.rows.iter().map(|row| self.shown(row).iter().map(plain).collect()).collect();
        let width = |text: &String| text.chars().count();
        let widths: Vec<usize> = (0..head.len())
            .map(|c| rows.iter().filter_map(|r| r.get(c)).chain([&head[c]]).map(width).max().unwrap_or(0))
            .collect();
        let words = |c: usize| self.rows.iter().any(|row| matches!(row.get(c), Some(Cell::Text(_))));
        let left: Vec<bool> = (0..head.len()).map(words).collect();
        let mut text = String::new();
        if !self.caption.is_empty() {
            let _ = writeln!(text, "{}", math::plain(&self.caption));
        }
        for cells in std::iter::once(&head).chain(&rows) {
            let mut line = String::new();
            for (c, cell) in cells.iter().enumerate() {
                let pad = " ".repeat(widths[c] - width(cell));
                let _ = match left[c] {
                    true => write!(line, "  {cell}{pad}"),
                    false => write!(line, "  {pad}{cell}"),
                };
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }

    /// The table as CSV (RFC 4180) with all digits; missing values are empty.
    pub fn to_csv(&self) -> String {
        let mut csv = String::new();
        let mut line = |fields: Vec<String>| {
            let _ = write!(csv, "{}\r\n", fields.join(","));
        };
        line(self.columns.iter().map(|column| quoted(&column.head())).collect());
        for row in &self.rows {
            line(row.iter().map(raw).collect());
        }
        csv
    }

    /// The table for an HTML page.
    pub fn to_html(&self) -> html::Table {
        let head: Vec<String> = self.columns.iter().map(Column::head).collect();
        let table = html::Table::new(&head).caption(&self.caption);
        self.rows.iter().fold(table, |table, row| table.row(&self.shown(row)))
    }
}

fn raw(cell: &Cell) -> String {
    match cell {
        Cell::Number(value) => value.to_string(),
        Cell::Count(value) => value.to_string(),
        Cell::Text(text) => quoted(&math::plain(text)),
        Cell::Missing => String::new(),
    }
}

fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let columns = [Column::new("kind"), Column::new("time").unit("ms").decimals(1), Column::new("n")];
        let mut table = Table::new("times", "Times of two kinds", columns);
        table.row(["one, two".into(), 12.345.into(), 1234usize.into()]);
        table.row(["x".into(), None::<f64>.into(), 0.000_012_345.into()]);
        table
    }

    #[test]
    fn text_is_aligned_and_csv_has_all_digits() {
        assert_eq!(
            table().to_text(),
            "Times of two kinds\n\
             \x20 kind      time (ms)             n\n\
             \x20 one, two       12.3         1,234\n\
             \x20 x                 –  1.234 × 10⁻⁵\n"
        );
        assert_eq!(table().to_csv(), "kind,time (ms),n\r\n\"one, two\",12.345,1234\r\nx,,0.000012345\r\n");
    }

    #[test]
    fn numbers_are_found_by_their_column() {
        assert_eq!(table().number(0, "time"), Some(12.345));
        assert_eq!(table().number(0, "n"), Some(1234.0));
        assert_eq!(table().number(1, "time"), None);
        assert_eq!(table().number(0, "kind"), None);
        assert_eq!(table().number(2, "n"), None);
        assert_eq!(table().number(0, "colour"), None);
    }

    #[test]
    fn four_significant_digits() {
        let shown: Vec<String> =
            [0.0, 1.0, 12.3456, 0.001_234_56, 123_456.7, 1e9, -2.5e-7, f64::INFINITY].map(significant).into();
        assert_eq!(shown, ["0", "1.000", "12.35", "0.001235", "123457", "1.000 × 10⁹", "-2.500 × 10⁻⁷", "∞"]);
        assert_eq!([999, 1000, 1_234_567].map(grouped), ["999", "1,000", "1,234,567"]);
    }
}
