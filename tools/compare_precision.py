#!/usr/bin/env python3
"""Compares training in bf16 with f32: the same recipe, the same number of steps, several seeds;
BLEU, and the losses side by side.

    cargo build --release
    python3 tools/compare_precision.py DATA --steps 600 --seeds 1,2 --out runs

DATA has train, val and test_2016_flickr, each as .en and .de, plain or .gz. On a CPU without
AVX-512 BF16, bf16 is emulated in software (REGARD_BF16=emulate), which has the same precision but
not the speed. Prints a table of BLEU on test_2016_flickr (beam 4) and one of the training losses,
and plots the latter to OUT/losses.svg. Skips runs that are already finished in OUT.
"""
import argparse, json, os, pathlib, subprocess, sys

from alternate import BINARY, check_binary, data_file

COLOURS = {"f32": "#1f6fb4", "bf16": "#c0392b"}


def environment():
    has = "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text()
    return dict(os.environ) if has else dict(os.environ, REGARD_BF16="emulate")


def regard(*arguments):
    done = subprocess.run([BINARY, *map(str, arguments)], env=environment(), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"regard {' '.join(map(str, arguments))}\n{done.stderr}")
    return done.stdout


def run(a, precision, seed):
    out = a.out / f"{precision}-{seed}"
    if not (out / "score.json").exists():
        files = [x for flag, name in [("src", "train.en"), ("tgt", "train.de"), ("valid-src", "val.en"), ("valid-tgt", "val.de")]
                 for x in (f"--{flag}", data_file(a.data, name))]
        regard("train", "--preset", "tiny", "--out", out, "--steps", a.steps, "--seed", seed, "--precision", precision, *files,
               "--set", f"schedule.warmup={a.warmup}", "--set", f"schedule.peak={a.peak}", "--set", "checkpoints.average=0", "--set", f"validation.every={a.steps} steps")
        score = regard("evaluate", "--model", out, "--json", "--beam", "4",
                       "--src", data_file(a.data, "test_2016_flickr.en"), "--ref", data_file(a.data, "test_2016_flickr.de"))
        (out / "score.json").write_text(score)
    rows = [json.loads(line) for line in (out / "logs" / "log.jsonl").read_text().splitlines()]
    losses = {row["step"]: row["loss"] for row in rows if row["kind"] == "step"}
    return json.loads((out / "score.json").read_text()), losses


def draw(runs, path):
    """Plots loss against step, one line per run; seeds have different dashes."""
    left, top, width, height = 60, 40, 620, 300
    steps = sorted({step for _, losses in runs.values() for step in losses})
    values = [loss for _, losses in runs.values() for loss in losses.values()]
    low, high = min(values), max(values)
    x = lambda step: left + width * step / steps[-1]
    y = lambda loss: top + height * (high - loss) / (high - low)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 20} {top + height + 50}" font-family="sans-serif" font-size="12">',
             '<rect width="100%" height="100%" fill="white"/>']
    for i in range(6):
        loss, step = low + (high - low) * i / 5, steps[-1] * i / 5
        parts.append(f'<path d="M{left} {y(loss):.1f}H{left + width}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y(loss) + 4:.1f}" text-anchor="end">{loss:.1f}</text>')
        parts.append(f'<text x="{x(step):.1f}" y="{top + height + 18}" text-anchor="middle">{step:.0f}</text>')
    parts.append(f'<text x="{left + width / 2}" y="{top + height + 38}" text-anchor="middle">step</text>')
    parts.append(f'<text transform="rotate(-90)" x="{-top - height / 2}" y="16" text-anchor="middle">training loss (nats/token)</text>')
    seeds = sorted({seed for _, seed in runs})
    for i, ((precision, seed), (_, losses)) in enumerate(runs.items()):
        style = f'stroke="{COLOURS[precision]}" stroke-dasharray="{"" if seed == seeds[0] else "5 4"}" fill="none" stroke-width="1.6"'
        points = " ".join(f"{x(step):.1f},{y(loss):.1f}" for step, loss in losses.items())
        parts.append(f'<polyline points="{points}" {style}/>')
        at = left + 150 * i
        parts.append(f'<path d="M{at} 20h26" {style}/><text x="{at + 32}" y="24">{precision}, seed {seed}</text>')
    path.write_text("\n".join([*parts, "</svg>\n"]))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("data", type=pathlib.Path)
    a.add_argument("--steps", type=int, default=600)
    a.add_argument("--warmup", type=int, default=200)
    a.add_argument("--peak", type=float, default=0.002, help="the highest rate: the recipe's 0.005 is for a warm-up of 1,500 steps")
    a.add_argument("--seeds", default="1,2")
    a.add_argument("--out", type=pathlib.Path, required=True)
    a = a.parse_args()
    check_binary()
    runs = {(precision, seed): run(a, precision, seed) for seed in map(int, a.seeds.split(",")) for precision in COLOURS}
    print("| seed | BLEU, f32 | BLEU, bf16 | chrF, f32 | chrF, bf16 |\n|---|---|---|---|---|")
    for seed in sorted({seed for _, seed in runs}):
        f32, bf16 = (runs[precision, seed][0] for precision in COLOURS)
        print(f"| {seed} | {f32['bleu']['score']:.2f} | {bf16['bleu']['score']:.2f} | {f32['chrf']['score']:.2f} | {bf16['chrf']['score']:.2f} |")
    print("\n| step | " + " | ".join(f"{precision}, seed {seed}" for precision, seed in runs) + " |\n|---" + "|---" * len(runs) + "|")
    for step in next(iter(runs.values()))[1]:
        print(f"| {step} | " + " | ".join(f"{losses[step]:.3f}" for _, losses in runs.values()) + " |")
    draw(runs, a.out / "losses.svg")


main()
