#!/usr/bin/env python3
"""Training speed of Regard against PyTorch on the same workload, alternating; prints medians and
ratios.

    cargo build --release
    pip install torch numpy
    python tools/bench_train.py [tiny small base] [--rounds 3] [--seconds 12] [--threads 2] [--best] [--markdown] [--append FILE]

The workload is that of tools/peers/torch_train.py: random tokens, dropout 0.1, label smoothing 0.1,
including clipping and Adam. Each round runs PyTorch, then Regard, in separate processes, so that a
noisy minute affects both. Regard uses the number format that it chooses for this CPU, unless
--regard-precision is given. PyTorch runs eagerly in the given precision; with --best, its f32, its
torch.compile (in f32) and, if the CPU has bf16 instructions, its bf16 are tried once, and the
fastest takes part. (Otherwise bf16 is emulated in software: tiny runs at a fourteenth of the speed
of f32.)
"""
import argparse, json, pathlib, statistics, sys

from alternate import BINARY, ROOT, append, append_option, check_binary, cpu, run


def multiplies_bf16():
    """Whether this CPU has bf16 instructions; True if that cannot be determined."""
    info = pathlib.Path("/proc/cpuinfo")
    return not info.exists() or "bf16" in info.read_text()


def attempt(peer, way):
    """The speed of the peer, or None if it does not run."""
    try:
        return peer(*way)["target_tokens_per_s"]
    except SystemExit as failure:
        print(f"{' '.join(way)} does not run: {failure}", file=sys.stderr, flush=True)
        return None


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("presets", nargs="*", default=["tiny", "small", "base"])
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--seconds", type=float, default=12)
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--precision", default="f32", help="PyTorch's, without --best")
    a.add_argument("--regard-precision", default="auto", help="auto, f32 or bf16; auto is the faster on this CPU")
    a.add_argument("--best", action="store_true", help="against the fastest of PyTorch's f32, bf16 and torch.compile")
    a.add_argument("--markdown", action="store_true", help="print a Markdown table")
    append_option(a)
    a = a.parse_args()
    check_binary()
    rows = []
    for preset in a.presets:
        torch, ours = [], []
        common = ["--seconds", str(a.seconds), "--threads", str(a.threads)]
        peer = lambda *way: run([sys.executable, ROOT / "tools/peers/torch_train.py", preset, *way, *common])
        way = [a.precision]
        if a.best:
            ways = [["f32"], ["f32", "--compile"]] + [["bf16"]] * multiplies_bf16()
            # On some virtual machines PyTorch's bf16 ends with an illegal instruction: the CPU
            # reports AMX, but the host forbids it. ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 avoids AMX.
            tried = [(speed, way) for speed, way in ((attempt(peer, way), way) for way in ways) if speed]
            print(f"{preset}: {tried}", file=sys.stderr, flush=True)
            way = max(tried)[1]
        for n in range(a.rounds):
            torch.append(peer(*way))
            ours.append(run([BINARY, "bench", "train", "--preset", preset, "--precision", a.regard_precision, "--json", *common]))
            for line in (torch[-1], ours[-1]):
                print(f"round {n + 1}: {json.dumps(line)}", file=sys.stderr, flush=True)
        median = lambda runs, field: statistics.median(r[field] for r in runs)
        rows.append({
            "preset": preset,
            "peer": " ".join(["torch", *way]),
            "regard_precision": ours[0]["precision"],
            "torch_tokens_per_s": median(torch, "target_tokens_per_s"),
            "regard_tokens_per_s": median(ours, "target_tokens_per_s"),
            "speed_ratio": statistics.median(o["target_tokens_per_s"] / t["target_tokens_per_s"] for o, t in zip(ours, torch)),
            "torch_peak_mb": median(torch, "peak_rss_mb"),
            "regard_peak_mb": median(ours, "peak_rss_mb"),
            "regard_gflops": median(ours, "gflops"),
            "matmul_share": median(ours, "matmul_share"),
        })
    machine = f"{cpu()}, {a.threads} threads, {ours[0]['isa']}, torch {torch[0]['version']}, regard {ours[0]['version']}, {a.rounds} rounds"
    append(a.append, rows, a.rounds, {"torch": torch[0]["version"], "regard": ours[0]["version"]}, f"{cpu()}, {a.threads} threads, {ours[0]['isa']}")
    if a.markdown:
        print("| preset | PyTorch tok/s | Regard tok/s | ratio | PyTorch peak MB | Regard peak MB | GFLOPS | time in GEMM |")
        print("|---|---|---|---|---|---|---|---|")
        for r in rows:
            print(f"| {r['preset']} | {r['torch_tokens_per_s']:.0f} | {r['regard_tokens_per_s']:.0f} | **{r['speed_ratio']:.2f}×** "
                  f"| {r['torch_peak_mb']} | {r['regard_peak_mb']} | {r['regard_gflops']:.0f} | {100 * r['matmul_share']:.0f} % |")
        print(f"\n{machine}")
    else:
        for r in rows:
            print(json.dumps(r | {"machine": machine}))


main()
