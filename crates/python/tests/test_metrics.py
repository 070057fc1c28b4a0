"""The metrics are sacreBLEU's."""

import pytest
import regard

sacrebleu = pytest.importorskip("sacrebleu")

HYPOTHESES = ["The cat sat on the red mat.", "A dog runs, quickly!", "", "It's 3.5 % — “so” it goes…"]
REFERENCES = [
    ["The cat sat on the mat.", "The dog runs quickly.", "Nothing.", "It is 3.5 %: 'so' it goes ..."],
    ["A cat was on a red mat.", "A dog is running quickly!", "", "It's 3.5 % - so it goes."],
]


@pytest.mark.parametrize("references", [REFERENCES, REFERENCES[:1]])
@pytest.mark.parametrize(
    "name, settings, theirs",
    [
        ("bleu", {}, {}),
        ("bleu", dict(tokenize="intl", lowercase=True, smooth="floor"), dict(tokenize="intl", lowercase=True, smooth_method="floor")),
        ("bleu", dict(tokenize="char", max_order=2, smooth="add-k:2"), dict(tokenize="char", smooth_method="add-k", smooth_value=2, max_ngram_order=2)),
        ("chrf", {}, {}),
        ("chrf", dict(word_order=2, lowercase=True), dict(word_order=2, lowercase=True)),
        ("ter", {}, {}),
        ("ter", dict(normalized=True, case_sensitive=True), dict(normalized=True, case_sensitive=True)),
    ],
)  # fmt: skip
def test_numbers_and_signatures_are_sacrebleus(references, name, settings, theirs):
    reference = {"bleu": sacrebleu.BLEU, "chrf": sacrebleu.CHRF, "ter": sacrebleu.TER}[name](**theirs)
    wanted = reference.corpus_score(HYPOTHESES, references)
    found = getattr(regard.metrics, name)(HYPOTHESES, references, **settings)
    assert found.score == pytest.approx(wanted.score, abs=1e-9)
    assert found.signature == reference.get_signature().format()
    assert float(found) == found.score and f"{wanted.score:.2f}" in str(found)


def test_one_list_of_references_is_one_reference():
    wanted = regard.metrics.bleu(HYPOTHESES, REFERENCES[:1])
    assert regard.metrics.bleu(HYPOTHESES, REFERENCES[0]).score == wanted.score
    assert wanted.details["ref_len"] > 0 and len(wanted.details["precisions"]) == 4


def test_sentences_and_intervals():
    for name in ("bleu", "chrf", "ter"):
        wanted = getattr(sacrebleu, f"sentence_{name}")(HYPOTHESES[0], [REFERENCES[0][0], REFERENCES[1][0]])
        found = getattr(regard.metrics, f"sentence_{name}")(HYPOTHESES[0], [REFERENCES[0][0], REFERENCES[1][0]])
        assert found.score == pytest.approx(wanted.score, abs=1e-9)
    found = regard.metrics.bleu(HYPOTHESES, REFERENCES, confidence=True, samples=100)
    mean, half = found.interval
    assert half > 0 and "bs:100" in found.signature
