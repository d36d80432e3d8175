"""Whose something is that GKE made: never another cluster's."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from provision.kinds.gke.traces import Fate, Traces, balancer, claim_of, stem
from tests.unit.state.test_record import WHOLE

BALANCER = "a9f2b1c3d4e5f60718293a4b5c6d7e8f"
OTHER = "a" + "0" * 31
ID = "0123456789abcdef"
SHORT = "x1y2z3w4"
NETWORK = "projects/p/global/networks/np-net"
LINK = "https://www.googleapis.com/compute/v1/"
PATH = "projects/p/zones/us-central1-a/disks/pvc-1"
RECORD = dataclasses.replace(WHOLE, project_id="p")
OURS = Traces(project="p", location="us-central1", cluster="np-gke", networks=frozenset({NETWORK}))
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


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (BALANCER, BALANCER),
        (f"{BALANCER}-hc", BALANCER),
        (f"k8s-{BALANCER}-http-hc", BALANCER),
        (f"k8s-fw-{BALANCER}", BALANCER),
        (f"k8s-fw-{BALANCER}-deny", BALANCER),
        (f"k8s-{ID}-node", ID),
        (f"k8s-{ID}-node-hc", ID),
        (f"k8s-{ID}-node-http-hc", ID),
        (f"k8s-{ID}-internal-tcp-nmv1-00ff00ff00ff00ff", ID),
        (f"k8s-fw-l7--{ID}", ID),
        (f"k8s-um-default-web--{ID}", ID),
        (f"k8s2-{SHORT}-default-web-8a9b0c1d", SHORT),
        (f"k8s2-{SHORT}-l4-shared-hc-fw", SHORT),
        (f"k8s2-tcp-{SHORT}-default-web-8a9b0c1d", SHORT),
        (f"k8s2-um-{SHORT}-default-web-8a9b0c1d", SHORT),
        (f"k8s1-{SHORT}-default-web-80-8a9b0c1d", SHORT),
        (f"k8s-ig--{ID}", ID),
        ("gkegw1-nv9e-default-web-80-t9htdxlbxe5i", "gkegw1-nv9e"),
        ("gkegw1-nv9e-l7-np-net-global", "gkegw1-nv9e"),
        ("gkegw1-nv9", None),
        ("gkemcg1-l7-default-global", None),
        ("np-internal", None),
        ("allow-ssh", None),
        ("a-balancer", None),
        (BALANCER[:-1], None),
        (f"{BALANCER}0", None),
        (f"my-{BALANCER}", None),
        ("k8s-master", None),
        ("gke-np-gke-0a1b2c3d-vms", None),
        (f"pvc-{ID}", None),
    ],
)
def test_a_name_tells_what_it_is_of(name: str, expected: str | None) -> None:
    assert stem(name) == expected


def test_a_balancer_is_called_by_the_uid_of_its_service() -> None:
    uid = "9f2b1c3d-4e5f-6071-8293-a4b5c6d7e8f9"
    name = balancer({"metadata": {"uid": uid}})
    assert name == BALANCER
    assert stem(name) == name


@pytest.mark.parametrize(
    "found",
    [
        rule(f"k8s-fw-{BALANCER}", TAG),
        rule(f"k8s-{ID}-node-http-hc", TAG),
        rule(f"k8s2-{SHORT}-default-web-8a9b0c1d", TAG),
        rule("gke-np-gke-0a1b2c3d-vms", TAG),
    ],
)
def test_a_rule_of_this_network_for_this_clusters_nodes_is_ours(found: dict[str, Any]) -> None:
    assert OURS.has_rule(found)


@pytest.mark.parametrize(
    "found",
    [
        rule(f"k8s-fw-{BALANCER}", TAG, network="projects/p/global/networks/default"),
        rule(f"k8s-fw-{BALANCER}", TAG, network="projects/q/global/networks/np-net"),
        rule(f"k8s-fw-{BALANCER}"),
        rule(f"k8s-fw-{BALANCER}", "gke-other-0a1b2c3d-node"),
        rule(f"k8s-fw-{BALANCER}", "gke-np-gke-2-0a1b2c3d-node"),
        # A cluster whose name begins with ours and something that looks like a hash.
        rule(f"k8s-fw-{BALANCER}", "gke-np-gke-deadbeef-0a1b2c3d-node"),
        rule(f"k8s-fw-{BALANCER}", TAG, "gke-other-0a1b2c3d-node"),
        # Somebody's own rule for our nodes.
        rule("allow-my-office", TAG),
        rule("np-internal"),
    ],
)
def test_any_other_rule_is_not(found: dict[str, Any]) -> None:
    assert not OURS.has_rule(found)
    assert OURS.with_rules([found]) == OURS


GATEWAYS = rule("gkegw1-nv9e-l7-np-net-global")


@pytest.mark.parametrize(
    ("others", "found", "expected"),
    [
        ([], GATEWAYS, True),
        (
            [{"networkConfig": {"network": "projects/p/global/networks/default"}}, {}],
            GATEWAYS,
            True,
        ),
        # Its name has the network, and nothing of the cluster.
        ([{"networkConfig": {"network": NETWORK}}], GATEWAYS, False),
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
        ([{"networkConfig": {"network": NETWORK}}], NETWORK, set()),
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


def test_nothing_is_ours_by_its_name_where_no_stem_is_known() -> None:
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
    known = Traces(
        project="p",
        location="us-central1",
        cluster="np-gke",
        networks=frozenset({NETWORK}),
        volumes=volumes,
    )
    assert known.fate(found) is expected


SHARE = "projects/p/locations/us-central1-c/instances/pvc-1"


def share(network: str = "np-net", **changed: str) -> dict[str, Any]:
    """A Filestore instance as GKE's driver makes it, with some labels changed."""
    own = {
        "kubernetes_io_created-for_pv_name": "pvc-1",
        "kubernetes_io_created-for_pvc_name": "data",
        "kubernetes_io_created-for_pvc_namespace": "default",
        "storage_gke_io_created-by": "filestore_csi_storage_gke_io",
    }
    return {
        "name": SHARE,
        "labels": own | changed,
        "networks": [{"network": network}],
    }


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
        (share(), [{"networkConfig": {"network": NETWORK}}], "Delete", Fate.UNPROVEN),
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
    second = Traces(
        project="p",
        location="us-central1",
        cluster="np-gke",
        networks=frozenset(),
        volumes={PATH: "Retain"},
    ).and_earlier(first)
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
        OURS,
        networks=frozenset(networks[:2]),
        stems=frozenset({BALANCER}),
        volumes=KEPT["volumes"],
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
