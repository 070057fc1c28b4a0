#!/usr/bin/env python3
"""Compares f32 matrix multiplication on one core with the crates gemm and private-gemm-x86 (through
faer) and with OpenBLAS (through NumPy), alternating, at the sizes of a training step; prints a
table of GMAC/s and of the ratio to the fastest of the others.

    pip install numpy
    (cd tools/peers/gemm && cargo build --release)
    python3 tools/bench_gemm_peers.py [--rounds 5] [--append FILE]

Both matrices are unpacked, as in training. NumPy's wheels contain OpenBLAS."""
import argparse, json, os, pathlib, statistics, subprocess, sys, time, tomllib

from alternate import append, append_option, cpu

PEERS = pathlib.Path(__file__).resolve().parent / "peers/gemm"
PROGRAM, LOCK = PEERS / "target/release/gemm-peers", PEERS / "Cargo.lock"
CRATES = {"regard": "Regard", "gemm": "gemm", "private_gemm": "private-gemm-x86"}


def openblas(shapes):
    """GMAC/s of each shape; for a process whose environment restricts OpenBLAS to one thread."""
    import numpy

    speeds = []
    for m, n, k in shapes:
        rng = numpy.random.default_rng(1)
        a, b = (rng.random(shape, dtype=numpy.float32) - 0.5 for shape in [(m, k), (k, n)])
        c = numpy.empty((m, n), dtype=numpy.float32)
        times = max(2_000_000_000 // (m * n * k), 1)
        numpy.matmul(a, b, out=c)
        start = time.perf_counter()
        for _ in range(times):
            numpy.matmul(a, b, out=c)
        speeds.append(times * m * n * k / (time.perf_counter() - start) / 1e9)
    return speeds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", default=PROGRAM)
    parser.add_argument("--openblas", help=argparse.SUPPRESS)
    append_option(parser)
    options = parser.parse_args()
    if options.openblas:
        print(json.dumps(openblas(json.loads(options.openblas))))
        return
    if not pathlib.Path(options.program).exists():
        parser.error(f"{options.program} is not there: (cd tools/peers/gemm && cargo build --release)")
    rounds = []
    for _ in range(options.rounds):
        run = subprocess.run([options.program], check=True, capture_output=True, text=True)
        lines = [json.loads(line) for line in run.stdout.splitlines()]
        shapes = json.dumps([[line["m"], line["n"], line["k"]] for line in lines])
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        run = subprocess.run([sys.executable, __file__, "--openblas", shapes], check=True, capture_output=True, text=True, env=environment)
        for line, speed in zip(lines, json.loads(run.stdout), strict=True):
            line["openblas"] = speed
        rounds.append(lines)
    rows = []
    names = [*CRATES, "openblas"]
    for at, shape in enumerate(rounds[0]):
        cells = [statistics.median(lines[at][name] for lines in rounds) for name in names]
        ratio = statistics.median(lines[at]["regard"] / max(lines[at][name] for name in names[1:]) for lines in rounds)
        rows.append([shape["shape"], f"{shape['m']:,} × {shape['n']:,} × {shape['k']:,}", *(f"{cell:.0f}" for cell in cells), f"{ratio:.2f}×"])
    columns = ["matmul", "m × n × k", *CRATES.values(), "OpenBLAS", "ratio"]
    for line in [columns, *rows]:
        print(" | ".join(line))
    import numpy

    # faer 0.20 multiplies with the older of the two versions of gemm in the list.
    lock = tomllib.loads(LOCK.read_text())
    versions = {p["name"]: p["version"] for p in reversed(lock["package"]) if p["name"] in ("gemm", "private-gemm-x86")} | {"numpy": numpy.__version__}
    append(options.append, [{"id": "gemm/peers", "columns": columns, "rows": rows}], options.rounds, versions, f"{cpu()}, one core")


main()
