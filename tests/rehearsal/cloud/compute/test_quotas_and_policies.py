"""What Google refuses although it has it: quotas of a project, and policies of its organization."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rehearsal.cloud.compute.conftest import (
    IMAGE,
    PROJECT,
    REGION,
    ZONE,
    Compute,
)

Json = dict[str, Any]
FAMILY = "projects/cos-cloud/global/images/family/cos-stable"
A100 = {"machineType": "a2-highgpu-1g", "scheduling": {"onHostMaintenance": "TERMINATE"}}


def _quotas(api: Compute, path: str) -> dict[str, tuple[float, float]]:
    """The limits and usages that a project or region shows, by metric."""
    return {it["metric"]: (it["limit"], it["usage"]) for it in api.get(path)["quotas"]}


def _errors(api: Compute, group: str = "grp") -> list[Json]:
    """The errors of the VMs of a group that did not come."""
    path = f"{ZONE}/instanceGroupManagers/{group}/listManagedInstances"
    found = api.post(path).get("managedInstances", [])
    return [
        error
        for one in found
        for error in one.get("lastAttempt", {}).get("errors", {}).get("errors", [])
    ]


def test_a_new_project_may_have_five_networks_and_the_default_is_one(api: Compute) -> None:
    api.scenarios = frozenset({"small-quotas"})
    for number in range(4):
        api.network(f"net-{number}")

    body = {"name": "one-more", "autoCreateSubnetworks": False}
    error = api.refusal("POST", f"{PROJECT}/global/networks", body)

    assert error["code"] == 403
    assert error["errors"][0]["reason"] == "quotaExceeded"
    assert error["message"] == "Quota 'NETWORKS' exceeded.  Limit: 5.0 globally."
    assert _quotas(api, PROJECT)["NETWORKS"] == (5.0, 5.0)
    api.delete(f"{PROJECT}/global/networks/net-0")
    api.network("one-more")


def test_subnetworks_routers_and_firewall_rules_are_counted_too(wired: Compute) -> None:
    shown = _quotas(wired, PROJECT)
    # Those that a network of auto mode brings do not count, its four firewall rules do.
    assert {name: shown[name][1] for name in ("NETWORKS", "SUBNETWORKS", "FIREWALLS")} == {
        "NETWORKS": 2.0,
        "SUBNETWORKS": 1.0,
        "FIREWALLS": 4.0,
    }
    wired.scenarios = frozenset({"small-quotas"})
    network = f"{PROJECT}/global/networks/net"
    for number in range(10):
        wired.post(f"{REGION}/routers", {"name": f"r{number}", "network": network})
    error = wired.refusal("POST", f"{REGION}/routers", {"name": "r10", "network": network})
    assert error["message"] == "Quota 'ROUTERS' exceeded.  Limit: 10.0 globally."


def _disk(kind: str, size: int) -> Json:
    parameters = {"sourceImage": IMAGE, "diskType": kind, "diskSizeGb": str(size)}
    return {"boot": True, "autoDelete": True, "initializeParams": parameters}


@pytest.mark.parametrize(
    ("properties", "size", "metric", "limit"),
    [
        ({"disks": [_disk("pd-ssd", 200)]}, 3, "SSD_TOTAL_GB", 500.0),
        ({"disks": [_disk("pd-standard", 4097)]}, 1, "DISKS_TOTAL_GB", 4096.0),
        (
            {
                "networkInterfaces": [
                    {"subnetwork": f"{REGION}/subnetworks/sub", "accessConfigs": [{}]}
                ]
            },
            9,
            "IN_USE_ADDRESSES",
            8.0,
        ),
        (
            {**A100, "machineType": "a2-ultragpu-8g", "disks": [_disk("pd-ssd", 20)]},
            3,
            "LOCAL_SSD_TOTAL_GB",
            6000.0,
        ),
        (
            {
                "machineType": "a2-ultragpu-8g",
                "disks": [_disk("pd-ssd", 20)],
                "scheduling": {
                    "onHostMaintenance": "TERMINATE",
                    "automaticRestart": False,
                    "preemptible": True,
                    "provisioningModel": "SPOT",
                },
            },
            3,
            "PREEMPTIBLE_LOCAL_SSD_GB",
            6000.0,
        ),
    ],
)
def test_vms_beyond_a_quota_do_not_come_and_their_group_says_why(
    wired: Compute, properties: Json, size: int, metric: str, limit: float
) -> None:
    wired.scenarios = frozenset({"small-quotas"})
    wired.template(**properties)
    wired.group(size=size)

    (error, *others) = _errors(wired)

    assert error["code"] == "QUOTA_EXCEEDED"
    assert error["message"] == (
        f"Quota '{metric}' exceeded.  Limit: {limit} in region us-central1."
    )
    assert all(other["message"] == error["message"] for other in others)
    assert wired.vms() == []
    wired.scenarios = frozenset()
    wired.get_group()
    assert len(wired.vms()) == size
    assert _quotas(wired, REGION)[metric][1] > limit


def _run(seconds: int, action: str) -> Json:
    limit = {"maxRunDuration": {"seconds": str(seconds)}, "instanceTerminationAction": action}
    return {**A100, "scheduling": {**A100["scheduling"], **limit}}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("properties", "comes"),
    [
        pytest.param(_run(604_800, "DELETE"), True, id="seven-days"),
        pytest.param(_run(604_801, "DELETE"), False, id="longer"),
        pytest.param(_run(604_800, "STOP"), False, id="only-stopped"),
        pytest.param(A100, False, id="for-ever"),
    ],
)
def test_a_vm_that_is_deleted_within_seven_days_may_use_preemptible_quota(
    wired: Compute, properties: Json, *, comes: bool
) -> None:
    wired.scenarios = frozenset({"no-on-demand-quota"})
    wired.template(**properties)
    wired.group(size=1)

    assert bool(wired.vms()) is comes
    told = [error["message"] for error in _errors(wired)]
    refused = ["Quota 'NVIDIA_A100_GPUS' exceeded.  Limit: 0.0 in region us-central1."]
    assert told == ([] if comes else refused)
    shown = _quotas(wired, REGION)
    assert shown["NVIDIA_A100_GPUS"] == (0.0, 0.0)
    assert shown["PREEMPTIBLE_NVIDIA_A100_GPUS"][1] == float(comes)


_EXTERNAL = {
    "networkInterfaces": [{"subnetwork": f"{REGION}/subnetworks/sub", "accessConfigs": [{}]}]
}
_SECURE = {"shieldedInstanceConfig": {"enableSecureBoot": True}}
_TRUSTED = {
    "disks": [{"boot": True, "autoDelete": True, "initializeParams": {"sourceImage": FAMILY}}]
}
_FOREIGN = {
    "disks": [
        {
            "boot": True,
            "autoDelete": True,
            "initializeParams": {
                "sourceImage": "projects/ubuntu-os-cloud/global/images/family/ubuntu-2204-lts"
            },
        }
    ]
}


@pytest.mark.parametrize(
    ("scenario", "refused", "allowed", "words"),
    [
        (
            "policy-external-ip",
            _EXTERNAL,
            {},
            "Constraint constraints/compute.vmExternalIpAccess violated for project 123456789012.",
        ),
        (
            "policy-shielded-vm",
            {},
            _SECURE,
            "Constraint constraints/compute.requireShieldedVm violated for project projects/",
        ),
        (
            "policy-images",
            _FOREIGN,
            _TRUSTED,
            "Constraint constraints/compute.trustedImageProjects violated for project proj-a1. Use",
        ),
    ],
)
def test_a_vm_that_a_policy_forbids_does_not_come(
    wired: Compute, scenario: str, refused: Json, allowed: Json, words: str
) -> None:
    wired.scenarios = frozenset({scenario})
    wired.template("bad", **refused)
    wired.group("bad", size=1, template="bad")
    wired.template("good", **allowed)
    wired.group("good", size=1, template="good")

    (error,) = _errors(wired, "bad")
    assert error["code"] == "CONDITION_NOT_MET"
    assert error["message"].startswith(words)
    assert _errors(wired, "good") == []


def test_guest_attributes_are_not_answered_under_their_policy(wired: Compute) -> None:
    wired.template()
    wired.group(size=1)
    wired.scenarios = frozenset({"policy-guest-attributes"})
    name = wired.vms()[0]["name"]

    error = wired.refusal("GET", f"{ZONE}/instances/{name}/getGuestAttributes")

    assert error["code"] == 412
    assert error["message"] == (
        "Constraint constraints/compute.disableGuestAttributesAccess violated for project"
        " 123456789012."
    )


def test_nothing_is_made_where_a_policy_allows_another_place(api: Compute) -> None:
    api.scenarios = frozenset({"policy-locations"})
    api.network()  # is global, and in no place
    body = {
        "name": "sub",
        "network": f"{PROJECT}/global/networks/net",
        "ipCidrRange": "10.0.0.0/16",
    }

    error = api.refusal("POST", f"{REGION}/subnetworks", body)

    assert error["code"] == 412
    assert error["message"] == (
        "Location REGION:us-central1 violates constraint constraints/gcp.resourceLocations on the"
        " resource projects/proj-a1/regions/us-central1/subnetworks/sub."
    )
    api.post(f"{PROJECT}/regions/europe-west4/subnetworks", body)
    body = {**body, "ipCidrRange": "10.1.0.0/16"}
    api.refusal("POST", f"{PROJECT}/regions/europe-west2/subnetworks", body)


def test_a_name_that_is_taken_is_refused_as_such_where_the_quota_is_full(api: Compute) -> None:
    api.scenarios = frozenset({"small-quotas"})
    for number in range(4):
        api.network(f"net-{number}")
    body = {"name": "net-0", "autoCreateSubnetworks": False}
    assert api.refusal("POST", f"{PROJECT}/global/networks", body)["code"] == 409
