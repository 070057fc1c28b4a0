#!/usr/bin/env python3
"""Decoding speed of Regard against CTranslate2 on the same workload, alternating; prints medians
and ratios.

    cargo build --release
    pip install ctranslate2 numpy
    python tools/bench_translate.py [CASE…] [--rounds 3] [--threads 2] [--markdown] [--append FILE]

A case is PRESET-PRECISION-BEAM-BATCH, such as base-int8-4-32. The workload is that of
tools/peers/ct2_translate.py: random weights, sentences of 10 to 29 tokens, exactly 25 output
tokens; the peer runs with the better of its two threading modes. For tiny-int8, CTranslate2 may
also use f32, and the faster result counts. Each run is a separate process, so that a noisy minute
affects both.
"""
import argparse, json, statistics, sys

from alternate import BINARY, ROOT, append, append_option, check_binary, cpu, run

CASES = ["base-int8-4-32", "base-int8-1-32", "base-f32-4-32", "tiny-int8-4-32", "base-int8-4-1", "base-int8-1-1"]


def peer(preset, precision, beam, batch, threads, sentences):
    names = {"f32": ["float32"], "int8": ["int8", "float32"] if preset == "tiny" else ["int8"]}[precision]
    flags = ["--batch", batch, "--threads", str(threads), "--sentences", str(sentences)]
    runs = [run([sys.executable, ROOT / "tools/peers/ct2_translate.py", preset, name, beam, *flags]) for name in names]
    return max(runs, key=lambda r: r["target_tokens_per_s"])


def ours(preset, precision, beam, batch, threads, sentences):
    return run([BINARY, "bench", "translate", "--preset", preset, "--precision", precision, "--beam", beam, "--batch", batch,
                "--threads", str(threads), "--sentences", str(sentences), "--json"])


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("cases", nargs="*", default=CASES, metavar="CASE")
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--markdown", action="store_true", help="print a Markdown table")
    append_option(a)
    a = a.parse_args()
    check_binary()
    rows = []
    for case in a.cases:
        preset, precision, beam, batch = case.split("-")
        theirs, mine = [], []
        for n in range(a.rounds):
            sentences = 64 if batch == "1" else 256
            theirs.append(peer(preset, precision, beam, batch, a.threads, sentences))
            mine.append(ours(preset, precision, beam, batch, a.threads, sentences))
            for line in (theirs[-1], mine[-1]):
                print(f"round {n + 1}: {json.dumps(line)}", file=sys.stderr, flush=True)
        median = lambda runs, field: statistics.median(r[field] for r in runs)
        rows.append({
            "case": case,
            "ctranslate2_tokens_per_s": median(theirs, "target_tokens_per_s"),
            "regard_tokens_per_s": median(mine, "target_tokens_per_s"),
            "speed_ratio": statistics.median(m["target_tokens_per_s"] / t["target_tokens_per_s"] for m, t in zip(mine, theirs)),
            "ctranslate2_peak_mb": median(theirs, "peak_rss_mb"),
            "regard_peak_mb": median(mine, "peak_rss_mb"),
            "regard_share_of_peak": statistics.median(m["gmacs"] / m["peak_gmacs"] for m in mine),
        })
    machine = f"{cpu()}, {a.threads} threads, {mine[0]['isa']}, CTranslate2 {theirs[0]['version']}, regard {mine[0]['version']}, {a.rounds} rounds"
    append(a.append, rows, a.rounds, {"CTranslate2": theirs[0]["version"], "regard": mine[0]["version"]}, f"{cpu()}, {a.threads} threads, {mine[0]['isa']}")
    if a.markdown:
        print("| preset, precision, beam, batch | CTranslate2 tok/s | Regard tok/s | ratio | CTranslate2 peak MB | Regard peak MB | of the peak |")
        print("|---|---|---|---|---|---|---|")
        for r in rows:
            print(f"| {r['case'].replace('-', ', ')} | {r['ctranslate2_tokens_per_s']:.0f} | {r['regard_tokens_per_s']:.0f} "
                  f"| **{r['speed_ratio']:.2f}×** | {r['ctranslate2_peak_mb']} | {r['regard_peak_mb']} | {100 * r['regard_share_of_peak']:.0f} % |")
        print(f"\n{machine}")
    else:
        for r in rows:
            print(json.dumps(r | {"machine": machine}))


main()
