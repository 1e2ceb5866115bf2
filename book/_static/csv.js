// A link in the caption of each table that saves its rows as CSV.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const line = (row) => Array.from(row.cells, (cell) => quoted(cell.textContent.trim())).join(",");

  document.querySelectorAll("article table[id]").forEach((table) => {
    if (!table.caption) return;
    const lines = Array.from(table.rows, line).join("\n"); // before formulas are typeset
    const link = Object.assign(document.createElement("a"), {
      className: "table-csv",
      download: `${table.id}.csv`,
      href: `data:text/csv;charset=utf-8,${encodeURIComponent(`${lines}\n`)}`,
      textContent: "CSV",
    });
    table.caption.append(" ", link);
  });
});
