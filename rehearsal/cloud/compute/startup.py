"""What the VMs of a cluster tell of their start-up, played in the time of the cloud.

The real VMs run the tool's start-up script, which reads the metadata `aiinfra-config` and writes
one guest attribute again and again. Here nothing runs: what a VM will have told by any moment is
known when it is made. The steps, and what it has told by a moment, are in `startup_told`.
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from rehearsal.cloud import policies, scenarios, secrets
from rehearsal.cloud.compute import images, networks, properties, startup_told
from rehearsal.cloud.compute.resources import Call, Resource
from rehearsal.cloud.facts import images as image_facts
from rehearsal.cloud.facts import machines as machine_facts
from rehearsal.cloud.storage import buckets

_CONFIG = "aiinfra-config"
_COMMAND = "aiinfra-startup-command"

_BOOT_SECONDS = 20.0

_PROXY_SECONDS = 60.0  # how long after its start-up a notebook gets its URL

# Google's roles with compute.instances.setMetadata that an account may have in a project.
_METADATA_ROLES = frozenset(
    {"roles/compute.admin", "roles/compute.instanceAdmin.v1", "roles/editor", "roles/owner"}
)

_OUTSIDE = ("mounts", "files", "fabric", "ray", "slurm")
"""The steps that can't do without what is outside, in their order."""

_NO_WAY_OUT = (
    "curl: (28) Failed to connect to storage.googleapis.com port 443: Connection timed out\n"
    "this VM has no way out: no address, no Cloud NAT, no Private Google Access"
)

_ORDER_OF_FAILURE = ("command", "gpu")


def plan(  # noqa: PLR0913, PLR0917 - which VM, of what, and which of its boots
    call: Call,
    member: str,
    group: str,
    template: Resource,
    running: float,
    interfaces: Sequence[Resource],
    before: Resource | None = None,
) -> Resource:
    """What a VM will tell of a boot, to be kept with it; {} for one that is not of the tool's.

    `running`: when it runs (Unix epoch). `interfaces`: its own. `before`: what it has told of its
    last boot, with the number of that; None for a new VM.
    """
    wanted = template["properties"]
    text = properties.item(wanted["metadata"], _CONFIG)
    if text is None:
        return {}
    _, image = images.of_boot_disk(call, wanted)
    public = image.public if image else None
    content = prepared(public)
    config = {
        **json.loads(text),
        "_has_notebook": content is not None and content.jupyter,
        "_local_ssds": local_ssds(wanted),
    }
    skipped = {step.name: reason for step in startup_told.STEPS if (reason := step.why_not(config))}
    failing = _failing_step(call, member, group, skipped)
    if failing == "gpu" and before:
        failing = None  # a GPU that fell off its bus is back after a boot
    unread = "" if "command" in skipped else unreadable(call, config, wanted)
    pace = call.request.rate
    begins = running + _BOOT_SECONDS * pace
    told: Resource = {"begins": begins, "pace": pace, "skipped": skipped, "failing": failing}
    if image and image.baked:
        told["baked"] = True
    if content != public and not before:
        told["installs"] = True
    told |= {
        "number": (before or {}).get("number", 0) + 1,
        "before": (before or {}).get("document"),
    }
    if failing == "command" and config.get("restart", "never") != "never":
        told["again"] = True
    told["fabric"] = (config.get("fabric") or {}).get("kind", "")
    told["ray"] = bool(config.get("ray"))
    told["slurm"] = bool(config.get("slurm"))
    told["idle"] = config.get("idle_seconds")
    proxy = (config.get("outbound") or {}).get("proxy")
    gets_out = bool(proxy) or networks.reaches_google(call, interfaces)
    told["went-on"] = went_on(call, config, wanted, gets_out=gets_out)
    told["shared"] = [config["state"]["bucket"], config["state"]["folder"]]
    command = properties.item(wanted["metadata"], _COMMAND) or ""
    missing = not_found(content, command)
    if (unread or missing) and failing != "gpu":
        told |= {"failing": "command", "failure": unread or missing}
        if missing and not unread and config.get("restart", "never") != "never":
            told |= {"again": True, "code": 127}
    told |= checks(content, config, wanted, told)
    if not gets_out and (step := next((it for it in _OUTSIDE if it not in skipped), "")):
        told |= {"failing": step, "failure": _NO_WAY_OUT}
    if "notebook" not in skipped and _may_tell_url(call, content, wanted):
        told["proxy"] = begins + (startup_told.length(skipped) + _PROXY_SECONDS) * pace
    return {"_startup": told}


def again(call: Call, member: str, vm: Resource, template: Resource, running: float) -> Resource:
    """What a VM will tell once it has booted again, and until then what it has told before."""
    number = (vm.get("_startup") or {}).get("number", 0)
    before = {"number": number, "document": startup_told.document(vm, call.now)}
    return plan(call, member, vm["_group"], template, running, vm["networkInterfaces"], before)


def _failing_step(call: Call, member: str, group: str, skipped: Resource) -> str | None:
    """The step in which `startup-fails` lets this VM fail: one VM of a group, always the same."""
    if "startup-fails" not in call.request.scenarios:
        return None
    key = f"startup-fails {group}"
    victim = call.store.get(scenarios.VICTIMS, key)
    if victim is None:
        victim = {"vm": member}
        call.store.put(scenarios.VICTIMS, key, victim)
    if victim["vm"] != member:
        return None
    return next((name for name in _ORDER_OF_FAILURE if name not in skipped), None)


def _may_tell_url(call: Call, content: image_facts.PublicImage | None, wanted: Resource) -> bool:
    """Whether a VM gets an address from the proxy and can write it into its metadata.

    Its script runs the proxy's agent with docker, which of these images those with PyTorch alone
    are said to have, and then changes the VM's metadata as the VM's account.
    """
    has_docker = content is not None and content.family.startswith("pytorch-")
    if not properties.item(wanted["metadata"], "proxy-mode") or not has_docker:
        return False
    policy = policies.get(call.store, f"projects/{call.project}", {})
    accounts = {f"serviceAccount:{it['email']}" for it in wanted.get("serviceAccounts") or []}
    return any(
        binding["role"] in _METADATA_ROLES and accounts & set(binding["members"])
        for binding in policy.get("bindings", [])
    )


DRIVER = "580.95.05"
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


def went_on(call: Call, config: Resource, wanted: Resource, *, gets_out: bool) -> dict[str, str]:
    """Steps that fail without an end of the start-up -> their last lines."""
    result = {}
    if (expected := config.get("local_ssds") or 0) > (there := config["_local_ssds"]) > 0:
        disks = "Local SSD" if there == 1 else "Local SSDs"
        result["local-ssd"] = f"this VM has {there} {disks}, not {expected}"
    if not gets_out or not may_share(call, config["state"], wanted):
        result[startup_told.AGENT] = (
            "after 300 seconds, the VMs have not agreed on their ranks: either Create has not said"
            " yet how many they are, or this VM's account may not write to the folder vms/ of the"
            " state folder (journalctl -u aiinfra-agent)\nthe ranks of the group are not complete"
        )
    return result


def checks(
    content: image_facts.PublicImage | None, config: Resource, wanted: Resource, told: Resource
) -> Resource:
    """What is told of GPUs and fabric, and of a failure of these."""
    result: Resource = {}
    if "gpu" not in told["skipped"]:
        if silent := _no_gpus(content, wanted):
            # The check comes after the driver's first answer.
            return {"failing": "gpu", "failure": silent}
        driver = content.driver.version if content and content.driver else DRIVER
        faulty = told["failing"] == "gpu"
        result["gpu_check"] = _gpu_check(config, wanted, driver, faulty=faulty)
    if "fabric" not in told["skipped"] and told["failing"] != "gpu":
        found, broken = _fabric(content, config["fabric"])
        if found is not None:
            result["fabric-check"] = found
        if broken:
            result |= {"failing": "fabric", "failure": broken}
    return result


def unreadable(call: Call, config: Resource, wanted: Resource) -> str:
    """What a VM says whose account may not read the command's secrets; "" where it may."""
    known = {it["name"]: it["resource"] for it in config.get("secrets") or []}
    why = secrets.denied(call.store, known, wanted)
    return f"{why}\nSTARTUP_COMMAND was not begun: it lacks its SECRETS" if why else ""


def not_found(content: image_facts.PublicImage | None, command: str) -> str:
    """What bash says of a command whose program an image lacks; "" where it has it, or who knows.

    The first word counts, behind variables and sudo; a command may install what comes later.
    """
    words = (it for it in command.split() if it != "sudo" and "=" not in it)
    program = next(words, "")
    kinds = image_facts.PROGRAMS.get(program)
    if content is None or kinds is None or content.family.startswith(tuple(kinds)):
        return ""
    return (
        f"/opt/aiinfra/startup-command: line 1: {program}: command not found\n"
        "STARTUP_COMMAND ended with exit code 127, after 0 s"
    )


def prepared(content: image_facts.PublicImage | None) -> image_facts.PublicImage | None:
    """What a VM's disk has once start-up has installed what the image lacks."""
    if content is None or not content.takes_driver:
        return content
    return replace(content, driver=image_facts.INSTALLED)


def may_share(call: Call, state: Resource, wanted: Resource) -> bool:
    """Whether a VM's account may write to the folder that it shares with its peers, and list it."""
    bucket, folder = state["bucket"], f"{state['folder']}/vms/members/"
    accounts = [it["email"] for it in wanted.get("serviceAccounts") or []]
    return any(
        buckets.may_write(call.store, bucket, f"serviceAccount:{it}", f"{folder}vm.json")
        and buckets.may_list(call.store, bucket, f"serviceAccount:{it}", folder)
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
        broken = f"0 RDMA devices active, not {wanted['interfaces']}: {_NO_MLX5}"
    elif wanted["kind"] == "tcpxo" and content.driver is not None and not content.driver.open:
        broken = "the receive-datapath manager (aiinfra-rxdm) is not healthy: 503"
    if not broken:
        return document, ""
    return {**document, "faults": [broken]}, f"{broken}\n{_NOT_USED}"


def local_ssds(wanted: Resource) -> int:
    """How many Local SSDs a VM has: those of its machine type, and those that its template adds."""
    machine = machine_facts.find(wanted["machineType"])
    added = sum(1 for disk in wanted.get("disks") or [] if disk.get("type") == "SCRATCH")
    return added + (machine.local_ssds if machine else 0)


def _gpu_check(config: Resource, wanted: Resource, driver: str, *, faulty: bool) -> Resource:
    """What the VM's look at its GPUs shows; a faulty one has lost the last of them."""
    names = [
        machine_facts.GPUS.get(kind, {}).get("nvidia_smi", kind)
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
