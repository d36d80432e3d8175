from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.rehearsal.cloud.compute.conftest import template_properties

if TYPE_CHECKING:
    from tests.rehearsal.cloud.compute.conftest import Compute

PROJECT = "projects/proj-a1"
ZONE = f"{PROJECT}/zones/us-central1-a"
GROUPS = f"{ZONE}/instanceGroupManagers"
TEMPLATES = f"{PROJECT}/global/instanceTemplates"
ROOT = "https://www.googleapis.com/compute/v1/"


@pytest.fixture
def made(wired: Compute) -> Compute:
    """With a template "tpl"."""
    wired.template()
    return wired


def _names(api: Compute) -> list[str]:
    return [vm["name"] for vm in api.vms()]


def test_a_group_has_as_many_vms_as_asked(made: Compute) -> None:
    made.group(size=3)
    assert len(_names(made)) == 3
    assert all(
        len(name) == len("grp-vm-") + 4 and name.startswith("grp-vm-") for name in _names(made)
    )
    group = made.get_group()
    assert group["currentActions"]["none"] == 3
    assert group["status"]["isStable"] is True


def test_vm_names_are_the_same_in_every_rehearsal(made: Compute) -> None:
    made.group(size=2)
    assert _names(made) == ["grp-vm-9k4k", "grp-vm-ry28"]


def test_vms_come_up_by_the_clock(made: Compute) -> None:
    made.rate = 1
    made.group(size=1)
    seen = []
    for _ in range(4):
        (vm,) = made.vms()
        group = made.get_group()
        seen.append(
            (vm["status"], group["status"]["isStable"], group["currentActions"]["creating"])
        )
        made.now += 9
    assert seen == [
        ("PROVISIONING", False, 1),
        ("PROVISIONING", False, 1),
        ("STAGING", False, 1),
        ("RUNNING", True, 0),
    ]


def test_a_clock_that_is_set_back_does_no_harm(made: Compute) -> None:
    made.rate = 1
    made.group(size=1)
    made.now -= 100
    assert [vm["status"] for vm in made.vms()] == ["PROVISIONING"]


def test_a_vm_is_what_its_template_says(wired: Compute) -> None:
    wired.template(
        machineType="n1-standard-8",
        guestAccelerators=[{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}],
        scheduling={"onHostMaintenance": "TERMINATE"},
        labels={"team": "ml"},
        metadata={"items": [{"key": "startup-script", "value": "true"}]},
        networkInterfaces=[
            {"subnetwork": f"{PROJECT}/regions/us-central1/subnetworks/sub", "accessConfigs": [{}]}
        ],
    )
    wired.group(size=1)
    (vm,) = wired.vms()
    assert vm["machineType"] == f"{ROOT}{ZONE}/machineTypes/n1-standard-8"
    assert vm["guestAccelerators"] == [
        {
            "acceleratorType": f"{ROOT}{ZONE}/acceleratorTypes/nvidia-tesla-t4",
            "acceleratorCount": 1,
        }
    ]
    assert vm["labels"] == {"team": "ml"}
    items = {item["key"]: item["value"] for item in vm["metadata"]["items"]}
    assert items["startup-script"] == "true"
    assert items["created-by"] == f"{GROUPS}/grp"
    (interface,) = vm["networkInterfaces"]
    assert interface["networkIP"] == "10.0.0.2"
    assert interface["accessConfigs"][0]["natIP"] == "203.0.113.1"
    disk = wired.get(f"{ZONE}/disks/{vm['name']}")
    assert disk["users"] == [vm["selfLink"]]
    assert disk["sourceImage"].endswith("debian-12")


def test_an_automatic_network_gives_vms_its_subnetwork(api: Compute) -> None:
    api.template(networkInterfaces=[{}])
    api.group(size=1)
    (vm,) = api.vms()
    (interface,) = vm["networkInterfaces"]
    assert interface["networkIP"] == "10.128.0.2"
    assert interface["subnetwork"].endswith("/regions/us-central1/subnetworks/default")


def test_growing_keeps_the_vms_and_their_addresses(made: Compute) -> None:
    made.group(size=2)
    before = {vm["name"]: vm["networkInterfaces"][0]["networkIP"] for vm in made.vms()}
    made.post(f"{GROUPS}/grp/resize", size="4")
    after = {vm["name"]: vm["networkInterfaces"][0]["networkIP"] for vm in made.vms()}
    assert after.items() > before.items()
    assert sorted(after.values()) == ["10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5"]
    assert made.get_group()["targetSize"] == 4


def test_a_version_is_as_large_as_its_group(made: Compute) -> None:
    made.group(size=1)
    made.post(f"{GROUPS}/grp/resize", size="2")
    assert made.get_group()["versions"][0]["targetSize"] == {"calculated": 2}


def test_shrinking_deletes_vms_and_their_disks(made: Compute) -> None:
    made.group(size=3)
    made.rate = 1
    made.post(f"{GROUPS}/grp/resize", size="1")
    assert made.get_group()["currentActions"]["deleting"] == 2
    assert [vm["status"] for vm in made.vms()].count("STOPPING") == 2
    made.now += 30
    assert len(made.vms()) == 1
    assert len(made.get(f"{ZONE}/disks")["items"]) == 1
    assert made.get_group()["status"]["isStable"] is True


def test_a_deleted_group_is_gone_when_its_vms_are(made: Compute) -> None:
    made.group(size=2)
    made.rate = 1
    operation = made.delete(f"{GROUPS}/grp")
    assert made.get_group()["currentActions"]["deleting"] == 2
    made.now += 29
    assert made.get(f"{ZONE}/operations/{operation['name']}")["status"] == "RUNNING"
    made.now += 1
    assert made.get(f"{ZONE}/operations/{operation['name']}")["status"] == "DONE"
    assert made.refusal("GET", f"{GROUPS}/grp")["code"] == 404
    assert not made.vms()
    assert made.delete(f"{TEMPLATES}/tpl")["status"] == "RUNNING"


@pytest.mark.parametrize("size", [-1, 1001])
def test_a_size_out_of_range_is_refused(made: Compute, size: int) -> None:
    body: dict[str, Any] = {"name": "grp", "targetSize": size}
    body["instanceTemplate"] = f"{TEMPLATES}/tpl"
    assert "targetSize" in made.refusal("POST", GROUPS, body)["message"]


def test_the_target_size_must_be_given(made: Compute) -> None:
    body = {"name": "grp", "instanceTemplate": f"{TEMPLATES}/tpl"}
    error = made.refusal("POST", GROUPS, body)
    assert error["message"] == "Required field 'resource.targetSize' not specified"


def test_the_template_must_exist(made: Compute) -> None:
    body = {"name": "grp", "targetSize": 1, "versions": [{"instanceTemplate": f"{TEMPLATES}/none"}]}
    error = made.refusal("POST", GROUPS, body)
    assert error["message"] == f"The resource '{TEMPLATES}/none' was not found"


def test_a_template_may_be_named_by_its_id(made: Compute) -> None:
    number = made.get(f"{TEMPLATES}/tpl")["id"]
    versions = [{"instanceTemplate": f"{TEMPLATES}/{number}"}]
    made.group(versions=versions)
    assert made.get_group()["instanceTemplate"] == f"{ROOT}{TEMPLATES}/tpl"


def test_the_zone_must_have_the_machine(wired: Compute) -> None:
    wired.template(
        "gpu", machineType="a2-highgpu-1g", scheduling={"onHostMaintenance": "TERMINATE"}
    )
    zone = f"{PROJECT}/zones/africa-south1-a"
    body = {"name": "grp", "targetSize": 1, "versions": [{"instanceTemplate": f"{TEMPLATES}/gpu"}]}
    error = wired.refusal("POST", f"{zone}/instanceGroupManagers", body)
    assert error["message"] == f"The resource '{zone}/machineTypes/a2-highgpu-1g' was not found"


def test_the_subnetwork_must_be_in_the_region_of_the_zone(made: Compute) -> None:
    body = {"name": "grp", "targetSize": 1, "versions": [{"instanceTemplate": f"{TEMPLATES}/tpl"}]}
    error = made.refusal("POST", f"{PROJECT}/zones/us-east4-a/instanceGroupManagers", body)
    assert "region us-central1" in error["message"]


def test_an_unknown_zone_is_refused(made: Compute) -> None:
    error = made.refusal("GET", f"{PROJECT}/zones/us-central1-q/instanceGroupManagers")
    assert error["message"] == "Invalid value for field 'zone': 'us-central1-q'. Unknown zone."


def test_what_is_empty_does_not_come_back(made: Compute) -> None:
    made.group(resourcePolicies={"workloadPolicy": None}, statefulPolicy={"preservedState": {}})
    assert made.get_group().keys().isdisjoint({"resourcePolicies", "statefulPolicy"})


def test_a_stale_fingerprint_is_refused(made: Compute) -> None:
    made.group()
    fresh = made.get_group()["fingerprint"]
    change = {"fingerprint": fresh, "description": "new"}
    made.patch(f"{GROUPS}/grp", change)
    error = made.refusal("PATCH", f"{GROUPS}/grp", change)
    assert (error["code"], error["errors"][0]["reason"]) == (412, "conditionNotMet")


def test_a_new_template_replaces_no_vm_by_itself(made: Compute) -> None:
    made.template("new")
    made.group(size=1)
    made.patch(f"{GROUPS}/grp", {"versions": [{"instanceTemplate": f"{TEMPLATES}/new"}]})
    (managed,) = made.post(f"{GROUPS}/grp/listManagedInstances")["managedInstances"]
    assert managed["version"]["instanceTemplate"].endswith("/tpl")
    assert made.get_group()["status"]["versionTarget"]["isReached"] is False
    proactive = {"updatePolicy": {"type": "PROACTIVE"}}
    assert made.refusal("PATCH", f"{GROUPS}/grp", proactive)["code"] == 501


def test_managed_vms_tell_what_happens_to_them(made: Compute) -> None:
    made.rate = 1
    made.group(size=1)
    (managed,) = made.post(f"{GROUPS}/grp/listManagedInstances")["managedInstances"]
    assert managed["currentAction"] == "CREATING"
    assert managed["instanceStatus"] == "PROVISIONING"
    assert managed["instance"] == made.vms()[0]["selfLink"]
    made.now += 30
    (managed,) = made.post(f"{GROUPS}/grp/listManagedInstances")["managedInstances"]
    assert (managed["currentAction"], managed["instanceStatus"]) == ("NONE", "RUNNING")


def test_deleting_vms_of_a_group_lowers_its_size(made: Compute) -> None:
    made.group(size=3)
    doomed = made.vms()[0]["selfLink"]
    made.post(f"{GROUPS}/grp/deleteInstances", {"instances": [doomed]})
    assert made.get_group()["targetSize"] == 2
    assert doomed not in [vm["selfLink"] for vm in made.vms()]
    body = {"instances": [doomed]}
    assert made.refusal("POST", f"{GROUPS}/grp/deleteInstances", body)["code"] == 400


def test_recreated_vms_keep_their_names(made: Compute) -> None:
    made.group(size=1)
    (vm,) = made.vms()
    made.rate = 1
    made.post(f"{GROUPS}/grp/recreateInstances", {"instances": [vm["selfLink"]]})
    assert made.get_group()["currentActions"]["recreating"] == 1
    assert made.vms()[0]["status"] == "STOPPING"
    made.now += 55
    assert [(it["name"], it["status"]) for it in made.vms()] == [(vm["name"], "RUNNING")]


@pytest.mark.parametrize(("action", "left"), [("REPAIR", 1), ("DO_NOTHING", 0)])
def test_a_group_repairs_a_deleted_vm_unless_told_otherwise(
    made: Compute, action: str, left: int
) -> None:
    made.group(size=1, instanceLifecyclePolicy={"defaultActionOnFailure": action})
    (vm,) = made.vms()
    made.delete(f"{ZONE}/instances/{vm['name']}")
    assert len(made.vms()) == left
    assert made.get_group()["status"]["isStable"] is True


def test_a_full_subnetwork_leaves_the_group_wanting(api: Compute) -> None:
    api.network()
    api.subnetwork(ipCidrRange="10.0.0.0/29")
    api.template()
    api.group(size=6)
    group = api.get_group()
    assert len(api.vms()) == 4
    assert (group["currentActions"]["creating"], group["status"]["isStable"]) == (2, False)
    (error,) = api.get(f"{GROUPS}/grp/listErrors")["items"]
    assert error["error"]["code"] == "IP_SPACE_EXHAUSTED"


def test_a_group_without_trouble_has_no_errors(made: Compute) -> None:
    made.group()
    assert "items" not in made.get(f"{GROUPS}/grp/listErrors")


def test_vms_are_listed_by_filter_and_in_pages(made: Compute) -> None:
    made.group("one", size=2)
    made.group("two", size=3)
    assert len(made.vms(filter="name eq two-vm-.*")) == 3
    first = made.get(f"{ZONE}/instances", maxResults="4")
    assert len(first["items"]) == 4
    rest = made.get(f"{ZONE}/instances", maxResults="4", pageToken=first["nextPageToken"])
    assert len(rest["items"]) == 1
    assert "nextPageToken" not in rest
    everywhere = made.get(f"{PROJECT}/aggregated/instances")["items"]
    assert len(everywhere["zones/us-central1-a"]["instances"]) == 5


def test_a_disk_in_use_can_not_be_deleted(made: Compute) -> None:
    made.group(size=1)
    name = made.vms()[0]["name"]
    assert "already being used" in made.refusal("DELETE", f"{ZONE}/disks/{name}")["message"]


def test_a_disk_that_outlives_its_vm_can_be_deleted(wired: Compute) -> None:
    disks = template_properties()["disks"]
    disks[0]["autoDelete"] = False
    wired.template(disks=disks)
    wired.group(size=1)
    name = wired.vms()[0]["name"]
    wired.delete(f"{GROUPS}/grp")
    assert "users" not in {k for k, v in wired.get(f"{ZONE}/disks/{name}").items() if v}
    wired.delete(f"{ZONE}/disks/{name}")
    assert wired.refusal("GET", f"{ZONE}/disks/{name}")["code"] == 404


def test_a_large_group_is_made_within_a_request(made: Compute) -> None:
    made.group(size=1000)
    assert made.get_group()["currentActions"]["none"] == 1000
    addresses = [vm["networkInterfaces"][0]["networkIP"] for vm in made.vms()]
    assert len(set(addresses)) == 500  # of the first page


def test_a_group_gets_no_template_in_another_network(made: Compute) -> None:
    made.group(size=1)
    made.network("other")
    made.subnetwork("other-sub", network="other", ipCidrRange="10.1.0.0/16")
    there = {"subnetwork": f"{PROJECT}/regions/us-central1/subnetworks/other-sub"}
    made.template("same", labels={"team": "ml"})
    made.template("moved", networkInterfaces=[there])

    made.patch(f"{GROUPS}/grp", {"versions": [{"instanceTemplate": f"{TEMPLATES}/same"}]})
    body = {"versions": [{"instanceTemplate": f"{TEMPLATES}/moved"}]}
    refused = made.refusal("PATCH", f"{GROUPS}/grp", body)
    assert "must use the network of the original template, net, not other" in refused["message"]
    assert made.get_group()["instanceTemplate"].endswith("/same")
