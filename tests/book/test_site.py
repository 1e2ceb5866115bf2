"""The built book: every page, link, figure and number where a reader expects it.

The pages are those that `make book` has built, or with the option `--build` built here from chapters executed before.
"""

import csv
import json
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

import pytest
import yaml
from bs4 import BeautifulSoup
from chromium import BROWSER, MISSING, browser

import cot2lib
from cot2lib.study.printed import claims

ROOT = Path(__file__).parents[2]
SITE = ROOT / "_build" / "html"
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
URL = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"]


@pytest.fixture(scope="module", autouse=True)
def site(request):
    """The built pages."""
    if request.config.getoption("--build"):
        build = subprocess.run(["make", "html"], cwd=ROOT, capture_output=True, text=True)
        assert not build.returncode, build.stdout + build.stderr
    if not SITE.exists():
        pytest.skip("the book is not built; run `make book`, or give the option --build")


def documents():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    return [toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])]


@pytest.fixture(scope="module")
def pages():
    return {name: BeautifulSoup((SITE / f"{name}.html").read_text(), "html.parser") for name in documents()}


def chapters():
    return [name for name in documents() if name.startswith("notebooks/")]


@pytest.fixture(scope="module")
def figures(pages):
    """Figures of chapters as (page, figure)."""
    return [(name, figure) for name in chapters() for figure in pages[name].select("article figure[id^=fig-]")]


def test_every_page_is_there_and_shows_no_error(pages):
    assert (SITE / "index.html").exists()
    assert {path.stem for path in ROOT.glob("notebooks/*.ipynb")} == {Path(name).name for name in chapters()}
    for name, page in pages.items():
        text = page.get_text()
        assert not page.select("div.output.traceback, .system-message, .problematic"), name
        assert "Traceback (most recent call last)" not in text and "??" not in text, name
        assert "pip install git" not in text or not name.startswith("notebooks/"), f"{name}: Colab's cell is hidden"


def test_every_picture_has_alt_text_and_a_size_and_every_figure_a_number(pages):
    for name, page in pages.items():
        for image in page.select("article img"):
            assert len(image.get("alt", "")) > 40 and "_images" not in image["alt"], f"{name}: {image.get('src')}"
        for figure in page.select("article figure"):
            assert re.match(r"Fig\. \d", figure.select_one(".caption-number").get_text()), name
            for picture in figure.select("img"):
                assert int(picture["width"]) and int(picture["height"]) and picture["loading"] == "lazy", name


def test_figures_carry_their_finding_badges_numbers_and_commands(figures):
    titled = badged = 0
    for name, figure in figures:
        told, where = figure.select_one("figcaption").get_text(), figure["id"]
        badges = figure.select("figcaption .verdict a[href*='claims.html#claim']")
        assert badges or "paper" in told, where
        assert not (badges and "No counterpart in the paper" in told), where
        if title := figure.select_one(".figure-title"):
            text = title.get_text()
            assert figure.img["alt"].startswith(text.replace("\u2019", "'").replace("\xa0", " ")[:40]), where
            assert text not in told, where
        link, again = figure.select("figcaption a.table-csv")
        lines = (SITE / "notebooks" / link["href"]).resolve().read_text().splitlines()
        names = next(csv.reader(lines))
        assert all(column[:1].isalpha() for column in names) and len(names) > 1 and len(lines) > 3, where
        assert again["href"] == f"#remake-{Path(name).name.replace('_', '-')}", where
        titled, badged = titled + bool(title), badged + bool(badges)
    assert titled > 40 and 0 < badged < len(figures)


def test_chapters_show_every_figure_of_their_sources(figures):
    drawn = {(name, figure["id"]) for name, figure in figures if figure.img}
    for name in chapters():
        cells = json.loads((ROOT / f"{name}.ipynb").read_text())["cells"]
        given = [cell["metadata"].get("mystnb", {}) for cell in cells]
        assert {(name, one["figure"]["name"]) for one in given if "figure" in one} <= drawn, name


def test_large_tables_are_folded_under_their_number(pages):
    folded = 0
    for name, page in pages.items():
        for table in page.select("article table"):
            rows, columns = len(table.select("tbody tr")), len(table.tr.select("td, th"))
            stays, fold = table.find_parent(class_="tag_open"), table.find_parent("details")
            assert stays or fold or (rows <= 20 and columns <= 6), f"{name}: {table.get('id')}"
            if fold and "folded" in fold.parent.get("class", []):
                folded += 1
                number = table.select_one(".caption-number")
                assert number is None or fold.summary.get_text().startswith(number.get_text().strip()), name
    assert folded > 20


@pytest.mark.skipif(BROWSER is None, reason=MISSING)
def test_no_page_throws_an_error(pages):
    with browser().visitor() as session:
        found = {name: browser().errors(session, (SITE / f"{name}.html").as_uri()) for name in pages}
    assert {name: errors for name, errors in found.items() if errors} == {}


@pytest.mark.skipif(BROWSER is None, reason=MISSING)
def test_a_link_to_a_folded_table_opens_the_fold(pages):
    linked = {
        name: [table["id"] for table in page.select("article details table[id]")] for name, page in pages.items()
    }
    unseen = {}
    with browser().visitor() as session:
        for name, ids in ((name, ids) for name, ids in linked.items() if ids):
            errors = browser().errors(session, f"{(SITE / name).as_uri()}.html#{ids[0]}")
            unseen[name] = errors + browser().give(session, FOLLOW.replace("IDS", json.dumps(ids)))
    assert sum(map(len, linked.values())) > 50 and {name: ids for name, ids in unseen.items() if ids} == {}


def test_the_ledger_is_a_row_a_claim_in_six_columns(pages):
    tables = pages["notebooks/ledger"].select("table[id^=tab-ledger], #tab-series")
    assert sum(len(table.select("tbody tr")) for table in tables) == len(claims())
    assert all(len(table.select("thead th")) == 6 for table in tables)
    links = [link["href"] for table in tables for link in table.select("a[href*='claims.html#claim-']")]
    assert len(set(links)) == len(links) == (claims()["metric"] != "pass_at_k").sum()


def test_every_claim_has_a_card_with_its_verdict_its_source_and_its_numbers(pages):
    cards = pages["book/claims"].select("article details[id^=claim-]")
    assert {card["id"] for card in cards} == {
        f"claim-{one}" for one in claims().index[claims()["metric"] != "pass_at_k"]
    }
    for card in cards:
        assert card.select_one("summary .sd-badge").get_text(), card["id"]
        at = card.select_one("a[href*='/blob/']")
        assert at["href"].startswith(f"{URL}/blob/") and "cot2lib/study/" in at["href"], card["id"]
        assert bool(card.select(".claim-picture svg")) == bool(card.select("a[download]")), card["id"]
        commands = [command.get_text().strip() for command in card.select(".highlight-bash pre")]
        assert all(command.startswith(("cot2 ", "pytest ")) for command in commands), card["id"]
    drawn, seen = (sum(bool(card.select(which)) for card in cards) for which in (".claim-picture", "a[href*='#fig-']"))
    assert min(drawn, seen) > len(cards) / 2


def test_every_name_of_the_face_is_described(pages):
    page = pages["book/api"]
    described = {entry["id"].rpartition(".")[2] for entry in page.select("dt.sig[id]")}
    assert set(cot2lib.__all__) - described == set()
    assert "|sum|" in page.get_text() and not page.select("article .problematic")


def test_two_minds_have_their_models_and_come_when_asked_for(pages):
    scripts = [script["src"].split("/")[-1] for script in pages["book/explorer"].select("article script[src]")]
    assert scripts == ["two-minds.js", "explorer-common.js", "explorer-circle.js"]
    for task in ("mnns", "prosqa"):
        assert (SITE / "_static" / f"two-minds-data-{task}.js").read_text().count('"data"') == 2
    shown = {name: [box["data-task"] for box in page.select(".two-minds")] for name, page in pages.items()}
    assert shown["book/explorer"] == ["mnns", "prosqa"] and shown["book/intro"] == shown["notebooks/csft"] == ["mnns"]
    assert shown["notebooks/prosqa"] == ["prosqa"]


def test_internal_links_lead_somewhere(pages):
    anchors = {name: {tag["id"] for tag in page.select("[id]")} for name, page in pages.items()}
    for name, page in pages.items():
        for link in page.select("a[href]"):
            target, anchor = urldefrag(link["href"])
            if urlparse(target).scheme or target.startswith("mailto:"):
                continue
            path = (SITE / name).parent / unquote(target) if target else SITE / f"{name}.html"
            assert path.exists(), f"{name} links to {link['href']}"
            other = str(path.resolve().relative_to(SITE.resolve()).with_suffix(""))
            if anchor and other in anchors:
                assert anchor in anchors[other], f"{name} links to {link['href']}"


def test_nothing_is_fetched_from_elsewhere(pages):
    for name, page in pages.items():
        sources = [
            tag.get("src") or tag.get("href") for tag in page.select("script[src], img[src], link[rel=stylesheet]")
        ]
        assert not [source for source in sources if urlparse(source).netloc], name
    assert (SITE / "_static" / "mathjax" / "tex-chtml.js").exists()


def test_launch_buttons_open_the_sources(pages):
    for name in chapters():
        links = [link["href"] for link in pages[name].select("a[href]")]
        path = f"{URL.removeprefix('https://github.com/')}/blob/main/{name}.ipynb"
        assert f"https://colab.research.google.com/github/{path}" in links, name
        assert any("mybinder.org" in link and unquote(link).endswith(f"{name}.ipynb") for link in links), name


def test_every_chapter_says_how_it_was_run_and_what_to_change(pages):
    for name in chapters():
        card = pages[name].select_one(".run-card").get_text()
        assert "profile =" in card and "commit" in card and "torch" in card, name
        assert f"papermill {name}.ipynb out.ipynb -p retrain True -p profile paper" in card, name
        if name != "notebooks/ledger":
            changed = pages[name].select_one(".run-card").find_previous_sibling("div").get_text().strip()
            assert changed.startswith(f"papermill {name}.ipynb out.ipynb -"), name


def test_equations_are_typeset_by_the_local_mathjax(pages):
    page = pages["notebooks/csft"]
    assert page.select("article .math[style*=wide]") and page.select_one("script[src*='mathjax/tex-chtml.js']")
