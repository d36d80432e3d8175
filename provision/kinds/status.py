"""The status of a deployment, and when its machines end, as every kind of cluster tells it.

Nothing is written and no lock is taken.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.documents import json_object
from provision.documents.status import (
    About,
    End,
    EndedBy,
    Filestore,
    LockHolder,
    Status,
    Trouble,
    Waiting,
)
from provision.google.api import GoogleApiError, Service
from provision.screens.layout import counted
from provision.settings.resource_paths import ReservationPath

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.kind import Kind
    from provision.spec.cluster import ClusterSpec
    from provision.state.record import Record
    from provision.terraform.lock import Lock
    from provision.time.clock import Clock

_CONSOLE: Final = "https://console.cloud.google.com"
_SHARE: Final = ("name", "path", "ip", "share")
_HALF_WAY: Final = Trouble(
    about=About.CLUSTER,
    what="a Destroy began and stopped half-way",
    why=("what is left of it, listed with --full, may be billed",),
    fix="run Destroy again to remove the rest, or Create to make the cluster again",
)


def look(
    context: Context,
    cloud: Cloud,
    record: Record,
    kind: Kind[ClusterSpec],
    before: Status | None = None,
) -> Status:
    """Collect the status of a deployment.

    `before`: what an earlier look of this run returned; None for the first one.
    """
    outputs = cloud.folder.outputs()
    lock = cloud.folder.lock()
    found = kind.status(context, cloud, record, before)
    if record.removing:
        # What is missing was removed by this program, and by nobody else.
        found = dataclasses.replace(found, trouble=() if lock else (_HALF_WAY,))
    return dataclasses.replace(
        found,
        kind=record.kind,
        name=record.name_prefix,
        project=record.project_id,
        cluster_id=record.cluster_id,
        zone=record.zone,
        waiting=(*([_changing(lock)] if lock else []), *found.waiting),
        ends=(*found.ends, *_reservations(context, cloud, record)),
        locked_by=lock.who if lock else None,
        lock=LockHolder(who=lock.who, operation=lock.operation, since=lock.created, id=lock.id)
        if lock
        else None,
        resources=tuple(sorted(cloud.folder.addresses())),
        filestores=tuple(
            Filestore(**{name: json_object.text(it.get(name)) for name in _SHARE})
            for it in json_object.objects(outputs.get("filestores"))
        ),
        links=_links(record, kind, outputs),
        last_log=cloud.folder.last_log(),
        state=cloud.folder.location.url,
    )


def _changing(lock: Lock) -> Waiting:
    return Waiting(
        about=About.LOCK,
        what=f"{lock.who} is changing it since {lock.created}",
        why=(lock.operation,),
        advice="if you are sure that this run is dead, run its action again with"
        f" --break-lock {lock.id}",
    )


def _links(record: Record, kind: Kind[ClusterSpec], outputs: Mapping[str, Any]) -> dict[str, str]:
    """Pages of the Google Cloud console: title -> URL."""
    project = f"project={record.project_id}"
    title, page = kind.page(record)
    links = {
        title: f"{_CONSOLE}/{page}?{project}",
        "Bucket": f"{_CONSOLE}/storage/browser?{project}",
        "Quotas": f"{_CONSOLE}/iam-admin/quotas?{project}",
    }
    dashboard = json_object.text(json_object.inner(outputs.get("dashboard")).get("url"))
    return links | ({"Dashboard": dashboard} if dashboard else {})


# ------------------------------------------------------------------ when machines end


def moment(seconds: float, clock: Clock) -> str:
    """The time so many seconds of cloud time from now, in RFC 3339 format."""
    then = dt.datetime.fromtimestamp(clock.now() + seconds, dt.UTC)
    return then.isoformat(timespec="seconds").replace("+00:00", "Z")


def run_ends(remaining: Sequence[int], noun: str, clock: Clock) -> list[End]:
    """The end of machines that have these seconds of cloud time left; empty if there are none."""
    if not remaining:
        return []
    first, last = min(remaining), max(remaining)
    return [
        End(
            what=counted(len(remaining), noun),
            how=EndedBy.RUN,
            first=moment(first, clock),
            last=moment(last, clock),
            first_seconds=first,
            last_seconds=last,
        )
    ]


def never_ends(count: int, noun: str, more: str = "") -> End:
    """That machines have no end of their own."""
    return End(what=counted(count, noun), how=EndedBy.NEVER, words=more)


def ends_after(count: int, noun: str, seconds: int) -> End:
    """The end of machines that have been requested, and may run for so long in cloud time."""
    return End(
        what=f"{counted(count, noun)} to come",
        how=EndedBy.RUN,
        words=f"each {words.duration(seconds)} after it came",
    )


def _reservations(context: Context, cloud: Cloud, record: Record) -> Iterator[End]:
    """The ends of the reservations that machines come from, as far as Google tells them."""
    named = {one.reservation for one in record.reservations.values()}
    named.add(str(record.settings.get("RESERVATION_NAME") or ""))
    for text in sorted(named - {""}):
        path = ReservationPath.parse(text)
        if path is None:
            continue
        owner = path.owner(record.project_id)
        url = f"projects/{owner}/zones/{record.zone}/reservations/{path.name}"
        try:
            end = str((cloud.api.find(Service.COMPUTE, url) or {}).get("deleteAtTime") or "")
        except GoogleApiError:
            continue  # its owner lets nobody know
        if end:
            left = int(context.clock.until(dt.datetime.fromisoformat(end).timestamp()))
            yield End(
                what=f"the reservation {path.name}",
                how=EndedBy.RESERVATION,
                first=end,
                last=end,
                first_seconds=left,
                last_seconds=left,
                words="machines that are bound to it are deleted with it",
            )
