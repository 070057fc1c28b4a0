#!/usr/bin/env python3
"""Tests the server under a mixed load, and under overload.

    cargo build --release
    python3 tools/soak.py --model en-de                                100,000 requests from 256 clients
    python3 tools/soak.py --model en-de --requests 10000000 --seconds 1800    half an hour
    python3 tools/soak.py --model en-de --requests 5000 --quick        a short form for the gate

Mixed: short texts, lists, HTML, long texts, streams and documents, along with clients that
disconnect before their answer and invalid requests. Every valid request must be answered, every
invalid one must get a 4xx status; the median of the server's memory in the last quarter must be
within 5 % of that in the first; /health, polled by a separate process ten times a second, must
answer within 50 ms; for short texts, p99 must be below 4 times p50.

Overload: ten times the requests per second that the mixed load's short texts reached. Requests that
are not accepted must be rejected with 429 or 503 and Retry-After, in a tenth of the time of
accepted ones; accepted ones must be answered within twice --max-wait, both by the server's clock,
on average.

Prints a line of JSON for each part; the exit status is 1 if a condition does not hold. --quick
checks answers and rejections and only prints times and memory: it may run on a busy machine, and is
short.
"""

import argparse
import asyncio
import json
import multiprocessing
import pathlib
import random
import re
import statistics
import sys
import time

from serving import serving

ROOT = pathlib.Path(__file__).resolve().parent.parent
SENTENCES = [
    "The old man reads a book in the garden.", "A small dog runs through the park.", "She writes a letter to her friend.",
    "We saw two ships near the harbour.", "The children are playing in the street.", "He bought three apples and a loaf of bread.",
]  # fmt: skip
# The number of concurrent connections in the overload test.
OPEN = 900
KINDS = {"short": 72, "list": 7, "html": 6, "long": 3, "stream": 4, "document": 2, "abort": 3, "malformed": 3}


def percentile(times, share):
    return round(1e3 * sorted(times)[min(len(times) - 1, int(share * len(times)))], 1) if times else None


def memory_mb(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024


def head(method, path, length, kind="application/json", more=""):
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{more}\r\n".encode()


class Texts:
    """Requests of every kind."""

    def __init__(self, arguments):
        self.source, self.target = arguments.source, arguments.target
        self.chosen = random.Random(1)

    def sentence(self):
        return f"{self.chosen.choice(SENTENCES)[:-1]} {self.chosen.randrange(1000)}."

    def json(self, path, q, **more):
        body = json.dumps({"q": q, "source": self.source, "target": self.target, **more}).encode()
        return head("POST", path, len(body)) + body

    def request(self, kind):
        if kind in ("short", "abort"):
            return self.json("/translate", self.sentence())
        if kind == "list":
            return self.json("/translate", [self.sentence() for _ in range(4)])
        if kind == "html":
            return self.json("/translate", f"<p>{self.sentence()} <b>{self.sentence()}</b></p>", format="html")
        if kind == "long":
            return self.json("/translate", " ".join(self.sentence() for _ in range(20)))
        if kind == "stream":
            return self.json("/v1/translate/stream", self.sentence())
        if kind == "document":
            text = "\n".join(self.sentence() for _ in range(10))
            fields = [("source", "", self.source), ("target", "", self.target), ("file", '; filename="a.txt"', text)]
            part = '--x\r\nContent-Disposition: form-data; name="{}"{}\r\n\r\n{}\r\n'
            body = "".join(part.format(*field) for field in fields).encode() + b"--x--\r\n"
            return head("POST", "/translate_file", len(body), "multipart/form-data; boundary=x") + body
        return self.chosen.choice([
            self.json("/translate", {"no": "text"}), self.json("/translate", "a")[:-1] + b"]", self.json("/nothing", "a"),
            head("DELETE", "/translate", 0), head("POST", "/translate", 10**12), self.json("/translate", "a", target="xx"),
        ])  # fmt: skip


async def read_answer(reader):
    """Status, headers and body of an answer."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    status = int(lines[0].split(" ")[1])
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    return status, headers, body


class Mixed:
    """Clients that send their next request when the last one has been answered."""

    def __init__(self, arguments, address, server):
        self.arguments, self.server = arguments, server
        self.host, _, self.port = address.rpartition(":")
        self.texts = Texts(arguments)
        self.left = arguments.requests
        self.times, self.counts, self.wrong, self.memory = {}, {}, [], []
        self.end = time.monotonic() + arguments.seconds

    def good(self, kind, status, body):
        if kind == "malformed":
            return 400 <= status < 500
        if status != 200:
            return False
        if kind == "stream":
            return b'"done":true' in body and b'"error"' not in body
        return b"translatedText" in body or b"translatedFileUrl" in body

    async def client(self, n):
        reader = writer = None
        kinds, weights = list(KINDS), list(KINDS.values())
        while self.left > 0 and time.monotonic() < self.end:
            self.left -= 1
            if self.left % 50 == 0:
                self.memory.append(memory_mb(self.server))
            kind = self.texts.chosen.choices(kinds, weights)[0]
            self.counts[kind] = self.counts.get(kind, 0) + 1
            try:
                if writer is None:
                    reader, writer = await asyncio.open_connection(self.host, int(self.port), limit=1 << 22)
                begin = time.monotonic()
                writer.write(self.texts.request(kind))
                if kind == "abort":
                    await asyncio.sleep(self.texts.chosen.random() * 0.05)
                    writer.close()
                    writer = None
                    continue
                status, headers, body = await asyncio.wait_for(read_answer(reader), 120)
                if not self.good(kind, status, body):
                    self.wrong.append(f"{kind}: {status} {body[:120]!r}")
                elif kind != "malformed":
                    self.times.setdefault(kind, []).append(time.monotonic() - begin)
                if kind == "malformed" or headers.get("connection") == "close":
                    writer.close()
                    writer = None
            except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError) as error:
                # A broken request may end with its connection.
                if kind != "malformed":
                    self.wrong.append(f"{kind}: {type(error).__name__}")
                if writer:
                    writer.close()
                writer = None
        if writer:
            writer.close()

    async def run(self):
        begin = time.monotonic()
        await asyncio.gather(*(self.client(n) for n in range(self.arguments.clients)))
        return time.monotonic() - begin


def server_times(address):
    """Count and mean milliseconds of the server's answers to /translate by status, as the server
    measured them."""
    import urllib.request

    text = urllib.request.urlopen(f"http://{address}/metrics").read().decode()
    found = {}
    for kind in ("sum", "count"):
        pattern = rf'regard_request_seconds_{kind}{{route="/translate",method="POST",status="(\d+)"}} (\S+)'
        for status, value in re.findall(pattern, text):
            found.setdefault(int(status), {})[kind] = float(value)
    return found


def probe(host, port, stop, times):
    """Polls the server's health, in a separate process."""
    import http.client

    while not stop.is_set():
        begin = time.monotonic()
        try:
            connection = http.client.HTTPConnection(host, port, timeout=10)
            connection.request("GET", "/health")
            good = connection.getresponse().read() == b'{"status":"ok"}'
            connection.close()
        except OSError:
            good = False
        took, begin = time.monotonic() - begin if good else 1e9, time.monotonic()
        time.sleep(0.1)
        # How late this process itself woke up: the delay that the machine adds to any answer.
        times.put((took, time.monotonic() - begin - 0.1))


async def overload(arguments, address, rate):
    """Requests at a fixed rate, whether or not earlier ones are answered."""
    host, _, port = address.rpartition(":")
    texts, accepted, refused, wrong = Texts(arguments), [], [], []

    async def one():
        begin = time.monotonic()
        try:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(texts.json("/translate", texts.sentence()))
            status, headers, _ = await asyncio.wait_for(read_answer(reader), 120)
            writer.close()
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError) as error:
            return wrong.append(type(error).__name__)
        took = time.monotonic() - begin
        if status == 200:
            accepted.append(took)
        elif status in (429, 503) and int(headers.get("retry-after", 0)) >= 1:
            refused.append(took)
        else:
            wrong.append(status)

    tasks, begin, started = set(), time.monotonic(), 0
    while (passed := time.monotonic() - begin) < arguments.overload_seconds:
        # No more concurrent requests than the server has connections: it would otherwise replace
        # connections that this process has opened but not used yet.
        while started < passed * rate and len(tasks) < OPEN:
            task = asyncio.create_task(one())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            started += 1
        await asyncio.sleep(0.005)
    await asyncio.gather(*tasks)
    return accepted, refused, wrong, time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--regard", type=pathlib.Path, default=ROOT / "target/release/regard")
    parser.add_argument("--model", required=True)
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    parser.add_argument("--clients", type=int, default=256)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=3600, help="end the mixed load after this time")
    parser.add_argument("--overload-seconds", type=float, default=15)
    parser.add_argument("--max-wait", type=float, default=5, help="`--max-wait` of the server under overload")
    parser.add_argument("--quick", action="store_true", help="print times without judging them")
    arguments = parser.parse_args()
    good = []

    def judge(name, holds, timed=False):
        if not holds:
            print(f"{'noted' if timed and arguments.quick else 'FAILED'}: {name}", flush=True)
        good.append(holds or (timed and arguments.quick))

    flags = ["--max-connections-per-address", "2000", "--max-connections", "2000", "--max-wait", "60"]
    with serving(arguments.regard, arguments.model, *flags) as (server, address):
        host, _, port = address.rpartition(":")
        stop, health = multiprocessing.Event(), multiprocessing.Queue()
        prober = multiprocessing.Process(target=probe, args=(host, int(port), stop, health))
        prober.start()
        # The first requests touch the weights and allocate memory that later ones reuse.
        warm = argparse.Namespace(**vars(arguments) | {"requests": max(arguments.clients, min(5000, arguments.requests // 20))})
        asyncio.run(Mixed(warm, address, server).run())
        mixed = Mixed(arguments, address, server)
        seconds = asyncio.run(mixed.run())
        stop.set()
        asked, late = [], []
        while prober.is_alive() or not health.empty():
            while not health.empty():
                took, woken = health.get()
                asked.append(took)
                late.append(woken)
            prober.join(0.1)
    short, memory = mixed.times.get("short", []), mixed.memory
    quarter = max(1, len(memory) // 4)
    first, last = statistics.median(memory[:quarter]), statistics.median(memory[-quarter:])
    rate = len(short) / seconds
    sent = sum(mixed.counts.values())
    # Every minute of half an hour.
    points = 30 if seconds > 600 else 11
    print(json.dumps({
        "run": "mixed", "requests": sent, "clients": arguments.clients, "seconds": round(seconds, 1), "requests_per_s": round(sent / seconds, 1),
        "kinds": mixed.counts, "errors": len(mixed.wrong), "short_p50_ms": percentile(short, 0.5), "short_p99_ms": percentile(short, 0.99),
        "long_p50_ms": percentile(mixed.times.get("long", []), 0.5), "health_p50_ms": percentile(asked, 0.5),
        "health_p99_ms": percentile(asked, 0.99), "health_max_ms": percentile(asked, 1),
        "prober_late_p99_ms": percentile(late, 0.99), "prober_late_max_ms": percentile(late, 1), "memory_first_quarter_mb": round(first, 1), "memory_last_quarter_mb": round(last, 1),
        "memory_mb": [round(memory[i * (len(memory) - 1) // points]) for i in range(points + 1)],
    }), flush=True)  # fmt: skip
    judge(f"errors: {mixed.wrong[:5]}", not mixed.wrong)
    judge("memory", abs(last / first - 1) <= 0.05, timed=True)
    judge("p99 below 4 x p50 of short texts", percentile(short, 0.99) < 4 * percentile(short, 0.5), timed=True)
    judge("/health within 50 ms", max(asked) < 0.05, timed=True)
    judge("/health always answers", max(asked) < 10)

    flags = ["--max-connections-per-address", "5000", "--max-connections", "5000", "--max-wait", str(arguments.max_wait)]
    with serving(arguments.regard, arguments.model, *flags) as (server, address):
        warm = argparse.Namespace(**vars(arguments) | {"requests": 200, "clients": 8, "seconds": 20})
        asyncio.run(Mixed(warm, address, server).run())
        before = server_times(address)
        accepted, refused, wrong, seconds = asyncio.run(overload(arguments, address, 10 * rate))
        after = server_times(address)

    def mean_ms(status):
        of = lambda times, kind: times.get(status, {}).get(kind, 0)
        count = of(after, "count") - of(before, "count")
        return round(1e3 * (of(after, "sum") - of(before, "sum")) / count, 1) if count else None

    print(json.dumps({
        "run": "overload", "wanted_per_s": round(10 * rate), "sent": len(accepted) + len(refused) + len(wrong), "accepted": len(accepted),
        "refused": len(refused), "other": len(wrong), "accepted_per_s": round(len(accepted) / seconds, 1), "accepted_p50_ms": percentile(accepted, 0.5),
        "accepted_p99_ms": percentile(accepted, 0.99), "refused_p50_ms": percentile(refused, 0.5), "refused_p99_ms": percentile(refused, 0.99),
        "server_accepted_mean_ms": mean_ms(200), "server_refused_mean_ms": mean_ms(503),
    }), flush=True)  # fmt: skip
    judge(f"refusals without Retry-After: {wrong[:5]}", not wrong)
    judge("some are accepted", accepted)
    # By the server's clock: this process may be the bottleneck.
    judge("refused in a tenth of the time of the accepted", not refused or mean_ms(503) <= mean_ms(200) / 10, timed=True)
    judge("accepted within twice --max-wait", mean_ms(200) <= 2e3 * arguments.max_wait, timed=True)
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
