#!/usr/bin/env python3
"""Differential test of file readers on damaged files: what another reader accepts, we must accept
with the same content, or reject with a message.

    cargo build --release && cargo build --release -p regard-documents --example rewrite
    cargo build --release -p regard-core --features fuzzing --example list_safetensors
    pip install safetensors sentencepiece polib python-docx torch transformers
    python3 tools/differential.py [--count 300] [--seed 1] [--only safetensors,sentencepiece,po,docx,transformers]

safetensors    `safetensors.deserialize`: names, types, shapes and bytes of all tensors.
sentencepiece  The pieces of some lines from `SentencePieceProcessor` and `regard tokenize`.
po             We rewrite the file with each message as its own translation; polib must find
               the same messages, contexts, comments and flags, and nothing left untranslated.
docx           The same with python-docx: the paragraphs of the body, of tables, headers and footers
               are unchanged, or in capitals where we translate into capitals.
transformers   Model folders with damaged settings: the words of `generate` and `regard translate`
               for some sentences (tools/differential_transformers.py).

Files are damaged in their structure (fields, lines, XML elements) and in single bytes,
deterministically for a seed. Prints a line of JSON for each reader; the exit status is 1 if a file
was read differently, or if one of our readers panicked or rejected a file without a message. Such
files are kept in --keep.
"""

import argparse
import collections
import io
import json
import multiprocessing
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

from differential_transformers import Transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
SEEDS = ROOT / "fuzz/corpus"


def damage_bytes(rng, data):
    """Changes, removes, duplicates or truncates a few bytes."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        if not data:
            break
        at, kind = rng.randrange(len(data)), rng.randrange(6)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.choice([0, 1, 0x20, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        elif kind == 2:
            del data[at : at + rng.randrange(1, 9)]
        elif kind == 3:
            data[at:at] = data[at : at + rng.randrange(1, 9)]
        elif kind == 4:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 4)))
        elif rng.random() < 0.3:
            del data[at:]
    return bytes(data)


# ---- safetensors


def a_safetensors(rng, _):
    """A file of random tensors, with its header damaged as text or as JSON, or with its bytes
    damaged."""
    sizes = {"F32": 4, "F16": 2, "BF16": 2, "I8": 1, "U8": 1, "I32": 4, "I64": 8, "F64": 8, "BOOL": 1, "I16": 2, "F8_E4M3": 1}
    header, at = {}, 0
    if rng.random() < 0.5:
        header["__metadata__"] = {"format": "pt", "ü": "é"}
    for n in range(rng.randrange(4)):
        kind = rng.choice(list(sizes))
        shape = [rng.randrange(4) for _ in range(rng.randrange(4))]
        size = sizes[kind]
        for side in shape:
            size *= side
        header[f"t{n}.{rng.choice(['weight', 'ß', 'a b', '', chr(0x1F600)])}"] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    data = bytes(rng.randrange(256) for _ in range(at))
    kind = rng.randrange(8)
    names = [name for name in header if name != "__metadata__"]
    if kind < 4 and names:
        entry = header[rng.choice(names)]
        if kind == 0:
            entry["shape"] = rng.choice([entry["shape"] + [1], entry["shape"][:-1], [0], [2**63], [-1], [1.0], "x", [2**32, 2**32], entry["shape"][::-1]])
        elif kind == 1:
            begin, end = entry["data_offsets"]
            entry["data_offsets"] = rng.choice([[end, begin], [begin + 1, end + 1], [begin, end + 1], [begin], [begin, end, end], [-1, end], [2**64 - 1, 2**64 - 1], [begin, begin]])
        elif kind == 2:
            entry["dtype"] = rng.choice(["F32", "f32", "F64", "C64", "", None, 3, "U16", "U32", "U64", "F8_E5M2"])
        else:
            change = rng.choice(["more", "less", "__metadata__"])
            if change == "more":
                entry["more"] = 1
            elif change == "less":
                entry.pop(rng.choice(list(entry)))
            else:
                header["__metadata__"] = rng.choice([None, 3, {"a": 1}, {}, [], {"a": None}])
    text = json.dumps(header, ensure_ascii=rng.random() < 0.5)
    if kind == 4:
        text = rng.choice([text + " " * 7, " " + text, text + "x", text.replace("}", "},", 1), text + "\0", text[:-1], "[]", "", "{}"])
    elif kind == 5 and names:
        # A duplicate name.
        text = text[:-1] + ", " + json.dumps(rng.choice(names)) + ": " + json.dumps(header[rng.choice(names)]) + "}"
    raw = text.encode()
    length = len(raw) + (rng.choice([1, -1, 8, 2**40, 2**63]) if kind == 6 else 0)
    file = struct.pack("<Q", length % 2**64) + raw + data
    if kind == 7 or rng.random() < 0.1:
        file = damage_bytes(rng, file)
    return file


def safetensors_peer(file):
    from safetensors import deserialize

    return sorted([name, info["dtype"], list(info["shape"]), bytes(info["data"]).hex()] for name, info in deserialize(file))


class Safetensors:
    name, ending, make, peer = "safetensors", "safetensors", staticmethod(a_safetensors), staticmethod(safetensors_peer)

    def __init__(self, options):
        self.program = options.examples / "list_safetensors"

    def ours(self, path):
        run = subprocess.run([self.program], input=f"{path}\n", capture_output=True, text=True, timeout=60)
        if run.returncode != 0:
            raise Broken(run.stderr)
        answer = json.loads(run.stdout)
        if "error" in answer:
            raise Refused(answer["error"])
        return sorted(answer["tensors"])

    def difference(self, theirs, ours, _):
        return None if theirs == ours else f"{theirs} and {ours}"


# ---- sentencepiece


LINES = ["", " ", "the dog sees a cat", "  two  spaces ", "Ünïcödé ﬁ ½ １２", "ab abab <unk> </s> ▁x", "山 👩\u200d👧 e\u0301", "a" * 60, "<sep> the<sep>", "\u00a0\u3000x\u200b"]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def encoded(value):
    out = bytearray()
    while True:
        out.append(value & 127 | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(out)


def fields(message):
    """The fields of a protobuf message: (number, wire type, value), where the value is bytes or a number."""
    found, at = [], 0
    while at < len(message):
        tag, at = varint(message, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = varint(message, at)
        elif wire == 2:
            length, at = varint(message, at)
            value, at = message[at : at + length], at + length
        else:
            length = {1: 8, 5: 4}[wire]
            value, at = message[at : at + length], at + length
        found.append((number, wire, value))
    return found


def message(list_of_fields):
    out = b""
    for number, wire, value in list_of_fields:
        out += encoded(number << 3 | wire)
        out += encoded(value) if wire == 0 else encoded(len(value)) + value if wire == 2 else value
    return out


def a_sentencepiece(rng, _):
    model = rng.choice(sorted((SEEDS / "spm").glob("*.spm"))).read_bytes()
    if rng.random() < 0.25:
        return damage_bytes(rng, model)
    top = fields(model)
    for _ in range(rng.choice([1, 1, 2, 3])):
        at, kind = rng.randrange(len(top)), rng.randrange(7)
        number, wire, value = top[at]
        if kind == 0:
            del top[at]
        elif kind == 1:
            top.insert(rng.randrange(len(top)), top[at])
        elif kind == 2:
            other = rng.randrange(len(top))
            top[at], top[other] = top[other], top[at]
        elif wire == 2 and value:
            # A setting or a part of a piece: text, score, kind.
            if kind == 6:
                settings = [i for i, field in enumerate(top) if field[0] != 1]
                at = rng.choice(settings or [at])
                number, wire, value = top[at]
            try:
                inner = fields(value)
            except (IndexError, KeyError):
                continue
            if not inner:
                continue
            place = rng.randrange(len(inner))
            n, w, v = inner[place]
            if w == 0:
                v = rng.choice([0, 1, 2, 3, 4, 5, 6, 7, v + 1, 2**31 - 1, 2**64 - 1])
            elif w == 5:
                v = rng.choice([struct.pack("<f", x) for x in (0.0, -1.5, -1e30, 1.0, float("inf"), float("-inf"), -0.0)])
            elif w == 2:
                v = rng.choice([b"", v + v, v[:-1], "▁x".encode(), b"a", b"<unk>", b"<0x41>", "é".encode()]) if len(v) < 200 else damage_bytes(rng, v)
            inner[place] = (n, w, v)
            top[at] = (number, wire, message(inner))
        if not top:
            break
    return message(top)


def sentencepiece_peer(file):
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=file)
    return [processor.encode(line, out_type=str) for line in LINES]


class Sentencepiece:
    name, ending, make, peer = "sentencepiece", "spm", staticmethod(a_sentencepiece), staticmethod(sentencepiece_peer)

    def __init__(self, options):
        self.regard = options.regard

    def ours(self, path, theirs=None):
        """The output of `regard tokenize` for the lines, with a vocabulary of all the peer's
        pieces."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for side in ["source.spm", "target.spm"]:
                shutil.copy(path, folder / side)
            pieces = {piece for line in theirs or [] for piece in line} - {"</s>", "<unk>", "<pad>"}
            pieces = ["</s>", "<unk>", *sorted(pieces), "<pad>"]
            (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
            command = [self.regard, "tokenize", "--model", folder, "--json", "--threads", "1"]
            run = subprocess.run(command, input="\n".join(LINES).encode() + b"\n", capture_output=True, timeout=60)
        said = run.stderr.decode(errors="replace")
        if "panicked" in said or run.returncode not in (0, 1):
            raise Broken(said)
        if run.returncode == 1:
            raise Refused(said)
        return [json.loads(line)["pieces"] for line in run.stdout.decode().split("\n")[:-1]]

    def difference(self, theirs, ours, _):
        wrong = [(line, t, o) for line, t, o in zip(LINES, theirs, ours, strict=True) if t != o]
        return f"{wrong[0][0]!r}: {wrong[0][1]} and {wrong[0][2]}" if wrong else None


# ---- po


PO = """# A comment.
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

#. extracted
#: src/a.c:12 src/b.c:7
#, c-format
msgid "Open %s files"
msgstr ""

#| msgid "Close it"
msgctxt "menu"
msgid "Close"
msgstr "Fermer"

#, fuzzy
msgid ""
"A long text that goes on "
"over \\"several\\" lines.\\n"
"\\tAnd a tab \\\\ and a back-slash."
msgstr ""

msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid "Ünïcödé {name} and <b>tags</b>"
msgstr ""

#~ msgid "old"
#~ msgstr "vieux"
"""


def a_po(rng, _):
    if rng.random() < 0.15:
        return damage_bytes(rng, PO.encode())
    lines = PO.split("\n")
    for _ in range(rng.choice([1, 1, 2, 3])):
        at, kind = rng.randrange(len(lines)), rng.randrange(9)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif kind == 2:
            lines[at] = "#~ " + lines[at]
        elif kind == 3:
            lines[at] = rng.choice([" ", "\t", "\ufeff"]) + lines[at]
        elif kind == 4:
            lines[at] = lines[at].replace('"', rng.choice(['""', "", "'", '\\"']), 1)
        elif kind == 5:
            lines[at] = lines[at].replace('"', '"' + rng.choice(["\\n", "\\t", "\\x41", "\\101", "\\q", "\\", "\\r", "é", "\u2028", "\x0c"]), 1)
        elif kind == 6:
            lines.insert(at, rng.choice(["", "#", "#,", "#:", "#|", "#~", "#~|", "# x", "msgid", 'msgstr "x"', 'msgctxt "c"', 'domain "d"', '"more"', 'msgstr[7] "x"', "#, fuzzy, c-format"]))
        elif kind == 7:
            lines[at] = lines[at] + rng.choice([" ", "\t", "\r", ' "x"', " # x"])
        else:
            lines[at] = re.sub(r"^(msg\w+(\[\d\])?) ", rng.choice([r"\1", r"\1  ", r"\1\t", r"\1\n"]), lines[at])
        if not lines:
            break
    end = rng.choice(["\n", "\n", "\n", "\r\n"])
    return end.join(lines).encode()


def po_entries(file):
    """The entries that polib finds: each message with everything that belongs to it."""
    import polib

    with tempfile.NamedTemporaryFile(suffix=".po") as copy:
        copy.write(file)
        copy.flush()
        found = polib.pofile(copy.name, encoding="utf-8", wrapwidth=0)
    fields_kept = ["msgid", "msgid_plural", "msgctxt", "comment", "tcomment", "occurrences", "previous_msgid", "previous_msgctxt", "obsolete"]
    entries = [{field: getattr(entry, field) for field in fields_kept} | {"flags": [f for f in entry.flags if f != "fuzzy"]} for entry in found]
    translations = [(entry.msgstr, entry.msgstr_plural) for entry in found]
    return entries, translations, found.metadata


class Po:
    name, ending, make, peer = "po", "po", staticmethod(a_po), staticmethod(po_entries)

    def __init__(self, options):
        self.program = options.examples / "rewrite"

    def ours(self, path):
        return rewritten(self.program, path)

    def difference(self, theirs, ours, _):
        try:
            after = po_entries(ours)
        except Exception as error:
            return f"polib does not read what we wrote: {error}"
        if theirs[0] != after[0] or theirs[2] != after[2]:
            wrong = [(a, b) for a, b in zip(theirs[0], after[0]) if a != b]
            return f"{len(theirs[0])} and {len(after[0])} messages; {wrong[:1]}"
        for entry, (text, plural) in zip(after[0], after[1]):
            if not entry["obsolete"] and entry["msgid"].strip() and not text and not any(plural.values()):
                return f"{entry['msgid']!r} was not translated"
        return None


# ---- docx


def first_docx():
    import docx

    document = docx.Document()
    document.add_heading("The first heading", 1)
    paragraph = document.add_paragraph("Some text with ")
    paragraph.add_run("bold words").bold = True
    paragraph.add_run(" and a\ttab, a line\nbreak and an end.")
    document.add_paragraph("One item of a list", style="List Bullet")
    table = document.add_table(2, 2)
    for n, cell in enumerate(cell for row in table.rows for cell in row.cells):
        cell.text = f"Cell number {n}"
    document.sections[0].header.paragraphs[0].text = "A header on every page"
    document.sections[0].footer.paragraphs[0].text = "The footer"
    document.add_paragraph("The last words.")
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def a_docx(rng, seed):
    source = zipfile.ZipFile(io.BytesIO(seed))
    parts = {name: source.read(name) for name in source.namelist()}
    if rng.random() < 0.15:
        return damage_bytes(rng, seed)
    for _ in range(rng.choice([1, 1, 2])):
        name = rng.choice(["word/document.xml"] * 6 + [n for n in parts if n.endswith((".xml", ".rels"))])
        text = parts[name].decode()
        tags = list(re.finditer(r"<[^?!][^<>]*>", text))
        if not tags:
            continue
        tag, kind = rng.choice(tags), rng.randrange(8)
        if kind == 0:
            text = text[: tag.start()] + text[tag.end() :]
        elif kind == 1:
            text = text[: tag.end()] + tag.group() + text[tag.end() :]
        elif kind == 2:
            more = ["<!-- x -->", "<?x y?>", "<![CDATA[some data]]>", "&amp;", "&#65;", "&nbsp;", "<w:tab/>", "<w:br/>", "<w:t>more text</w:t>",
                    "<w:r><w:t>a run</w:t></w:r>", "<w:p><w:r><w:t>A whole paragraph.</w:t></w:r></w:p>", "<x:y/>", "\x0b"]  # fmt: skip
            text = text[: tag.end()] + rng.choice(more) + text[tag.end() :]
        elif kind == 3:
            # Duplicate or remove a whole element.
            element = re.escape(tag.group().split()[0].strip("</>"))
            found = re.search(rf"<{element}[ >].*?</{element}>", text, re.S)
            if found:
                text = text[: found.start()] + rng.choice(["", found.group() * 2]) + text[found.end() :]
        elif kind == 4:
            text = text.replace("w:t>", rng.choice(["w:delText>", "w:instrText>", "w:x>"]), rng.choice([1, 2]))
        elif kind == 5:
            text = text.replace('encoding="UTF-8"', rng.choice(['encoding="UTF-16"', 'encoding="latin1"', ""]), 1)
        elif kind == 6:
            text = text.replace(' xml:space="preserve"', "", 1).replace("<w:t>", "<w:t xml:space='default'>", 1)
        else:
            text = damage_bytes(rng, text.encode()).decode(errors="replace")
        parts[name] = text.encode()
    if rng.random() < 0.05:
        parts.pop(rng.choice(list(parts)))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])) as target:
        for name, data in parts.items():
            target.writestr(name, data)
    return out.getvalue()


def docx_texts(file):
    import docx

    document = docx.Document(io.BytesIO(file))
    texts = [paragraph.text for paragraph in document.paragraphs]
    texts += [cell.text for table in document.tables for row in table.rows for cell in row.cells]
    for section in document.sections:
        texts += [paragraph.text for part in (section.header, section.footer) for paragraph in part.paragraphs]
    return texts


class Docx:
    name, ending, make, peer = "docx", "docx", staticmethod(a_docx), staticmethod(docx_texts)

    def __init__(self, options):
        self.program = options.examples / "rewrite"

    def ours(self, path):
        return rewritten(self.program, path), rewritten(self.program, path, "upper")

    def difference(self, theirs, ours, _):
        try:
            same, capitals = (docx_texts(file) for file in ours)
        except Exception as error:
            return f"python-docx does not read what we wrote: {error}"
        words = lambda texts: [" ".join(text.split()) for text in texts]
        if theirs != same:
            return next((f"{a!r} and {b!r}" for a, b in zip(theirs, same) if a != b), f"{len(theirs)} and {len(same)} texts")
        wanted = words(text.upper() for text in theirs)
        return next((f"{a!r} became {b!r}" for a, b in zip(wanted, words(capitals)) if a != b), None)


# ---- all of them


class Refused(Exception):
    """A message instead of content."""


class Broken(Exception):
    """A panic, or an end without a message."""


def rewritten(program, path, *mode):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / path.name
        run = subprocess.run([program, path, out, *mode], capture_output=True, text=True, timeout=60)
        if "panicked" in run.stderr or run.returncode not in (0, 1):
            raise Broken(run.stderr)
        if run.returncode == 1:
            raise Refused(run.stderr)
        return out.read_bytes()


def in_child(peer, file, answers):
    try:
        answers.put((True, peer(file)))
    except BaseException as error:
        answers.put((False, f"{type(error).__name__}: {error}"))


def ask_peer(peer, file):
    """Runs the other reader in a separate process, because some crash on a bad file."""
    answers = multiprocessing.SimpleQueue()
    child = multiprocessing.Process(target=in_child, args=(peer, file, answers))
    child.start()
    child.join(60)
    if child.is_alive():
        child.kill()
        return False, "takes longer than a minute"
    return (False, f"ended with {child.exitcode}") if answers.empty() else answers.get()


def compare(reader, options):
    counts, wrong = collections.Counter(), []
    seed = first_docx() if reader.name == "docx" else None
    for n in range(options.count):
        file = reader.make(random.Random(f"{options.seed} {reader.name} {n}"), seed)
        path = options.folder / f"{reader.name}-{n}.{reader.ending}"
        path.write_bytes(file)
        accepted, theirs = ask_peer(reader.peer, file)
        problem = None
        try:
            ours = reader.ours(path, theirs) if reader.name == "sentencepiece" and accepted else reader.ours(path)
            if accepted:
                problem = reader.difference(theirs, ours, path)
                outcome = "different" if problem else "the same"
            else:
                outcome = "only we accept it"
        except Refused as refusal:
            outcome = "only they accept it" if accepted else "both refuse it"
            if not str(refusal).strip():
                problem = "refused without a message"
            elif accepted and options.show:
                print(f"{path.name}: we refuse it: {str(refusal).strip().splitlines()[-1]}", flush=True)
        except Broken as broken:
            outcome, problem = "broken", f"{broken}"
        counts[outcome] += 1
        if problem:
            wrong.append(path.name)
            print(f"{path.name}: {problem[:600]}", flush=True)
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, options.keep)
        path.unlink()
    print(json.dumps({"reader": reader.name, "files": options.count, **dict(sorted(counts.items()))}), flush=True)
    return not wrong


READERS = {reader.name: reader for reader in (Safetensors, Sentencepiece, Po, Docx, Transformers)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--regard", type=pathlib.Path, default=ROOT / "target/release/regard")
    parser.add_argument("--examples", type=pathlib.Path, default=ROOT / "target/release/examples", help="the folder of the example programs")
    parser.add_argument("--only", default=",".join(READERS), help="comma-separated names")
    parser.add_argument("--count", type=int, default=300, help="files for each reader")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="where files go that were read differently")
    parser.add_argument("--show", action="store_true", help="print what only we refuse")
    options = parser.parse_args()
    options.refused, options.broken = Refused, Broken
    with tempfile.TemporaryDirectory() as folder:
        options.folder = pathlib.Path(folder)
        good = [compare(READERS[name](options), options) for name in options.only.split(",")]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
