"""Waiting for what an ended run had asked for: only for what is ours, and not for ever."""

import threading
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.google.api import GoogleApi, GoogleApiError
from provision.google.resources import FILESTORE, Look
from provision.lifecycle import exclusive
from provision.time import deadline
from provision.time.clock import Clock
from provision.time.stages import Progress

PLACE = SimpleNamespace(
    project_id="p", region="us-central1", zone="us-central1-a", name_prefix="np", hosts=()
)
AT_ONCE = Clock(0)


def _operation(target: str) -> dict[str, Any]:
    return {
        "operationType": "delete",
        "targetLink": f"https://google/compute/v1/projects/p/{target}",
    }


GROUP = _operation("zones/us-central1-a/instanceGroupManagers/np-mig")


class Api:
    """Answers one round of lists after another."""

    def __init__(
        self,
        *rounds: dict[str, list[dict[str, Any]]],
        filestores: tuple[list[dict[str, Any]], ...] = ([],),
        clusters: tuple[list[dict[str, Any]], ...] = ([],),
    ) -> None:
        self.rounds = list(rounds)
        self.clusters = list(clusters)
        self.shares = list(filestores)
        self.asked: list[str] = []

    def unfinished(self, _project: str, scope: str) -> list[dict[str, Any]]:
        number = self.asked.count(scope)
        self.asked.append(scope)
        return self.rounds[min(number, len(self.rounds) - 1)].get(scope, [])

    def cluster_operations(self, _project: str, location: str) -> list[dict[str, Any]]:
        assert location == "us-central1"
        return self.clusters.pop(0) if len(self.clusters) > 1 else self.clusters[0]

    def listed(self, look: Look, _project: str) -> list[dict[str, Any]]:
        assert look is FILESTORE.look
        return self.shares.pop(0) if len(self.shares) > 1 else self.shares[0]


def _wait(api: object, *places: object) -> list[str]:
    said: list[str] = []
    where = cast("Any", places or (PLACE,))
    exclusive.wait_for_earlier_run(cast("GoogleApi", api), where, Progress(AT_ONCE, said.append))
    return said


def test_all_is_asked_at_the_same_time() -> None:
    together = threading.Barrier(5, timeout=10)

    class Meeting(Api):
        def unfinished(self, project: str, scope: str) -> list[dict[str, Any]]:
            together.wait()
            return super().unfinished(project, scope)

        def cluster_operations(self, project: str, location: str) -> list[dict[str, Any]]:
            together.wait()
            return super().cluster_operations(project, location)

        def listed(self, look: Look, project: str) -> list[dict[str, Any]]:
            together.wait()
            return super().listed(look, project)

    assert _wait(Meeting({})) == []


def test_a_group_that_is_being_deleted_is_waited_for_and_told_once() -> None:
    zone = {"zones/us-central1-a": [GROUP]}
    api = Api(zone, zone, {})
    assert _wait(api) == ["Waiting for operations of an earlier run: delete np-mig"]
    assert Counter(api.asked) == {"global": 3, "regions/us-central1": 3, "zones/us-central1-a": 3}


def test_it_goes_on_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "_SHORTEST", 0.1)
    assert len(_wait(Api({"zones/us-central1-a": [GROUP]}))) == 1


def _share(name: str, state: str) -> dict[str, Any]:
    return {"name": f"projects/p/locations/us-central1/instances/{name}", "state": state}


def _cluster_operation(target: str) -> dict[str, Any]:
    link = f"https://google/container/v1/projects/1/locations/us-central1/clusters/{target}"
    return {"operationType": "CREATE_NODE_POOL", "targetLink": link}


class Refusing(GoogleApi):
    def __init__(self, code: int) -> None:
        self.code = code

    def pages(self, *_: object, **__: object) -> Iterator[dict[str, Any]]:
        raise GoogleApiError(self.code, "no", "https://google")

    def listed(self, *_: object, **__: object) -> list[dict[str, Any]]:
        return []


def test_after_a_move_what_is_under_way_in_the_old_zone_counts_too() -> None:
    there = SimpleNamespace(**{**vars(PLACE), "zone": "us-central1-b"})
    api = Api({"zones/us-central1-a": [GROUP]}, {})
    assert _wait(api, there, PLACE) == ["Waiting for operations of an earlier run: delete np-mig"]
    zones = {"zones/us-central1-a", "zones/us-central1-b"}
    assert set(api.asked) == {"global", "regions/us-central1"} | zones


def test_a_rule_that_is_being_made_in_a_host_project_is_waited_for() -> None:
    class OfHosts(Api):
        def unfinished(self, project: str, scope: str) -> list[dict[str, Any]]:
            return super().unfinished(project, scope) if project == "my-host" else []

    place = SimpleNamespace(**{**vars(PLACE), "hosts": ("my-host",)})
    rule = {"global": [_operation("global/firewalls/np-internal-0a1b2c3d")]}
    assert _wait(OfHosts(rule, rule, {}), place) == [
        "Waiting for operations of an earlier run: delete np-internal-0a1b2c3d"
    ]


_WORKS: tuple[list[dict[str, Any]], ...] = ([_cluster_operation("np-gke/nodePools/np-a")], [])
_OF_ANOTHER = ([_cluster_operation("np-gke-2")],)
_COMES = ([_share("np-nfs-0a", "CREATING")], [_share("np-nfs-0a", "READY")])


@pytest.mark.parametrize(
    ("api", "awaited"),
    [
        (Api({"global": [_operation("global/networks/another-net")]}), ""),
        (Api({"global": [_operation("global/networks/npx")]}), ""),
        # A group can be changed while its VMs come and go.
        (Api({"global": [_operation("zones/us-central1-a/instances/np-vm-x")]}), ""),
        (Api({}, filestores=_COMES), "insert np-nfs-0a"),
        (Api({}, filestores=([_share("npx-nfs-0a", "CREATING")],)), ""),
        (Api({}, clusters=_WORKS), "CREATE_NODE_POOL np-gke"),
        (Api({}, clusters=_OF_ANOTHER), ""),
        # Who may not list operations does not wait.
        (Refusing(403), ""),
    ],
)
def test_what_is_ours_is_waited_for_and_nothing_of_others(api: object, awaited: str) -> None:
    told = [f"Waiting for operations of an earlier run: {awaited}"] if awaited else []
    assert _wait(api) == told


def test_another_failure_is_told() -> None:
    with pytest.raises(GoogleApiError):
        _wait(Refusing(400))
