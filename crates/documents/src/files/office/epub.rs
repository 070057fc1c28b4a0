//! epub: the pages of the book, its table of contents, its title and its language.

use super::inline::{Builder, Kind};
use super::package::is_safe;
use super::xml::{Kind as XmlKind, Namespace, Xml, cdata, escape};
use super::{Content, Edit, OfficeFile, Part};
use crate::files::{FileError, FileOptions, Unit};
use crate::html::{HIDDEN, INLINE, OPAQUE, TRANSLATED};
use std::collections::HashMap;
use std::ops::Range;

const CONTAINER: &str = "META-INF/container.xml";
const ENCRYPTION: &str = "META-INF/encryption.xml";
const PAGE: &str = "application/xhtml+xml";
const CONTENTS: &str = "application/x-dtbncx+xml";

/// Parses the book.
pub(super) fn read(
    file: &mut OfficeFile,
    units: &mut Vec<Unit>,
    options: &FileOptions,
) -> Result<(), FileError> {
    if !file.package.has(CONTAINER) {
        let found = "it has no META-INF/container.xml, which every epub file must have".to_owned();
        return Err(FileError::OtherFormat { format: file.package.format(), found });
    }
    let container = file.xml(CONTAINER, true)?;
    let root = (0..container.items.len())
        .find(|&item| container.name(item).1 == "rootfile")
        .and_then(|item| container.attribute(item, "full-path"))
        .ok_or_else(|| file.problem(CONTAINER, "it does not name a package document"))?;
    let root =
        resolve("", &root).ok_or_else(|| file.problem(CONTAINER, "it names a part outside the book"))?;
    let package = file.xml(&root, true)?;
    let manifest = manifest(file, &root, &package)?;
    refuse_encrypted(file, &manifest)?;
    let language = options.target_language.as_deref();
    let mut opf = file.part(&root, package);
    add_package(&mut opf, units, language);
    file.parts.push(opf);
    for (name, kind) in manifest {
        // A manifest may list parts that do not exist; e-readers ignore them.
        if !file.package.has(&name) {
            continue;
        }
        let xml = file.xml(&name, true)?;
        let mut part = file.part(&name, xml);
        match kind {
            PAGE => add_page(&mut part, units, language),
            _ => add_contents(&mut part, units),
        }
        file.parts.push(part);
    }
    Ok(())
}

/// The pages in reading order, then the table of contents, with their media types.
fn manifest(file: &OfficeFile, root: &str, xml: &Xml) -> Result<Vec<(String, &'static str)>, FileError> {
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut items: HashMap<String, (String, String)> = HashMap::new();
    let (mut found, mut extra) = (Vec::new(), Vec::new());
    for item in 0..xml.items.len() {
        if !matches!(xml.items[item].kind, XmlKind::Open | XmlKind::Empty) {
            continue;
        }
        match xml.name(item).1 {
            "item" => {
                let (Some(id), Some(href)) = (xml.attribute(item, "id"), xml.attribute(item, "href")) else {
                    continue;
                };
                let kind = xml.attribute(item, "media-type").unwrap_or_default();
                let properties = xml.attribute(item, "properties").unwrap_or_default();
                if kind != PAGE && kind != CONTENTS {
                    continue;
                }
                let name = resolve(folder, &href)
                    .ok_or_else(|| file.problem(root, format!("`{href}` leads out of the book")))?;
                if kind == CONTENTS {
                    extra.push((name.clone(), CONTENTS));
                } else if properties.split_whitespace().any(|property| property == "nav") {
                    extra.push((name.clone(), PAGE));
                }
                items.insert(id, (name, kind));
            }
            "itemref" => {
                let page = xml.attribute(item, "idref").and_then(|id| items.get(&id));
                if let Some((name, kind)) = page
                    && kind == PAGE
                {
                    found.push((name.clone(), PAGE));
                }
            }
            _ => {}
        }
    }
    for part in extra {
        if !found.contains(&part) {
            found.push(part);
        }
    }
    // The spine may list a page twice, but it is one part.
    let mut known = std::collections::HashSet::new();
    found.retain(|(name, _)| known.insert(name.clone()));
    Ok(found)
}

/// Resolves an `href` relative to a folder to the name of a part.
fn resolve(folder: &str, href: &str) -> Option<String> {
    let href = href.split(['#', '?']).next().unwrap_or_default();
    let mut steps: Vec<String> =
        folder.split('/').filter(|step| !step.is_empty()).map(str::to_owned).collect();
    for step in href.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()?),
            step => steps.push(decoded(step)),
        }
    }
    Some(steps.join("/")).filter(|name| is_safe(name))
}

/// Decodes percent escapes such as `%20`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = (*first == b'%').then(|| tail.get(..2)).flatten();
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Rejects books whose pages are encrypted; fonts may be.
fn refuse_encrypted(file: &mut OfficeFile, parts: &[(String, &str)]) -> Result<(), FileError> {
    if !file.package.has(ENCRYPTION) {
        return Ok(());
    }
    let xml = file.xml(ENCRYPTION, true)?;
    let references = (0..xml.items.len()).filter(|&item| xml.name(item).1 == "CipherReference");
    for uri in references.filter_map(|item| xml.attribute(item, "URI")) {
        if resolve("", &uri).is_some_and(|name| parts.iter().any(|(part, _)| *part == name)) {
            return Err(FileError::Encrypted { format: file.package.format() });
        }
    }
    Ok(())
}

/// The title and the language of the book.
fn add_package(part: &mut Part, units: &mut Vec<Unit>, language: Option<&str>) {
    for item in 0..part.xml.items.len() {
        if part.xml.begins(item, Namespace::DublinCore, "title") {
            part.add_plain(units, part.xml.inner_range(item));
        }
        if part.xml.begins(item, Namespace::DublinCore, "language")
            && let Some(language) = language
        {
            part.set(part.xml.inner_range(item), language);
        }
    }
}

/// The labels of a table of contents.
fn add_contents(part: &mut Part, units: &mut Vec<Unit>) {
    for item in 0..part.xml.items.len() {
        if part.xml.begins(item, Namespace::Ncx, "text") {
            part.add_plain(units, part.xml.inner_range(item));
        }
    }
}

impl Part {
    fn set(&mut self, range: Range<usize>, value: &str) {
        if !range.is_empty() {
            self.edits.push(Edit { range, content: Content::Fixed(escape(value)) });
        }
    }
}

/// The role of an element in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Surrounds inline text.
    Inline,
    /// Ends the line of text.
    Block,
    /// Ends the line of text, and its content is not translated.
    Hidden,
    /// Stands at a point inside a line and contains no text.
    Point,
    /// Contains text that is shown but not translated.
    Opaque,
    /// A line break.
    Separator,
}

fn class(xml: &Xml, item: usize) -> Class {
    let (namespace, name) = xml.name(item);
    let html = matches!(namespace, Namespace::Xhtml | Namespace::None);
    let name = if html { name } else { "svg" };
    let inline = INLINE.contains(&name);
    match name {
        "br" => Class::Separator,
        "rt" | "rp" | "img" | "wbr" | "audio" | "video" | "object" => Class::Point,
        _ if OPAQUE.contains(&name) || (inline && is_marked(xml, item)) => Class::Opaque,
        _ if is_marked(xml, item) => Class::Hidden,
        _ if HIDDEN.contains(&name) => {
            if inline {
                Class::Point
            } else {
                Class::Hidden
            }
        }
        _ if inline || matches!(name, "ruby" | "rb") => Class::Inline,
        _ => Class::Block,
    }
}

/// Whether an element is marked as not translatable.
fn is_marked(xml: &Xml, item: usize) -> bool {
    let value = |name: &str| xml.exact_attribute(item, name).map(|range| &xml.text[range]);
    value("translate").is_some_and(|value| value.trim() == "no")
        || value("class").is_some_and(|value| value.split_whitespace().any(|class| class == "notranslate"))
}

/// The inline elements that keep their position: those that contain blocks, and those with an `id`
/// that contain line breaks, because they must not be written twice.
fn fixed(xml: &Xml, classes: &[Class]) -> Vec<bool> {
    let mut fixed = vec![false; xml.items.len()];
    // For each open element: whether it contains a block or a fixed element, and whether it
    // contains a line break.
    let mut open: Vec<(usize, bool, bool)> = Vec::new();
    for item in 0..xml.items.len() {
        match xml.items[item].kind {
            XmlKind::Open => open.push((item, false, false)),
            XmlKind::Empty => {
                mark(&mut open, classes[item] == Class::Block, classes[item] == Class::Separator)
            }
            XmlKind::Close => {
                let Some((start, block, separated)) = open.pop() else { continue };
                let identity = || xml.attribute_range(start, "id").is_some();
                let inline = classes[start] == Class::Inline;
                fixed[start] = inline && (block || (separated && identity()));
                let parts = matches!(classes[start], Class::Block | Class::Hidden) || fixed[start] || block;
                mark(&mut open, parts, separated || classes[start] == Class::Separator);
            }
            _ => {}
        }
    }
    fixed
}

fn mark(open: &mut [(usize, bool, bool)], block: bool, separated: bool) {
    if let Some((_, has_block, has_separator)) = open.last_mut() {
        *has_block |= block;
        *has_separator |= separated;
    }
}

/// Adds the text of a page.
fn add_page(part: &mut Part, units: &mut Vec<Unit>, language: Option<&str>) {
    let count = part.xml.items.len();
    let element = |item: usize| matches!(part.xml.items[item].kind, XmlKind::Open | XmlKind::Empty);
    let classes: Vec<Class> =
        (0..count).map(|item| if element(item) { class(&part.xml, item) } else { Class::Block }).collect();
    let fixed = fixed(&part.xml, &classes);
    if let Some(language) = language
        && let Some(html) = (0..count).find(|&item| element(item) && part.xml.name(item).1 == "html")
    {
        for name in ["lang", "xml:lang"] {
            if let Some(range) = part.xml.exact_attribute(html, name) {
                part.set(range, language);
            }
        }
    }
    let mut entities = part.entities();
    let mut item = 0;
    while item < count {
        match (part.xml.items[item].kind, classes[item]) {
            (XmlKind::Open, Class::Hidden) => item = part.xml.end_item(item) + 1,
            (XmlKind::Text | XmlKind::CData, _) => {
                item = add_line(part, units, item, &classes, &fixed, &mut entities)
            }
            (XmlKind::Open | XmlKind::Empty, class)
                if class != Class::Block && class != Class::Hidden && !fixed[item] =>
            {
                item = add_line(part, units, item, &classes, &fixed, &mut entities);
            }
            (XmlKind::Open | XmlKind::Empty, _) => {
                add_attributes(part, units, item);
                item += 1;
            }
            _ => item += 1,
        }
    }
}

/// Adds the inline content from item `first` up to the next block boundary, and returns the item
/// after it.
fn add_line(
    part: &mut Part,
    units: &mut Vec<Unit>,
    first: usize,
    classes: &[Class],
    fixed: &[bool],
    entities: &mut crate::html::EntityPlaceholders,
) -> usize {
    let mut builder = Builder::new(entities, part.language.as_deref());
    let mut shown = Vec::new();
    let mut depth = 0;
    let mut item = first;
    while item < part.xml.items.len() {
        let xml = &part.xml;
        let point = Kind::Point { range: xml.outer_range(item) };
        match (xml.items[item].kind, classes[item]) {
            (XmlKind::Text, _) => builder.text(xml.raw(item)),
            (XmlKind::CData, _) => builder.text(&escape(cdata(xml.raw(item)))),
            (XmlKind::Other, _) => builder.point(point),
            (XmlKind::Close, _) if depth == 0 => break,
            (XmlKind::Close, _) => {
                depth -= 1;
                builder.close();
            }
            (_, Class::Block | Class::Hidden) => break,
            (XmlKind::Open, Class::Inline) if fixed[item] => break,
            (XmlKind::Open, Class::Inline) => {
                let (outer, inner) = (xml.outer_range(item), xml.inner_range(item));
                builder.open(Kind::Element { open: outer.start..inner.start, close: inner.end..outer.end });
                shown.push(item);
                depth += 1;
            }
            (_, class) => {
                match class {
                    Class::Opaque => builder.opaque(point, &escape(&xml.content(item))),
                    Class::Separator => builder.separator(point),
                    _ => builder.point(point),
                }
                shown.push(item);
                item = xml.end_item(item);
            }
        }
        item += 1;
    }
    let end = part.xml.range(item - 1).end;
    let range = part.xml.range(first).start..end;
    part.add_inline(units, range, builder, None);
    for item in shown {
        add_attributes(part, units, item);
    }
    item
}

/// Adds the translatable attributes of a tag.
fn add_attributes(part: &mut Part, units: &mut Vec<Unit>, item: usize) {
    if is_marked(&part.xml, item) {
        return;
    }
    for name in TRANSLATED {
        if let Some(range) = part.xml.exact_attribute(item, name) {
            part.add_plain(units, range);
        }
    }
}
