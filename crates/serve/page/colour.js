// Colours of heat maps, computed in OKLCH so that equal steps look equal. The same palettes as in
// the program's own pictures (crates/regard/src/plot/colour.rs). No DOM: tested with node.

/** From nearly white to dark blue on light ground, from nearly black to bright yellow on dark; `t` in 0..1. */
export function sequential(t, dark) {
  t = clamp(t, 0, 1);
  if (dark) return oklch(0.25 + 0.67 * t, 0.045 + 0.11 * Math.min(1, t * 3), 290 - 190 * t);
  return oklch(0.975 - 0.665 * t, 0.15 * (1 - (1 - t) ** 3) * (1 - 0.2 * t), 170 + 105 * t);
}

/** Blue below zero, the ground at zero, orange above; `t` in −1..1. */
export function diverging(t, dark) {
  t = clamp(t, -1, 1);
  const hue = t < 0 ? 255 : 50;
  const size = Math.abs(t);
  return dark ? oklch(0.25 + 0.52 * size, 0.13 * size, hue) : oklch(0.975 - 0.42 * size, 0.15 * size, hue);
}

/** A table of 256 colours: looking one up is cheaper than computing it for every cell. */
export function palette(name, dark) {
  const steps = Array.from({ length: 256 }, (_, i) =>
    name === "diverging" ? diverging((i / 255) * 2 - 1, dark) : sequential(i / 255, dark),
  );
  return steps;
}

export function css([r, g, b]) {
  return `rgb(${r} ${g} ${b})`;
}

/** The sRGB colour of a lightness (0..1), chroma and hue (degrees); chroma is lowered until a screen can show it. */
export function oklch(lightness, chroma, hue) {
  const cos = Math.cos((hue * Math.PI) / 180);
  const sin = Math.sin((hue * Math.PI) / 180);
  for (;;) {
    const linear = oklabToLinear(lightness, chroma * cos, chroma * sin);
    if (chroma < 1e-3 || linear.every((v) => v >= -1e-4 && v <= 1.0001)) {
      return linear.map((v) => Math.round(gamma(clamp(v, 0, 1)) * 255));
    }
    chroma *= 0.97;
  }
}

// Ottosson's definition of OKLab (2020).
function oklabToLinear(l, a, b) {
  const long = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const medium = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const short = (l - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
    -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
    -0.0041960863 * long - 0.7034186147 * medium + 1.707614701 * short,
  ];
}

function gamma(v) {
  return v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055;
}

function clamp(v, low, high) {
  return Math.min(high, Math.max(low, v));
}
