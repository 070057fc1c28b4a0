#!/usr/bin/env python3
"""Creates documents with LibreOffice and with python-docx, openpyxl and python-pptx, rewrites them
with every sentence as its own translation (and in capitals), and checks that nothing else has
changed:

- LibreOffice opens the result, and its text is that of the original (ignoring case for the copy
  in capitals),
- every part of the package without text is byte-identical,
- the pages that LibreOffice renders from the copy are pixel-identical to those of the original
  (`--pictures`; needs pdftoppm).

    cargo build -p regard-documents --example rewrite
    python3 tools/documents_roundtrip.py --out /tmp/roundtrip --pictures
    python3 tools/documents_roundtrip.py --out /tmp/roundtrip report.docx slides.odp      these files instead

Needs LibreOffice (Debian: libreoffice-writer-nogui, -calc-nogui, -impress-nogui; poppler-utils).
Missing Python packages are reported and skipped."""

import argparse
import base64
import hashlib
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent


def red_square(size=8):
    """A picture, as PNG."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\xc0\x20\x20" * size) * size
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


PICTURE = red_square()

PAGE = """<!DOCTYPE html><html><head><meta charset="utf-8"><title>A report</title></head><body>
<h1>The report of the <i>spring</i> meeting</h1>
<p>We met on 3 May 2024. The <b>new</b> garden is <u>nearly</u> finished, but the <a href="https://garden.example/plan">plan</a> has changed.
Water is H<sub>2</sub>O, and the field measures 20 m<sup>2</sup>. Dr. Smith paid $1,000.50 for it.</p>
<p>First line<br>Second line with <span style="color:#c00000;font-size:18pt">large red words</span> in it.</p>
<ul><li>One <b><i>bold and slanted</i></b> point</li><li>Another point: see https://garden.example</li></ul>
<ol><li>First step</li><li>Second step</li></ol>
<table border="1"><tr><th>Name</th><th>Price</th></tr><tr><td>Apple tree</td><td>12.50</td></tr><tr><td>Pear <b>tree</b></td><td>14.00</td></tr></table>
<p align="center">The end of the report.</p>
</body></html>"""

ROWS = """Name,Number,Remark
Apple tree,12,"It is small, but healthy."
Pear tree,3,Needs water
Total,=SUM(B2:B3),"=CONCATENATE(""All "";""trees"")"
"""


def soffice(*arguments, out):
    """Runs LibreOffice without a window, with its own profile."""
    profile = (out / "profile").resolve().as_uri()
    command = ["soffice", f"-env:UserInstallation={profile}", "--headless", "--norestore", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode != 0 or "Error" in done.stderr:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def convert(files, kind, folder, out, filter_name=None):
    folder.mkdir(parents=True, exist_ok=True)
    soffice("--convert-to", f"{kind}:{filter_name}" if filter_name else kind, "--outdir", folder, *files, out=out)


def flat_text():
    """A Writer document in flat XML with features that HTML cannot express."""
    ns = " ".join(
        f'xmlns:{p}="urn:oasis:names:tc:opendocument:xmlns:{u}:1.0"'
        for p, u in [("office", "office"), ("style", "style"), ("text", "text"), ("table", "table"), ("draw", "drawing")]
    )
    ns += ' xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0" xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"'
    ns += ' xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/"'
    image = base64.b64encode(PICTURE).decode()
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<office:document {ns} office:version="1.3" office:mimetype="application/vnd.oasis.opendocument.text">
<office:automatic-styles>
<style:style style:name="B" style:family="text"><style:text-properties fo:font-weight="bold"/></style:style>
<style:style style:name="U" style:family="text"><style:text-properties style:text-underline-style="solid"/></style:style>
<style:page-layout style:name="L"><style:page-layout-properties fo:page-width="15cm" fo:page-height="12cm" fo:margin="1.5cm"/>
<style:header-style/><style:footer-style/></style:page-layout>
</office:automatic-styles>
<office:master-styles><style:master-page style:name="Standard" style:page-layout-name="L">
<style:header><text:p>Header of the book</text:p></style:header>
<style:footer><text:p>Page <text:page-number text:select-page="current">1</text:page-number> of the book</text:p></style:footer>
</style:master-page></office:master-styles>
<office:body><office:text>
<text:h text:outline-level="1">A chapter about trees</text:h>
<text:p>The apple tree<text:note text:id="f1" text:note-class="footnote"><text:note-citation>1</text:note-citation><text:note-body><text:p text:style-name="Footnote">Malus, a kind of <text:span text:style-name="B">rose</text:span>.</text:p></text:note-body></text:note> stands <text:span text:style-name="B">in the middle </text:span>of the <text:bookmark-start text:name="g"/>garden<text:bookmark-end text:name="g"/>. It is <text:span text:style-name="U">very </text:span><text:span text:style-name="B"><text:span text:style-name="U">old</text:span></text:span>.<office:annotation><dc:creator>Ann</dc:creator><text:p>Is that so?</text:p></office:annotation> Nobody knows its age.</text:p>
<text:p>Name:<text:span text:style-name="U"><text:tab/></text:span><text:tab/>Place<text:line-break/>and two  spaces, <text:s text:c="3"/>then more.</text:p>
<text:p>A picture <draw:frame text:anchor-type="as-char" svg:width="1cm" svg:height="1cm"><draw:image><office:binary-data>{image}</office:binary-data></draw:image></draw:frame> in the line, and a box:
<draw:frame text:anchor-type="paragraph" svg:x="8cm" svg:y="1cm" svg:width="4cm" svg:height="2cm"><draw:text-box><text:p>Text in a <text:span text:style-name="B">box</text:span>.</text:p></draw:text-box></draw:frame></text:p>
<text:p>See <text:a xlink:type="simple" xlink:href="https://trees.example/">this <text:span text:style-name="B">old</text:span> page</text:a> of <text:date>3 May 2024</text:date>, <text:bookmark-ref text:reference-format="text" text:ref-name="g">garden</text:bookmark-ref>.</text:p>
</office:text></office:body></office:document>"""


def make_with_libreoffice(folder, out):
    sources = folder / "sources"
    sources.mkdir(parents=True, exist_ok=True)
    (sources / "page.html").write_text(PAGE)
    (sources / "rows.csv").write_text(ROWS)
    (sources / "rich.fodt").write_text(flat_text())
    convert([sources / "page.html"], "odt", folder, out, "writer8")
    convert([sources / "page.html"], "docx", folder, out, "Office Open XML Text")
    for kind in ["odt", "docx", "epub"]:
        convert([sources / "rich.fodt"], kind, folder, out)
    for kind in ["ods", "xlsx"]:
        convert([sources / "rows.csv"], kind, folder, out)


def make_with_python(folder, out):
    try:
        import docx
        from docx.enum.text import WD_BREAK
    except ImportError:
        print("python-docx is not installed: its document is left out")
    else:
        document = docx.Document()
        document.add_heading("Minutes of the meeting", 1)
        p = document.add_paragraph("The ")
        p.add_run("chair").bold = True
        p.add_run("man opened the ")
        p.add_run("meeting ").italic = True
        r = p.add_run("at noon.")
        r.underline = True
        p.add_run(" Nobody was late.")
        p = document.add_paragraph("Left\tright")
        p.add_run().add_break(WD_BREAK.LINE)
        p.add_run("a new line")
        p.add_run("2").font.superscript = True
        document.add_paragraph("A point with H", style="List Bullet").add_run("2").font.subscript = True
        (out / "picture.png").write_bytes(PICTURE)
        document.add_picture(str(out / "picture.png"), width=docx.shared.Cm(1))
        table = document.add_table(2, 2, style="Table Grid")
        for cell, text in zip((c for row in table.rows for c in row.cells), ["Name", "Price", "Apple tree", "12.50"]):
            cell.text = text
        document.sections[0].header.paragraphs[0].text = "Header of the minutes"
        document.sections[0].footer.paragraphs[0].text = "Footer of the minutes"
        document.save(folder / "minutes.docx")
    try:
        import openpyxl
        from openpyxl.comments import Comment
        from openpyxl.styles import Font
        from openpyxl.worksheet.table import Table
    except ImportError:
        print("openpyxl is not installed: its workbook is left out")
    else:
        book = openpyxl.Workbook()
        sheet = book.active
        for row in [["Fruit", "Number"], ["Red apples", 3], ["Green pears\nfrom the garden", 4], ["All of them", "=SUM(B2:B3)"]]:
            sheet.append(row)
        sheet["A1"].font = Font(bold=True)
        sheet["A2"].comment = Comment("They are not ripe.", "Ann")
        sheet.add_table(Table(displayName="Fruits", ref="A1:B4"))
        book.save(folder / "fruit.xlsx")
    try:
        import pptx
        from pptx.util import Cm
    except ImportError:
        print("python-pptx is not installed: its presentation is left out")
    else:
        slides = pptx.Presentation()
        slide = slides.slides.add_slide(slides.slide_layouts[1])
        slide.shapes.title.text = "A garden for everybody"
        frame = slide.placeholders[1].text_frame
        frame.text = "The first point"
        p = frame.add_paragraph()
        p.level = 1
        p.text = "It has "
        r = p.add_run()
        r.text = "bold"
        r.font.bold = True
        p.add_run().text = " words."
        p.add_line_break()
        p.add_run().text = "And a second line."
        table = slide.shapes.add_table(2, 2, Cm(2), Cm(12), Cm(12), Cm(2)).table
        for (row, column), text in {(0, 0): "Name", (0, 1): "Price", (1, 0): "Apple tree", (1, 1): "12.50"}.items():
            table.cell(row, column).text = text
        slide.notes_slide.notes_text_frame.text = "Say hello first."
        slides.save(folder / "garden.pptx")
        convert([folder / "garden.pptx"], "odp", folder, out)


def check_parts(before, after):
    """The parts that differ."""
    a, b = zipfile.ZipFile(before), zipfile.ZipFile(after)
    if a.namelist() != b.namelist():
        raise SystemExit(f"{after}: its parts are not those of {before}")
    if b.testzip():
        raise SystemExit(f"{after}: {b.testzip()} is damaged")
    return [name for name in a.namelist() if a.read(name) != b.read(name)]


def texts(files, folder, out):
    """The text that LibreOffice reads in each file."""
    found = {}
    for file in files:
        kind, name = ("csv", None) if file.suffix in (".ods", ".xlsx") else ("pdf", None)
        convert([file], kind, folder, out, name)
        target = folder / f"{file.stem}.{kind}"
        if kind == "pdf":
            text = subprocess.run(["pdftotext", "-layout", target, "-"], capture_output=True, text=True, check=True).stdout
        else:
            text = target.read_text(errors="replace")
        found[file.name] = text
        target.rename(folder / f"{file.name}.{kind}")
    return found


def pictures(folder, file):
    """The pages of a file, as digests of their pictures."""
    pdf = folder / f"{file.name}.pdf"
    if not pdf.exists():
        return []
    subprocess.run(["pdftoppm", "-r", "60", "-png", pdf, folder / file.name], check=True)
    return [hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.glob(f"{file.name}-*.png"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="documents; without them, some are made")
    parser.add_argument("--out", type=Path, required=True, help="folder for everything that is made")
    parser.add_argument("--rewrite", type=Path, default=REPO / "target/debug/examples/rewrite")
    parser.add_argument("--pictures", action="store_true", help="compare the pages as pictures, too")
    options = parser.parse_args()
    out, made = options.out, options.out / "before"
    made.mkdir(parents=True, exist_ok=True)
    files = options.files
    if not files:
        make_with_libreoffice(made, out)
        make_with_python(made, out)
        files = sorted(p for p in made.iterdir() if p.suffix[1:] in ("docx", "odt", "pptx", "odp", "xlsx", "ods", "epub"))
    failures = 0
    copies, capitals = out / "same", out / "upper"
    for folder, arguments in [(copies, []), (capitals, ["upper"])]:
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            subprocess.run([options.rewrite, file, folder / file.name, *arguments], check=True)
    drawn = [file for file in files if file.suffix != ".epub"]
    before = texts(drawn, out / "before-drawn", out)
    same = texts([copies / file.name for file in drawn], out / "same-drawn", out)
    upper = texts([capitals / file.name for file in drawn], out / "upper-drawn", out)
    for file in files:
        changed = check_parts(file, copies / file.name)
        problems = []
        if file in drawn:
            if before[file.name] != same[file.name]:
                problems.append("its text has changed")
            letters = lambda text: sorted(c for c in text.lower() if c.isalnum())
            if letters(before[file.name]) != letters(upper[file.name]):
                problems.append("its text in capitals is another")
            if options.pictures:
                a = pictures(out / "before-drawn", file)
                b = pictures(out / "same-drawn", file)
                pictures(out / "upper-drawn", file)
                if a != b:
                    problems.append(f"its pages look different ({len(a)} and {len(b)})")
        failures += bool(problems)
        print(f"{file.name:20} {'; '.join(problems) or 'unchanged'}; rewritten parts: {', '.join(changed) or 'none'}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
