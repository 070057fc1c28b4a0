"""Tests of the views that look inside a translation: Step by step and Decoding; run.py runs them."""

from page import holds, mock_only, same


# ---- step by step


def at_step(page):
    return page.text(".explanation h3")


def test_steps_walk_through_the_encoder(page):
    page.go("steps")
    seen = [at_step(page)]
    while not page.js("return document.querySelector('#steps-next').disabled"):
        page.click("#steps-next")
        seen.append(at_step(page))
        holds(page.count(".explanation .math") == 1, f"{seen[-1]} has a formula")
        holds(not set("√ₖᴼ") & set(page.text("#steps-result")), f"{seen[-1]}: a formula in plain letters")
        holds("section" in page.text(".section"), f"{seen[-1]} names a section")
        # No number is made up on the way: none is missing either.
        holds("NaN" not in page.text("#steps-result") and "undefined" not in page.text("#steps-result"), seen[-1])
    same(seen[:9], ["Tokens", "Embedding", "Positions", "Query, keys and values", "Scores", "Scaling", "Softmax", "Weighted sum", "All heads"])
    page.click("#steps-previous")
    holds(at_step(page) == seen[-2], "back")


def test_every_step_fits_a_narrow_screen(page):
    page.resize(360, 740)
    page.go("steps")
    for stack in ["encoder", "decoder"]:
        page.choose("#steps-stack", stack)
        page.until(".explanation .muted", stack.capitalize())
        while True:
            name = f"{stack}, {at_step(page)}"
            width = page.js("return document.scrollingElement.scrollWidth")
            holds(width <= 360, f"{name}: the page is {width} wide")
            hidden = page.js("const v = document.querySelector('.vectors'); return v ? v.scrollWidth - v.clientWidth : 0")
            holds(hidden <= 0, f"{name}: {hidden} px of the table are out of sight")
            hidden = page.js("const m = document.querySelector('.explanation .math'); return m.scrollWidth - m.clientWidth")
            holds(hidden <= 1, f"{name}: {hidden} px of the formula are out of sight")
            if page.js("return document.querySelector('#steps-next').disabled"):
                break
            page.click("#steps-next")


def test_a_block_brings_its_step_into_sight(page):
    page.media(prefers_reduced_motion="reduce")
    page.resize(360, 740)
    page.go("steps")
    page.click("[data-block=encoder-ffn]")
    page.until(".explanation h3", "Feed-forward")
    top = page.js("return document.querySelector('.steps-main').getBoundingClientRect().top")
    holds(0 <= top + 1 < 370, f"the step begins at {top}")
    same(page.js("return document.activeElement.dataset.block"), "encoder-ffn", "the focus stays")


def test_what_a_step_adds_is_in_sight_where_a_table_does_not_fit(page):
    page.resize(240, 740)
    page.go("steps")
    page.click("[data-block=encoder-positions]")
    page.until(".explanation h3", "Positions")
    ends = "return ['.vectors .newest', '.vectors'].map(css => Math.round(document.querySelector(css).getBoundingClientRect().right))"
    page.wait(lambda: page.js("const v = document.querySelector('.vectors'); return v.scrollWidth > v.clientWidth"), "a table that is wider than the screen")
    column, frame = page.js(ends)
    holds(column <= frame + 1, f"the newest column ends at {column}, the frame at {frame}")
    token = page.js("return document.querySelector('.vectors tbody th').getBoundingClientRect().left - document.querySelector('.vectors').getBoundingClientRect().left")
    holds(abs(token) <= 1, f"the token is {token} px away from the edge")


def test_blocks_open(page):
    page.go("steps")
    page.click("[data-block=decoder-cross]")
    page.until(".explanation h3", "Queries from here, keys and values from the encoder")
    same(page.js("return document.querySelector('.block[aria-current]').dataset.block"), "decoder-cross")
    page.click("[data-block=decoder-next]")
    page.until(".explanation h3", "The next word")
    same(page.count(".candidates li"), 5, "candidates")
    shown = page.js("return [...document.querySelectorAll('.candidates .logit')].map(l => Number(l.textContent.replace('−', '-')))")
    same([shown[0], sorted(shown, reverse=True)], [0, shown], "logits, from the largest")
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
    shown = page.js("return [...document.querySelectorAll('.vectors .weight-bar .num')].map(n => n.textContent.startsWith('<') ? 0 : Number(n.textContent))")
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
    told = page.ask("v1/steps", q=page.js("return document.querySelector('#sentence-q').value"), stack="encoder", layer=0,
                    head=int(page.js("return document.querySelector('#steps-head').value")), without="positions")
    said = [token["text"] for token in told["target"] if token["text"] != "</s>"]
    same(page.js("return document.querySelectorAll('.compared')[1].querySelectorAll('span, del').length"), len(said), "the translation is the server's")
    same(page.js("return document.activeElement.value"), "positions", "the focus stays")
    page.click("[name=off][value=positions]")
    page.wait(lambda: page.count(".before-after") == 0, "as trained")
    same(page.js("return [...document.querySelectorAll('.vectors .weight-bar .num')].map(n => n.textContent)"), before)


def test_every_part_that_is_off_shows_the_numbers_of_the_server(page):
    page.go("steps")
    pair = page.get("v1/model")[0]
    text = page.js("return document.querySelector('#sentence-q').value")
    for _ in range(6):
        page.click("#steps-next")
    head = int(page.js("return document.querySelector('#steps-head').value"))
    weights = "return [...document.querySelectorAll('.vectors .weight-bar .num')].map(n => n.textContent.startsWith('<') ? 0 : Number(n.textContent))"
    for off in ["scale", f"encoder.0.{head}"]:
        page.click(f"[name=off][value='{off}']")
        page.one(".before-after")
        told = page.ask("v1/steps", q=text, source=pair["source"], target=pair["target"], stack="encoder", layer=0, head=head, without=off)
        wanted = told["attention"]["weights"][head][0]
        close = lambda: all(abs(a - b) < 6e-4 for a, b in zip(page.js(weights), wanted))
        page.wait(close, lambda: f"{page.js(weights)} instead of {wanted} without {off}")
        page.until(".before-after", "left out" if "." in off else "tokens" if page.count(".compared .new, .compared .gone") else "the same")
        page.click(f"[name=off][value='{off}']")
        page.wait(lambda: page.count(".before-after") == 0, "as trained")


def test_without_the_mask_earlier_words_read_later_ones(page):
    page.go("steps")
    pair = page.get("v1/model")[0]
    text = page.js("return document.querySelector('#sentence-q').value")
    page.choose("#steps-stack", "decoder")
    page.click("[data-block=decoder-attention]")
    page.until(".explanation h3", "Query")
    for _ in range(4):
        page.click("#steps-next")
    page.until(".explanation h3", "Softmax")
    head = int(page.js("return document.querySelector('#steps-head').value"))
    words = page.count(".vectors tbody tr")
    same(page.count(".vectors .hidden-mark"), words - 1, "the first word sees itself alone")
    weights = "return [...document.querySelectorAll('.vectors .weight-bar .num')].map(n => n.textContent.startsWith('<') ? 0 : Number(n.textContent))"
    same(page.js(weights), [1] + [0] * (words - 1), "the weights of the first word")
    page.click("[name=off][value=mask]")
    page.one(".before-after")
    told = page.ask("v1/steps", q=text, source=pair["source"], target=pair["target"], stack="decoder", layer=0, head=head, without="mask")
    wanted = told["attention"]["weights"][head][0]
    holds(max(wanted[1:]) > 0.01, f"{wanted} has weights of later words")
    close = lambda: len(page.js(weights)) == len(wanted) and all(abs(a - b) < 6e-4 for a, b in zip(page.js(weights), wanted))
    page.wait(close, lambda: f"{page.js(weights)} instead of {wanted}")
    same(page.count(".vectors .hidden-mark"), 0, "hidden words")
    page.until(".before-after", "Without the mask, earlier words read later ones")
    page.click("[name=off][value=mask]")
    page.wait(lambda: page.count(".vectors .hidden-mark") == words - 1, "as trained")


@mock_only
def test_a_recurrent_decoder_is_explained(page):
    page.go("steps")
    page.choose("#sentence-pair", 1)
    examples = [example["source"] for example in page.get("v1/model")[1]["examples"]]
    holds(page.js("return document.querySelector('#sentence-q').value") in examples, "an example in the language of the other model")
    page.wait(lambda: page.text(".word-row") is not None, "the other model")
    page.choose("#steps-stack", "decoder")
    page.until("[data-block=decoder-attention]", "SSRU")
    page.click("[data-block=decoder-attention]")
    page.until(".explanation h3", "Candidate")
    page.until(".plainly", "has no self-attention")
    page.until("#no-mask", "no mask to switch off")
    same(page.count("[name=off][value=mask]"), 0, "switches of the mask")
    page.click("#steps-next")
    page.until(".explanation h3", "Forget gate")
    page.click("#steps-next")
    page.until(".section", "Kim et al.")


@mock_only
def test_a_model_of_relative_positions_is_described_as_it_is(page):
    page.go("steps")
    kinds = [model["config"]["positions"] for model in page.get("v1/model")]
    page.choose("#sentence-pair", kinds.index("relative"))
    page.until("[data-block=encoder-positions]", "No positions")
    page.click("[data-block=encoder-positions]")
    page.until(".plainly", "This model adds nothing here.")
    same(page.text(".explanation .math"), "sij=qi·(kj+rj−i)", "the formula")
    page.until(".section", "Shaw et al.")


def test_formulas_are_those_of_the_model(page):
    page.go()
    said = lambda *of: page.js("return import(new URL('math.js', document.baseURI)).then(({ formula }) => formula(...arguments).textContent)", *of)
    t5 = {"activation": "gelu_new", "gated": True, "linear_bias": False, "norm_kind": "rms", "scale_scores": False, "scale_embeddings": False, "positions": "bucketed"}
    for name, paper, other in [
        ("ffn", "FFN(x)=max(0,xW1+b1)W2+b2", "FFN(x)=(GELU(xW1)⊙xW3)W2"),
        ("norm", "LayerNorm(xi+yi)", "RMSNorm(xi+yi)"),
        ("embedding", "xi=d·E(ti)", "xi=E(ti)"),
        ("positions", "xi←xi+PE(i)", "sij=qi·kj+bj−i"),
        ("scores", "sij=qi·kj", "sij=qi·kj+bj−i"),
        ("scale", "sij=qi·kjdk", "sij=qi·kj+bj−i"),
    ]:
        same([said(name, {}), said(name, t5)], [paper, other], name)
    same(said("scores", t5, "cross"), "sij=qi·kj", "distances count in self-attention alone")


# ---- decoding


def test_the_translation_grows(page):
    page.go("decoding")
    answer = page.ask("v1/steps", q=page.js("return document.querySelector('#sentence-q').value"))
    count = len(answer["target"])
    page.wait(lambda: page.count(".grown-token") == count, "all tokens")
    page.click("#decoding-replay")
    holds(page.count(".grown-token") < count, "it begins again")
    page.js("document.querySelector('.candidate-button').dataset.old = 'yes'")
    page.wait(lambda: page.count(".grown-token") == count, "all tokens again")
    same(page.count(".candidate-button[data-old]"), 1, "candidates that stay while the translation grows")
    page.media(prefers_reduced_motion="reduce")
    page.click("#decoding-replay")
    same(page.count(".grown-token"), count, "at once where motion is unwelcome")


@mock_only
def test_pieces_of_a_word_are_read_as_one(page):
    page.media(prefers_reduced_motion="reduce")
    page.go("decoding")
    words = page.text(".whole").split()
    pieces = page.js("return [...document.querySelectorAll('.grown-token')].map(b => [b.querySelector('.said').textContent, b.classList.contains('joined')])")
    read = []
    for piece, joined in pieces[:-1]:
        read = [*read[:-1], read[-1] + piece] if joined else [*read, piece]
    same(read, words, "tokens that touch are words")
    page.click(f".grown-token:nth-child({len(pieces)})")
    page.until("#decoding-result", f"after “{' '.join(words)}”")
    page.focus("#beam-card .node.best")
    page.press("end")
    holds("voulons" in page.text("#beam-card .readout") or "voulions" in page.text("#beam-card .readout"), page.text("#beam-card .readout"))


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
