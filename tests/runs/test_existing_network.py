"""Machines in a network of others: nothing is made there, and what is lacking is said before."""

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from dotenv import dotenv_values

from provision.codes import ExitCode
from rehearsal import session
from rehearsal.cloud import projects
from rehearsal.cloud.store import Database
from tests.runs import state_file
from tests.runs.conftest import Rehearsal, Rehearse
from tests.runs.test_examples import EXAMPLES

HOST = "compute/v1/projects/my-host"
REGION = f"{HOST}/regions/us-central1"
SUBNETWORK = f"{REGION}/subnetworks/gpu-vms"
AGENT = f"{projects.number('my-project')}@cloudservices.gserviceaccount.com"
ROBOT = f"service-{projects.number('my-project')}@container-engine-robot.iam.gserviceaccount.com"
SLOW = pytest.mark.slow(sibling="::test_what_lacks_is_said_before_anything_is_made")

OF_RULES = pytest.mark.slow(sibling="::test_the_rules_that_are_not_there_are_told_ready_to_send")


@pytest.fixture
def shared(rehearse: Rehearse) -> Rehearse:
    """Make a rehearsal of the example, in a scenario, with all that its settings name."""

    def make(scenario: str = "", **settings: str) -> Rehearsal:
        rehearsal = rehearse(scenario=scenario)
        values = dotenv_values(EXAMPLES / "shared-vpc.env.list")
        rehearsal.settings = {name: value for name, value in values.items() if value} | settings
        rehearsal.presume()
        return rehearsal

    return make


def _of_host(rehearsal: Rehearsal) -> dict[str, Any]:
    """All that the cloud has of the host project, but for the operations that made it."""
    found = {}
    database = Database(rehearsal.folder / session.DATABASE)
    with contextlib.closing(database), database.transaction() as store:
        for collection in store.collections():
            for name, document in store.list(collection):
                is_there = "_gone" not in document and "operations" not in collection
                if name.startswith("projects/my-host") and is_there:
                    found[f"{collection} {name}"] = document
    return found


def test_a_host_project_is_byte_for_byte_as_it_was(shared: Rehearse) -> None:
    rehearsal = shared()
    before, resources = _of_host(rehearsal), set(rehearsal.resources())
    assert before

    created = rehearsal.run("Create")

    assert created.code == 0, created.said
    assert _of_host(rehearsal) == before
    made = Counter(line.partition(" ")[0] for line in set(rehearsal.resources()) - resources)
    del made["storage/objects"]  # the state, its logs, and what VMs write there
    # Of all that Create makes elsewhere, the network's parts are not here: 13 things in all.
    assert made == {
        "compute/disks": 2,
        "compute/instanceGroupManagers": 1,
        "compute/instances": 2,
        "compute/instanceTemplates": 1,
        "iam/accounts": 1,
        "iam/bindings": 4,
        "monitoring/dashboards": 1,
        "storage/buckets": 1,
    }
    (vm, *_) = rehearsal.google("GET", "compute/v1/projects/my-project/aggregated/instances")[
        "items"
    ]["zones/us-central1-a"]["instances"]
    (interface,) = vm["networkInterfaces"]
    assert interface["subnetwork"].endswith(
        "projects/my-host/regions/us-central1/subnetworks/gpu-vms"
    )
    again = rehearsal.run("Plan", "--detailed-exitcode")
    assert again.code == 0, again.said
    assert rehearsal.run("Destroy").code == 0
    assert _of_host(rehearsal) == before


@pytest.mark.slow(sibling="::test_a_host_project_is_byte_for_byte_as_it_was")
def test_a_share_joins_the_network_of_others_by_private_services_access(shared: Rehearse) -> None:
    rehearsal = shared(NFS_FILESHARE_LIST="/mnt/nfs:BASIC_SSD")

    created = rehearsal.run("Create")

    assert created.code == 0, created.said
    assert rehearsal.run("Plan", "--detailed-exitcode").code == 0
    (share,) = [it for it in rehearsal.resources() if it.startswith("file/instances")]
    name = share.split()[-1]
    made = rehearsal.google("GET", f"file/v1/{name}")
    assert made["networks"][0]["connectMode"] == "PRIVATE_SERVICE_ACCESS"
    assert rehearsal.run("Destroy", "--yes").code == 0


def test_the_rules_that_are_not_there_are_told_ready_to_send(shared: Rehearse) -> None:
    rehearsal = shared()

    planned = rehearsal.run("Plan")

    (note,) = [it for it in planned.document["notes"] if it["setting"] == "NETWORK"]
    assert note["what"] == "the network has to let in what 2 firewall rules would"
    commands = [line for line in note["fix"].splitlines() if line.startswith("gcloud ")]
    assert [" --allow tcp,udp,icmp" in line for line in commands] == [True, False]
    assert "--project my-host --network my-vpc" in commands[0]
    assert "--source-ranges 35.235.240.0/20 --allow tcp:22" in commands[1]
    assert note["fix"].count('resource "google_compute_firewall"') == 2
    assert commands[1] in planned.said

    for name, source, protocols in (
        ("inside", "10.0.0.0/8", ["tcp", "udp", "icmp"]),
        ("iap", "35.235.240.0/20", ["tcp"]),
    ):
        body = {
            "name": name,
            "network": "projects/my-host/global/networks/my-vpc",
            "direction": "INGRESS",
            "sourceRanges": [source],
            "allowed": [{"IPProtocol": it} for it in protocols],
        }
        rehearsal.google("POST", f"{HOST}/global/firewalls", body)
    planned = rehearsal.run("Plan")
    assert [it for it in planned.document["notes"] if it["setting"] == "NETWORK"] == []


def _rules(rehearsal: Rehearsal) -> dict[str, Any]:
    """The firewall rules of the host project with names of ours."""
    found = rehearsal.google("GET", f"{HOST}/global/firewalls").get("items", [])
    return {it["name"]: it for it in found if it["name"].startswith("shared-vpc-")}


@OF_RULES
def test_rules_that_are_asked_for_are_made_and_go_with_the_machines(shared: Rehearse) -> None:
    rehearsal = shared(MAKE_FIREWALL="yes")
    before = _of_host(rehearsal)
    assert _rules(rehearsal) == {}

    created = rehearsal.run("Create")

    assert created.code == 0, created.said
    assert "my-vpc of my-host; firewall rules alone are made in it" in created.said
    assert not [it for it in created.document["notes"] if it["setting"] == "NETWORK"]
    ssh, inside = (_rules(rehearsal)[name] for name in sorted(_rules(rehearsal)))
    assert inside["name"].startswith("shared-vpc-internal-")
    assert inside["sourceRanges"] == ["10.200.0.0/22"]
    assert ssh["sourceRanges"] == ["35.235.240.0/20"]
    assert ssh["allowed"] == [{"IPProtocol": "tcp", "ports": ["22"]}]
    again = rehearsal.run("Plan", "--detailed-exitcode")
    assert again.code == 0, again.said
    assert rehearsal.run("Destroy").code == 0
    assert _of_host(rehearsal) == before


@OF_RULES
def test_rules_of_a_network_that_is_left_go_too(shared: Rehearse) -> None:
    rehearsal = shared(MAKE_FIREWALL="yes")
    before = _of_host(rehearsal)
    assert rehearsal.run("Create").code == 0

    refused = rehearsal.run("Create", MAKE_FIREWALL="no")
    told = rehearsal.run("Create", "--yes", MAKE_FIREWALL="no")

    assert refused.code == ExitCode.USAGE, refused.said
    assert refused.problem["why"].count("firewall rule shared-vpc-") == 2
    assert told.code == 0, told.said
    assert _of_host(rehearsal) == before
    assert rehearsal.run("Destroy").code == 0


@OF_RULES
@pytest.mark.parametrize("lost", ["the state's entry", "the state", "the record"])
def test_a_rule_that_no_state_knows_is_not_left(shared: Rehearse, lost: str) -> None:
    rehearsal = shared(MAKE_FIREWALL="yes")
    before = _of_host(rehearsal)
    assert rehearsal.run("Create").code == 0
    folder = "shared-vpc-deployment"
    state = f"{folder}/terraform/state/default.tfstate"
    match lost:
        case "the state":
            for name in (state, f"{folder}/deployment.json"):
                with state_file.blob(rehearsal, name) as blob:
                    blob.delete()
        case "the record":
            with state_file.blob(rehearsal, f"{folder}/deployment.json") as blob:
                blob.delete()
        case _:
            with state_file.blob(rehearsal, state) as blob:
                document = json.loads(blob.download_as_text())
                kept = [
                    it for it in document["resources"] if it["type"] != "google_compute_firewall"
                ]
                assert len(kept) < len(document["resources"])
                blob.upload_from_string(json.dumps({**document, "resources": kept}))

    # Settings that no longer say so: what is made is known all the same.
    asked = "no" if lost == "the state's entry" else "yes"
    ended = rehearsal.run("Destroy", "--yes", MAKE_FIREWALL=asked)

    assert ended.code == 0, ended.said
    assert _of_host(rehearsal) == before


@OF_RULES
def test_the_rules_of_a_namesake_in_another_project_are_left_alone(shared: Rehearse) -> None:
    rehearsal = shared(MAKE_FIREWALL="yes")
    number = hashlib.sha256(b"my-vpc").hexdigest()[:8]
    body = {
        "name": f"shared-vpc-internal-{number}",
        "description": "aiinfra-cluster=0123abcd, whose state is in gs://b/f",
        "network": "projects/my-host/global/networks/my-vpc",
        "sourceRanges": ["10.0.0.0/8"],
        "allowed": [{"IPProtocol": "tcp"}],
    }
    rehearsal.google("POST", f"{HOST}/global/firewalls", body)
    before = _of_host(rehearsal)

    ended = rehearsal.run("Create")

    assert ended.code != 0
    assert "projects/my-host/global/firewalls/shared-vpc-internal" in ended.said
    assert _of_host(rehearsal) == before
    assert rehearsal.run("Destroy").code == 0
    assert _of_host(rehearsal) == before


@pytest.mark.parametrize(
    ("scenario", "what", "fix"),
    [
        (
            "network-forbidden",
            "these credentials may not make firewall rules in my-host",
            "--role roles/compute.securityAdmin",
        ),
        (
            "network-unseen",
            "the firewall rule shared-vpc-internal can't be made",
            "roles/compute.networkViewer",
        ),
    ],
)
def test_who_may_not_make_rules_hears_it_before(
    shared: Rehearse, scenario: str, what: str, fix: str
) -> None:
    ended = shared(scenario, MAKE_FIREWALL="yes").run("Create")

    assert ended.code == ExitCode.CHECK, ended.said
    (problem,) = [it for it in ended.document["problems"] if it["setting"] == "MAKE_FIREWALL"]
    assert problem["what"] == what
    assert fix in problem["fix"]


def _detach(rehearsal: Rehearsal) -> None:
    database = Database(rehearsal.folder / session.DATABASE)
    with contextlib.closing(database), database.transaction() as store:
        store.delete("compute/attached", "my-project")


def _take_right(rehearsal: Rehearsal) -> None:
    rehearsal.google("POST", f"{SUBNETWORK}/setIamPolicy", {"policy": {}})


def _shrink(rehearsal: Rehearsal) -> None:
    rehearsal.rewrite(lambda text: text.replace(".0/22", ".0/27"))


def _close(rehearsal: Rehearsal) -> None:
    rehearsal.google("DELETE", f"{REGION}/routers/my-vpc-router")
    body = {"privateIpGoogleAccess": False}
    rehearsal.google("POST", f"{SUBNETWORK}/setPrivateIpGoogleAccess", body)


def _nothing(_: Rehearsal) -> None:
    pass


LACKS: Mapping[str, tuple[Callable[[Rehearsal], None], dict[str, str], str, str, str]] = {
    "attachment": (
        _detach,
        {},
        "NETWORK",
        "my-project is not attached to any host project",
        "gcloud compute shared-vpc associated-projects add my-project --host-project my-host",
    ),
    "subnetwork": (
        _nothing,
        {"SUBNETWORK": "gpu-wms"},
        "SUBNETWORK",
        "my-host has no subnetwork gpu-wms in us-central1",
        "gcloud compute networks subnets list --project my-host",
    ),
    "network": (
        _nothing,
        {"NETWORK": "projects/my-host/global/networks/your-vpc"},
        "NETWORK",
        "your-vpc is not the network of the subnetwork gpu-vms",
        "NETWORK=projects/my-host/global/networks/my-vpc",
    ),
    "right of Google's account": (
        _take_right,
        {},
        "SUBNETWORK",
        f"{AGENT} may not use the subnetwork gpu-vms of my-host",
        f"--member serviceAccount:{AGENT} --role roles/compute.networkUser",
    ),
    "addresses": (
        _shrink,
        {"INSTANCE_COUNT": "30"},
        "INSTANCE_COUNT",
        "the subnetwork gpu-vms has too few addresses for 30 VMs",
        "INSTANCE_COUNT=28",
    ),
    "private services access": (
        _nothing,
        {"NFS_FILESHARE_LIST": "/mnt/nfs:BASIC_SSD"},
        "NFS_FILESHARE_LIST",
        "my-vpc has no private services access",
        "gcloud services vpc-peerings connect --project my-host --network my-vpc",
    ),
    "way out": (
        _close,
        {},
        "SUBNETWORK",
        "VMs in gpu-vms have no way out",
        "--enable-private-ip-google-access",
    ),
}


@pytest.mark.parametrize("name", LACKS)
def test_what_lacks_is_said_before_anything_is_made(shared: Rehearse, name: str) -> None:
    take, settings, setting, what, fix = LACKS[name]
    rehearsal = shared()
    take(rehearsal)
    asked = len(rehearsal.requests())

    ended = rehearsal.run("Create", **settings)

    assert ended.code == ExitCode.CHECK, ended.said
    problems = {it["setting"]: it for it in ended.document["problems"]}
    assert what in problems[setting]["what"]
    assert fix in problems[setting]["fix"]
    assert rehearsal.writes(since=asked) == []


def test_a_caller_without_the_right_hears_which_and_who_grants_it(shared: Rehearse) -> None:
    ended = shared("network-forbidden").run("Create")

    assert ended.code == ExitCode.CHECK, ended.said
    assert "these credentials may not use the subnetwork gpu-vms" in ended.problem["what"]
    assert ended.problem["why"] == "they lack compute.subnetworks.use on it"
    assert "--member user:YOU --role roles/compute.networkUser" in ended.problem["fix"]


def test_what_may_not_be_seen_is_no_obstacle(shared: Rehearse) -> None:
    rehearsal = shared("network-unseen")

    created = rehearsal.run("Create")

    assert created.code == 0, created.said
    assert created.document["online_checks"]["subnetwork"] == "partly"
    unseen = [it for it in created.document["notes"] if it["code"] == "not-checked"]
    assert ["could not" in it["what"] for it in unseen[:2]] == [True, True]
    (rules,) = [it for it in unseen if it["setting"] == "NETWORK"]
    assert "--source-ranges <RANGE OF gpu-vms>" in rules["fix"]


GPUS = {
    "ZONE": "us-central1-b",
    "VM_TYPE": "a3-ultragpu-8g",
    "ENABLE_SPOT": "yes",
    "GPU_SUBNETWORKS": "gvnic-1,rdma-{0..7}",
}


@OF_RULES
def test_the_networks_of_gpus_are_those_of_the_host_too(shared: Rehearse) -> None:
    rehearsal = shared()
    rehearsal.settings |= GPUS
    rehearsal.presume()
    before = _of_host(rehearsal)

    created = rehearsal.run("Create")

    assert created.code == 0, created.said
    (rules,) = [it for it in created.document["notes"] if it["setting"] == "NETWORK"]
    assert [line.partition(":")[0] for line in rules["why"].splitlines()] == [
        "shared-vpc-internal",
        "shared-vpc-iap-ssh",
        "shared-vpc-gpu-internal-1",
    ]
    (vm, *_) = rehearsal.google("GET", "compute/v1/projects/my-project/aggregated/instances")[
        "items"
    ]["zones/us-central1-b"]["instances"]
    names = [it["subnetwork"].rpartition("/")[2] for it in vm["networkInterfaces"]]
    assert names == ["gpu-vms", "gvnic-1", *(f"rdma-{number}" for number in range(8))]
    again = rehearsal.run("Plan", "--detailed-exitcode")
    assert again.code == 0, again.said
    assert rehearsal.run("Create", MAKE_FIREWALL="yes").code == 0
    assert [it.rpartition("-")[0] for it in sorted(_rules(rehearsal))] == [
        "shared-vpc-gpu-internal-1",
        "shared-vpc-iap-ssh",
        "shared-vpc-internal",
    ]
    assert rehearsal.run("Destroy").code == 0
    assert _of_host(rehearsal) == before


def test_a_network_for_rdma_is_of_one_zone(shared: Rehearse) -> None:
    rehearsal = shared()
    rehearsal.settings |= GPUS
    rehearsal.presume()

    ended = rehearsal.run("Create", ZONE="us-central1-c", GPU_SUBNETWORKS="rdma-{0..7},gvnic-1")

    assert ended.code == ExitCode.CHECK, ended.said
    told = {it["what"]: it for it in ended.document["problems"]}
    head = "the network of {} is not one for interfaces of type {} in us-central1-c"
    assert "needs none" in told[head.format("rdma-0", "GVNIC")]["why"].replace(
        "these need", "needs"
    )
    last = told[head.format("rdma-7", "MRDMA")]
    assert "has the profile us-central1-b-vpc-roce" in last["why"]
    assert "--network-profile us-central1-c-vpc-roce" in last["fix"]
    assert "has no network profile" in told[head.format("gvnic-1", "MRDMA")]["why"]


@SLOW
def test_moving_to_the_network_of_others_asks_first(shared: Rehearse) -> None:
    rehearsal = shared()
    there = dict(rehearsal.settings)
    rehearsal.settings = {it: there[it] for it in there if it not in {"NETWORK", "SUBNETWORK"}}
    assert rehearsal.run("Create", NETWORK_CONFIG="new_network").code == 0

    refused = rehearsal.run("Create", **there)
    assert refused.code == ExitCode.USAGE, refused.said
    assert "2 VMs in us-central1-a end, 2 begin in us-central1-a" in refused.problem["why"]
    moved = rehearsal.run("Create", "--yes", **there)
    assert moved.code == 0, moved.said
    assert not [it for it in rehearsal.resources() if "my-project/global/networks" in it]
    assert rehearsal.run("Destroy", **there).code == 0


GKE = {"ORCHESTRATOR_TYPE": "gke", "GKE_PODS_RANGE": "pods", "GKE_SERVICES_RANGE": "services"}


@pytest.fixture
def for_gke(shared: Rehearse) -> Rehearsal:
    """The rehearsal of the example, for a GKE cluster."""
    rehearsal = shared()
    rehearsal.settings |= GKE
    rehearsal.google("DELETE", SUBNETWORK)  # the one without ranges
    rehearsal.presume()
    return rehearsal


@pytest.mark.slow(sibling="::test_a_host_project_is_byte_for_byte_as_it_was")
def test_a_gke_cluster_joins_the_network_of_a_host_project(for_gke: Rehearsal) -> None:
    rehearsal = for_gke
    before = _of_host(rehearsal)

    created = rehearsal.run("Create")

    assert created.code == 0, created.said
    cluster = "container/v1/projects/my-project/locations/us-central1/clusters/shared-vpc-gke"
    found = rehearsal.google("GET", cluster)
    assert found["networkConfig"]["subnetwork"] == SUBNETWORK.removeprefix("compute/v1/")
    assert found["ipAllocationPolicy"]["clusterSecondaryRangeName"] == "pods"
    assert not [it for it in rehearsal.resources() if "my-project/global/networks" in it]
    again = rehearsal.run("Plan", "--detailed-exitcode")
    assert again.code == 0, again.said
    assert rehearsal.run("Destroy").code == 0
    assert _of_host(rehearsal) == before


@OF_RULES
def test_the_rules_of_gkes_nodes_and_pods_are_made(for_gke: Rehearsal) -> None:
    rehearsal = for_gke
    before = _of_host(rehearsal)

    created = rehearsal.run("Create", MAKE_FIREWALL="yes")

    assert created.code == 0, created.said
    made = {name.rpartition("-")[0]: it["sourceRanges"] for name, it in _rules(rehearsal).items()}
    assert made == {"shared-vpc-nodes": ["10.200.0.0/22"], "shared-vpc-pods": ["10.220.0.0/16"]}
    assert rehearsal.run("Plan", "--detailed-exitcode", MAKE_FIREWALL="yes").code == 0
    assert rehearsal.run("Destroy", MAKE_FIREWALL="yes").code == 0
    assert _of_host(rehearsal) == before


@OF_RULES
@pytest.mark.parametrize("machine", ["a3-megagpu-8g", "a3-ultragpu-8g"])
def test_gkes_nodes_have_the_networks_of_gpus_that_are_there(
    shared: Rehearse, machine: str
) -> None:
    subnetworks = "gvnic-1,rdma-{0..7}" if "ultra" in machine else "gpu-{1..8}"
    own = {"NETWORK": "my-vpc", "SUBNETWORK": "nodes", "GPU_SUBNETWORKS": subnetworks}
    rehearsal = shared(
        **GKE, **own, VM_TYPE=machine, ZONE="us-central1-b", ENABLE_SPOT="yes", MAKE_FIREWALL="yes"
    )
    networks = [it for it in rehearsal.resources() if it.startswith("compute/networks")]

    created = rehearsal.run("Create")

    assert created.code == 0, created.said
    assert [it for it in rehearsal.resources() if it.startswith("compute/networks")] == networks
    (machines,) = (
        found["instances"]
        for found in rehearsal.google("GET", "compute/v1/projects/my-project/aggregated/instances")[
            "items"
        ].values()
        if any("a3-" in it["machineType"] for it in found.get("instances", []))
    )
    node = next(it for it in machines if machine in it["machineType"])
    names = [it["subnetwork"].rpartition("/")[2] for it in node["networkInterfaces"]]
    assert len(names) == (10 if "ultra" in machine else 9)
    assert names[0] == "nodes"
    assert names[-1] == ("rdma-7" if "ultra" in machine else "gpu-8")
    rules = {it.rpartition("/")[2] for it in rehearsal.resources() if "global/firewalls" in it}
    count = 1 if "ultra" in machine else 8  # networks for RDMA take none
    assert sum(it.startswith("shared-vpc-gpu-internal-") for it in rules) == count
    again = rehearsal.run("Plan", "--detailed-exitcode")
    assert again.code == 0, again.said
    assert rehearsal.run("Destroy").code == 0
    assert [it for it in rehearsal.resources() if it.startswith("compute/networks")] == networks
    assert not [it for it in rehearsal.resources() if "firewalls/shared-vpc-" in it]


def _take_gkes_rights(rehearsal: Rehearsal) -> None:
    rehearsal.google("POST", "crm/v1/projects/my-host:setIamPolicy", {"policy": {}})


GKE_LACKS: Mapping[str, tuple[Callable[[Rehearsal], None], dict[str, str], str, str]] = {
    "range": (
        _nothing,
        {"GKE_PODS_RANGE": "more-pods"},
        "the subnetwork gpu-vms has no secondary range more-pods",
        "--add-secondary-ranges more-pods=<RANGE>",
    ),
    "room for pods": (
        _nothing,
        {"INSTANCE_COUNT": "300"},
        "the range pods has room for 256 nodes, 303 may be wanted",
        "a larger range",
    ),
    "right to be GKE's": (
        _take_gkes_rights,
        {},
        f"{ROBOT} may not use the subnetwork gpu-vms of my-host",
        "--role roles/container.hostServiceAgentUser",
    ),
}


@pytest.mark.parametrize("name", GKE_LACKS)
def test_what_gke_lacks_is_said_before_anything_is_made(for_gke: Rehearsal, name: str) -> None:
    take, settings, what, fix = GKE_LACKS[name]
    take(for_gke)
    asked = len(for_gke.requests())

    ended = for_gke.run("Create", **settings)

    assert ended.code == ExitCode.CHECK, ended.said
    told = [it for it in ended.document["problems"] if it["what"] == what]
    assert any(fix in it["fix"] for it in told), ended.said
    assert for_gke.writes(since=asked) == []


@SLOW
def test_google_refuses_a_cluster_whose_account_has_no_right(for_gke: Rehearsal) -> None:
    _take_gkes_rights(for_gke)

    ended = for_gke.run("Create", SKIP_CHECKS="subnetwork")

    assert ended.code == ExitCode.TERRAFORM, ended.said
    assert "container.hostServiceAgent.use" in ended.said
    assert for_gke.run("Destroy", SKIP_CHECKS="subnetwork").code == 0
