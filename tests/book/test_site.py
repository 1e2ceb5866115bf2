"""The built book: every page, link, figure and number where a reader expects it."""

import csv
import json
import re
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

import pytest
import yaml
from bs4 import BeautifulSoup
from chromium import BROWSER, MISSING, browser

import cot2lib
from cot2lib.study.printed import claims

ROOT = Path(__file__).parents[2]
FOLLOW = """(async () => {
  const until = async (met) => {
    for (let tries = 0; tries < 100 && !met(); tries += 1) await new Promise((go) => setTimeout(go, 20));
    return met();
  };
  const seen = (id) => {  // the begin of its caption, not covered by a bar
    const table = document.getElementById(id);
    const { left, top } = (table.caption || table).getBoundingClientRect();
    return table.contains(document.elementFromPoint(left + 9, top + 9));
  };
  const unseen = [];
  for (const id of IDS) {  // the first is in the page's address
    if (!(await until(() => seen(id)))) unseen.push(id);
    document.querySelectorAll("details").forEach((fold) => (fold.open = false));
    window.scrollTo(0, 0);
    location.hash = IDS[IDS.indexOf(id) + 1] ?? "";
  }
  return unseen;
})()"""
KEYS = ("keyDown", "keyUp")
PLACE = "(({ x, y, width, height }) => ({ x: x + width / 2, y: y + height / 2 }))"
PLACE += "(document.querySelector('.explained button').getBoundingClientRect())"
OPENED = """[...document.querySelectorAll(":popover-open")].map((one) => one.getBoundingClientRect())
  .map(({ left, right, top, bottom }) => left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight)"""
pytestmark = pytest.mark.pages
browses = pytest.mark.skipif(BROWSER is None, reason=MISSING)


def url():
    return yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"]


@pytest.fixture(scope="module")
def pages(built):
    """Pages of the table of contents by name, in its order."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    names = [toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])]
    return {name: BeautifulSoup((built / f"{name}.html").read_text(), "html.parser") for name in names}


@pytest.fixture(scope="module")
def chapters(pages):
    """Pages of chapters by name."""
    return {name: page for name, page in pages.items() if name.startswith("notebooks/")}


def test_every_page_is_there_and_shows_no_error(pages, chapters, built):
    assert (built / "index.html").exists()
    assert {path.stem for path in ROOT.glob("notebooks/*.ipynb")} == {Path(name).name for name in chapters}
    for name, page in pages.items():
        text = page.get_text()
        assert not page.select("div.output.traceback, .system-message, .problematic"), name
        assert "Traceback (most recent call last)" not in text and "??" not in text, name
    shown = [name for name, page in chapters.items() if "pip install git" in page.get_text()]
    assert shown == [], "Colab's cell is hidden"


def test_every_picture_has_alt_text_and_a_size_and_every_figure_a_number(pages):
    for name, page in pages.items():
        for image in page.select("article img"):
            assert len(image.get("alt", "")) > 40 and "_images" not in image["alt"], f"{name}: {image.get('src')}"
        for figure in page.select("article figure"):
            assert re.match(r"Fig\. \d", figure.select_one(".caption-number").get_text()), name
            for picture in figure.select("img"):
                assert int(picture["width"]) and int(picture["height"]) and picture["loading"] == "lazy", name
                if picture["src"].endswith(".svg") and figure["id"].startswith("fig-"):
                    box = picture.find_parent(class_="wide-picture")
                    assert picture.parent["href"] == picture["src"] and bool(box) == (int(picture["width"]) > 480), (
                        name
                    )


def test_chapters_show_every_figure_of_their_sources(chapters):
    for name, page in chapters.items():
        cells = json.loads((ROOT / f"{name}.ipynb").read_text())["cells"]
        given = [cell["metadata"].get("mystnb", {}) for cell in cells]
        drawn = {figure["id"] for figure in page.select("article figure[id^=fig-]") if figure.img}
        assert {one["figure"]["name"] for one in given if "figure" in one} <= drawn, name


def test_figures_carry_their_finding_badges_numbers_and_commands(chapters, built):
    figures = [(name, one) for name, page in chapters.items() for one in page.select("article figure[id^=fig-]")]
    for name, figure in figures:
        told, where = figure.select_one("figcaption").get_text(), figure["id"]
        badges = figure.select("figcaption .verdict a[href*='claims.html#claim']")
        assert badges or "paper" in told, where
        assert told.count("No counterpart in the paper") <= (not badges), where
        if title := figure.select_one(".figure-title"):
            text = title.get_text()
            assert figure.img["alt"].startswith(text.replace("\u2019", "'").replace("\xa0", " ")[:40]), where
            assert text not in told, where
        link, again = figure.select("figcaption a.table-csv")
        lines = (built / "notebooks" / link["href"]).resolve().read_text().splitlines()
        names = next(csv.reader(lines))
        assert all(column[:1].isalpha() for column in names) and len(names) > 1 and len(lines) > 3, where
        assert again["href"] == f"#remake-{Path(name).name.replace('_', '-')}", where
    for part in (".figure-title", "figcaption .verdict"):
        assert any(figure.select(part) for _, figure in figures), part


def test_large_tables_are_folded_under_their_number_and_rows_have_names(pages):
    """What opens a fold holds no link; the first of several columns names the rows, unless it has a gap."""
    folded = []
    for name, page in pages.items():
        for table in page.select("article table"):
            rows, columns = table.select("tbody tr"), len(table.tr.select("td, th"))
            stays, fold = table.find_parent(class_=["tag_open", "open"]), table.find_parent("details")
            large, looked_up = len(rows) > 20 or columns > 6, table.find_parent(class_="tag_folded")
            assert stays or fold or not (large or looked_up), f"{name}: {table.get('id')}"
            if fold and "folded" in fold.parent.get("class", []):
                folded.append(table)
                assert (large or looked_up) and not stays and not fold.summary.select("a"), name
                assert not fold.summary.get_text().endswith("."), name
                number = table.select_one(".caption-number")
                assert number is None or fold.summary.get_text().startswith(number.get_text().strip()), name
            first = [row.select_one("td, th") for row in rows]
            named = columns > 1 and all(cell.get_text().strip() or cell.select("img") for cell in first)
            assert {cell.name for cell in first} <= {"th" if named else "td"}, f"{name}: {table.get('id')}"
    assert any(table.select("a") for table in folded)


@browses
def test_no_page_throws_an_error_and_a_link_to_a_folded_table_opens_the_fold(pages, built):
    wrong = {}
    with browser().visitor() as session:
        for name, page in pages.items():
            ids = [table["id"] for table in page.select("article details table[id]")]
            address = f"{(built / name).as_uri()}.html{''.join(f'#{one}' for one in ids[:1])}"
            errors = browser().errors(session, address)
            wrong[name] = errors + browser().give(session, FOLLOW.replace("IDS", json.dumps(ids)))
    assert {name: found for name, found in wrong.items() if found} == {}


def test_the_ledger_has_a_row_and_a_link_for_every_claim(pages):
    tables = pages["notebooks/ledger"].select("table[id^=tab-ledger], #tab-series")
    assert sum(len(table.select("tbody tr")) for table in tables) == len(claims())
    links = [link["href"] for table in tables for link in table.select("a[href*='claims.html#claim-']")]
    carded = claims().index[claims()["metric"] != "pass_at_k"]
    assert sorted(link.partition("#claim-")[2] for link in links) == sorted(carded)


def test_every_claim_has_a_card_with_its_verdict_its_source_and_its_numbers(pages):
    cards = pages["book/claims"].select("article details[id^=claim-]")
    carded = claims().index[claims()["metric"] != "pass_at_k"]
    assert sorted(card["id"] for card in cards) == sorted(f"claim-{one}" for one in carded)
    for card in cards:
        assert card.select_one("summary .sd-badge").get_text(), card["id"]
        at = card.select_one("a[href*='/blob/']")
        assert at["href"].startswith(f"{url()}/blob/") and "cot2lib/study/" in at["href"], card["id"]
        assert bool(card.select(".claim-picture svg")) == bool(card.select("a[download]")), card["id"]
        commands = [command.get_text().strip() for command in card.select(".highlight-bash pre")]
        assert all(command.startswith(("cot2 ", "pytest ")) for command in commands), card["id"]
    for part in (".claim-picture svg", ".highlight-bash pre", "a[href*='#fig-']"):
        assert any(card.select(part) for card in cards), part


def test_every_name_of_the_face_is_described(pages):
    described = {entry["id"].rpartition(".")[2] for entry in pages["book/api"].select("dt.sig[id]")}
    assert set(cot2lib.__all__) - described == set()
    assert "|sum|" in pages["book/api"].get_text()


def test_terms_are_explained_once_where_a_chapter_first_uses_them(pages, chapters):
    terms = {
        term["id"]: term.find_next("dd").get_text().strip() for term in pages["book/notation"].select(".glossary dt")
    }
    seen = {}
    for name, page in chapters.items():
        boxes = page.select("article .explained")
        for box in boxes:
            meaning = box.select_one("[popover]").get_text()
            assert meaning == f"{terms[box.button['aria-describedby']]} Notation", name
        seen[Path(name).name] = [box.button["popovertarget"] for box in boxes]
        assert len(seen[Path(name).name]) == len({*seen[Path(name).name]}), name
    assert {"term-d", "term-B"} <= {*seen["csft"]} and {"term-hop", "term-K"} <= {*seen["prosqa"]}
    assert set().union(*seen.values()) == {*terms}


@browses
def test_a_meaning_opens_by_tap_key_and_mouse_and_fits_a_phone(built):
    with browser().visitor() as session:
        act = lambda command, **given: browser().ask(f"Input.{command}", session, **given)
        size = dict(width=360, height=800, deviceScaleFactor=1, mobile=False)
        browser().ask("Emulation.setDeviceMetricsOverride", session, **size)
        browser().errors(session, (built / "notebooks" / "csft.html").as_uri())
        at = browser().give(session, f"(async () => {{ await MathJax.startup.promise; return {PLACE} }})()")
        opened = lambda: browser().give(session, OPENED)
        escape = lambda: [act("dispatchKeyEvent", type=type, key="Escape", windowsVirtualKeyCode=27) for type in KEYS]
        act("dispatchTouchEvent", type="touchStart", touchPoints=[at])
        act("dispatchTouchEvent", type="touchEnd", touchPoints=[])
        assert opened() == [True], "it is open and within the window"
        escape()
        assert opened() == []
        act("dispatchMouseEvent", type="mouseMoved", **at)
        assert opened() == [True]
        act("dispatchMouseEvent", type="mouseMoved", x=at["x"], y=at["y"] + 40)
        assert opened() == [True], "a mouse reaches what has opened"
        act("dispatchMouseEvent", type="mouseMoved", x=5, y=5)
        assert opened() == []
        browser().give(session, "document.querySelector('.explained button').focus()")
        [act("dispatchKeyEvent", type=type, key="Enter", text="\r", windowsVirtualKeyCode=13) for type in KEYS]
        assert opened() == [True]


def test_two_minds_stand_below_a_first_figure_and_have_their_models(pages, chapters, built):
    shown = [page.select("article figure[id^=fig-], .two-minds") for page in chapters.values()]
    first = [parts[0].name for parts in shown if any("two-minds" in part.get("class", ()) for part in parts)]
    assert len(first) > 2 and {*first} == {"figure"}
    scripts = [script["src"].split("/")[-1] for script in pages["book/explorer"].select("article script[src]")]
    assert scripts == ["two-minds.js", "explorer-common.js", "explorer-circle.js"]
    shown = {box["data-task"] for page in pages.values() for box in page.select(".two-minds")}
    assert shown == {"mnns", "prosqa"}
    for task in shown:
        assert (built / "_static" / f"two-minds-data-{task}.js").read_text().count('"data"') == 2


def test_internal_links_lead_somewhere_and_nothing_is_fetched_from_elsewhere(pages, built):
    anchors = {name: {tag["id"] for tag in page.select("[id]")} for name, page in pages.items()}
    for name, page in pages.items():
        for link in page.select("a[href]"):
            target, anchor = urldefrag(link["href"])
            if urlparse(target).scheme or target.startswith("mailto:"):
                continue
            path = (built / name).parent / unquote(target) if target else built / f"{name}.html"
            assert path.exists(), f"{name} links to {link['href']}"
            other = str(path.resolve().relative_to(built.resolve()).with_suffix(""))
            if anchor and other in anchors:
                assert anchor in anchors[other], f"{name} links to {link['href']}"
        fetched = page.select("script[src], img[src], link[rel=stylesheet]")
        assert not [tag for tag in fetched if urlparse(tag.get("src") or tag.get("href")).netloc], name
    page = pages["notebooks/csft"]
    assert page.select("article .math[style*=wide]") and page.select_one("script[src*='mathjax/tex-chtml.js']")
    assert (built / "_static" / "mathjax" / "tex-chtml.js").exists()


def test_every_chapter_can_be_launched_and_says_how_it_was_run_and_what_to_change(chapters):
    for name, page in chapters.items():
        links = [link["href"] for link in page.select("a[href]")]
        path = f"{url().removeprefix('https://github.com/')}/blob/main/{name}.ipynb"
        colab = f"https://colab.research.google.com/github/{path}"
        assert colab in links, name
        assert any("mybinder.org" in link and unquote(link).endswith(f"{name}.ipynb") for link in links), name
        card = page.select_one(".run-card")
        text, command = card.get_text(), f"papermill {name}.ipynb out.ipynb -"
        assert "profile =" in text and "commit" in text and "torch" in text, name
        retrains = name.removeprefix("notebooks/") not in ("ledger", "method", "policy_ratio", "speed", "tasks")
        assert (f"{command}p retrain True -p profile paper" in text) == retrains, name
        if name != "notebooks/ledger":
            code = card.find_previous_sibling("div")
            assert code.get_text().strip().startswith(command), name
            assert code.find_previous_sibling("p").a["href"] == colab, name


def test_each_erratum_is_listed_with_its_chapters(pages):
    page = pages["book/errata"]
    rows = page.select("#tab-errata tbody tr")
    titles = [title.contents[0] for title in page.select("article h3")]
    assert [row.select_one("a").get_text() for row in rows] == titles
    for row, title in zip(rows, page.select("article h3"), strict=True):
        named = {link["href"] for link in title.parent.select("p a") if "/notebooks/" in link["href"]}
        assert {link["href"] for link in row.select("a") if "/notebooks/" in link["href"]} == named


# The first page


def test_the_first_page_is_short_and_in_order(pages):
    article = pages["book/intro"].select_one("article")
    order = [".in-short", "#finding-figure", ".overview", ".two-minds", "#tab-glance", "#how-to-use-it"]
    assert article.select(", ".join(order)) == [article.select_one(part) for part in order]
    hidden = {
        id(text) for tag in article.select(".headerlink, script, .tile, .sign, .table-csv") for text in tag.strings
    }
    words = " ".join(text for text in article.strings if id(text) not in hidden).split()
    assert len([word for word in words if re.search(r"\w", word)]) <= 700


@browses
def test_a_verdict_is_a_click_away(pages, built):
    """Phrases and tiles are links, so that keys reach them; each opens its card."""
    page = pages["book/intro"]
    links = [link["href"] for link in page.select(".overview a")]
    ids = {tag["id"] for tag in pages["book/claims"].select("[id]")}
    assert links and {link.partition("#")[2] for link in links} <= ids
    with browser().visitor() as session:
        for link in (links[0], page.select_one(".tile")["href"]):
            assert browser().errors(session, (built / "book" / link).as_uri().replace("%23", "#")) == []
            assert browser().give(session, "document.querySelector(location.hash).open"), link
