"""The images that VMs boot from: which there are, and what becomes of withdrawn ones."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.cloud.facts import images

if TYPE_CHECKING:
    from tests.rehearsal.cloud.compute.conftest import Compute

Json = dict[str, Any]

DLVM = "projects/deeplearning-platform-release/global/images"
OWN = "projects/proj-a1/global/images"
PROJECT = "projects/proj-a1"
ZONE = f"{PROJECT}/zones/us-central1-a"
NEW = "common-cu129-ubuntu-2204-nvidia-580"
OLD = "common-cu128-ubuntu-2204-nvidia-570"
CLOSED = "pytorch-latest-cu124-v20250327-ubuntu-2204"


def test_a_family_is_its_newest_image(api: Compute) -> None:
    image = api.get(f"{DLVM}/family/{NEW}")

    assert image["name"] == f"{NEW}-v20261001"
    assert "deprecated" not in image
    assert api.get(f"{DLVM}/{image['name']}") == image


@pytest.mark.parametrize(
    "family",
    [
        OLD,
        "pytorch-2-7-cu128-ubuntu-2204-nvidia-570",
        "pytorch-latest-gpu",
        "common-cpu-debian-11",
        "tf-latest-gpu",
    ],
)
def test_a_family_without_a_supported_image_is_not_found(api: Compute, family: str) -> None:
    error = api.refusal("GET", f"{DLVM}/family/{family}")

    assert error["code"] == 404
    assert error["message"] == f"The resource '{DLVM}/family/{family}' was not found"


def test_a_withdrawn_image_is_found_by_its_name_with_what_replaces_it(api: Compute) -> None:
    withdrawal = api.get(f"{DLVM}/{OLD}-v20260320")["deprecated"]

    assert withdrawal["state"] == "DEPRECATED"
    assert withdrawal["deprecated"].startswith("2026-04-13T")
    assert withdrawal["deleted"].startswith("2027-04-13T")
    api.get(withdrawal["replacement"].partition("/compute/v1/")[2])


def test_a_list_has_deprecated_images_and_can_be_filtered(api: Compute) -> None:
    found = api.get(DLVM, filter='(family eq "common-.*-nvidia-[0-9]+") AND (status = READY)')
    states = {it["name"]: it.get("deprecated", {}).get("state") for it in found["items"]}
    assert states[f"{OLD}-v20260320"] == "DEPRECATED"
    assert states[f"{NEW}-v20261001"] is None
    assert all(name.startswith("common-") for name in states)


def test_a_list_is_ordered_over_its_pages(api: Compute) -> None:
    whole = [it["name"] for it in api.get(DLVM)["items"]]
    found, token = [], ""
    while True:
        page = api.get(DLVM, maxResults="4", pageToken=token)
        found += [it["name"] for it in page["items"]]
        token = page.get("nextPageToken", "")
        if not token:
            break
    assert found == whole
    assert len(whole) == len([it for it in images.IMAGES.values() if it.project in DLVM])
    assert whole == sorted(whole)
    assert api.refusal("GET", DLVM, orderBy="creationTimestamp desc")["code"] == 501


def _boot(image: str) -> list[Json]:
    return [{"boot": True, "autoDelete": True, "initializeParams": {"sourceImage": image}}]


def _make(api: Compute, name: str = "mine", **withdrawal: str) -> str:
    api.post(OWN, {"name": name, "family": "own", "sourceImage": f"{DLVM}/family/{NEW}"})
    if withdrawal:
        api.post(f"{OWN}/{name}/deprecate", withdrawal)
    return f"{OWN}/{name}"


def test_a_project_makes_images_of_its_own(api: Compute) -> None:
    _make(api, "first")
    api.now += 60
    _make(api, "second")
    assert api.get(f"{OWN}/family/own")["name"] == "second"
    api.post(f"{OWN}/second/deprecate", {"state": "DEPRECATED"})
    assert api.get(f"{OWN}/family/own")["name"] == "first"
    api.post(f"{OWN}/second/deprecate", {})
    assert api.get(f"{OWN}/family/own")["name"] == "second"
    api.delete(f"{OWN}/second")
    assert api.get(f"{OWN}/family/own")["name"] == "first"


def test_a_disk_makes_an_image_once_nothing_uses_it(wired: Compute) -> None:
    wired.template()
    wired.group(size=1)
    disk = wired.vms()[0]["disks"][0]["source"].partition("/compute/v1/")[2]
    body = {"name": "of-disk", "sourceDisk": disk}
    assert "already being used by" in wired.refusal("POST", OWN, body)["message"]
    wired.post(OWN, body, forceCreate="true")
    assert wired.get(f"{OWN}/of-disk")["status"] == "READY"


def test_a_vm_that_its_group_has_stopped_stays_off_and_gives_an_image_of_its_disk(
    wired: Compute,
) -> None:
    wired.rate = 1.0
    wired.template()
    wired.group(size=1)
    group = f"{ZONE}/instanceGroupManagers/grp"
    wired.now += 60
    (vm,) = wired.vms()
    stop = {"instances": [f"zones/us-central1-a/instances/{vm['name']}"]}
    wired.post(f"{group}/stopInstances", stop)
    assert "is not running" in wired.refusal("POST", f"{group}/stopInstances", stop)["message"]
    disk = vm["disks"][0]["source"].partition("/compute/v1/")[2]
    body = {
        "name": "of-disk",
        "family": "mine",
        "sourceDisk": disk,
        "labels": {"aiinfra-bake": "a"},
    }
    assert "already being used by" in wired.refusal("POST", OWN, body)["message"]
    wired.now += 60
    (vm,) = wired.vms()
    now = wired.get(group)
    assert (vm["status"], now["targetSize"], now["targetStoppedSize"]) == ("TERMINATED", 0, 1)
    assert now["status"]["isStable"]

    upper = {**body, "labels": {"aiinfra-bake": "Upper"}}
    assert "Label value 'Upper'" in wired.refusal("POST", OWN, upper)["message"]
    assert wired.refusal("POST", OWN, {**body, "name": "Upper"})["code"] == 400
    wired.post(OWN, body)
    assert wired.get(f"{OWN}/of-disk")["status"] == "PENDING"
    assert wired.refusal("GET", f"{OWN}/family/mine")["code"] == 404
    wired.now += 300
    made = wired.get(f"{OWN}/family/mine")
    assert (made["status"], made["sourceDiskId"]) == ("READY", wired.get(disk)["id"])
    assert wired.get(OWN, filter="labels.aiinfra-bake:*")["items"] == [made]
    assert "items" not in wired.get(OWN, filter="labels.other:*")
    wired.delete(group)
    wired.now += 300
    assert wired.get(f"{OWN}/of-disk")["status"] == "READY"


def test_an_image_comes_to_nothing_whose_disk_goes_before_it_is_done(wired: Compute) -> None:
    wired.rate = 1.0
    wired.template()
    wired.group(size=1)
    wired.now += 60
    disk = wired.vms()[0]["disks"][0]["source"].partition("/compute/v1/")[2]
    wired.post(OWN, {"name": "of-disk", "sourceDisk": disk}, forceCreate="true")
    wired.delete(f"{ZONE}/instanceGroupManagers/grp")
    wired.now += 300
    assert wired.get(f"{OWN}/of-disk")["status"] == "FAILED"


def test_an_image_has_one_source(api: Compute) -> None:
    error = api.refusal("POST", OWN, {"name": "none"})
    assert "Must specify exactly one source for an image." in error["message"]


def test_nobody_changes_what_is_googles(api: Compute) -> None:
    path = f"{DLVM}/{NEW}-v20261001/deprecate"
    assert api.refusal("POST", path, {"state": "DELETED"})["code"] == 403


@pytest.mark.parametrize(("state", "word"), [("OBSOLETE", "obsolete"), ("DELETED", "deleted")])
def test_an_image_that_is_withdrawn_for_good_boots_nothing(
    wired: Compute, state: str, word: str
) -> None:
    image = _make(wired, state=state, replacement=f"{OWN}/better")
    body = {"name": "tpl", "properties": {"machineType": "e2-standard-4", "disks": _boot(image)}}

    error = wired.refusal("POST", f"{PROJECT}/global/instanceTemplates", body)

    assert error["message"] == (
        f"The resource '{image}' is {word}. A suggested replacement is '{OWN}/better'."
    )


def test_a_deprecated_image_is_used_with_a_warning(wired: Compute) -> None:
    operation = wired.template(disks=_boot(f"{DLVM}/{OLD}-v20260320"))

    (warning,) = operation["warnings"]
    assert warning["code"] == "DEPRECATED_RESOURCE_USED"
    assert warning["message"] == (
        f"The resource '{DLVM}/{OLD}-v20260320' is deprecated."
        f" A suggested replacement is '{DLVM}/{NEW}-v20260408'."
    )
    assert wired.get(f"{PROJECT}/global/operations/{operation['name']}")["warnings"] == [warning]


def test_a_group_gets_no_vm_of_an_image_that_is_withdrawn_later(wired: Compute) -> None:
    image = _make(wired)
    wired.template(disks=_boot(image))
    wired.post(f"{image}/deprecate", {"state": "OBSOLETE"})
    wired.group(size=1)

    assert wired.vms() == []
    path = f"{ZONE}/instanceGroupManagers/grp/listManagedInstances"
    (member,) = wired.post(path)["managedInstances"]
    (error,) = member["lastAttempt"]["errors"]["errors"]
    assert error["message"] == f"The resource '{image}' is obsolete."


def test_a_group_of_an_image_of_ones_own_is_made_only_by_who_may_use_that(wired: Compute) -> None:
    image = _make(wired)
    wired.template(disks=_boot(image))
    wired.scenarios = frozenset({"image-forbidden"})
    versions = [{"instanceTemplate": f"{PROJECT}/global/instanceTemplates/tpl"}]
    body = {"name": "grp", "targetSize": 1, "versions": versions}
    refused = wired.refusal("POST", f"{ZONE}/instanceGroupManagers", body)
    assert (refused["code"], refused["message"]) == (
        403,
        f"Required 'compute.images.useReadOnly' permission for '{image}'",
    )
    wired.template("public", disks=_boot(f"{DLVM}/family/{NEW}"))
    wired.group("other", size=1, template="public")


def _gpu_step(wired: Compute, image: str, gpu: str) -> Json:
    """What a VM with a GPU tells of its step gpu."""
    # Not every zone has every GPU.
    wired.scenarios = frozenset({"everywhere"})
    config = {
        "gpus": {"count": 1, "accelerator": gpu},
        "interfaces": 1,
        "state": {"bucket": "b", "folder": "f"},
        "has_command": False,
    }
    metadata = {"enable-guest-attributes": "TRUE", "aiinfra-config": json.dumps(config)}
    wired.template(
        machineType="n1-standard-8",
        disks=_boot(image),
        guestAccelerators=[{"acceleratorType": gpu, "acceleratorCount": 1}],
        scheduling={"onHostMaintenance": "TERMINATE"},
        metadata={"items": [{"key": key, "value": value} for key, value in metadata.items()]},
    )
    wired.group(size=1)
    path = f"{ZONE}/instances/{wired.vms()[0]['name']}/getGuestAttributes"
    (one,) = wired.get(path, queryPath="aiinfra/")["queryValue"]["items"]
    told = json.loads(one["value"])
    step: Json = told["steps"]["gpu"]
    assert ("gpu_check" in told) == (step["state"] == "done")
    assert told["state"] == step["state"]
    return step


@pytest.mark.parametrize("gpu", ["nvidia-tesla-v100", "nvidia-tesla-p100", "nvidia-tesla-p4"])
@pytest.mark.parametrize("family", [NEW, OLD])
def test_the_open_kernel_module_finds_no_old_gpu(wired: Compute, gpu: str, family: str) -> None:
    image = next(it.name for it in images.IMAGES.values() if it.family == family)

    step = _gpu_step(wired, f"{DLVM}/{image}", gpu)

    assert step["state"] == "failed"
    assert "No devices were found" in step["detail"]
    assert "not supported by open nvidia.ko" in step["detail"]


@pytest.mark.parametrize(
    ("image", "gpu"),
    [
        (f"{DLVM}/{CLOSED}", "nvidia-tesla-p100"),
        (f"{DLVM}/family/{NEW}", "nvidia-tesla-t4"),
    ],
)
def test_a_driver_that_supports_the_gpu_finds_it(wired: Compute, image: str, gpu: str) -> None:
    assert _gpu_step(wired, image, gpu)["state"] == "done"


@pytest.mark.parametrize("gpu", ["nvidia-tesla-t4", "nvidia-tesla-p100"])
def test_a_plain_image_gets_its_driver_from_googles_installer(wired: Compute, gpu: str) -> None:
    image = "projects/debian-cloud/global/images/family/debian-13"
    assert _gpu_step(wired, image, gpu)["state"] == "done"


def test_an_image_that_the_installer_does_not_know_finds_no_gpu(wired: Compute) -> None:
    image = "projects/rocky-linux-cloud/global/images/family/rocky-linux-9"
    step = _gpu_step(wired, image, "nvidia-tesla-t4")
    assert "failed to run command 'nvidia-smi'" in step["detail"]


def test_what_is_on_an_image_of_ones_own_is_what_it_was_made_of(wired: Compute) -> None:
    assert _gpu_step(wired, _make(wired), "nvidia-tesla-p100")["state"] == "failed"


def test_what_is_on_an_image_of_a_disk_nobody_knows(wired: Compute) -> None:
    wired.template("other")
    wired.group("other", size=1, template="other")
    disk = wired.vms()[0]["disks"][0]["source"].partition("/compute/v1/")[2]
    wired.post(OWN, {"name": "baked", "sourceDisk": disk}, forceCreate="true")
    wired.delete(f"{ZONE}/instanceGroupManagers/other")
    assert _gpu_step(wired, f"{OWN}/baked", "nvidia-tesla-p100")["state"] == "done"
