"""Whole runs with a google provider from outside, in place of the stand-in.

`pytest --provider=FILE TESTS` runs them so: the file is checked and unpacked once, and every
rehearsal of every test finds it by `REHEARSAL_PROVIDER`. `make test-provider` runs `CHOSEN`, and
with `QUICK=yes` what is `SHORT`.
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

_CELL: Final = "tests/runs/test_changes.py::test_a_change_does_what_the_plan_says_and_no_more"
_CELLS: Final = (
    *("vms-LABELS", "vms-NFS_FILESHARE_LIST-off", "vms-NEW-together", "spot-NEW-together"),
    *("spot-ENABLE_SPOT-to-flex", "flex-NEW-together", "flex-compact-ENABLE_FLEX_START-to-spot"),
    *("bound-compact-RESERVATION_NAME-to-spot", "reserved-NEW-together"),
    *("multi-nic-NEW-together", "gke-BESIDE-together", "gke-KMS_KEY", "gke-GKE_NODE_POOLS"),
)
_RUNS: Final = (
    "any_zone.py::test_a_cluster_goes_from_zone_to_zone_until_one_has_it[stockout-first-on-demand]",
    "a_proxy.py::test_a_cluster_comes_and_goes_by_a_proxy_that_reads_tls",
    "bake.py::test_an_image_is_made_and_used_and_listed_and_stays",
    "existing_network.py::test_a_host_project_is_byte_for_byte_as_it_was",
    "existing_network.py::test_rules_that_are_asked_for_are_made_and_go_with_the_machines",
    "flex_start.py::test_a_group_keeps_its_workload_policy_until_its_vms_are_replaced",
    "held.py::test_what_running_vms_hold_stays_until_they_are_replaced[no_compact_placement]",
    "jobs.py::test_a_folder_runs_on_all_vms_and_what_it_says_is_shown_once[none]",
    "jobs.py::test_a_folder_runs_on_all_vms_and_what_it_says_is_shown_once[gke]",
    "keys.py::test_all_that_keeps_data_has_the_key[vms]",
    "keys.py::test_all_that_keeps_data_has_the_key[gke]",
    "moves.py::test_row_7_a_cluster_moves_and_goes[a2_with_a_network_to_another_region]",
    "moves.py::test_row_7_a_cluster_moves_and_goes[gke_l4_to_a3_mega]",
    "nothing_is_lost.py::test_create_adopts_all_of_it_and_changes_nothing_that_runs",
    "taken_away.py::test_what_is_there_is_as_if_settings_that_go_had_never_been_given[gke]",
    "the_life_of_a_cluster.py::test_an_env_list_becomes_a_cluster_and_goes_away_again",
)
_KILL: Final = "tests/chaos/test_kills.py::test_nothing_is_left_and_nothing_is_there_twice_after"
_KILLS: Final = (
    "Create/default_network/kill-terraform@POST:instanceTemplates/0/then-Create",
    "Create/default_network/kill-all@POST:deployment.json/0/then-Destroy",
)
SHORT: Final = (
    *(f"{_CELL}[{name}]" for name in _CELLS),
    *(f"tests/runs/test_{name}" for name in _RUNS),
    *(f"{_KILL}[{name}]" for name in _KILLS),
)
"""Some of each kind: what takes half an hour on two processors, about one in twenty of `CHOSEN`."""

TIMEOUT: Final = 1800
"""Seconds for a test: the provider polls every 2 s, and waits for IAM, in time of ours."""
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
