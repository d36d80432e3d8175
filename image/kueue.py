# noqa: INP001 - a script of the Dockerfile's, no part of a package
"""Fetch the part of Kueue's sources that its release manifest is made of.

    kueue.py URL TREE_SHA256 FOLDER

GitHub makes archives of a commit on request and promises no bytes, so that the archive itself has
no checksum to pin. What is pinned is the content: the sha256 of the list that `sha256sum` prints
for all files under config/, sorted by name.
"""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
import urllib.request
from pathlib import Path, PurePosixPath

_PART = "config"


def main(url: str, tree_sha256: str, folder: str) -> None:
    """Write config/ into the folder, or leave with the reason why not."""
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - the Dockerfile's own
        files = dict(_files(io.BytesIO(answer.read())))
    found = _tree_sha256(files)
    if found != tree_sha256:
        sys.exit(f"{url}: the sha256 of {_PART}/ is {found}, not the pinned {tree_sha256}")
    for name, content in files.items():
        file = Path(folder, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _files(archive: io.BytesIO) -> list[tuple[str, bytes]]:
    """Name and content of each file under config/; the archive's own top folder is cut off."""
    found = []
    with tarfile.open(fileobj=archive) as tar:
        for member in tar:
            parts = PurePosixPath(member.name).parts[1:]
            content = tar.extractfile(member) if member.isfile() else None
            if content is not None and parts[:1] == (_PART,) and ".." not in parts:
                found.append(("/".join(parts), content.read()))
    return found


def _tree_sha256(files: dict[str, bytes]) -> str:
    lines = (f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


if __name__ == "__main__":
    main(*sys.argv[1:])
