from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.provider.failures import ProviderError
from rehearsal.provider.resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from rehearsal.provider.api import Api
    from tests.rehearsal.provider.resources.conftest import Google

pytestmark = pytest.mark.loopback

SERVICE = RESOURCES["google_project_service"]
SERVICES = "/serviceusage/v1/projects/p/services"
ACTIVE = {"projectId": "p", "lifecycleState": "ACTIVE"}
DONE = {"name": "operations/o", "done": True}


def listed(*names: str) -> dict[str, Any]:
    return {"services": [{"name": f"projects/1/services/{name}"} for name in names]}


def plan(service: str = "a.googleapis.com", **more: Any) -> dict[str, Any]:
    return {"project": "p", "service": service, **more}


def test_one_service_is_switched_on_and_seen_on(google: Google, api: Api) -> None:
    google.on(f"GET {SERVICES}", listed(), listed("a.googleapis.com"))
    google.on("GET /crm.*", ACTIVE).on("POST .*", DONE)
    state = SERVICE.create(api, plan())
    assert google.lines == [
        f"GET {SERVICES}",
        f"POST {SERVICES}/a.googleapis.com:enable",
        f"GET {SERVICES}",
        "GET /crm/v1/projects/p",
        f"GET {SERVICES}",
    ]
    assert state["id"] == "p/a.googleapis.com"


def test_services_are_switched_on_together(
    google: Google, environ: dict[str, str], connect: Callable[..., Api]
) -> None:
    environ["CLOUD_CLOCK_RATE"] = "0.05"
    api, names = connect(), ["a.googleapis.com", "b.googleapis.com"]
    google.on(f"GET {SERVICES}", listed(), listed(*names)).on("GET /crm.*", ACTIVE)
    google.on("POST .*", DONE)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: SERVICE.create(api, plan(name)), names))
    assert sorted(google.body(f"POST {SERVICES}:batchEnable")["serviceIds"]) == names
    assert google.lines.count(f"GET {SERVICES}") == 3


def test_a_service_that_is_on_is_left_alone(google: Google, api: Api) -> None:
    google.on(f"GET {SERVICES}", listed("a.googleapis.com")).on("GET /crm.*", ACTIVE)
    SERVICE.create(api, plan())
    assert all(line.startswith("GET ") for line in google.lines)


def test_all_pages_of_the_list_are_read(google: Google, api: Api) -> None:
    google.on("GET /crm.*", ACTIVE)
    first = {**listed("a.googleapis.com"), "nextPageToken": "2"}
    google.on(f"GET {SERVICES}", first, listed("b.googleapis.com"))
    assert SERVICE.read(api, plan("b.googleapis.com")) is not None
    assert google.asked[-1].query["pageToken"] == "2"


def test_a_service_that_is_off_is_gone(google: Google, api: Api) -> None:
    google.on("GET /crm.*", ACTIVE).on(f"GET {SERVICES}", listed())
    assert SERVICE.read(api, plan()) is None


def test_a_service_stays_on_unless_it_is_to_be_switched_off(google: Google, api: Api) -> None:
    SERVICE.delete(api, plan(disable_on_destroy=None))
    assert google.lines == []
    google.on("POST .*", DONE)
    SERVICE.delete(api, plan(disable_on_destroy=True))
    SERVICE.delete(api, plan(disable_on_destroy=True, disable_dependent_services=True))
    assert google.lines == [f"POST {SERVICES}/a.googleapis.com:disable"] * 2
    assert [it.body for it in google.asked] == [{}, {"disableDependentServices": True}]


def test_a_refusal_names_the_service(google: Google, api: Api, refuse: Callable[..., Any]) -> None:
    google.on(f"GET {SERVICES}", listed())
    google.on("POST .*", refuse(403, "Permission denied", "forbidden"))
    with pytest.raises(ProviderError, match=r'Enable Project Service "a\.googleapis\.com" for'):
        SERVICE.create(api, plan())
