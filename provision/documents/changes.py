"""What Terraform's plans count, and where it keeps its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The number of resources that all plans of a run would create, change and delete."""

    add: Annotated[int, "how many are created, those replaced included"] = 0
    change: Annotated[int, "how many are changed in place"] = 0
    destroy: Annotated[
        int,
        "how many are deleted, those replaced included; for a Destroy also what it finds "
        "outside of the state",
    ] = 0

    def __add__(self, other: Changes) -> Changes:
        return Changes(
            add=self.add + other.add,
            change=self.change + other.change,
            destroy=self.destroy + other.destroy,
        )

    def __bool__(self) -> bool:
        return bool(self.add or self.change or self.destroy)


@dataclass(frozen=True, kw_only=True)
class Backend:
    """Where Terraform keeps its state."""

    bucket: Annotated[str, "the bucket"]
    prefix: Annotated[str, "the prefix of the state's name in it"]
