"""Errors are exceptions of the fitting kind, with messages in Python's terms."""

import pytest
import regard


def test_a_missing_model_is_named(folder):
    with pytest.raises(FileNotFoundError) as caught:
        regard.Translator(folder / "nowhere" / "model")
    assert isinstance(caught.value, regard.RegardError) and isinstance(caught.value, regard.FileError)
    assert "nowhere" in str(caught.value)


def test_a_damaged_model_is_refused(folder):
    damaged = folder / "damaged"
    damaged.mkdir()
    (damaged / "config.json").write_text("{")
    with pytest.raises(regard.FormatError, match="config.json"):
        regard.Translator(damaged)


@pytest.mark.parametrize(
    "keywords, message",
    [
        (dict(beam=0), "beam"),
        (dict(beam=-3), "beam"),
        (dict(beam=10**30), "beam"),
        (dict(length_penalty="much"), "length_penalty"),
        (dict(penalty="cubic"), "penalty"),
        (dict(temperature=0.5), "sample"),
        (dict(top_p=1.5, sample=True), "top_p"),
        (dict(nbest=0), "nbest"),
    ],
)
def test_a_wrong_value_names_its_keyword(translator, keywords, message):
    with pytest.raises(regard.ConfigError) as caught:
        translator.translate("The cat sleeps.", **keywords)
    assert isinstance(caught.value, ValueError)
    assert message in str(caught.value) and "--" not in str(caught.value) and "Usage" not in str(caught.value)


def test_an_unknown_keyword_is_a_type_error(translator):
    with pytest.raises(TypeError, match="unexpected keyword argument 'beem'; did you mean 'beam'"):
        translator.translate("The cat sleeps.", beem=3)
    # A flag of the command that means nothing here.
    with pytest.raises(TypeError, match="'json'"):
        translator.translate("The cat sleeps.", json=True)
    with pytest.raises(TypeError):
        translator.translate(3)
    with pytest.raises(TypeError):
        translator.translate(["The cat sleeps.", None])


def test_a_missing_shortlist_is_a_file_error(translator, folder):
    with pytest.raises(FileNotFoundError, match="list.txt"):
        translator.translate("The cat sleeps.", shortlist=folder / "list.txt")


def test_errors_of_other_functions(model, folder, corpus):
    with pytest.raises(ValueError, match="number format"):
        regard.Translator(model, precision="f12")
    with pytest.raises(ValueError, match="threads"):
        regard.Translator(model, threads=0)
    with pytest.raises(regard.RegardError, match="that is the model itself"):
        regard.quantize(model, model)
    with pytest.raises(ValueError, match="to"):
        regard.export(model, "nothing", folder / "nothing")
    with pytest.raises(ValueError, match="no text to train on"):
        regard.train(folder / "empty")
    with pytest.raises(regard.RegardError, match="already holds a training run"):
        regard.train(model, src=corpus.src, tgt=corpus.tgt)
    with pytest.raises(ValueError, match="no such setting"):
        regard.train(folder / "empty", src=corpus.src, tgt=corpus.tgt, set={"dropuot": 0.1})
    with pytest.raises(ValueError, match="unknown metric 'blue'"):
        regard.evaluate(model, ["a"], ["b"], metric="blue")
    with pytest.raises(ValueError, match="must be equal"):
        regard.evaluate(model, ["a"], ["b", "c"])
    with pytest.raises(ValueError, match="unknown tokenizer"):
        regard.metrics.bleu(["a"], ["b"], tokenize="14a")
    with pytest.raises(ValueError):
        regard.metrics.bleu(["a"], ["b", "c"])
    with pytest.raises(TypeError):
        regard.metrics.bleu("a", ["b"])
