"""What exists without being in the state: found, taken in or removed, others' things left alone."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.errors import StateError
from provision.google.api import GoogleApi, Service
from provision.google.owner import Owner
from provision.google.resources import Look
from provision.lifecycle import marked, ownership
from provision.state import terraform_state
from provision.terraform.plan import Creation

ID = Owner.of("p", "np", "").id
TEXT = f"aiinfra-cluster={ID}"
LABELS = {"aiinfra-cluster": ID}
SHARE = "projects/p/locations/us-central1-a/instances/np-nfs-0a1b2c3d"
GROUP = "projects/p/zones/us-central1-a/instanceGroupManagers/np-mig"
PLACE = {"project": "p", "region": "us-central1", "zone": "us-central1-a"}


class Api:
    """A cloud of the given things, by path."""

    def __init__(self) -> None:
        self.things: dict[str, dict[str, Any]] = {}
        self.deleted: list[tuple[Service, str]] = []
        self.bindings: list[dict[str, Any]] = []
        self.revoked: list[str] = []

    def holding(self, path: str, **document: Any) -> Api:
        self.things[path] = {"name": path, **document}
        return self

    def _in(self, collection: str) -> list[dict[str, Any]]:
        return [one for path, one in self.things.items() if path.split("/")[-2] == collection]

    def find(self, _service: Service, path: str) -> dict[str, Any] | None:
        return self.things.get(path)

    def marked(self, look: Look, _project: str, owner: Owner) -> list[dict[str, Any]]:
        return [one for one in self._in(look.collection) if look.is_of(one, owner)]

    def revoke(self, _project: str, _email: str, _kept: set[str]) -> None:
        """Roles in the project are another test's."""

    def revoke_in_bucket(
        self, _bucket: str, is_revoked: Callable[[dict[str, Any], str], bool]
    ) -> None:
        self.revoked += [
            f"{binding['role']} {member}"
            for binding in self.bindings
            for member in binding["members"]
            if is_revoked(binding, member)
        ]

    def delete(self, service: Service, path: str) -> None:
        self.deleted.append((service, path))


def _find(api: Api, kind: str, **values: Any) -> list[ownership.Orphan]:
    creation = Creation(address=f"{kind}.it", type=kind, values={**PLACE, **values})
    return ownership.orphans([creation], Owner(ID), set(), cast("GoogleApi", api))


@pytest.mark.parametrize(
    ("kind", "path", "values"),
    [
        ("google_filestore_instance", SHARE, {"name": SHARE[-15:], "location": "us-central1-a"}),
        (
            "google_compute_resource_policy",
            "projects/p/regions/us-central1/resourcePolicies/np-placement",
            {"name": "np-placement"},
        ),
        (
            "google_compute_resize_request",
            f"{GROUP}/resizeRequests/np-1",
            {"name": "np-1", "instance_group_manager": "np-mig"},
        ),
    ],
)
def test_what_is_there_already_is_imported_by_its_path(
    kind: str, path: str, values: dict[str, str]
) -> None:
    api = Api().holding(path, description=TEXT)

    assert _find(api, kind, **values) == [ownership.Orphan(f"{kind}.it", path, displaces=False)]


def test_a_group_that_a_killed_move_left_in_another_zone_is_imported_from_there() -> None:
    there = "projects/p/zones/us-central1-b/instanceGroupManagers/np-mig"
    zone = "https://google/compute/v1/projects/p/zones/us-central1-b"
    api = Api().holding(there, description=TEXT, zone=zone)
    api.holding(there + "-2", description="somebody's", zone=zone)
    (orphan,) = _find(api, "google_compute_instance_group_manager", name="np-mig")
    assert orphan.import_id == there


def test_a_dashboard_is_found_by_the_marker_and_imported_into_the_project_by_its_id() -> None:
    api = Api().holding("projects/123/dashboards/other", labels={"aiinfra-cluster": "another"})
    assert _find(api, "google_monitoring_dashboard", dashboard_json="{}") == []
    api.holding("projects/123/dashboards/9d900001", labels=LABELS)
    (orphan,) = _find(api, "google_monitoring_dashboard", dashboard_json="{}")
    assert orphan.import_id == "projects/p/dashboards/9d900001"


CLUSTER = "projects/p/locations/us-central1/clusters/np-gke"
LINK = f"https://google/container/v1/{CLUSTER}"


def test_a_cluster_is_known_by_its_labels_and_its_pools_by_their_cluster() -> None:
    api = Api().holding(CLUSTER, resourceLabels=LABELS, nodePools=[{"name": "np-a100"}])
    place = {"location": "us-central1"}

    (cluster,) = _find(api, "google_container_cluster", name="np-gke", **place)
    (pool,) = _find(api, "google_container_node_pool", name="np-a100", cluster="np-gke", **place)

    assert cluster.import_id == CLUSTER
    assert pool.import_id == "p/us-central1/np-gke/np-a100"
    missing = {"name": "np-t4", "cluster": "np-gke", **place}
    assert _find(api, "google_container_node_pool", **missing) == []


def test_a_share_of_that_name_that_somebody_else_made_is_never_touched() -> None:
    api = Api().holding(SHARE, labels={})
    share = {"name": "np-nfs-0a1b2c3d", "location": "us-central1-a"}
    with pytest.raises(StateError, match="np-nfs"):
        _find(api, "google_filestore_instance", **share)


def _sweep(api: Api, *known: str, buckets: tuple[str, ...] = ()) -> list[str]:
    folder = SimpleNamespace(known=lambda: set(known), location=SimpleNamespace(url=""))
    marked.sweep(
        cast("Any", SimpleNamespace(console=SimpleNamespace(progress=lambda _: None))),
        cast("Any", SimpleNamespace(api=api, folder=folder)),
        cast("Any", SimpleNamespace(project_id="p", name_prefix="np", hosts=())),
        last=True,
        buckets=buckets,
    )
    return [path.rpartition("/")[2] for _, path in api.deleted]


def test_what_ended_runs_left_is_removed_users_before_what_they_use() -> None:
    api = Api().holding("projects/p/global/networks/np-net", description=TEXT)
    api.holding("projects/p/regions/us-central1/resourcePolicies/np-workload", description=TEXT)
    api.holding(SHARE, labels=LABELS)
    api.holding("projects/123/dashboards/9d900001", labels=LABELS)
    api.holding(GROUP, description=TEXT)
    removed = _sweep(api)
    assert removed == ["np-mig", "np-workload", "np-nfs-0a1b2c3d", "9d900001", "np-net"]
    assert (Service.FILESTORE, SHARE) in api.deleted

    gke = Api().holding("projects/p/global/networks/np-net", description=TEXT)
    gke.holding(CLUSTER, selfLink=LINK, resourceLabels=LABELS)
    gke.holding(f"{CLUSTER}-2", selfLink=f"{LINK}-2", resourceLabels={})
    assert _sweep(gke) == ["np-gke", "np-net"]
    assert (Service.CONTAINER, CLUSTER) in gke.deleted


def test_what_the_state_knows_and_what_is_others_is_left_alone() -> None:
    api = Api().holding(SHARE, labels=LABELS)
    api.holding("projects/p/locations/us-central1-a/instances/theirs", labels={"a": "b"})
    api.holding("projects/123/dashboards/9d900001", labels=LABELS)
    for project in ("123", "p"):
        assert _sweep(api, SHARE, f"projects/{project}/dashboards/9d900001") == []


NODES = "serviceAccount:np-nodes@p.iam.gserviceaccount.com"
TEAM = "serviceAccount:team@p.iam.gserviceaccount.com"
CONDITION = {"title": "aiinfra files", "description": TEXT, "expression": "true"}


def _roles_left(*known: str) -> list[str]:
    """The roles in the bucket "data" that a sweep takes away."""
    api = Api().holding(
        "projects/p/serviceAccounts/np-nodes",
        description=TEXT,
        email="np-nodes@p.iam.gserviceaccount.com",
    )
    api.bindings = [
        {"role": "roles/storage.objectUser", "members": [NODES, TEAM]},
        {"role": "roles/storage.objectViewer", "members": [TEAM], "condition": CONDITION},
    ]
    _sweep(api, *known, "np-nodes", buckets=("data",))
    return api.revoked


OURS = f"roles/storage.objectUser {NODES}"
THEIRS = f"roles/storage.objectViewer {TEAM}"


def test_roles_in_buckets_go_by_our_account_or_by_the_marker_of_their_condition() -> None:
    assert _roles_left() == [OURS, THEIRS]
    # Those that the state knows are Terraform's to take.
    known = (
        f"b/data/{OURS}".replace(" ", "/"),
        f"b/data/{THEIRS}/aiinfra files".replace(" s", "/s"),
    )
    assert _roles_left(*known) == []


def _known(kind: str, **attributes: Any) -> set[str]:
    """What a state knows that has this grant."""
    one = {"mode": "managed", "type": kind, "name": "one"}
    return terraform_state.known(
        {"resources": [{**one, "instances": [{"attributes": attributes}]}]}
    )


def test_a_conditional_role_is_known_whatever_id_the_provider_gives_it() -> None:
    """The provider's own ends with title, description and expression of the condition."""
    role = "roles/storage.objectViewer"
    known = _known(
        "google_storage_bucket_iam_member",
        id=f"b/data/{role}/{TEAM}/aiinfra files/{TEXT}/true",
        bucket="b/data",
        role=role,
        member=TEAM,
        condition=[CONDITION],
    )
    assert _roles_left(*known) == [OURS]
    # One in the project is kept for Terraform to take.
    role = "roles/secretmanager.secretAccessor"
    known = _known(
        "google_project_iam_member",
        id=f"p/{role}/{NODES}/secret key/{TEXT}/true",
        project="p",
        role=role,
        member=NODES,
        condition=[{**CONDITION, "title": "secret key"}],
    )
    assert marked._roles_in_state("p", NODES.partition(":")[2], known) == {role}
