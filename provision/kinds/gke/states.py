"""The states of a GKE cluster and of its node pools, and what each is worth."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.errors import ClusterError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class State(enum.StrEnum):
    """A cluster's or a node pool's `status` in the container API (v1, discovery of 2026-10-27)."""

    UNSPECIFIED = "STATUS_UNSPECIFIED"
    PROVISIONING = "PROVISIONING"
    RUNNING = "RUNNING"
    RUNNING_WITH_ERROR = "RUNNING_WITH_ERROR"
    RECONCILING = "RECONCILING"
    STOPPING = "STOPPING"
    ERROR = "ERROR"
    DEGRADED = "DEGRADED"

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> State:
        """The state of a cluster or a pool; one that this version does not know is no state."""
        try:
            return cls(document.get("status") or cls.UNSPECIFIED)
        except ValueError:
            return cls.UNSPECIFIED


KEPT: Final = frozenset({State.RUNNING, State.RUNNING_WITH_ERROR, State.RECONCILING})
"""States of a pool that is worth keeping; a pool in the state ERROR has to be replaced."""

ANSWERING: Final = KEPT | {State.DEGRADED}
"""States of a cluster in which its Kubernetes API answers."""


def require(cluster: Mapping[str, Any], pools: Iterable[str]) -> list[Problem]:
    """See that a cluster and its pools can be worked with.

    `cluster`: the cluster as Google's API returns it; {} if it does not exist.

    Raises:
        ClusterError: The cluster or some pools do not exist, go, or failed.
    """
    there = {pool["name"]: pool for pool in cluster.get("nodePools", [])}
    parts = [("The cluster", cluster)]
    parts += [(f"The node pool {name}", there.get(name, {})) for name in pools]
    failures = [problem(what, part) for what, part in parts if _is_lost(part)]
    if failures:
        raise ClusterError.of(failures)
    return list(_notes(parts))


def _is_lost(part: Mapping[str, Any]) -> bool:
    return not part or State.of(part) in {State.STOPPING, State.ERROR}


def _notes(parts: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[Problem]:
    for what, part in parts:
        match State.of(part):
            case State.RUNNING | State.STOPPING | State.ERROR:
                pass
            case State.PROVISIONING | State.RECONCILING:
                # GKE repairs and upgrades without a word, at any time.
                yield Problem(
                    code=Code.STILL_RUNNING, what=f"{what} is being changed by GKE", why=said(part)
                )
            case State.RUNNING_WITH_ERROR | State.DEGRADED | State.UNSPECIFIED:
                yield problem(what, part)


def problem(what: str, part: Mapping[str, Any]) -> Problem:
    """What is to be said of a cluster or a pool that is not in order.

    `what`: it in words, such as "The cluster". `part`: it as Google's API returns it; {} if it does
    not exist.
    """
    if not part:
        return Problem(
            code=Code.MACHINES_GONE,
            what=f"{what} does not exist",
            why="somebody deleted it after it was created",
            fix="run Create again",
        )
    return Problem(
        code=Code.NOT_IN_ORDER,
        what=f"{what} is not in order",
        why=said(part),
        fix="Status shows it; Create repairs what the settings describe",
    )


def said(part: Mapping[str, Any]) -> str:
    """The state of a cluster or a pool with GKE's words about it, as a sentence."""
    state = part.get("status") or State.UNSPECIFIED
    told = part.get("statusMessage") or "; ".join(
        one.get("message", "") for one in part.get("conditions", [])
    )
    return f"its state is {state}" + (f": {told}" if told else "")
