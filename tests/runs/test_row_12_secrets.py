"""Secrets do not leak, and what is valid offline is valid for Terraform: row 12 of the mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.runs.conftest import Rehearsal


def test_row_12_a_command_that_is_valid_offline_is_valid_for_terraform(
    rehearsal: Rehearsal,
) -> None:
    command = "true " + "x" * 70_000

    assert rehearsal.run("Validate", "--offline", STARTUP_COMMAND=command).code == 0
    planned = rehearsal.run("Plan", STARTUP_COMMAND=command)
    assert planned.code == 0, planned.said[-2000:]

    refused = rehearsal.run("Validate", "--offline", STARTUP_COMMAND=command * 2)
    assert refused.code == 2
    assert "140010 bytes" in refused.problem["what"]
    assert "131072" in refused.problem["why"]
    assert "--copy" in refused.problem["why"]
