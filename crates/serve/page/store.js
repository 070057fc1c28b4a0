// What is remembered: choices for good, the key for as long as the tab is open. Browsers may forbid
// storage; then a choice lasts as long as the page.

export function recall(name, area = "localStorage") {
  try {
    return globalThis[area].getItem(name);
  } catch {
    return null;
  }
}

/** Null forgets. */
export function keep(name, value, area = "localStorage") {
  try {
    if (value === null) globalThis[area].removeItem(name);
    else globalThis[area].setItem(name, value);
  } catch {
    // Nothing is lost but the memory of it.
  }
}
