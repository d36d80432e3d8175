"""What Status tells of every kind of cluster: who changes it, and the end of its reservations."""

from __future__ import annotations

import datetime as dt
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.documents.status import About, EndedBy, Status
from provision.google.api import GoogleApiError
from provision.kinds import status
from provision.state.location import StateLocation
from provision.state.record import Record, Reserved
from provision.terraform.lock import Lock
from provision.time.clock import Clock

if TYPE_CHECKING:
    from pathlib import Path

    from provision.context import Cloud, Context
    from provision.deployment.kind import Kind
    from provision.spec.cluster import ClusterSpec

LOCK = Lock("gs://b/lock", "OperationTypeApply", "ann@laptop", "2026-11-22 09:00:00", "1-2")
RESERVED = {"np-mig": Reserved(reservation="projects/owner/reservations/r", bound=True)}


class Folder:
    """A state folder with a few resources, which somebody may be changing."""

    location = StateLocation("b", "np-deployment", is_default=False)

    def __init__(self, lock: Lock | None) -> None:
        self._lock = lock

    def lock(self) -> Lock | None:
        return self._lock

    def outputs(self) -> dict[str, Any]:
        share = {"name": "np-nfs", "path": "/data", "ip": "10.0.0.2", "share": "vol"}
        return {"filestores": [share], "dashboard": {"url": "https://dashboard"}}

    def addresses(self) -> set[str]:
        return {"module.b.thing.x", "module.a.thing.x"}

    def last_log(self) -> str | None:
        return None


class Api:
    """A Google with one reservation."""

    def __init__(self, end: str | None) -> None:
        self._end = end
        self.asked = ""

    def find(self, _service: object, path: str) -> dict[str, Any]:
        self.asked = path
        if self._end is None:
            raise GoogleApiError(403, "no", path)
        return {"deleteAtTime": self._end}


class AnyKind:
    """A kind whose clusters have nothing of their own to tell."""

    def status(self, *_arguments: object) -> Status:
        return Status(words="things")

    def page(self, _record: Record) -> tuple[str, str]:
        return "Things", "things/np"


def _look(lock: Lock | None = None, api: Api | None = None, **changes: Any) -> Status:
    texts = dict.fromkeys(("cluster_id", "tool_version", "terraform_version", "region"), "x")
    usual = {"kind": "mig", "project_id": "p", "name_prefix": "np", "zone": "us-central1-a"}
    record = Record(**cast("Any", texts | usual | changes))
    cloud = SimpleNamespace(folder=Folder(lock), api=api or Api(None))
    return status.look(
        cast("Context", SimpleNamespace(clock=Clock())),
        cast("Cloud", cloud),
        record,
        cast("Kind[ClusterSpec]", AnyKind()),
    )


def test_what_every_kind_has_is_told_beside_what_a_kind_has_of_its_own() -> None:
    found = _look()
    assert (found.kind, found.words, found.name, found.zone) == (
        "mig",
        "things",
        "np",
        "us-central1-a",
    )
    assert found.resources == ("module.a.thing.x", "module.b.thing.x")
    assert found.links["Things"] == "https://console.cloud.google.com/things/np?project=p"
    assert found.links["Dashboard"] == "https://dashboard"
    assert [share.ip for share in found.filestores] == ["10.0.0.2"]
    assert not found.is_pending


def test_a_run_that_holds_the_lock_is_waited_for_and_named() -> None:
    found = _look(LOCK)
    assert found.locked_by == "ann@laptop"
    (one,) = found.waiting
    assert one.about is About.LOCK
    assert "ann@laptop is changing it" in one.what
    assert "--break-lock 1-2" in one.advice
    assert found.is_pending


def test_the_end_of_a_reservation_is_asked_of_its_owner() -> None:
    api = Api("2097-01-01T00:00:00Z")
    (end,) = _look(api=api, reservations=RESERVED).ends
    assert api.asked == "projects/owner/zones/us-central1-a/reservations/r"
    assert (end.what, end.how, end.first) == (
        "the reservation r",
        EndedBy.RESERVATION,
        "2097-01-01T00:00:00Z",
    )


@pytest.mark.parametrize("end", [None, ""])
def test_a_reservation_without_an_end_or_that_may_not_be_read_is_left_out(end: str | None) -> None:
    assert _look(api=Api(end), reservations=RESERVED).ends == ()


def test_a_rehearsed_end_is_as_far_away_as_the_time_that_is_left_and_by_the_cloud_s_clock(
    tmp_path: Path,
) -> None:
    file = tmp_path / "clock"
    file.write_text("3600 1800003600")
    end = status.moment(7200, Clock(0.02, file))
    assert dt.datetime.fromisoformat(end).timestamp() == 1_800_000_000 + 7200
