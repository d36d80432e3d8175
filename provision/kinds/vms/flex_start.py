"""Flex start: the resize requests of a group, which new one a Create makes, waiting for them.

A group of flex start VMs grows only by resize requests. Google answers a request once, and
Terraform would create a request again that is in its configuration but that Google has forgotten.
So each request has a number that is never reused, requests that have ended are removed from the
state before a plan, and a Create only requests the VMs that are missing.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from provision import words
from provision.catalogue import limits
from provision.codes import Code
from provision.deployment.deployment import Deployment, ResizeRequestSpec
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import Alternatives, CapacityError, Problem, SettingsError, StillWaiting
from provision.google import refusals, resources
from provision.google.api import GoogleApi, GoogleApiError, Service
from provision.google.resources import GROUP, RESIZE_REQUEST
from provision.kinds import machines
from provision.kinds.vms import bake, variables
from provision.kinds.vms.instances import arguments
from provision.lifecycle import ownership, phases
from provision.lifecycle.phases import Phase
from provision.screens.layout import counted
from provision.spec.pools import Group

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.workspace import Workspace
    from provision.spec.cluster import VmSpec
    from provision.state.record import Record
    from provision.time.clock import Clock
    from provision.time.stages import Progress

_POLL: Final = 15.0
"""Poll interval for resize requests, in seconds of cloud time."""
_NOT_FOUND: Final = 404
_LEAVING: Final = frozenset({"DELETING", "ABANDONING"})
_STATES: Final[Mapping[str, str]] = {
    "CREATING": "is being created",
    "ACCEPTED": "is waiting in Google's queue",
    "SUCCEEDED": "was granted",
    "FAILED": "has failed",
    "CANCELLED": "was cancelled",
}


@dataclass(frozen=True, kw_only=True)
class ResizeRequest:
    """A resize request, as Google's API returns it."""

    name: str
    count: int  # the number of VMs that it asks for
    run_seconds: int  # the run duration of the VMs, in seconds
    state: str  # CREATING, ACCEPTED, SUCCEEDED, FAILED or CANCELLED
    created: float  # its creation time as a Unix timestamp; 0 if Google does not say
    # Google's errors: why it failed, or why the last attempt to grant it failed
    errors: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Make it from the API's document."""
        status = document.get("status", {})
        attempt = status.get("error") or status.get("lastAttempt", {}).get("error") or {}
        created = document.get("creationTimestamp")
        return cls(
            name=document["name"],
            count=int(document["resizeBy"]),
            run_seconds=int(document.get("requestedRunDuration", {}).get("seconds", 0)),
            state=document.get("state", "CREATING"),
            created=dt.datetime.fromisoformat(created).timestamp() if created else 0.0,
            errors=tuple(attempt.get("errors", [])),
        )

    @property
    def is_open(self) -> bool:
        """Whether Google may still grant it."""
        return self.state in {"CREATING", "ACCEPTED"}

    @property
    def is_refused(self) -> bool:
        """Whether it has ended without VMs."""
        return self.state in {"FAILED", "CANCELLED"}

    @property
    def words(self) -> str:
        """What it asks for and its state, as the beginning of a sentence."""
        what = "1 VM" if self.count == 1 else f"{self.count} VMs"
        how = _STATES.get(self.state, "is in an unknown state")
        return f"the request {self.name} for {what} {how} ({self.state})"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Google's words about why it failed or waits, each once."""
        return tuple(dict.fromkeys(map(refusals.words, self.errors)))

    @property
    def as_made(self) -> ResizeRequestSpec:
        """The request as Terraform's variable has it."""
        return ResizeRequestSpec(count=self.count, run_seconds=self.run_seconds)


def requests(api: GoogleApi, group: str) -> list[ResizeRequest]:
    """The resize requests of a group, by its path."""
    return [ResizeRequest.of(document) for document in api.resize_requests(group)]


# ------------------------------------------------------------------ before the plan


def prepare(
    cloud: Cloud, target: Deployment[VmSpec], workspace: Workspace
) -> tuple[Deployment[VmSpec], int]:
    """Decide on the resize requests, put them into the variables, drop ended ones from the state.

    The number of a new request is recorded before the request is made, so that a killed run does
    not lead to a second request of the same name. Plan changes neither state nor record: there,
    requests of the group that have ended stay until the next Create.
    """
    spec, kept = target.spec, cloud.folder.of_type(RESIZE_REQUEST.type)
    is_flex, mine = spec.group.mode.means.flex_start, group(spec)
    if gone := _over(cloud, kept, mine.path if is_flex else ""):
        workspace.forget(gone)
    if not is_flex:
        return target, 0
    found, record = requests(cloud.api, mine.path), cloud.folder.record()
    exists = cloud.api.find(Service.COMPUTE, mine.path) is not None
    instances = cloud.api.managed_instances(mine.project, mine.zone, mine.name) if exists else []
    asked, last, postponed = decide(
        mine,
        vms=present(instances, found),
        requests=found,
        prefix=spec.name_prefix,
        last=record.last_request if record else 0,
        run_seconds=spec.group.max_run_seconds or limits.LONGEST_RUN,
    )
    if workspace.live:
        ended = [
            address
            for address, attributes in kept.items()
            # A group in another zone is about to be replaced; its requests go before it.
            if attributes["name"] not in asked and str(attributes["zone"]).endswith(spec.zone)
        ]
        workspace.tool.forget(ended)
        if record is not None and last > record.last_request:
            cloud.folder.write_record(dataclasses.replace(record, last_request=last))
    else:
        in_state = {attributes["name"] for attributes in kept.values()}
        over = {one.name: one.as_made for one in found if one.name in in_state}
        asked = over | asked
    prepared = variables.with_requests(target, asked)
    workspace.tell(prepared)
    return prepared, postponed


def require_replaceable(spec: VmSpec) -> None:
    """See that running VMs can be replaced."""
    if spec.group.mode.means.flex_start:
        raise SettingsError(
            "--replace-vms can't replace flex start VMs",
            why="Google gives such VMs only by a new request, and neither updates nor recreates"
            " them",
            fix="run Destroy and Create; or, for VMs with a run duration, Create once it is over",
            setting="ENABLE_FLEX_START",
        )


def group(spec: VmSpec) -> Group:
    """The managed instance group of the VMs."""
    return Group.of(spec.project_id, spec.group)


def present(instances: Sequence[Mapping[str, Any]], requests: Sequence[ResizeRequest]) -> int:
    """The number of VMs in a group that are not part of an open request.

    While one is open, VMs that do not run yet may belong to it.
    """
    staying = [one for one in instances if one.get("currentAction") not in _LEAVING]
    if any(request.is_open for request in requests):
        staying = [one for one in staying if one.get("instanceStatus") == "RUNNING"]
    return len(staying)


def decide(  # noqa: PLR0913 - each is a fact of its own
    group: Group,
    *,
    vms: int,
    requests: Sequence[ResizeRequest],
    prefix: str,
    last: int,
    run_seconds: int,
) -> tuple[dict[str, ResizeRequestSpec], int, int]:
    """Decide which requests to keep and whether to make a new one; no group ever shrinks.

    Returns Terraform's variable, with at most one new request, the highest number of a request so
    far, and how many VMs are to be requested once the open requests have ended (rule M7).
    """
    open_ones = [request for request in requests if request.is_open]
    least = vms + sum(request.count for request in open_ones)
    missing = group.size - least
    if missing < 0:
        command = "gcloud compute instance-groups managed"
        asked = "".join(f", and {request.words}" for request in open_ones)
        names = ",".join(request.name for request in open_ones)
        raise SettingsError(
            f"INSTANCE_COUNT is {group.size}, but the group already has {vms} VMs{asked}",
            why="if this tool reduced the size of the group, Google would choose which VMs to"
            " delete",
            fix=(
                f"cancel requests with: {command} resize-requests cancel {arguments(group)}"
                f" --resize-requests={names}"
                if open_ones
                else f"delete VMs of your choice with: {command} delete-instances"
                f" {arguments(group)} --instances=NAMES, or wait until their run duration is over"
            )
            + f"; then run Create again, or set INSTANCE_COUNT to {least} or more",
            setting="INSTANCE_COUNT",
        )
    kept = {request.name: request.as_made for request in open_ones}
    ours = re.compile(rf"{re.escape(prefix)}-(\d+)")
    numbers = [int(found[1]) for one in requests if (found := ours.fullmatch(one.name))]
    last = max([last, *numbers])
    if not missing or open_ones:
        return kept, last, missing
    new = ResizeRequestSpec(count=missing, run_seconds=run_seconds)
    return {f"{prefix}-{last + 1}": new}, last + 1, 0


def _over(cloud: Cloud, kept: dict[str, dict[str, Any]], but: str) -> list[str]:
    """The addresses of requests in the state that have ended, but those of one group.

    Terraform would cancel them, as it goes by the state of when it last applied, and Google cancels
    none that has ended (rule M15). They go with their group. `but`: the path of the group on whose
    requests `decide` decides; "" for none.
    """
    found = []
    for address, attributes in kept.items():
        zone, name = (
            str(attributes[it]).rpartition("/")[2] for it in ("zone", "instance_group_manager")
        )
        path = f"projects/{attributes['project']}/zones/{zone}/{GROUP.look.collection}/{name}"
        if path == but:
            continue
        there = [it for it in requests(cloud.api, path) if it.name == attributes["name"]]
        if not any(it.is_open for it in there):
            found.append(address)
    return found


# ------------------------------------------------------------------ after the apply


def wait(
    api: GoogleApi, group: Group, names: Collection[str], *, timeout: float, progress: Progress
) -> None:
    """Wait until resize requests are granted."""
    with progress.stage(StageName.REQUESTS, OnInterrupt.STAYS_QUEUED) as stage:
        deadline = stage.deadline(timeout, _POLL)
        said = ""
        while True:
            with machines.checking(f"the resize requests of the group {group.name} are granted"):
                found = [one for one in requests(api, group.path) if one.name in names]
            refused = [it for one in found if one.is_refused for it in _refusals(group, one, api)]
            if refused:
                raise CapacityError.of(refused)
            waiting = [one for one in found if one.is_open]
            if not waiting:
                stage.counts(f"{len(found)} of {counted(len(names), 'request')} granted")
                return
            news = "; ".join(map(_in_short, waiting))
            # That a request gets older is no news, but the next sign of life says how old it is.
            aged = f"{_age(waiting, progress.clock)}: {news}"
            (stage.news if news != said else stage.counts)(aged)
            said = news
            if deadline.is_over:
                raise StillWaiting.of(
                    [_still(group, one, timeout, progress.clock, api) for one in waiting]
                )
            deadline.pause()


def explain(group: Group, request: ResizeRequest, api: GoogleApi, **texts: str) -> list[Problem]:
    """What Google's errors about a request mean, as far as that is known."""
    usual = {
        "after_stockout": "run Create again for a new request: machines may become available",
        "after_quota": "once it is granted, run Create again for a new request",
    }
    said = machines.RefusalTexts(words=request.words, **usual | texts)
    return machines.explain(group, request.errors, said, api)


def advice(group: Group, request: ResizeRequest, api: GoogleApi) -> str:
    """What can be done about a request that waits."""
    lines = ["nothing but waiting; Destroy gives it up, and Create waits for it again"]
    if any(refusals.of_error(it) in refusals.CAPACITY for it in request.errors):
        free = refusals.zones_available(request.errors)
        if free:
            lines.append(
                f"or set ZONE={free[0]}, where Google says that some are available now, and run"
                " Create --yes, which moves the group there"
            )
        zones = machines.other_zones(group.project, group.zone, group.machine_type, group.gpu, api)
        lines += machines.places_in_words(group.region, zones)
    return "\n".join(lines)


def _age(requests: Sequence[ResizeRequest], clock: Clock) -> str:
    created = min(request.created for request in requests)
    return f"For {words.duration(clock.since(created))}"


def _in_short(request: ResizeRequest) -> str:
    lines = [
        refusals.in_short(refusals.words(it), str(it.get("code", ""))) for it in request.errors
    ]
    return "; ".join(dict.fromkeys([request.words, *lines]))


def _refusals(group: Group, request: ResizeRequest, api: GoogleApi) -> list[Problem]:
    return explain(group, request, api) or [
        Problem(
            code=Code.CAPACITY_REFUSED,
            what=request.words[0].upper() + request.words[1:],
            why="\n".join(map(refusals.words, request.errors)) or "Google gives no reason",
            fix="run Create again to request the missing VMs, or Destroy to give up",
        )
    ]


def _still(
    group: Group, request: ResizeRequest, timeout: float, clock: Clock, api: GoogleApi
) -> Problem:
    after_quota = "once it is granted, Google fulfills the request"
    explained = explain(group, request, api, after_stockout="", after_quota=after_quota, end="")
    kept = (
        "everything is kept, and the request stays in Google's queue: run Create again to keep"
        " waiting, Status to look at it, or Destroy to give up; a higher CAPACITY_TIMEOUT waits"
        " longer"
    )
    # What does not pass by waiting is what a program has to know.
    lasting = [it.code for it in explained if it.code and not it.code.is_retryable]
    since = _age([request], clock).lower()
    return Problem(
        code=lasting[0] if lasting else Code.WAITING,
        setting="CAPACITY_TIMEOUT",
        what=f"After {timeout / 60:g} minutes, {request.words}, {since} in total",
        why="\n".join(request.reasons)
        or "Google does not say why; flex start grants all VMs of a request at once",
        fix="\n".join([kept, *(it.fix for it in explained)]),
        alternatives=Alternatives(
            zones=tuple(z for it in explained for z in it.alternatives.zones)
        ),
    )


# ------------------------------------------------------------------ before a Destroy


def release(context: Context, cloud: Cloud, record: Record) -> None:
    """Cancel the open resize requests: the deletion of a group would wait for them (rule M8).

    An image that is being made of a disk is waited for.
    """
    with phases.during(Phase.REMOVING, cloud, "Could not look at the images of the VM"):
        bake.settle(context, cloud, record)
    with (
        phases.during(Phase.REMOVING, cloud, "Could not cancel the open resize requests"),
        context.progress.stage(StageName.RELEASE, OnInterrupt.LEAVES_REST),
    ):
        # The deployment's groups, those that a killed run has left, too.
        owner = ownership.ours(record, cloud.folder.location)
        groups = cloud.api.marked(GROUP.look, record.project_id, owner)
        for path in sorted(set(map(resources.path_in_document, groups))):
            for request in requests(cloud.api, path):
                if not request.is_open:
                    continue
                context.console.progress(f"Cancelling: {request.words}")
                try:
                    cloud.api.cancel_resize_request(path, request.name)
                except GoogleApiError as error:
                    # It is no error if it has ended meanwhile (rule M15).
                    if error.code != _NOT_FOUND and "final state" not in error.message:
                        raise
