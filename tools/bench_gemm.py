#!/usr/bin/env python3
"""Compares the matmul of two builds at the sizes of a base model on one core, alternating; prints a
table of the GMAC/s of the second build and the ratios to the first.

    cargo build --release -p regard-kernels --example gemm      # in both checkouts
    python3 tools/bench_gemm.py BEFORE AFTER [--rounds 5] [--append FILE]

BEFORE and AFTER are the programs target/release/examples/gemm of two checkouts."""
import argparse, statistics, subprocess

from alternate import append, append_option, cpu

ROWS = [1, 4, 32, 128]
SKIPPED = "portable"


def measure(program):
    """GMAC/s by instruction set, matrix and format, for each number of rows."""
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()[2:]
    cells = [line.split() for line in lines]
    return {(c[0], " ".join(c[1:-5]), c[-5]): [float(x) for x in c[-4:]] for c in cells if c[0] != SKIPPED}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rounds", type=int, default=5)
    append_option(parser)
    options = parser.parse_args()
    before, after = [], []
    for _ in range(options.rounds):
        before.append(measure(options.before))
        after.append(measure(options.after))
    rows = []
    for key in before[0]:
        cells = []
        for i in range(len(ROWS)):
            ratio = statistics.median(a[key][i] / b[key][i] for a, b in zip(after, before))
            cells.append(f"{statistics.median(a[key][i] for a in after):.0f} ({ratio:.2f}×)")
        rows.append([*key, *cells])
    columns = ["instruction set", "matrix", "format", *(f"{m} rows" if m > 1 else "1 row" for m in ROWS)]
    for line in [columns, *rows]:
        print(" | ".join(line))
    result = {"id": "gemm/before-after", "columns": columns, "rows": rows}
    append(options.append, [result], options.rounds, {}, f"{cpu()}, one core")


main()
