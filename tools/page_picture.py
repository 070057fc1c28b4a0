#!/usr/bin/env python3
"""Creates the picture of the page in the README: docs/page.png.

    python3 tools/page_picture.py [REGARD MODEL [SENTENCE]]

Takes a screenshot of "Step by step" in Chromium (Debian: chromium, chromium-driver), with the
recorded answers of the page's tests, or with a server started with a model.
"""

import contextlib
import sys
import time
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "browser"))

import mock_server
from serving import serving
from webdriver import Browser

PICTURE = ROOT / "docs" / "page.png"
# Up to the weighted sum, for the fourth word.
STEPS, WORD = 7, 3


@contextlib.contextmanager
def page(server):
    """The address of the page, with recorded answers if no program and model are given."""
    if not server:
        yield mock_server.start()[1]
        return
    with serving(*server) as (_, address):
        yield f"http://{address}/"


def main():
    text = sys.argv[3] if len(sys.argv) > 3 else "The black cat sleeps."
    with page(sys.argv[1:3]) as address:
        browser = Browser()
        try:
            browser.resize(1180, 900)
            browser.cdp("Emulation.setScrollbarsHidden", hidden=True)
            browser.media(prefers_color_scheme="light", prefers_reduced_motion="reduce")
            browser.open(f"{address}?q={quote(text)}#translate")
            browser.one("#look:enabled")
            browser.click("#look")
            browser.one(".token-chip")
            browser.js("document.querySelectorAll('.token-chip')[arguments[0]].click()", WORD)
            for _ in range(STEPS):
                browser.click("#steps-next")
            tall = browser.js("return document.querySelector('#switches').getBoundingClientRect().bottom + scrollY")
            browser.resize(1180, round(tall) + 16)
            time.sleep(0.3)
            browser.screenshot(PICTURE)
        finally:
            browser.close()
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
