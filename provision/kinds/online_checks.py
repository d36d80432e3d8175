"""The reference page of the online checks: `python -m provision.kinds.online_checks FILE`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from provision.kinds.gke.preflight import VERSION
from provision.kinds.vms.preflight import IMAGE
from provision.preflight.table import CHECKS
from provision.settings.choices import OnlineCheck

_ORDER: Final = list(OnlineCheck)


def markdown() -> str:
    """The page docs/reference/online-checks.md."""
    rows = "\n".join(
        f"| `{check.name}` | {', '.join(f'`{call}`' for call in check.calls)} | {check.says} |"
        for check in sorted((*CHECKS, IMAGE, VERSION), key=lambda it: _ORDER.index(it.name))
    )
    return _PAGE.replace("ROWS", rows)


_PAGE: Final = """\
# Online checks

What Create, Plan and Validate ask of Google before anything is made. All checks are made at the
same time, each question is put once, and all problems are told together, with exit code 4; with 5
where nothing is wrong but that what has our names is not ours. A check that could not be made (its
API is off, the credentials may not ask) is a note and stops nothing.

`SKIP_CHECKS=quota,names` leaves out the checks of these names.

| check | calls | a failure says |
| --- | --- | --- |
ROWS

Before them, and not to be skipped: the credentials give a token (exit code 3), the project exists
(`cloudresourcemanager.projects.get`, exit code 4), and the bucket of the state, where it exists, is
this project's and holds no foreign state (`storage.buckets.get`, `storage.objects.get`, exit code
5).

This page is made by `python -m provision.kinds.online_checks docs/reference/online-checks.md`.
"""


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(markdown(), encoding="utf-8")
