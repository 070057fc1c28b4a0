#!/usr/bin/env python3
"""Training time to a validation BLEU on Multi30k: Regard against a PyTorch loop with the same
recipe.

    cargo build --release
    pip install torch numpy sentencepiece sacrebleu
    python tools/time_to_bleu.py DATA [--bleu 30] [--precision f32] [--threads 2]

DATA has train, val and test_2016_flickr, each as .en and .de, plain or .gz. The recipe is that of
tools/peers/torch_multi30k.py: 4+4 layers of width 128, a joint BPE, 4,096 target tokens per batch,
inverse square root decay with a peak of 0.005 after 2,000 steps. After every epoch both translate
val.en greedily with the current weights, which does not count as training time. They run one after
the other, each alone on the machine; prints a line per epoch, and at the end the minutes of both
and their ratio.
"""
import argparse, json, pathlib, signal, subprocess, sys, tempfile

from alternate import BINARY, ROOT, append, append_option, check_binary, cpu, data_file, regard_version


def report(who, epoch, step, minutes, bleu):
    print(f"{who:8} epoch {epoch:3}, step {step:5}, {minutes:6.2f} minutes of training: BLEU {bleu:.2f}", file=sys.stderr, flush=True)


def lines(process):
    """The lines that a process writes; the process is terminated when the caller has seen
    enough."""
    try:
        yield from process.stdout
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def torch(a):
    command = [sys.executable, ROOT / "tools/peers/torch_multi30k.py", a.data, "--minutes", "600", "--every", "1"]
    command += ["--precision", a.precision, "--threads", str(a.threads)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in lines(process):
        row = json.loads(line)
        report("PyTorch", row["epoch"], row["step"], row["minutes"], row["val_bleu"])
        if row["val_bleu"] >= a.bleu:
            return row["minutes"]
    sys.exit("the PyTorch loop ended too soon; run it by hand to see why")


def regard(a, out):
    command = [BINARY, "train", "--preset", "tiny", "--out", out, "--epochs", "600", "--threads", str(a.threads), "--precision", a.precision]
    command += ["--src", data_file(a.data, "train.en"), "--tgt", data_file(a.data, "train.de")]
    command += ["--valid-src", data_file(a.data, "val.en"), "--valid-tgt", data_file(a.data, "val.de")]
    settings = {
        "schedule.kind": "inverse-sqrt", "schedule.peak": "0.005", "schedule.warmup": "2000", "tokenizer.size": "8000",
        "validation.every": "1 epochs", "validation.beam": "1", "checkpoints.every": "1 epochs", "checkpoints.average": "0",
    }
    command += [word for name, value in settings.items() for word in ["--set", f"{name}={value}"]]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    log, seen, tail = pathlib.Path(out) / "logs" / "log.jsonl", 0, []
    for line in lines(process):
        tail = tail[-20:] + [line]
        if not log.exists():
            continue
        rows = [json.loads(row) for row in log.read_text().splitlines() if row.endswith("}")]
        validations = [row for row in rows if row["kind"] == "validation"]
        for epoch, row in list(enumerate(validations, 1))[seen:]:
            report("Regard", epoch, row["step"], row["seconds"] / 60, row["bleu"])
            if row["bleu"] >= a.bleu:
                return row["seconds"] / 60
        seen = len(validations)
    sys.exit(f"the run ended too soon:\n{''.join(tail)}")


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("data", type=pathlib.Path)
    a.add_argument("--bleu", type=float, default=30)
    a.add_argument("--precision", default="f32", choices=["f32", "bf16"])
    a.add_argument("--threads", type=int, default=2)
    append_option(a)
    a = a.parse_args()
    check_binary()
    with tempfile.TemporaryDirectory() as out:
        ours = regard(a, out)
    theirs = torch(a)
    machine = f"{cpu()}, {a.threads} threads"
    row = {"bleu": a.bleu, "precision": a.precision, "regard_minutes": round(ours, 2), "torch_minutes": theirs, "ratio": round(theirs / ours, 2)}
    append(a.append, [{"id": f"time-to-bleu/{a.data.name}-{a.precision}"} | row], 1, {"regard": regard_version()}, machine)
    print(json.dumps(row | {"machine": machine}))


main()
