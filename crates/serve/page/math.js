// Formulas as MathML.
import { t } from "./i18n.js";

const MATHML = "http://www.w3.org/1998/Math/MathML";

function m(tag, ...children) {
  const element = document.createElementNS(MATHML, tag);
  element.append(...children.flat());
  return element;
}

const i = (text) => m("mi", text);
const o = (text) => {
  const operator = m("mo", text);
  // Parentheses of one line stay as high as it is.
  operator.setAttribute("stretchy", "false");
  return operator;
};
const n = (text) => m("mn", String(text));
const row = (...children) => m("mrow", children);
const sub = (a, b) => m("msub", a, b);
const sup = (a, b) => m("msup", a, b);
const frac = (a, b) => m("mfrac", a, b);
const root = (a) => m("msqrt", a);
const call = (name, ...inside) => row(i(name), o("("), ...inside, o(")"));
const text = (words) => m("mtext", words);
const dk = () => sub(i("d"), i("k"));
const at = (letter, index) => sub(i(letter), row(...[...index].map((c) => i(c))));
const wave = () => row(i("p"), o("/"), sup(n(10000), row(n(2), i("i"), o("/"), i("d"))));
const product = (a, b) => row(at(a, "i"), o("·"), at(b, "j"));

// What keys and values are made of: in cross-attention, of what came out of the encoder.
const keyed = (part) => (part === "cross" ? m("msubsup", i("x"), i("j"), text("enc")) : at("x", "j"));

// What the distance of two tokens adds to their score, in models that go by it.
const distance = () => row(i("j"), o("−"), i("i"));
const DISTANCE = {
  relative: () => row(at("q", "i"), o("·"), o("("), at("k", "j"), o("+"), sub(i("r"), distance()), o(")")),
  bucketed: () => row(product("q", "k"), o("+"), sub(i("b"), distance())),
};
const score = ({ positions }, part) => (part === "cross" ? undefined : DISTANCE[positions])?.() ?? product("q", "k");

// The non-linearity of a feed-forward part; others than ReLU by their names.
const ACTIVATIONS = { relu: (inside) => call("max", n(0), o(","), ...inside), gelu: (inside) => call("GELU", ...inside), silu: (inside) => call("SiLU", ...inside) };

function feedForward({ activation = "relu", gated, linear_bias: bias }) {
  const linear = (k) => [i("x"), sub(i("W"), n(k)), ...(bias === false ? [] : [o("+"), sub(i("b"), n(k))])];
  const name = activation.startsWith("gelu") ? "gelu" : activation === "swish" ? "silu" : activation;
  const inner = (ACTIVATIONS[name] ?? ACTIVATIONS.relu)(linear(1));
  const hidden = gated ? [row(o("("), inner, o("⊙"), ...(bias === false ? linear(3) : [o("("), ...linear(3), o(")")]), o(")"))] : [inner];
  return [call("FFN", i("x")), o("="), ...hidden, sub(i("W"), n(2)), ...(bias === false ? [] : [o("+"), sub(i("b"), n(2))])];
}

/** Each returns the content of one formula, of a model with this configuration. */
const FORMULAS = {
  tokens: () => [at("t", "1"), o(","), o("…"), o(","), at("t", "n")],
  embedding: (config) => [at("x", "i"), o("="), ...(config.scale_embeddings === false ? [] : [root(i("d")), o("·")]), call("E", at("t", "i"))],
  positions: (config) => {
    if (config.positions === "none") return [at("x", "i"), o("←"), at("x", "i")];
    return config.positions in DISTANCE ? FORMULAS.scores(config) : [at("x", "i"), o("←"), at("x", "i"), o("+"), call("PE", i("i"))];
  },
  query: (_, part) => [
    ...["q", "k", "v"].flatMap((letter, index) => [
      ...(index ? [o(","), m("mspace")] : []),
      row(at(letter, index ? "j" : "i"), o("="), index ? keyed(part) : at("x", "i"), sup(i("W"), i(letter.toUpperCase()))),
    ]),
  ],
  scores: (config, part) => [at("s", "ij"), o("="), score(config, part)],
  scale: (config, part) => [at("s", "ij"), o("="), config.scale_scores === false ? score(config, part) : frac(score(config, part), root(dk()))],
  mask: () => [at("s", "ij"), o("="), o("−"), i("∞"), text("\u2003"), o("("), i("j"), o(">"), i("i"), o(")")],
  softmax: () => [
    at("a", "ij"),
    o("="),
    frac(sup(i("e"), at("s", "ij")), row(m("munder", o("∑"), i("l")), sup(i("e"), at("s", "il")))),
  ],
  sum: () => [at("z", "i"), o("="), m("munder", o("∑"), i("j")), at("a", "ij"), at("v", "j")],
  heads: () => [at("y", "i"), o("="), call("Concat", at("head", "1"), o(","), o("…"), o(","), at("head", "h")), sup(i("W"), i("O"))],
  norm: (config) => [call(config.norm_kind === "rms" ? "RMSNorm" : "LayerNorm", at("x", "i"), o("+"), at("y", "i"))],
  prenorm: () => [at("x", "i"), o("+"), at("y", "i")],
  ffn: feedForward,
  candidate: () => [sub(m("mover", i("x"), o("~")), i("t")), o("="), i("W"), at("x", "t")],
  forget: () => [at("f", "t"), o("="), call("σ", sub(i("W"), i("f")), at("x", "t"), o("+"), sub(i("b"), i("f")))],
  state: () => [
    at("c", "t"),
    o("="),
    at("f", "t"),
    o("⊙"),
    sub(i("c"), row(i("t"), o("−"), n(1))),
    o("+"),
    row(o("("), n(1), o("−"), at("f", "t"), o(")")),
    o("⊙"),
    sub(m("mover", i("x"), o("~")), i("t")),
  ],
  // The output shares the table of the target's words, or has one of its own.
  next: ({ tying }) => [call("p", i("w")), o("="), call("softmax", at("x", "i"), sup(i(tying === "none" || tying === "embeddings" ? "W" : "E"), i("T")))],
  penalty: () => [text(t("beam.score")), o("="), frac(row(i("log"), call("P", i("y"))), sup(i("n"), i("α")))],
  "penalty-paper": () => [
    text(t("beam.score")),
    o("="),
    row(i("log"), call("P", i("y"))),
    o("/"),
    sup(row(o("("), frac(row(n(5), o("+"), i("n")), n(6)), o(")")), i("α")),
  ],
  sine: () => [call("PE", i("p"), o(","), n(2), i("i")), o("="), call("sin", wave())],
  cosine: () => [call("PE", i("p"), o(","), n(2), i("i"), o("+"), n(1)), o("="), call("cos", wave())],
};

// Formulas inside of sentences and labels, as the tables of strings write them.
const INLINE = [
  [/^1\/√dₖ$/, () => row(n(1), o("/"), root(dk()))],
  [/^√dₖ$/, () => root(dk())],
  [/^√d$/, () => root(i("d"))],
  [/^√\d+$/, (found) => root(n(found.slice(1)))],
  [/^Wᴼ$/, () => sup(i("W"), i("O"))],
  [/^q·k$/, () => row(i("q"), o("·"), i("k"))],
  [/^log P$/, () => row(i("log"), i("P"))],
  [/^[dα] = [\d.]+$/, (found) => row(i(found[0]), o("="), n(found.slice(4)))],
];

/** A text as a list of words and of formulas. */
export function withMath(words) {
  return words.split(/(1\/√dₖ|√dₖ|√d|√\d+|Wᴼ|q·k|log P|[dα] = [\d.]+)/u).map((part) => {
    const made = INLINE.find(([pattern]) => pattern.test(part))?.[1](part);
    if (!made) return part;
    const math = m("math", made);
    math.setAttribute("class", "inline-math");
    return math;
  });
}

/** A formula on its own line; `config` is that of the model, `part` where it stands, where models differ. */
export function formula(name, config = {}, part = "") {
  const math = m("math", m("mrow", FORMULAS[name](config, part)));
  math.setAttribute("display", "block");
  math.setAttribute("class", "math");
  for (const space of math.querySelectorAll("mspace")) space.setAttribute("width", "1em");
  return math;
}
