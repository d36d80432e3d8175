"""Which answers are Google's own, and which come from somebody in between."""

from __future__ import annotations

import pytest
import requests

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
