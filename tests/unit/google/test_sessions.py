"""Who gets a token, which answers are Google's own, and which come from somebody in between."""

import time
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from google.oauth2.credentials import Credentials

from provision import signals
from provision.errors import ClusterError
from provision.google import sessions

HTML = "text/html; charset=UTF-8"


def _answer(status: int, kind: str, text: str, location: str = "") -> requests.Response:
    made = requests.Response()
    made.status_code = status
    made.headers["Content-Type"] = kind
    if location:
        made.headers["Location"] = location
    made._content = text.encode()
    return made


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    [
        (200, "application/json", "{}"),
        (404, "application/json; charset=UTF-8", '{"error": {}}'),
        (404, HTML, "No such object: my-bucket/np-deployment/deployment.json"),
        (403, HTML, "me@x.com does not have storage.objects.get access"),
    ],
)
def test_googles_own_answers_are_taken(status: int, kind: str, text: str) -> None:
    assert sessions.page_in_place_of(_answer(status, kind, text)) == ""


@pytest.mark.parametrize("status", [200, 403, 404, 502])
@pytest.mark.parametrize("text", ["<!DOCTYPE html><html>", "\n <html><body>Log in</body></html>"])
def test_a_page_is_nobodys_answer_whatever_its_status(status: int, text: str) -> None:
    assert f"a web page ({status})" in sessions.page_in_place_of(_answer(status, HTML, text))


def test_a_redirect_leads_away_from_google() -> None:
    answer = _answer(302, "", "", "https://login.example")
    assert "leads to https://login.example" in sessions.page_in_place_of(answer)


MOVED = {
    "GOOGLE_COMPUTE_CUSTOM_ENDPOINT": "https://compute.example.com/v1/",
    "KUBERNETES_CUSTOM_ENDPOINT": "http://127.0.0.1:8080/kubernetes/{endpoint}",
}


TRUSTED = """https://compute.googleapis.com/compute/v1/x
https://storage-psc.p.googleapis.com/b/x
https://gke-0123.us-central1.gke.goog/api
https://compute.example.com/v1/x
http://127.0.0.1:8080/kubernetes/x/api"""
NOBODY = """https://example.com/api
https://googleapis.com.example.com/x
https://evilgoogleapis.com/x
https://example.com/x.gke.goog
https://x.gke.goog@example.com/
http://compute.googleapis.com/x
https:///api"""


def test_google_and_whom_the_environment_names_get_a_token() -> None:
    for url in TRUSTED.splitlines():
        sessions.require_trusted(url, MOVED)


@pytest.mark.parametrize("url", [*NOBODY.splitlines(), None])
def test_nobody_else_gets_a_token(url: str | None) -> None:
    with pytest.raises(ClusterError, match="would get the access token") as caught:
        sessions.require_trusted(url, MOVED)
    assert "KUBERNETES_CUSTOM_ENDPOINT=https://HOST" in caught.value.problems[0].fix


def test_a_session_sends_nothing_to_anybody_else() -> None:
    session = sessions.authorized(Credentials("token"), {})

    with pytest.raises(ClusterError, match=r"https://example\.invalid would get"):
        session.get("https://example.invalid/x")


def test_a_run_that_was_told_to_stop_asks_on_for_a_moment_where_nothing_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, stopped = [100.0], [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(signals, "stopped_for", lambda: stopped[0])
    patience = sessions._Patience()
    patience.ask()
    now[0] += 600.0
    patience.ask()  # an outage, and nobody waits for the end

    stopped[0] = 11.0
    with pytest.raises(OSError, match="told to stop"):
        patience.ask()
    for status, goes_on in ((503, False), (404, True)):
        answer: Any = SimpleNamespace(status_code=status)
        patience.heard(answer)
        if goes_on:
            patience.ask()
        else:
            with pytest.raises(OSError, match="told to stop"):
                patience.ask()
