from rehearsal.cloud import services
from tests.rehearsal.cloud.services.conftest import Api, Json

_ALL = "projects/proj-a1/services"
_REDIS = "redis.googleapis.com"


def _names(api: Api, state: str) -> list[str]:
    listed = api.json("serviceusage", "GET", f"{_ALL}?filter=state:{state}&pageSize=200")
    return [service["config"]["name"] for service in listed.get("services", [])]


def _post(api: Api, target: str, body: Json | None = None) -> Json:
    return api.json("serviceusage", "POST", f"{_ALL}{target}", body)


def test_a_new_project_has_what_a_rehearsal_needs_and_others_are_enabled(api: Api) -> None:
    assert _names(api, "ENABLED") == sorted(services.ENABLED)
    assert _names(api, "DISABLED") == []
    done = _post(api, f"/{_REDIS}:enable")
    assert done["done"]
    assert done["response"]["service"]["name"] == f"projects/123456789012/services/{_REDIS}"
    assert _REDIS in _names(api, "ENABLED")
    other = api.json("serviceusage", "GET", f"projects/another-one/services/{_REDIS}")
    assert other["state"] == "DISABLED"
    _post(api, f"/{_REDIS}:disable", {})
    assert _names(api, "DISABLED") == [_REDIS]
    done = _post(api, ":batchEnable", {"serviceIds": [_REDIS, "tpu.googleapis.com"]})
    assert [it["state"] for it in done["response"]["services"]] == ["ENABLED", "ENABLED"]


def test_a_service_is_enabled_when_its_operation_is_done(api: Api) -> None:
    api.rate = 0.5
    operation = _post(api, f"/{_REDIS}:enable")
    assert "done" not in operation
    assert _state(api, _REDIS) == "DISABLED"
    api.now += 5.0
    assert api.json("serviceusage", "GET", operation["name"])["done"]
    assert _state(api, _REDIS) == "ENABLED"
    assert _post(api, "/compute.googleapis.com:enable")["done"]  # it is already


def test_what_makes_no_sense_is_refused(api: Api) -> None:
    for target, code in (
        (f"{_ALL}/redis", 403),
        ("projects/missing-x/services", 403),
        ("operations/none", 404),
    ):
        assert api.refused("serviceusage", "GET", target)[0] == code


def _state(api: Api, name: str) -> str:
    return str(api.json("serviceusage", "GET", f"{_ALL}/{name}")["state"])
