// A field above long tables, above all tables of the ledger and above claim cards, that keeps what holds all its words,
// and a list of verdicts where there are any. A link to what is folded opens it.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const LONG = 20; // rows from which a table gets a field

  const made = (tag, properties) => Object.assign(document.createElement(tag), properties);

  // What is filtered: elements, what each is called, the verdict that each shows ("" for none), and what follows a choice.
  function addField(place, rows, name, verdictOf, changed = (chosen) => {}) {
    const box = made("div", { className: "table-filter" });
    const field = made("input", { type: "search", placeholder: `Filter ${name}` });
    field.setAttribute("aria-label", `Keep the ${name} with these words`);
    const told = made("span", {});
    told.setAttribute("role", "status");
    const verdicts = rows.map((row) => verdictOf(row).trim());
    const list = made("select", {});
    list.setAttribute("aria-label", `Keep the ${name} with this verdict`);
    list.add(new Option("all verdicts", ""));
    [...new Set(verdicts)].sort().forEach((verdict) => list.add(new Option(verdict, verdict)));
    const update = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      rows.forEach((row, number) => {
        const said = row.textContent.toLowerCase();
        const fits = !list.value || verdicts[number] === list.value;
        row.hidden = !(fits && words.every((word) => said.includes(word)));
      });
      told.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} ${name}`;
      changed(Boolean(list.value || words.length));
    };
    field.addEventListener("input", update);
    list.addEventListener("input", update);
    box.append(field, ...(verdicts.some(Boolean) ? [list] : []), told);
    place.before(box);
    update();
    return () => {
      [field.value, list.value] = ["", ""];
      update();
    };
  }

  function verdictIn(row) {
    const headings = Array.from(row.closest("table").tHead.rows[0].cells, (cell) => cell.textContent.trim());
    const column = headings.indexOf("verdict");
    return column < 0 ? "" : row.cells[column].textContent;
  }

  const ledger = [...document.querySelectorAll("details:has(> * table[id^='tab-ledger']), details:has(#tab-series)")];
  document.querySelectorAll("article table[id]").forEach((table) => {
    const rows = [...table.querySelectorAll("tbody tr")];
    if (rows.length >= LONG && !ledger.some((fold) => fold.contains(table))) {
      addField(table.closest(".pst-scrollable-table-container") || table, rows, "rows", verdictIn);
    }
  });
  if (ledger.length) {
    const rows = ledger.flatMap((fold) => [...fold.querySelectorAll("tbody tr")]);
    addField(ledger[0], rows, "rows", verdictIn, (chosen) => {
      for (const fold of ledger) {
        fold.hidden = [...fold.querySelectorAll("tbody tr")].every((row) => row.hidden);
        fold.open = chosen;
      }
    });
  }

  const cards = [...document.querySelectorAll("details[id^='claim-']")];
  if (cards.length) {
    const sections = [...new Set(cards.map((card) => card.parentElement))];
    const emptied = () => {
      sections.forEach((section) => {
        section.hidden = [...section.querySelectorAll("details")].every((card) => card.hidden);
      });
    };
    const all = addField(sections[0], cards, "cards", (card) => card.querySelector(".sd-badge").textContent, emptied);
    window.addEventListener("hashchange", all);
    all();
  }

  const open = () => {
    const aim = document.getElementById(decodeURIComponent(window.location.hash.slice(1)));
    const folds = aim ? [aim, ...document.querySelectorAll("details")].filter((one) => one.contains(aim)) : [];
    folds.filter((one) => one.tagName === "DETAILS").forEach((fold) => Object.assign(fold, { open: true }));
    if (folds.length > 1 || aim?.tagName === "DETAILS") aim.scrollIntoView();
  };
  window.addEventListener("hashchange", open);
  open();
});
