// What the explorer's scripts compute, without a page: node explorer.js FOLDER < cases > results, both JSON.
"use strict";
const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const { runInThisContext } = require("node:vm");

const element = () => ({ append() {}, setAttribute(name, value) { this[name] = value; } });
globalThis.window = globalThis;
globalThis.document = { createElement: element, getElementById: () => null };
const scripts = ["common", "model", "rules", "circle"].map((name) => `explorer-${name}`);
for (const name of [...scripts, "two-minds-mnns", "two-minds-data-mnns", "two-minds-data-prosqa"]) {
  runInThisContext(readFileSync(join(process.argv[2], `${name}.js`), "utf8"), name);
}
const { Reader, respond, states, readOff, tasks } = window.COT2;
const models = (task) => window.COT2_DATA[task].models.map((model) => new Reader(model));
const likeliest = (logits) => logits.indexOf(Math.max(...logits));

const compute = {
  /** Logits at every step, (model, question, step, vocab); the first thought may lack its likeliest token. */
  thoughts: ({ task, questions, rule, lacking }) =>
    models(task).map((model) =>
      questions.map((question) => {
        const asked = model.asked(question);
        const removed = lacking ? [[likeliest(asked.logits)]] : [];
        return respond(asked, question.thoughts, rule, { removed }).map((step) => step.logits);
      }),
    ),
  /** Logits of the answer where each question is fed the last thought of the one after it. */
  exchanged: ({ questions }) =>
    models("mnns").map((model) => {
      const lasts = questions.map((one) => respond(model.asked(one), 3, "base")[2].weights);
      return questions.map((one, place) => {
        const given = [null, null, lasts[(place + 1) % lasts.length]];
        return respond(model.asked(one), 3, "base", { given })[3].logits;
      });
    }),
  /** Share and sampled weight of the likeliest first token, by seed. */
  sampled: ({ question, rule, k, gamma, draws }) => {
    const asked = models("mnns")[0].asked(question);
    return Array.from({ length: draws }, (_, seed) => {
      const [{ alpha, weights }] = respond(asked, 1, rule, { k, gamma, seed: seed * 7919 });
      return [alpha[likeliest(alpha)], weights[likeliest(alpha)]];
    });
  },
  /** Whether digits are marked as held out. */
  marked: ({ inputs }) => {
    const task = tasks.mnns(window.COT2_DATA.mnns);
    return inputs.map((digits) => {
      task.field.value = digits;
      return task.question().text.includes("Neither model was trained on these digits");
    });
  },
  /** The pair that the construction's last expert writes, and its answer. */
  circle: ({ inputs, c, read }) =>
    inputs.map((digits) => {
      const { pair, answer } = readOff(states(digits)[4], c, read);
      return [...pair, answer];
    }),
};
const cases = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(cases.map(([what, given]) => compute[what](given))));
