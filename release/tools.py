"""Environments of tools that the project itself does not need, made once below `build/tools`.

python release/tools.py release    # makes the environment of release/release.txt, and says where its Python is
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def python(name: str) -> Path:
    """The Python of an environment with what `release/<name>.txt` lists; made anew when the list has changed."""
    wanted, folder = ROOT / "release" / f"{name}.txt", ROOT / "build" / "tools" / name
    ready, inside = folder / "ready.txt", folder / "bin" / "python"
    if not ready.exists() or ready.read_text() != wanted.read_text():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [inside, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", wanted], check=True)
        ready.write_text(wanted.read_text())
    return inside


if __name__ == "__main__":
    print(python(sys.argv[1]))
