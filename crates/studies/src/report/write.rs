//! Writes reports to files: an HTML page, a CSV file per table, an SVG per picture, and an index of
//! several reports.

use super::{Part, Report};
use crate::Study;
use regard_core::{Error, Result};
use regard_plot::html::Page;
use std::fs;
use std::io::Write;
use std::path::Path;

/// The report for the web page of the server.
const JSON: &str = "report.json";

impl Report {
    /// Writes `index.html`, `report.json` and the files of all tables and pictures into a folder,
    /// which is created if necessary.
    ///
    /// `made` says how the report was made; it appears at the end of the page.
    pub fn write(&self, folder: &Path, made: &str) -> Result<()> {
        fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        let mut links: Vec<(String, String)> = Vec::new();
        for table in self.tables() {
            let file = format!("{}.csv", table.name);
            save(&folder.join(&file), &table.to_csv())?;
            links.push((file.clone(), format!("{file}: {}", table.caption)));
        }
        for picture in self.pictures() {
            let file = format!("{}.svg", picture.name);
            save(&folder.join(&file), &picture.drawing.to_svg())?;
            links.push((file.clone(), format!("{file}: {}", picture.caption)));
        }
        save(&folder.join("index.html"), &self.page(&links, made))?;
        save(&folder.join(JSON), &self.to_json(made))
    }

    fn page(&self, links: &[(String, String)], made: &str) -> String {
        let mut page = Page::new(&self.title).formulas();
        for said in [&self.question, &self.answer] {
            if !said.is_empty() {
                page = page.lead(said);
            }
        }
        if !self.summary.is_empty() {
            page = page.paragraph(&self.summary);
        }
        for part in &self.parts {
            page = match part {
                Part::Heading(text) => page.heading(text),
                Part::Text(text) => page.paragraph(text),
                Part::Table(table) => page.table(table.to_html()),
                Part::Picture(picture) => page.figure(picture.drawing.to_svg(), &picture.caption),
            };
        }
        page.heading("Files").links(links).paragraph(made).render()
    }
}

/// Writes a page with links to the reports of several studies, each in a subfolder of `folder` with
/// its name.
pub fn write_index(folder: &Path, reports: &[(&Study, Report)]) -> Result<()> {
    let mut page = Page::new("Studies of the Transformer").formulas().paragraph(
        "Each study compares what is said about the Transformer with what a run of this program measures. Every number comes \
         from that run.",
    );
    for (study, report) in reports {
        page = page
            .heading(report.title())
            .lead(report.question())
            .paragraph(report.answered())
            .paragraph(report.found())
            .links(&[(format!("{}/index.html", study.name), format!("{}: {}", study.name, study.about))]);
    }
    let names: Vec<String> = reports.iter().map(|(study, _)| format!("\"{}\"", study.name)).collect();
    save(&folder.join("index.json"), &format!("[{}]\n", names.join(",")))?;
    save(&folder.join("index.html"), &page.render())
}

fn save(path: &Path, text: &str) -> Result<()> {
    regard_core::replace(path, |file| file.write_all(text.as_bytes()))
}

/// Wraps text at spaces into lines of at most `width` characters.
pub(super) fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Scale, Setup, Table};
    use regard_plot::{LineChart, Series};

    fn sample(_: &Setup<'_>, report: &mut Report) -> Result<()> {
        report.answer("Yes, $x_1$ is less.", "是的，$x_1$ 更小。");
        report.summary("One is less than two.");
        report.heading("Numbers");
        report.text("A paragraph with <brackets>.");
        let mut table = Table::new("numbers", "Two numbers", [Column::new("x"), Column::new("y")]);
        table.row([1usize.into(), 2.5.into()]);
        report.table(table);
        let chart = LineChart::new("A line", "x", "y").series(Series::new("s", vec![(0.0, 1.0), (1.0, 2.0)]));
        report.picture("line", "A rising line.", chart);
        Ok(())
    }

    const STUDY: Study = Study {
        name: "sample",
        title: "A sample",
        question: "Is one less than two?",
        zh: ["示例", "一小于二吗？"],
        about: "nothing",
        body: sample,
    };

    #[test]
    fn a_report_becomes_a_page_and_files() {
        let folder = tempfile::tempdir().unwrap();
        let report = STUDY.run(&Setup::new(Scale::Smoke)).unwrap();
        let to = folder.path().join("sample");
        report.write(&to, "Made by a test.").unwrap();
        assert_eq!(fs::read_to_string(to.join("numbers.csv")).unwrap(), "x,y\r\n1,2.5\r\n");
        let svg = fs::read_to_string(to.join("line.svg")).unwrap();
        roxmltree::Document::parse(&svg).unwrap();
        let page = fs::read_to_string(to.join("index.html")).unwrap();
        for part in [
            "A sample",
            "<p class=\"lead\">Is one less than two?",
            "<msub>",
            "One is less than two",
            "&lt;brackets&gt;",
            "<td class=\"n\">2.500</td>",
            "<svg",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(page.contains("href=\"numbers.csv\"") && page.contains("Made by a test."));
        assert_eq!(fs::read_dir(&to).unwrap().count(), 4);
        let json = fs::read_to_string(to.join("report.json")).unwrap();
        assert!(
            json.contains("\"question\":[\"Is one less than two?\"]") && json.contains("\"line.svg\""),
            "{json}"
        );
        let chinese =
            "\"zh\":{\"title\":[\"示例\"],\"question\":[\"一小于二吗？\"],\"answer\":[\"是的，\",{\"math\"";
        assert!(json.contains(chinese), "{json}");

        write_index(folder.path(), &[(&STUDY, report)]).unwrap();
        let index = fs::read_to_string(folder.path().join("index.html")).unwrap();
        assert!(index.contains("href=\"sample/index.html\"") && index.contains("less than two"));
    }

    #[test]
    fn a_folder_that_is_a_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "").unwrap();
        let error = Report::new("x").write(&path, "").unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}: ", path.display())), "{error}");
    }

    #[test]
    fn long_lines_are_broken_at_spaces() {
        assert_eq!(wrapped("one two  three\nfour", 8), "one two\nthree\nfour");
        assert_eq!(wrapped("longer-than-that x", 4), "longer-than-that\nx");
    }
}
