"""An outage in the way of each online check: what could not be looked at has not passed."""

import json
from typing import Any, Final, cast

import pytest
import requests
from google.auth.exceptions import RefreshError
from google.oauth2.credentials import Credentials

from provision.codes import Code
from provision.documents.checks import CheckState
from provision.errors import CheckError
from provision.google.api import GoogleApi, Service
from provision.settings.choices import OnlineCheck
from provision.time.clock import Clock
from provision.time.stages import Progress
from tests.unit.preflight.stand_in import Google
from tests.unit.preflight.test_checks import ASKING, BEGINNINGS, BUCKET, SECRETS


def _answer(status: int, reason: str = "", body: str = "") -> requests.Response:
    answer = requests.Response()
    answer.status_code = status
    error = {"code": status, "message": "No", "errors": [{"reason": reason}]}
    answer._content = (body or json.dumps({"error": error})).encode()
    return answer


OUTAGES: Final[dict[str, requests.Response | Exception]] = {
    "408": _answer(408),
    "429": _answer(429, "rateLimitExceeded"),
    "too many for Compute Engine": _answer(403, "rateLimitExceeded"),
    "500": _answer(500),
    "502": _answer(502, body="<html>Bad Gateway</html>"),
    "503": _answer(503),
    "504": _answer(504),
    "cut": _answer(200, body='{"items": ['),
    "slow": requests.ReadTimeout("read timed out"),
    "no DNS": requests.ConnectionError("Name or service not known"),
    "reset": requests.ConnectionError("Connection reset by peer"),
    "TLS": requests.exceptions.SSLError("certificate verify failed"),
    "no end of redirects": requests.TooManyRedirects("Exceeded 30 redirects."),
    "no token": RefreshError("internal_failure", retryable=True),
}


class Interrupted(Google):
    """Google, but what is below a path is out of order.

    `below`: The beginning of the path; "" for none. `api`: What an outage makes of each request.
    """

    below = ""

    def __init__(self, outage: requests.Response | Exception) -> None:
        super().__init__()
        self.api = GoogleApi(Credentials("token"), {}, Progress(Clock(0), lambda _: None))
        self.api._session = cast("Any", self)
        self._outage = outage

    def request(self, *_: object, **__: object) -> requests.Response:
        if isinstance(self._outage, Exception):
            raise self._outage
        return self._outage

    def _heard(self, path: str) -> None:
        if self.below and path.startswith(self.below):
            self.api.call("GET", Service.COMPUTE, path, {})
        super()._heard(path)


@pytest.fixture
def google(request: pytest.FixtureRequest) -> Google:
    return Interrupted(OUTAGES[request.param])


@pytest.mark.parametrize("google", OUTAGES, indirect=True)
@pytest.mark.parametrize("name", OnlineCheck)
def test_an_outage_leaves_a_check_unchecked_and_another_try_may_help(
    google: Interrupted, name: OnlineCheck
) -> None:
    google.below = BEGINNINGS[name]
    google.documents["projects/my-project/secrets/token"] = {"name": "it"}
    settings = ASKING.get(name, BUCKET) | SECRETS

    found = google.check(settings)

    assert found.states[name] is CheckState.UNCHECKED
    assert found.problems == []
    assert {one.code for one in found.remarks(is_gate=False)} == {Code.NOT_CHECKED}
    with pytest.raises(CheckError) as caught:
        found.require(is_gate=True)
    assert {one.code for one in caught.value.problems} == {Code.UNREACHABLE}
    for problem in caught.value.problems:
        assert "again" in problem.fix
        assert "https://status.cloud.google.com" in problem.fix
        assert "SKIP_CHECKS" not in problem.fix
