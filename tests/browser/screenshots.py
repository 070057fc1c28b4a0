"""Pictures of every view and state for people to look at; `run.py --shots FOLDER` makes them."""

import time

import mock_server
from page import LONG, TEXT, VIEWS
from translate_tests import DROP, add_term

SIZES = [(1280, 900), (360, 740)]


def test_screenshots(page):
    """A test only in that nothing fails on the way."""
    if page.shots is None:
        return
    page.shots.mkdir(parents=True, exist_ok=True)
    for theme in ["light", "dark"]:
        for size in SIZES:
            page.media(prefers_color_scheme=theme)
            for view in VIEWS:
                page.resize(*size)
                page.go(view)
                prepare(page, view)
                take(page, f"{view}-{theme}-{size[0]}", size)
    for view in VIEWS:
        page.media(prefers_color_scheme="light")
        page.resize(*SIZES[0])
        page.go(view, language="zh")
        prepare(page, view)
        take(page, f"{view}-zh", SIZES[0])


def test_screenshots_of_states(page):
    """What a view looks like when something was done in it, or went wrong; the wide ones light, the narrow ones dark."""
    if page.shots is None:
        return
    page.expected_errors = ("status of 500", "status of 403")
    page.shots.mkdir(parents=True, exist_ok=True)
    for (name, state), (theme, size) in ((pair, way) for pair in STATES.items() for way in zip(["light", "dark"], SIZES)):
        if name in MOCKED and not page.mocked:
            continue
        page.url = page.home
        page.media(prefers_color_scheme=theme)
        page.resize(*size)
        state(page)
        take(page, f"state-{name}-{size[0]}", size)


def take(page, name, size):
    """The whole height of the page, if it is not a book."""
    width, height = size
    tall = page.js("return document.scrollingElement.scrollHeight")
    page.resize(width, max(height, min(tall, 4000)))
    if page.count("#output .word") > 2:
        page.hover_over("#output .word", 2)
    time.sleep(0.15)
    page.screenshot(page.shots / f"{name}.png")


def prepare(page, view):
    if view == "translate":
        page.type("#source", page.sample())
        page.translation()
    if view == "steps":
        step(page, 7)
    if view == "decoding":
        page.one("#beam-card .tree")
    if view == "attention":
        page.click("button.head:nth-of-type(2)")


def step(page, count):
    for _ in range(count):
        page.click("#steps-next")


def typed(text, shows):
    def state(page):
        page.go()
        page.js("""
            const source = document.querySelector("#source");
            source.value = arguments[0];
            source.dispatchEvent(new Event("input"));
        """, text)
        page.one(shows)
    return state


def block(name, steps=0):
    def state(page):
        page.go("steps")
        page.click(f"[data-block={name}]")
        page.one(f"[data-block={name}][aria-current]")
        step(page, steps)
    return state


def without_positions(page):
    page.go("steps")
    step(page, 6)
    page.click("[name=off][value=positions]")
    page.one(".before-after")


def recurrent(page):
    page.go("steps")
    page.choose("#sentence-pair", 1)
    page.choose("#steps-stack", "decoder")
    page.until("[data-block=decoder-attention]", "SSRU")
    page.click("[data-block=decoder-attention]")
    step(page, 1)


def terms(page):
    page.go()
    text = page.sample()
    add_term(page, text.split()[0], "matou")
    page.type("#source", text)
    page.translation()
    page.js(DROP, "terms.txt", f"{text}\n" * 2)
    page.one("#download")


def matrix(page):
    page.go("attention")
    page.click("[name=view][value=matrix]")
    page.focus(".plot.heat")
    page.press("right", "down")


def forced(page):
    page.go("decoding")
    page.click(".candidate-list li:nth-child(2) button")
    page.one(".grown-token.settled")
    page.one("#beam-card .tree")


def learned(page):
    page.go("positions")
    page.choose("#positions-model", 1)
    page.until(".about", "learned a vector")
    page.click("[name=positions-kind][value=own]")


def study(page, language="en"):
    page.go("studies", language=language)
    page.click(".studies li:last-child a")
    page.one("#studies-back")


def request(page):
    page.go()
    page.click("#request summary")
    page.type("#source", page.sample())
    page.translation()


def key(page):
    page.url = mock_server.start(key="sesame")[1]
    typed(TEXT, "#translate-error [role=alert]")(page)


def dropping(page):
    page.go()
    page.js("document.querySelector('#drop').hidden = false")


STATES = {
    "empty": lambda page: page.go(),
    "first-visit": lambda page: (page.go(visited=False), page.one("#ribbons path")),
    "error": typed("fail", "#translate-error [role=alert]"),
    "key": key,
    "other-language": typed("Le petit garçon veut lire ce livre dans le jardin de sa mère.", "#guess button"),
    "long": typed(LONG, "#copy:enabled"),
    "terms-and-file": terms,
    "dropping": dropping,
    "embedding": block("encoder-positions"),
    "heads": block("encoder-attention", 5),
    "feed-forward": block("encoder-ffn"),
    "mask": block("decoder-attention", 3),
    "cross": block("decoder-cross"),
    "next-word": block("decoder-next"),
    "without-positions": without_positions,
    "recurrent": recurrent,
    "forced": forced,
    "matrix": matrix,
    "learned": learned,
    "study": study,
    "study-zh": lambda page: study(page, "zh"),
    "request": request,
}
# Those that only recorded answers have.
MOCKED = {"error", "key", "other-language", "long", "recurrent", "learned", "study", "study-zh"}
