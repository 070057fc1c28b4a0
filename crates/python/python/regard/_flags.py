"""Keywords as flags of the command line, which are checked in one place: there."""

from __future__ import annotations

import difflib
import os
from typing import Any, Dict, Iterable, List

# Flags whose value is a word that Python writes as a bool.
_BOOLEAN_VALUES = {"early_stopping"}


def flags(function: str, keywords: Dict[str, Any], known: Iterable[str]) -> List[str]:
    """The flags for ``keywords``; ``None`` and ``False`` leave a flag out, ``True`` gives it without a value."""
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
