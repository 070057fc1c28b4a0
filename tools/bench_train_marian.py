#!/usr/bin/env python3
"""Training speed of Regard against Marian (pymarian) on the batches of a real corpus, alternating;
prints target tokens per second and the ratio.

    cargo build --release
    pip install pymarian
    python3 tools/bench_train_marian.py TRAIN.src TRAIN.tgt [--preset tiny] [--rounds 3] [--steps 100] [--append FILE]

Both train a model of the same shape with Adam, dropout 0.1 and label smoothing on the same tokens
(of a vocabulary that Regard learns), in batches of up to 4,096 target tokens. Marian's threads each
work on a batch of their own, with a common update (--sync-sgd) or without; the faster way counts."""
import argparse, json, pathlib, re, shutil, statistics, subprocess, sys, tempfile

from alternate import BINARY, append, append_option, check_binary, cpu, regard_version

SHAPES = {"tiny": (128, 4, 4, 4, 256), "base": (512, 8, 6, 6, 2048)}


def pieces(folder, text, name):
    """A text as pieces separated by spaces."""
    path = folder / name
    with open(path, "w") as out:
        subprocess.run([BINARY, "tokenize", "--model", folder / "tokenizer.json", text], check=True, stdout=out)
    return path


def marian(folder, shape, steps, threads, synchronous):
    """Target tokens per second of the last half of the steps."""
    width, heads, encoder, decoder, ff = shape
    more = "--sync-sgd" if synchronous else ""
    line = (
        f"--type transformer --train-sets {folder}/p.src {folder}/p.tgt --vocabs {folder}/v.yml {folder}/v.yml --model {folder}/m.npz "
        f"--cpu-threads {threads} --dim-emb {width} --transformer-heads {heads} --enc-depth {encoder} --dec-depth {decoder} "
        f"--transformer-dim-ffn {ff} --tied-embeddings-all --transformer-dropout 0.1 --label-smoothing 0.1 --cost-type ce-mean-words "
        f"--optimizer-delay 1 --learn-rate 0.0003 --mini-batch 10000 --mini-batch-words {4096 // (threads if synchronous else 1)} --maxi-batch 100 "
        f"--workspace 3000 --max-length 100 --after-batches {steps} --disp-freq {max(steps // 10, 1)} --overwrite --seed 1 {more}"
    )
    code = f"import pymarian; pymarian.Trainer({line!r}).train()"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    speeds = [float(x.replace(",", "")) for x in re.findall(r"([\d.,]+) words/s", run.stdout + run.stderr)]
    if not speeds:
        sys.exit(f"Marian reported no speed:\n{run.stdout}\n{run.stderr}")
    (folder / "m.npz").unlink(missing_ok=True)
    return statistics.median(speeds[len(speeds) // 2 :])


def regard(folder, source, target, preset, steps, threads):
    """The same of Regard."""
    out = folder / "regard"
    shutil.rmtree(out, ignore_errors=True)
    settings = ["r_drop=none", "muon=none", "dropout=0.1", "accumulate=1", "batch.max_tokens=4096", "log_every=10"]
    command = [BINARY, "train", "--preset", preset, "--src", source, "--tgt", target, "--valid-src", folder / "v", "--valid-tgt", folder / "v",
               "--threads", str(threads), "--steps", str(steps), "--out", out, *(word for setting in settings for word in ("--set", setting))]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    lines = [json.loads(line) for line in (out / "logs/log.jsonl").read_text().splitlines()]
    speeds = [line["tokens_per_second"] for line in lines if line["kind"] == "step"]
    return statistics.median(speeds[len(speeds) // 2 :])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--preset", default="tiny", choices=SHAPES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    append_option(parser)
    options = parser.parse_args()
    check_binary()
    rounds = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "v").write_text("a\n" * 10)
        tokenizer = folder / "tokenizer.json"
        subprocess.run([BINARY, "tokenize", "--train", options.source, options.target, "--out", tokenizer], check=True, stdout=subprocess.DEVNULL)
        for side, text in [("src", options.source), ("tgt", options.target)]:
            pieces(folder, text, f"p.{side}")
        words = {"</s>": 0, "<unk>": 1}
        for piece in json.loads(tokenizer.read_text())["model"]["vocab"]:
            words.setdefault(piece, len(words))
        (folder / "v.yml").write_text("".join(f"{json.dumps(piece, ensure_ascii=False)}: {n}\n" for piece, n in words.items()))
        for _ in range(options.rounds):
            theirs = max(marian(folder, SHAPES[options.preset], options.steps, options.threads, way) for way in [True, False])
            ours = regard(folder, options.source, options.target, options.preset, options.steps, options.threads)
            rounds.append((theirs, ours))
            print(f"Marian {theirs:,.0f}, Regard {ours:,.0f} target tokens/s", flush=True)
    theirs, ours = (statistics.median(values) for values in zip(*rounds))
    ratio = statistics.median(b / a for a, b in rounds)
    print(f"median: {theirs:,.0f} and {ours:,.0f}, {ratio:.2f}×")
    from importlib.metadata import version

    result = {"id": f"train-marian/{options.preset}", "marian_tokens_per_s": round(theirs), "regard_tokens_per_s": round(ours), "ratio": round(ratio, 2)}
    append(options.append, [result], options.rounds, {"pymarian": version("pymarian"), "regard": regard_version()}, f"{cpu()}, {options.threads} threads")


main()
