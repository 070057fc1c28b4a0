//! What a study has found: sentences, tables and pictures in the order in which they are read.

mod json;
mod table;
mod write;

pub(crate) use table::significant;
pub use table::{Cell, Column, Table};
pub use write::write_index;

use regard_core::{Error, Result};
use regard_plot::{Grid, HeatMap, LineChart, math};

/// Something that can be drawn.
#[derive(Clone, Debug)]
pub enum Drawing {
    /// Curves.
    Chart(LineChart),
    /// A matrix in colours.
    Map(HeatMap),
    /// Several matrices side by side.
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
    /// As SVG.
    pub fn to_svg(&self) -> String {
        match self {
            Drawing::Chart(chart) => chart.to_svg(),
            Drawing::Map(map) => map.to_svg(),
            Drawing::Grid(grid) => grid.to_svg(),
        }
    }

    /// As PNG, `scale` pixels to a unit.
    pub fn to_png(&self, scale: f64) -> Result<Vec<u8>> {
        match self {
            Drawing::Chart(chart) => chart.to_png(scale),
            Drawing::Map(map) => map.to_png(scale),
            Drawing::Grid(grid) => grid.to_png(scale),
        }
        .map_err(Error::other)
    }
}

/// A drawing with a name and words below it.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The name of its file, without the ending: small letters, digits and hyphens.
    pub name: String,
    /// Stands below it.
    pub caption: String,
    /// What is drawn.
    pub drawing: Drawing,
}

/// One piece of a report.
#[derive(Clone, Debug)]
pub enum Part {
    /// A line above what follows.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Rows of numbers.
    Table(Table),
    /// A drawing.
    Picture(Picture),
}

/// What a reader of Chinese sees first.
#[derive(Clone, Debug, Default)]
struct Zh {
    title: String,
    question: String,
    answer: String,
}

/// What a study has found.
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
    /// A report with nothing in it yet.
    pub fn new(title: impl Into<String>) -> Self {
        Report { title: title.into(), ..Report::default() }
    }

    /// With the question that it answers.
    pub fn asking(mut self, question: impl Into<String>) -> Self {
        self.question = question.into();
        self
    }

    /// With title and question in Chinese.
    pub fn in_chinese(mut self, [title, question]: [&str; 2]) -> Self {
        (self.zh.title, self.zh.question) = (title.to_owned(), question.to_owned());
        self
    }

    /// Sets the answer to the question, in plain words, in English and in Chinese: the numbers are
    /// for the summary.
    pub fn answer(&mut self, en: impl Into<String>, zh: impl Into<String>) {
        (self.answer, self.zh.answer) = (en.into(), zh.into());
    }

    /// Sets the paragraph that says what was found, with its numbers.
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

    /// Adds a picture; `name` becomes the name of its file.
    pub fn picture(
        &mut self,
        name: impl Into<String>,
        caption: impl Into<String>,
        drawing: impl Into<Drawing>,
    ) {
        let picture = Picture { name: name.into(), caption: caption.into(), drawing: drawing.into() };
        self.parts.push(Part::Picture(picture));
    }

    /// What stands above it.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// What was asked.
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

    /// What was found, in a paragraph.
    pub fn found(&self) -> &str {
        &self.summary
    }

    /// Its pieces in their order.
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

    /// The table of that name.
    #[cfg(test)]
    pub(crate) fn find_table(&self, name: &str) -> Option<&Table> {
        self.tables().find(|table| table.name == name)
    }

    /// The title, question and answer, the tables as aligned text, and what was found. Formulas are
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
