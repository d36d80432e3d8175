"""What the VMs of a group are made of: what is older than their template, or there no longer.

VMs whose service account was deleted or disabled run, and may do nothing at Google.

A new template is for new VMs alone (OPPORTUNISTIC): running ones, with somebody's training on them,
are changed without a restart where Google can do that, and replaced only when somebody asks.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.catalogue import names
from provision.codes import Code
from provision.deployment.deployment import Held, OutOfDate
from provision.documents import json_object
from provision.documents.timeline import StageName
from provision.errors import ClusterError, Problem
from provision.google import service_accounts
from provision.google.api import GoogleApi, GoogleApiError, Service
from provision.google.lists import Lists
from provision.google.resources import last, path_in_document
from provision.google.service_accounts import Standing
from provision.kinds.status import alike
from provision.kinds.vms import agent, contents, instances
from provision.screens.layout import counted
from provision.settings import pairs as reserved

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from provision.context import Cloud
    from provision.state.location import Place
    from provision.time.stages import OpenStage, Progress

_POLL: Final = 10.0
"""Seconds of cloud time between two looks at a group that replaces VMs."""
_LONGEST: Final = 1800.0
"""Seconds of cloud time that one share of the VMs may take."""
_SHARES: Final = 4
"""VMs are replaced by a quarter of them at a time, so that most go on working."""
_NOT_SO: Final = 400
_MORE: Final = "what Google changes only by replacing it"


def find(cloud: Cloud, place: Place) -> list[OutOfDate]:
    """The VMs that are of an older template than their group's, or of no account, by name."""
    seen = instances.see(cloud.api, place)
    return among(cloud.api, place, seen, without_account(cloud, place, seen.documents))


def among(
    api: GoogleApi, place: Place, seen: instances.Seen, lost: Iterable[LostAccount] = ()
) -> list[OutOfDate]:
    """The VMs that are of an older template than their group's, or of no account, by name."""
    newest = template_of(seen.group or {})
    older = {
        last(one["instance"]): made_from
        for one in seen.members
        if newest and "id" in one and (made_from := template_of(one)) not in {"", newest}
    }
    without = {name: one.back for one in lost if one.others for name in one.vms}
    if not older and not without:
        return []
    template = _properties(api, newest)
    there = [vm["name"] for vm in seen.documents]
    whole = api.whole_instances(place.project_id, place.zone, [it for it in there if it in older])
    found = [
        _compared(vm, template, older[vm["name"]], without.get(vm["name"], "")) for vm in whole
    ]
    found += [
        _compared({"name": name}, template, "", back)
        for name, back in without.items()
        if name in there and name not in older
    ]
    return sorted(found, key=lambda vm: vm.name)


def held(seen: instances.Seen, *, older: bool) -> Held:
    """The templates, the placement policies and the accounts that the VMs of a group hold.

    A VM that is made again is made of its own template (compute v1, "About repairing VMs", read in
    2026-11), so a member holds that also while it does not exist. `older`: whether only those count
    that are not of the group's newest template.
    """
    newest = template_of(seen.group or {}) if older else None
    templates = {
        last(one["instance"]): made_from
        for one in seen.members
        if (made_from := template_of(one)) != newest
    }
    documents = [one for one in seen.documents if one["name"] in templates]
    policies = (url for one in documents for url in one.get("resourcePolicies") or ())
    return Held(
        paths=frozenset({*templates.values(), *map(_path, policies)} - {""}),
        accounts=frozenset(email for one in documents for email in _accounts(one)),
    )


# ------------------------------------------------------------------ getting the new template


def refresh(
    cloud: Cloud, place: Place, found: Sequence[OutOfDate], progress: Progress
) -> list[OutOfDate]:
    """Change what can be changed of running VMs; returns those that need more than that.

    What a VM is made of is not all told by Google, so it is Google who decides: an update that
    needs a restart or more is refused (compute v1, mostDisruptiveAllowedAction).
    """
    light = [vm for vm in found if vm.in_place]
    for template in sorted({vm.template for vm in light}):
        # One that needs more would have all others refused.
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
    running = api.whole_instances(place.project_id, place.zone, sorted(some))
    keeper = Keeper(api, ((path_in_document(vm), vm) for vm in running))
    group = names.GROUP.of(place.name_prefix)
    try:
        api.apply_updates(place.project_id, place.zone, group, some, action="REFRESH")
    except GoogleApiError as error:
        if error.code != _NOT_SO:
            raise
        return
    _await_new(api, place, some, stage)
    found = api.find(Service.COMPUTE, instances.group_path(place))
    keeper.restore(_properties(api, template_of(found or {})))


def replace(
    cloud: Cloud, place: Place, found: Sequence[OutOfDate], progress: Progress
) -> list[OutOfDate]:
    """Replace VMs, a few at a time; returns those that are not new in time."""
    group = names.GROUP.of(place.name_prefix)
    share = max(1, len(found) // _SHARES)
    with progress.stage(StageName.REPLACEMENT) as stage:
        for start in range(0, len(found), share):
            some = [vm.name for vm in found[start : start + share]]
            stage.news(
                f"{start} of {len(found)} are new; replacing {words.listed(some)}, boot disks"
                " included"
            )
            cloud.api.apply_updates(place.project_id, place.zone, group, some, action="REPLACE")
            if not _await_new(cloud.api, place, some, stage):
                break
        else:
            stage.counts(f"{len(found)} of {len(found)} are new")
    return find(cloud, place)


def _await_new(api: GoogleApi, place: Place, wanted: Collection[str], stage: OpenStage) -> bool:
    """Whether the group has done with VMs what it was asked for, in time."""
    group = names.GROUP.of(place.name_prefix)
    deadline = stage.deadline(_LONGEST, _POLL)
    while True:
        running = {
            last(one["instance"])
            for one in api.managed_instances(place.project_id, place.zone, group)
            if one.get("instanceStatus") == "RUNNING" and one.get("currentAction") == "NONE"
        }
        if running.issuperset(wanted):
            return True
        if deadline.is_over:
            return False
        deadline.pause()


# ------------------------------------------------------------------ what differs


@dataclass(frozen=True)
class _Difference:
    """What a VM has otherwise than a template."""

    words: str  # what; of metadata never a value
    in_place: bool = False  # whether Google can change it while the VM runs, and the VM heeds that


def template_of(document: Mapping[str, Any]) -> str:
    """The path of the template of a group, or of one of its VMs; "" if it has none."""
    versions = document.get("versions") or [document.get("version") or {}]
    found = versions[0].get("instanceTemplate") or document.get("instanceTemplate")
    return _path(str(found or ""))


def _path(url: str) -> str:
    """The part of a URL from "projects/" on; the API gives the same thing with different hosts."""
    return "projects/" + url.partition("/projects/")[2] if "/projects/" in url else ""


def _properties(api: GoogleApi, template: str) -> Mapping[str, Any]:
    """The properties of a template; none if there is no group that has one."""
    document = api.find(Service.COMPUTE, template) if template else None
    return json_object.inner((document or {}).get("properties"))


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
        fix=contents.replacing(flex_start=_model(template) == "FLEX_START"),
        instead=back,
    )


def _differences(vm: Mapping[str, Any], template: Mapping[str, Any]) -> Iterator[_Difference]:
    machine, wanted = last(vm.get("machineType")), last(template.get("machineType"))
    if machine != wanted:
        yield _Difference(f"{machine} instead of {wanted}")
    # Google also lists the GPUs that a machine type brings, which no template attaches.
    attached = _gpus(template.get("guestAccelerators"))
    if attached and _gpus(vm.get("guestAccelerators")) != attached:
        yield _Difference("its attached GPUs")
    old, new = _model(vm), _model(template)
    if old != new:
        yield _Difference(f"{old} instead of {new}")
    had, has = ({last(it) for it in one.get("resourcePolicies") or ()} for one in (vm, template))
    if had != has:
        yield _Difference("its placement")
    if _accounts(vm) != _accounts(template):
        yield _Difference("its service account")
    if keys := differing(vm, template):
        in_place = not any(
            key in _AT_START or (key.startswith(reserved.OWN_METADATA) and key != _USERS)
            for key in keys
        )
        only = "" if in_place else " (read at its start only)"
        # The list of keys differs with them; alone it does where an older version made the VM.
        named = sorted(keys - {_USERS} or keys)
        yield _Difference(f"metadata {', '.join(named)}{only}", in_place=in_place)
    before, after = vm.get("labels") or {}, template.get("labels") or {}
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    # Google's own do not count.
    if labels := sorted(key for key in changed if not key.startswith("goog-")):
        yield _Difference(f"labels {', '.join(labels)}", in_place=True)


def _model(document: Mapping[str, Any]) -> object:
    return document.get("scheduling", {}).get("provisioningModel")


def _gpus(found: Sequence[Mapping[str, Any]] | None) -> dict[str, int]:
    return {last(one["acceleratorType"]): int(one["acceleratorCount"]) for one in found or ()}


def _accounts(document: Mapping[str, Any]) -> list[str]:
    return [one.get("email", "") for one in document.get("serviceAccounts", [])]


# ------------------------------------------------------------------ metadata

# Anybody who may change a VM can write into its metadata, such as `gcloud compute ssh` its keys,
# and so does Google. What is not ours is left alone.
_USERS: Final = "aiinfra-metadata-keys"
"""The key under which a template lists the keys of METADATA (`terraform/modules/gpu-mig`)."""
_GOOGLES: Final = frozenset({"instance-template", "created-by", "proxy-url"})
"""Google adds these to the VMs of a group."""
_AT_START: Final = frozenset(
    {*reserved.RESERVED_METADATA, "install-nvidia-driver", "user-data"}
    - {"enable-guest-attributes"}
)
"""What a VM reads when it starts, and not again; so it does with our own keys."""
_AT_ONCE: Final = 8
"""VMs that are changed at the same time."""

Keys = dict[str, str]


def differing(vm: Mapping[str, Any], template: Mapping[str, Any]) -> set[str]:
    """The keys of ours that a VM has otherwise than a template."""
    now, wanted = _read(vm), _read(template)
    return {key for key in _ours(now) | wanted.keys() if now.get(key) != wanted.get(key)}


class Keeper:
    """Keeps what others have added to the metadata of VMs, whatever an update makes of it.

    Google says that an update of a group's VMs gives them a template's metadata, and not what
    becomes of the rest (Compute Engine, InstanceGroupManagerUpdatePolicy, 2026-09-01).
    """

    def __init__(self, api: GoogleApi, vms: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        self._api = api
        self._before = {path: _read(vm) for path, vm in vms}

    def restore(self, template: Mapping[str, Any]) -> None:
        """Give the VMs a template's metadata, beside what is not ours."""
        wanted = _read(template)

        def one(path: str) -> None:
            before = self._before[path]

            def change(now: Keys) -> Keys:
                ours = _ours(before) | _ours(now)
                added = {key: value for key, value in {**before, **now}.items() if key not in ours}
                return {**added, **wanted}

            self._api.change_metadata(path, change)

        with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(one, self._before))


def _ours(keys: Mapping[str, str]) -> set[str]:
    """Those keys of a VM that one of our templates has given it."""
    listed = filter(None, keys.get(_USERS, "").split(","))
    own = {
        key
        for key in keys
        if key in reserved.RESERVED_METADATA or key.startswith(reserved.OWN_METADATA)
    }
    return own | {*listed} - _GOOGLES


def _read(document: Mapping[str, Any]) -> Keys:
    items = document.get("metadata", {}).get("items", [])
    return {one["key"]: one.get("value", "") for one in items}


# ------------------------------------------------------------------ without an account

# Google shows of a VM the address of its account, and one that is made by the same address is
# another (IAM, "Delete and undelete service accounts"). So VMs say in their roster whose tokens
# they get.
_FEW: Final = 3
_GIVES: Final = "run Create: it gives the account its role again"
_WITHOUT_ROLE: Final = (
    "VMs say there that they live, and read what they are to do, in {}; by the bucket's own roles"
    " the account may not write there, so no job begins on them"
)


@dataclass(frozen=True, kw_only=True)
class LostAccount:
    """An account that is not there any more, and the VMs that act as it."""

    vms: tuple[str, ...]  # their names
    what: str  # what has become of it, in a sentence
    back: str  # what brings it back
    others: str = ""  # what gives VMs another one; "" where that would be the same one
    why: str = "they get no token: no job, task, bucket or secret is within their reach"
    code: Code = Code.ACCOUNT_GONE

    @property
    def problem(self) -> Problem:
        """It as a problem."""
        more = f"\nor {self.others}, for VMs that act as another one" if self.others else ""
        return Problem(code=self.code, what=self.what, why=self.why, fix=self.back + more)


def without_account(
    cloud: Cloud,
    place: Place,
    documents: Iterable[Mapping[str, Any]],
    said: Mapping[str, str] | None = None,
) -> Sequence[LostAccount]:
    """The accounts of VMs that are gone, as far as these credentials may read them.

    `said`: what VMs have said of the numbers of theirs; None for what they say now.
    """
    every = ((it["email"], vm) for vm in documents for it in vm.get("serviceAccounts") or ())
    of_email = alike(every, lambda it: it[0])
    if said is None:
        said = agent.accounts(cloud.folder) if of_email else {}
    return [
        one
        for email, them in of_email.items()
        for one in _lost(cloud, place, email, [vm for _, vm in them], said)
    ]


def without_role(
    cloud: Cloud, documents: Iterable[Mapping[str, Any]], silent: Collection[str]
) -> Sequence[LostAccount]:
    """The accounts of VMs that are not heard of, where it is for lack of the role to say so."""
    every = ((it["email"], vm) for vm in documents for it in vm.get("serviceAccounts") or ())
    of_email = alike((it for it in every if it[1]["name"] in silent), lambda it: it[0])
    return [
        dataclasses.replace(
            _of([vm for _, vm in them], f"as {email}, which has no role on {agent.FOLDER}", _GIVES),
            why=_WITHOUT_ROLE.format(cloud.folder.location.url),
            code=Code.PERMISSION_MISSING,
        )
        for email, them in of_email.items()
        if cloud.folder.shares_with(email, agent.FOLDER) is False
    ]


def require_accounts(
    cloud: Cloud,
    place: Place,
    documents: Iterable[Mapping[str, Any]],
    said: Mapping[str, str] | None = None,
) -> None:
    """See that the accounts of all VMs are there; `said` as above."""
    lost = without_account(cloud, place, documents, said)
    if lost:
        raise ClusterError.of([one.problem for one in lost])


def _lost(
    cloud: Cloud,
    place: Place,
    email: str,
    vms: Sequence[Mapping[str, Any]],
    said: Mapping[str, str],
) -> Iterable[LostAccount]:
    """What is known of an account; `said`: what VMs have said of the numbers of theirs."""
    project = service_accounts.project_of(email, place.project_id, cloud.project_number)
    if not project:
        return
    account = (cloud.lists or Lists(cloud.api)).account(email, project)
    is_gone = account.standing is Standing.GONE
    if account.standing is Standing.HIDDEN:
        return  # not known
    if account.standing is Standing.DISABLED:
        yield _of(vms, f"as {email}, a service account that {account.fate}", account.back())
        return
    of_number = alike(vms, lambda vm: said.get(str(vm.get("id")), ""))
    if not is_gone:
        for own in ("", account.number):
            of_number.pop(own, None)
    is_flex = any(it.get("scheduling", {}).get("provisioningModel") == "FLEX_START" for it in vms)
    others = contents.replacing(flex_start=is_flex)
    if is_gone and not email.startswith(f"{names.SERVICE_ACCOUNT.of(place.name_prefix)}@"):
        others = f"SERVICE_ACCOUNT=dedicated and {others}"
    another = "" if is_gone else "; the one that has its address now is another"
    for number, them in of_number.items():
        yield _of(
            them,
            f"as {email}, a service account that was deleted{another}",
            account.back(number),
            others,
        )


def _of(vms: Sequence[Mapping[str, Any]], how: str, back: str, others: str = "") -> LostAccount:
    named = tuple(sorted(vm["name"] for vm in vms))
    who = words.listed(named) if len(named) <= _FEW else counted(len(named), "VM")
    acts = "acts" if len(named) == 1 else "act"
    return LostAccount(vms=named, what=f"{who} {acts} {how}", back=back, others=others)
