#!/usr/bin/env python3
"""Generates the figures of the documents from the stored results of the benchmark scripts.

    python3 tools/results.py            # writes the tables into the documents, checks the sentences
    python3 tools/results.py --check    # changes nothing; status 1 if a document and a result disagree
    python3 tools/results.py --list     # every stored result by its name, with its fields

`docs/results/MACHINE.jsonl` has one JSON object per line, as the scripts append it (`--append`).
A document names results in comments:

    <!-- table: decode zen3-avx2 -->
    …
    <!-- end of table -->

is a table that this script writes (`TABLES` below), and

    It reaches BLEU 39.71.
    <!-- result: zen3-avx2 quality/multi30k bleu:.2f -->

states which figures the paragraph, table or code block above it quotes: each must occur, in this
format; `_` also stands for a space in the name of a field. Several results are separated by
semicolons. Of results with the same name, the last line of a file counts; of single runs (`step/…`,
`torch-step/…`), the median of those with the same date.

Needs only Python.
"""
import argparse, json, pathlib, re, statistics, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STORED = ROOT / "docs" / "results"
MACHINES = {
    "zen3-avx2": "Zen 3, AVX2",
    "zen4-avx512-vnni-bf16": "Zen 4, AVX-512",
    "zen4-avx2": "Zen 4, AVX2",
    "zen5-avx512-vnni-bf16": "Zen 5, AVX-512",
    "xeon-avx512-vnni-bf16": "Xeon, AVX-512",
    "xeon-avx512-vnni": "Xeon (Emerald Rapids), AVX-512",
}
# The generation of the processor in each file, which the system's name of the processor lacks.
GENERATIONS = {
    "zen4-avx512-vnni-bf16": "Zen 4",
    "zen4-avx2": "Zen 4",
    "zen5-avx512-vnni-bf16": "Zen 5",
    "xeon-avx512-vnni-bf16": "Sapphire Rapids",
    "xeon-avx512-vnni": "Emerald Rapids",
}
PROCESSOR = re.compile(r"(AMD EPYC|Intel\(R\) Xeon\(R\) Processor|Xeon)( \((.*?)\))?")
OPEN = re.compile(r"^<!-- table: (.+) -->$")
CLOSE = "<!-- end of table -->"
RESULT = re.compile(r"^<!-- result: (.+) -->$")


class Fault(Exception):
    """An inconsistency in a document or a stored line."""


def name(line):
    """The name of a result: its own `id`, or derived from the fields of its script."""
    if "id" in line:
        return line["id"]
    if "case" in line:
        return f"decode/{line['case']}"
    if "torch_tokens_per_s" in line:
        return f"train/{line['preset']}"
    if "shape" in line:
        return f"families/{line['shape']}-{line['beam']}-{line['batch']}"
    table = line.get("table")
    if table in ("speed", "engines"):
        said = line.get("text", line["machine"])
        text = next((t for t in ("flores", "software") if t in said), None)
        if text:
            return f"firefox/{text}/{line['mode' if table == 'speed' else 'engine']}"
    if table == "python":
        return f"python/{line['list']}"
    if "step_ms" in line and "peer" in line:
        kind = {"regard": "step", "torch": "torch-step"}[line["peer"]]
        sampled = "-sampled" if "--softmax-sample" in line["command"] else ""
        return f"{kind}/{line['preset']}-{line['precision']}{sampled}"
    raise Fault(f"no name for {json.dumps(line)[:100]}: give it an `id`")


def median(lines):
    """Combines single runs of the same thing by their median."""
    numbers = [f for f, v in lines[-1].items() if isinstance(v, (int, float)) and not isinstance(v, bool)]
    return lines[-1] | {f: statistics.median(line[f] for line in lines) for f in numbers} | {"rounds": len(lines)}


def machine_name(file, machine):
    """The machine of a line of `file`, with the generation of its processor."""
    found, generation = PROCESSOR.match(machine), GENERATIONS.get(file)
    if not found or not generation or generation in machine:
        return machine
    details = ", ".join(filter(None, [generation, found[3]]))
    return f"{found[1]} ({details}){machine[found.end():]}"


def load(folder=STORED):
    """{machine: {name: result}}"""
    found = {}
    for path in sorted(folder.glob("*.jsonl")):
        results = found[path.stem] = {}
        runs = {}
        for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                line = json.loads(text)
                if "command" not in line:
                    raise Fault("no `command`")
                called = name(line)
                line["machine"] = machine_name(path.stem, line.get("machine", MACHINES.get(path.stem, path.stem)))
            except (ValueError, KeyError, Fault) as error:
                raise Fault(f"{path.name}:{number}: {error}") from error
            if called.startswith(("step/", "torch-step/")):
                same = runs.setdefault(called, [])
                if same and same[-1].get("date") != line.get("date"):
                    same.clear()
                same.append(line)
                line = median(same)
            results[called] = line
    return found


def get(stored, machine, called):
    try:
        return stored[machine][called]
    except KeyError:
        raise Fault(f"docs/results has no {called} of {machine}") from None


def number(value):
    """Formats a rate such as tokens per second: an integer, with commas from a thousand on."""
    return "–" if value is None else f"{int(value + 0.5):,}"


def ratio(value):
    return f"**{value:.2f}×**" if value < 5 else f"**{value:.1f}×**"


def table(columns, rows):
    lines = [columns, ["---"] * len(columns), *rows]
    cells = lambda line: "|" + "".join(f" {cell} |" if cell else " |" for cell in line)
    return [cells(line) if line[0] != "---" else "|" + "---|" * len(line) for line in lines]


def sources(results):
    """The provenance of the figures: machine, versions, rounds, date and command, each once."""
    said = {}
    for line in results:
        parts = [line.get("machine", "").replace("not recorded", "machine not recorded")]
        versions = line.get("versions", {})
        parts += [f"{k} {v}" for k, v in versions.items()]
        if "rounds" in line and " rounds" not in parts[0]:
            parts.append(f"{line['rounds']} round{'' if line['rounds'] == 1 else 's'}")
        command, _, build = line["command"].partition(" (")
        parts += [line.get("date", ""), build.rstrip(")")]
        text = ", ".join(p for p in parts if p)
        commands = said.setdefault(text, [])
        if command not in commands:
            commands.append(command)
    end = "<br>" if len(said) > 1 else ""
    return ["", *(f"<sub>{text}: {', '.join(f'`{c}`' for c in commands)}</sub>{end}" for text, commands in said.items())]


def train(stored, machine):
    columns = ["preset", "PyTorch tok/s", "Regard tok/s", "ratio", "PyTorch peak MB", "Regard peak MB", "GFLOPS", "time in GEMM"]
    found = [(p, get(stored, machine, f"train/{p}")) for p in ("tiny", "small", "base")]
    rows = [[p, number(r["torch_tokens_per_s"]), number(r["regard_tokens_per_s"]), ratio(r["speed_ratio"]), number(r["torch_peak_mb"]),
             number(r["regard_peak_mb"]), number(r["regard_gflops"]), f"{100 * r['matmul_share']:.0f} %"] for p, r in found]
    return table(columns, rows) + sources(r for _, r in found)


def presets(stored, *machines):
    """Expectations for a training run: speed of each preset, and its memory on the last machine."""
    shapes = {"tiny": "128, 4, 4 + 4, 256", "small": "512, 4, 6 + 6, 1024", "base": "512, 8, 6 + 6, 2048", "student": "256, 8, 6 + 2, 1536"}
    rows = []
    for preset, shape in shapes.items():
        full = [stored[m].get(f"train/{preset}") for m in machines]
        step = [stored[m].get(f"step/{preset}-f32") or stored[m].get(f"step/{preset}-bf16") for m in machines]
        speeds = [f["regard_tokens_per_s"] if f else s["target_tokens_per_s"] if s else None for f, s in zip(full, step)]
        memory = [f["regard_peak_mb"] if f else s["peak_rss_mb"] for f, s in zip(full, step) if f or s]
        rows.append([preset, shape, *map(number, speeds), f"{number(memory[-1])} MB"])
    return table(["preset", "width, heads, layers, feed-forward", *(MACHINES[m] for m in machines), "memory"], rows)


CASES = ["base-int8-4-32", "base-int8-1-32", "tiny-int8-4-32", "base-int8-4-1", "base-int8-1-1", "base-f32-4-32"]


def decode(stored, machine):
    columns = ["preset, precision, beam, batch", "CTranslate2 tok/s", "Regard tok/s", "ratio", "CTranslate2 peak MB", "Regard peak MB"]
    found = [(case, stored[machine][f"decode/{case}"]) for case in CASES if f"decode/{case}" in stored[machine]]
    if not found:
        raise Fault(f"docs/results has no decoding of {machine}")
    rows = [[case.replace("-", ", "), number(r["ctranslate2_tokens_per_s"]), number(r["regard_tokens_per_s"]), ratio(r["speed_ratio"]),
             number(r["ctranslate2_peak_mb"]), number(r["regard_peak_mb"])] for case, r in found]
    return table(columns, rows) + sources(r for _, r in found)


def overview(stored, *machines, language="en"):
    """The table of the README; – is what has not been measured on a machine."""
    words = {
        "en": ["training, tiny / small / base, against PyTorch", "decoding, base int8, beam 4, batch 32, against CTranslate2", "the same, beam 1",
               "the same in f32, beam 4", "one sentence at a time, base int8, beam 4", "Firefox model, one thread, against Bergamot"],
        "zh": ["训练 tiny / small / base，对比 PyTorch", "解码 base int8，束宽 4，批大小 32，对比 CTranslate2", "同上，束宽 1", "同上，f32，束宽 4", "逐句解码 base int8，束宽 4",
               "Firefox 模型，单线程，对比 Bergamot"],
    }[language]
    cases = ["base-int8-4-32", "base-int8-1-32", "base-f32-4-32", "base-int8-4-1"]

    def column(machine):
        speeds = [get(stored, machine, f"train/{p}")["speed_ratio"] for p in ("tiny", "small", "base")]
        yield " / ".join(f"{s:.2f}×" for s in speeds)
        for case in cases:
            yield ratio(get(stored, machine, f"decode/{case}")["speed_ratio"]).strip("*")
        firefox = stored[machine].get("firefox/flores/one-thread")
        yield ratio(firefox["ratio"]).strip("*") if firefox else "–"

    rows = zip(words, *(column(m) for m in machines))
    return table(["", *(MACHINES[m] for m in machines)], [list(row) for row in rows])


def firefox(stored, machine):
    texts = {"flores": "FLORES", "software": "messages of programs"}
    modes = {"one-thread": "one thread, words/s", "two-threads": "two threads, words/s", "line-by-line": "line by line, sentences/s"}
    columns = ["text", "mode", "Bergamot", "fxtranslate", "Regard", "ratio to the better"]
    found = [(t, m, get(stored, machine, f"firefox/{t}/{m}")) for t in texts for m in modes]
    rows = [[texts[t] if m == "one-thread" else "", modes[m], number(r["bergamot"]), number(r["fxtranslate"]), number(r["regard"]), ratio(r["ratio"])]
            for t, m, r in found]
    return table(columns, rows) + sources(r for _, _, r in found)


def engines(stored, machine):
    """Loading, memory and quality of a Firefox model in each engine."""
    texts = {"flores": "FLORES", "software": "messages of programs"}
    found = [(t, e, get(stored, machine, f"firefox/{t}/{e}")) for t in texts for e in ("bergamot", "fxtranslate", "regard")]
    rows = [[texts[t] if e == "bergamot" else "", f"{e} {r['version']}", number(r["load_ms"]), number(r["peak_rss_mb"]), "–" if r["bleu"] is None else f"{r['bleu']:.2f}",
             f"{number(r['same_lines_as_bergamot'])} of {number(r['lines'])}"] for t, e, r in found]
    return table(["text", "engine", "loading ms", "peak MB", "BLEU", "lines equal to Bergamot's"], rows) + sources(r for _, _, r in found)


def bf16(stored, machine):
    found = [(p, get(stored, machine, f"step/{p}-f32"), get(stored, machine, f"step/{p}-bf16")) for p in ("tiny", "base")]
    rows = [[f"Regard, {p}", number(f["target_tokens_per_s"]), number(b["target_tokens_per_s"])] for p, f, b in found]
    torch = [get(stored, machine, f"torch-step/tiny-{p}") for p in ("f32", "bf16")]
    rows.append(["PyTorch, tiny", *(number(t["target_tokens_per_s"]) for t in torch)])
    return table(["", "f32 tok/s", "bf16 tok/s"], rows) + sources([r for _, *both in found for r in both] + torch)


def python(stored, machine):
    found = [(n, get(stored, machine, f"python/{n}")) for n in (1, 32)]
    rows = [["single sentences" if n == 1 else f"lists of {n}", number(r["package"]), number(r["cli"]), number(r["ctranslate2"])] for n, r in found]
    return table(["", "regard", "`regard translate`", "ctranslate2"], rows) + sources(r for _, r in found)


def real(stored, machine):
    """A trained model compared with CTranslate2."""
    found = [(e, p, get(stored, machine, f"real/{e.lower()}-{p}")) for p in ("f32", "int8") for e in ("CTranslate2", "Regard")]
    rows = [[f"{e}, {p}", f"{r['seconds']:.1f}", number(r["tokens_per_s"]), number(r["peak_rss_mb"]), f"{r['bleu']:.2f}", f"{r['chrf']:.2f}"] for e, p, r in found]
    return table(["", "seconds", "tokens/s", "peak MB", "BLEU", "chrF"], rows) + sources(r for *_, r in found)


def families(stored, machine):
    """Models of other families compared with CTranslate2 on the same folder."""
    shapes = {"nllb-200-600m": "NLLB-200 600M", "m2m100-418m": "M2M100 418M"}
    cases = [(4, 32), (1, 32), (4, 1), (1, 1)]
    found = [(s, b, n, get(stored, machine, f"families/{s}-{b}-{n}")) for s in shapes for b, n in cases]
    rows = [[shapes[s] if (b, n) == cases[0] else "", f"{b}, {n}", number(r["ctranslate2_target_tokens_per_s"]), number(r["regard_target_tokens_per_s"]), ratio(r["speed_ratio"]),
             number(r["ctranslate2_peak_rss_mb"]), number(r["regard_peak_rss_mb"]), f"{r['ctranslate2_load_s']:.2f}", f"{r['regard_load_s']:.2f}"] for s, b, n, r in found]
    columns = ["shape", "beam, batch", "CTranslate2, tokens/s", "Regard, tokens/s", "ratio", "CTranslate2, peak MB", "Regard, peak MB", "CTranslate2, loading s", "Regard, loading s"]
    return table(columns, rows) + sources(r for *_, r in found)


def fuzzing(stored, machine):
    """Executions of every fuzz target, and the lines of its reader that they reached."""
    names = sorted(name for name in stored[machine] if name.startswith("fuzzing/"))
    found = [(name.removeprefix("fuzzing/"), get(stored, machine, name)) for name in names]
    rows = [[f"`{name}`", number(r["executions"]), number(r["seconds"]), f"{number(r['covered'])} of {number(r['lines'])}", f"{100 * r['share']:.0f} %"] for name, r in found]
    return table(["target", "executions", "seconds", "lines reached", ""], rows) + sources(r for _, r in found)


def serving(stored, machine):
    names = {"serve": "batches of up to 32", "serve--max-batch1": "`--max-batch 1`"}
    found = [(names[n], get(stored, machine, f"serving/{n}")) for n in names]
    rows = [[n, number(r["requests_per_s"]), f"{r['share_of_translate']:.2f}", f"{number(r['p50_ms'])} ms", f"{number(r['p99_ms'])} ms", number(r["errors"])] for n, r in found]
    return table(["", "requests/s", "of `regard translate`", "p50", "p99", "errors"], rows) + sources(r for _, r in found)


def two_hosts(stored, machine):
    found = [([n.replace("mbit", " Mbit/s").replace("gbit", " Gbit/s").replace("none", "not limited") for n in names], r)
             for n, r in stored[machine].items() if n.startswith("mpi/two-hosts-") for names in [n.removeprefix("mpi/two-hosts-").split("-")]]
    if not found:
        raise Fault(f"docs/results has no two hosts of {machine}")
    speed = lambda r: 8 * r["wire_mb"] / (1e-3 * max(r["exchange_ms"], 1e-3))
    rows = [[*names, number(r["step_ms"]), number(r["exchange_ms"]), f"{r['wire_mb']:.1f}", "–" if names[-1] == "on" else number(r.get("mbit_per_s", speed(r)))]
            for names, r in found]
    return table(["preset", "link", "wire", "overlap", "ms per step", "of which exchange", "MB sent by a rank", "Mbit/s"], rows) + sources(r for _, r in found)


def as_stored(stored, machine, called):
    """A result that is itself a table: `columns`, `rows` and, for each column, a number format."""
    result = get(stored, machine, called)
    formats = result.get("formats", [""] * len(result["columns"]))

    def cell(value, form):
        if value is None:
            return "–"
        return value if isinstance(value, str) else (form or "{}").format(value)

    rows = [[cell(value, form) for value, form in zip(row, formats)] for row in result["rows"]]
    return table(result["columns"], rows) + sources([result])


def scaling(_, accumulate):
    """The cost model of several hosts (tools/scaling.py)."""
    run = [sys.executable, ROOT / "tools" / "scaling.py", "--accumulate", accumulate]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    return [line for line in said.splitlines() if line.startswith("|")]


TABLES = {"scaling": scaling, "presets": presets, "train": train, "decode": decode, "overview": overview, "firefox": firefox, "engines": engines, "bf16": bf16, "python": python, "real": real, "families": families, "fuzzing": fuzzing, "serving": serving,
          "two-hosts": two_hosts, "stored": as_stored,
          "overview-zh": lambda stored, *machines: overview(stored, *machines, language="zh")}


def sentence(stored, spec, paragraph):
    """The inconsistencies in the figures of a paragraph."""
    for one in spec.split(";"):
        machine, called, *fields = one.split()
        result = get(stored, machine, called)
        if not fields:
            raise Fault(f"{called}: no field is named")
        for field in fields:
            field, _, form = field.partition(":")
            if field not in result:
                field = field.replace("_", " ")
            if field not in result:
                raise Fault(f"{called} has no field {field}")
            value = result[field]
            if form.endswith("%"):
                text = format(100 * value, form[:-1] + "f")
            else:
                text = value if isinstance(value, str) else format(value, form)
            if not re.search(rf"(?<![\d.,]){re.escape(text)}(?!\d|[.,]\d)", paragraph):
                yield f"{called} {field} is {text}, which the paragraph above does not say"


def rewrite(text, stored):
    """A document with its tables regenerated, the inconsistencies in it, and the number of
    results it names."""
    lines, faults, named = text.split("\n"), [], 0
    out, at = [], 0
    fenced = False
    while at < len(lines):
        line = lines[at]
        out.append(line)
        at += 1
        if line.startswith("```"):
            fenced = not fenced
        try:
            if fenced:
                continue
            if found := OPEN.match(line):
                named += 1
                kind, *arguments = found[1].split()
                if kind not in TABLES:
                    raise Fault(f"no table is called {kind}")
                try:
                    end = lines.index(CLOSE, at)
                except ValueError:
                    raise Fault(f"the table has no `{CLOSE}`") from None
                try:
                    made = ["", *TABLES[kind](stored, *arguments), ""]
                except Fault:
                    out += lines[at:end]
                    raise
                finally:
                    start, at = at, end
                if made != lines[start:end]:
                    faults.append((start, "the table differs from the results"))
                out += made
            elif found := RESULT.match(line):
                named += 1
                start = at - 1
                in_block = lines[start - 1].startswith("```")
                start -= in_block
                while start > 0 and (not lines[start - 1].startswith("```") if in_block else lines[start - 1].strip()):
                    start -= 1
                faults += [(at, fault) for fault in sentence(stored, found[1], " ".join(lines[start : at - 1]))]
        except Fault as fault:
            faults.append((at, str(fault)))
    return "\n".join(out), faults, named


def documents():
    return [p for p in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]) if p.parent != STORED]


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--check", action="store_true", help="change nothing")
    a.add_argument("--list", action="store_true", help="list the stored results")
    a = a.parse_args()
    try:
        stored = load()
    except Fault as fault:
        sys.exit(str(fault))
    if a.list:
        for machine, results in stored.items():
            for called, line in results.items():
                print(machine, called, ", ".join(f for f in line if f not in ("id", "command", "machine")))
        return
    wrong, total = [], 0
    for path in documents():
        text = path.read_text(encoding="utf-8")
        new, faults, named = rewrite(text, stored)
        total += named
        if new != text and not a.check:
            path.write_text(new, encoding="utf-8")
            faults = [f for f in faults if f[1] != "the table differs from the results"]
            print(f"{path.relative_to(ROOT)}: written")
        wrong += [f"{path.relative_to(ROOT)}:{line}: {fault}" for line, fault in faults]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{total} tables and paragraphs agree with docs/results")


if __name__ == "__main__":
    main()
