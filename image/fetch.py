# noqa: INP001 - a script of the Dockerfile's, no part of a package
"""Download a file and keep it only if it is the one that was pinned: `fetch.py URL SHA256 FILE`.

The build stages have Python and neither curl nor wget.
"""

from __future__ import annotations

import hashlib
import sys
import urllib.request
from pathlib import Path


def main(url: str, sha256: str, file: str) -> None:
    """Write the file, or leave with the reason why not."""
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - the Dockerfile's own
        content: bytes = answer.read()
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        sys.exit(f"{url}: sha256 is {found}, not the pinned {sha256}; nothing was kept")
    Path(file).write_bytes(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
