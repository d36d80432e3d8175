import json

from tests.rehearsal.cloud.services.conftest import Api

_ROOT = "computeMetadata/v1"
_DEFAULT = f"{_ROOT}/instance/service-accounts/default"
_FLAVOR = {"metadata-flavor": "Google"}


def _get(api: Api, path: str) -> str:
    reply = api("metadata", "GET", path, headers=_FLAVOR)
    assert isinstance(reply.body, bytes)
    assert reply.status == 200, reply.body
    assert reply.headers["Metadata-Flavor"] == "Google"
    return reply.body.decode()


def test_all_but_a_ping_needs_the_header(api: Api) -> None:
    reply = api("metadata", "GET", "")
    assert (reply.status, reply.headers["Metadata-Flavor"]) == (200, "Google")
    assert api("metadata", "GET", f"{_DEFAULT}/token").status == 403
    wrong = {"metadata-flavor": "Vanilla"}
    assert api("metadata", "GET", f"{_ROOT}/project/project-id", headers=wrong).status == 403


def test_the_vm_belongs_to_a_project_of_the_rehearsals_own(api: Api) -> None:
    assert _get(api, f"{_ROOT}/project/project-id") == "rehearsal-host"
    number = _get(api, f"{_ROOT}/project/numeric-project-id")
    assert _get(api, f"{_DEFAULT}/email") == f"{number}-compute@developer.gserviceaccount.com"
    assert _get(api, f"{_ROOT}/instance/zone") == f"projects/{number}/zones/us-central1-a"
    assert _get(api, f"{_ROOT}/universe/universe-domain") == "googleapis.com"


def test_an_account_is_told_whole(api: Api) -> None:
    email = _get(api, f"{_DEFAULT}/email")
    account = json.loads(_get(api, f"{_DEFAULT}/?recursive=true"))
    assert (account["aliases"], account["email"]) == (["default"], email)
    assert account == json.loads(_get(api, f"{_DEFAULT.removesuffix('default')}{email}/"))


def test_tokens_last_an_hour_and_differ(api: Api) -> None:
    for name in ("default", _get(api, f"{_DEFAULT}/email")):
        path = f"{_ROOT}/instance/service-accounts/{name}/token?scopes=x"
        first, second = (json.loads(_get(api, path)) for _ in range(2))
        assert (first["expires_in"], first["token_type"]) == (3600, "Bearer")
        assert first["access_token"] != second["access_token"]


def test_what_is_not_there_is_not_found(api: Api) -> None:
    for path in (
        f"{_DEFAULT}/identity",
        f"{_ROOT}/instance/service-accounts/nobody/token",
        f"{_ROOT}/project/none",
        f"{_ROOT}/project/project-id/deeper",
        "computeMetadata/v2/project",
    ):
        assert api("metadata", "GET", path, headers=_FLAVOR).status == 404


def test_the_token_endpoint_gives_tokens(api: Api) -> None:
    grant = b"grant_type=refresh_token&refresh_token=x"
    reply = api("metadata", "POST", "token", grant)
    assert isinstance(reply.body, dict)
    assert reply.body["expires_in"] == 3600
    assert api("metadata", "GET", "token").status == 405
