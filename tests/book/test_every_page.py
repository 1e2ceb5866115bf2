"""Every built page on a phone and on a screen: accessibility, layout, and no jumps while it loads; `make thorough`."""

from pathlib import Path

import pytest
from chromium import BROWSER, MISSING, browser

ROOT = Path(__file__).parents[2]
AXE = ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
SCREENS = [(360, "dark"), (1400, "light")]
SHIFT = 0.25  # above it the web vitals call a page's layout shift poor
LOOK = """(async () => {
  await window.MathJax?.startup?.promise;
  await new Promise((go) => setTimeout(go, 500));  // in which a page may still move
  const all = (selector) => [...document.querySelectorAll(selector)];
  const named = (one) => one && `${one.nodeName}.${one.className}: ${one.textContent.slice(0, 40)}`;
  const scrolls = (one) => {  // or a box around it
    for (let box = one.parentElement; box && box !== document.body; box = box.parentElement) {
      if (!["visible", "clip"].includes(getComputedStyle(box).overflowX)) return true;
    }
  };
  const violations = async () => {
    const { violations: found } = await axe.run(document, { resultTypes: ["violations"] });
    return found.filter((rule) => rule.impact !== "minor")
      .map((rule) => [rule.id, ...rule.nodes.map((node) => node.target.join(" "))]);
  };
  const page = document.scrollingElement;
  const moved = [];
  const watcher = new PerformanceObserver((list) => moved.push(...list.getEntries()));
  watcher.observe({ type: "layout-shift", buffered: true });
  await new Promise((go) => setTimeout(go, 100));
  const seen = { shift: moved.reduce((sum, one) => sum + one.value, 0) };
  seen.moved = seen.shift <= SHIFT ? [] : moved.flatMap((one) => one.sources.map(({ node }) => named(node)));
  seen.wider = all("body *").filter((one) => page.scrollWidth > page.clientWidth
    && one.getBoundingClientRect().right > page.clientWidth + 1 && !scrolls(one)).map(named);
  seen.untold = all("figure").filter((one) => one.offsetParent
    && [...one.querySelectorAll("figcaption")].some((told) => !told.offsetParent)).map((one) => one.id);
  seen.swept = all("figure").filter((one) => one.scrollWidth > one.clientWidth + 1)  // its caption would go along
    .map((one) => one.id);
  seen.flat = all("figure img").filter((one) => one.checkVisibility() && !one.offsetHeight)  // it would move the text
    .map((one) => one.src);
  seen.violations = window.axe ? await violations() : [];
  for (const fold of all("details")) fold.open = true;
  seen.violations.push(...(window.axe ? await violations() : []));
  const boxes = all(".pst-scrollable-table-container");
  seen.cut = innerWidth < 700 ? [] : boxes.filter((box) => box.scrollWidth > box.clientWidth + 1).map(named);
  return seen;
})()"""
KINDS = ("moved", "wider", "untold", "swept", "flat", "cut", "violations")

pytestmark = [pytest.mark.thorough, pytest.mark.pages, pytest.mark.skipif(BROWSER is None, reason=MISSING)]


def look(session, page, width, mode):
    """What is wrong with a page at a width, in a palette."""
    features = [{"name": "prefers-color-scheme", "value": mode}]
    browser().ask("Emulation.setEmulatedMedia", session, features=features)
    size = dict(width=width, height=900, deviceScaleFactor=1, mobile=False)
    browser().ask("Emulation.setDeviceMetricsOverride", session, **size)
    browser().errors(session, page.as_uri())
    if AXE.exists():
        browser().give(session, f"{AXE.read_text()};0")
    return browser().give(session, LOOK.replace("SHIFT", str(SHIFT)))


@pytest.fixture(scope="module")
def seen(built):
    found = {}
    with browser().visitor() as session:
        look(session, built / "search.html", *SCREENS[0])  # a visit's first page brings what all share
        for page in sorted([*built.glob("book/*.html"), *built.glob("notebooks/*.html")]):
            for screen in SCREENS:
                one = look(session, page, *screen)
                if one["moved"]:  # once more: a busy machine may paint before the styles are there
                    one["moved"] = look(session, page, *screen)["moved"]
                found[page.stem, *screen] = one
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_no_page_has_a_fault(seen, kind):
    if kind == "violations" and not AXE.exists():
        pytest.skip("axe-core is not here; run `make thorough`")
    assert {where: one[kind] for where, one in seen.items() if one[kind]} == {} and len(seen) > 40
