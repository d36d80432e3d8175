from typing import Any

from rehearsal.provider.api import Api
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources import RESOURCES
from tests.rehearsal.provider.resources.conftest import Google
from tests.table import cases

ACCOUNT = RESOURCES["google_service_account"]
PROJECT_MEMBER = RESOURCES["google_project_iam_member"]
ACCOUNT_MEMBER = RESOURCES["google_service_account_iam_member"]
BUCKET_MEMBER = RESOURCES["google_storage_bucket_iam_member"]

EMAIL = "a@p.iam.gserviceaccount.com"
NAME = f"projects/p/serviceAccounts/{EMAIL}"
PATH = f"/iam/v1/{NAME}"
MEMBER = f"serviceAccount:{EMAIL}"
OWNER = {"role": "roles/owner", "members": ["user:o@x"]}
VIEW = {"role": "roles/viewer", "members": [MEMBER]}


def test_the_email_of_an_account_is_known_before_the_apply(api: Api) -> None:
    plan = ACCOUNT.customize(api, None, {"account_id": "a", "project": UNKNOWN, "email": UNKNOWN})
    assert (plan["email"], plan["name"], plan["member"]) == (EMAIL, NAME, MEMBER)


def project_plan(role: str = "roles/viewer", **more: Any) -> dict[str, Any]:
    return {"project": "p", "role": role, "member": MEMBER, "condition": [], **more}


def test_a_change_that_does_not_show_yet_is_waited_for(google: Google, api: Api) -> None:
    after = {"bindings": [VIEW], "etag": "f"}
    google.on(".*:getIamPolicy", {"etag": "e"}, {"etag": "e"}, after).on(".*:setIamPolicy", {})
    PROJECT_MEMBER.create(api, project_plan())
    assert len(google.asked) == 7


def test_conditions_tell_bindings_apart(google: Google, api: Api) -> None:
    condition = {"title": "t", "expression": "true", "description": None}
    wire = {"title": "t", "expression": "true"}
    after = {"bindings": [VIEW, {**VIEW, "condition": wire}], "etag": "f"}
    google.on(".*:getIamPolicy", {"bindings": [VIEW], "etag": "e"}, after)
    google.on(".*:setIamPolicy", {})
    state = PROJECT_MEMBER.create(api, project_plan(condition=[condition]))
    sent = google.body("POST /crm/v1/projects/p:setIamPolicy")["policy"]["bindings"]
    assert sent == after["bindings"]
    assert state["id"] == f"p/roles/viewer/{MEMBER}/t//true"


def test_an_imported_member_gets_the_whole_condition_of_that_title(
    google: Google, api: Api
) -> None:
    condition = {"title": "my title", "expression": "true"}
    google.on(".*", {"bindings": [VIEW, {**VIEW, "condition": condition}], "etag": "e"})
    imported = PROJECT_MEMBER.import_state(api, f"p roles/viewer {MEMBER} my title")
    found = PROJECT_MEMBER.read(api, imported)
    assert found is not None
    assert found["condition"] == [condition]


def test_a_member_that_the_policy_lost_is_gone(google: Google, api: Api) -> None:
    google.on(".*:getIamPolicy", {"bindings": [OWNER], "etag": "e"})
    assert PROJECT_MEMBER.read(api, project_plan()) is None


@cases("""
attribute | prior | wanted | same
member | user:a@b | user:A@B | true
member | principalSet://x/A | principalSet://x/a | false
project | p | projects/p | true
project | p | q | false
""")
def test_other_words_for_the_same_member_are_no_change(
    attribute: str, prior: str, wanted: str, *, same: bool
) -> None:
    assert PROJECT_MEMBER.suppress[attribute](prior, wanted, {}) is same
