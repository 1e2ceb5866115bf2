"""Put the repository's address and branch of `_config.yml` wherever else they stand: `python book/address.py`."""

import re
import sys
from pathlib import Path

import yaml

PLACES = ("README.md", "CITATION.cff", "notebooks/*.ipynb")
ADDRESS = re.compile(r"https://github\.com/[\w.-]+/[\w-]+")
INSTALLED = re.compile(rf"git\+{ADDRESS.pattern}@[\w./-]+")


def put(root: Path) -> list[Path]:
    """Write the address into all files under `root` that have another one; returns those."""
    place = yaml.safe_load((root / "_config.yml").read_text())["repository"]
    changed = []
    for path in sorted(path for pattern in PLACES for path in root.glob(pattern)):
        before = path.read_text()
        after = INSTALLED.sub(f"git+{place['url']}@{place['branch']}", before)
        after = ADDRESS.sub(place["url"], after)
        if after != before:
            path.write_text(after)
            changed.append(path)
    return changed


if __name__ == "__main__":
    for written in put(Path(sys.argv[1] if len(sys.argv) > 1 else ".")):
        print(written)
