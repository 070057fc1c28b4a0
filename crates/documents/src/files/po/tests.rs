use super::super::testing::{capitals, identity, translated};
use super::super::{FileDocument, FileOptions, Format};

const HEADER: &str = "# A translation.\nmsgid \"\"\nmsgstr \"\"\n\"Content-Type: text/plain; charset=UTF-8\\n\"\n\
                      \"Plural-Forms: nplurals=2; plural=(n != 1);\\n\"\n\n";

fn capital(body: &str, options: &FileOptions) -> String {
    let text = format!("{HEADER}{body}");
    let out = translated(Format::Po, &text, options, capitals);
    out.strip_prefix(HEADER).expect("the header is kept").to_owned()
}

#[test]
fn messages_are_translated_and_all_else_is_kept() {
    let body = "#. A note\n#: src/main.c:12\n#, c-format\nmsgctxt \"menu\"\nmsgid \"open %s\"\nmsgstr \"\"\n\n\
                #| msgid \"old\"\nmsgid \"\"\n\"one \"\n\"two\\n\"\n\"three\"\nmsgstr \"\"\n\n\
                #~ msgid \"gone\"\n#~ msgstr \"weg\"\n";
    let wanted = "#. A note\n#: src/main.c:12\n#, c-format\nmsgctxt \"menu\"\nmsgid \"open %s\"\nmsgstr \"OPEN %s\"\n\n\
                  #| msgid \"old\"\nmsgid \"\"\n\"one \"\n\"two\\n\"\n\"three\"\nmsgstr \"\"\n\"ONE TWO\\n\"\n\"THREE\"\n\n\
                  #~ msgid \"gone\"\n#~ msgstr \"weg\"\n";
    assert_eq!(capital(body, &FileOptions::default()), wanted);
}

#[test]
fn plural_forms_are_filled() {
    let body =
        "msgid \"one file\"\nmsgid_plural \"%d files\"\nmsgstr[0] \"\"\nmsgstr[1] \"\"\nmsgstr[2] \"\"\n";
    let wanted = "msgid \"one file\"\nmsgid_plural \"%d files\"\nmsgstr[0] \"ONE FILE\"\nmsgstr[1] \"%d FILES\"\nmsgstr[2] \"%d FILES\"\n";
    assert_eq!(capital(body, &FileOptions::default()), wanted);
    // A language without plurals.
    let text = HEADER.replace("nplurals=2", "nplurals=1")
        + "msgid \"a file\"\nmsgid_plural \"files\"\nmsgstr[0] \"\"\n";
    let out = translated(Format::Po, &text, &FileOptions::default(), capitals);
    assert!(out.ends_with("msgstr[0] \"FILES\"\n"), "{out}");
}

#[test]
fn only_what_is_empty_is_translated_if_that_is_wanted() {
    let body = "msgid \"one\"\nmsgstr \"eins\"\n\n#, fuzzy\nmsgid \"two\"\nmsgstr \"zwo\"\n\nmsgid \"three\"\nmsgstr \"\"\n";
    let options = FileOptions { only_empty: true, ..FileOptions::default() };
    assert_eq!(capital(body, &options), body.replace("three\"\nmsgstr \"\"", "three\"\nmsgstr \"THREE\""));
    let all = capital(body, &FileOptions::default());
    assert!(
        all.contains("msgstr \"ONE\"") && all.contains("#, fuzzy\nmsgid \"two\"\nmsgstr \"TWO\""),
        "{all}"
    );
}

#[test]
fn what_lost_its_placeholders_is_marked_fuzzy() {
    let body = "#: a\nmsgid \"see %s at %d\"\nmsgstr \"\"\n\n#, c-format\nmsgid \"go %s\"\nmsgstr \"\"\n\nmsgid \"fine\"\nmsgstr \"\"\n";
    let text = format!("{HEADER}{body}");
    let document = FileDocument::open(Format::Po, text.as_bytes(), &FileOptions::default()).unwrap();
    // Translations with more placeholders than the source.
    let translations: Vec<_> = document
        .sentences()
        .map(|sentence| crate::Translation::same(&format!("{} %x", sentence.text.replace("fine", "fein"))))
        .collect();
    let (out, warnings) = document.render_with_warnings(&translations).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(out.contains("#: a\n#, fuzzy\nmsgid \"see %s at %d\"\nmsgstr \"see %s at %d %x\""), "{out}");
    assert!(out.contains("#, fuzzy, c-format\nmsgid \"go %s\""), "{out}");
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings[0].starts_with("line 8: the translation of \"see %s at %d\""), "{warnings:?}");
}

#[test]
fn shortcuts_are_kept() {
    let body = "msgid \"&open file\"\nmsgstr \"\"\n\nmsgid \"_Quit\"\nmsgstr \"\"\n";
    let wanted = "msgid \"&open file\"\nmsgstr \"&OPEN FILE\"\n\nmsgid \"_Quit\"\nmsgstr \"_QUIT\"\n";
    assert_eq!(capital(body, &FileOptions::default()), wanted);
}

#[test]
fn long_strings_go_on_over_lines() {
    let long = "word ".repeat(40);
    let out = capital(&format!("msgid \"{}\"\nmsgstr \"\"\n", long.trim_end()), &FileOptions::default());
    assert!(out.contains("msgstr \"\"\n\"WORD WORD"), "{out}");
    assert!(out.lines().skip(1).all(|line| line.len() <= 80), "{out}");
}

#[test]
fn a_file_that_is_its_own_translation_is_unchanged() {
    let text = format!(
        "\u{feff}{HEADER}#, fuzzy, c-format\nmsgid   \"a \\\"b\\\" \\t%s\"\nmsgstr \"a \"\n  \"\\\"b\\\" \\t%s\"\r\n\r\n#~| msgid \"x\"\n"
    );
    assert_eq!(identity(Format::Po, text.as_bytes()), text.as_bytes());
}

#[test]
fn what_is_wrong_is_named_by_its_line() {
    for (body, message) in [
        ("msgid \"a\n", "line 7 of the po file: a string has no end on its line"),
        ("msgid \"a\"\nmsgid \"b\"\n", "line 8 of the po file: a second `msgid` before `msgstr`"),
        ("msgstr \"a\"\n", "line 7 of the po file: `msgstr` stands here without `msgid` before it"),
        ("\"a\"\n", "line 7 of the po file: a string stands here without `msgid` or `msgstr` before it"),
        ("msgid \"a\\q\"\n", "line 7 of the po file: `\\q` stands for no character"),
        (
            "msgid \"a\"\nmsgstr[1] \"b\"\n",
            "line 8 of the po file: `msgstr[1]` stands where `msgstr[0]` belongs",
        ),
        ("msgid \"a\"\n", "line 7 of the po file: `msgid` has no `msgstr`"),
        ("msgid \"a\"\nmsgfoo \"b\"\n", "line 8 of the po file: `msgfoo` is no keyword of po files"),
    ] {
        let text = format!("{HEADER}{body}");
        let error = FileDocument::open(Format::Po, text.as_bytes(), &FileOptions::default()).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
    let text = HEADER.replace("UTF-8", "KOI8-R") + "msgid \"é\"\nmsgstr \"\"\n";
    let error =
        FileDocument::open(Format::Po, text.as_bytes(), &FileOptions::default()).unwrap_err().to_string();
    assert!(error.contains("KOI8-R"), "{error}");
}
