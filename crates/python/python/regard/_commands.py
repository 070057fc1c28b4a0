"""Training, evaluation, conversion and the server: the commands of the same names."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Union

from . import _regard, metrics
from ._flags import flags
from ._translator import Path, SearchOptions, Translation, Translator

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: One file or several.
Files = Union[Path, Sequence[Path]]


class TrainingResult:
    """What came of a training run."""

    #: The model folder.
    model: str
    #: Training steps taken.
    steps: int
    #: BLEU of the model on the validation sentences.
    bleu: Optional[float]
    #: chrF of the same.
    chrf: Optional[float]
    #: Seconds of training steps.
    seconds: float
    #: Seconds of everything: preparation, steps, validation.
    all_seconds: float
    #: Target tokens trained on.
    target_tokens: int

    def __init__(self, model: str, found: Dict[str, Any]):
        self.model = model
        self.steps, self.bleu, self.chrf = found["steps"], found["bleu"], found["chrf"]
        self.seconds, self.all_seconds = found["seconds"], found["all_seconds"]
        self.target_tokens = found["target_tokens"]

    def __repr__(self) -> str:
        return f"<TrainingResult: {self.model}, {self.steps} steps, BLEU {self.bleu}>"


def train(
    out: Path,
    *,
    src: Optional[Files] = None,
    tgt: Optional[Files] = None,
    tsv: Optional[Path] = None,
    valid_src: Optional[Path] = None,
    valid_tgt: Optional[Path] = None,
    preset: Optional[str] = None,
    config: Optional[Path] = None,
    set: Optional[Dict[str, Any]] = None,  # the name of the flag
    minutes: Optional[float] = None,
    epochs: Optional[int] = None,
    steps: Optional[int] = None,
    resume: bool = False,
    init: Optional[Path] = None,
    terms: Optional[float] = None,
    source_lang: Optional[str] = None,
    target_lang: Optional[str] = None,
    threads: Optional[int] = None,
    seed: Optional[int] = None,
    precision: Optional[str] = None,
    store: Optional[str] = None,
    progress: Optional[Callable[[Dict[str, Any]], object]] = None,
) -> TrainingResult:
    """Trains a translator on parallel text, as ``regard train`` does.

    >>> result = regard.train(folder / "new", src=corpus.src, tgt=corpus.tgt, steps=2, threads=1, seed=7)
    >>> result.steps
    2

    Ctrl-C and an exception in ``progress`` end the run with everything saved, and are raised then;
    ``train(out, resume=True)`` continues it.

    :param out: Folder of the new model, which can be loaded at any time from the first training step on.
    :param src: Source text, one sentence per line; plain, .gz or .zst; a file or a list of them.
    :param tgt: Its translation, line by line, in as many files.
    :param tsv: One file with source and target separated by a tab, instead of ``src`` and ``tgt``.
    :param valid_src: Source text to validate on [default: one pair in fifty of the corpus].
    :param valid_tgt: Its translation.
    :param preset: ``tiny``, ``small``, ``base``, ``big`` or ``student`` [default: by corpus size and cores].
    :param config: Settings file in TOML.
    :param set: Single settings, as in ``{"dropout": 0.2, "model.encoder_layers": 2}``.
    :param minutes: Train for about this long, instead of ``epochs`` or ``steps``.
    :param resume: Continue an interrupted run exactly where it stopped.
    :param init: Start from the weights and tokenizers of this model.
    :param terms: Share of the source sentences in which the model reads translations of words, as it then can those of
        a glossary; 0.3 is usual.
    :param progress: Called with a dictionary for each event. Its ``kind`` is ``"step"`` (with ``step``, ``total``,
        ``epoch``, ``loss``, ``rate``, ``tokens_per_second``, …), ``"validation"`` (``loss``, ``perplexity``, ``bleu``,
        ``chrf``, ``best``, ``samples``, …) or ``"message"`` (``text``).
    """
    keywords = dict(
        src=src, tgt=tgt, tsv=tsv, valid_src=valid_src, valid_tgt=valid_tgt, out=out, preset=preset, config=config,
        set=set, minutes=minutes, epochs=epochs, steps=steps, resume=resume, init=init, terms=terms,
        source_lang=source_lang, target_lang=target_lang, threads=threads, seed=seed, precision=precision, store=store,
    )  # fmt: skip
    return TrainingResult(os.fspath(out), _regard.train(flags("train", keywords, keywords), progress))


class Evaluation(Dict[str, metrics.Score]):
    """Scores by the names of their metrics, and the translations that were scored."""

    #: The translations.
    translations: List[Translation]
    #: Seconds that translating took.
    seconds: float
    #: Target tokens in a second.
    target_tokens_per_s: float


def evaluate(
    model: Union[Path, Translator],
    src: Union[Path, Sequence[str]],
    ref: Union[Path, Sequence[str], Sequence[Path], Sequence[Sequence[str]]],
    *,
    metric: Union[str, Sequence[str]] = ("bleu", "chrf", "ter"),
    source_lang: Optional[str] = None,
    target_lang: Optional[str] = None,
    tokenize: Optional[str] = None,
    lowercase: bool = False,
    threads: Optional[int] = None,
    precision: Optional[str] = None,
    **search: "Unpack[SearchOptions]",
) -> Evaluation:
    """Translates a test set and scores the translations, as ``regard evaluate`` does: each line is passed to the
    model whole.

    >>> scores = regard.evaluate(translator, ["The cat sleeps."], ["Le chat dort."], metric="bleu,chrf")
    >>> {name: round(score.score, 1) for name, score in scores.items()}
    {'bleu': 100.0, 'chrf': 100.0}

    :param model: A :class:`Translator`, or what makes one.
    :param src: The name of a file with one sentence per line, or a list of sentences.
    :param ref: Reference translations: the same, or a list of several such.
    :param metric: ``bleu``, ``chrf``, ``chrf++``, ``ter``; a list, or separated by commas.
    :param source_lang: Language to translate from, for multilingual models.
    :param target_lang: Language to translate into; chooses BLEU's tokenizer, too [default: the model's].
    :param tokenize: BLEU's tokenizer [default: chosen by the target language].
    :param search: See :class:`SearchOptions`.
    """
    names = metric.split(",") if isinstance(metric, str) else list(metric)
    known: Dict[str, Callable[..., metrics.Score]]
    known = {"bleu": metrics.bleu, "chrf": metrics.chrf, "chrf++": metrics.chrf, "ter": metrics.ter}
    for name in names:
        if name not in known:
            raise ValueError(f"metric: unknown metric {name!r}; accepted: {', '.join(known)}")
    sources = _sentences(src)
    references = _references(ref)
    if not sources:
        raise ValueError("src: empty; there is nothing to translate")
    for reference in references:
        if len(reference) != len(sources):
            raise ValueError(
                f"src has {len(sources)} lines and a reference {len(reference)}; the numbers must be equal"
            )
    if not isinstance(model, Translator):
        model = Translator(model, threads=threads, precision=precision)
    start = time.perf_counter()
    # A model of one pair keeps it: there, the target language only chooses the tokenizer, as in the
    # command.
    many = bool(model.info()["language_codes"])
    languages: Dict[str, Any] = dict(source_lang=source_lang, target_lang=target_lang) if many else {}
    translations = model.translate(sources, no_split=True, **languages, **search)
    found = Evaluation()
    found.translations, found.seconds = translations, time.perf_counter() - start
    found.target_tokens_per_s = sum(len(each.token_scores) for each in translations) / found.seconds
    for name in names:
        settings: Dict[str, Any] = {}
        if name == "bleu":
            language = target_lang or model.info()["target_lang"]
            settings = dict(tokenize=tokenize or _regard.bleu_tokenizer(language), lowercase=lowercase)
        elif name == "chrf++":
            settings = dict(word_order=2)
        found[name] = known[name](translations, references, **settings)
    return found


def _sentences(text: Union[Path, Sequence[str]]) -> List[str]:
    if isinstance(text, (str, os.PathLike)):
        return _regard.read_lines(os.fspath(text))
    return list(text)


def _references(ref: Any) -> List[List[str]]:
    """One file, several files, one list of sentences or several such lists."""
    if isinstance(ref, (str, os.PathLike)):
        return [_sentences(ref)]
    ref = list(ref)
    if ref and not isinstance(ref[0], str):  # files or lists
        return [_sentences(each) for each in ref]
    return [ref]


def quantize(model: Path, out: Path) -> str:
    """Writes a model in 8 bits: a quarter of the size, the fastest decoding. Returns the folder.

    >>> small = regard.Translator(regard.quantize(model, folder / "int8"))
    >>> small.info()["precision"]
    'int8'
    """
    _regard.call(["quantize", *flags("quantize", dict(model=model, out=out), ("model", "out"))])
    return os.fspath(out)


def export(
    model: Path,
    to: str,
    out: Path,
    *,
    precision: Optional[str] = None,
    sample: Optional[Path] = None,
    shortlist: Optional[Path] = None,
) -> str:
    """Writes a model for Marian (``to="marian"``) or for Firefox's engine (``to="bergamot"``), as ``regard export``
    does. Returns the folder.

    :param precision: Number format of the weights [default: int8 for bergamot, f32 for marian].
    :param sample: File with source text, one sentence per line, on which 8-bit inputs are calibrated.
    :param shortlist: Lexical shortlist to go with it.
    """
    keywords = dict(model=model, to=to, out=out, precision=precision, sample=sample, shortlist=shortlist)
    _regard.call(["export", *flags("export", keywords, keywords)])
    return os.fspath(out)


def average(models: Sequence[Path], out: Path) -> str:
    """Averages the weights of several models of the same shape. Returns the folder."""
    _regard.call(["average", *flags("average", dict(out=out), ("out",)), *[os.fspath(each) for each in models]])
    return os.fspath(out)


def shortlist(model: Path, src: Files, tgt: Files, out: Path, **settings: Optional[int]) -> str:
    """Builds a lexical shortlist: the likely target tokens of each source token. Returns the file.

    :param settings: ``frequent``, ``per_word``, ``pairs`` and ``threads`` of ``regard shortlist``.
    """
    keywords: Dict[str, Any] = dict(model=model, src=src, tgt=tgt, out=out, **settings)
    known = ("model", "src", "tgt", "out", "frequent", "per_word", "pairs", "threads")
    _regard.call(["shortlist", *flags("shortlist", keywords, known)])
    return os.fspath(out)


class Server:
    """A server in the background; ``with`` stops it at the end.

    >>> with regard.serve(model, port=0) as server:
    ...     urllib.request.urlopen(server.url + "/health").status
    200
    """

    def __init__(self, native: "_regard.Server"):
        self._native = native

    @property
    def url(self) -> str:
        """Where its page and its API are."""
        host, port = self._native.address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._native.address[1]

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._native.running

    def stop(self) -> None:
        """Finishes the requests in progress and ends."""
        self._native.stop()

    def wait(self) -> None:
        """Waits until it ends; Ctrl-C stops it."""
        try:
            while self.running:
                time.sleep(0.2)
        except KeyboardInterrupt:
            pass
        self.stop()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Server: {self.url}{'' if self.running else ', stopped'}>"


def serve(model: Files, *, host: str = "127.0.0.1", port: int = 5000, **settings: Any) -> Server:
    """Serves models over HTTP, with LibreTranslate's API and a web page, as ``regard serve`` does. It runs in the
    background; ``serve(…).wait()`` waits until Ctrl-C.

    :param model: A model folder, or a list of them for several language pairs.
    :param port: Port to listen on; 0 for any free port.
    :param settings: The other flags of ``regard serve``: ``threads``, ``precision``, ``api_keys``, ``cors``,
        ``requests_per_minute``, ``max_batch``, ``char_limit``, ``timeout``, …, and the settings of the search.
    """
    keywords = dict(settings, model=model, host=host, port=port)
    return Server(_regard.Server(flags("serve", keywords, keywords)))
