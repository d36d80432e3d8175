"""In which zone the machines are by their marker, and outages while a Destroy looks and sweeps."""

import dataclasses
import functools
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from provision.codes import Code
from provision.errors import ClusterError
from provision.google import resources
from provision.google.api import GoogleApiError, Service
from provision.google.resources import Look
from provision.lifecycle import consent, marked
from provision.settings.choices import Way
from tests.unit.preflight.test_quotas import RECORD as ANY

RECORD = dataclasses.replace(ANY, project_id="p")
ZONES = "https://google/compute/v1/projects/p/zones/"


def _where(
    groups: list[str], clusters: list[dict[str, Any]], *, searching: bool = False
) -> tuple[str, str]:
    def listed(look: Look, project: str, _owner: object) -> list[dict[str, Any]]:
        assert project == "p"
        if look is resources.GROUP.look:
            return [{"zone": ZONES + zone} for zone in groups]
        assert look is resources.CLUSTER.look
        return clusters

    folder = SimpleNamespace(location=SimpleNamespace(url="gs://b/np-deployment"))
    cloud = SimpleNamespace(api=SimpleNamespace(marked=listed), folder=folder, lists=None)
    record = dataclasses.replace(RECORD, searching=searching)
    found = marked.where(cast("Any", cloud), record)
    return found.region, found.zone


def test_a_group_and_a_cluster_are_where_the_cloud_has_them() -> None:
    for groups, zone in {
        "": "us-central1-a",
        "us-central1-a": "us-central1-a",
        "us-central1-b": "us-central1-b",
        "europe-west4-a": "europe-west4-a",
        "us-central1-b us-central1-a": "us-central1-a",
    }.items():
        assert _where(groups.split(), []) == (zone[:-2], zone)
    here = {"location": "us-central1", "locations": ["us-central1-b"]}
    there = {"location": "europe-west4", "locations": ["europe-west4-a"]}
    assert _where([], [here]) == ("us-central1", "us-central1-a")
    assert _where([], [there]) == ("europe-west4", "europe-west4-a")


def test_a_search_of_a_cluster_is_where_its_gpu_pool_is() -> None:
    system = {"name": f"{RECORD.name_prefix}-system", "locations": ["us-central1-a"]}
    gpus = {"name": "gpus", "locations": ["us-central1-c"]}
    here = {"location": "us-central1", "locations": ["us-central1-a"]}

    with_pool = [here | {"nodePools": [system, gpus]}]
    without = [here | {"nodePools": [system]}]

    assert _where([], with_pool, searching=True) == ("us-central1", "us-central1-c")
    assert _where([], without, searching=True) == ("us-central1", "us-central1-a")
    assert _where([], with_pool) == ("us-central1", "us-central1-a")


def test_the_nodes_of_a_cluster_are_got_as_its_gpu_pool_says() -> None:
    def listed(config: dict[str, Any], look: Look, *_: object) -> list[dict[str, Any]]:
        system = {"name": f"{RECORD.name_prefix}-system", "config": {"spot": True}}
        pools = [system, {"name": "gpus", "config": config}]
        return [{"nodePools": pools}] if look is resources.CLUSTER.look else []

    folder = SimpleNamespace(location=SimpleNamespace(url="gs://b/np-deployment"))
    configs: list[tuple[dict[str, Any], Way]] = [
        ({"spot": True}, Way.SPOT),
        ({"flexStart": True}, Way.FLEX_START),
        (
            {"reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION"}},
            Way.RESERVATION,
        ),
        ({"reservationAffinity": {"consumeReservationType": "NO_RESERVATION"}}, Way.ON_DEMAND),
        ({}, Way.ON_DEMAND),
    ]
    for config, found in configs:
        api = SimpleNamespace(marked=functools.partial(listed, config))
        cloud = SimpleNamespace(api=api, folder=folder, lists=None)
        assert marked.way(cast("Any", cloud), RECORD) is found


SHOWN = SimpleNamespace(project_id="p", cluster_id="0123456789ab")


class Google:
    """Answers with an error."""

    def __init__(self, code: int) -> None:
        self.code = code

    def fail(self, *_: object, **__: object) -> NoReturn:
        raise GoogleApiError(self.code, "no", "https://x/")

    pages = delete = fail


def test_machines_that_google_does_not_tell_of_are_not_none() -> None:
    out_of_order, closed = (cast("Any", SimpleNamespace(api=Google(it))) for it in (503, 403))
    with pytest.raises(GoogleApiError) as caught:
        consent._machines(out_of_order, cast("Any", SHOWN))
    assert caught.value.problems[0].code is Code.UNREACHABLE
    # Who may not list them is asked as if there were some.
    assert consent._machines(closed, cast("Any", SHOWN)) is None


@pytest.mark.parametrize(("code", "told"), [(503, Code.UNREACHABLE), (409, Code.NOT_REMOVED)])
def test_what_an_outage_kept_may_be_removed_later(code: int, told: Code) -> None:
    with pytest.raises(ClusterError) as caught:
        marked._delete(cast("Any", Google(code)), Service.COMPUTE, "x", in_use_is_fine=False)
    (problem,) = caught.value.problems
    assert problem.code is told
    assert "again" in problem.fix
