"""What counts as something in Terraform's state."""

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


def test_a_state_of_what_was_only_read_is_empty_and_one_of_what_was_made_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for resources, is_empty in (([READ], True), ([READ, MADE], False)):
        folder = _folder(monkeypatch, *resources)
        assert folder.has_state() is not is_empty
        assert folder.has_empty_state() is is_empty
    # A resource without instances is what an interrupt leaves.
    assert terraform_state.is_empty({"resources": [MADE | {"instances": []}]})


def test_a_state_of_another_format_is_not_empty() -> None:
    network = {"type": "google_compute_network"}
    assert not terraform_state.is_empty({"version": 4, "resources": [network]})
    modules = [{"path": ["root"], "resources": {}}]
    assert not terraform_state.is_empty({"version": 3, "modules": modules})
