#!/usr/bin/env python3
"""Writes the seeds of five fuzz targets: for `text_files`, a file of each format after the letter
that names it; for `model_index`, a list of each kind and a model card; for `pairs`, parallel text
in each format; for `glossary`, terms and a text separated by a zero byte; and for `keys`, a file of
API keys.

    python3 tools/fuzz_seeds.py
"""
import pathlib

CORPUS = pathlib.Path(__file__).resolve().parent.parent / "fuzz" / "corpus"

INDEXES = {
    "argos": b'[{"type": "translate", "from_code": "en", "to_code": "de", "package_version": "1.0", "links": ["https://a.example/x.argosmodel"]}]',
    "records": b'{"data": [{"name": "model.bin", "fileType": "model", "fromLang": "en", "toLang": "de", "version": "1.0", "attachment": {"location": "a/b.zst", "hash": "ab", "size": 3}}, {"name": "vocab.spm", "fileType": "vocab", "sourceLanguage": "en", "targetLanguage": "de", "version": "1.0", "attachment": {"location": "c"}}]}',
    "registry": b'{"baseUrl": "https://a.example", "models": {"en-de": [{"sourceLanguage": "en", "targetLanguage": "de", "releaseStatus": "Release", "files": {"model": {"path": "x/model.bin.gz", "uncompressedHash": "ab"}, "vocab": {"path": "v.spm"}}}]}}',
    "card": b"---\nlicense:\n- mit\n- 'cc-by-nc-4.0'\nlicense_name: x\n---\n# x\n",
}

SEEDS = {
    "plain": b"TOne dog. Two cats!\r\n\r\n\tThree 12 birds\n",
    "html": b"h<!doctype html><title>A &amp; b</title><p title='one'>Two <b>big</b> cats&nbsp;run.<img alt=dog><br>Now</p>",
    "markdown": b"m---\ntitle: x\n---\n# One *two*\n\n- a [b](c \"d\") `e`\n- [ ] f\\*\n\n> g\n> h  \n> i\n\n| j | k |\n|---|---|\n| l | m\\| |\n\n<div>\nn <kbd>o</kbd>\n</div>\n\n[p]\n\n[p]: q\n",
    "srt": b"s1\n00:00:01,000 --> 00:00:02,000\n{\\an8}<i>One dog\nof two</i>\n\n2\n00:00:02,100 --> 00:00:03,000\nruns on.\n\n3\n00:00:04,000 --> 00:00:05,000\n- Where?\n- Here\n",
    "vtt": b"vWEBVTT\n\nNOTE no\n\nid\n00:01.000 --> 00:02.000 align:start\n<v Ann>fish &amp; <c.x>chips</c>\n\n00:00:03.000 --> 00:00:04.000\nand peas\n",
    "po": b"pmsgid \"\"\nmsgstr \"\"\n\"Content-Type: text/plain; charset=UTF-8\\n\"\n\"Plural-Forms: nplurals=3; plural=n;\\n\"\n\n#, c-format\nmsgctxt \"c\"\nmsgid \"&open %s\\n\"\n\"now\"\nmsgstr \"\"\n\nmsgid \"one\"\nmsgid_plural \"%d files\"\nmsgstr[0] \"\"\nmsgstr[1] \"a\"\n\n#~ msgid \"x\"\n#~ msgstr \"y\"\n",
    "xliff1": b"x<?xml version=\"1.0\"?><xliff version=\"1.2\"><file source-language=\"en\"><body><trans-unit id=\"1\">\n <source>a <g id=\"1\">big</g> <x id=\"2\"/> <bpt id=\"3\">b</bpt>c<ept id=\"3\">d</ept></source>\n</trans-unit><trans-unit id=\"2\" translate=\"no\"><source>e</source></trans-unit></body></file></xliff>",
    "xliff2": b"x<xliff version=\"2.0\" srcLang=\"en\"><file id=\"f\"><unit id=\"u\"><segment state=\"initial\"><source>a <pc id=\"1\">b</pc> <ph id=\"2\" disp=\"%s\"/><sc id=\"3\"/>c<ec startRef=\"3\"/></source><target/></segment></unit></file></xliff>",
    "tmx": b"t<tmx version=\"1.4\"><header srclang=\"en\"/><body><tu>\n <tuv xml:lang=\"en\"><seg>one <hi>dog</hi> &amp; <ph>x</ph></seg></tuv></tu><tu><tuv xml:lang=\"en\"><seg>two</seg></tuv><tuv xml:lang=\"de\"><seg>zwei</seg></tuv></tu></body></tmx>",
    "json": b"j{ \"a\": \"one \\\"two\\\" \\u00e9\\n{n, plural, one {# cat} other {# cats}}\", \"@b\": [1, \"c\"], \"d\": {\"e\": \"hi {{name}} <b>you</b>\"} }\n",
    "yaml": b"yen:\n  a: one # c\n  b: 'it''s'\n  c: \"d \\u00e9\"\n  e: |\n    two\n    three\n  f: >-\n    four\n    five\n  g: [six, {h: seven}]\n  i: &x eight\n  j: *x\n",
    "properties": b"r# c\na = one\nb: caf\\u00e9 \\\n  two\nc it''s {0}\n",
    "latin1": b"ra=caf\xe9 one\n",
    "android": b"a<resources><string name=\"a\">don\\'t <b>say</b> %1$s\\n&amp; go</string><plurals name=\"b\"><item quantity=\"one\">one</item></plurals><string name=\"c\" translatable=\"false\">d</string><string name=\"e\"><![CDATA[<p>f</p>]]></string><string name=\"g\">hi <xliff:g id=\"h\">%s</xliff:g></string></resources>",
    "ios": b"i/* a */\n\"b\" = \"one %@\\n\";\n// c\nd = \"say \\\"e\\\"\";\n",
    "ios16": b"i" + "\ufeff\"a\" = \"one é\";\n".encode("utf-16-le"),
}

PAIRS = {
    "tsv": b"one dog\tein Hund\r\nno tab\na\tb\tc\n",
    "jsonl": b'{"source": "one", "target": "eins"}\n{"translation": {"en": "a\\nb", "de": "\\u00e9"}}\n{"src": 1}\n\n',
    "po": b'msgid ""\nmsgstr ""\n"Language: de\\n"\n\n#, fuzzy\nmsgctxt "c"\nmsgid "a \\"b\\""\n"\\tc"\nmsgstr "d"\n\nmsgid "%d e"\nmsgid_plural "%d es"\nmsgstr[0] "%d f"\nmsgstr[1] "%d fs"\n#~ msgid "g"\n',
}

GLOSSARIES = {
    "terms": "\ufeff# ours\nfile\tDatei\nopen file\toffene Datei\r\nFirefox\t=\nÉcole\tSchule\n\0The open file of Firefox, a file; files. École".encode(),
    "wrong": b"file Datei\n",
}

KEYS = {
    "hashed": b"# ours\nsha256:" + b"0a" * 32 + b" name=office created=2026-11-17 requests-per-minute=60 char-limit=5000\n\nin plain text\n",
    "wrong": b"sha256:12 name=a\n",
}


def main():
    all_seeds = {"text_files": SEEDS, "model_index": INDEXES, "pairs": PAIRS, "glossary": GLOSSARIES, "keys": KEYS}
    for target, seeds in all_seeds.items():
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, seed in seeds.items():
            (folder / name).write_bytes(seed)


if __name__ == "__main__":
    main()
