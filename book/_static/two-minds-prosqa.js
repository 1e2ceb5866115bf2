// The task ProsQA in the component `two-minds`: of two nodes of a graph, which one is reached from the root?
"use strict";

(function () {
  const { html } = window.COT2;
  const ROW = 62; // height: two rings and the words between them
  const TOP = 30; // room above
  const BOTTOM = 42; // room below, with words

  window.COT2.tasks.prosqa = (data) => {
    const field = html("select", { name: "question" });
    data.questions.forEach((_, place) => field.add(new Option(`${place + 1} of ${data.questions.length}`, place)));
    field.value = data.start;
    let names = new Map(); // letters of the nodes of the question

    function question() {
      const asked = data.questions[Number(field.value)];
      names = new Map(asked.nodes.map(([id, letter]) => [id, letter]));
      const [one, other] = asked.options.map((id) => names.get(id));
      const text = `Start at ${names.get(asked.root)} and follow the arrows. Do you reach ${one} or ${other}?`;
      const known = "Neither model was trained on this graph.";
      return { ...asked, start: asked.root, text: `${text} ${known}` };
    }

    function frame({ nodes }, width) {
      const at = new Map(nodes.map(([id, , x, y]) => [id, [x * width, TOP - ROW * y]]));
      const height = TOP + BOTTOM + ROW * Math.max(...nodes.map(([, , , y]) => -y));
      return { width, height, place: (id) => at.get(id) || null };
    }

    /** Words at the nodes that a question names, and at the one that is answered, if the answer is shown. */
    function notes({ root, options, right }, answer) {
      const other = options.find((id) => id !== right);
      const said = new Map([[root, "start"], [right, "right answer"], [other, "wrong answer"]]);
      const answered = { [root]: "start, answered", [right]: "answered right", [other]: "answered wrong" };
      if (answer !== null) said.set(answer, answered[answer] ?? "answered");
      return [...said];
    }

    return {
      thing: "node",
      allAtOnce: false,
      label: "Question",
      field,
      question,
      frame,
      lines: ({ edges }) => edges.map(([from, to]) => ({ from, to, arrow: true })),
      nodes: ({ nodes }) => nodes.map(([id]) => id),
      name: (id) => names.get(id) || null,
      notes,
    };
  };
})();
