#!/usr/bin/env python3
"""The page in Firefox, on recorded answers: every view opens in both languages, translates, and complains about nothing.

    python3 tests/browser/firefox.py [--shots FOLDER]

Needs `firefox-esr` or `firefox` on the path and no driver: Firefox itself speaks WebDriver BiDi, over a web socket. Only the standard library.
"""

import argparse
import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mock_server
from page import TEXT, holds, same
from webdriver import free_port

READY = {
    "translate": "#source:enabled",
    "steps": "#steps-result .block",
    "decoding": "#beam-card .tree",
    "attention": "#attention-result .lines .strand",
    "positions": "#positions-result .chart",
    "model": "#model-result .card",
    "studies": "#studies-result .card",
}


class WebSocket:
    """As much of RFC 6455 as a client needs that sends and receives whole texts."""

    def __init__(self, port, path):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self.file = self.socket.makefile("rb")
        if b"101" not in self.file.readline():
            raise OSError("Firefox does not speak WebDriver BiDi")
        while self.file.readline().strip():
            pass

    def send(self, text):
        data = text.encode()
        size = len(data)
        head = bytes([0x81]) + (
            bytes([0x80 | size]) if size < 126 else bytes([0xFE]) + struct.pack(">H", size) if size < 1 << 16 else bytes([0xFF]) + struct.pack(">Q", size)
        )
        mask = os.urandom(4)
        self.socket.sendall(head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(data)))

    def receive(self):
        whole = b""
        while True:
            first, second = self.file.read(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", self.file.read(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", self.file.read(8))
            data = self.file.read(size)
            if first & 0x0F in (0, 1):
                whole += data
                if first & 0x80:
                    return whole.decode()


def installed():
    return shutil.which("firefox-esr") or shutil.which("firefox")


class Firefox:
    def __init__(self):
        program = installed()
        if not program:
            raise SystemExit("firefox.py: firefox-esr is not installed")
        self.profile = tempfile.mkdtemp(prefix="regard-firefox-")
        port = free_port()
        quiet = {"app.update.enabled": False, "datareporting.policy.dataSubmissionEnabled": False, "network.captive-portal-service.enabled": False}
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in quiet.items()]
        Path(self.profile, "user.js").write_text("\n".join(lines))
        self.process = subprocess.Popen(
            [program, "--headless", "--no-remote", "--profile", self.profile, "--remote-debugging-port", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"HOME": self.profile, "MOZ_HEADLESS_WIDTH": "1280", "MOZ_HEADLESS_HEIGHT": "900"},
        )
        self.number, self.complaints = 0, []
        for _ in range(600):
            try:
                self.socket = WebSocket(port, "/session")
                break
            except OSError:
                time.sleep(0.1)
        else:
            raise SystemExit("firefox.py: Firefox did not start")
        self.version = self.call("session.new", capabilities={})["capabilities"]["browserVersion"]
        self.call("session.subscribe", events=["log.entryAdded"])
        self.context = self.call("browsingContext.getTree")["contexts"][0]["context"]

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=20)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.receive())
            if message.get("method") == "log.entryAdded" and message["params"]["level"] == "error":
                self.complaints.append(message["params"]["text"])
            if message.get("id") == self.number:
                if message["type"] == "error":
                    raise AssertionError(f"{method}: {message['message']}")
                return message["result"]

    def open(self, address):
        self.call("browsingContext.navigate", context=self.context, url=address, wait="complete")

    def js(self, expression):
        """The value of an expression, which must be a string, a number or a truth value."""
        answer = self.call("script.evaluate", expression=expression, target={"context": self.context}, awaitPromise=True)
        if answer["type"] == "exception":
            raise AssertionError(answer["exceptionDetails"]["text"])
        return answer["result"].get("value")

    def wait(self, expression, what):
        for _ in range(400):
            if self.js(expression):
                return
            time.sleep(0.05)
        raise AssertionError(f"waited in vain for {what}")

    def screenshot(self, file):
        shot = self.call("browsingContext.captureScreenshot", context=self.context, origin="document")
        Path(file).write_bytes(base64.b64decode(shot["data"]))


def check(firefox, url, view, language, shots):
    firefox.open("about:blank")
    firefox.open(url)
    firefox.js(f"localStorage.clear(); localStorage.setItem('regard.visited', 'yes'); localStorage.setItem('regard.language', '{language}'); true")
    firefox.open(f"{url}?view={view}-{language}#{view}")
    firefox.wait(f"document.querySelector({json.dumps(READY[view])}) !== null", f"{view} in {language}")
    if view == "translate":
        script = "const s = document.querySelector('#source'); s.value = %s; s.dispatchEvent(new Event('input')); true"
        firefox.js(script % json.dumps(TEXT))
        firefox.wait("!document.querySelector('#copy').disabled", "a translation")
        same(firefox.js("document.querySelector('#output').textContent"), "Le chat noir dort.")
        firefox.js("document.querySelector('#output .word').dispatchEvent(new PointerEvent('pointerover', { bubbles: true })); true")
        holds(firefox.js("document.querySelectorAll('#ribbons path').length") > 0, "a ribbon between aligned words")
    if view == "steps":
        firefox.js("for (let i = 0; i < 6; i++) document.querySelector('#steps-next').click(); true")
        firefox.wait("document.querySelector('.explanation math mfrac') !== null", "the formula of softmax")
    width = firefox.js("document.scrollingElement.scrollWidth - innerWidth")
    holds(width <= 0, f"{view} is {width} wider than the window")
    same(firefox.complaints, [], f"{view} in {language}")
    if shots:
        firefox.screenshot(shots / f"firefox-{view}-{language}.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shots", type=Path, help="a folder for screenshots")
    return run(parser.parse_args().shots)


def run(shots):
    if shots:
        shots.mkdir(parents=True, exist_ok=True)
    firefox = Firefox()
    failed = 0
    try:
        print(f"Firefox {firefox.version}", flush=True)
        _, url = mock_server.start()
        for view in READY:
            for language in ["en", "zh"]:
                firefox.complaints.clear()
                try:
                    check(firefox, url, view, language, shots)
                    print(f"ok    {view} {language}", flush=True)
                except AssertionError as error:
                    failed += 1
                    print(f"FAIL  {view} {language}: {error}", flush=True)
    finally:
        firefox.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
