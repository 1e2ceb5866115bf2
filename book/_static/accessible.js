// What the theme leaves for screen readers and keyboards: names that hold the text that is seen, a landmark around the
// logo, wide boxes that can be reached.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  for (const named of document.querySelectorAll("summary[aria-label], button[aria-label]:not(:has(.math))")) {
    const seen = named.innerText.replace(/\s+/g, " ").trim();
    const label = named.getAttribute("aria-label");
    if (!seen) named.title = label; // an icon, which some tools take for text that the label lacks
    if (!seen || !label.includes(seen)) named.removeAttribute("aria-label"); // what is seen changes when a fold opens
  }
  const boxes = 'article .wide-picture, article .cell_output, article mjx-container[display="true"]';
  const reach = () => {
    for (const wide of document.querySelectorAll(boxes)) {
      if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0; // so that keys can scroll it
    }
  };
  reach();
  window.addEventListener("load", () => window.MathJax?.startup?.promise.then(reach));
  document.addEventListener("toggle", reach, true); // what is in a fold is wide when it opens
  const unfold = () => {
    const box = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest(".dropdown");
    if (box?.matches(".toggle-hidden")) box.querySelector("button.toggle-button").click();
  }; // a link to a fold, or into it, opens it
  window.addEventListener("hashchange", unfold);
  window.addEventListener("load", unfold);
  for (const list of document.querySelectorAll(".citation-list")) list.removeAttribute("role"); // it has no list items
  for (const logo of document.querySelectorAll("a.navbar-brand")) {
    logo.parentElement.setAttribute("role", "region");
    logo.parentElement.setAttribute("aria-label", "Home");
  }
});
