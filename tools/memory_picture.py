#!/usr/bin/env python3
"""Draws docs/memory.svg: the resident memory of a training run and of a server over half an hour,
from the stored results reliability/soak-training and reliability/soak-serving.

    python3 tools/memory_picture.py [--check]

With --check nothing is written; the exit status is 1 if the picture is not that of the results.
"""

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs/results"
PICTURE = ROOT / "docs/memory.svg"
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 300, 56, 16, 130, 44
# Readable on white and on black.
SERIES = [
    ("training", "zen5-avx512-vnni-bf16", "reliability/soak-training", "#2f7fd0"),
    ("serving", "zen4-avx512-vnni-bf16", "reliability/soak-serving", "#c0562b"),
]  # fmt: skip
GREY = "#808080"


def drawn(stored):
    most = max(max(stored[label]["memory_mb"]) for label, *_ in SERIES)
    top = -(-most // 100) * 100
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    x = lambda share: round(LEFT + share * (right - LEFT), 1)
    y = lambda value: round(bottom - value / top * (bottom - TOP), 1)
    text = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13" role="img">\n'
    text += "<title>Resident memory over time</title>\n"
    for value in range(0, top + 1, 100):
        text += f'<path d="M{LEFT} {y(value)}H{right}" stroke="{GREY}" stroke-opacity="0.3"/>'
        text += f'<text x="{LEFT - 8}" y="{y(value) + 4}" text-anchor="end" fill="{GREY}">{value}</text>\n'
    minutes = max(stored[label]["seconds"] for label, *_ in SERIES) / 60
    for minute in range(0, int(minutes) + 1, 5):
        text += f'<text x="{x(minute / minutes)}" y="{bottom + 18}" text-anchor="middle" fill="{GREY}">{minute}</text>\n'
    text += f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 8}" text-anchor="middle" fill="{GREY}">minutes</text>\n'
    text += f'<text x="14" y="{(TOP + bottom) / 2}" text-anchor="middle" fill="{GREY}" transform="rotate(-90 14 {(TOP + bottom) / 2})">MB</text>\n'
    for label, _, _, colour in SERIES:
        values, begin, end = stored[label]["memory_mb"], stored[label].get("first_second", 0), stored[label]["seconds"]
        at = lambda i: (begin + (end - begin) * i / (len(values) - 1)) / 60 / minutes
        points = " ".join(f"{x(at(i))},{y(value)}" for i, value in enumerate(values))
        text += f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        text += f'<text x="{right + 8}" y="{y(values[-1]) + 4}" fill="{colour}">{label}, {values[-1]} MB</text>\n'
    return text + "</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    stored = {}
    for label, machine, name, _ in SERIES:
        lines = map(json.loads, (RESULTS / f"{machine}.jsonl").read_text().splitlines())
        stored[label] = [line for line in lines if line.get("id") == name][-1]
    picture = drawn(stored)
    if not arguments.check:
        PICTURE.write_text(picture)
    elif PICTURE.read_text() != picture:
        sys.exit("docs/memory.svg is not the picture of the stored results: python3 tools/memory_picture.py")


if __name__ == "__main__":
    main()
