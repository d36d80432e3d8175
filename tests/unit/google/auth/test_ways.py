"""Where credentials come from, how they are proven, and what Terraform gets of them."""

import json
from pathlib import Path

import pytest

from provision.endpoints import IMPERSONATE
from provision.google import auth
from tests.unit.google.auth.conftest import refused
from tests.unit.google.auth.token_server import Google

# ------------------------------------------------------------------ the order


def _gcloud_file(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "application_default_credentials.json"
    file.write_text("{}")
    return file


def test_the_ways_have_an_order(tmp_path: Path) -> None:
    named, home = tmp_path / "named", tmp_path / "home"
    at_home = _gcloud_file(home / ".config" / "gcloud")
    elsewhere = _gcloud_file(tmp_path / "elsewhere")
    environ = {
        "GOOGLE_OAUTH_ACCESS_TOKEN": "ya29.mine",
        "GOOGLE_APPLICATION_CREDENTIALS": str(named),
        "CLOUDSDK_CONFIG": str(elsewhere.parent),
        "HOME": str(home),
    }
    found = []
    for name in (*environ, None):
        one = auth.source(environ)
        found.append(one.token or one.file)
        environ.pop(name or "", None)

    assert found == ["ya29.mine", named, elsewhere, at_home, None]


def test_blank_variables_are_no_way() -> None:
    blank = dict.fromkeys((auth.TOKEN, auth.FILE, "CLOUDSDK_CONFIG", "HOME", IMPERSONATE), "")

    assert auth.source(blank) == auth.Source("the metadata server")


# ------------------------------------------------------------------ what Terraform gets


def test_terraform_gets_the_file_that_was_checked_and_nothing_it_would_prefer(
    tmp_path: Path,
) -> None:
    file = _gcloud_file(tmp_path / "elsewhere")
    environ = {
        "CLOUDSDK_CONFIG": str(file.parent),
        "GOOGLE_CREDENTIALS": "/another.json",
        "GOOGLE_BACKEND_CREDENTIALS": "/another.json",
        "GCLOUD_KEYFILE_JSON": "{}",
        "GOOGLE_CLOUD_KEYFILE_JSON": "{}",
        "PATH": "/bin",
    }

    assert auth.for_terraform(environ) == {
        "CLOUDSDK_CONFIG": str(file.parent),
        "GOOGLE_APPLICATION_CREDENTIALS": str(file),
        "PATH": "/bin",
    }


def test_provider_and_backend_impersonate_the_same_account() -> None:
    environ = {
        "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT": "builder@p.iam.gserviceaccount.com",
        "GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT": "other@p.iam.gserviceaccount.com",
    }

    assert set(auth.for_terraform(environ).values()) == {"builder@p.iam.gserviceaccount.com"}
    assert len(auth.for_terraform(environ)) == 2


# ------------------------------------------------------------------ proof


def test_a_key_is_proven_by_a_token_and_said_in_one_line(key: Path) -> None:
    said: list[str] = []
    found = auth.credentials({"GOOGLE_APPLICATION_CREDENTIALS": str(key)}, said.append)

    assert found.token == "ya29.key"  # noqa: S105 - the server's
    assert said == [f"Credentials: the file {key} (GOOGLE_APPLICATION_CREDENTIALS)"]


def test_a_federation_file_is_proven_by_an_exchange(federation: Path, google: Google) -> None:
    google.answers["/token"] = (200, {"access_token": "ya29.federated", "expires_in": 3600})

    found = auth.credentials({"GOOGLE_APPLICATION_CREDENTIALS": str(federation)})

    assert found.token == "ya29.federated"  # noqa: S105 - the server's


def test_a_persons_login_is_proven_by_its_refresh_token(
    tmp_path: Path, google: Google, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No file can say another one for people.
    monkeypatch.setattr("google.oauth2.credentials._GOOGLE_OAUTH2_TOKEN_ENDPOINT", google.token_uri)
    file = tmp_path / "application_default_credentials.json"
    login = {
        "type": "authorized_user",
        "client_id": "1.apps.googleusercontent.com",
        "client_secret": "s",
        "refresh_token": "1//r",
        "quota_project_id": "my-quota",
    }
    file.write_text(json.dumps(login))
    google.answers["/token"] = (200, {"access_token": "ya29.ann", "expires_in": 3600})

    found = auth.credentials({"CLOUDSDK_CONFIG": str(tmp_path)})

    assert found.token == "ya29.ann"  # noqa: S105 - the server's
    assert found.quota_project_id == "my-quota"


def test_a_token_that_was_given_is_taken_as_it_is() -> None:
    found = auth.credentials({"GOOGLE_OAUTH_ACCESS_TOKEN": "ya29.mine"})

    assert found.token == "ya29.mine"  # noqa: S105 - no secret
    assert found.valid


@pytest.mark.parametrize("content", [None, "not JSON", "{}", '{"type": "service_account"}'])
def test_a_file_that_is_none_is_named(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "key.json"
    if content is not None:
        file.write_text(content)
    problem = refused({"GOOGLE_APPLICATION_CREDENTIALS": str(file)})

    assert problem.what.startswith(f"The file {file} (GOOGLE_APPLICATION_CREDENTIALS) can't be")
    assert "-v FILE:FILE:ro" in problem.fix


# ------------------------------------------------------------------ impersonation

BUILDER = "builder@my-project.iam.gserviceaccount.com"


@pytest.fixture
def impersonating(google: Google, key: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of somebody with a key who acts as another account."""
    monkeypatch.setattr("google.auth.iam._IAM_ENDPOINT", f"http://{google.host}/as/{{}}")
    google.answers[f"/as/{BUILDER}"] = (
        200,
        {"accessToken": "ya29.builder", "expireTime": "2100-01-01T00:00:00Z"},
    )
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(key), IMPERSONATE: BUILDER}


def test_impersonation_goes_on_top_of_what_was_found(impersonating: dict[str, str]) -> None:
    said: list[str] = []
    found = auth.credentials(impersonating, said.append)

    assert found.token == "ya29.builder"  # noqa: S105 - the server's
    assert said[0].endswith(f", impersonating {BUILDER}")


def test_terraform_gets_the_accounts_own_token_where_nothing_could_renew_another(
    impersonating: dict[str, str],
) -> None:
    environ = {auth.TOKEN: "ya29.mine", IMPERSONATE: impersonating[IMPERSONATE]}
    auth.hand_over(auth.credentials(environ), environ)
    assert environ == {auth.TOKEN: "ya29.builder"}

    renewed = dict(impersonating)
    auth.hand_over(auth.credentials(renewed), renewed)
    assert renewed == impersonating


def test_who_may_not_impersonate_is_told_which_role_is_missing(
    google: Google, impersonating: dict[str, str]
) -> None:
    denied = "Permission 'iam.serviceAccounts.getAccessToken' denied on resource"
    google.answers[f"/as/{BUILDER}"] = (403, {"error": {"code": 403, "message": denied}})

    problem = refused(impersonating)

    assert "may not be impersonated" in problem.what
    assert "roles/iam.serviceAccountTokenCreator" in problem.fix
