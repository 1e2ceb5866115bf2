// Keeps on one line what belongs together: a number and its percent sign, a letter and its value, a formula and the
// marks beside it.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const SPACE = "\u00a0";
  for (const article of document.querySelectorAll("article")) {
    const texts = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      if (text.parentElement.closest("pre, code, script, style, svg, .math")) continue;
      const kept = text.data
        .replace(/(\d) %/g, `$1${SPACE}%`)
        .replace(/(?<![\p{L}\d])(\p{L}) = (?=[\d.\u2212-])/gu, `$1${SPACE}=${SPACE}`);
      if (kept !== text.data) text.data = kept;
    }
    for (const formula of article.querySelectorAll("span.math")) {
      const text = (one) => (one?.nodeType === Node.TEXT_NODE ? one : new Text());
      const [before, after] = [text(formula.previousSibling), text(formula.nextSibling)];
      const [opens] = before.data.match(/[([\u2018\u201c]*$/);
      const [closes] = after.data.match(/^[.,;:!?)\]\u2019\u201d-]*/);
      if (!opens && !closes) continue;
      const line = document.createElement("span");
      line.style.whiteSpace = "nowrap";
      formula.replaceWith(line);
      line.append(opens, formula, closes);
      before.data = before.data.slice(0, before.data.length - opens.length);
      after.data = after.data.slice(closes.length);
    }
  }
});
