from __future__ import annotations

import json

from rehearsal.provider.failures import GoogleApiError


def text(code: int, error: object) -> str:
    return str(GoogleApiError(code, json.dumps({"error": error}).encode()))


def test_one_error_is_its_message_and_its_reason() -> None:
    message = "The resource 'projects/p/global/networks/n' already exists"
    error = {"message": message, "errors": [{"message": message, "reason": "alreadyExists"}]}
    assert text(409, error) == f"googleapi: Error 409: {message}, alreadyExists"


def test_details_are_indented_between_message_and_reason() -> None:
    error = {
        "message": "disabled",
        "errors": [{"message": "disabled", "reason": "accessNotConfigured"}],
        "details": [{"reason": "SERVICE_DISABLED"}],
    }
    assert text(403, error) == (
        "googleapi: Error 403: disabled\nDetails:\n"
        '[\n  {\n    "reason": "SERVICE_DISABLED"\n  }\n]\n'
        ", accessNotConfigured"
    )


def test_several_errors_are_listed() -> None:
    error = {
        "message": "m",
        "errors": [{"message": "a", "reason": "r"}, {"message": "b", "reason": "s"}],
    }
    assert text(400, error) == (
        "googleapi: Error 400: m\nMore details:\nReason: r, Message: a\nReason: s, Message: b\n"
    )


def test_newer_services_have_no_list_of_errors() -> None:
    assert text(404, {"message": "gone", "status": "NOT_FOUND"}) == "googleapi: Error 404: gone"


def test_an_answer_that_is_not_googles_is_quoted() -> None:
    assert str(GoogleApiError(502, b"<html>")) == (
        "googleapi: got HTTP response code 502 with body: <html>"
    )
