#!/usr/bin/env python3
"""Runs the programs of docs/python.md that do the same in regard, transformers, ctranslate2 and argostranslate.

    python3 tools/check_migration.py MODEL

MODEL is a MarianMT folder for English and French. Each program runs in a folder of its own in which `en-fr` is the model
(and `en-fr-ct2` its conversion); those whose package is not installed are named and left out. All must print the same
translations.
"""
import importlib.util, pathlib, re, subprocess, sys, tempfile

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "python.md"


def main():
    model = pathlib.Path(sys.argv[1]).resolve()
    section = PAGE.read_text(encoding="utf-8").split("## Coming from other packages")[1]
    programs = re.findall(r"^(\w+)(?:,[^\n]*)?:\n\n```python\n(.*?)```", section, re.S | re.M)
    assert [name for name, _ in programs] == ["regard", "transformers", "ctranslate2", "argostranslate"], programs
    printed = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "en-fr").symlink_to(model)
        for name, program in programs:
            if importlib.util.find_spec(name) is None:
                print(f"{name}: not installed")
                continue
            if name == "ctranslate2":
                convert = [sys.executable, "-m", "ctranslate2.converters.transformers", "--model", "en-fr"]
                subprocess.run([*convert, "--output_dir", "en-fr-ct2"], cwd=folder, check=True)
            run = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
            if run.returncode:
                sys.exit(f"{name}:\n{run.stderr}")
            print(f"{name}:\n{run.stdout}", end="")
            printed[name] = [line.rsplit(" ", 1)[0] for line in run.stdout.splitlines()]
    if len(set(map(tuple, printed.values()))) != 1:
        sys.exit("the translations differ")


main()
