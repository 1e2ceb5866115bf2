"""The built book: every page, link, figure and number where a reader expects it.

The pages are those that `make book` has built, or with the option `--build` built here from chapters executed before.
"""

import csv
import inspect
import json
import re
import subprocess
from collections import Counter
from pathlib import Path
from textwrap import dedent
from urllib.parse import unquote, urldefrag, urlparse

import pytest
import yaml
from bs4 import BeautifulSoup
from chromium import BROWSER, MISSING, browser

import cot2lib
from cot2lib import losses, supervision
from cot2lib.study.book.all_runs import SWEEPS
from cot2lib.study.printed import claims
from cot2lib.training import grpo, supervised

ROOT = Path(__file__).parents[2]
SITE = ROOT / "_build" / "html"
METHOD = {  # chapter: what of the package its section on the method shows
    "csft": [supervision.hindsight_targets, supervision.trajectory_shares, losses.soft_nll, supervised.batch_loss],
    "grpo_mts": [
        *(losses.advantages, losses.log_ratio, losses.log_ratios, losses.surrogate, losses.kl_estimate),
        *(grpo.objective, grpo.GRPOTrainer.update),
    ],
}
BOTH = {  # chapters whose figures show both recipes
    *("budget", "capacity", "construction", "csft", "grpo_dirichlet", "grpo_mts", "prontoqa", "prosqa", "sampling"),
}
FOLLOW = """(async () => {
  const until = async (met) => {
    for (let tries = 0; tries < 100 && !met(); tries += 1) await new Promise((go) => setTimeout(go, 20));
    return met();
  };
  const seen = (id) => {  // the begin of its caption, not covered by a bar
    const table = document.querySelector(`table#${id}`);
    const {left, top} = (table.caption || table).getBoundingClientRect();
    return table.contains(document.elementFromPoint(left + 9, top + 9));
  };
  const unseen = [];
  if (!(await until(() => seen(location.hash.slice(1))))) unseen.push(`${location.hash}, opened`);
  for (const id of IDS) {
    document.querySelectorAll("details").forEach((fold) => (fold.open = false));
    window.scrollTo(0, 0);
    const made = Object.assign(document.createElement("a"), { href: `#${id}` });
    document.querySelector("article").append(made);  // where all links are on other pages
    (document.querySelector(`article a[href="#${id}"]:not(.headerlink)`) || made).click();
    if (!(await until(() => seen(id)))) unseen.push(`#${id}, clicked`);
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


@pytest.fixture(scope="module")
def anchors(pages):
    """Ids of each page."""
    return {name: {tag["id"] for tag in page.select("[id]")} for name, page in pages.items()}


def chapters():
    return [name for name in documents() if name.startswith("notebooks/")]


def test_every_page_of_the_contents_is_there(pages):
    assert (SITE / "index.html").exists() and set(pages) == set(documents())
    assert {p.stem for p in ROOT.glob("notebooks/*.ipynb")} == {Path(name).name for name in chapters()}


def test_no_page_shows_an_error(pages):
    for name, page in pages.items():
        text = page.get_text()
        assert not page.select("div.output.traceback, .system-message, .problematic"), name
        assert "Traceback (most recent call last)" not in text and "??" not in text, name


def test_every_picture_has_alt_text_and_every_figure_a_number(pages):
    for name, page in pages.items():
        for image in page.select("article img"):
            assert len(image.get("alt", "")) > 40 and "_images" not in image["alt"], f"{name}: {image.get('src')}"
        for figure in page.select("article figure"):
            assert re.match(r"Fig\. \d", figure.select_one(".caption-number").get_text()), name


def test_captions_lead_to_the_cards_of_what_they_speak_to(pages):
    alone = 0
    for name, page in pages.items():
        for figure in page.select("article figure[id^=fig-]") if name.startswith("notebooks/") else ():
            badges = figure.select("figcaption .verdict a[href*='claims.html#claim']")
            alone += not badges
            told = figure.select_one("figcaption").get_text()
            assert badges or "paper" in told, figure["id"]
            named = badges or re.search("paper.s (counterpart|figure|final)", told)
            assert not (named and "No counterpart in the paper" in told), figure["id"]
            assert all(re.search("agrees|differs|told|not run", badge.get_text()) for badge in badges), figure["id"]
    assert alone
    badge = pages["notebooks/csft"].select_one("#fig-curves .verdict a")
    assert badge["href"] == "../book/claims.html#claim-convergence-2l2h"


def test_findings_stand_above_their_figures(pages):
    titled = [figure for page in pages.values() for figure in page.select("article figure:has(> .figure-title)")]
    assert len(titled) > 40
    for figure in titled:
        title, picture = figure.select_one(".figure-title").get_text(), figure.select_one("img")["alt"]
        assert picture.startswith(title.replace("\u2019", "'").replace("\xa0", " ")[:40]), figure["id"]
        assert title not in figure.select_one("figcaption").get_text(), figure["id"]


def test_tables_that_carry_their_chapters_are_open(pages):
    for name, table in dict(
        grpo_mts="grpo", prosqa="systems", controls="controls", grpo_dirichlet="dirichlet"
    ).items():
        shown = pages[f"notebooks/{name}"].select_one(f"#tab-{table}")
        assert shown and not shown.find_parent("details"), name


def test_large_tables_are_folded_and_headings_head_columns_or_rows(pages):
    unnamed = 0
    for name, page in pages.items():
        for table in page.select("article table"):
            rows = table.select("tbody tr")
            columns = max(len(row.select("td, th")) for row in table.select("tr"))
            large = len(rows) > 20 or columns > 6
            stays = table.find_parent(class_="tag_open")
            assert (large and not stays) <= bool(table.find_parent("details")), f"{name}: {table.get('id')}"
            assert all(head.get("scope") == "col" for head in table.select("thead th")), f"{name}: {table.get('id')}"
            named = [row.th.get("scope") for row in rows if row.th]
            assert named in ([], ["row"] * len(rows)), f"{name}: {table.get('id')}"
            unnamed += not named
    assert unnamed < 5, "only tables with a gap in their first column"


def test_what_opens_a_fold_names_its_tables_by_number(pages):
    told = 0
    for name, page in pages.items():
        for table in page.select("article details table:has(.caption-number)"):
            number = table.select_one(".caption-number").get_text().strip()
            lines = table.find_parent("details").summary
            for line in lines.select("p") or [lines]:  # one while it is closed, the other while it is open
                assert re.search(rf"\b{re.escape(number)}\b(?!\.)", line.get_text()), f"{name}: {number}"
            told += 1
    assert told > 50


def test_no_id_is_twice_on_a_page(pages):
    for name, page in pages.items():
        counts = Counter(tag["id"] for tag in page.select("[id]"))
        assert not {one: count for one, count in counts.items() if count > 1}, name


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


def test_the_ledger_is_a_row_a_claim_in_five_columns(pages):
    tables = pages["notebooks/ledger"].select("table[id^=tab-ledger], #tab-series")
    assert sum(len(table.select("tbody tr")) for table in tables) == len(claims())
    assert all(len(table.select("thead th")) == 5 for table in tables)
    links = [link["href"] for table in tables for link in table.select("a[href*='claims.html#claim-']")]
    assert len(set(links)) == len(links) == (claims()["metric"] != "pass_at_k").sum()


def test_figures_have_a_size(pages):
    for name, page in pages.items():
        pictures = page.select("article figure img")
        assert all(int(picture["width"]) and int(picture["height"]) for picture in pictures), name


def test_figures_are_vectors_unless_these_weigh_too_much():
    kinds = [path.suffix for path in (SITE / "_images").iterdir() if path.stem.isalnum() and len(path.stem) == 64]
    assert set(kinds) == {".svg", ".png"} and kinds.count(".svg") > 3 * kinds.count(".png")
    assert all(path.stat().st_size <= 151_000 for path in (SITE / "_images").glob("*.svg"))


def test_pictures_load_when_they_come_into_sight(pages):
    for name, page in pages.items():
        assert all(image.get("loading") == "lazy" for image in page.select("article figure img")), name


def test_the_numbers_of_every_figure_are_one_click_away(pages):
    links = 0
    for name, page in pages.items():
        for figure in page.select("article figure[id^=fig-]") if name.startswith("notebooks/") else ():
            number = figure.select_one(".caption-number").get_text().strip()
            link, again = figure.select("figcaption a.table-csv")
            assert (link["aria-label"], again["aria-label"]) == (f"The numbers of {number} as CSV", f"Remake {number}")
            lines = (SITE / "notebooks" / link["href"]).resolve().read_text().splitlines()
            names = next(csv.reader(lines))
            assert all(name[:1].isalpha() for name in names) and len(names) > 1 and len(lines) > 3, figure["id"]
            links += 1
    assert links > 50


def test_chapters_show_every_figure_of_their_sources(pages):
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        cells = [cell["metadata"].get("mystnb", {}) for cell in json.loads(path.read_text())["cells"]]
        named = {cell["figure"]["name"] for cell in cells if "figure" in cell}
        drawn = {
            figure["id"] for figure in pages[f"notebooks/{path.stem}"].select("article figure[id^=fig-]:has(img)")
        }
        assert named <= drawn, (path.stem, named - drawn)


def test_landing_page_shows_what_was_found(pages):
    page = pages["book/intro"]
    first = page.select_one("#finding-figure img[src*=finding]")
    assert first and len(first["alt"]) > 100 and len(page.select("div.finding a[href*=claim]")) == 10
    assert len(page.select("div.finding")) == 4 and page.select_one(".two-minds[data-task=mnns]")
    assert page.select_one("figure img[src*=scoreboard]") and page.find("table", id="tab-verdicts")
    assert "reproduced" in page.find("table", id="tab-verdicts").get_text()
    found = page.select_one("#six-claims-and-what-the-records-say").select("li")
    assert len(found) == 6 and all(claim.select_one("strong") and claim.select_one("a[href]") for claim in found)
    assert len(page.find("table", id="tab-paper").select("tbody tr")) == 39
    assert len(page.find("table", id="tab-rebuilt").select("tbody tr")) == 4
    assert len(page.find("table", id="tab-commands").select("tbody tr")) == 2 * len(SWEEPS) - 1


def test_every_claim_has_a_card_with_its_verdict_and_its_source(pages):
    cards = pages["book/claims"].select("article details[id^=claim-]")
    series = claims()["metric"] == "pass_at_k"
    assert {card["id"] for card in cards} == {f"claim-{claim}" for claim in claims().index[~series]}
    for card in cards:
        assert card.select_one("summary .sd-badge").get_text(), card["id"]
        at = card.select_one("a[href*='/blob/']")
        assert at["href"].startswith(f"{URL}/blob/") and "cot2lib/study/" in at["href"], card["id"]
        assert bool(card.select(".claim-picture svg")) == bool(card.select("a[download]")), card["id"]
    assert sum(bool(card.select(".claim-picture")) for card in cards) > 120
    found = pages["book/intro"].select_one("#six-claims-and-what-the-records-say")
    assert len(found.select("a[href*='claims.html#claim-']")) == 6
    commands = [command.get_text().strip() for command in pages["book/claims"].select("details .highlight-bash pre")]
    assert len(commands) > 150 and all(command.startswith(("cot2 ", "pytest ")) for command in commands)
    seen = pages["book/claims"].select("details a[href*='#fig-'], details a[href*='#tab-']")
    assert len({link.find_parent("details")["id"] for link in seen}) == len(cards) - 1, "one names a setting alone"
    played = pages["book/claims"].select("details a[href*='explorer.html#play-'], details a[href*='gsm8k.html']")
    assert len({link.find_parent("details")["id"] for link in played}) > 150


def test_every_name_of_the_face_is_described(pages):
    page = pages["book/api"]
    described = {entry["id"].rpartition(".")[2] for entry in page.select("dt.sig[id]")}
    assert set(cot2lib.__all__) - described == set()
    assert "|sum|" in page.get_text() and not page.select("article .problematic")


def test_the_explorer_has_its_models(pages):
    scripts = [script["src"].split("/")[-1] for script in pages["book/explorer"].select("article script[src]")]
    assert scripts == ["two-minds.js", "explorer-common.js", "explorer-circle.js"], (
        "models come when they are asked for"
    )
    for task in ("mnns", "prosqa"):
        assert (SITE / "_static" / f"two-minds-data-{task}.js").read_text().count('"data"') == 2
    assert all(page.select('script[src$="filter.js"], script[src*="filter.js?"]') for page in pages.values())


def test_two_minds_stand_where_their_tasks_are_trained(pages):
    shown = {name: [box["data-task"] for box in page.select(".two-minds")] for name, page in pages.items()}
    assert {name: tasks for name, tasks in shown.items() if tasks} == {
        "book/intro": ["mnns"], "book/explorer": ["mnns", "prosqa"], "notebooks/csft": ["mnns"],
        "notebooks/method": ["mnns"], "notebooks/prosqa": ["prosqa"],
    }  # fmt: skip


def test_internal_links_lead_somewhere(pages, anchors):
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


def test_every_chapter_says_how_it_was_run(pages):
    for name in chapters():
        card = pages[name].select_one(".run-card").get_text()
        assert "profile =" in card and "commit" in card and "torch" in card, name
        assert f"papermill {name}.ipynb out.ipynb" in card, name
        both = name.removeprefix("notebooks/") in BOTH
        assert ("-p retrain True -p profile paper" in card) == both, name
        hours = pages[name].select_one(".run-card a[href$='#tab-commands']")
        assert (hours is None) == (name == "notebooks/gsm8k"), name
        for figure in pages[name].select("article figure[id^=fig-]"):
            assert figure.select_one(f"figcaption a[href='#remake-{Path(name).name.replace('_', '-')}']"), figure["id"]


def test_folds_that_show_nothing_are_one_with_the_next(pages):
    bare = ".cell.tag_hide-input:not(.tag_parameters):not(:has(> .cell_output))"
    for name in chapters():
        assert not pages[name].select(f"{bare} + {bare}, {bare} + .cell.tag_hide-input:has(> .cell_output)"), name


def test_colab_cell_is_not_shown(pages):
    for name in chapters():
        assert "pip" not in pages[name].select_one("article").get_text()


def test_equations_are_typeset_by_the_local_mathjax(pages):
    page = pages["notebooks/csft"]
    assert page.select("article .math") and page.select_one("script[src*='mathjax/tex-chtml.js']")


@pytest.mark.parametrize("name", METHOD)
def test_the_method_is_shown_unfolded_as_it_stands_in_the_source(pages, name):
    section = pages[f"notebooks/{name}"].find("section", id="the-method-from-the-source")
    shown = [block.get_text().strip() for block in section.select("pre")]
    for function in METHOD[name]:
        assert dedent(inspect.getsource(function)).strip() in shown, function.__qualname__
    assert not section.select("details") and section.select(".math")
    assert any(text.startswith("def test_") for text in shown), "beside its identity test"


def test_search_finds_the_chapters():
    index = (SITE / "searchindex.js").read_text()
    assert all(name in index for name in chapters())
