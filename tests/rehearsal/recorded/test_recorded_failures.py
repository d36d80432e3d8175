"""When Google refuses, errs or takes its time, the stand-in does what provider 7.45.0 did.

Each recording is a few commands of Terraform under faults; compared are the requests, with their
repetitions, Terraform's exit code, and the words of its error.
"""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rehearsal.recorded.conftest import Player
from tests.rehearsal.recorded.proxy import Row

FAILURES = sorted(path.stem for path in (Path(__file__).parent / "failures").glob("*.json"))
QUICK = {
    "batching_off",
    "create_err_nodepool_400",
    "delete_in_use_network_op",
    "filestore_409_429_403",
    "insert_403_ratelimit",
    "insert_409",
    "op_error_quota",
    "poll_gke",
    "read_404_after_create",
    "read_429_503_500",
}
"""One of each kind: a refusal, a passing error, a failed operation, a wait, each service once."""
SLOW = pytest.mark.slow(
    sibling="::test_the_stand_in_fails_waits_and_tries_again_as_the_real_provider_did"
)

# Names that a cloud makes up.
MADE_UP = ((r"/operations/.*", "/operations/OP"), (r"\b(?:\d{15,20}|NUMID)\b", "NUMID"))


def _requests(rows: list[str]) -> Counter[str]:
    for pattern, replacement in MADE_UP:
        rows = [re.sub(pattern, replacement, row) for row in rows]
    return Counter(rows)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=SLOW) for name in FAILURES]
)
def test_the_stand_in_fails_waits_and_tries_again_as_the_real_provider_did(
    name: str, player: Player, recording: Callable[[str, str], Row]
) -> None:
    recorded = recording("failures", name)
    for found, step in zip(player.endure(recorded), recorded["steps"], strict=True):
        sent = _requests([row["request"] for row in found["sent"]])
        assert sent == _requests(step["requests"]), step["command"]
        assert found["exit_code"] == step["exit_code"], found["error"]
        if "error" in step:
            assert found["error"] == step["error"]
