//! Small packages built in memory, for tests and as fuzzing seeds.

use std::io::{Cursor, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

const WORD: &str = "xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\" \
    xmlns:m=\"http://schemas.openxmlformats.org/officeDocument/2006/math\"";
const DRAWING: &str = "xmlns:a=\"http://schemas.openxmlformats.org/drawingml/2006/main\"";
const SHEET: &str = "xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"";
const ODF: &str = "xmlns:office=\"urn:oasis:names:tc:opendocument:xmlns:office:1.0\" \
    xmlns:style=\"urn:oasis:names:tc:opendocument:xmlns:style:1.0\" \
    xmlns:text=\"urn:oasis:names:tc:opendocument:xmlns:text:1.0\" \
    xmlns:table=\"urn:oasis:names:tc:opendocument:xmlns:table:1.0\" \
    xmlns:draw=\"urn:oasis:names:tc:opendocument:xmlns:drawing:1.0\"";

/// A package with these parts; `mimetype` is stored, the others are compressed.
pub(crate) fn package(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        let method =
            if *name == "mimetype" { CompressionMethod::Stored } else { CompressionMethod::Deflated };
        let options = SimpleFileOptions::default().compression_method(method);
        writer.start_file(*name, options).expect("a new part");
        writer.write_all(content).expect("memory");
    }
    writer.finish().expect("memory").into_inner()
}

fn types(parts: &[(&str, &str)]) -> String {
    let overrides: String = parts
        .iter()
        .map(|(part, kind)| {
            let prefix = "application/vnd.openxmlformats-officedocument.";
            format!("<Override PartName=\"/{part}\" ContentType=\"{prefix}{kind}+xml\"/>")
        })
        .collect();
    format!(
        "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\">{overrides}</Types>"
    )
}

/// A Word document with this body, and a header.
pub(crate) fn docx(body: &str) -> Vec<u8> {
    let types = types(&[
        ("word/document.xml", "wordprocessingml.document.main"),
        ("word/header1.xml", "wordprocessingml.header"),
        ("word/comments.xml", "wordprocessingml.comments"),
    ]);
    let document = format!("<?xml version=\"1.0\"?><w:document {WORD}><w:body>{body}</w:body></w:document>");
    let header = format!("<w:hdr {WORD}><w:p><w:r><w:t>A header</w:t></w:r></w:p></w:hdr>");
    let comments = format!("<w:comments {WORD}><w:p><w:r><w:t>A comment</w:t></w:r></w:p></w:comments>");
    package(&[
        ("[Content_Types].xml", types.as_bytes()),
        ("word/document.xml", document.as_bytes()),
        ("word/header1.xml", header.as_bytes()),
        ("word/comments.xml", comments.as_bytes()),
        ("word/media/image1.png", b"\x89PNG not really"),
    ])
}

/// A presentation with this text body on its slide, and a note.
pub(crate) fn pptx(body: &str) -> Vec<u8> {
    let types = types(&[
        ("ppt/presentation.xml", "presentationml.presentation.main"),
        ("ppt/slides/slide1.xml", "presentationml.slide"),
        ("ppt/notesSlides/notesSlide1.xml", "presentationml.notesSlide"),
        ("ppt/slideMasters/slideMaster1.xml", "presentationml.slideMaster"),
    ]);
    let slide = format!("<p:sld xmlns:p=\"p\" {DRAWING}><p:txBody>{body}</p:txBody></p:sld>");
    let notes = format!("<p:notes xmlns:p=\"p\" {DRAWING}><a:p><a:r><a:t>A note</a:t></a:r></a:p></p:notes>");
    let master = format!("<p:m xmlns:p=\"p\" {DRAWING}><a:p><a:r><a:t>A master</a:t></a:r></a:p></p:m>");
    package(&[
        ("[Content_Types].xml", types.as_bytes()),
        ("ppt/slides/slide1.xml", slide.as_bytes()),
        ("ppt/notesSlides/notesSlide1.xml", notes.as_bytes()),
        ("ppt/slideMasters/slideMaster1.xml", master.as_bytes()),
    ])
}

/// A workbook with these shared strings, these rows, and a table with the column "A column".
pub(crate) fn xlsx(strings: &str, rows: &str) -> Vec<u8> {
    let types = types(&[
        ("xl/workbook.xml", "spreadsheetml.sheet.main"),
        ("xl/sharedStrings.xml", "spreadsheetml.sharedStrings"),
        ("xl/worksheets/sheet1.xml", "spreadsheetml.worksheet"),
        ("xl/tables/table1.xml", "spreadsheetml.table"),
    ]);
    let strings = format!("<sst {SHEET}>{strings}</sst>");
    let sheet = format!("<worksheet {SHEET}><sheetData>{rows}</sheetData></worksheet>");
    let table = format!("<table {SHEET} ref=\"A1:A2\"><tableColumn id=\"1\" name=\"A column\"/></table>");
    package(&[
        ("[Content_Types].xml", types.as_bytes()),
        ("xl/sharedStrings.xml", strings.as_bytes()),
        ("xl/worksheets/sheet1.xml", sheet.as_bytes()),
        ("xl/tables/table1.xml", table.as_bytes()),
    ])
}

/// An OpenDocument file of a kind ("text", "spreadsheet", "presentation") with this body and a
/// footer.
pub(crate) fn odf(kind: &str, body: &str) -> Vec<u8> {
    let mimetype = format!("application/vnd.oasis.opendocument.{kind}");
    let content = format!(
        "<office:document-content {ODF}><office:body><office:{kind}>{body}</office:{kind}></office:body>\
         </office:document-content>"
    );
    let styles = format!(
        "<office:document-styles {ODF}><style:master-page><style:footer><text:p>A footer</text:p></style:footer>\
         <draw:x><text:p>A master</text:p></draw:x></style:master-page></office:document-styles>"
    );
    package(&[
        ("mimetype", mimetype.as_bytes()),
        ("content.xml", content.as_bytes()),
        ("styles.xml", styles.as_bytes()),
        ("META-INF/manifest.xml", b"<manifest/>"),
    ])
}

/// A book that has one page with this body.
pub(crate) fn epub(body: &str) -> Vec<u8> {
    let page = format!(
        "<?xml version=\"1.0\"?><!DOCTYPE html><html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\" \
         xml:lang=\"en\"><head><title>A page</title><style>p {{ color: red }}</style></head><body>{body}</body></html>"
    );
    package(&[
        ("mimetype", b"application/epub+zip"),
        (
            "META-INF/container.xml",
            b"<container><rootfiles><rootfile full-path=\"OEBPS/book.opf\"/></rootfiles></container>",
        ),
        (
            "OEBPS/book.opf",
            b"<package xmlns=\"http://www.idpf.org/2007/opf\"><metadata xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\
              <dc:title>A book</dc:title><dc:language>en</dc:language></metadata><manifest>\
              <item id=\"a\" href=\"text/page%201.xhtml\" media-type=\"application/xhtml+xml\"/>\
              <item id=\"ncx\" href=\"toc.ncx\" media-type=\"application/x-dtbncx+xml\"/>\
              <item id=\"lost\" href=\"lost.xhtml\" media-type=\"application/xhtml+xml\"/></manifest>\
              <spine><itemref idref=\"a\"/><itemref idref=\"lost\"/></spine></package>",
        ),
        ("OEBPS/text/page 1.xhtml", page.as_bytes()),
        (
            "OEBPS/toc.ncx",
            b"<!DOCTYPE ncx PUBLIC \"a\" \"b\"><ncx xmlns=\"http://www.daisy.org/z3986/2005/ncx/\"><navMap><navPoint>\
              <navLabel><text>A page</text></navLabel></navPoint></navMap></ncx>",
        ),
    ])
}

/// Bodies for the main parts of documents, each after a letter for the document format.
#[cfg(test)]
pub(crate) const BODIES: [(&str, &str); 8] = [
    (
        "word",
        "w<w:p><w:pPr/><w:r><w:t xml:space=\"preserve\">A </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>big</w:t></w:r><w:r><w:t> dog.</w:t><w:tab/>\
         <w:footnoteReference w:id=\"1\"/></w:r><w:hyperlink><w:r><w:t>Go on</w:t></w:r></w:hyperlink><m:oMath><m:t>x</m:t></m:oMath></w:p>",
    ),
    (
        "word_fields",
        "w<w:p><w:r><w:fldChar w:fldCharType=\"begin\"/></w:r><w:r><w:instrText> HYPERLINK x </w:instrText></w:r><w:r><w:fldChar w:fldCharType=\"separate\"/></w:r>\
         <w:r><w:t>a link</w:t></w:r><w:r><w:fldChar w:fldCharType=\"end\"/></w:r><w:sdt><w:sdtPr/><w:sdtContent><w:r><w:t>in it</w:t></w:r></w:sdtContent></w:sdt>\
         <w:r><w:drawing><w:p><w:r><w:t>inside &amp; out</w:t></w:r></w:p></w:drawing></w:r></w:p>",
    ),
    (
        "slide",
        "p<a:p><a:pPr/><a:r><a:rPr lang=\"en\" b=\"1\"/><a:t>Big dogs</a:t></a:r><a:br/><a:fld><a:t>3</a:t></a:fld><a:r><a:t> run</a:t></a:r><a:endParaRPr/></a:p>",
    ),
    (
        "sheet",
        "x<si><t>One\nTwo</t></si><si><r><rPr><b/></rPr><t>Big</t></r><r><t> dogs</t></r></si><c t=\"inlineStr\"><is><t>a b</t></is></c>",
    ),
    (
        "text",
        "t<text:p>One <text:span text:style-name=\"T1\">big<text:tab/>red</text:span> dog<text:note><text:note-body><text:p>A note</text:p></text:note-body></text:note>\
         <text:s text:c=\"2\"/><text:date>3 May</text:date><draw:frame><text:p>in a box</text:p></draw:frame></text:p>",
    ),
    (
        "cells",
        "s<table:table-cell office:value-type=\"string\"><text:p>A dog</text:p></table:table-cell><table:table-cell office:value-type=\"float\"><text:p>1</text:p></table:table-cell>",
    ),
    (
        "page",
        "o<text:p>A <text:a href=\"x\">link <text:span>to</text:span> it</text:a>. More<text:line-break/>here.</text:p>",
    ),
    (
        "book",
        "e<h1>A <b>big</b> dog</h1><p>See&nbsp;it<br/><i>now <img alt=\"A cat\"/></i> <code>x</code></p><a id=\"x\">and<p>more</p></a><!-- c --><ruby>a<rt>b</rt></ruby>",
    ),
];
