"""What a cluster tells, before it goes, of what GKE has made for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.google.owner import Owner
from provision.kinds.gke import release
from provision.kinds.gke.left_behind import Traces
from provision.lifecycle import ownership
from provision.state.location import StateLocation
from tests.unit.state.test_record import WHOLE

if TYPE_CHECKING:
    from provision.context import Cloud, Context
    from provision.kinds.gke.kubernetes.client import Cluster

KNOWN = Traces(project="p", location="us-central1", cluster="np-gke", networks=frozenset())
UID = "9f2b1c3d-4e5f-6071-8293-a4b5c6d7e8f9"
EVERYWHERE = "/projects/123/global"
# As GKE writes it into a Gateway of today.
GATEWAY = {
    "networking.gke.io/backend-services": ", ".join(
        f"{EVERYWHERE}/backendServices/gkegw1-nv9e-{name}"
        for name in ("default-web-80-t9htdxlbxe5i", "gw-serve404-80-7cq0brelgzex")
    ),
    "networking.gke.io/firewalls": f"{EVERYWHERE}/firewalls/gkegw1-nv9e-l7-np-net-global",
    "networking.gke.io/last-reconcile-time": "2025-12-04T03:00:56Z",
    "networking.gke.io/ssl-certificates": "",
}


class FakeCluster:
    """A cluster with a Service and a Gateway."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    def all(self, _: str, kind: str) -> list[dict[str, Any]]:
        metadata: dict[str, Any] = {"name": "web", "namespace": "default", "uid": UID}
        about = {"apiVersion": "v1", "kind": kind}
        match kind:
            case "Service":
                return [{**about, "metadata": metadata, "spec": {"type": "LoadBalancer"}}]
            case "Gateway":
                return [{**about, "metadata": metadata | {"annotations": GATEWAY}}]
            case _:
                return []

    def delete(self, _: str, kind: str, name: str, namespace: str) -> None:
        self.deleted.append(f"{kind} {namespace}/{name}")


def test_gateways_are_deleted_like_services() -> None:
    cluster = FakeCluster()
    assert release.step(cast("Cluster", cluster)) == ["Service default/web", "Gateway default/web"]
    assert cluster.deleted == ["Service default/web", "Gateway default/web"]


def test_a_cluster_that_the_state_names_is_touched_only_in_the_records_place() -> None:
    asked: list[str] = []
    api = SimpleNamespace(find=lambda _, path: asked.append(path), marked=lambda *_: [])
    victim = {"project": "my-project", "location": "us-east4", "name": "victim"}
    location = SimpleNamespace(url="gs://b/np-deployment")
    folder = SimpleNamespace(of_type=lambda _: {"a": victim}, location=location)
    cloud = SimpleNamespace(api=api, folder=folder)
    assert release._own(cast("Cloud", cloud), WHOLE) is None
    assert asked == ["projects/my-project/locations/us-central1/clusters/np-gke"]


def test_facts_that_cannot_be_read_keep_nothing_from_being_destroyed() -> None:
    said: list[str] = []
    location = SimpleNamespace(url="gs://b/np-deployment")
    folder = SimpleNamespace(texts=lambda name: {name: "{"}, location=location)
    context = SimpleNamespace(console=SimpleNamespace(progress=said.append))
    release._cancel(
        cast("Context", context),
        cast("Cloud", SimpleNamespace(folder=folder)),
        cast("Cluster", FakeCluster()),
        WHOLE,
    )
    (told,) = said
    assert told.endswith("gs://b/np-deployment/cluster.json can't be read")


def test_their_annotations_tell_what_belongs_to_them() -> None:
    told = release._told(cast("Cluster", FakeCluster()), KNOWN)
    assert told.stems == {f"a{UID.replace('-', '')}"[:32], "gkegw1-nv9e"}


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_cluster_with_our_name_is_touched_if_it_carries_our_marker(*, is_ours: bool) -> None:
    place = StateLocation("state", "np-deployment", is_default=False)
    owner = ownership.ours(WHOLE, place) if is_ours else Owner("other")
    document = {"name": "np-gke", "resourceLabels": {"aiinfra-cluster": owner.id}}
    api = SimpleNamespace(find=lambda *_: document, marked=lambda *_: [])
    cloud = SimpleNamespace(api=api, folder=SimpleNamespace(location=place))
    found = release._own(cast("Any", cloud), WHOLE)
    assert found == (document if is_ours else None)
