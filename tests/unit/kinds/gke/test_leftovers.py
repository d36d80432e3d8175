"""What is said of things that GKE left and that can't be removed, or that stay."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.codes import Code
from provision.errors import ClusterError, StateError, TerraformError
from provision.google.api import GoogleApiError, Service
from provision.kinds.gke import leftovers
from provision.kinds.gke.traces import Traces
from tests.unit.kinds.gke import test_traces

if TYPE_CHECKING:
    from provision.context import Cloud, Context
    from provision.errors import Problem

BALANCER = "a9f2b1c3d4e5f60718293a4b5c6d7e8f"
LINK = "https://www.googleapis.com/compute/v1/"
NETWORK = "projects/p/global/networks/np-net"
REGION = "projects/p/regions/us-central1"
TRACES = Traces(
    project="p",
    location="us-central1",
    cluster="np-gke",
    networks=frozenset({NETWORK}),
    stems=frozenset({BALANCER}),
)
PARTS = [f"{REGION}/forwardingRules/{BALANCER}", f"{REGION}/targetPools/{BALANCER}"]


class Google:
    """An API with some resources; `refused` maps a path or a collection to a code."""

    def __init__(self, *paths: str, refused: dict[str, int] | None = None) -> None:
        self.paths = list(paths)
        self.refused = refused or {}
        self.cluster: dict[str, Any] | None = None
        self.clusters: list[dict[str, Any]] = []
        self.share: dict[str, Any] = {}
        self.tags: list[str] = []

    def find(self, service: Service, path: str) -> dict[str, Any] | None:
        if service is Service.FILESTORE:
            return {**test_traces.share(), **self.share} if path in self.paths else None
        return self.cluster

    def listed(self, look: Any, project: str, **_: str) -> list[dict[str, Any]]:
        assert project == "p"
        self._refuse(look.collection)
        if look.collection == "clusters":
            return self.clusters
        found = [path for path in self.paths if f"/{look.collection}/" in path]
        about = {"network": LINK + NETWORK, "targetTags": self.tags}
        return [
            {"name": path.rpartition("/")[2], "selfLink": LINK + path, **about} for path in found
        ]

    def delete(self, _: object, path: str) -> None:
        self._refuse(path)
        self.paths.remove(path)

    def _refuse(self, what: str) -> None:
        if what in self.refused:
            raise GoogleApiError(self.refused[what], "no", "https://x")


class Folder:
    """A state folder with one file."""

    def __init__(self, text: str | None) -> None:
        self.text = text
        self.location = SimpleNamespace(url="gs://b/np")

    def texts(self, name: str) -> dict[str, str]:
        return {} if self.text is None else {name: self.text}

    def write(self, _: str, text: str, kind: str) -> None:
        assert kind == "application/json"
        self.text = text


def swept(google: Google, *, last: bool = True, text: str | None = None) -> tuple[int, list[Any]]:
    notes: list[Problem] = []
    said: list[str] = []
    context = SimpleNamespace(note=notes.extend, console=SimpleNamespace(progress=said.append))
    folder = Folder(TRACES.document() if text is None else text or None)
    cloud = SimpleNamespace(api=google, folder=folder)
    count = leftovers.sweep(
        cast("Context", context), cast("Cloud", cloud), test_traces.RECORD, last=last
    )
    assert len(said) == count
    return count, notes


def problems(google: Google) -> list[Problem]:
    with pytest.raises(ClusterError) as caught:
        swept(google)
    assert caught.value.exit_code == 8
    return list(caught.value.problems)


def test_what_is_ours_goes_and_what_is_not_stays() -> None:
    other = f"{REGION}/targetPools/a{'0' * 31}"
    google = Google(*PARTS, other, "projects/p/global/firewalls/k8s-fw-web")
    assert swept(google) == (2, [])
    assert google.paths == [other, "projects/p/global/firewalls/k8s-fw-web"]
    assert swept(google) == (0, [])


@pytest.mark.parametrize("networks", [frozenset({NETWORK}), frozenset[str]()])
def test_what_is_another_clusters_stays_whatever_the_traces_say(networks: frozenset[str]) -> None:
    there = [*PARTS, f"projects/p/global/firewalls/k8s-fw-{BALANCER}"]
    google = Google(*there)
    google.tags = ["gke-other-0a1b2c3d-node"]
    google.clusters = [{"networkConfig": {"network": NETWORK}}]
    known = dataclasses.replace(TRACES, networks=networks)
    assert swept(google, text=known.document()) == (0, [])
    assert google.paths == there


def test_nothing_is_touched_while_the_cluster_is_there() -> None:
    google = Google(*PARTS)
    google.cluster = {"status": "RUNNING"}
    assert swept(google) == (0, [])
    assert google.paths == PARTS


GATEWAY = [
    "projects/p/global/forwardingRules/gkegw1-nv9e-default-gw-tz4nlc0g34o7",
    f"{REGION}/targetHttpProxies/gkegw1-nv9e-default-gw-94oe6umb5k3n",
    "projects/p/global/urlMaps/gkegw1-nv9e-default-gw-94oe6umb5k3n",
    "projects/p/global/backendServices/gkegw1-nv9e-default-web-80-t9htdxlbxe5i",
    "projects/p/global/healthChecks/gkegw1-nv9e-default-web-80-t9htdxlbxe5i",
    "projects/p/global/addresses/gkegw1-nv9e-default-gw-v71xu3da78az",
    "projects/p/global/firewalls/gkegw1-nv9e-l7-np-net-global",
]


def test_what_gateways_have_left_goes_by_the_rule_of_their_network() -> None:
    other = "projects/p/global/urlMaps/gkegw1-26e6-default-gw-94oe6umb5k3n"
    google = Google(*GATEWAY, other)
    google.clusters = [{"networkConfig": {"network": "projects/p/global/networks/default"}}]
    assert swept(google) == (len(GATEWAY), [])
    assert google.paths == [other]


def test_what_gateways_have_left_may_be_another_clusters_of_the_network() -> None:
    google = Google(*GATEWAY)
    google.clusters = [{"networkConfig": {"network": NETWORK}}]
    assert swept(google) == (0, [])
    assert google.paths == GATEWAY


def test_without_a_list_of_clusters_gateways_may_be_anothers() -> None:
    google = Google(*GATEWAY, *PARTS, refused={"clusters": 403})
    assert swept(google) == (len(PARTS), [])
    assert google.paths == GATEWAY


def test_the_groups_of_nodes_of_ingresses_go_but_no_managed_one() -> None:
    zone = "projects/p/zones/us-central1-a/instanceGroups"
    managed = f"{zone}/gke-np-gke-np-gpu-0a1b2c3d-grp"
    google = Google(f"{zone}/k8s-ig--0123456789abcdef", managed)
    known = dataclasses.replace(TRACES, stems=frozenset({"0123456789abcdef"}))
    assert swept(google, text=known.document()) == (1, [])
    assert google.paths == [managed]


def test_nothing_is_touched_without_traces() -> None:
    google = Google(*PARTS)
    assert swept(google, text="") == (0, [])
    assert google.paths == PARTS


def test_traces_that_cannot_be_read_are_said_to_be() -> None:
    with pytest.raises(StateError, match=r"leftovers\.json can't be read") as caught:
        swept(Google(), text="{}")
    assert "gcloud storage rm gs://b/np/leftovers.json" in caught.value.problems[0].fix


def test_what_cannot_be_removed_is_named_with_the_command_that_does() -> None:
    google = Google(*PARTS, refused={PARTS[1]: 400})
    (problem,) = problems(google)
    assert problem.what == f"{PARTS[1]} could not be removed"
    command = f"gcloud compute target-pools delete {BALANCER} --region us-central1 --project p"
    assert problem.fix.splitlines() == [command, "then run Destroy again"]
    assert google.paths == [PARTS[1]]


def test_an_outage_while_something_is_removed_may_be_over_later() -> None:
    google = Google(*PARTS, refused={PARTS[1]: 503})
    (problem,) = problems(google)
    assert problem.code is Code.UNREACHABLE


@pytest.mark.parametrize(("policy", "code"), [("Retain", 0), ("Delete", 400), ("Delete", 0)])
def test_a_filestore_instance_goes_or_is_named(policy: str, code: int) -> None:
    path = "projects/p/locations/us-central1-c/instances/pvc-1"
    text = dataclasses.replace(TRACES, volumes={path: policy}).document()
    google = Google(path, refused={path: code} if code else {})
    command = "gcloud filestore instances delete pvc-1 --location us-central1-c --project p"
    if code:
        with pytest.raises(ClusterError) as caught:
            swept(google, text=text)
        assert caught.value.problems[0].fix.startswith(command)
        return
    count, notes = swept(google, text=text)
    assert (count, google.paths) == ((1, []) if policy == "Delete" else (0, [path]))
    assert [note.fix for note in notes] == (
        [] if policy == "Delete" else [f"if nobody needs its data: {command}"]
    )
    assert swept(Google(), text=text) == (0, [])


@pytest.mark.parametrize("what", [{"labels": {}}, {"networks": [{"network": "default"}]}])
def test_a_filestore_instance_that_may_be_anothers_is_left_and_named(what: dict[str, Any]) -> None:
    path = "projects/p/locations/us-central1-c/instances/pvc-1"
    google = Google(path)
    google.share = what
    with pytest.raises(ClusterError) as caught:
        swept(google, text=dataclasses.replace(TRACES, volumes={path: "Delete"}).document())
    (problem,) = caught.value.problems
    assert problem.what == f"{path} is kept, and is billed"
    assert "if it is another's: gcloud storage rm gs://b/np/leftovers.json\n" in problem.fix
    assert google.paths == [path]


def test_before_the_last_time_it_is_left_without_a_word() -> None:
    google = Google(*PARTS, refused={PARTS[1]: 400})
    assert swept(google, last=False) == (1, [])


def test_that_something_may_not_be_listed_is_said_and_the_rest_goes() -> None:
    google = Google(*PARTS, refused={"addresses": 403})
    (problem,) = problems(google)
    assert problem.what == "Whether GKE has left addresses could not be looked for"
    assert "compute.addresses.list" in problem.fix
    assert google.paths == []


def test_any_other_refusal_ends_it() -> None:
    with pytest.raises(TerraformError, match="Could not look for what GKE has left"):
        swept(Google(refused={"addresses": 400}))


@pytest.mark.parametrize(
    ("path", "command"),
    [
        (f"global/firewalls/k8s-fw-{BALANCER}", f"firewall-rules delete k8s-fw-{BALANCER}"),
        (f"global/backendServices/{BALANCER}", f"backend-services delete {BALANCER} --global"),
        (f"global/httpHealthChecks/{BALANCER}", f"http-health-checks delete {BALANCER}"),
        (
            f"zones/z-a/networkEndpointGroups/{BALANCER}",
            f"network-endpoint-groups delete {BALANCER} --zone z-a",
        ),
    ],
)
def test_commands_say_where_things_are(path: str, command: str) -> None:
    (problem,) = problems(Google(f"projects/p/{path}", refused={f"projects/p/{path}": 403}))
    assert problem.fix.splitlines()[0] == f"gcloud compute {command} --project p"
