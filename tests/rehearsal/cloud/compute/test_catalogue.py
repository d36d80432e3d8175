import pytest

from rehearsal.cloud.facts import machines, offers, places
from tests.rehearsal.cloud.compute.conftest import NETWORKS, PROJECT, REGION, ROOT, ZONE, Compute


@pytest.mark.parametrize(
    "text",
    [
        f"region eq {ROOT}{PROJECT}/regions/us-east4",
        f"region eq http://127.0.0.1:4711/compute/v1/{PROJECT}/regions/us-east4",
        f'region = "{ROOT}{PROJECT}/regions/us-east4"',
        "region eq .*us-east4",
        "(name eq us-east4-.*) AND (status = UP)",
        "name:us-east4",
    ],
)
def test_zones_are_filtered(api: Compute, text: str) -> None:
    found = api.names(f"{PROJECT}/zones", filter=text)
    assert found == ["us-east4-a", "us-east4-b", "us-east4-c"]


@pytest.mark.parametrize(
    "text", ["name", "name =", "name = a OR name = b", "name < b", "name ~ a", "name = (x)"]
)
def test_a_filter_that_is_none_is_refused(api: Compute, text: str) -> None:
    assert "'filter'" in api.refused("GET", f"{PROJECT}/zones", filter=text)


def test_all_zones_and_regions_are_listed_and_a_region_tells_its_zones(api: Compute) -> None:
    assert len(api.names(f"{PROJECT}/zones")) == sum(len(it) for it in places.ZONES.values())
    assert len(api.names(f"{PROJECT}/regions")) == len(places.REGIONS)
    zones = api.get(f"{PROJECT}/regions/us-east4")["zones"]
    assert zones[0] == f"{ROOT}{PROJECT}/zones/us-east4-a"
    assert api.get(ZONE)["region"] == f"{ROOT}{REGION}"


@pytest.mark.parametrize("name", machines.MACHINES)
def test_each_known_machine_is_offered_somewhere(api: Compute, name: str) -> None:
    api.scenarios = frozenset({offers.EVERYWHERE})
    found = api.get(f"{ZONE}/machineTypes/{name}")
    known = machines.MACHINES[name]
    assert found["guestCpus"] == known.vcpus
    assert ("accelerators" in found) == bool(known.gpu)


def test_machines_have_their_memory_and_disks_their_sizes(api: Compute) -> None:
    for name, gib in (("a2-highgpu-1g", 85), ("a3-highgpu-8g", 1872), ("e2-standard-4", 16)):
        assert api.get(f"{ZONE}/machineTypes/{name}")["memoryMb"] == gib * 1024
    assert api.get(f"{ZONE}/diskTypes/hyperdisk-balanced")["validDiskSize"] == "4GB-65536GB"


def test_gpus_are_not_everywhere(api: Compute) -> None:
    assert set(api.names(f"{ZONE}/acceleratorTypes")) == set(machines.gpus()) - {
        "nvidia-b200", "nvidia-h200-141gb", "nvidia-rtx-pro-6000", "nvidia-tesla-p100",
    }  # fmt: skip
    t4 = api.get(f"{ZONE}/acceleratorTypes/nvidia-tesla-t4")
    assert t4["maximumCardsPerInstance"] == 4
    assert api.names(f"{PROJECT}/zones/africa-south1-a/acceleratorTypes") == []


@pytest.mark.parametrize(
    "name",
    [
        f"{ZONE}/machineTypes/a2-highgpu-3g",
        "projects/ml-images/global/images/family/common-dl-gpu-debian-10",
        f"{PROJECT}/global/images/family/common-dl-gpu-debian-10",
        "projects/cos-cloud/global/images/family/common-dl-gpu-debian-10",
    ],
)
def test_a_machine_or_an_image_that_nobody_has_is_not_found(api: Compute, name: str) -> None:
    assert api.refused("GET", name) == f"404 The resource '{name}' was not found"


def test_an_operation_runs_and_is_done(api: Compute) -> None:
    api.rate = 0.5
    started = api.network()
    name = f"{PROJECT}/global/operations/{started['name']}"
    assert (started["status"], started["progress"]) == ("RUNNING", 0)
    assert "endTime" not in started
    api.now += 5.9
    assert api.get(name)["status"] == "RUNNING"
    api.now += 0.1
    done = api.post(f"{name}/wait")
    assert (done["status"], done["progress"]) == ("DONE", 100)
    assert done["targetLink"] == f"{ROOT}{NETWORKS}/net"
    assert done["endTime"] == "2027-01-15T08:00:06.000Z"
    assert api.names(f"{PROJECT}/global/operations") == [started["name"]]
    api.rate = 0.0
    assert api.network("at-once")["status"] == "DONE"


def test_operations_are_found_where_they_run(made: Compute) -> None:
    operation = made.group()
    assert made.get(f"{ZONE}/operations/{operation['name']}")["zone"] == f"{ROOT}{ZONE}"
    assert made.gone(f"{PROJECT}/global/operations/{operation['name']}")


def test_what_google_has_and_this_cloud_has_not_is_said(api: Compute) -> None:
    error = api.refused("GET", f"{PROJECT}/global/sslCertificates")
    assert error.startswith("501 ")
    assert "compute.sslCertificates.list" in error


def test_a_request_with_an_id_is_done_once(api: Compute) -> None:
    body = {"name": "net", "autoCreateSubnetworks": False}
    first = api.post(NETWORKS, body, requestId="0a1b")
    assert api.post(NETWORKS, body, requestId="0a1b") == first
    assert api.refusal("POST", NETWORKS, body, requestId="0a1c")["code"] == 409


def test_an_aggregated_list_is_complete_over_its_pages(api: Compute) -> None:
    query, found = {"filter": "name = a2-highgpu-1g", "maxResults": "50"}, 0
    while True:
        page = api.get(f"{PROJECT}/aggregated/machineTypes", **query)
        found += sum(len(place["machineTypes"]) for place in page["items"].values())
        if "nextPageToken" not in page:
            break
        query["pageToken"] = page["nextPageToken"]
    zones = places.every_zone(frozenset())
    assert found == sum(offers.has_machine(it, "a2-highgpu-1g", frozenset()) for it in zones) == 19
