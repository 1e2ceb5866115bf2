// "Does it hold?" on the card of a claim: leave out seeds, switch the recipe, and see interval and verdict follow the
// rule. Rules and runs load when a reader asks for them, in script tags: a page opened from a folder may load these.
"use strict";

(function () {
  const HERE = document.currentScript.src.replace(/[^/]*$/, "");
  const EDGE = 4; // percent of an axis that stay free at both ends, as in the picture
  let loading = null;
  const made = (tag, properties, ...children) => {
    const one = Object.assign(document.createElement(tag), properties);
    one.append(...children);
    return one;
  };

  function load() {
    const one = (name) =>
      new Promise((resolve, reject) => {
        document.head.append(made("script", { src: `${HERE}${name}.js`, onload: resolve, onerror: reject }));
      });
    loading ??= Promise.all(["holds-rules", "holds-data"].map(one)).catch((error) => {
      loading = null;
      throw error;
    });
    return loading;
  }

  // Intervals of the seeds that are kept, in the picture and in its words.
  function redraw(box, claim, kept) {
    const { interval, fixed } = window.COT2;
    for (const svg of box.querySelectorAll("svg[data-line]")) {
      const line = claim.lines[svg.dataset.line];
      const [low, high] = [Number(svg.dataset.low), Number(svg.dataset.high)];
      const at = (value) => `${Math.min(100, Math.max(0, EDGE + ((100 - 2 * EDGE) * (value - low)) / (high - low)))}%`;
      const values = line.values.filter(([seed]) => kept.has(seed)).map(([, value]) => value);
      const [least, most] = line.within.map((end, place) => end ?? (place ? Infinity : -Infinity));
      const found = values.length ? interval(values, Infinity, least, most) : null;
      const further = values.length && claim.rule.name === "number" ? interval(values, claim.rule.runs, least, most) : null;
      for (const [name, ends] of [["range", found], ["judged", further]]) {
        const bar = svg.querySelector(`.${name}`);
        if (!bar) continue;
        const drawn = ends && Number.isFinite(ends.low);
        bar.style.visibility = drawn ? "visible" : "hidden";
        if (drawn) [["x1", ends.low], ["x2", ends.high]].forEach(([end, value]) => bar.setAttribute(end, at(value)));
      }
      for (const dot of svg.querySelectorAll("circle")) dot.classList.toggle("left-out", !kept.has(Number(dot.dataset.seed)));
      const shown = (value) => fixed(value, line.unit.digits);
      const range = found && Number.isFinite(found.low) ? ` [${shown(found.low)}, ${shown(found.high)}]` : "";
      const said = found ? `${shown(found.mean)}${range} ${line.unit.name}` : "no seed";
      svg.previousElementSibling.lastElementChild.textContent = said;
      const beside = line.stated === 0 ? "no difference" : `the paper's ${line.stated}`;
      svg.setAttribute("aria-label", `${line.label || "ours"}: ${said}, beside ${beside}; ${values.length} seeds`);
    }
  }

  function controls(box, recipes, names) {
    const recipe = made("select", { name: "recipe" }, ...names.map((name) => new Option(name, name)));
    const seeds = made("fieldset", {});
    const status = made("p", { className: "holds-verdict" });
    status.setAttribute("role", "status");
    const pictures = { [names[0]]: box.innerHTML };

    function judge() {
      const claim = recipes[recipe.value], kept = new Set();
      seeds.querySelectorAll("input:checked").forEach((one) => kept.add(Number(one.value)));
      redraw(box.querySelector(".holds-picture"), claim, kept);
      const whole = window.COT2.verdict(claim, claim.seeds), now = window.COT2.verdict(claim, [...kept]);
      const many = `${kept.size} of ${claim.seeds.length} seeds, ${recipe.value}`;
      status.textContent = kept.size === claim.seeds.length ? `${many}: ${now}.` : `${many}: ${now}. With all: ${whole}.`;
    }

    function change() {
      const claim = recipes[recipe.value];
      claim.seeds ??= [...new Set(claim.lines.flatMap((line) => line.values.map(([seed]) => seed)))].sort((a, b) => a - b);
      const check = (seed) => made("label", {}, made("input", { type: "checkbox", value: seed, checked: true }), ` ${seed}`);
      seeds.replaceChildren(made("legend", { textContent: "Seeds that count" }), ...claim.seeds.map(check));
      box.querySelector(".holds-picture").innerHTML = pictures[recipe.value] ?? claim.picture;
      judge();
    }

    box.replaceChildren(
      made("div", { className: "holds-form explorer" }, made("label", {}, "Recipe", recipe), seeds),
      status,
      made("div", { className: "holds-picture" }),
    );
    recipe.addEventListener("input", change);
    seeds.addEventListener("input", judge);
    change();
    recipe.focus();
  }

  async function start(box, button, status) {
    button.disabled = true;
    status.textContent = "The runs are on their way.";
    try {
      await load();
    } catch {
      status.textContent = "The runs could not be loaded.";
      button.disabled = false;
      return;
    }
    button.parentElement.remove();
    const recipes = window.COT2_CASES[box.dataset.claim];
    controls(box, recipes, Object.keys(recipes));
  }

  function prepare(box) {
    const button = made("button", { type: "button", className: "holds-start", textContent: "Does it hold? Leave out seeds" });
    const status = made("span", {});
    status.setAttribute("role", "status");
    button.addEventListener("click", () => start(box, button, status));
    box.after(made("p", { className: "explorer" }, button, " ", status));
  }

  const all = () => document.querySelectorAll(".holds").forEach(prepare);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", all);
  else all();
})();
