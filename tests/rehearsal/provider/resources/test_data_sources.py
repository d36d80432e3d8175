from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.provider.resources import DATA_SOURCES

if TYPE_CHECKING:
    from rehearsal.provider.api import Api
    from tests.rehearsal.provider.resources.conftest import Google

pytestmark = pytest.mark.loopback

COMPUTE = "/compute/v1/projects"


def test_an_image_is_found_by_its_family(google: Google, api: Api) -> None:
    answer = {"name": "cos-1", "family": "cos", "diskSizeGb": "10", "id": "7", "selfLink": "link"}
    google.on("GET .*", answer)
    config = {"project": "cos-cloud", "family": "cos", "name": None, "filter": None}
    found = DATA_SOURCES["google_compute_image"].read(api, config)
    assert google.lines == [f"GET {COMPUTE}/cos-cloud/global/images/family/cos"]
    assert (found["name"], found["disk_size_gb"], found["image_id"]) == ("cos-1", 10, "7")
    assert found["id"] == "projects/cos-cloud/global/images/cos-1"


def test_a_project_has_its_number_its_parent_and_its_billing_account(
    google: Google, api: Api
) -> None:
    about = {"name": "P", "projectNumber": "12", "parent": {"type": "folder", "id": "9"}}
    google.on("GET /crm.*", about)
    google.on("GET /cloudbilling.*", {"billingAccountName": "billingAccounts/A"})
    found = DATA_SOURCES["google_project"].read(api, {})
    assert google.lines == ["GET /crm/v1/projects/p", "GET /cloudbilling/v1/projects/p/billingInfo"]
    expected = {"number": "12", "folder_id": "9", "org_id": "", "billing_account": "A"}
    assert expected.items() <= found.items()


@pytest.mark.parametrize(
    ("kind", "config", "path"),
    [
        ("network", {"name": "n"}, "p/global/networks/n"),
        ("network", {"self_link": "https://x/projects/q/global/networks/n"}, "q/global/networks/n"),
        ("subnetwork", {"name": "s"}, "p/regions/us-central1/subnetworks/s"),
        (
            "subnetwork",
            {"self_link": "https://x/projects/q/regions/r/subnetworks/s"},
            "q/regions/r/subnetworks/s",
        ),
    ],
)
def test_a_network_or_subnetwork_is_found_by_name_or_link(
    kind: str, config: dict[str, Any], path: str, google: Google, api: Api
) -> None:
    google.on("GET .*", {"name": "n", "selfLink": "link"})
    found = DATA_SOURCES[f"google_compute_{kind}"].read(api, config)
    assert google.lines == [f"GET {COMPUTE}/{path}"]
    assert found["id"] == f"projects/{path}"


def test_the_default_account_is_named_by_compute_and_known_to_iam(google: Google, api: Api) -> None:
    google.on("GET /compute.*", {"defaultServiceAccount": "1-compute@x"})
    google.on("GET /iam.*", {"name": "n", "uniqueId": "5", "displayName": "Default"})
    found = DATA_SOURCES["google_compute_default_service_account"].read(api, {})
    assert google.lines[1] == "GET /iam/v1/projects/-/serviceAccounts/1-compute@x"
    assert (found["member"], found["unique_id"]) == ("serviceAccount:1-compute@x", "5")
