"""What start-up tells about itself, in guest attributes that the tool reads."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from aiinfra_vm import metadata

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_LINES = 20
_BYTES = 4000  # of the detail; an attribute has room for more


def now() -> str:
    """This moment as RFC 3339 has it."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def startup(state: str, step: str | None = None) -> dict[str, Any]:
    """The document about the whole: running, done or failed, and at which step."""
    return {"state": state, "step": step, "boot": _BOOT_ID.read_text().strip(), "at": now()}


def of_step(state: str, output: bytes) -> dict[str, Any]:
    """The document about one step, with the end of what it said."""
    return {"state": state, "at": now(), "detail": tail(output)}


def tail(output: bytes) -> str:
    """The last lines of an output, at most 20 and 4,000 bytes of UTF-8 in all."""
    text = output.decode("utf-8", "replace").replace("\r", "\n")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    last = "\n".join(lines[-_LINES:]).encode()[-_BYTES:]
    # The cut may be within a character.
    return last.decode("utf-8", "ignore")


def main() -> None:
    """`begin STEP`; `end STEP STATE FILE`, the file being what it said; `over STATE [STEP]`."""
    kind, *rest = sys.argv[1:]
    if kind == "begin":
        (step,) = rest
        _put("startup", startup("running", step))
        _put(f"step-{step}", of_step("running", b""))
    elif kind == "end":
        step, state, file = rest
        output = b"" if state == "done" else Path(file).read_bytes()
        _put(f"step-{step}", of_step(state, output))
    else:
        _put("startup", startup(*rest))


def _put(name: str, document: dict[str, Any]) -> None:
    metadata.put_guest_attribute(name, json.dumps(document))


if __name__ == "__main__":
    main()
