"""What this VM's GPUs complain of while it runs, as its agent tells it: a few words each.

Which Xids mean a broken GPU, link or memory, and not a program's mistake, is NVIDIA's page on XID
errors; the rest is what the task `check` looks at, but for DCGM's tests, which need free GPUs.
"""

from __future__ import annotations

import re
import subprocess
import threading
import time
from typing import Any

from aiinfra_vm.tasks import check

_EVERY = 120.0  # seconds
_SECONDS = 20
_MOST = 4
_LONGEST = 160
_XID = re.compile(r"NVRM: (Xid \(.*?\): (\d+),.*)")
# Memory that can't be corrected, a link, the bus, the GPU's own processor.
_BROKEN = frozenset({48, 62, 64, 74, 79, 95, 119, 120, 140})


def xids(since: str) -> list[tuple[int, str]]:
    """What the driver has said of GPUs: the number of each Xid, and its line.

    Args:
        since: An option of journalctl, such as "--boot".
    """
    try:
        done = subprocess.run(  # noqa: S603 - the system's own
            ["journalctl", "--dmesg", since, "--output=cat", "--no-pager"],  # noqa: S607
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, timeout=_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return []
    found = map(_XID.search, done.stdout.decode("utf-8", "replace").splitlines())
    return [(int(match[2]), match[0].strip()) for match in found if match]


def faults(config: dict[str, Any]) -> tuple[str, ...]:
    """What is wrong with this VM's GPUs since its boot; none where it has none, or nothing is."""
    if not config.get("gpus"):
        return ()
    looked = check.gpus()
    gpus, wanted = looked["gpus"], config["gpus"]["count"]
    errors = sum(gpu["ecc_volatile"] or 0 for gpu in gpus)
    down = [it["name"] for it in check.interfaces() if not it["up"]]
    found = [
        *dict.fromkeys(line for number, line in xids("--boot") if number in _BROKEN),
        looked["error"],
        f"{len(gpus)} GPUs instead of {wanted}" if len(gpus) != wanted else "",
        f"{errors} uncorrected memory (ECC) errors since its boot" if errors else "",
        f"no link on {', '.join(down)}" if down else "",
        check.dcgm_health(),
    ]
    return tuple(_plain(it) for it in found if it)[:_MOST]


def _plain(text: str) -> str:
    return re.sub(r"[^ -~]+", " ", text)[:_LONGEST]


class Watch:
    """Looks again and again in a thread of its own: a GPU off its bus can make nvidia-smi hang.

    Attributes:
        faults: What the last look has found.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self.faults: tuple[str, ...] = ()
        self._config = config
        if config.get("gpus"):
            threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while True:
            self.faults = faults(self._config)
            time.sleep(_EVERY)
