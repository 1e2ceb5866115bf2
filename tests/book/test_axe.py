"""No page has a violation above "minor" that axe-core finds, whatever its width, palette and folds; `make thorough`."""

import re
from pathlib import Path

import pytest
from chromium import BROWSER, MISSING, SAID, said_in

ROOT = Path(__file__).parents[2]
SITE = ROOT / "_build" / "html"
AXE = ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
SCRIPT = """
const options = {resultTypes: ["violations"]};
window.addEventListener("load", () => setTimeout(() => {
  if (OPEN) document.querySelectorAll("details").forEach((fold) => (fold.open = true));
  return axe.run(document, options).then((found) => {
  document.getElementById("said").textContent = JSON.stringify(
    found.violations.map((rule) => [rule.impact, rule.id, rule.nodes.map((node) => node.target.join(" "))]));
  });
}, 1000));
"""

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not SITE.exists(), reason="the book is not built; run `make book`"),
    pytest.mark.skipif(not AXE.exists(), reason="axe-core is not here; run `make thorough`"),
    pytest.mark.skipif(BROWSER is None, reason=MISSING),
]


def pages():
    return sorted(
        str(path.relative_to(SITE)) for folder in ("book", "notebooks") for path in SITE.glob(f"{folder}/*.html")
    )


def violations(page, width, mode, opened=False):
    """What axe finds on a page and does not call minor, with all folds open or as they are."""
    path = SITE / page
    script = AXE.read_text().replace("</script", "<\\/script")
    added = f"{SAID}<script>{script}</script><script>const OPEN = {str(opened).lower()};{SCRIPT}</script></body>"
    copy = path.with_name(f"{path.stem}.{width}.{mode}.{opened}.axe.html")
    text = path.read_text().replace('data-default-mode="auto"', f'data-default-mode="{mode}"')
    text = re.sub(r'(dataset\.mode = localStorage\.getItem\("mode"\) \|\| )"auto"', rf'\1"{mode}"', text)
    copy.write_text(text.replace("</body>", added))
    try:
        found, seen = said_in(copy, f"--window-size={width},1000")
    finally:
        copy.unlink()
    assert f'data-theme="{mode}"' in seen
    return [rule for rule in found if rule[0] != "minor"]


@pytest.mark.parametrize("opened", [False, True], ids=["folded", "open"])
@pytest.mark.parametrize("width, mode", [(1400, "light"), (500, "dark")])
@pytest.mark.parametrize("page", pages() if SITE.exists() else [])
def test_no_violation(page, width, mode, opened):
    assert violations(page, width, mode, opened) == []


def test_a_violation_is_found():
    """An image without alt text is one."""
    path = SITE / "book" / "broken.html"
    whole = (SITE / "book" / "notation.html").read_text()
    path.write_text(whole.replace("<article", '<img src="../_static/logo.svg"><article', 1))
    try:
        assert "image-alt" in {rule for _, rule, _ in violations("book/broken.html", 1400, "light")}
    finally:
        path.unlink()
