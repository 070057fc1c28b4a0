// Runs before the page is painted, so that a chosen theme does not flash. Not a module: modules
// wait.
(() => {
  try {
    const chosen = localStorage.getItem("regard.theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // Storage may be forbidden; the system's theme is used.
  }
})();
