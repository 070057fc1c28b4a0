#!/usr/bin/env python3
"""The cost model of several hosts that docs/scaling.md explains, and its table.

    python3 tools/scaling.py                      the table
    python3 tools/scaling.py --cores 16 --tokens 4096

A step on N hosts takes   C + S - hidden + W   seconds, and the efficiency is C over that:

    C = tokens * accumulate / (speed of a core * cores)             each host has its own tokens: the batch grows with N
    S = W = P * b * (N - 1) / N / (link * used) + (N - 1) * latency * buckets + P * 4 / memory
    hidden = 0, or with overlap the layers' part of S (the embeddings are final last), as far as two thirds of the last of the
             accumulated batches go: its backward pass

P is the number of weights, b the bytes of one on the wire (4, or 2 with wire=bf16). S is the time
for the gradients to reach the owners of their pieces, W the time for the new weights to return.
"""
import argparse

import results

# Measured on two Zen 3 cores (docs/results): target tokens per second and core, in f32.
BASE = results.load()["zen3-avx2"]["train/base"]["regard_tokens_per_s"] / 2
SPEED = {"base": BASE, "big": BASE * 62.6 / 209}
# Weights in millions with 37,000 pieces, as in the paper.
WEIGHTS = {"base": 63.1e6, "big": 214.2e6}
# The number of these in the embeddings.
TABLE = {"base": 37_000 * 512, "big": 37_000 * 1024}
# The share of a link that the exchange uses, and the latency of a message in seconds
# (docs/scaling.md, measured).
USED, LATENCY = 0.80, 50e-6
# Bytes per second that a host can sum: two values read, one written.
MEMORY = 8e9
BUCKET = 128 * 32768


def step(preset, hosts, gigabits, cores, tokens, accumulate, overlap, narrow):
    weights = WEIGHTS[preset]
    batch = tokens / (SPEED[preset] * cores)
    compute = batch * accumulate
    wire = weights * (2 if narrow else 4) * (hosts - 1) / hosts / (gigabits * 1e9 / 8 * USED)
    wire += (hosts - 1) * LATENCY * max(1, weights / max(BUCKET, hosts * 32768))
    each = wire + weights * 4 / MEMORY / cores**0.5
    hidden = min(2 / 3 * batch, each * (1 - TABLE[preset] / weights)) if overlap else 0
    return compute, compute + each - hidden + each


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", type=int, default=32, help="cores of a host")
    parser.add_argument("--tokens", type=int, default=4096, help="target tokens of a batch on a host")
    parser.add_argument("--accumulate", type=int, default=6, help="batches of a step")
    options = parser.parse_args()
    print(f"Hosts of {options.cores} cores, {options.accumulate} batches of {options.tokens} target tokens on each in a step.\n")
    print("| model | link | hosts | f32 | bf16 | f32, overlap | bf16, overlap |\n|---|---|---|---|---|---|---|")
    for preset in ["base", "big"]:
        for gigabits in [10, 100]:
            for hosts in [8, 64, 256]:
                cells = []
                for overlap, narrow in [(False, False), (False, True), (True, False), (True, True)]:
                    compute, total = step(preset, hosts, gigabits, options.cores, options.tokens, options.accumulate, overlap, narrow)
                    cells.append(f"{compute / total:.2f}")
                print(f"| {preset} | {gigabits} Gbit/s | {hosts} | {' | '.join(cells)} |")


main()
