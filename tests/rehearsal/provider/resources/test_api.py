import json
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest

from rehearsal.provider import durations
from rehearsal.provider.api import Api
from rehearsal.provider.failures import Cancelled, CredentialsMissing, GoogleApiError
from rehearsal.provider.transport import retry_waits
from tests.rehearsal.provider.resources.conftest import Google, refusal
from tests.table import cases

NETWORK = "/compute/v1/projects/p/global/networks/n"


def look(api: Api) -> dict[str, Any]:
    return api.plain("compute", "GET", "projects/p/global/networks/n")


@cases(
    """
service | block | environ | base
compute | {compute_custom_endpoint: "http://a/v1"} | @b | http://a/v1/
compute | {} | @b | http://b/compute/v1/
compute | {} | {} | https://compute.googleapis.com/compute/v1/
# Some clients put their own version behind an endpoint.
container | {container_custom_endpoint: "http://h/odd/"} | {} | http://h/v1/
iam | {iam_beta_custom_endpoint: "http://h/v9/"} | {} | http://h/v1/
monitoring | {monitoring_custom_endpoint: "http://h/m/"} | {} | http://h/m/
# This one moves nothing.
iam | {iam_custom_endpoint: "http://h/"} | {} | https://iam.googleapis.com/v1/
""",
    b={"GOOGLE_COMPUTE_CUSTOM_ENDPOINT": "http://b/compute/v1/"},
)
def test_an_endpoint_comes_from_the_block_before_the_environment(
    service: str, block: dict[str, str], environ: dict[str, str], base: str
) -> None:
    assert Api(block, environ).base(service) == base


def test_uploads_go_to_the_root_of_the_storage_host() -> None:
    it = Api({"storage_custom_endpoint": "http://h:1/a/storage/v1/"}, {})
    assert it.upload_base() == "http://h:1/upload/storage/v1/"


def test_project_region_and_zone_come_from_the_block_the_environment_and_the_zone() -> None:
    environ = {"GOOGLE_PROJECT": "p1", "GOOGLE_REGION": "r1", "GOOGLE_ZONE": "z1"}
    it = Api({"zone": "z2"}, environ)
    assert (it.project, it.region, it.zone) == ("p1", "r1", "z2")
    assert Api({"zone": "us-east4-b"}, {}).region == "us-east4"


def test_the_metadata_server_is_asked_for_a_token_at_the_first_request_only(
    google: Google, environ: dict[str, str], connect: Callable[..., Api]
) -> None:
    del environ["GOOGLE_OAUTH_ACCESS_TOKEN"]
    environ["GCE_METADATA_HOST"] = google.base_url.removeprefix("http://")
    google.on("GET /computeMetadata/.*", {"access_token": "fresh", "expires_in": 3599})
    google.on(f"GET {NETWORK}", {})
    api = connect()
    assert google.lines == []
    look(api)
    look(api)
    first = "GET /computeMetadata/v1/instance/service-accounts/default/token"
    assert google.lines == [first, f"GET {NETWORK}", f"GET {NETWORK}"]
    assert google.asked[0].headers["metadata-flavor"] == "Google"
    assert google.asked[1].headers["authorization"] == "Bearer fresh"


def test_no_token_and_no_metadata_server_is_said_as_the_provider_says_it(
    environ: dict[str, str], connect: Callable[..., Api]
) -> None:
    del environ["GOOGLE_OAUTH_ACCESS_TOKEN"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        environ["GCE_METADATA_HOST"] = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(CredentialsMissing, match="Attempted to load application default"):
        look(connect())


def test_connections_are_kept(google: Google, api: Api) -> None:
    google.on(f"GET {NETWORK}", {"name": "n"})
    look(api)
    assert look(api) == {"name": "n"}
    assert len({asked.connection for asked in google.asked}) == 1


def test_plain_requests_name_json_always_and_client_requests_only_with_a_body(
    google: Google, api: Api
) -> None:
    google.on(".*", {})
    look(api)
    api.client("compute", "GET", "projects/p/global/networks/n")
    api.client("iam", "POST", "x:y", {})
    types = [asked.headers.get("content-type") for asked in google.asked]
    assert types == ["application/json", None, "application/json"]
    assert [asked.query for asked in google.asked] == [
        {"alt": "json"},
        {"alt": "json", "prettyPrint": "false"},
        {"alt": "json", "prettyPrint": "false"},
    ]


def test_a_fraction_is_exact_on_both_ways(google: Google, api: Api) -> None:
    google.on(".*", {"ratio": 0.7})
    assert api.plain("compute", "POST", "x", {"ratio": Decimal("0.7")}) == {"ratio": Decimal("0.7")}
    assert google.asked[0].body == {"ratio": 0.7}


@cases("""
code | words | reason
429 | slow down | rateLimitExceeded
500 | oh | backendError
502 | oh | backendError
503 | oh | backendError
409 | operation in progress | operationInProgress
400 | The resource 'projects/p/global/networks/n' is not ready | resourceNotReady
403 | Quota exceeded for quota metric 'Q' and limit 'Q per minute' | rateLimitExceeded
""")
def test_what_passes_is_tried_again(
    google: Google, api: Api, code: int, words: str, reason: str
) -> None:
    google.on(f"GET {NETWORK}", refusal(code, words, reason), {"name": "n"})
    assert look(api) == {"name": "n"}
    assert len(google.asked) == 2


@cases("""
code | reason
400 | invalid
403 | forbidden
404 | notFound
409 | alreadyExists
412 | x
""")
def test_a_refusal_stands(google: Google, api: Api, code: int, reason: str) -> None:
    google.on(f"GET {NETWORK}", refusal(code, "no", reason))
    with pytest.raises(GoogleApiError, match=f"googleapi: Error {code}: no, {reason}"):
        look(api)
    assert len(google.asked) == 1


def test_a_connection_that_breaks_is_tried_again(google: Google, api: Api) -> None:
    google.on(f"GET {NETWORK}", ConnectionResetError, {"name": "n"})
    assert look(api) == {"name": "n"}


def test_a_refused_connection_fails_at_once(
    environ: dict[str, str], connect: Callable[..., Api]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environ["GOOGLE_COMPUTE_CUSTOM_ENDPOINT"] = f"http://127.0.0.1:{port}/"
    with pytest.raises(ConnectionRefusedError):
        look(connect())


def test_a_lasting_503_is_tried_32_times_at_the_recorded_pace() -> None:
    waits = list(retry_waits())
    assert len(waits) == 31
    assert waits[:11] == [0.5, 1, 1.5, 2.5, 4, 6.5, 10.5, 17, 27.5, 44.5, 5]
    assert sum(waits[:11]) == 120.5
    assert sum(waits) == 312.5


def test_an_interrupt_ends_a_sleep_but_for_a_deaf_one(environ: dict[str, str]) -> None:
    api = Api({}, {**environ, "CLOUD_CLOCK_RATE": "0.1"})
    api.cancel.set()
    began = time.monotonic()
    assert not api.sleep(300)
    with pytest.raises(Cancelled):
        api.pause(300)
    assert time.monotonic() - began < 5
    began = time.monotonic()
    assert api.sleep(2, deaf=True)
    assert time.monotonic() - began >= 0.19


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("10s", 10), ("1m30s", 90), ("200ms", 0.2), ("1.5h", 5400), ("2h0m1s", 7201)),
        *((text, None) for text in ("", "10", "1 minute", "5d", "s")),
    ],
)
def test_a_duration_is_read_as_go_reads_it(text: str, seconds: float | None) -> None:
    if seconds is None:
        with pytest.raises(ValueError, match="invalid duration"):
            durations.seconds(text)
    else:
        assert durations.seconds(text) == pytest.approx(seconds)


def test_durations_are_written_as_go_writes_them() -> None:
    assert [durations.text(it) for it in (5, 1200, 3661)] == ["5s", "20m0s", "1h1m1s"]


# ------------------------------------------------------------------ words of refusals


@cases("""
code | error | text
409 | {message: there, errors: [{message: there, reason: alreadyExists}]}
    | googleapi: Error 409: there, alreadyExists
403 | {message: "off", errors: [{message: "off", reason: "off"}], details: [{reason: DISABLED}]}
    | "googleapi: Error 403: off\\nDetails:\\n[\\n  {\\n    \\"reason\\":
       \\"DISABLED\\"\\n  }\\n]\\n, off"
400 | {message: m, errors: [{message: a, reason: r}, {message: b, reason: s}]}
    | "googleapi: Error 400: m\\nMore details:\\nReason: r, Message: a\\nReason: s, Message: b\\n"
# Newer services have no list of errors.
404 | {message: gone, status: NOT_FOUND} | googleapi: Error 404: gone
""")
def test_a_refusal_is_worded_as_the_go_client_does(code: int, error: Any, text: str) -> None:
    assert str(GoogleApiError(code, json.dumps({"error": error}).encode())) == text


def test_an_answer_that_is_not_googles_is_quoted() -> None:
    assert str(GoogleApiError(502, b"<html>")) == (
        "googleapi: got HTTP response code 502 with body: <html>"
    )


# ------------------------------------------------------------------ batches


@pytest.fixture
def patient(environ: dict[str, str]) -> Api:
    """An api whose batches gather for three tenths of a second."""
    return Api({}, {**environ, "CLOUD_CLOCK_RATE": "0.1"})


def together(api: Api, items: Sequence[str], send: Callable[[Sequence[str]], Any]) -> list[Any]:
    """What each of them is answered at the same moment, or the error that it ends with."""
    barrier = threading.Barrier(len(items))

    def one(item: str) -> Any:
        barrier.wait()
        return api.batches.run("key", item, send)

    with ThreadPoolExecutor(len(items)) as pool:
        asked = [pool.submit(one, item) for item in items]
        return [it.exception() or it.result() for it in asked]


def test_what_comes_together_is_sent_as_one(patient: Api) -> None:
    sent = []

    def send(items: Sequence[str]) -> str:
        sent.append(sorted(items))
        return "answer"

    assert together(patient, ["a", "b", "c"], send) == ["answer"] * 3
    assert sent == [["a", "b", "c"]]


def test_a_batch_that_fails_is_taken_apart(patient: Api) -> None:
    def send(items: Sequence[str]) -> str:
        if "bad" in items:
            raise ValueError(f"{sorted(items)}")
        return items[0]

    good, bad = together(patient, ["good", "bad"], send)
    assert good == "good"
    assert repr(bad) == repr(ValueError("['bad']"))


def test_an_interrupt_sends_nothing_more(patient: Api) -> None:
    patient.cancel.set()
    sent: list[Sequence[str]] = []
    with pytest.raises(Cancelled):
        patient.batches.run("key", "a", sent.append)
    assert sent == []
