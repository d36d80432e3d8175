"""What counts as something in Terraform's state."""

from __future__ import annotations

from typing import Any

import pytest

from provision.state import terraform_state
from provision.state.folder import StateFolder

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


@pytest.mark.parametrize(
    "state",
    [
        {"version": 4, "resources": [{"type": "google_compute_network"}]},
        {"version": 3, "modules": [{"path": ["root"], "resources": {}}]},
    ],
)
def test_a_state_of_another_format_is_not_empty(state: dict[str, Any]) -> None:
    assert not terraform_state.is_empty(state)


def test_a_resource_without_instances_is_what_an_interrupt_leaves() -> None:
    assert terraform_state.is_empty({"resources": [MADE | {"instances": []}]})
