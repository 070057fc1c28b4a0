#!/usr/bin/env python3
"""Compares a Firefox (Bergamot) or Marian model in Regard, Bergamot and fxtranslate: speed,
loading, memory, BLEU, identical lines.

    cargo build --release
    python tools/bench_firefox.py MODEL SOURCE [--reference FILE] [--rounds 3] [--markdown] [--append FILE] [--keep FOLDER]
        [--bergamot PYTHON FOLDER] [--fxtranslate PYTHON FOLDER]

PYTHON is the interpreter for an engine and FOLDER is where its package is installed; see
tools/peers/firefox_translate.py. Instead of the options, REGARD_BERGAMOT and REGARD_FXTRANSLATE can
hold the two, separated by a colon.

The engines alternate within each round, each run in its own process, and every round begins with
the next engine. Prints medians, and the median of the ratios to the better peer of the same round.
The modes:

    one-thread, two-threads    the whole file; the time of the translations, without loading the model (regard translate --stats). Of
                               Regard also the words per second of the whole process, which starts and loads the model: "with loading".
    line-by-line               one thread; a line is given when the translation of the one before has come. Regard gets it on its standard
                               input and answers on its standard output; the peers are called in Python.

Loading is the time to the first translation of one word, minus the median of further translations
of it. Regard's includes the start of its process; the peers' excludes the start of the interpreter
and the import of their package. Peak memory is that of one thread, including the interpreter for
the peers (about 10 MB).
"""
import argparse, json, os, pathlib, statistics, subprocess, sys, tempfile, time

from alternate import BINARY, ROOT, append, append_option, cpu, run

PEER = ROOT / "tools" / "peers" / "firefox_translate.py"
MODES = {"one-thread": 1, "two-threads": 2, "line-by-line": 1}
WORD = "Hello."


def finish(child):
    """The peak memory of a child process in MB, if it succeeds."""
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(map(str, child.args))} failed")
    return usage.ru_maxrss // 1024


class Regard:
    name = "regard"

    def __init__(self, binary, model, flags):
        self.binary, self.flags = binary, ["--model", model, "--beam", "1", *flags]
        shown = subprocess.run([binary, "--version"], capture_output=True, text=True, check=True)
        self.version = shown.stdout.split()[-1]

    def command(self, threads):
        return [self.binary, "translate", *self.flags, "--threads", str(threads)]

    def run(self, mode, source, out):
        lines = source.read_text(encoding="utf-8").splitlines()
        seconds, more = (self.lines if mode == "line-by-line" else self.file)(MODES[mode], source, lines, out)
        words = sum(len(line.split()) for line in lines)
        return {"engine": self.name, "source_words_per_s": words / seconds, "sentences_per_s": len(lines) / seconds, **more}

    def file(self, threads, source, _, out):
        start = time.perf_counter()
        with open(out, "w") as to:
            command = [*self.command(threads), "--stats", source]
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=to, stderr=subprocess.PIPE, text=True)
            said = child.stderr.read()
            peak = finish(child)
        whole, stats = time.perf_counter() - start, json.loads(said.splitlines()[-1])
        more = {"with_loading": stats["source_words"] / whole, "peak_rss_mb": peak}
        return stats["seconds"], more

    def lines(self, threads, _, lines, out):
        start = time.perf_counter()
        child = subprocess.Popen(self.command(threads), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

        def translate(line):
            child.stdin.write(line.encode() + b"\n")
            answer = b""
            while not answer.endswith(b"\n"):
                more = os.read(child.stdout.fileno(), 1 << 16)
                if not more:
                    finish(child)
                    sys.exit(f"{self.name} ended without a translation of {line!r}")
                answer += more
            return answer

        translate(WORD)
        first, times = time.perf_counter() - start, []
        for _ in range(3):
            start = time.perf_counter()
            translate(WORD)
            times.append(time.perf_counter() - start)
        start = time.perf_counter()
        answers = [translate(line) for line in lines]
        seconds = time.perf_counter() - start
        child.stdin.close()
        finish(child)
        pathlib.Path(out).write_bytes(b"".join(answers))
        return seconds, {"load_ms": 1000 * (first - statistics.median(times))}


class Peer:
    def __init__(self, name, model, python, folder):
        self.name, self.model, self.python = name, model, python
        self.environment = os.environ | {"PYTHONPATH": folder}
        self.version = None

    def run(self, mode, source, out):
        flags = ["--threads", str(MODES[mode]), "--out", out, *(["--one"] if mode == "line-by-line" else [])]
        found = run([self.python, PEER, self.name, self.model, source, *flags], env=self.environment)
        self.version = found["version"]
        return found


def bleu(binary, file, reference):
    command = [binary, "score", "--hyp", file, "--ref", reference, "--metric", "bleu", "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["bleu"]["score"]


def same_lines(one, other):
    a, b = (pathlib.Path(file).read_text(encoding="utf-8").splitlines() for file in (one, other))
    return sum(x.strip() == y.strip() for x, y in zip(a, b))


def measure(engines, modes, source, rounds, folder):
    """All runs by mode and engine, in the order of the rounds."""
    runs = {mode: {engine.name: [] for engine in engines} for mode in modes}
    for n in range(rounds):
        for mode in modes:
            for engine in engines[n % len(engines):] + engines[:n % len(engines)]:
                found = engine.run(mode, source, folder / f"{engine.name}.{mode}.txt")
                runs[mode][engine.name].append(found)
                print(f"round {n + 1}, {mode}: {json.dumps(found)}", file=sys.stderr, flush=True)
    return runs


def speeds(runs, mode, peers):
    field = "sentences_per_s" if mode == "line-by-line" else "source_words_per_s"
    by_engine = {name: [r[field] for r in found] for name, found in runs[mode].items()}
    better = [max(values) for values in zip(*(by_engine[peer] for peer in peers))]
    row = {"mode": mode, "unit": "sentences/s" if mode == "line-by-line" else "source words/s"}
    row |= {name: round(statistics.median(values), 1) for name, values in by_engine.items()}
    loading = [r["with_loading"] for r in runs[mode]["regard"] if "with_loading" in r]
    row |= {"with loading": round(statistics.median(loading), 1) if loading else None}
    return row | {"ratio": round(statistics.median(m / p for m, p in zip(by_engine["regard"], better)), 3)}


def summary(runs, engines, a, folder):
    """For each engine, its loading time, memory, BLEU and the number of lines identical to
    Bergamot's."""
    def median(mode, engine, field):
        found = [r[field] for r in runs.get(mode, {}).get(engine, [])]
        return round(statistics.median(found)) if found else None

    bergamot = folder / f"bergamot.{a.modes[0]}.txt"
    rows = []
    for engine in engines:
        out = folder / f"{engine.name}.{a.modes[0]}.txt"
        rows.append({
            "engine": engine.name, "version": engine.version,
            "load_ms": median("line-by-line", engine.name, "load_ms"),
            "peak_rss_mb": median("one-thread", engine.name, "peak_rss_mb"),
            "bleu": round(bleu(a.binary, out, a.reference), 2) if a.reference else None,
            "lines": len(out.read_text(encoding="utf-8").splitlines()),
            "same_lines_as_bergamot": same_lines(out, bergamot) if a.bergamot else None,
        })
    return rows


def show(table, rows, machine, markdown):
    if not markdown:
        for row in rows:
            print(json.dumps({"table": table} | row | {"machine": machine}))
        return
    print("| " + " | ".join(rows[0]).replace("_", " ") + " |")
    print("|---" * len(rows[0]) + "|")
    for row in rows:
        print("| " + " | ".join("–" if value is None else str(value) for value in row.values()) + " |")
    print()


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("model"), a.add_argument("source", type=pathlib.Path)
    a.add_argument("--reference", help="translations of SOURCE, for BLEU")
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--modes", default=list(MODES), type=lambda text: text.split(","), help="some of " + ",".join(MODES))
    for name in ("bergamot", "fxtranslate"):
        default = os.environ.get(f"REGARD_{name.upper()}", "").split(":")
        a.add_argument(f"--{name}", nargs=2, metavar=("PYTHON", "FOLDER"), default=default if len(default) == 2 else None)
    a.add_argument("--binary", type=pathlib.Path, default=BINARY)
    a.add_argument("--flags", default="", help="further flags of `regard translate`, in one argument")
    a.add_argument("--keep", type=pathlib.Path, help="where the translations stay")
    a.add_argument("--markdown", action="store_true", help="print Markdown tables")
    append_option(a)
    a = a.parse_args()
    if unknown := [mode for mode in a.modes if mode not in MODES]:
        sys.exit(f"{', '.join(unknown)} is none of {', '.join(MODES)}")
    if not a.binary.exists():
        sys.exit(f"{a.binary} is not there: cargo build --release")
    if not (a.bergamot or a.fxtranslate):
        sys.exit("--bergamot or --fxtranslate must say where that engine is")
    return a


def main():
    a = arguments()
    engines = [Peer(name, a.model, *place) for name in ("bergamot", "fxtranslate") if (place := getattr(a, name))]
    peers = [peer.name for peer in engines]
    engines.append(Regard(a.binary, a.model, a.flags.split()))
    with tempfile.TemporaryDirectory() as temporary:
        folder = a.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        runs = measure(engines, a.modes, a.source, a.rounds, folder)
        rows = summary(runs, engines, a, folder)
    names = ", ".join(f"{engine.name} {engine.version}" for engine in engines)
    machine = f"{cpu()}, {names}, {a.rounds} rounds, {a.source.name}"
    speed = [speeds(runs, mode, peers) for mode in a.modes]
    stored = [{"table": "speed", "text": a.source.name} | row for row in speed] + [{"table": "engines", "text": a.source.name} | row for row in rows]
    append(a.append, stored, a.rounds, {engine.name: engine.version for engine in engines})
    show("speed", speed, machine, a.markdown)
    show("engines", rows, machine, a.markdown)
    if a.markdown:
        print(machine)


main()
