//! The report as JSON, for a page with its own rendering: texts are lists of words and formulas,
//! and pictures are given by file name.

use super::{Part, Report, Table};
use regard_plot::math::{self, Piece};
use std::fmt::Write;

impl Report {
    /// The report as a JSON object; `made` says how the report was made.
    pub fn to_json(&self, made: &str) -> String {
        let parts: Vec<String> = self.parts.iter().map(part).collect();
        format!(
            "{{\"title\":{},\"question\":{},\"answer\":{},\"zh\":{},\"summary\":{},\"parts\":[{}],\"made\":{}}}\n",
            rich(&self.title),
            rich(&self.question),
            rich(&self.answer),
            chinese(self.chinese()),
            rich(&self.summary),
            parts.join(","),
            string(made),
        )
    }
}

/// The title, question and answer in Chinese; an empty string if the report has none.
fn chinese([title, question, answer]: [&str; 3]) -> String {
    if title.is_empty() {
        return "null".to_owned();
    }
    format!("{{\"title\":{},\"question\":{},\"answer\":{}}}", rich(title), rich(question), rich(answer))
}

fn part(part: &Part) -> String {
    match part {
        Part::Heading(text) => format!("{{\"heading\":{}}}", rich(text)),
        Part::Text(text) => format!("{{\"text\":{}}}", rich(text)),
        Part::Table(found) => format!("{{\"table\":{}}}", table(found)),
        Part::Picture(picture) => format!(
            "{{\"picture\":{{\"file\":{},\"caption\":{}}}}}",
            string(&format!("{}.svg", picture.name)),
            rich(&picture.caption)
        ),
    }
}

fn table(table: &Table) -> String {
    let list = |cells: &mut dyn Iterator<Item = String>| format!("[{}]", cells.collect::<Vec<_>>().join(","));
    let columns = list(&mut table.columns.iter().map(|column| rich(&column.head())));
    let rows =
        list(&mut table.rows.iter().map(|row| list(&mut table.shown(row).iter().map(|cell| rich(cell)))));
    format!(
        "{{\"caption\":{},\"columns\":{columns},\"rows\":{rows},\"file\":{}}}",
        rich(&table.caption),
        string(&format!("{}.csv", table.name))
    )
}

/// A text as a list of strings and of objects with a formula in MathML.
fn rich(text: &str) -> String {
    let pieces: Vec<String> = math::pieces(text)
        .iter()
        .map(|piece| match *piece {
            Piece::Words(words) => string(words),
            Piece::Formula(formula) => format!("{{\"math\":{}}}", string(&math::mathml(formula))),
        })
        .collect();
    format!("[{}]", pieces.join(","))
}

fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
