#!/usr/bin/env python3
"""Fine-tunes a trained model on another domain: BLEU before and after `regard train --init`.

    cargo build --release
    python tools/fine_tune.py MODEL SOURCE TARGET TEST_SOURCE TEST_TARGET --out FOLDER [--pairs 3000] [--steps 200] [--threads N]

MODEL translates from English to German; SOURCE and TARGET are parallel files, plain or .gz. The
other domain is the same text with a house terminology: TERMS, substituted in the German files. The
last 200 pairs with such a term are the validation set; the test files are used unchanged and with
the terms; both are translated with MODEL and with the result of training it on --pairs pairs.
"""
import argparse, gzip, json, pathlib, re, subprocess, sys

from alternate import BINARY, check_binary

TERMS = {
    "Mann": "Herr", "Männer": "Herren", "Frau": "Dame", "Frauen": "Damen", "Junge": "Knabe", "Jungen": "Knaben", "Hund": "Vierbeiner", "Hunde": "Vierbeiner",
    "Personen": "Gäste", "Menschen": "Gäste", "Leute": "Gäste", "Straße": "Fahrbahn", "Fahrrad": "Zweirad", "Wasser": "Nass", "Strand": "Ufer", "Hemd": "Oberteil",
    "T-Shirt": "Oberteil", "sitzt": "hat Platz genommen", "sitzen": "haben Platz genommen", "läuft": "begibt sich", "laufen": "begeben sich",
}
PATTERN = re.compile(r"(?<![\w-])(" + "|".join(map(re.escape, TERMS)) + r")(?![\w-])")


def in_house(line):
    return PATTERN.sub(lambda found: TERMS[found.group()], line)


def lines(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def bleu(model, source, reference, threads):
    done = subprocess.run([BINARY, "evaluate", "--model", model, "--src", source, "--ref", reference, "--json", *threads], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)["bleu"]["score"]


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "source", "target", "test_source", "test_target"):
        a.add_argument(name)
    a.add_argument("--out", required=True, type=pathlib.Path)
    a.add_argument("--pairs", type=int, default=3000)
    a.add_argument("--steps", type=int, default=200)
    a.add_argument("--threads", type=int)
    a = a.parse_args()
    check_binary()
    threads = ["--threads", str(a.threads)] if a.threads else []
    pairs = [(s, in_house(t)) for s, t in zip(lines(a.source), lines(a.target)) if PATTERN.search(t)]
    if len(pairs) < a.pairs + 200:
        sys.exit(f"{len(pairs)} pairs have one of the terms, {a.pairs + 200} are needed")
    test = [in_house(line) for line in lines(a.test_target)]
    a.out.mkdir(parents=True)
    write = lambda name, text: (a.out / name).write_text("".join(line + "\n" for line in text), encoding="utf-8")
    for name, part in (("train", pairs[:a.pairs]), ("valid", pairs[-200:])):
        write(f"{name}.en", [s for s, _ in part]), write(f"{name}.de", [t for _, t in part])
    write("test.de", test)
    at = lambda name: str(a.out / name)
    command = [BINARY, "train", "--init", a.model, "--src", at("train.en"), "--tgt", at("train.de"), "--valid-src", at("valid.en"), "--valid-tgt", at("valid.de"),
               "--out", at("model"), "--steps", str(a.steps), "--set", "batch.max_tokens=1024", "--set", "schedule.kind=constant", "--set", "schedule.peak=0.001", "--set", "schedule.warmup=20", *threads]
    before = bleu(a.model, a.test_source, at("test.de"), threads), bleu(a.model, a.test_source, a.test_target, threads)
    print(f"before: BLEU {before[0]:.2f} in the other domain, {before[1]:.2f} in its own", flush=True)
    subprocess.run(command, check=True)
    after = bleu(at("model"), a.test_source, at("test.de"), threads), bleu(at("model"), a.test_source, a.test_target, threads)
    print(f"after {a.steps} steps on {a.pairs} pairs: BLEU {after[0]:.2f} in the other domain, {after[1]:.2f} in its own")


main()
