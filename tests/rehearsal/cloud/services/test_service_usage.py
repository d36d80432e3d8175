from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rehearsal.cloud import services

if TYPE_CHECKING:
    from tests.rehearsal.cloud.services.conftest import Api

_ALL = "projects/proj-a1/services"
_REDIS = "redis.googleapis.com"


def _names(api: Api, state: str) -> list[str]:
    listed = api.json("serviceusage", "GET", f"{_ALL}?filter=state:{state}&pageSize=200")
    return [service["config"]["name"] for service in listed.get("services", [])]


def _state(api: Api, name: str) -> str:
    return str(api.json("serviceusage", "GET", f"{_ALL}/{name}")["state"])


def test_a_new_project_has_what_a_rehearsal_needs(api: Api) -> None:
    assert _names(api, "ENABLED") == sorted(services.ENABLED)
    assert _names(api, "DISABLED") == []


def test_a_service_is_enabled_and_disabled(api: Api) -> None:
    done = api.json("serviceusage", "POST", f"{_ALL}/{_REDIS}:enable")
    assert done["done"]
    assert done["response"]["service"]["name"] == f"projects/123456789012/services/{_REDIS}"
    assert _REDIS in _names(api, "ENABLED")
    api.json("serviceusage", "POST", f"{_ALL}/{_REDIS}:disable", {})
    assert _names(api, "DISABLED") == [_REDIS]


def test_a_service_is_enabled_when_its_operation_is_done(api: Api) -> None:
    api.rate = 0.5
    operation = api.json("serviceusage", "POST", f"{_ALL}/{_REDIS}:enable")
    assert "done" not in operation
    assert _state(api, _REDIS) == "DISABLED"
    api.now += 5.0
    assert api.json("serviceusage", "GET", operation["name"])["done"]
    assert _state(api, _REDIS) == "ENABLED"


def test_what_is_enabled_already_takes_no_time(api: Api) -> None:
    api.rate = 1.0
    done = api.json("serviceusage", "POST", f"{_ALL}/compute.googleapis.com:enable")
    assert done["done"]


def test_several_are_enabled_at_once(api: Api) -> None:
    names = [_REDIS, "tpu.googleapis.com"]
    done = api.json("serviceusage", "POST", f"{_ALL}:batchEnable", {"serviceIds": names})
    assert [s["state"] for s in done["response"]["services"]] == ["ENABLED", "ENABLED"]


def test_projects_do_not_share_their_services(api: Api) -> None:
    api.json("serviceusage", "POST", f"{_ALL}/{_REDIS}:enable")
    other = api.json("serviceusage", "GET", f"projects/another-one/services/{_REDIS}")
    assert other["state"] == "DISABLED"


@pytest.mark.parametrize(
    ("target", "code"),
    [(f"{_ALL}/redis", 403), ("projects/missing-x/services", 403), ("operations/none", 404)],
)
def test_what_makes_no_sense_is_refused(api: Api, target: str, code: int) -> None:
    assert api.refused("serviceusage", "GET", target)[0] == code
