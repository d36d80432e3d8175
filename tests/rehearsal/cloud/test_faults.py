import http.client
import json
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.cloud.faults import CONTROL, EFFECTS, Effect, Faults, Rule
from rehearsal.cloud.server import Cloud
from rehearsal.cloud.wire import Request
from tests.running import ran
from tests.table import cases

NETWORKS = "/compute/v1/projects/proj-a1/global/networks"
OBJECTS = "/storage/v1/b/states/o"
STATE = "/upload/storage/v1/b/states/o?uploadType=media&name=np%2Fdefault.tfstate"
DAMAGED = (Effect.CUT, Effect.NULL, Effect.RETYPE, Effect.PORTAL)


def _struck(faults: Faults, *requests: Request) -> list[bool]:
    return [bool(faults.strike(request)) for request in requests]


def _get(path: str = NETWORKS) -> Request:
    return Request(method="GET", path=path)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    environ = {"CLOUD_CLOCK_RATE": "0"}
    with Cloud(database=tmp_path / "cloud.sqlite", environ=environ) as running:
        _sent(running, "POST", "/storage/v1/b?project=proj-a1", {"name": "states"})
        yield running


def _sent(cloud: Cloud, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
    """Send a request of its own connection; status and body of the answer."""
    connection = http.client.HTTPConnection(cloud.base_url.removeprefix("http://"), timeout=600)
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Authorization": "Bearer token"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _names(cloud: Cloud) -> list[str]:
    document = json.loads(_sent(cloud, "GET", NETWORKS)[1])
    return sorted(it["name"] for it in document.get("items", []) if it["name"] != "default")


def _made(cloud: Cloud, name: str = "one") -> tuple[int, bytes]:
    return _sent(cloud, "POST", NETWORKS, {"name": name, "autoCreateSubnetworks": False})


def _is_refused(cloud: Cloud) -> bool:
    """Whether nothing listens."""
    try:
        _names(cloud)
    except ConnectionRefusedError:
        return True
    except ConnectionError:
        return False
    return False


def test_each_effect_has_its_words() -> None:
    assert set(EFFECTS) == set(Effect)


@cases("""
text | why
- | is no fault
GET ** | is no fault
get **: refuse | is no fault
GET **: explode | there is no effect 'explode'
GET **: delay | have seconds
GET **: delay -1 | have seconds
GET **: refuse 200 | a status from 400 on
GET **: refuse 503 1 | a status from 400 on
GET **: forget 1 | a status from 400 on
GET **: refuse often | could not convert
GET **: refuse times=x | invalid literal
GET **: refuse until=3 | until
""")
def test_what_is_no_fault_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Rule.parse(text)


@pytest.mark.parametrize(
    ("rule", "method", "path", "concerned"),
    [
        ("* **: refuse", "GET", NETWORKS, True),
        ("GET **: refuse", "POST", NETWORKS, False),
        ("POST|GET **: refuse", "POST", NETWORKS, True),
        ("* /compute/**/networks: refuse", "GET", NETWORKS, True),
        ("* /compute/**/networks: refuse", "GET", f"{NETWORKS}/one", False),
        ("* /compute/*/networks: refuse", "GET", NETWORKS, False),
        ("* **/np/deployment.json: refuse", "GET", f"{OBJECTS}/np%2Fdeployment.json", True),
    ],
)
def test_a_fault_concerns_methods_and_paths(
    rule: str, method: str, path: str, *, concerned: bool
) -> None:
    assert Rule.parse(rule).concerns(Request(method=method, path=path)) is concerned


@pytest.mark.parametrize(
    ("query", "body"),
    [
        ({"name": "np/default.tfstate"}, b""),
        ({}, b'--x\r\nContent-Type: application/json\r\n\r\n{"name": "np/default.tfstate"}'),
    ],
)
def test_an_upload_is_known_by_the_name_of_its_object(query: dict[str, str], body: bytes) -> None:
    path = "/upload/storage/v1/b/states/o"
    request = Request(method="POST", path=path, query=query, body=body)
    assert Rule.parse("POST /upload/**/default.tfstate: forget").concerns(request)
    assert not Rule.parse("POST /upload/**/default.tflock: forget").concerns(request)


def test_a_fault_begins_and_ends_after_so_many_requests_or_seconds() -> None:
    faults = Faults(("GET **: refuse after=2 times=1",))
    assert _struck(faults, *[_get()] * 5) == [False, False, True, False, False]
    assert _struck(Faults(("* **: refuse 503 for=0",)), _get(), _get()) == [True, False]
    assert _struck(Faults(("* **: refuse 503 for=60",)), _get(), _get()) == [True, True]


def test_chance_strikes_a_share_and_the_same_with_the_same_seed() -> None:
    requests = [_get()] * 400
    first, again, other = (
        _struck(Faults(("* **: refuse chance=0.25",), seed=seed), *requests) for seed in (1, 1, 2)
    )
    assert first == again != other
    assert 60 < sum(first) < 140


def test_the_first_of_two_faults_counts_but_for_delays() -> None:
    faults = Faults(("* **: delay 0", "* **: lose", "* **: refuse"))
    assert [it.effect for it in faults.strike(_get())] == [Effect.LOSE, Effect.REFUSE]


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("how", "status", "there"),
    [
        ("refuse 503", 503, False),
        ("refuse 429", 429, False),
        ("lose 500", 500, True),
        ("forget", 200, False),
        ("repeat", 409, True),
        ("delay 0", 200, True),
        *((str(effect), 200, True) for effect in DAMAGED),
    ],
)
def test_a_change_is_answered_and_takes_effect_as_the_fault_says(
    cloud: Cloud, how: str, status: int, *, there: bool
) -> None:
    cloud.faults.add(f"POST /compute/**: {how}")
    assert _made(cloud)[0] == status
    assert (_names(cloud) == ["one"]) is there


@pytest.mark.loopback
@pytest.mark.parametrize(("how", "there"), [("refuse", False), ("lose", True)])
def test_a_connection_is_reset_before_or_after_the_effect(
    cloud: Cloud, how: str, *, there: bool
) -> None:
    cloud.faults.add(f"POST /compute/**: {how}")
    with pytest.raises(ConnectionError):
        _made(cloud)
    assert (_names(cloud) == ["one"]) is there


@pytest.mark.loopback
def test_while_the_cloud_is_down_connections_are_refused_and_then_it_is_where_it_was(
    cloud: Cloud,
) -> None:
    _made(cloud)
    cloud.faults.add("GET **/networks: down 2 times=1")
    with pytest.raises(ConnectionError):
        _names(cloud)
    # Whoever comes before the door closes is served, or cut off as it does.
    while not _is_refused(cloud):
        pass
    while _is_refused(cloud):
        pass
    assert _names(cloud) == ["one"]


@pytest.mark.loopback
def test_answers_are_damaged_as_the_fault_says(cloud: Cloud) -> None:
    path = f"{NETWORKS}/default"
    whole = _sent(cloud, "GET", path)[1]
    found = {}
    for effect in DAMAGED:
        number = cloud.faults.add(f"GET {path}: {effect}")
        found[effect] = _sent(cloud, "GET", path)[1]
        cloud.faults.end(number)
    assert found[Effect.CUT] == whole[: len(whole) // 2]
    assert found[Effect.NULL] == b"null"
    assert found[Effect.PORTAL].startswith(b"<!DOCTYPE html>")
    retyped, plain = json.loads(found[Effect.RETYPE]), json.loads(whole)
    assert retyped.keys() == plain.keys()
    same = [name for name in plain if type(plain[name]) is type(retyped[name])]
    assert not [name for name in same if not isinstance(plain[name], dict)]


@pytest.mark.loopback
@pytest.mark.parametrize(("after", "kept"), [(0, []), (1, ["first"])])
def test_a_lost_state_write_leaves_the_object_as_it_was(
    cloud: Cloud, after: int, kept: list[str]
) -> None:
    cloud.faults.add(f"POST|PUT /upload/storage/**/default.tfstate: forget after={after}")
    assert [_sent(cloud, "POST", STATE, text)[0] for text in ("first", "second")] == [200, 200]
    status, body = _sent(cloud, "GET", f"{OBJECTS}/np%2Fdefault.tfstate?alt=media")
    assert ([json.loads(body)] if status == 200 else []) == kept


@pytest.mark.loopback
def test_a_request_is_held_until_the_fault_is_ended(cloud: Cloud) -> None:
    number = cloud.faults.add("POST /compute/**: hold")
    answers: list[int] = []
    making = threading.Thread(target=lambda: answers.append(_made(cloud)[0]))
    making.start()
    cloud.faults.wait(number)
    assert _names(cloud) == []
    cloud.faults.end(number)
    making.join()
    assert answers == [200]
    assert _names(cloud) == ["one"]


@pytest.mark.loopback
def test_a_cloud_that_ends_lets_go_what_it_holds(tmp_path: Path) -> None:
    with Cloud(database=tmp_path / "cloud.sqlite", environ={"CLOUD_CLOCK_RATE": "0"}) as cloud:
        number = cloud.faults.add("POST /compute/**: hold")
        making = threading.Thread(target=_swallowed, args=[lambda: _made(cloud)])
        making.start()
        cloud.faults.wait(number)
    making.join(600)
    assert not making.is_alive()


def _swallowed(make: Callable[[], object]) -> None:
    try:
        make()
    except OSError:
        """The cloud is gone."""


@pytest.mark.loopback
def test_faults_come_and_go_while_the_cloud_serves(cloud: Cloud) -> None:
    text = "GET /compute/**: refuse 503"
    begun = json.loads(_sent(cloud, "POST", CONTROL, {"fault": text})[1])
    assert begun == {"faults": [{"id": 1, "fault": text, "met": 0, "struck": 0}]}
    assert _sent(cloud, "GET", NETWORKS)[0] == 503
    (told,) = json.loads(_sent(cloud, "GET", f"{CONTROL}/1")[1])["faults"]
    assert (told["met"], told["struck"]) == (1, 1)
    assert _sent(cloud, "DELETE", f"{CONTROL}/1")[0] == 200
    assert _sent(cloud, "GET", NETWORKS)[0] == 200
    assert json.loads(_sent(cloud, "GET", CONTROL)[1]) == {"faults": []}


@pytest.mark.loopback
def test_what_means_nothing_to_the_control_is_refused(cloud: Cloud) -> None:
    requests: list[tuple[str, str, Any, int]] = [
        ("POST", CONTROL, {"fault": "no"}, 400),
        ("POST", CONTROL, {}, 400),
        ("POST", CONTROL, [], 400),
        ("DELETE", f"{CONTROL}/7", None, 404),
        ("GET", f"{CONTROL}/x", None, 400),
        ("PATCH", CONTROL, None, 404),
    ]
    for method, path, body, status in requests:
        assert _sent(cloud, method, path, body)[0] == status


@pytest.mark.loopback
def test_faults_reach_neither_their_control_nor_the_metadata_server(cloud: Cloud) -> None:
    cloud.faults.add("* **: refuse 503")
    assert _sent(cloud, "GET", CONTROL)[0] == 200
    assert _sent(cloud, "GET", "/computeMetadata/v1/")[0] != 503
    assert _sent(cloud, "GET", NETWORKS)[0] == 503


@pytest.mark.loopback
def test_serve_takes_faults_and_names_one_that_is_none(tmp_path: Path) -> None:
    serve = [sys.executable, "-m", "rehearsal", "--folder", str(tmp_path), "serve", "--faults"]
    refused = ran([*serve, "GET **: explode"])
    assert refused.returncode == 2
    assert "there is no effect 'explode'" in refused.stderr
    with subprocess.Popen(
        [*serve, "GET **/networks: refuse 503", "POST **: lose"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        base = _base(map(shlex.split, process.stdout))
        connection = http.client.HTTPConnection(base.removeprefix("http://"), timeout=600)
        connection.request("GET", NETWORKS, headers={"Authorization": "Bearer token"})
        assert connection.getresponse().status == 503
        connection.close()
        process.send_signal(signal.SIGTERM)


def _base(lines: Iterator[list[str]]) -> str:
    for words in lines:
        for word in words:
            name, _, value = word.partition("=")
            if name == "API_ENDPOINT_OVERRIDE":
                return value
    raise AssertionError("serve has told no address")


def test_the_guide_has_each_effect() -> None:
    guide = Path(__file__).parents[3] / "docs" / "how-to" / "rehearse.md"
    told = re.findall(r"^\* `(\w+)`: (.+)$", guide.read_text(encoding="utf-8"), re.MULTILINE)
    assert dict(told) == EFFECTS
