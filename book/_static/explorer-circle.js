// The page `explorer`: the paper's construction without training, whose states turn on a circle.
// The states and the read-off are those of `cot2lib.theory.construction`; a test compares them.
"use strict";

(function () {
  const { element, signed, digitsIn, rightOf } = window.COT2;
  const BOUND = 36; // the largest sum of four digits
  const OMEGA = (0.99 * Math.PI) / (2 * BOUND); // angle of the sum 1
  const LENGTH = 4;
  const RADIUS = 190;
  const DEGREES = 180 / Math.PI;
  const READS = {
    sigmoid: { threshold: false, rescaled: false },
    biased: { threshold: true, rescaled: false },
    repaired: { threshold: true, rescaled: true },
  };

  /** All signed sums after each number of digits, from none on; the k-th of a step comes from the (k mod half)-th before. */
  function states(digits) {
    const steps = [[0]];
    for (const digit of digits) {
      const before = steps[steps.length - 1];
      steps.push([...before.map((sum) => sum + digit), ...before.map((sum) => sum - digit)]);
    }
    return steps;
  }

  /** What the last expert makes of the pairs of all sums at a sharpness c: weight of each, the pair written, the answer. */
  function readOff(sums, c, read) {
    const { threshold, rescaled } = READS[read];
    const length = rescaled ? 1 : 1 / sums.length; // of a pair: each digit halves it
    const bias = threshold ? length * Math.sin(OMEGA / 2) : 0;
    const sines = sums.map((sum) => length * Math.sin(OMEGA * sum));
    const gate = (sine) => 1 / (1 + Math.exp(-c * (sine + bias)));
    const passed = sums.map((sum, k) => length * Math.cos(OMEGA * sum) * gate(sines[k]));
    const zeros = sums.length + LENGTH + 2; // coordinates of a token behind the cosines
    const top = Math.max(0, ...passed);
    const powers = passed.map((score) => Math.exp(c * (score - top)));
    const total = powers.reduce((a, b) => a + b, 0) + zeros * Math.exp(-c * top);
    const weights = powers.map((power) => power / total);
    const mean = (values) => values.reduce((all, value, k) => all + weights[k] * value, 0);
    const pair = [mean(passed), mean(sines)];
    const score = (sum) => pair[0] * Math.cos(OMEGA * sum) + pair[1] * Math.sin(OMEGA * sum);
    let answer = -BOUND;
    for (let sum = -BOUND; sum <= BOUND; sum++) if (score(sum) > score(answer)) answer = sum;
    return { weights, pair, answer };
  }

  Object.assign(window.COT2, { states, readOff });

  const root = document.getElementById("circle");
  if (!root) return;
  const field = (name) => root.querySelector(`[name=${name}]`);
  let last = ""; // what is drawn: digits that were read, and all of them
  const status = root.querySelector("[role=status]");

  function update() {
    const digits = digitsIn(field("digits"));
    const step = Number(field("step").value);
    const c = Math.round(10 ** Number(field("sharpness").value));
    field("sharpness").setAttribute("aria-valuetext", String(c));
    root.querySelector(".explorer-value").textContent = c.toLocaleString("en");
    const box = root.querySelector(".explorer-tree");
    if (digits.length !== LENGTH || digits.includes(0)) {
      box.replaceChildren();
      status.textContent = "Type four digits from 1 to 9.";
      return;
    }
    const steps = states(digits);
    const sums = steps[Math.min(step, LENGTH)];
    const read = step > LENGTH ? readOff(sums, c, field("read").value) : null;
    for (const name of ["sharpness", "read"]) field(name).disabled = !read;
    status.textContent = read ? answered(read, digits) : held(sums, step);
    field("step").setAttribute("aria-valuetext", read ? "the answer" : counted(step));
    const shown = `${step} ${digits}`;
    draw(box, sums, read || shown === last ? null : steps[Math.max(0, step - 1)], read);
    last = shown;
  }

  // In words

  const counted = (step) => (step === 1 ? "1 digit" : `${step} digits`);

  function held(sums, step) {
    const different = [...new Set(sums)].sort((a, b) => a - b).map(signed);
    return step ? `After ${counted(step)} the token holds ${different.join(", ")}.` : "At first the token holds 0.";
  }

  function answered({ answer }, digits) {
    const best = rightOf(digits);
    const verdict = answer === best ? "which is right" : `but the smallest sum that is not negative is ${best}`;
    return `The read-off answers ${signed(answer)}, ${verdict}.`;
  }

  // The circle

  /** Discs turn from the sums before, where these are given. */
  function draw(box, sums, before, read) {
    box.replaceChildren();
    const height = 2 * RADIUS + 60;
    const frame = { width: RADIUS + 90, height, viewBox: `-20 ${-height / 2} ${RADIUS + 90} ${height}`, role: "img" };
    const svg = element(box, "svg", frame);
    svg.setAttribute("aria-label", `Sums as angles on a half circle. ${status.textContent}`);
    const arc = `M 0 ${RADIUS} A ${RADIUS} ${RADIUS} 0 0 0 0 ${-RADIUS}`;
    element(svg, "path", { d: arc, class: "sum" });
    element(svg, "line", { x1: 0, y1: 0, x2: RADIUS, y2: 0, class: "branch" });
    const counts = new Map();
    sums.forEach((sum) => counts.set(sum, (counts.get(sum) || 0) + 1));
    sums.forEach((sum, k) => {
      const weight = read ? read.weights[k] * counts.get(sum) : counts.get(sum) / sums.length;
      const from = before ? before[k % before.length] : sum;
      disc(svg, from, sum, 2 + 12 * Math.sqrt(weight));
    });
    for (const sum of counts.keys()) label(svg, sum);
    if (read) arrow(svg, read.answer);
  }

  function disc(svg, from, sum, r) {
    const turned = element(svg, "g", { class: "held turning" });
    element(turned, "circle", { cx: RADIUS, cy: 0, r });
    turned.style.transform = `rotate(${-from * OMEGA * DEGREES}deg)`;
    turned.getBoundingClientRect(); // so that the turn to come is seen
    turned.style.transform = `rotate(${-sum * OMEGA * DEGREES}deg)`;
  }

  function label(svg, sum) {
    const [x, y] = [Math.cos(OMEGA * sum), -Math.sin(OMEGA * sum)].map((part) => part * (RADIUS + 22));
    element(svg, "text", { x, y: y + 4, class: "step" }, signed(sum));
  }

  function arrow(svg, answer) {
    const [x, y] = [Math.cos(OMEGA * answer), -Math.sin(OMEGA * answer)].map((part) => part * (RADIUS - 18));
    element(svg, "line", { x1: 0, y1: 0, x2: x, y2: y, class: "goal" });
  }

  root.querySelector("form").addEventListener("input", update);
  root.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  root.hidden = false;
  update();
})();
