// Confidence and the layout of a beam's tree. No DOM: tested with node.

const LEVELS = [0.9, 0.7, 0.5, 0.3];

/** From 0, sure, to 4, a guess. */
export function confidence(p) {
  if (p === null || p === undefined) return 0;
  const level = LEVELS.findIndex((least) => p >= least);
  return level < 0 ? LEVELS.length : level;
}

/**
 * Where the nodes of a tree stand: `x` is the number of tokens, from 0, `y` the row. Children stand beside their parent; the
 * best child is in its parent's row, so that the best translation is a straight line at the top.
 */
export function layout(nodes) {
  const children = nodes.map(() => []);
  const roots = [];
  nodes.forEach((node, i) => (node.parent === null ? roots : children[node.parent]).push(i));
  const order = (list) => [...list].sort((a, b) => nodes[b].best - nodes[a].best || nodes[b].log_probability - nodes[a].log_probability);
  const rows = new Array(nodes.length).fill(0);
  let next = 0;
  // Long sentences have deep trees: a stack of our own.
  const stack = order(roots).reverse().map((i) => [i, null]);
  let isFirst = true;
  while (stack.length) {
    const [i, row] = stack.pop();
    rows[i] = row ?? (isFirst ? next : (next += 1));
    isFirst = false;
    const list = order(children[i]);
    for (let k = list.length - 1; k >= 0; k -= 1) stack.push([list[k], k === 0 ? rows[i] : null]);
  }
  return { x: nodes.map((node) => node.length - 1), y: rows, rows: next + 1, children };
}
