"""The VMs of a group that are of an older template: what differs, and how they get the new one.

A new template is for new VMs alone (OPPORTUNISTIC): running ones, with somebody's training on them,
are changed without a restart where Google can do that, and replaced only when somebody asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.catalogue import names
from provision.deployment.deployment import OutOfDate
from provision.documents.timeline import StageName
from provision.google.api import Service
from provision.google.resources import GROUP

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.google.api import GoogleApi
    from provision.state.location import Place
    from provision.time.progress import Progress

_POLL: Final = 10.0
"""Seconds of cloud time between two looks at a group that replaces VMs."""
_LONGEST: Final = 1800.0
"""Seconds of cloud time that one share of the VMs may take."""
_AT_ONCE: Final = 4
"""VMs are replaced by a quarter of them at a time, so that most go on working."""
_LABELS: Final = "labels"


def find(api: GoogleApi, place: Place) -> list[OutOfDate]:
    """The VMs that are of an older template than their group's, by name.

    Args:
        api: Google.
        place: Where they are.
    """
    group = names.GROUP.of(place.name_prefix)
    zone = f"projects/{place.project_id}/zones/{place.zone}"
    found = api.find(GROUP.look.service, f"{zone}/instanceGroupManagers/{group}")
    newest = _path(_template_of(found or {}))
    if not newest:
        return []
    members = api.managed_instances(place.project_id, place.zone, group)
    older = {
        one["instance"].rpartition("/")[2]
        for one in members
        if "id" in one and _path(_template_of(one)) not in {"", newest}
    }
    if not older:
        return []
    template = (api.find(Service.COMPUTE, newest) or {}).get("properties", {})
    vms = api.named_instances(place.project_id, place.zone, names.INSTANCE.of(place.name_prefix))
    return sorted(
        (_compared(vm, template) for vm in vms if vm["name"] in older), key=lambda vm: vm.name
    )


def refresh(api: GoogleApi, place: Place, found: Sequence[OutOfDate]) -> list[OutOfDate]:
    """Give those their new labels that differ in nothing else; returns the others."""
    light = [vm.name for vm in found if vm.in_place]
    if light:
        group = names.GROUP.of(place.name_prefix)
        api.apply_updates(place.project_id, place.zone, group, light, action="REFRESH")
    return [vm for vm in found if not vm.in_place]


def replace(
    api: GoogleApi, place: Place, found: Sequence[OutOfDate], progress: Progress
) -> list[OutOfDate]:
    """Make VMs anew, a few at a time; returns those that are not new in time.

    Args:
        api: Google.
        place: Where they are.
        found: The VMs.
        progress: The run's clock and voice.
    """
    group = names.GROUP.of(place.name_prefix)
    share = max(1, len(found) // _AT_ONCE)
    with progress.stage(StageName.REPLACEMENT) as stage:
        for start in range(0, len(found), share):
            some = [vm.name for vm in found[start : start + share]]
            stage.news(
                f"{start} of {len(found)} are new; replacing {words.listed(some)}, boot disks"
                " included"
            )
            api.apply_updates(place.project_id, place.zone, group, some, action="REPLACE")
            deadline = stage.deadline(_LONGEST, _POLL)
            while not _are_new(api, place, group, some):
                if deadline.is_over:
                    return find(api, place)
                deadline.pause()
        stage.counts(f"{len(found)} of {len(found)} are new")
    return find(api, place)


def _are_new(api: GoogleApi, place: Place, group: str, wanted: Sequence[str]) -> bool:
    members = api.managed_instances(place.project_id, place.zone, group)
    running = {
        one["instance"].rpartition("/")[2]
        for one in members
        if one.get("instanceStatus") == "RUNNING" and one.get("currentAction") == "NONE"
    }
    return running.issuperset(wanted)


def _template_of(document: Mapping[str, Any]) -> str:
    """The template of a group, or of one of its VMs."""
    versions = document.get("versions") or [document.get("version") or {}]
    return str(versions[0].get("instanceTemplate") or document.get("instanceTemplate") or "")


def _path(url: str) -> str:
    """The part of a URL from "projects/" on; the API gives the same thing with different hosts."""
    return "projects/" + url.partition("/projects/")[2] if "/projects/" in url else ""


def _compared(vm: Mapping[str, Any], template: Mapping[str, Any]) -> OutOfDate:
    found = list(_differences(vm, template))
    return OutOfDate(
        name=vm["name"],
        differences=tuple(found) or ("its image, disk or network",),
        in_place=bool(found) and all(one.startswith(_LABELS) for one in found),
    )


def _differences(vm: Mapping[str, Any], template: Mapping[str, Any]) -> Iterator[str]:
    """What a VM has differently from a template, in words; of metadata never a value."""
    machine, wanted = _last(vm.get("machineType")), _last(template.get("machineType"))
    if machine != wanted:
        yield f"{machine} instead of {wanted}"
    # Google also lists the GPUs that a machine type brings, which no template attaches.
    attached = _gpus(template.get("guestAccelerators"))
    if attached and _gpus(vm.get("guestAccelerators")) != attached:
        yield "its attached GPUs"
    model = "provisioningModel"
    old, new = vm.get("scheduling", {}).get(model), template.get("scheduling", {}).get(model)
    if old != new:
        yield f"{old} instead of {new}"
    if _accounts(vm) != _accounts(template):
        yield "its service account"
    changed = _changed(_metadata(vm), _metadata(template))
    if changed:
        yield f"metadata {', '.join(changed)}"
    labels = _changed(vm.get("labels") or {}, template.get("labels") or {})
    if labels:
        yield f"{_LABELS} {', '.join(labels)}"


def _changed(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """The keys that have another value, or that only one has; Google's own do not count."""
    keys = {key for key in {**old, **new} if not key.startswith("goog-")}
    return sorted(key for key in keys if old.get(key) != new.get(key))


def _metadata(document: Mapping[str, Any]) -> dict[str, str]:
    items = document.get("metadata", {}).get("items", [])
    # Google adds these to the VMs of a group.
    own = {"instance-template", "created-by", "proxy-url"}
    return {one["key"]: one.get("value", "") for one in items if one["key"] not in own}


def _gpus(found: Sequence[Mapping[str, Any]] | None) -> dict[str, int]:
    return {_last(one["acceleratorType"]): int(one["acceleratorCount"]) for one in found or ()}


def _accounts(document: Mapping[str, Any]) -> list[str]:
    return [one.get("email", "") for one in document.get("serviceAccounts", [])]


def _last(url: object) -> str:
    return str(url or "").rpartition("/")[2]
