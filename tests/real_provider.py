"""Whole runs with a google provider from outside, in place of the stand-in.

`pytest --provider=FILE TESTS` runs them so: the file is checked and unpacked once, and every
rehearsal of every test finds it by `REHEARSAL_PROVIDER`. `make test-provider` runs `CHOSEN`.
"""

import os
from pathlib import Path
from typing import Final

from rehearsal.provider import given

_OTHER_REQUESTS: Final = "what the program asks Google itself is its subject; the provider is not"
_WORDS: Final = "holds whole pages of words; the provider's are held by the recorded failures"

LEFT_OUT: Final = {
    "tests/runs/test_flex_start.py::test_create_waits_in_the_queue_and_says_so": (
        "the queue runs by the cloud's clock, and is over before the provider is done by ours"
    ),
    "tests/runs/test_a_third_kind.py": "calls the program in this very process, with a toy kind",
    "tests/runs/test_done_is_done.py": _OTHER_REQUESTS,
    "tests/runs/test_exit_codes_tell_the_truth.py": _WORDS,
    "tests/runs/test_gke_scenarios.py": _WORDS,
    "tests/runs/test_given_provider.py": "brings a provider from outside of its own",
    "tests/runs/test_known_issues_of_the_predecessor.py": _OTHER_REQUESTS,
    "tests/runs/test_org_policies.py": _OTHER_REQUESTS,
    "tests/runs/test_permanent_refusals.py": _WORDS,
    "tests/runs/test_row_12_secrets.py": _OTHER_REQUESTS,
    "tests/runs/test_row_13_gke_leftovers.py": _OTHER_REQUESTS,
    "tests/runs/test_scenarios.py": _WORDS,
    "tests/runs/test_smoke.py": "the smoke test, which finds its provider itself",
    "tests/runs/test_stale_locks.py": "looks for the stand-in's own processes",
    "tests/runs/test_two_at_once.py": _OTHER_REQUESTS,
    "tests/runs/test_what_happens_by_itself.py": "what happens follows the cloud's clock alone",
    "tests/runs/test_wheel.py": "installs the stand-in from a wheel and runs that",
    "tests/runs/test_where_it_runs.py": _OTHER_REQUESTS,
    "tests/runs/test_whose_it_is.py": _OTHER_REQUESTS,
}
"""Whole runs that are left out, files and tests, and why."""

_TREE: Final = Path(__file__).parents[1]
_FOLDERS: Final = ("tests/chaos", "tests/rehearsal/recorded", "tests/runs")
CHOSEN: Final = tuple(
    name
    for folder in _FOLDERS
    for name in sorted(it.relative_to(_TREE).as_posix() for it in (_TREE / folder).glob("test_*"))
    if name not in LEFT_OUT
)
"""Kills and interrupts, the recordings, every example, every move, orphans, lives."""

TIMEOUT: Final = 1800
"""Seconds for a test: the provider polls every 10 s, and waits for IAM, in time of ours."""
_SLOWNESS: Final = 15


def in_use() -> bool:
    """Whether the tests run with a provider from outside."""
    return given.VARIABLE in os.environ


def is_left_out(node: str) -> bool:
    """Whether a test, by its node id, is one that a provider from outside is spared."""
    return in_use() and node.partition("[")[0] in LEFT_OUT


def seconds(usual: float) -> float:
    """How long to wait for what takes so long with the stand-in at most."""
    return usual * _SLOWNESS if in_use() else usual
