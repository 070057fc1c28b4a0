#!/usr/bin/env python3
"""Compares the Python package with the command and with ctranslate2.Translator, on the same
sentences.

    python3 tools/bench_python.py REGARD MODEL TEXT [--rounds 5] [--sentences 320] [--beam 4] [--append FILE]

Run it with a Python that has the package installed; ctranslate2 and transformers take part if they
are installed too. The sentences are passed one at a time and in lists of 32. The command receives
the same lists through a pipe and returns each answer before the next list; both the package and the
command use all cores, and their translations must be the same. They alternate list by list, and
CTranslate2 runs before or after them in each round. Prints medians of sentences per second and of
the ratios within a round. Build the command and the wheel with the same profile.
"""
import argparse, gzip, json, os, pathlib, platform, statistics, subprocess, sys, tempfile, time

import regard
from alternate import append, append_option


class Command:
    """`regard translate` behind pipes."""

    def __init__(self, arguments):
        program = [arguments.regard, "translate", "--model", arguments.model, "--beam", str(arguments.beam), "--no-split"]
        self.process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, sentences):
        self.process.stdin.write("".join(sentence + "\n" for sentence in sentences).encode())
        self.process.stdin.flush()
        return [self.process.stdout.readline().decode().rstrip("\n") for _ in sentences]


class Package:
    def __init__(self, arguments):
        self.translator = regard.Translator(arguments.model)
        self.keywords = dict(beam=arguments.beam, no_split=True)

    def __call__(self, sentences):
        if len(sentences) == 1:
            return [self.translator.translate(sentences[0], **self.keywords)]
        return self.translator.translate(sentences, **self.keywords)


class CTranslate2:
    """CTranslate2 with its tokenizer, because the others also take text. It runs with the faster
    of two threading modes for the size of the lists: all cores for one batch, or one core per
    part of it."""

    def __init__(self, arguments):
        import ctranslate2, transformers

        self.folder = tempfile.TemporaryDirectory()
        converted = pathlib.Path(self.folder.name, "model")
        ctranslate2.converters.TransformersConverter(arguments.model).convert(str(converted))
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.model)
        self.beam = arguments.beam
        cores = len(os.sched_getaffinity(0))
        ways = [(1, cores), (cores, 1)]
        load = lambda inter, intra: ctranslate2.Translator(str(converted), inter_threads=inter, intra_threads=intra)
        self.ways = [(inter, load(inter, intra)) for inter, intra in ways]

    def choose(self, parts):
        """Keeps the faster threading mode, measured on some of the parts."""
        seconds = []
        for self.way in self.ways:
            self(parts[0])
            time.sleep(0.3)
            start = time.perf_counter()
            for part in parts[:32]:
                self(part)
            seconds.append(time.perf_counter() - start)
        self.way = self.ways[seconds.index(min(seconds))]

    def __call__(self, sentences):
        inter, translator = self.way
        tokenizer = self.tokenizer
        batch = [tokenizer.convert_ids_to_tokens(tokenizer.encode(sentence)) for sentence in sentences]
        most = -(-len(batch) // inter)
        found = translator.translate_batch(batch, beam_size=self.beam, length_penalty=0.6, max_batch_size=most)
        ids = [tokenizer.convert_tokens_to_ids(each.hypotheses[0]) for each in found]
        return [tokenizer.decode(each, skip_special_tokens=True) for each in ids]


def cpu():
    """The name of the processor."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("regard")
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=320)
    parser.add_argument("--beam", type=int, default=4)
    append_option(parser)
    arguments = parser.parse_args()
    opened = gzip.open if arguments.text.endswith(".gz") else open
    with opened(arguments.text, "rt", encoding="utf-8") as file:
        sentences = [line.rstrip("\n") for line, _ in zip(file, range(arguments.sentences))]
    systems = {"cli": Command, "package": Package, "ctranslate2": CTranslate2}
    loaded = {}
    for name, system in systems.items():
        try:
            loaded[name] = system(arguments)
        except ImportError as error:
            print(f"{name}: {error}", file=sys.stderr)
    said = {}
    for size in (1, 32):
        parts = [sentences[i : i + size] for i in range(0, len(sentences), size)]
        seconds = {name: [] for name in loaded}
        if "ctranslate2" in loaded:
            loaded["ctranslate2"].choose(parts)
        # The package and the command alternate list by list, so that a noisy second affects both;
        # OpenMP threads spin for 200 ms after their last work, so CTranslate2 runs separately.
        groups = [[name for name in loaded if name != "ctranslate2"], [name for name in loaded if name == "ctranslate2"]]
        for turn in range(arguments.rounds + 1):
            for group in groups if turn % 2 else groups[::-1]:
                time.sleep(0.3)
                spent, found = dict.fromkeys(group, 0.0), {name: [] for name in group}
                for number, part in enumerate(parts):
                    for name in group if number % 2 else group[::-1]:
                        start = time.perf_counter()
                        found[name] += loaded[name](part)
                        spent[name] += time.perf_counter() - start
                said.update(found)
                if turn:  # the first warms up
                    for name in group:
                        seconds[name].append(spent[name])
        rates = {name: len(sentences) / statistics.median(each) for name, each in seconds.items()}
        of = {
            f"package/{name}": round(statistics.median(b / a for a, b in zip(seconds["package"], each)), 3)
            for name, each in seconds.items()
            if name != "package"
        }
        machine = f"{cpu()}, {len(os.sched_getaffinity(0))} threads, {arguments.rounds} rounds, {len(sentences)} sentences, beam {arguments.beam}"
        found = {"table": "python", "list": size, **{name: round(rate, 1) for name, rate in rates.items()}, **of, "machine": machine}
        print(json.dumps({**found, "command": "tools/bench_python.py REGARD MODEL TEXT"}), flush=True)
        versions = {"regard": regard.__version__} | ({"CTranslate2": __import__("ctranslate2").__version__} if "ctranslate2" in loaded else {})
        append(arguments.append, [found], arguments.rounds, versions, machine)
        assert said["package"] == said["cli"], "the package and the command differ"


main()
