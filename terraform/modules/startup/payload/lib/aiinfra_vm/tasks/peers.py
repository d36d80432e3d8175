"""What this VM has on its disk about the group, so that whether all agree can be seen."""

from __future__ import annotations

from typing import Any

from aiinfra_vm import peers


def run(arguments: dict[str, Any]) -> dict[str, Any]:
    """The rank of this VM, and the roster's number.

    Raises:
        ValueError: There are arguments.
    """
    if arguments:
        raise ValueError("it takes no arguments")
    found = peers.read()
    if found is None:
        raise LookupError("this VM has read no roster yet")
    return {key: found[key] for key in ("rank", "nnodes", "generation", "complete")}
