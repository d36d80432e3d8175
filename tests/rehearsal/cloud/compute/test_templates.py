from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.rehearsal.cloud.compute.conftest import Compute

PROJECT = "projects/proj-a1"
TEMPLATES = f"{PROJECT}/global/instanceTemplates"
SUBNETWORK = f"{PROJECT}/regions/us-central1/subnetworks/sub"
IMAGES = "projects/debian-cloud/global/images"
TERMINATE: dict[str, Any] = {"scheduling": {"onHostMaintenance": "TERMINATE"}}


def _boot(**parameters: Any) -> list[dict[str, Any]]:
    source = {"sourceImage": f"{IMAGES}/family/debian-12"}
    return [{"boot": True, "initializeParams": {**source, **parameters}}]


def _refusal(api: Compute, **properties: Any) -> str:
    usual = {
        "machineType": "e2-standard-4",
        "disks": _boot(),
        "networkInterfaces": [{"subnetwork": SUBNETWORK}],
    }
    body = {"name": "tpl", "properties": {**usual, **properties}}
    return str(api.refusal("POST", TEMPLATES, body)["message"])


def test_a_template_is_read_by_name_and_by_numeric_id(wired: Compute) -> None:
    number = wired.template()["targetId"]
    assert wired.get(f"{TEMPLATES}/{number}") == wired.get(f"{TEMPLATES}/tpl")
    assert wired.refusal("GET", f"{TEMPLATES}/4111")["code"] == 404


def test_what_is_not_set_is_left_to_google(wired: Compute) -> None:
    scheduling = {"provisioningModel": "", "nodeAffinities": [None], "automaticRestart": True}
    wired.template(scheduling=scheduling)
    assert wired.get(f"{TEMPLATES}/tpl")["properties"]["scheduling"] == {
        "automaticRestart": True,
        "onHostMaintenance": "MIGRATE",
        "preemptible": False,
        "provisioningModel": "STANDARD",
    }


def test_gpus_do_not_migrate(wired: Compute) -> None:
    words = "Instances with guest accelerators do not support live migration."
    assert _refusal(wired, machineType="a2-highgpu-8g") == words
    assert wired.template(machineType="a2-highgpu-8g", **TERMINATE)["status"] == "DONE"


@pytest.mark.parametrize(
    ("machine", "gpu", "count", "fits"),
    [
        ("n1-standard-8", "nvidia-tesla-t4", 2, True),
        ("n1-standard-8", "nvidia-tesla-t4", 3, False),
        ("n1-standard-96", "nvidia-tesla-t4", 1, False),
        ("a2-highgpu-8g", "nvidia-tesla-a100", 8, True),
        ("a2-highgpu-8g", "nvidia-tesla-a100", 4, False),
        ("a2-highgpu-8g", "nvidia-l4", 8, False),
        ("e2-standard-4", "nvidia-tesla-t4", 1, False),
        ("a9-newgpu-8g", "nvidia-x900", 8, True),
    ],
)
def test_a_machine_takes_only_its_gpus(
    wired: Compute, machine: str, gpu: str, count: int, *, fits: bool
) -> None:
    asked = [{"acceleratorType": gpu, "acceleratorCount": count}]
    wanted: dict[str, Any] = {"machineType": machine, "guestAccelerators": asked, **TERMINATE}
    if fits:
        assert wired.template(**wanted)["status"] == "DONE"
    else:
        words = f"[{machine}, {gpu}] features are not compatible for creating instance."
        assert _refusal(wired, **wanted) == words


@pytest.mark.parametrize(
    ("machine", "disk", "words"),
    [
        ("a3-ultragpu-8g", "pd-ssd", "pd-ssd disk type cannot be used by a3-ultragpu-8g machine"),
        ("a2-highgpu-8g", "hyperdisk-balanced", "cannot be used by a2-highgpu-8g machine type."),
    ],
)
def test_the_disk_type_must_suit_the_machine(
    wired: Compute, machine: str, disk: str, words: str
) -> None:
    refused = _refusal(wired, machineType=machine, disks=_boot(diskType=disk), **TERMINATE)
    assert words in refused


def test_a_disk_is_at_least_as_big_as_its_image(wired: Compute) -> None:
    assert _refusal(wired, disks=_boot(diskSizeGb="9")) == (
        "Invalid value for field 'resource.properties.disks[0].initializeParams.diskSizeGb': '9'. "
        "Requested disk size cannot be smaller than the image size (10 GB)"
    )
    assert wired.template(disks=_boot(diskSizeGb=10))["status"] == "DONE"


def test_the_image_must_exist(wired: Compute) -> None:
    image = f"{IMAGES}/family/debian-1"
    assert _refusal(wired, disks=_boot(sourceImage=image)) == (
        f"The resource '{image}' was not found"
    )


def test_an_arm_image_does_not_boot_an_x86_machine(wired: Compute) -> None:
    image = f"{IMAGES}/family/debian-12-arm64"
    assert "architecture (ARM64)" in _refusal(wired, disks=_boot(sourceImage=image))


def test_the_subnetwork_must_exist(wired: Compute) -> None:
    link = f"{PROJECT}/regions/us-central1/subnetworks/none"
    assert _refusal(wired, networkInterfaces=[{"subnetwork": link}]) == (
        "Invalid value for field 'resource.properties.networkInterfaces[0].subnetwork': "
        f"'{link}'. The referenced subnetwork resource cannot be found."
    )


def test_a_custom_network_needs_a_subnetwork(wired: Compute) -> None:
    interface = {"network": f"{PROJECT}/global/networks/net"}
    assert "custom subnetmode" in _refusal(wired, networkInterfaces=[interface])
    interface = {"network": f"{PROJECT}/global/networks/default"}
    assert wired.template(networkInterfaces=[interface])["status"] == "DONE"


def test_interfaces_are_in_different_networks(wired: Compute) -> None:
    twice = [{"subnetwork": SUBNETWORK}, {"subnetwork": SUBNETWORK}]
    words = "Networks must be distinct for NICs attached to a VM."
    assert _refusal(wired, networkInterfaces=twice) == words


def _rdma(api: Compute) -> list[dict[str, Any]]:
    """A network for RDMA with two subnetworks, and an interface in each."""
    profile = f"{PROJECT}/global/networkProfiles/us-central1-a-vpc-roce"
    api.network("rdma", networkProfile=profile)
    interfaces = []
    for index in (1, 2):
        api.subnetwork(f"rdma-{index}", network="rdma", ipCidrRange=f"10.{index}.0.0/16")
        link = f"{PROJECT}/regions/us-central1/subnetworks/rdma-{index}"
        interfaces.append({"subnetwork": link, "nicType": "MRDMA"})
    return interfaces


def test_interfaces_for_rdma_share_their_network(wired: Compute) -> None:
    interfaces = [{"subnetwork": SUBNETWORK, "nicType": "GVNIC"}, *_rdma(wired)]
    machine: dict[str, Any] = {"machineType": "a3-ultragpu-8g", "networkInterfaces": interfaces}
    disks = _boot(diskType="hyperdisk-balanced")
    assert wired.template(disks=disks, **machine, **TERMINATE)["status"] == "DONE"


def test_only_interfaces_for_rdma_are_in_networks_for_it(wired: Compute) -> None:
    interfaces = _rdma(wired)
    del interfaces[0]["nicType"]
    assert "RDMA" in _refusal(wired, networkInterfaces=interfaces)


def test_ranges_of_interfaces_do_not_overlap(wired: Compute) -> None:
    wired.network("other")
    wired.subnetwork("other", network="other", ipCidrRange="10.0.128.0/17")
    other = {"subnetwork": f"{PROJECT}/regions/us-central1/subnetworks/other"}
    assert "non-overlapping" in _refusal(
        wired, networkInterfaces=[{"subnetwork": SUBNETWORK}, other]
    )


def test_a_network_for_rdma_is_for_the_vms_of_its_zone(wired: Compute) -> None:
    # No region has A3 Ultra in two zones.
    wired.scenarios = frozenset({"everywhere"})
    interfaces = [{"subnetwork": SUBNETWORK, "nicType": "GVNIC"}, *_rdma(wired)]
    machine: dict[str, Any] = {"machineType": "a3-ultragpu-8g", "networkInterfaces": interfaces}
    wired.template(disks=_boot(diskType="hyperdisk-balanced"), **machine, **TERMINATE)
    body = {
        "name": "grp",
        "baseInstanceName": "grp-vm",
        "targetSize": 1,
        "versions": [{"instanceTemplate": f"{TEMPLATES}/tpl"}],
    }
    groups = f"{PROJECT}/zones/us-central1-b/instanceGroupManagers"
    assert "is not that of the zone us-central1-b" in wired.refusal("POST", groups, body)["message"]
    wired.group(size=1)
    (vm,) = wired.vms()
    assert [it["networkIP"] for it in vm["networkInterfaces"]] == [
        "10.0.0.2", "10.1.0.2", "10.2.0.2",
    ]  # fmt: skip


def test_a_machine_has_a_limit_of_interfaces(wired: Compute) -> None:
    interfaces = []
    for index in range(5):
        wired.network(f"n{index}")
        wired.subnetwork(f"s{index}", network=f"n{index}", ipCidrRange=f"10.{index}.0.0/16")
        link = f"{PROJECT}/regions/us-central1/subnetworks/s{index}"
        interfaces.append({"subnetwork": link})
    assert "machine type is 4." in _refusal(wired, networkInterfaces=interfaces)
    assert wired.template(networkInterfaces=interfaces[:4])["status"] == "DONE"


@pytest.mark.parametrize("labels", [{"Team": "ml"}, {"1st": "ml"}, {"team": "ML"}, {"team": "a.b"}])
def test_labels_have_their_alphabet(wired: Compute, labels: dict[str, str]) -> None:
    assert "violates format constraints" in _refusal(wired, labels=labels)


@pytest.mark.parametrize(
    "items",
    [
        [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}],
        [{"key": "a b", "value": "1"}],
        [{"key": "a", "value": "x" * (256 * 1024 + 1)}],
        [{"key": f"k{i}", "value": "x" * 200_000} for i in range(3)],
    ],
)
def test_metadata_has_its_limits(wired: Compute, items: list[Any]) -> None:
    assert "etadata" in _refusal(wired, metadata={"items": items})


def test_a_template_in_use_can_not_be_deleted(wired: Compute) -> None:
    wired.template()
    wired.group()
    error = wired.refusal("DELETE", f"{TEMPLATES}/tpl")
    assert error["message"] == (
        f"The instance_template resource '{TEMPLATES}/tpl' is already being used by "
        f"'{PROJECT}/zones/us-central1-a/instanceGroupManagers/grp'"
    )
    assert error["errors"][0]["reason"] == "resourceInUseByAnotherResource"


def test_a_machine_type_must_be_given(wired: Compute) -> None:
    error = wired.refusal("POST", TEMPLATES, {"name": "tpl", "properties": {"disks": _boot()}})
    assert error["message"] == "Required field 'resource.properties.machineType' not specified"
