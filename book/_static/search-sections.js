// Search by sections and claim cards: what holds all words of the query, those first that have them in their titles.
// Sphinx's own page of results asks this instead of its index of whole pages.
"use strict";

(function () {
  const MOST = 40, AROUND = 110; // results; characters of prose on each side of a word
  const HERE = document.currentScript.src.replace(/[^/]*$/, "");
  const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}@]+/gu) || [];
  const starts = (text, word) => {
    const place = ` ${text}`.toLowerCase().search(new RegExp(`[^\\p{L}\\p{N}]${word}`, "u"));
    return place < 0 ? -1 : place;
  };

  // How well a section answers; 0 if a word is missing.
  function worth(section, words) {
    let total = 0;
    for (const word of words) {
      const [title, within, text] = [section.title, section.within, section.text].map((one) => starts(one, word) >= 0);
      if (!title && !within && !text) return 0;
      total += 8 * title + 2 * within + text;
    }
    return total + 8 * (section.title.toLowerCase() === words.join(" "));
  }

  function find(sections, query) {
    const words = wordsOf(query);
    if (!words.length) return [];
    const found = sections.map((section) => ({ section, worth: worth(section, words) })).filter((one) => one.worth);
    return found.sort((a, b) => b.worth - a.worth).map((one) => one.section);
  }

  function snippet(section, words) {
    const places = words.map((word) => starts(section.text, word)).filter((place) => place >= 0);
    const from = Math.max(0, (places[0] ?? 0) - AROUND), to = (places[0] ?? 0) + AROUND;
    const line = document.createElement("p");
    line.className = "context";
    line.textContent = `${from ? "… " : ""}${section.text.slice(from, to)}${to < section.text.length ? " …" : ""}`;
    return line;
  }

  function entry(section, words) {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = `${section.page}#${section.at}`;
    link.textContent = section.title;
    item.append(link, section.within === section.title ? "" : ` in ${section.within}`, snippet(section, words));
    return item;
  }

  function answer(query) {
    const found = find(window.COT2_SECTIONS, query), words = wordsOf(query);
    Search.output.append(...found.slice(0, MOST).map((section) => entry(section, words)));
    Search.stopPulse();
    Search.title.textContent = "Search results";
    const more = found.length > MOST ? `, the first ${MOST} of which are shown` : "";
    Search.status.textContent = `${found.length} sections and cards hold these words${more}.`;
  }

  if (typeof Search === "undefined") return;
  Search.query = (query) => {
    const data = document.createElement("script");
    data.onload = () => answer(query);
    data.src = `${HERE}sections.js`;
    document.head.append(data);
  };
})();
