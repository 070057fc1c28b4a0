//! Tests for the formats that store strings by key: JSON, properties, iOS.

use super::testing::{capitals, identity, translated};
use super::{FileDocument, FileOptions, Format};

fn capital(format: Format, text: &str) -> String {
    assert_eq!(identity(format, text.as_bytes()), text.as_bytes());
    translated(format, text, &FileOptions::default(), capitals)
}

fn error(format: Format, bytes: &[u8]) -> String {
    FileDocument::open(format, bytes, &FileOptions::default()).unwrap_err().to_string()
}

#[test]
fn values_of_json_are_translated() {
    for (text, wanted) in [
        (
            "{ \"a\" : \"one\" ,\n\t\"b\": [1, \"two\", null, {\"c\": \"three\"}] }\n",
            "{ \"a\" : \"ONE\" ,\n\t\"b\": [1, \"TWO\", null, {\"c\": \"THREE\"}] }\n",
        ),
        ("\"say \\\"hi\\\"\\n\\u00e9 \\/\"", "\"SAY \\\"HI\\\"\\n\\u00c9 \\/\""),
        ("{\"é\":\"ü \\ud83d\\ude42 x\"}", "{\"é\":\"Ü 🙂 X\"}"),
        (
            "{\"@a\": \"kept\", \"@b\": {\"c\": [\"kept\"]}, \"d\": \"said\"}",
            "{\"@a\": \"kept\", \"@b\": {\"c\": [\"kept\"]}, \"d\": \"SAID\"}",
        ),
        ("{\"a\": \"hi {{name}} $t(b) <b>you</b>\"}", "{\"a\": \"HI {{name}} $t(b) <b>YOU</b>\"}"),
        (
            "{\"a\": \"{n, plural, one {# file} other {# files}}\"}",
            "{\"a\": \"{n, plural, one {# FILE} other {# FILES}}\"}",
        ),
        ("{}", "{}"),
        ("[[],{},-1.5e3,true]", "[[],{},-1.5e3,true]"),
    ] {
        assert_eq!(capital(Format::Json, text), wanted);
    }
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    assert_eq!(capital(Format::Json, &deep), deep);
}

#[test]
fn damaged_json_is_named_by_its_line() {
    for (text, wanted) in [
        ("{\n\"a\": \"b\n}", "line 2 of the json file: a string has no end on its line"),
        ("{\n\"a\" \"b\"}", "line 2 of the json file: `:` is missing after the key `a`; there is `\\\"`"),
        ("[1,\n2", "line 2 of the json file: `,` or `]` is missing before the end of the file"),
        ("{\"a\": 1,}", "line 1 of the json file: a key in quotation marks is missing; there is `}`"),
        ("[1] 2", "line 1 of the json file: the file goes on after its end with `2`"),
        ("[\"\\q\"]", "line 1 of the json file: a backslash must be followed by one of \" \\ / b f n r t u"),
        (
            "[\"\\ud800\"]",
            "line 1 of the json file: `\\u` stands for half a character; its other half is missing",
        ),
        ("[nope]", "line 1 of the json file: a value is missing; there is `n`"),
        ("", "line 1 of the json file: the file is empty"),
    ] {
        assert_eq!(error(Format::Json, text.as_bytes()), wanted);
    }
    assert_eq!(
        error(Format::Json, b"[\n\xff]"),
        "line 2 of the json file: this is not UTF-8; save the file as UTF-8"
    );
}

#[test]
fn values_of_properties_are_translated() {
    for (text, wanted) in [
        (
            "# note\n! too\na = one\nb:two\nc three\n\n  d\\ e = four\nf=\n",
            "# note\n! too\na = ONE\nb:TWO\nc THREE\n\n  d\\ e = FOUR\nf=\n",
        ),
        ("a = one \\\n    two\\\r\n  three\nb = x\n", "a = ONE TWOTHREE\nb = X\n"),
        ("a=caf\\u00e9\\n\\\\ x\n", "a=CAF\\u00c9\\n\\\\ X\n"),
        ("a=café\n", "a=CAFÉ\n"),
        ("a=it''s {0}\nb=it's\n", "a=IT''S {0}\nb=IT'S\n"),
    ] {
        assert_eq!(capital(Format::Properties, text), wanted);
    }
    // ISO 8859-1.
    let document = FileDocument::open(Format::Properties, b"a=caf\xe9 \n", &FileOptions::default()).unwrap();
    assert_eq!(document.units()[0].source(), "café ");
    let out = document.render(&[crate::Translation::same("thé €")]).unwrap();
    assert_eq!(out, b"a=th\xe9 \\u20ac \n");
    assert!(error(Format::Properties, b"a=b\nc=\\u00g0").starts_with("line 2 of the properties file: `\\u`"));
}

#[test]
fn values_of_ios_strings_are_translated() {
    for (text, wanted) in [
        (
            "/* a note */\n\"a\" = \"one\";\n// more\nkey = \"say \\\"no\\\" %@\\n\" ;\n\"b\"=\"x\\U00e9\";\n",
            "/* a note */\n\"a\" = \"ONE\";\n// more\nkey = \"SAY \\\"NO\\\" %@\\n\" ;\n\"b\"=\"XÉ\";\n",
        ),
        ("\"same\";\n", "\"same\";\n"),
    ] {
        assert_eq!(capital(Format::IosStrings, text), wanted);
    }
    for big in [false, true] {
        let utf16 = |text: &str| -> Vec<u8> {
            let units = "\u{feff}".encode_utf16().chain(text.encode_utf16());
            units.flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
        };
        let file = utf16("\"a\" = \"é one\";\n");
        assert_eq!(identity(Format::IosStrings, &file), file);
        let document = FileDocument::open(Format::IosStrings, &file, &FileOptions::default()).unwrap();
        let out = document.render(&[crate::Translation::same("zwei 🙂")]).unwrap();
        assert_eq!(out, utf16("\"a\" = \"zwei 🙂\";\n"));
        assert!(error(Format::IosStrings, &file[..file.len() - 1]).contains("UTF-16"));
    }
    assert!(
        error(Format::IosStrings, b"\"a\" = \"b\"\n\"c\" = \"d\";")
            .starts_with("line 2 of the ios file: `;` is missing")
    );
    assert!(
        error(Format::IosStrings, b"\n/* a").starts_with("line 2 of the ios file: a comment has no `*/`")
    );
    assert!(error(Format::IosStrings, b"\"a\" = \"b").contains("a string has no end"));
    assert!(error(Format::IosStrings, b"bplist00").contains("binary"));
}
