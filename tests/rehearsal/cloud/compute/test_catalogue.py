from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rehearsal.cloud.facts import machines, offers, places

if TYPE_CHECKING:
    from tests.rehearsal.cloud.compute.conftest import Compute

PROJECT = "projects/proj-a1"
ZONE = f"{PROJECT}/zones/us-central1-a"
ROOT = "https://www.googleapis.com/compute/v1/"


def test_all_zones_are_listed(api: Compute) -> None:
    found = api.get(f"{PROJECT}/zones")["items"]
    assert len(found) == sum(len(zones) for zones in places.ZONES.values())


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
    found = api.get(f"{PROJECT}/zones", filter=text)["items"]
    assert [zone["name"] for zone in found] == ["us-east4-a", "us-east4-b", "us-east4-c"]


@pytest.mark.parametrize(
    "text", ["name", "name =", "name = a OR name = b", "name < b", "name ~ a", "name = (x)"]
)
def test_a_filter_that_is_none_is_refused(api: Compute, text: str) -> None:
    assert "'filter'" in api.refusal("GET", f"{PROJECT}/zones", filter=text)["message"]


def test_a_region_tells_its_zones(api: Compute) -> None:
    zones = api.get(f"{PROJECT}/regions/us-east4")["zones"]
    assert zones[0] == f"{ROOT}{PROJECT}/zones/us-east4-a"
    assert len(api.get(f"{PROJECT}/regions")["items"]) == len(places.REGIONS)
    assert api.get(f"{ZONE}")["region"] == f"{ROOT}{PROJECT}/regions/us-central1"


@pytest.mark.parametrize("name", machines.MACHINES)
def test_each_known_machine_is_offered_somewhere(api: Compute, name: str) -> None:
    api.scenarios = frozenset({offers.EVERYWHERE})
    found = api.get(f"{ZONE}/machineTypes/{name}")
    known = machines.MACHINES[name]
    assert found["guestCpus"] == known.vcpus
    assert ("accelerators" in found) == bool(known.gpu)


@pytest.mark.parametrize(
    ("name", "gib"), [("a2-highgpu-1g", 85), ("a3-highgpu-8g", 1872), ("e2-standard-4", 16)]
)
def test_machines_have_their_memory(api: Compute, name: str, gib: int) -> None:
    assert api.get(f"{ZONE}/machineTypes/{name}")["memoryMb"] == gib * 1024


def test_a_machine_that_nobody_has_is_not_found(api: Compute) -> None:
    error = api.refusal("GET", f"{ZONE}/machineTypes/a2-highgpu-3g")
    assert error["message"] == f"The resource '{ZONE}/machineTypes/a2-highgpu-3g' was not found"


def test_gpus_are_not_everywhere(api: Compute) -> None:
    listed = api.get(f"{ZONE}/acceleratorTypes")["items"]
    assert {it["name"] for it in listed} == set(machines.gpus()) - {
        "nvidia-b200", "nvidia-h200-141gb", "nvidia-rtx-pro-6000", "nvidia-tesla-p100",
    }  # fmt: skip
    t4 = api.get(f"{ZONE}/acceleratorTypes/nvidia-tesla-t4")
    assert t4["maximumCardsPerInstance"] == 4
    assert "items" not in api.get(f"{PROJECT}/zones/africa-south1-a/acceleratorTypes")


def test_disk_types_tell_their_sizes(api: Compute) -> None:
    assert api.get(f"{ZONE}/diskTypes/hyperdisk-balanced")["validDiskSize"] == "4GB-65536GB"


@pytest.mark.parametrize("project", ["ml-images", "proj-a1", "cos-cloud"])
def test_an_image_that_is_not_served_is_not_found(api: Compute, project: str) -> None:
    name = f"projects/{project}/global/images/family/common-dl-gpu-debian-10"
    error = api.refusal("GET", name)
    assert error["code"] == 404
    assert error["message"] == f"The resource '{name}' was not found"


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
    assert done["targetLink"] == f"{ROOT}{PROJECT}/global/networks/net"
    assert done["endTime"] == "2027-01-15T08:00:06.000Z"
    assert [it["name"] for it in api.get(f"{PROJECT}/global/operations")["items"]] == [
        started["name"]
    ]


def test_at_rate_zero_everything_is_done_at_once(api: Compute) -> None:
    assert api.network()["status"] == "DONE"


def test_operations_are_found_where_they_run(wired: Compute) -> None:
    wired.template()
    operation = wired.group()
    assert wired.get(f"{ZONE}/operations/{operation['name']}")["zone"] == f"{ROOT}{ZONE}"
    error = wired.refusal("GET", f"{PROJECT}/global/operations/{operation['name']}")
    assert error["code"] == 404


def test_what_google_has_and_this_cloud_has_not_is_said(api: Compute) -> None:
    error = api.refusal("GET", f"{PROJECT}/global/sslCertificates")
    assert error["code"] == 501
    assert "compute.sslCertificates.list" in error["message"]


def test_a_request_with_an_id_is_done_once(api: Compute) -> None:
    body = {"name": "net", "autoCreateSubnetworks": False}
    path = f"{PROJECT}/global/networks"
    first = api.post(path, body, requestId="0a1b")
    assert api.post(path, body, requestId="0a1b") == first
    assert api.refusal("POST", path, body, requestId="0a1c")["code"] == 409


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
