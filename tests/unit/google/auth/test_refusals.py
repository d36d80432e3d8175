from pathlib import Path

import pytest

from provision.codes import Code
from provision.google import auth
from tests.unit.google.auth.conftest import refused
from tests.unit.google.auth.token_server import Google


@pytest.mark.parametrize(
    ("error", "description", "what"),
    [
        ("invalid_grant", "Token has been expired or revoked.", "has expired or was revoked"),
        ("invalid_grant", "reauth related error (invalid_rapt)", "has expired or was revoked"),
        ("invalid_grant", "Invalid JWT Signature.", "key is no longer valid"),
        ("invalid_grant", "Invalid grant: account not found", "key is no longer valid"),
        ("temporarily_out", "of order", "Google gives no token for the file"),
    ],
)
def test_a_refused_token_is_explained(
    google: Google, key: Path, error: str, description: str, what: str
) -> None:
    google.answers["/token"] = (400, {"error": error, "error_description": description})
    problem = refused({"GOOGLE_APPLICATION_CREDENTIALS": str(key)})

    assert what in problem.what
    assert "\n" not in problem.what
    assert description in problem.why


def test_a_token_of_federation_that_is_refused_is_not_mended_by_a_login(
    google: Google, federation: Path
) -> None:
    description = "The audience in ID Token does not match the expected audience."
    google.answers["/token"] = (400, {"error": "invalid_grant", "error_description": description})
    problem = refused({"GOOGLE_APPLICATION_CREDENTIALS": str(federation)})

    assert problem.what.startswith("The identity pool does not accept the token")
    assert description in problem.why
    assert "auth application-default login" not in problem.fix


def test_a_token_of_federation_that_was_not_mounted_is_told(
    federation: Path, tmp_path: Path
) -> None:
    (tmp_path / "subject").unlink()
    problem = refused({"GOOGLE_APPLICATION_CREDENTIALS": str(federation)})

    assert problem.what == "The token that the federation file refers to can't be read"
    assert str(tmp_path / "subject") in problem.why


def test_a_token_endpoint_that_is_out_of_reach_is_no_fault_of_the_credentials(
    google: Google, key: Path
) -> None:
    key.write_text(key.read_text().replace(google.host, "127.0.0.1:9"))
    problem = refused({"GOOGLE_APPLICATION_CREDENTIALS": str(key)})

    assert problem.what == "Google could not be reached to get a token"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, {"error": "rate_limit_exceeded"}),
        (500, {"error": "internal_failure"}),
        (502, "<html>Bad Gateway</html>"),
        (503, {"error": "temporarily_unavailable"}),
        (200, "<html>Log in to the hotel's network</html>"),
        (403, "<!DOCTYPE html><html>The proxy says no</html>"),
    ],
)
def test_a_token_endpoint_that_is_out_of_order_is_no_fault_of_the_credentials(
    google: Google, key: Path, status: int, body: object
) -> None:
    google.answers["/token"] = (status, body)
    problem = refused({"GOOGLE_APPLICATION_CREDENTIALS": str(key)})

    assert problem.code is Code.UNREACHABLE, problem
    assert "renew" not in problem.fix


SAID = {
    "ann@example.com does not have serviceusage.services.use access to the project.": (
        "quota project"
    ),
    "Caller does not have required permission to use project my-quota.": "quota project",
    "Request had insufficient authentication scopes.": "scopes",
    "Request had invalid authentication credentials. Expected OAuth 2 access token.": (
        "access token has expired"
    ),
    "The compute.googleapis.com API requires a quota project, which is not set by default.": (
        "have no quota project"
    ),
    "Permission 'iam.serviceAccounts.getAccessToken' denied on resource": "may not be impersonated",
}


@pytest.mark.parametrize("message", SAID)
def test_what_google_says_of_credentials_is_told_from_other_refusals(message: str) -> None:
    error = auth.explain(message)
    assert error is not None
    assert SAID[message] in error.problems[0].what
    assert error.problems[0].fix


def test_every_refusal_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[4] / "docs" / "how-to" / "credentials.md").read_text()
    rows = page.replace("`", "")

    assert [one.what for one in auth._REFUSALS if f"| {one.what} |" not in rows] == []


def test_a_missing_right_in_the_project_is_no_fault_of_the_credentials() -> None:
    message = "Required 'compute.networks.create' permission for 'projects/my-project'"

    assert auth.explain(message) is None
