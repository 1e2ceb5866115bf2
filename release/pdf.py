"""The book as one PDF: Chromium prints each built page; links from page to page stay inside the file.

python release/pdf.py FILE    # after `make book`; needs release/release.txt
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, NameObject

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "_build" / "html"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MILLISECONDS = 20_000  # of a page's own time, in which formulas are set


def documents(root: Path) -> list[str]:
    """The pages in the order of the contents."""
    toc = yaml.safe_load((root / "_toc.yml").read_text())
    return [toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])]


def print_page(page: Path, to: Path) -> None:
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    flags += [f"--virtual-time-budget={MILLISECONDS}", f"--print-to-pdf={to}"]
    subprocess.run([BROWSER, *flags, page.as_uri()], check=True, capture_output=True, timeout=600)


def title(page: Path) -> str:
    found = re.search(r"<title>(.*?)(?: &#8212;.*| — .*)?</title>", page.read_text(), re.DOTALL)
    return found[1].strip() if found else page.stem


def bound(parts: dict[Path, Path]) -> PdfWriter:
    """One document of printed pages, by the HTML that each comes from, with an outline."""
    writer, first = PdfWriter(), {}
    for page, part in parts.items():
        first[page.as_uri()] = len(writer.pages)
        reader = PdfReader(part)
        for sheet in reader.pages:
            writer.add_page(sheet)
        writer.add_outline_item(title(page), first[page.as_uri()])
    for sheet in writer.pages:
        for link in sheet.get("/Annots") or ():
            _turn_inside(writer, link.get_object(), first)
    return writer


def _turn_inside(writer: PdfWriter, link, first: dict[str, int]) -> None:
    """Let a link to another page's file lead to where that page begins."""
    address = (link.get("/A") or {}).get("/URI", "")
    place = first.get(str(address).partition("#")[0])
    if place is not None:
        del link["/A"]
        link[NameObject("/Dest")] = ArrayObject([writer.pages[place].indirect_reference, NameObject("/Fit")])


def main(file: str) -> int:
    if BROWSER is None:
        print("pdf: Chromium is missing, which prints the pages; install it (Debian: chromium).", file=sys.stderr)
        return 2
    pages = [PAGES / f"{name}.html" for name in documents(ROOT)]
    if lacking := [page for page in pages if not page.exists()]:
        print(f"pdf: {lacking[0]} is not built; make book first.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        parts = {page: Path(folder) / f"{place}.pdf" for place, page in enumerate(pages)}
        for page, part in parts.items():
            print_page(page, part)
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        bound(parts).write(file)
    print(f"{file}: {len(PdfReader(file).pages)} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
