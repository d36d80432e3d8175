"""A cluster under test, and hands that do what Google's autoscaler would."""

import datetime as dt
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from provision.kinds.gke.kubernetes import kueue, stages, status
from provision.kinds.gke.kubernetes.client import Body, Cluster
from provision.kinds.gke.kubernetes.facts import GpuPool
from provision.kinds.gke.kubernetes.objects import Object
from provision.kinds.gke.kubernetes.objects import conditions as conditions_of
from provision.kinds.gke.kubernetes.stages import Stage
from provision.time.clock import Clock
from provision.time.stages import Progress

T = TypeVar("T")

PROGRESS = Progress(Clock(0.2), lambda _: None)
_ANSWER_TIMEOUT = 60.0


@dataclass
class World:
    """The cluster."""

    cluster: Cluster

    def install(self, things: list[Object]) -> None:
        """Apply a manifest; definitions are there before the rest."""
        first = [thing for thing in things if thing["kind"] in ("Namespace", _DEFINITION)]
        rest = [thing for thing in things if thing not in first]
        wanted = [Stage("definitions", first), Stage("the rest", rest)]
        stages.apply(self.cluster, wanted, progress=PROGRESS)

    def until(self, look: Callable[[], T | None]) -> T:
        """What a look finds once it finds something."""
        end = time.monotonic() + _ANSWER_TIMEOUT
        while True:
            found = look()
            if found:
                return found
            assert time.monotonic() < end, "it did not happen in time"
            time.sleep(0.1)

    def request(self, words: str, attempt: int = 1) -> Object:
        """The ProvisioningRequest of a job, as soon as there is one."""

        def look() -> Object | None:
            found = self.cluster.all(status.REQUEST_API, status.REQUEST, "default")
            return next(
                (
                    thing
                    for thing in found
                    if words in thing["metadata"]["name"]
                    and thing["metadata"]["name"].endswith(f"-{attempt}")
                ),
                None,
            )

        return self.until(look)

    def answer(
        self, request: Object, condition: str, reason: str, message: str = "", **details: str
    ) -> None:
        """Set a condition on a request, and details of it, as the autoscaler does."""
        conditions = [
            entry for entry in conditions_of(request).values() if entry["type"] != condition
        ]
        conditions.append(
            {
                "type": condition,
                "status": "True",
                "reason": reason,
                "message": message,
                "lastTransitionTime": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            }
        )
        request["status"] = {"conditions": conditions, "provisioningClassDetails": details}
        self.patch_status(request, request["status"])

    def patch_status(self, thing: Object, content: Mapping[str, object]) -> None:
        """Change the status of an object."""
        path = self.cluster._path_of(thing)
        self.cluster._json(
            "change a status",
            "PATCH",
            f"{path}/status",
            body=Body({"status": content}, "application/merge-patch+json"),
        )

    def add_node(self, pool: GpuPool, name: str, **labels: str) -> None:
        """Make a node of a pool, with the taints that GKE gives it."""
        size = {"cpu": "208", "memory": "1800Gi", "pods": "110", kueue.GPU: str(pool.gpus)}
        taints = [{"key": kueue.GPU, "value": "present", "effect": "NoSchedule"}]
        if pool.queued:
            taints.append({"key": kueue.QUEUED_TAINT, "value": "true", "effect": "NoSchedule"})
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {
                    kueue.POOL_LABEL: pool.name,
                    kueue.ACCELERATOR_LABEL: pool.accelerator,
                    **labels,
                },
            },
            "spec": {"taints": taints},
        }
        self.cluster.apply(node)
        self.patch_status(node, {"allocatable": size, "capacity": size})


_DEFINITION = "CustomResourceDefinition"
