"""What goes wrong, as exceptions. All of them are a :class:`RegardError` and the built-in exception that fits."""

from __future__ import annotations

import re
from typing import Optional

# A flag in a message of the command line, with the kind of its value: '--beam <N>'.
_FLAG = re.compile(r"(?<![\w./-])--([a-z][a-z0-9]*(?:-[a-z0-9]+)*)(?: <[A-Z_=]+>)?(?:\.\.\.)?")


def _in_keywords(message: str) -> str:
    """A message with the names of keywords in place of flags."""
    return _FLAG.sub(lambda flag: flag[1].replace("-", "_"), message)


class RegardError(Exception):
    """Any error of this package; the message says what is wrong and what would be accepted.

    >>> try:
    ...     regard.Translator("no/such/folder")
    ... except regard.RegardError as error:
    ...     print(type(error).__name__)
    FileMissingError
    """

    def __init__(self, message: str, errno: Optional[int] = None, path: Optional[str] = None):
        self._message = _in_keywords(message)
        super().__init__(self._message)

    def __str__(self) -> str:
        return self._message


class ConfigError(RegardError, ValueError):
    """A setting that makes no sense."""


class InputError(RegardError, ValueError):
    """Data that does not fit the model or the operation."""


class FormatError(RegardError, ValueError):
    """A file that can be read but not understood."""


class FileError(RegardError, OSError):
    """A file that the operating system refused; ``errno`` and ``filename`` are set."""

    def __init__(self, message: str, errno: Optional[int] = None, path: Optional[str] = None):
        super().__init__(message)
        self.errno, self.filename = errno, path


class FileMissingError(FileError, FileNotFoundError):
    """A file or folder that does not exist."""


class TrainingError(RegardError, ArithmeticError):
    """A training run whose loss or gradient went wrong; the message names settings that help."""


# Their public name, in tracebacks and elsewhere.
for _error in (RegardError, *RegardError.__subclasses__(), FileMissingError):
    _error.__module__ = "regard"
