"""Regard: train, run and serve translation Transformers on the CPU.

>>> import regard
>>> translator = regard.Translator(model)
>>> print(translator.translate("The cat sleeps."))
Le chat dort.

The names and defaults of settings are those of the command line: ``--length-penalty`` is ``length_penalty``.
``regard COMMAND --help`` explains each of them; this package installs that command, too.
"""

from . import metrics
from ._commands import average, evaluate, export, quantize, serve, shortlist, train
from ._commands import Evaluation, Server, TrainingResult
from ._errors import (
    ConfigError,
    FileError,
    FileMissingError,
    FormatError,
    InputError,
    RegardError,
    TrainingError,
)
from ._regard import __version__
from ._translator import Attention, DocumentReport, SearchOptions, Stream, Translation, Translator

__all__ = [
    "Attention",
    "ConfigError",
    "DocumentReport",
    "Evaluation",
    "FileError",
    "FileMissingError",
    "FormatError",
    "InputError",
    "RegardError",
    "SearchOptions",
    "Server",
    "Stream",
    "TrainingError",
    "TrainingResult",
    "Translation",
    "Translator",
    "__version__",
    "average",
    "evaluate",
    "export",
    "metrics",
    "quantize",
    "serve",
    "shortlist",
    "train",
]
