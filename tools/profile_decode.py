#!/usr/bin/env python3
"""Where the time of decoding goes, in one build or in two: shares of the cores' time
by kind of work, from perf, for the workloads of tools/bench_translate.py.

    cargo build --release
    python3 tools/profile_decode.py [--before OTHER/target/release/regard] [CASE…] [--seconds 10] [--append FILE]

A case is PRESET-PRECISION-BEAM-BATCH. "Waiting" is the time in which a core waits for another,
spinning or asleep: 1 minus CPU time over wall time, where the time of starting is subtracted. Work
at the start (random weights, their packing) is left out. Needs perf and symbols in the binary."""
import argparse, json, os, pathlib, re, subprocess, tempfile, time

from alternate import BINARY, append, append_option, check_binary, cpu, regard_version

CASES = ["base-int8-4-32", "base-int8-1-32", "base-f32-4-32", "tiny-int8-4-32", "base-int8-4-1", "base-int8-1-1"]
AT_THE_START = r"regard_random|__cos|__sin|__ieee754_log|\blog@|logf?\b|rintf|::fill\b|::pack\b|Panels::column|quantize_rows"
# The first that matches.
KINDS = {
    "waiting": r"team::|futex|yield|spin_loop|barrier|schedule|idle",
    "quantization": r"quantize",
    "GEMM": r"gemm|products|packed::|matmul",
    "attention": r"attention|paged",
    "softmax and top-k": r"vocabulary|softmax|sum_exp|top_k|logits|largest",
    "norms, activations, embeddings": r"norm|activation|relu|gelu|embed|read_row|add_",
    "beam and the rest": r"",
}


def used(command):
    """Wall and CPU seconds of a command, and its output."""
    before, start = os.times(), time.perf_counter()
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    wall, after = time.perf_counter() - start, os.times()
    return wall, after.children_user + after.children_system - before.children_user - before.children_system, run.stdout


def profile(binary, case, seconds, threads):
    """The share of each kind of work, and tokens per second."""
    preset, precision, beam, batch = case.split("-")
    command = [str(binary), "bench", "translate", "--preset", preset, "--precision", precision, "--beam", beam, "--batch", batch,
               "--sentences", "64" if batch == "1" else "256", "--threads", str(threads), "--json"]
    short, long = used([*command, "--seconds", "0"]), used([*command, "--seconds", str(seconds)])
    busy = min((long[1] - short[1]) / (threads * (long[0] - short[0])), 1)
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder) / "perf.data"
        subprocess.run(["perf", "record", "-q", "-F", "499", "-o", data, *command, "--seconds", str(seconds)], check=True, capture_output=True)
        report = subprocess.run(["perf", "report", "-i", data, "--no-children", "--sort", "symbol", "--stdio", "-F", "sample,symbol"],
                                check=True, capture_output=True, text=True).stdout
    counts = dict.fromkeys(KINDS, 0)
    for line in report.splitlines():
        found = re.match(r"\s*(\d+)\s+(\[.\] .*)", line)
        if found and not re.search(AT_THE_START, found[2]):
            counts[next(kind for kind, pattern in KINDS.items() if re.search(pattern, found[2]))] += int(found[1])
    total = sum(counts.values())
    shares = {kind: count / total * busy for kind, count in counts.items()}
    shares["waiting"] += 1 - busy
    return shares, json.loads(long[2])["target_tokens_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=CASES, metavar="CASE")
    parser.add_argument("--before", type=pathlib.Path, help="the binary of another build")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--threads", type=int, default=2)
    append_option(parser)
    options = parser.parse_args()
    if options.seconds < 1:
        parser.error("--seconds: at least 1")
    check_binary()
    builds = ({"before": options.before} if options.before else {}) | {"now": BINARY}
    rows = []
    for case in options.cases:
        for name, binary in builds.items():
            shares, speed = profile(binary, case, options.seconds, options.threads)
            rows.append([case, name, f"{speed:,.0f}", *(f"{100 * share:.1f}" for share in shares.values())])
            print(" | ".join(rows[-1]), flush=True)
    result = {"id": "profile/decode", "columns": ["case", "build", "tokens/s", *KINDS], "rows": rows}
    append(options.append, [result], 1, {"regard": regard_version()}, f"{cpu()}, {options.threads} threads")


main()
