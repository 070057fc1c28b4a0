// Which steps there are, in their order. No DOM: tested with node.

const attention = (block, part, masked) => [
  { id: part === "cross" ? "query-cross" : "query", formula: "query", block, part },
  { id: "scores", formula: "scores", block, part },
  { id: "scale", formula: "scale", block, part },
  ...(masked ? [{ id: "mask", formula: "mask", block, part }] : []),
  { id: "softmax", formula: "softmax", block, part },
  { id: "sum", formula: "sum", block, part },
  { id: "heads", formula: "heads", block, part },
];

const SECTIONS = {
  tokens: "5.1",
  embedding: "3.4",
  positions: "3.5",
  query: "3.2",
  "query-cross": "3.2.3",
  scores: "3.2.1",
  scale: "3.2.1",
  mask: "3.2.3",
  softmax: "3.2.1",
  sum: "3.2.1",
  heads: "3.2.2",
  norm: "3.1",
  prenorm: "3.1",
  ffn: "3.3",
  next: "3.4",
};

/** The steps of a stack: `{id, formula, block, part, section}`. `mixer` is "attention", "ssru" or "other". */
export function stepsOf(stack, mixer, prenorm = false) {
  const id = prenorm ? "prenorm" : "norm";
  const norm = (block, part) => ({ id, formula: id, block, part });
  const own = {
    attention: [...attention("attention", "attention", stack === "decoder"), norm("norm-attention", "attention")],
    ssru: [
      ...["candidate", "forget", "state"].map((id) => ({ id, formula: id, block: "attention", part: "ssru" })),
      norm("norm-attention", "ssru"),
    ],
    other: [],
  }[mixer];
  const cross = stack === "decoder" ? [...attention("cross", "cross", false), norm("norm-cross", "cross")] : [];
  const steps = [
    { id: "tokens", formula: "tokens", block: "tokens" },
    { id: "embedding", formula: "embedding", block: "embedding" },
    { id: "positions", formula: "positions", block: "positions" },
    ...own,
    ...cross,
    { id: "ffn", formula: "ffn", block: "ffn", part: "ffn" },
    norm("norm-ffn", "ffn"),
    ...(stack === "decoder" ? [{ id: "next", formula: "next", block: "next" }] : []),
  ];
  return steps.map((step) => ({ ...step, section: SECTIONS[step.id] ?? null }));
}

/**
 * Where a model does something else than the paper: the end of the key of its text at a step, empty where it does the same. `positions`
 * says whether it adds vectors for them.
 */
export function variantOf({ id, part }, config, positions = true) {
  const byDistance = ["relative", "bucketed"].includes(config.positions);
  if (id === "positions" && !positions) return byDistance ? `.${config.positions}` : ".none";
  if (id === "scores" && part === "attention" && byDistance) return ".distance";
  if (id === "scale" && config.scale_scores === false) return ".none";
  if (id === "norm" && config.norm_kind === "rms") return ".rms";
  if (id === "ffn" && config.gated) return ".gated";
  return "";
}

/** How many columns of the attention table are known at a step. */
export function revealed(id) {
  return ["query", "scores", "scale", "mask", "softmax", "sum"].indexOf(id.replace("-cross", ""));
}

/** The head whose rows are most concentrated: the largest mean of their highest weights. */
export function sharpestHead(weights) {
  const score = (rows) => rows.reduce((sum, row) => sum + Math.max(...row), 0) / (rows.length || 1);
  let best = 0;
  weights.forEach((rows, head) => {
    if (score(rows) > score(weights[best])) best = head;
  });
  return best;
}

/** What is switched off, as the server reads it. */
export function withoutOf(off) {
  return [...off].sort().join(" ");
}

/** Which tokens of `after` are not at the same place of a longest common run with `before`. */
export function changed(before, after) {
  const table = Array.from({ length: before.length + 1 }, () => new Array(after.length + 1).fill(0));
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      table[i][j] = before[i] === after[j] ? 1 + table[i + 1][j + 1] : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  const marks = after.map(() => true);
  for (let i = 0, j = 0; i < before.length && j < after.length; ) {
    if (before[i] === after[j]) {
      marks[j] = false;
      i += 1;
      j += 1;
    } else if (table[i + 1][j] >= table[i][j + 1]) i += 1;
    else j += 1;
  }
  return marks;
}
