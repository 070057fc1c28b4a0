"""The page in a browser, as the tests see it."""

import json
import urllib.request
from urllib.parse import urlsplit

VIEWS = ["translate", "steps", "decoding", "attention", "positions", "model", "studies"]
TEXT = "The black cat sleeps."
LONG = "The black cat sleeps near the door. My friend wants to see the red house. " * 4


class Page:
    """The browser at the page, and what every test may want to know."""

    def __init__(self, browser, url, mocked):
        self.browser, self.home, self.url, self.mocked = browser, url, url, mocked
        self.expected_errors = ()

    def __getattr__(self, name):
        return getattr(self.browser, name)

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as response:
            return json.load(response)

    def ask(self, path, **body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)

    def go(self, view="translate", query="", visited=True, language="en"):
        """A newly loaded page with nothing remembered but that somebody was here before."""
        self.open("about:blank")
        self.cdp("Storage.clearDataForOrigin", origin=self.url.rstrip("/"), storageTypes="local_storage,session_storage")
        kept = {"regard.language": language, **({"regard.visited": "yes"} if visited else {})}
        source = f"for (const [name, value] of Object.entries({json.dumps(kept)})) localStorage.setItem(name, value)"
        script = self.cdp("Page.addScriptToEvaluateOnNewDocument", source=source)
        self.open(f"{self.url}{query}#{view}")
        self.cdp("Page.removeScriptToEvaluateOnNewDocument", **script)
        ready = {
            "translate": "#source:enabled",
            "steps": "#steps-result .block",
            "decoding": "#decoding-result .grown-token",
            "attention": "#attention-result .chart",
            "positions": "#positions-result .chart",
            "model": "#model-result .card",
            "studies": "#studies-result .card",
        }
        self.one(ready[view])

    def sample(self):
        """A sentence that the default model can read."""
        examples = [e["source"] for m in self.get("v1/model") for e in m.get("examples") or []]
        return TEXT if self.mocked or not examples else examples[0]

    def pair(self):
        return self.js("return { source: document.querySelector('#from').value, target: document.querySelector('#to').value }")

    def answer(self, text, **more):
        """What the server says to a text in the languages of the page."""
        return self.ask("translate", q=text, **self.pair(), alignment=True, alternatives=3, **more)

    def translation(self):
        """The finished translation."""
        done = "return !document.querySelector('#copy').disabled && document.querySelector('#output').textContent"
        return self.wait(lambda: self.js(done), "a translation", 30)

    def count(self, css):
        return self.js("return document.querySelectorAll(arguments[0]).length", css)

    def until(self, css, text):
        self.wait(lambda: text in (self.text(css) or ""), lambda: f"{text!r} in {css}, which has {self.text(css)!r}")

    def table(self, css, rows):
        """Opens the numbers behind a drawing. The browser tells the page that they are open a moment after the click."""
        self.click(f"{css} .numbers summary")
        count = lambda: self.count(f"{css} .numbers tbody tr")
        self.wait(lambda: count() == rows, lambda: f"{rows} rows of the table in {css}, which has {count()}")

    def reset(self):
        self.url = self.home
        self.cdp("Emulation.clearDeviceMetricsOverride")
        self.media()
        self.expected_errors = ()


def own_request(address, page_address, servers):
    """Whether a page of one of our servers asks the server that it came from; a test may start several."""
    origin = urlsplit(address)[:2]
    return origin == urlsplit(page_address)[:2] and (origin[0] == "about" or origin in [urlsplit(url)[:2] for url in servers])


def mock_only(test):
    test.mock_only = True
    return test


def live_only(test):
    """Needs answers that are not recorded."""
    test.live_only = True
    return test


def same(found, wanted, what=""):
    if found != wanted:
        raise AssertionError(f"{what or 'value'}: {found!r} instead of {wanted!r}")


def holds(condition, what):
    if not condition:
        raise AssertionError(what)
