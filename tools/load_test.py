#!/usr/bin/env python3
"""Load test of the server, compared with the same sentences through `regard translate`.

    cargo build --release && cargo build --release -p regard-serve --example load
    python3 tools/load_test.py --model DIR --text sentences.en [--source en --target de] [--clients 64] [--requests 2000]
    python3 tools/load_test.py --model DIR --text sentences.en --memory 50000

The first form runs the same sentences through `regard translate` on a file, the server with
batching and the server without, in turn and --rounds times. It prints a line of JSON per run and
the medians; `share_of_translate` is requests/s over the file's lines/s. The exit status is 1 if a
request failed, if batching reaches less than 0.8 of the file's speed, or if p99 exceeds four times
p50. The second form sends that number of requests and prints the server's memory over time; the
exit status is 1 if the median of the second half is a tenth above that of the first.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

from alternate import append, append_option, regard_version
from serving import serving

RELEASE = pathlib.Path(__file__).resolve().parent.parent / "target" / "release"
SERVERS = {"serve": [], "serve --max-batch 1": ["--max-batch", "1"]}


def memory_mb(server):
    status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
    return round(int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024)


def load(arguments, address, requests):
    """The results of the native load generator."""
    command = [RELEASE / "examples" / "load", address, arguments.text, arguments.source, arguments.target]
    run = subprocess.run([*command, str(arguments.clients), str(requests)], capture_output=True, text=True)
    if not run.stdout:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


def translate(arguments, text):
    begin = time.monotonic()
    command = [RELEASE / "regard", "translate", text, "--model", arguments.model]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return arguments.requests / (time.monotonic() - begin)


def one_round(arguments, text):
    """Runs a file and both servers; results by name."""
    speed = translate(arguments, text)
    reports = {"translate": {"lines_per_s": round(speed, 1)}}
    for name, flags in SERVERS.items():
        with serving(RELEASE / "regard", arguments.model, *flags) as (_, address):
            # Warm up once, so that no run pays for the first touch of the weights.
            load(arguments, address, arguments.clients)
            report = load(arguments, address, arguments.requests)
        reports[name] = report | {"share_of_translate": round(report["requests_per_s"] / speed, 3)}
    for name, report in reports.items():
        print(json.dumps({"run": name, **report}), flush=True)
    return reports


def throughput(arguments):
    sentences = [line for line in open(arguments.text, encoding="utf-8").read().split("\n") if line.strip()]
    with tempfile.TemporaryDirectory() as folder:
        text = pathlib.Path(folder) / "text"
        wanted = [sentences[i % len(sentences)] for i in range(arguments.requests)]
        text.write_text("\n".join(wanted) + "\n", encoding="utf-8")
        rounds = [one_round(arguments, text) for _ in range(arguments.rounds)]
    good, stored = True, []
    for name in SERVERS:
        runs = [reports[name] for reports in rounds]
        keys = ["requests_per_s", "share_of_translate", "p50_ms", "p99_ms"]
        median = {key: round(statistics.median(run[key] for run in runs), 3) for key in keys}
        errors = sum(run["errors"] for run in runs)
        print(json.dumps({"median of": name, **median, "errors": errors}), flush=True)
        stored.append({"id": f"serving/{name.replace(' ', '')}", "clients": arguments.clients, "requests": arguments.requests, **median, "errors": errors})
        good &= errors == 0
        if name == "serve":
            good &= median["share_of_translate"] >= 0.8 and median["p99_ms"] < 4 * median["p50_ms"]
    append(arguments.append, stored, arguments.rounds, {"regard": regard_version(RELEASE / "regard")})
    return good


def memory(arguments):
    pieces, errors = [], 0
    with serving(RELEASE / "regard", arguments.model) as (server, address):
        load(arguments, address, arguments.clients)
        for _ in range(20):
            errors += load(arguments, address, arguments.memory // 20)["errors"]
            pieces.append(memory_mb(server))
    print(json.dumps({"requests": arguments.memory, "memory_mb": pieces, "errors": errors}), flush=True)
    row = {"id": "serving/memory-pieces", "requests": arguments.memory, "memory_mb": pieces, "errors": errors}
    append(arguments.append, [row], 1, {"regard": regard_version(RELEASE / "regard")})
    return errors == 0 and statistics.median(pieces[10:]) < 1.1 * statistics.median(pieces[:10])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--text", required=True, help="a sentence a line")
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", type=int, help="send this number of requests and watch the memory instead")
    append_option(parser)
    arguments = parser.parse_args()
    sys.exit(0 if (memory if arguments.memory else throughput)(arguments) else 1)


if __name__ == "__main__":
    main()
