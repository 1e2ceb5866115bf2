"""An RO-Crate of records and pages, which libraries and archives can read without a question.

    python release/crate.py FOLDER    # the records of the manifest, their cards, the built pages, the PDF

It runs in the environment of release/release.txt. What it says of itself is from CITATION.cff.
"""

import mimetypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from io import BytesIO
from pathlib import Path

import ruamel.yaml
from requests import PreparedRequest, Response
from requests.adapters import BaseAdapter
from requests_cache import CachedSession
from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate
from urllib3 import HTTPResponse
from whole import CHECKSUM, MANIFEST, CrateError, check, listed, reported, sha256

ROOT = Path(__file__).parents[1]
RECORDS, PAGES = ROOT / "cot2lib" / "study" / "records", ROOT / "_build" / "html"
CONTEXT = "https://w3id.org/ro/crate/1.3/context"  # of the RO-Crate that the library writes and has a copy of
FORMATS = {".csv": "text/csv", ".gz": "application/gzip", ".safetensors": "application/octet-stream"}
KINDS = {  # by the third part of a record's name
    "runs": "Runs, a row each: spec, accuracies, time, device, versions, commit",
    "curves": "Learning curves, a row for each run and evaluation",
    "weights": "Trained weights of runs; the card beside it says of which",
}


def described(path: Path) -> str:
    """What a file is, in a sentence."""
    parts = path.name.split(".")
    if path.suffix in (".html", ".pdf"):
        return f"The book: {path.stem}"
    if path.name == MANIFEST:
        return "Checksums of all records"
    kind = KINDS.get(parts[2], f"Table of measurements: {parts[2]}") if len(parts) > 3 else "Documentation"
    return f"{kind} ({parts[0]}, profile {parts[1]})" if len(parts) > 3 else kind


def about(path: Path) -> dict:
    """Properties of a file."""
    kind = FORMATS.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "text/plain"
    said = {"name": path.name, "encodingFormat": kind, "description": described(path)}
    return said | {"contentSize": str(path.stat().st_size), CHECKSUM: sha256(path)}


def contents(root: Path) -> Iterator[tuple[Path, str]]:
    """Files of the crate, and where they go; what pages only need, such as pictures, goes as whole folders.

    Raises:
        CrateError: where there is no book, or a record is not what the manifest says.
    """
    records, pages = root / RECORDS.relative_to(ROOT), root / PAGES.relative_to(ROOT)
    if not (pages / "index.html").exists():
        raise CrateError(f"{pages} holds no book; make book first.")
    for name in sorted([*listed(records), MANIFEST, *(path.name for path in records.glob("*.md"))]):
        yield records / name, f"records/{name}"
    folders = {path for path in pages.iterdir() if path.is_dir() and path.name.startswith("_")}
    shown = (path for path in pages.rglob("*") if path.is_file() and not folders & set(path.parents))
    for path in sorted([*folders, *(path for path in shown if path.name != ".buildinfo")]):
        yield path, f"book/{path.relative_to(pages).as_posix()}"
    for path in [
        *sorted(root.glob("dist/*.pdf")),
        *(root / name for name in ("CITATION.cff", "LICENSE", "README.md")),
    ]:
        yield path, path.name


def write(root: Path, folder: Path) -> None:
    """Write the crate anew.

    Raises:
        CrateError: where there is no book, or a record is not what the manifest says.
    """
    given = list(contents(root))
    shutil.rmtree(folder, ignore_errors=True)
    cited = ruamel.yaml.YAML(typ="safe").load((root / "CITATION.cff").read_text())
    crate = ROCrate(version="1.3")
    _say_whole(crate, cited)
    for path, place in given:
        if path.is_dir():
            said = {"name": place, "description": "Parts of the book's pages", CHECKSUM: sha256(path)}
            crate.add_dataset(path, f"{place}/", properties=said)
        else:
            crate.add_file(path, place, properties=about(path))
    crate.write(folder)


def _say_whole(crate: ROCrate, cited: dict) -> None:
    """Name, authors, licence and the paper of a crate, from a citation file."""

    def known(identifier: str, kind: str, **said) -> ContextEntity:
        return crate.add(ContextEntity(crate, identifier, properties={"@type": kind} | said))

    paper = cited["preferred-citation"]
    people = [
        known(f"#{one['family-names']}", "Person", name=f"{one['given-names']} {one['family-names']}")
        for one in paper["authors"]
    ]
    article = known(paper["url"], "ScholarlyArticle", name=paper["title"], datePublished=str(paper["year"]))
    article["author"] = people
    licence = f"https://spdx.org/licenses/{cited['license']}"
    licensed = known(licence, "CreativeWork", name=f"{cited['license']} License", description="Free to use and change")
    maker = known(cited["repository-code"], "Organization", name=cited["authors"][0]["name"])
    crate.name, crate.description = cited["title"], cited["abstract"]
    crate.datePublished, crate.keywords = str(cited["date-released"]), ", ".join(cited["keywords"])
    root = crate.root_dataset
    root["license"], root["author"], root["publisher"], root["citation"] = licensed, maker, maker, article
    root["version"], root["identifier"] = str(cited["version"]), cited["repository-code"]


class Packaged(BaseAdapter):
    """Answers requests for the context of RO-Crate by the copy that comes with the library."""

    def send(self, request: PreparedRequest, **options) -> Response:
        """The copy, as the server would send it."""
        answer = Response()
        answer.status_code, answer.url, answer.request = 200, request.url, request
        answer.headers["Content-Type"] = "application/ld+json"
        answer.raw = HTTPResponse(BytesIO((files("rocrate") / "data" / "ro-crate.jsonld").read_bytes()), status=200,
                                  headers=answer.headers, preload_content=False)  # fmt: skip
        return answer

    def close(self) -> None:
        """Nothing is open."""


def validate(folder: Path) -> None:
    """Ask RO-Crate's own validator, which needs no network then.

    Raises:
        CrateError: with its findings.
    """
    with tempfile.TemporaryDirectory() as place:
        cache = f"{place}/http"
        session = CachedSession(cache, backend="sqlite", expire_after=-1)
        session.mount("https://", Packaged())
        session.get(CONTEXT)
        program = Path(sys.executable).with_name("rocrate-validator")
        options = ["-v", "-l", "required", "--no-paging", "--offline", "--cache-path", cache]
        command = [program, "-y", "--disable-color", "validate", *options, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise CrateError(f"the crate is not valid:\n{done.stdout}{done.stderr}")


def main(folder: str = "dist/crate") -> int:
    """Write and validate; returns the exit status."""

    def written() -> str:
        write(ROOT, Path(folder))
        validate(Path(folder))
        return f"{folder}: {check(Path(folder))} files, valid"

    return reported(written)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
