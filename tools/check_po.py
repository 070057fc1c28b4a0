#!/usr/bin/env python3
"""Compares a po file with its translation, reading both with polib (pip install polib).

    python3 tools/check_po.py BEFORE.po AFTER.po

Everything except translations and new `fuzzy` flags must be equal: messages and their order,
contexts, comments, references, previous messages, obsolete messages, metadata. A translation must
have the placeholders of its message, or be fuzzy.
"""
import collections, re, sys

import polib

PLACEHOLDER = re.compile(r"%\(\w+\)[a-zA-Z]|%(?:\d+\$)?[-+#0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z)?[diouxXeEfFgGcs]\b|\$?\{[^{}\n]*\}")
KEPT = ["msgid", "msgid_plural", "msgctxt", "comment", "tcomment", "occurrences", "previous_msgid", "previous_msgctxt", "obsolete"]


def placeholders(text):
    return collections.Counter(PLACEHOLDER.findall(text))


def problems(before, after):
    if before.metadata != after.metadata or before.header != after.header:
        yield "the header has changed"
    if len(before) != len(after):
        yield f"{len(before)} messages have become {len(after)}"
    for old, new in zip(before, after):
        name = f"{old.msgid[:60]!r} (line {old.linenum})"
        for field in KEPT:
            if getattr(old, field) != getattr(new, field):
                yield f"{name}: {field} was {getattr(old, field)!r} and is {getattr(new, field)!r}"
        if set(old.flags) - {"fuzzy"} != set(new.flags) - {"fuzzy"} or ("fuzzy" in old.flags and "fuzzy" not in new.flags):
            yield f"{name}: flags were {old.flags} and are {new.flags}"
        if old.obsolete or "fuzzy" in new.flags:
            continue
        if sorted(old.msgstr_plural) != sorted(new.msgstr_plural):
            yield f"{name}: plural forms were {sorted(old.msgstr_plural)} and are {sorted(new.msgstr_plural)}"
        if new.msgstr and placeholders(new.msgstr) != placeholders(new.msgid):
            yield f"{name}: placeholders of {new.msgstr!r}"
        for form in new.msgstr_plural.values():
            wanted = [placeholders(new.msgid), placeholders(new.msgid_plural)]
            if form and placeholders(form) not in wanted:
                yield f"{name}: placeholders of {form!r}"


def main():
    before, after = (polib.pofile(path, wrapwidth=0) for path in sys.argv[1:3])
    found = list(problems(before, after))
    print("\n".join(found) or f"{len(after)} messages: only translations differ")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
