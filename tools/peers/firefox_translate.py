#!/usr/bin/env python3
"""A Firefox (Bergamot) model on a file, one line out for each line in, by the engines made for it;
prints one line of JSON.

    python firefox_translate.py bergamot|fxtranslate MODEL FILE [--threads N] [--one] [--out FILE]

MODEL is a folder with model*.bin, vocab*.spm (or srcvocab*.spm and trgvocab*.spm) and lex*.bin.
Install each engine into a folder of its own and name it in PYTHONPATH:

    python3.10 -m pip install -t FOLDER bergamot==0.4.5     CPython 3.10 alone
    pip install --no-deps -t FOLDER fxtranslate==0.5.0

Bergamot's package asks a server for models when it is imported, so its extension module is loaded
instead. fxtranslate takes one sentence a call; with several threads, processes share the lines out.
`--one` gives Bergamot a line at a time as well.

Loading is the time from the first call of the engine to the translation of one word, less the
median of three further translations of that word. Neither the interpreter's start nor the import is
in it, nor is loading in the words per second.
"""
import argparse, glob, importlib.metadata, importlib.util, json, multiprocessing, os, resource, statistics, sys, tempfile, time

WORD = "Hello."
SEARCH = ("beam-size: 1\nnormalize: 1.0\nword-penalty: 0\nmini-batch: 64\nmaxi-batch: 1000\nmaxi-batch-sort: src\nworkspace: 128\n"
          "max-length-factor: 2.5\nmax-length-break: 128\nmini-batch-words: 1024\ngemm-precision: int8shiftAlphaAll\n")


def model_files(folder):
    def one(*patterns):
        found = [f for pattern in patterns for f in sorted(glob.glob(os.path.join(folder, pattern)))]
        return os.path.abspath(found[0]) if found else sys.exit(f"{folder} has no {' or '.join(patterns)}")
    return one("model*.bin"), one("srcvocab*.spm", "vocab*.spm"), one("trgvocab*.spm", "vocab*.spm"), one("lex*.bin")


class Fxtranslate:
    """One translator for each call of `pool.map` or, with one thread, for all lines."""

    def __init__(self, files):
        import fxtranslate
        self.engine = fxtranslate.Translator(*(open(file, "rb").read() for file in files))

    def translate(self, lines):
        return [self.engine.translate(line) for line in lines]


class Bergamot:
    def __init__(self, files, threads):
        places = [f for d in sys.path for f in glob.glob(os.path.join(d, "bergamot", "_bergamot*.so"))]
        if not places:
            sys.exit("there is no bergamot/_bergamot*.so in PYTHONPATH")
        spec = importlib.util.spec_from_file_location("_bergamot", places[0])
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        model, source, target, lexicon = files
        self.started = time.perf_counter()
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as config:
            config.write(f"models: [{model}]\nvocabs: [{source}, {target}]\nshortlist: [{lexicon}, false]\n{SEARCH}")
            config.flush()
            self.service = self.module.Service(self.module.ServiceConfig(numWorkers=threads))
            self.model = self.service.modelFromConfigPath(config.name)
        self.options = self.module.ResponseOptions(alignment=False, qualityScores=False, HTML=False)

    def translate(self, lines):
        return [r.target.text for r in self.service.translate(self.model, self.module.VectorString(lines), self.options)]


def loading(engine, started):
    engine.translate([WORD])
    first = time.perf_counter() - started
    times = []
    for _ in range(3):
        start = time.perf_counter()
        engine.translate([WORD])
        times.append(time.perf_counter() - start)
    return first - statistics.median(times)


def part(arguments):
    files, lines = arguments
    import fxtranslate  # not a part of loading
    started = time.perf_counter()
    engine = Fxtranslate(files)
    load = loading(engine, started)
    start = time.perf_counter()
    return engine.translate(lines), time.perf_counter() - start, load


def run(a, files, lines):
    """The translations, the seconds they took, and the seconds of loading."""
    if a.engine == "fxtranslate":
        if a.threads == 1:
            return part((files, lines))
        with multiprocessing.Pool(a.threads) as pool:
            parts = pool.map(part, [(files, lines[i::a.threads]) for i in range(a.threads)])
        out = [None] * len(lines)
        for i, (lines_of_part, _, _) in enumerate(parts):
            out[i::a.threads] = lines_of_part
        return out, max(seconds for _, seconds, _ in parts), max(load for _, _, load in parts)
    engine = Bergamot(files, a.threads)
    load = loading(engine, engine.started)
    start = time.perf_counter()
    out = [engine.translate([line])[0] for line in lines] if a.one else engine.translate(lines)
    return out, time.perf_counter() - start, load


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("engine", choices=["bergamot", "fxtranslate"])
    p.add_argument("model"), p.add_argument("file")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--one", action="store_true")
    p.add_argument("--out")
    a = p.parse_args()
    with open(a.file, encoding="utf-8") as file:
        lines = file.read().splitlines()
    out, seconds, load = run(a, model_files(a.model), lines)
    if a.out:
        with open(a.out, "w", encoding="utf-8") as file:
            file.writelines(line.replace("\n", " ").strip() + "\n" for line in out)
    # Of several processes the largest, not the sum.
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({
        "engine": a.engine, "version": importlib.metadata.version(a.engine), "threads": a.threads,
        "source_words_per_s": sum(len(line.split()) for line in lines) / seconds, "sentences_per_s": len(lines) / seconds,
        "load_ms": 1000 * load, "peak_rss_mb": peak // 1024,
    }))


if __name__ == "__main__":
    main()
