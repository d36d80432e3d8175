"""A deployment's cluster as Google has it: its state, its Kubernetes API, and facts about it."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import names
from provision.codes import Code
from provision.errors import ClusterError, Problem, StateError
from provision.google.resources import CLUSTER
from provision.kinds.gke.kubernetes import client
from provision.kinds.gke.kubernetes.facts import ClusterFacts
from provision.state.objects import Stored, Writer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from provision.google.api import GoogleApi
    from provision.state.folder import StateFolder
    from provision.state.location import Place
    from provision.state.record import Record

_FACTS: Final = Stored(
    "cluster.json",
    Writer.PROGRAM,
    ClusterFacts.parse,
    fix="run Create again: it rewrites that file",
)


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
        return next((it for it in cls if it == document.get("status")), cls.UNSPECIFIED)


KEPT: Final = frozenset({State.RUNNING, State.RUNNING_WITH_ERROR, State.RECONCILING})
"""States of a pool that is worth keeping; a pool in the state ERROR has to be replaced."""

ANSWERING: Final = KEPT | {State.DEGRADED}
"""States of a cluster in which its Kubernetes API answers."""


def find(api: GoogleApi, place: Place) -> dict[str, Any] | None:
    """The cluster of a deployment as Google has it; None if it does not exist."""
    name = names.CLUSTER.of(place.name_prefix)
    path = CLUSTER.path(project=place.project_id, location=place.region, name=name)
    return api.find(CLUSTER.look.service, path)


def require(cluster: Mapping[str, Any], pools: Iterable[str]) -> list[Problem]:
    """See that a cluster ({} for none) and its pools can be worked with; notes on their state.

    Raises:
        ClusterError: The cluster or some pools do not exist, go, or failed.
    """
    there = {pool["name"]: pool for pool in cluster.get("nodePools", [])}
    parts = {"The cluster": cluster}
    parts |= {f"The node pool {name}": there.get(name, {}) for name in pools}
    lost = {State.STOPPING, State.ERROR}
    failures = [problem(what, it) for what, it in parts.items() if not it or State.of(it) in lost]
    if failures:
        raise ClusterError.of(failures)
    return [note for what, it in parts.items() if (note := _note(what, it))]


def _note(what: str, part: Mapping[str, Any]) -> Problem | None:
    match State.of(part):
        case State.RUNNING | State.STOPPING | State.ERROR:
            return None
        case State.PROVISIONING | State.RECONCILING:
            # GKE repairs and upgrades without a word, at any time.
            words = f"{what} is being changed by GKE"
            return Problem(code=Code.STILL_RUNNING, what=words, why=said(part))
        case State.RUNNING_WITH_ERROR | State.DEGRADED | State.UNSPECIFIED:
            return problem(what, part)


def problem(what: str, part: Mapping[str, Any]) -> Problem:
    """What is to be said of "The cluster" or a pool ({} for none) that is not in order."""
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


def reach(
    document: Mapping[str, Any] | None, api: GoogleApi, environ: Mapping[str, str]
) -> client.Cluster:
    """The API of a cluster at its DNS endpoint, where the IAM roles of the credentials apply.

    `document`: the cluster as Google has it: a host that the bucket names would get the token.

    Raises:
        ClusterError: The cluster does not exist.
    """
    if not document:
        raise ClusterError.of([problem("The cluster", {})])
    config = (document.get("controlPlaneEndpointsConfig") or {}).get("dnsEndpointConfig") or {}
    return client.Cluster(client.endpoint(str(config.get("endpoint", "")), environ), api.token)


# ------------------------------------------------------------------ the facts of the last Create


def keep(folder: StateFolder, facts: ClusterFacts) -> None:
    """Store the facts of the cluster, for actions that run without its settings."""
    folder.write(_FACTS.name, facts.document(), "application/json")


def kept(folder: StateFolder, record: Record) -> ClusterFacts | None:
    """The facts that the last Create stored; None if no Create has stored any."""
    return folder.read(_FACTS, record=record)


def finished(folder: StateFolder, record: Record) -> ClusterFacts:
    """The facts, of a cluster that is to be worked with."""
    facts = kept(folder, record)
    if facts is None:
        raise StateError(
            f"The cluster in {folder.location.url} is not ready",
            code=Code.NO_CLUSTER,
            why="no Create has finished creating it",
            fix="run Create again",
        )
    return facts


def require_settings(folder: StateFolder, record: Record) -> None:
    """Make sure that the record says what new pods fetch, mount and read."""
    if not record.settings:
        raise StateError(
            "It is not known where pods get their images from, nor their secrets and mounts",
            code=Code.STATE_UNREADABLE,
            why=f"{folder.location.url}/deployment.json was lost or damaged",
            fix="run Create again: it writes the settings there",
        )
