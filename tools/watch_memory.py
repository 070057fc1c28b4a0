#!/usr/bin/env python3
"""Runs a command and prints its resident memory over time as a line of JSON.

    python3 tools/watch_memory.py --every 10 -- target/release/regard train --preset tiny --minutes 30 ...

`memory_mb` has 31 values from the start to the end; `first_quarter_mb` and `last_quarter_mb` are
medians. With --flat, the exit status is 1 if the last quarter's is more than 5 % above the first
quarter's. What the command prints goes to standard error.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time


def resident_mb(pid):
    found = re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=float, default=10, help="seconds between two looks")
    parser.add_argument("--flat", action="store_true", help="fail if the memory has grown")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    begin, memory = time.monotonic(), []
    process = subprocess.Popen(arguments.command, stdout=sys.stderr)
    while process.poll() is None:
        try:
            process.wait(arguments.every)
        except subprocess.TimeoutExpired:
            if (now := resident_mb(process.pid)) is not None:
                memory.append(now)
    if len(memory) < 8:
        sys.exit(f"ended with {process.returncode} after {len(memory)} looks at its memory; at least 8 are needed")
    quarter = len(memory) // 4
    first, last = statistics.median(memory[:quarter]), statistics.median(memory[-quarter:])
    points = min(30, len(memory) - 1)
    print(json.dumps({
        "seconds": round(time.monotonic() - begin), "status": process.returncode, "first_quarter_mb": round(first), "last_quarter_mb": round(last),
        "largest_mb": round(max(memory)), "memory_mb": [round(memory[i * (len(memory) - 1) // points]) for i in range(points + 1)],
    }))  # fmt: skip
    sys.exit(process.returncode or (1 if arguments.flat and last > 1.05 * first else 0))


if __name__ == "__main__":
    main()
