# noqa: INP001 - a script of the Dockerfile's, no part of a package
"""What is in the image, as CycloneDX 1.6: `sbom.py FILE NAME=VERSION=PATH...`.

Debian's packages and the Python environment are read where they are; what was copied in is named on
the command line, with its file or folder.

A component that is one file has that file's SHA-256. One of many files has the SHA-256 of a list of
them as a property, because a component's hash would be taken for its archive's, which is not in the
image any more: of a Python package its RECORD, of Debian's what dpkg keeps of the files' checksums,
of a folder what `list_of` says.
"""

from __future__ import annotations

import hashlib
import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

_DPKG = Path("/var/lib/dpkg")
_PROPERTY = "aiinfra:sha256-of-"


def main(file: str, *copied: str) -> None:
    """Write the list."""
    components = [
        *(_distribution(found) for found in metadata.distributions()),
        *(_package(name, version) for name, version in _packages(_DPKG / "status")),
        *(_copied(*entry.split("=", 2)) for entry in copied),
    ]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "components": sorted(components, key=lambda component: str(component["purl"])),
    }
    Path(file).write_text(json.dumps(document, indent=1) + "\n")


def list_of(folder: Path) -> str:
    r"""What `find . -type f ! -name '*.pyc' | LC_ALL=C sort | xargs -d '\n' sha256sum` prints."""
    paths = sorted(f"./{it.relative_to(folder)}" for it in folder.rglob("*") if _is_kept(it))
    return "".join(f"{_sha256((folder / path).read_bytes())}  {path}\n" for path in paths)


def _is_kept(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.suffix != ".pyc"


def _packages(status: Path) -> list[tuple[str, str]]:
    """Name and version of each installed package, from dpkg's own records."""
    records = status.read_text(encoding="utf-8").split("\n\n") if status.exists() else []
    found = []
    for record in records:
        fields = dict(line.split(": ", 1) for line in record.splitlines() if ": " in line)
        if fields.get("Status", "").endswith(" installed"):
            found.append((fields["Package"], fields["Version"]))
    return found


def _distribution(found: metadata.Distribution) -> dict[str, Any]:
    records = [it.locate() for it in found.files or () if it.name == "RECORD"]
    record = Path(str(records[0])).read_bytes() if records else None
    return _component("pypi", found.name, found.version) | _listed("RECORD", record)


def _package(name: str, version: str) -> dict[str, Any]:
    # A package that lies beside its like of another architecture has that in the name.
    kept = sorted((_DPKG / "info").glob(f"{name}:*.md5sums"))
    kept += [it for it in [_DPKG / "info" / f"{name}.md5sums"] if it.exists()]
    text = kept[0].read_bytes() if kept else None
    return _component("deb/debian", name, version) | _listed("md5sums", text)


def _copied(name: str, version: str, path: str) -> dict[str, Any]:
    component, found = _component("generic", name, version), Path(path)
    if found.is_dir():
        return component | _listed("files", list_of(found).encode())
    return component | {"hashes": [{"alg": "SHA-256", "content": _sha256(found.read_bytes())}]}


def _component(kind: str, name: str, version: str) -> dict[str, Any]:
    return {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:{kind}/{name}@{version}",
    }


def _listed(what: str, listed: bytes | None) -> dict[str, Any]:
    """The property of a list; none where a package has no files, or brings no list of them."""
    if listed is None:
        return {}
    return {"properties": [{"name": f"{_PROPERTY}{what}", "value": _sha256(listed)}]}


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


if __name__ == "__main__":
    main(*sys.argv[1:])
