"use strict";
// The page is whole without this: it adds sorting, filters, the theme and links into closed parts.
(() => {
  const one = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  all(".js").forEach((element) => (element.hidden = false));

  // Theme. A file that is opened from disk may be refused storage.
  const kept = (write) => {
    try {
      return write === undefined ? localStorage.getItem("assay-theme") : localStorage.setItem("assay-theme", write);
    } catch {
      return null;
    }
  };
  const theme = one("#theme");
  const dress = () => document.documentElement.setAttribute("data-theme", theme.value);
  theme.value = ["light", "dark"].includes(kept()) ? kept() : "";
  theme.addEventListener("change", () => {
    kept(theme.value);
    dress();
  });
  dress();

  // Sorting: rising, falling, and back to the order of the report. Empty cells stay last.
  const value = (row, column, kind) => {
    const cell = row.cells[column];
    return kind === "number" ? parseFloat(cell.dataset.value ?? "NaN") : cell.textContent.trim().toLowerCase();
  };
  const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b));
  const lacking = (a) => a === "" || Number.isNaN(a);
  all("table").forEach((table) => {
    const body = table.tBodies[0];
    const original = [...body.rows];
    all("button[data-sort]", table).forEach((button) =>
      button.addEventListener("click", () => {
        const title = button.closest("th");
        const falls = button.dataset.sort === "number" ? "descending" : "ascending";
        const next = { none: falls, [falls]: falls === "ascending" ? "descending" : "ascending" };
        const way = next[title.ariaSort] ?? "none";
        all("th[aria-sort]", table).forEach((other) => (other.ariaSort = "none"));
        title.ariaSort = way;
        const sign = way === "ascending" ? 1 : -1;
        const rows = [...original];
        if (way !== "none") {
          const key = (row) => value(row, title.cellIndex, button.dataset.sort);
          rows.sort((a, b) => lacking(key(a)) - lacking(key(b)) || sign * compare(key(a), key(b)) || 0);
        }
        body.append(...rows);
      }),
    );
  });

  // Search and filters.
  const form = one(".controls");
  if (form) {
    const rows = [...one("#ranking").tBodies[0].rows];
    const words = rows.map((row) => `${row.textContent} ${row.dataset.words}`.toLowerCase());
    const filter = () => {
      const wanted = one("#search").value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = (row, at) =>
        [row.dataset.status, ""].includes(one("#status").value) &&
        [row.dataset.problem, ""].includes(one("#problem").value) &&
        wanted.every((word) => words[at].includes(word));
      rows.forEach((row, at) => (row.hidden = !fits(row, at)));
      const shown = rows.filter((row) => !row.hidden).length;
      one("#count").textContent = `${shown} of ${rows.length}`;
      one("#none").hidden = shown > 0;
    };
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    filter();
  }

  // Deep links open what they lead to. A problem without its variant and precision is the first of that name.
  const follow = () => {
    const name = location.hash.slice(1);
    const target = name && (document.getElementById(name) ?? one(`[id^="${CSS.escape(name)}/"]`));
    if (!target) return;
    if (target.matches("details")) target.open = true;
    target.scrollIntoView();
    (target.matches("details") ? one("summary", target) : target).focus({ preventScroll: true });
  };
  addEventListener("hashchange", follow);
  // Not before: the browser itself goes there first, and takes the focus away.
  addEventListener("load", follow);

  document.addEventListener("click", (event) => {
    const point = event.target.closest("[data-go]");
    if (point) location.hash = point.dataset.go;
  });

  const unfold = one("#unfold");
  unfold?.addEventListener("click", () => {
    const closed = all("details.candidate:not([open])");
    all("details.candidate").forEach((details) => (details.open = closed.length > 0));
    unfold.textContent = closed.length > 0 ? "Close all candidates" : "Open all candidates";
  });
})();
