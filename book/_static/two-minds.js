// Loader of `<div class="two-minds" data-task="mnns">`, where two trained models answer one question side by side.
// A page gets this script alone. The rest comes when a reader asks for it, in script tags: a page that is opened from
// a folder may load these.
"use strict";

(function () {
  const HERE = document.currentScript.src.replace(/[^/]*$/, "");
  const CODE = ["explorer-common", "explorer-model", "explorer-rules", "two-minds-picture", "two-minds-view"];
  const BUTTON = "Let it think";
  const TOLD = "Two models answer one question. Press a disc to take a state out of a thought.";
  const loaded = {}; // by name, a promise

  function load(name) {
    loaded[name] ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.onload = resolve;
      script.onerror = () => {
        delete loaded[name];
        script.remove();
        reject(new Error(name));
      };
      script.async = false; // in the order in which they are asked for
      script.src = `${HERE}${name}.js`;
      document.head.append(script);
    });
    return loaded[name];
  }

  async function start(root, button, status) {
    const { task } = root.dataset;
    button.disabled = true;
    status.textContent = "The models are on their way.";
    try {
      await Promise.all([...CODE, `two-minds-${task}`, `two-minds-data-${task}`].map(load));
    } catch (error) {
      status.textContent = "The models could not be loaded.";
      button.disabled = false;
      return;
    }
    button.parentElement.remove();
    window.COT2.twoMinds(root, window.COT2_DATA[task]);
  }

  function prepare(root) {
    if (root.dataset.ready) return;
    root.dataset.ready = "true";
    root.classList.add("explorer");
    const box = document.createElement("div");
    const button = document.createElement("button");
    const told = document.createElement("span");
    const status = document.createElement("p");
    box.className = "two-minds-box";
    told.textContent = TOLD;
    button.type = "button";
    button.className = "two-minds-start";
    button.textContent = BUTTON;
    status.setAttribute("role", "status");
    button.addEventListener("click", () => start(root, button, status));
    box.append(button, told, status);
    root.append(box);
  }

  const all = () => document.querySelectorAll(".two-minds").forEach(prepare);
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", all);
  else all();
})();
