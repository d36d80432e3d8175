import json

import pytest

from rehearsal.cloud.facts import images
from tests.rehearsal.cloud.compute.conftest import (
    GROUP,
    GROUPS,
    PROJECT,
    STANDARD,
    TEMPLATES,
    ZONE,
    Compute,
    Json,
    boot,
    group_body,
    metadata,
)

DLVM = "projects/deeplearning-platform-release/global/images"
OWN = f"{PROJECT}/global/images"
NEW = "common-cu129-ubuntu-2204-nvidia-580"
OLD = "common-cu128-ubuntu-2204-nvidia-570"
CLOSED = "pytorch-latest-cu124-v20250327-ubuntu-2204"


def test_a_family_is_its_newest_image(api: Compute) -> None:
    image = api.get(f"{DLVM}/family/{NEW}")
    assert image["name"] == f"{NEW}-v20261001"
    assert "deprecated" not in image
    assert api.get(f"{DLVM}/{image['name']}") == image
    path = f"{DLVM}/{image['name']}/deprecate"
    assert api.refusal("POST", path, {"state": "DELETED"})["code"] == 403  # it is Google's


def test_a_family_without_a_supported_image_is_not_found(api: Compute) -> None:
    others = ("pytorch-2-7-cu128-ubuntu-2204-nvidia-570", "pytorch-latest-gpu")
    for family in (OLD, *others, "common-cpu-debian-11", "tf-latest-gpu"):
        path = f"{DLVM}/family/{family}"
        assert api.refused("GET", path) == f"404 The resource '{path}' was not found"


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
    whole = api.names(DLVM)
    found, query = [], {"maxResults": "4", "pageToken": ""}
    while page := api.get(DLVM, **query):
        found += [it["name"] for it in page["items"]]
        if not (token := page.get("nextPageToken")):
            break
        query["pageToken"] = token
    assert found == whole == sorted(whole)
    assert len(whole) == len([it for it in images.IMAGES.values() if it.project in DLVM])
    assert api.refusal("GET", DLVM, orderBy="creationTimestamp desc")["code"] == 501


def _make(api: Compute, name: str = "mine", **withdrawal: str) -> str:
    api.post(OWN, {"name": name, "family": "own", "sourceImage": f"{DLVM}/family/{NEW}"})
    if withdrawal:
        api.post(f"{OWN}/{name}/deprecate", withdrawal)
    return f"{OWN}/{name}"


def _disk(vm: Json) -> str:
    return str(vm["disks"][0]["source"].partition("/compute/v1/")[2])


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
    wired.of_one()
    body = {"name": "of-disk", "sourceDisk": _disk(wired.vm())}
    assert "already being used by" in wired.refused("POST", OWN, body)
    wired.post(OWN, body, forceCreate="true")
    assert wired.get(f"{OWN}/of-disk")["status"] == "READY"


def test_a_vm_that_its_group_has_stopped_stays_off_and_gives_an_image_of_its_disk(
    wired: Compute,
) -> None:
    wired.rate = 1.0
    wired.of_one()
    wired.now += 60
    vm = wired.vm()
    stop = {"instances": [f"zones/us-central1-a/instances/{vm['name']}"]}
    wired.post(f"{GROUP}/stopInstances", stop)
    assert "is not running" in wired.refused("POST", f"{GROUP}/stopInstances", stop)
    disk = _disk(vm)
    body: Json = {"name": "of-disk", "family": "mine", "sourceDisk": disk}
    body["labels"] = {"aiinfra-bake": "a"}
    assert "already being used by" in wired.refused("POST", OWN, body)
    wired.now += 60
    now = wired.get_group()
    seen = wired.vm()["status"], now["targetSize"], now["targetStoppedSize"]
    assert seen == ("TERMINATED", 0, 1)
    assert now["status"]["isStable"]

    upper = {**body, "labels": {"aiinfra-bake": "Upper"}}
    assert "Label value 'Upper'" in wired.refused("POST", OWN, upper)
    assert wired.refusal("POST", OWN, {**body, "name": "Upper"})["code"] == 400
    wired.post(OWN, body)
    assert wired.get(f"{OWN}/of-disk")["status"] == "PENDING"
    assert wired.gone(f"{OWN}/family/mine")
    wired.now += 300
    made = wired.get(f"{OWN}/family/mine")
    assert (made["status"], made["sourceDiskId"]) == ("READY", wired.get(disk)["id"])
    assert wired.get(OWN, filter="labels.aiinfra-bake:*")["items"] == [made]
    assert "items" not in wired.get(OWN, filter="labels.other:*")
    wired.delete(GROUP)
    wired.now += 300
    assert wired.get(f"{OWN}/of-disk")["status"] == "READY"


def test_an_image_comes_to_nothing_whose_disk_goes_before_it_is_done(wired: Compute) -> None:
    wired.rate = 1.0
    wired.of_one()
    wired.now += 60
    body = {"name": "of-disk", "sourceDisk": _disk(wired.vm())}
    wired.post(OWN, body, forceCreate="true")
    wired.delete(GROUP)
    wired.now += 300
    assert wired.get(f"{OWN}/of-disk")["status"] == "FAILED"
    error = wired.refused("POST", OWN, {"name": "none"})
    assert "Must specify exactly one source for an image." in error


@pytest.mark.parametrize("state", ["OBSOLETE", "DELETED"])
def test_an_image_that_is_withdrawn_for_good_boots_nothing(wired: Compute, state: str) -> None:
    image = _make(wired, state=state, replacement=f"{OWN}/better")
    body = {"name": "tpl", "properties": {"machineType": "e2-standard-4", "disks": boot(image)}}
    words = f"New uses are not allowed.  A suggested replacement is '{OWN}/better'."
    refused = f"400 The resource '{image}' is {state.lower()}.  {words}"
    assert wired.refused("POST", TEMPLATES, body) == refused


def test_a_deprecated_image_is_used_with_a_warning(wired: Compute) -> None:
    operation = wired.template(disks=boot(f"{DLVM}/{OLD}-v20260320"))
    (warning,) = operation["warnings"]
    assert warning["code"] == "DEPRECATED_RESOURCE_USED"
    assert warning["message"] == (
        f"The resource '{DLVM}/{OLD}-v20260320' is deprecated."
        f" A suggested replacement is '{DLVM}/{NEW}-v20260408'."
    )
    assert wired.get(f"{PROJECT}/global/operations/{operation['name']}")["warnings"] == [warning]


def test_a_group_gets_no_vm_of_an_image_that_is_withdrawn_later(wired: Compute) -> None:
    image = _make(wired)
    wired.template(disks=boot(image))
    wired.post(f"{image}/deprecate", {"state": "OBSOLETE"})
    wired.group(size=1)
    assert wired.vms() == []
    words = "is obsolete.  New uses are not allowed.  No replacement was specified."
    assert [it["message"] for it in wired.errors()] == [f"The resource '{image}' {words}"]


def test_a_group_of_an_image_of_ones_own_is_made_only_by_who_may_use_that(wired: Compute) -> None:
    image = _make(wired)
    wired.template(disks=boot(image))
    wired.scenarios = frozenset({"image-forbidden"})
    refused = wired.refused("POST", GROUPS, group_body())
    assert refused == f"403 Required 'compute.images.useReadOnly' permission for '{image}'"
    wired.of_one("other", "public", disks=boot(f"{DLVM}/family/{NEW}"))


def _gpu_step(wired: Compute, image: str, gpu: str) -> str:
    """What a VM with a GPU tells of its step gpu: "done", or what its failure says."""
    # Not every zone has every GPU.
    wired.scenarios = frozenset({"everywhere"})
    config = {
        "gpus": {"count": 1, "accelerator": gpu},
        "interfaces": 1,
        "state": {"bucket": "b", "folder": "f"},
        "has_command": False,
    }
    wired.of_one(
        machineType="n1-standard-8",
        disks=boot(image),
        guestAccelerators=[{"acceleratorType": gpu, "acceleratorCount": 1}],
        scheduling=STANDARD,
        metadata=metadata(enable_guest_attributes="TRUE", aiinfra_config=json.dumps(config)),
    )
    path = f"{ZONE}/instances/{wired.vm()['name']}/getGuestAttributes"
    (one,) = wired.get(path, queryPath="aiinfra/")["queryValue"]["items"]
    told = json.loads(one["value"])
    step: Json = told["steps"]["gpu"]
    assert ("gpu_check" in told) == (step["state"] == "done")
    assert told["state"] == step["state"]
    return "done" if step["state"] == "done" else str(step["detail"])


@pytest.mark.parametrize("gpu", ["nvidia-tesla-v100", "nvidia-tesla-p100", "nvidia-tesla-p4"])
@pytest.mark.parametrize("family", [NEW, OLD])
def test_the_open_kernel_module_finds_no_old_gpu(wired: Compute, gpu: str, family: str) -> None:
    image = next(it.name for it in images.IMAGES.values() if it.family == family)
    detail = _gpu_step(wired, f"{DLVM}/{image}", gpu)
    assert "No devices were found" in detail
    assert "not supported by open nvidia.ko" in detail


FOUND = {
    "a driver that supports the old GPU": (f"{DLVM}/{CLOSED}", "nvidia-tesla-p100"),
    "a driver that supports the GPU": (f"{DLVM}/family/{NEW}", "nvidia-tesla-t4"),
    "Google's installer": (
        "projects/debian-cloud/global/images/family/debian-13",
        "nvidia-tesla-t4",
    ),
    "Google's installer, an old GPU": (
        "projects/debian-cloud/global/images/family/debian-13",
        "nvidia-tesla-p100",
    ),
}


@pytest.mark.parametrize("by", FOUND)
def test_a_gpu_is_found_by_a_driver_that_supports_it_on_the_image_or_installed(
    wired: Compute, by: str
) -> None:
    assert _gpu_step(wired, *FOUND[by]) == "done"


def test_an_image_that_the_installer_does_not_know_finds_no_gpu(wired: Compute) -> None:
    image = "projects/rocky-linux-cloud/global/images/family/rocky-linux-9"
    detail = _gpu_step(wired, image, "nvidia-tesla-t4")
    assert "failed to run command 'nvidia-smi'" in detail


def test_what_is_on_an_image_of_ones_own_is_what_it_was_made_of(wired: Compute) -> None:
    assert _gpu_step(wired, _make(wired), "nvidia-tesla-p100") != "done"


def test_what_is_on_an_image_of_a_disk_nobody_knows(wired: Compute) -> None:
    wired.of_one("other", "other")
    wired.post(OWN, {"name": "baked", "sourceDisk": _disk(wired.vm())}, forceCreate="true")
    wired.delete(f"{GROUPS}/other")
    assert _gpu_step(wired, f"{OWN}/baked", "nvidia-tesla-p100") == "done"
