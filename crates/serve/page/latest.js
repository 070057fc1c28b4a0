// Only the latest request counts. No DOM: tested with node.

/** Runs jobs one after another; a new one aborts the one before it. */
export class Latest {
  #controller = null;

  /** Calls `job(signal)`. Resolves to its value, or to undefined when it was overtaken; other errors are passed on. */
  async run(job) {
    this.cancel();
    const controller = new AbortController();
    this.#controller = controller;
    try {
      const value = await job(controller.signal);
      return controller.signal.aborted ? undefined : value;
    } catch (error) {
      if (controller.signal.aborted) return undefined;
      throw error;
    } finally {
      if (this.#controller === controller) this.#controller = null;
    }
  }

  cancel() {
    this.#controller?.abort();
    this.#controller = null;
  }
}

/** A function that waits until it was not called for `delay` milliseconds; `cancel` forgets the call. */
export function debounce(callback, delay) {
  let timer;
  const later = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => callback(...values), delay);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

/** Turns pieces of a server-sent event stream into its data lines, whatever the pieces' borders are. */
export class EventLines {
  #rest = "";

  /** The data of the events that are complete with this piece. */
  push(piece) {
    const blocks = (this.#rest + piece).replace(/\r\n/g, "\n").split("\n\n");
    this.#rest = blocks.pop();
    return blocks.map(dataOf).filter((data) => data !== null);
  }
}

function dataOf(block) {
  const lines = block.split("\n").filter((line) => line.startsWith("data:"));
  return lines.length ? lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n") : null;
}
