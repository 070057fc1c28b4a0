//! docx, pptx and xlsx: finds the parts that contain text by their content types.

use super::inline::Builder;
use super::runs::{Dialect, paragraph};
use super::xml::{Namespace, Xml};
use super::{OfficeFile, Part};
use crate::files::{FileError, Format, Unit};
use std::collections::HashSet;

const TYPES: &str = "[Content_Types].xml";

/// Parses the parts that contain text.
pub(super) fn read(file: &mut OfficeFile, units: &mut Vec<Unit>) -> Result<(), FileError> {
    let format = file.package.format();
    if !file.package.has(TYPES) {
        let found = match file.package.has("mimetype") {
            true => "it is an OpenDocument file or a book",
            false => "it is another kind of zip package",
        };
        return Err(FileError::OtherFormat { format, found: found.to_owned() });
    }
    let parts = content_types(&file.xml(TYPES, false)?);
    check_main(format, &parts)?;
    let columns = match format {
        Format::Xlsx => column_names(file, &parts)?,
        _ => HashSet::new(),
    };
    for (name, kind) in &parts {
        let Some(dialects) = dialects(format, kind) else { continue };
        if !file.package.has(name) {
            continue;
        }
        let bytes = file.package.read(name)?;
        // Most sheets contain no inline strings, and some are very large.
        let inline = b"inlineStr";
        if kind == "worksheet" && !bytes.windows(inline.len()).any(|window| window == inline) {
            continue;
        }
        let xml = Xml::parse(bytes, false).map_err(|problem| file.problem(name, problem))?;
        let mut part = file.part(name, xml);
        for &dialect in dialects {
            add_paragraphs(&mut part, units, dialect, &columns);
        }
        if !part.edits.is_empty() {
            file.parts.push(part);
        }
    }
    Ok(())
}

/// The names of the parts and the last components of their content types; the main part comes
/// first.
fn content_types(xml: &Xml) -> Vec<(String, String)> {
    let overrides = (0..xml.items.len()).filter(|&item| xml.name(item).1 == "Override");
    let mut found: Vec<(String, String)> = overrides
        .filter_map(|item| {
            let name = xml.attribute(item, "PartName")?;
            let kind = xml.attribute(item, "ContentType")?;
            let kind = kind.strip_suffix("+xml")?;
            let kind = kind.rsplit_once('.').map_or(kind, |(_, kind)| kind);
            // `…document.main+xml` is a main part, and so is
            // `…template.macroEnabledTemplate.main+xml`.
            let kind = if kind == "main" { main_kind(&xml.attribute(item, "ContentType")?) } else { kind };
            Some((name.trim_start_matches('/').to_owned(), kind.to_owned()))
        })
        .collect();
    // The main part comes first; sorting by length puts slide 2 before slide 10.
    found.sort_by_key(|(name, kind)| (!kind.starts_with("main"), name.len(), name.clone()));
    found
}

/// The kind of main part with this content type.
fn main_kind(kind: &str) -> &'static str {
    let kind = kind.to_ascii_lowercase();
    match () {
        () if kind.contains("wordprocessingml") || kind.contains("ms-word") => "main-word",
        () if kind.contains("presentationml") || kind.contains("ms-powerpoint") => "main-presentation",
        () if kind.contains("spreadsheetml") || kind.contains("ms-excel") => "main-sheet",
        () => "main",
    }
}

/// Rejects a package of another format.
fn check_main(format: Format, parts: &[(String, String)]) -> Result<(), FileError> {
    let has = |wanted: &str| parts.iter().any(|(_, kind)| kind == wanted);
    let kinds =
        [(Format::Docx, "main-word"), (Format::Pptx, "main-presentation"), (Format::Xlsx, "main-sheet")];
    if kinds.iter().any(|(of, kind)| *of == format && has(kind)) {
        return Ok(());
    }
    let found = match kinds.iter().find(|(_, kind)| has(kind)) {
        Some((other, _)) => format!("it is of the format {other}"),
        None => "it has no main part".to_owned(),
    };
    Err(FileError::OtherFormat { format, found })
}

/// The kinds of paragraphs that are translated in a part of this type.
fn dialects(format: Format, kind: &str) -> Option<&'static [Dialect]> {
    Some(match (format, kind) {
        (Format::Docx, "main-word" | "header" | "footer" | "footnotes" | "endnotes") => {
            &[Dialect::Word, Dialect::Drawing]
        }
        (Format::Pptx, "slide" | "notesSlide") => &[Dialect::Drawing],
        (Format::Xlsx, "sharedStrings" | "worksheet") => &[Dialect::Sheet],
        (Format::Xlsx, "drawing") => &[Dialect::Drawing],
        // The titles of charts, and the text of diagrams in both of their representations.
        (_, "chart" | "diagramData" | "diagramDrawing") => &[Dialect::Drawing],
        _ => return None,
    })
}

/// Adds each paragraph of a part as a unit.
fn add_paragraphs(part: &mut Part, units: &mut Vec<Unit>, dialect: Dialect, columns: &HashSet<String>) {
    let names: &[(Namespace, &str)] = match dialect {
        Dialect::Word => &[(Namespace::Word, "p")],
        Dialect::Drawing => &[(Namespace::Drawing, "p")],
        Dialect::Sheet => &[(Namespace::Sheet, "si"), (Namespace::Sheet, "is")],
    };
    let mut entities = part.entities();
    for item in 0..part.xml.items.len() {
        if !names.iter().any(|(namespace, name)| part.xml.begins(item, *namespace, name)) {
            continue;
        }
        if dialect == Dialect::Sheet && columns.contains(&cell_text(&part.xml, item)) {
            continue;
        }
        let mut builder = Builder::new(&mut entities, part.language.as_deref());
        if let Some((range, runs)) = paragraph(&part.xml, item, dialect, &mut builder) {
            part.add_inline(units, range, builder, Some(runs));
        }
    }
}

/// The text of a cell without its phonetic readings.
fn cell_text(xml: &Xml, item: usize) -> String {
    let texts = xml.children(item).filter(|&child| xml.name(child).1 != "rPh");
    texts.map(|child| xml.content(child)).collect::<String>().trim().to_owned()
}

/// The column names of tables and pivot tables. They are not translated, because formulas refer to
/// them, and Excel repairs a workbook in which a header cell differs from its column name.
fn column_names(file: &mut OfficeFile, parts: &[(String, String)]) -> Result<HashSet<String>, FileError> {
    let mut names = HashSet::new();
    for (part, kind) in parts {
        let element = match kind.as_str() {
            "table" => "tableColumn",
            "pivotCacheDefinition" => "cacheField",
            _ => continue,
        };
        if !file.package.has(part) {
            continue;
        }
        let xml = file.xml(part, false)?;
        let columns = (0..xml.items.len()).filter(|&item| xml.begins(item, Namespace::Sheet, element));
        let written = columns.filter_map(|item| xml.attribute(item, "name"));
        names.extend(written.map(|name| name.replace("_x000a_", "\n").trim().to_owned()));
    }
    Ok(names)
}
