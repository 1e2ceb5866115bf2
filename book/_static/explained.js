// What a term means (`book/_ext/explained.py`) opens below it, and for a mouse when it is over the term.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll(".explained")) {
    const [term, meaning] = box.children;
    const ofMouse = (opens) => (event) => event.pointerType === "mouse" && meaning.togglePopover(opens);
    box.addEventListener("pointerenter", ofMouse(true));
    box.addEventListener("pointerleave", ofMouse(false));
    meaning.addEventListener("beforetoggle", () => {
      const { left, bottom } = term.getBoundingClientRect();
      Object.assign(meaning.style, { top: `${bottom + scrollY}px`, left: `clamp(1rem, ${left}px, 100% - 22rem)` });
    });
  }
});
