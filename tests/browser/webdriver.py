"""As much of the WebDriver protocol as the browser tests need, over HTTP to chromedriver. Only the standard library."""

import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {
    "tab": "\ue004",
    "enter": "\ue007",
    "space": "\ue00d",
    "end": "\ue010",
    "home": "\ue011",
    "left": "\ue012",
    "up": "\ue013",
    "right": "\ue014",
    "down": "\ue015",
    "backspace": "\ue003",
}
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1280,900",
]


class Failure(Exception):
    """The driver refused a command, or what was waited for did not come."""


class Browser:
    """One chromedriver and one Chromium with an empty profile."""

    def __init__(self, timeout=60):
        self.timeout = timeout
        self.profile = tempfile.mkdtemp(prefix="regard-browser-")
        port = free_port()
        self.address = f"http://127.0.0.1:{port}"
        self.driver = subprocess.Popen(
            [find_program("chromedriver"), f"--port={port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"HOME": self.profile},
        )
        try:
            self.wait(self.driver_ready, "chromedriver")
            self.session = self.open_session()
        except BaseException:
            self.close()
            raise

    def driver_ready(self):
        try:
            return self.call("GET", "/status")["ready"]
        except (OSError, Failure):
            return False

    def open_session(self):
        chrome = {"args": [*FLAGS, f"--user-data-dir={self.profile}/profile"], "binary": find_program("chromium")}
        capabilities = {
            "browserName": "chrome",
            "goog:chromeOptions": chrome,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.version = answer["capabilities"]["browserVersion"]
        return f"/session/{answer['sessionId']}"

    def close(self):
        if hasattr(self, "session"):
            try:
                self.call("DELETE", self.session)
            except (OSError, Failure):
                pass
        self.driver.terminate()
        self.driver.wait(timeout=10)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise Failure(f"{value['error']}: {value['message'].splitlines()[0]}") from None

    def do(self, path, body=None, method=None):
        return self.call(method or ("GET" if body is None else "POST"), self.session + path, body)

    # pages

    def open(self, url):
        self.do("/url", {"url": url})

    def js(self, script, *arguments):
        return self.do("/execute/sync", {"script": script, "args": list(arguments)})

    def cdp(self, command, **parameters):
        return self.do("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def log(self, kind):
        return self.do("/se/log", {"type": kind})

    def screenshot(self, file):
        Path(file).write_bytes(base64.b64decode(self.do("/screenshot")))

    def resize(self, width, height, mobile=False):
        """With `mobile`, scroll bars take no room, as on a phone."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def media(self, **features):
        listed = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.cdp("Emulation.setEmulatedMedia", features=listed)

    # elements

    def all(self, css):
        return [found[ELEMENT] for found in self.do("/elements", {"using": "css selector", "value": css})]

    def one(self, css):
        """The first element that matches, waited for."""
        return self.wait(lambda: self.all(css), f"an element {css}")[0]

    def text(self, css):
        """The text of the first match, as it is in the document."""
        return self.js("return document.querySelector(arguments[0])?.textContent ?? null", css)

    def click(self, css):
        try:
            self.do(f"/element/{self.one(css)}/click", {})
        except Failure as failure:
            if "stale element" not in str(failure):
                raise
            # The page has drawn it anew between finding and clicking; a user would click what is
            # there now.
            self.do(f"/element/{self.one(css)}/click", {})

    def type(self, css, text):
        self.do(f"/element/{self.one(css)}/value", {"text": text})

    def replace(self, css, text):
        """Types over what a field has."""
        self.js("const field = document.querySelector(arguments[0]); field.focus(); field.select()", css)
        self.press(*text)

    def choose(self, css, value):
        """Picks an option of a select as a user does."""
        self.click(f"{css} option[value={json.dumps(str(value))}]")

    def label(self, element):
        return self.do(f"/element/{element}/computedlabel")

    def focus(self, css):
        self.js("document.querySelector(arguments[0]).focus()", css)

    def press(self, *names):
        """Keys to whatever has the focus."""
        actions = []
        for name in names:
            key = KEYS.get(name, name)
            actions += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.do("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def hover(self, x, y):
        move = {"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y), "origin": "viewport"}
        self.do("/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})

    def hover_over(self, css, index=0):
        """The pointer to the middle of a match, whatever lies above it."""
        script = """
            const box = document.querySelectorAll(arguments[0])[arguments[1]].getClientRects()[0];
            return [box.left + box.width / 2, box.top + box.height / 2];
        """
        self.hover(*self.js(script, css, index))

    def wait(self, condition, what, timeout=None):
        """Until the condition is true; its value. `what` is what is waited for, or a function that says it when the time is up."""
        end = time.monotonic() + (timeout or self.timeout)
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > end:
                raise Failure(f"waited in vain for {what() if callable(what) else what}")
            time.sleep(0.03)


def find_program(name):
    found = shutil.which(name)
    if not found:
        raise Failure(f"{name} is not installed (Debian: apt-get install chromium chromium-driver)")
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
