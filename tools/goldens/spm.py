"""Makes crates/regard-core/tests/goldens/sentencepiece/: small SentencePiece models, and what the
package makes of odd text with them.

    pip install sentencepiece==0.2.2 transformers
    python tools/goldens/spm.py

All text is made up here from one seed. The compiled rules of nmt_nfkc and nfkc_cf, a quarter of a
megabyte each, are kept once and compressed; a model that uses them is stored without, and tests put
the two together. Two folders are those of a MarianMT tokenizer, with what `transformers` makes of
text and ids.
"""
import gzip, io, json, os, pathlib, random, shutil, tempfile, zlib

os.environ["HF_HUB_OFFLINE"] = "1"
import sentencepiece as spm

assert spm.__version__ == "0.2.2", spm.__version__
OUT = pathlib.Path(__file__).resolve().parents[2] / "crates" / "regard-core" / "tests" / "goldens" / "sentencepiece"
RNG = random.Random(1706)

# name: (model type, rules, further options of the trainer)
MODELS = {
    "unigram-nmt": ("unigram", "nmt_nfkc", {}),
    "unigram-cf": ("unigram", "nfkc_cf", {}),
    "unigram-identity": ("unigram", "identity", {}),
    "unigram-bytes": ("unigram", "nmt_nfkc", dict(byte_fallback=True, vocab_size=480)),
    "unigram-symbols": ("unigram", "nmt_nfkc", dict(user_defined_symbols=["<sep>", "<se", "ﬁ", "Ｂ", "▁kan", "New York"])),
    "unigram-suffix": ("unigram", "nmt_nfkc", dict(treat_whitespace_as_suffix=True)),
    "unigram-spaces": ("unigram", "identity", dict(remove_extra_whitespaces=False, add_dummy_prefix=False)),
    "unigram-unused": ("unigram", "identity", {}),
    "bpe-nmt": ("bpe", "nmt_nfkc", {}),
    "bpe-cf": ("bpe", "nfkc_cf", {}),
    "bpe-identity": ("bpe", "identity", {}),
    "bpe-bytes": ("bpe", "nmt_nfkc", dict(byte_fallback=True, vocab_size=480)),
    "bpe-symbols": ("bpe", "nmt_nfkc", dict(user_defined_symbols=["<sep>", "<se", "ﬁ", "Ｂ", "▁kan", "New York"])),
    "bpe-suffix": ("bpe", "nmt_nfkc", dict(treat_whitespace_as_suffix=True)),
    "bpe-spaces": ("bpe", "identity", dict(remove_extra_whitespaces=False, control_symbols=["<x>", "é"])),
    "bpe-unused": ("bpe", "identity", {}),
}
RULES = ["nmt_nfkc", "nfkc_cf"]

LETTERS = {
    "latin": [a + b for a in "bkdntslrfgmphvw" for b in ["a", "o", "er", "in", "ä", "ou", "an"]] + ["ß", "New", "York"],
    "greek": list("αβγδεζηθ") + ["ος", "αι"],
    "cyrillic": list("абвгдежз") + ["ста", "ник"],
    "arabic": list("ابتثجحخد"),
    "han": list("山川田中人大小上下日月火水木金土"),
    "kana": list("あいうえおかきくけこアイウエオ"),
    "hangul": list("가나다라마바사아자차"),
}
ODD = [
    "", " ", "   ", "\t", "\u00a0", "\u3000", "\n", "a", " a", "a ", "  kanou   nin  ", "a\tb\nc\rd", "a\u00a0b\u2003c\u3000d",
    "▁", "▁▁", "▁kan▁nin", "kan ▁ nin▁", "a▁ b", "ＡＢＣ １２３！", "ﬁnin ﬂou ﬀ ﬃ ﬆ", "e\u0301t\u0301 n\u0303 a\u0308o\u0308", "\u0301", "a\u0301\u0323\u0308",
    "zero\u200bwidth\u200cjoin\u200der\u2060\ufeff", "\ufeffkan", "soft\u00adhyphen", "👩\u200d👩\u200d👧\u200d👦 🇩🇪 ❤\ufe0f 1\ufe0f\u20e3 👍🏽", "山川田中。日月!",
    "ابت جحخ ﷺ ﻻ", "ᄀ\u1161ᆨ 가나 \u1100\u1161\u11a8", "ㄱㄴㄷ ﾡﾢ ｶﾞ ガ", "\x00a\x01b\x02c\x7fd\x80e\x9ff", "\x0b\x0c\x1c\x1d\x1e\x1f", "½ ² ³ ™ ℃ ㎏ ① Ⅷ …",
    "İ ı ǅ ẞ ß Σ ς Ⅻ Ａ", "\ud7ff\ue000\uffff\U0010ffff\U0001f1e6", "</s><unk><s> <pad> <0x41>", "<sep> <sepa<se <s ep>x<sep><sep>", "New York New▁York ﬁ Ｂ ▁kan kan",
    "<x> é<x>é", "\u202ertl\u202c \u2066x\u2069", "क्ष हिन्दी ก็ ລາວ", "𝐀𝒷ℂ 𝟙𝟚", "Å Å Å", "……。。。，，", "a\u2028b\u2029c\x85d", "kankankankan" * 20, "山" * 30, "é" * 30 + "ê" * 9,
    "koukouninserbababander" * 9 + "☃" * 99,
]


def corpus(lines=1500):
    """Sentences of invented words in seven scripts, the first of them most."""
    scripts = list(LETTERS)
    weights = [1 / (i + 1) for i in range(200)]
    word = lambda s: "".join(RNG.choices(LETTERS[s], weights[: len(LETTERS[s])], k=RNG.choice([1, 2, 2, 3, 3, 4, 5])))
    out = []
    for _ in range(lines):
        script = RNG.choices(scripts, [40, 2, 2, 1, 1, 1, 1])[0]
        out.append((" " if script != "han" else "").join(word(script) for _ in range(RNG.randrange(2, 12))) + RNG.choice([".", "!", "?", ",", ""]))
    return out


def odd_line():
    parts = []
    for _ in range(RNG.randrange(1, 12)):
        kind = RNG.randrange(6)
        if kind == 0:
            parts.append(chr(RNG.choice([RNG.randrange(0xD800), RNG.randrange(0xE000, 0x110000)])))
        elif kind == 1:
            parts.append(chr(RNG.randrange(0x3100)))
        elif kind == 2:
            parts.append(RNG.choice([" ", "  ", "▁", "\t", "\u0301", "<sep>", "ﬁ"]))
        else:
            parts.append("".join(RNG.choices(LETTERS[RNG.choice(list(LETTERS))], k=RNG.randrange(1, 4))))
    return "".join(parts)


def train(lines, kind, rules, options):
    out = io.BytesIO()
    options = dict(vocab_size=320, character_coverage=0.995, hard_vocab_limit=False, minloglevel=2, num_threads=1, model_type=kind) | options
    if isinstance(rules, dict):
        with tempfile.TemporaryDirectory() as folder:
            table = pathlib.Path(folder) / "rules.tsv"
            code = lambda text: " ".join(f"{ord(c):X}" for c in text)
            table.write_text("".join(f"{code(a)}\t{code(b)}\n" for a, b in rules.items()))
            spm.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, normalization_rule_tsv=str(table), **options)
    else:
        spm.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, normalization_rule_name=rules, **options)
    return out.getvalue()


# Protocol buffers, as far as needed: the fields of a message as (number, kind, value).
def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def fields(data):
    at = 0

    def number():
        nonlocal at
        n = shift = 0
        while True:
            byte = data[at]
            at += 1
            n |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return n

    while at < len(data):
        tag = number()
        kind = tag & 7
        if kind == 0:
            value = number()
        else:
            length = number() if kind == 2 else {1: 8, 5: 4}[kind]
            value = data[at : at + length]
            at += length
        yield tag >> 3, kind, value


def message(parts):
    out = bytearray()
    for number, kind, value in parts:
        out += varint(number << 3 | kind)
        out += varint(value) if kind == 0 else (varint(len(value)) if kind == 2 else b"") + value
    return bytes(out)


def without_paths(model):
    """Nothing of the machine that made it stays: input and model_prefix of the trainer, the file of
    rules."""
    paths = {2: (1, 2), 3: (6,), 5: (6,)}
    return message((n, k, message(f for f in fields(v) if f[0] not in paths[n]) if n in paths else v) for n, k, v in fields(model))


def split_rules(model):
    """The model without its compiled rules, and the rules."""
    rules, out = b"", []
    for number, kind, value in fields(model):
        if number == 3:
            spec = list(fields(value))
            rules = b"".join(v for n, _, v in spec if n == 2)
            value = message(f for f in spec if f[0] != 2)
        out.append((number, kind, value))
    return without_paths(message(out)), rules


def join_rules(model, rules):
    """The second normalizer_spec adds to the first."""
    return model + message([(3, 2, message([(2, 2, rules)]))]) if rules else model


def mark_unused(model):
    """Every third piece of several characters is only there to find others."""
    out, n = [], 0
    for number, kind, value in fields(model):
        if number == 1:
            text = dict((f, v) for f, _, v in fields(value))[1].decode()
            normal = all(f != 3 for f, _, _ in fields(value))
            if normal and len(text) > 1:
                n += 1
                if n % 3 == 0:
                    value += message([(3, 0, 5)])
        out.append((number, kind, value))
    return message(out)


def every_character(processor):
    """A sum over what every character becomes: the pieces are the normalised text."""
    total = 0
    characters = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    for at in range(0, len(characters), 64):
        line = "".join("ba" + c for c in characters[at : at + 64])
        total = zlib.crc32("".join(processor.encode(line, out_type=str)).encode(), total)
    return total


def very_long():
    """A line so long that the scores of its paths leave the precision of a float, and a model with
    many near ties."""
    syllables = [a + b for a in "bcdfghklmnprstvw" for b in ["a", "e", "i", "o", "u", "an", "er", "in", "ou"]]
    weights = [1 / (i + 1) for i in range(len(syllables))]
    word = lambda: "".join(RNG.choices(syllables, weights, k=RNG.randrange(1, 7)))
    model = train([" ".join(word() for _ in range(9)) for _ in range(3000)], "unigram", "identity", dict(vocab_size=400))
    (OUT / "ties.spm").write_bytes(without_paths(model))
    state, parts = 1, []
    for _ in range(60000):
        state = (state * 1103515245 + 12345) % 2**31
        parts.append(syllables[(state >> 16) % len(syllables)])
    pieces = spm.SentencePieceProcessor(model_proto=model).encode("".join(parts), out_type=str)
    return {"count": len(pieces), "sum": zlib.crc32(" ".join(pieces).encode())}


def dump(value, depth):
    """JSON with a line for each value `depth` levels down."""
    if depth == 0 or not isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ",\n".join(f"{json.dumps(k)}: {dump(v, depth - 1)}" for k, v in value.items()) + "}"
    return "[" + ",\n".join(dump(v, depth - 1) for v in value) + "]"


def segmentation(lines):
    texts = ODD + [odd_line() for _ in range(30)] + RNG.sample(lines, 6)
    texts = [t.encode("utf-8", "surrogatepass").decode("utf-8", "replace") for t in texts]
    golden = {"texts": texts, "very_long": very_long(), "models": {}}
    for name, (kind, rules, options) in MODELS.items():
        model = train(lines, kind, rules, options)
        if name.endswith("unused"):
            model = mark_unused(model)
        small, compiled = split_rules(model)
        whole = join_rules(small, compiled)
        (OUT / f"{name}.spm").write_bytes(small)
        if rules in RULES:
            (OUT / f"{rules}.charsmap.gz").write_bytes(gzip.compress(compiled, 9, mtime=0))
        processor = spm.SentencePieceProcessor(model_proto=whole)
        original = spm.SentencePieceProcessor(model_proto=model)
        case = {"rules": rules if rules in RULES else None, "pieces": []}
        for text in texts:
            pieces = processor.encode(text, out_type=str)
            assert pieces == original.encode(text, out_type=str)
            assert not any(" " in p for p in pieces), pieces
            case["pieces"].append(" ".join(pieces))
        if name in ("unigram-nmt", "unigram-cf", "bpe-identity"):
            case["every_character"] = every_character(processor)
        golden["models"][name] = case
        print(name, len(small), processor.get_piece_size())
    (OUT / "golden.json").write_text(dump(golden, 4) + "\n")


def marian(name, lines, separate):
    """A MarianMT tokenizer's folder and what `transformers` does with it."""
    from transformers import AutoTokenizer, MarianTokenizer

    rules = {"Ａ": "A", "ﬁ": "fi", "\t": " ", "\u00a0": " ", "e\u0301": "é", "\u200b": "", "ﬀ": "ff"}
    half = len(lines) // 2
    folder = OUT / name
    folder.mkdir()
    spms = [train(lines[:half], "unigram", rules, dict(vocab_size=200)), train(lines[half:], "bpe" if separate else "unigram", rules, dict(vocab_size=200))]
    pieces = []
    for file, model in zip(["source.spm", "target.spm"], spms):
        model = without_paths(model)
        (folder / file).write_bytes(model)
        processor = spm.SentencePieceProcessor(model_proto=model)
        found = [processor.id_to_piece(i) for i in range(processor.get_piece_size()) if not processor.is_control(i) and not processor.is_unknown(i)]
        RNG.shuffle(found)
        # A published vocabulary lacks some pieces of its models.
        pieces.append(found[: len(found) * 9 // 10])

    def vocabulary(*parts):
        order = ["</s>", "<unk>", ">>de<<", ">>fra<<"] + sorted({p for part in parts for p in part})
        if separate:  # The end is not 0 in every published model.
            order = order[1:4] + order[:1] + order[4:]
        return order

    both = [vocabulary(pieces[0]), vocabulary(pieces[1])] if separate else [vocabulary(*pieces)]
    if separate:
        both = [v[: min(map(len, both))] for v in both]
    for file, order in zip(["vocab.json", "target_vocab.json"], both):
        ids = {piece: i for i, piece in enumerate(order + ["<pad>"])}
        (folder / file).write_text(json.dumps(ids, ensure_ascii=len(both) == 1, indent=2))
    config = {"source_lang": "aa", "target_lang": "bb", "tokenizer_class": "MarianTokenizer", "model_max_length": 64}
    if separate:
        config["separate_vocabs"] = True
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "config.json").write_text(json.dumps({"model_type": "marian"}))

    tokenizer = MarianTokenizer.from_pretrained(folder)
    auto = AutoTokenizer.from_pretrained(folder)
    assert type(auto) is MarianTokenizer, type(auto)
    # Regard leaves text text: there, `</s>` is not a special token, and `>>xx<<` is one only if it
    # is known.
    odd = [t for t in ODD if not any(s in t for s in ["</s>", "<unk>", "<pad>"])]
    texts = RNG.sample(lines, 10) + odd + [">>de<< " + lines[0], ">>fra<<" + lines[1], ">>de<<", " >>de<< " + lines[2], "x>>de<< y"]
    texts = [t.encode("utf-8", "surrogatepass").decode("utf-8", "replace") for t in texts]
    golden = {"source": [], "target": [], "decoded": []}
    for text in texts:
        ids = tokenizer(text)["input_ids"]
        assert ids == auto(text)["input_ids"]
        golden["source"].append({"text": text, "ids": ids})
        golden["target"].append({"text": text, "ids": tokenizer(text_target=text)["input_ids"]})
    size = len(both[-1]) + 1
    sequences = [g["ids"] for g in golden["target"]] + [[RNG.randrange(size) for _ in range(RNG.randrange(12))] for _ in range(60)]
    for ids in sequences:
        golden["decoded"].append({"ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=True)})
    (folder / "config.json").unlink()
    (folder / "golden.json").write_text(dump(golden, 2) + "\n")


def denormalised(lines):
    """A model that rewrites what it decodes."""
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "rules.tsv"
        table.write_text("22\t201D\n2E 2E 2E\t2026\n")
        model = train(lines, "unigram", "identity", dict(denormalization_rule_tsv=str(table), vocab_size=200, user_defined_symbols=['"', "."]))
    model = without_paths(model)
    (OUT / "denormalised.spm").write_bytes(model)
    processor = spm.SentencePieceProcessor(model_proto=model)
    cases = []
    for text in ['kan "nin" ou... ba.', '..... "', lines[3]]:
        pieces = processor.encode(text, out_type=str)
        cases.append({"pieces": pieces, "text": processor.decode(pieces)})
    (OUT / "denormalised.json").write_text(dump(cases, 1) + "\n")


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    lines = corpus()
    segmentation(lines)
    denormalised(lines)
    marian("marian-joint", lines, False)
    marian("marian-separate", lines, True)
    print(sum(f.stat().st_size for f in OUT.rglob("*") if f.is_file()), "bytes")


if __name__ == "__main__":
    main()
