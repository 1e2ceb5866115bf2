// The task MNNS in the component `two-minds`: digits get signs, so that their sum is the smallest that is not negative.
"use strict";

(function () {
  const { html, signed, listed, digitsIn, reachable, rightOf } = window.COT2;
  const HEIGHT = 400;
  const EDGE = 34; // room above and below
  const LEFT = 14;
  const RIGHT = 52; // room for the label of the last sum

  window.COT2.tasks.mnns = (data) => {
    const token = (sum) => data.zero + sum;
    const sumOf = (id) => (Math.abs(id - data.zero) <= data.bound ? id - data.zero : null);

    /** The field, and the question in it: null while there is none. */
    const field = html("input", { name: "question", value: data.start, inputmode: "numeric", maxlength: data.length });
    field.autocomplete = "off";

    function question() {
      const digits = digitsIn(field);
      const fits = digits.length === data.length && digits.every((digit) => digit >= data.low && digit <= data.high);
      if (!fits) return null;
      const held = data.held_out.includes([...digits].sort().join(""));
      const known = held
        ? "Neither model was trained on these digits, in any order."
        : "Both models were trained on these digits, in this order or another.";
      return {
        tokens: [data.bos, ...digits.map((digit) => data.digit0 + digit)],
        thoughts: data.length - 1,
        start: token(0),
        right: token(rightOf(digits)),
        digits,
        sums: reachable(digits),
        heldOut: held,
        text: `Put + or − before ${listed(digits)}. The smallest sum that is not negative wins. ${known}`,
      };
    }

    /** Where sums are drawn. */
    function frame({ digits, sums }, width) {
      const total = digits.reduce((a, b) => a + b, 0);
      const step = (width - LEFT - RIGHT) / digits.length;
      const unit = (HEIGHT / 2 - EDGE) / total;
      const gaps = sums.flatMap((column) => column.slice(1).map((sum, k) => sum - column[k]));
      const place = (id, at) => [LEFT + step * (at + 1), HEIGHT / 2 - unit * sumOf(id)];
      return { width, height: HEIGHT, place, apart: unit * Math.min(...gaps) };
    }

    function lines({ digits, sums }) {
      return digits.flatMap((digit, step) =>
        [[0], ...sums][step].flatMap((sum) =>
          [sum - digit, sum + digit].map((next) => ({ from: token(sum), to: token(next), step })),
        ),
      );
    }

    return {
      thing: "sum",
      allAtOnce: true, // every step has a column of its own
      label: "Digits",
      field,
      hint: `Type four digits from ${data.low} to ${data.high}.`,
      question,
      frame,
      lines,
      columnName: (step, thoughts) => ["thought 1", "answer"][[0, thoughts].indexOf(step)] ?? String(step + 1),
      nodes: ({ sums }, step) => sums[step].map(token),
      isState: (id) => sumOf(id) !== null,
      name: (id) => (sumOf(id) === null ? null : signed(sumOf(id))),
      notes: () => [],
    };
  };
})();
