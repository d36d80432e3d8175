"""A failed apply is told by its own reason, whatever fails on the way out."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.actions import create
from provision.codes import ExitCode
from provision.errors import CapacityError, Problem, ProvisionError, TerraformError
from provision.google.api import GoogleApiError
from provision.lifecycle import apply

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
        create._standing(*cast("Any", (run, CLOUD, kind, None, None)))
    return caught.value, notes


def test_a_request_that_fails_after_terraform_did_hides_nothing_but_for_the_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed, refused = TerraformError("`terraform apply` failed"), CapacityError("no machines")
    error, notes = _ends(monkeypatch, failed, AWAY)
    assert error is failed
    assert [note.why for note in notes] == [AWAY.problems[0].why]
    error, _ = _ends(monkeypatch, failed, refused)
    assert error is refused
    # Between two steps of an apply it is no failed check.
    error, _ = _ends(monkeypatch, AWAY, AWAY)
    assert error.exit_code is ExitCode.TERRAFORM
    assert "Service Unavailable" in error.problems[0].why
