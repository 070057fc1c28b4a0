#!/usr/bin/env python3
"""Speed and memory of Regard against CTranslate2 on the shapes of NLLB-200 600M and M2M100 418M:
int8, random weights, the same folder.

    cargo build --release
    pip install ctranslate2 numpy
    python tools/bench_families.py --work DIR [SHAPE…] [--rounds 3] [--threads 2] [--sentences 64] [--append FILE]

Folders are created once, in DIR. Each round runs every case of either engine in its own process:
beams 4 and 1, batches of 32 and single sentences, sentences of 10 to 29 tokens, exactly 25 output
tokens. The peer runs with the better of its two threading modes. Prints one JSON line per case:
medians, the median of the ratios, the time and peak memory of loading, and the size of the file.
"""
import argparse, itertools, json, pathlib, resource, statistics, subprocess, sys, time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from alternate import BINARY, append, append_option, check_binary, cpu, regard_version, run

# width, heads, layers of each stack, feed-forward width, vocabulary
SHAPES = {"nllb-200-600m": (1024, 16, 12, 4096, 256_206), "m2m100-418m": (1024, 16, 12, 4096, 128_112)}
CASES = [(4, 32), (1, 32), (4, 1), (1, 1)]
LANGUAGES = ["eng_Latn", "deu_Latn", "fra_Latn", "por_Latn"]


def make(shape, folder):
    """Creates a converted folder in int8. Every matrix differs from the others, because CTranslate2 stores
    and holds equal ones once."""
    import numpy as np
    from ctranslate2.specs import common_spec, transformer_spec
    d, heads, layers, ff, words = SHAPES[shape]
    rng = np.random.default_rng(0)
    spec = transformer_spec.TransformerSpec.from_config(layers, heads, pre_norm=True, activation=common_spec.Activation.RELU)
    made, number = {}, itertools.count()

    def matrix(rows, columns):
        if (rows, columns) not in made:
            made[rows, columns] = (rng.standard_normal((rows, columns), dtype=np.float32) / np.sqrt(columns)).astype(np.float32)
        return np.roll(made[rows, columns], next(number))

    def linear(layer, rows, columns):
        layer.weight, layer.bias = matrix(rows, columns), np.zeros(rows, np.float32)

    def norm(layer):
        layer.gamma, layer.beta = np.ones(d, np.float32), np.zeros(d, np.float32)

    table = (rng.standard_normal((words, d), dtype=np.float32) * d ** -0.5).astype(np.float32)
    angle = np.arange(2, 1026)[:, None] * 10000 ** (-np.arange(d // 2)[None] / (d // 2 - 1))
    positions = np.concatenate([np.sin(angle), np.cos(angle)], 1).astype(np.float32)
    for stack in (spec.encoder, spec.decoder):
        embeddings = stack.embeddings[0] if isinstance(stack.embeddings, list) else stack.embeddings
        embeddings.weight, stack.scale_embeddings, stack.position_encodings.encodings = table, True, positions
        norm(stack.layer_norm)
        for layer in stack.layer:
            linear(layer.self_attention.linear[0], 3 * d, d)
            linear(layer.self_attention.linear[1], d, d)
            norm(layer.self_attention.layer_norm)
            if hasattr(layer, "attention"):
                for i, rows in enumerate([d, 2 * d, d]):
                    linear(layer.attention.linear[i], rows, d)
                norm(layer.attention.layer_norm)
            linear(layer.ffn.linear_0, ff, d)
            linear(layer.ffn.linear_1, d, ff)
            norm(layer.ffn.layer_norm)
    spec.decoder.projection.weight = table
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *LANGUAGES]
    pieces += [f"w{i}" for i in range(words - len(pieces))]
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.decoder_start_token = "</s>"
    spec.config.add_source_eos = False
    spec.validate()
    spec.optimize(quantization="int8")
    folder.mkdir(parents=True)
    spec.save(str(folder))
    special = [{"id": i, "content": p, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for i, p in enumerate(pieces[:4])]
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "vocab": {p: i for i, p in enumerate(pieces)}, "unk_token": "<unk>"}}))


def peer(folder, beam, batch, threads, sentences):
    """One run of CTranslate2, in this process."""
    import ctranslate2, random
    rng = random.Random(1)
    sources = [[f"w{rng.randrange(100_000)}" for _ in range(rng.randrange(10, 30))] for _ in range(sentences)]
    best, loading = None, None
    for inter, intra in [(1, threads)] if batch == 1 else [(1, threads), (threads, 1)]:
        start = time.perf_counter()
        translator = ctranslate2.Translator(folder, "cpu", compute_type="int8", inter_threads=inter, intra_threads=intra)
        if loading is None:
            loading = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        go = lambda s: translator.translate_batch(s, beam_size=beam, max_batch_size=batch, min_decoding_length=25, max_decoding_length=25)
        go(sources[: min(8, len(sources))])
        start = time.perf_counter()
        out = [go([s])[0] for s in sources] if batch == 1 else go(sources)
        rate = sum(len(r.hypotheses[0]) for r in out) / (time.perf_counter() - start)
        best = max(best or 0, rate)
        if inter == 1:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"version": ctranslate2.__version__, "target_tokens_per_s": round(best, 1), "peak_rss_mb": peak, "load_s": round(loading[0], 3), "load_peak_mb": loading[1]}))


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("shapes", nargs="*", default=list(SHAPES), metavar="SHAPE")
    a.add_argument("--work", required=True, type=pathlib.Path)
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--sentences", type=int, default=64)
    a.add_argument("--cases", default=",".join(f"{beam}x{batch}" for beam, batch in CASES), help="BEAMxBATCH,…")
    a.add_argument("--make", action="store_true", help="make the folders and nothing else")
    append_option(a)
    a.add_argument("--peer", nargs=3, help=argparse.SUPPRESS)
    a = a.parse_args()
    if a.peer:
        folder, beam, batch = a.peer
        return peer(folder, int(beam), int(batch), a.threads, a.sentences)
    for shape in a.shapes:
        if not (a.work / shape).exists():
            subprocess.run([sys.executable, "-c", f"import sys, pathlib; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r}); import bench_families as b; b.make({shape!r}, pathlib.Path({str(a.work / shape)!r}))"], check=True)
    if a.make:
        return
    check_binary()
    for shape in a.shapes:
        folder = a.work / shape
        for beam, batch in [tuple(map(int, case.split("x"))) for case in a.cases.split(",")]:
            count = max(1, a.sentences // 8) if batch == 1 else a.sentences
            theirs, mine = [], []
            for n in range(a.rounds):
                common = ["--threads", str(a.threads), "--sentences", str(count)]
                theirs.append(run([sys.executable, __file__, "--work", a.work, *common, "--peer", folder, str(beam), str(batch)]))
                mine.append(run([BINARY, "bench", "translate", "--model", folder, "--beam", str(beam), "--batch", str(batch), *common, "--json"]))
                for line in (theirs[-1], mine[-1]):
                    print(f"round {n + 1}: {json.dumps(line)}", file=sys.stderr, flush=True)
            middle = lambda runs, field: statistics.median(r[field] for r in runs)
            fields = ["target_tokens_per_s", "peak_rss_mb", "load_s", "load_peak_mb"]
            row = {
                "shape": shape, "beam": beam, "batch": batch, "speed_ratio": round(statistics.median(m["target_tokens_per_s"] / t["target_tokens_per_s"] for m, t in zip(mine, theirs)), 2),
                **{f"ctranslate2_{f}": middle(theirs, f) for f in fields}, **{f"regard_{f}": middle(mine, f) for f in fields},
                "file_mb": (folder / "model.bin").stat().st_size >> 20}
            machine, peer_version = f"{cpu()}, {a.threads} threads, {mine[0]['isa']}", theirs[0]["version"]
            append(a.append, [row], a.rounds, {"CTranslate2": peer_version, "regard": regard_version()}, machine)
            print(json.dumps(row | {"machine": f"{machine}, CTranslate2 {peer_version}, {a.rounds} rounds"}), flush=True)


if __name__ == "__main__":
    main()
