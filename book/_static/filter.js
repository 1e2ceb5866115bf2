// A field above long tables, and above claim cards, that keeps what holds all its words, and a list of verdicts where
// there are any. A link to a card opens it.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const LONG = 20; // rows from which a table gets a field

  // As `short` of cot2lib.study.book.ledger: without its note, but a condition or a reservation is kept as such.
  function short(verdict) {
    const [said, ...note] = verdict.trim().split(": ");
    const word = [" if ", " but "].find((one) => said.includes(one) || ` ${note.join(": ")}`.includes(one));
    return word ? `${said.split(word)[0]}${word}...` : said;
  }
  const made = (tag, properties) => Object.assign(document.createElement(tag), properties);

  // What is filtered: elements, what each is called, the verdict that each shows ("" for none), and what follows a choice.
  function addField(place, rows, name, verdictOf, changed = () => {}) {
    const box = made("div", { className: "table-filter" });
    const field = made("input", { type: "search", placeholder: `Filter ${name}` });
    field.setAttribute("aria-label", `Keep the ${name} with these words`);
    const told = made("span", {});
    told.setAttribute("role", "status");
    const verdicts = rows.map((row) => short(verdictOf(row)));
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
      changed();
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

  document.querySelectorAll("article table[id]").forEach((table) => {
    const headings = Array.from(table.querySelectorAll("thead th"), (cell) => cell.textContent.trim());
    const rows = [...table.querySelectorAll("tbody tr")];
    const column = headings.indexOf("verdict");
    const verdictOf = (row) => (column < 0 ? "" : row.cells[column].textContent);
    if (rows.length >= LONG) {
      addField(table.closest(".pst-scrollable-table-container") || table, rows, "rows", verdictOf);
    }
  });

  const cards = [...document.querySelectorAll("details[id^='claim-']")];
  if (cards.length) {
    const sections = [...new Set(cards.map((card) => card.parentElement))];
    const emptied = () => {
      sections.forEach((section) => {
        section.hidden = [...section.querySelectorAll("details")].every((card) => card.hidden);
      });
    };
    const all = addField(sections[0], cards, "cards", (card) => card.querySelector(".sd-badge").textContent, emptied);
    const open = () => {
      const card = cards.find((one) => `#${one.id}` === window.location.hash);
      if (card) {
        all();
        card.open = true;
        card.scrollIntoView();
      }
    };
    window.addEventListener("hashchange", open);
    open();
  }
});
