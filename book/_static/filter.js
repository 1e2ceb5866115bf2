// A field above long tables that keeps the rows with all its words, and a list of verdicts where there is such a column.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const LONG = 20; // rows from which a table gets a field

  const headings = (table) => Array.from(table.querySelectorAll("thead th"), (cell) => cell.textContent.trim());
  const rowsOf = (table) => Array.from(table.querySelectorAll("tbody tr"));
  const short = (verdict) => verdict.split(/[:,]| if | but /)[0].trim();

  function filtered(table, text, verdict, column) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rowsOf(table)) {
      const said = row.textContent.toLowerCase();
      const fits = !verdict || short(row.cells[column].textContent) === verdict;
      row.hidden = !(fits && words.every((word) => said.includes(word)));
      if (!row.hidden) shown += 1;
    }
    return shown;
  }

  function made(tag, properties) {
    return Object.assign(document.createElement(tag), properties);
  }

  function add(table) {
    const column = headings(table).indexOf("verdict");
    const box = made("div", { className: "table-filter" });
    const field = made("input", { type: "search", placeholder: "Filter rows" });
    field.setAttribute("aria-label", "Keep the rows with these words");
    const told = made("span", {});
    told.setAttribute("role", "status");
    const list = made("select", {});
    list.setAttribute("aria-label", "Keep the rows with this verdict");
    if (column >= 0) {
      const verdicts = rowsOf(table).map((row) => short(row.cells[column].textContent));
      list.add(new Option("all verdicts", ""));
      [...new Set(verdicts)].sort().forEach((verdict) => list.add(new Option(verdict, verdict)));
    }
    const total = rowsOf(table).length;
    const update = () => {
      told.textContent = `${filtered(table, field.value, list.value, column)} of ${total} rows`;
    };
    field.addEventListener("input", update);
    list.addEventListener("input", update);
    box.append(field, ...(column >= 0 ? [list] : []), told);
    (table.closest(".pst-scrollable-table-container") || table).before(box);
    update();
  }

  document.querySelectorAll("article table[id]").forEach((table) => {
    if (rowsOf(table).length >= LONG) add(table);
  });
});
