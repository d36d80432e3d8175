"""Credentials that are good, and the server that says so."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from provision.errors import CredentialsError, Problem
from provision.google import auth
from tests.unit.google.auth import token_server
from tests.unit.google.auth.token_server import Google
from tests.unit.kinds.cases import problem_of


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
    """A token endpoint and a metadata server, where google-auth looks for them."""
    with token_server.serving() as found:
        # It is read when google-auth is imported, which another test may have done.
        monkeypatch.setattr("google.auth.compute_engine._metadata._GCE_METADATA_HOST", found.host)
        monkeypatch.setenv("GCE_METADATA_HOST", found.host)
        monkeypatch.setenv("GCE_METADATA_MTLS_MODE", "none")
        # Between two requests for a token google-auth waits, for seconds where one is out of order.
        monkeypatch.setattr("google.auth._exponential_backoff.time", SimpleNamespace(sleep=bool))
        yield found


@pytest.fixture(scope="session")
def key_of_a_service_account() -> str:
    """Made once: it takes a while. Its token endpoint is still to be filled in."""
    return token_server.key("TOKEN_URI")


@pytest.fixture
def key(tmp_path: Path, google: Google, key_of_a_service_account: str) -> Path:
    """The key of a service account whose token endpoint is ours."""
    file = tmp_path / "key.json"
    file.write_text(key_of_a_service_account.replace("TOKEN_URI", google.token_uri))
    google.answers["/token"] = (200, {"access_token": "ya29.key", "expires_in": 3600})
    return file


@pytest.fixture
def federation(tmp_path: Path, google: Google) -> Path:
    """A file of workload identity federation, with the token that it leads to."""
    (tmp_path / "subject").write_text("a token of another provider's")
    file = tmp_path / "federation.json"
    file.write_text(token_server.federation(google.token_uri, str(tmp_path / "subject")))
    return file


def refused(environ: dict[str, str]) -> Problem:
    """The one problem that finding credentials ends with."""
    return problem_of(CredentialsError, auth.credentials, environ)
