#!/usr/bin/env python3
"""Tests of the page in a real Chromium.

    python3 tests/browser/run.py [--url http://127.0.0.1:5000/ | --serve REGARD MODEL | --record REGARD EN-FR FR-EN OTHER STUDIES]
        [--shots FOLDER] [NAME…]

Recorded answers are replayed, unless there is an address or a program and a model to serve. Without them, tests that need what the recorded
models say are left out. `--record` runs the tests against a server of these models and keeps all of its answers (see record.py).
Needs `chromium` and `chromedriver` on the path (Debian: chromium, chromium-driver) and nothing else; where there is a Firefox, it opens every
view, too (firefox.py).
"""

import argparse
import contextlib
import json
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import firefox
import frame_tests
import inside_tests
import mock_server
import record
import record_tests
import screenshots
import translate_tests
import view_tests
from page import Page, own_request
from serving import serving
from webdriver import Browser, Failure

MODULES = [translate_tests, view_tests, inside_tests, frame_tests, record_tests, screenshots]


def complaints(page):
    """What the browser's console and network say against the page."""
    found = []
    for entry in page.log("browser"):
        expected = any(text in entry["message"] for text in page.expected_errors)
        if entry["level"] in ("SEVERE", "WARNING") and not expected:
            found.append(f"console: {entry['message']}")
    for entry in page.log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            address, page_address = message["params"]["request"]["url"], message["params"]["documentURL"]
            if not own_request(address, page_address, [page.home, *mock_server.STARTED]):
                found.append(f"a request to {address} from {page_address}")
    return found


def run(page, test):
    page.reset()
    # What the page of the last test still asks is not this one's.
    page.open("about:blank")
    complaints(page)
    test(page)
    found = complaints(page)
    if found:
        raise AssertionError("; ".join(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    server = parser.add_mutually_exclusive_group()
    server.add_argument("--url", help="the server to test; a mock is started without it")
    server.add_argument("--record", nargs=5, metavar=("REGARD", "EN-FR", "FR-EN", "OTHER", "STUDIES"), help="keep the answers of a real server")
    server.add_argument("--serve", nargs=2, metavar=("REGARD", "MODEL"), help="the program to start, and its model")
    parser.add_argument("--shots", type=Path, help="a folder for screenshots")
    parser.add_argument("names", nargs="*", help="only tests whose names contain one of these")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        if options.serve:
            options.url = f"http://{stack.enter_context(serving(*options.serve))[1]}"
        if options.record:
            mock_server.RECORDS = record.begin(stack, *options.record)
        failed = run_all(options)
        if not (options.url or options.record or options.names) and firefox.installed():
            failed = firefox.run(options.shots) or failed
        if options.record:
            record.finish(mock_server.RECORDS)
        return failed


def run_all(options):
    mocked = options.url is None
    url = mock_server.start()[1] if mocked else options.url.rstrip("/") + "/"
    written = [pair for module in MODULES for pair in vars(module).items()]
    tests = [(name.removeprefix("test_"), test) for name, test in written if name.startswith("test_")]
    if options.names:
        tests = [pair for pair in tests if any(part in pair[0] for part in options.names)]
    other = "live_only" if mocked else "mock_only"
    tests = [pair for pair in tests if not hasattr(pair[1], other)]
    failed = []
    browser = Browser()
    try:
        print(f"Chromium {browser.version}, {url}", flush=True)
        page = Page(browser, url, mocked)
        page.shots = options.shots
        page.sample_text = page.sample()
        for name, test in tests:
            began = time.monotonic()
            try:
                run(page, test)
                print(f"ok    {name} ({time.monotonic() - began:.1f} s)", flush=True)
            except (AssertionError, Failure) as error:
                failed.append(name)
                line = traceback.extract_tb(error.__traceback__)
                here = next((f.lineno for f in reversed(line) if f.name.startswith("test_")), "?")
                print(f"FAIL  {name}, line {here}: {error}", flush=True)
                if options.shots:
                    options.shots.mkdir(parents=True, exist_ok=True)
                    browser.screenshot(options.shots / f"failed-{name}.png")
    finally:
        browser.close()
    print(f"{len(tests) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(f"run.py: {failure}")
