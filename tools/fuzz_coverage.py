#!/usr/bin/env python3
"""The line coverage of the readers under their fuzz targets.

    KEEP=found tools/fuzz.sh 300
    python3 tools/fuzz_coverage.py found [--append docs/results/FILE.jsonl] [--lines]

Runs every target once on its seeds and on the inputs in found/TARGET, and prints for each file of
the reader how many of its lines were executed. A line is one on which a basic block begins, as the
instrumentation for libFuzzer sees it, also where the code was inlined; lines of generic code count
if any instance was executed. Lines of tests are not compiled. Needs binutils and llvm-symbolizer.
--lines also prints the lines that were never executed.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

from alternate import append, append_option, regard_version

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORE, DOCUMENTS, SERVE, TRAIN = (f"crates/{name}/src" for name in ("regard-core", "documents", "serve", "train"))
# What each target reads with: files, or folders whose files all belong to the reader.
READERS = {
    "argos": [f"{CORE}/formats/ctranslate2/files.rs", f"{CORE}/formats/zip.rs"],
    "cache": [f"{TRAIN}/corpus/cache.rs"],
    "checkpoint": [f"{TRAIN}/run/checkpoint.rs"],
    "config": [f"{CORE}/model/config.rs", f"{CORE}/formats/json.rs"],
    "ctranslate2": [f"{CORE}/formats/ctranslate2"],
    "glossary": [f"{DOCUMENTS}/glossary.rs"],
    "html": [f"{DOCUMENTS}/html.rs", f"{DOCUMENTS}/html"],
    "keys": [f"{SERVE}/keys/file.rs"],
    "marian_bin": [f"{CORE}/formats/marian_nmt/items.rs", f"{CORE}/formats/marian_nmt/bin.rs"],
    "marian_lex": [f"{CORE}/formats/marian_nmt/shortlist.rs"],
    "marian_npz": [f"{CORE}/formats/marian_nmt/npz.rs"],
    "marian_yml": [f"{CORE}/formats/marian_nmt/options.rs", f"{CORE}/formats/marian_nmt/yaml.rs"],
    "model_index": [f"{CORE}/store/index.rs"],
    "office": [f"{DOCUMENTS}/files/office"],
    "pairs": [f"{TRAIN}/corpus/{name}.rs" for name in ("lines", "pairs", "po", "readers")],
    "parameters": [f"{SERVE}/params.rs", f"{SERVE}/params"],
    "pickle": [f"{CORE}/formats/{name}" for name in ("pickle.rs", "pickle", "torch.rs", "torch", "zip.rs")],
    "protected": [f"{DOCUMENTS}/protect.rs", f"{DOCUMENTS}/restore.rs"],
    "safetensors": [f"{CORE}/formats/safetensors.rs", f"{CORE}/formats/safetensors"],
    "spm": [f"{CORE}/text/sentencepiece"],
    "text_files": [f"{DOCUMENTS}/files"],
    "tokenizer": [f"{CORE}/text/json.rs", f"{CORE}/text/tokenizer.rs"],
}


def output(*command, **more):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True, errors="replace", **more).stdout


def instrumented(binary):
    """The address of each instrumented basic block, by its number in libFuzzer's table."""
    sections = output("readelf", "-SW", binary)
    found = re.search(r"__sancov_pcs\s+\S+\s+([0-9a-f]+)\s+[0-9a-f]+\s+([0-9a-f]+)", sections)
    start, size = (int(part, 16) for part in found.groups())
    addresses = {}
    for line in output("readelf", "-rW", binary).splitlines():
        fields = line.split()
        if len(fields) >= 4 and fields[2] == "R_X86_64_RELATIVE" and start <= int(fields[0], 16) < start + size:
            number, rest = divmod(int(fields[0], 16) - start, 16)
            # The second half of an entry holds flags.
            if rest == 0:
                addresses[number] = int(fields[3], 16)
    return addresses


def executed(binary, folders):
    """The numbers of the basic blocks that inputs in the folders reach, from the log of a merge."""
    with tempfile.TemporaryDirectory() as folder:
        out, log = pathlib.Path(folder, "out"), pathlib.Path(folder, "log")
        out.mkdir()
        command = [binary, "-merge=1", f"-merge_control_file={log}", out, *folders]
        run = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace", cwd=folder)
        if run.returncode:
            sys.exit(f"{binary}: ended with {run.returncode}: {run.stderr[-400:]}")
        lines = [line.split() for line in log.read_text().splitlines()]
    return {int(number) for line in lines if line and line[0] == "COV" for number in line[2:]}


def locations(binary, addresses):
    """For each address, the (file, line) of its code and of the code that it was inlined into."""
    asked = "\n".join(hex(address) for address in addresses)
    told = output("llvm-symbolizer", "--output-style=LLVM", "--inlines", "--functions=none", f"--obj={binary}", input=asked)
    told = told.replace("\r", "")
    blocks = told.strip("\n").split("\n\n")
    if len(blocks) != len(addresses):
        sys.exit(f"{binary}: {len(blocks)} answers of llvm-symbolizer for {len(addresses)} addresses")
    return [[(file, int(line)) for file, line in re.findall(r"^(.+?):(\d+)", block, re.M)] for block in blocks]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("found", type=pathlib.Path)
    parser.add_argument("--only", help="comma-separated targets")
    append_option(parser)
    parser.add_argument("--lines", action="store_true", help="print the lines that were never executed")
    arguments = parser.parse_args()
    host = re.search(r"host: (\S+)", output("rustc", "-vV"))[1]
    results = {}
    for target in arguments.only.split(",") if arguments.only else READERS:
        binary = ROOT / "fuzz/target" / host / "release" / target
        addresses = instrumented(binary)
        folders = [folder for folder in (arguments.found.resolve() / target, ROOT / "fuzz/corpus" / target) if folder.is_dir()]
        reached = executed(binary, folders)
        lines = collections.defaultdict(lambda: collections.defaultdict(bool))
        for number, chain in zip(addresses, locations(binary, addresses.values())):
            for file, line in chain:
                if (at := file.find("crates/")) >= 0:
                    lines[file[at:]][line] |= number in reached
        covered = total = 0
        for reader in READERS[target]:
            for file in sorted(file for file in lines if file == reader or file.startswith(reader + "/")):
                hit = [line for line in lines[file] if lines[file][line]]
                missed = sorted(line for line in lines[file] if not lines[file][line])
                covered, total = covered + len(hit), total + len(lines[file])
                print(f"{target:12} {len(hit):5} of {len(lines[file]):5}  {file}")
                if arguments.lines and missed:
                    print(f"             never: {', '.join(map(str, missed))}")
        if not total:
            sys.exit(f"{target}: no code of {READERS[target]} in {binary}")
        log = arguments.found / f"{target}.log"
        done = re.search(r"Done (\d+) runs in (\d+) second", log.read_text(errors="replace")) if log.exists() else None
        results[target] = {"executions": int(done[1]), "seconds": int(done[2])} if done else {}
        results[target] |= {"lines": total, "covered": covered, "share": round(covered / total, 3)}
        print(f"{target:12} {covered:5} of {total:5}  {100 * covered / total:.1f} %", flush=True)
    if arguments.append:
        append(arguments.append, [{"id": f"fuzzing/{target}", **result} for target, result in results.items()], 1, {"regard": regard_version()})


if __name__ == "__main__":
    main()
