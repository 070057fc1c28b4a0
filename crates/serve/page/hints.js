// What a head seems to do, judged from its weights in one sentence. No DOM: tested with node.
import { isEnd, isPunctuation } from "./text.js";

// A pattern must hold this share of a head's weight, and this much more than an even head would give it.
const SHARE = 0.4;
const LIFT = 0.25;
// Patterns that contain others (a neighbourhood contains the previous token) must hold more.
const WIDE_SHARE = 0.75;
// From this share of the greatest possible entropy on, a head looks at everything alike.
const EVEN = 0.93;

/** Every hint: a short name for small places, and a sentence. */
export const HINTS = {
  diagonal: { short: "itself", text: "Looks at the token itself." },
  aligned: { short: "diagonal", text: "Walks along the diagonal: words are translated in their order." },
  read: { short: "just read", text: "Looks at the token that was just read." },
  previous: { short: "previous", text: "Looks at the previous token." },
  next: { short: "next", text: "Looks at the next token." },
  first: { short: "first", text: "Looks at the first token, whatever is asked." },
  end: { short: "end", text: "Rests on the end of the sentence: often a way to look at nothing." },
  punctuation: { short: "marks", text: "Looks at punctuation." },
  same: { short: "same", text: "Looks at other places with the same token." },
  one: { short: "one word", text: "All tokens look at one and the same token." },
  near: { short: "near", text: "Looks around itself, at most two tokens away." },
  even: { short: "even", text: "Looks at everything alike." },
  mixed: { short: "mixed", text: "No simple pattern: it depends on the words." },
  short: { short: "–", text: "The sentence is too short to tell." },
};

/**
 * The hint for one head.
 * `kind` is "encoder", "decoder" or "cross"; `weights` has a row for each of `rows` and a column for each of `columns`.
 * Returns `{name, short, text, share, spread}`: the share of the weight that the pattern holds, and how many tokens a row
 * looks at (the exponential of its entropy, averaged).
 */
export function describe(kind, weights, rows, columns) {
  const causal = kind === "decoder";
  // The decoder's first row can see one token only: it says nothing about the head.
  const used = weights.map((row, i) => ({ row, i })).slice(causal ? 1 : 0);
  const spread = mean(used.map(({ row }) => Math.exp(entropy(row))));
  const result = (name, share) => ({ name, ...HINTS[name], share, spread });
  if (used.length < 2 || columns.length < 3) return result("short", 0);

  const share = (picks) => {
    let [held, even] = [0, 0];
    for (const { row, i } of used) {
      const seen = causal ? i + 1 : row.length;
      for (let j = 0; j < seen; j += 1) {
        if (!picks(i, j)) continue;
        held += row[j];
        even += 1 / seen;
      }
    }
    return { held: held / used.length, even: even / used.length };
  };
  const best = (candidates, least) =>
    candidates
      .map(([name, picks]) => ({ name, ...share(picks) }))
      .filter(({ held, even }) => held >= least && held >= even + LIFT)
      .sort((a, b) => b.held - a.held)[0];

  const narrow = best(narrowPatterns(kind, weights, rows, columns), SHARE);
  if (narrow) return result(narrow.name, narrow.held);
  const even = evenness(used, causal);
  if (even >= EVEN) return result("even", even);
  const wide = best(widePatterns(kind), WIDE_SHARE);
  if (wide) return result(wide.name, wide.held);
  return result("mixed", 0);
}

// A name and the cells (row, column) that belong to it. In a tie the earlier one wins.
function narrowPatterns(kind, weights, rows, columns) {
  const ends = columns.map(isEnd);
  const marks = columns.map(isPunctuation);
  const common = [
    ["first", (i, j) => j === 0],
    ["end", (i, j) => ends[j]],
    ["punctuation", (i, j) => marks[j]],
  ];
  const heaviest = heaviestColumn(weights);
  const one = ["one", (i, j) => j === heaviest];
  if (kind === "cross") {
    // One cell to each side of the line from corner to corner, or of one beside it: a translation may begin late.
    const slope = rows.length > 1 ? (columns.length - 1) / (rows.length - 1) : 0;
    const lines = [0, -1, 1, -2, 2].map((shift) => ["aligned", (i, j) => Math.abs(j - i * slope - shift) <= 1]);
    return [...common, ...lines, one];
  }
  const same = ["same", (i, j) => i !== j && rows[i] === columns[j]];
  if (kind === "decoder") {
    // Column i is what row i has just read: the token before the one it is about to say.
    return [["read", (i, j) => j === i], ["previous", (i, j) => j === i - 1], ...common, one];
  }
  return [
    ["diagonal", (i, j) => j === i],
    ["previous", (i, j) => j === i - 1],
    ["next", (i, j) => j === i + 1],
    ...common,
    same,
    one,
  ];
}

function widePatterns(kind) {
  return kind === "cross" ? [] : [["near", (i, j) => Math.abs(i - j) <= 2]];
}

function heaviestColumn(weights) {
  const totals = weights[0].map((_, j) => sum(weights.map((row) => row[j])));
  return totals.indexOf(Math.max(...totals));
}

// Mean entropy over the greatest that each row could have.
function evenness(used, causal) {
  return mean(used.map(({ row, i }) => entropy(row) / Math.log(causal ? i + 1 : row.length)));
}

/** −Σ w ln w of weights that are scaled to the sum 1. */
export function entropy(row) {
  const total = sum(row);
  if (!(total > 0)) return 0;
  return sum(row.map((w) => (w > 0 ? (-w / total) * Math.log(w / total) : 0)));
}

/** The average of a layer's heads, cell by cell. */
export function meanOfHeads(heads) {
  return heads[0].map((row, i) => row.map((_, j) => mean(heads.map((head) => head[i][j]))));
}

function sum(values) {
  return values.reduce((a, b) => a + b, 0);
}

function mean(values) {
  return values.length ? sum(values) / values.length : 0;
}
