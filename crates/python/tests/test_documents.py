"""Documents and files of lines become those of the command."""

import json
import zipfile

import pytest
import regard

FILES = {
    "page.html": "<!doctype html><title>The dog runs.</title><p>The <b>small</b> cat sleeps.<br>The king reads 12 books.</p>",
    "notes.md": "# The cat sleeps.\n\n- The dog runs. `code` stays\n- [The king reads.](https://example.org)\n",
    "film.srt": "1\n00:00:01,000 --> 00:00:02,000\nThe cat sleeps.\n\n2\n00:00:02,100 --> 00:00:03,000\n<i>The dog runs.</i>\n",
    "messages.po": 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "The cat sleeps."\nmsgstr ""\n\n'
    'msgid "The dog runs."\nmsgstr "déjà"\n\n#, c-format\nmsgid "The king %s reads."\nmsgstr ""\n',
    "strings.json": json.dumps({"a": "The cat sleeps.", "b": {"c": "The dog {name} runs."}, "d": 3}),
    "lines.txt": "The cat sleeps. The dog runs.\n\nThe king reads.\r\nlast line without an end",
    "lines": "The cat sleeps.\nThe dog runs.\n",
}


@pytest.mark.parametrize("name", FILES)
def test_a_document_is_that_of_the_command(translator, model, command, folder, name):
    place = folder / "documents"
    place.mkdir(exist_ok=True)
    source = place / name
    source.write_bytes(FILES[name].encode())
    command("translate", "--model", model, source, "--out", place / f"command.{name}", "--beam", 2)
    report = translator.translate_document(source, place / f"package.{name}", beam=2)
    translated = (place / f"package.{name}").read_bytes()
    assert translated == (place / f"command.{name}").read_bytes()
    assert translated != source.read_bytes() and "Le " in translated.decode()
    assert report.sentences >= 2 and 0 < report.confidence <= 1 and report.degenerate <= report.retried
    assert str(report.sentences) in repr(report)


def test_a_package_of_xml(translator, model, command, folder):
    source = folder / "letter.docx"
    body = '<w:p><w:r><w:t>The cat sleeps.</w:t></w:r></w:p><w:p><w:r><w:t>The dog runs.</w:t></w:r></w:p>'
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override '
        'PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
        "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/document.xml": '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
        + body + "</w:body></w:document>",
    }  # fmt: skip
    with zipfile.ZipFile(source, "w") as package:
        for name, text in parts.items():
            package.writestr(name, text)
    assert translator.translate_document(source, folder / "letter.fr.docx").sentences == 2
    command("translate", "--model", model, source, "--out", folder / "letter.command.docx")
    for name in parts:
        ours, theirs = (zipfile.ZipFile(folder / f"letter.{which}.docx").read(name) for which in ("fr", "command"))
        assert ours == theirs
    assert "Le chat dort." in zipfile.ZipFile(folder / "letter.fr.docx").read("word/document.xml").decode()


def test_keywords_of_documents(translator, folder):
    source = folder / "messages.po"
    source.write_text(FILES["messages.po"], encoding="utf-8")
    translator.translate_document(source, folder / "out.po", only_empty=True)
    assert 'msgstr "déjà"' in (folder / "out.po").read_text(encoding="utf-8")
    plain = folder / "page.other"
    plain.write_text("<p>The cat sleeps.</p>", encoding="utf-8")
    translator.translate_document(plain, folder / "out.other", format="html")
    assert (folder / "out.other").read_text(encoding="utf-8") == "<p>Le chat dort.</p>"


def test_what_is_wrong_with_a_document_is_said(translator, folder):
    with pytest.raises(FileNotFoundError, match="no-such.html"):
        translator.translate_document(folder / "no-such.html", folder / "x.html")
    broken = folder / "broken.docx"
    broken.write_bytes(b"PK no package")
    with pytest.raises(regard.FormatError, match="broken.docx: "):
        translator.translate_document(broken, folder / "x.docx")
    assert not (folder / "x.docx").exists()
    source = folder / "same.txt"
    source.write_text("The cat sleeps.\n", encoding="utf-8")
    with pytest.raises(regard.FormatError, match="is the file that is translated"):
        translator.translate_document(source, source)
    with pytest.raises(regard.ConfigError, match="format"):
        translator.translate_document(source, folder / "x.txt", format="paper")
    with pytest.raises(TypeError, match="did you mean 'only_empty'"):
        translator.translate_document(source, folder / "x.txt", only_emty=True)
