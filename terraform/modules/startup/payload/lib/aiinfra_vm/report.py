"""What start-up tells about itself: one document, in a guest attribute that the tool reads.

Google allows a VM 10 queries of guest attributes a minute and 3 a second, and may drop what is
written above that ("Setting and querying guest attributes", limits). So all steps are in one
document; what is new in it waits on the VM until the last one was written long enough ago. Whoever
looks from outside counts as well, and so do the host keys that Google's guest agent writes.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiinfra_vm import metadata

if TYPE_CHECKING:
    from collections.abc import Iterator

ATTRIBUTE = "startup"
NOT_YET = 75
"""The exit code of `over` where the last document was written a moment ago: ask again."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_UPTIME = Path("/proc/uptime")
_KEPT = Path("/var/lib/aiinfra/boot.json")
# Gone with the boot of which it tells.
_FOLDER = Path("/run/aiinfra-startup")
_DOCUMENT = _FOLDER / "report.json"
_SENT = _FOLDER / "sent.json"
_GAP = 12.0  # seconds from one document to the next
_LOOK = 3.0  # seconds from one look at what is new to the next
_TRIES = 10
_LINES = 20
_BYTES = 4000  # of a failed step's detail
_REASON = 300  # of a skipped one's
_METADATA = 6000  # bytes; all the metadata of an object may have 8 KiB (Cloud Storage, quotas)


def now(ago: float = 0.0) -> str:
    """This moment, or one so many seconds ago, as RFC 3339 has it."""
    return moment(time.time() - ago)


def moment(epoch: float) -> str:
    """A moment of the Unix epoch, as RFC 3339 has it."""
    return datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def boot() -> dict[str, Any]:
    """Which boot of the VM this is: its `number` from 1, and the kernel's `id` of it."""
    kept: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        kept = json.loads(_KEPT.read_text("utf-8"))
    identity = _BOOT_ID.read_text().strip()
    if kept.get("id") != identity:
        kept = {"number": int(kept.get("number", 0)) + 1, "id": identity}
        with contextlib.suppress(OSError):  # of a full disk
            _write(_KEPT, kept)
    return kept


def done() -> str | None:
    """The document of a start-up that is done; None as long as it is not, or for a large one."""
    try:
        text = _DOCUMENT.read_text("utf-8")
        is_done = json.loads(text)["state"] == "done"
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return text if is_done and len(text.encode()) <= _METADATA else None


def tell(name: str, value: Any) -> None:
    """Add what a step has found to the document, such as `gpu_check`; nothing if there is none."""
    if _DOCUMENT.exists():
        with _changed() as document:
            document[name] = value


def tell_step(step: str, told: dict[str, Any], whole: str = "", *, at_once: bool = False) -> None:
    """Tell of a step that goes on when start-up is over, and wait until that is sent.

    `whole`: what has become of the start-up with it; "" for nothing new. `at_once`: not to wait
    until the last document was sent long enough ago: the VM goes down.

    Raises:
        OSError: Guest attributes are off, or the server does not answer.
    """
    with _changed() as document:
        document["steps"][step] = told
        if whole:
            document["state"], document["step"] = whole, step if whole == "failed" else None
    for _ in range(_TRIES):
        if _send(at_once=at_once):
            return
        subprocess.run(["sleep", f"{_LOOK:g}"], check=False)  # noqa: S603, S607 - a constant


def tail(output: bytes, most: int = _BYTES) -> str:
    """The last lines of an output, at most 20, and in all so many bytes of UTF-8."""
    text = output.decode("utf-8", "replace").replace("\r", "\n")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    last = "\n".join(lines[-_LINES:]).encode()[-most:]
    # The cut may be within a character.
    return last.decode("utf-8", "ignore")


def main() -> int:
    """Change the document, and send it if the last one was long enough ago.

    `boot`: a new one, of which nothing is known; `begin STEP`; `end STEP STATE FILE`, the file
    being what the step said; `over STATE [STEP]`; `flush`; `relay`: send what is new, until the
    start-up is over.
    """
    kind, *rest = sys.argv[1:]
    if kind == "relay":
        starter = os.getppid()
        while os.getppid() == starter:
            time.sleep(_LOOK)
            with contextlib.suppress(OSError):
                _send()
        return 0
    if kind == "boot":
        _FOLDER.mkdir(parents=True, exist_ok=True)
        this = boot()
        fresh = {"state": "running", "step": None, "boot": this["id"], "number": this["number"]}
        _write(_DOCUMENT, {**fresh, "began": now(), "at": now(), "steps": {}})
        if _SENT.exists():
            _SENT.unlink()
    elif kind == "begin":
        (step,) = rest
        with _changed() as document:
            document["step"] = step
            document["steps"][step] = {"state": "running", "at": now()}
    elif kind == "end":
        step, state, file = rest
        most = {"done": 0, "skipped": _REASON}.get(state, _BYTES)
        detail = tail(Path(file).read_bytes(), most) if most else ""
        with _changed() as document:
            document["steps"][step] = {"state": state, "at": now(), "detail": detail}
    elif kind == "over":
        with _changed() as document:
            document["state"], document["step"] = rest[0], rest[1] if rest[1:] else None
    is_told = _send()
    return NOT_YET if kind in {"over", "flush"} and not (is_told and _arrived()) else 0


def _send(*, at_once: bool = False) -> bool:
    """Write the document to the guest attribute, unless one was written a moment ago."""
    with (_FOLDER / "sending").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        document = json.loads(_DOCUMENT.read_text("utf-8"))
        sent = json.loads(_SENT.read_text("utf-8")) if _SENT.exists() else None
        if sent is not None:
            if sent["document"] == document:
                return True
            if not at_once and 0 <= _uptime() - sent["uptime"] < _GAP:
                return False
        metadata.put_guest_attribute(ATTRIBUTE, json.dumps(document))
        _write(_SENT, {"uptime": _uptime(), "document": document})
        return True


def _arrived() -> bool:
    """Whether Google has the document that was sent; if not, it is to be sent again."""
    sent = json.loads(_SENT.read_text("utf-8"))
    if json.loads(metadata.guest_attribute(ATTRIBUTE) or "null") == sent["document"]:
        return True
    _write(_SENT, {**sent, "document": None})
    return False


@contextlib.contextmanager
def _changed() -> Iterator[dict[str, Any]]:
    """The document, to be changed; two who do that at once wait for each other."""
    with (_FOLDER / "changing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        document = json.loads(_DOCUMENT.read_text("utf-8"))
        yield document
        document["at"] = now()
        _write(_DOCUMENT, document)


def _uptime() -> float:
    """Seconds since the boot, which no setting of the clock changes."""
    return float(_UPTIME.read_text().split()[0])


def _write(file: Path, document: Any) -> None:
    # Whole or not at all: the VM may go down at any moment.
    draft = file.with_name(f"{file.name}.new")
    draft.write_text(json.dumps(document), "utf-8")
    draft.replace(file)


if __name__ == "__main__":
    sys.exit(main())
