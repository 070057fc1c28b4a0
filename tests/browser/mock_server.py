#!/usr/bin/env python3
"""A stand-in for `regard serve`: the page and its API with made-up data, to work on the page and to test it.

    python3 tests/browser/mock_server.py [--port 5000]

What happens inside a model is replayed from `recorded.json`, the answers of a real server to one sentence (`record.py` writes it),
whatever the text is; of the pair de-en, those of a model with an SSRU decoder.

Only the standard library. A text that begins with "slow" takes a second, "fail" is answered with status 500, "busy"
with 503; `GET /mock/log` tells which requests came and which of them the client gave up.
"""

import argparse
import json
import math
import random
import re
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

PAGE = Path(__file__).resolve().parents[2] / "crates" / "serve" / "page"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
NAMES = {"en": "English", "de": "German", "fr": "French"}
PAIRS = [("en", "de"), ("de", "en"), ("en", "fr")]
KINDS = {("en", "de"): "sinusoidal", ("de", "en"): "relative", ("en", "fr"): "learned"}
CHARACTERS = 5000
ALTERNATIVES = 5

# English: German choices, French choices. The first is the translation, the others make the alternatives.
WORDS = {
    "the": (["die", "der"], ["le", "la"]),
    "a": (["eine", "ein"], ["un", "une"]),
    "cat": (["Katze", "Mieze"], ["chat"]),
    "cats": (["Katzen"], ["chats"]),
    "dog": (["Hund"], ["chien"]),
    "sleeps": (["schläft", "ruht", "schlummert"], ["dort"]),
    "sat": (["saß"], ["était assis"]),
    "runs": (["rennt", "läuft"], ["court"]),
    "sees": (["sieht", "erblickt"], ["voit"]),
    "on": (["auf"], ["sur"]),
    "under": (["unter"], ["sous"]),
    "in": (["in", "im"], ["dans"]),
    "warm": (["warmen"], ["chaud"]),
    "small": (["kleine", "winzige"], ["petit"]),
    "old": (["alte"], ["vieux"]),
    "roof": (["Dach"], ["toit"]),
    "house": (["Haus"], ["maison"]),
    "garden": (["Garten"], ["jardin"]),
    "and": (["und"], ["et"]),
    "is": (["ist"], ["est"]),
    "not": (["nicht"], ["pas"]),
    "good": (["gut", "schön"], ["bon"]),
    "morning": (["Morgen"], ["matin"]),
    "we": (["wir"], ["nous"]),
    "read": (["lesen"], ["lisons"]),
    "book": (["Buch"], ["livre"]),
    "hello": (["hallo"], ["bonjour"]),
    "world": (["Welt"], ["monde"]),
}
EXAMPLES = {
    ("en", "de"): ["The small cat sleeps on the warm roof.", "A dog runs in the garden.", "We read a good book."],
    ("de", "en"): ["Die Katze schläft auf dem Dach.", "Der alte Hund rennt.", "Wir lesen."],
}
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def dictionary(source, target):
    if source == "en":
        return {english: forms[0 if target == "de" else 1] for english, forms in WORDS.items()}
    return {form.lower(): [english] for english, forms in WORDS.items() for form in forms[0]}


def translate(text, source, target, variant=0):
    """Word by word. Returns the text and the alignment in code points."""
    table = dictionary(source, target)
    out, alignment, at = "", [], 0
    for match in WORD.finditer(text):
        out += text[at : match.start()]
        word = match.group()
        choices = table.get(word.lower(), [word])
        chosen = choices[min(variant, len(choices) - 1)]
        if word[0].isupper():
            chosen = chosen[0].upper() + chosen[1:]
        alignment.append([match.start(), match.end(), len(out), len(out) + len(chosen)])
        out += chosen
        at = match.end()
    return out + text[at:], alignment


def pieces(text):
    """Long words are cut once, as a subword tokenizer would do."""
    found = []
    for match in re.finditer(r"\w+|[^\w\s]", text):
        word, start = match.group(), "▁" if match.start() == 0 or text[match.start() - 1].isspace() else ""
        if len(word) > 6:
            found += [start + word[:4], word[4:]]
        else:
            found.append(start + word)
    return found + ["</s>"]


def softmax(scores):
    top = max(scores)
    powers = [math.exp(score - top) for score in scores]
    return [round(power / sum(powers), 5) for power in powers]


def head_scores(kind, role, i, j, rows, columns, noise):
    slope = (columns - 1) / max(1, rows - 1)
    place = i * slope
    scores = {
        "itself": 4.5 if j == round(place) else 0,
        "previous": 4.5 if j == round(place) - 1 else 0,
        "next": 4.5 if j == round(place) + 1 else 0,
        "first": 4 if j == 0 else 0,
        "end": 4 if j == columns - 1 else 0,
        "even": 0,
        "near": -((j - place) ** 2) / 3,
        "mixed": 6 * noise,
    }
    return scores[role] + noise * (0.3 if role == "even" else 1.2)


ROLES = ["itself", "previous", "next", "first", "end", "even", "near", "mixed"]


def head_role(kind, layer, head, draw):
    """What a head does; the draw is used in any case, so that its next numbers are the weights' noise."""
    role = ROLES[(head + 3 * layer) % len(ROLES)] if draw.random() < 0.8 else "mixed"
    return "itself" if kind == "cross" and layer >= 3 and head % 2 == 0 else role


def head_hints(kind, layers=6, heads=8):
    """What the server says of the heads of `attention_map`."""
    def hint(role):
        text = f"Looks at the {role} token." if role in ("previous", "next") else f"Pattern: {role}."
        return {"name": role, "short": role, "text": text, "share": 0.5, "spread": 2.5}

    role = lambda layer, head: head_role(kind, layer, head, random.Random(f"{kind} {layer} {head}"))
    return [{"mean": hint("mixed"), "heads": [hint(role(layer, head)) for head in range(heads)]} for layer in range(layers)]


def attention_map(kind, rows, columns, layers=6, heads=8):
    maps = []
    for layer in range(layers):
        row_of_heads = []
        for head in range(heads):
            draw = random.Random(f"{kind} {layer} {head}")
            role = head_role(kind, layer, head, draw)
            weights = []
            for i in range(rows):
                seen = i + 1 if kind == "decoder" else columns
                scores = [head_scores(kind, role, i, j, rows, columns, draw.random()) for j in range(columns)][:seen]
                weights.append(softmax(scores) + [0] * (columns - seen))
            row_of_heads.append(weights)
        maps.append(row_of_heads)
    return maps


def sinusoidal(count, d):
    angle = lambda p, c: p / 10000 ** ((c - c % 2) / d)
    return [[round((math.cos if c % 2 else math.sin)(angle(p, c)), 5) for c in range(d)] for p in range(count)]


def learned(count, d):
    """Smooth curves with some noise, as trained tables look."""
    draw = random.Random("learned")
    waves = [(draw.uniform(0.02, 0.25), draw.uniform(0, 6.3), draw.uniform(0.2, 0.9)) for _ in range(d)]
    return [
        [round(size * math.sin(speed * p + shift) + draw.gauss(0, 0.07), 5) for speed, shift, size in waves]
        for p in range(count)
    ]


def training_log():
    draw = random.Random("training")
    log = []
    for step in range(100, 20001, 100):
        rate = 128**-0.5 * min(step**-0.5, step * 4000**-1.5)
        loss = 1.9 + 7.2 * math.exp(-step / 1500) + 1.1 * math.exp(-step / 9000) + draw.gauss(0, 0.03)
        bleu = 31 * (1 - math.exp(-step / 5000)) + draw.gauss(0, 0.25) if step % 1000 == 0 else None
        log.append({"step": step, "loss": round(loss, 4), "rate": rate, "bleu": bleu})
    return log


def models():
    config = {
        "d_model": 512,
        "encoder_layers": 6,
        "decoder_layers": 6,
        "heads": 8,
        "d_ff": 2048,
        "source_vocabulary": 37000,
        "target_vocabulary": 37000,
        "dropout": 0.1,
        "activation": "relu",
        "window": None,
    }
    parts = {"embeddings": 18944000, "encoder": 18914304, "decoder": 25224192}
    answer = []
    for source, target in PAIRS:
        full = (source, target) == ("en", "de")
        answer.append(
            {
                "source": source,
                "target": target,
                "name": f"regard-{source}-{target}",
                "parameters": sum(parts.values()),
                "parts": parts,
                "config": config | {"positions": KINDS[source, target], "decoder": "ssru" if source == "de" else "attention"},
                "training": training_log() if full else [],
                "examples": [
                    {"source": text, "target": translate(text, source, target)[0], "reference": translate(text, source, target, 1)[0]}
                    for text in EXAMPLES.get((source, target), [])
                ],
                "speed": {"tokens_per_s": 2143.7 if full else 0, "requests": 1284 if full else 0},
            }
        )
    return answer


def recorded(path, body, ssru):
    """The recorded answer to a request with these parameters, whatever its text."""
    records = json.loads(Path(__file__).with_name("recorded.json").read_text())
    wanted = {name: value for name, value in body.items() if name not in ("q", "source", "target")}
    if ssru and path == "/v1/steps" and not wanted:
        wanted = {"stack": "encoder", "layer": 0, "head": 0}
    if ssru and path == "/v1/steps":
        # Of that model only the first layer and head were recorded.
        wanted = {"stack": wanted.get("stack", "encoder"), "layer": 0, "head": 0, "ssru": True}
    # Not every layer and head was recorded: another one of the same stack stands in.
    for left_out in [(), ("head",), ("layer", "head")]:
        alike = lambda parameters: {name: value for name, value in parameters.items() if name not in left_out}
        for record in records:
            if record["path"] == path and alike(record["parameters"]) == alike(wanted):
                return record["answer"]
    raise Refused(400, f"not recorded: {path} {json.dumps(wanted)}")


class Refused(Exception):
    def __init__(self, status, message, headers=()):
        super().__init__(message)
        self.status = status
        self.headers = headers


def check_pair(source, target):
    for code in (source, target):
        if code not in NAMES:
            raise Refused(400, f"{code} is not supported")
    if (source, target) not in PAIRS:
        names = [f"{NAMES[code]} ({code})" for code in (target, source)]
        raise Refused(400, f"{names[0]} is not available as a target language from {names[1]}")


def need(body, *names):
    for name in names:
        if name not in body:
            raise Refused(400, f"Invalid request: missing {name} parameter")
    return [body[name] for name in names]


def detect(text):
    german = dictionary("de", "en")
    found = [word.lower() for word in WORD.findall(text)]
    share = sum(word in german for word in found) / max(1, len(found))
    guesses = [("de", share), ("en", 1 - share)]
    ordered = sorted(guesses, key=lambda guess: -guess[1])
    return [{"language": language, "confidence": round(100 * value)} for language, value in ordered]


def act_up(text):
    if text.startswith("slow"):
        time.sleep(1)
    if text.startswith("fail"):
        raise Refused(500, "The model is not well today.")
    if text.startswith("busy"):
        raise Refused(503, "The queue is full.", [("Retry-After", "2")])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log_lock = threading.Lock()
    requests = []
    key = None

    def log_message(self, *_):
        pass

    def answer(self, status, content, kind, headers=()):
        self.send_response(status)
        for name, value in (*headers, ("Content-Type", f"{kind}; charset=utf-8"), ("Content-Length", str(len(content)))):
            self.send_header(name, value)
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(content)

    def json(self, value, status=200, headers=()):
        self.answer(status, json.dumps(value).encode(), "application/json", headers)

    def refuse(self, error):
        self.json({"error": str(error)}, error.status, error.headers)

    def do_GET(self):
        address = urlsplit(self.path)
        routes = {
            "/languages": lambda: [
                {"code": code, "name": name, "targets": [t for s, t in PAIRS if s == code]} for code, name in NAMES.items()
            ],
            "/frontend/settings": lambda: {
                "charLimit": CHARACTERS,
                "apiKeys": self.key is not None,
                "keyRequired": self.key is not None,
                "filesTranslation": True,
                "supportedFilesFormat": [".txt"],
                "language": {"source": {"code": "en", "name": "English"}, "target": {"code": "de", "name": "German"}},
            },
            "/v1/model": models,
            "/v1/positions": lambda: self.positions(parse_qs(address.query)),
            "/mock/log": lambda: self.requests,
        }
        try:
            if address.path in routes:
                self.json(routes[address.path]())
            else:
                self.file(address.path)
        except Refused as error:
            self.refuse(error)

    def positions(self, query):
        pair = tuple(query.get("model", ["en-de"])[0].split("-"))
        if pair not in PAIRS:
            raise Refused(400, f"{'-'.join(pair)} is not a model of this server")
        interleaved = sinusoidal(100, 512)
        own = {
            "sinusoidal": [row[0::2] + row[1::2] for row in interleaved],
            "learned": learned(96, 128),
            "relative": None,
        }
        return {"kind": KINDS[pair], "interleaved": interleaved, "own": own[KINDS[pair]]}

    def file(self, path):
        name = "index.html" if path == "/" else path.removeprefix("/")
        file = PAGE / name
        if "/" in name or file.suffix not in TYPES or not file.is_file():
            raise Refused(404, "Not found")
        self.answer(200, file.read_bytes(), TYPES[file.suffix])

    def do_POST(self):
        try:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            is_form = self.headers["Content-Type"].startswith("multipart/")
            body = {"form": content.decode()} if is_form else json.loads(content)
            routes = {
                "/translate": self.translate,
                "/detect": lambda body: self.json(detect(*need(body, "q"))),
                "/v1/attention": self.attention,
                "/v1/steps": self.replay,
                "/v1/beam": self.replay,
                "/translate_file": self.translate_file,
                "/v1/translate/stream": self.stream,
            }
            if self.path not in routes:
                raise Refused(404, "Not found")
            entry = {"path": self.path, "q": body.get("q"), "gone": False}
            with self.log_lock:
                self.requests.append(entry)
            if self.key and self.headers["Authorization"] != f"Bearer {self.key}":
                raise Refused(403, "Invalid API key")
            act_up(str(body.get("q", "")))
            entry["gone"] = self.client_gone()
            routes[self.path](body)
        except Refused as error:
            self.refuse(error)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def replay(self, body):
        check_pair(body.get("source", "en"), body.get("target", "de"))
        self.json(recorded(self.path, body, body.get("source") == "de"))

    def translate_file(self, body):
        name = re.search(r'filename="([^"]*)"', body["form"]).group(1)
        if not name.endswith(".txt"):
            raise Refused(400, f"{name} is not a file that can be translated; use one of .txt")
        self.json({"translatedFileUrl": f"http://elsewhere.example/download_file/{name}"})

    def client_gone(self):
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def translate(self, body):
        text, source, target = need(body, "q", "source", "target")
        answer = {}
        if source == "auto":
            best = detect(text)[0]
            source, answer["detectedLanguage"] = best["language"], best
        check_pair(source, target)
        if len(text) > CHARACTERS:
            raise Refused(400, f"Invalid request: request ({len(text)}) exceeds text limit ({CHARACTERS})")
        wanted = body.get("alternatives", 0)
        if wanted > ALTERNATIVES:
            raise Refused(400, f"Invalid request: alternatives must be <= {ALTERNATIVES}")
        best, alignment = translate(text, source, target)
        others = dict.fromkeys(translate(text, source, target, v)[0] for v in range(1, wanted + 1))
        answer["translatedText"] = best
        if wanted:
            answer["alternatives"] = [other for other in others if other != best]
        if body.get("alignment"):
            answer["alignment"] = [alignment]
        self.json(answer)

    def attention(self, body):
        (text,) = need(body, "q")
        source, target = body.get("source", "en"), body.get("target", "de")
        check_pair(source, target)
        translation = body.get("translation") or translate(text, source, target)[0]
        read, said = pieces(text), pieces(translation)
        n, m = len(read), len(said)
        self.json(
            {
                "source": read,
                "target": said,
                "encoder": attention_map("encoder", n, n),
                "decoder": attention_map("decoder", m, m),
                "cross": attention_map("cross", m, n),
                "hints": {kind: head_hints(kind) for kind in ("encoder", "decoder", "cross")},
                "sharpest": {"encoder": 4, "decoder": 4, "cross": 4},
                "translation": translation,
            }
        )

    def stream(self, body):
        text, source, target = need(body, "q", "source", "target")
        check_pair(source, target)
        translation, _ = translate(text, source, target)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        parts = re.findall(r"\S+\s*", translation)
        for i in range(0, len(parts), 4):
            done = i + 4 >= len(parts)
            data = json.dumps({"text": "".join(parts[: i + 4]), "done": done})
            self.wfile.write(f"data: {data}\n\n".encode())
            self.wfile.flush()
            time.sleep(0.02)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    # A browser asks for all modules at once; a full queue would make it wait for seconds.
    request_queue_size = 128


def start(port=0, key=None):
    """The server in a thread of its own; returns it and its address. With a key, requests to translate must have it."""
    server = Server(("127.0.0.1", port), type("KeyedHandler", (Handler,), {"key": key}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}/"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=5000)
    _, url = start(parser.parse_args().port)
    print(url, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
