#!/usr/bin/env python3
"""Tests a server with the real client `libretranslatepy`.

    cargo build --release && target/release/regard quickstart --out model
    python3 tools/libretranslate_client.py target/release/regard model

Creates a virtual environment in a temporary folder, starts `regard serve` on a free port, and calls
every method of the client. Exits with status 1 if an answer differs from what a LibreTranslate
server would give. Needs a package index for the client.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import venv

from serving import serving

CLIENT = "libretranslatepy==2.1.4"

# Runs inside the virtual environment; its argument is the server's address.
CALLS = """
import json, sys, urllib.error
from libretranslatepy import LibreTranslateAPI

api = LibreTranslateAPI(sys.argv[1])
answers = {"languages": api.languages()}
answers["detect"] = api.detect("This is quite an ordinary English sentence.")
answers["translate"] = api.translate("The dog sleeps.\\n\\nA cat, {name} & 100 % \U0001f642!", "en", "fr")
answers["auto"] = api.translate("The white cat sleeps on the table.", "auto", "fr")
answers["same"] = api.translate("The dog sleeps.", "en", "en")
try:
    api.translate("The dog sleeps.", "en", "zz")
except urllib.error.HTTPError as error:
    answers["refused"] = [error.code, json.load(error)]
print(json.dumps(answers))
"""


def check(answers):
    """The differences from the expected answers."""
    languages = [{"code": "en", "name": "English", "targets": ["en", "fr"]}, {"code": "fr", "name": "French", "targets": ["fr"]}]
    text = answers["translate"]
    faults = {
        "languages": answers["languages"] == languages,
        "detect": answers["detect"][0]["language"] == "en" and 0 <= answers["detect"][0]["confidence"] <= 100,
        "translate": isinstance(text, str) and "\n\n" in text and "{name}" in text and "\U0001f642" in text and "100" in text,
        "auto": answers["auto"] == "Le chat blanc dort sur la table.",
        "same": answers["same"] == "The dog sleeps.",
        "refused": answers.get("refused") == [400, {"error": "zz is not supported"}],
    }
    return [f"{name}: {json.dumps(answers.get(name), ensure_ascii=False)}" for name, good in faults.items() if not good]


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: libretranslate_client.py REGARD MODEL")
    regard, model = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        venv.create(folder / "venv", with_pip=True)
        python = folder / "venv" / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", CLIENT], check=True)
        with serving(regard, model) as (_, address):
            calls = subprocess.run([python, "-c", CALLS, f"http://{address}"], capture_output=True, text=True)
    if calls.returncode != 0:
        sys.exit(f"{CLIENT} failed:\n{calls.stderr}")
    faults = check(json.loads(calls.stdout))
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        sys.exit(1)
    print(f"{CLIENT}: languages, detect, translate and errors as expected")


if __name__ == "__main__":
    main()
