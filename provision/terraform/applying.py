"""How far an apply is, read from what Terraform prints for people.

The lines are the same since Terraform 0.12 ("google_x.y: Creation complete after 3s [id=...]"); its
JSON stream has no more in it, and would leave nothing for people to read in the log.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Self

from provision.documents.timeline import OnInterrupt, StageName, StageState
from provision.errors import Interrupted
from provision.google import resources
from provision.words import COLOUR

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from provision.time.stages import OpenStage, Progress

_PARTS: Final[Mapping[str, StageName]] = {
    **dict.fromkeys(
        (
            resources.NETWORK.type,
            resources.SUBNETWORK.type,
            resources.FIREWALL.type,
            resources.ROUTER.type,
            resources.NAT.type,
        ),
        StageName.NETWORKS,
    ),
    resources.CLUSTER.type: StageName.CLUSTER,
    resources.NODE_POOL.type: StageName.POOLS,
}
"""Types of resources that people know as a part of a cluster; the rest counts in the whole."""

_LINE: Final = re.compile(
    r"(?P<address>\S.*?): (?:(?P<begun>Creating|Modifying|Destroying)\.\.\."
    r"|(?:Creation|Modifications|Destruction) complete after )"
)
_TYPE: Final = re.compile(r"(?:^|\.)(google_[a-z0-9_]+)\.")
_WORK: Final = frozenset({"create", "update", "delete"})


def work(document: Mapping[str, Any]) -> dict[StageName, int]:
    """How much a plan does, by part; a replacement is two pieces of work."""
    found: Counter[StageName] = Counter()
    for resource in document.get("resource_changes", []):
        count = len(_WORK & set(resource["change"]["actions"]))
        for part in {StageName.TERRAFORM, _part(resource["type"])}:
            found[part] += count
    return dict(found)


def _part(type_: str) -> StageName:
    return _PARTS.get(type_, StageName.TERRAFORM)


class Applying:
    """An apply as stages: the whole of it, and the parts that people know, side by side."""

    def __init__(self, progress: Progress, due: Mapping[StageName, int]) -> None:
        self._stages = progress.stages
        self._due = due
        self._done: Counter[StageName] = Counter()
        self._open: dict[StageName, OpenStage] = {}
        self._under_way: dict[str, str] = {}
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def __enter__(self) -> Self:
        """Begin the whole."""
        if self._due.get(StageName.TERRAFORM):
            self._begin(StageName.TERRAFORM)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what is open, as Terraform has ended."""
        if error is None:
            state = StageState.DONE
        elif isinstance(error, Interrupted):
            state = StageState.INTERRUPTED
        else:
            state = StageState.FAILED
        for part in reversed(tuple(self._open)):
            self._end(part, state)

    def feed(self, data: bytes) -> None:
        """Read a part of what Terraform prints."""
        *lines, self._rest = (self._rest + self._decoder.decode(data)).split("\n")
        for line in lines:
            found = _LINE.match(COLOUR.sub("", line))
            if found is not None:
                self._see(found["address"], begins=found["begun"] is not None)

    def _see(self, address: str, *, begins: bool) -> None:
        types = _TYPE.findall(address)
        type_ = types[-1] if types else ""
        parts = dict.fromkeys((StageName.TERRAFORM, _part(type_)))
        if begins:
            self._under_way[address] = type_
        else:
            self._under_way.pop(address, None)
        for part in parts:
            if not self._due.get(part):
                continue
            if begins and part not in self._open:
                self._begin(part)
            self._done[part] += not begins
            if part in self._open:
                self._count(part)
                if part is not StageName.TERRAFORM and self._done[part] >= self._due[part]:
                    self._end(part, StageState.DONE)

    def _begin(self, part: StageName) -> None:
        self._open[part] = self._stages.begin(part, OnInterrupt.SAVES)
        self._count(part)

    def _count(self, part: StageName) -> None:
        words = f"{self._done[part]} of {self._due[part]}"
        if part is StageName.TERRAFORM and self._under_way:
            words += f"; at work on {_nouns(list(self._under_way.values()))}"
        self._open[part].counts(words)

    def _end(self, part: StageName, state: StageState) -> None:
        opened = self._open.pop(part)
        opened.counts(f"{self._done[part]} of {self._due[part]}")
        self._stages.end(opened, state)


def _nouns(types: list[str]) -> str:
    """Types of resources in words, each once, such as "2 x compute subnetwork"."""
    counted = Counter(it.removeprefix("google_").replace("_", " ") or "resources" for it in types)
    return ", ".join(
        noun if number == 1 else f"{number} x {noun}" for noun, number in counted.items()
    )
