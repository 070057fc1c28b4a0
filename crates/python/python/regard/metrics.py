"""BLEU, chrF and TER, with the numbers and signatures of sacreBLEU.

>>> regard.metrics.bleu(["The cat sat on the red mat."], ["The cat sat on the mat."]).score
59.46...

References are a list of sentences, or with several references a list of such lists, each with a sentence for every
hypothesis: the order of sacreBLEU.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from . import _regard

__all__ = ["Score", "bleu", "chrf", "ter", "sentence_bleu", "sentence_chrf", "sentence_ter"]

References = Union[Sequence[str], Sequence[Sequence[str]]]


class Score:
    """A score: ``float(score)`` is the number, ``str(score)`` the line that sacreBLEU prints."""

    #: As sacreBLEU prints it: ``BLEU``, ``chrF2++``, ``TER``.
    name: str
    #: From 0 to 100; TER may exceed 100.
    score: float
    #: How it was computed.
    signature: str
    #: What it is made of: for BLEU ``precisions``, ``brevity_penalty``, …; for TER ``edits`` and ``ref_len``.
    details: Dict[str, Any]
    #: Mean and half width of the 95 % confidence interval, with ``confidence=True``.
    interval: Optional[Tuple[float, float]]

    def __init__(self, found: Dict[str, Any]):
        self.name, self.score, self.signature = found["name"], found["score"], found["signature"]
        self.details, self.interval = found["details"], found["interval"]
        self._text: str = found["text"]

    def __float__(self) -> float:
        return self.score

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<{self._text}>"


def _documents(references: References) -> List[List[str]]:
    if isinstance(references, str):
        raise TypeError("references: a string; a list of sentences is needed")
    documents = list(references)
    if documents and isinstance(documents[0], str):
        return [documents]  # type: ignore[list-item]
    return [list(document) for document in documents]


def _corpus(
    metric: Callable[..., List[Dict[str, Any]]],
    hypotheses: Sequence[str],
    references: References,
    settings: Tuple[Any, ...],
    confidence: bool,
    samples: int,
    seed: int,
) -> Score:
    if isinstance(hypotheses, str):
        raise TypeError("hypotheses: a string; a list of sentences is needed (or the function sentence_…)")
    bootstrap = (samples, seed) if confidence else None
    found = metric(list(hypotheses), _documents(references), *settings, False, bootstrap)
    return Score(found[0])


def bleu(
    hypotheses: Sequence[str],
    references: References,
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
    smooth: str = "exp",
    max_order: int = 4,
    effective_order: bool = False,
    confidence: bool = False,
    samples: int = 1000,
    seed: int = 12345,
) -> Score:
    """BLEU of a corpus.

    >>> print(regard.metrics.bleu(["The cat sat on the red mat."], [["The cat sat on the mat."]]))
    BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 59.46 ...

    :param tokenize: ``13a``, ``intl``, ``char``, ``zh`` or ``none``.
    :param smooth: ``exp``, ``floor[:N]``, ``add-k[:N]`` or ``none``.
    :param confidence: Add a 95 % confidence interval by bootstrap resampling, of this many ``samples``.
    """
    settings = (tokenize, lowercase, smooth, max_order, effective_order)
    return _corpus(_regard.bleu, hypotheses, references, settings, confidence, samples, seed)


def chrf(
    hypotheses: Sequence[str],
    references: References,
    *,
    char_order: int = 6,
    word_order: int = 0,
    beta: int = 2,
    lowercase: bool = False,
    whitespace: bool = False,
    eps_smoothing: bool = False,
    confidence: bool = False,
    samples: int = 1000,
    seed: int = 12345,
) -> Score:
    """chrF of a corpus; with ``word_order=2``, chrF++.

    >>> round(regard.metrics.chrf(["The cat sat on the red mat."], ["The cat sat on the mat."]).score, 1)
    80.6
    """
    settings = (char_order, word_order, beta, lowercase, whitespace, eps_smoothing)
    return _corpus(_regard.chrf, hypotheses, references, settings, confidence, samples, seed)


def ter(
    hypotheses: Sequence[str],
    references: References,
    *,
    normalized: bool = False,
    no_punct: bool = False,
    asian_support: bool = False,
    case_sensitive: bool = False,
    confidence: bool = False,
    samples: int = 1000,
    seed: int = 12345,
) -> Score:
    """TER of a corpus.

    >>> round(regard.metrics.ter(["The cat sat on the red mat."], ["The cat sat on the mat."]).score, 2)
    16.67
    """
    settings = (normalized, no_punct, asian_support, case_sensitive)
    return _corpus(_regard.ter, hypotheses, references, settings, confidence, samples, seed)


def _sentence(
    metric: Callable[..., List[Dict[str, Any]]],
    hypothesis: str,
    references: Union[str, Sequence[str]],
    settings: Tuple[Any, ...],
) -> Score:
    each = [references] if isinstance(references, str) else list(references)
    return Score(metric([hypothesis], [[reference] for reference in each], *settings, True, None)[0])


def sentence_bleu(
    hypothesis: str,
    references: Union[str, Sequence[str]],
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
    smooth: str = "exp",
    max_order: int = 4,
) -> Score:
    """BLEU of one sentence, with the effective n-gram order; ``references`` are one or several sentences."""
    return _sentence(_regard.bleu, hypothesis, references, (tokenize, lowercase, smooth, max_order, True))


def sentence_chrf(
    hypothesis: str,
    references: Union[str, Sequence[str]],
    *,
    char_order: int = 6,
    word_order: int = 0,
    beta: int = 2,
    lowercase: bool = False,
    whitespace: bool = False,
    eps_smoothing: bool = False,
) -> Score:
    """chrF of one sentence."""
    settings = (char_order, word_order, beta, lowercase, whitespace, eps_smoothing)
    return _sentence(_regard.chrf, hypothesis, references, settings)


def sentence_ter(
    hypothesis: str,
    references: Union[str, Sequence[str]],
    *,
    normalized: bool = False,
    no_punct: bool = False,
    asian_support: bool = False,
    case_sensitive: bool = False,
) -> Score:
    """TER of one sentence."""
    settings = (normalized, no_punct, asian_support, case_sensitive)
    return _sentence(_regard.ter, hypothesis, references, settings)
