//! odt, odp and ods: the paragraphs of `content.xml`, and the headers and footers of `styles.xml`.

use super::inline::{Builder, Kind};
use super::xml::{Kind as XmlKind, Namespace, Xml, cdata, escape};
use super::{OfficeFile, Part};
use crate::files::{FileError, Format, Unit};

const CONTENT: &str = "content.xml";
const STYLES: &str = "styles.xml";

/// Parses the parts that contain text.
pub(super) fn read(file: &mut OfficeFile, units: &mut Vec<Unit>) -> Result<(), FileError> {
    check_kind(file)?;
    for name in [CONTENT, STYLES] {
        if name == STYLES && !file.package.has(name) {
            continue;
        }
        let xml = file.xml(name, false)?;
        let mut part = file.part(name, xml);
        add_paragraphs(&mut part, units, name == STYLES);
        if !part.edits.is_empty() {
            file.parts.push(part);
        }
    }
    Ok(())
}

/// Rejects packages of another format and encrypted packages.
fn check_kind(file: &mut OfficeFile) -> Result<(), FileError> {
    let format = file.package.format();
    let kind = match file.package.has("mimetype") {
        true => String::from_utf8_lossy(&file.package.read("mimetype")?).trim().to_owned(),
        false => String::new(),
    };
    // Templates have types such as `…text-template`.
    let known = [Format::Odt, Format::Odp, Format::Ods, Format::Epub];
    let found = known.into_iter().find(|known| kind.starts_with(known.media_type()));
    if found.is_some_and(|found| found != format) || (found.is_none() && !file.package.has(CONTENT)) {
        let found = match found {
            Some(other) => format!("it is of the format {other}"),
            None => "it is another kind of zip package".to_owned(),
        };
        return Err(FileError::OtherFormat { format, found });
    }
    const MANIFEST: &str = "META-INF/manifest.xml";
    if file.package.has(MANIFEST) {
        // Older manifests have a DTD.
        let manifest = file.xml(MANIFEST, true)?;
        if (0..manifest.items.len()).any(|item| manifest.name(item).1 == "encryption-data") {
            return Err(FileError::Encrypted { format });
        }
    }
    Ok(())
}

/// Whether paragraphs inside an element are translated, or `None` if the element does not change
/// that; `here` says whether paragraphs around the element are translated.
fn translates(xml: &Xml, item: usize, here: bool) -> Option<bool> {
    match xml.name(item) {
        (Namespace::Office, "annotation" | "forms" | "scripts") | (Namespace::Text, "tracked-changes") => {
            Some(false)
        }
        (Namespace::Style, name) if name.starts_with("header") || name.starts_with("footer") => {
            Some(!name.ends_with("-properties") && !name.ends_with("-style"))
        }
        (Namespace::Table, "table-cell" | "covered-table-cell") => {
            // In text documents, table cells have no type.
            let kind = xml.attribute(item, "office:value-type");
            let text = kind.as_deref().is_none_or(|kind| kind == "string");
            let computed = ["table:formula", "office:string-value"];
            Some(here && text && computed.iter().all(|name| xml.attribute_range(item, name).is_none()))
        }
        _ => None,
    }
}

/// Adds each paragraph of a part as a unit; if `styles` is set, only those of headers and footers.
fn add_paragraphs(part: &mut Part, units: &mut Vec<Unit>, styles: bool) {
    let mut entities = part.entities();
    // For each open element that determines it: its end, and whether its paragraphs are translated.
    let mut around: Vec<(usize, bool)> = Vec::new();
    for item in 0..part.xml.items.len() {
        while around.pop_if(|(end, _)| *end < item).is_some() {}
        if !matches!(part.xml.items[item].kind, XmlKind::Open) {
            continue;
        }
        let here = around.last().map_or(!styles, |(_, translated)| *translated);
        if let Some(translated) = translates(&part.xml, item, here) {
            // Everything inside an untranslated element is untranslated, too.
            let kept = around.iter().any(|(_, translated)| !translated);
            around.push((part.xml.end_item(item), translated && !kept));
            continue;
        }
        let is_paragraph = matches!(
            part.xml.name(item),
            (Namespace::Text, "p" | "h") | (Namespace::Presentation, "footer-decl" | "header-decl")
        );
        if here && is_paragraph {
            let mut builder = Builder::new(&mut entities, part.language.as_deref());
            add_content(&part.xml, item, &mut builder);
            part.add_inline(units, part.xml.inner_range(item), builder, None);
        }
    }
}

/// Adds the content of an element.
fn add_content(xml: &Xml, item: usize, builder: &mut Builder<'_>) {
    for child in xml.children(item) {
        let outer = xml.outer_range(child);
        let raw = xml.raw(child);
        match xml.items[child].kind {
            XmlKind::Text => builder.text(raw),
            XmlKind::CData => builder.text(&escape(cdata(raw))),
            XmlKind::Open | XmlKind::Empty => match xml.name(child) {
                (Namespace::Text, "span" | "a" | "meta") if xml.items[child].kind == XmlKind::Open => {
                    let inner = xml.inner_range(child);
                    builder
                        .open(Kind::Element { open: outer.start..inner.start, close: inner.end..outer.end });
                    add_content(xml, child, builder);
                    builder.close();
                }
                (Namespace::Text, "tab" | "line-break") => builder.separator(Kind::Point { range: outer }),
                // A field shows its text. Elements that contain paragraphs are not part of this
                // paragraph.
                (Namespace::Text, name) if name != "note" && !has_paragraphs(xml, child) => {
                    builder.opaque(Kind::Point { range: outer }, &escape(&xml.content(child)));
                }
                _ => builder.point(Kind::Point { range: outer }),
            },
            _ => builder.point(Kind::Point { range: outer }),
        }
    }
}

fn has_paragraphs(xml: &Xml, item: usize) -> bool {
    (item..xml.end_item(item))
        .any(|inner| xml.begins(inner, Namespace::Text, "p") || xml.begins(inner, Namespace::Text, "h"))
}
