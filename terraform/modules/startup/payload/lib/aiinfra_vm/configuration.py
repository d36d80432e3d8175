"""What this VM is to be, as the metadata key `aiinfra-config` says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

# Beside lib/, in which this package is.
_FILE = Path(__file__).parents[2] / "config.json"


def load() -> dict[str, Any]:
    """The whole configuration."""
    found: dict[str, Any] = json.loads(_FILE.read_text("utf-8"))
    return found


def value(path: str) -> Any:
    """A value by its keys with dots between, such as ray.version; None where there is none."""
    found: Any = load()
    for key in path.split("."):
        found = None if found is None else found.get(key)
    return found


def main() -> None:
    """Print a value for a shell: nothing where it is null or false."""
    found = value(sys.argv[1])
    if found is None or found is False:
        return
    sys.stdout.write("true" if found is True else str(found))


if __name__ == "__main__":
    main()
