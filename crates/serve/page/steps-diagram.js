// Encoder and decoder side by side, as blocks that open.
import { h, s } from "./dom.js";
import { t } from "./i18n.js";
import { withMath } from "./math.js";
import { grouped } from "./scale.js";

const BLOCKS = {
  encoder: [["tokens", "embedding", "positions"], ["attention", "norm-attention", "ffn", "norm-ffn"], []],
  decoder: [["tokens", "embedding", "positions"], ["attention", "norm-attention", "cross", "norm-cross", "ffn", "norm-ffn"], ["next"]],
};

/** `stack` and `block` are what is open; `open(stack, block)` is called for another. With `sizes`, blocks say how large they are. */
export function diagram({ stack: openStack, block: openBlock, config, open, sizes = false }) {
  const attends = (stack) => (stack === "encoder" ? ["attention", "window", undefined].includes(config.encoder) : config.decoder !== "ssru");
  const tower = (stack) => {
    const button = (block) => {
      const current = openStack === stack && openBlock === block;
      const kind = block.startsWith("norm") ? "norm" : block;
      const decoders = attends(stack) ? "masked" : "ssru";
      const encoders = attends(stack) ? "attention" : "other";
      const name = block === "attention" ? (stack === "decoder" ? decoders : encoders) : kind;
      const size = sizes ? sizeOf(stack, name, config) : null;
      const label = t(labelOf(name, config));
      return h(
        "button",
        {
          type: "button",
          class: `block ${kind}`,
          "data-block": `${stack}-${block}`,
          "data-keep": `${stack}-${block}`,
          "aria-current": current ? "step" : null,
          "aria-label": size ? `${label}, ${size}` : label,
          disabled: name === "other",
          onclick: () => open(stack, block),
        },
        withMath(label),
        size ? h("span", { class: "size" }, size) : null,
      );
    };
    const [before, repeated, after] = BLOCKS[stack];
    const layers = config[stack === "encoder" ? "encoder_layers" : "decoder_layers"];
    return h(
      "div",
      { class: "tower", role: "group", "aria-label": t(`stack.${stack}`) },
      h("h4", {}, t(`stack.${stack}`)),
      before.map(button),
      h("div", { class: "repeated" }, layers ? h("span", { class: "times" }, `× ${layers}`) : null, repeated.map(button)),
      after.map(button),
    );
  };
  const wires = s("svg", { class: "wires", "aria-hidden": "true" });
  const frame = h("div", { class: "diagram" }, wires, tower("encoder"), tower("decoder"));
  new ResizeObserver(() => draw(frame, wires)).observe(frame);
  return frame;
}

/** Blocks that a model goes without are named after what it does instead. */
function labelOf(name, config) {
  if (name === "embedding" && config.scale_embeddings === false) return "step.embedding";
  if (name === "positions" && ["relative", "bucketed", "none"].includes(config.positions)) return "block.unplaced";
  if (name === "norm" && config.norm === "pre") return "step.prenorm";
  return `block.${name}`;
}

function sizeOf(stack, name, config) {
  const encoder = stack === "encoder";
  const heads = encoder ? config.heads : (config.decoder_heads ?? config.heads);
  const width = encoder ? config.d_ff : (config.decoder_d_ff ?? config.d_ff);
  const [d, words] = [config.d_model, config[encoder ? "source_vocabulary" : "target_vocabulary"]];
  const values = { d, width, heads, dk: config.d_k ?? Math.floor(d / heads), words: grouped(words ?? 0) };
  const key = { embedding: "embedding", attention: "heads", masked: "heads", cross: "heads", ffn: "ffn", next: "next" }[name];
  return key && Number.isFinite(d) ? t(`size.${key}`, values) : null;
}

// The two ways that do not lead straight down: what was encoded, to cross-attention; the next word,
// back to the start.
function draw(frame, wires) {
  const bounds = frame.getBoundingClientRect();
  const box = (name) => {
    const { left, right, top, bottom } = frame.querySelector(`[data-block="${name}"]`).getBoundingClientRect();
    return { left: left - bounds.left, right: right - bounds.left, top: top - bounds.top, bottom: bottom - bounds.top, y: (top + bottom) / 2 - bounds.top };
  };
  const [memory, cross, next, read] = [box("encoder-norm-ffn"), box("decoder-cross"), box("decoder-next"), box("decoder-tokens")];
  const middle = (memory.right + cross.left) / 2;
  const edge = bounds.width - 3;
  const arrow = (x, y, sign) => `M${x + 5 * sign} ${y - 4}L${x} ${y}L${x + 5 * sign} ${y + 4}`;
  wires.setAttribute("viewBox", `0 0 ${bounds.width} ${bounds.height}`);
  wires.replaceChildren(
    s("path", { d: `M${memory.right} ${memory.y}H${middle}V${cross.y}H${cross.left - 1}` }),
    s("path", { d: arrow(cross.left - 1, cross.y, -1) }),
    s("path", { class: "back", d: `M${next.right} ${next.y}H${edge}V${read.y}H${read.right + 1}` }),
    s("path", { class: "back", d: arrow(read.right + 1, read.y, 1) }),
  );
}
