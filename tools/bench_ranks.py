#!/usr/bin/env python3
"""Compares training on two ranks with one core each to one process with two cores, on this machine,
alternating; prints medians.

    cargo build --release --features mpi
    python3 tools/bench_ranks.py --presets tiny,base --rounds 3
"""
import argparse, os, statistics

from alternate import BINARY, append, append_option, check_binary, cpu, regard_version, run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(BINARY))
    parser.add_argument("--presets", default="tiny,base")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", default="20")
    append_option(parser)
    options = parser.parse_args()
    if options.program == str(BINARY):
        check_binary()
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    columns = ["preset", "1 process, 2 cores: ms per step", "2 ranks, 1 core", "of which exchange", "MB sent by a rank", "throughput"]
    print(f"{cpu()}, {options.rounds} rounds of {options.seconds} s\n")
    print(f"| {' | '.join(columns)} |\n|---|---|---|---|---|---|")
    stored = []
    for preset in options.presets.split(","):
        bench = [options.program, "bench", "train", "--preset", preset, "--seconds", options.seconds, "--json"]
        rows = []
        for _ in range(options.rounds):
            one = run([*bench, "--threads", "2"])
            two = run(["mpirun", "-n", "2", "--bind-to", "core", *bench, "--threads", "1"])
            rows.append((one["step_ms"], two["step_ms"], two["exchange_ms"], two["wire_mb"], one["step_ms"] / two["step_ms"]))
        one, two, exchange, sent, ratio = (statistics.median(column) for column in zip(*rows))
        stored.append([preset, one, two, exchange, sent, ratio])
        print(f"| {preset} | {one:.0f} | {two:.0f} | {exchange:.1f} | {sent:.1f} | {ratio:.2f} |", flush=True)
    row = {"id": "mpi/ranks", "columns": columns, "formats": ["", "{:.0f}", "{:.0f}", "{:.1f}", "{:.1f}", "{:.2f}"], "rows": stored}
    append(options.append, [row], options.rounds, {"regard": regard_version(options.program)})


main()
