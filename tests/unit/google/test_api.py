"""Requests to Google: what is sent again, how often, and what is told."""

import json
from typing import Any, cast

import pytest
import requests
import tenacity
from google.auth.exceptions import RefreshError, TransportError
from google.oauth2.credentials import Credentials

from provision.codes import Code
from provision.errors import CheckError, CredentialsError
from provision.google.api import GoogleApi, GoogleApiError, Service
from provision.google.resources import DASHBOARD, FILESTORE, NETWORK
from provision.time import deadline
from provision.time.clock import Clock
from provision.time.stages import Progress
from tests.unit.kinds.cases import problem_of

PATH = "projects/p/global/networks/n"


def _answer(code: int, message: str = "", reason: str = "") -> requests.Response:
    answer = requests.Response()
    answer.status_code = code
    document = {"error": {"message": message, "errors": [{"reason": reason}]}} if message else {}
    answer._content = json.dumps(document).encode()
    return answer


class Session:
    """Answers one request after the other; the last answer is for ever."""

    def __init__(self, *answers: requests.Response | Exception) -> None:
        self.answers = list(answers)
        self.asked = 0

    def request(self, *_: object, **__: object) -> requests.Response:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(answer, Exception):
            raise answer
        return answer


def _api(session: Session, told: list[str] | None = None) -> GoogleApi:
    tell = (told if told is not None else []).append
    api = GoogleApi(Credentials("token"), {}, Progress(Clock(0), tell))
    api._session = cast("Any", session)
    return api


def _saying(document: object, text: str = "") -> requests.Response:
    answer = _answer(200)
    answer._content = (text or json.dumps(document)).encode()
    return answer


PASSING: list[requests.Response | Exception] = [
    _answer(408, "Timeout"),
    _answer(409, "Another operation is running", "operationInProgress"),
    _answer(409, "There is already an operation in progress."),
    _answer(429, "Rate Limit Exceeded"),
    _answer(403, "Rate Limit Exceeded", "rateLimitExceeded"),
    _answer(500, "Internal"),
    _answer(502, "Bad Gateway"),
    _answer(503, "Unavailable"),
    _answer(507, "Strange"),
    _saying(None, "<html>log in to the hotel's network</html>"),
    requests.ConnectionError("reset"),
    requests.ReadTimeout("slow"),
    requests.exceptions.ChunkedEncodingError("cut"),
    requests.TooManyRedirects("round and round"),
    requests.exceptions.ContentDecodingError("no gzip"),
    TransportError("no token yet"),
    RefreshError("the token endpoint is busy", retryable=True),
]
FINAL = [
    _answer(400, "Invalid"),
    _answer(403, "Forbidden"),
    _answer(409, "The resource already exists", "alreadyExists"),
    _answer(412, "Precondition"),
    _answer(501, "Not implemented"),
]


@pytest.mark.parametrize("trouble", PASSING, ids=repr)
def test_passing_trouble_is_waited_out_and_told_in_one_line(
    trouble: requests.Response | Exception,
) -> None:
    told: list[str] = []
    session = Session(trouble, trouble, _answer(200))
    assert _api(session, told).find(Service.COMPUTE, PATH) == {}
    assert session.asked == 3
    assert len(told) == 2
    assert told[0].startswith("Request failed, retrying (try 2 of 8): ")
    assert all("\n" not in line for line in told)


@pytest.mark.parametrize("refusal", FINAL, ids=repr)
def test_a_refusal_is_never_sent_again(refusal: requests.Response) -> None:
    session = Session(refusal)
    with pytest.raises(GoogleApiError) as caught:
        _api(session).find(Service.COMPUTE, PATH)
    assert caught.value.code == refusal.status_code
    assert session.asked == 1


def test_trouble_that_stays_is_given_up_in_the_end() -> None:
    session = Session(_answer(503, "Unavailable"))
    with pytest.raises(GoogleApiError, match="503") as caught:
        _api(session).find(Service.COMPUTE, PATH)
    assert session.asked == deadline.TRIES
    assert caught.value.problems[0].code is Code.UNREACHABLE


@pytest.mark.parametrize("trouble", PASSING, ids=repr)
def test_a_project_that_nobody_could_look_up_is_not_called_missing(
    trouble: requests.Response | Exception,
) -> None:
    problem = problem_of(CheckError, _api(Session(trouble)).project_number, "p")
    assert problem.code is Code.UNREACHABLE
    assert "https://status.cloud.google.com" in problem.fix
    assert "PROJECT_ID" not in (problem.setting, problem.fix)


@pytest.mark.parametrize("code", [403, 404])
def test_a_project_that_google_does_not_show_may_be_missing(code: int) -> None:
    with pytest.raises(CheckError) as caught:
        _api(Session(_answer(code, "The caller does not have permission"))).project_number("p")
    assert caught.value.problems[0].code is Code.PROJECT_NOT_FOUND


@pytest.mark.parametrize("trouble", [_answer(401, "Expired"), RefreshError("revoked")], ids=repr)
def test_credentials_that_end_are_not_a_failed_check(
    trouble: requests.Response | Exception,
) -> None:
    session = Session(trouble)
    with pytest.raises(CredentialsError):
        _api(session).find(Service.COMPUTE, PATH)
    assert session.asked == 1


def test_a_missing_permission_is_named_with_a_role() -> None:
    session = Session(_answer(403, "Required 'compute.networks.get' permission for 'projects/p'"))
    problem = problem_of(GoogleApiError, _api(session).find, Service.COMPUTE, PATH)
    assert "roles/compute.networkAdmin" in problem.fix


def test_pauses_grow_at_random_up_to_a_limit() -> None:
    again = deadline.policy(Clock(), print)
    state = tenacity.RetryCallState(again, None, (), {})
    state.attempt_number = 30
    pauses = {again.wait(state) for _ in range(50)}
    assert len(pauses) > 10
    assert max(pauses) <= 20


def test_there_are_no_instances_for_who_may_not_list_them_and_another_refusal_is_told() -> None:
    disabled = _api(Session(_answer(403, "Cloud Filestore API is disabled")))
    assert disabled.listed(FILESTORE.look, "p") == []
    assert _api(Session(_answer(403, "Forbidden"))).listed(DASHBOARD.look, "p") == []
    for code, row in ((400, FILESTORE), (403, NETWORK)):
        with pytest.raises(GoogleApiError):
            _api(Session(_answer(code, "Invalid"))).listed(row.look, "p")


def test_the_deletion_of_a_share_is_waited_for() -> None:
    name = "projects/p/locations/z/operations/o"
    session = Session(*(_saying({"name": name, "done": done}) for done in (False, False, True)))

    _api(session).delete(Service.FILESTORE, "projects/p/locations/z/instances/n")

    assert session.asked == 3


def test_a_share_that_cannot_be_deleted_is_told_in_googles_words() -> None:
    session = Session(_saying({"done": True, "error": {"code": 9, "message": "has a snapshot"}}))

    with pytest.raises(GoogleApiError, match="400") as caught:
        _api(session).delete(Service.FILESTORE, "projects/p/locations/z/instances/n")
    assert caught.value.message == "has a snapshot"


def test_monitoring_has_its_version_after_its_address_also_when_moved() -> None:
    moved = {"GOOGLE_MONITORING_CUSTOM_ENDPOINT": "http://localhost/monitoring/"}

    assert Service.MONITORING.url({}) == "https://monitoring.googleapis.com/v1/"
    assert Service.MONITORING.url(moved) == "http://localhost/monitoring/v1/"


class Recording(Session):
    """Keeps what is sent."""

    def __init__(self, *answers: requests.Response | Exception) -> None:
        super().__init__(*answers)
        self.sent: list[tuple[str, Any]] = []

    def request(self, *arguments: object, **more: object) -> requests.Response:
        self.sent.append((str(arguments[0]), more.get("json")))
        return super().request(*arguments, **more)


POLICY = {
    "etag": "CAE=",
    "bindings": [{"role": "r", "members": ["a", "b"]}, {"role": "s", "members": ["a"]}],
}


def test_a_role_in_a_bucket_is_taken_from_its_member_and_from_no_other() -> None:
    session = Recording(_saying(POLICY), _answer(412, "Precondition"), _saying(POLICY), _saying({}))

    _api(session).revoke_in_bucket("data", lambda _, member: member == "a")

    assert [method for method, _ in session.sent] == ["GET", "PUT", "GET", "PUT"]
    left = [{"role": "r", "members": ["b"]}]
    assert session.sent[-1][1] == {"etag": "CAE=", "bindings": left, "version": 3}


@pytest.mark.parametrize("answer", [_answer(403, "no"), _answer(404, "no"), _saying(POLICY)])
def test_a_policy_that_stays_or_can_not_be_read_is_not_written(answer: requests.Response) -> None:
    session = Recording(answer)
    _api(session).revoke_in_bucket("data", lambda *_: not answer.ok)
    assert [method for method, _ in session.sent] == ["GET"]


KEYS: dict[str, Any] = {
    "fingerprint": "b2xk",
    "items": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}],
}
LATER = {"fingerprint": "bmV3", "items": [*KEYS["items"], {"key": "ssh-keys", "value": "me"}]}


def test_metadata_that_somebody_else_changed_meanwhile_is_read_again() -> None:
    session = Recording(
        _saying({"metadata": KEYS}),
        _answer(412, "Supplied fingerprint does not match current metadata fingerprint."),
        _saying({"metadata": LATER}),
        _saying({"status": "DONE"}),
    )

    _api(session).change_metadata("projects/p/zones/z/instances/vm", lambda now: {**now, "a": "3"})

    assert [method for method, _ in session.sent] == ["GET", "POST", "GET", "POST"]
    changed = [
        {"key": "a", "value": "3"},
        {"key": "b", "value": "2"},
        {"key": "ssh-keys", "value": "me"},
    ]
    assert session.sent[-1][1] == {"fingerprint": "bmV3", "items": changed}


@pytest.mark.parametrize("answer", [_saying({"metadata": KEYS}), _answer(404, "not found")])
def test_metadata_that_is_as_wanted_or_gone_is_not_written(answer: requests.Response) -> None:
    session = Recording(answer)

    _api(session).change_metadata("projects/p/zones/z/instances/vm", lambda now: now)

    assert [method for method, _ in session.sent] == ["GET"]


class Recorder(Session):
    """Keeps the URLs that were asked."""

    def __init__(self) -> None:
        super().__init__(_answer(200))
        self.urls: list[str] = []

    def request(self, *arguments: object, **_: object) -> requests.Response:
        self.urls.append(str(arguments[1]))
        return super().request()


@pytest.mark.parametrize(
    ("region", "asked"),
    [
        ("us?quotaUser=x#", "regions/us%3FquotaUser=x%23/subnetworks/n"),
        ("us/../../../q", ""),
        ("..", ""),
        ("us%2Fx", "regions/us%252Fx/subnetworks/n"),
        ("us\r\nHost: x", "regions/us%0D%0AHost:%20x/subnetworks/n"),
    ],
)
def test_a_name_ends_no_path_and_leads_out_of_none(region: str, asked: str) -> None:
    session = Recorder()

    assert not _api(session).find(Service.COMPUTE, f"projects/p/regions/{region}/subnetworks/n")

    base = "https://compute.googleapis.com/compute/v1/projects/p/"
    assert session.urls == ([base + asked] if asked else [])


def test_a_slash_in_a_name_is_part_of_the_name_but_in_that_of_a_quota() -> None:
    session = Recorder()

    _api(session).find(Service.COMPUTE, NETWORK.path(project="p", name="n/setLabels"))
    _api(session).find(Service.QUOTAS, "projects/p/consumerQuotaMetrics/compute%2Fgpus")
    _api(session).find(Service.COMPUTE, "projects/p/regions/us%2Fx\x1f")

    assert session.urls[0].endswith("/projects/p/global/networks/n%252FsetLabels")
    assert session.urls[1].endswith("/consumerQuotaMetrics/compute%2Fgpus")
    assert session.urls[2].endswith("/regions/us%252Fx%1F")


@pytest.mark.parametrize("text", ["[]", "null", "7", '"x"', "[" * 100_000, "{", '{"a": NaN}'])
def test_an_answer_that_is_no_object_is_asked_for_again(text: str) -> None:
    told: list[str] = []
    session = Session(_saying(None, text), _answer(200))
    assert _api(session, told).get(Service.COMPUTE, PATH) == {}
    assert session.asked == 2
    assert "not as Google's" in told[0]


@pytest.mark.parametrize("items", [None, [None], [[]], "x", {"a": 7}])
def test_a_list_of_other_things_than_objects_is_an_outage(items: object) -> None:
    with pytest.raises(GoogleApiError) as raised:
        list(_api(Session(_saying({"items": items}))).pages("GET", PATH, "items", {}))
    assert raised.value.problems[0].code is Code.UNREACHABLE


def test_guest_attributes_that_are_none_are_left_out() -> None:
    odd = [None, {"value": "x"}, {"key": 7, "value": "x"}]
    for found in (None, {"items": None}, {"items": odd}):
        api = _api(Session(_saying({"queryValue": found})))
        assert api.guest_attributes("projects/p/zones/z/instances/i", "a") == {}


def test_a_certificate_that_nobody_knows_is_not_asked_for_again() -> None:
    session = Session(requests.exceptions.SSLError("[SSL: CERTIFICATE_VERIFY_FAILED] it"))

    with pytest.raises(GoogleApiError) as raised:
        _api(session).get(Service.COMPUTE, PATH)

    assert session.asked == 1
    assert raised.value.problems[0].code is Code.UNTRUSTED
    assert "CA_BUNDLE" in raised.value.problems[0].fix
