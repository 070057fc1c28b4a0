"""A loaded model and what it says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, TypedDict, Union, overload

from . import _regard
from ._errors import ConfigError
from ._flags import flags

if TYPE_CHECKING:
    import numpy
    import numpy.typing
    from typing_extensions import Unpack

Path = Union[str, "os.PathLike[str]"]
#: Terms and their translations, ``"="`` for a term that stays unchanged; or a file with a term, a tab and its
#: translation on each line.
Glossary = Union[Path, Mapping[str, str]]


class SearchOptions(TypedDict, total=False):
    """The settings of a search. One that is not given, or ``None``, is that of the model's
    ``generation_config.json``, else the default of ``regard translate``."""

    #: Beam size; 1 is greedy search [default: 4].
    beam: Optional[int]
    #: Exponent α of the length penalty [default: 0.6].
    length_penalty: Optional[float]
    #: Form of the length penalty: ``"power"`` divides scores by length^α, ``"paper"`` by ((5 + length) / 6)^α.
    penalty: Optional[str]
    #: When the search stops: ``False``, ``True`` or ``"never"``, as in transformers.
    early_stopping: Union[bool, str, None]
    #: Maximum translation length in tokens [default: 50 more than the source has].
    max_length: Optional[int]
    #: Minimum translation length in tokens.
    min_length: Optional[int]
    #: Never repeat a sequence of this many tokens.
    no_repeat_ngram: Optional[int]
    #: Values above 1 make repeated tokens less likely.
    repetition_penalty: Optional[float]
    #: Text that each translation begins with.
    prefix: Optional[str]
    #: File with a lexical shortlist, as :func:`regard.shortlist` writes it.
    shortlist: Optional[Path]
    #: Consider all tokens, even if the model has a lexical shortlist.
    no_shortlist: bool
    #: Sample from the model's distribution instead of searching.
    sample: bool
    #: Sampling temperature.
    temperature: Optional[float]
    #: Sample from this many most likely tokens.
    top_k: Optional[int]
    #: Sample from the most likely tokens whose probabilities sum to this.
    top_p: Optional[float]
    #: Seed of the sampling.
    seed: Optional[int]
    #: Number of sentences decoded together.
    batch: Optional[int]


#: The keywords of a search.
_SEARCH = tuple(SearchOptions.__annotations__)
#: Those of every method that uses the model.
_MODEL = _SEARCH + ("source_lang", "target_lang")
#: Those of :meth:`Translator.translate`.
_TRANSLATE = _MODEL + ("nbest", "alignment", "no_split", "glossary", "glossary_method")
#: Those of :meth:`Translator.translate_document`.
_DOCUMENT = _MODEL + ("format", "only_empty", "glossary", "glossary_method")

_Found = Tuple[str, float, List[str], List[float], List[Tuple[int, int]]]


class Translation(str):
    """A translation: a string with what the model says about it.

    >>> found = translator.translate("The cat sleeps.", nbest=2, alignment=True)
    >>> found
    'Le chat dort.'
    >>> len(found.alternatives), len(found.alignment)    # a pair for each word
    (1, 3)
    >>> found.score <= 0, len(found.token_scores) == len(found.tokens) + 1
    (True, True)
    """

    #: What it was ranked by: its log-probability under the length penalty; the mean over its sentences.
    score: float
    #: The tokens that the model generated.
    tokens: List[str]
    #: The log-probability of each token, and of the end of each sentence.
    token_scores: List[float]
    #: Pairs of words (source, target), counted from 0; ``None`` unless ``alignment=True``.
    alignment: Optional[List[Tuple[int, int]]]
    #: How good it is likely to be, from 0 to 1: the chrF that is expected of it, made of the probabilities of its tokens;
    #: ``None`` where no model was asked, with ``no_split=True`` and for ``alternatives``.
    confidence: Optional[float]
    #: The other translations of the n-best list, best first; empty unless ``nbest`` is above 1.
    alternatives: List["Translation"]

    __slots__ = ("score", "tokens", "token_scores", "alignment", "confidence", "alternatives")

    @classmethod
    def _of(cls, found: _Found, alignment: bool) -> "Translation":
        text, score, tokens, token_scores, pairs = found
        self = cls(text)
        self.score, self.tokens, self.token_scores = score, tokens, token_scores
        self.alignment = pairs if alignment else None
        self.confidence = None
        self.alternatives = []
        return self

    @classmethod
    def _of_all(cls, found: List[_Found], confidence: Optional[float], alignment: bool) -> "Translation":
        if not found:
            return cls._of(("", 0.0, [], [], []), alignment)
        best = cls._of(found[0], alignment)
        best.confidence = confidence
        if len(found) > 1:
            best.alternatives = [cls._of(each, alignment) for each in found[1:]]
        return best

    def __reduce__(self) -> Any:
        state = (self.score, self.tokens, self.token_scores, self.alignment, self.confidence, self.alternatives)
        return _restore, (str(self), *state)


def _restore(text: str, *state: Any) -> Translation:
    self = Translation(text)
    self.score, self.tokens, self.token_scores, self.alignment, self.confidence, self.alternatives = state
    return self


class Attention:
    """The attention weights of a sentence and a translation, by kind, as arrays of ``float32``.

    ``cross`` is ``[layer, head, m, n]``, ``encoder`` ``[layer, head, n, n]`` and ``decoder`` ``[layer, head, m, m]``
    for ``n`` source and ``m`` target tokens, the end tokens included; every row sums to 1. A kind that the model
    does not have is ``None``.
    """

    cross: "numpy.typing.NDArray[numpy.float32]"
    encoder: "Optional[numpy.typing.NDArray[numpy.float32]]"
    decoder: "Optional[numpy.typing.NDArray[numpy.float32]]"
    #: The source tokens, with the end: the columns of ``cross``.
    source_tokens: List[str]
    #: The target tokens, with the end: the rows of ``cross``.
    target_tokens: List[str]

    def __init__(self, found: Dict[str, Any]):
        import numpy

        def array(kind: str) -> Any:
            if kind not in found:
                return None
            shape, weights = found[kind]
            return numpy.frombuffer(weights, dtype=numpy.float32).reshape(shape)

        self.cross, self.encoder, self.decoder = array("cross"), array("encoder"), array("decoder")
        self.source_tokens, self.target_tokens = found["source_tokens"], found["target_tokens"]

    def __repr__(self) -> str:
        layers, heads, m, n = self.cross.shape
        return f"<Attention: {layers} layers, {heads} heads, {m} target and {n} source tokens>"


class DocumentReport:
    """What happened while a document was translated."""

    #: How many sentences it has.
    sentences: int
    #: How good the translation is likely to be, from 0 to 1; ``None`` where no model was asked.
    confidence: Optional[float]
    #: Sentences that were translated again because the first result was degenerate.
    retried: int
    #: Sentences that are still degenerate.
    degenerate: int
    #: What somebody should look at: messages that lost a placeholder, for example.
    warnings: List[str]

    def __init__(self, found: Dict[str, Any]):
        self.sentences, self.confidence, self.warnings = found["sentences"], found["confidence"], found["warnings"]
        self.retried, self.degenerate = found["retried"], found["degenerate"]

    def __repr__(self) -> str:
        return f"<DocumentReport: {self.sentences} sentences, confidence {self.confidence}>"


class Stream(Iterator[str]):
    """The tokens of a translation as they are generated, as text; :attr:`translation` is the whole at the end.

    A loop that ends early gives up the rest, which :meth:`close` and ``with`` do, too.
    """

    def __init__(self, native: "_regard.Stream"):
        self._native = native

    def __next__(self) -> str:
        return next(self._native)

    @property
    def translation(self) -> Optional[str]:
        """The whole translation; ``None`` before the end. Where a number or address that the model lost was put
        back in, it differs from what was streamed."""
        return self._native.translation

    def close(self) -> None:
        """Gives up the rest of the translation."""
        self._native.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Translator:
    """A model, loaded and ready to translate. Threads may share it; the GIL is released while it computes.

    >>> translator = regard.Translator(model, threads=1)
    >>> translator.translate(["The cat sleeps.", "The dog sleeps."])
    ['Le chat dort.', 'Le chien dort.']
    """

    def __init__(
        self,
        model: Union[Path, Sequence[Path]],
        *,
        threads: Optional[int] = None,
        precision: Optional[str] = None,
        source_lang: Optional[str] = None,
        target_lang: Optional[str] = None,
    ):
        """Loads a model.

        :param model: A model folder, or a name: of a model of ``regard models``, or on the Hugging Face hub. A list of
            models of one pair of languages is an ensemble; two models of which the second reads what the first writes
            are used in a row.
        :param threads: Number of cores to use [default: all].
        :param precision: Number format of matrix multiplications, ``"f32"`` or ``"int8"`` [default: ``"int8"`` for a
            quantized model, else ``"f32"``].
        :param source_lang: Language to translate from, for multilingual models: ``de``, ``deu_Latn``, ``de_DE``
            and ``__de__`` all work. A call may name another.
        :param target_lang: Language to translate into.
        """
        models = [model] if isinstance(model, (str, os.PathLike)) else list(model)
        self._native = _regard.Translator([os.fspath(each) for each in models], threads, precision)
        self._languages = {"source_lang": source_lang, "target_lang": target_lang}

    def _flags(self, function: str, keywords: Dict[str, Any], known: Sequence[str]) -> List[str]:
        """The flags of a call; the languages are those of the model unless the call names others."""
        for name, language in self._languages.items():
            if keywords.get(name) is None:
                keywords[name] = language
        return flags(function, keywords, known)

    # A string is a sequence of strings to type checkers; the first overload that fits counts.
    @overload
    def translate(  # type: ignore[overload-overlap]
        self,
        text: str,
        *,
        nbest: int = 1,
        alignment: bool = False,
        no_split: bool = False,
        glossary: Optional[Glossary] = None,
        glossary_method: Optional[str] = None,
        source_lang: Optional[str] = None,
        target_lang: Optional[str] = None,
        **search: "Unpack[SearchOptions]",
    ) -> Translation: ...

    @overload
    def translate(
        self,
        text: Sequence[str],
        *,
        nbest: int = 1,
        alignment: bool = False,
        no_split: bool = False,
        glossary: Optional[Glossary] = None,
        glossary_method: Optional[str] = None,
        source_lang: Optional[str] = None,
        target_lang: Optional[str] = None,
        **search: "Unpack[SearchOptions]",
    ) -> List[Translation]: ...

    def translate(
        self,
        text: Union[str, Sequence[str]],
        *,
        nbest: int = 1,
        alignment: bool = False,
        no_split: bool = False,
        glossary: Optional[Glossary] = None,
        glossary_method: Optional[str] = None,
        source_lang: Optional[str] = None,
        target_lang: Optional[str] = None,
        **search: "Unpack[SearchOptions]",
    ) -> Union[Translation, List[Translation]]:
        """Translates a text or a list of texts, as ``regard translate`` does with lines.

        Each line of a text is translated sentence by sentence. Addresses, placeholders, numbers, emoji and the spaces
        between sentences are kept, and so are line breaks.

        >>> translator.translate("The cat sleeps. The dog sleeps.", beam=1)
        'Le chat dort. Le chien dort.'

        :param text: A text, or a list of them, which are translated together: faster than one by one.
        :param nbest: Number of translations; the best has the others as ``alternatives``.
        :param alignment: Whether translations have their word ``alignment``.
        :param no_split: Translate each line as a whole and leave the model's output unchanged.
        :param glossary: Terms and their translations, as a dictionary or a file; ``"="`` keeps a term unchanged. A sentence
            whose translation lacks one is searched again for translations that have it.
        :param glossary_method: ``constrain`` for that, ``annotate`` for a model of ``regard.train(…, terms=…)``, which
            reads the terms; ``auto``, the default, does what the model can.
        :param source_lang: Language to translate from, for multilingual models.
        :param target_lang: Language to translate into.
        :param search: See :class:`SearchOptions`.
        """
        keywords = dict(
            search, alignment=alignment, no_split=no_split, glossary_method=glossary_method, source_lang=source_lang,
            target_lang=target_lang,
        )  # fmt: skip
        if nbest != 1:
            keywords["nbest"] = nbest
        texts = [text] if isinstance(text, str) else list(text)
        terms = _terms(glossary, keywords)
        found = self._native.translate(texts, self._flags("translate", keywords, _TRANSLATE), terms)
        translations = [Translation._of_all(*each, alignment) for each in found]
        return translations[0] if isinstance(text, str) else translations

    def translate_document(
        self,
        file: Path,
        out: Path,
        *,
        format: Optional[str] = None,
        only_empty: bool = False,
        glossary: Optional[Glossary] = None,
        glossary_method: Optional[str] = None,
        source_lang: Optional[str] = None,
        target_lang: Optional[str] = None,
        **search: "Unpack[SearchOptions]",
    ) -> "DocumentReport":
        """Translates a file into another, as ``regard translate FILE --out OUT`` does. A document (docx, odt, pptx, xlsx,
        epub, html, markdown, srt, po, xliff, json, …) keeps its format; any other file is translated line by line.

        >>> _ = (folder / "page.html").write_text('<p class="a">The cat sleeps.</p>', encoding="utf-8")
        >>> report = translator.translate_document(folder / "page.html", folder / "page.fr.html")
        >>> print((folder / "page.fr.html").read_text(encoding="utf-8"))
        <p class="a">Le chat dort.</p>
        >>> report.sentences, 0 < report.confidence <= 1
        (1, True)

        Ctrl-C gives the work up, and no file is written.

        :param file: The file to translate.
        :param out: The translated file, which appears when it is complete.
        :param format: Format of the document [default: by the ending of its name].
        :param only_empty: Translate only the messages that have no translation yet (po, xliff).
        :param glossary: Terms and their translations, as a dictionary or a file; ``"="`` keeps a term unchanged. A sentence
            whose translation lacks one is searched again for translations that have it.
        :param glossary_method: ``constrain`` for that, ``annotate`` for a model of ``regard.train(…, terms=…)``, which
            reads the terms; ``auto``, the default, does what the model can.
        :param source_lang: Language to translate from, for multilingual models.
        :param target_lang: Language to translate into.
        :param search: See :class:`SearchOptions`.
        """
        keywords = dict(
            search, format=format, only_empty=only_empty, glossary_method=glossary_method, source_lang=source_lang,
            target_lang=target_lang,
        )  # fmt: skip
        terms = _terms(glossary, keywords)
        given = self._flags("translate_document", keywords, _DOCUMENT)
        return DocumentReport(self._native.translate_document(os.fspath(file), os.fspath(out), given, terms))

    def stream(
        self,
        text: str,
        *,
        source_lang: Optional[str] = None,
        target_lang: Optional[str] = None,
        **search: "Unpack[SearchOptions]",
    ) -> Stream:
        """Translates a text and yields its tokens, as text, as they are generated.

        The search is greedy, or samples: with a larger beam, tokens may still change.

        >>> "".join(translator.stream("The cat sleeps."))
        'Le chat dort.'

        :param search: See :class:`SearchOptions`; ``beam`` can only be 1.
        """
        if search.setdefault("beam", 1) != 1:
            raise ValueError(f"beam: {search['beam']} cannot be streamed, because tokens may still change; use 1")
        keywords = dict(search, source_lang=source_lang, target_lang=target_lang)
        return Stream(self._native.stream(text, self._flags("stream", keywords, _MODEL)))

    @overload
    def score(  # type: ignore[overload-overlap]
        self,
        source: str,
        target: str,
        *,
        source_lang: Optional[str] = None,
        target_lang: Optional[str] = None,
        **search: "Unpack[SearchOptions]",
    ) -> Translation: ...

    @overload
    def score(
        self,
        source: Sequence[str],
        target: Sequence[str],
        *,
        source_lang: Optional[str] = None,
        target_lang: Optional[str] = None,
        **search: "Unpack[SearchOptions]",
    ) -> List[Translation]: ...

    def score(
        self,
        source: Union[str, Sequence[str]],
        target: Union[str, Sequence[str]],
        *,
        source_lang: Optional[str] = None,
        target_lang: Optional[str] = None,
        **search: "Unpack[SearchOptions]",
    ) -> Union[Translation, List[Translation]]:
        """The log-probabilities of given translations: forced decoding, as ``regard translate --score-target``.

        >>> good, bad = translator.score(["The cat sleeps."] * 2, ["Le chat dort.", "Le chien dort."])
        >>> good.score > bad.score
        True

        :param source: A sentence, or a list of them.
        :param target: Its translation, or as many.
        :param search: See :class:`SearchOptions`; the length penalty counts.
        """
        single = isinstance(source, str)
        if single != isinstance(target, str):
            raise TypeError("score() takes two strings or two lists")
        sources: List[str] = [source] if isinstance(source, str) else list(source)
        targets: List[str] = [target] if isinstance(target, str) else list(target)
        if len(sources) != len(targets):
            raise ValueError(f"score: {len(sources)} sources and {len(targets)} targets; each needs one")
        pairs = list(zip(sources, targets))
        keywords = dict(search, source_lang=source_lang, target_lang=target_lang)
        found = self._native.score(pairs, self._flags("score", keywords, _MODEL))
        scored = [Translation._of(each, False) for each in found]
        return scored[0] if single else scored

    def attention(
        self,
        source: str,
        target: Optional[str] = None,
        *,
        source_lang: Optional[str] = None,
        target_lang: Optional[str] = None,
        **search: "Unpack[SearchOptions]",
    ) -> Attention:
        """Where each token looks, in every layer and head.

        >>> found = translator.attention("The cat sleeps.")
        >>> found.cross.shape == (2, 4, len(found.target_tokens), len(found.source_tokens))
        True

        :param source: A sentence.
        :param target: Its translation [default: the model's own].
        :param search: How to find the model's own; see :class:`SearchOptions`.
        """
        keywords = dict(search, source_lang=source_lang, target_lang=target_lang)
        return Attention(self._native.attention(source, target, self._flags("attention", keywords, _MODEL)))

    @overload
    def tokenize(self, text: str, *, side: str = "source", ids: bool = False) -> List[Any]: ...

    @overload
    def tokenize(self, text: Sequence[str], *, side: str = "source", ids: bool = False) -> List[List[Any]]: ...

    def tokenize(
        self, text: Union[str, Sequence[str]], *, side: str = "source", ids: bool = False
    ) -> Union[List[Any], List[List[Any]]]:
        """The tokens of a text, or of each text of a list, without the end token.

        >>> translator.detokenize(translator.tokenize("Le chat dort.", side="target", ids=True))
        'Le chat dort.'

        :param side: Whose tokenizer: ``"source"`` or ``"target"``.
        :param ids: Numbers instead of strings.
        """
        texts = [text] if isinstance(text, str) else list(text)
        found = [each[1 if ids else 0] for each in self._native.tokenize(texts, _is_target(side))]
        return found[0] if isinstance(text, str) else found

    def detokenize(self, ids: Sequence[int], *, side: str = "target") -> str:
        """The text of token ids."""
        return self._native.detokenize(list(ids), _is_target(side))

    def info(self) -> Dict[str, Any]:
        """Sizes, languages, vocabulary, number format and licence of the model.

        >>> translator.info()["source_lang"], translator.info()["target_lang"]
        ('en', 'fr')
        """
        return self._native.info()

    def __repr__(self) -> str:
        info = self.info()
        return f"<Translator: {info['folder']}, {info['precision']}, {info['threads']} threads>"


def _terms(glossary: Optional[Glossary], keywords: Dict[str, Any]) -> Optional[List[Tuple[str, str]]]:
    """The terms of a dictionary; a file becomes one of the ``keywords``."""
    if glossary is None or isinstance(glossary, (str, os.PathLike)):
        keywords["glossary"] = glossary
        return None
    if keywords.get("no_split"):
        raise ConfigError("glossary: it needs sentences, so that no_split=True cannot be used with it")
    return list(glossary.items())


def _is_target(side: str) -> bool:
    if side not in ("source", "target"):
        raise ValueError(f"side: {side!r} is neither 'source' nor 'target'")
    return side == "target"
