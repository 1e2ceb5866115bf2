// The component `two-minds`: two models answer one question side by side. A task (`two-minds-mnns.js`,
// `two-minds-prosqa.js`) says what is asked and where nodes are drawn; `explorer-rules.js` makes the thoughts.
"use strict";

(function () {
  const { html, listed, percent, stepName, picture, held, respond, Reader, tasks } = window.COT2;
  const RULES = [
    ["own", "as each was trained"],
    ["base", "the whole distribution (base)"],
    ["greedy", "the likeliest token"],
    ["sample", "one sampled token"],
    ["mts", "mean of K sampled tokens (MTS)"],
    ["dirichlet", "Dirichlet"],
  ];
  const NAMED = 6; // nodes of a thought that are named

  const capital = (text) => text[0].toUpperCase() + text.slice(1);

  /** A labelled control. */
  const labelled = (text, control) => html("label", {}, text, control);

  class TwoMinds {
    constructor(root, data) {
      this.root = root;
      this.data = data;
      this.task = tasks[root.dataset.task](data);
      this.minds = data.models.map((model) => ({ model, reader: new Reader(model), radii: new Map() }));
      this.step = 0;
      this.build();
      this.ask(1);
    }

    // Controls

    build() {
      this.rule = html("select", { name: "rule" });
      RULES.forEach(([value, text]) => this.rule.add(new Option(text, value)));
      this.k = html("input", { name: "k", type: "number", min: 1, max: 64, value: 3 });
      this.gamma = html("input", { name: "gamma", type: "number", min: 1, max: 200, value: 20 });
      this.again = html("button", { type: "button", name: "again" }, "Draw again");
      this.whole = html("button", { type: "button", name: "whole" }, `Put all ${this.task.thing}s back`);
      this.form = html(
        "form",
        {},
        labelled(this.task.label, this.task.field),
        ...(this.task.other ? [labelled("Last thought about", this.task.other)] : []),
        labelled("Thoughts", this.rule),
        labelled("K", this.k),
        labelled("γ", this.gamma),
        this.again,
        this.whole,
      );
      this.asked = html("p", { class: "asked" });
      this.status = html("p", { role: "status", "aria-live": "polite", tabindex: -1 });
      this.minds.forEach((mind) => this.buildMind(mind));
      const both = html("div", { class: "minds" }, ...this.minds.map(({ section }) => section));
      const parts = this.task.allAtOnce ? [both] : [this.buildSteps(), both];
      this.root.append(this.form, this.asked, this.status, ...parts, html("p", { class: "about" }, this.data.about));
      this.listen();
    }

    buildMind(mind) {
      const { name, label } = mind.model;
      mind.heading = html("p", { class: "mind-name" });
      mind.box = html("div", { class: "explorer-tree" });
      mind.told = html("p", { class: "mind-told", "aria-live": "polite" });
      mind.section = html("div", { class: "mind", role: "group", "aria-label": label, "data-mind": name });
      mind.section.append(mind.heading, mind.box, mind.told);
    }

    buildSteps() {
      this.back = html("button", { type: "button", name: "back" }, "‹ Back");
      this.next = html("button", { type: "button", name: "next" }, "Next ›");
      this.place = html("span", { class: "mind-step" });
      this.back.addEventListener("click", () => this.go(this.step - 1));
      this.next.addEventListener("click", () => this.go(this.step + 1));
      const hint = html("span", { class: "about" }, "or the arrow keys");
      return html("div", { class: "steps", role: "group", "aria-label": "Steps" }, this.back, this.place, this.next, hint);
    }

    listen() {
      for (const control of [this.rule, this.k, this.gamma]) control.addEventListener("input", () => this.ask(1));
      for (const field of [this.task.field, this.task.other].filter(Boolean)) {
        field.addEventListener("input", () => {
          this.step = 0;
          this.minds.forEach(({ radii }) => radii.clear());
          this.ask(1);
        });
      }
      this.again.addEventListener("click", () => this.ask(this.seed + 1));
      this.whole.addEventListener("click", () => this.restore());
      this.form.addEventListener("submit", (event) => event.preventDefault());
      window.addEventListener("resize", () => this.draw());
      if (!this.task.allAtOnce) this.root.addEventListener("keydown", (event) => this.key(event));
    }

    key(event) {
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!move || event.target.matches("input, select") || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.go(this.step + move);
    }

    /** Show another step. */
    go(step) {
      if (!this.question || step < 0 || step > this.question.thoughts) return;
      this.step = step;
      this.draw();
    }

    // Thoughts

    /** A new question, another rule or other draws; the first draws of a question and a rule are always the same. */
    ask(seed) {
      this.seed = seed;
      const rule = this.rule.value;
      this.k.parentElement.hidden = rule !== "mts";
      this.gamma.parentElement.hidden = rule !== "dirichlet";
      this.again.disabled = !["sample", "mts", "dirichlet"].includes(rule);
      this.question = this.task.question();
      if (this.question) {
        for (const mind of this.minds) mind.asked = mind.reader.asked(this.question);
      }
      this.restore();
    }

    /** All that was taken out goes back. */
    restore() {
      const { thoughts = 0 } = this.question || {};
      for (const mind of this.minds) mind.removed = Array.from({ length: thoughts }, () => []);
      this.think();
    }

    think() {
      this.whole.disabled = !this.minds.some(({ removed }) => removed.flat().length);
      if (this.question) for (const mind of this.minds) mind.made = this.thoughtsOf(mind);
      this.asked.textContent = this.question ? this.question.text : "";
      this.status.textContent = this.question ? this.verdict() : this.task.hint;
      this.draw();
    }

    thoughtsOf({ model, reader, asked, removed }) {
      const { thoughts, other } = this.question;
      const rule = this.rule.value === "own" ? model.rule : this.rule.value;
      const options = { seed: this.seed, k: number(this.k), gamma: number(this.gamma) };
      const given = [];
      if (other) {
        const last = thoughts - 1; // of the other input, without the tokens that are taken out of it here
        const gone = removed.map((tokens, step) => (step === last ? tokens : []));
        given[last] = respond(reader.asked(other), thoughts, rule, { ...options, removed: gone })[last].weights;
      }
      return respond(asked, thoughts, rule, { ...options, removed, given });
    }

    toggle(mind, step, id) {
      const gone = mind.removed[step];
      mind.removed[step] = gone.includes(id) ? gone.filter((one) => one !== id) : [...gone, id];
      this.think();
    }

    // In words

    answerOf({ made }) {
      const { alpha } = made[made.length - 1];
      const id = alpha.indexOf(Math.max(...alpha));
      const name = this.task.name(id) ?? `no ${this.task.thing}`;
      return { id, name, share: alpha[id], isRight: id === this.question.right };
    }

    /** What both answer. */
    verdict() {
      const answers = this.minds.map((mind) => [mind.model.label, this.answerOf(mind)]);
      const said = answers.map(
        ([label, { name, isRight }]) => `${label} answers ${name}, which is ${isRight ? "right" : "wrong"}`,
      );
      const right = `The right answer is ${this.task.name(this.question.right)}.`;
      const known = answers.some(([, { isRight }]) => isRight) ? "" : ` ${right}`;
      return `${capital(said.join("; "))}.${known}`;
    }

    /** What the thought of the step that is shown lies on; or how many nodes each thought has. */
    told({ made, removed }) {
      const { thing, allAtOnce } = this.task;
      const gone = removed.flat().length ? ` ${removed.flat().length} taken out.` : "";
      if (!allAtOnce) return `${this.nodesOf(made)}${gone}`;
      const counts = made.slice(0, -1).map((_, step) => String(held(this.task, made, step).length));
      if (counts.every((count) => count === "1")) return `Each of its thoughts lies on one ${thing}.${gone}`;
      return `Its thoughts lie on ${listed(counts)} ${thing}s.${gone}`;
    }

    nodesOf(made) {
      const found = held(this.task, made, this.step);
      const named = found.slice(0, NAMED).map(([id, share]) => `${this.task.name(id)} ${percent(share)}`);
      const more = found.length > NAMED ? [`${found.length - NAMED} more`] : [];
      const nothing = `no ${this.task.thing} of the graph`;
      return `${this.stepWords()}: ${listed([...named, ...more]) || nothing}.`;
    }

    stepWords() {
      const { thoughts } = this.question;
      const name = stepName(this.step, thoughts);
      return this.step < thoughts ? `After ${name}` : capital(name);
    }

    // Drawing

    draw() {
      const focused = this.root.contains(document.activeElement);
      for (const mind of this.minds) {
        if (this.question) this.drawMind(mind);
        else for (const part of [mind.box, mind.told, mind.heading]) part.replaceChildren();
      }
      if (this.place && this.question) this.drawSteps();
      if (focused && !this.root.contains(document.activeElement)) this.status.focus({ preventScroll: true });
    }

    drawMind(mind) {
      const { task, question, step } = this;
      const { made, removed, radii, model } = mind;
      const { id, name, share, isRight } = this.answerOf(mind);
      const answer = `Answer ${name} (${percent(share)}), ${isRight ? "✓ right" : "✗ wrong"}`;
      mind.heading.replaceChildren(html("strong", {}, capital(model.label)), html("br", {}), answer);
      mind.told.textContent = this.told(mind);
      const toggle = (at, id) => this.toggle(mind, at, id);
      const isShown = !task.allAtOnce && step === question.thoughts && task.name(id) !== null;
      picture(mind.box, { task, question, made, removed, step, answer: isShown ? id : null, radii, toggle });
    }

    drawSteps() {
      const { thoughts } = this.question;
      const of = this.step < thoughts ? ` of ${thoughts}` : "";
      this.place.textContent = `${this.stepWords()}${of}`;
      this.back.disabled = this.step === 0;
      this.next.disabled = this.step === thoughts;
    }
  }

  /** What a number field holds, within its limits; its least value while it is empty. */
  function number({ value, min, max }) {
    return Math.min(Math.max(Number(value) || 0, Number(min)), Number(max));
  }

  window.COT2.twoMinds = (root, data) => new TwoMinds(root, data);
})();
