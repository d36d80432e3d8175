"""Whose something is that GKE made, never another cluster's, and what is said and done of it."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import pytest

from provision.codes import Code
from provision.deployment.deployment import Left
from provision.errors import ClusterError, Problem, StateError
from provision.google.api import GoogleApiError, Service
from provision.kinds.gke import left_behind
from provision.kinds.gke.left_behind import Fate, Traces, balancer, claim_of, stem
from tests.table import cases
from tests.unit.kinds.cases import having, problem_of
from tests.unit.memory_folder import MemoryFolder
from tests.unit.state.test_record import WHOLE

BALANCER = "a9f2b1c3d4e5f60718293a4b5c6d7e8f"
OTHER = "a" + "0" * 31
FOREIGN = "gke-other-0a1b2c3d-node"
ID = "0123456789abcdef"
SHORT = "x1y2z3w4"
NETWORK = "projects/p/global/networks/np-net"
LINK = "https://www.googleapis.com/compute/v1/"
PATH = "projects/p/zones/us-central1-a/disks/pvc-1"
RECORD = dataclasses.replace(WHOLE, project_id="p")
OURS = Traces(project="p", location="us-central1", cluster="np-gke", networks=frozenset({NETWORK}))
TRACES = dataclasses.replace(OURS, stems=frozenset({BALANCER}))
TAG = "gke-np-gke-0a1b2c3d-node"


def net(short: str) -> str:
    project, _, name = short.partition("/")
    return f"projects/{project}/global/networks/{name}"


def rule(name: str, *tags: str, network: str = "p/np-net") -> dict[str, Any]:
    return {"name": name, "network": LINK + net(network), "targetTags": list(tags)}


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


@pytest.mark.parametrize("part", STEMS)
def test_a_name_tells_what_it_is_of(part: str | None) -> None:
    assert {stem(name) for name in STEMS[part].split()} == {part}


def test_a_balancer_is_called_by_the_uid_of_its_service_and_a_disk_tells_its_claim() -> None:
    service = {"metadata": {"uid": "9f2b1c3d-4e5f-6071-8293-a4b5c6d7e8f9"}}
    assert balancer(service) == stem(BALANCER) == BALANCER
    assert claim_of(disk()) == "default/data"
    assert claim_of({"name": "pvc-1"}) == ""


@cases(f"""
name                             | tags            | network   | expected
k8s-fw-{BALANCER}                | {TAG}           | p/np-net  | true
k8s-{ID}-node-http-hc            | {TAG}           | p/np-net  | true
k8s2-{SHORT}-default-web-8a9b0c1d | {TAG}          | p/np-net  | true
gke-np-gke-0a1b2c3d-vms          | {TAG}           | p/np-net  | true
k8s-fw-{BALANCER}                | {TAG}           | p/default | false
k8s-fw-{BALANCER}                | {TAG}           | q/np-net  | false
k8s-fw-{BALANCER}                |                 | p/np-net  | false
k8s-fw-{BALANCER}                | {FOREIGN}       | p/np-net  | false
k8s-fw-{BALANCER}                | gke-np-gke-2-0a1b2c3d-node | p/np-net | false
# A cluster whose name begins with ours and something that looks like a hash.
k8s-fw-{BALANCER}                | gke-np-gke-deadbeef-0a1b2c3d-node | p/np-net | false
k8s-fw-{BALANCER}                | {TAG} {FOREIGN} | p/np-net  | false
# Somebody's own rule for our nodes.
allow-my-office                  | {TAG}           | p/np-net  | false
np-internal                      |                 | p/np-net  | false
""")
def test_only_a_rule_of_this_network_for_this_clusters_nodes_is_ours(
    name: str, tags: str, network: str, *, expected: bool
) -> None:
    found = rule(name, *tags.split(), network=network)
    assert OURS.has_rule(found) is expected
    assert expected or OURS.with_own([found]) == OURS
    dotted = dataclasses.replace(OURS, cluster="n.-gke")
    assert not dotted.has_rule(found), "a dot in a name stands for no other character"


def _in(network: str) -> list[dict[str, Any]]:
    """A cluster in a network, if one is named."""
    return [{"networkConfig": {"network": net(network)}}] if network else []


GATEWAYS = "gkegw1-nv9e-l7-np-net-global"


@cases(f"""
other     | name              | network   | expected
-         | {GATEWAYS}        | p/np-net  | true
p/default | {GATEWAYS}        | p/np-net  | true
# Its name has the network, and nothing of the cluster.
p/np-net  | {GATEWAYS}        | p/np-net  | false
-         | {GATEWAYS}        | p/default | false
-         | gkegw1-nv9e-mine  | p/np-net  | false
-         | k8s-fw-{BALANCER} | p/np-net  | false
""")
def test_the_rule_of_gateways_is_that_of_the_only_cluster_of_its_network(
    other: str, name: str, network: str, *, expected: bool
) -> None:
    known, found = OURS.beside([*_in(other), {}] if other else []), rule(name, network=network)
    assert known.has_rule(found) is expected
    assert known.with_own([found]).stems == (frozenset({"gkegw1-nv9e"}) if expected else set())


@cases("""
other    | network   | expected
-        | p/np-net  | true
-        | p/default | false
p/np-net | p/np-net  | false
""")
def test_endpoints_are_those_of_the_only_cluster_of_their_network(
    other: str, network: str, *, expected: bool
) -> None:
    group = {"name": f"k8s1-{SHORT}-default-web-80-d9441438", "network": LINK + net(network)}
    known = OURS.beside(_in(other)).with_own((), [group, {**group, "name": "my-endpoints"}])
    assert known.stems == ({SHORT} if expected else set())
    assert known.has_named(group) is expected


def test_what_has_the_stem_of_one_of_our_rules_is_ours() -> None:
    names = (f"k8s-fw-{BALANCER}", f"k8s2-{SHORT}-default-web-8a9b0c1d", "gke-np-gke-0a1b2c3d-vms")
    ours = [rule(name, TAG) for name in names]
    known = OURS.with_own([*ours, rule(f"k8s-fw-{OTHER}", FOREIGN)])
    assert known.stems == {BALANCER, SHORT}
    assert OURS.with_stems([f"k8s-fw-l7--{ID}"]).stems == {ID, ID[:8]}
    for name in (BALANCER, f"k8s2-tcp-{SHORT}-default-api-00000000"):
        assert known.has_named({"name": name})
    for name in (OTHER, f"k8s2-tcp-y{SHORT[1:]}-default-web-8a9b0c1d", f"x{BALANCER}", "web"):
        assert not known.has_named({"name": name})
    for name in (BALANCER, "web", f"k8s-{ID}-node"):
        assert not OURS.has_named({"name": name})
    several = dataclasses.replace(OURS, stems=frozenset({BALANCER, OTHER}))
    rules = [ours[0], rule(f"k8s-fw-{OTHER}", FOREIGN)]
    assert several.without_others(rules).stems == {BALANCER}, "another cluster's rules have one"


@cases("""
labels             | about                   | volumes           | fate
np-gke us-central1 | {}                      | {pvc-1: Delete}   | GOES
-                  | {}                      | {pvc-1: Delete}   | UNPROVEN
b us-central1      | {}                      | {pvc-1: Delete}   | UNPROVEN
-                  | {}                      | {pvc-1: Retain}   | STAYS
np-gke us-central1 | {}                      | {}                | UNKNOWN
np-gke us-central1 | {}                      | {pvc-10: Delete}  | UNKNOWN
-                  | {}                      | {}                |
np-gke-2 us-central1 | {}                    | {}                |
np-gke us-east4    | {}                      | {}                |
np-gke             | {}                      | {}                |
# A disk of somebody's own, or a clone of one that was made for a claim.
np-gke us-central1 | {description: mine}     | {pvc-1: Delete}   | UNPROVEN
np-gke us-central1 | {description: "[]"}     | {pvc-1: Delete}   | UNPROVEN
np-gke us-central1 | {"pv/name": pvc-2}      | {pvc-1: Delete}   | UNPROVEN
np-gke us-central1 | {description: mine}     | {pvc-1: Retain}   |
""")
def test_a_disk_goes_only_if_its_policy_says_so(
    labels: str, about: dict[str, str], volumes: dict[str, str], fate: str
) -> None:
    own = {key: value for key, value in about.items() if key == "description"}
    tags = {} if own else about
    found = disk(labels=dict(zip(LABELS, labels.split(), strict=False)), **tags) | own
    known = {PATH.replace("pvc-1", name): policy for name, policy in volumes.items()}
    expected = Fate[fate] if fate else None
    assert dataclasses.replace(OURS, volumes=known).fate(found) is expected


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


@cases("""
network   | labels | other | policy | fate
np-net    | {} |           | Delete | GOES
projects/p/global/networks/np-net | {} | | Delete | GOES
np-net    | {} |           | Retain | STAYS
# A share of somebody's own, also in the cluster's network, or beside a volume of that name.
np-net    | null |         | Delete | UNPROVEN
np-net    | {storage_gke_io_created-by: me} | | Delete | UNPROVEN
np-net    | {kubernetes_io_created-for_pv_name: pvc-2} | | Delete | UNPROVEN
# One of another cluster.
default   | {} |           | Delete | UNPROVEN
projects/q/global/networks/np-net | {} | | Delete | UNPROVEN
np-net    | {} | p/np-net  | Delete | UNPROVEN
-         | {} |           | Delete | UNPROVEN
default   | {goog-k8s-cluster-name: np-gke, goog-k8s-cluster-location: us-central1} |
    | Delete | GOES
""")
def test_a_filestore_instance_goes_only_if_google_says_that_it_is_of_this_cluster(
    network: str, labels: dict[str, str] | None, other: str, policy: str, fate: str
) -> None:
    found = share(network, **labels or {}) | ({} if network else {"networks": []})
    found |= {"labels": {}} if labels is None else {}
    foreign = "projects/q/locations/us-central1-c/instances/pvc-1"
    volumes = {SHARE: policy, PATH: "Delete", foreign: "Delete"}
    known = dataclasses.replace(OURS, volumes=volumes).beside(_in(other))
    assert list(known.instances()) == [SHARE]
    assert known.fate(found) is Fate[fate]


def test_traces_are_kept_and_read_again_and_whose_they_are_is_what_the_record_says() -> None:
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
    ours, others = ("p/np-net", "p/np-gpu-net-1"), ("p/default", "p/other-net", "q/np-net")
    whose = {"project": "q", "location": "europe-west4", "cluster": "other-gke", "alone": True}
    kept = {**KEPT, **whose, "networks": [net(it) for it in ours + others]}
    assert Traces.parse(json.dumps(kept), RECORD) == dataclasses.replace(
        TRACES, networks=frozenset(map(net, ours)), volumes=KEPT["volumes"]
    )


KEPT: dict[str, Any] = {"networks": [NETWORK], "stems": [BALANCER], "volumes": {SHARE: "Delete"}}


@cases("""
name     | value
networks | ["projects/p/global/networks/np-net?x"]
networks | null
stems    | [web]
volumes  | {projects/p/zones/z-a/disks/../x: Delete}
volumes  | {projects/p/locations/us-central1-c/instances/pvc-1: {}}
volumes  | [projects/p/locations/us-central1-c/instances/pvc-1]
""")
def test_traces_of_another_form_are_none(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        Traces.parse(json.dumps({**KEPT, name: value}), RECORD)


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
        prod = "projects/p/global/networks/prod"
        return [
            {
                "name": path.rpartition("/")[2],
                "selfLink": LINK + path,
                "network": LINK + (prod if "prod" in path else NETWORK),
                "targetTags": self.tags,
            }
            for path in found
        ]

    def delete(self, _: object, path: str) -> None:
        self._refuse(path)
        self.paths.remove(path)

    def _refuse(self, what: str) -> None:
        if what in self.refused:
            raise GoogleApiError(self.refused[what], "no", "https://x")


def swept(google: Google, *, last: bool = True, text: str | None = None) -> tuple[int, list[Any]]:
    notes: list[Problem] = []
    said: list[str] = []
    context = having(note=notes.extend, console=having(progress=said.append))
    text = TRACES.document() if text is None else text
    folder = MemoryFolder({"leftovers.json": text} if text else {})
    count = left_behind.sweep(context, having(api=google, folder=folder), RECORD, last=last)
    assert len(said) == count
    return count, notes


def problem(google: Google, **volumes: str) -> Problem:
    with pytest.raises(ClusterError) as caught:
        swept(google, text=dataclasses.replace(TRACES, volumes=volumes).document())
    assert caught.value.exit_code == 8
    (found,) = caught.value.problems
    return found


RULE = f"projects/p/global/firewalls/k8s-fw-{BALANCER}"


def test_what_is_ours_goes_with_groups_of_ingresses_and_what_is_not_stays() -> None:
    others = [f"{REGION}/targetPools/{OTHER}", "projects/p/global/firewalls/k8s-fw-web"]
    google = Google(*PARTS, *others)
    assert swept(google) == (2, [])
    assert google.paths == others
    assert swept(google) == (0, [])
    zone = "projects/p/zones/us-central1-a/instanceGroups"
    managed = f"{zone}/gke-np-gke-np-gpu-0a1b2c3d-grp"
    google = Google(f"{zone}/k8s-ig--{ID}", managed)
    known = dataclasses.replace(TRACES, stems=frozenset({ID}))
    assert swept(google, text=known.document()) == (1, [])
    assert google.paths == [managed]


@pytest.mark.parametrize("networks", [frozenset({NETWORK}), frozenset[str]()])
def test_what_is_another_clusters_stays_whatever_the_traces_say(networks: frozenset[str]) -> None:
    google = Google(*PARTS, RULE)
    google.tags, google.clusters = ["gke-other-0a1b2c3d-node"], _in("p/np-net")
    assert swept(google, text=dataclasses.replace(TRACES, networks=networks).document()) == (0, [])
    assert google.paths == [*PARTS, RULE]


def test_nothing_is_touched_while_the_cluster_is_there_or_without_traces_that_can_be_read() -> None:
    google = Google(*PARTS)
    assert swept(google, text="") == (0, [])
    google.cluster = {"status": "RUNNING"}
    assert swept(google) == (0, [])
    assert google.paths == PARTS
    found = problem_of(StateError, lambda: swept(Google(), text="{}"))
    assert "leftovers.json can't be read" in found.what
    assert "gcloud storage rm gs://b/np-deployment/leftovers.json" in found.fix


ELSEWHERE = dataclasses.replace(TRACES, networks=frozenset())
"""Of a cluster in somebody else's network, such as the project's default one."""


@cases("""
tags                          | others          | refused         | goes
gke-np-gke-0a1b2c3d-node      | []              | {}              | true
gke-np-gke-0a1b2c3d-node      | [{name: prod}]  | {}              | true
# Nothing of Google's says so; or the name may be that of a cluster in another place.
-                             | []              | {}              | false
my-own-tag                    | []              | {}              | false
gke-np-gke-0a1b2c3d-node      | [{name: np-gke}] | {}             | false
gke-np-gke-0a1b2c3d-node      | []              | {clusters: 403} | false
""")
def test_in_anothers_network_only_what_a_rule_for_this_clusters_nodes_names_goes(
    tags: str, others: list[dict[str, Any]], refused: dict[str, int], *, goes: bool
) -> None:
    google = Google(*PARTS, RULE, refused=refused)
    google.tags, google.clusters = tags.split(), others
    text = ELSEWHERE.document()
    if goes:
        assert swept(google, text=text) == (len(PARTS), [])
        assert google.paths == [RULE], "rules in the network are others' to remove"
        return
    with pytest.raises(ClusterError) as caught:
        swept(google, text=text)
    assert google.paths == [*PARTS, RULE]
    assert [it.what for it in caught.value.problems] == [f"{it} is kept" for it in PARTS]
    assert "if it is another's: gcloud storage rm gs://b/np-deployment/leftovers.json" in str(
        caught.value.problems[0].fix
    )


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


@cases("""
network   | refused         | goes
p/default | {}              | true
# Another cluster is in the network, or nobody may list the clusters.
p/np-net  | {}              | false
p/default | {clusters: 403} | false
""")
def test_what_gateways_have_left_goes_by_the_rule_of_their_network_if_no_other_cluster_is_there(
    network: str, refused: dict[str, int], *, goes: bool
) -> None:
    google = Google(*GATEWAY, OTHER_GATEWAY, *PARTS, refused=refused)
    google.clusters = _in(network)
    assert swept(google) == (len(GATEWAY) * goes + len(PARTS), [])
    assert google.paths == [*([] if goes else GATEWAY), OTHER_GATEWAY]


@pytest.mark.parametrize(
    "tells",
    [
        "projects/p/global/firewalls/gkegw1-26e6-l7-prod-global",
        "projects/p/zones/z-a/networkEndpointGroups/gkegw1-26e6-prod-web-80-d9441438",
    ],
)
def test_what_is_of_something_in_another_network_stays_whatever_the_bucket_says(
    tells: str,
) -> None:
    google = Google(*GATEWAY, OTHER_GATEWAY, tells)
    stems = frozenset({"gkegw1-nv9e", "gkegw1-26e6"})
    text = dataclasses.replace(OURS, stems=stems).document()
    assert swept(google, text=text) == (len(GATEWAY), [])
    assert google.paths == [OTHER_GATEWAY, tells]


@cases(f"""
path | command
regions/us-central1/targetPools/{BALANCER} | target-pools delete {BALANCER} --region us-central1
global/firewalls/k8s-fw-{BALANCER} | firewall-rules delete k8s-fw-{BALANCER}
global/backendServices/{BALANCER} | backend-services delete {BALANCER} --global
global/httpHealthChecks/{BALANCER} | http-health-checks delete {BALANCER}
zones/z-a/networkEndpointGroups/{BALANCER} | network-endpoint-groups delete {BALANCER} --zone z-a
""")
def test_what_cannot_be_removed_is_named_with_a_command(path: str, command: str) -> None:
    whole = f"projects/p/{path}"
    google = Google(PARTS[0], whole, refused={whole: 403})
    found = problem(google)
    assert found.what == f"{whole} could not be removed"
    assert found.fix == f"gcloud compute {command} --project p\nthen run Destroy again"
    assert google.paths == [whole]


def test_what_is_refused_ends_it_at_the_last_time_by_what_it_is() -> None:
    assert problem(Google(*PARTS, refused={PARTS[1]: 503})).code is Code.UNREACHABLE
    assert swept(Google(*PARTS, refused={PARTS[1]: 400}), last=False) == (1, [])
    google = Google(*PARTS, refused={"addresses": 403})
    found = problem(google)
    assert found.what == "Whether GKE has left addresses could not be looked for"
    assert "compute.addresses.list" in found.fix
    assert google.paths == [], "the rest goes"
    with pytest.raises(ClusterError, match="Could not look for what GKE has left"):
        swept(Google(refused={"addresses": 400}))


DELETE = "gcloud filestore instances delete pvc-1 --location us-central1-c --project p"


def test_a_filestore_instance_goes_or_is_named_and_left_where_it_may_be_anothers() -> None:
    for policy, left in (("Retain", [SHARE]), ("Delete", [])):
        text, google = (
            dataclasses.replace(TRACES, volumes={SHARE: policy}).document(),
            Google(SHARE),
        )
        count, notes = swept(google, text=text)
        assert (count, google.paths) == (1 - len(left), left)
        assert [note.fix for note in notes] == [f"if nobody needs its data: {DELETE}"] * len(left)
        assert swept(Google(), text=text) == (0, [])
    assert problem(Google(SHARE, refused={SHARE: 400}), **{SHARE: "Delete"}).fix.startswith(DELETE)
    anothers: list[dict[str, Any]] = [{"labels": {}}, {"networks": [{"network": "default"}]}]
    for what in anothers:
        google = Google(SHARE)
        google.share = what
        found = problem(google, **{SHARE: "Delete"})
        assert found.what == f"{SHARE} is kept, and is billed"
        assert (
            "if it is another's: gcloud storage rm gs://b/np-deployment/leftovers.json\n"
            in found.fix
        )
        assert google.paths == [SHARE]


# ------------------------------------------------------------------ without a state

PLACE = having(project_id="p", region="us-central1", name_prefix="np")


class Orphaned(Google):
    """A Google with a target pool and its rule."""

    def __init__(self, *, lives: bool = False, refused: dict[str, int] | None = None) -> None:
        super().__init__(PARTS[1], RULE, refused=refused)
        self.tags = [TAG]
        self.cluster = {} if lives else None

    def found(self, networks: Sequence[str] = (NETWORK,)) -> Left:
        return left_behind.find(having(api=self), PLACE, networks)

    def swept(self) -> int:
        context = having(console=having(progress=lambda _: None))
        return left_behind.sweep_without_state(context, having(api=self), PLACE, [NETWORK])


def test_what_is_found_goes_and_its_rules_only_after_all_else() -> None:
    google = Orphaned()
    found = google.found()
    assert (found.what, found.paths) == ("what GKE made for the cluster np-gke", (PARTS[1], RULE))
    assert google.swept() == 2
    assert google.paths == []
    assert google.found().paths == ()
    google = Orphaned(refused={PARTS[1]: 400})
    assert problem_of(ClusterError, google.swept).what == f"{PARTS[1]} could not be removed"
    assert google.paths == [PARTS[1], RULE]


def test_nothing_is_a_dead_clusters_before_it_is_known_to_be_dead() -> None:
    for google in (Orphaned(lives=True), Orphaned(refused={"find": 403})):
        assert google.found() == Left()
        assert google.swept() == 0
        assert google.paths == [PARTS[1], RULE]
    for what in ("clusters", "networkEndpointGroups"):
        assert Orphaned(refused={what: 403}).found().paths == (PARTS[1], RULE)
    google = Orphaned()
    assert google.found(networks=()).paths == ()
    assert google.asked == ["disks"], "without a network there can only be disks"
