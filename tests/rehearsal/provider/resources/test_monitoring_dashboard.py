"""Dashboards: JSON that Google completes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.provider.failures import ProviderError
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from rehearsal.provider.api import Api
    from tests.rehearsal.provider.resources.conftest import Google

pytestmark = pytest.mark.loopback

DASHBOARD = RESOURCES["google_monitoring_dashboard"]
NAME = "projects/12/dashboards/d"
ONE = f"/monitoring/v1/{NAME}"
WANTED = {"displayName": "a", "gridLayout": {"widgets": [{"title": "t"}]}}
THERE = {**WANTED, "name": NAME, "etag": "e1"}
STATE: dict[str, Any] = {"id": NAME, "project": "p", "dashboard_json": json.dumps(THERE)}


def test_google_gives_the_name_by_which_it_is_read(google: Google, api: Api) -> None:
    google.on("POST /monitoring/v1/projects/p/dashboards", THERE).on(f"GET {ONE}", THERE)
    state = DASHBOARD.create(api, {"project": "p", "dashboard_json": json.dumps(WANTED)})
    assert google.asked[0].body == WANTED
    assert (state["id"], json.loads(state["dashboard_json"])) == (NAME, THERE)


@pytest.mark.parametrize(
    ("wanted", "same"),
    [
        (WANTED, True),
        ({**WANTED, "displayName": "b"}, False),
        ({**WANTED, "labels": {"x": ""}}, False),
        ({"displayName": "a", "gridLayout": {"widgets": []}}, False),
        ({"displayName": "a", "gridLayout": {"widgets": [{"title": "t"}, {}]}}, False),
    ],
)
def test_what_google_adds_is_no_difference(wanted: dict[str, Any], *, same: bool) -> None:
    compare = DASHBOARD.suppress["dashboard_json"]
    assert compare(json.dumps(THERE), json.dumps(wanted), {}) is same


def test_an_edit_carries_the_etag_of_the_state(google: Google, api: Api) -> None:
    google.on(".*", THERE)
    new = json.dumps({**WANTED, "displayName": "b"})
    DASHBOARD.update(api, STATE, {**STATE, "dashboard_json": new})
    assert google.asked[0].line == f"PATCH {ONE}"
    assert google.asked[0].body == {**WANTED, "displayName": "b", "etag": "e1"}


def test_a_document_that_is_not_known_yet_stays_unknown(api: Api) -> None:
    planned = DASHBOARD.customize(api, None, {"dashboard_json": UNKNOWN})
    assert planned["dashboard_json"] is UNKNOWN
    planned = DASHBOARD.customize(api, None, {"dashboard_json": '{"b": 1,\n "a": "<"}'})
    assert planned["dashboard_json"] == '{"a":"<","b":1}'


def test_one_that_is_gone_is_read_as_such_and_deleted_already(google: Google, api: Api) -> None:
    assert DASHBOARD.read(api, STATE) is None
    DASHBOARD.delete(api, STATE)
    assert google.lines == [f"GET {ONE}", f"DELETE {ONE}"]


def test_googles_refusals_are_told(google: Google, api: Api, refuse: Callable[..., Any]) -> None:
    google.on(".*", refuse(400, "wrong"))
    attempts: list[Callable[[], object]] = [
        lambda: DASHBOARD.create(api, STATE),
        lambda: DASHBOARD.read(api, STATE),
        lambda: DASHBOARD.update(api, STATE, {**STATE, "dashboard_json": "{}"}),
        lambda: DASHBOARD.delete(api, STATE),
    ]
    for attempt in attempts:
        with pytest.raises(ProviderError, match="wrong"):
            attempt()


def test_it_is_imported_by_its_name_or_id(api: Api) -> None:
    assert DASHBOARD.import_state(api, "d")["id"] == "projects/p/dashboards/d"
    assert DASHBOARD.import_state(api, NAME)["id"] == NAME
