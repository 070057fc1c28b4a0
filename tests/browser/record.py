"""What `run.py --record` keeps: the answers of a real server to everything that the tests of the page ask.

    regard quickstart --out en-fr
    regard train --src en-fr/cache/train.fr --tgt en-fr/cache/train.en --source-lang fr --target-lang en --preset tiny --steps 500 \\
        --set decoder=ssru --set positions=learned --out fr-en
    regard train --src en-fr/cache/train.en --tgt en-fr/cache/train.fr --source-lang en --target-lang fr --preset tiny --steps 300 \\
        --set positions=relative --out other
    regard study scale smooth-maximum --out studies
    python3 tests/browser/run.py --record target/release/regard en-fr fr-en other studies

The third model stands for another language pair, so that there is one without a way back. Record again when an answer of the server changes:
the test `the_recorded_answers_are_those_of_the_server`, which runs against a real server, says when that is.
"""

import json
import tempfile
from pathlib import Path

import mock_server
from serving import serving

# What the third model is served as.
OTHER = "en-ca"
# The glossary of the server, and its terms.
GLOSSARY, TERMS = "actions", "sleeps\tmange\n"


def begin(stack, regard, en_fr, fr_en, other, studies):
    """Starts a server of the models; the records that are filled from it."""
    terms = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "terms.tsv"
    terms.write_text(TERMS)
    models = ["--model", fr_en, "--model", f"{OTHER}={other}"]
    rest = ["--glossary", f"{GLOSSARY}={terms}", "--studies", studies, "--char-limit", "5000"]
    _, address = stack.enter_context(serving(regard, en_fr, *models, *rest))
    return mock_server.Records(upstream=f"http://{address}")


def finish(records):
    """Adds what a slower browser would ask, and writes the file."""
    for record in list(records.answers.values()):
        body = record["request"]["body"] or {}
        if record["request"]["path"] == "/translate" and len(body.get("q", "").strip()) >= 12:
            content = json.dumps({"q": body["q"].strip()}).encode()
            records.find("POST", "/detect", content, "application/json")
    print(f"{records.save()} answers, {mock_server.FILE.stat().st_size} bytes")
