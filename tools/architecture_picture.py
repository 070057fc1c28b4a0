#!/usr/bin/env python3
"""Draws docs/architecture.svg and docs/architecture-dark.svg: the crates, and the path of a
sentence through them in training and in translation.

    python3 tools/architecture_picture.py            # writes both
    python3 tools/architecture_picture.py --check    # status 1 if they are not what it would write

Needs only Python.
"""
import pathlib, sys
from html import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH, HEIGHT = 960, 720
THEMES = {
    "architecture.svg": dict(page="#ffffff", ink="#1f2328", soft="#59636e", line="#8c959f", user="#f6f8fa", crate="#ddf4ff", edge="#54aeff",
                             train="#fff1e5", train_edge="#e16f24", find="#dafbe1", find_edge="#2da44e", both="#fbefff", both_edge="#8250df"),
    "architecture-dark.svg": dict(page="#0d1117", ink="#e6edf3", soft="#9198a1", line="#656c76", user="#151b23", crate="#121d2f", edge="#388bfd",
                                  train="#2b1a0d", train_edge="#db6d28", find="#0f2417", find_edge="#2ea043", both="#211830", both_edge="#a371f7"),
}


class Picture:
    def __init__(self, colours):
        self.colours, self.parts = colours, []

    def text(self, x, y, words, size=13, weight="400", colour="ink", anchor="middle"):
        self.parts.append(f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{self.colours[colour]}" text-anchor="{anchor}">{escape(words)}</text>')

    def box(self, x, y, width, height, name, note="", fill="crate", edge="edge"):
        """Draws a box with a name and a smaller note below it; returns its position."""
        c = self.colours
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{c[fill]}" stroke="{c[edge]}"/>')
        lines = [line for line in note.split("\n") if line]
        top = y + height / 2 + 5 - 7.5 * len(lines)
        self.text(x + width / 2, top, name, 13, "600")
        for n, line in enumerate(lines):
            self.text(x + width / 2, top + 16 + 14 * n, line, 11, colour="soft")
        return x, y, width, height

    def arrow(self, points, colour="line"):
        path = " ".join(f"{'M' if n == 0 else 'L'}{x} {y}" for n, (x, y) in enumerate(points))
        self.parts.append(f'<path d="{path}" fill="none" stroke="{self.colours[colour]}" stroke-width="1.5" marker-end="url(#{colour})"/>')

    def svg(self):
        heads = "".join(
            f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{self.colours[name]}"/></marker>'
            for name in ("line", "train_edge", "find_edge"))
        title = "The crates of Regard, and how a sentence goes through them in training and in translation"
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
                f'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"><title>{title}</title><defs>{heads}</defs>'
                f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{self.colours["page"]}"/>\n' + "\n".join(self.parts) + "\n</svg>\n")


def crates(p):
    p.text(20, 28, "Crates: each uses only crates below it", 15, "600", anchor="start")
    p.box(20, 42, 920, 34, "command line   ·   Python package   ·   Rust programs", fill="user", edge="line")
    p.box(20, 88, 920, 38, "regard", "the facade and the commands", fill="crate")
    p.box(20, 140, 290, 52, "regard-serve", "HTTP, batches over clients, the page")
    p.box(325, 140, 615, 52, "regard-studies", "comparisons that are measured")
    p.box(20, 206, 290, 52, "regard-documents", "files, sentences, glossary, guard")
    p.box(325, 206, 615, 52, "regard-train", "corpus, tape, optimizer, runs, ranks of an MPI job")
    p.box(20, 272, 595, 52, "regard-core", "text → batch → model → decode; model folders (formats, store): all that a translator needs")
    p.box(630, 272, 310, 52, "regard-metrics · -plot · -sample-corpus", "BLEU and chrF, charts, a corpus of a grammar")
    p.box(20, 338, 920, 44, "regard-kernels  ·  regard-random", "vector code for every instruction set, all that is unsafe; random numbers by counter")


def flow(p):
    c = p.colours
    p.parts.append(f'<text x="20" y="424" font-size="15" font-weight="600" fill="{c["ink"]}">A sentence <tspan fill="{c["train_edge"]}">in training</tspan> '
                   f'<tspan fill="{c["find_edge"]}">and in translation</tspan></text>')
    top, bottom, width, height = 440, 640, 138, 56
    train = [("parallel text", "corpus: a cache of ids"), ("batches", "packed, never padded"), None, ("loss", "cross-entropy,\nlabel smoothing"), ("backward", "the tape, gradients of\nall replicas added"),
             ("Adam → weights", "checkpoints, validation")]
    find = [("text or document", "documents: sentences"), ("ids", "text: subwords"), None, ("beam search", "decode: KV cache,\nlogits processors"), ("ids → text", "joined again"),
            ("restored text", "tags, numbers, terms")]
    xs = [20 + 156 * n for n in range(6)]
    for y, lane, fill, edge in ((top, train, "train", "train_edge"), (bottom, find, "find", "find_edge")):
        for x, entry in zip(xs, lane):
            if entry:
                p.box(x, y, width, height, *entry, fill=fill, edge=edge)
        middle = y + height / 2
        for n in (0, 3, 4):
            p.arrow([(xs[n] + width, middle), (xs[n + 1] - 2, middle)], edge)
        p.arrow([(xs[1] + width, middle), (xs[2] + width / 2, middle), (xs[2] + width / 2, 510 if y == top else 626)], edge)
        p.arrow([(xs[2] + width, 540 if y == top else 600), (xs[3] + width / 2, 540 if y == top else 600), (xs[3] + width / 2, y + height + 2 if y == top else y - 2)], edge)
    p.box(xs[2], 512, width, 112, "model", "the layers, once:\nembedding, attention,\nfeed-forward, norm", fill="both", edge="both_edge")
    p.text(xs[2] - 12, 560, "on the tape (train::taped)", 11, colour="train_edge", anchor="end")
    p.text(xs[2] - 12, 584, "with caches (decode::executor)", 11, colour="find_edge", anchor="end")
    # Translation uses the trained weights.
    p.arrow([(xs[5] + width / 2, top + height), (xs[5] + width / 2, 570), (xs[2] + width + 4, 570)], "line")
    p.text(xs[4] + 40, 563, "weights: a model folder", 11, colour="soft")


def draw(colours):
    p = Picture(colours)
    crates(p)
    flow(p)
    return p.svg()


def main():
    for name, colours in THEMES.items():
        path, made = ROOT / "docs" / name, draw(colours)
        if "--check" in sys.argv[1:]:
            if not path.exists() or path.read_text(encoding="utf-8") != made:
                sys.exit(f"docs/{name} is not what tools/architecture_picture.py draws")
        else:
            path.write_text(made, encoding="utf-8")


main()
