use super::*;

fn error(format: Format, bytes: &[u8]) -> String {
    FileDocument::open(format, bytes, &FileOptions::default()).unwrap_err().to_string()
}

#[test]
fn files_of_another_kind() {
    let wide = |name: &str| -> Vec<u8> { name.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let ole =
        |stream: &str| [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".as_slice(), &[0; 512], &wide(stream)].concat();
    let one = docx("<w:p/>");
    for (format, bytes, wanted) in [
        (
            Format::Docx,
            ole("WordDocument"),
            "this is no docx file: it is a Word 97-2003 document (doc); save it as docx",
        ),
        (Format::Xlsx, ole("Workbook"), "save it as xlsx"),
        (Format::Pptx, ole("PowerPoint Document"), "save it as pptx"),
        (Format::Docx, ole("EncryptedPackage"), "the docx file is encrypted; save a copy without a password"),
        (Format::Docx, ole("Something"), "old office program"),
        (Format::Docx, b"{\\rtf1".to_vec(), "RTF"),
        (Format::Docx, b"%PDF-1.4".to_vec(), "PDF"),
        (Format::Docx, b"hello".to_vec(), "no zip package"),
        (Format::Docx, Vec::new(), "it is empty"),
        (Format::Xlsx, one.clone(), "it is of the format docx"),
        (Format::Odt, one.clone(), "another kind of zip package"),
        (Format::Odt, odf("spreadsheet", ""), "it is of the format ods"),
        (Format::Docx, odf("text", ""), "OpenDocument"),
        (Format::Epub, one.clone(), "container.xml"),
        (Format::Docx, one[..one.len() / 2].to_vec(), "damaged"),
        (Format::Docx, package(&[("[Content_Types].xml", b"<Types/>")]), "no main part"),
    ] {
        let error = error(format, &bytes);
        assert!(error.contains(wanted), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn damaged_parts_are_named() {
    let error = error(Format::Docx, &docx("<w:p>"));
    assert!(error.starts_with("word/document.xml in the docx file: its XML is damaged at byte"), "{error}");
    let odt = package(&[("mimetype", b"application/vnd.oasis.opendocument.text")]);
    assert_eq!(super::broken::error(Format::Odt, &odt), "content.xml in the odt file: it is missing");
}

#[test]
fn entities_are_not_expanded() {
    let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;\">]><x>&b;</x>";
    let odt = package(&[
        ("mimetype", b"application/vnd.oasis.opendocument.text"),
        ("content.xml", bomb.as_bytes()),
    ]);
    assert!(error(Format::Odt, &odt).contains("document type (DTD)"));
    // A book may have a DTD; entities that it defines stay as written.
    let book = epub("<p>One &b; dog</p>");
    let after = translated(Format::Epub, &book, reversed);
    assert!(part(&after, "OEBPS/text/page 1.xhtml").contains("<p>DOG &b; ONE</p>"));
}

#[test]
fn bombs_are_not_expanded() {
    let zeros = vec![b' '; 80 << 20];
    let odt = package(&[("mimetype", b"application/vnd.oasis.opendocument.text"), ("content.xml", &zeros)]);
    assert!(odt.len() < 1 << 20);
    let error = error(Format::Odt, &odt);
    assert!(error.contains("content.xml") && error.contains("is the limit"), "{error}");
}

#[test]
fn names_stay_inside_of_the_package() {
    for name in ["../evil.xml", "/etc/passwd", "a/../../b", "c:\\x"] {
        let odt = package(&[
            ("mimetype", b"application/vnd.oasis.opendocument.text"),
            (name, b"x"),
            ("content.xml", b"<x/>"),
        ]);
        let error = error(Format::Odt, &odt);
        assert!(error.contains("leads out of the package") || error.contains("damaged"), "{name}: {error}");
    }
    let opf = "<package><manifest><item id='a' href='../../../x.xhtml' media-type='application/xhtml+xml'/></manifest></package>";
    let book = package(&[
        ("META-INF/container.xml", b"<container><rootfile full-path='a/b.opf'/></container>"),
        ("a/b.opf", opf.as_bytes()),
    ]);
    assert!(error(Format::Epub, &book).contains("leads out of the book"));
}

#[test]
fn encrypted_files() {
    let manifest = b"<manifest:manifest xmlns:manifest='m'><manifest:file-entry><manifest:encryption-data/></manifest:file-entry></manifest:manifest>";
    let odt = package(&[
        ("mimetype", b"application/vnd.oasis.opendocument.text"),
        ("content.xml", b"\x01\x02"),
        ("META-INF/manifest.xml", manifest),
    ]);
    assert!(error(Format::Odt, &odt).contains("the odt file is encrypted"));
    // The bit in the headers of a part that marks encryption.
    let mut zip = docx("<w:p/>");
    for (signature, offset) in [(b"PK\x03\x04", 6), (b"PK\x01\x02", 8)] {
        let places: Vec<usize> = (0..zip.len() - 4).filter(|&at| zip[at..].starts_with(signature)).collect();
        for at in places {
            zip[at + offset] |= 1;
        }
    }
    assert!(error(Format::Docx, &zip).contains("encrypted"));
}

#[test]
fn hostile_paragraphs_take_linear_time() {
    let mark = |kind: &str| format!("<w:r><w:fldChar w:fldCharType=\"{kind}\"/></w:r>");
    for unit in [
        mark("begin"),
        mark("begin") + &mark("separate") + "<w:r><w:t>a b</w:t></w:r>" + &mark("end"),
        "<w:bookmarkStart w:id=\"1\"/><w:r><w:t>a </w:t></w:r><w:bookmarkEnd w:id=\"1\"/>".to_owned(),
        "<w:r><w:rPr><w:b/></w:rPr><w:t>a </w:t></w:r><w:r><w:t>b </w:t></w:r>".to_owned(),
        "<w:hyperlink><w:r><w:t>a</w:t></w:r></w:hyperlink>".to_owned(),
        "<w:r><w:t>12. </w:t><w:footnoteReference/></w:r>".to_owned(),
    ] {
        let body = format!("<w:p>{}<w:r><w:t>A dog runs.</w:t></w:r></w:p>", unit.repeat(4_000));
        check_time(Format::Docx, &docx(&body), "word/document.xml");
    }
    for unit in [
        "<b>a </b>",
        "<b>a <br/></b>",
        "<i id=\"x\">a<br/></i>",
        "<a id=\"x\"></a>",
        "<code>a b</code> ",
        "<rt>a</rt>b",
    ] {
        let book = epub(&format!("<p>{} A dog runs.</p>", unit.repeat(4_000)));
        check_time(Format::Epub, &book, "OEBPS/text/page 1.xhtml");
    }
}

fn check_time(format: Format, bytes: &[u8], name: &str) {
    let start = std::time::Instant::now();
    for translate in [same, reversed] {
        let (written, normalised) = both(format, bytes, translate);
        for bytes in [written, normalised] {
            Xml::parse(part(&bytes, name).into_bytes(), true).unwrap();
        }
    }
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}
