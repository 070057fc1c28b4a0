#!/usr/bin/env python3
"""Writes the answers of a real server that the mock replays: recorded.json.

    python3 tests/browser/record.py REGARD MODEL [SSRU_MODEL]

MODEL is what `regard quickstart` makes, SSRU_MODEL a model whose decoder has a recurrent unit; without it, what was recorded of one is
kept. The sentence is our own. Run it when an answer of `/v1/steps` or `/v1/beam` changes.
"""

import json
import sys
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from serving import serving

FILE = Path(__file__).with_name("recorded.json")
SENTENCE = "The black cat sleeps."


def ask(address, path, body):
    request = urllib.request.Request(f"http://{address}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def requests_of(address):
    """Every request that the tests of the page make of the first model, with its answer."""
    def record(path, **parameters):
        answer = ask(address, path, {"q": SENTENCE, **parameters})
        return {"path": path, "parameters": parameters, "answer": answer}

    plain = record("/v1/steps")
    yield plain
    for head in range(plain["answer"]["heads"]):
        yield record("/v1/steps", stack="encoder", layer=0, head=head)
    head = sharpest(plain["answer"]["attention"]["weights"])
    yield record("/v1/steps", stack="encoder", layer=1, head=head)
    decoder = record("/v1/steps", stack="decoder", layer=0, head=0)
    yield decoder
    yield record("/v1/steps", stack="decoder", layer=0, head=sharpest(decoder["answer"]["attention"]["weights"]))
    for without in ["positions", "mask", f"encoder.0.{head}"]:
        yield record("/v1/steps", stack="encoder", layer=0, head=head, without=without)
    second = plain["answer"]["places"][0]["best"][1]["id"]
    yield record("/v1/steps", prefix=str(second))
    for prefix in [{}, {"prefix": str(second)}]:
        yield record("/v1/beam", **prefix)
    yield record("/v1/beam", beam=2)


def ssru_requests(address):
    for stack in ["encoder", "decoder"]:
        parameters = {"stack": stack, "layer": 0, "head": 0}
        answer = ask(address, "/v1/steps", {"q": SENTENCE, **parameters})
        yield {"path": "/v1/steps", "parameters": parameters | {"ssru": True}, "answer": answer}


def sharpest(weights):
    """The head that the page opens on."""
    score = lambda rows: sum(map(max, rows)) / len(rows)
    return max(range(len(weights)), key=lambda head: (score(weights[head]), -head))


def main():
    regard, model, *ssru = sys.argv[1:]
    kept = [r for r in json.loads(FILE.read_text()) if r["parameters"].get("ssru")] if FILE.exists() else []
    with serving(regard, model) as (_, address):
        records = list(requests_of(address))
    if ssru:
        with serving(regard, ssru[0]) as (_, address):
            kept = list(ssru_requests(address))
    lines = [json.dumps(record, ensure_ascii=False, separators=(",", ":")) for record in [*records, *kept]]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(f"{len(lines)} answers, {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
