"""The gate: pods on a GPU network wait in an init container until their node is ready for NCCL.

A node takes pods as soon as its GPUs are there, and its installer may be done minutes later: the
node pulls an image of some gigabytes. NCCL that finds no plugin fails nothing, and goes on over
plain sockets. An init container works for every kind of job, on nodes that the autoscaler brings
too, and needs no right in the cluster, as taking off a taint would.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.kinds.gke.kubernetes import nccl

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.objects import Object

NAME: Final = "wait-for-nccl"
SECONDS: Final = 900
"""How long it waits before the pod fails."""


@dataclass(frozen=True, kw_only=True)
class Gate:
    """What keeps a pod from starting before its node is ready for NCCL."""

    # An init container. It has to be the first one: the devices of a daemon must exist when the
    # daemon's container is made.
    container: Object
    volume: Object


_SCRIPT: Final = """\
waited=0
until [ -e {marker} ]; do
  if [ "${{waited}}" -ge {seconds} ]; then
    echo "NCCL is not installed on the node ${{NODE}} after {seconds} s:" \\
      "{marker} is missing there; found: $(ls {folder})." \\
      "Look at the DaemonSet {installer}: kubectl --namespace {namespace} get pods" \\
      "--selector k8s-app={installer} --field-selector spec.nodeName=${{NODE}}." \\
      "Where it has another version, run Create again and take the jobs that it writes." >&2
    exit 1
  fi
  [ $((waited % 60)) != 0 ] || echo "waiting for {installer} on ${{NODE}}"
  sleep 5
  waited=$((waited + 5))
done
"""


def of(facts: ClusterFacts, pool: GpuPool) -> Gate | None:
    """What the pods of a pool wait at; None where nothing is installed on its nodes."""
    stack = nccl.software(facts, pool)
    if stack is None or pool.gpu_network is None:
        return None
    installer = nccl.INSTALLERS[pool.gpu_network]
    script = _SCRIPT.format(
        marker=nccl.marker(installer, stack),
        folder=nccl.READY,
        seconds=SECONDS,
        installer=installer.name,
        namespace=nccl.NAMESPACE,
    )
    container: Object = {
        "name": NAME,
        # The node has it already, or pulls it for the installer at this very moment.
        "image": stack.plugin.pinned,
        "command": ["/bin/sh", "-c", script],
        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": nccl.READY_VOLUME, "mountPath": nccl.READY, "readOnly": True}],
    }
    return Gate(container=container, volume=nccl.ready_volume())
