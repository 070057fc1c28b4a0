"""Pictures of every view and state for people to look at; `run.py --shots FOLDER` makes them."""

import time

import mock_server
from page import LONG, TEXT, VIEWS, holds
from translate_tests import DROP, add_term

WIDE, NARROW = (1280, 900), (360, 740)
SIZES = [WIDE, NARROW]


def test_screenshots(page):
    """A test only in that nothing fails on the way."""
    if page.shots is None:
        return
    page.shots.mkdir(parents=True, exist_ok=True)
    for theme in ["light", "dark"]:
        for size in SIZES:
            for view in VIEWS:
                prepare(page, view, theme, size)
                take(page, f"{view}-{theme}-{size[0]}", size)
    prepare(page, "translate", "light", WIDE, "zh")
    holds(page.js(READABLE), "a font for Chinese is missing on this machine (Debian: fonts-noto-cjk)")
    for view in VIEWS:
        for theme, size in zip(["light", "dark"], SIZES):
            prepare(page, view, theme, size, "zh")
            take(page, f"{view}-zh-{size[0]}", size)


def test_screenshots_of_states(page):
    """What a view looks like when something was done in it, or went wrong; the wide ones light, the narrow ones dark."""
    if page.shots is None:
        return
    page.expected_errors = ("status of 500", "status of 403", "status of 400")
    page.shots.mkdir(parents=True, exist_ok=True)
    for (name, state), (theme, size) in ((pair, way) for pair in STATES.items() for way in zip(["light", "dark"], SIZES)):
        if name in MOCKED and not page.mocked:
            continue
        page.url = page.home
        width, height = size if name not in MOVING else (size[0], 1250)
        look(page, theme, (width, height), still=name not in MOVING)
        state(page)
        take(page, f"state-{name}-{width}", (width, height), still=name not in MOVING)


def look(page, theme, size, still=True):
    """Without motion, so that a picture shows what has come to rest; narrow screens are those of phones, whose scroll bars take no room."""
    page.media(prefers_color_scheme=theme, **({"prefers_reduced_motion": "reduce"} if still else {}))
    page.resize(*size, mobile=size[0] == NARROW[0])


def prepare(page, view, theme, size, language="en"):
    look(page, theme, size)
    page.go(view, language=language)
    if view == "translate":
        page.type("#source", page.sample())
        page.translation()
    if view == "steps":
        step(page, 7)
    if view == "decoding":
        page.one("#beam-card .tree")
    if view == "attention":
        page.click("button.head:nth-of-type(2)")


def take(page, name, size, still=True):
    """The whole height of the page, if it is not a book. What moves must be as high as the page from the start."""
    width, height = size
    if still:
        tall = page.js("return document.scrollingElement.scrollHeight")
        page.resize(width, max(height, min(tall, 4000)), mobile=width == NARROW[0])
        # Away from whatever was clicked; a word of the translation shows what it belongs to.
        page.hover(1, 1)
        if page.count("#view-translate:not([hidden]) #output .word") > 2:
            page.hover_over("#output .word", 2)
        page.js("scrollTo(0, 0)")
        time.sleep(0.15)
    page.screenshot(page.shots / f"{name}.png")


# Whether two letters are drawn as two letters, and not as the same box.
READABLE = """
    const [a, b] = [...document.querySelector("#tab-translate").textContent].map((letter) => {
        const canvas = document.createElement("canvas");
        const context = canvas.getContext("2d");
        context.font = "40px sans-serif";
        context.fillText(letter, 10, 60);
        return canvas.toDataURL();
    });
    return a !== b;
"""


# ---- states: translate


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


def terms(page):
    page.go()
    text = page.sample()
    add_term(page, text.split()[0], "matou")
    page.type("#source", text)
    page.translation()
    page.js(DROP, "terms.txt", f"{text}\n" * 2)
    page.one("#download")


def file_refused(page):
    page.go()
    page.js(DROP, "report.exe", page.sample())
    page.one("#file-status [role=alert]")


def file_in_progress(page):
    """It ends too soon for a picture: what is seen is a copy of the first sign of progress."""
    page.go()
    page.js("""
        new MutationObserver((_, observer) => {
            const status = document.querySelector("#file-status");
            if (!/ of 40 /.test(status.textContent)) return;
            observer.disconnect();
            status.replaceWith(status.cloneNode(true));
        }).observe(document.querySelector("#file-status"), { childList: true, subtree: true, characterData: true });
    """)
    page.js(DROP, "report.txt", f"{page.sample()}\n" * 40)
    page.until("#file-status", " of 40 sentences")


def first_visit(page):
    page.go(visited=False)
    page.one("#ribbons path")


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


# ---- step by step, decoding


def block(name, steps=0):
    def state(page):
        page.go("steps")
        page.click(f"[data-block={name}]")
        page.one(f"[data-block={name}][aria-current]")
        step(page, steps)
    return state


def without(part):
    def state(page):
        page.go("steps")
        step(page, 6)
        page.click(f"[name=off][value^={part}]")
        page.one(".before-after")
    return state


def recurrent(page):
    page.go("steps")
    page.choose("#sentence-pair", 1)
    page.choose("#steps-stack", "decoder")
    page.until("[data-block=decoder-attention]", "SSRU")
    page.click("[data-block=decoder-attention]")
    step(page, 1)


def by_distance(page):
    page.go("steps")
    page.choose("#sentence-pair", [model["config"]["positions"] for model in page.get("v1/model")].index("relative"))
    page.until("[data-block=encoder-positions]", "No positions")
    page.click("[data-block=encoder-positions]")
    page.click(".keys summary")


def forced(page):
    page.go("decoding")
    page.click(".candidate-list li:nth-child(2) button")
    page.one(".grown-token.settled")
    page.one("#beam-card .tree")


# ---- attention, positions, model, studies


def matrix(page):
    page.go("attention")
    page.click("[name=view][value=matrix]")


def pointed(page):
    page.go("attention")
    page.focus(".lines .token:nth-of-type(4)")


def decoder_average(page):
    page.go("attention")
    page.click("[name=kind][value=decoder]")
    page.choose("#attention-head", "mean")
    page.click("#hide-ends")


def sentences(page):
    page.go(query=f"?q={TEXT} The red house.&source=en&target=fr")
    page.translation()
    page.click("#tab-attention")
    page.one("#attention-result .chart")


def written(text, shows):
    def state(page):
        page.go("attention")
        page.replace("#sentence-q", text)
        page.press("enter")
        page.one(shows)
    return state


def own_sines(page):
    page.go("positions")
    page.click("[name=positions-kind][value=own]")


def learned(page):
    page.go("positions")
    page.choose("#positions-model", 1)
    page.until(".about", "learned a vector")
    page.click("[name=positions-kind][value=own]")


def opened(page):
    page.go("model")
    page.click("#model-training .numbers summary")
    page.click("#model-result > .card:last-child summary")


def intercept(page, path, change):
    """The next answers to a request, changed."""
    return page.cdp("Page.addScriptToEvaluateOnNewDocument", source=f"""
        const before = window.fetch;
        window.fetch = async (address, options) => {{
            const answer = await before(address, options);
            if (!String(address).endsWith({path!r})) return answer;
            const found = await answer.json();
            {change};
            return new Response(JSON.stringify(found));
        }};
    """)


def intercepted(path, change, state):
    def changed(page):
        script = intercept(page, path, change)
        try:
            state(page)
        finally:
            page.cdp("Page.removeScriptToEvaluateOnNewDocument", **script)
    return changed


def live(page):
    page.go("model")
    page.click("#tab-positions")
    page.click("#tab-model")
    page.one("#model-live")


def study(page, language="en"):
    page.go("studies", language=language)
    page.click(".studies li:last-child a")
    page.one("#studies-back")


GROW = "window.asked = (window.asked ?? 0) + 1; found[0].training.push({ step: found[0].training.at(-1).step + 500 * window.asked, loss: 0.9, bleu: null, rate: 0.0004 })"
STATES = {
    "empty": lambda page: page.go(),
    "first-visit": first_visit,
    "busy": typed("slow cat", "#target-pane.busy"),
    "error": typed("fail", "#translate-error [role=alert]"),
    "key": key,
    "other-language": typed("Le petit garçon veut lire ce livre dans le jardin de sa mère.", "#guess button"),
    "long": typed(LONG, "#copy:enabled"),
    "terms-and-file": terms,
    "file-in-progress": file_in_progress,
    "file-refused": file_refused,
    "dropping": dropping,
    "request": request,
    "embedding": block("encoder-positions"),
    "heads": block("encoder-attention", 5),
    "feed-forward": block("encoder-ffn"),
    "mask": block("decoder-attention", 3),
    "masked-sum": block("decoder-attention", 5),
    "cross": block("decoder-cross"),
    "next-word": block("decoder-next"),
    "without-positions": without("positions"),
    "without-a-head": without("encoder"),
    "recurrent": recurrent,
    "by-distance": by_distance,
    "forced": forced,
    "matrix": matrix,
    "pointed": pointed,
    "decoder-average": decoder_average,
    "sentences": sentences,
    "no-sentence": written("\ue003", "#attention-result .notice.empty"),
    "inner-error": written("fail", "#attention-result [role=alert]"),
    "own-sines": own_sines,
    "learned": learned,
    "opened": opened,
    "live": intercepted("/v1/model", GROW, live),
    "no-studies": intercepted("/studies/index.json", "found.length = 0", lambda page: page.go("studies")),
    "study": study,
    "study-zh": lambda page: study(page, "zh"),
}
# Those that only recorded answers have.
MOCKED = {"busy", "error", "key", "other-language", "long", "file-in-progress", "file-refused", "recurrent", "by-distance", "sentences", "inner-error", "learned", "study", "study-zh"}
# Those that a picture catches on the way.
MOVING = {"first-visit", "busy"}
