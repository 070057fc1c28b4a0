"""Tests of the view Translate; run.py runs them."""

import time

import mock_server
from page import LONG, TEXT, holds, live_only, mock_only, same

# A file, by its name and text, that is dropped on the page; whether the page shows that it can be.
DROP = """
    const file = new File([arguments[1]], arguments[0], { type: "text/plain" });
    const data = new DataTransfer();
    data.items.add(file);
    for (const name of ["dragenter", "dragover"]) dispatchEvent(new DragEvent(name, { dataTransfer: data, cancelable: true }));
    const shown = !document.querySelector("#drop").hidden;
    dispatchEvent(new DragEvent("drop", { dataTransfer: data, cancelable: true }));
    return shown;
"""


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
def test_a_model_of_many_languages_can_be_looked_into(page):
    """The recorded server has none: one that is told its languages stands for the first model."""
    script = page.cdp("Page.addScriptToEvaluateOnNewDocument", source="""
        const before = window.fetch;
        window.fetch = async (address, options) => {
            const answer = await before(address, options);
            if (!String(address).endsWith("/v1/model")) return answer;
            const [model] = await answer.json();
            return new Response(JSON.stringify([{ ...model, source: "de", target: "fr", languages: ["de", "en", "fr"] }]));
        };
    """)
    try:
        page.go()
        page.type("#source", TEXT)
        page.translation()
        page.click("#look")
        page.one("#steps-result .block")
        same(page.js("return document.querySelector('#sentence-pair').selectedOptions[0].textContent"), "English → French")
        same(page.text(".times"), f"× {page.get('v1/model')[0]['config']['encoder_layers']}", "its layers")
    finally:
        page.cdp("Page.removeScriptToEvaluateOnNewDocument", **script)


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


@mock_only
def test_a_ribbon_stays_between_two_lines(page):
    page.go()
    page.js("const source = document.querySelector('#source'); source.value = arguments[0]; source.dispatchEvent(new Event('input'))", LONG)
    page.translation()
    page.hover_over("#output .word", 2)
    path = page.js("return document.querySelector('#ribbons path').getBBox().height")
    holds(path < 8, f"it hangs {path} px down, into the next line")


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


def test_other_words_lead_to_the_decoding(page):
    page.go()
    same(page.js("return document.querySelector('#wording').disabled"), True, "without a translation")
    text = page.sample()
    page.type("#source", text)
    page.translation()
    page.click("#wording")
    page.one("#decoding-result .candidate-button")
    same(page.js("return location.hash"), "#decoding")
    same(page.js("return document.querySelector('#sentence-q').value"), text)


def test_the_request_is_shown(page):
    page.go()
    page.click("#request summary")
    page.until("#request", "Translate something first.")
    text = page.sample()
    page.type("#source", text)
    said = page.translation()
    page.until("#request-asked", "curl http")
    asked = page.text("#request-asked")
    holds(text in asked and "/translate" in asked and "Authorization" not in asked, asked)
    page.until("#request-answer", said)
    same(page.js("return document.querySelector('#request-text a').getAttribute('href')"), "docs")


@mock_only
def test_what_the_server_says_is_in_the_language_of_the_page(page):
    page.expected_errors = ("status of 403",)
    page.url = mock_server.start(key="sesame")[1]
    page.go(language="zh")
    page.type("#source", TEXT)
    page.until("#translate-error", "API 密钥无效。")


@mock_only
def test_a_language_without_a_model_is_noticed_in_chinese(page):
    page.go(language="zh")
    page.type("#source", "Dieser Satz ist ganz sicher in deutscher Sprache geschrieben worden.")
    page.until("#guess", "德语")


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
    page.until("#translate-error", "The text has 5001 characters; this server takes 5000 at once.")
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


def add_term(page, term, translation):
    page.click("#glossary summary")
    page.click("#glossary-add")
    page.type("#glossary-terms tr:last-child td:nth-child(1) input", term)
    page.type("#glossary-terms tr:last-child td:nth-child(2) input", translation)
    page.press("tab")


def test_terms_that_were_applied_are_said(page):
    """The first word of the text, so that a term is in it whatever the model was shown with."""
    page.go()
    text = page.sample()
    term = text.split()[0]
    add_term(page, term, "matou")
    page.until("#glossary-count", "1 term")
    page.type("#source", text)
    page.translation()
    terms = page.answer(text, glossary={term: "matou"})["terms"]
    same(terms["wanted"], 1, "terms in the text")
    said = "lacks “matou” for" if terms["missing"] else "Terms of the glossary: 1, all translated as it says."
    page.until("#remarks", said)
    page.js(DROP, "terms.txt", f"{text}\n" * 2)
    page.one("#download")
    page.until("#file-status .remarks", "Terms of the glossary: ")
    page.click("#clear")
    page.wait(lambda: page.text("#remarks") == "", "no remarks without a translation")


@mock_only
def test_glossaries_of_the_server_can_be_chosen(page):
    page.go()
    page.click("#glossary summary")
    names = page.js("return [...document.querySelectorAll('#glossary-which option')].map(o => o.value)")
    same(names, ["", *page.get("frontend/settings")["glossaries"]], "glossaries")
    page.type("#source", TEXT)
    same(page.translation(), "Le chat noir dort.")
    page.choose("#glossary-which", "actions")
    wanted = page.answer(TEXT, glossary="actions")["translatedText"]
    holds("mange" in wanted, f"{wanted}: the glossary says mange")
    page.until("#output", wanted)
    same(page.text("#glossary-count"), "actions")
    same(page.js("return document.querySelector('#glossary-own').checkVisibility()"), False, "one's own terms are put away")
    page.do("/refresh", {})
    page.until("#glossary-count", "actions")
    page.until("#output", wanted)
    page.js("document.querySelector('#glossary').open = true")
    page.choose("#glossary-which", "")
    page.until("#output", "Le chat noir dort.")


@live_only
def test_glossary(page):
    page.go()
    text = page.sample()
    add_term(page, "cat", "matou")
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


# ---- addresses, the first visit, files


def test_text_and_languages_are_in_the_address(page):
    page.go()
    text = page.sample()
    page.type("#source", text)
    translation = page.translation()
    asked = lambda: dict(page.js("return [...new URLSearchParams(location.search)]"))
    page.wait(lambda: asked().get("q") == text, "the text in the address")
    same(asked()["target"], page.js("return document.querySelector('#to').value"))
    address = page.js("return location.search")
    page.go(query=address)
    same(page.translation(), translation, "the same address, the same translation")


def test_the_first_visit_shows_an_example(page):
    if not any(model.get("examples") for model in page.get("v1/model")):
        return
    page.go(visited=False)
    page.translation()
    holds(page.js("return document.querySelector('#source').value") != "", "an example")
    page.one("#ribbons path")
    page.press("tab")
    page.wait(lambda: page.count("#ribbons path") == 0, "anything that the reader does ends it")
    page.do("/refresh", {})
    page.translation()
    time.sleep(0.6)
    same(page.count("#ribbons path"), 0, "once")


def test_files_are_translated(page):
    page.expected_errors = ("status of 400",)
    page.go()
    page.js("""
        window.seen = [];
        new MutationObserver(() => seen.push(document.querySelector(".file-card .num")?.textContent))
            .observe(document.querySelector("#file-status"), { childList: true, subtree: true, characterData: true });
    """)
    text = page.sample()
    same(page.js(DROP, "report.txt", f"{text}\n" * 40), True, "a sign to drop it")
    page.one("#download")
    holds(page.js("return seen.some(text => / of 40 sentences/.test(text ?? ''))"), f"progress: {page.js('return seen')}")
    holds(page.js("return document.querySelector('#download').getAttribute('href')").startswith("download_file/"), "its address")
    target = page.js("return document.querySelector('#to').value")
    same(page.js("return document.querySelector('#download').download"), f"report.{target}.txt")
    page.js(DROP, "report.exe", text)
    page.until("#file-status [role=alert]", "This file format is not supported.")
