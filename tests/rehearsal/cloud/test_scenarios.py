import http.client
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from rehearsal.cloud import scenarios
from rehearsal.cloud.faults import Effect, Fault
from rehearsal.cloud.server import Cloud
from rehearsal.cloud.store import Database
from rehearsal.cloud.wire import Request
from tests.rehearsal.cloud.sending import Sender

FLAKY = frozenset({"flaky"})
NETWORKS = "/compute/v1/projects/proj-a1/global/networks"
RULES = "/compute/v1/projects/proj-a1/global/firewalls"


def _request(path: str = NETWORKS, method: str = "GET", **query: str) -> Request:
    return Request(method=method, path=path, query=query, scenarios=FLAKY)


def _fates(database: Database, requests: list[Request]) -> list[Fault | None]:
    with database.transaction() as store:
        return [scenarios.fault(request, store) for request in requests]


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "cloud.sqlite")


def test_scenarios_combine_and_slow_is_ten_times_slower() -> None:
    assert scenarios.parse("flaky, slow,") == {"flaky", "slow"}
    assert scenarios.parse("") == frozenset()
    assert scenarios.rate(frozenset({"slow"}), 0.5) == 5.0
    assert scenarios.rate(FLAKY, 0.5) == 0.5
    assert scenarios.rate(frozenset({"slow"}), 0) == 0


def test_a_share_of_requests_fails_in_each_way_and_none_without_flaky(database: Database) -> None:
    fates = _fates(database, [_request(f"{NETWORKS}/{i}") for i in range(2000)])
    ways = Counter((fate.number, fate.effect is Effect.LOSE) for fate in fates if fate)
    assert set(ways) == {(429, False), (503, False), (None, False), (503, True), (None, True)}
    assert 150 < sum(ways.values()) < 450
    plain = Request(method="GET", path=NETWORKS)
    assert set(_fates(database, [plain] * 500)) == {None}


def test_a_rehearsal_fails_at_the_same_places_every_time(tmp_path: Path) -> None:
    requests = [_request(f"{NETWORKS}/{i}") for i in range(200)]
    first, second = (_fates(Database(tmp_path / name), requests) for name in ("one", "two"))
    assert first == second


def test_the_same_request_succeeds_at_the_third_try_at_last(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scenarios, "_draw", lambda _: 0)
    fates = _fates(database, [_request()] * 6)
    assert [fate is None for fate in fates] == [False, False, True, False, False, True]


@pytest.mark.parametrize(
    ("method", "query", "touched"),
    [
        ("GET", {}, True),
        ("POST", {}, False),
        ("DELETE", {}, False),
        ("POST", {"ifGenerationMatch": "0"}, True),
    ],
)
def test_storage_fails_only_where_its_clients_try_again(
    database: Database, method: str, query: dict[str, str], *, touched: bool
) -> None:
    path = "/upload/storage/v1/b/bucket/o"
    requests = [_request(f"{path}/{i}", method, **query) for i in range(500)]
    fates = [fate for fate in _fates(database, requests) if fate is not None]
    assert bool(fates) is touched
    assert not any(fate.effect is Effect.LOSE for fate in fates)


@pytest.mark.loopback
def test_clients_that_try_again_get_what_they_want(tmp_path: Path) -> None:
    refused, outcomes = 0, []
    with Cloud(
        database=tmp_path / "cloud.sqlite", environ={"CLOUD_CLOCK_RATE": "0"}, scenario="flaky"
    ) as cloud:
        for number in range(60):
            rule = {"name": f"rule-{number}", "allowed": [{"IPProtocol": "tcp"}]}
            body = json.dumps({**rule, "network": "projects/proj-a1/global/networks/default"})
            for _ in range(3):
                status = _post(cloud, body)
                if status not in {None, 429, 503}:
                    break
                refused += 1
            outcomes.append(status)
    assert refused > 0
    # 409: the request before had its effect, but its answer was lost.
    assert set(outcomes) == {200, 409}


def _post(cloud: Cloud, body: str) -> int | None:
    connection = http.client.HTTPConnection(cloud.base_url.removeprefix("http://"), timeout=600)
    try:
        connection.request("POST", RULES, body, {"Authorization": "Bearer token"})
        return connection.getresponse().status
    except ConnectionError:
        return None
    finally:
        connection.close()


@pytest.mark.loopback
def test_the_metadata_server_is_spared(tmp_path: Path) -> None:
    with Cloud(database=tmp_path / "cloud.sqlite", scenario="flaky") as cloud:
        connection = http.client.HTTPConnection(cloud.base_url.removeprefix("http://"), timeout=600)
        for _ in range(100):
            connection.request("GET", "/", headers={"Metadata-Flavor": "Google"})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
        connection.close()


def test_who_lacks_a_permission_is_told_so_when_asking(tmp_path: Path) -> None:
    wanted = ["compute.instanceGroupManagers.create", "compute.networks.create"]
    asked = ("crm/v1", "POST", "projects/proj-a1:testIamPermissions", {"permissions": wanted})
    api = Sender(Database(tmp_path / "cloud.sqlite"))
    assert api(*asked).body == {"permissions": wanted}
    api.scenarios = frozenset({"forbidden"})
    assert api(*asked).body == {"permissions": wanted[1:]}


def test_the_guide_has_every_scenario_in_the_same_words() -> None:
    guide = Path(__file__).parents[3] / "docs" / "how-to" / "rehearse.md"
    rows = re.findall(
        r"^\| `([\w-]+)` \| (.+) \|$", guide.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert dict(rows) == scenarios.SCENARIOS
