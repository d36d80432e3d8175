"""Whose something is that GKE made, never another cluster's, and what is said and done of it."""

from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.codes import Code
from provision.deployment.deployment import Left
from provision.errors import ClusterError, StateError
from provision.google.api import GoogleApiError, Service
from provision.kinds.gke import left_behind
from provision.kinds.gke.left_behind import Fate, Traces, balancer, claim_of, stem
from tests.unit.state.test_record import WHOLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.context import Cloud, Context
    from provision.errors import Problem
    from provision.state.location import Place

BALANCER = "a9f2b1c3d4e5f60718293a4b5c6d7e8f"
OTHER = "a" + "0" * 31
ID = "0123456789abcdef"
SHORT = "x1y2z3w4"
NETWORK = "projects/p/global/networks/np-net"
LINK = "https://www.googleapis.com/compute/v1/"
PATH = "projects/p/zones/us-central1-a/disks/pvc-1"
RECORD = dataclasses.replace(WHOLE, project_id="p")
OURS = Traces(project="p", location="us-central1", cluster="np-gke", networks=frozenset({NETWORK}))
TRACES = dataclasses.replace(OURS, stems=frozenset({BALANCER}))
TAG = "gke-np-gke-0a1b2c3d-node"


def rule(name: str, *tags: str, network: str = NETWORK) -> dict[str, Any]:
    return {"name": name, "network": LINK + network, "targetTags": list(tags)}


def disk(name: str = "pvc-1", labels: dict[str, str] | None = None, **tags: str) -> dict[str, Any]:
    own = {"pv/name": name, "pvc/name": "data", "pvc/namespace": "default"} | tags
    description = {f"kubernetes.io/created-for/{key}": value for key, value in own.items()}
    link = f"{LINK}projects/p/zones/us-central1-a/disks/{name}"
    about = {"name": name, "selfLink": link, "description": json.dumps(description)}
    return {**about, "labels": labels or {}}


LABELS = {"goog-k8s-cluster-name": "np-gke", "goog-k8s-cluster-location": "us-central1"}


STEMS = {
    BALANCER: f"{BALANCER} {BALANCER}-hc k8s-{BALANCER}-http-hc k8s-fw-{BALANCER}"
    f" k8s-fw-{BALANCER}-deny",
    ID: f"k8s-{ID}-node k8s-{ID}-node-hc k8s-{ID}-node-http-hc k8s-ig--{ID} k8s-fw-l7--{ID}"
    f" k8s-{ID}-internal-tcp-nmv1-00ff00ff00ff00ff k8s-um-default-web--{ID}",
    SHORT: f"k8s2-{SHORT}-default-web-8a9b0c1d k8s2-{SHORT}-l4-shared-hc-fw"
    f" k8s2-tcp-{SHORT}-default-web-8a9b0c1d k8s2-um-{SHORT}-default-web-8a9b0c1d"
    f" k8s1-{SHORT}-default-web-80-8a9b0c1d",
    "gkegw1-nv9e": "gkegw1-nv9e-default-web-80-t9htdxlbxe5i gkegw1-nv9e-l7-np-net-global",
    None: f"gkegw1-nv9 gkemcg1-l7-default-global np-internal allow-ssh a-balancer {BALANCER[:-1]}"
    f" {BALANCER}0 my-{BALANCER} k8s-master gke-np-gke-0a1b2c3d-vms pvc-{ID}",
}


@pytest.mark.parametrize(
    ("name", "expected"), [(name, part) for part, known in STEMS.items() for name in known.split()]
)
def test_a_name_tells_what_it_is_of(name: str, expected: str | None) -> None:
    assert stem(name) == expected


def test_a_balancer_is_called_by_the_uid_of_its_service() -> None:
    uid = "9f2b1c3d-4e5f-6071-8293-a4b5c6d7e8f9"
    name = balancer({"metadata": {"uid": uid}})
    assert name == BALANCER
    assert stem(name) == name


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (rule(f"k8s-fw-{BALANCER}", TAG), True),
        (rule(f"k8s-{ID}-node-http-hc", TAG), True),
        (rule(f"k8s2-{SHORT}-default-web-8a9b0c1d", TAG), True),
        (rule("gke-np-gke-0a1b2c3d-vms", TAG), True),
        (rule(f"k8s-fw-{BALANCER}", TAG, network="projects/p/global/networks/default"), False),
        (rule(f"k8s-fw-{BALANCER}", TAG, network="projects/q/global/networks/np-net"), False),
        (rule(f"k8s-fw-{BALANCER}"), False),
        (rule(f"k8s-fw-{BALANCER}", "gke-other-0a1b2c3d-node"), False),
        (rule(f"k8s-fw-{BALANCER}", "gke-np-gke-2-0a1b2c3d-node"), False),
        # A cluster whose name begins with ours and something that looks like a hash.
        (rule(f"k8s-fw-{BALANCER}", "gke-np-gke-deadbeef-0a1b2c3d-node"), False),
        (rule(f"k8s-fw-{BALANCER}", TAG, "gke-other-0a1b2c3d-node"), False),
        # Somebody's own rule for our nodes.
        (rule("allow-my-office", TAG), False),
        (rule("np-internal"), False),
    ],
)
def test_only_a_rule_of_this_network_for_this_clusters_nodes_is_ours(
    found: dict[str, Any], *, expected: bool
) -> None:
    assert OURS.has_rule(found) is expected
    assert expected or OURS.with_rules([found]) == OURS


def _in(network: str) -> list[dict[str, Any]]:
    """A cluster in a network."""
    return [{"networkConfig": {"network": network}}]


GATEWAYS = rule("gkegw1-nv9e-l7-np-net-global")


@pytest.mark.parametrize(
    ("others", "found", "expected"),
    [
        ([], GATEWAYS, True),
        ([*_in("projects/p/global/networks/default"), {}], GATEWAYS, True),
        # Its name has the network, and nothing of the cluster.
        (_in(NETWORK), GATEWAYS, False),
        ([], rule(GATEWAYS["name"], network="projects/p/global/networks/default"), False),
        ([], rule("gkegw1-nv9e-mine"), False),
        ([], rule(f"k8s-fw-{BALANCER}"), False),
    ],
)
def test_the_rule_of_gateways_is_that_of_the_only_cluster_of_its_network(
    others: list[dict[str, Any]], found: dict[str, Any], *, expected: bool
) -> None:
    known = OURS.beside(others)
    assert known.has_rule(found) is expected
    assert known.with_rules([found]).stems == (frozenset({"gkegw1-nv9e"}) if expected else set())


@pytest.mark.parametrize(
    ("others", "network", "expected"),
    [
        ([], NETWORK, {SHORT}),
        ([], "projects/p/global/networks/default", set()),
        (_in(NETWORK), NETWORK, set()),
    ],
)
def test_endpoints_are_those_of_the_only_cluster_of_their_network(
    others: list[dict[str, Any]], network: str, expected: set[str]
) -> None:
    group = {"name": f"k8s1-{SHORT}-default-web-80-d9441438", "network": LINK + network}
    mine = {"name": "my-endpoints", "network": LINK + network}
    known = OURS.beside(others).with_endpoints([group, mine])
    assert known.stems == expected
    assert known.has_named(group) is bool(expected)


def test_a_dot_in_no_name_stands_for_anything() -> None:
    dotted = Traces(project="p", location="l", cluster="n.-gke", networks=frozenset({NETWORK}))
    assert not dotted.has_rule(rule(f"k8s-fw-{BALANCER}", TAG))


def test_what_has_the_stem_of_one_of_our_rules_is_ours() -> None:
    known = OURS.with_rules(
        [
            rule(f"k8s-fw-{BALANCER}", TAG),
            rule(f"k8s2-{SHORT}-default-web-8a9b0c1d", TAG),
            rule(f"k8s-fw-{OTHER}", "gke-other-0a1b2c3d-node"),
            rule("gke-np-gke-0a1b2c3d-vms", TAG),
        ]
    )
    assert known.stems == {BALANCER, SHORT}
    assert OURS.with_stems([f"k8s-fw-l7--{ID}"]).stems == {ID, ID[:8]}
    assert known.has_named({"name": BALANCER})
    assert known.has_named({"name": f"k8s2-tcp-{SHORT}-default-api-00000000"})
    for name in (OTHER, f"k8s2-tcp-y{SHORT[1:]}-default-web-8a9b0c1d", f"x{BALANCER}", "web"):
        assert not known.has_named({"name": name})
    for name in (BALANCER, "web", f"k8s-{ID}-node"):
        assert not OURS.has_named({"name": name})


@pytest.mark.parametrize(
    ("found", "volumes", "expected"),
    [
        (disk(labels=LABELS), {PATH: "Delete"}, Fate.GOES),
        (disk(), {PATH: "Delete"}, Fate.UNPROVEN),
        (disk(labels=LABELS | {"goog-k8s-cluster-name": "b"}), {PATH: "Delete"}, Fate.UNPROVEN),
        (disk(), {PATH: "Retain"}, Fate.STAYS),
        (disk(labels=LABELS), {}, Fate.UNKNOWN),
        (disk(labels=LABELS), {PATH + "0": "Delete"}, Fate.UNKNOWN),
        (disk(), {}, None),
        (disk(labels=LABELS | {"goog-k8s-cluster-name": "np-gke-2"}), {}, None),
        (disk(labels=LABELS | {"goog-k8s-cluster-location": "us-east4"}), {}, None),
        (disk(labels={"goog-k8s-cluster-name": "np-gke"}), {}, None),
        # A disk of somebody's own, or a clone of one that was made for a claim.
        ({**disk(labels=LABELS), "description": "mine"}, {PATH: "Delete"}, Fate.UNPROVEN),
        ({**disk(labels=LABELS), "description": "[]"}, {PATH: "Delete"}, Fate.UNPROVEN),
        (disk(labels=LABELS, **{"pv/name": "pvc-2"}), {PATH: "Delete"}, Fate.UNPROVEN),
        ({**disk(labels=LABELS), "description": "mine"}, {PATH: "Retain"}, None),
    ],
)
def test_a_disk_goes_only_if_its_policy_says_so(
    found: dict[str, Any], volumes: dict[str, str], expected: Fate | None
) -> None:
    assert dataclasses.replace(OURS, volumes=volumes).fate(found) is expected


SHARE = "projects/p/locations/us-central1-c/instances/pvc-1"


def share(network: str = "np-net", **changed: str) -> dict[str, Any]:
    """A Filestore instance as GKE's driver makes it, with some labels changed."""
    own = {
        "kubernetes_io_created-for_pv_name": "pvc-1",
        "kubernetes_io_created-for_pvc_name": "data",
        "kubernetes_io_created-for_pvc_namespace": "default",
        "storage_gke_io_created-by": "filestore_csi_storage_gke_io",
    }
    return {"name": SHARE, "labels": own | changed, "networks": [{"network": network}]}


@pytest.mark.parametrize(
    ("found", "others", "policy", "expected"),
    [
        (share(), [], "Delete", Fate.GOES),
        (share(NETWORK), [], "Delete", Fate.GOES),
        (share(), [], "Retain", Fate.STAYS),
        # A share of somebody's own, also in the cluster's network, or beside a volume of that name.
        ({**share(), "labels": {}}, [], "Delete", Fate.UNPROVEN),
        (share(**{"storage_gke_io_created-by": "me"}), [], "Delete", Fate.UNPROVEN),
        (share(**{"kubernetes_io_created-for_pv_name": "pvc-2"}), [], "Delete", Fate.UNPROVEN),
        # One of another cluster.
        (share("default"), [], "Delete", Fate.UNPROVEN),
        (share("projects/q/global/networks/np-net"), [], "Delete", Fate.UNPROVEN),
        (share(), _in(NETWORK), "Delete", Fate.UNPROVEN),
        ({**share(), "networks": []}, [], "Delete", Fate.UNPROVEN),
        (share("default", **LABELS), [], "Delete", Fate.GOES),
    ],
)
def test_a_filestore_instance_goes_only_if_google_says_that_it_is_of_this_cluster(
    found: dict[str, Any], others: list[dict[str, Any]], policy: str, expected: Fate
) -> None:
    foreign = "projects/q/locations/us-central1-c/instances/pvc-1"
    volumes = {SHARE: policy, PATH: "Delete", foreign: "Delete"}
    known = dataclasses.replace(OURS, volumes=volumes).beside(others)
    assert list(known.instances()) == [SHARE]
    assert known.fate(found) is expected


def test_the_claim_of_a_disk_is_read_from_its_description() -> None:
    assert claim_of(disk()) == "default/data"
    assert claim_of({"name": "pvc-1"}) == ""


def test_traces_are_kept_and_read_again_and_grow() -> None:
    first = OURS.with_stems([f"k8s-fw-{BALANCER}", "web"])
    assert Traces.parse(first.document(), RECORD) == first
    later = dataclasses.replace(OURS, networks=frozenset(), volumes={PATH: "Retain"})
    second = later.and_earlier(first)
    assert second.stems == {BALANCER}
    assert second.networks == {NETWORK}
    third = OURS.and_earlier(second)
    assert third.volumes == {PATH: "Retain"}
    assert Traces.parse(third.document(), RECORD) == third
    assert OURS.and_earlier(None) is OURS


KEPT: dict[str, Any] = {"networks": [NETWORK], "stems": [BALANCER], "volumes": {SHARE: "Delete"}}


def test_whose_the_traces_are_is_what_the_record_says() -> None:
    networks = [
        NETWORK,
        "projects/p/global/networks/np-gpu-net-1",
        "projects/p/global/networks/default",
        "projects/p/global/networks/other-net",
        "projects/q/global/networks/np-net",
    ]
    whose = {"project": "q", "location": "europe-west4", "cluster": "other-gke", "alone": True}

    found = Traces.parse(json.dumps({**KEPT, **whose, "networks": networks}), RECORD)

    assert found == dataclasses.replace(
        TRACES, networks=frozenset(networks[:2]), volumes=KEPT["volumes"]
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("networks", ["projects/p/global/networks/np-net?x"]),
        ("networks", None),
        ("stems", ["web"]),
        ("volumes", {"projects/p/zones/z-a/disks/../x": "Delete"}),
        ("volumes", {SHARE: {}}),
        ("volumes", [SHARE]),
    ],
)
def test_traces_of_another_form_are_none(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        Traces.parse(json.dumps({**KEPT, name: value}), RECORD)


def test_a_stem_that_the_rules_of_another_cluster_have_is_not_ours() -> None:
    known = dataclasses.replace(OURS, stems=frozenset({BALANCER, OTHER}))
    rules = [rule(f"k8s-fw-{BALANCER}", TAG), rule(f"k8s-fw-{OTHER}", "gke-other-0a1b2c3d-node")]
    assert known.without_others(rules).stems == {BALANCER}


REGION = "projects/p/regions/us-central1"
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
        self.asked: list[str] = []  # the collections that were listed

    def find(self, service: Service, path: str) -> dict[str, Any] | None:
        if service is Service.FILESTORE:
            return {**share(), **self.share} if path in self.paths else None
        assert path == "projects/p/locations/us-central1/clusters/np-gke"
        self._refuse("find")
        return self.cluster

    def listed(self, look: Any, project: str, **_: str) -> list[dict[str, Any]]:
        assert project == "p"
        self._refuse(look.collection)
        self.asked.append(look.collection)
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
    count = left_behind.sweep(cast("Context", context), cast("Cloud", cloud), RECORD, last=last)
    assert len(said) == count
    return count, notes


def problem(google: Google, **volumes: str) -> Problem:
    with pytest.raises(ClusterError) as caught:
        swept(google, text=dataclasses.replace(TRACES, volumes=volumes).document())
    assert caught.value.exit_code == 8
    (found,) = caught.value.problems
    return found


RULE = f"projects/p/global/firewalls/k8s-fw-{BALANCER}"


def test_what_is_ours_goes_and_what_is_not_stays() -> None:
    others = [f"{REGION}/targetPools/{OTHER}", "projects/p/global/firewalls/k8s-fw-web"]
    google = Google(*PARTS, *others)
    assert swept(google) == (2, [])
    assert google.paths == others
    assert swept(google) == (0, [])


@pytest.mark.parametrize("networks", [frozenset({NETWORK}), frozenset[str]()])
def test_what_is_another_clusters_stays_whatever_the_traces_say(networks: frozenset[str]) -> None:
    google = Google(*PARTS, RULE)
    google.tags, google.clusters = ["gke-other-0a1b2c3d-node"], _in(NETWORK)
    assert swept(google, text=dataclasses.replace(TRACES, networks=networks).document()) == (0, [])
    assert google.paths == [*PARTS, RULE]


@pytest.mark.parametrize(("cluster", "text"), [({"status": "RUNNING"}, None), (None, "")])
def test_nothing_is_touched_while_the_cluster_is_there_or_without_traces(
    cluster: dict[str, Any] | None, text: str | None
) -> None:
    google = Google(*PARTS)
    google.cluster = cluster
    assert swept(google, text=text) == (0, [])
    assert google.paths == PARTS


def test_the_groups_of_nodes_of_ingresses_go_but_no_managed_one() -> None:
    zone = "projects/p/zones/us-central1-a/instanceGroups"
    managed = f"{zone}/gke-np-gke-np-gpu-0a1b2c3d-grp"
    google = Google(f"{zone}/k8s-ig--{ID}", managed)
    known = dataclasses.replace(TRACES, stems=frozenset({ID}))
    assert swept(google, text=known.document()) == (1, [])
    assert google.paths == [managed]


GATEWAY = [
    "projects/p/global/forwardingRules/gkegw1-nv9e-default-gw-tz4nlc0g34o7",
    f"{REGION}/targetHttpProxies/gkegw1-nv9e-default-gw-94oe6umb5k3n",
    "projects/p/global/urlMaps/gkegw1-nv9e-default-gw-94oe6umb5k3n",
    "projects/p/global/backendServices/gkegw1-nv9e-default-web-80-t9htdxlbxe5i",
    "projects/p/global/healthChecks/gkegw1-nv9e-default-web-80-t9htdxlbxe5i",
    "projects/p/global/addresses/gkegw1-nv9e-default-gw-v71xu3da78az",
    "projects/p/global/firewalls/gkegw1-nv9e-l7-np-net-global",
]
OTHER_GATEWAY = "projects/p/global/urlMaps/gkegw1-26e6-default-gw-94oe6umb5k3n"


@pytest.mark.parametrize(
    ("network", "refused", "goes"),
    [
        pytest.param("default", {}, GATEWAY, id="the only cluster of the network"),
        pytest.param("np-net", {}, [], id="another cluster is in the network"),
        pytest.param("default", {"clusters": 403}, [], id="nobody may list the clusters"),
    ],
)
def test_what_gateways_have_left_goes_by_the_rule_of_their_network_if_no_other_cluster_is_there(
    network: str, refused: dict[str, int], goes: list[str]
) -> None:
    google = Google(*GATEWAY, OTHER_GATEWAY, *PARTS, refused=refused)
    google.clusters = _in(f"projects/p/global/networks/{network}")
    assert swept(google) == (len(goes) + len(PARTS), [])
    assert google.paths == [it for it in (*GATEWAY, OTHER_GATEWAY) if it not in goes]


def test_traces_that_cannot_be_read_are_said_to_be() -> None:
    with pytest.raises(StateError, match=r"leftovers\.json can't be read") as caught:
        swept(Google(), text="{}")
    assert "gcloud storage rm gs://b/np/leftovers.json" in caught.value.problems[0].fix


@pytest.mark.parametrize(
    ("path", "command"),
    [
        (
            f"regions/us-central1/targetPools/{BALANCER}",
            f"target-pools delete {BALANCER} --region us-central1",
        ),
        (f"global/firewalls/k8s-fw-{BALANCER}", f"firewall-rules delete k8s-fw-{BALANCER}"),
        (f"global/backendServices/{BALANCER}", f"backend-services delete {BALANCER} --global"),
        (f"global/httpHealthChecks/{BALANCER}", f"http-health-checks delete {BALANCER}"),
        (
            f"zones/z-a/networkEndpointGroups/{BALANCER}",
            f"network-endpoint-groups delete {BALANCER} --zone z-a",
        ),
    ],
)
def test_what_cannot_be_removed_is_named_with_the_command_that_does(
    path: str, command: str
) -> None:
    whole = f"projects/p/{path}"
    google = Google(PARTS[0], whole, refused={whole: 403})
    found = problem(google)
    assert found.what == f"{whole} could not be removed"
    assert found.fix.splitlines() == [
        f"gcloud compute {command} --project p",
        "then run Destroy again",
    ]
    assert google.paths == [whole]


def test_an_outage_while_something_is_removed_may_be_over_later() -> None:
    assert problem(Google(*PARTS, refused={PARTS[1]: 503})).code is Code.UNREACHABLE


DELETE = "gcloud filestore instances delete pvc-1 --location us-central1-c --project p"


@pytest.mark.parametrize(
    ("policy", "left", "fixes"),
    [("Retain", [SHARE], [f"if nobody needs its data: {DELETE}"]), ("Delete", [], [])],
)
def test_a_filestore_instance_goes_or_is_named(
    policy: str, left: list[str], fixes: list[str]
) -> None:
    text = dataclasses.replace(TRACES, volumes={SHARE: policy}).document()
    google = Google(SHARE)
    count, notes = swept(google, text=text)
    assert (count, google.paths) == (1 - len(left), left)
    assert [note.fix for note in notes] == fixes
    assert swept(Google(), text=text) == (0, [])


def test_a_filestore_instance_that_cannot_be_removed_is_named() -> None:
    assert problem(Google(SHARE, refused={SHARE: 400}), **{SHARE: "Delete"}).fix.startswith(DELETE)


@pytest.mark.parametrize("what", [{"labels": {}}, {"networks": [{"network": "default"}]}])
def test_a_filestore_instance_that_may_be_anothers_is_left_and_named(what: dict[str, Any]) -> None:
    google = Google(SHARE)
    google.share = what
    found = problem(google, **{SHARE: "Delete"})
    assert found.what == f"{SHARE} is kept, and is billed"
    assert "if it is another's: gcloud storage rm gs://b/np/leftovers.json\n" in found.fix
    assert google.paths == [SHARE]


def test_before_the_last_time_it_is_left_without_a_word() -> None:
    assert swept(Google(*PARTS, refused={PARTS[1]: 400}), last=False) == (1, [])


def test_that_something_may_not_be_listed_is_said_and_the_rest_goes() -> None:
    google = Google(*PARTS, refused={"addresses": 403})
    found = problem(google)
    assert found.what == "Whether GKE has left addresses could not be looked for"
    assert "compute.addresses.list" in found.fix
    assert google.paths == []


def test_any_other_refusal_ends_it() -> None:
    with pytest.raises(ClusterError, match="Could not look for what GKE has left"):
        swept(Google(refused={"addresses": 400}))


# ------------------------------------------------------------------ without a state

PLACE = cast("Place", SimpleNamespace(project_id="p", region="us-central1", name_prefix="np"))


class Orphaned(Google):
    """A Google with a target pool and its rule."""

    def __init__(self, *, lives: bool = False, refused: dict[str, int] | None = None) -> None:
        super().__init__(PARTS[1], RULE, refused=refused)
        self.tags = [TAG]
        self.cluster = {} if lives else None

    def found(self, networks: Sequence[str] = (NETWORK,)) -> Left:
        cloud = cast("Cloud", SimpleNamespace(api=self))
        return left_behind.find(cloud, PLACE, networks)

    def swept(self) -> int:
        context = SimpleNamespace(console=SimpleNamespace(progress=lambda _: None))
        cloud = cast("Cloud", SimpleNamespace(api=self))
        return left_behind.sweep_without_state(cast("Context", context), cloud, PLACE, [NETWORK])


def test_what_is_found_goes() -> None:
    google = Orphaned()
    found = google.found()
    assert (found.what, found.paths) == ("what GKE made for the cluster np-gke", (PARTS[1], RULE))
    assert google.swept() == 2
    assert google.paths == []
    assert google.found().paths == ()


@pytest.mark.parametrize(
    "google",
    [
        pytest.param(Orphaned(lives=True), id="the cluster is there"),
        pytest.param(Orphaned(refused={"find": 403}), id="nobody may ask for it"),
    ],
)
def test_nothing_is_a_dead_clusters_as_long_as_none_is_known_to_be_dead(google: Orphaned) -> None:
    assert google.found() == Left()
    assert google.swept() == 0
    assert google.paths == [PARTS[1], RULE]


@pytest.mark.parametrize("what", ["clusters", "networkEndpointGroups"])
def test_what_nobody_may_list_does_not_hide_the_rest(what: str) -> None:
    assert Orphaned(refused={what: 403}).found().paths == (PARTS[1], RULE)


def test_without_a_network_there_can_only_be_disks() -> None:
    google = Orphaned()
    assert google.found(networks=()).paths == ()
    assert google.asked == ["disks"]


def test_the_rules_stay_as_long_as_they_are_needed_to_find_the_rest() -> None:
    google = Orphaned(refused={PARTS[1]: 400})
    with pytest.raises(ClusterError) as caught:
        google.swept()
    (problem,) = caught.value.problems
    assert problem.what == f"{PARTS[1]} could not be removed"
    assert google.paths == [PARTS[1], RULE]
