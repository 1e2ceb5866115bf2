// The drawing of one mind in the component `two-minds`: nodes and lines of a question, and a disc for each share of a
// thought. Discs are buttons that take a node out of the thought, or put it back.
"use strict";

(function () {
  const { element, percent, stepName } = window.COT2;
  const LEAST = 0.005; // share of a thought that is drawn
  const LIT = 0.02; // share at both ends of a line that counts as walked
  const LABELLED = 0.03;
  const RING = 20;
  const AROUND = 22.5; // a ring around a ring
  const NODE = 9; // radius of a node with its name inside
  const GONE = 7;
  const LINE = 12; // height of a note
  const SMALL = 3; // radius of the smallest disc
  const LARGE = 16; // and of the largest one

  /** The radius of a disc; where nodes lie close (`apart`), two of half a thought leave each other's middle free. */
  function radius(share, apart = Infinity) {
    const most = Math.min(LARGE, SMALL + Math.SQRT2 * (apart - 1 - SMALL));
    return SMALL + (most - SMALL) * Math.sqrt(share);
  }

  /** Share of a node in a thought, or in the answer. */
  const shareOf = (made, step, id) => made[step][step === made.length - 1 ? "alpha" : "weights"][id];

  /** States that a thought lies on, the largest share first. */
  function held(task, made, step) {
    const found = made[step].alpha.map((_, id) => [id, shareOf(made, step, id)]);
    return found.filter(([id, share]) => share >= LEAST && task.name(id) !== null).sort((a, b) => b[1] - a[1]);
  }

  /**
   * Draw one mind.
   *
   * @param box where
   * @param scene task, question, made (its steps), removed (tokens by step), step (the one that is shown), answer (the
   *   node that is answered, null while none is shown), radii (of discs as they were drawn before, by key) and toggle
   *   (what a disc's click does)
   */
  function picture(box, scene) {
    const focused = box.contains(document.activeElement) && document.activeElement.getAttribute("data-key");
    const { task, question, made, step, answer } = scene;
    const frame = task.frame(question, Math.max(260, box.clientWidth));
    const { width, height } = frame;
    const svg = element(document.createElement("div"), "svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    svg.setAttribute("role", "group");
    const ringed = answer === null ? "" : `; a ring in its colour is around its answer, ${task.name(answer)}`;
    svg.setAttribute("aria-label", `${task.thing}s; the area of a disc is its share${ringed}`);
    const shown = task.allAtOnce ? made.map((_, at) => at) : [step];
    lines(svg, scene, frame);
    if (task.allAtOnce) dot(svg, frame.place(question.start, -1), 4);
    const grown = shown.flatMap((at) => column(svg, scene, frame, at));
    notes(svg, scene, frame);
    box.replaceChildren(svg);
    grow(svg, grown, scene.radii);
    if (focused) svg.querySelector(`[data-key="${focused}"]`)?.focus();
  }

  /** Discs grow from what they were. */
  function grow(svg, grown, radii) {
    svg.getBoundingClientRect(); // so that the growth is seen
    radii.clear();
    for (const [key, circle, r] of grown) {
      circle.setAttribute("r", r);
      radii.set(key, r);
    }
  }

  // Lines

  function lines(svg, scene, frame) {
    for (const line of scene.task.lines(scene.question)) {
      const [x1, y1] = frame.place(line.from, (line.step ?? 0) - 1);
      const [x2, y2] = frame.place(line.to, line.step ?? 0);
      const kind = `branch ${walked(scene, line)}`;
      if (line.arrow) arrow(svg, [x1, y1], [x2, y2], kind);
      else element(svg, "line", { x1, y1, x2, y2, class: kind });
    }
  }

  /** Whether thoughts go along a line: in the step that is shown, before it, or not at all. */
  function walked({ task, question, made, step }, { from, to, step: own }) {
    const holds = (at, id) => (at < 0 ? id === question.start : shareOf(made, at, id) >= LIT);
    const along = (at) => holds(at - 1, from) && holds(at, to);
    if (task.allAtOnce) return along(own) ? "lit" : "";
    const last = Math.min(step, made.length - 2); // the answer is no move
    if (step === last && along(step)) return "lit";
    return made.slice(0, last + 1).some((_, at) => along(at)) ? "passed" : "";
  }

  /** A line with a head, which ends before the disc of its node. */
  function arrow(svg, [x1, y1], [x2, y2], kind) {
    const length = Math.hypot(x2 - x1, y2 - y1);
    const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
    const [tipX, tipY] = [x2 - 12 * dx, y2 - 12 * dy];
    const [backX, backY] = [tipX - 7 * dx, tipY - 7 * dy];
    element(svg, "line", { x1: x1 + 10 * dx, y1: y1 + 10 * dy, x2: backX, y2: backY, class: kind });
    const corners = [[tipX, tipY], [backX - 3.5 * dy, backY + 3.5 * dx], [backX + 3.5 * dy, backY - 3.5 * dx]];
    element(svg, "polygon", { points: corners.map((corner) => corner.join()).join(" "), class: kind });
  }

  // Nodes

  function dot(svg, [cx, cy], r, kind = "sum") {
    element(svg, "circle", { cx, cy, r, class: kind });
  }

  /** Nodes and discs of a step; returns discs that grow, as [key, circle, radius]. */
  function column(svg, scene, frame, at) {
    const { task, question, made, removed, answer } = scene;
    const nodes = task.nodes(question, at);
    const isAnswer = at === made.length - 1;
    if (task.allAtOnce) {
      const [x] = frame.place(question.start, at);
      element(svg, "text", { x, y: 14, class: "step" }, task.columnName(at, made.length - 1));
    }
    for (const id of nodes) dot(svg, frame.place(id, at), task.allAtOnce ? 4 : NODE, "sum");
    if (isAnswer || !task.allAtOnce) dot(svg, frame.place(question.right, at), RING, "sum goal");
    if (answer !== null) dot(svg, frame.place(answer, at), answer === question.right ? AROUND : RING, "sum answered");
    const gone = isAnswer ? [] : removed[at];
    const shares = new Map([...held(task, made, at), ...gone.map((id) => [id, 0])]);
    const grown = [];
    for (const [id, share] of shares) {
      const spot = frame.place(id, at);
      const disc = { id, share, at, spot, isAnswer, known: nodes.includes(id) };
      if (spot) grown.push(button(svg, scene, disc, frame.apart));
    }
    if (!task.allAtOnce) {
      for (const id of nodes) letter(svg, frame.place(id, at), task.name(id), !isFaint(shares.get(id) ?? 0, task));
    }
    return grown;
  }

  /** Whether a disc is too small to carry the name inside its node. */
  const isFaint = (share, task) => !task.allAtOnce && radius(share) <= NODE - 3;

  /** A node's name inside it; in the colour of the ground where a disc carries it. */
  function letter(svg, [x, y], text, carried) {
    element(svg, "text", { x, y: y + 4.5, class: `step letter${carried ? " on" : ""}` }, text);
  }

  /** A disc; returns what `grow` needs. */
  function button(svg, scene, { id, share, at, spot, isAnswer, known }, apart) {
    const { task, made, radii, toggle } = scene;
    const said = `${task.name(id)}, ${percent(share)}`;
    const kind = share === 0 ? "gone" : `held${known ? "" : " stray"}${isFaint(share, task) ? " faint" : ""}`;
    const key = task.allAtOnce ? `${at}:${id}` : String(id);
    const group = element(svg, "g", { class: kind, "data-key": key, "data-step": at });
    const [cx, cy] = spot;
    const reach = task.allAtOnce ? NODE : NODE + 5; // sums may lie close to each other
    element(group, "circle", { cx, cy, r: reach, class: "target" }); // so that small discs are easily hit
    const circle = element(group, "circle", { cx, cy, r: radii.get(key) ?? 0, class: "disc" });
    if (task.allAtOnce && (share >= LABELLED || share === 0)) {
      element(group, "text", { x: cx + (isAnswer ? RING + 4 : RING - 1), y: cy + 4 }, task.name(id));
    }
    element(group, "title", {}, said);
    if (!isAnswer) asButton(group, `${stepName(at, made.length - 1)}: ${said}`, share, () => toggle(at, id));
    return [key, circle, share === 0 ? (task.allAtOnce ? GONE : NODE + 3) : radius(share, apart)];
  }

  function asButton(group, said, share, act) {
    const label = `${said}; ${share === 0 ? "put back" : "take out"}`;
    for (const [key, value] of Object.entries({ role: "button", tabindex: 0, "aria-label": label })) {
      group.setAttribute(key, value);
    }
    group.addEventListener("click", act);
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      act();
    });
  }

  /** Words below their nodes, or above where others stand there already; those of the start above it. */
  function notes(svg, { task, question, step, answer }, frame) {
    const taken = [];
    for (const [id, text] of task.notes(question, answer)) {
      const [x, y] = frame.place(id, step);
      const half = 3.2 * text.length; // about half its width
      const middle = Math.min(Math.max(x, half), frame.width - half);
      const ring = id === question.right ? (id === answer ? AROUND : RING) : id === answer && RING;
      const edge = ring || NODE;
      const spots = id === question.start ? [y - edge - 8, y + edge + 12] : [y + edge + 12, y - edge - 8];
      const free = (spot) =>
        taken.every(([at, of, wide]) => Math.abs(at - middle) > half + wide || Math.abs(of - spot) > LINE);
      const spot = spots.find(free) ?? spots[0];
      taken.push([middle, spot, half]);
      element(svg, "text", { x: middle, y: spot, class: "step note" }, text);
    }
  }

  Object.assign(window.COT2, { picture, held });
})();
