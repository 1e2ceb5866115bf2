// The page `explorer`: controls, the tree of signed sums, and what is said of it. The model is `explorer-model.js`.
"use strict";

(function () {
  const { element, signed, digitsIn, reachable, rightOf } = window.COT2;
  const LEAST = 0.005; // share of a thought that is drawn
  const HEIGHT = 440;

  const root = document.getElementById("explorer");
  if (!root || !window.COT2_MODELS) return;
  const readers = window.COT2_MODELS.map((model) => new window.COT2.Reader(model));
  const state = { seed: 1, removed: [[], [], []] };
  const field = (name) => root.querySelector(`[name=${name}]`);

  const digits = () => digitsIn(field("digits"));

  /** What a number field holds, within its limits; its least value while it is empty. */
  function number(name) {
    const { value, min, max } = field(name);
    return Math.min(Math.max(Number(value) || 0, Number(min)), Number(max));
  }

  function respond() {
    const reader = readers[Number(field("model").value)];
    const options = { seed: state.seed, k: number("k"), gamma: number("gamma") };
    return window.COT2.respond(reader, digits(), field("rule").value, { ...options, removed: state.removed });
  }

  function isValid() {
    const { steps, low, high } = readers[0].model;
    const given = digits();
    return given.length === steps && given.every((digit) => digit >= low && digit <= high);
  }

  function update() {
    const rule = field("rule").value;
    root.querySelector("[data-for=k]").hidden = rule !== "mts";
    root.querySelector("[data-for=gamma]").hidden = rule !== "dirichlet";
    field("again").disabled = rule === "base" || rule === "greedy";
    const status = root.querySelector("[role=status]");
    if (!isValid()) {
      root.querySelector(".explorer-tree").replaceChildren();
      status.textContent = "Type four digits from 1 to 9.";
      return;
    }
    const made = respond();
    draw(made);
    status.textContent = summary(made) + kept(made);
  }

  // In words

  function held(weights) {
    const { zero, bound } = readers[0].model;
    const sums = [];
    for (let sum = -bound; sum <= bound; sum++) {
      if (weights[zero + sum] >= LEAST) sums.push([sum, weights[zero + sum]]);
    }
    return sums;
  }

  function answerOf(made) {
    const { zero, bound } = readers[0].model;
    const last = made[made.length - 1].alpha;
    const token = last.indexOf(Math.max(...last));
    const sum = token - zero;
    return { sum: Math.abs(sum) <= bound ? sum : null, share: last[token] };
  }

  function summary(made) {
    const { sum, share } = answerOf(made);
    const said = sum === null ? "no sum" : signed(sum);
    const verdict = sum === rightOf(digits()) ? "which is right" : `but the smallest sum that is not negative is ${rightOf(digits())}`;
    return `The model answers ${said} with ${(100 * share).toFixed(1)} percent, ${verdict}.`;
  }

  /** That a thought was left as it was: it needs a sum. */
  function kept(made) {
    const whole = state.removed.some((tokens, place) => tokens.some((token) => made[place].weights[token] > 0));
    return whole ? " A thought needs a sum, so one that holds a single sum keeps it." : "";
  }

  // The tree

  function draw(made) {
    const box = root.querySelector(".explorer-tree");
    const focused = box.contains(document.activeElement) && document.activeElement.getAttribute("data-key");
    const width = Math.max(300, box.clientWidth);
    const total = digits().reduce((a, b) => a + b, 0);
    const x = (step) => 34 + ((width - 74) * step) / made.length;
    const y = (sum) => HEIGHT / 2 - (sum / (total || 1)) * (HEIGHT / 2 - 34);
    box.replaceChildren();
    const svg = element(box, "svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "group" });
    svg.setAttribute("aria-label", "Signed sums by step; the area of a disc is its weight");
    const sums = [[0], ...reachable(digits())];
    branches(svg, sums, x, y);
    made.forEach((step, place) => column(svg, step, place, made.length, sums[place + 1], x, y));
    if (focused) svg.querySelector(`[data-key="${focused}"]`)?.focus();
  }

  function branches(svg, sums, x, y) {
    digits().forEach((digit, step) => {
      for (const sum of sums[step]) {
        for (const next of [sum - digit, sum + digit]) {
          element(svg, "line", { x1: x(step), y1: y(sum), x2: x(step + 1), y2: y(next), class: "branch" });
        }
      }
    });
    element(svg, "circle", { cx: x(0), cy: y(0), r: 4, class: "sum" });
  }

  function column(svg, step, place, steps, sums, x, y) {
    const isAnswer = place === steps - 1;
    const title = isAnswer ? "answer" : `thought ${place + 1}`;
    element(svg, "text", { x: x(place + 1), y: 14, class: "step" }, title);
    const best = rightOf(digits());
    for (const sum of sums) {
      const goal = isAnswer && sum === best ? " goal" : "";
      element(svg, "circle", { cx: x(place + 1), cy: y(sum), r: goal ? 20 : 4, class: `sum${goal}` });
    }
    const removed = state.removed[place] || [];
    for (const [sum, weight] of held(isAnswer ? step.alpha : step.weights)) {
      disc(svg, { place, sum, weight, isAnswer, at: [x(place + 1), y(sum)], known: sums.includes(sum) });
    }
    const { zero } = readers[0].model;
    for (const token of removed.filter((one) => !step.weights[one])) {
      disc(svg, { place, sum: token - zero, weight: 0, isAnswer, at: [x(place + 1), y(token - zero)], known: true });
    }
  }

  function disc(svg, { place, sum, weight, isAnswer, at, known }) {
    const said = `${signed(sum)}, ${(100 * weight).toFixed(1)} percent`;
    const kind = weight === 0 ? "gone" : known ? "held" : "held stray";
    const group = element(svg, "g", { class: kind, "data-key": `${place}:${sum}` });
    element(group, "circle", { cx: at[0], cy: at[1], r: weight === 0 ? 6 : 2 + 14 * Math.sqrt(weight) });
    if (weight >= 0.03 || weight === 0) element(group, "text", { x: at[0] + 19, y: at[1] + 4 }, signed(sum));
    element(group, "title", {}, said);
    if (isAnswer) return;
    const action = weight === 0 ? "put back" : "take out";
    const options = { role: "button", tabindex: 0, "aria-label": `thought ${place + 1}: ${said}; ${action}` };
    for (const [key, value] of Object.entries(options)) group.setAttribute(key, value);
    group.addEventListener("click", () => toggle(place, sum));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        toggle(place, sum);
      }
    });
  }

  function toggle(place, sum) {
    const token = readers[0].model.zero + sum;
    const removed = state.removed[place];
    state.removed[place] = removed.includes(token) ? removed.filter((one) => one !== token) : [...removed, token];
    update();
  }

  function restart() {
    state.removed = [[], [], []];
    update();
  }

  // Start

  readers.forEach(({ model }, place) => field("model").add(new Option(model.label, String(place))));
  for (const name of ["digits", "model", "rule", "k", "gamma"]) field(name).addEventListener("input", restart);
  field("again").addEventListener("click", () => {
    state.seed += 1;
    restart();
  });
  field("whole").addEventListener("click", restart);
  root.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("resize", update);
  root.hidden = false;
  update();
})();
