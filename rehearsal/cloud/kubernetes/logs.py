"""What containers have written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.cloud.kubernetes import programs, starting
from rehearsal.cloud.kubernetes.answers import Refusal

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import Object, World


def of(world: World, pod: Object, container: str) -> str:
    """The log of a pod's container so far.

    `container`: the container's name; "" where there is but one.
    """
    name = pod["metadata"]["name"]
    known = pod["spec"].get("containers") or []
    names = [it["name"] for it in known]
    if not container and len(names) > 1:
        choice = " ".join(names)
        raise Refusal(
            400, f"a container name must be specified for pod {name}, choose one of: [{choice}]"
        )
    before = next((it for it in _before(pod) if it["name"] == container), None)
    if before is not None and "nodeName" in pod["spec"]:
        return starting.log(world, pod, before)
    chosen = next((it for it in known if it["name"] == (container or names[0])), None)
    if chosen is None:
        raise Refusal(400, f"container {container} is not valid for pod {name}")
    if pod["status"]["phase"] == "Pending":
        raise Refusal(
            400,
            f'container "{chosen["name"]}" in pod "{name}" is waiting to start: ContainerCreating',
        )
    return programs.log(world, pod, chosen)


def _before(pod: Object) -> list[Object]:
    found: list[Object] = pod["spec"].get("initContainers") or []
    return found
