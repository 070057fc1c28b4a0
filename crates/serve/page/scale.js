// Scales, ticks and the writing of numbers. No DOM: tested with node.

/** The smallest and largest finite number, or null when there is none. */
export function extent(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : null;
}

/** A function from the domain to the range, along a straight line. A domain without width maps to the middle. */
export function linear([from, to], [start, end]) {
  const width = to - from;
  if (width === 0) return () => (start + end) / 2;
  return (value) => start + ((value - from) / width) * (end - start);
}

/** The step of 1, 2 or 5 times a power of ten that gives about `count` ticks. */
export function tickStep(low, high, count) {
  const raw = (high - low) / Math.max(1, count);
  if (!(raw > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const ratio = raw / power;
  return clean(power * (ratio < 1.5 ? 1 : ratio < 3.5 ? 2 : ratio < 7.5 ? 5 : 10));
}

/** Round numbers from `low` to `high`, both ends included where they are round. */
export function ticks(low, high, count = 5) {
  if (!(high > low)) return [low];
  const step = tickStep(low, high, count);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => clean((first + i) * step));
}

/** The domain widened to whole ticks, so that no curve touches the frame. */
export function niceDomain([low, high], count = 5) {
  if (low === high) {
    const around = Math.abs(low) || 1;
    return [low - around / 2, high + around / 2];
  }
  const step = tickStep(low, high, count);
  return [clean(Math.floor(low / step) * step), clean(Math.ceil(high / step) * step)];
}

// 0.1 + 0.2 and the like: what floating point adds behind the twelfth digit is not shown.
function clean(value) {
  return Number(value.toPrecision(12)) + 0;
}

/**
 * How the numbers of one axis are written: all with the same unit and decimals. Very small ones share a power of ten,
 * which `note` names for the axis's title.
 */
export function axisFormat(low, high, step) {
  const size = Math.max(Math.abs(low), Math.abs(high));
  const decimals = (unit) => Math.max(0, Math.min(6, Math.ceil(-Math.log10(Math.abs(step / unit) || 1) - 1e-9)));
  const write = (unit, suffix) => (value) =>
    value === 0 ? "0" : (value / unit).toFixed(decimals(unit)).replace("-", "−") + suffix;
  if (size > 0 && size < 0.01) {
    const exponent = Math.floor(Math.log10(size) + 1e-9);
    return { format: write(10 ** exponent, ""), note: `× ${powerOfTen(exponent)}` };
  }
  const [unit, name] = size >= 10000 ? UNITS.find(([least]) => size >= least) : [1, ""];
  return { format: write(unit, name && ` ${name}`), note: "" };
}

const UNITS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

/** 0.00035 as 3.5 × 10⁻⁴. */
export function scientific(value) {
  const [digits, exponent] = value.toExponential(2).split("e");
  return `${String(Number(digits)).replace("-", "−")} × ${powerOfTen(Number(exponent))}`;
}

function powerOfTen(exponent) {
  return `10${[...String(exponent)].map((c) => SUPERSCRIPTS[c]).join("")}`;
}

/** 61450240 as 61.5 M; numbers below ten thousand are written out. */
export function compact(value) {
  const size = Math.abs(value);
  for (const [unit, name] of UNITS) {
    // 999,950 would be written as 1000 k: from there on the larger unit is used.
    if (size >= unit * 0.99995 && size >= 9999.5) return `${digits3(value / unit)} ${name}`;
  }
  return Number.isInteger(value) ? grouped(value) : digits3(value);
}

/** 12345 as 12,345. */
export function grouped(value) {
  const [whole, rest] = String(Math.abs(value)).split(".");
  const sign = value < 0 ? "−" : "";
  return sign + whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : "");
}

/** Three significant digits, without zeros that say nothing. */
export function digits3(value) {
  if (value === 0) return "0";
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size < 0.001) return scientific(value);
  return String(Number(value.toPrecision(Math.max(3, Math.ceil(Math.log10(size + 1)))))).replace("-", "−");
}

/** With this many decimals, as the numbers of one column are. */
export function fixed(value, decimals) {
  return value.toFixed(decimals).replace("-", "−");
}

/** A weight or a value in a table or a sentence: three decimals below one. */
export function tidy(value) {
  return Math.abs(value) < 1 ? value.toFixed(3).replace("-", "−") : digits3(value);
}
