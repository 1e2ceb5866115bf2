// What a term means (`book/_ext/explained.py`) opens below it, and for a mouse when it is over the term.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll(".explained")) {
    const [term, meaning] = box.children;
    meaning.addEventListener("beforetoggle", () => {
      const { left, bottom } = term.getBoundingClientRect();
      meaning.style.setProperty("--left", `${left + scrollX}px`);
      meaning.style.setProperty("--top", `${bottom + scrollY}px`);
    });
    for (const [event, opens] of Object.entries({ pointerenter: true, pointerleave: false })) {
      box.addEventListener(event, ({ pointerType }) => pointerType === "mouse" && meaning.togglePopover(opens));
    }
  }
});
