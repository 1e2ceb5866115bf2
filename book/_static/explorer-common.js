// What the drawings that run in the browser share.
"use strict";

window.COT2 = Object.assign(window.COT2 || {}, (function () {
  const filled = (made, attributes) => {
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  /** Adds an SVG element. */
  function element(parent, tag, attributes, text) {
    const made = filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes);
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  }

  /** An HTML element with children or text. */
  function html(tag, attributes, ...children) {
    const made = filled(document.createElement(tag), attributes);
    made.append(...children);
    return made;
  }

  /** A sum as text. */
  const signed = (sum) => (sum < 0 ? `−${-sum}` : String(sum));

  /** A share as text. */
  const percent = (share) => `${(100 * share).toFixed(1)} percent`;

  /** Words in a row: a, b and c. */
  const listed = (words) =>
    words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;

  /** One of so many thoughts, or the answer after them. */
  const stepName = (step, thoughts) => (step < thoughts ? `thought ${step + 1}` : "answer");

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

  return { element, html, signed, percent, listed, stepName, digitsIn, reachable, rightOf, tasks: {} };
})());
