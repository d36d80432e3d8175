"""What is said and done of a cluster's things of which no state tells."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.deployment.deployment import Left
from provision.errors import ClusterError
from provision.google.api import GoogleApiError
from provision.kinds.gke import orphans

if TYPE_CHECKING:
    from collections.abc import Collection

    from provision.context import Cloud, Context
    from provision.state.location import Place

BALANCER = "a9f2b1c3d4e5f60718293a4b5c6d7e8f"
LINK = "https://www.googleapis.com/compute/v1/"
NETWORK = "projects/p/global/networks/np-net"
POOL = f"projects/p/regions/us-central1/targetPools/{BALANCER}"
RULE = f"projects/p/global/firewalls/k8s-fw-{BALANCER}"
PLACE = SimpleNamespace(project_id="p", region="us-central1", zone="z", name_prefix="np")


class Google:
    """A Google with a pool, its rule, perhaps the cluster; `refused` maps what to a code."""

    def __init__(self, *, lives: bool = False, refused: dict[str, int] | None = None) -> None:
        self.paths = [POOL, RULE]
        self.listed_collections: list[str] = []
        self._lives = lives
        self._refused = refused or {}

    def find(self, _: object, path: str) -> dict[str, Any] | None:
        assert path == "projects/p/locations/us-central1/clusters/np-gke"
        self._refuse("find")
        return {} if self._lives else None

    def listed(self, look: Any, project: str, **_: str) -> list[dict[str, Any]]:
        assert project == "p"
        self._refuse(look.collection)
        self.listed_collections.append(look.collection)
        tags = ["gke-np-gke-0a1b2c3d-node"]
        return [
            {
                "name": path.rpartition("/")[2],
                "selfLink": LINK + path,
                "network": LINK + NETWORK,
                "targetTags": tags,
            }
            for path in self.paths
            if f"/{look.collection}/" in path
        ]

    def delete(self, _: object, path: str) -> None:
        self._refuse(path)
        self.paths.remove(path)

    def _refuse(self, what: str) -> None:
        if what in self._refused:
            raise GoogleApiError(self._refused[what], "no", "https://x")


def _found(google: Google, networks: Collection[str] = (NETWORK,)) -> Left:
    cloud = cast("Cloud", SimpleNamespace(api=google))
    return orphans.find(cloud, cast("Place", PLACE), networks)


def _swept(google: Google) -> int:
    context = SimpleNamespace(console=SimpleNamespace(progress=lambda _: None))
    cloud = cast("Cloud", SimpleNamespace(api=google))
    return orphans.sweep(cast("Context", context), cloud, cast("Place", PLACE), [NETWORK])


def test_what_is_found_goes() -> None:
    google = Google()
    found = _found(google)
    assert (found.what, found.paths) == ("what GKE made for the cluster np-gke", (POOL, RULE))
    assert _swept(google) == 2
    assert google.paths == []
    assert _found(google).paths == ()


@pytest.mark.parametrize(
    "google",
    [
        pytest.param(Google(lives=True), id="the cluster is there"),
        pytest.param(Google(refused={"find": 403}), id="nobody may ask for it"),
    ],
)
def test_nothing_is_a_dead_clusters_as_long_as_none_is_known_to_be_dead(google: Google) -> None:
    assert _found(google) == Left()
    assert _swept(google) == 0
    assert google.paths == [POOL, RULE]


@pytest.mark.parametrize("what", ["clusters", "networkEndpointGroups"])
def test_what_nobody_may_list_does_not_hide_the_rest(what: str) -> None:
    assert _found(Google(refused={what: 403})).paths == (POOL, RULE)


def test_without_a_network_there_can_only_be_disks() -> None:
    google = Google()
    assert _found(google, networks=()).paths == ()
    assert google.listed_collections == ["disks"]


def test_the_rules_stay_as_long_as_they_are_needed_to_find_the_rest() -> None:
    google = Google(refused={POOL: 400})
    with pytest.raises(ClusterError) as caught:
        _swept(google)
    assert [problem.what for problem in caught.value.problems] == [f"{POOL} could not be removed"]
    assert google.paths == [POOL, RULE]
