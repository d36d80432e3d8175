"""What the VMs of a cluster tell of their start-up, played in the time of the cloud.

The real VMs run the tool's start-up script, which reads the metadata `aiinfra-config` and writes
one guest attribute again and again. Here nothing runs: what a VM will have told by any moment is
known when it is made.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rehearsal.cloud import policies, secrets
from rehearsal.cloud.compute import images, links, properties
from rehearsal.cloud.facts import images as image_facts
from rehearsal.cloud.facts import machines as machine_facts
from rehearsal.cloud.instants import rfc3339
from rehearsal.cloud.storage import access

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rehearsal.cloud.compute.resources import Call, Resource

NAMESPACE = "aiinfra"
_CONFIG = "aiinfra-config"
_VICTIMS = "scenarios/startup-fails"
_AGENT = "agent"

_BOOT_SECONDS = 20.0
_TELLS_EVERY = 12.0
"""The least seconds between what a VM tells: Google takes 10 queries a minute, and the tool's own
look every 15 seconds is one."""
_DRIVER_SECONDS = 480.0
"""How long Google's installer takes for a driver, its reboot with it; a guess."""

_PROXY_SECONDS = 60.0
"""How long after its start-up a notebook gets its URL."""

_DRIVER = "580.95.05"
"""The driver of an image that somebody made: nobody knows what is on it, so it is a good one."""

_SILENT = "the NVIDIA driver does not answer: nvidia-smi -L fails, 15 minutes after the boot"
_REFUSED = (
    "No devices were found\n"
    "NVRM: The NVIDIA GPU 0000:00:04.0 installed in this system is not supported by open nvidia.ko"
    " because it does not include the required GPU System Processor (GSP).\n"
    "this image has NVIDIA's open kernel module, which does not support this VM's GPUs: choose an"
    " image with the proprietary driver"
)
_NO_MLX5 = "an image without their driver (mlx5, DOCA-OFED) has none"
_NOT_USED = "NCCL would not use the GPU network on this VM: see above"
_GPU_NAMES: Mapping[str, str] = {
    "nvidia-a100-80gb": "NVIDIA A100-SXM4-80GB",
    "nvidia-b200": "NVIDIA B200",
    "nvidia-gb200": "NVIDIA GB200",
    "nvidia-h100-80gb": "NVIDIA H100 80GB HBM3",
    "nvidia-h100-mega-80gb": "NVIDIA H100 80GB HBM3",
    "nvidia-h200-141gb": "NVIDIA H200",
    "nvidia-l4": "NVIDIA L4",
    "nvidia-rtx-pro-6000": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
    "nvidia-tesla-a100": "NVIDIA A100-SXM4-40GB",
    "nvidia-tesla-p100": "Tesla P100-PCIE-16GB",
    "nvidia-tesla-p4": "Tesla P4",
    "nvidia-tesla-t4": "Tesla T4",
    "nvidia-tesla-v100": "Tesla V100-SXM2-16GB",
}
"""GPU -> what nvidia-smi calls it."""

# Google's roles with compute.instances.setMetadata that an account may have in a project.
_METADATA_ROLES = frozenset(
    {"roles/compute.admin", "roles/compute.instanceAdmin.v1", "roles/editor", "roles/owner"}
)


@dataclass(frozen=True)
class Step:
    """One step of the start-up.

    Attributes:
        name: Such as "mounts".
        seconds: How long it takes, in cloud time.
        why_not: Why a VM of this configuration leaves it out; "" when it doesn't.
        failure: Its last lines, should it fail; "" for one that never does.
    """

    name: str
    seconds: float
    why_not: Callable[[Resource], str]
    failure: str = ""


def _unless(key: str, reason: str) -> Callable[[Resource], str]:
    return lambda config: "" if config.get(key) else reason


def _no_fabric(config: Resource) -> str:
    if not config.get("gpus"):
        return "this VM has no GPUs"
    return "" if config.get("fabric") else "NCCL uses the one network interface that there is"


def _no_notebook(config: Resource) -> str:
    if not config.get("notebook"):
        return "no notebook is wanted"
    return "" if config["_has_notebook"] else "the image has no notebook"


# In the order in which they run.
_STEPS = (
    Step(
        "local-ssd", 10.0, lambda config: "" if config["_local_ssds"] else "no Local SSD is there"
    ),
    Step("mounts", 15.0, _unless("mounts", "nothing is to be mounted")),
    Step("files", 10.0, _unless("files", "no files were copied")),
    Step(
        "gpu",
        30.0,
        _unless("gpus", "no GPUs are expected"),
        "NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.\n"
        "nvidia-smi shows fewer GPUs than the machine has",
    ),
    Step("fabric", 60.0, _no_fabric),
    Step("ops-agent", 40.0, _unless("ops_agent", "the Ops Agent is switched off")),
    Step(_AGENT, 15.0, lambda _: ""),
    Step("ray", 45.0, _unless("ray", "no Ray is wanted")),
    Step("notebook", 10.0, _no_notebook),
    Step(
        "command",
        25.0,
        _unless("has_command", "no command was given"),
        "Traceback (most recent call last):\n"
        '  File "/usr/aiinfra/copy/train.py", line 3, in <module>\n'
        "ModuleNotFoundError: No module named 'transformers'\n"
        "the command ended with exit code 1",
    ),
)
_ORDER_OF_FAILURE = ("command", "gpu")

_FIRST_PAUSE = 10.0
_LONGEST_PAUSE = 300.0
"""Seconds before a command that failed is begun again: at first, and after many failures."""
_AT_ONCE = 4
"""Its failures where no time passes."""


def plan(  # noqa: PLR0913, PLR0917 - which VM, of what, and which of its boots
    call: Call,
    member: str,
    group: str,
    template: Resource,
    running: float,
    before: Resource | None = None,
) -> Resource:
    """What a VM will tell of a boot, to be kept with it; {} for one that is not of the tool's.

    Args:
        call: Its pace is that of the start-up.
        member: The VM's name.
        group: Its group's.
        template: What it is made from.
        running: When it runs (Unix epoch).
        before: What it has told of its last boot, with the number of that; None for a new VM.
    """
    wanted = template["properties"]
    text = item(wanted["metadata"], _CONFIG)
    if text is None:
        return {}
    _, image = images.of_boot_disk(call, wanted)
    public = image.public if image else None
    content = _prepared(public)
    config = {
        **json.loads(text),
        "_has_notebook": content is not None and content.jupyter,
        "_local_ssds": _local_ssds(wanted),
    }
    skipped = {step.name: reason for step in _STEPS if (reason := step.why_not(config))}
    failing = _failing_step(call, member, group, skipped)
    if failing == "gpu" and before:
        failing = None  # a GPU that fell off its bus is back after a boot
    unreadable = "" if "command" in skipped else _unreadable(call, config, wanted)
    pace = call.request.rate
    begins = running + _BOOT_SECONDS * pace
    told: Resource = {"begins": begins, "pace": pace, "skipped": skipped, "failing": failing}
    if content != public and not before:
        told["installs"] = True
    told |= {
        "number": (before or {}).get("number", 0) + 1,
        "before": (before or {}).get("document"),
    }
    if failing == "command" and config.get("restart", "never") != "never":
        told["again"] = True
    told["fabric"] = (config.get("fabric") or {}).get("kind", "")
    told["went-on"] = _went_on(call, config, wanted)
    told["shared"] = [config["state"]["bucket"], config["state"]["folder"]]
    if unreadable and failing != "gpu":
        told |= {"failing": "command", "failure": unreadable}
    told |= _checks(content, config, wanted, told)
    if "notebook" not in skipped and _may_tell_url(call, content, wanted):
        told["proxy"] = begins + (_length(skipped) + _PROXY_SECONDS) * pace
    return {"_startup": told}


def _went_on(call: Call, config: Resource, wanted: Resource) -> dict[str, str]:
    """Steps that fail without an end of the start-up -> their last lines."""
    result = {}
    if (expected := config.get("local_ssds") or 0) > config["_local_ssds"] > 0:
        result["local-ssd"] = f"this VM has {config['_local_ssds']} Local SSDs, not {expected}"
    if not _may_share(call, config["state"], wanted):
        result[_AGENT] = (
            "after 300 seconds, the VMs have not agreed on their ranks: either Create has not said"
            " yet how many they are, or this VM's account may not write to the folder vms/ of the"
            " state folder (journalctl -u aiinfra-agent)\nthe ranks of the group are not complete"
        )
    return result


def _checks(
    content: image_facts.PublicImage | None, config: Resource, wanted: Resource, told: Resource
) -> Resource:
    """What is told of GPUs and fabric, and of a failure of these."""
    result: Resource = {}
    if "gpu" not in told["skipped"]:
        if silent := _no_gpus(content, wanted):
            # The check comes after the driver's first answer.
            return {"failing": "gpu", "failure": silent}
        driver = content.driver.version if content and content.driver else _DRIVER
        faulty = told["failing"] == "gpu"
        result["gpu_check"] = _gpu_check(config, wanted, driver, faulty=faulty)
    if "fabric" not in told["skipped"] and told["failing"] != "gpu":
        found, broken = _fabric(content, config["fabric"])
        if found is not None:
            result["fabric-check"] = found
        if broken:
            result |= {"failing": "fabric", "failure": broken}
    return result


def item(metadata: Resource, key: str) -> str | None:
    """A value of metadata, or None."""
    found = (it for it in metadata.get("items") or [] if it["key"] == key)
    return next((it.get("value", "") for it in found), None)


def again(call: Call, member: str, vm: Resource, template: Resource, running: float) -> Resource:
    """What a VM will tell once it has booted again, and until then what it has told before.

    Args:
        call: Its pace is that of the start-up.
        member: The VM's name.
        vm: The VM.
        template: What it is made from.
        running: When it boots (Unix epoch).
    """
    number = (vm.get("_startup") or {}).get("number", 0)
    before = {"number": number, "document": _document(vm, call.now)}
    return plan(call, member, vm["_group"], template, running, before)


def attributes(instance: Resource, now: float) -> dict[str, str]:
    """The guest attributes of the tool's namespace that a VM has written by a moment."""
    document = _document(instance, now)
    return {"startup": json.dumps(document)} if document else {}


def _document(instance: Resource, now: float) -> Resource | None:
    """What a VM has told of its start-up by a moment, of its last boot if of no other."""
    told = instance.get("_startup")
    if not told or now < told["begins"]:
        return (told or {}).get("before")
    known = _told_last(told, now)
    state, step, at = "done", None, told["begins"]
    steps: dict[str, Resource] = {}
    document: Resource = {}
    for name, one, since in _course(told, known):
        steps[name] = one
        at = since
        stops = one["state"] == "failed" and name not in told.get("went-on", {})
        if one["state"] in {"running", "failing"}:
            state, step = "running", name
        elif stops:
            state, step = "failed", name
        if name == "gpu" and one["state"] in {"done", "failed"} and "gpu_check" in told:
            document["gpu_check"] = told["gpu_check"]
        if name == "fabric" and one["state"] in {"done", "failed"} and "fabric-check" in told:
            document["fabric"] = told["fabric-check"]
    return {
        "state": state,
        "step": step,
        "boot": boot_of(instance),
        "number": told["number"],
        "began": rfc3339(told["begins"]),
        "at": rfc3339(at),
        "steps": steps,
        **document,
    }


def _told_last(told: Resource, now: float) -> float:
    """The last moment at which a VM told what was new: it waits between one and the next."""
    last: float = told["begins"]
    gap = _TELLS_EVERY * told["pace"]
    news = told["begins"]
    for step in _STEPS:
        if step.name in told["skipped"]:
            continue
        news += _seconds(told, step) * told["pace"]
        if news <= last:
            continue
        next_ = max(news, last + gap)
        if next_ > now:
            break
        last = next_
        if step.name == told.get("failing"):
            # What fails again and again has longer pauses than what is told.
            return now if told.get("again") else last
    return last


def has_done(instance: Resource, step: str, now: float) -> bool:
    """Whether a VM has done a step of its start-up by a moment."""
    told = instance.get("_startup")
    if not told or now < told["begins"]:
        return False
    return any(
        name == step and document["state"] == "done" for name, document, _ in _course(told, now)
    )


def leaves_out(instance: Resource, step: str) -> bool:
    """Whether a VM's start-up leaves a step out."""
    return step in (instance.get("_startup") or {}).get("skipped", {})


def fabric(instance: Resource) -> str:
    """What a VM's start-up sets NCCL up for, as its configuration calls it; "" for nothing."""
    return str((instance.get("_startup") or {}).get("fabric") or "")


def gpu_check(instance: Resource) -> Resource:
    """What a VM's look at its GPUs shows."""
    found: Resource = (instance.get("_startup") or {}).get("gpu_check") or {}
    return found


def shared_folder(instance: Resource) -> tuple[str, str] | None:
    """Bucket and state folder, below which a VM and its peers share a folder."""
    found = (instance.get("_startup") or {}).get("shared")
    return None if found is None else (found[0], found[1])


def boot_of(instance: Resource) -> str:
    """What the VM's kernel calls this boot."""
    number = (instance.get("_startup") or {}).get("number", 1)
    return hashlib.sha256(f"{instance['id']} {number}".encode()).hexdigest()[:32]


def proxy_url(instance: Resource, now: float) -> str | None:
    """The address of a VM's notebook, once it has one."""
    proxy = (instance.get("_startup") or {}).get("proxy")
    if proxy is None or now < proxy:
        return None
    digest = hashlib.sha256(instance["selfLink"].encode()).hexdigest()[:16]
    region = links.last(instance["zone"]).rpartition("-")[0]
    return f"{digest}-dot-{region}.notebooks.googleusercontent.com"


def _course(told: Resource, now: float) -> Iterator[tuple[str, Resource, float]]:
    """The steps begun by a moment: name, what is told of it, and when that was told."""
    moment = told["begins"]
    for step in _STEPS:
        if step.name in told["skipped"]:
            at = {"at": rfc3339(moment), "detail": told["skipped"][step.name]}
            yield step.name, {"state": "skipped", **at}, moment
            continue
        began, moment = moment, moment + _seconds(told, step) * told["pace"]
        if now < moment:
            yield step.name, {"state": "running", "at": rfc3339(began)}, began
            return
        if step.name == told.get("failing") and told.get("again"):
            yield step.name, *_failures(told, step, moment, now)
            return
        if step.name == told.get("failing"):
            at = {"at": rfc3339(moment), "detail": told.get("failure", step.failure)}
            yield step.name, {"state": "failed", **at}, moment
            return
        if step.name in (went_on := told.get("went-on", {})):
            at = {"at": rfc3339(moment), "detail": went_on[step.name]}
            yield step.name, {"state": "failed", **at}, moment
            continue
        yield step.name, {"state": "done", "at": rfc3339(moment)}, moment


def _seconds(told: Resource, step: Step) -> float:
    """How long a step takes on a VM, in cloud time."""
    return step.seconds + (_DRIVER_SECONDS if told.get("installs") and step.name == "gpu" else 0.0)


def _failures(told: Resource, step: Step, failed: float, now: float) -> tuple[Resource, float]:
    """What is told of a command that fails, and is begun again for ever.

    Args:
        told: What the VM tells.
        step: Its last step.
        failed: The moment of the first failure.
        now: The moment that is looked at.
    """
    number = 1
    while True:
        pause = min(_FIRST_PAUSE * 2 ** (number - 1), _LONGEST_PAUSE)
        following = failed + (pause + step.seconds) * told["pace"]
        # Where no time passes, some have passed already.
        if now < following or (told["pace"] == 0 and number == _AT_ONCE):
            break
        number, failed = number + 1, following
    detail = told.get("failure", step.failure)
    again = f"{detail}, attempt {number}; begun again after {pause:g} seconds"
    counted = {"attempt": number, "failures": number, "code": 1}
    return {"state": "failing", "at": rfc3339(failed), "detail": again, **counted}, failed


def _length(skipped: Resource) -> float:
    return sum(step.seconds for step in _STEPS if step.name not in skipped)


def _failing_step(call: Call, member: str, group: str, skipped: Resource) -> str | None:
    """The step in which `startup-fails` lets this VM fail: one VM of a group, always the same."""
    if "startup-fails" not in call.request.scenarios:
        return None
    victim = call.store.get(_VICTIMS, group)
    if victim is None:
        victim = {"vm": member}
        call.store.put(_VICTIMS, group, victim)
    if victim["vm"] != member:
        return None
    return next((name for name in _ORDER_OF_FAILURE if name not in skipped), None)


def _unreadable(call: Call, config: Resource, wanted: Resource) -> str:
    """What a VM says whose account may not read the command's secrets; "" where it may."""
    accounts = [it["email"] for it in wanted.get("serviceAccounts") or []]
    for secret in config.get("secrets") or []:
        resource = secret["resource"]
        if not any(
            secrets.readable(call.store, resource, f"serviceAccount:{it}") for it in accounts
        ):
            denied = f"Permission 'secretmanager.versions.access' denied for {resource}"
            return (
                f"the secret of {secret['name']} can't be read: {resource}: 403, {denied}\n"
                "STARTUP_COMMAND was not begun: it lacks its SECRETS"
            )
    return ""


def _prepared(content: image_facts.PublicImage | None) -> image_facts.PublicImage | None:
    """What a VM's disk has once start-up has installed what the image lacks."""
    if content is None or not content.takes_driver:
        return content
    return replace(content, driver=image_facts.INSTALLED)


def _may_share(call: Call, state: Resource, wanted: Resource) -> bool:
    """Whether a VM's account may write to the folder that it shares with its peers, and list it."""
    bucket, folder = state["bucket"], f"{state['folder']}/vms/members/"
    accounts = [it["email"] for it in wanted.get("serviceAccounts") or []]
    return any(
        access.may_write(call.store, bucket, f"serviceAccount:{it}", f"{folder}vm.json")
        and access.may_list(call.store, bucket, f"serviceAccount:{it}", folder)
        for it in accounts
    )


def _no_gpus(content: image_facts.PublicImage | None, wanted: Resource) -> str:
    """What a VM says whose image can't drive its GPUs; "" where it can, or nobody knows."""
    if content is None:
        return ""
    if content.driver is None:
        return f"timeout: failed to run command 'nvidia-smi': No such file or directory\n{_SILENT}"
    kinds = {kind for kind, _ in properties.accelerators(wanted)}
    return _REFUSED if content.driver.open and kinds & image_facts.WITHOUT_GSP else ""


def _fabric(
    content: image_facts.PublicImage | None, wanted: Resource
) -> tuple[Resource | None, str]:
    """What a VM says of NCCL's fabric, and its last lines where its image can't have it.

    What somebody's own image has nobody knows, so it is a good one. The first is None where the VM
    does not come to its check.
    """
    document = {"kind": wanted["kind"], "plugin": wanted["plugin"], "faults": [], "notes": []}
    if content is None or wanted["kind"] == "tcp":
        return document, ""
    if not content.apt:
        return None, (
            "this image has no apt-get, for: install. Choose one of Ubuntu or Debian, or one that"
            f" has it\n{wanted['plugin']} could not be installed"
        )
    broken = ""
    if wanted["kind"] == "gib" and not content.rdma:
        broken = f"0 RDMA devices are active, not {wanted['interfaces']}: {_NO_MLX5}"
    elif wanted["kind"] == "tcpxo" and content.driver is not None and not content.driver.open:
        broken = "the receive-datapath manager (aiinfra-rxdm) is not healthy: 503"
    if not broken:
        return document, ""
    return {**document, "faults": [broken]}, f"{broken}\n{_NOT_USED}"


def _may_tell_url(call: Call, content: image_facts.PublicImage | None, wanted: Resource) -> bool:
    """Whether a VM gets an address from the proxy and can write it into its metadata.

    Its script runs the proxy's agent with docker, which of these images those with PyTorch alone
    are said to have, and then changes the VM's metadata as the VM's account.
    """
    has_docker = content is not None and content.family.startswith("pytorch-")
    if not item(wanted["metadata"], "proxy-mode") or not has_docker:
        return False
    policy = policies.get(call.store, f"projects/{call.project}", {})
    accounts = {f"serviceAccount:{it['email']}" for it in wanted.get("serviceAccounts") or []}
    return any(
        binding["role"] in _METADATA_ROLES and accounts & set(binding["members"])
        for binding in policy.get("bindings", [])
    )


def _local_ssds(wanted: Resource) -> int:
    """How many Local SSDs a VM has: those of its machine type, and those that its template adds."""
    machine = machine_facts.find(wanted["machineType"])
    added = sum(1 for disk in wanted.get("disks") or [] if disk.get("type") == "SCRATCH")
    return added + (machine.local_ssds if machine else 0)


def _gpu_check(config: Resource, wanted: Resource, driver: str, *, faulty: bool) -> Resource:
    """What the VM's look at its GPUs shows; a faulty one has lost the last of them."""
    names = [
        _GPU_NAMES.get(kind, kind)
        for kind, count in properties.accelerators(wanted)
        for _ in range(count)
    ]
    names = names[: len(names) - faulty]
    return {
        "gpus": len(names),
        "names": names,
        "driver": driver,
        "ecc_errors": 0,
        "interfaces": len(wanted["networkInterfaces"]),
        "expected": {"gpus": config["gpus"]["count"], "interfaces": config["interfaces"]},
    }
