"""Makes crates/metrics/tests/goldens/metrics*.json: what sacreBLEU says about invented sentences.

    pip install sacrebleu==2.6.0 numpy regex
    python tools/goldens/metrics.py

Every sentence is invented here; everything random comes from one seed. Scores are stored with 12
digits.
"""

import json
import pathlib
import random
import unicodedata
import zlib

import numpy as np
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.bleu import _get_tokenizer
from sacrebleu.significance import PairedTest

assert sacrebleu.__version__ == "2.6.0", sacrebleu.__version__
OUT = pathlib.Path(__file__).resolve().parents[2] / "crates" / "metrics" / "tests" / "goldens"
RNG = random.Random(1706)

TOKENIZERS = ["13a", "intl", "char", "zh", "none"]
BLEU_CONFIGS = [dict(tokenize=t) for t in TOKENIZERS] + [
    dict(lowercase=True),
    dict(tokenize="intl", lowercase=True, effective_order=True),
    dict(tokenize="zh", smooth_method="add-k"),
    dict(smooth_method="none"),
    dict(smooth_method="none", effective_order=True),
    dict(smooth_method="floor"),
    dict(smooth_method="floor", smooth_value=0.5, effective_order=True),
    dict(smooth_method="add-k", effective_order=True),
    dict(smooth_method="add-k", smooth_value=0.25),
    dict(effective_order=True),
    dict(max_ngram_order=1),
    dict(max_ngram_order=6, tokenize="char"),
]
CHRF_CONFIGS = [
    dict(),
    dict(word_order=2),
    dict(word_order=1, lowercase=True),
    dict(word_order=3, char_order=4, beta=1),
    dict(beta=3),
    dict(beta=0),
    dict(whitespace=True),
    dict(whitespace=True, word_order=2, eps_smoothing=True),
    dict(eps_smoothing=True),
    dict(lowercase=True, eps_smoothing=True),
    dict(char_order=0, word_order=2),
]
TER_FLAGS = ["normalized", "no_punct", "asian_support", "case_sensitive"]
TER_CONFIGS = [{f: True for i, f in enumerate(TER_FLAGS) if bits >> i & 1} for bits in range(16)]


def rounded(x):
    return float(f"{x:.12g}")


# --------------------------------------------------------------------------------------------- text

def invented():
    """Short sentences of many scripts, and longer ones of a small grammar."""
    fixed = [
        "The lighthouse keeper's daughter counts 1,024 gulls, 3.5 boats and one (very) old dog.",
        "\"Stop!\" cried Mrs. O'Neil; the 10-year-old clock struck 12:45 - twice.",
        "Prices rose by 3.7% to $1,299.99 (about €1.200,50) in Q3/2021...",
        "Visit https://example.org/a_b?c=d&e=f#g or write to info@example.org!",
        "Tom &amp; Jerry said &quot;no&quot; &lt;skipped&gt; <skipped> &amp;lt;b&amp;gt; R&D.",
        "Der Bäcker verkauft dienstags für 2,50 € süße Brötchen, nicht wahr?",
        "« L'été prochain », dit-elle, « j'irai à Besançon ; c'est sûr ! »",
        "¿Dónde está el niño? ¡Aquí, detrás del árbol nº 7!",
        "Старый мост над рекой закрыт до 15-го мая, сказал мэр.",
        "Ο Οδυσσέας ΕΊΔΕ ΤΟΥΣ ΔΡΌΜΟΥΣ ΤΗΣ ΠΌΛΗΣ· «καλώς ήρθες».",
        "İstanbul'da IŞIK ve ılık bir akşam, DİYARBAKIR'da kar.",
        "老渔夫把三条鱼卖给了邻居，换来一袋大米。",
        "图书馆在ABC大街12号，星期一不开门！“真的吗？”她问。",
        "駅前のパン屋は、午前７時に開きます。コーヒーもある・・・らしい。",
        "ｶﾀｶﾅ と ひらがな「かぎ括弧」と漢字（カッコ）です。",
        "할머니는 시장에서 사과 3개와 배 2개를 샀다.",
        "كتب الطفلُ رسالةً إلى القمر، ثم نام.",
        "नदी के किनारे एक पुराना बरगद है। वहाँ १२ बंदर रहते हैं।",
        "แมวสีส้มนอนหลับอยู่บนหลังคาบ้านของครู",
        "Emoji 👩‍👩‍👧‍👦 and flags 🇩🇪🇫🇷, thumbs 👍🏽, maths ∑∀x∈ℝ: x²≥0 → ½ ≤ ¾.",
        "Zalgo t̷̢̛e̵̡͝x̶t, combining e\u0301 vs é, ligature ﬁ, ß vs ẞ, Ǆ ǅ ǆ.",
        "Spaces:\u00a0no-break\u2003em\u3000ideographic\u200bzero\u2009thin\u205fmath\x1fus\x85nel.",
        "Dashes – en, — em, ‒ figure, 5–7, 5-7, ten-fold; quotes „a“ ‚b‘ “c” ‘d’.",
        "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 beyond the plane: 𠀀𠀁 豈 𝟙𝟚 🄰 ⅷ Ⅷ ① ⑳ ੩ ៣.",
        "yes", "No.", "?", "...", "a b", "1", "1.000,5", "x - y - z",
    ]
    subjects = ["the tall miller", "a quiet girl", "my neighbour's goat", "the 3rd captain", "Dr. Vale", "nobody"]
    verbs = ["painted", "has never seen", "sold", "quickly hid", "will repair", "forgot"]
    objects = ["the green boat", "two wooden spoons", "an empty, dusty barn", "the old map of Orrin", "it"]
    places = ["near the mill", "behind the church", "on the way to Pell Bay", "at 6.30 p.m.", "in the rain"]
    ends = [".", "!", "?", "...", "; then it snowed.", ", I think."]
    sentences = list(fixed)
    for _ in range(48):
        parts = [RNG.choice(subjects), RNG.choice(verbs), RNG.choice(objects), RNG.choice(places)]
        if RNG.random() < 0.4:
            parts += ["and", RNG.choice(subjects), RNG.choice(verbs), RNG.choice(objects), RNG.choice(places)]
        text = " ".join(parts) + RNG.choice(ends)
        sentences.append(text[0].upper() + text[1:])
    # Long ones with much repetition: the beam, the largest shift distance and the limit on
    # candidates.
    pool = "the of and boat mill rain old green to a in on , . goat map".split()
    for length in (30, 55, 56, 80, 130):
        sentences.append(" ".join(RNG.choice(pool) for _ in range(length)))
    return sentences


ODD = ["\u00a0", "\u3000", "\x1c", "\x1f", "\x85", "\u2028", "\u200b", "\u200d", "\ufeff", "\u0301", "\u05bf", "\u202e", "\t",
       "&amp;", "&lt;", "'s", "-", ".", ",", "1", "$", "+", "~", "_", "«", "。", "，", "！", "・", "々", "ー", "か", "字",
       "㌀", "㈱", "ㇰ", "⺀", "﹐", "️", "😀", "§", "©", "\u2212", "²", "Σ", "ς", "İ", "ǅ", "\x00", "\r", "𝟘", "𠮷", "ﷺ", "٫"]


def perturb(text):
    words = text.split(" ")
    for _ in range(RNG.choice([0, 1, 1, 2, 2, 3, 4, 6])):
        n = len(words)
        i, j = RNG.randrange(n), RNG.randrange(n)
        kind = RNG.randrange(12)
        if kind == 0 and n > 1:
            del words[i]
        elif kind == 1:
            words.insert(i, words[j])
        elif kind == 2:
            words[i], words[j] = words[j], words[i]
        elif kind in (3, 4):
            k = min(n, i + RNG.randrange(1, 12))
            span = words[i:k]
            del words[i:k]
            at = RNG.randrange(len(words) + 1)
            words[at:at] = span
        elif kind == 5:
            words[i] = RNG.choice([str.upper, str.lower, str.title])(words[i])
        elif kind in (6, 7):
            at = RNG.randrange(len(words[i]) + 1)
            words[i] = words[i][:at] + RNG.choice(ODD) + words[i][at:]
        elif kind == 8 and words[i]:
            at = RNG.randrange(len(words[i]))
            words[i] = words[i][:at] + words[i][at + 1:]
        elif kind == 9 and n > 1:
            words[i:i + 2] = ["".join(words[i:i + 2])]
        elif kind == 10:
            words[i] = RNG.choice(["boat", "mill,", "12", "old", "字", "ja"])
        elif kind == 11:
            words = words[:max(1, n - 2)] if n > 3 else words + words
    return " ".join(words)


# ------------------------------------------------------------------------------------------- scores

def details(score):
    if score.name == "BLEU":
        return dict(counts=[int(c) for c in score.counts], totals=[int(t) for t in score.totals], bp=rounded(score.bp),
                    precisions=[rounded(p) for p in score.precisions], sys_len=score.sys_len, ref_len=score.ref_len)
    if score.name == "TER":
        return dict(num_edits=score.num_edits, ref_length=rounded(score.ref_length))
    return {}


def corpus(name, hyps, refs):
    results = []
    for kind, cls, configs in (("bleu", BLEU, BLEU_CONFIGS), ("chrf", CHRF, CHRF_CONFIGS), ("ter", TER, TER_CONFIGS)):
        for i, config in enumerate(configs):
            metric = cls(**config, **(dict(force=True) if cls is BLEU else {}))
            score = metric.corpus_score(hyps, refs)
            signature = metric.get_signature().format()
            row = dict(metric=kind, config=i, score=rounded(score.score), signature=signature)
            row["line"] = score.format(signature=signature)
            if config.get("smooth_method") != "add-k":
                row.update(details(score))
            results.append(row)
    return dict(name=name, hyps=hyps, refs=refs, results=results)


def perturbed(sentences):
    rows = []
    base = [BLEU(effective_order=True), CHRF(), CHRF(word_order=2), TER()]
    others = [[BLEU(**c) for c in BLEU_CONFIGS], [CHRF(**c) for c in CHRF_CONFIGS], [TER(**c) for c in TER_CONFIGS]]
    for i in range(1000):
        ref = i % len(sentences)
        hyp = perturb(sentences[ref])
        metrics = base + [metrics[i % len(metrics)] for metrics in others]
        scores = [rounded(m.sentence_score(hyp, [sentences[ref]]).score) for m in metrics]
        rows.append([ref, hyp, scores])
    return rows


def corpora(sentences, rows):
    short = [s for s in sentences if len(s) < 200][:60]
    empties = ["", "a b c d e", "", " ", "\u3000", "the cat sat on the mat", "."]
    empty_refs = ["a b c d e", "", "", "\x1f", " x ", "the cat sat on the mat", ""]
    pool = "the of and boat mill rain old green to a".split()
    long_hyps, long_refs = [], []
    for n_hyp, n_ref in ((1, 120), (1, 49), (2, 101), (2, 100), (3, 152), (120, 1), (60, 7), (7, 60), (130, 128), (110, 110)):
        long_hyps.append(" ".join(RNG.choice(pool) for _ in range(n_hyp)))
        long_refs.append(" ".join(RNG.choice(pool) for _ in range(n_ref)))
    distinct = [f"w{i}" for i in range(140)]
    long_hyps += [" ".join(distinct[70:] + distinct[:70]), " ".join(distinct[40:] + distinct[:40]), " ".join(distinct[::-1])]
    long_refs += [" ".join(distinct)] * 3
    return [
        corpus("three references", [perturb(s) for s in short], [short] + [[perturb(s) for s in short] for _ in range(2)]),
        corpus("empty lines", empties, [empty_refs]),
        corpus("empty lines, two references", empties, [empty_refs, empties[::-1]]),
        corpus("nothing at all", ["", ""], [["", ""]]),
        corpus("only the hypothesis", ["a b c", "d e"], [["", ""]]),
        corpus("only the reference", ["", ""], [["a b c", "d e"]]),
        corpus("no match", ["a b c d", "e f"], [["g h i j", "k l"]]),
        corpus("equal", short[:20], [short[:20]]),
        corpus("edges and spaces", ["  a  b ", "\ta\n-b ", "x-\ny\n", "it's 's", "5.-6,-7.", "..,,.."],
               [["a b", "a -b", "xy", "it 's 's", "5 . - 6", ". . , , . ."]]),
        corpus("long", long_hyps, [long_refs]),
    ]


# ---------------------------------------------------------------------------------- significance, …

def significance(sentences, rows):
    """Systems are slices of the perturbed rows: `start` is the first row, and row `start + i` pairs
    with reference i."""
    n = len(sentences)
    refs = [sentences]
    results = []
    systems = [[hyp for _, hyp, _ in rows[k * n:(k + 1) * n]] for k in range(3)]
    for a, b in ((0, 1), (1, 2), (0, 0)):
        metrics = {"bleu": BLEU(), "chrf": CHRF(), "ter": TER()}
        for name, metric in metrics.items():
            signatures, scores = PairedTest([("a", systems[a]), ("b", systems[b])], {name: metric}, refs, "bs", 300)()
            (key,) = [k for k in scores if k != "System"]
            baseline, system = scores[key]
            results.append(dict(
                metric=name, baseline=a, system=b, samples=300, seed=12345, p=system.p_value,
                means=[float(baseline.mean), float(system.mean)], cis=[float(baseline.ci), float(system.ci)],
                signature=signatures[key].format()))
    # One real difference: the references themselves against a perturbation.
    signatures, scores = PairedTest([("a", sentences), ("b", systems[0])], {"bleu": BLEU()}, refs, "bs", 300)()
    baseline, system = scores["BLEU"]
    results.append(dict(
        metric="bleu", baseline=-1, system=0, samples=300, seed=12345, p=system.p_value,
        means=[float(baseline.mean), float(system.mean)], cis=[float(baseline.ci), float(system.ci)],
        signature=signatures["BLEU"].format()))
    score = BLEU().corpus_score(systems[0], refs, n_bootstrap=500)
    return dict(paired=results, interval=dict(samples=500, mean=score._mean, ci=score._ci))


def draws():
    cases = []
    for seed, n in ((12345, 85), (0, 3), (1, 1), (7, 3_000_000_000), (2**32, 1000), (2**64 - 1, 7), (99, 2**31 + 1)):
        cases.append(dict(seed=seed, n=n, indices=np.random.default_rng(seed).choice(n, size=(4, 6)).ravel().tolist()))
    return cases


def unicode_blocks():
    """CRC-32 of what happens around every character of Unicode 14, by blocks of 4096; unassigned
    ones are left out."""
    assigned, blocks = [], {}
    tokenizers = {name: _get_tokenizer(name)() for name in TOKENIZERS}
    ter = TER(normalized=True, no_punct=False, asian_support=True)
    no_punct = TER(no_punct=True, asian_support=True, case_sensitive=True)
    for code in range(0x110000):
        c = chr(code)
        if unicodedata.category(c) in ("Cn", "Cs", "Co"):
            continue
        if assigned and assigned[-1][1] == code:
            assigned[-1][1] = code + 1
        else:
            assigned.append([code, code + 1])
        block = blocks.setdefault(code >> 12, dict(crc={name: 0 for name in [*TOKENIZERS, "lower"]}, edits=[0, 0]))
        line = f"a{c}1{c}{c}b {c}"
        for name, tokenizer in tokenizers.items():
            text = " ".join(tokenizer(line).split()) + "\n"
            block["crc"][name] = zlib.crc32(text.encode(), block["crc"][name])
        block["crc"]["lower"] = zlib.crc32(f"{c} a{c} {c}b".lower().encode(), block["crc"]["lower"])
        for k, metric in enumerate((ter, no_punct)):
            block["edits"][k] += metric.sentence_score(line, [f"a {c} 1 {c} {c} b"]).num_edits
    return dict(assigned=assigned, blocks=[dict(block=b, **v) for b, v in blocks.items()])


def write(name, data):
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # One row a line, so that a change can be read.
    text = text.replace("],[", "],\n[").replace("},{", "},\n{")
    assert json.loads(text) == json.loads(json.dumps(data))
    (OUT / name).write_text(text + "\n", encoding="utf-8", newline="\n")
    print(name, len(text.encode()))


def main():
    sentences = invented()
    rows = perturbed(sentences)
    configs = dict(bleu=BLEU_CONFIGS, chrf=CHRF_CONFIGS, ter=TER_CONFIGS)
    write("metrics_perturbed.json", dict(
        configs=configs, sentences=sentences, perturbed=rows, significance=significance(sentences, rows)))
    write("metrics_corpora.json", dict(configs=configs, corpora=corpora(sentences, rows)))
    write("metrics_unicode.json", dict(draws=draws(), **unicode_blocks()))


if __name__ == "__main__":
    main()
