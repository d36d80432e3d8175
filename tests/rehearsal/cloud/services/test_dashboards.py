from typing import Any

from tests.rehearsal.cloud.services.conftest import Api

ALL = "projects/proj-a1/dashboards"
BODY: dict[str, Any] = {"displayName": "GPUs", "mosaicLayout": {"columns": 48}}


def test_a_dashboard_is_made_read_listed_changed_and_deleted(api: Api) -> None:
    made = api.json("monitoring", "POST", ALL, BODY)
    # Its name has the project's number, whatever the request had.
    assert made["name"].startswith("projects/123456789012/dashboards/")
    assert api.json("monitoring", "GET", made["name"]) == made
    assert api.json("monitoring", "GET", ALL)["dashboards"] == [made]
    changed = {**BODY, "displayName": "All GPUs", "etag": made["etag"]}
    after = api.json("monitoring", "PATCH", made["name"], changed)
    assert (after["displayName"], after["etag"] != made["etag"]) == ("All GPUs", True)
    assert api.json("monitoring", "DELETE", made["name"]) == {}
    assert api("monitoring", "GET", made["name"]).status == 404
    assert api("monitoring", "DELETE", made["name"]).status == 404


def test_an_edit_on_top_of_an_older_state_is_refused(api: Api) -> None:
    made = api.json("monitoring", "POST", ALL, BODY)
    api.json("monitoring", "PATCH", made["name"], {**BODY, "displayName": "B"})
    stale = {**BODY, "displayName": "C", "etag": made["etag"]}
    assert api("monitoring", "PATCH", made["name"], stale).status == 409
