// Ribbons between words that belong together: they hang below the words, and stay between two lines where another line follows.
import { byId, s } from "./dom.js";

/** Connects pairs of elements, those of the source first. */
export function drawRibbons(pairs) {
  const picture = byId("ribbons");
  const frame = byId("panes").getBoundingClientRect();
  picture.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
  picture.replaceChildren(...pairs.map((pair) => ribbon(pair, frame)).filter(Boolean));
}

function ribbon(pair, frame) {
  const [a, b] = pair.map((element) => element?.getClientRects()[0]);
  if (!a || !b) return null;
  const [x1, x2] = [a, b].map((box) => (box.left + box.right) / 2 - frame.left);
  const [y1, y2] = [a, b].map((box) => box.bottom - frame.top + 2);
  // One below the other: from the lower edge of the one to the upper edge of the other.
  if (b.top > a.bottom + 30) {
    const end = b.top - frame.top - 2;
    const middle = (y1 + end) / 2;
    return s("path", { d: `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${end}` });
  }
  const followed = pair.some((element, k) => element.parentElement.lastElementChild.getBoundingClientRect().bottom > [a, b][k].bottom + 4);
  const sag = followed ? 6 : 16 + Math.min(26, Math.abs(x2 - x1) / 14);
  return s("path", { d: `M${x1} ${y1}C${x1} ${y1 + sag} ${x2} ${y2 + sag} ${x2} ${y2}` });
}
