// Position vectors: the sine and cosine table, and how alike positions are. No DOM: tested with
// node.

/** PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos of the same, for p in 0..count. */
export function sinusoidal(count, d) {
  return Array.from({ length: count }, (_, p) =>
    Array.from({ length: d }, (_, c) => {
      const angle = p / 10000 ** ((c - (c % 2)) / d);
      return c % 2 === 0 ? Math.sin(angle) : Math.cos(angle);
    }),
  );
}

/** Points [position, value] of one column. */
export function column(table, c) {
  return table.map((row, p) => [p, row[c]]);
}

/** The dot product of every two rows. */
export function similarity(table) {
  return table.map((a) => table.map((b) => a.reduce((total, x, i) => total + x * b[i], 0)));
}

/** How many positions a full turn of column `c` takes, in a table of width `d`. */
export function wavelength(c, d) {
  return 2 * Math.PI * 10000 ** ((c - (c % 2)) / d);
}
