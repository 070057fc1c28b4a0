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
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import firefox
import inside_tests
import mock_server
import record
from page import LONG, TEXT, VIEWS, Page, holds, live_only, mock_only, same
from serving import serving
from webdriver import ELEMENT, Browser, Failure

# ---- translate


def test_translates_while_typing(page):
    page.go()
    offered = page.js("return [...document.querySelectorAll('#from option')].map(o => o.value)")
    read = [language["code"] for language in page.get("languages") if set(language["targets"]) - {language["code"]}]
    same(offered, ["auto", *read], "languages")
    text = page.sample()
    page.type("#source", text)
    translation = page.translation()
    holds(translation.strip(), "the translation is empty")
    pair = page.js("return { source: document.querySelector('#from').value, target: document.querySelector('#to').value }")
    answer = page.ask("translate", q=text, alternatives=3, **pair)
    same(translation, answer["translatedText"], "the translation")
    alternatives = page.js("return [...document.querySelectorAll('#alternatives li span')].map(s => s.textContent)")
    same(alternatives, answer["alternatives"], "alternatives")
    key = page.get("frontend/settings")
    asked = page.js("return !document.querySelector('#key-field').hidden")
    same(asked, bool(key.get("apiKeys") or key.get("keyRequired")), "a key is asked for")
    holds(page.text("#count").startswith(str(len(text))), f"count: {page.text('#count')}")
    page.click("#clear")
    page.wait(lambda: page.text("#output") == "", "an empty translation")
    holds(page.js("return document.activeElement.id") == "source", "the focus goes back to the text")


@mock_only
def test_languages_and_alternatives(page):
    page.go()
    page.type("#source", TEXT)
    same(page.translation(), "Le chat noir dort.")
    alternatives = page.js("return [...document.querySelectorAll('#alternatives li span')].map(s => s.textContent)")
    same(alternatives, page.answer(TEXT)["alternatives"], "alternatives")
    page.click("#want-alternatives")
    page.wait(lambda: page.count("#alternatives li") == 0, "no alternatives")
    third = page.js("return [...document.querySelectorAll('#to option')].map(o => o.value).find(v => v !== 'fr')")
    page.choose("#to", third)
    page.wait(lambda: page.js("return !document.querySelector('#copy').disabled"), "the other translation")
    holds(page.js("return document.querySelector('#swap').disabled"), "there is no model to swap to")
    same(page.js("return document.querySelector('#output').lang"), third, "language of the output")


@mock_only
def test_pointer_lights_up_words(page):
    page.go()
    page.type("#source", f"😀 {TEXT}")
    same(page.translation(), "😀 Le chat noir dort.")
    lit = "return [...document.querySelectorAll(arguments[0])].map(w => w.textContent)"
    page.hover_over("#output .word", 1)
    same(page.js(lit, "#output .own"), ["chat"], "the word itself")
    same(page.js(lit, "#mirror .linked"), ["cat"], "its partner")
    same(page.text("#links"), "“chat” attended to “cat”.")
    page.hover_over("#mirror .word", 3)
    same(page.js(lit, "#mirror .own"), ["sleeps"], "the word itself")
    same(page.js(lit, "#output .linked"), ["dort"], "its partner")
    page.hover(5, 5)
    page.wait(lambda: page.js(lit, ".own, .linked") == [], "nothing lit")


def test_words_light_up_as_they_are_aligned(page):
    page.go()
    text = page.sample()
    page.type("#source", text)
    translation = page.translation()
    pair = page.js("return { source: document.querySelector('#from').value, target: document.querySelector('#to').value }")
    pairs = page.ask("translate", q=text, alignment=True, **pair)["alignment"]
    holds(pairs and pairs[0], "the server aligned nothing")
    # A single text may come back as a list of one.
    pairs = pairs[0] if isinstance(pairs[0][0], list) else pairs
    lit = "return [...document.querySelectorAll(arguments[0])].map(w => w.textContent)"
    place = 0
    for i, word in enumerate(page.js(lit, "#output .word")):
        place = translation.index(word, place)
        page.hover_over("#output .word", i)
        page.wait(lambda: page.js(lit, "#output .own") == [word], f"{word} is lit")
        wanted = {text[a:b] for a, b, start, end in pairs if start <= place < end}
        found = page.js(lit, "#mirror .linked")
        holds(found and all(any(w in part for part in wanted) for w in found), f"{word} lights {found}, and not {wanted}")
        place += len(word)


def test_keyboard_lights_up_words(page):
    page.go()
    page.type("#source", page.sample())
    page.translation()
    page.press("home")
    page.wait(lambda: page.js(
        "return document.querySelector('#mirror .own')?.textContent"
        " === document.querySelector('#mirror .word').textContent"), "the word at the caret")
    for _ in range(20):
        page.press("tab")
        if page.js("return document.activeElement.matches('#output .word')"):
            break
    else:
        raise AssertionError("no word of the translation can be reached by Tab")
    same(page.js("return document.activeElement.dataset.word"), "0")
    holds(page.text("#links"), "the first word says nothing about its partners")
    page.press("right")
    same(page.js("return document.querySelector('#output .own').dataset.word"), "1")
    page.press("end", "home")
    same(page.js("return document.activeElement.dataset.word"), "0")


def test_swap(page):
    page.go()
    page.type("#source", page.sample())
    translation = page.translation()
    if page.js("return document.querySelector('#swap').disabled"):
        return
    before = page.js("return [document.querySelector('#from').value, document.querySelector('#to').value]")
    page.click("#swap")
    same(page.js("return [document.querySelector('#to').value, document.querySelector('#from').value]"), before)
    same(page.js("return document.querySelector('#source').value"), translation, "the translation is the new text")
    page.translation()


def test_copy(page):
    page.go()
    page.type("#source", page.sample())
    page.translation()
    page.click("#copy")
    page.until("#copy", "Copied")
    page.wait(lambda: page.text("#copy") == "Copy", "the button's own name again")


@mock_only
def test_overtaken_requests_are_cancelled(page):
    page.go()
    page.type("#source", "slow cat")
    started = lambda: [r for r in page.get("mock/log") if r["q"] == "slow cat" and r["path"] == "/translate"]
    page.wait(started, "the first request")
    page.replace("#source", TEXT)
    same(page.translation(), "Le chat noir dort.")
    page.wait(lambda: started()[-1]["gone"], "the first request given up")
    same(page.text("#output"), "Le chat noir dort.", "the late answer changes nothing")


@mock_only
def test_long_texts_are_streamed(page):
    page.go()
    page.js("""
        window.seen = new Set();
        const output = document.querySelector("#output");
        new MutationObserver(() => seen.add(output.textContent.length)).observe(output, { childList: true });
        const source = document.querySelector("#source");
        source.value = arguments[0];
        source.dispatchEvent(new Event("input"));
    """, LONG)
    same(page.translation(), page.answer(LONG)["translatedText"])
    holds(page.js("return seen.size") > 3, "the translation came in one piece")
    holds(any(r["path"] == "/v1/translate/stream" for r in page.get("mock/log")), "no stream was asked for")
    page.hover_over("#output .word", 1)
    holds("attended to" in page.text("#links"), page.text("#links"))


@mock_only
def test_another_language_is_noticed(page):
    page.go()
    text = "Le petit garçon veut lire ce livre dans le jardin de sa mère."
    page.type("#source", text)
    page.translation()
    page.until("#guess", "French")
    page.wait(lambda: page.count("#guess button") == 1, "an offer to change it")


@mock_only
def test_a_language_without_a_model_is_noticed(page):
    page.go()
    page.type("#source", "Dieser Satz ist ganz sicher in deutscher Sprache geschrieben worden.")
    page.translation()
    page.until("#guess", "German")
    same(page.count("#guess button"), 0, "nothing to change to")


@mock_only
def test_errors_are_shown_in_the_servers_words(page):
    page.expected_errors = ("status of 500", "status of 503", "status of 400")
    page.go()
    page.type("#source", "fail")
    page.until("#translate-error", "The model is not well today.")
    same(page.js("return document.querySelector('#translate-error [role=alert]') !== null"), True)
    page.replace("#source", "busy")
    page.until("#translate-error", "The queue is full. Try again in 2 s.")
    page.replace("#source", TEXT)
    same(page.translation(), "Le chat noir dort.")
    same(page.text("#translate-error"), "", "the error is gone")
    page.js("""
        const source = document.querySelector("#source");
        source.value = "a".repeat(5001);
        source.dispatchEvent(new Event("input"));
    """)
    page.until("#translate-error", "exceeds text limit (5000)")
    holds(page.js("return document.querySelector('#count').classList.contains('over')"), "the count does not warn")


@mock_only
def test_an_error_replaces_the_translation(page):
    page.expected_errors = ("status of 500",)
    page.go()
    page.type("#source", TEXT)
    page.translation()
    holds(page.count("#alternatives button") > 0, "there are alternatives to copy")
    # A long text on a small screen: the place of the error is out of sight.
    page.resize(360, 500)
    page.js("""
        const source = document.querySelector("#source");
        source.value = "fail " + "a dog runs\\n".repeat(80);
        source.dispatchEvent(new Event("input"));
        scrollTo(0, 0);
    """)
    page.until("#translate-error", "The model is not well today.")
    same(page.text("#output"), "", "the old translation")
    same(page.count("#alternatives button"), 0, "alternatives of the old translation")
    same(page.text("#took"), "", "the time of the old translation")
    same(page.js("return document.querySelector('#copy').disabled"), True, "nothing to copy")
    seen = """
        const box = document.querySelector("#translate-error [role=alert]").getBoundingClientRect();
        return box.top >= 0 && box.bottom <= innerHeight;
    """
    page.wait(lambda: page.js(seen), "the error in sight")


def test_a_missing_server_is_said(page):
    page.expected_errors = ("ERR_INTERNET_DISCONNECTED",)
    page.go()
    offline = lambda off: page.cdp(
        "Network.emulateNetworkConditions", offline=off, latency=0, downloadThroughput=-1, uploadThroughput=-1)
    page.cdp("Network.enable")
    offline(True)
    try:
        page.type("#source", page.sample_text)
        page.until("#translate-error", "The server cannot be reached.")
    finally:
        offline(False)
    page.click("#translate-error button")
    page.translation()


@mock_only
def test_key(page):
    page.expected_errors = ("status of 403",)
    page.url = mock_server.start(key="sesame")[1]
    page.go()
    page.wait(lambda: page.js("return document.activeElement.id") == "key", "the focus on the key")
    page.type("#source", TEXT)
    page.until("#translate-error", "Invalid API key")
    same(page.text("#output"), "")
    page.type("#key", "sesame")
    page.click("#translate-error button")
    same(page.translation(), "Le chat noir dort.")


# ---- how a translation came about, glossary


def test_confidence_is_shown(page):
    page.go()
    text = page.sample()
    page.type("#source", text)
    page.translation()
    sure = page.answer(text)["confidence"]
    page.until("#confidence", f"confidence {round(100 * sure)} %")
    page.click("#clear")
    page.wait(lambda: page.text("#confidence") == "", "no confidence without a translation")


def test_remarks_say_what_is_special(page):
    page.go()
    page.js("""
        const answer = { translatedText: "x", alignment: [[]], confidence: 0.5, memory: "sentences",
            guarded: [{ fault: "repeats itself", left: null }, { fault: "empty", left: "far too short" }] };
        const before = window.fetch;
        window.fetch = (address, options) => String(address).endsWith("/translate")
            ? Promise.resolve(new Response(JSON.stringify(answer))) : before(address, options);
    """)
    page.type("#source", page.sample())
    page.until("#remarks", "Some sentences are from the translation memory.")
    page.until("#remarks", "the first translation repeats itself")
    page.until("#remarks", "Look at this translation closely: it is far too short.")


@live_only
def test_glossary(page):
    page.go()
    text = page.sample()
    page.click("#glossary summary")
    page.click("#glossary-add")
    page.type("#glossary-terms tr:last-child td:nth-child(1) input", "cat")
    page.type("#glossary-terms tr:last-child td:nth-child(2) input", "matou")
    page.press("tab")
    page.until("#glossary-count", "1 term")
    page.type("#source", text)
    wanted = page.answer(text, glossary={"cat": "matou"})["translatedText"]
    same(page.translation(), wanted, "the glossary is sent")
    # It is kept for this pair of languages.
    page.do("/refresh", {})
    page.one("#source:enabled")
    page.until("#glossary-count", "1 term")
    page.js("""
        const data = new DataTransfer();
        data.items.add(new File([arguments[0]], "terms.tsv"));
        const input = document.querySelector("#glossary-import");
        input.files = data.files;
        input.dispatchEvent(new Event("change"));
    """, "dog\tcabot\ncat\tminet\n")
    page.until("#glossary-count", "2 terms")
    values = "return [...document.querySelectorAll('#glossary-terms input')].map(i => i.value)"
    same(page.js(values), ["cat", "minet", "dog", "cabot"], "the later term counts")
    page.js("document.querySelector('#glossary').open = true")
    page.click("#glossary-terms tr button")
    page.until("#glossary-count", "1 term")
    page.js("""
        const data = new DataTransfer();
        data.items.add(new File(["only one column"], "bad.tsv"));
        const input = document.querySelector("#glossary-import");
        input.files = data.files;
        input.dispatchEvent(new Event("change"));
    """)
    page.until("#glossary-status", "bad.tsv, line 1")


# ---- attention


def test_attention_of_a_translation(page):
    page.go()
    text = page.sample()
    page.type("#source", text)
    page.translation()
    page.click("#look")
    page.one("#steps-result .block")
    same(page.js("return location.hash"), "#steps")
    same(page.js("return document.querySelector('#sentence-q').value"), text)
    page.click("#tab-attention")
    page.one("#attention-result .chart")
    same(page.js("return document.querySelector('#sentence-q').value"), text, "one sentence for all views")


def test_attention_opens_on_the_sharpest_head_as_lines(page):
    page.go("attention")
    same(page.js("return document.querySelector('[name=view]:checked').value"), "lines")
    holds(page.js("return document.querySelector('#attention-head').value") != "mean", "a single head")
    page.one(".lines .strand")


def test_heads_can_be_picked(page):
    page.go("attention")
    heads = page.count("#attention-head option") - 1
    layers = page.count("#attention-layer option")
    same(page.count("button.head"), heads * layers, "buttons of heads")
    page.click("button.head")
    page.until("#attention-result figcaption", "layer 1, head 1")
    same(page.js("return document.activeElement.getAttribute('aria-pressed')"), "true", "the pick keeps the focus")
    page.press("right")
    page.press("enter")
    page.until("#attention-result figcaption", "layer 1, head 2")
    page.press("down")
    page.press("space")
    page.until("#attention-result figcaption", "layer 2, head 2")
    same(page.js("return document.querySelector('#attention-layer').value"), "1", "the selects follow")
    page.choose("#attention-layer", 0)
    page.choose("#attention-head", 0)
    page.until("#attention-result figcaption", "layer 1, head 1")
    page.choose("#attention-head", "mean")
    page.until("#attention-result figcaption", "all heads averaged")
    for kind in ["Encoder", "Decoder", "Cross"]:
        page.focus("[name=kind]:checked")
        page.click(f"[name=kind][value={kind.lower()}]")
        page.until("#attention-result figcaption", f"{kind} attention")
    same(page.js("return document.activeElement.name"), "kind", "the focus stays")


def test_matrix_can_be_read(page):
    page.go("attention")
    page.click("[name=view][value=matrix]")
    page.click("button.head")
    page.one("#attention-result canvas")
    page.focus(".plot.heat")
    page.press("right", "down", "right")
    first = page.text("#attention-result .readout")
    holds("looks at" in first, f"readout: {first!r}")
    page.press("down")
    holds(page.text("#attention-result .readout") != first, "the arrow key moves")
    painted = page.js("""
        const canvas = document.querySelector(".plot.heat canvas");
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return new Set(Array.from({ length: data.length / 4 }, (_, i) => data.slice(4 * i, 4 * i + 3).join())).size;
    """)
    holds(painted > 4, f"the matrix has {painted} colours")
    pair = page.get("v1/model")[0]
    text = page.js("return document.querySelector('#sentence-q').value")
    page.table("#attention-result", rows=len(page.ask("v1/attention", q=text, source=pair["source"], target=pair["target"])["target"]))


def test_lines_can_be_read(page):
    page.go("attention")
    page.click("[name=view][value=lines]")
    page.one(".lines .strand")
    page.focus(".lines .token")
    holds("looks at" in page.text("#attention-result .readout"), page.text("#attention-result .readout"))
    holds(page.count(".strand.faded") > 0, "other lines step back")
    page.press("down")
    same(page.js("return [...document.querySelectorAll('.token')].indexOf(document.activeElement)"), 1)
    page.press("end")
    holds("is looked at by" in page.text("#attention-result .readout"), page.text("#attention-result .readout"))


@mock_only
def test_hints(page):
    page.go("attention")
    page.click("[name=kind][value=encoder]")
    text = page.js("return document.querySelector('#sentence-q').value")
    pair = page.get("v1/model")[0]
    hints = page.ask("v1/attention", q=text, source=pair["source"], target=pair["target"])["hints"]["encoder"]
    shown = page.js("return [...document.querySelectorAll('button.head')].map(b => b.getAttribute('aria-label').split(': ')[1])")
    same(shown, [hint["short"] for layer in hints for hint in layer["heads"]], "hints")
    page.click("button.head")
    page.until("#hint", hints[0]["heads"][0]["text"])


@mock_only
def test_a_translation_of_ones_own(page):
    page.go("attention")
    page.replace("#attention-translation", "Une maison rouge.")
    page.press("enter")
    page.wait(lambda: page.js("return [...document.querySelectorAll('.lines .token text')].some(t => t.textContent === 'Une')"), "the other translation")
    page.replace("#sentence-q", ["backspace"])
    page.press("enter")
    page.until("#attention-result", "Type a sentence")
    page.expected_errors = ("status of 500",)
    page.type("#sentence-q", "fail")
    page.press("enter")
    page.until("#attention-result [role=alert]", "The model is not well today.")


# ---- positions


def test_position_curves(page):
    page.go("positions")
    page.until("#positions-result figcaption", "Columns 6 to 9")
    same(page.count(".curves path.curve"), 4, "curves")
    legend = page.js("return [...document.querySelectorAll('.legend li')].map(l => l.textContent)")
    holds([text.split(",")[0] for text in legend] == [f"column {c}" for c in range(6, 10)], f"legend: {legend}")
    page.replace("#positions-first", "10")
    page.press("tab")
    page.until("#positions-result figcaption", "Columns 10 to 13")
    page.focus("#positions-result .plot")
    page.press("right", "right")
    page.until("#positions-result .readout", "position p 1: column 10")
    page.replace("#positions-count", "20")
    page.press("enter")
    page.wait(lambda: "20 positions" in page.js(
        "return document.querySelector('#positions-result svg[role=img]')?.getAttribute('aria-label') ?? ''"), "20 positions")


def test_similarity_of_positions(page):
    page.go("positions")
    page.focus(".split .card:last-child .plot.heat")
    page.press("down", "down", "down", "right")
    page.until(".split .card:last-child .readout", "positions 3 and 1: dot product")
    page.until("#likeness-curve figcaption", "position 3")


@mock_only
def test_learned_positions(page):
    page.go("positions")
    page.click("[name=positions-kind][value=own]")
    page.until("#positions-result", "first all sines, then all cosines")
    kinds = [model["config"]["positions"] for model in page.get("v1/model")]
    page.choose("#positions-model", kinds.index("relative"))
    page.until(".about", "It has no table of its own to show.")
    own = "return document.querySelector('[name=positions-kind][value=own]').disabled"
    same(page.js(own), True, "a model of relative positions has no table of its own")
    page.click("[name=positions-width][value=full]")
    page.until(".formula", "d = 128")
    page.choose("#positions-model", kinds.index("learned"))
    page.until(".about", "learned a vector")
    page.click("[name=positions-kind][value=own]")
    page.wait(lambda: page.count(".formula") == 0, "no formula")
    same(page.count(".curves path.curve"), 4, "curves")


# ---- model


def test_model_card(page):
    page.go("model")
    model = page.get("v1/model")[0]
    if model.get("name"):
        same(page.text("#model-result h3"), model["name"])
    holds("parameters" in page.text(".figures"), "the number of parameters")
    parts = [value for value in model["parts"].values() if value > 0]
    widths = page.js("return [...document.querySelectorAll('.bar span')].map(s => s.getBoundingClientRect().width)")
    same(len(widths), len(parts), "pieces of the bar")
    share = widths[0] / sum(widths)
    holds(abs(share - parts[0] / sum(parts)) < 0.05, f"the first part takes {share:.2f} of the bar")
    kinds = sum(any(isinstance(r.get(k), (int, float)) for r in model["training"]) for k in ("loss", "bleu", "rate"))
    same(page.count(".charts .chart"), kinds, "training curves")


def test_the_model_diagram_leads_to_the_steps(page):
    page.go("model")
    model = page.get("v1/model")[0]
    holds(f"× {model['config']['d_model']}" in page.text("[data-block=encoder-embedding]"), "its sizes")
    page.click("#model-result [data-block=encoder-ffn]")
    page.until(".explanation h3", "Feed-forward")


@mock_only
def test_training_curves(page):
    page.go("model")
    models = page.get("v1/model")
    points = [point for point in models[0]["training"] if point["loss"] is not None]
    page.focus(".charts .plot")
    page.press("end")
    page.until(".charts .readout", f"step {points[-1]['step']:,}")
    page.table(".charts", rows=len(points))
    same(page.count(".example"), len(models[0]["examples"]), "examples")
    page.until("#model-terms", "The numbers that training has found")
    page.choose("#model-choice", 1)
    page.wait(lambda: models[1]["name"] in page.text("#model-result h3"), "the other model")


def test_bleu_begins_at_zero(page):
    page.go("model")
    if not any(point["bleu"] is not None for point in page.get("v1/model")[0]["training"]):
        return
    ticks = page.js("return [...document.querySelectorAll('.charts > div:nth-child(2) .axis text')].map(t => t.textContent)")
    holds("0" in ticks, f"ticks: {ticks}")


# ---- studies


def test_studies(page):
    page.go("studies")
    studies = page.get("studies/index.json")
    if not studies:
        page.until("#studies-result", "This server shows no studies.")
        return
    same(page.count(".studies li"), len(studies), "studies")
    page.click(".studies li:first-child a")
    page.one("#studies-back")
    same(page.js("return location.hash"), f"#studies/{studies[0]['name']}")
    order = page.js("return [...document.querySelectorAll('.prose > div > *')].map(e => e.className)")
    same(order[1:3], ["question", "answer"], "question and answer come first")
    holds(page.count(".prose figure img") > 0 and page.count(".prose table") > 0, "pictures and tables")
    page.wait(lambda: page.js("const i = document.querySelector('.prose img'); i.loading = 'eager'; return i.complete && i.naturalWidth > 0"), "the first picture")
    for study in studies:
        page.open(f"{page.url}#studies/{study['name']}")
        page.one("#studies-back")
        text = page.js("return document.querySelector('.prose').textContent")
        holds("^" not in text and "$" not in text and "_{" not in text, f"{study['name']}: a formula in plain letters")
    page.click("#studies-back")
    page.wait(lambda: page.count(".studies li") == len(studies), "the list again")


# ---- the frame


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


# ---- running


def complaints(page):
    """What the browser's console and network say against the page."""
    found = []
    for entry in page.log("browser"):
        expected = any(text in entry["message"] for text in page.expected_errors)
        if entry["level"] in ("SEVERE", "WARNING") and not expected:
            found.append(f"console: {entry['message']}")
    origin = urlsplit(page.url)[:2]
    for entry in page.log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            address = message["params"]["request"]["url"]
            if urlsplit(address)[:2] != origin and not address.startswith("about:"):
                found.append(f"a request to {address}")
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
    written = [*globals().items(), *vars(inside_tests).items()]
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
