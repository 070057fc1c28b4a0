#!/usr/bin/env python3
"""A plain NumPy implementation of Marian's transformer, which reads Marian and Firefox (Bergamot)
model files.

    pip install numpy sentencepiece
    python tools/marian_reference.py FOLDER_OR_MODEL < text            one translation per line
    python tools/marian_reference.py FOLDER --json < text              ids, encoder output, logits of the first step
    python tools/marian_reference.py MODEL.npz --items                 names, shapes and types of the items

It processes one sentence at a time in f32 and is meant to be read alongside
crates/regard-core/src/formats/marian_nmt/mod.rs, which describes the same in words. `--integers`
multiplies 8-bit matrices with quantized inputs, in the order of operations of the browsers' engine;
`--shortlist` uses the folder's lex*.bin like that engine; `--beam`, `--normalize` and `--nbest` are
Marian's.
"""
import argparse, gzip, io, json, math, os, struct, sys, zipfile
import numpy as np

TYPES = {0x404: np.float32, 0x402: np.float16, 0x408: np.float64, 0x101: np.int8, 0x104: np.int32, 0x204: np.uint32}
INTGEMM8 = (0x4101, 0x10001)  # the type's number in browsermt/marian-dev and in marian-nmt/marian-dev
F32 = np.float32


class Quantized:
    """A matrix of 8-bit integers [out, in] (an embedding: [words, d]): weight ≈ integer /
    multiplier."""

    def __init__(self, integers, multiplier):
        self.integers, self.multiplier = integers, F32(multiplier)
        self.shape = integers.shape

    def floats(self):
        return self.integers.astype(F32) * (F32(1) / self.multiplier)


def read_bytes(path):
    data = open(path, "rb").read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def read_bin(data):
    """The items of a .bin file by name; intgemm8 items as Quantized."""
    version, count = struct.unpack_from("<QQ", data, 0)
    assert version == 1, f"version {version}"
    headers = [struct.unpack_from("<4Q", data, 16 + 32 * i) for i in range(count)]
    at = 16 + 32 * count
    names, shapes, items = [], [], {}
    for length, _, _, _ in headers:
        names.append(data[at : at + length - 1].decode())
        at += length
    for _, _, dimensions, _ in headers:
        shapes.append(struct.unpack_from(f"<{dimensions}i", data, at))
        at += 4 * dimensions
    at += 8 + struct.unpack_from("<Q", data, at)[0]
    for (_, kind, _, size), name, shape in zip(headers, names, shapes):
        count = int(np.prod(shape))
        if kind in INTGEMM8:
            integers = np.frombuffer(data, np.int8, count, at)
            # The file has the transpose of its declared shape, except for embeddings.
            rows = shape if "Wemb" in name else shape[::-1]
            items[name] = Quantized(integers.reshape(rows), struct.unpack_from("<f", data, at + count)[0])
        elif kind in TYPES:
            items[name] = np.frombuffer(data, TYPES[kind], count, at).reshape(shape)
        else:
            raise ValueError(f"{name} has the type {kind:#x}")
        at += size
    return items


def read_npz(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name))) for name in archive.namelist()}


def read_items(path):
    data = read_bytes(path)
    return read_npz(data) if data[:2] == b"PK" else read_bin(data)


def read_options(items):
    """special:model.yml: `key: value` and lists of `  - value`."""
    options, key = {}, None
    for line in items["special:model.yml"].astype(np.uint8).tobytes().rstrip(b"\0").decode().splitlines():
        if line.lstrip().startswith("- "):
            options[key].append(scalar(line.split("-", 1)[1].strip()))
        elif line.strip() and line.strip() != "[]":
            key, value = line.split(":", 1)
            options[key] = scalar(value.strip()) if value.strip() else []
    return options


def scalar(text):
    if text in ("true", "false"):
        return text == "true"
    if text == "[]":
        return []
    if text.lstrip("-").isdigit():
        return int(text)
    return text.strip("\"'")


def sigmoid(x):
    return F32(1) / (F32(1) + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


erf = np.vectorize(math.erf, otypes=[np.float64])
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, F32(0)),
    "swish": lambda x: x * sigmoid(x),
    # Since version 1.9 or so; before, and in browsermt/marian-dev, x · sigmoid(1.702 x).
    "gelu": lambda x: x * F32(0.5) * (F32(1) + erf(x / np.sqrt(2)).astype(F32)),
}


class Model:
    def __init__(self, items, integers=False):
        self.items, self.options, self.integers = items, read_options(items), integers
        self.d, self.heads = self.options["dim-emb"], self.options["transformer-heads"]
        self.ssru = self.options.get("transformer-decoder-autoreg", "self-attention") == "rnn"
        self.pre = self.options.get("transformer-preprocess", "")
        self.post = self.options.get("transformer-postprocess", "dan")
        self.top = self.options.get("transformer-postprocess-top", "")
        self.embedded = self.options.get("transformer-postprocess-emb", "d")
        source = next(name for name in ("encoder_Wemb", "Wemb") if name in items)
        target = next(name for name in ("decoder_Wemb", "Wemb") if name in items)
        self.source, self.target = self.floats(source), self.floats(target)
        # The output matrix [words, d]: a separate matrix, or the target embeddings.
        self.output_name = next((n for n in ("decoder_ff_logit_out_Wt", "decoder_ff_logit_out_W") if n in items), target)
        output = self.floats(self.output_name)
        self.output = output.T if self.output_name.endswith("_W") else output

    def floats(self, name):
        item = self.items[name]
        if isinstance(item, Quantized):
            # Transpose back to [in, out], unless the file is not transposed.
            return item.floats() if "Wemb" in name else item.floats().T
        return item.astype(F32)

    def affine(self, x, weights, bias=None):
        """x [n, in] · W [in, out] + b [1, out]"""
        item = self.items[weights]
        bias = None if bias is None else self.items[bias].astype(F32).reshape(-1)
        if self.integers and isinstance(item, Quantized):
            return self.integer_product(x, item, bias, weights)
        product = x @ self.floats(weights)
        return product if bias is None else product + bias

    def integer_product(self, x, item, bias, name):
        """The same with integers [out, in]. Bergamot shifts the inputs by 127 to be unsigned,
        and subtracts that from the bias in f32. The order of these operations matters: a value
        that rounds differently changes an integer of the next matmul, and soon all of them. The
        sums are exact on CPUs with VNNI; there is no FMA."""
        alpha = self.items.get(name + "_QuantMultA")
        alpha = alpha.floats() if isinstance(alpha, Quantized) else alpha
        alpha = F32(alpha.reshape(-1)[0]) if alpha is not None else F32(127) / np.abs(x).max()
        inputs = np.clip(np.rint(x * alpha), -127, 127) + 127
        weights = item.integers.astype(np.float64)
        shift = weights.sum(-1).astype(F32) * (-(F32(127) / alpha * (F32(127) / item.multiplier)) / F32(127))
        shift = shift if bias is None else shift + bias
        return (inputs @ weights.T).astype(F32) * (F32(1) / (alpha * item.multiplier)) + shift

    def norm(self, x, prefix, suffix=""):
        scale, bias = (self.items[f"{prefix}_ln_{part}{suffix}"].astype(F32).reshape(-1) for part in ("scale", "bias"))
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) / np.sqrt(variance + F32(1e-6)) * scale + bias

    def before(self, x, prefix):
        for op in self.pre:
            x = self.norm(x, prefix, "_pre") if op == "n" else x
        return x

    def after(self, x, residual, prefix, ops):
        for op in ops:
            if op == "a":
                x = x + residual
            elif op == "n":
                x = self.norm(x, prefix)
        return x

    def embed(self, matrix, ids, start):
        """Rows [n, d] for ids at the positions from start on; None is the decoder's first input,
        a zero vector."""
        rows = np.stack([np.zeros(self.d, F32) if id is None else matrix[id] for id in ids])
        positions = np.arange(start, start + len(ids))
        if "Wpos" in self.items:
            table = self.floats("Wpos")
            return rows + table[np.minimum(positions, len(table) - 1)]
        half = self.d // 2
        step = np.log(F32(10000)) / (F32(half) - F32(1))
        angles = positions[:, None].astype(F32) * np.exp(np.arange(half, dtype=F32) * -step)[None, :]
        return F32(np.sqrt(F32(self.d))) * rows + np.concatenate([np.sin(angles), np.cos(angles)], 1)

    def emb_ops(self, x, prefix):
        for op in self.embedded:
            x = self.norm(x, prefix, "_pre") if op == "n" else x
        return x

    def attention(self, queries, keys, values):
        """[n, d], [m, d], [m, d] -> [n, d]"""
        split = lambda x: x.reshape(len(x), self.heads, -1).transpose(1, 0, 2)
        q, k, v = split(queries), split(keys), split(values)
        scores = q @ k.transpose(0, 2, 1) * F32(1 / np.sqrt(q.shape[-1]))
        return (softmax(scores) @ v).transpose(1, 0, 2).reshape(len(queries), self.d)

    def attend(self, x, memory, prefix):
        """An attention sub-layer. `memory` None is self-attention of all rows of x."""
        inner = self.before(x, prefix + "_Wo")
        memory = inner if memory is None else memory
        q = self.affine(inner, prefix + "_Wq", prefix + "_bq")
        k = self.affine(memory, prefix + "_Wk", prefix + "_bk")
        v = self.affine(memory, prefix + "_Wv", prefix + "_bv")
        y = self.affine(self.attention(q, k, v), prefix + "_Wo", prefix + "_bo")
        return self.after(y, x, prefix + "_Wo", self.post)

    def feed_forward(self, x, prefix):
        y = self.before(x, prefix + "_ffn")
        y = ACTIVATIONS[self.options["transformer-ffn-activation"]](self.affine(y, prefix + "_W1", prefix + "_b1"))
        y = self.affine(y, prefix + "_W2", prefix + "_b2")
        return self.after(y, x, prefix + "_ffn", self.post)

    def encode(self, ids):
        """[n, d] for n ids, the last of which is the end token."""
        bottom = self.embed(self.source, ids, 0)
        x = self.emb_ops(bottom, "encoder_emb")
        for layer in range(1, self.options["enc-depth"] + 1):
            x = self.attend(x, None, f"encoder_l{layer}_self")
            x = self.feed_forward(x, f"encoder_l{layer}_ffn")
        return self.after(x, bottom, "encoder_top", self.top)

    def start(self):
        """The decoder's state: for each layer the SSRU cell, or the inputs of self-attention so
        far."""
        layers = self.options["dec-depth"]
        return [np.zeros((1, self.d), F32) if self.ssru else np.zeros((0, self.d), F32) for _ in range(layers)]

    def recurrent(self, x, cell, prefix):
        inner = self.before(x, prefix)
        forget = sigmoid(self.affine(inner, prefix + "_Wf", prefix + "_bf"))
        cell = forget * cell + (F32(1) - forget) * self.affine(inner, prefix + "_W")
        return self.after(np.maximum(cell, F32(0)), x, prefix + "_ffn", self.post), cell

    def step(self, memory, state, previous, position):
        """The output of the decoder [1, d] after one more input, and the new state."""
        bottom = self.embed(self.target, [previous], position)
        x, new = self.emb_ops(bottom, "decoder_emb"), []
        for layer in range(1, self.options["dec-depth"] + 1):
            if self.ssru:
                x, kept = self.recurrent(x, state[layer - 1], f"decoder_l{layer}_rnn")
            else:
                kept = np.concatenate([state[layer - 1], x])
                # With preprocess n, Marian normalizes keys and values only in the first step, where
                # they are the input itself.
                x = self.attend(x, None if position == 0 else kept, f"decoder_l{layer}_self")
            new.append(kept)
            x = self.attend(x, memory, f"decoder_l{layer}_context")
            x = self.feed_forward(x, f"decoder_l{layer}_ffn")
        return self.after(x, bottom, "decoder_top", self.top), new

    def logits(self, x, words=None):
        """The logits [1, v] of the given words, or of all."""
        words = np.arange(len(self.output)) if words is None else words
        bias = self.items.get("decoder_ff_logit_out_b")
        bias = None if bias is None else bias.astype(F32).reshape(-1)[words]
        item = self.items[self.output_name]
        if self.integers and isinstance(item, Quantized):
            picked = Quantized(item.integers[words], item.multiplier)
            name = "none" if "none_QuantMultA" in self.items else self.output_name
            return self.integer_product(x, picked, bias, name)
        y = x @ self.output[words].T
        return y if bias is None else y + bias

    def search(self, source, beam=1, normalize=0.0, factor=3.0, words=None, end=0, unknown=1):
        """Marian's beam search: finished hypotheses as (score, ids with the end, sum of
        log-probabilities), best first."""
        memory = self.encode(source)
        words = np.arange(len(self.output)) if words is None else np.asarray(words)
        banned = np.flatnonzero(words == unknown)
        live, done, size = [(F32(0), [], self.start())], [], beam
        length = 1  # Marian's history counts the start
        while live:
            rows, states = [], []
            for score, ids, state in live:
                top, new = self.step(memory, state, ids[-1] if ids else None, len(ids))
                row = score + log_softmax(self.logits(top, words))[0]
                row[banned] = -np.inf
                rows.append(row)
                states.append(new)
            rows = np.stack(rows)
            best = np.argsort(-rows.reshape(-1), kind="stable")[:size]
            full = length >= factor * len(source)
            survivors = []
            for key in best:
                hypothesis, column = divmod(int(key), len(words))
                score, ids = rows[hypothesis, column], live[hypothesis][1] + [int(words[column])]
                if ids[-1] == end or full:
                    done.append((score / F32(len(ids)) ** F32(normalize), ids, score))
                else:
                    survivors.append((score, ids, states[hypothesis]))
            live, size, length = survivors, len(survivors), length + 1
        return sorted(done, key=lambda d: -d[0])


def read_shortlist(path):
    data = read_bytes(path)
    magic, _, first, _, offsets, ids = struct.unpack_from("<6Q", data, 0)
    assert magic == 0xF11A48D5013417F5
    at = 48 + 8 * offsets
    return first, np.frombuffer(data, np.uint64, offsets, 48).astype(int), np.frombuffer(data, np.uint32, ids, at)


def shortlisted(shortlist, source, words, joint):
    """The target words that Bergamot allows for the source ids of a batch: with a joint
    vocabulary, including these ids."""
    first, offsets, ids = shortlist
    chosen = np.zeros(words, bool)
    chosen[:first] = True
    for id in source:
        chosen[ids[offsets[id] : offsets[id + 1]]] = True
        if joint:
            chosen[id] = True
    for word in range(first, words):
        if chosen.sum() % 8 == 0:
            break
        chosen[word] = True
    return np.flatnonzero(chosen)


def find(folder, *starts_and_ends):
    for start, end in starts_and_ends:
        for name in sorted(os.listdir(folder)):
            if name.startswith(start) and name.removesuffix(".gz").endswith(end):
                return os.path.join(folder, name)


def processor(path):
    import sentencepiece

    return sentencepiece.SentencePieceProcessor(model_proto=read_bytes(path))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("model", help="a folder, or a .bin or .npz file with vocabularies beside it")
    p.add_argument("--items", action="store_true", help="list the items and stop")
    p.add_argument("--json", action="store_true", help="print ids, encoder output and first logits")
    p.add_argument("--integers", action="store_true", help="quantize the inputs of 8-bit products")
    p.add_argument("--shortlist", action="store_true", help="use the folder's lex*.bin")
    p.add_argument("--beam", type=int, default=1)
    p.add_argument("--nbest", type=int, default=0)
    p.add_argument("--normalize", type=float, default=1.0)
    p.add_argument("--factor", type=float, default=2.5, help="longest translation per source token")
    a = p.parse_args()
    folder = a.model if os.path.isdir(a.model) else os.path.dirname(a.model) or "."
    path = a.model if not os.path.isdir(a.model) else find(folder, ("model", ".bin"), ("model", ".npz"))
    items = read_items(path)
    if a.items:
        for name, item in items.items():
            print(name, list(item.shape), f"x {item.multiplier}" if isinstance(item, Quantized) else item.dtype)
        return
    model = Model(items, a.integers)
    vocabularies = [find(folder, (side, ".spm"), ("vocab", ".spm")) for side in ("srcvocab", "trgvocab")]
    source, target = (processor(vocabulary) for vocabulary in vocabularies)
    joint = vocabularies[0] == vocabularies[1]
    shortlist = read_shortlist(find(folder, ("lex", ".bin"))) if a.shortlist else None
    for line in sys.stdin:
        ids = source.encode(line.rstrip("\n")) + [source.eos_id()]
        words = shortlisted(shortlist, ids, len(model.output), joint) if shortlist else None
        found = model.search(ids, a.beam, a.normalize, a.factor, words, target.eos_id(), target.unk_id())
        text = lambda ids: target.decode([id for id in ids if id != target.eos_id()])
        if a.json:
            memory = model.encode(ids)
            top, _ = model.step(memory, model.start(), None, 0)
            print(json.dumps({"source": ids, "target": found[0][1], "text": text(found[0][1]), "score": float(found[0][0]),
                              "encoder": memory.tolist(), "logits": model.logits(top)[0].tolist()}, ensure_ascii=False))
        elif a.nbest:
            for score, ids, total in found[: a.nbest]:
                print(f"{score:.4f}\t{total:.4f}\t{text(ids)}")
        else:
            print(text(found[0][1]), flush=True)


if __name__ == "__main__":
    main()
