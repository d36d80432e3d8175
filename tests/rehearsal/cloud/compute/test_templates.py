from typing import Any

import pytest

from tests.rehearsal.cloud.compute.conftest import (
    GROUP,
    NETWORKS,
    PROJECT,
    STANDARD,
    SUBNETWORKS,
    TEMPLATES,
    Compute,
    Json,
    boot,
    group_body,
    template_properties,
)

SUB = {"subnetwork": f"{SUBNETWORKS}/sub"}
IMAGES = "projects/debian-cloud/global/images"
TERMINATE: Json = {"scheduling": STANDARD}
ULTRA: Json = {
    "machineType": "a3-ultragpu-8g",
    "disks": boot(diskType="hyperdisk-balanced"),
    **TERMINATE,
}


def _refusal(api: Compute, **properties: Any) -> str:
    body = {"name": "tpl", "properties": template_properties(**properties)}
    return str(api.refusal("POST", TEMPLATES, body)["message"])


def test_a_template_is_read_by_name_and_by_numeric_id(wired: Compute) -> None:
    number = wired.template()["targetId"]
    assert wired.get(f"{TEMPLATES}/{number}") == wired.get(f"{TEMPLATES}/tpl")
    assert wired.gone(f"{TEMPLATES}/4111")


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


NOWHERE = f"{SUBNETWORKS}/none"
AT = "Invalid value for field 'resource.properties"
REFUSED: dict[str, Json] = {
    "pd-ssd disk type cannot be used by a3-ultragpu-8g machine": ULTRA
    | {"disks": boot(diskType="pd-ssd")},
    "cannot be used by a2-highgpu-8g machine type.": ULTRA | {"machineType": "a2-highgpu-8g"},
    f"{AT}.disks[0].initializeParams.diskSizeGb': '9'. Requested disk size cannot be smaller than"
    " the image size (10 GB)": {"disks": boot(diskSizeGb="9")},
    f"The resource '{IMAGES}/family/debian-1' was not found": {
        "disks": boot(f"{IMAGES}/family/debian-1")
    },
    "architecture (ARM64)": {"disks": boot(f"{IMAGES}/family/debian-12-arm64")},
    f"{AT}.networkInterfaces[0].subnetwork': '{NOWHERE}'. The referenced subnetwork resource"
    " cannot be found.": {"networkInterfaces": [{"subnetwork": NOWHERE}]},
    "custom subnetmode": {"networkInterfaces": [{"network": f"{NETWORKS}/net"}]},
    "Networks must be distinct for NICs attached to a VM.": {"networkInterfaces": [SUB, SUB]},
}


@pytest.mark.parametrize("words", REFUSED)
def test_disks_images_and_interfaces_must_exist_and_suit_the_machine(
    wired: Compute, words: str
) -> None:
    assert words in _refusal(wired, **REFUSED[words])


def test_a_disk_as_big_as_its_image_in_the_default_network_will_do(wired: Compute) -> None:
    interfaces = [{"network": f"{NETWORKS}/default"}]
    made = wired.template(disks=boot(diskSizeGb=10), networkInterfaces=interfaces)
    assert made["status"] == "DONE"


def test_spot_vms_neither_restart_nor_migrate(wired: Compute) -> None:
    spot = {"preemptible": True, "provisioningModel": "SPOT", "onHostMaintenance": "TERMINATE"}
    assert "AutomaticRestart is true" in _refusal(wired, scheduling=spot)
    spot["automaticRestart"] = False
    assert wired.template(scheduling=spot)["status"] == "DONE"
    spot["onHostMaintenance"] = "MIGRATE"
    assert "OnHostMaintenance isn't TERMINATE" in _refusal(wired, scheduling=spot)


def test_labels_have_their_alphabet(wired: Compute) -> None:
    for labels in ({"Team": "ml"}, {"1st": "ml"}, {"team": "ML"}, {"team": "a.b"}):
        assert "violates format constraints" in _refusal(wired, labels=labels)


def _rdma(api: Compute) -> list[Json]:
    """A network for RDMA with two subnetworks, and an interface in each."""
    profile = f"{PROJECT}/global/networkProfiles/us-central1-a-vpc-roce"
    api.network("rdma", networkProfile=profile)
    for index in (1, 2):
        api.subnetwork(f"rdma-{index}", network="rdma", ipCidrRange=f"10.{index}.0.0/16")
    links = (f"{SUBNETWORKS}/rdma-{index}" for index in (1, 2))
    return [{"subnetwork": link, "nicType": "MRDMA"} for link in links]


def test_interfaces_for_rdma_share_their_network_which_is_for_the_vms_of_its_zone(
    wired: Compute,
) -> None:
    # No region has A3 Ultra in two zones.
    wired.scenarios = frozenset({"everywhere"})
    wired.template(networkInterfaces=[{**SUB, "nicType": "GVNIC"}, *_rdma(wired)], **ULTRA)
    groups = f"{PROJECT}/zones/us-central1-b/instanceGroupManagers"
    assert "is not that of the zone us-central1-b" in wired.refused("POST", groups, group_body())
    wired.group(size=1)
    addresses = [it["networkIP"] for it in wired.vm()["networkInterfaces"]]
    assert addresses == ["10.0.0.2", "10.1.0.2", "10.2.0.2"]


def test_only_interfaces_for_rdma_are_in_networks_for_it(wired: Compute) -> None:
    interfaces = _rdma(wired)
    del interfaces[0]["nicType"]
    assert "RDMA" in _refusal(wired, networkInterfaces=interfaces)


def test_ranges_of_interfaces_do_not_overlap(wired: Compute) -> None:
    wired.network("other")
    wired.subnetwork("other", network="other", ipCidrRange="10.0.128.0/17")
    other = {"subnetwork": f"{SUBNETWORKS}/other"}
    assert "non-overlapping" in _refusal(wired, networkInterfaces=[SUB, other])


def test_a_machine_has_a_limit_of_interfaces(wired: Compute) -> None:
    for index in range(5):
        wired.network(f"n{index}")
        wired.subnetwork(f"s{index}", network=f"n{index}", ipCidrRange=f"10.{index}.0.0/16")
    interfaces = [{"subnetwork": f"{SUBNETWORKS}/s{index}"} for index in range(5)]
    assert "machine type is 4." in _refusal(wired, networkInterfaces=interfaces)
    assert wired.template(networkInterfaces=interfaces[:4])["status"] == "DONE"


def test_metadata_has_its_limits(wired: Compute) -> None:
    for items in (
        [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}],
        [{"key": "a b", "value": "1"}],
        [{"key": "a", "value": "x" * (256 * 1024 + 1)}],
        [{"key": f"k{i}", "value": "x" * 200_000} for i in range(3)],
    ):
        assert "etadata" in _refusal(wired, metadata={"items": items})


def test_a_template_in_use_can_not_be_deleted(made: Compute) -> None:
    made.group()
    error = made.refusal("DELETE", f"{TEMPLATES}/tpl")
    assert error["errors"][0]["reason"] == "resourceInUseByAnotherResource"
    assert error["message"] == (
        f"The instance_template resource '{TEMPLATES}/tpl' is already being used by '{GROUP}'"
    )


def test_a_machine_type_must_be_given(wired: Compute) -> None:
    error = wired.refused("POST", TEMPLATES, {"name": "tpl", "properties": {"disks": boot()}})
    assert error == "400 Required field 'resource.properties.machineType' not specified"
