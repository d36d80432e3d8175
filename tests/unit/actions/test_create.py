"""A failed apply is told by its own reason, whatever fails on the way out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.actions import create
from provision.errors import CapacityError, ExitCode, ProvisionError, TerraformError
from provision.google.api import GoogleApiError
from provision.lifecycle import apply

if TYPE_CHECKING:
    from provision.errors import Problem

AWAY = GoogleApiError(503, "Service Unavailable", "https://compute")
CLOUD = SimpleNamespace(folder=SimpleNamespace(location=SimpleNamespace(url="gs://b")))


def _raising(error: Exception) -> Any:
    def fail(*_: object) -> None:
        raise error

    return fail


def _ends(
    monkeypatch: pytest.MonkeyPatch, failed: Exception, explained: Exception
) -> tuple[ProvisionError, list[Problem]]:
    notes: list[Problem] = []
    monkeypatch.setattr(apply, "apply", _raising(failed))
    run, kind = SimpleNamespace(note=notes.extend), SimpleNamespace(explain=_raising(explained))
    with pytest.raises(ProvisionError) as caught:
        create._applied(*cast("Any", (run, CLOUD, kind, None, None)))
    return caught.value, notes


def test_a_request_that_fails_after_terraform_did_hides_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed = TerraformError("`terraform apply` failed")
    error, notes = _ends(monkeypatch, failed, AWAY)
    assert error is failed
    assert [note.why for note in notes] == [AWAY.problems[0].why]


def test_the_cause_of_missing_machines_is_told_in_place_of_terraforms_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused = CapacityError("no machines")
    error, _ = _ends(monkeypatch, TerraformError("`terraform apply` failed"), refused)
    assert error is refused


def test_a_request_that_fails_between_two_steps_of_an_apply_is_no_failed_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error, _ = _ends(monkeypatch, AWAY, AWAY)
    assert error.exit_code is ExitCode.TERRAFORM
    assert "Service Unavailable" in error.problems[0].why
