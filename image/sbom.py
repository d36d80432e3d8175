# noqa: INP001 - a script of the Dockerfile's, no part of a package
"""What is in the image, as CycloneDX 1.6: `sbom.py FILE NAME=VERSION...`.

Debian's packages and the Python environment are read where they are; what was copied in as a
binary is named on the command line.
"""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

_DPKG = Path("/var/lib/dpkg/status")


def main(file: str, *copied: str) -> None:
    """Write the list."""
    components = [
        *(_component("pypi", found.name, found.version) for found in metadata.distributions()),
        *(_component("deb/debian", name, version) for name, version in _packages(_DPKG)),
        *(_component("generic", *entry.split("=", 1)) for entry in copied),
    ]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "components": sorted(components, key=lambda component: str(component["purl"])),
    }
    Path(file).write_text(json.dumps(document, indent=1) + "\n")


def _packages(status: Path) -> list[tuple[str, str]]:
    """Name and version of each installed package, from dpkg's own records."""
    records = status.read_text(encoding="utf-8").split("\n\n") if status.exists() else []
    found = []
    for record in records:
        fields = dict(line.split(": ", 1) for line in record.splitlines() if ": " in line)
        if fields.get("Status", "").endswith(" installed"):
            found.append((fields["Package"], fields["Version"]))
    return found


def _component(kind: str, name: str, version: str) -> dict[str, Any]:
    return {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:{kind}/{name}@{version}",
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
