#!/usr/bin/env python3
"""Compares a trained model in Regard, CTranslate2 and transformers: speed, memory, BLEU, and
whether the translations are the same.

    cargo build --release
    pip install ctranslate2 transformers torch sacrebleu
    python tools/compare_real.py MODEL SOURCE REFERENCE [--repeat 10] [--rounds 3] [--precision f32|int8] [--beam 4] [--transformers]

MODEL is a folder from `regard train`; `ct2-transformers-converter` converts it. Both programs
translate SOURCE repeated --repeat times, in separate processes, with one batch per core and the
same beam, length penalty and length limits; the wall time includes loading. With --transformers,
`generate` also translates SOURCE once, and the differing lines are counted and shown.

CTranslate2 ends a search when as many hypotheses have finished as the beam is wide; Regard and
transformers continue while a running hypothesis could still become better. Where the two differ,
both programs score both translations, and CTranslate2 translates once more with a patience of 2
(twice as many finished hypotheses): the scores are the same, ours is the better one, and with more
patience CTranslate2 finds it too.
"""
import argparse, json, os, pathlib, shutil, statistics, subprocess, sys, tempfile, time

from alternate import BINARY, append, append_option, check_binary, cpu, regard_version

CT2 = """
import json, resource, sys, time
folder, tokens, out, precision, beam, penalty, threads, patience = sys.argv[1:]
start = time.perf_counter()
import ctranslate2, transformers
model = ctranslate2.Translator(folder, "cpu", compute_type=precision, inter_threads=int(threads), intra_threads=1)
tokenizer = transformers.AutoTokenizer.from_pretrained(tokens)
lines = [line.rstrip("\\n") for line in sys.stdin]
ids = [tokenizer(line)["input_ids"] for line in lines]
if ids and ids[0][-1] != tokenizer.eos_token_id:
    ids = [i + [tokenizer.eos_token_id] for i in ids]
pieces = [tokenizer.convert_ids_to_tokens(i) for i in ids]
found = model.translate_batch(pieces, beam_size=int(beam), length_penalty=float(penalty), max_batch_size=32, max_decoding_length=256,
    patience=float(patience))
with open(out, "w") as file:
    for result in found:
        file.write(tokenizer.decode(tokenizer.convert_tokens_to_ids(result.hypotheses[0]), skip_special_tokens=True).strip() + "\\n")
count = sum(len(r.hypotheses[0]) for r in found)
print(json.dumps({"seconds": time.perf_counter() - start, "tokens": count, "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}))
"""

SCORE = """
import sys
folder, tokens, precision, penalty = sys.argv[1:]
import ctranslate2, transformers
model = ctranslate2.Translator(folder, "cpu", compute_type=precision)
tokenizer = transformers.AutoTokenizer.from_pretrained(tokens)
def pieces(line):
    ids = tokenizer(line)["input_ids"]
    return tokenizer.convert_ids_to_tokens([i for i in ids if i != tokenizer.eos_token_id])
pairs = [line.rstrip("\\n").split("\\t") for line in sys.stdin]
for result in model.score_batch([pieces(s) + [tokenizer.eos_token] for s, _ in pairs], [pieces(t) for _, t in pairs]):
    print(sum(result.log_probs) / len(result.log_probs) ** float(penalty))
"""
NAMES = {"f32": "float32", "int8": "int8"}


def bleu(file, reference):
    done = subprocess.run([BINARY, "score", "--hyp", file, "--ref", reference, "--metric", "bleu,chrf", "--json"], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return found["bleu"]["score"], found["chrf"]["score"]


def ours(model, source, out, precision, beam, threads):
    start = time.perf_counter()
    with open(source) as text, open(out, "w") as to:
        child = subprocess.Popen([BINARY, "translate", "--no-split", "--model", model, "--precision", precision, "--beam", str(beam), "--threads", str(threads)], stdin=text, stdout=to)
        _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit("regard translate failed")
    return {"seconds": time.perf_counter() - start, "peak_rss_mb": usage.ru_maxrss // 1024}


def python(script, *arguments, **more):
    done = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, **more)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout.splitlines()


def theirs(converted, model, source, out, precision, beam, penalty, threads, patience=1):
    lines = python(CT2, converted, model, out, NAMES[precision], beam, penalty, threads, patience, stdin=open(source))
    return json.loads(lines[-1])


def differences(one, other, name, lines=None):
    a, b = (pathlib.Path(f).read_text().splitlines()[:lines] for f in (one, other))
    apart = [(i, x, y) for i, (x, y) in enumerate(zip(a, b), 1) if x != y]
    print(f"{name}: {len(a) - len(apart)} of {len(a)} lines are the same ({100 - 100 * len(apart) / len(a):.2f} %)")
    return apart


def show(apart, name):
    for i, x, y in apart[:20]:
        print(f"  line {i}\n    regard {x}\n    {name} {y}")


def explain(apart, source, folder, converted, model, precision, penalty):
    """Scores both translations of each differing line with both programs."""
    pairs = [(source[i - 1], text) for i, *both in apart for text in both]
    files = [folder / "score.source", folder / "score.target"]
    for file, side in zip(files, zip(*pairs)):
        file.write_text("".join(line + "\n" for line in side))
    run = [BINARY, "translate", "--model", model, "--precision", precision, "--score-target", files[1], files[0]]
    ours = [float(line.split("\t")[0]) for line in subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()]
    peer = [float(x) for x in python(SCORE, converted, model, NAMES[precision], penalty, input="".join("\t".join(p) + "\n" for p in pairs))]
    for n, (i, x, y) in enumerate(apart):
        print(f"  line {i}")
        for who, text, at in (("Regard", x, 2 * n), ("CTranslate2", y, 2 * n + 1)):
            print(f"    found by {who}, Regard's score {ours[at]:.4f}, CTranslate2's {peer[at]:.4f}: {text}")
    apart_most = max(abs(a - b) for a, b in zip(ours, peer))
    better = sum(ours[2 * n] > ours[2 * n + 1] for n in range(len(apart)))
    print(f"  the two programs' scores of the same text are at most {apart_most:.4f} apart; ours is the better one in {better} of {len(apart)} lines")


def by_transformers(model, source, out, beam):
    import torch, transformers
    tokenizer, net = transformers.AutoTokenizer.from_pretrained(model), transformers.AutoModelForSeq2SeqLM.from_pretrained(model)
    lines = [line.rstrip("\n") for line in open(source)]
    with open(out, "w") as file, torch.no_grad():
        for start in range(0, len(lines), 50):
            ids = [tokenizer(line)["input_ids"] for line in lines[start:start + 50]]
            ids = [i if i and i[-1] == tokenizer.eos_token_id else i + [tokenizer.eos_token_id] for i in ids]
            width, pad = max(map(len, ids)), net.config.pad_token_id
            x = torch.tensor([i + [pad] * (width - len(i)) for i in ids])
            for row in net.generate(x, attention_mask=(x != pad).long(), num_beams=beam):
                file.write(tokenizer.decode(row, skip_special_tokens=True).strip() + "\n")


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("model"), a.add_argument("source"), a.add_argument("reference")
    a.add_argument("--repeat", type=int, default=10)
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--precision", default="f32", choices=["f32", "int8"])
    a.add_argument("--beam", type=int, default=4)
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--transformers", action="store_true")
    append_option(a)
    a = a.parse_args()
    check_binary()
    penalty = json.loads((pathlib.Path(a.model) / "generation_config.json").read_text()).get("length_penalty", 1.0)
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: str(pathlib.Path(folder) / name)
        converter = shutil.which("ct2-transformers-converter") or str(pathlib.Path(sys.executable).parent / "ct2-transformers-converter")
        subprocess.run([converter, "--model", a.model, "--output_dir", at("ct2")], check=True, capture_output=True)
        text, reference = pathlib.Path(a.source).read_text(), pathlib.Path(a.reference).read_text()
        pathlib.Path(at("source")).write_text(text * a.repeat), pathlib.Path(at("reference")).write_text(reference * a.repeat)
        mine, peer = [], []
        for n in range(a.rounds):
            peer.append(theirs(at("ct2"), a.model, at("source"), at("theirs"), a.precision, a.beam, penalty, a.threads))
            mine.append(ours(a.model, at("source"), at("ours"), a.precision, a.beam, a.threads))
            print(f"round {n + 1}: CTranslate2 {peer[-1]['seconds']:.1f} s, Regard {mine[-1]['seconds']:.1f} s", file=sys.stderr, flush=True)
        tokens, stored = peer[0]["tokens"], []
        for name, runs, file in (("CTranslate2", peer, at("theirs")), ("Regard", mine, at("ours"))):
            seconds = statistics.median(r["seconds"] for r in runs)
            scores = bleu(file, at("reference"))
            stored.append({"id": f"real/{name.lower()}-{a.precision}", "beam": a.beam, "seconds": round(seconds, 2), "tokens_per_s": round(tokens / seconds),
                           "peak_rss_mb": statistics.median(r["peak_rss_mb"] for r in runs), "bleu": round(scores[0], 2), "chrf": round(scores[1], 2)})
            print(f"{name} {a.precision} beam {a.beam}: {seconds:.1f} s with loading, {tokens / seconds:.0f} tokens/s, "
                  f"{statistics.median(r['peak_rss_mb'] for r in runs)} MB, BLEU {scores[0]:.2f}, chrF {scores[1]:.2f}")
        ratio = statistics.median(p["seconds"] / m["seconds"] for p, m in zip(peer, mine))
        append(a.append, stored, a.rounds, {"regard": regard_version()}, f"{cpu()}, {a.threads} threads")
        print(f"Regard is {ratio:.2f} times as fast; {cpu()}, {a.threads} threads")
        source = text.splitlines()
        apart = differences(at("ours"), at("theirs"), "CTranslate2", len(source))
        pathlib.Path(at("source")).write_text(text)
        if apart:
            explain(apart, source, pathlib.Path(folder), at("ct2"), a.model, a.precision, penalty)
            theirs(at("ct2"), a.model, at("source"), at("patient"), a.precision, a.beam, penalty, a.threads, patience=2)
            show(differences(at("ours"), at("patient"), "CTranslate2 with patience 2", len(source)), "CTranslate2")
        if a.transformers:
            ours(a.model, at("source"), at("ours"), "f32", a.beam, a.threads)
            by_transformers(a.model, at("source"), at("transformers"), a.beam)
            show(differences(at("ours"), at("transformers"), "transformers"), "transformers")


main()
