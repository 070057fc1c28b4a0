"""Pictures of every view and state for people to look at; `run.py --shots FOLDER` makes them."""

import time

from page import VIEWS


def test_screenshots(page):
    """Pictures of every view, for people to look at; a test only in that nothing fails on the way."""
    folder = page.shots
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for theme in ["light", "dark"]:
        for width, height in [(1280, 900), (360, 740)]:
            page.media(prefers_color_scheme=theme)
            page.resize(width, height)
            for view in VIEWS:
                page.go(view)
                prepare(page, view)
                tall = page.js("return document.scrollingElement.scrollHeight")
                page.resize(width, max(height, tall))
                if view == "translate":
                    page.hover_over("#output .word", 2)
                time.sleep(0.15)
                page.screenshot(folder / f"{view}-{theme}-{width}.png")
                page.resize(width, height)
    page.media(prefers_color_scheme="light")
    page.resize(1280, 1400)
    page.go("attention")
    page.click("[name=view][value=matrix]")
    page.screenshot(folder / "attention-matrix.png")
    page.go("translate")
    page.screenshot(folder / "translate-empty.png")
    for view in VIEWS:
        page.go(view, language="zh")
        prepare(page, view)
        page.screenshot(folder / f"{view}-zh.png")
    page.go("steps")
    for number in range(11):
        page.click("#steps-next")
        page.screenshot(folder / f"step-{number + 2}.png")


def prepare(page, view):
    if view == "translate":
        page.type("#source", page.sample())
        page.translation()
    if view == "steps":
        for _ in range(7):
            page.click("#steps-next")
    if view == "decoding":
        page.one("#beam-card .tree")
    if view == "attention":
        page.click("button.head:nth-of-type(2)")
