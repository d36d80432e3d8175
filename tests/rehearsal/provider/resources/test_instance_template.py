from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.provider.failures import ProviderError
from rehearsal.provider.resource import UNKNOWN, PartialError
from rehearsal.provider.resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from rehearsal.provider.api import Api
    from tests.rehearsal.provider.resources.conftest import Google

pytestmark = pytest.mark.loopback

TEMPLATE = RESOURCES["google_compute_instance_template"]
TEMPLATES = "/compute/v1/projects/p/global/instanceTemplates"
IMAGE = "https://www.googleapis.com/compute/v1/projects/cos-cloud/global/images/cos-1"
DONE = {"name": "o", "status": "DONE", "targetId": "77"}

DISK = {"source_image": IMAGE, "auto_delete": True, "boot": UNKNOWN, "disk_type": UNKNOWN}
NIC = {"network": "default", "subnetwork": UNKNOWN, "access_config": [], "alias_ip_range": []}
NIC |= {"ipv6_access_config": [], "subnetwork_project": UNKNOWN}
PLAN: dict[str, Any] = {
    "name": "t",
    "machine_type": "a3-highgpu-8g",
    "disk": [DISK],
    "network_interface": [NIC],
    "scheduling": UNKNOWN,
    "effective_labels": {"goog-terraform-provisioned": "true"},
}


def properties(google: Google, api: Api, **more: Any) -> Any:
    """What a create sends as the template's properties."""
    google.on("POST .*", DONE).on("GET .*", {"name": "t", "id": "77", "properties": {}})
    TEMPLATE.create(api, {**PLAN, **more})
    return google.body(f"POST {TEMPLATES}")["properties"]


def test_the_smallest_template_is_sent_as_recorded(google: Google, api: Api) -> None:
    assert properties(google, api) == {
        "disks": [
            {
                "autoDelete": True,
                "boot": True,
                "initializeParams": {"diskType": "pd-standard", "sourceImage": IMAGE},
            }
        ],
        "labels": {"goog-terraform-provisioned": "true"},
        "machineType": "a3-highgpu-8g",
        "metadata": {},
        "networkInterfaces": [{"network": "projects/p/global/networks/default"}],
        "scheduling": {"onHostMaintenance": "MIGRATE"},
        "tags": {},
    }


def test_scheduling_is_sent_with_its_odd_values(google: Google, api: Api) -> None:
    block = {
        "provisioning_model": "FLEX_START",
        "on_host_maintenance": "TERMINATE",
        "automatic_restart": False,
        "instance_termination_action": "DELETE",
        "max_run_duration": [{"seconds": 86400, "nanos": None}],
        "node_affinities": [],
    }
    assert properties(google, api, scheduling=[block])["scheduling"] == {
        "automaticRestart": False,
        "hostErrorTimeoutSeconds": None,
        "instanceTerminationAction": "DELETE",
        "maxRunDuration": {"seconds": "86400"},
        "nodeAffinities": [None],
        "onHostMaintenance": "TERMINATE",
        "preemptible": False,
        "provisioningModel": "FLEX_START",
    }


def test_a_preemptible_vm_is_terminated_for_maintenance(google: Google, api: Api) -> None:
    sent = properties(google, api, scheduling=[{"preemptible": True, "node_affinities": []}])
    assert sent["scheduling"]["onHostMaintenance"] == "TERMINATE"


def test_local_ssds_are_disks_of_their_own(google: Google, api: Api) -> None:
    scratch: dict[str, Any] = {"type": "SCRATCH", "disk_type": "local-ssd", "interface": "NVME"}
    scratch |= {"disk_size_gb": 375, "auto_delete": True}
    assert properties(google, api, disk=[DISK, scratch])["disks"][1] == {
        "autoDelete": True,
        "diskSizeGb": "375",
        "initializeParams": {"diskSizeGb": "375", "diskType": "local-ssd"},
        "interface": "NVME",
        "type": "SCRATCH",
    }


def test_accelerators_accounts_and_affinities_are_sent_in_googles_words(
    google: Google, api: Api
) -> None:
    specific = {"key": "compute.googleapis.com/reservation-name", "values": ["r"]}
    sent = properties(
        google,
        api,
        guest_accelerator=[{"type": "nvidia-h100-80gb", "count": 8}],
        service_account=[{"email": UNKNOWN, "scopes": ["cloud-platform"]}],
        reservation_affinity=[{"type": "SPECIFIC_RESERVATION", "specific_reservation": [specific]}],
        resource_policies=["projects/p/regions/r/resourcePolicies/compact"],
        tags=["ssh"],
        metadata={"b": "2", "a": "1"},
        metadata_startup_script="#!/bin/sh",
    )
    assert sent["guestAccelerators"] == [
        {"acceleratorCount": 8, "acceleratorType": "nvidia-h100-80gb"}
    ]
    assert sent["serviceAccounts"] == [
        {"email": "default", "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}
    ]
    assert sent["reservationAffinity"] == {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        **specific,
    }
    assert sent["resourcePolicies"] == ["compact"]
    assert sent["tags"] == {"items": ["ssh"]}
    assert sent["metadata"]["items"] == [
        {"key": "a", "value": "1"},
        {"key": "b", "value": "2"},
        {"key": "startup-script", "value": "#!/bin/sh"},
    ]


def test_a_subnetwork_of_another_project_keeps_it(google: Google, api: Api) -> None:
    nic = {**NIC, "network": None, "subnetwork": "s", "subnetwork_project": "host"}
    nic["nic_type"] = "GVNIC"
    nic["access_config"] = [{"nat_ip": UNKNOWN, "network_tier": UNKNOWN}]
    assert properties(google, api, network_interface=[nic])["networkInterfaces"] == [
        {
            "accessConfigs": [{"type": "ONE_TO_ONE_NAT"}],
            "nicType": "GVNIC",
            "subnetwork": "projects/host/regions/us-central1/subnetworks/s",
        }
    ]


def test_a_short_image_name_is_looked_up(google: Google, api: Api) -> None:
    google.on("GET .*/images/family/cos-stable", {"name": "cos-1"})
    google.on("GET .*/images/.*", (404, None))
    disk = {**DISK, "source_image": "cos-cloud/cos-stable"}
    sent = properties(google, api, disk=[disk])
    assert google.lines[:2] == [
        "GET /compute/v1/projects/cos-cloud/global/images/cos-stable",
        "GET /compute/v1/projects/cos-cloud/global/images/family/cos-stable",
    ]
    source = sent["disks"][0]["initializeParams"]["sourceImage"]
    assert source == "projects/cos-cloud/global/images/family/cos-stable"


@pytest.mark.parametrize(
    ("image", "sent_as"),
    [
        ("projects/cos-cloud/global/images/cos-1", "projects/cos-cloud/global/images/cos-1"),
        ("projects/c/global/images/family/f", "projects/c/global/images/family/f"),
        ("global/images/family/f", "global/images/family/f"),
        ("http://127.0.0.1/compute/v1/projects/c/global/images/i", "projects/c/global/images/i"),
        (IMAGE, IMAGE),
    ],
)
def test_a_path_of_an_image_is_taken_at_its_word(
    google: Google, api: Api, image: str, sent_as: str
) -> None:
    sent = properties(google, api, disk=[{**DISK, "source_image": image}])
    assert sent["disks"][0]["initializeParams"]["sourceImage"] == sent_as
    assert google.lines[0].startswith("POST ")


def test_an_image_that_nobody_knows_is_an_error(google: Google, api: Api) -> None:
    with pytest.raises(ProviderError, match="Error resolving image name 'nix': Could not find"):
        TEMPLATE.create(api, {**PLAN, "disk": [{**DISK, "source_image": "nix"}]})
    assert google.lines == [
        "GET /compute/v1/projects/p/global/images/nix",
        "GET /compute/v1/projects/p/global/images/family/nix",
    ]


def test_a_template_is_read_by_its_number_and_deleted_by_its_name(google: Google, api: Api) -> None:
    link = f"https://www.googleapis.com{TEMPLATES}/t"
    google.on("(POST|DELETE) .*", DONE)
    google.on("GET .*", {"name": "t", "id": "77", "selfLink": link, "properties": {}})
    state = TEMPLATE.create(api, PLAN)
    assert state["self_link_unique"] == f"{link}?uniqueId=77"
    TEMPLATE.delete(api, state)
    assert google.lines == [f"POST {TEMPLATES}", f"GET {TEMPLATES}/77", f"DELETE {TEMPLATES}/t"]


def test_a_template_without_a_name_gets_one_with_the_prefix(google: Google, api: Api) -> None:
    google.on("POST .*", DONE).on("GET .*", {"name": "t", "id": "77", "properties": {}})
    TEMPLATE.create(api, {**PLAN, "name": UNKNOWN, "name_prefix": "a2-"})
    TEMPLATE.create(api, {**PLAN, "name": UNKNOWN, "name_prefix": "x" * 54})
    short, long = (asked.body["name"] for asked in google.asked if asked.method == "POST")
    assert re.fullmatch(r"a2-\d{18}[0-9a-f]{8}", short)
    assert re.fullmatch(r"x{54}[0-9a-f]{9}", long)


def test_an_interrupted_create_leaves_the_template_tainted_in_the_state(
    google: Google, api: Api
) -> None:
    google.on(".*", {"name": "o", "status": "RUNNING", "targetId": "77"})
    api.cancel.set()
    with pytest.raises(PartialError) as caught:
        TEMPLATE.create(api, PLAN)
    assert caught.value.state["id"] == "projects/p/global/instanceTemplates/t"
    assert UNKNOWN not in caught.value.state.values()


def test_a_read_turns_googles_words_back(google: Google, api: Api) -> None:
    subnetwork = "https://www.googleapis.com/compute/v1/projects/p/regions/r/subnetworks/s"
    answer = {
        "disks": [{"boot": True, "initializeParams": {"sourceImage": IMAGE, "diskSizeGb": "200"}}],
        "networkInterfaces": [{"subnetwork": subnetwork, "name": "nic0"}],
        "metadata": {"items": [{"key": "k", "value": "v"}], "fingerprint": "m"},
        "tags": {"items": ["ssh"], "fingerprint": "f"},
        "scheduling": {"automaticRestart": True, "maxRunDuration": {"seconds": "60"}},
        "labels": {"team": "ml", "theirs": "x"},
    }
    google.on("GET .*", {"name": "t", "id": "77", "properties": answer})
    known = {"id": "x/t", "labels": {"team": "ml"}, "disk": [DISK]}
    found = TEMPLATE.read(api, known)
    assert found is not None
    disk, nic, schedule = (found[it][0] for it in ("disk", "network_interface", "scheduling"))
    assert disk["source_image"] == "projects/cos-cloud/global/images/cos-1"
    assert disk["disk_size_gb"] == 200
    assert (nic["subnetwork_project"], found["region"]) == ("p", "r")
    assert schedule["max_run_duration"] == [{"seconds": 60, "nanos": 0}]
    assert (found["metadata"], found["metadata_fingerprint"]) == ({"k": "v"}, "m")
    assert (found["tags"], found["tags_fingerprint"]) == (["ssh"], "f")
    assert (found["labels"], found["effective_labels"]["theirs"]) == ({"team": "ml"}, "x")


def test_a_plan_that_names_the_same_image_otherwise_changes_nothing(
    google: Google, api: Api
) -> None:
    there = "projects/cos-cloud/global/images/family/cos-stable"
    google.on("GET .*/images/family/cos-stable", {"name": "cos-1"})
    prior = {"disk": [{"source_image": there}]}
    plan = {"disk": [{"source_image": "cos-cloud/cos-stable"}], "project": "p"}
    assert TEMPLATE.customize(api, prior, plan)["disk"][0]["source_image"] == there


def test_a_plan_that_names_another_image_does(api: Api) -> None:
    prior = {"disk": [{"source_image": "projects/cos-cloud/global/images/cos-0"}]}
    plan = {"disk": [{"source_image": IMAGE}], "project": "p"}
    assert TEMPLATE.customize(api, prior, plan)["disk"][0]["source_image"] == IMAGE


def test_short_scopes_are_planned_in_full(connect: Callable[..., Api]) -> None:
    plan = {"service_account": [{"email": "e", "scopes": ["cloud-platform"]}], "project": "p"}
    planned = TEMPLATE.customize(connect(), None, plan)
    assert planned["service_account"][0]["scopes"] == [
        "https://www.googleapis.com/auth/cloud-platform"
    ]
