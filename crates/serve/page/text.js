// Words, offsets and links between them. No DOM: tested with node.

/** Where each code point begins, in UTF-16 code units; one more entry for the end. */
export function offsets(text) {
  const starts = [];
  let at = 0;
  for (const character of text) {
    starts.push(at);
    at += character.length;
  }
  starts.push(at);
  return starts;
}

export function codePoints(text) {
  return offsets(text).length - 1;
}

const PLAIN_WORD = /[\p{L}\p{N}\p{M}]+(?:['’\-][\p{L}\p{N}\p{M}]+)*/gu;

/** The words of a text: `{start, end, text}` in UTF-16 code units. Languages without spaces are cut too. */
export function words(text, language) {
  if (typeof Intl !== "undefined" && Intl.Segmenter) {
    let segmenter;
    try {
      segmenter = new Intl.Segmenter(language || undefined, { granularity: "word" });
    } catch {
      // A code that the browser does not know, as some models have.
      segmenter = new Intl.Segmenter(undefined, { granularity: "word" });
    }
    return [...segmenter.segment(text)]
      .filter((s) => s.isWordLike)
      .map((s) => ({ start: s.index, end: s.index + s.segment.length, text: s.segment }));
  }
  return [...text.matchAll(PLAIN_WORD)].map((m) => ({ start: m.index, end: m.index + m[0].length, text: m[0] }));
}

/** The index of the word at a UTF-16 offset (its end counts, so that a caret behind a word finds it), or −1. */
export function wordAt(list, offset) {
  return list.findIndex((word) => word.start <= offset && offset <= word.end);
}

/**
 * Which words of the two texts belong together. `alignment` is a list of [sourceStart, sourceEnd, targetStart, targetEnd]
 * in code points; a pair links every word it touches on one side with every word on the other.
 * The result has for every word the sorted indices of its partners.
 */
export function links(alignment, source, target, sourceWords, targetWords) {
  const toTarget = sourceWords.map(() => new Set());
  const toSource = targetWords.map(() => new Set());
  const sourceAt = offsets(source);
  const targetAt = offsets(target);
  for (const [sourceStart, sourceEnd, targetStart, targetEnd] of alignment ?? []) {
    const left = touched(sourceWords, sourceAt[sourceStart], sourceAt[sourceEnd]);
    const right = touched(targetWords, targetAt[targetStart], targetAt[targetEnd]);
    for (const s of left) {
      for (const t of right) {
        toTarget[s].add(t);
        toSource[t].add(s);
      }
    }
  }
  const sorted = (sets) => sets.map((set) => [...set].sort((a, b) => a - b));
  return { toTarget: sorted(toTarget), toSource: sorted(toSource) };
}

// Comparisons with undefined are false: an offset outside of the text touches nothing.
function touched(list, start, end) {
  const found = [];
  list.forEach((word, i) => {
    if (word.start < end && start < word.end) found.push(i);
  });
  return found;
}

/** A text cut at its words: `{text, word}` with the word's index, or −1 for what lies between. */
export function segments(text, list) {
  const out = [];
  let at = 0;
  list.forEach((word, i) => {
    if (word.start > at) out.push({ text: text.slice(at, word.start), word: -1 });
    out.push({ text: text.slice(word.start, word.end), word: i });
    at = word.end;
  });
  if (at < text.length) out.push({ text: text.slice(at), word: -1 });
  return out;
}

/** A token as people read it: the mark of a word's beginning becomes a space that can be seen only where it stands alone. */
export function pieceLabel(piece) {
  const plain = piece.replace(/^[▁Ġ]+/u, "").replace(/@@$/, "");
  return plain === "" ? "␣" : plain;
}

/** For each token whether it goes on with the word before it. A vocabulary that does not mark words has no such tokens. */
export function continuing(pieces) {
  const marked = pieces.some((piece) => /^[▁Ġ]/u.test(piece));
  return pieces.map((piece, i) => {
    if (i === 0 || special(piece) || special(pieces[i - 1])) return false;
    return /@@$/.test(pieces[i - 1]) || (marked && !/^[▁Ġ]/u.test(piece));
  });
}

const special = (piece) => /^(<.+>|\[.+\])$/.test(piece);

/** Tokens as the text that they are. */
export function spoken(pieces) {
  const joined = continuing(pieces);
  return pieces.map((piece, i) => (i === 0 || joined[i] ? "" : " ") + pieceLabel(piece)).join("");
}

/** What the decoder reads at each step: the start, then what it has said so far. */
export function readByDecoder(said) {
  const starts = new Set(["<s>", "<pad>", "<start>"]);
  return starts.has(said[0]) ? [...said] : ["<start>", ...said.slice(0, -1)];
}

const END = new Set(["</s>", "<eos>", "<end>", "[SEP]"]);

export function isEnd(piece) {
  return END.has(piece);
}

/** The sentences of a text, trimmed, without empty ones. */
export function sentences(text, language) {
  if (typeof Intl === "undefined" || !Intl.Segmenter) return text.split("\n").map((line) => line.trim()).filter(Boolean);
  let segmenter;
  try {
    segmenter = new Intl.Segmenter(language || undefined, { granularity: "sentence" });
  } catch {
    segmenter = new Intl.Segmenter(undefined, { granularity: "sentence" });
  }
  return [...segmenter.segment(text)].map(({ segment }) => segment.trim()).filter(Boolean);
}

/** A request with a JSON body as a command of a shell; a key is named, not shown. */
export function curl(address, body, keyed = false) {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const key = keyed ? ["-H 'Authorization: Bearer KEY'"] : [];
  return [`curl ${address}`, ...key, "-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body))}`].join(" \\\n  ");
}
