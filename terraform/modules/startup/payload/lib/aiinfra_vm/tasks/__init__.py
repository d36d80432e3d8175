"""What a VM can be asked to do by the object task.json: a closed set, each a module here.

A task is data. It names a kind of this table and gives arguments, which the kind checks; nothing
in it reaches a shell or names a file. So whoever can write the object can have no more done than
what stands here.

A kind is a module with `run(arguments) -> answer`, both objects of JSON. It runs in a process of
its own, as root, in a session of its own that is killed after the task's time; what it writes to
standard error is kept as the detail of the result. `run` raises ValueError for arguments that it
does not take, and any other exception for what failed.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from aiinfra_vm import members, roster

OBJECT = "task.json"
RESULTS = "results/"
"""Where the answers are: results/ID/NAME.json."""

KINDS = {
    "bandwidth": "aiinfra_vm.tasks.bandwidth",
    "check": "aiinfra_vm.tasks.check",
    "peers": "aiinfra_vm.tasks.peers",
    "seal": "aiinfra_vm.tasks.seal",
}
"""Kind -> its module."""

_ID = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_LONGEST = 7200  # seconds


class Task(NamedTuple):
    """One task."""

    id: str  # its name, which no other task has ever had
    kind: str  # one of `KINDS`, or one that a later version knows
    arguments: dict[str, Any]  # what the kind takes
    # Who is to do it: name -> instance id. A VM that was made again meanwhile is not asked.
    vms: dict[str, str]
    seconds: int  # how long it may take


def parse(text: bytes) -> Task:
    """The task that an object holds.

    Raises:
        ValueError: It is none.
    """
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("a task is an object")  # noqa: TRY004 - one error for all that is wrong
    arguments, vms = document.get("arguments", {}), document.get("vms")
    if not isinstance(arguments, dict) or not isinstance(vms, dict):
        raise ValueError("a task has arguments and VMs")  # noqa: TRY004 - as above
    return Task(
        members.matched(_ID, document.get("id")),
        members.matched(_ID, document.get("kind")),
        arguments,
        vms,
        roster.whole(document.get("seconds"), 1, _LONGEST),
    )
