"""No page is wider than a phone or moves while it loads; all of them in one browser, `make thorough`."""

import functools
import json
import subprocess
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue

import pytest
from chromium import BROWSER, MISSING
from test_axe import SITE, pages

WIDTHS = 360, 1400
SHIFT = 0.1  # above it the web vitals call a page's layout shift too large
PAUSE = 800  # milliseconds after a page has loaded in which it may still move
PATIENCE = 600  # seconds
HARNESS = """
const shown = (frame) => new Promise((done) => (frame.onload = () => setTimeout(done, PAUSE)));
const shifts = (view) => new Promise((done) => {
  const watcher = new view.PerformanceObserver((list) => done(list.getEntries().filter((one) => !one.hadRecentInput)));
  watcher.observe({type: "layout-shift", buffered: true});
  setTimeout(() => done([]), 200);
});
const named = (one) => one && `${one.nodeName}.${one.className}: ${one.textContent.slice(0, 40)}`;
const right = (one) => one.getBoundingClientRect().right;
const held = (view, one) => {  // by a box that can be scrolled by itself
  const boxes = [];
  for (let box = one.parentElement; box && box !== view.document.body; box = box.parentElement) boxes.push(box);
  return boxes.some((box) => !["visible", "clip"].includes(view.getComputedStyle(box).overflowX));
};
const beyond = (view) => {
  const whole = view.document.scrollingElement, all = [...view.document.body.querySelectorAll("*")];
  if (whole.scrollWidth <= whole.clientWidth) return [];
  const wide = all.filter((one) => right(one) > whole.clientWidth + 1 && !held(view, one));
  return [`${whole.scrollWidth} px`, ...wide.slice(0, 8).map(named)];
};
const untold = (view) => [...view.document.querySelectorAll("figure")]
  .filter((one) => one.offsetParent && [...one.querySelectorAll("figcaption")].some((told) => !told.offsetParent))
  .map((one) => one.id);
const swept = (view) => [...view.document.querySelectorAll("figure")]  // its caption would go with the picture
  .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.id);
const below = (view) => ["#finding-figure", ".finding", ".two-minds-start"]
  .flatMap((name) => [...view.document.querySelectorAll(name)])
  .filter((one) => one.getBoundingClientRect().bottom > view.innerHeight).map(named);
const cut = (view) => {  // tables that scroll, opened last: what is measured before is a page as it loads
  view.document.querySelectorAll("details").forEach((fold) => (fold.open = true));
  const boxes = [...view.document.querySelectorAll(".pst-scrollable-table-container")];
  return boxes.filter((box) => box.scrollWidth > box.clientWidth + 1).map(named);
};
const hidden = (view) => {  // by the theme's bar, which stays at the top: what stays below it on phones
  const bar = view.document.querySelector(".bd-header-article"), article = view.document.querySelector("article");
  if (!bar || !article || view.innerWidth > 700) return 0;
  article.insertAdjacentHTML("beforeend", '<div class="two-minds"><div class="steps"></div></div>');
  const top = parseFloat(view.getComputedStyle(article.lastElementChild.firstElementChild).top);
  article.lastElementChild.remove();
  return bar.getBoundingClientRect().height - top;
};
const measure = async (page, width) => {
  const frame = document.createElement("iframe");
  Object.assign(frame.style, {width: `${width}px`, height: "900px", border: 0});
  frame.src = page;
  const loaded = shown(frame);
  document.body.append(frame);
  await loaded;
  const view = frame.contentWindow, moved = await shifts(view);
  const found = {page, width, inner: view.innerWidth, beyond: beyond(view),
    untold: untold(view), below: below(view), hidden: hidden(view), swept: swept(view),
    shift: moved.reduce((sum, one) => sum + one.value, 0),
    moved: moved.flatMap((one) => one.sources.map((source) => named(source.node)))};
  found.cut = cut(view);
  frame.remove();
  return found;
};
const steady = async (page, width) => {  // once more: a busy machine may paint before the styles are there
  const first = await measure(page, width);
  if (first.shift <= SHIFT) return first;
  const again = await measure(page, width);
  return again.shift < first.shift ? again : first;
};
window.addEventListener("load", async () => {
  await measure("search.html", WIDTHS[0]);  // a visit's first page brings what all share
  const found = [];
  for (const page of PAGES) for (const width of WIDTHS) found.push(await steady(page, width));
  fetch("/said", {method: "POST", body: JSON.stringify(found)});
});
"""

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not SITE.exists(), reason="the book is not built; run `make book`"),
    pytest.mark.skipif(BROWSER is None, reason=MISSING),
]


class Host(SimpleHTTPRequestHandler):
    """Serves the book, and takes what the pages' script reports."""

    def do_POST(self):
        self.server.said.put(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        """Nothing: a report of a test is no log of a server."""


def measure(pages, profile):
    """Pages at every width, as an inner frame shows them in a browser that keeps real time; the site is served."""
    known = dict(PAGES=pages, WIDTHS=WIDTHS, SHIFT=SHIFT, PAUSE=PAUSE)
    told = "".join(f"const {name} = {json.dumps(value)};" for name, value in known.items())
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Host, directory=SITE)) as server:
        harness = SITE / f"layout-{server.server_port}.html"  # test processes run side by side
        harness.write_text(f'<!doctype html><meta charset="utf-8"><body><script>{told}{HARNESS}</script>')
        server.said = Queue()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/{harness.name}"
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={profile}",
            "--window-size=1500,1000",
        ]
        browser = subprocess.Popen([BROWSER, *flags, address], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return json.loads(server.said.get(timeout=PATIENCE))
        finally:
            browser.kill()
            browser.wait()
            server.shutdown()
            harness.unlink()


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    return measure(pages(), tmp_path_factory.mktemp("browser"))


def test_what_is_wide_or_moves_is_seen(tmp_path):
    made = SITE / "made.html"
    pushed = 'Object.assign(document.createElement("p"), {style: "height: 500px"})'
    late = f"setTimeout(() => document.body.prepend({pushed}), 300)"
    made.write_text(f"<!doctype html><body><p style='width: 2000px; height: 600px'>wide</p><script>{late}</script>")
    try:
        seen = measure(["made.html"], tmp_path)
    finally:
        made.unlink()
    assert all(one["beyond"] and one["shift"] > SHIFT for one in seen) and len(seen) == 2


def test_no_page_is_wider_than_a_phone(measured):
    assert {one["inner"] for one in measured} == set(WIDTHS)
    assert {(one["page"], one["width"]): one["beyond"] for one in measured if one["beyond"]} == {}


def test_every_figure_that_is_seen_has_its_caption(measured):
    assert {(one["page"], one["width"]): one["untold"] for one in measured if one["untold"]} == {}


def test_steps_stay_below_the_bar_of_buttons(measured):
    assert {one["page"]: one["hidden"] for one in measured if abs(one["hidden"]) > 1} == {}


def test_captions_stay_where_a_picture_is_scrolled(measured):
    assert {(one["page"], one["width"]): one["swept"] for one in measured if one["swept"]} == {}


def test_tables_fit_a_wide_screen(measured):
    assert {one["page"]: one["cut"] for one in measured if one["cut"] and one["width"] == WIDTHS[1]} == {}
    assert any(one["cut"] for one in measured), "on a phone the widest scroll"


def test_the_first_page_tells_everything_in_one_screen(measured):
    """The figure, four sentences and the button, at 1,400 x 900 pixels."""
    wide = next(one for one in measured if one["page"].endswith("intro.html") and one["width"] == WIDTHS[1])
    assert wide["below"] == []
    assert any(one["below"] for one in measured), "what is below the window is seen"


def test_no_page_moves_while_it_loads(measured):
    assert {(one["page"], one["width"], one["shift"]): one["moved"] for one in measured if one["shift"] > SHIFT} == {}
