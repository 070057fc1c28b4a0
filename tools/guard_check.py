#!/usr/bin/env python3
"""Measures how often a model's translations of awkward lines are degenerate, and how often they
still are after the second attempt.

    python3 tools/guard_check.py target/release/regard enpt flores-devtest.en-pt.en [--append FILE]

The lines are derived from a text: a thousand of its words by themselves, 800 lines in capitals, 300
numbers, 400 rows of a table of contents. The same text gives the same lines.
"""
import argparse, collections, json, pathlib, random, re, subprocess, tempfile

from alternate import append, append_option, regard_version


def sets(lines):
    """The names and lines of the sets."""
    chance = random.Random(1)
    words = sorted(set(re.findall(r"[^\W\d_]{3,}", " ".join(lines))))
    chance.shuffle(words)
    yield "single words", words[:1000]
    yield "text in capitals", [line.upper() for line in lines[:800]]
    numbers = [lambda: str(chance.randint(0, 10**9)), lambda: f"{chance.random() * 1000:.2f} %",
               lambda: f"{chance.randint(1, 31)}.{chance.randint(1, 12)}.{chance.randint(1900, 2030)}",
               lambda: f"1,{chance.randint(100, 999)},{chance.randint(100, 999)}.00 USD"]
    yield "numbers", [chance.choice(numbers)() for _ in range(300)]
    contents = []
    for i, line in enumerate(lines[:400]):
        title = " ".join(line.split()[:chance.randint(2, 6)]).rstrip(",.;")
        leader = chance.choice(["." * chance.randint(10, 80), ". " * chance.randint(5, 40)])
        contents.append(f"{i // 20 + 1}.{i % 20 + 1} {title} {leader} {chance.randint(1, 300)}")
    yield "tables of contents", contents


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("regard", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path)
    append_option(parser)
    options = parser.parse_args()
    rows = []
    for name, lines in sets(options.text.read_text(encoding="utf-8").splitlines()):
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            done = subprocess.run([options.regard, "translate", "--model", options.model, "--json", file.name],
                                  capture_output=True, text=True, check=True)
        guarded = [found for line in done.stdout.splitlines() for found in json.loads(line).get("guarded", [])]
        left = sum(found["left"] is not None for found in guarded)
        kinds = collections.Counter(found["fault"] for found in guarded).most_common(1)
        rows.append([name, len(lines), len(guarded), left, f"{kinds[0][1]} {kinds[0][0]}" if kinds else ""])
        print(rows[-1])
    row = {"id": "text/guard", "columns": ["", "lines", "tried again", "still degenerate", "most of them"],
           "formats": ["", "{:,.0f}", "{:.0f}", "{:.0f}", ""], "rows": rows}
    append(options.append, [row], 1, {"regard": regard_version(options.regard)})


main()
