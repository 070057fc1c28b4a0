"""Terms and their translations, from a file or a dictionary, as the command has them."""

import pytest
import regard

TERMS = {"cat": "cheval", "Firefox": "="}
LINES = ["The cat sleeps.", "The small cat reads. The dog runs.", "Firefox sleeps."]


@pytest.fixture(scope="module")
def terms(folder):
    file = folder / "terms.tsv"
    file.write_text("".join(f"{source}\t{target}\n" for source, target in TERMS.items()), encoding="utf-8")
    return file


def test_a_glossary_is_that_of_the_command(translator, model, command, terms):
    printed = command("translate", "--model", model, "--glossary", terms, text="\n".join(LINES) + "\n").stdout
    assert translator.translate(LINES, glossary=terms) == printed.splitlines()
    assert translator.translate(LINES, glossary=TERMS) == printed.splitlines()
    # The term stands where the model would have written another word, which it finds far more
    # likely.
    assert printed.splitlines()[:2] == ["Le cheval dort.", "Le petit cheval lit. Le chien court."]
    assert "Firefox" in translator.translate(LINES[2], glossary=TERMS)
    assert translator.translate(LINES[0]) == translator.translate(LINES[0], glossary={"unrelated": "="})


def test_a_term_is_in_the_translation_or_reported(model, command, folder):
    """The model has no piece for this word, nor a place for it."""
    file = folder / "unlikely.tsv"
    file.write_text("cat\tmatou\n", encoding="utf-8")
    for line in LINES[:2]:
        run = command("translate", "--model", model, "--glossary", file, text=line + "\n")
        assert "matou" in run.stdout or "matou" in run.stderr, run
        assert not ("matou" in run.stdout and "chat" in run.stdout), "beside the word that it should replace"


def test_a_glossary_for_a_document(translator, folder):
    (folder / "terms.html").write_text("<p>Firefox sleeps.</p>", encoding="utf-8")
    translator.translate_document(folder / "terms.html", folder / "terms.fr.html", glossary=TERMS)
    assert "Firefox" in (folder / "terms.fr.html").read_text(encoding="utf-8")


def test_what_is_no_glossary(translator, folder):
    with pytest.raises(regard.ConfigError, match="glossary"):
        translator.translate("The cat sleeps.", glossary={"": "x"})
    with pytest.raises(regard.RegardError, match="no-such"):
        translator.translate("The cat sleeps.", glossary=folder / "no-such.tsv")
    with pytest.raises(regard.ConfigError, match="no_split"):
        translator.translate("The cat sleeps.", glossary=folder / "terms.tsv", no_split=True)
    with pytest.raises(regard.ConfigError, match="no_split"):
        translator.translate("The cat sleeps.", glossary=TERMS, no_split=True)
