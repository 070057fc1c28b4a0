#!/usr/bin/env python3
"""Writes crates/regard-core/tests/goldens/ctranslate2/: small folders of CTranslate2 and a package
as Argos distributes them, and what CTranslate2 translates with them.

The folders are converted from the models of families.py and marian.py; the package's model has the
shape of OpenNMT's. Each has golden.json: lines, and the tokens that come out with beams of 1 and 4.
tests/ctranslate2.rs reproduces them.

    pip install ctranslate2 transformers torch sentencepiece
    python tools/goldens/ct2.py
"""
import json, os, pathlib, shutil, sys, tempfile, zipfile

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import ctranslate2, numpy, sentencepiece
from ctranslate2.converters import TransformersConverter
from ctranslate2.specs import TransformerSpec
from tokenizers import Tokenizer
from families import LINES, spm

GOLDENS = pathlib.Path(__file__).resolve().parents[2] / "crates" / "regard-core" / "tests" / "goldens"
ROOT = GOLDENS / "ctranslate2"
LENGTH = 12


def translate(folder, sources, penalty, prefix=None, **options):
    """Tokens of each source, with one beam and with four."""
    translator = ctranslate2.Translator(str(folder), compute_type="default", inter_threads=1, intra_threads=1)
    found = []
    for beams in [1, 4]:
        out = translator.translate_batch(sources, target_prefix=prefix and [[prefix]] * len(sources), beam_size=beams, length_penalty=penalty,
                                         max_decoding_length=LENGTH, **options)
        found.append([one.hypotheses[0] for one in out])
    return found


def write(folder, texts, sources, penalty, found, **more):
    one, four = found
    lines = [{"text": text, "source": source, "1": a, "4": b} for text, source, a, b in zip(texts, sources, one, four)]
    value = {"length_penalty": penalty, "max_length": LENGTH, "lines": lines, **more}
    folder.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


def compact(folder):
    for file in folder.glob("*.json"):
        value = json.loads(file.read_text(encoding="utf-8"))
        file.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


def tokens_of(folder, text):
    """What the file cuts, whatever a class makes of it."""
    return Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text, add_special_tokens=False).tokens + ["</s>"]


def multilingual(name, quantization):
    folder, source = ROOT / name, GOLDENS / "families" / "nllb"
    TransformersConverter(str(source), copy_files=["tokenizer.json"]).convert(str(folder), quantization=quantization, force=True)
    sources = [["eng_Latn"] + tokens_of(source, line) for line in LINES]
    compact(folder)
    found = translate(folder, sources, 1.0, "deu_Latn")
    write(folder / "golden.json", LINES, sources, 1.0, found, source_lang="eng_Latn", target_lang="deu_Latn")


def marian(name, quantization):
    """A folder of MarianMT, whose decoder starts from a zero vector."""
    folder = ROOT / name
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(GOLDENS / "marian" / "swish-shared", copy, dirs_exist_ok=True)
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
        (pathlib.Path(copy) / "tokenizer_config.json").write_text(json.dumps(config))
        TransformersConverter(copy, copy_files=["tokenizer.json"]).convert(str(folder), quantization=quantization, force=True)
    texts = ["abc def", "hello world", "a", "the quick brown fox", "zyx 0123"]
    sources = [tokens_of(folder, text) for text in texts]
    compact(folder)
    write(folder / "golden.json", texts, sources, 1.0, translate(folder, sources, 1.0))


def argos(name):
    """A pre-norm model with separate ends, its vocabulary from SentencePiece, in a zip archive."""
    with tempfile.TemporaryDirectory() as made:
        made = pathlib.Path(made)
        package = made / "en_de"
        package.mkdir()
        file = spm(package, "unigram", 90, "sentencepiece.model")
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(file))
        words = ["<blank>", "<unk>", "<s>", "</s>"] + [pieces.id_to_piece(i) for i in range(3, pieces.get_piece_size())]
        spec = TransformerSpec.from_config((2, 1), 2, pre_norm=True)
        rng = numpy.random.default_rng(4)
        d, ff, v = 8, 12, len(words)
        normal = lambda *shape: rng.normal(0, 0.5, shape).astype(numpy.float32)

        def fill(layer, rows, cols):
            layer.weight, layer.bias = normal(rows, cols), normal(rows)

        def norm(layer):
            layer.gamma, layer.beta = 1 + normal(d), normal(d)

        for stack in [spec.encoder, spec.decoder]:
            norm(stack.layer_norm)
            embeddings = stack.embeddings[0] if isinstance(stack.embeddings, list) else stack.embeddings
            embeddings.weight = normal(v, d)
            for layer in stack.layer:
                fill(layer.self_attention.linear[0], 3 * d, d)
                fill(layer.self_attention.linear[1], d, d)
                norm(layer.self_attention.layer_norm)
                fill(layer.ffn.linear_0, ff, d)
                fill(layer.ffn.linear_1, d, ff)
                norm(layer.ffn.layer_norm)
                if stack is spec.decoder:
                    for linear, rows in zip(layer.attention.linear, [d, 2 * d, d]):
                        fill(linear, rows, d)
                    norm(layer.attention.layer_norm)
        fill(spec.decoder.projection, v, d)
        spec.decoder.projection.weight[3] *= 3
        spec.register_source_vocabulary(words)
        spec.register_target_vocabulary(words)
        spec.validate()
        spec.optimize(quantization="int8")
        (package / "model").mkdir()
        spec.save(str(package / "model"))
        compact(package / "model")
        (package / "metadata.json").write_text(json.dumps({"package_version": "1.0", "from_code": "en", "to_code": "de", "target_prefix": ""}))
        (package / "README.md").write_text("A package.\n")
        sources = [[piece if piece in words else "<unk>" for piece in pieces.encode(line, out_type=str)] for line in LINES]
        found = translate(package / "model", sources, 0.2)
        with zipfile.ZipFile(ROOT / f"{name}.argosmodel", "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(made.rglob("*")):
                if file.is_file():
                    info = zipfile.ZipInfo(str(file.relative_to(made)), (2024, 1, 1, 0, 0, 0))
                    archive.writestr(info, file.read_bytes(), compress_type=zipfile.ZIP_DEFLATED)
        write(ROOT / f"{name}.json", LINES, sources, 0.2, found)


if __name__ == "__main__":
    shutil.rmtree(ROOT, ignore_errors=True)
    ROOT.mkdir(parents=True)
    multilingual("nllb", None)
    multilingual("nllb-int8", "int8")
    multilingual("nllb-float16", "float16")
    multilingual("nllb-int16", "int16")
    marian("marian", None)
    argos("argos")
    for file in sorted(ROOT.rglob("*")):
        if file.is_file():
            print(file.relative_to(ROOT), file.stat().st_size)
