// Loader of `<div class="two-minds" data-task="mnns">`, where two trained models answer one question side by side.
// A page gets this script alone. The rest comes when the place is near the window, in script tags: a page that is
// opened from a folder may load these.
"use strict";

(function () {
  const HERE = document.currentScript.src.replace(/[^/]*$/, "");
  const CODE = ["explorer-common", "explorer-model", "explorer-rules", "two-minds-picture", "two-minds-view"];
  const loaded = {}; // by name, a promise

  function load(name) {
    loaded[name] ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.onload = resolve;
      script.onerror = () => reject(new Error(name));
      script.async = false; // in the order in which they are asked for
      script.src = `${HERE}${name}.js`;
      document.head.append(script);
    });
    return loaded[name];
  }

  async function start(root) {
    const { task } = root.dataset;
    root.classList.add("explorer");
    try {
      await Promise.all([...CODE, `two-minds-${task}`, `two-minds-data-${task}`].map(load));
    } catch (error) {
      root.textContent = `The models could not be loaded (${error.message}).`;
      return;
    }
    window.COT2.twoMinds(root, window.COT2_DATA[task]);
  }

  const near = new IntersectionObserver(
    (seen) => {
      for (const { target } of seen.filter((one) => one.isIntersecting)) {
        near.unobserve(target);
        if (!target.dataset.started) start(target);
        target.dataset.started = "true";
      }
    },
    { rootMargin: "100%" }, // a window ahead
  );
  const all = () => document.querySelectorAll(".two-minds").forEach((root) => near.observe(root));
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", all);
  else all();
})();
