//! The report of a study: text, tables and pictures in reading order.

mod json;
mod table;
mod write;

pub(crate) use table::significant;
pub use table::{Cell, Column, Table};
pub use write::write_index;

use regard_core::{Error, Result};
use regard_plot::{Grid, HeatMap, LineChart, math};

/// A drawing.
#[derive(Clone, Debug)]
pub enum Drawing {
    /// A line chart.
    Chart(LineChart),
    /// A heat map.
    Map(HeatMap),
    /// Several heat maps side by side.
    Grid(Grid),
}

impl From<LineChart> for Drawing {
    fn from(chart: LineChart) -> Self {
        Drawing::Chart(chart)
    }
}

impl From<HeatMap> for Drawing {
    fn from(map: HeatMap) -> Self {
        Drawing::Map(map)
    }
}

impl From<Grid> for Drawing {
    fn from(grid: Grid) -> Self {
        Drawing::Grid(grid)
    }
}

impl Drawing {
    /// The drawing as SVG.
    pub fn to_svg(&self) -> String {
        match self {
            Drawing::Chart(chart) => chart.to_svg(),
            Drawing::Map(map) => map.to_svg(),
            Drawing::Grid(grid) => grid.to_svg(),
        }
    }

    /// The drawing as PNG with `scale` pixels per unit.
    pub fn to_png(&self, scale: f64) -> Result<Vec<u8>> {
        match self {
            Drawing::Chart(chart) => chart.to_png(scale),
            Drawing::Map(map) => map.to_png(scale),
            Drawing::Grid(grid) => grid.to_png(scale),
        }
        .map_err(Error::other)
    }
}

/// A drawing with a name and a caption.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The file name without extension: lower-case letters, digits and hyphens.
    pub name: String,
    /// The caption below it.
    pub caption: String,
    /// The drawing.
    pub drawing: Drawing,
}

/// A part of a report.
#[derive(Clone, Debug)]
pub enum Part {
    /// A heading above the following parts.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A table.
    Table(Table),
    /// A drawing.
    Picture(Picture),
}

/// The Chinese versions of title, question and answer.
#[derive(Clone, Debug, Default)]
struct Zh {
    title: String,
    question: String,
    answer: String,
}

/// The results of a study.
#[derive(Clone, Debug, Default)]
pub struct Report {
    title: String,
    question: String,
    answer: String,
    zh: Zh,
    summary: String,
    parts: Vec<Part>,
}

impl Report {
    /// An empty report.
    pub fn new(title: impl Into<String>) -> Self {
        Report { title: title.into(), ..Report::default() }
    }

    /// Sets the question that the report answers.
    pub fn asking(mut self, question: impl Into<String>) -> Self {
        self.question = question.into();
        self
    }

    /// Sets the title and the question in Chinese.
    pub fn in_chinese(mut self, [title, question]: [&str; 2]) -> Self {
        (self.zh.title, self.zh.question) = (title.to_owned(), question.to_owned());
        self
    }

    /// Sets the answer in plain words, in English and in Chinese; the numbers belong in the
    /// summary.
    pub fn answer(&mut self, en: impl Into<String>, zh: impl Into<String>) {
        (self.answer, self.zh.answer) = (en.into(), zh.into());
    }

    /// Sets the summary paragraph, with the measured numbers.
    pub fn summary(&mut self, text: impl Into<String>) {
        self.summary = text.into();
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: impl Into<String>) {
        self.parts.push(Part::Heading(text.into()));
    }

    /// Adds a paragraph.
    pub fn text(&mut self, text: impl Into<String>) {
        self.parts.push(Part::Text(text.into()));
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table) {
        self.parts.push(Part::Table(table));
    }

    /// Adds a picture; `name` becomes its file name.
    pub fn picture(
        &mut self,
        name: impl Into<String>,
        caption: impl Into<String>,
        drawing: impl Into<Drawing>,
    ) {
        let picture = Picture { name: name.into(), caption: caption.into(), drawing: drawing.into() };
        self.parts.push(Part::Picture(picture));
    }

    /// The title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The question.
    pub fn question(&self) -> &str {
        &self.question
    }

    /// The answer in plain words.
    pub fn answered(&self) -> &str {
        &self.answer
    }

    /// Title, question and answer in Chinese.
    pub fn chinese(&self) -> [&str; 3] {
        [&self.zh.title, &self.zh.question, &self.zh.answer]
    }

    /// The summary paragraph.
    pub fn found(&self) -> &str {
        &self.summary
    }

    /// The parts in order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Its tables.
    pub fn tables(&self) -> impl Iterator<Item = &Table> {
        self.parts.iter().filter_map(|part| if let Part::Table(table) = part { Some(table) } else { None })
    }

    /// Its pictures.
    pub fn pictures(&self) -> impl Iterator<Item = &Picture> {
        self.parts.iter().filter_map(|part| if let Part::Picture(p) = part { Some(p) } else { None })
    }

    /// The table with this name.
    #[cfg(test)]
    pub(crate) fn find_table(&self, name: &str) -> Option<&Table> {
        self.tables().find(|table| table.name == name)
    }

    /// The title, question, answer and summary, with the tables as aligned text and formulas in
    /// plain Unicode.
    pub fn tables_as_text(&self) -> String {
        let mut text = format!("{}\n", math::plain(&self.title));
        let paragraph = |said: &str| format!("{}\n", write::wrapped(&math::plain(said), 110));
        for said in [&self.question, &self.answer] {
            if !said.is_empty() {
                text.push_str(&paragraph(said));
            }
        }
        for table in self.tables() {
            text.push('\n');
            text.push_str(&table.to_text());
        }
        if !self.summary.is_empty() {
            text.push('\n');
            text.push_str(&paragraph(&self.summary));
        }
        text
    }
}
