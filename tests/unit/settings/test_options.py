"""Options that are read by the rules of settings: those of Test, and of Run and JOB_OPTIONS."""

import pytest

from provision.command_line.options import OF_A_JOB
from provision.intake import load
from provision.settings import job_options, spelling
from provision.settings.choices import RestartOn
from provision.settings.model import OPTIONS, Settings
from tests.unit.conftest import MANDATORY, Given

GKE = {"ORCHESTRATOR_TYPE": "gke"}
RUN, TEST = {"ACTION": "Run"}, {"ACTION": "Test"}


def _settings(flags: dict[str, str], **environ: str) -> Settings:
    settings = load(MANDATORY | environ, flags=flags).settings
    assert settings is not None
    return settings


def test_there_are_no_more_than_86_settings_and_an_option_is_none() -> None:
    assert len(spelling.SETTINGS) <= 86
    assert not {field.upper() for field in OPTIONS.values()} & set(spelling.SETTINGS)
    assert not {field.upper() for field in OPTIONS.values()} & set(load(MANDATORY).effective)


def test_job_options_are_written_as_on_a_command_line() -> None:
    assert job_options.read("--nodes 4 --time=2h") == {"--nodes": "4", "--time": "2h"}
    found = job_options.read("--name 'a b' --nodes 1 --nodes 2")
    assert found == {"--name": "a b", "--nodes": "2"}


def test_job_options_take_what_the_help_says() -> None:
    assert {f"--{name}" for name in job_options.NAMES} == {str(it) for it in OF_A_JOB}
    settings = _settings(RUN, JOB_OPTIONS="--restart-on any --wait 2h --setup 'pip install a'")
    assert (settings.job_restart_on, settings.job_wait) == (RestartOn.ANY, 7200)
    assert settings.job_setup == "pip install a"


def test_the_command_line_goes_before_job_options() -> None:
    settings = _settings(RUN | {"--nodes": "2"}, JOB_OPTIONS="--nodes 4 --time 2h --image a/b:1")
    assert (settings.job_nodes, settings.job_time, settings.job_image) == (2, 7200, "a/b:1")
    # Where it says nothing, or is of another action, they hold.
    tested = _settings(TEST | {"--nodes": "3"}, **GKE, JOB_OPTIONS="--nodes 4")
    assert (tested.job_nodes, tested.test_nodes) == (4, 3)


def test_an_action_in_the_settings_has_its_options_too() -> None:
    assert _settings({"--nodes": "3"}, **GKE, ACTION="test").test_nodes == 3
    pools = "name=a,vm_type=a3-megagpu-8g,count=2"
    asked = {**GKE, "ACTION": "test", "GKE_NODE_POOLS": pools}
    # What a pool of one's own has is not what INSTANCE_COUNT says when nobody sets it.
    assert _settings({}, **{it: asked[it] for it in asked if it != "VM_TYPE"}).test_nodes == 2
    assert _settings({"--nodes": "3"}, ACTION="Run").job_nodes == 3


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("--nodes many --time 2h", "has --nodes 'many', which is not a", "--nodes 2 --time 2h"),
        ("--nodes 0", "has --nodes '0', which is too small", "--nodes 1"),
        ("--time 2", "has --time '2', which has no unit", "--time <2h or 2m>"),
        ("--priority hihg", "has --priority 'hihg', which is not one", "--priority high"),
        ("--node 2", "has '--node', which is none of the options", "--nodes 4 --time 2h"),
        ("nodes=2", "has 'nodes', which is none of the options", "--nodes 4 --time 2h"),
        ("--nodes", "has --nodes without a value", "--nodes 4 --time 2h"),
        ("--nodes --time 2h", "has --nodes without a value", "--nodes 4 --time 2h"),
        ("--name 'a", "has a quote that is not closed", "--nodes 4 --time 2h"),
        ("--queue a", "has --queue, which has no effect with", None),
        ("--gpus 1", "has --gpus, which has no effect with", None),
        ("--array 0-1000", "has --array '0-1000', which asks for more", "--array 0-999"),
        ("--array 7-3", "has --array '7-3', which has no task", "--array 0-63"),
        ("--array 0-7%0", "which has no task", "--array 0-63"),
        ("--array 8", "has --array '8', which is no range of tasks", "--array 0-63"),
    ],
)
def test_what_is_wrong_in_job_options_is_said_with_the_setting_and_what_to_write(
    given: Given, text: str, what: str, fix: str | None
) -> None:
    case = given(JOB_OPTIONS=text)
    problem = case.problem("JOB_OPTIONS")
    assert what in problem.what
    assert fix is None or problem.fix == f"JOB_OPTIONS={fix}"
    assert case["JOB_OPTIONS"] == text
    assert problem.alternatives.settings in ({}, {"JOB_OPTIONS": fix})


@pytest.mark.parametrize(
    ("flags", "what", "fix"),
    [
        (RUN | {"--nodes": "x"}, "'x' is not a whole number", "--nodes 2"),
        (RUN | {"--queue": "a"}, "'a' has no effect with", "remove --queue, or ORCHESTRATOR_TYPE"),
        (RUN | {"--gpus": "1"}, "'1' has no effect with", "remove --gpus, or ORCHESTRATOR_TYPE"),
        (TEST | {"--cordon": "yes"}, "'yes' has no effect with", "remove --cordon, or"),
        (TEST | {"--pool": "Pool_1"}, "is not the name of a node pool", "--pool nodepool-1"),
        (TEST | {"--pool": "-a"}, "is not the name of a node pool", "--pool nodepool-1"),
    ],
)
def test_an_option_of_the_command_line_is_named_as_it_is_written(
    flags: dict[str, str], what: str, fix: str
) -> None:
    loaded = load(MANDATORY, flags=flags)
    (problem,) = loaded.problems
    option = next(it for it in flags if it.startswith("--"))
    assert problem.setting == option
    assert what in problem.what
    assert problem.fix.startswith(fix)
    assert not any(it.startswith("-") for it in problem.alternatives.settings)
    # Nor is what JOB_OPTIONS has wrong beside it lost, or a surprise.
    assert load(MANDATORY | {"JOB_OPTIONS": "--nodes y"}, flags=flags).problems


@pytest.mark.parametrize("option", ["--gpus", "--array"])
@pytest.mark.parametrize(
    ("kind", "why"),
    [("none", "runs one job at a time, on whole machines"), ("ray", "what it needs (num_gpus)")],
)
def test_parts_of_machines_are_refused_with_the_reason_where_a_job_has_whole_ones(
    option: str, kind: str, why: str
) -> None:
    value = {"--gpus": "1", "--array": "0-7"}[option]
    loaded = load(MANDATORY | {"ORCHESTRATOR_TYPE": kind}, flags=RUN | {option: value})
    (problem,) = loaded.problems
    assert (problem.setting, why in problem.why) == (option, True)
    assert problem.fix == f"remove {option}, or ORCHESTRATOR_TYPE=slurm"
    for takes in ("slurm", "gke"):
        assert _settings(RUN | {option: value}, ORCHESTRATOR_TYPE=takes).job_nodes is None


def test_a_setting_that_is_an_option_now_stops_a_job_that_would_miss_it(given: Given) -> None:
    only = {"PROJECT_ID", "NAME_PREFIX", "ZONE", "JOB_OPTIONS"}
    (problem,) = load(MANDATORY | {"JOB_NODES": "4"}, only=only).problems
    assert problem.fix.startswith("JOB_OPTIONS=--nodes 4, ")
    assert not load(MANDATORY | {"JOB_NODES": "4"}, only=only - {"JOB_OPTIONS"}).problems
    # Jenkins has it for a job of its own.
    assert not given(JOB_NAME="nightly").refused
