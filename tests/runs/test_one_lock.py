"""One lock is held from a run's first write to its last delete, in the bucket and in the cloud."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import pytest

from tests.runs.conftest import Rehearsal

_LOCK = "terraform/state/default.tflock"
_BESIDE = ("-deployment/runs/", "-deployment/logs/", "/b?", "/storage/v1/b ")
"""What says of a run that it is about to take the lock, what it said, and the bucket itself."""
_AFTER_CREATE = ("connection.json", "-deployment/vms/")
"""What is told of machines that have come, for which a Create waits without the lock."""


def _words(request: dict[str, Any]) -> str:
    answer = request["response"]
    made = answer.get("name", "") if isinstance(answer, dict) else ""
    return f"{request['method']} {unquote(request['path'])} {made}"


def _written(rehearsal: Rehearsal, since: int) -> list[str]:
    lines = [_words(one) for one in rehearsal.writes(since)]
    return [line for line in lines if not any(part in line for part in _BESIDE)]


def _require_one_lock(writes: Sequence[str], *after: str) -> None:
    assert _LOCK in writes[0], writes[0]
    assert writes[0].startswith("POST"), writes[0]
    locks = [line.split()[0] for line in writes if _LOCK in line]
    assert locks == ["POST", "DELETE"], writes
    ended = max(number for number, line in enumerate(writes) if _LOCK in line)
    late = [line for line in writes[ended + 1 :] if not any(part in line for part in after)]
    assert late == []


@pytest.mark.slow(
    sibling="tests/runs/test_two_machines.py"
    "::test_what_another_machine_does_in_the_middle_of_a_run_is_neither_lost_nor_said_in_vain"
)
def test_create_and_destroy_hold_one_lock_from_the_first_write_to_the_last_delete(
    rehearsal: Rehearsal,
) -> None:
    created = rehearsal.run("Create")
    assert created.code == 0, created.said
    _require_one_lock(_written(rehearsal, 0), *_AFTER_CREATE)

    since = len(rehearsal.requests())
    changed = rehearsal.run("Create", INSTANCE_COUNT="2")
    assert changed.code == 0, changed.said
    _require_one_lock(_written(rehearsal, since), *_AFTER_CREATE)

    since = len(rehearsal.requests())
    destroyed = rehearsal.run("Destroy")
    assert destroyed.code == 0, destroyed.said
    _require_one_lock(_written(rehearsal, since))
