"""Multilingual models, and two models in a row."""

import json
import os
import pathlib
import shutil

import pytest
import regard

# Set by tools/check_python.sh: random models of each family, which the library's tests use.
GOLDENS = pathlib.Path(os.environ.get("REGARD_GOLDENS", pathlib.Path(__file__).parents[2] / "regard-core/tests/goldens"))
LINES = ["a b c", "Hello there. Two words?", ""]


@pytest.fixture(scope="module", params=["families/nllb", "families/m2m100", "families/mbart50", "ctranslate2/nllb"])
def many(request):
    if not (GOLDENS / request.param).exists():
        pytest.skip("the goldens of the library are not here")
    return GOLDENS / request.param


def codes(many):
    return [code for code in regard.Translator(many).info()["language_codes"]][:3]


def test_the_languages_of_a_call_are_those_of_the_command(many, command):
    first, second, third = codes(many)
    translator = regard.Translator(many, threads=2)
    for source, target in ((first, second), (second, third)):
        languages = ("--source-lang", source, "--target-lang", target)
        printed = command("translate", "--model", many, "--json", "--max-length", 9, *languages, text="\n".join(LINES) + "\n").stdout
        wanted = [json.loads(line) for line in printed.splitlines()]
        found = translator.translate(LINES, source_lang=source, target_lang=target, max_length=9)
        for ours, theirs in zip(found, wanted):
            assert ours == (theirs["translations"][0]["text"] if theirs["translations"] else "")
            assert ours.confidence == pytest.approx(theirs.get("confidence"), abs=1e-6)
    # Those of the model count where the call has none.
    told = regard.Translator(many, source_lang=first, target_lang=second)
    assert told.translate(LINES, max_length=9) == translator.translate(
        LINES, source_lang=first, target_lang=second, max_length=9
    )
    # A stream has no second attempt at what is degenerate.
    assert "".join(told.stream("a b", max_length=5)) == told.translate("a b", beam=1, max_length=5, no_split=True)
    assert told.attention("a b", max_length=5).cross.ndim == 4
    assert told.score("a b", "c").score < 0


def test_languages_that_are_missing_or_wrong(many, translator):
    if regard.Translator(many).info()["target_lang"] is None:  # some folders are set to one
        with pytest.raises(regard.ConfigError, match="languages"):
            regard.Translator(many).translate("a", source_lang=codes(many)[0])
    with pytest.raises(ValueError, match="xx"):
        regard.Translator(many).translate("a", source_lang="xx-none", target_lang=codes(many)[0])
    assert translator.translate("The cat sleeps.", source_lang="en", target_lang="fra") == "Le chat dort."
    with pytest.raises(regard.ConfigError, match="translates only from en to fr"):
        translator.translate("The cat sleeps.", source_lang="de")


def test_two_models_in_a_row(model, translator, command, folder):
    back = folder / "fr-de"
    shutil.copytree(model, back)
    config = json.loads((back / "tokenizer_config.json").read_text(encoding="utf-8"))
    config.update(source_lang="fr", target_lang="de")
    (back / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    both = regard.Translator([model, back])
    lines = ["The cat sleeps. The dog runs.", "The king reads 12."]
    printed = command("translate", "--model", model, "--model", back, "--json", text="\n".join(lines) + "\n").stdout
    for ours, theirs in zip(both.translate(lines), map(json.loads, printed.splitlines())):
        assert ours == theirs["translations"][0]["text"]
        assert ours.confidence == pytest.approx(theirs["confidence"], abs=1e-6)
    assert both.translate(lines, source_lang="en", target_lang="fr") == translator.translate(lines)
    with pytest.raises(regard.InputError, match="one model"):
        both.stream("The cat sleeps.")


def test_confidence_is_that_of_the_command(model, translator, command):
    lines = ["The cat sleeps.", "The dog runs. A zebra plays chess.", "12 %", ""]
    printed = command("translate", "--model", model, "--json", text="\n".join(lines) + "\n").stdout
    for ours, theirs in zip(translator.translate(lines), map(json.loads, printed.splitlines())):
        assert ours.confidence == (None if "confidence" not in theirs else pytest.approx(theirs["confidence"], abs=1e-6))
    sure, unsure = translator.translate(["The cat sleeps.", "Zyx wvu qponm."])
    assert sure.confidence > unsure.confidence
    whole = translator.translate("The cat sleeps.\nThe dog runs.")
    assert 0 < whole.confidence <= 1
    assert translator.translate("The cat sleeps.", no_split=True).confidence is None


def test_the_licence_is_in_the_info(model, folder):
    assert regard.Translator(model).info()["licence"] == "unknown", "what the card of a new model says"
    licensed = folder / "licensed"
    shutil.copytree(model, licensed)
    (licensed / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n", encoding="utf-8")
    info = regard.Translator(licensed).info()
    assert (info["licence"], info["commercial_use"]) == ("cc-by-nc-4.0", False)
