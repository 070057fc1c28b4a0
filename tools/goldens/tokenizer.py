"""What Python makes of the tokenizers trained here:
crates/regard-core/tests/goldens/tokenizer_python.json.

    REGARD_WRITE_GOLDENS=1 cargo test -p regard-core --test models -- --test-threads=1 python_agrees  # tokenizer files
    pip install tokenizers transformers
    python tools/goldens/tokenizer.py

Both libraries must agree with each other on every string before anything is written.
"""

import json
import pathlib
import random
import shutil
import tempfile

from tokenizers import Tokenizer
from transformers import AutoTokenizer

GOLDENS = pathlib.Path(__file__).resolve().parents[2] / "crates" / "regard-core" / "tests" / "goldens"
CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
    "model_max_length": 512,
    "split_special_tokens": True,
    "clean_up_tokenization_spaces": False,
}
ODD = [
    "", " ", "\n", "\0", "\ufeff", "\ufeffThe dog.", "a\rb", "tab\tand\u00a0nbsp", "▁", "▁▁a ▁ b▁", "</s>", "a</s>b",
    "<s> <unk> <pad>", "<0x41>", "<0x41><0xE2><0x96><0x81>", "e\u0301", "\u0301", "a\u0301\u0323", "👩‍👩‍👧‍👦 🇩🇪 ❤️ 1️⃣",
    "我爱北京天安门。", "日本語のテキスト、カタカナー", "한국어 문장", "שלום עולם!", "مرحبا بالعالم", "می‌خواهم", "हिन्दी क्‍ष",
    "zero\u200bwidth\u2060joiner\u00ad", "\u202ertl\u202c", "dog.", "dog", "don't", "in 2016, 3,141.59€", "½ ² ﬁ Ａ ™",
    "C++ & <b>x</b>", "\U0010ffff", "\x1f\x7f\x80\x9f", "a\u2028b\u2029c", "ǅ İ ı ß ẞ", ">>de<< Hallo", "dog" * 80,
    "漢dog字2016ー", "The dog greets the baker in the garden.", "Der Bäcker grüßt den Hund am Bahnhof.",
    "the dog .", "do n't", "dog , cat", " ?", "THE DOG", "thedog2016dog.dog",
]


def odd_string(rng):
    parts = []
    for _ in range(rng.randrange(25)):
        kind = rng.randrange(8)
        if kind == 0:
            parts.append(rng.choice(ODD))
        elif kind == 1:
            parts.append(" ")
        elif kind == 2:
            parts.append(chr(rng.choice([rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)])))
        elif kind == 3:
            parts.append(chr(rng.randrange(0x300, 0x370)))
        elif kind == 4:
            parts.append(chr(rng.randrange(0x3000)))
        else:
            parts.append(rng.choice(["the", " dog", "Hund", "er", ".", "7", "ü", "s ", "\t"]))
    return "".join(parts)


def main():
    rng = random.Random(1)
    texts = ODD + [odd_string(rng) for _ in range(400)]
    golden = {"config": CONFIG}
    for name in ["bpe", "unigram"]:
        path = GOLDENS / f"tokenizer_{name}.json"
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.encode_special_tokens = True
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(path, f"{folder}/tokenizer.json")
            pathlib.Path(folder, "tokenizer_config.json").write_text(json.dumps(CONFIG))
            hugging_face = AutoTokenizer.from_pretrained(folder)
        assert (hugging_face.eos_token_id, hugging_face.unk_token_id) == (0, 1)
        assert hugging_face.pad_token_id == len(hugging_face) - 1
        cases = []
        for text in texts:
            ids = tokenizer.encode(text).ids
            decoded = tokenizer.decode(ids)
            assert hugging_face(text)["input_ids"] == ids, (text, ids, hugging_face(text))
            assert hugging_face.decode(ids, skip_special_tokens=True) == decoded, (text, decoded)
            cases.append({"text": text, "ids": ids, "decoded": decoded})
        golden[name] = cases
        jumbles = [[rng.randrange(len(hugging_face)) for _ in range(rng.randrange(20))] for _ in range(200)]
        golden[f"{name}_decoding"] = [{"ids": ids, "decoded": tokenizer.decode(ids)} for ids in jumbles]
    lines = json.dumps(golden, ensure_ascii=True, separators=(",", ":")).replace('{"text"', '\n{"text"')
    (GOLDENS / "tokenizer_python.json").write_text(lines + "\n")


if __name__ == "__main__":
    main()
