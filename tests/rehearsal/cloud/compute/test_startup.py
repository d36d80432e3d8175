import itertools
import json
from typing import Any

import pytest

from rehearsal.cloud import policies, scenarios
from rehearsal.cloud.compute import properties
from rehearsal.cloud.compute.resources import INSTANCE
from tests.rehearsal.cloud.compute.conftest import (
    IMAGE,
    PROJECT,
    STANDARD,
    ZONE,
    Compute,
    Json,
    boot,
    metadata,
)

CONFIG = {
    "cluster_id": "c",
    "name_prefix": "c",
    "state": {"bucket": "b", "folder": "f"},
    "mounts": [{"server": "b", "remote_path": "", "local_mount": "/m", "type": "gcsfuse"}],
    "files": None,
    "gpus": {"count": 2, "accelerator": "nvidia-tesla-a100"},
    "interfaces": 1,
    "fabric": None,
    "ops_agent": True,
    "notebook": True,
    "ray": None,
    "has_command": True,
}

LEARNING = "projects/deeplearning-platform-release/global/images"
NOTEBOOK_IMAGE = f"{LEARNING}/family/common-cu129-ubuntu-2404-nvidia-580"
PYTORCH_IMAGE = NOTEBOOK_IMAGE.replace("common-", "pytorch-2-9-")
OLD_IMAGE = f"{LEARNING}/pytorch-latest-cu124-v20250327-ubuntu-2204"
UBUNTU = "projects/ubuntu-os-accelerator-images/global/images/family"
DRIVER_IMAGE = f"{UBUNTU}/ubuntu-accelerator-2404-amd64-with-nvidia-580"
ROCKY = "projects/rocky-linux-accelerator-cloud/global/images/family"
ROCKY_IMAGE = f"{ROCKY}/rocky-linux-9-optimized-gcp-nvidia-580"
ACCOUNT = "vms@proj-a1.iam.gserviceaccount.com"


def _start(
    api: Compute, size: int = 1, image: str = DRIVER_IMAGE, items: Json | None = None, **config: Any
) -> None:
    """A group of VMs; with scopes, they have an account of the project's own."""
    scopes, name = config.pop("scopes", None), config.pop("name", "grp")
    machine = config.pop("machine", "a2-highgpu-2g")
    keys = {
        "enable-guest-attributes": "TRUE",
        "proxy-mode": "project_editors",
        "aiinfra-config": json.dumps(CONFIG | config),
        **(items or {}),
    }
    given: Json = {
        "machineType": machine,
        "scheduling": STANDARD,
        "metadata": metadata(**{key: value for key, value in keys.items() if value}),
        "disks": boot(image),
    }
    if scopes is not None:
        given["serviceAccounts"] = [{"email": ACCOUNT, "scopes": scopes}]
    api.template(name, **given)
    api.group(name, size=size, template=name)


def _allow(api: Compute, resource: str, role: str, **condition: Any) -> None:
    """Give the VMs' account a role."""
    binding = {"role": role, "members": [f"serviceAccount:{ACCOUNT}"], **condition}
    with api.database.transaction() as store:
        store.put(policies.ACCOUNTS, ACCOUNT, {"email": ACCOUNT, "projectId": "proj-a1"})
        policies.replace(store, resource, {"bindings": [binding]}, {})


def _path(api: Compute, number: int = 0) -> str:
    return f"{ZONE}/instances/{api.vms()[number]['name']}/getGuestAttributes"


def _told(api: Compute, number: int = 0) -> Json:
    (one,) = api.get(_path(api, number), queryPath="aiinfra/")["queryValue"]["items"]
    assert (one["namespace"], one["key"]) == ("aiinfra", "startup")
    told: Json = json.loads(one["value"])
    return told


def test_where_no_time_passes_all_steps_are_over_at_once(wired: Compute) -> None:
    _start(wired)
    told = _told(wired)
    skipped = ("way-out", "local-ssd", "files", "fabric", "ray", "slurm", "notebook")
    assert {name: it["state"] for name, it in told["steps"].items()} == {
        **dict.fromkeys(skipped, "skipped"),
        **dict.fromkeys(("mounts", "gpu", "ops-agent", "command"), "done"),
        "agent": "failed",
    }
    assert "may not write to the folder vms/" in told["steps"]["agent"]["detail"]
    assert told["steps"]["notebook"]["detail"] == "the image has no notebook"
    assert (told["state"], told["step"], told["number"]) == ("done", None, 1)
    assert told["gpu_check"] == {
        "gpus": 2,
        "names": ["NVIDIA A100-SXM4-40GB"] * 2,
        "driver": "580.178.04",
        "ecc_errors": 0,
        "interfaces": 1,
        "expected": {"gpus": 2, "interfaces": 1},
    }


def test_a_machine_without_gpus_checks_none(wired: Compute) -> None:
    _start(wired, machine="e2-standard-4", image=IMAGE, gpus=None)
    told = _told(wired)
    assert told["steps"]["gpu"]["state"] == "skipped"
    assert "gpu_check" not in told


@pytest.mark.parametrize(("expected", "state"), [(2, "done"), (3, "failed")])
def test_local_ssds_are_counted_by_the_clouds_own_facts_and_a_lack_stops_nothing(
    wired: Compute, expected: int, state: str
) -> None:
    _start(wired, machine="a2-ultragpu-2g", local_ssds=expected, gpus=None)

    told = _told(wired)
    assert told["steps"]["local-ssd"]["state"] == state
    lack = "this VM has 2 Local SSDs, not 3" if state == "failed" else None
    assert told["steps"]["local-ssd"].get("detail") == lack
    assert told["state"] == "done"


@pytest.mark.parametrize(("lists", "state"), [(False, "failed"), (True, "done")])
def test_a_vm_has_a_rank_where_its_account_may_write_to_its_part_of_the_state_folder_and_list_it(
    wired: Compute, *, lists: bool, state: str
) -> None:
    expression = 'resource.name.startsWith("projects/_/buckets/b/objects/f/vms/")'
    if lists:
        attribute = 'api.getAttribute("storage.googleapis.com/objectListPrefix", "")'
        expression += f' || {attribute}.startsWith("f/vms/")'
    condition = {"title": "vms", "expression": expression}
    _allow(wired, "buckets/b", "roles/storage.objectUser", condition=condition)
    _start(wired, scopes=[])
    told = _told(wired)
    assert (told["steps"]["agent"]["state"], told["state"]) == (state, "done")


def test_a_vm_of_an_image_of_a_sealed_vm_finds_its_work_done(wired: Compute) -> None:
    wired.rate = 1.0
    _start(wired)
    vm = wired.vm()
    name = vm["selfLink"].partition("/v1/")[2]
    with wired.database.transaction() as store:
        store.put(INSTANCE.stored, name, (store.get(INSTANCE.stored, name) or {}) | {"_sealed": 1})
    body = {"name": "own", "sourceDisk": vm["disks"][0]["source"]}
    wired.post(f"{PROJECT}/global/images", body, forceCreate="true")
    wired.now += 300
    _start(wired, name="other", image=f"{PROJECT}/global/images/own")
    _, baked = (it["name"] for it in wired.vms())
    assert baked.startswith("other-")
    # mounts, gpu and ops-agent take 15 seconds together, not 85; the agent takes another 15.
    wired.now += 45 + 15 + 15 + 12
    assert _told(wired, 1)["steps"]["ops-agent"]["state"] == "done"


def test_steps_follow_each_other_in_cloud_time(wired: Compute) -> None:
    wired.rate = 1.0
    _start(wired)
    wired.now += 30
    assert wired.refusal("GET", _path(wired), queryPath="aiinfra/")["code"] == 404
    wired.now += 20
    assert _told(wired)["step"] == "mounts"
    wired.now += 30
    told = _told(wired)
    assert (told["state"], told["step"]) == ("running", "gpu")
    assert "command" not in told["steps"]
    assert "gpu_check" not in told
    wired.now += 300
    assert _told(wired)["state"] == "done"


def test_what_is_told_is_new_no_oftener_than_google_allows(wired: Compute) -> None:
    wired.rate = 1.0
    _start(wired, mounts=[], gpus=None, notebook=False, has_command=True)
    wired.now += 55
    seen: list[tuple[float, str]] = []
    for _ in range(120):
        wired.now += 1
        told = json.dumps(_told(wired))
        if not seen or seen[-1][1] != told:
            seen.append((wired.now, told))
    gaps = [after[0] - before[0] for before, after in itertools.pairwise(seen)]
    assert len(gaps) >= 2
    assert all(gap >= 12 for gap in gaps)


def test_guest_attributes_are_off_unless_the_metadata_switches_them_on(wired: Compute) -> None:
    _start(wired, items={"enable-guest-attributes": ""})
    refusal = wired.refusal("GET", _path(wired), queryPath="aiinfra/")
    assert refusal["message"] == "Guest attributes endpoint access is disabled."


def test_a_vm_of_somebody_else_tells_nothing(wired: Compute) -> None:
    _start(wired, items={"aiinfra-config": ""})
    assert wired.refusal("GET", _path(wired), queryPath="aiinfra/")["code"] == 404


def test_a_command_that_is_begun_again_fails_more_and_more_often(wired: Compute) -> None:
    wired.scenarios, wired.rate = frozenset({"startup-fails"}), 1.0
    _start(wired, restart="on-failure")
    seen = []
    for _ in range(12):
        wired.now += 60
        seen.append(_told(wired).get("steps", {}).get("command", {}).get("failures", 0))
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0, 6)
    told = _told(wired)
    assert (told["state"], told["step"]) == ("running", "command")
    assert (told["steps"]["command"]["state"], told["steps"]["command"]["code"]) == ("failing", 1)
    assert told["steps"]["command"]["detail"].endswith("begun again after 300 seconds")


def test_where_no_time_passes_it_has_failed_a_few_times(wired: Compute) -> None:
    wired.scenarios = frozenset({"startup-fails"})
    _start(wired, restart="always")
    assert _told(wired)["steps"]["command"]["failures"] == 4


def test_of_a_group_that_is_made_again_one_vm_fails_as_well(wired: Compute) -> None:
    wired.scenarios = frozenset({"startup-fails"})
    _start(wired, size=2)
    named = {"vm": wired.vms()[0]["name"]}
    with wired.database.transaction() as store:  # what asks VMs for their health knows their names
        store.put(scenarios.VICTIMS, "full-disk", named)
    wired.delete(f"{ZONE}/instanceGroupManagers/grp")
    with wired.database.transaction() as store:
        assert list(store.list(scenarios.VICTIMS)) == []
    wired.now += 600
    wired.group("grp", size=2, template="grp")
    assert sorted(_told(wired, number)["state"] for number in range(2)) == ["done", "failed"]


@pytest.mark.parametrize(("command", "step"), [(True, "command"), (False, "gpu")])
def test_the_start_up_of_one_vm_fails(wired: Compute, *, command: bool, step: str) -> None:
    wired.scenarios = frozenset({"startup-fails"})
    _start(wired, size=3, has_command=command)
    told = [_told(wired, number) for number in range(3)]
    assert sorted(it["state"] for it in told) == ["done", "done", "failed"]
    (failed,) = (it for it in told if it["state"] == "failed")
    assert failed["step"] == step
    assert failed["steps"][step]["state"] == "failed"
    assert 0 < len(failed["steps"][step]["detail"].splitlines()) <= 20
    if step == "gpu":  # it shows too few
        check = failed["gpu_check"]
        assert (check["gpus"], check["expected"]["gpus"]) == (1, 2)
        assert "command" not in failed["steps"]


@pytest.mark.parametrize(
    ("kind", "image", "said"),
    [
        ("gib", DRIVER_IMAGE, ""),
        ("tcpxo", DRIVER_IMAGE, ""),
        ("tcp", OLD_IMAGE, ""),
        ("tcpxo", OLD_IMAGE, "the receive-datapath manager (aiinfra-rxdm) is not healthy"),
        ("gib", ROCKY_IMAGE, "this image has no apt-get"),
    ],
)
def test_a_fabric_works_where_the_image_has_what_it_needs(
    wired: Compute, kind: str, image: str, said: str
) -> None:
    fabric = {"kind": kind, "interfaces": 8, "plugin": "plugin:v1", "daemon": None}
    _start(wired, image=image, fabric=fabric)
    told = _told(wired)
    assert told["steps"]["fabric"]["state"] == ("failed" if said else "done")
    assert said in told["steps"]["fabric"].get("detail", "")
    assert ("command" in told["steps"]) == (not said)
    if not said:
        assert told["fabric"] == {"kind": kind, "plugin": "plugin:v1", "faults": [], "notes": []}


@pytest.mark.parametrize(
    ("image", "role", "proxied"),
    [
        (PYTORCH_IMAGE, "roles/compute.instanceAdmin.v1", True),
        (PYTORCH_IMAGE, "roles/logging.logWriter", False),
        (NOTEBOOK_IMAGE, "roles/editor", False),
    ],
    ids=["all-is-there", "the-account-may-not-write-it", "the-image-has-no-docker"],
)
def test_a_notebook_gets_its_url_where_the_account_may_write_it_and_the_image_has_docker(
    wired: Compute, image: str, role: str, *, proxied: bool
) -> None:
    _allow(wired, PROJECT, role)
    wired.rate = 1.0
    _start(wired, image=image, scopes=["https://www.googleapis.com/auth/cloud-platform"])
    wired.now += 200
    assert "proxy-url" not in {it["key"] for it in wired.vm()["metadata"]["items"]}
    wired.now += 200
    assert _told(wired)["steps"]["notebook"]["state"] == "done"
    url = {it["key"]: it["value"] for it in wired.vm()["metadata"]["items"]}.get("proxy-url", "")
    assert url.endswith("-dot-us-central1.notebooks.googleusercontent.com" if proxied else "")
    assert bool(url) is proxied


def test_metadata_is_kept_once_for_all_vms_and_read_with_each(wired: Compute) -> None:
    script = "#" * 100_000
    _start(wired, size=50, items={"startup-script": script})
    for it in wired.vms():
        assert properties.item(it["metadata"], "startup-script") == script
        assert properties.item(it["metadata"], "created-by") is not None
    with wired.database.transaction() as store:
        kept = sum(len(json.dumps(it)) for _, it in store.list("compute/instances"))
    assert kept < 50 * 5_000


@pytest.mark.parametrize(
    ("image", "command", "program"),
    [
        (DRIVER_IMAGE, "torchrun train.py", "torchrun"),
        (NOTEBOOK_IMAGE, "HF_HOME=/mnt sudo docker run x", "docker"),
        (PYTORCH_IMAGE, "torchrun train.py", ""),
        (DRIVER_IMAGE, "pip install torch && torchrun train.py", ""),
    ],
)
def test_a_command_whose_program_the_image_lacks_ends_with_127(
    wired: Compute, image: str, command: str, program: str
) -> None:
    _start(wired, image=image, items={"aiinfra-startup-command": command})

    step = _told(wired)["steps"]["command"]

    assert step["state"] == ("failed" if program else "done")
    assert f"{program}: command not found" in step.get("detail", "") or not program
