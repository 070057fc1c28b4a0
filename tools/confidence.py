#!/usr/bin/env python3
"""Fits the confidence of a translation to its chrF, and plots one against the other.

    regard translate --model MODEL --json --no-split test.en > test.json
    tools/confidence.py test.json test.pt --plot docs/confidence.svg [--check other.json other.pt]…

The input is one JSON object per line with `token_scores`, and a reference for each line. chrF is
that of the sentence (character 1- to 6-grams, β = 2). The model is a logistic function of the mean
log-probability of a token, each bounded below at -8; its two parameters, which minimise the
cross-entropy against chrF, are those in crates/documents/src/confidence.rs. (With the smallest
log-probability as a second variable, its weight was -0.02: it adds nothing.) They are fitted on the
even lines; the plot shows the odd ones in blue and the other sets as lines. Needs only Python.
"""

import argparse
import collections
import json
import math


def chrf(hypothesis, reference, order=6, beta=2.0):
    """Sentence chrF as in sacreBLEU, from 0 to 1."""
    hypothesis, reference = "".join(hypothesis.split()), "".join(reference.split())
    precision = recall = effective = 0.0
    for n in range(1, order + 1):
        ours = collections.Counter(hypothesis[i : i + n] for i in range(len(hypothesis) - n + 1))
        theirs = collections.Counter(reference[i : i + n] for i in range(len(reference) - n + 1))
        if not ours or not theirs:
            continue
        common = sum((ours & theirs).values())
        precision += common / sum(ours.values())
        recall += common / sum(theirs.values())
        effective += 1
    if not effective or precision + recall == 0:
        return 0.0
    precision, recall = precision / effective, recall / effective
    return (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


def features(scores):
    bounded = [min(0.0, max(-8.0, score)) for score in scores]
    return [1.0, sum(bounded) / len(bounded)]


def read(translations, references):
    rows = []
    with open(translations, encoding="utf-8") as f, open(references, encoding="utf-8") as g:
        for line, reference in zip(f, g, strict=True):
            best = json.loads(line)["translations"][0]
            rows.append((features(best["token_scores"]), chrf(best["text"], reference.rstrip("\n"))))
    return rows


def predict(weights, row):
    return 1 / (1 + math.exp(-sum(w * x for w, x in zip(weights, row))))


def fit(rows, ridge=1e-3):
    """Fits the parameters with Newton's method."""
    weights = [0.0, 0.0]
    for _ in range(50):
        gradient, hessian = [ridge * w for w in weights], [[ridge * (i == j) for j in range(2)] for i in range(2)]
        for row, y in rows:
            p = predict(weights, row)
            for i in range(2):
                gradient[i] += (p - y) * row[i]
                for j in range(2):
                    hessian[i][j] += p * (1 - p) * row[i] * row[j]
        step = solve(hessian, gradient)
        weights = [w - s for w, s in zip(weights, step)]
    return weights


def solve(matrix, vector):
    rows = [list(row) + [value] for row, value in zip(matrix, vector)]
    n = len(rows)
    for i in range(n):
        pivot = max(range(i, n), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(n):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def correlation(xs, ys):
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    cov = sum((x - mx) * (y - my) for x, y in zip(xs, ys))
    return cov / math.sqrt(sum((x - mx) ** 2 for x in xs) * sum((y - my) ** 2 for y in ys))


def bins(weights, rows, count=10):
    """The mean confidence and chrF of ten groups of equal size, sorted by confidence."""
    found = sorted((predict(weights, row), y) for row, y in rows)
    groups = [found[len(found) * i // count : len(found) * (i + 1) // count] for i in range(count)]
    mean = lambda values: sum(values) / len(values)
    return [(mean([c for c, _ in group]), mean([y for _, y in group])) for group in groups if group]


def report(name, weights, rows):
    pairs = [(predict(weights, row), y) for row, y in rows]
    groups = bins(weights, rows)
    error = sum(abs(c - y) for c, y in groups) / len(groups)
    r = correlation([c for c, _ in pairs], [y for _, y in pairs])
    print(f"{name}: {len(rows)} sentences, correlation {r:.3f}, calibration error {error:.3f}")
    print("  confidence " + " ".join(f"{c:.2f}" for c, _ in groups))
    print("  chrF       " + " ".join(f"{y:.2f}" for _, y in groups))


def plot(path, weights, rows, others):
    size, margin = 440, 50
    at = lambda v: margin + v * (size - 2 * margin)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" viewBox="0 0 {size} {size}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{size}" height="{size}" fill="white"/>',
    ]
    for tick in range(0, 11, 2):
        v = tick / 10
        x, y = at(v), size - at(v)
        out.append(f'<line x1="{x}" y1="{margin}" x2="{x}" y2="{size - margin}" stroke="#eee"/>')
        out.append(f'<line x1="{margin}" y1="{y}" x2="{size - margin}" y2="{y}" stroke="#eee"/>')
        out.append(f'<text x="{x}" y="{size - margin + 16}" text-anchor="middle">{v:.1f}</text>')
        out.append(f'<text x="{margin - 6}" y="{y + 4}" text-anchor="end">{v:.1f}</text>')
    out.append(f'<line x1="{at(0)}" y1="{size - at(0)}" x2="{at(1)}" y2="{size - at(1)}" stroke="#999" stroke-dasharray="4"/>')
    for row, y in rows:
        x = predict(weights, row)
        out.append(f'<circle cx="{at(x):.1f}" cy="{size - at(y):.1f}" r="2" fill="#4477aa" fill-opacity="0.25"/>')
    for points, colour in [(bins(weights, rows), "#4477aa")] + [(bins(weights, r), c) for r, c in others]:
        line = " ".join(f"{at(c):.1f},{size - at(y):.1f}" for c, y in points)
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
    out.append(f'<text x="{size / 2}" y="{size - 10}" text-anchor="middle">confidence</text>')
    out.append(f'<text x="14" y="{size / 2}" text-anchor="middle" transform="rotate(-90 14 {size / 2})">chrF of the sentence</text>')
    out.append("</svg>")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("translations")
    parser.add_argument("references")
    parser.add_argument("--check", nargs=2, action="append", default=[], metavar=("JSON", "REF"))
    parser.add_argument("--plot", metavar="FILE.svg")
    arguments = parser.parse_args()
    rows = read(arguments.translations, arguments.references)
    weights = fit(rows[0::2])
    print("INTERCEPT {:.3f}  OF_MEAN {:.3f}".format(*weights))
    report("fitted", weights, rows[0::2])
    report("held out", weights, rows[1::2])
    others = []
    for (translations, references), colour in zip(arguments.check, ["#cc6677", "#228833", "#aa3377"]):
        others.append((read(translations, references), colour))
        report(translations, weights, others[-1][0])
    if arguments.plot:
        plot(arguments.plot, weights, rows[1::2], others)


if __name__ == "__main__":
    main()
