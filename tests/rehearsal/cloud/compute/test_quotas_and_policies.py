"""What Google refuses although it has it: quotas of a project, and policies of its organization."""

import json

import pytest

from tests.rehearsal.cloud.compute.conftest import (
    IMAGE,
    NETWORKS,
    PROJECT,
    REGION,
    SPOT,
    STANDARD,
    SUBNETWORKS,
    ZONE,
    Compute,
    Json,
    boot,
)

A100: Json = {"machineType": "a2-highgpu-1g", "scheduling": STANDARD}
EXTERNAL = {"networkInterfaces": [{"subnetwork": f"{SUBNETWORKS}/sub", "accessConfigs": [{}]}]}


def _quotas(api: Compute, path: str) -> dict[str, tuple[float, float]]:
    """The limits and usages that a project or region shows, by metric."""
    return {it["metric"]: (it["limit"], it["usage"]) for it in api.get(path)["quotas"]}


def test_a_new_project_may_have_five_networks_and_the_default_is_one(api: Compute) -> None:
    api.scenarios = frozenset({"small-quotas"})
    for number in range(4):
        api.network(f"net-{number}")

    error = api.refusal("POST", NETWORKS, {"name": "one-more", "autoCreateSubnetworks": False})
    assert (error["code"], error["errors"][0]["reason"]) == (403, "quotaExceeded")
    assert error["message"] == "Quota 'NETWORKS' exceeded.  Limit: 5.0 globally."
    assert _quotas(api, PROJECT)["NETWORKS"] == (5.0, 5.0)
    taken = {"name": "net-0", "autoCreateSubnetworks": False}
    assert api.refusal("POST", NETWORKS, taken)["code"] == 409  # as such, not for the quota
    api.delete(f"{NETWORKS}/net-0")
    api.network("one-more")


def test_subnetworks_routers_and_firewall_rules_are_counted_too(wired: Compute) -> None:
    shown = _quotas(wired, PROJECT)
    # Those that a network of auto mode brings do not count, its four firewall rules do.
    counted = [shown[name][1] for name in ("NETWORKS", "SUBNETWORKS", "FIREWALLS")]
    assert counted == [2.0, 1.0, 4.0]
    wired.scenarios = frozenset({"small-quotas"})
    network = f"{NETWORKS}/net"
    for number in range(10):
        wired.post(f"{REGION}/routers", {"name": f"r{number}", "network": network})
    error = wired.refused("POST", f"{REGION}/routers", {"name": "r10", "network": network})
    assert error == "403 Quota 'ROUTERS' exceeded.  Limit: 10.0 globally."


def _disk(kind: str, size: int) -> Json:
    return {"disks": boot(IMAGE, diskType=kind, diskSizeGb=str(size))}


ULTRA: Json = {"machineType": "a2-ultragpu-8g", **_disk("pd-ssd", 20)}


@pytest.mark.parametrize(
    ("properties", "size", "metric", "limit"),
    [
        (_disk("pd-ssd", 200), 3, "SSD_TOTAL_GB", 500.0),
        (_disk("pd-standard", 4097), 1, "DISKS_TOTAL_GB", 4096.0),
        (EXTERNAL, 9, "IN_USE_ADDRESSES", 8.0),
        (ULTRA | {"scheduling": STANDARD}, 3, "LOCAL_SSD_TOTAL_GB", 6000.0),
        (ULTRA | {"scheduling": SPOT}, 3, "PREEMPTIBLE_LOCAL_SSD_GB", 6000.0),
    ],
)
def test_vms_beyond_a_quota_do_not_come_and_their_group_says_why(
    wired: Compute, properties: Json, size: int, metric: str, limit: float
) -> None:
    wired.scenarios = frozenset({"small-quotas"})
    wired.template(**properties)
    wired.group(size=size)

    words = f"Quota '{metric}' exceeded.  Limit: {limit} in region us-central1."
    assert {(it["code"], it["message"]) for it in wired.errors()} == {("QUOTA_EXCEEDED", words)}
    assert wired.vms() == []
    wired.scenarios = frozenset()
    wired.get_group()
    assert len(wired.vms()) == size
    assert _quotas(wired, REGION)[metric][1] > limit


def test_vcpus_of_a_newer_family_count_against_its_own_quota_in_googles_words(
    wired: Compute,
) -> None:
    wired.scenarios = frozenset({"small-quotas"})
    wired.template(machineType="c4-standard-8", scheduling=STANDARD)
    wired.group(size=4)

    (error,) = {json.dumps(it) for it in wired.errors()}
    told = json.loads(error)
    assert told["message"].startswith("Quota 'CPUS_PER_VM_FAMILY' exceeded.  Limit: 24.0 in region")
    info = told["errorDetails"][0]["quotaInfo"]
    assert info["limitName"] == "CPUS-PER-VM-FAMILY-per-project-region"
    assert info["dimensions"] == {"region": "us-central1", "vm_family": "C4"}


@pytest.mark.parametrize(
    ("seconds", "action", "comes"),
    [
        ("604800", "DELETE", True),
        ("604801", "DELETE", False),
        ("604800", "STOP", False),
        ("", "", False),
    ],
    ids=["seven-days", "longer", "only-stopped", "for-ever"],
)
def test_a_vm_that_is_deleted_within_seven_days_may_use_preemptible_quota(
    wired: Compute, seconds: str, action: str, *, comes: bool
) -> None:
    wired.scenarios = frozenset({"no-on-demand-quota"})
    limit = {"maxRunDuration": {"seconds": seconds}, "instanceTerminationAction": action}
    wired.of_one(**A100 | ({"scheduling": {**STANDARD, **limit}} if seconds else {}))

    assert bool(wired.vms()) is comes
    refused = ["Quota 'NVIDIA_A100_GPUS' exceeded.  Limit: 0.0 in region us-central1."]
    assert [it["message"] for it in wired.errors()] == ([] if comes else refused)
    shown = _quotas(wired, REGION)
    assert shown["NVIDIA_A100_GPUS"] == (0.0, 0.0)
    assert shown["PREEMPTIBLE_NVIDIA_A100_GPUS"][1] == float(comes)


FORBIDDEN: dict[str, tuple[Json, Json, str]] = {
    "policy-external-ip": (
        EXTERNAL,
        {},
        "compute.vmExternalIpAccess violated for project 123456789012.",
    ),
    "policy-shielded-vm": (
        {},
        {"shieldedInstanceConfig": {"enableSecureBoot": True}},
        "compute.requireShieldedVm violated for project projects/",
    ),
    "policy-images": (
        {"disks": boot("projects/ubuntu-os-cloud/global/images/family/ubuntu-2204-lts")},
        {"disks": boot("projects/cos-cloud/global/images/family/cos-stable")},
        "compute.trustedImageProjects violated for project proj-a1. Use",
    ),
}


@pytest.mark.parametrize("scenario", FORBIDDEN)
def test_a_vm_that_a_policy_forbids_does_not_come(wired: Compute, scenario: str) -> None:
    refused, allowed, words = FORBIDDEN[scenario]
    wired.scenarios = frozenset({scenario})
    wired.of_one("bad", "bad", **refused)
    wired.of_one("good", "good", **allowed)

    (error,) = wired.errors("bad")
    assert error["code"] == "CONDITION_NOT_MET"
    assert error["message"].startswith(f"Constraint constraints/{words}")
    assert wired.errors("good") == []


def test_guest_attributes_are_not_answered_under_their_policy(made: Compute) -> None:
    made.group(size=1)
    made.scenarios = frozenset({"policy-guest-attributes"})
    path = f"{ZONE}/instances/{made.vm()['name']}/getGuestAttributes"
    assert made.refused("GET", path) == (
        "412 Constraint constraints/compute.disableGuestAttributesAccess violated for project"
        " 123456789012."
    )


def test_nothing_is_made_where_a_policy_allows_another_place(api: Compute) -> None:
    api.scenarios = frozenset({"policy-locations"})
    api.network()  # is global, and in no place
    body = {"name": "sub", "network": f"{NETWORKS}/net", "ipCidrRange": "10.0.0.0/16"}
    assert api.refused("POST", SUBNETWORKS, body) == (
        "412 Location REGION:us-central1 violates constraint constraints/gcp.resourceLocations on"
        " the resource projects/proj-a1/regions/us-central1/subnetworks/sub."
    )
    api.post(f"{PROJECT}/regions/europe-west4/subnetworks", body)
    body = {**body, "ipCidrRange": "10.1.0.0/16"}
    api.refusal("POST", f"{PROJECT}/regions/europe-west2/subnetworks", body)
