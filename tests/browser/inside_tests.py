"""Tests of the views that look inside, of languages, addresses and files; run.py runs them."""

import json
import time

import mock_server
from page import TEXT, holds, mock_only, same


# ---- step by step


def at_step(page):
    return page.text(".explanation h3")


def test_steps_walk_through_the_encoder(page):
    page.go("steps")
    seen = [at_step(page)]
    while not page.js("return document.querySelector('#steps-next').disabled"):
        page.click("#steps-next")
        seen.append(at_step(page))
        holds(page.count(".explanation math") == 1, f"{seen[-1]} has a formula")
        holds("section" in page.text(".section"), f"{seen[-1]} names a section")
        # No number is made up on the way: none is missing either.
        holds("NaN" not in page.text("#steps-result") and "undefined" not in page.text("#steps-result"), seen[-1])
    same(seen[:9], ["Tokens", "Embedding", "Positions", "Query, keys and values", "Scores", "Scaling", "Softmax", "Weighted sum", "All heads"])
    page.click("#steps-previous")
    holds(at_step(page) == seen[-2], "back")


def test_blocks_open(page):
    page.go("steps")
    page.click("[data-block=decoder-cross]")
    page.until(".explanation h3", "Queries from here, keys and values from the encoder")
    same(page.js("return document.querySelector('.block[aria-current]').dataset.block"), "decoder-cross")
    page.click("[data-block=decoder-next]")
    page.until(".explanation h3", "The next word")
    same(page.count(".candidates li"), 5, "candidates")
    word = page.js("return document.querySelector('.token-chip[aria-pressed=true]').textContent")
    page.click("#feed-back")
    page.wait(lambda: page.js("return document.querySelector('.token-chip[aria-pressed=true]').textContent") != word, "the next word")


def test_attention_is_computed_by_the_server(page):
    page.go("steps")
    pair = page.get("v1/model")[0]
    text = page.js("return document.querySelector('#sentence-q').value")
    head = int(page.js("return document.querySelector('#steps-head').value"))
    answer = page.ask("v1/steps", q=text, source=pair["source"], target=pair["target"], stack="encoder", layer=0, head=head)
    for _ in range(7):
        page.click("#steps-next")
    page.until(".explanation h3", "Weighted sum")
    shown = page.js("return [...document.querySelectorAll('.vectors .weight-bar .num')].map(n => Number(n.textContent))")
    wanted = answer["attention"]["weights"][head][0]
    holds(all(abs(a - b) < 6e-4 for a, b in zip(shown, wanted)) and len(shown) == len(wanted), f"{shown} and {wanted}")


def test_steps_by_keyboard(page):
    page.go("steps")
    page.focus(".token-chip")
    chosen = lambda: page.js("return [...document.querySelectorAll('.token-chip')].findIndex(c => c.getAttribute('aria-pressed') === 'true')")
    page.press("right")
    page.wait(lambda: chosen() == 1, "the next word")
    same(page.js("return document.activeElement.getAttribute('aria-pressed')"), "true", "the focus follows")
    page.press("left")
    page.wait(lambda: chosen() == 0, "the word before")
    page.press("n", "n")
    page.until(".explanation h3", "Positions")
    page.press("p")
    page.until(".explanation h3", "Embedding")
    page.press("]")
    page.wait(lambda: page.js("return document.querySelector('#steps-layer').value") == "1", "the next layer")
    page.press("[")
    page.wait(lambda: page.js("return document.querySelector('#steps-layer').value") == "0", "the layer before")
    heads = page.count("#steps-head option")
    head = int(page.js("return document.querySelector('#steps-head').value"))
    page.press("-" if head else "+")
    wanted = str(head - 1 if head else min(1, heads - 1))
    page.wait(lambda: page.js("return document.querySelector('#steps-head').value") == wanted, "another head")


def test_play(page):
    page.go("steps")
    page.click("#steps-play")
    page.until("#steps-play", "Pause")
    page.until(".explanation h3", "Embedding")
    page.wait(lambda: at_step(page) == "Positions", "the step after", 10)
    page.click("#steps-play")
    page.until("#steps-play", "Play")
    page.click("#tab-model")
    page.click("#tab-steps")
    same(page.text("#steps-play"), "Play", "another view stops it")


def test_parts_are_switched_off(page):
    page.go("steps")
    for _ in range(6):
        page.click("#steps-next")
    before = page.js("return [...document.querySelectorAll('.vectors .weight-bar .num')].map(n => n.textContent)")
    page.click("[name=off][value=positions]")
    page.one(".before-after")
    after = page.js("return [...document.querySelectorAll('.vectors .weight-bar .num')].map(n => n.textContent)")
    holds(before != after, "the weights change")
    same(page.count(".vectors .mark"), len(after), "the weights before are marked")
    same(page.count(".compared"), 2, "both translations")
    same(page.js("return document.activeElement.value"), "positions", "the focus stays")
    page.click("[name=off][value=positions]")
    page.wait(lambda: page.count(".before-after") == 0, "as trained")
    same(page.js("return [...document.querySelectorAll('.vectors .weight-bar .num')].map(n => n.textContent)"), before)


@mock_only
def test_a_recurrent_decoder_is_explained(page):
    page.go("steps")
    page.choose("#sentence-pair", 1)
    page.wait(lambda: page.text(".word-row") is not None, "the other model")
    page.choose("#steps-stack", "decoder")
    page.until("[data-block=decoder-attention]", "SSRU")
    page.click("[data-block=decoder-attention]")
    page.until(".explanation h3", "Candidate")
    page.until(".plainly", "has no self-attention")
    page.click("#steps-next")
    page.until(".explanation h3", "Forget gate")
    page.click("#steps-next")
    page.until(".section", "Kim et al.")


# ---- decoding


def test_the_translation_grows(page):
    page.go("decoding")
    answer = page.ask("v1/steps", q=page.js("return document.querySelector('#sentence-q').value"))
    count = len(answer["target"])
    page.wait(lambda: page.count(".grown-token") == count, "all tokens")
    page.click("#decoding-replay")
    holds(page.count(".grown-token") < count, "it begins again")
    page.wait(lambda: page.count(".grown-token") == count, "all tokens again")
    page.media(prefers_reduced_motion="reduce")
    page.click("#decoding-replay")
    same(page.count(".grown-token"), count, "at once where motion is unwelcome")


def test_another_candidate_rewrites_the_rest(page):
    page.media(prefers_reduced_motion="reduce")
    page.go("decoding")
    first = page.text(".grown-token .said")
    other = page.js("return document.querySelectorAll('.candidate-button .said')[1].textContent")
    page.click(".candidate-list li:nth-child(2) button")
    page.wait(lambda: page.text(".grown-token .said") == other, f"{other} in the place of {first}")
    same(page.count(".grown-token.settled"), 1, "what was chosen is marked")
    page.click("#decoding-reset")
    page.wait(lambda: page.text(".grown-token .said") == first, "the model's own")


def test_the_beam_is_a_tree(page):
    page.go("decoding")
    page.one("#beam-card .tree")
    text = page.js("return document.querySelector('#sentence-q').value")
    tree = page.ask("v1/beam", q=text)
    same(page.count("#beam-card .node"), len(tree["nodes"]), "nodes")
    same(page.count("#beam-card .node.best"), sum(node["best"] for node in tree["nodes"]), "the best path")
    grows = "return getComputedStyle(document.querySelector('#beam-card .node')).animationName"
    same(page.js(grows), "grow")
    page.click("#beam-replay")
    same(page.js("return document.activeElement.id"), "beam-replay", "the focus stays")
    page.media(prefers_reduced_motion="reduce")
    same(page.js(grows), "none", "where motion is unwelcome")
    page.focus("#beam-card .node")
    page.until("#beam-card .readout", "log P")
    page.choose("#beam-width", 2)
    page.wait(lambda: page.count("#beam-card .node") != len(tree["nodes"]), "another tree")
    holds(page.count("#beam-card tbody tr") <= 2, "as many translations as beams")


# ---- languages, addresses, files


def test_chinese(page):
    page.go("steps", language="zh")
    same(page.text("#tab-translate"), "翻译")
    same(page.js("return document.documentElement.lang"), "zh-Hans")
    page.until(".explanation h3", "词元")
    page.choose("#language", "en")
    page.until("#tab-translate", "Translate")
    page.one("#steps-result .block")
    same(page.js("return location.hash"), "#steps", "the view stays")


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
    drop = """
        const file = new File([arguments[1]], arguments[0], { type: "text/plain" });
        const data = new DataTransfer();
        data.items.add(file);
        for (const name of ["dragenter", "dragover"]) dispatchEvent(new DragEvent(name, { dataTransfer: data, cancelable: true }));
        const shown = !document.querySelector("#drop").hidden;
        dispatchEvent(new DragEvent("drop", { dataTransfer: data, cancelable: true }));
        return shown;
    """
    page.js("""
        window.seen = [];
        new MutationObserver(() => seen.push(document.querySelector(".file-card .num")?.textContent))
            .observe(document.querySelector("#file-status"), { childList: true, subtree: true, characterData: true });
    """)
    text = page.sample()
    same(page.js(drop, "report.txt", f"{text}\n" * 40), True, "a sign to drop it")
    page.one("#download")
    holds(page.js("return seen.some(text => / of 40 sentences/.test(text ?? ''))"), f"progress: {page.js('return seen')}")
    holds(page.js("return document.querySelector('#download').getAttribute('href')").startswith("download_file/"), "its address")
    target = page.js("return document.querySelector('#to').value")
    same(page.js("return document.querySelector('#download').download"), f"report.{target}.txt")
    page.js(drop, "report.exe", text)
    page.until("#file-status [role=alert]", "file format not supported")


@mock_only
def test_long_texts_are_offered_sentence_by_sentence(page):
    page.go(query=f"?q={TEXT} The red house.&source=en&target=fr")
    page.translation()
    page.click("#tab-attention")
    page.one("#attention-result .chart")
    same(page.js("return document.querySelector('#sentence-q').value"), TEXT)
    page.choose("#sentence-pick", "The red house.")
    page.wait(lambda: page.js("return [...document.querySelectorAll('.lines .token text')].some(t => t.textContent === 'house')"), "the second sentence")


def test_the_recorded_answers_are_those_of_the_server(page):
    """What is replayed has the form of what this server answers, at every address that the page asks."""
    def shape(value):
        if isinstance(value, dict):
            return {name: shape(inner) for name, inner in value.items() if inner is not None}
        if isinstance(value, list):
            shapes = [shape(inner) for inner in value]
            return [shapes[0]] if shapes else []
        return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__

    def parsed(text, kind):
        if kind.startswith("text/event-stream"):
            events = [json.loads(event.removeprefix("data: ")) for event in text.rstrip().split("\n\n")]
            return [events[0], events[-1]]
        return json.loads(text)

    def within(part, whole):
        """Whether everything that was recorded is still there in the same form; the server may say more."""
        if isinstance(part, dict):
            return isinstance(whole, dict) and all(name in whole and within(inner, whole[name]) for name, inner in part.items())
        if isinstance(part, list):
            return isinstance(whole, list) and (not part or not whole or within(part[0], whole[0]))
        return part == whole

    if mock_server.RECORDS:
        # They are being recorded.
        return
    records = mock_server.Records()
    model = page.get("v1/model")[0]
    seen = set()
    for record in records.answers.values():
        request = record["request"]
        path, body = request["path"], request["body"] or {}
        # One of each kind, of the first model; settings of a model differ, and so do files that the server keeps.
        kind = (path.split("?")[0], tuple(sorted(body)))
        skipped = path.startswith(("/download_file/", "/studies/")) or "file" in body or body.get("source") not in (None, "en", "auto")
        if kind in seen or skipped or record["status"] != 200 or body.get("target") not in (None, model["target"]):
            continue
        seen.add(kind)
        live = mock_server.Records(page.url.rstrip("/")).ask(request["method"], path, json.dumps(body).encode() if body else None, "application/json")
        same(live["status"], 200, f"{path} {body}: {live['text'][:200]}")
        found, wanted = (shape(parsed(answer["text"], answer["kind"])) for answer in (live, record))
        for part in ("config",):
            for one in (found, wanted):
                if isinstance(one, list) and one and isinstance(one[0], dict):
                    one[0].pop(part, None)
        holds(within(wanted, found), f"{path}: {wanted} was recorded, the server answers {found}")
    holds(len(seen) >= 10, f"only {sorted(seen)}")
