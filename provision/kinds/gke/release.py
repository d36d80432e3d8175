"""What Destroy does in a GKE cluster before it removes it.

It cancels the ProvisioningRequests of jobs, which else would bring nodes meanwhile, and deletes
what GKE makes things in Google Cloud for: with the cluster gone, nobody would unmake those.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

from provision import words
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import ClusterError, CredentialsError, StateError
from provision.google.resources import CLUSTER, NETWORK
from provision.kinds.gke import control_plane, left_behind
from provision.kinds.gke.kubernetes import kueue, status
from provision.kinds.gke.kubernetes.objects import Object, holds
from provision.kinds.gke.left_behind import Traces
from provision.lifecycle import ownership, phases
from provision.lifecycle.phases import Phase
from provision.time.deadline import Deadline, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from provision.context import Cloud, Context
    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.facts import ClusterFacts
    from provision.state.record import Record

_PATIENCE: Final = 600.0
"""Seconds of cloud time for GKE to unmake load balancers and disks; one takes a minute or two."""
_POLL: Final = 5.0
_SILENCES: Final = 5
"""So many requests in a row without an answer, and the control plane counts as silent."""
T = TypeVar("T")


def data(context: Context, cloud: Cloud, record: Record) -> list[str]:
    """The volumes that go with the cluster's claims, in words.

    None where the control plane is silent: a volume whose policy nobody can ask for is kept.
    """
    document = _own(cloud, record)
    if document is None:
        return []
    try:
        return list(going(control_plane.reach(document, cloud.api, context.environ)))
    except (ClusterError, CredentialsError, TransientError):
        return []


def release(context: Context, cloud: Cloud, record: Record) -> None:
    """Release in the cluster what would outlive it, if it exists and answers.

    A failure here does not stop Destroy: requests go with the cluster, and what GKE leaves is
    looked for when the cluster is gone.
    """
    with phases.during(Phase.REMOVING, cloud, "Could not look for the cluster"):
        document = _own(cloud, record)
    earlier = left_behind.kept(cloud.folder, record)
    # Whoever may write to the bucket may have changed the state, too.
    of_state = (str(it.get("id", "")) for it in cloud.folder.of_type(NETWORK.type).values())
    known = Traces.of(record, of_state).and_earlier(earlier)
    if document is None:
        # It is gone, but what it has left need not be.
        if earlier is None:
            left_behind.keep(cloud.folder, known)
        return
    # Kept before anything is deleted: a run that is killed later may be the last to see it.
    left_behind.keep(cloud.folder, known)
    cluster = control_plane.reach(document, cloud.api, context.environ)
    _cancel(context, cloud, cluster, record)
    _clear(context, cloud, cluster, known)


def _own(cloud: Cloud, record: Record) -> dict[str, Any] | None:
    """The deployment's cluster as Google has it; None if there is none.

    One without our marker is another's, whatever the state says: its Services and claims are not
    ours to delete.
    """
    found = control_plane.find(cloud.api, record)
    if found is not None and ownership.is_ours(found, record, cloud.folder.location):
        return found
    owner = ownership.ours(record, cloud.folder.location)
    return next(iter(cloud.api.marked(CLUSTER.look, record.project_id, owner)), None)


def _cancel(context: Context, cloud: Cloud, cluster: Cluster, record: Record) -> None:
    try:
        facts = control_plane.kept(cloud.folder, record)
        count = cancel_requests(cluster, facts) if facts and facts.has_queue else 0
    except (ClusterError, CredentialsError, StateError, TransientError) as error:
        context.console.progress(f"Could not cancel the requests in the cluster first: {error}")
        return
    if count:
        context.console.progress(f"Cancelled {count} requests for nodes")


def _clear(context: Context, cloud: Cloud, cluster: Cluster, known: Traces) -> None:
    """Delete Services and claims, and wait until GKE has unmade what it made for them."""
    tell = context.console.progress
    try:
        with context.progress.stage(StageName.RELEASE, OnInterrupt.LEAVES_REST) as stage:
            deadline = stage.deadline(_PATIENCE, _POLL)
            left_behind.keep(cloud.folder, _answer(deadline, lambda: _told(cluster, known)))
            left = first = _answer(deadline, lambda: step(cluster))
            if first:
                tell(f"Deleting in Kubernetes first: {words.listed(first)}")
                stage.counts(f"GKE removes what it made for {words.listed(first)}")
            while left and not deadline.is_over:
                deadline.pause()
                left = _answer(deadline, lambda: step(cluster))
                stage.counts(f"GKE removes what it made for {words.listed(left)}" if left else "")
            if left:
                tell(f"Not waiting longer for GKE to remove what it made for {words.listed(left)}")
            elif first:
                tell("Kubernetes has deleted them, and GKE what it made for them")
    except (ClusterError, CredentialsError, TransientError) as error:
        tell(
            "Could not delete Services and claims in Kubernetes first, so what GKE made for them"
            f" is looked for when the cluster is gone: {error}"
        )


def _answer(deadline: Deadline, ask: Callable[[], T]) -> T:
    """The answer of a control plane that may be silent for a while."""
    for _ in range(_SILENCES - 1):
        try:
            return ask()
        except TransientError:
            deadline.pause()
    return ask()


def _told(cluster: Cluster, known: Traces) -> Traces:
    """The traces, with what the cluster knows of its load balancers and disks."""
    services = balanced(cluster)
    annotations = [
        name.strip().rpartition("/")[2]  # a Gateway's are lists of paths
        for it in services
        for value in (it["metadata"].get("annotations") or {}).values()
        for name in str(value).split(",")
    ]
    found = dataclasses.replace(known, volumes=storage(cluster, known.project))
    return found.with_stems([*map(left_behind.balancer, services), *annotations]).and_earlier(known)


# ------------------------------------------------------------------ in the cluster

_CLAIM: Final = "PersistentVolumeClaim"
_VOLUME: Final = "PersistentVolume"
_DELETE: Final = "Delete"
_RETAIN: Final = "Retain"
_MADE_BY: Final = "pv.kubernetes.io/provisioned-by"
_FORM: Final = re.compile(r"projects/[a-z0-9.:-]+(/[a-z0-9-]+){4}")
"""Of the path of a disk or an instance."""


def cancel_requests(cluster: Cluster, facts: ClusterFacts) -> int:
    """Cancel the open ProvisioningRequests by deleting them (rule Q14); how many there were.

    The queue is stopped first, because it would create each request again. If there is another
    Create, that starts the queue again. Without requests nothing in the cluster is changed.
    """
    requests = cluster.all(status.REQUEST_API, status.REQUEST)
    waiting = [one for one in requests if not (holds(one, "Provisioned") or holds(one, "Failed"))]
    if not waiting:
        return 0
    for thing in kueue.objects(facts):
        if thing["kind"] == "ClusterQueue":
            cluster.apply({**thing, "spec": {**thing["spec"], "stopPolicy": "HoldAndDrain"}})
    for one in waiting:
        name, namespace = one["metadata"]["name"], one["metadata"].get("namespace", "")
        cluster.delete(status.REQUEST_API, status.REQUEST, name, namespace)
    return len(waiting)


def step(cluster: Cluster) -> list[str]:
    """Delete what is there still; returns what was there, such as "Service default/web".

    To be repeated until nothing is left: a Service or a claim is there until GKE has unmade its
    load balancer or its disk, and what runs in the cluster may make new ones.
    """
    volumes = {it["metadata"]["name"]: it for it in cluster.all("v1", _VOLUME)}
    claims = [it for it in cluster.all("v1", _CLAIM) if _goes(it, volumes)]
    found = [*balanced(cluster), *claims]
    if claims:
        found += _users(cluster, claims)
    for thing in found:
        metadata = thing["metadata"]
        if "deletionTimestamp" not in metadata:
            cluster.delete(
                thing["apiVersion"], thing["kind"], metadata["name"], metadata["namespace"]
            )
    # The volume is there until its disk is gone.
    return [*map(_words, found), *map(_words, _made(volumes.values()))]


def balanced(cluster: Cluster) -> list[Object]:
    """The Services, Ingresses and Gateways for which there are load balancers.

    A Gateway leaves its backend services and health checks (GoogleCloudPlatform/gke-gateway-api#41,
    2025-12-08), which are looked for when the cluster is gone.
    """
    services = cluster.all("v1", "Service")
    return [
        *(it for it in services if (it.get("spec") or {}).get("type") == "LoadBalancer"),
        *cluster.all("networking.k8s.io/v1", "Ingress"),
        *cluster.all("gateway.networking.k8s.io/v1", "Gateway"),
    ]


def going(cluster: Cluster) -> Iterator[str]:
    """The volumes that go with their claims, in words."""
    for spec in (it["spec"] for it in _made(cluster.all("v1", _VOLUME))):
        claim = spec.get("claimRef") or {}
        name = f"{claim.get('namespace', '')}/{claim.get('name', '')}"
        size = spec["capacity"]["storage"]
        yield f"Volume of the claim {name}, {size}, with all its files"


def storage(cluster: Cluster, project: str) -> dict[str, str]:
    """The disks and Filestore instances of the cluster's volumes: path -> reclaim policy.

    What somebody has brought along is kept by Kubernetes, whatever its volume's policy is.
    """
    return {
        path: _policy(it) if _is_made(it) else _RETAIN
        for it in cluster.all("v1", _VOLUME)
        # Whoever makes a volume by hand may write anything into it.
        if _FORM.fullmatch(path := _path(it["spec"].get("csi") or {}, project))
    }


def _path(csi: Mapping[str, Any], project: str) -> str:
    """The path of what a driver of GKE's has for a volume; "" for a share of a larger instance."""
    driver, handle = csi.get("driver"), str(csi.get("volumeHandle", ""))
    match driver, handle.split("/"):
        case "pd.csi.storage.gke.io", _:
            return handle
        case "filestore.csi.storage.gke.io", ["modeInstance", location, name, _]:
            return f"projects/{project}/locations/{location}/instances/{name}"
        case _:
            return ""


def _goes(claim: Object, volumes: Mapping[str, Object]) -> bool:
    """Whether a claim's volume goes with it; one without a volume may get one at any moment."""
    name = (claim.get("spec") or {}).get("volumeName")
    return not name or (name in volumes and _policy(volumes[name]) == _DELETE)


def _policy(volume: Object) -> str:
    return str(volume["spec"].get("persistentVolumeReclaimPolicy", ""))


def _is_made(volume: Object) -> bool:
    """Whether the cluster made a volume, and so unmakes it."""
    return _MADE_BY in (volume["metadata"].get("annotations") or {})


def _made(volumes: Iterable[Object]) -> list[Object]:
    """The volumes that go with their claims, and their disks with them."""
    return [it for it in volumes if _is_made(it) and _policy(it) == _DELETE]


def _users(cluster: Cluster, claims: list[Object]) -> Iterator[Object]:
    """What keeps claims from going: their pods, and what would claim new volumes for new pods."""
    own = {(it["metadata"]["namespace"], it["metadata"]["name"]) for it in claims}
    for one in cluster.all("apps/v1", "StatefulSet"):
        if (one.get("spec") or {}).get("volumeClaimTemplates"):
            yield one
    for pod in cluster.all("v1", "Pod"):
        volumes = (pod.get("spec") or {}).get("volumes") or []
        claimed = (it.get("persistentVolumeClaim") or {} for it in volumes)
        if any((pod["metadata"]["namespace"], it.get("claimName")) in own for it in claimed):
            yield pod


def _words(thing: Object) -> str:
    metadata = thing["metadata"]
    name = "/".join(filter(None, [metadata.get("namespace"), metadata["name"]]))
    return f"{thing['kind']} {name}"
