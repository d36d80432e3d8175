"""The VMs of a group that are of an older template: what differs, and how they get the new one.

A new template is for new VMs alone (OPPORTUNISTIC): running ones, with somebody's training on them,
are changed without a restart where Google can do that, and replaced only when somebody asks.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.catalogue import names
from provision.deployment.deployment import OutOfDate
from provision.documents.timeline import StageName
from provision.google.api import GoogleApiError, Service
from provision.google.resources import GROUP, path_in_document
from provision.kinds.vms import contents, instances, lost_accounts, metadata

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from provision.context import Cloud
    from provision.google.api import GoogleApi
    from provision.kinds.vms.instances import Seen
    from provision.kinds.vms.lost_accounts import LostAccount
    from provision.state.location import Place
    from provision.time.progress import Progress
    from provision.time.stages import OpenStage

_POLL: Final = 10.0
"""Seconds of cloud time between two looks at a group that replaces VMs."""
_LONGEST: Final = 1800.0
"""Seconds of cloud time that one share of the VMs may take."""
_AT_ONCE: Final = 4
"""VMs are replaced by a quarter of them at a time, so that most go on working."""
_NOT_SO: Final = 400
_FLEX_START: Final = "FLEX_START"
_MORE: Final = "what Google changes only by replacing it"


@dataclass(frozen=True)
class _Difference:
    """What a VM has otherwise than a template."""

    words: str  # what; of metadata never a value
    in_place: bool = False  # whether Google can change it while the VM runs, and the VM heeds that


def find(cloud: Cloud, place: Place) -> list[OutOfDate]:
    """The VMs that are of an older template than their group's, or of no account, by name."""
    seen = instances.see(cloud.api, place)
    return among(cloud.api, seen, lost_accounts.find(cloud, place, seen.documents))


def among(api: GoogleApi, seen: Seen, lost: Iterable[LostAccount] = ()) -> list[OutOfDate]:
    """The VMs that are of an older template than their group's, or of no account, by name.

    `api`: Google, for the template; it is asked only where there are such VMs.
    """
    older = _older(seen)
    without = {name: one.back for one in lost if one.others for name in one.vms}
    if not older and not without:
        return []
    _, template = _newest(api, seen.group)
    found = (
        _compared(vm, template, older.get(vm["name"], ""), without.get(vm["name"], ""))
        for vm in seen.documents
        if vm["name"] in older or vm["name"] in without
    )
    return sorted(found, key=lambda vm: vm.name)


def _older(seen: Seen) -> dict[str, str]:
    """VM -> its template, for each VM whose template is not its group's."""
    newest = template_of(seen.group or {})
    if not newest:
        return {}
    return {
        one["instance"].rpartition("/")[2]: template_of(one)
        for one in seen.members
        if "id" in one and template_of(one) not in {"", newest}
    }


def refresh(
    cloud: Cloud, place: Place, found: Sequence[OutOfDate], progress: Progress
) -> list[OutOfDate]:
    """Change what can be changed of running VMs; returns those that need more than that.

    What a VM is made of is not all told by Google, so it is Google who decides: an update that
    needs a restart or more is refused (compute v1, mostDisruptiveAllowedAction).
    """
    light = [vm for vm in found if vm.in_place]
    templates = sorted({vm.template for vm in light})
    for template in templates:  # one that needs more would have all others refused
        same = [vm for vm in light if vm.template == template]
        changes = sorted({one for vm in same for one in vm.differences})
        named = words.listed([vm.name for vm in same])
        with progress.stage(StageName.REFRESH) as stage:
            stage.news(f"Changing {'; '.join(changes)} of {named}, without a restart")
            _refresh(cloud.api, place, {vm.name for vm in same}, stage)
    still = {vm.name for vm in find(cloud, place)} if light else set()
    return [
        dataclasses.replace(vm, differences=(*vm.differences, _MORE)) if vm.in_place else vm
        for vm in found
        if not vm.in_place or vm.name in still
    ]


def _refresh(api: GoogleApi, place: Place, some: Collection[str], stage: OpenStage) -> None:
    group = names.GROUP.of(place.name_prefix)
    vms = {path_in_document(vm): vm for vm in _running(api, place) if vm["name"] in some}
    keeper = metadata.Keeper(api, vms)
    try:
        api.apply_updates(place.project_id, place.zone, group, some, action="REFRESH")
    except GoogleApiError as error:
        if error.code != _NOT_SO:
            raise
        return
    _await_new(api, place, group, some, stage)
    keeper.restore(_newest(api, _found(api, place))[1])


def replace(
    cloud: Cloud, place: Place, found: Sequence[OutOfDate], progress: Progress
) -> list[OutOfDate]:
    """Replace VMs, a few at a time; returns those that are not new in time."""
    group = names.GROUP.of(place.name_prefix)
    share = max(1, len(found) // _AT_ONCE)
    with progress.stage(StageName.REPLACEMENT) as stage:
        for start in range(0, len(found), share):
            some = [vm.name for vm in found[start : start + share]]
            stage.news(
                f"{start} of {len(found)} are new; replacing {words.listed(some)}, boot disks"
                " included"
            )
            cloud.api.apply_updates(place.project_id, place.zone, group, some, action="REPLACE")
            if not _await_new(cloud.api, place, group, some, stage):
                break
        else:
            stage.counts(f"{len(found)} of {len(found)} are new")
    return find(cloud, place)


def _await_new(
    api: GoogleApi, place: Place, group: str, wanted: Collection[str], stage: OpenStage
) -> bool:
    """Wait until a group has done with VMs what it was asked for; returns whether it has."""
    deadline = stage.deadline(_LONGEST, _POLL)
    while not _are_new(api, place, group, wanted):
        if deadline.is_over:
            return False
        deadline.pause()
    return True


def _are_new(api: GoogleApi, place: Place, group: str, wanted: Collection[str]) -> bool:
    members = api.managed_instances(place.project_id, place.zone, group)
    running = {
        one["instance"].rpartition("/")[2]
        for one in members
        if one.get("instanceStatus") == "RUNNING" and one.get("currentAction") == "NONE"
    }
    return running.issuperset(wanted)


def _running(api: GoogleApi, place: Place) -> list[dict[str, Any]]:
    base = names.INSTANCE.of(place.name_prefix)
    return api.named_instances(place.project_id, place.zone, base)


def _found(api: GoogleApi, place: Place) -> dict[str, Any] | None:
    """The group; None if there is none."""
    group = names.GROUP.of(place.name_prefix)
    at = GROUP.path(project=place.project_id, zone=place.zone, name=group)
    return api.find(GROUP.look.service, at)


def _newest(api: GoogleApi, group: Mapping[str, Any] | None) -> tuple[str, Mapping[str, Any]]:
    """The path and the properties of a group's template; "" and none if there is no group."""
    newest = template_of(group or {})
    document = api.find(Service.COMPUTE, newest) if newest else None
    return newest, (document or {}).get("properties", {})


def template_of(document: Mapping[str, Any]) -> str:
    """The path of the template of a group, or of one of its VMs; "" if it has none."""
    versions = document.get("versions") or [document.get("version") or {}]
    found = versions[0].get("instanceTemplate") or document.get("instanceTemplate")
    return path(str(found or ""))


def path(url: str) -> str:
    """The part of a URL from "projects/" on; the API gives the same thing with different hosts."""
    return "projects/" + url.partition("/projects/")[2] if "/projects/" in url else ""


def _compared(
    vm: Mapping[str, Any], template: Mapping[str, Any], made_from: str, back: str
) -> OutOfDate:
    """How a VM differs; `made_from` is "" for the same template, `back` for an account that is."""
    found = list(_differences(vm, template)) if made_from else []
    if back:
        found.append(_Difference("its service account, which was deleted"))
    return OutOfDate(
        name=vm["name"],
        template=made_from,
        differences=tuple(one.words for one in found) or ("its image, disk or network",),
        in_place=bool(found) and all(one.in_place for one in found),
        fix=contents.replacing(flex_start=_model(template) == _FLEX_START),
        instead=back,
    )


def _model(document: Mapping[str, Any]) -> object:
    return document.get("scheduling", {}).get("provisioningModel")


def _differences(vm: Mapping[str, Any], template: Mapping[str, Any]) -> Iterator[_Difference]:
    """What a VM has otherwise than a template."""
    machine, wanted = _last(vm.get("machineType")), _last(template.get("machineType"))
    if machine != wanted:
        yield _Difference(f"{machine} instead of {wanted}")
    # Google also lists the GPUs that a machine type brings, which no template attaches.
    attached = _gpus(template.get("guestAccelerators"))
    if attached and _gpus(vm.get("guestAccelerators")) != attached:
        yield _Difference("its attached GPUs")
    old, new = _model(vm), _model(template)
    if old != new:
        yield _Difference(f"{old} instead of {new}")
    if _policies(vm) != _policies(template):
        yield _Difference("its placement")
    if accounts(vm) != accounts(template):
        yield _Difference("its service account")
    keys = metadata.differing(vm, template)
    if keys.keys:
        only = "" if keys.in_place else " (read at its start only)"
        yield _Difference(f"metadata {', '.join(keys.keys)}{only}", in_place=keys.in_place)
    labels = _changed(vm.get("labels") or {}, template.get("labels") or {})
    if labels:
        yield _Difference(f"labels {', '.join(labels)}", in_place=True)


def _changed(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """The labels that have another value, or that only one has; Google's own do not count."""
    keys = {key for key in {**old, **new} if not key.startswith("goog-")}
    return sorted(key for key in keys if old.get(key) != new.get(key))


def _gpus(found: Sequence[Mapping[str, Any]] | None) -> dict[str, int]:
    return {_last(one["acceleratorType"]): int(one["acceleratorCount"]) for one in found or ()}


def _policies(document: Mapping[str, Any]) -> set[str]:
    return {url.rpartition("/")[2] for url in document.get("resourcePolicies") or ()}


def accounts(document: Mapping[str, Any]) -> list[str]:
    """The email addresses of the accounts of a VM or a template."""
    return [one.get("email", "") for one in document.get("serviceAccounts", [])]


def _last(url: object) -> str:
    return str(url or "").rpartition("/")[2]
