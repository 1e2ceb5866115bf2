// What the theme leaves for screen readers: names that hold the text that is seen, and a landmark around the logo.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  for (const named of document.querySelectorAll("summary[aria-label], button[aria-label]")) {
    const seen = named.innerText.replace(/\s+/g, " ").trim();
    const label = named.getAttribute("aria-label");
    if (!seen) {
      named.removeAttribute("aria-label"); // an icon, which some tools take for text that the label lacks
      named.title = label;
    } else if (!label.includes(seen)) {
      named.setAttribute("aria-label", seen);
    }
  }
  for (const logo of document.querySelectorAll("a.navbar-brand")) {
    logo.parentElement.setAttribute("role", "region");
    logo.parentElement.setAttribute("aria-label", "Home");
  }
});
