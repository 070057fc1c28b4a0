// Heads of attention. No DOM: tested with node.

/** The average of a layer's heads, cell by cell. */
export function meanOfHeads(heads) {
  return heads[0].map((row, i) => row.map((_, j) => mean(heads.map((head) => head[i][j]))));
}

function mean(values) {
  return values.length ? values.reduce((a, b) => a + b, 0) / values.length : 0;
}
