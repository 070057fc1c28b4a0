#!/usr/bin/env python3
"""Writes crates/regard-core/tests/goldens/marian_nmt/cases.json: what Marian itself says with small
models of its own `.npz` format.

Weights follow from a formula (`weight` below: the name of an item and the number's place in it), so
that a test makes the same files without storing them. For each case: the options, the items' names,
shapes and scales, source ids, Marian's greedy translation, its six best of a beam of 6 with their
scores, and the encoder output and first logits of tools/marian_reference.py. Sentences whose
translations differ between f32 and f64 are left out: they depend on rounding.

    python3.11 -m venv V && V/bin/pip install numpy pymarian==1.12.42
    V/bin/python tools/goldens/marian_nmt.py [CASE…]
"""
import io, json, math, pathlib, sys, tempfile, zipfile
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import marian_reference as reference

SENTENCES, BEAM, LONGEST = 4, 6, 3.0
BITS = (1 << 64) - 1

# What every case has unless it says otherwise; the keys are Marian's.
COMMON = {
    "type": "transformer", "dim-vocabs": [40, 40], "dim-emb": 16, "transformer-heads": 2, "transformer-dim-ffn": 24,
    "transformer-decoder-dim-ffn": 0, "transformer-ffn-depth": 2, "transformer-ffn-activation": "relu", "enc-depth": 1, "dec-depth": 1,
    "transformer-decoder-autoreg": "rnn", "dec-cell": "ssru", "tied-embeddings": False, "tied-embeddings-src": False,
    "tied-embeddings-all": True, "transformer-preprocess": "", "transformer-postprocess": "dan", "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": "", "transformer-train-position-embeddings": False, "output-omit-bias": False,
    # Not about these models, but Marian asks for them.
    "enc-type": "bidirectional", "enc-cell": "gru", "enc-cell-depth": 1, "dec-cell-base-depth": 2, "dec-cell-high-depth": 1,
    "dim-rnn": 1024, "skip": False, "layer-normalization": False, "right-left": False, "input-types": [], "transformer-no-projection": False,
    "transformer-dim-aan": 2048, "transformer-aan-depth": 2, "transformer-aan-activation": "swish", "transformer-aan-nogate": False,
    "transformer-tied-layers": [], "transformer-guided-alignment-layer": "last", "version": "v1.12.42",
}
ATTENTION = {"transformer-decoder-autoreg": "self-attention", "dec-cell": "gru"}
PRE_NORM = {"transformer-preprocess": "n", "transformer-postprocess": "da", "transformer-postprocess-top": "n"}
TARGET_TIED = {"tied-embeddings-all": False, "tied-embeddings": True, "dim-vocabs": [36, 44]}

CASES = {  # name: (options, bias of the end)
    "ssru-relu": ({"enc-depth": 2, "dec-depth": 2}, 0.5),
    "ssru-gelu-separate": ({**TARGET_TIED, "transformer-ffn-activation": "gelu", "transformer-heads": 4}, 0.5),
    "ssru-untied": ({"tied-embeddings-all": False, "dim-vocabs": [36, 44], "transformer-decoder-dim-ffn": 8}, 1.5),
    "ssru-pre-norm": ({**PRE_NORM, "dec-depth": 2, "transformer-postprocess-emb": "nd"}, 1.5),
    "attention-swish": ({**ATTENTION, "transformer-ffn-activation": "swish", "dec-depth": 2}, 0.5),
    "attention-untied": ({**ATTENTION, "tied-embeddings-all": False, "tied-embeddings-src": True, "output-omit-bias": True, "transformer-heads": 1}, 0),
    "attention-gelu": ({**ATTENTION, **TARGET_TIED, "enc-depth": 3, "transformer-ffn-activation": "gelu"}, 0.25),
    "attention-pre-norm": ({**ATTENTION, **PRE_NORM, "enc-depth": 2, "dec-depth": 2}, 0.5),
}


def mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & BITS
    return x ^ (x >> 31)


def weights(name, shape, scale, center):
    """center + scale · u with u in [-1, 1): 24 bits of mix(FNV-1a of the name + place), every
    operation in f32."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = ((seed ^ byte) * 0x100000001B3) & BITS
    bits = [mix((seed + i) & BITS) >> 40 for i in range(math.prod(shape))]
    units = np.array(bits, np.float32) * np.float32(2.0**-23) - np.float32(1)
    return (np.float32(center) + np.float32(scale) * units).astype(np.float32).reshape(shape)


def items(options, end):
    """[name, shape, scale, center] of every parameter; the output bias of the end is set apart."""
    d, (source, target) = options["dim-emb"], options["dim-vocabs"]
    found = []
    add = lambda name, shape, scale, center=0.0: found.append([name, list(shape), scale, center])
    norm = lambda name: (add(f"{name}_ln_scale{suffix(name)}", [1, d], 0.25, 1.0), add(f"{name}_ln_bias{suffix(name)}", [1, d], 0.25))
    before, after = "n" in options["transformer-preprocess"], "n" in options["transformer-postprocess"]
    suffix = lambda name: "_pre" if before and not name.endswith("_top") or name.endswith("_emb") else ""

    def attention(prefix):
        for part in "qkvo":
            add(f"{prefix}_W{part}", [d, d], 0.5)
            add(f"{prefix}_b{part}", [1, d], 0.25)
        norm(f"{prefix}_Wo")

    def feed_forward(prefix, inner):
        add(f"{prefix}_W1", [d, inner], 0.5)
        add(f"{prefix}_b1", [1, inner], 0.25)
        add(f"{prefix}_W2", [inner, d], 0.5)
        add(f"{prefix}_b2", [1, d], 0.25)
        norm(f"{prefix}_ffn")

    inner = options["transformer-dim-ffn"]
    for layer in range(1, options["enc-depth"] + 1):
        attention(f"encoder_l{layer}_self")
        feed_forward(f"encoder_l{layer}_ffn", inner)
    for layer in range(1, options["dec-depth"] + 1):
        if options["transformer-decoder-autoreg"] == "rnn":
            prefix = f"decoder_l{layer}_rnn"
            add(prefix + "_W", [d, d], 0.5)
            add(prefix + "_Wf", [d, d], 0.5)
            add(prefix + "_bf", [1, d], 0.25)
            # Before the layer the norm has the layer's own name.
            norm(prefix if before else prefix + "_ffn")
        else:
            attention(f"decoder_l{layer}_self")
        attention(f"decoder_l{layer}_context")
        feed_forward(f"decoder_l{layer}_ffn", options["transformer-decoder-dim-ffn"] or inner)
    for stack in ("encoder", "decoder"):
        if "n" in options["transformer-postprocess-emb"]:
            norm(stack + "_emb")
        if "n" in options["transformer-postprocess-top"]:
            norm(stack + "_top")
    if options["tied-embeddings-all"] or options["tied-embeddings-src"]:
        add("Wemb", [target, d], 0.5)
    else:
        add("encoder_Wemb", [source, d], 0.5)
        add("decoder_Wemb", [target, d], 0.5)
    if not (options["tied-embeddings-all"] or options["tied-embeddings"]):
        add("decoder_ff_logit_out_Wt", [target, d], 0.5)
    if not options["output-omit-bias"]:
        add("decoder_ff_logit_out_b", [1, target], 0.5)
    return found


def model_yml(options):
    line = lambda key, value: f"{key}:\n" + "".join(f"  - {v}\n" for v in value) if isinstance(value, list) and value else f"{key}: {json.dumps(value)}\n"
    return "".join(line(key, options[key]) for key in sorted(options))


def write_npz(path, arrays, options):
    """As Marian writes it: stored members, the options as bytes with a NUL."""
    arrays = {**arrays, "special:model.yml": np.frombuffer(model_yml(options).encode() + b"\0", np.int8)}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.save(member, array)
            archive.writestr(zipfile.ZipInfo(name + ".npy"), member.getvalue())


def vocabulary(path, size):
    words = ["</s>", "<unk>"] + [f"w{i}" for i in range(2, size)]
    path.write_text("".join(f"{json.dumps(word)}: {i}\n" for i, word in enumerate(words)))


def marian(folder, sizes, sources, settings):
    """The n-best lists of Marian: [[ids with the end, normalized score, log-probability]]."""
    import pymarian

    for name, size in zip(("source.yml", "target.yml"), sizes):
        vocabulary(folder / name, size)
    translator = pymarian.Translator(
        f"--models {folder}/model.npz --vocabs {folder}/source.yml {folder}/target.yml --cpu-threads 1 --quiet --n-best "
        f"--max-length-factor {LONGEST} --workspace 64 --mini-batch 1 --maxi-batch 1 {settings}")
    lists = []
    for source in sources:
        answer = translator.translate([" ".join(f"w{id}" for id in source[:-1])])
        found = []
        for line in answer:
            _, text, features, score = (part.strip() for part in line.split("|||"))
            found.append([[int(word[1:]) for word in text.split()], float(score), float(features.split("=")[1])])
        lists.append(found)
    return lists


def in_f64(found, source, **search):
    reference.F32 = np.float64
    try:
        return [ids for _, ids, _ in reference.Model(found).search(source, **search)][: search["beam"]]
    finally:
        reference.F32 = np.float32


def case(name):
    changes, end = CASES[name]
    options = {**COMMON, **changes}
    listed = items(options, end)
    arrays = {item: weights(item, shape, scale, center) for item, shape, scale, center in listed}
    if "decoder_ff_logit_out_b" in arrays:
        arrays["decoder_ff_logit_out_b"][0, 0] = end
    sizes = options["dim-vocabs"]
    random = np.random.default_rng(5)
    sources = [[int(w) for w in random.integers(2, sizes[0], random.integers(3, 12))] + [0] for _ in range(6 * SENTENCES)]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write_npz(folder / "model.npz", arrays, options)
        found = reference.read_items(folder / "model.npz")
        greedy = marian(folder, sizes, sources, "--beam-size 1")
        beam = marian(folder, sizes, sources, f"--beam-size {BEAM} --normalize 1")
    model = reference.Model(found)
    kept, differing, worst = [], 0, 0.0
    for source, one, six in zip(sources, greedy, beam):
        ours = model.search(source, beam=1, factor=LONGEST), model.search(source, beam=BEAM, normalize=1.0, factor=LONGEST)[:BEAM]
        strip = lambda ids: ids[:-1] if ids[-1] == 0 else ids
        said = [one[0][0]] + [ids for ids, _, _ in six]
        here = [strip(ours[0][0][1])] + [strip(ids) for _, ids, _ in ours[1]]
        exact = [strip(i) for i in in_f64(found, source, beam=1, factor=LONGEST) + in_f64(found, source, beam=BEAM, normalize=1.0, factor=LONGEST)]
        if here != exact:
            continue
        if said != here:
            differing += 1
            continue
        worst = max([worst] + [abs(float(s) - t) for (s, _, _), (_, t, _) in zip(ours[1], six)] + [abs(float(ours[0][0][2]) - one[0][2])])
        memory = model.encode(source)
        top, _ = model.step(memory, model.start(), None, 0)
        rounded = lambda x: [round(float(v), 5) for v in x.reshape(-1)]
        kept.append({"source": source, "greedy": one[0][0], "greedy_score": one[0][2], "best": [[ids, score] for ids, score, _ in six],
                     "encoder": rounded(memory), "logits": rounded(model.logits(top))})
    agreed = len(kept)
    # Those that end of themselves, but not at once, first.
    kept.sort(key=lambda s: not 0 < len(s["greedy"]) < LONGEST * len(s["source"]))
    kept = kept[:SENTENCES]
    print(f"{name}: {agreed} sentences as Marian has them, {differing} others, scores within {worst:.1e}", file=sys.stderr)
    return {"name": name, "options": model_yml(options), "items": listed, "end_bias": end, "sentences": kept}


def main():
    to = pathlib.Path(__file__).resolve().parents[2] / "crates" / "regard-core" / "tests" / "goldens" / "marian_nmt"
    names = sys.argv[1:] or list(CASES)
    cases = [case(name) for name in names]
    if sys.argv[1:]:
        return
    to.mkdir(parents=True, exist_ok=True)
    with open(to / "cases.json", "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
