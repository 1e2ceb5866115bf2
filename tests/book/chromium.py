"""Pages in a real browser, for tests that need one."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MISSING = "needs Chromium (Debian's package)"
SAID = '<pre id="said" hidden></pre>'  # where a script of the page writes JSON


def said_in(page: Path, *flags: str, budget: int = 8000) -> tuple[object, str]:
    """What a page's script wrote, and the page as it is then; `budget` is in milliseconds of the page's own time."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--virtual-time-budget={budget}", "--dump-dom"]
    out = subprocess.run([*command, *flags, page.as_uri()], capture_output=True, text=True, timeout=300).stdout
    said = re.search(r'<pre id="said"[^>]*>(.*?)</pre>', out, re.DOTALL)
    assert said and said[1], "the page's script has not finished"
    return json.loads(html.unescape(said[1])), out


def said_by(folder: Path, body: str, script: str, *flags: str) -> object:
    """What a script returns, or promises, after a page's own scripts have run; the page lies in `folder/book`."""
    said = f"document.getElementById('said').textContent = JSON.stringify(await (async () => {{{script}}})())"
    late = f"window.addEventListener('load', async () => {{{said}}})"
    page = folder / "book" / "page.html"
    page.parent.mkdir(exist_ok=True)
    page.write_text(f'<!doctype html><meta charset="utf-8">{body}{SAID}<script>{late}</script>')
    return said_in(page, *flags)[0]
