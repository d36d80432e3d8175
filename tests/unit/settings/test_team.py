"""TEAM_DEFAULTS: the team's values where nobody gave one, and what the team does not allow."""

from pathlib import Path
from typing import Final

import pytest

from provision.codes import Code
from provision.intake import Loaded, load
from provision.spec.rules import team
from tests.unit.conftest import MANDATORY

WHERE: Final = "/etc/team.toml"
RULES: Final = """
contact = "ml-platform@example.com"
never = ["CA_BUNDLE"]
[defaults]
LABELS = "team=ml"
[locked]
ENABLE_NOTEBOOK = false
[at_most]
MAX_HOURLY_COST = 20
INSTANCE_COUNT = 4
MACHINES = 6
[allowed]
VM_TYPE = ["g2-*", "e2-*"]
ZONE = "us-central1-*"
"""


def _load(text: str = RULES, **given: str) -> Loaded:
    small = {"VM_TYPE": "g2-standard-8", "TEAM_DEFAULTS": WHERE}
    return load(MANDATORY | small | given, fetch=lambda where: text if where == WHERE else "")


def test_what_nobody_gave_is_the_teams_and_said() -> None:
    loaded = _load()

    assert loaded.problems == ()
    assert loaded.settings is not None
    assert loaded.settings.labels == {"team": "ml"}
    assert loaded.settings.enable_notebook is False
    assert loaded.settings.max_hourly_cost == 20
    assert loaded.settings.instance_count == 1, "a limit of what has a default is none itself"
    (note,) = [it for it in loaded.notes if it.setting == "TEAM_DEFAULTS"]
    assert "LABELS=team=ml" in note.what
    assert WHERE in note.why
    assert "ml-platform@example.com" in note.why


def test_what_the_user_gave_wins_over_a_default() -> None:
    loaded = _load(LABELS="team=vision", MAX_HOURLY_COST="5", INSTANCE_COUNT="4")

    assert loaded.settings is not None, loaded.problems
    assert loaded.settings.labels == {"team": "vision"}
    assert loaded.settings.max_hourly_cost == 5


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("ENABLE_NOTEBOOK=yes", "locked to no"),
        ("INSTANCE_COUNT=5", "more than 4"),
        ("MAX_HOURLY_COST=20.5", "more than 20"),
        ("CA_BUNDLE=/tmp/evil.pem", "is not for users to set"),
        ("GKE_NODE_POOL_COUNT=2 INSTANCE_COUNT=4 ORCHESTRATOR_TYPE=gke", "makes 8 machines in all"),
        ("VM_TYPE=a2-highgpu-1g", "asks for a2-highgpu-1g"),
        ("ZONE=us-central1-a,us-east4-c", "asks for us-east4-c"),
        (
            "GKE_NODE_POOLS=name=a,vm_type=a2-highgpu-1g,max=1 ORCHESTRATOR_TYPE=gke",
            "asks for a2-highgpu-1g",
        ),
    ],
)
def test_what_the_team_does_not_allow_is_refused_with_whom_to_ask(given: str, words: str) -> None:
    loaded = _load(**dict(it.split("=", 1) for it in given.split()))

    (problem,) = [it for it in loaded.problems if it.code is Code.TEAM_RULE]
    assert problem.setting == given.partition("=")[0]
    assert words in problem.what
    assert WHERE in problem.why
    assert "ml-platform@example.com" in problem.fix


def test_a_limit_is_said_as_it_is_written_also_beside_a_smaller_default() -> None:
    rules = (
        "[defaults]\nINSTANCE_COUNT = 2\n[at_most]\nINSTANCE_COUNT = 4\nMAX_RUN_DURATION = '12h'"
    )
    (problem, other) = _load(rules, INSTANCE_COUNT="5", MAX_RUN_DURATION="1d").problems

    assert "more than 4" in problem.what
    assert problem.fix.startswith("INSTANCE_COUNT=4,")
    assert "more than 12h" in other.what


def test_what_means_nothing_for_a_kind_of_cluster_is_not_asked_of_it() -> None:
    rules = """
[defaults]
GKE_VERSION = "1.35."
[locked]
ENABLE_KUEUE = false
DISABLE_OPS_AGENT = true
[at_most]
GKE_MAX_NODE_COUNT = 4
"""
    vms, gke = _load(rules), _load(rules, ORCHESTRATOR_TYPE="gke", ENABLE_KUEUE="yes")

    assert vms.problems == ()
    assert [it.setting for it in gke.problems] == ["ENABLE_KUEUE"]
    assert gke.effective["GKE_VERSION"] == "1.35."
    assert vms.effective["DISABLE_OPS_AGENT"] is True
    assert gke.effective["DISABLE_OPS_AGENT"] is False


def test_a_lock_that_came_later_stops_no_destroy() -> None:
    asked = {"ENABLE_NOTEBOOK": "yes", "TEAM_DEFAULTS": WHERE}
    only = ("PROJECT_ID", "NAME_PREFIX", "ZONE")
    loaded = load(MANDATORY | asked, only=only, fetch=lambda _: RULES)
    assert loaded.problems == ()
    assert loaded.settings is not None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("contact =", "not TOML"),
        ("[default]\nLABELS = 'a=b'", "default is none of"),
        ("[defaults]\nGPUS = 8", "GPUS in defaults is not a setting"),
        ("[defaults]\nTEAM_DEFAULTS = '/other'", "not a setting"),
        ("[locked]\nNETWORK_CONFIG = 'mine'", "NETWORK_CONFIG=mine"),
        ("[at_most]\nVM_TYPE = 'g2-standard-8'", "VM_TYPE in at_most is no number"),
        ("locked = 'ENABLE_SPOT'", "locked is a table"),
    ],
)
def test_a_file_with_a_mistake_says_which(text: str, words: str) -> None:
    with pytest.raises(team.InvalidTeamError, match=words):
        team.parse(text, WHERE)

    (problem,) = _load(text).problems
    assert problem.setting == "TEAM_DEFAULTS"
    assert words in problem.why


def test_a_file_that_is_not_there_stops_the_run() -> None:
    (problem,) = load(MANDATORY | {"TEAM_DEFAULTS": "/nowhere/team.toml"}).problems
    assert problem.setting == "TEAM_DEFAULTS"
    assert "No such file" in problem.why


def test_the_example_is_such_a_file() -> None:
    example = (Path(__file__).parents[3] / "examples/team.toml").read_text(encoding="utf-8")

    assert team.parse(example, "examples/team.toml").allowed["vm_type"] == ("a2-*", "a3-*", "g2-*")


def test_what_the_teams_own_value_breaks_is_told_with_its_file_and_whom_to_ask() -> None:
    locked = RULES.replace("ENABLE_NOTEBOOK = false", 'NETWORK_CONFIG = "new_network"')
    loaded = _load(locked, ORCHESTRATOR_TYPE="gke")

    (problem,) = loaded.problems
    assert problem.setting == "NETWORK_CONFIG"
    assert f"TEAM_DEFAULTS={WHERE} sets NETWORK_CONFIG: ask ml-platform@" in problem.fix
    assert not problem.alternatives.settings


@pytest.mark.parametrize("most", ["0", "true", '"a few"'])
def test_a_limit_of_machines_is_a_number(most: str) -> None:
    (problem,) = _load(RULES.replace("MACHINES = 6", f"MACHINES = {most}")).problems
    assert "MACHINES in at_most is no number" in problem.why


def test_what_is_never_a_users_is_a_list_of_settings() -> None:
    (problem,) = _load(RULES.replace('["CA_BUNDLE"]', '"CA_BUNDLE"')).problems
    assert "never is a list of settings" in problem.why
    (problem,) = _load(RULES.replace('["CA_BUNDLE"]', '["CA_BUNDEL"]')).problems
    assert "CA_BUNDEL in never is not a setting" in problem.why


def test_who_may_change_states_on_purpose_is_for_the_file_to_say() -> None:
    assert _load().state_writers == ()
    whom = ("domain:example.com", "serviceAccount:ci@my-project.iam.gserviceaccount.com")
    assert _load(f"state_writers = {list(whom)}").state_writers == whom


@pytest.mark.parametrize("given", ['"domain:a"', '["allUsers"]', '["user:ann@example.com"]', "[1]"])
def test_only_domains_and_accounts_can_be_meant_to_change_states(given: str) -> None:
    (problem,) = _load(f"state_writers = {given}").problems
    assert "state_writers is a list of whole domains and service accounts" in problem.why
