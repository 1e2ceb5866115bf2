// One seed of a figure at a time, by keyboard or pointer: the others fade, and its numbers are told.
"use strict";

(function () {
  const HERE = document.currentScript.src.replace(/[^/]*$/, "");
  const FADED = "0.08";
  const made = (tag, properties, ...children) => {
    const one = Object.assign(document.createElement(tag), properties);
    one.append(...children);
    return one;
  };

  function load(name) {
    return new Promise((resolve, reject) => {
      if (window.COT2_FIGURES?.[name]) return resolve();
      document.head.append(made("script", { src: `${HERE}numbers/${name}.js`, onload: resolve, onerror: reject }));
    });
  }

  // Rows of a file of numbers; no entry of these spans lines.
  function rows(text) {
    const cells = (line) => [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map((one) => one[1] ?? one[2]);
    const [names, ...lines] = text.trim().split("\n").map(cells);
    return lines.map((line) => Object.fromEntries(names.map((name, place) => [name, line[place]])));
  }

  // What a seed came to, in words: the last value of each of its lines, or each of its dots.
  function told(table, seed) {
    const names = Object.keys(table[0]), [x, y] = names.slice(-2), curve = x === "epoch" || x === "step";
    const said = new Map();
    for (const row of table.filter((one) => one.seed === seed)) {
      const apart = names.filter((name) => name !== "seed" && name !== y && !(curve && name === x));
      said.set(apart.map((name) => (/^[\d.]+$/.test(row[name]) ? `${name} ${row[name]}` : row[name])).join(", "), row[y]);
    }
    return [...said].map(([where, value]) => `${where}: ${Number(value).toFixed(1)}`).join("; ");
  }

  function show(figure, seed) {
    for (const group of figure.querySelectorAll("[data-drew]")) {
      const seeds = group.dataset.drew.split(" "), dots = group.querySelectorAll("use");
      const parts = seeds.length > 1 ? [...dots].slice(-seeds.length) : [group];
      parts.forEach((part, place) => (part.style.opacity = !seed || seeds[place] === seed ? "" : FADED));
      if (seeds.length === 1) group.style.strokeWidth = seed === seeds[0] ? "3" : "";
      group.querySelectorAll("path").forEach((path) => {
        if (seeds.length === 1) path.style.strokeOpacity = seed === seeds[0] ? "1" : "";
      });
    }
  }

  // The vectors themselves take the place of the pictures, so that parts of them can fade.
  function inline(figure, drawn) {
    const found = new Set();
    for (const picture of figure.querySelectorAll("img")) {
      const mode = picture.classList.contains("only-dark") ? "dark" : "light";
      const svg = new DOMParser().parseFromString(drawn[mode], "image/svg+xml").documentElement;
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label", picture.alt);
      svg.setAttribute("class", picture.className);
      svg.style.cssText = "width: 100%; height: auto";
      for (const group of svg.querySelectorAll("[id*='seeds-']")) {
        group.dataset.drew = group.id.split("_").slice(1).join(" ");
        group.dataset.drew.split(" ").forEach((seed) => found.add(seed));
      }
      (picture.closest("a") ?? picture).before(svg);
    }
    figure.querySelectorAll("img").forEach((picture) => (picture.closest("a") ?? picture).remove());
    return [...found].sort((a, b) => a - b);
  }

  async function start(figure, button) {
    const status = made("span", { textContent: "The figure is on its way." });
    status.setAttribute("role", "status");
    button.after(" ", status);
    try {
      await load(figure.id);
    } catch {
      status.textContent = "The figure could not be loaded.";
      return;
    }
    const drawn = window.COT2_FIGURES[figure.id], table = rows(drawn.numbers), seeds = inline(figure, drawn);
    const list = made("select", {}, new Option("all", ""), ...seeds.map((seed) => new Option(seed, seed)));
    list.addEventListener("input", () => {
      show(figure, list.value);
      status.textContent = list.value ? `Seed ${list.value}: ${told(table, list.value)}.` : "All seeds.";
    });
    status.textContent = "";
    button.replaceWith(made("label", {}, "Seed ", list));
    list.focus();
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const figure of document.querySelectorAll("figure[data-seeds]")) {
      const button = made("button", { type: "button", textContent: "One seed at a time" });
      button.addEventListener("click", () => start(figure, button), { once: true });
      figure.querySelector("figcaption").append(made("p", { className: "seeds" }, button));
    }
  });
})();
