#!/usr/bin/env python3
"""Evaluates glossaries: how many terms occur in the translations where the reference has them, and
at what cost.

    python3 tools/glossary_check.py target/release/regard enpt software-test.en software-test.pt --corpus software.tsv.gz
    python3 tools/glossary_check.py target/release/regard plain test.en test.de --corpus train.en.gz train.de.gz --trained terms

Builds a glossary from words of the test set: a source word and a reference word that are each
other's best match by the Dice coefficient of the sentences they occur in, counted in a parallel
corpus (--corpus, one file with a tab or two files) or else in the test set, if three quarters of
the references for sentences with the source word have the target word in some form. The translation
is spelled as in most of the references inside a sentence. Translates the test set without and with
it, and reports for each translation

* terms: of the sentences whose source has a term and whose reference has its translation in any
  form, the share whose translation has it in any form, too;
* BLEU, of `regard score`, or of sacrebleu where that is installed;
* repeated: sentences that have a term more often than both the source and the same model's
  translation without the glossary.

--trained MODEL adds a model of `regard train --terms`: without the glossary, with constrained
search, with terms in its source, and with both. --glossary FILE uses an existing glossary instead,
--keep FILE writes the one that was built, --unseen leaves out terms that the plain translation
always has, so that only the others count. --append FILE stores the table as text/glossary-NAME
(--name).
Needs only Python.
"""

import argparse
import collections
import gzip
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unicodedata

from alternate import append, append_option, regard_version

WORD = re.compile(r"[^\W\d_]+")


def fold(word):
    """Folds a word like the program does to compare forms: lowercase, without accents."""
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c)).lower()


def share_stem(a, b):
    """The program's rule: one word extends the other by up to three letters, or both have
    endings after a long common prefix."""
    if a == b:
        return True
    common = 0
    for x, y in zip(a, b):
        if x != y:
            break
        common += 1
    rest = [len(a) - common, len(b) - common]
    if max(rest) > 3:
        return False
    return common >= 3 if min(rest) == 0 else common >= 5 and common >= 2 * max(rest)


def words(text):
    return [fold(word) for word in WORD.findall(text)]


def count(term, text):
    """How often a term of one or several words occurs in a text, in any form."""
    term, found, at, number = words(term), words(text), 0, 0
    while term and at + len(term) <= len(found):
        here = all(share_stem(a, b) for a, b in zip(term, found[at:]))
        number += here
        at += len(term) if here else 1
    return number


def source_count(term, text):
    """How often a text has a term by the program's rules: whole words, also with a plural s or
    es."""
    flags = 0 if term.lower() != term else re.IGNORECASE
    return len(re.findall(rf"(?<!\w){re.escape(term)}(?:e?s)?(?!\w)", text, flags))


def content_words(text):
    return {word.lower() for word in WORD.findall(text) if len(word) > 3}


def usual_spellings(texts):
    """The most frequent spellings of words that do not begin a text, by lowercase form."""
    seen = collections.defaultdict(collections.Counter)
    for text in texts:
        for word in WORD.findall(text)[1:]:
            seen[word.lower()][word] += 1
    return {word: counts.most_common(1)[0][0] for word, counts in seen.items()}


def make_glossary(sources, references, corpus, least=3, dice=0.3, consistent=0.75):
    """Words of the test set that match each other better than any other word."""
    known = [set().union(*map(content_words, lines)) for lines in (sources, references)]
    of_source, of_target, both = collections.Counter(), collections.Counter(), collections.Counter()
    for source, target in corpus or zip(sources, references):
        left, right = content_words(source), content_words(target)
        of_source.update(left)
        of_target.update(right)
        both.update((a, b) for a in left & known[0] for b in right & known[1])
    best_target, best_source = {}, {}
    for (a, b), number in both.items():
        strength = 2 * number / (of_source[a] + of_target[b])
        if number >= least and strength >= dice:
            best_target[a] = max(best_target.get(a, (0, "")), (strength, b))
            best_source[b] = max(best_source.get(b, (0, "")), (strength, a))
    pairs = {a: b for a, (_, b) in sorted(best_target.items()) if best_source[b][1] == a}
    # A plural matches its singular.
    plural = lambda a: any(a in (other + "s", other + "es") for other in pairs if other != a)
    pairs = {a: b for a, b in pairs.items() if not plural(a)}
    # Keep words with one translation: the references have it nearly everywhere.
    kept = {}
    for a, b in pairs.items():
        at = [reference for source, reference in zip(sources, references) if source_count(a, source)]
        if sum(bool(count(b, reference)) for reference in at) >= consistent * len(at) > 0:
            kept[a] = b
    spellings = usual_spellings(references)
    return {a: spellings.get(b, b) for a, b in kept.items()}


def read_corpus(paths, most):
    opened = [gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8") for path in paths]
    lines = ("\t".join(line.rstrip("\n") for line in lines) for lines in zip(*opened))
    pairs = (line.split("\t") for _, line in zip(range(most), lines))
    return [pair[:2] for pair in pairs if len(pair) >= 2]


def translate(regard, model, source, flags):
    start = time.time()
    run = subprocess.run([regard, "translate", "--model", model, *flags, source], capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    summary = [line for line in run.stderr.splitlines() if "terms of the glossary" in line]
    return run.stdout.splitlines(), time.time() - start, summary


def bleu(regard, lines, reference):
    try:
        import sacrebleu
    except ImportError:
        sacrebleu = None
    if sacrebleu:
        references = pathlib.Path(reference).read_text("utf-8").splitlines()
        return sacrebleu.corpus_bleu(lines, [references]).score
    with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as file:
        file.write("\n".join(lines) + "\n")
    run = subprocess.run([regard, "score", "--hyp", file.name, "--ref", reference, "--metric", "bleu"], capture_output=True, text=True)
    pathlib.Path(file.name).unlink()
    if run.returncode:
        sys.exit(run.stderr)
    return float(re.search(r"= ([0-9.]+)", run.stdout).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("regard")
    parser.add_argument("model")
    parser.add_argument("source")
    parser.add_argument("reference")
    parser.add_argument("--trained", metavar="MODEL", help="a model of `regard train --terms`, measured beside the other")
    parser.add_argument("--corpus", nargs="+", help="pairs to count words in, separated by a tab or in two files; .gz is read, too")
    parser.add_argument("--corpus-lines", type=int, default=150_000)
    parser.add_argument("--glossary")
    parser.add_argument("--keep")
    parser.add_argument("--unseen", action="store_true")
    parser.add_argument("--name", default="words", help="what the stored table is called")
    append_option(parser)
    arguments = parser.parse_args()
    sources = pathlib.Path(arguments.source).read_text("utf-8").splitlines()
    references = pathlib.Path(arguments.reference).read_text("utf-8").splitlines()
    if arguments.glossary:
        lines = pathlib.Path(arguments.glossary).read_text("utf-8").splitlines()
        glossary = dict(line.split("\t") for line in lines if line and not line.startswith("#"))
    else:
        corpus = arguments.corpus and read_corpus(arguments.corpus, arguments.corpus_lines)
        glossary = make_glossary(sources, references, corpus)
    plain = translate(arguments.regard, arguments.model, arguments.source, [])
    places = [(i, a, b) for i, (source, reference) in enumerate(zip(sources, references))
              for a, b in glossary.items() if source_count(a, source) and count(b, reference)]
    if arguments.unseen:
        lacks = {a for i, a, b in places if not count(b, plain[0][i])}
        glossary = {a: b for a, b in glossary.items() if a in lacks}
        places = [place for place in places if place[1] in lacks]
    of_source = [[(a, b) for a, b in glossary.items() if source_count(a, source)] for source in sources]
    print(f"{len(glossary)} terms, {len(places)} places in {len(sources)} sentences", flush=True)
    print("| | terms | BLEU | repeated | seconds |")
    print("|---|---|---|---|---|")
    rows, summaries = [], []

    def report(name, found, before):
        lines, seconds, summary = found
        share = sum(bool(count(b, lines[i])) for i, _, b in places) / max(1, len(places))
        repeated = sum(any(count(b, after) > max(source_count(a, source), count(b, first)) for a, b in terms)
                       for source, terms, first, after in zip(sources, of_source, before[0], lines))
        score = bleu(arguments.regard, lines, arguments.reference)
        rows.append([name, 100 * share, score, repeated])
        summaries.extend(f"{name}: {line}" for line in summary)
        print(f"| {name} | {100 * share:.1f} % | {score:.2f} | {repeated} | {seconds:.1f} |", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(arguments.keep or pathlib.Path(folder) / "terms.tsv")
        file.write_text("".join(f"{a}\t{b}\n" for a, b in glossary.items()), "utf-8")

        def with_glossary(model, method):
            flags = ["--glossary", str(file), "--glossary-method", method]
            return translate(arguments.regard, model, arguments.source, flags)

        report("without glossary", plain, plain)
        report("constrained search", with_glossary(arguments.model, "constrain"), plain)
        if arguments.trained:
            own = translate(arguments.regard, arguments.trained, arguments.source, [])
            report("trained with terms, without glossary", own, own)
            for method, name in [("constrain", "constrained search"), ("annotate", "terms in the source"), ("auto", "both")]:
                report(f"trained with terms, {name}", with_glossary(arguments.trained, method), own)
    print(*summaries, sep="\n")
    columns = [f"{len(glossary)} terms, {len(places):,} places, {len(sources):,} sentences", "terms in the translation", "BLEU", "repeated terms"]
    row = {"id": f"text/glossary-{arguments.name}", "columns": columns, "formats": ["", "{:.1f} %", "{:.2f}", "{:.0f}"], "rows": rows}
    append(arguments.append, [row], 1, {"regard": regard_version(arguments.regard)})


if __name__ == "__main__":
    main()
