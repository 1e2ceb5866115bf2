// What the drawings of the page `explorer` share.
"use strict";

window.COT2 = (function () {
  /** Adds an SVG element. */
  function element(parent, tag, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  }

  /** A sum as text. */
  const signed = (sum) => (sum < 0 ? `−${-sum}` : String(sum));

  /** The digits in a text field. */
  const digitsIn = (field) => Array.from(field.value.replace(/[^0-9]/g, ""), Number);

  /** Signed sums of the first digits, by step: what a full search holds. */
  function reachable(digits) {
    let sums = new Set([0]);
    return digits.map((digit) => {
      sums = new Set([...sums].flatMap((sum) => [sum - digit, sum + digit]));
      return [...sums].sort((a, b) => a - b);
    });
  }

  /** The smallest signed sum of all digits that is not negative. */
  const rightOf = (digits) => Math.min(...reachable(digits).pop().filter((sum) => sum >= 0));

  return { element, signed, digitsIn, reachable, rightOf };
})();
