"""The queues of teams: the value of KUEUE_QUEUES."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field

from provision.settings import parsing
from provision.settings.parsing import InvalidValueError, shorten

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""An object's name in Kubernetes (RFC 1123), short enough to be a label's value."""
LOCAL_QUEUE: Final = "dws-local-queue"
"""The queue of all, in the namespace of jobs."""
CLUSTER_QUEUE: Final = "dws-cluster-queue"
"""The same of the cluster."""
_TAKEN: Final = frozenset({CLUSTER_QUEUE, LOCAL_QUEUE})


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A queue, and the GPUs that are its own."""

    name: QueueName
    gpus: Annotated[int, Field(ge=0)]


def _queues(text: str) -> tuple[Queue, ...]:
    """`<queue>:<GPUs>,...`, each name once."""
    found: list[Queue] = []
    for item in parsing.comma_list(text):
        name, colon, gpus = (part.strip() for part in item.partition(":"))
        if not colon or not _NAME.fullmatch(name) or name in _TAKEN:
            raise InvalidValueError(
                f"has {shorten(item)}, which is not a queue with its GPUs",
                "<queue>:<GPUs>, separated by commas; a name has lower-case letters, digits and"
                f" hyphens, and is none of {', '.join(sorted(_TAKEN))}",
                fix=_fixed(text),
            )
        if name in {queue.name for queue in found}:
            raise InvalidValueError(f"names {name} twice", "each queue once")
        found.append(Queue(name=name, gpus=parsing.whole_number(gpus)))
        if found[-1].gpus < 0:
            raise InvalidValueError(f"has {gpus} GPUs for {name}", "0 or more")
    return tuple(found)


def _fixed(text: str) -> str:
    """The same with colons and commas, where other signs stand in their place."""
    form = re.compile(rf"(?P<name>{_NAME.pattern})[=:](?P<gpus>[0-9]{{1,6}})")
    pairs = [form.fullmatch(it) for it in re.split(r"[\s,;]+", text.strip(" ,;"))]
    names = {it["name"] for it in pairs if it}
    is_whole = all(pairs) and len(names) == len(pairs) and not names & _TAKEN
    return ",".join(f"{it['name']}:{it['gpus']}" for it in pairs if it) if is_whole else ""


def _queue(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise InvalidValueError(
            "is not the name of a queue", "lower-case letters, digits and hyphens"
        )
    return text


QueueName = Annotated[str, AfterValidator(_queue)]
Queues = Annotated[tuple[Queue, ...], BeforeValidator(_queues)]
