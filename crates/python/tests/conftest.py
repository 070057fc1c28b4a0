"""A small model that the tests train themselves, and what doctests may use."""

import os
import pathlib
import random
import subprocess
import sys
import types

import pytest
import regard

NOUNS = {"cat": "chat", "dog": "chien", "boy": "garçon", "king": "roi", "horse": "cheval", "bird": "canard"}
VERBS = {"sleeps": "dort", "runs": "court", "sings": "chante", "eats": "mange", "reads": "lit"}
ADJECTIVES = {"small": "petit", "good": "bon", "young": "jeune", "": ""}
SETTINGS = {
    "d_model": 64, "d_ff": 128, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0, "tokenizer.size": 400,
    "batch.max_tokens": 512, "peak": 0.005, "warmup": 40, "validation.every": "150 steps", "checkpoints.every": "150 steps",
    "drop_duplicates": False, "label_smoothing": 0.0,
}  # fmt: skip


def pairs():
    """Every sentence of a little grammar."""
    for noun, nom in NOUNS.items():
        for verb, verbe in VERBS.items():
            for adjective, adjectif in ADJECTIVES.items():
                words, mots = ["The", adjective, noun, verb], ["Le", adjectif, nom, verbe]
                yield " ".join(filter(None, words)) + ".", " ".join(filter(None, mots)) + "."


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("regard")


@pytest.fixture(scope="session")
def corpus(folder):
    """Files with the sentences, each several times."""
    lines = list(pairs()) * 10
    random.Random(1).shuffle(lines)
    found = types.SimpleNamespace(src=folder / "train.en", tgt=folder / "train.fr")
    found.src.write_text("".join(source + "\n" for source, _ in lines), encoding="utf-8")
    found.tgt.write_text("".join(target + "\n" for _, target in lines), encoding="utf-8")
    return found


@pytest.fixture(scope="session")
def events():
    """What the training of the model reported."""
    return []


@pytest.fixture(scope="session")
def model(folder, corpus, events):
    out = folder / "en-fr"
    regard.train(
        out, src=corpus.src, tgt=[corpus.tgt], preset="tiny", set=SETTINGS, steps=300, progress=events.append
    )
    return out


@pytest.fixture(scope="session")
def translator(model):
    return regard.Translator(model, threads=2)


@pytest.fixture(scope="session")
def command():
    """The installed command, run with some arguments and an input."""
    program = pathlib.Path(sys.executable).parent / ("regard.exe" if os.name == "nt" else "regard")

    def run(*arguments, text="", check=True):
        return subprocess.run(
            [program, *map(str, arguments)], input=text, capture_output=True, encoding="utf-8", check=check
        )

    return run
