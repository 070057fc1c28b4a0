#!/usr/bin/env python3
"""A stand-in for `regard serve` that replays what a real server answered: to work on the page, and to test it.

    python3 tests/browser/mock_server.py [--port 5000]

`recorded.json.gz` has the requests of the tests and their answers; `run.py --record` writes it with real models (see record.py). A request
that was not recorded is answered with status 501 and says so.

Only the standard library. What a real server does not do on demand is added here: a text that begins with "slow" takes a second, "fail" is
answered with status 500, "busy" with 503; `GET /mock/log` tells which requests came and which of them the client gave up.
"""

import argparse
import gzip
import json
import re
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

PAGE = Path(__file__).resolve().parents[2] / "crates" / "serve" / "page"
FILE = Path(__file__).with_name("recorded.json.gz")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
API = ("/translate", "/detect", "/languages", "/frontend/settings", "/v1/", "/studies/", "/download_file/")


class Records:
    """Requests and their answers; with the address of a real server, those that are missing are asked of it and kept."""

    def __init__(self, upstream=None):
        self.upstream, self.lock = upstream, threading.Lock()
        found = json.loads(gzip.decompress(FILE.read_bytes())) if FILE.exists() and not upstream else []
        self.answers = {json.dumps(record["request"], sort_keys=True): record for record in found}

    def find(self, method, path, content, kind):
        request = {"method": method, "path": path, "body": body_of(content, kind)}
        key = json.dumps(request, sort_keys=True)
        with self.lock:
            record = self.answers.get(key)
        if record is None and self.upstream:
            record = {"request": request, **self.ask(method, path, content, kind)}
            with self.lock:
                self.answers[key] = record
        return record

    def ask(self, method, path, content, kind):
        headers = {"Content-Type": kind} if kind else {}
        request = urllib.request.Request(self.upstream + path, content, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return {"status": response.status, "kind": response.headers["Content-Type"], "text": response.read().decode()}
        except urllib.error.HTTPError as error:
            return {"status": error.code, "kind": error.headers["Content-Type"], "text": error.read().decode()}

    def save(self):
        kept = [self.answers[key] for key in sorted(self.answers)]
        # Addresses of the server that was asked are of no use to anybody.
        lines = [re.sub(r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:5000", json.dumps(r, ensure_ascii=False)) for r in kept]
        FILE.write_bytes(gzip.compress(("[\n" + ",\n".join(lines) + "\n]\n").encode(), 9, mtime=0))
        return len(lines)


def body_of(content, kind):
    """A body as it is compared: the object of JSON, the fields of a form with the names of its files."""
    if not content:
        return None
    if not (kind or "").startswith("multipart/"):
        return json.loads(content)
    text = content.decode(errors="replace")
    fields = dict(re.findall(r'name="(\w+)"\r\n\r\n(.*?)\r\n--', text, re.S))
    return fields | {"file": re.search(r'filename="([^"]*)"', text).group(1)}


class Refused(Exception):
    def __init__(self, status, message, headers=()):
        super().__init__(message)
        self.status = status
        self.headers = headers


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
    records = None

    def log_message(self, *_):
        pass

    def answer(self, status, content, kind, headers=()):
        self.send_response(status)
        for name, value in (*headers, ("Content-Type", kind), ("Content-Length", str(len(content)))):
            self.send_header(name, value)
        if kind != "image/svg+xml":
            self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(content)

    def json(self, value, status=200, headers=()):
        self.answer(status, json.dumps(value).encode(), "application/json", headers)

    def refuse(self, error):
        self.json({"error": str(error)}, error.status, error.headers)

    def do_GET(self):
        path = urlsplit(self.path).path
        try:
            if path == "/mock/log":
                self.json(self.requests)
            elif path.startswith(API):
                self.replay(None, None)
            else:
                self.file(path)
        except Refused as error:
            self.refuse(error)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def file(self, path):
        name = "index.html" if path == "/" else path.removeprefix("/")
        file = PAGE / name
        if "/" in name or file.suffix not in TYPES or not file.is_file():
            raise Refused(404, "Not found")
        self.answer(200, file.read_bytes(), f"{TYPES[file.suffix]}; charset=utf-8")

    def do_POST(self):
        try:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            kind = self.headers["Content-Type"]
            body = body_of(content, kind)
            entry = {"path": self.path, "q": body.get("q"), "body": body, "gone": False}
            with self.log_lock:
                self.requests.append(entry)
            if self.key and self.headers["Authorization"] != f"Bearer {self.key}":
                raise Refused(403, "Invalid API key")
            act_up(str(body.get("q", "")))
            entry["gone"] = self.client_gone()
            self.replay(content, kind)
        except Refused as error:
            self.refuse(error)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def replay(self, content, kind):
        record = self.records.find(self.command, self.path, content, kind)
        if record is None:
            # A text that is being typed: the page gives this request up with the next letter.
            time.sleep(1)
            raise Refused(501, f"not recorded: {self.command} {self.path} {body_of(content, kind)}")
        if record["kind"].startswith("text/event-stream"):
            return self.stream(record["text"])
        text = record["text"]
        if self.key and self.path == "/frontend/settings":
            text = json.dumps(json.loads(text) | {"apiKeys": True, "keyRequired": True})
        self.answer(record["status"], text.encode(), record["kind"])

    def stream(self, text):
        """Event by event, so that a page sees it grow."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in text.rstrip().split("\n\n"):
            self.wfile.write(f"{event}\n\n".encode())
            self.wfile.flush()
            time.sleep(0.02)

    def client_gone(self):
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


class Server(ThreadingHTTPServer):
    daemon_threads = True
    # A browser asks for all modules at once; a full queue would make it wait for seconds.
    request_queue_size = 128

    def handle_error(self, request, client_address):
        # A browser that is closed takes its connections with it.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def start(port=0, key=None, records=None):
    """The server in a thread of its own; returns it and its address. With a key, requests to translate must have it."""
    members = {"key": key, "records": records or RECORDS or Records(), "requests": []}
    server = Server(("127.0.0.1", port), type("ReplayHandler", (Handler,), members))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    STARTED.append(url)
    return server, url


# Those of a run that records, which all of its servers share.
RECORDS = None
# The addresses of all servers of this process.
STARTED = []


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=5000)
    _, url = start(parser.parse_args().port)
    print(url, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
