"""Refusals of requests, whose credentials gave a token before."""

import pytest
from google.oauth2.credentials import Credentials

from provision.endpoints import Service
from provision.errors import CredentialsError, ExitCode
from provision.google.http import Rest
from provision.time.clock import Clock
from provision.time.stages import Progress
from tests.unit.google.auth.token_server import Google


@pytest.mark.parametrize(
    ("status", "message", "what"),
    [
        (403, "Caller does not have required permission to use project my-quota.", "quota project"),
        (403, "Request had insufficient authentication scopes.", "scopes"),
        (401, "Request had invalid authentication credentials.", "The access token has expired"),
    ],
)
def test_a_request_that_is_refused_for_its_credentials_says_what_mends_them(
    google: Google, status: int, message: str, what: str
) -> None:
    google.answers["/compute/v1/projects/my-project"] = (status, {"error": {"message": message}})
    environ = {"GOOGLE_COMPUTE_CUSTOM_ENDPOINT": f"http://{google.host}/compute/v1/"}

    with pytest.raises(CredentialsError) as caught:
        Rest(Credentials("ya29.mine"), environ, Progress(Clock(), print)).get(
            Service.COMPUTE, "projects/my-project"
        )

    assert caught.value.exit_code == ExitCode.CREDENTIALS
    assert what in caught.value.problems[0].what
