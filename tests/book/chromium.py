"""Pages in a real browser, for tests that need one."""

import atexit
import functools
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MISSING = "needs Chromium (Debian's package)"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe")
SCREEN = dict(width=900, height=1400, deviceScaleFactor=1, mobile=False)
STILL = {"name": "prefers-reduced-motion", "value": "reduce"}
LOADED = """new Promise((done) => {
  if (document.readyState === "complete") done();
  else window.addEventListener("load", () => setTimeout(done));  // after what the page does then
})"""


class Browser:
    """A browser that obeys the DevTools protocol in a pipe; it begins in the time of several pages, so it is kept."""

    def __init__(self) -> None:
        self.profile, self.numbers = tempfile.TemporaryDirectory(), count(1)
        heard, commands = os.pipe()
        answers, told = os.pipe()
        pipes = [(os.POSIX_SPAWN_DUP2, heard, 3), (os.POSIX_SPAWN_DUP2, told, 4)]  # the numbers that Chromium knows
        silent = [(os.POSIX_SPAWN_OPEN, file, os.devnull, os.O_RDWR, 0) for file in (1, 2)]
        command = [BROWSER, *FLAGS, f"--user-data-dir={self.profile.name}"]
        self.process = os.posix_spawn(BROWSER, command, os.environ, file_actions=[*pipes, *silent])
        os.close(heard), os.close(told)
        self.commands, self.answers = os.fdopen(commands, "wb", 0), os.fdopen(answers, "rb", 0)
        self.left, self.events = b"", []
        atexit.register(self.end)

    def ask(self, method: str, session: str | None = None, **given: object) -> dict:
        """What a command gives."""
        number = next(self.numbers)
        command = {"id": number, "method": method, "params": given} | ({"sessionId": session} if session else {})
        self.commands.write(json.dumps(command).encode() + b"\0")
        while (answer := self.told()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def told(self) -> dict:
        """The next answer or event."""
        while b"\0" not in self.left:
            more = self.answers.read(1 << 20)
            assert more, "the browser has ended"
            self.left += more
        one, _, self.left = self.left.partition(b"\0")
        return json.loads(one)

    @contextmanager
    def visitor(self) -> Iterator[str]:
        """The session of a visitor who has never been there."""
        visitor = self.ask("Target.createBrowserContext")
        target = self.ask("Target.createTarget", url="about:blank", **visitor)
        yield self.ask("Target.attachToTarget", flatten=True, **target)["sessionId"]
        self.ask("Target.disposeBrowserContext", **visitor)

    def give(self, session: str, promise: str) -> object:
        """What an expression of the page's language promises."""
        found = self.ask("Runtime.evaluate", session, expression=promise, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def errors(self, session: str, address: str) -> list[str]:
        """What goes wrong while a page loads: errors of its scripts, and files that are not there."""
        self.ask("Runtime.enable", session), self.ask("Log.enable", session)
        self.events.clear()
        self.ask("Page.navigate", session, url=address)
        self.give(session, LOADED)
        told = [event["params"] for event in self.events if event.get("sessionId") == session]
        thrown = [one["exceptionDetails"] for one in told if "exceptionDetails" in one]
        logged = [one["entry"] for one in told if one.get("entry", {}).get("level") == "error"]
        return [one.get("exception", one).get("description", one["text"]) for one in thrown] + [
            f"{one['text']} {one.get('url', '')}" for one in logged
        ]

    def end(self) -> None:
        self.ask("Browser.close")
        os.waitpid(self.process, 0)
        self.profile.cleanup()


browser = functools.cache(Browser)


def said_by(folder: Path, body: str, script: str) -> object:
    """What a script returns, or promises, after a page's own scripts have run; the page lies in `folder/book`."""
    page = folder / "book" / "page.html"
    page.parent.mkdir(exist_ok=True)
    page.write_text(f'<!doctype html><meta charset="utf-8">{body}')
    with browser().visitor() as session:
        browser().ask("Emulation.setDeviceMetricsOverride", session, **SCREEN)
        browser().ask("Emulation.setEmulatedMedia", session, features=[STILL])
        browser().ask("Page.navigate", session, url=page.as_uri())
        browser().give(session, LOADED)
        return browser().give(session, f"(async () => {{{script}}})()")
