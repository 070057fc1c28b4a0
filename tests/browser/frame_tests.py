"""Tests of what all views share: tabs, theme, languages of the page, names for screen readers, narrow screens; run.py runs them."""

from page import VIEWS, holds, own_request, same
from webdriver import ELEMENT, Failure


def test_tabs_and_addresses(page):
    page.go()
    shown = lambda: page.js("return [...document.querySelectorAll('[role=tabpanel]')].filter(p => !p.hidden).map(p => p.id)")
    for view in VIEWS:
        page.click(f"#tab-{view}")
        page.wait(lambda: shown() == [f"view-{view}"], view)
        same(page.js("return document.querySelector('[aria-selected=true]').id"), f"tab-{view}")
        same(page.js("return document.title"), f"{page.text(f'#tab-{view}')} · Regard")
    page.do("/back", {})
    page.wait(lambda: shown() == ["view-model"], "the view before")
    page.focus("#tab-model")
    page.press("right")
    page.wait(lambda: shown() == ["view-studies"], "the view to the right")
    page.press("home")
    page.wait(lambda: shown() == ["view-translate"], "the first view")


def test_requests_elsewhere_are_noticed(page):
    servers = ["http://127.0.0.1:1/", "http://127.0.0.1:2/"]
    holds(own_request("http://127.0.0.1:2/app.js", "http://127.0.0.1:2/#model", servers), "a server that a test has started")
    for address, page_address in [
        ("http://127.0.0.1:2/app.js", "http://127.0.0.1:1/"),
        ("http://127.0.0.1:3/", "http://127.0.0.1:3/"),
        ("https://fonts.example/a.woff2", "http://127.0.0.1:1/"),
        ("https://127.0.0.1:1/", "http://127.0.0.1:1/"),
        ("http://127.0.0.1:1/", "about:blank"),
    ]:
        holds(not own_request(address, page_address, servers), f"{address} from {page_address}")


def test_theme(page):
    page.go()
    ground = lambda: page.js("return getComputedStyle(document.body).backgroundColor")
    page.media(prefers_color_scheme="light")
    light = ground()
    page.media(prefers_color_scheme="dark")
    dark = ground()
    holds(light != dark, f"both are {light}")
    page.click("#theme")
    same(page.text("#theme span"), "Theme: light")
    same(ground(), light)
    page.open(f"{page.url}#model")
    page.do("/refresh", {})
    same(ground(), light, "after a reload")
    page.click("#theme")
    page.media(prefers_color_scheme="light")
    same(ground(), dark)
    page.click("#theme")
    same(page.text("#theme span"), "Theme: auto")
    same(ground(), light)


def test_reduced_motion(page):
    page.media(prefers_reduced_motion="reduce")
    page.go()
    page.js("document.querySelector('#target-pane').classList.add('busy')")
    same(page.js("return getComputedStyle(document.querySelector('.progress'), '::after').animationName"), "none")


def test_everything_has_a_name(page):
    # The buttons of heads are made alike: some of them stand for all.
    css = "button:not(.head), .head:nth-of-type(-n + 3), select, input, textarea, [role=img], [role=tab], [role=group], [role=region], summary"
    for view in VIEWS:
        page.go(view)
        # What is drawn late replaces elements: then they are asked again.
        page.wait(lambda: all_named(page, view, css), f"{view} to come to rest")
        ids = page.js("return [...document.querySelectorAll('[id]')].map(e => e.id)")
        same(len(ids), len(set(ids)), f"{view}: ids that occur once")


def all_named(page, view, css):
    visible = "return [...document.querySelectorAll(arguments[0])].filter((e) => e.checkVisibility())"
    try:
        for element in page.js(visible, css):
            if not page.label(element[ELEMENT]).strip():
                raise AssertionError(f"{view}: nameless {page.js('return arguments[0].outerHTML', element)[:120]}")
    except Failure as failure:
        if "stale" in str(failure):
            return False
        raise
    return True


def test_narrow_screens(page):
    page.resize(360, 740)
    for view in VIEWS:
        page.go(view)
        if view == "translate":
            page.type("#source", page.sample())
            page.translation()
        width = page.js("return document.scrollingElement.scrollWidth")
        holds(width <= 360, f"{view} is {width} wide")
        # What a card cuts off does not make the page wider, but cannot be reached either.
        cut = page.js("""
            return [...document.querySelectorAll("button, select, input, textarea, legend, .foot *")]
                .filter((e) => e.checkVisibility() && !e.closest(".heat-scroll") && e.getBoundingClientRect().right > 360)
                .map((e) => e.id || e.textContent);
        """)
        same(cut, [], f"{view}: cut off")


def test_the_theme_has_a_name_where_there_is_no_room_for_it(page):
    page.resize(360, 740)
    page.go()
    same(page.label(page.one("#theme")), "Theme: auto")


def test_chinese(page):
    page.go("steps", language="zh")
    same(page.text("#tab-translate"), "翻译")
    same(page.js("return document.documentElement.lang"), "zh-Hans")
    page.until(".explanation h3", "词元")
    pair = page.get("v1/model")[0]
    names = page.js("const names = new Intl.DisplayNames(['zh'], { type: 'language' }); return arguments[0].map(code => names.of(code))", [pair["source"], pair["target"]])
    same(page.js("return document.querySelector('#sentence-pair option').textContent"), " → ".join(names), "languages in Chinese")
    page.choose("#language", "en")
    page.until("#tab-translate", "Translate")
    page.one("#steps-result .block")
    same(page.js("return location.hash"), "#steps", "the view stays")
