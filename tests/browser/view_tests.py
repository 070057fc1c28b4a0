"""Tests of the views Attention, Positions, Model and Studies; run.py runs them."""

from page import TEXT, holds, mock_only, same


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
    # Layer and head are the server's choice, which is that of `regard look`.
    pair = page.get("v1/model")[0]
    text = page.js("return document.querySelector('#sentence-q').value")
    told = page.ask("v1/attention", q=text, source=pair["source"], target=pair["target"])
    for kind in ["cross", "encoder"]:
        page.click(f"[name=kind][value={kind}]")
        layer = told["sharpest"][kind]
        head = told["hints"][kind][layer]["sharpest"]
        page.until("#attention-result figcaption", f"layer {layer + 1}, head {head + 1}")


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


def test_the_end_of_the_sentence_can_be_hidden(page):
    page.go("attention")
    ends = lambda: page.js("return [...document.querySelectorAll('.lines .token text')].filter(t => t.textContent === '</s>').length")
    all_tokens = page.count(".lines .token")
    same(ends(), 2, "ends")
    page.click("#hide-ends")
    page.wait(lambda: ends() == 0, "a drawing without ends")
    same(page.count(".lines .token"), all_tokens - 2, "the other tokens")
    same(page.js("return document.activeElement.id"), "hide-ends", "the focus stays")
    page.click("[name=view][value=matrix]")
    page.one(".plot.heat")
    page.click("#hide-ends")
    page.click("[name=view][value=lines]")
    page.wait(lambda: ends() == 2, "the ends again")


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


@mock_only
def test_long_texts_are_offered_sentence_by_sentence(page):
    page.go(query=f"?q={TEXT} The red house.&source=en&target=fr")
    page.translation()
    page.click("#tab-attention")
    page.one("#attention-result .chart")
    same(page.js("return document.querySelector('#sentence-q').value"), TEXT)
    page.choose("#sentence-pick", "The red house.")
    page.wait(lambda: page.js("return [...document.querySelectorAll('.lines .token text')].some(t => t.textContent === 'house')"), "the second sentence")


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
    page.until(".formula", "d=128")
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


def test_curves_of_a_run_grow(page):
    page.go("model")
    log = page.get("v1/model")[0]["training"]
    if not log:
        return
    page.js("""
        const before = window.fetch;
        window.fetch = async (address, options) => {
            const answer = await before(address, options);
            if (!String(address).endsWith("/v1/model")) return answer;
            const models = await answer.json();
            const log = models[0].training;
            const step = log.at(-1).step + 1000;
            if (window.bleu) log.push({ step, loss: 0.5, bleu: window.bleu, rate: 0.001 });
            else log.push({ step, loss: 0.5, bleu: null, rate: 0.001 });
            return new Response(JSON.stringify(models));
        };
        document.querySelector("#model-terms").open = false;
    """)
    same(page.count("#model-live"), 0, "a run that stands still")
    page.click("#tab-positions")
    page.click("#tab-model")
    page.one("#model-live")
    page.focus(".charts .plot")
    page.press("end")
    page.until(".charts .readout", f"step {log[-1]['step'] + 1000:,}: 0.5")
    # The score of the same step comes later.
    page.js("window.bleu = 12.5")
    page.click("#tab-positions")
    page.click("#tab-model")
    page.wait(lambda: "12.5" in page.js("return document.querySelector('.charts > div:nth-child(2) svg')?.getAttribute('aria-label') ?? ''"), "the score")
    same(page.js("return document.querySelector('#model-terms').open"), False, "what the reader has closed stays closed")


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


def test_studies_in_chinese(page):
    studies = page.get("studies/index.json")
    if not studies:
        return
    page.go("studies", language="zh")
    words = lambda pieces: "".join(piece for piece in pieces if isinstance(piece, str))
    for i, study in enumerate(studies):
        card = page.text(f".studies li:nth-child({i + 1})")
        holds(all(part in card for part in [study["zh"]["question"][0], words(study["zh"]["answer"])[:12]]), card)
    page.click(".studies li:first-child a")
    page.one("#studies-back")
    page.until(".prose .answer", words(studies[0]["zh"]["answer"])[:12])
    # What is not translated says so, to the reader and to what reads it out.
    page.until(".prose > p", "只有英文")
    same(page.js("return document.querySelector('.prose > div[lang=en] table') !== null"), True, "the rest is marked as English")
