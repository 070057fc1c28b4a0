"""The examples in docstrings and in the page about this package do what they say."""

import doctest
import importlib
import json
import os
import pathlib
import pkgutil
import types
import urllib.request

import numpy
import pytest
import regard

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = ["regard"] + [f"regard.{m.name}" for m in pkgutil.iter_modules(regard.__path__) if m.name not in ("__main__", "_regard")]
EXAMPLES = [
    pytest.param(example, id=example.name)
    for name in MODULES
    for example in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name))
    if example.examples
]


def run(example, names):
    said = []
    example.globs = dict(names, regard=regard, urllib=urllib, numpy=numpy, __name__="example")
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    assert runner.run(example, out=said.append).failed == 0, "".join(said)


@pytest.mark.parametrize("example", EXAMPLES)
def test_docstrings(example, folder, corpus, model, translator):
    run(example, dict(folder=folder, corpus=corpus, model=model, translator=translator))


def test_everything_public_is_documented():
    for name in regard.__all__:
        thing = getattr(regard, name)
        assert name.startswith("__") or thing.__doc__, name
        if isinstance(thing, type) and thing.__module__.startswith("regard"):
            for attribute, value in vars(thing).items():
                if isinstance(value, (types.FunctionType, property)) and not attribute.startswith("_"):
                    assert value.__doc__, f"{name}.{attribute}"
    assert len(EXAMPLES) >= 14


# Set by tools/check_python.sh: the tests run beside the sources, not in them.
DOCS = pathlib.Path(os.environ.get("REGARD_DOCS", pathlib.Path(__file__).parents[3] / "docs"))


def test_the_page(folder, corpus, model, translator, monkeypatch):
    page = DOCS / "python.md"
    if not page.exists():
        pytest.skip("no page here")
    for name, source in (("train.en", corpus.src), ("train.fr", corpus.tgt)):
        (folder / "page" / name).parent.mkdir(exist_ok=True)
        (folder / "page" / name).write_bytes(source.read_bytes())
    (folder / "page" / "en-fr").symlink_to(model)
    monkeypatch.chdir(folder / "page")
    example = doctest.DocTestParser().get_doctest(page.read_text(encoding="utf-8"), {}, "python.md", str(page), 0)
    assert len(example.examples) > 10
    run(example, {})


def test_the_notebook(folder, model, monkeypatch, capsys):
    notebook = DOCS.parent / "examples" / "attention.ipynb"
    if not notebook.exists():
        pytest.skip("no notebook here")
    pytest.importorskip("matplotlib").use("Agg")
    place = folder / "notebook"
    place.mkdir()
    (place / "quickstart-model").symlink_to(model)
    monkeypatch.chdir(place)
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    names = {"__name__": "notebook"}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    # A picture for each head, with the weights of that head.
    plots = names["plt"]
    drawn = [axis.images[0].get_array() for axis in plots.figure(1).axes]
    layers, heads, m, n = names["attention"].cross.shape
    assert len(drawn) == layers * heads and len(plots.figure(2).axes) == layers
    numpy.testing.assert_array_equal(drawn[-1], names["attention"].cross[-1, -1])
    assert f"layer {layers}:" in capsys.readouterr().out
    plots.close("all")
