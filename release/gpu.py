"""Execute every chapter on a GPU (`make gpu`), none twice by one commit. Arguments: `profile=paper retrain=True`."""

import json
import os
import sys
import threading
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import torch

from cot2lib.errors import CoT2Error
from cot2lib.kit.provenance import provenance, resolve_device
from cot2lib.study import chapters

OUT = Path(__file__).resolve().parents[1] / "build" / "gpu"


def main(*arguments: str) -> int:
    """Execute them one after the other; returns how many failed."""
    if not (find_spec("papermill") and find_spec("ipykernel")):
        print("papermill or ipykernel is not installed here: the chapters are left out.")
        return 0
    os.environ.setdefault("COT2_STORE", str(OUT / "runs"))
    given = {"device": "cuda"} | dict(word.partition("=")[::2] for word in arguments)
    return sum(execute(source, given) for source in chapters.all_chapters())


def execute(source: Path, given: dict[str, str]) -> int:
    """Execute a chapter and print what came of it, seconds and peak GPU memory; returns its exit status."""
    wanted: dict = {"parameters": chapters.defaults(source) | chapters.checked(source, given)}
    wanted |= {key: value for key, value in provenance(resolve_device()).items() if key in ("device", "commit")}
    made = json.loads((OUT / source.name).read_text())["metadata"]["cot2"] if (OUT / source.name).exists() else {}
    if made | wanted == made:
        print(f"{source.stem:<22}{'ok, executed before':<60}{made['seconds']:>7.1f} s", flush=True)
        return 0
    used, ended = [0], threading.Event()

    def look() -> None:
        while given["device"] == "cuda" and not ended.wait(0.5):
            free, whole = torch.cuda.mem_get_info()
            used.append(whole - free)

    threading.Thread(target=look, daemon=True).start()
    with redirect_stdout(StringIO()) as said:
        status = chapters.execute([source.stem], given, OUT)
    ended.set()
    print(f"{said.getvalue().splitlines()[0]}{max(used) / 2**30:>8.1f} GiB", flush=True)
    return status


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except CoT2Error as error:
        sys.exit(f"gpu: {error}")
