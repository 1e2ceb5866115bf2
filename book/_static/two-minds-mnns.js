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

    /** The field of the question, and that of an input whose last thought is fed instead. */
    const numbers = (name, value) => html("input", { name, value, inputmode: "numeric", maxlength: data.length });
    const field = numbers("question", data.start);
    const other = numbers("other", "");
    for (const one of [field, other]) one.autocomplete = "off";
    other.placeholder = "its own";

    /** Digits in a field as a model reads them: null while there are none. */
    function read(typed) {
      const digits = digitsIn(typed);
      const fits = digits.length === data.length && digits.every((digit) => digit >= data.low && digit <= data.high);
      const tokens = [data.bos, ...digits.map((digit) => data.digit0 + digit)];
      return fits ? { digits, tokens, sums: reachable(digits) } : null;
    }

    /** The smallest sum that is not negative from another input's last thought on. */
    function exact(sums, last) {
      const ends = sums[data.length - 2].flatMap((sum) => [sum - last, sum + last]);
      return Math.min(...ends.filter((sum) => sum >= 0));
    }

    /** The question in the field: null while there is none. */
    function question() {
      const asked = read(field);
      if (!asked) return null;
      const { digits } = asked;
      const swapped = read(other);
      const held = data.held_out.includes([...digits].sort().join(""));
      const known = held
        ? "Neither model was trained on these digits, in any order."
        : "Both models were trained on these digits, in this order or another.";
      const last = digits[digits.length - 1];
      const fed = swapped
        ? ` Both are fed their last thought about ${listed(swapped.digits)}; with your ${last} it leads to ${exact(swapped.sums, last)}.`
        : "";
      return {
        ...asked,
        other: swapped,
        thoughts: data.length - 1,
        start: token(0),
        right: token(rightOf(digits)),
        text: `Put + or − before ${listed(digits)}. The smallest sum that is not negative wins. ${known}${fed}`,
      };
    }

    /** Where sums are drawn. */
    function frame({ digits, sums, other: swapped }, width) {
      const total = Math.max(...[sums, swapped?.sums.slice(0, -1) ?? []].flat(2));
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
      other,
      hint: `Type four digits from ${data.low} to ${data.high}.`,
      question,
      frame,
      lines,
      columnName: (step, thoughts) => ["thought 1", "answer"][[0, thoughts].indexOf(step)] ?? String(step + 1),
      nodes: ({ sums }, step) => sums[step].map(token),
      name: (id) => (sumOf(id) === null ? null : signed(sumOf(id))),
      notes: () => [],
    };
  };
})();
