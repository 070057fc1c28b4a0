use super::*;

#[test]
fn runs_take_the_properties_of_their_words() {
    let body = "<w:p><w:pPr><w:jc w:val=\"center\"/></w:pPr><w:r w:rsidR=\"1\"><w:t xml:space=\"preserve\">a </w:t></w:r>\
        <w:r><w:rPr><w:b/></w:rPr><w:t xml:space=\"preserve\">big </w:t></w:r><w:r w:rsidR=\"2\"><w:t>dog</w:t></w:r></w:p>";
    let wanted = "<w:p><w:pPr><w:jc w:val=\"center\"/></w:pPr><w:r><w:t xml:space=\"preserve\">DOG </w:t></w:r>\
        <w:r><w:rPr><w:b/></w:rPr><w:t xml:space=\"preserve\">BIG </w:t></w:r><w:r><w:t>A</w:t></w:r></w:p>";
    assert_eq!(word(body, reversed), wanted);
    assert_eq!(word(body, same), body.replace(" w:rsidR=\"1\"", "").replace(" w:rsidR=\"2\"", ""));
}

#[test]
fn words_that_word_cut_are_whole() {
    let body = "<w:p><w:r><w:rPr><w:lang w:val=\"en-US\"/></w:rPr><w:t>The eleph</w:t></w:r><w:proofErr w:type=\"spellStart\"/>\
        <w:r><w:t xml:space=\"preserve\">ants </w:t></w:r><w:r><w:rPr><w:noProof/></w:rPr><w:t>sleep.</w:t></w:r></w:p>";
    let document = FileDocument::open(Format::Docx, &docx(body), &FileOptions::default()).unwrap();
    let texts: Vec<&str> = document.sentences().map(|sentence| sentence.text.as_str()).collect();
    assert_eq!(texts, ["The elephants sleep.", "A header"]);
    let wanted =
        "<w:p><w:r><w:rPr><w:lang w:val=\"en-US\"/></w:rPr><w:t>The elephants sleep.</w:t></w:r></w:p>";
    assert_eq!(word(body, same), wanted);
}

/// Paragraphs that contain more than text.
const RICH: [&str; 9] = [
    // A footnote, a bookmark and a comment.
    "<w:p><w:r><w:t>The dog</w:t></w:r><w:r><w:rPr><w:vertAlign w:val=\"superscript\"/></w:rPr><w:footnoteReference w:id=\"2\"/></w:r>\
     <w:r><w:t xml:space=\"preserve\"> runs.</w:t></w:r></w:p>",
    "<w:p><w:bookmarkStart w:id=\"0\" w:name=\"x\"/><w:r><w:t>Chapter one</w:t></w:r><w:bookmarkEnd w:id=\"0\"/></w:p>",
    // Tabs and line breaks, with and without formatting.
    "<w:p><w:r><w:t>Name:</w:t></w:r><w:r><w:tab/></w:r><w:r><w:t>Smith</w:t></w:r><w:r><w:br/></w:r><w:r><w:t>Next line</w:t></w:r></w:p>",
    "<w:p><w:r><w:t>Sign here:</w:t></w:r><w:r><w:rPr><w:u w:val=\"single\"/></w:rPr><w:tab/></w:r></w:p>",
    // A link, a field, a formula.
    "<w:p><w:r><w:t xml:space=\"preserve\">See </w:t></w:r><w:hyperlink r:id=\"rId1\"><w:r><w:rPr><w:rStyle w:val=\"Hyperlink\"/></w:rPr>\
     <w:t>the page</w:t></w:r></w:hyperlink><w:r><w:t xml:space=\"preserve\"> now.</w:t></w:r></w:p>",
    "<w:p><w:r><w:t xml:space=\"preserve\">See </w:t></w:r><w:r><w:fldChar w:fldCharType=\"begin\"/></w:r><w:r><w:instrText> REF x </w:instrText></w:r>\
     <w:r><w:fldChar w:fldCharType=\"separate\"/></w:r><w:r><w:t>Figure 3</w:t></w:r><w:r><w:fldChar w:fldCharType=\"end\"/></w:r>\
     <w:r><w:t xml:space=\"preserve\"> below.</w:t></w:r></w:p>",
    "<w:p><w:r><w:t xml:space=\"preserve\">where </w:t></w:r><m:oMath><m:r><m:t>x+1</m:t></m:r></m:oMath><w:r><w:t xml:space=\"preserve\"> is odd</w:t></w:r></w:p>",
    // A text box that contains a paragraph.
    "<w:p><w:r><w:t>Outside</w:t></w:r><w:r><w:drawing><w:txbxContent><w:p><w:r><w:t>Inside it</w:t></w:r></w:p></w:txbxContent></w:drawing></w:r></w:p>",
    // A subscript inside a word, and deleted text.
    "<w:p><w:r><w:t>H</w:t></w:r><w:r><w:rPr><w:vertAlign w:val=\"subscript\"/></w:rPr><w:t>2</w:t></w:r><w:r><w:t xml:space=\"preserve\">O is </w:t></w:r>\
     <w:del w:id=\"1\"><w:r><w:delText>ice</w:delText></w:r></w:del><w:r><w:t>water.</w:t></w:r></w:p>",
];

#[test]
fn what_is_its_own_translation_comes_back_as_it_was() {
    for body in RICH {
        assert_eq!(word(body, same), body);
    }
}

#[test]
fn whatever_stands_beside_the_text_survives_a_translation() {
    for body in RICH {
        let found = word(body, reversed);
        for kept in [
            "<w:footnoteReference w:id=\"2\"/>",
            "<w:bookmarkStart w:id=\"0\" w:name=\"x\"/>",
            "<w:bookmarkEnd w:id=\"0\"/>",
            "<w:tab/>",
            "<w:br/>",
            "<w:hyperlink r:id=\"rId1\">",
            "<w:rStyle w:val=\"Hyperlink\"/>",
            "<w:instrText> REF x </w:instrText>",
            "<w:t>Figure 3</w:t>",
            "<m:t>x+1</m:t>",
            "<w:delText>ice</w:delText>",
            "<w:txbxContent>",
        ] {
            assert_eq!(found.matches(kept).count(), body.matches(kept).count(), "{kept} in {found}");
        }
        Xml::parse(format!("<a>{found}</a>").into_bytes(), false).unwrap();
    }
    assert!(word(RICH[7], reversed).contains("<w:t>IT INSIDE</w:t>"));
    assert!(
        word(RICH[2], reversed).contains("<w:t>SMITH</w:t></w:r><w:r><w:br/></w:r><w:r><w:t>LINE NEXT</w:t>")
    );
    let found = word(RICH[0], reversed);
    assert!(
        found.contains(
            "DOG</w:t></w:r><w:r><w:rPr><w:vertAlign w:val=\"superscript\"/></w:rPr><w:footnoteReference"
        ),
        "{found}"
    );
}

#[test]
fn headers_are_translated_and_all_else_is_copied() {
    let before = docx("<w:p><w:r><w:t>12 %</w:t></w:r></w:p>");
    let after = translated(Format::Docx, &before, reversed);
    assert!(part(&after, "word/header1.xml").contains("HEADER A"));
    for name in ["word/document.xml", "word/comments.xml"] {
        assert_eq!(part(&after, name), part(&before, name));
    }
    let mut archive = zip::ZipArchive::new(Cursor::new(&after)).unwrap();
    let names: Vec<String> =
        (0..archive.len()).map(|n| archive.by_index(n).unwrap().name().unwrap().into_owned()).collect();
    assert_eq!(names[0], "[Content_Types].xml");
    assert_eq!(names.len(), 5);
}

#[test]
fn slides_and_notes() {
    let body = "<a:p><a:pPr lvl=\"1\"/><a:r><a:rPr lang=\"en-US\" dirty=\"0\"/><a:t>a </a:t></a:r><a:r><a:rPr lang=\"en-US\" b=\"1\"/><a:t>big</a:t></a:r>\
        <a:r><a:rPr lang=\"de-DE\"/><a:t> dog</a:t></a:r><a:br/><a:fld id=\"x\" type=\"slidenum\"><a:t>3</a:t></a:fld><a:endParaRPr lang=\"en-US\"/></a:p>";
    let after = translated(Format::Pptx, &pptx(body), reversed);
    let slide = part(&after, "ppt/slides/slide1.xml");
    let wanted = "<a:p><a:pPr lvl=\"1\"/><a:r><a:rPr lang=\"en-US\" dirty=\"0\"/><a:t>DOG </a:t></a:r><a:r><a:rPr lang=\"en-US\" b=\"1\"/><a:t>BIG</a:t></a:r>\
        <a:r><a:rPr lang=\"en-US\" dirty=\"0\"/><a:t> A</a:t></a:r><a:br/><a:fld id=\"x\" type=\"slidenum\"><a:t>3</a:t></a:fld><a:endParaRPr lang=\"en-US\"/></a:p>";
    assert!(slide.contains(wanted), "{slide}");
    assert!(part(&after, "ppt/notesSlides/notesSlide1.xml").contains("NOTE A"));
    assert!(part(&after, "ppt/slideMasters/slideMaster1.xml").contains("A master"));
}

#[test]
fn strings_of_sheets_but_no_numbers_formulas_or_columns() {
    let strings = "<si><t>A column</t></si><si><t xml:space=\"preserve\">One dog\nTwo cats </t><rPh sb=\"0\" eb=\"1\"><t>x</t></rPh></si>\
        <si><r><rPr><b/></rPr><t>Big</t></r><r><t xml:space=\"preserve\"> dogs</t></r></si><si><t>1,000</t></si>";
    let rows = "<row r=\"1\"><c r=\"A1\" t=\"inlineStr\"><is><t>An inline string</t></is></c>\
        <c r=\"B1\" t=\"str\"><f>CONCAT(\"a b\")</f><v>A result</v></c><c r=\"C1\"><v>42</v></c></row>";
    let after = translated(Format::Xlsx, &xlsx(strings, rows), reversed);
    let found = part(&after, "xl/sharedStrings.xml");
    assert!(found.contains("<si><t>A column</t></si>"), "{found}");
    assert!(found.contains("<si><t xml:space=\"preserve\">DOG ONE\nCATS TWO </t></si>"), "{found}");
    assert!(
        found.contains("<si><r><t xml:space=\"preserve\">DOGS </t></r><r><rPr><b/></rPr><t>BIG</t></r></si>"),
        "{found}"
    );
    assert!(found.contains("<si><t>1,000</t></si>"), "{found}");
    let found = part(&after, "xl/worksheets/sheet1.xml");
    assert!(found.contains("<is><t>STRING INLINE AN</t></is>"), "{found}");
    assert!(found.contains("<f>CONCAT(\"a b\")</f><v>A result</v>"), "{found}");
}

#[test]
fn open_documents() {
    let body = "<text:h>One <text:span text:style-name=\"T1\">big</text:span> dog</text:h>\
        <text:p>The cat<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>See below</text:p></text:note-body></text:note> runs\
        <office:annotation><text:p>A comment</text:p></office:annotation>.</text:p>\
        <text:p>Name:<text:tab/><text:a href=\"x\">my page</text:a>, page <text:page-number>3</text:page-number></text:p>\
        <text:tracked-changes><text:p>was deleted</text:p></text:tracked-changes>";
    let before = odf("text", body);
    let after = translated(Format::Odt, &before, same);
    for name in ["content.xml", "styles.xml"] {
        assert_eq!(part(&after, name), part(&before, name));
    }
    let after = translated(Format::Odt, &before, reversed);
    let found = part(&after, "content.xml");
    for wanted in [
        "<text:h>DOG <text:span text:style-name=\"T1\">BIG</text:span> ONE</text:h>",
        "CAT<text:note>",
        "<text:p>BELOW SEE</text:p>",
        "<text:p>A comment</text:p>",
        "<text:p>NAME:<text:tab/>",
        "<text:page-number>3</text:page-number>",
        "was deleted",
    ] {
        assert!(found.contains(wanted), "{wanted} in {found}");
    }
    let found = part(&after, "styles.xml");
    assert!(found.contains("FOOTER A") && found.contains("A master"), "{found}");
    assert!(after[30..].starts_with(b"mimetypeapplication/vnd.oasis.opendocument.text"));
}

#[test]
fn cells_of_open_sheets() {
    let body = "<table:table-cell office:value-type=\"string\"><text:p>One dog</text:p></table:table-cell>\
        <table:table-cell office:value-type=\"date\"><text:p>3 May</text:p></table:table-cell>\
        <table:table-cell office:value-type=\"string\" table:formula=\"of:=A1\"><text:p>One dog</text:p></table:table-cell>";
    let found = part(&translated(Format::Ods, &odf("spreadsheet", body), reversed), "content.xml");
    assert_eq!(found.matches("DOG ONE").count(), 1);
    assert_eq!(found.matches("One dog").count(), 1);
    assert!(found.contains("3 May"));
}

#[test]
fn books() {
    let body = "<h1 id=\"a\">One <b>big</b> dog</h1><p>See&nbsp;it<br/>now &amp; <img src=\"x\" alt=\"A &quot;red&quot; cat\"/> here.<a id=\"n\"></a></p>\
        <pre>not this</pre><a href=\"x\"><span>A <em>link</em></span><p>around a block</p></a><p><span id=\"s\">two<br/>lines</span> here</p>\
        <p>call <code>f(x)</code> now</p>";
    let before = epub(body);
    let after = translated(Format::Epub, &before, same);
    assert!(after[30..].starts_with(b"mimetypeapplication/epub+zip"));
    let page = "OEBPS/text/page 1.xhtml";
    assert_eq!(part(&after, page), part(&before, page).replace("=\"en\"", "=\"de\""));
    assert_eq!(part(&after, "OEBPS/toc.ncx"), part(&before, "OEBPS/toc.ncx"));
    let after = translated(Format::Epub, &before, reversed);
    let found = part(&after, page);
    for wanted in [
        "<title>PAGE A</title>",
        "<h1 id=\"a\">DOG <b>BIG</b> ONE</h1>",
        "alt=\"CAT &quot;RED&quot; A\"",
        "<pre>not this</pre>",
        "<p>BLOCK A AROUND</p></a>",
        "<span id=\"s\">TWO<br/>LINES</span>",
        "<code>f(x)</code>",
        "lang=\"de\" xml:lang=\"de\"",
    ] {
        assert!(found.contains(wanted), "{wanted} in {found}");
    }
    Xml::parse(found.into_bytes(), true).unwrap();
    let opf = part(&after, "OEBPS/book.opf");
    assert!(opf.contains("<dc:title>BOOK A</dc:title><dc:language>de</dc:language>"), "{opf}");
    assert!(part(&after, "OEBPS/toc.ncx").contains("<text>PAGE A</text>"));
}

#[test]
fn more_tags_than_a_sentence_may_have() {
    let spans: String =
        (0..2_000).map(|n| format!("<text:span text:style-name=\"T{n}\">w{n} x</text:span> y ")).collect();
    let deep = "<text:span>".repeat(300) + "deep dog" + &"</text:span>".repeat(300);
    for body in [format!("<text:p>{spans}</text:p>"), format!("<text:p>{deep}</text:p>")] {
        let before = odf("text", &body);
        for translate in [same, reversed] {
            let found = part(&translated(Format::Odt, &before, translate), "content.xml");
            Xml::parse(found.into_bytes(), false).unwrap();
        }
    }
}

#[test]
fn where_a_sentence_ends_depends_on_the_language() {
    let text = "Das war am 3. Oktober in Bonn. Siehe Art. 5 Abs. 3 der Ordnung. I see no. 5 there.";
    for language in [None, Some("de"), Some("en")] {
        let wanted: Vec<&str> = regard_core::text::sentence_ranges(text, language)
            .into_iter()
            .map(|range| &text[range])
            .collect();
        let options = FileOptions { source_language: language.map(str::to_owned), ..FileOptions::default() };
        let body = format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>");
        let document = FileDocument::open(Format::Docx, &docx(&body), &options).unwrap();
        let found: Vec<&str> = document.sentences().map(|sentence| sentence.text.as_str()).collect();
        // The header comes after them.
        assert_eq!(found[..found.len() - 1], wanted, "{language:?}");
    }
    let count = |language| regard_core::text::sentence_ranges(text, language).len();
    assert_ne!(count(Some("de")), count(Some("en")), "the languages differ in this text");
}
