"""What the provider refuses only when it plans, once more values are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rehearsal.provider.resource import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SCRATCH_SIZES_GB: Final = (375, 3000)
"""Sizes of a local SSD that the provider lets through."""
NVME_ONLY_GB: Final = 3000


def problem(type_name: str, plan: Mapping[str, Any]) -> str:
    """What is wrong with a plan.

    Returns the message that the provider gives, or "" when the plan passes.
    """
    check = CHECKS.get(type_name)
    return check(plan) if check else ""


def _firewall(plan: Mapping[str, Any]) -> str:
    sources = (plan[name] for name in ("source_ranges", "source_tags", "source_service_accounts"))
    if plan["direction"] == "EGRESS" or any(sources):
        return ""
    return "one of source_tags, source_ranges, or source_service_accounts must be defined"


def _template(plan: Mapping[str, Any]) -> str:
    if plan["disk"] is UNKNOWN:
        return ""
    found = (_template_disk(index, disk) for index, disk in enumerate(plan["disk"]))
    return next((message for message in found if message), "")


def _template_disk(index: int, disk: Mapping[str, Any]) -> str:
    # As in the provider, what is not known yet counts as not configured.
    disk = {name: "" if value is UNKNOWN else value for name, value in disk.items()}
    kind, size = disk["disk_type"] or "", disk["disk_size_gb"] or 0
    scratch, local = disk["type"] == "SCRATCH", kind == "local-ssd"
    rules = {
        "Only the first disk specified in instance_template can be the boot disk. "
        f"disk.{index}.boot was true": index > 0 and disk["boot"],
        "SCRATCH disks must have a disk_type of local-ssd. "
        f"disk {index} has disk_type {kind}": scratch and not local,
        "disks with a disk_type of local-ssd must be SCRATCH disks. "
        f"disk {index} is a {disk['type'] or ''} disk": local and not scratch,
        f"SCRATCH disks must be one of {list(SCRATCH_SIZES_GB)} GB, disk {index} is {size}": scratch
        and size not in SCRATCH_SIZES_GB,
        f"SCRATCH disks with a size of {NVME_ONLY_GB} GB must have an interface of NVME. "
        f"disk {index} has interface {disk['interface'] or ''}": (
            scratch and size == NVME_ONLY_GB and disk["interface"] != "NVME"
        ),
    }
    return next((message for message, broken in rules.items() if broken), "")


CHECKS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "google_compute_firewall": _firewall,
    "google_compute_instance_template": _template,
}
"""Refusals by resource type."""
