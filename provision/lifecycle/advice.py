"""Where Google says that it has machines now, for Spot and flex start (ADR 91).

Sources: compute v1 (discovery of 2026-11-06), advice.capacity; Compute Engine, "View the
availability of Spot VMs" (read in 2026-11), which has the limits of what is likely. It is a
preview: who may not ask, and machines that it does not know, get no answer, and all goes as it
would without one.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
from typing import TYPE_CHECKING, Any, Final

from provision.documents import json_object
from provision.google.api import GoogleApiError, Service
from provision.spec.capacity import Mode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provision.documents.plan import Candidate
    from provision.google.api import GoogleApi
    from provision.spec.cluster import ClusterSpec
    from provision.spec.pools import Pool

MODELS: Final = {Mode.SPOT: "SPOT", Mode.FLEX_START: "FLEX_START", Mode.QUEUED: "FLEX_START"}
"""The modes that Google advises on -> its word for them."""
_LIKELY, _UNLIKELY = 0.7, 0.4
_AT_ONCE: Final = 8


def added(api: GoogleApi, found: Sequence[tuple[ClusterSpec, Candidate]]) -> Iterator[Candidate]:
    """The candidates that are described by these clusters, with what Google says of them."""

    def one(spec: ClusterSpec, candidate: Candidate) -> Candidate:
        pool, *others = (it for it in spec.pools if it not in spec.system_pools)
        if candidate.against or others or pool.mode not in MODELS:
            return candidate
        path = f"projects/{spec.project_id}/regions/{spec.region}/advice/capacity"
        try:
            answer = api.call("POST", Service.COMPUTE, path, {}, question(pool))
        except GoogleApiError:
            return candidate
        return _advised(candidate, answer)

    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as threads:
        yield from threads.map(lambda it: one(*it), found)


def question(pool: Pool) -> dict[str, Any]:
    """What is asked: of one zone alone, as one answer has one score for all that are named."""
    shape: dict[str, Any] = {"machineTypes": [pool.machine_type]}
    if pool.attached:
        gpus = {"acceleratorType": pool.gpu_type, "acceleratorCount": pool.gpus}
        shape["guestAccelerators"] = [gpus]
    return {
        "distributionPolicy": {
            "targetShape": "ANY_SINGLE_ZONE",
            "zones": [{"zone": f"zones/{pool.zone}"}],
        },
        "instanceFlexibilityPolicy": {"instanceSelections": {"machines": shape}},
        "instanceProperties": {"scheduling": {"provisioningModel": MODELS[pool.mode]}},
        "size": max(1, pool.size.first),
    }


def _advised(candidate: Candidate, answer: object) -> Candidate:
    for one in json_object.objects(json_object.inner(answer).get("recommendations")):
        scores = json_object.inner(one.get("scores"))
        chance, uptime = scores.get("obtainability"), scores.get("estimatedUptime")
        if isinstance(chance, int | float) and 0 <= chance <= 1:
            seconds = str(uptime or "").removesuffix("s")
            return dataclasses.replace(
                candidate,
                obtainability=float(chance),
                uptime_seconds=int(seconds) if seconds.isdecimal() else None,
            )
    return candidate


def rank(candidate: Candidate) -> int:
    """How likely machines are there, by Google's own limits: 0 likely, 2 unlikely, else 1."""
    chance = candidate.obtainability
    if chance is None:
        return 1
    return 0 if chance >= _LIKELY else 1 if chance >= _UNLIKELY else 2
