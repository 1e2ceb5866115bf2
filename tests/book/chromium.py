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
