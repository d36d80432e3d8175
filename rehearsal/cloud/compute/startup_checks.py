"""What a VM finds out in its start-up: its GPUs and fabric, its secrets, its peers' folder."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rehearsal.cloud import secrets
from rehearsal.cloud.compute import properties, startup_steps
from rehearsal.cloud.facts import images as image_facts
from rehearsal.cloud.facts import machines as machine_facts
from rehearsal.cloud.storage import access

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.cloud.compute.resources import Call, Resource

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

GPU_NAMES: Mapping[str, str] = {
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


def went_on(call: Call, config: Resource, wanted: Resource) -> dict[str, str]:
    """Steps that fail without an end of the start-up -> their last lines."""
    result = {}
    if (expected := config.get("local_ssds") or 0) > config["_local_ssds"] > 0:
        result["local-ssd"] = f"this VM has {config['_local_ssds']} Local SSDs, not {expected}"
    if not may_share(call, config["state"], wanted):
        result[startup_steps.AGENT] = (
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


def local_ssds(wanted: Resource) -> int:
    """How many Local SSDs a VM has: those of its machine type, and those that its template adds."""
    machine = machine_facts.find(wanted["machineType"])
    added = sum(1 for disk in wanted.get("disks") or [] if disk.get("type") == "SCRATCH")
    return added + (machine.local_ssds if machine else 0)


def _gpu_check(config: Resource, wanted: Resource, driver: str, *, faulty: bool) -> Resource:
    """What the VM's look at its GPUs shows; a faulty one has lost the last of them."""
    names = [
        GPU_NAMES.get(kind, kind)
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
