"""What counts as something in Terraform's state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provision.state.folder import StateFolder

if TYPE_CHECKING:
    import pytest

READ = {"mode": "data", "type": "google_compute_image", "name": "boot", "instances": [{}]}
MADE = {"mode": "managed", "type": "google_compute_network", "name": "new", "instances": [{}]}


def _folder(monkeypatch: pytest.MonkeyPatch, *resources: dict[str, Any]) -> StateFolder:
    folder = StateFolder.__new__(StateFolder)
    state = {"version": 4, "resources": list(resources)}
    monkeypatch.setattr(StateFolder, "_state", lambda _: state)
    return folder


def test_a_state_of_what_was_only_read_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _folder(monkeypatch, READ)
    assert not folder.has_state()
    assert folder.has_empty_state()


def test_a_state_of_what_was_made_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = _folder(monkeypatch, READ, MADE)
    assert folder.has_state()
    assert not folder.has_empty_state()
