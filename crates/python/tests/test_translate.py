"""Translations equal those of the command, options included."""

import inspect
import json
import pickle
import re

import numpy
import pytest
import regard
from conftest import pairs
from regard import _translator

LINES = [source for source, _ in pairs()][:40] + [
    "",
    "The cat sleeps. The small dog runs!  The king reads.",
    "See https://example.org/a?b=1 and {name}, 3.50 %s 🙂",
    "A word that nobody has seen: pneumonoultramicroscopic.",
    "   ",
    "x " * 300,
]


def flags(keywords):
    for name, value in keywords.items():
        yield "--" + name.replace("_", "-")
        if value is not True:
            yield str(value)


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        dict(beam=1),
        dict(beam=5, length_penalty=1.0, penalty="paper", early_stopping="never"),
        dict(max_length=4),
        dict(min_length=9, no_repeat_ngram=2, repetition_penalty=1.3),
        dict(prefix="Le petit", beam=2),
        dict(sample=True, seed=3, top_k=5, temperature=0.7, top_p=0.9),
        dict(no_split=True),
        dict(nbest=3, alignment=True),
        dict(batch=1, beam=3, nbest=2),
    ],
    ids=lambda keywords: ",".join(keywords) or "defaults",
)
def test_results_are_those_of_the_command(translator, model, command, keywords):
    printed = command("translate", "--model", model, "--json", *flags(keywords), text="\n".join(LINES) + "\n").stdout
    wanted = [json.loads(line)["translations"] for line in printed.splitlines()]
    found = translator.translate(LINES, **keywords)
    assert len(found) == len(wanted) == len(LINES)
    for line, translation, candidates in zip(LINES, found, wanted):
        if not candidates:
            assert translation == "" and translation.tokens == []
            continue
        for ours, theirs in zip([translation, *translation.alternatives], candidates):
            assert ours == theirs["text"], line
            assert ours.tokens == theirs["tokens"]
            assert ours.score == pytest.approx(theirs["score"], abs=1e-5)
            assert ours.token_scores == pytest.approx(theirs["token_scores"], abs=1e-5)
            if keywords.get("alignment"):
                assert ours.alignment == [tuple(pair) for pair in theirs["alignment"]]
            else:
                assert ours.alignment is None
        assert len(translation.alternatives) == len(candidates) - 1


# Keywords of their own.
LANGUAGES = {"source-lang", "target-lang"}


def test_every_search_flag_of_the_command_is_a_keyword(command):
    def listed(name):
        # Explanations may mention flags; those of the list begin their line.
        return set(re.findall(r"^\s+(?:-\w, )?--([a-z-]+)", command(name, "--help").stdout, re.M))

    # What all commands that translate have in common is the search, and the model.
    common = listed("translate") & listed("evaluate") & listed("look")
    wanted = {name.replace("-", "_") for name in common - {"help", "model", "threads", "precision", "out", *LANGUAGES}}
    assert wanted == set(regard.SearchOptions.__annotations__)


def test_a_string_gives_one_and_a_list_gives_a_list(translator):
    assert translator.translate("The cat sleeps.") == "Le chat dort."
    assert translator.translate(["The cat sleeps."]) == ["Le chat dort."]
    assert translator.translate([]) == []
    assert isinstance(translator.translate("The cat sleeps."), str)
    assert translator.translate("") == ""


def test_line_breaks_are_kept(translator):
    text = "The cat sleeps.\r\n\nThe dog runs. The king reads.\n"
    found = translator.translate(text, nbest=2, alignment=True)
    assert found == "Le chat dort.\r\n\nLe chien court. Le roi lit.\n"
    assert len(found.alternatives) == 1 and found.alternatives[0].count("\n") == 3
    # Words are counted through the whole text.
    assert max(target for _, target in found.alignment) == len(found.split()) - 1
    lines = [translator.translate(line) for line in ("The cat sleeps.", "The dog runs. The king reads.")]
    assert found.score == pytest.approx(sum(line.score for line in lines) / 2, abs=1e-6)
    assert found.tokens == lines[0].tokens + lines[1].tokens


def test_a_translation_survives_pickle(translator):
    found = translator.translate("The cat sleeps.", nbest=2, alignment=True)
    again = pickle.loads(pickle.dumps(found))
    assert again == found and again.alternatives == found.alternatives and again.alignment == found.alignment
    assert json.loads(json.dumps({"text": found})) == {"text": "Le chat dort."}


def test_keywords_that_are_equal_are_not_the_same(translator):
    assert translator.translate("The cat sleeps.", beam=1) == "Le chat dort."
    with pytest.raises(regard.ConfigError, match="beam"):
        translator.translate("The cat sleeps.", beam=True)
    flags = regard._flags.flags
    assert flags("f", dict(a=1, b=[1, 2]), ("a", "b")) == ["--a=1", "--b=1", "--b=2"]
    for number in range(200):
        assert flags("f", dict(a=number), ("a",)) == [f"--a={number}"]


def test_numbers_of_numpy_are_numbers(translator):
    assert translator.translate("The cat sleeps.", beam=numpy.int64(2), length_penalty=numpy.float64(1)) == "Le chat dort."


def test_a_stream_says_the_translation(translator):
    text = "The cat sleeps. The small dog runs."
    with translator.stream(text) as stream:
        assert stream.translation is None
        tokens = list(stream)
    assert len(tokens) >= 4 and all(tokens)
    assert "".join(tokens) == stream.translation == translator.translate(text, beam=1)
    for _ in range(50):  # one that is left does not hold up the next
        assert next(translator.stream(text))
    with pytest.raises(ValueError, match="beam: 4 cannot be streamed"):
        translator.stream(text, beam=4)


def test_attention_has_a_row_for_each_token(translator, model):
    found = translator.attention("The small cat sleeps.")
    layers, heads, m, n = found.cross.shape
    assert (layers, heads) == (2, 4) and found.cross.dtype == numpy.float32
    assert m == len(found.target_tokens) and n == len(found.source_tokens)
    assert found.encoder.shape == (2, 4, n, n) and found.decoder.shape == (2, 4, m, m)
    for weights in (found.cross, found.encoder, found.decoder):
        numpy.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    assert not numpy.triu(found.decoder, 1).any()  # nothing of the future
    same = translator.attention("The small cat sleeps.", translator.translate("The small cat sleeps."))
    numpy.testing.assert_array_equal(same.cross, found.cross)
    other = translator.attention("The small cat sleeps.", "Le chat.")
    assert other.cross.shape[2] == len(translator.tokenize("Le chat.", side="target")) + 1


def test_scores_are_those_of_forced_decoding(translator, model, command, folder):
    sources, targets = ["The cat sleeps.", "The dog runs."], ["Le chat dort.", "Le roi lit."]
    (folder / "given").write_text("\n".join(targets) + "\n", encoding="utf-8")
    printed = command(
        "translate", "--model", model, "--score-target", folder / "given", "--json", text="\n".join(sources) + "\n"
    ).stdout
    wanted = [json.loads(line)["translations"][0] for line in printed.splitlines()]
    for ours, theirs in zip(translator.score(sources, targets), wanted):
        assert ours == theirs["text"] and ours.score == pytest.approx(theirs["score"], abs=1e-5)
        assert ours.token_scores == pytest.approx(theirs["token_scores"], abs=1e-5)
    assert translator.score(sources[0], targets[0]).score == pytest.approx(wanted[0]["score"], abs=1e-5)
    with pytest.raises(ValueError, match="2 sources and 1 targets"):
        translator.score(sources, targets[:1])
    with pytest.raises(TypeError):
        translator.score(sources, targets[0])


def test_tokens_are_those_of_the_command(translator, model, command):
    text = "The small cat sleeps."
    assert translator.tokenize(text) == command("tokenize", "--model", model, text=text + "\n").stdout.split()
    assert translator.detokenize(translator.tokenize(text, ids=True), side="source") == text
    assert translator.tokenize([text, ""])[1] == []
    with pytest.raises(ValueError, match="neither"):
        translator.tokenize(text, side="left")


def test_an_ensemble_and_int8(model, folder, translator):
    both = regard.Translator([model, model])
    assert both.translate("The cat sleeps.") == translator.translate("The cat sleeps.")
    small = regard.Translator(model, precision="int8", threads=1)
    assert small.info()["precision"] == "int8" and small.translate("The cat sleeps.") == "Le chat dort."
    assert "int8" in repr(small)


def test_the_documented_keywords_are_those_of_the_signature():
    found = inspect.signature(_translator.Translator.translate)
    assert set(_translator._TRANSLATE) == set(regard.SearchOptions.__annotations__) | (
        set(found.parameters) - {"self", "text", "search"}
    )
