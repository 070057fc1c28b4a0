#!/usr/bin/env python3
"""Compares the ids of `regard tokenize` with those of `transformers`' classes for M2M100 (with the
rules of the published models), NLLB-200, mBART-50, T5 and MADLAD-400 (whose SentencePiece model is
what Regard reads), on lines of invented words and of characters from all of Unicode.

    pip install transformers sentencepiece torch
    python tools/check_families.py [--lines 10000] [--regard target/release/regard]
"""
import argparse, json, pathlib, random, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent / "goldens"))
from families import LINES, SYLLABLES, m2m_tokenizer, madlad_tokenizer, mbart_tokenizer, nllb_tokenizer, t5_tokenizer

RNG = random.Random(2)


def line():
    word = lambda: "".join(RNG.choices(SYLLABLES, k=RNG.randrange(1, 6)))
    odd = lambda: chr(RNG.choice([RNG.randrange(0x20, 0xD800), RNG.randrange(0xE000, 0x110000), RNG.randrange(0x20, 0x3100)]))
    parts = [RNG.choice([word, word, word, odd, lambda: RNG.choice(LINES)])() for _ in range(RNG.randrange(1, 12))]
    text = RNG.choice([" ", " ", "  ", ""]).join(parts)
    return "".join(c for c in text if c not in "\n\r\x0b\x0c\x85\u2028\u2029").strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=10000)
    parser.add_argument("--regard", default="target/release/regard")
    flags = parser.parse_args()
    lines = [text for text in (line() for _ in range(flags.lines + 500)) if text][: flags.lines]
    rules = {"normalization_rule_name": "nmt_nfkc"}
    for name, kind, made in [
        ("M2M100", "m2m_100", lambda folder: m2m_tokenizer(folder, **rules)),
        ("NLLB-200", "m2m_100", nllb_tokenizer),
        ("mBART-50", "mbart", mbart_tokenizer),
        ("T5", "t5", lambda folder: t5_tokenizer(folder, **rules)),
        ("MADLAD-400", "t5", lambda folder: madlad_tokenizer(folder, **rules)),
    ]:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "made").mkdir()
            tokenizer = made(folder / "made")
            tokenizer.save_pretrained(folder)
            if hasattr(tokenizer, "spm"):
                (folder / "spiece.model").write_bytes(tokenizer.spm)
            (folder / "config.json").write_text(json.dumps({"model_type": kind}))
            compare(name, tokenizer, folder, lines, flags.regard)


def compare(name, tokenizer, folder, lines, regard):
    theirs = [tokenizer(text).input_ids for text in lines]
    out = subprocess.run([regard, "tokenize", "--model", str(folder), "--ids", "--eos"], input="\n".join(lines) + "\n", text=True, capture_output=True, check=True).stdout
    ours = [[int(id) for id in row.split()] for row in out.split("\n")[: len(lines)]]
    differ = [(text, a, b) for text, a, b in zip(lines, theirs, ours) if a != b]
    print(f"{name}: {len(lines) - len(differ)} of {len(lines)} lines the same")
    for text, a, b in differ[:5]:
        print(f"  {text!r}\n    theirs {a}\n    ours   {b}")


if __name__ == "__main__":
    main()
