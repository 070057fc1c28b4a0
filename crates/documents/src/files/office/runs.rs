//! Paragraphs that are lists of runs with properties, as in docx, pptx and xlsx.
//!
//! The properties of most of the text become the default of the paragraph; only runs that differ
//! from it become tags. Runs that differ only in marks of the spelling checker are merged.

use super::inline::{Builder, Kind};
use super::xml::{Kind as XmlKind, Namespace, Xml, cdata, escape};
use std::collections::HashMap;
use std::ops::Range;

/// The XML vocabulary that the runs belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Word,
    Drawing,
    Sheet,
}

impl Dialect {
    fn namespace(self) -> Namespace {
        match self {
            Dialect::Word => Namespace::Word,
            Dialect::Drawing => Namespace::Drawing,
            Dialect::Sheet => Namespace::Sheet,
        }
    }
}

/// How to write the runs of a paragraph.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    pub(super) dialect: Dialect,
    /// The namespace prefix of its elements, with a colon.
    pub(super) prefix: String,
    /// The properties of most of its text.
    pub(super) properties: String,
    /// Whether the text has no run around it, as is possible in sheets.
    pub(super) plain: bool,
}

/// Adds the content of a paragraph to the builder, and returns the range of that content, which
/// excludes the paragraph properties.
pub(super) fn paragraph(
    xml: &Xml,
    item: usize,
    dialect: Dialect,
    builder: &mut Builder<'_>,
) -> Option<(Range<usize>, Runs)> {
    let is_content = |child: &usize| {
        let (_, name) = xml.name(*child);
        !matches!(name, "pPr" | "endParaRPr")
    };
    let content: Vec<usize> = xml.children(item).filter(is_content).collect();
    let range = xml.outer_range(*content.first()?).start..xml.outer_range(*content.last()?).end;
    let mut walker = Walker { xml, dialect, builder };
    let properties = walker.most(&content);
    walker.walk(&content, &properties);
    let plain = dialect == Dialect::Sheet && !content.iter().any(|&child| walker.is(child, "r"));
    let runs = Runs { dialect, prefix: xml.prefix(item).to_owned(), properties, plain };
    Some((range, runs))
}

/// A Word field: the indices of its end and of its separator, after which the result begins.
struct Field {
    end: usize,
    separate: Option<usize>,
    instruction: String,
}

struct Walker<'a, 'b, 'c> {
    xml: &'a Xml,
    dialect: Dialect,
    builder: &'b mut Builder<'c>,
}

impl Walker<'_, '_, '_> {
    fn is(&self, item: usize, name: &str) -> bool {
        self.xml.begins(item, self.dialect.namespace(), name)
    }

    /// The properties of a run, as written in the part.
    fn properties(&self, run: usize) -> String {
        let found = self.xml.child(run, self.dialect.namespace(), "rPr");
        found.map_or(String::new(), |item| self.xml.text[self.xml.outer_range(item)].to_owned())
    }

    /// The properties that cover most characters of the runs.
    fn most(&self, items: &[usize]) -> String {
        let mut counts: HashMap<String, (usize, usize, String)> = HashMap::new();
        for (place, &run) in items.iter().enumerate().filter(|(_, run)| self.is(**run, "r")) {
            let properties = self.properties(run);
            let texts = self.xml.children(run).filter(|&child| self.is(child, "t"));
            let length: usize = texts.map(|text| self.xml.inner_range(text).len()).sum();
            let entry = counts.entry(essential(&properties)).or_insert((0, usize::MAX - place, properties));
            entry.0 += length;
        }
        // On a tie, the properties that come first win.
        counts.into_values().max().map_or(String::new(), |(_, _, properties)| properties)
    }

    /// Adds sibling items; `base` are the default properties of the text around them.
    fn walk(&mut self, items: &[usize], base: &str) {
        let fields = self.fields(items);
        let mut place = 0;
        while let Some(&item) = items.get(place) {
            if let Some(field) = fields.get(&place) {
                place = self.add_field(items, place, field);
            } else {
                self.add(item, base);
                place += 1;
            }
        }
        self.end_run();
    }

    /// Starts a run with these properties for the following text.
    fn begin_run(&mut self, properties: &str, base: &str) {
        if let Some(Kind::Run { properties: current }) = self.builder.innermost()
            && essential(current) == essential(properties)
        {
            return;
        }
        self.end_run();
        if essential(properties) != essential(base) {
            self.builder.open(Kind::Run { properties: properties.to_owned() });
        }
    }

    fn end_run(&mut self) {
        if matches!(self.builder.innermost(), Some(Kind::Run { .. })) {
            self.builder.close();
        }
    }

    fn add(&mut self, item: usize, base: &str) {
        let (namespace, name) = self.xml.name(item);
        if namespace == self.dialect.namespace() {
            match (self.dialect, name) {
                (_, "r") => return self.add_run(item, base),
                // Marks of the spelling checker, and phonetic readings, which do not fit the
                // translation.
                (Dialect::Word, "proofErr") | (Dialect::Sheet, "rPh" | "phoneticPr") => return,
                (Dialect::Sheet, "t") => return self.add_text(item),
                (Dialect::Drawing, "br") => {
                    self.end_run();
                    return self.builder.separator(Kind::Point { range: self.xml.outer_range(item) });
                }
                (Dialect::Drawing, "fld") => return self.add_opaque(item),
                (Dialect::Word, "fldSimple") => {
                    let instruction = self.xml.attribute(item, "instr").unwrap_or_default();
                    return match is_link(&instruction) {
                        true => self.add_container(item, item),
                        false => self.add_opaque(item),
                    };
                }
                (
                    Dialect::Word,
                    "hyperlink" | "smartTag" | "ins" | "moveTo" | "customXml" | "bdo" | "dir",
                ) => {
                    return self.add_container(item, item);
                }
                (Dialect::Word, "sdt") => return self.add_control(item),
                _ => {}
            }
        }
        if namespace == Namespace::Math {
            return self.add_opaque(item);
        }
        let blank = self.xml.characters(item).is_some_and(|text| text.trim().is_empty());
        if !blank && self.dialect != Dialect::Sheet {
            self.builder.point(Kind::Point { range: self.xml.outer_range(item) });
        }
    }

    /// Adds content that is shown but not translated.
    fn add_opaque(&mut self, item: usize) {
        let shown = escape(&self.xml.content(item));
        self.builder.opaque(Kind::Point { range: self.xml.outer_range(item) }, &shown);
    }

    /// Adds a content control; controls that offer a choice are not translated.
    fn add_control(&mut self, item: usize) {
        const CHOICES: [&str; 4] = ["dropDownList", "comboBox", "date", "checkbox"];
        let settings = self.xml.child(item, Namespace::Word, "sdtPr");
        let is_choice = |child| CHOICES.contains(&self.xml.name(child).1);
        let fixed = settings.is_some_and(|settings| self.xml.children(settings).any(is_choice));
        match self.xml.child(item, Namespace::Word, "sdtContent") {
            Some(content) if !fixed => self.add_container(item, content),
            _ => self.add_opaque(item),
        }
    }

    /// Adds an element around runs, which are the children of `content`.
    fn add_container(&mut self, item: usize, content: usize) {
        let (outer, inner) = (self.xml.outer_range(item), self.xml.inner_range(content));
        let items: Vec<usize> = self.xml.children(content).collect();
        let properties = self.most(&items);
        self.end_run();
        let kind = Kind::Container {
            open: outer.start..inner.start,
            close: inner.end..outer.end,
            properties: properties.clone(),
        };
        if items.is_empty() {
            return self.builder.point(Kind::Point { range: outer });
        }
        self.builder.open(kind);
        self.walk(&items, &properties);
        self.builder.close();
    }

    fn add_run(&mut self, run: usize, base: &str) {
        let properties = self.properties(run);
        let children: Vec<usize> = self.xml.children(run).collect();
        let texts: String = children
            .iter()
            .filter(|&&child| self.is(child, "t"))
            .map(|&child| &self.xml.text[self.xml.inner_range(child)])
            .collect();
        // A visible gap, as in a form.
        if texts.chars().count() > 1
            && texts.chars().all(char::is_whitespace)
            && essential(&properties) != essential(base)
        {
            self.end_run();
            return self.builder.separator(Kind::Point { range: self.xml.outer_range(run) });
        }
        for child in children {
            let (namespace, name) = self.xml.name(child);
            let ours = namespace == self.dialect.namespace();
            let point =
                || Kind::RunPoint { properties: properties.clone(), range: self.xml.outer_range(child) };
            match name {
                "rPr" | "lastRenderedPageBreak" if ours => {}
                "t" if ours => {
                    // A single space may take the properties of the text before it.
                    let is_space = texts.len() == 1 && texts.trim().is_empty();
                    if !is_space || essential(&properties) == essential(base) {
                        self.begin_run(&properties, base);
                    }
                    self.add_text(child);
                }
                "tab" | "br" | "cr" | "ptab" | "fldChar" | "instrText" | "delInstrText" if ours => {
                    let kind = point();
                    self.builder.separator(kind);
                }
                _ if self.xml.characters(child).is_some_and(|text| text.trim().is_empty()) => {}
                _ => {
                    let kind = point();
                    self.builder.point(kind);
                }
            }
        }
    }

    /// Adds the text of an element.
    fn add_text(&mut self, item: usize) {
        let inside: Vec<usize> = self.xml.children(item).collect();
        for child in inside {
            let raw = self.xml.raw(child);
            match self.xml.items[child].kind {
                XmlKind::Text if self.dialect == Dialect::Sheet => self.add_lines(raw),
                XmlKind::Text => self.builder.text(raw),
                XmlKind::CData => self.builder.text(&escape(cdata(raw))),
                // Comments are dropped.
                _ => {}
            }
        }
    }

    /// Adds the text of a cell; each line is a separate segment.
    fn add_lines(&mut self, raw: &str) {
        let start = raw.as_ptr() as usize - self.xml.text.as_ptr() as usize;
        let mut rest = raw;
        while let Some(at) = rest.find('\n') {
            self.builder.text(&rest[..at]);
            let place = start + (raw.len() - rest.len()) + at;
            // The line break is text of the part, so it can be copied into a run.
            self.builder.separator(Kind::RunPoint { properties: LINE.to_owned(), range: place..place + 1 });
            rest = &rest[at + 1..];
        }
        self.builder.text(rest);
    }

    /// The fields that begin and end among these siblings, by the index of their start.
    fn fields(&self, items: &[usize]) -> HashMap<usize, Field> {
        let mut found = HashMap::new();
        let mut open: Vec<(usize, Field)> = Vec::new();
        for (place, &item) in items.iter().enumerate() {
            if self.dialect != Dialect::Word || !self.is(item, "r") {
                continue;
            }
            if let Some((_, field)) = open.last_mut().filter(|(_, field)| field.separate.is_none()) {
                let code = self.xml.children(item).filter(|&child| self.is(child, "instrText"));
                field.instruction.extend(code.map(|child| self.xml.content(child)));
            }
            match self.field_mark(item).as_deref() {
                Some("begin") => {
                    open.push((place, Field { end: place, separate: None, instruction: String::new() }));
                }
                Some("separate") => {
                    if let Some((_, field)) = open.last_mut() {
                        field.separate = Some(place);
                    }
                }
                Some("end") => {
                    if let Some((start, field)) = open.pop() {
                        found.insert(start, Field { end: place, ..field });
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// The type of the field character in a run, if it has one and no text.
    fn field_mark(&self, run: usize) -> Option<String> {
        if !self.is(run, "r") {
            return None;
        }
        let mark = self.xml.child(run, Namespace::Word, "fldChar")?;
        let others = self.xml.child(run, Namespace::Word, "t").is_some();
        self.xml.attribute(mark, "fldCharType").filter(|_| !others)
    }

    /// Adds a field, and returns the index after it. The text of a link is translated; the result
    /// of any other field is not.
    fn add_field(&mut self, items: &[usize], place: usize, field: &Field) -> usize {
        let (first, last) = (self.xml.outer_range(items[place]), self.xml.outer_range(items[field.end]));
        let result = field.separate.map(|separate| &items[separate + 1..field.end]);
        match (result, field.separate) {
            (Some(result), Some(separate)) if is_link(&field.instruction) && !result.is_empty() => {
                self.end_run();
                let properties = self.most(result);
                self.builder.open(Kind::Container {
                    open: first.start..self.xml.outer_range(items[separate]).end,
                    close: last,
                    properties: properties.clone(),
                });
                self.walk(result, &properties);
                self.builder.close();
            }
            (result, _) => {
                let texts = result.unwrap_or_default().iter().map(|&item| self.shown(item));
                let shown: String = texts.collect();
                self.builder.opaque(Kind::Point { range: first.start..last.end }, &escape(&shown));
            }
        }
        field.end + 1
    }

    /// The visible text of an item, without field instructions.
    fn shown(&self, item: usize) -> String {
        let texts = (item..=self.xml.end_item(item)).filter(|&inner| self.is(inner, "t"));
        texts.map(|text| self.xml.content(text)).collect()
    }
}

/// Marks a line break in a cell, which is text rather than a run.
pub(super) const LINE: &str = "\n";

/// Whether the result of a field is text that the author wrote.
fn is_link(instruction: &str) -> bool {
    instruction.trim_start().get(..9).is_some_and(|name| name.eq_ignore_ascii_case("HYPERLINK"))
}

/// The properties without those that are not visible: the language and marks of the spelling
/// checker.
fn essential(properties: &str) -> String {
    const ELEMENTS: [&str; 2] = ["lang", "noProof"];
    const ATTRIBUTES: [&str; 7] = ["lang", "altLang", "dirty", "err", "noProof", "smtClean", "bmk"];
    let mut out = String::with_capacity(properties.len());
    let mut rest = properties;
    while let Some(at) = rest.find('<') {
        let end = rest[at..].find('>').map_or(rest.len(), |length| at + length + 1);
        let tag = &rest[at..end];
        let name = tag.trim_start_matches(['<', '/']);
        let name =
            &name[..name.find(|c: char| c.is_whitespace() || c == '>' || c == '/').unwrap_or(name.len())];
        let local = name.rsplit_once(':').map_or(name, |(_, local)| local);
        let is_run = local == "rPr";
        if !ELEMENTS.contains(&local) && (!is_run || !tag.starts_with("</")) {
            out.push('<');
            out.push_str(name);
            for attribute in tag.split_whitespace().skip(1) {
                let key = attribute.split('=').next().unwrap_or_default();
                if !(is_run && ATTRIBUTES.contains(&key)) {
                    out.push(' ');
                    out.push_str(attribute.trim_end_matches(['>', '/']));
                }
            }
        }
        out.push_str(rest[..at].trim());
        rest = &rest[end..];
    }
    // Empty properties count as none.
    match out.strip_prefix('<').map(|name| name.ends_with("rPr") && !name.contains(['<', ' '])) {
        Some(true) => String::new(),
        _ => out,
    }
}
