#!/usr/bin/env python3
"""The server under load, beside the same sentences through `regard translate`.

    cargo build --release && cargo build --release -p regard-serve --example load
    python3 tools/load_test.py --model DIR --text sentences.en [--source en --target de] [--clients 64] [--requests 2000]

Three runs of the same sentences: `regard translate` on a file, the server with batches, the server without. Prints one line
of JSON a run; exit 1 when a request failed. `share_of_translate` is requests/s over the file's lines/s.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

RELEASE = pathlib.Path(__file__).resolve().parent.parent / "target" / "release"


def start(arguments, flags):
    """A server on a free port, and its address."""
    command = [RELEASE / "regard", "serve", "--model", arguments.model, "--port", "0", "--log", "quiet", *flags]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        found = re.search(r"serving on http://(\S+)", line)
        if found:
            return server, found.group(1)
    sys.exit("the server did not start")


def memory_mb(server):
    status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024


def load(arguments, flags, lines_per_s):
    server, address = start(arguments, flags)
    command = [RELEASE / "examples" / "load", address, arguments.text, arguments.source, arguments.target]
    try:
        # Once to warm up, so that no run pays for the first touch of the weights.
        subprocess.run([*command, str(arguments.clients), str(arguments.clients)], check=True, capture_output=True)
        before = memory_mb(server)
        run = subprocess.run(
            [*command, str(arguments.clients), str(arguments.requests)], capture_output=True, text=True
        )
        report = json.loads(run.stdout)
        report["memory_mb"] = [round(before), round(memory_mb(server))]
    finally:
        server.terminate()
        server.communicate()
    report["share_of_translate"] = round(report["requests_per_s"] / lines_per_s, 3)
    print(json.dumps({"run": " ".join(["serve", *flags]), **report}), flush=True)
    return report["errors"] == 0 and server.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--text", required=True, help="a sentence a line")
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=2000)
    arguments = parser.parse_args()

    sentences = [line for line in open(arguments.text, encoding="utf-8").read().split("\n") if line.strip()]
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder) / "text"
        wanted = [sentences[i % len(sentences)] for i in range(arguments.requests)]
        text.write_text("\n".join(wanted) + "\n", encoding="utf-8")
        begin = time.monotonic()
        command = [RELEASE / "regard", "translate", text, "--model", arguments.model]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - begin
    lines_per_s = arguments.requests / seconds
    print(json.dumps({"run": "translate", "lines_per_s": round(lines_per_s, 1)}), flush=True)
    good = [load(arguments, flags, lines_per_s) for flags in ([], ["--max-batch", "1"])]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
