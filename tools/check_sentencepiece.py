"""Compares `regard tokenize` with the `sentencepiece` package on models trained on any text, line
by line.

    cargo build --release
    pip install sentencepiece==0.2.2
    python tools/check_sentencepiece.py [--lines 10000] [--vocabulary 4000] train.en train.de …

Half of the lines come from the files; the other half are the same lines with unusual characters
inserted, and lines of only such characters. Every piece that the package produces, known to the
model or not, gets its own id, so that any difference is visible.
"""
import argparse, io, json, pathlib, random, subprocess, tempfile, time

import sentencepiece as spm

MODELS = [(kind, rules, options) for kind in ["unigram", "bpe"] for rules, options in [
    ("nmt_nfkc", {}), ("nfkc_cf", {}), ("identity", {}), ("nmt_nfkc", dict(byte_fallback=True)),
    ("nmt_nfkc", dict(treat_whitespace_as_suffix=True)), ("nmt_nfkc", dict(user_defined_symbols=["<sep>", "ﬁ", "the"])),
    ("identity", dict(remove_extra_whitespaces=False, add_dummy_prefix=False)),
]]
ODD = ["\u00a0", "\t", "  ", "▁", "\u200b", "\u200d", "\ufeff", "\u0301", "\u0308", "ﬁ", "ﬀ", "Ａ", "１", "½", "ß", "İ", "\u1100\u1161\u11a8", "가", "ｶﾞ", "山", "، ", "ﷺ", "👩\u200d👧",
       "🇩🇪", "\x01", "\x1f", "\x7f", "\x80", "\x00", "<sep>", "</s>", "<unk>", "<0x41>", "…", "\u2028", "\U0010ffff", "\u3000", "e\u0301", "\u0e33", "𝐀"]


def odd(rng, line):
    if rng.random() < 0.2:
        line = ""
    line = list(line)
    for _ in range(rng.randrange(1, 9)):
        kind = rng.randrange(4)
        if kind == 0:
            new = chr(rng.choice([rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)]))
        elif kind == 1:
            new = chr(rng.randrange(0x3100))
        else:
            new = rng.choice(ODD)
        line.insert(rng.randrange(len(line) + 1), new)
    return "".join(line)


def lines_of(files, count):
    rng = random.Random(1)
    text = [line for file in files for line in pathlib.Path(file).read_text("utf-8").split("\n") if line]
    plain = rng.sample(text, min(count // 2, len(text)))
    lines = plain + [odd(rng, rng.choice(text)) for _ in range(count - len(plain) - 20)]
    lines += ["", " ", "\t", "▁"] + ["".join(rng.sample(text, min(200, len(text)))) for _ in range(16)]
    # These end a line or start a special kind of line, which is not what we compare.
    clean = lambda line: line.replace("\n", " ").replace("\r", " ")
    return text, [clean(line) for line in lines if not line.startswith((">>", "\ufeff"))]


def compare(regard, model, lines):
    processor = spm.SentencePieceProcessor(model_proto=model)
    start = time.time()
    want = [processor.encode(line, out_type=str) for line in lines]
    theirs = time.time() - start
    pieces = ["</s>", "<unk>"] + sorted({p for line in want for p in line} - {"</s>", "<unk>", "<pad>"}) + ["<pad>"]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for side in ["source.spm", "target.spm"]:
            (folder / side).write_bytes(model)
        (folder / "vocab.json").write_text(json.dumps({p: i for i, p in enumerate(pieces)}))
        start = time.time()
        run = subprocess.run([regard, "tokenize", "--model", folder, "--json", "--threads", "1"], input="\n".join(lines).encode() + b"\n", stdout=subprocess.PIPE, check=True)
        ours = time.time() - start
    got = [json.loads(line)["pieces"] for line in run.stdout.decode().split("\n")[:-1]]
    assert len(got) == len(want), (len(got), len(want))
    return [(line, w, g) for line, w, g in zip(lines, want, got) if w != g], theirs, ours


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--regard", default=pathlib.Path(__file__).resolve().parents[1] / "target/release/regard")
    parser.add_argument("--lines", type=int, default=10000)
    parser.add_argument("--vocabulary", type=int, default=4000)
    arguments = parser.parse_args()
    text, lines = lines_of(arguments.files, arguments.lines)
    print(f"sentencepiece {spm.__version__}, {len(lines)} lines, vocabularies of {arguments.vocabulary}, trained on {len(text)} lines")
    wrong = 0
    for kind, rules, options in MODELS:
        out = io.BytesIO()
        spm.SentencePieceTrainer.train(sentence_iterator=iter(text), model_writer=out, model_type=kind, normalization_rule_name=rules, vocab_size=arguments.vocabulary,
                                       hard_vocab_limit=False, input_sentence_size=30000, minloglevel=2, num_threads=1, **options)
        different, theirs, ours = compare(arguments.regard, out.getvalue(), lines)
        wrong += len(different)
        name = " ".join([kind, rules] + [f"{k}={v}" for k, v in options.items()])
        print(f"{len(lines) - len(different)} identical, {len(different)} different  {theirs:.2f} s and {ours:.2f} s  {name}", flush=True)
        for line, want, got in different[:3]:
            print("   ", repr(line[:200]), "\n     package", want[:40], "\n     regard ", got[:40])
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
