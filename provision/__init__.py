"""One env.list becomes a GPU cluster on Google Cloud, and goes away again."""

import sys
from pathlib import Path

__version__ = "0.1.0"

if sys.platform == "win32":
    # Before what only POSIX has is imported: locks of files, signals, groups of processes.
    raise SystemExit(
        "aiinfra runs on Linux and macOS. On Windows install it in WSL 2, or use its image."
    )


def in_tree(path: str) -> Path:
    """A file or folder outside the package, by its path in the repository.

    A wheel carries it in `tree`, inside the package; a clone and the image have it beside it.
    """
    package = Path(__file__).resolve().parent
    carried = package / "tree"
    return (carried if carried.is_dir() else package.parent) / path
