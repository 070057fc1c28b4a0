"""Keywords as flags of the command line, which are checked in one place: there."""

from __future__ import annotations

import difflib
import os
from typing import Any, Dict, Iterable, List

# Flags whose value is a word that Python writes as a bool.
_BOOLEAN_VALUES = {"early_stopping"}


# What recent calls became: most have the keywords of the call before, and a small model takes well
# below a millisecond for a sentence.
_recent: Dict[Any, List[str]] = {}
_RECENT = 64


def flags(function: str, keywords: Dict[str, Any], known: Iterable[str]) -> List[str]:
    """The flags for ``keywords``; ``None`` and ``False`` leave a flag out, ``True`` gives it without a value."""
    # With the types, because True equals 1 and means something else.
    key = (function, tuple([(name, type(value), value) for name, value in keywords.items()]))
    try:
        found = _recent.get(key)
    except TypeError:  # a list or a dictionary
        return _flags(function, keywords, known)
    if found is None:
        found = _flags(function, keywords, known)
        if len(_recent) >= _RECENT:
            _recent.clear()
        _recent[key] = found
    return found


def _flags(function: str, keywords: Dict[str, Any], known: Iterable[str]) -> List[str]:
    known = list(known)
    found: List[str] = []
    for name, value in keywords.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")
        flag = "--" + name.replace("_", "-")
        if value is None:
            continue
        if isinstance(value, bool):
            if name in _BOOLEAN_VALUES:
                found.append(f"{flag}={str(value).lower()}")
            elif value:
                found.append(flag)
        elif isinstance(value, dict):
            found += [f"{flag}={key}={_text(each)}" for key, each in value.items()]
        elif isinstance(value, (list, tuple)):
            found += [f"{flag}={_text(each)}" for each in value]
        else:
            found.append(f"{flag}={_text(value)}")
    return found


def _text(value: Any) -> str:
    """A value as the command line has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, os.PathLike)):
        return os.fsdecode(value)
    if hasattr(value, "item"):  # a number of NumPy
        value = value.item()
    return repr(value)
