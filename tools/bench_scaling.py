#!/usr/bin/env python3
"""How time and memory grow with the length of sentences, the batch, the beam, the vocabulary, the
model and the corpus: measurements, and the exponents of power laws fitted to them.

    cargo build --release
    python3 tools/bench_scaling.py [decode] [train] [corpus] [--pairs 10000000] [--append FILE]

One row per quantity: its values, the time and the peak memory at each of them, the exponent over all
values (least squares on logarithms) and between the last two. Each point is a process of its own.
Corpora are of invented words; of each, the vocabulary and the cache are built and two steps are
trained, and then the run is resumed for one more step."""
import argparse, json, math, os, pathlib, random, subprocess, tempfile, time

from alternate import BINARY, append, append_option, check_binary, cpu, regard_version

LENGTHS = [10, 25, 50, 100, 250, 500, 1000, 2000]
VOCABULARIES = [4_000, 16_000, 64_000, 256_000]
PRESETS = ["tiny", "student", "small", "base", "big"]


def bench(*words):
    run = subprocess.run([str(BINARY), "bench", *map(str, words), "--json"], check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def decode(preset="tiny", beam=4, batch=8, tokens=25, vocabulary=10_000, sentences=None):
    """Seconds for a sentence, and the peak memory in MB."""
    # Long sentences share batches of at most 4,096 tokens.
    sentences = sentences or max(8, 32_768 // tokens // beam // 8 * 8 // batch * batch, 2 * batch)
    found = bench("translate", "--preset", preset, "--precision", "int8", "--beam", beam, "--batch", batch, "--tokens", tokens,
                  "--vocabulary", vocabulary, "--sentences", sentences, "--seconds", 1)
    return tokens / found["target_tokens_per_s"], found["peak_rss_mb"]


def train(preset="tiny", tokens=20, batch=4_000, vocabulary=10_000):
    """Seconds for a target token, and the peak memory in MB."""
    found = bench("train", "--preset", preset, "--tokens", tokens, "--sentences", max(1, batch // tokens), "--vocabulary", vocabulary,
                  "--seconds", 2)
    return 1 / found["target_tokens_per_s"], found["peak_rss_mb"]


def weights(preset):
    """The weights of a preset without those of the vocabulary, in millions."""
    d, ff, encoder, decoder = {"tiny": (128, 256, 4, 4), "student": (256, 1536, 6, 2), "small": (512, 1024, 6, 6),
                               "base": (512, 2048, 6, 6), "big": (1024, 4096, 6, 6)}[preset]
    return (encoder * (4 * d * d + 2 * d * ff) + decoder * (8 * d * d + 2 * d * ff)) / 1e6


DECODE = {
    "tokens of a sentence": (LENGTHS, lambda x: decode(tokens=x), "1 (layers) to 2 (attention)"),
    "sentences of a batch": ([2, 4, 8, 16, 32, 64, 128], lambda x: decode(batch=x, sentences=256), "0; below 0 while weights are read for few rows"),
    "beam": ([1, 2, 4, 8, 16, 32], lambda x: decode(beam=x), "1 (decoder), 0 (encoder)"),
    "words of the vocabulary": (VOCABULARIES, lambda x: decode(vocabulary=x), "1 (output layer), 0 (layers)"),
    "weights in the layers, million": (PRESETS, lambda x: decode(preset=x, batch=32), "1, and 0 for the vocabulary"),
}
TRAIN = {
    "tokens of a sentence": (LENGTHS, lambda x: train(tokens=x), "0 (layers) to 1 (attention)"),
    "tokens of a batch": ([500, 1_000, 2_000, 4_000, 8_000, 16_000], lambda x: train(batch=x), "0; below 0 while Adam's share falls"),
    "words of the vocabulary": (VOCABULARIES, lambda x: train(vocabulary=x), "1 (output layer), 0 (layers)"),
    "weights in the layers, million": (["tiny", "small", "base"], lambda x: train(preset=x, batch=2_048), "1, and 0 for the vocabulary"),
}


def write_corpus(folder, pairs):
    """A synthetic corpus: both sides join two of 20,000 half sentences of invented words."""
    rng = random.Random(1)
    words = ["".join(rng.choice("bdfgklmnprst") + rng.choice("aeiou") for _ in range(rng.randint(1, 4))) for _ in range(50_000)]
    common = [min(int(rng.paretovariate(0.7)) - 1, len(words) - 1) for _ in range(400_000)]
    halves = [" ".join(words[rng.choice(common)] for _ in range(rng.randint(3, 10))) for _ in range(20_000)]
    with open(folder / "c.en", "w") as source, open(folder / "c.de", "w") as target:
        for _ in range(pairs):
            a, b = int(rng.random() * 20_000), int(rng.random() * 20_000)
            source.write(f"{halves[a]} {halves[b]}\n")
            target.write(f"{halves[b]} {halves[a]}\n")


def timed(command, folder):
    """Wall seconds and peak memory in MB of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def corpus(pairs):
    """Time and memory of building vocabulary and cache and of two steps, and of resuming."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write_corpus(folder, pairs)
        (folder / "v.en").write_text("bado\n" * 10)
        (folder / "v.de").write_text("bado\n" * 10)
        command = [str(BINARY), "train", "--preset", "tiny", "--src", "c.en", "--tgt", "c.de", "--valid-src", "v.en", "--valid-tgt", "v.de",
                   "--set", "tokenizer.size=8000", "--out", "model"]
        first = timed([*command, "--steps", "2"], folder)
        again = timed([*command, "--steps", "3", "--resume"], folder)
        return first, again


def exponent(points):
    """The exponent of the power law that fits best."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mx, my = (sum(values) / len(logs) for values in zip(*logs))
    return sum((x - mx) * (y - my) for x, y in logs) / sum((x - mx) ** 2 for x, _ in logs)


def figure(x):
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def row(name, xs, times, unit, memory, theory):
    scaled = {"s": 1, "ms": 1e3, "µs": 1e6}[unit]
    last = exponent(list(zip(xs, times))[-2:])
    cells = [name, ", ".join(figure(x) for x in xs), f"{', '.join(figure(t * scaled) for t in times)} {unit}", f"{exponent(list(zip(xs, times))):.2f}", f"{last:.2f}",
             ", ".join(figure(m) for m in memory), f"{exponent(list(zip(xs, memory))):.2f}", theory]
    print(" | ".join(cells), flush=True)
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["decode", "train", "corpus"])
    parser.add_argument("--pairs", type=int, default=10_000_000, help="size of the largest corpus")
    append_option(parser)
    options = parser.parse_args()
    check_binary()
    if unknown := set(options.what) - {"decode", "train", "corpus"}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are decode, train and corpus")
    if options.pairs < 100_000:
        parser.error("--pairs: at least 100,000 are needed for two corpora")
    stored = []
    columns = ["quantity", "values", "time", "exponent", "exponent at the end", "memory, MB", "exponent of memory", "in theory"]
    for kind, quantities, unit in [("decode", DECODE, "ms"), ("train", TRAIN, "µs")]:
        if kind not in options.what:
            continue
        rows = []
        for name, (values, measure, theory) in quantities.items():
            times, memory = zip(*(measure(value) for value in values))
            rows.append(row(name, [weights(x) if isinstance(x, str) else x for x in values], times, unit, memory, theory))
        stored.append({"id": f"scaling/{kind}", "columns": columns, "rows": rows})
    if "corpus" in options.what:
        sizes = [10**n for n in range(4, len(str(options.pairs)))]
        first, again = zip(*(corpus(size) for size in sizes))
        rows = [row(name, sizes, *(list(zip(*runs))[:1]), "s", list(zip(*runs))[1], theory)
                for name, runs, theory in [("vocabulary, cache, two steps", first, "1 for the text, 0 for the vocabulary and the steps"),
                                           ("resuming for a step", again, "1 (the files are compared with the cache)")]]
        stored.append({"id": "scaling/corpus", "columns": columns, "rows": rows})
    append(options.append, stored, 1, {"regard": regard_version()}, cpu())


main()
