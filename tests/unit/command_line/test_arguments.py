from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provision.command_line import CommandLine, Option, read
from provision.documents.events import Output
from provision.errors import Problem
from provision.settings.choices import ACTIONS_BY_OTHER_NAMES, Action
from provision.settings.model import Settings
from rehearsal.cloud import scenarios
from tests.unit import table

# What is written -> the words that answer it, one text of "what; why; fix" a problem.
MISTAKES = table.answers(
    """
# Options that there are not.
--evn-file x Create -> '--evn-file' is not an option; did you mean --env-file?
--evn-file=x Create -> '--evn-file' is not an option; did you mean --env-file?
-env-file x Create -> '-env-file' is not an option; did you mean --env-file?
--ENV-FILE x Create -> '--ENV-FILE' is not an option; did you mean --env-file?
Create --rehearsal -> '--rehearsal' is not an option; did you mean --rehearse?
Create --json -> '--json' is not an option; did you mean --output json?
-o json Create -> '-o' is not an option; did you mean --output json?
--format=json Create -> '--format' is not an option; did you mean --output json?
--dry-run -> '--dry-run' is not an option; did you mean Plan? An action has no dashes
Create --force -> '--force' is not an option; did you mean --yes?
Create -y -> '-y' is not an option; did you mean --yes?
Destroy -auto-approve -> '-auto-approve' is not an option; did you mean --yes?
Destroy --auto-approve -> '--auto-approve' is not an option; did you mean --yes?
--destroy -> '--destroy' is not an option; did you mean Destroy? An action has no dashes
--delete -> '--delete' is not an option; did you mean Destroy? An action has no dashes
--action Create -> '--action' is not an option; did you mean the action alone, as in: Create
    --yes?
Create --zone us-central1-a -> '--zone' is not an option; it is a setting: write ZONE=value to
    the env.list
Create --project-id=p -> '--project-id' is not an option; it is a setting: write
    PROJECT_ID=value to the env.list
-it Create -> '-it' is not an option; write docker's options before the image's name
-e ZONE=z Create -> '-e' is not an option; write docker's options before the image's name
Validate --online -> '--online' is not an option; --help shows the options
Run --gpu 1 -- a -> '--gpu' is not an option; did you mean --gpus NUMBER?
Run -N 2 -- a -> '-N' is not an option; did you mean --nodes NUMBER?
Run --down -- a -> '--down' is not an option; did you mean Destroy, or Run --destroy-after?
Run --idle-minutes-to-autostop 9 -- a -> '--idle-minutes-to-autostop' is not an option;
    did you mean IDLE_TIMEOUT=30m in the env.list?
Run --gpus-per-node 1 -- a -> '--gpus-per-node' is not an option; did you mean --gpus NUMBER?
--frobnicate x Create -> '--frobnicate' is not an option; --help shows the options
Create - -> '-' is not an option; --help shows the options
# No abbreviations.
Create -e x -> '-e' is not an option; write docker's options before the image's name
Create --env x -> --env 'x' sets no variable; it takes a name of letters, digits and _, a =, and
    the value; --env WANDB_MODE=offline -> Create does not support --env; it is for Run; remove
    it; Create --help shows the options of Create
Create --off -> '--off' is not an option; --help shows the options
# Values.
Create --env-file -> --env-file needs a FILE; --env-file FILE, or remove --env-file
Create --env-file= -> --env-file needs a FILE; --env-file FILE, or remove --env-file
--env-file --yes Create -> --env-file needs a FILE; --env-file FILE, or remove --env-file
Create --yes=no -> --yes takes no value; write only --yes, or remove all of it
Create --output xml -> --output 'xml' is not one of the choices; one of text, json, ndjson;
    --output json
Create --output -> --output needs a FORMAT; --output FORMAT, or remove --output
# Actions.
Delete -> 'Delete' is not an action; …; did you mean Destroy?
remove -> 'remove' is not an action; …; did you mean Destroy?
DOWN -> 'DOWN' is not an action; …; did you mean Destroy?
Apply -> 'Apply' is not an action; …; did you mean Create?
Up -> 'Up' is not an action; …; did you mean Create?
Start -> 'Start' is not an action; …; did you mean Create?
Craete -> 'Craete' is not an action; …; did you mean Create?
bash -> 'bash' is not an action; …; did you mean Debug?
frobnicate -> 'frobnicate' is not an action; …; --help explains the actions
Settings -> 'Settings' is not an action; …; did you mean --help settings?
version -> 'version' is not an action; …; did you mean --version?
Create Destroy -> there are 2 actions: Create, Destroy; a run can do only one action; write one
    action, and run the program again for the other
Create env.list -> 'env.list' is not an action; it looks like a file; …; did you mean --env-file
    'env.list'?
Ssh 0 ls /tmp -> Ssh takes one name, and 'ls /tmp' stands behind it; it opens a shell, and hands
    no command over; --forward 6006 for a port; else put --command='...' behind the gcloud
    command that it prints
Ssh 0 -- nvidia-smi -> Ssh takes one name, and 'nvidia-smi' stands behind it; it opens a shell,
    and hands no command over; --forward 6006 for a port; else put --command='...' behind the
    gcloud command that it prints
Fetch a out b c -> Fetch takes a job, a path and a destination, and 'c' stands behind them; a path
    with blanks in quotes; Fetch once for each path
Logs one two -> Logs takes one name, and 'two' stands behind it; run Logs once for each
Run bash train.sh --lr 0.1 -> the job's command begins with 'bash', without a -- before it; the
    options of a command can't be told from this program's own; Run -- bash train.sh --lr 0.1
Run train.py --lr 0.1 --yes -> the job's command begins with 'train.py', without a -- before it;
    the options of a command can't be told from this program's own; Run -- train.py --lr 0.1
    --yes
Validate -v -> '-v' is not an option; did you mean --full or --version, or docker's -v, which
    stands before the image's name?
Run Destroy -> there are 2 actions: Run, Destroy; a run can do only one action; write one
    action, and run the program again for the other
Create INSTANCE_COUNT=2 -> 'INSTANCE_COUNT' is set on the command line; settings are read from
    the env.list and the environment; write it to the env.list; with docker, use -e NAME=value
    before the image's name
# Scenarios.
--rehearse stockout Create -> 'stockout' after --rehearse is not an action; a scenario must
    follow --rehearse with =, because it is optional; did you mean --rehearse=stockout?
Create --rehearse flaky,slow -> 'flaky,slow' after --rehearse is not an action; a scenario must
    follow --rehearse with =, because it is optional; did you mean --rehearse=flaky,slow?
--rehearse craete -> 'craete' is not an action; …; did you mean Create?
# Options that mean nothing to the action.
Status --copy /nonexistent --offline -> Status does not support --copy; it is for Create,
    Validate, Plan, Debug and Run; remove it; Status --help shows the options of Status ->
    Status does not support --offline; it is for Validate and Offers; remove it; Status --help
    shows the options of Status
--yes plan -> Plan does not support --yes; it is for Create, Destroy, Run, Cancel, Fetch
    and Bake; remove it; Plan --help shows the options of Plan
# All at once.
--json --evn-file x Craete --output=xml -> '--json' is not an option; did you mean --output
    json? -> '--evn-file' is not an option; did you mean --env-file? -> --output 'xml' is not
    one of the choices; one of text, json, ndjson; --output json -> 'Craete' is not an action;
    …; did you mean Create?
"""
)
OF_A_JOB = (
    *(Option.NAME, Option.NODES, Option.GPUS, Option.ARRAY),
    *(Option.TIME, Option.SETUP, Option.WAIT),
    *(Option.RESTARTS, Option.RESTART_ON),
    *(Option.IMAGE, Option.MACHINE, Option.QUEUE, Option.PRIORITY),
)
OF_LOOKING = (Option.RANK, Option.TAIL, Option.FORWARD)
ONE_OF_THEM = f"one of {', '.join(Action)}"


def _said(problem: Problem) -> str:
    why = "…" if problem.why == ONE_OF_THEM else problem.why
    return "; ".join(filter(None, (problem.what, why, problem.fix)))


def _read(text: str) -> CommandLine:
    return read(text.split())


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_answered_with_what_was_meant(text: str) -> None:
    assert [_said(problem) for problem in _read(text).problems] == MISTAKES[text]


@pytest.mark.parametrize("action", Action)
def test_an_option_is_taken_by_its_actions_and_refused_by_all_others(action: Action) -> None:
    for option in Option:
        value = {Option.OUTPUT: ["json"], Option.ENV_FILE: ["f"], Option.COPY: ["c"]}
        value |= {Option.BREAK_LOCK: ["1"], Option.REPORT: ["r.html"], Option.ENV: ["A=b"]}
        value |= {Option.SECRET: ["A=b"], Option.MOUNT: ["my-a:/mnt/a"]}
        value |= {it: ["1"] for it in (*OF_A_JOB, Option.POOL, Option.AGAIN, *OF_LOOKING)}
        argv = [option, *value.get(option, []), action]
        refused = [problem.what for problem in read(argv).problems]
        expected = [] if action in option.actions else [f"{action} does not support {option}"]
        assert refused == expected


def test_the_actions_of_every_option_are_these() -> None:
    assert {str(option): sorted(option.actions) for option in Option} == {
        "--copy": ["Create", "Debug", "Plan", "Run", "Validate"],
        **{
            f"--{it}": ["Run"]
            for it in ("env", "secret", "mount", "again", "create", "destroy-after", "detach")
        },
        "--ray": ["Run"],
        **{str(it): ["Run"] for it in OF_A_JOB},
        "--nodes": ["Run", "Test"],
        **{f"--{it}": ["Test"] for it in ("pool", "cordon")},
        "--forward": ["Ssh"],
        "--config": ["Ssh"],
        **{f"--{it}": ["Logs"] for it in ("follow", "tail")},
        "--rank": ["Fetch", "Logs", "Ssh"],
        "--yes": ["Bake", "Cancel", "Create", "Destroy", "Fetch", "Run"],
        "--all": ["Cancel"],
        "--full": ["Bake", "Create", "Debug", "Destroy", "Plan", "Status"],
        "--offline": ["Offers", "Validate"],
        "--break-lock": ["Bake", "Create", "Destroy", "Run"],
        "--replace-vms": ["Create"],
        "--report": ["Create", "Plan"],
        "--watch": ["Status"],
        "--role": ["Jobs", "Plan", "Validate"],
        "--detailed-exitcode": ["Plan", "Status"],
        **dict.fromkeys(
            ("--env-file", "--output", "--rehearse", "--help", "--version"), sorted(Action)
        ),
    }


def test_options_stand_before_or_behind_an_action_in_any_case() -> None:
    for text in (
        "create --env-file a.list --copy /data --yes --output json --rehearse=slow",
        "--env-file=a.list --copy=/data --yes --output=json --rehearse=slow CREATE",
        "--env-file b --env-file a.list --copy /data --yes --output json --rehearse=slow Create",
    ):
        line = _read(text)
        options = line.options
        assert line.problems == ()
        assert options.action is Action.CREATE
        assert (options.env_file, options.copy) == (Path("a.list"), Path("/data"))
        assert (options.output, options.scenario) == (Output.JSON, "slow")
        assert Option.YES in options.given
        assert Option.OFFLINE not in options.given


def test_nothing_given_is_nothing_asked_for() -> None:
    for argv in ([], ["--"], ["", " "]):
        line = read(argv)
        assert line.problems == ()
        assert line.options.action is None
        assert dict(line.options.given) == {}
        assert (line.options.env_file, line.options.copy) == (None, None)
        assert (line.options.output, line.options.scenario) == (Output.TEXT, None)


def test_rehearse_alone_does_not_take_the_action_behind_it() -> None:
    for text in ("--rehearse Create", "create --rehearse", "--rehearse= -- Create"):
        line = _read(text)
        assert line.problems == ()
        assert (line.options.action, line.options.scenario) == (Action.CREATE, "")


@pytest.mark.parametrize("scenario", scenarios.SCENARIOS)
def test_every_scenario_behind_a_blank_is_known_for_one(scenario: str) -> None:
    (problem,) = read(["--rehearse", scenario, "Create"]).problems

    assert problem.fix == f"did you mean --rehearse={scenario}?"


def test_behind_two_dashes_a_run_has_its_command_as_it_is() -> None:
    line = read(["Run", "--env", "A=b=c", "--env=A2=", "--", "torchrun", "t.py", "--yes", "", "--"])
    assert not line.problems
    assert line.options.command == ("torchrun", "t.py", "--yes", "", "--")
    assert line.options.env == {"A": "b=c", "A2": ""}


def test_secrets_come_again_and_what_may_be_a_value_is_not_echoed() -> None:
    line = _read("Run --secret HF_TOKEN --secret=KEY=hf:3 -- true")
    assert not line.problems
    assert line.options.secrets == {"HF_TOKEN": "", "KEY": "hf:3"}
    (problem,) = _read("Run --secret hf_abc-def -- true").problems
    assert "names no variable" in problem.what
    assert "hf_abc" not in str(problem)


def test_mounts_come_again_in_their_order() -> None:
    line = _read("Run --mount my-b:/mnt/b --mount=my-a:/mnt/a:ro -- true")
    assert not line.problems
    assert line.options.mounts == ("my-b:/mnt/b", "my-a:/mnt/a:ro")


def test_what_is_fetched_may_be_called_as_an_action_is() -> None:
    line = read(["Fetch", "train-1", "logs", "--rank", "1", "test"])
    assert (line.options.action, line.problems) == (Action.FETCH, ())
    assert (line.options.job, line.options.others) == ("train-1", ("logs", "test"))


@pytest.mark.parametrize("action", ["Logs", "Cancel", "Jobs"])
def test_behind_an_action_about_jobs_stands_a_name_whatever_it_is(action: str) -> None:
    line = _read(f"{action} create")
    assert not line.problems
    assert (line.options.action, line.options.job) == (Action(action), "create")
    more = _read(f"{action} train-1 more --output json last")
    assert bool(more.problems) == (action != "Cancel")
    assert more.options.others == (() if more.problems else ("more", "last"))


def test_options_of_a_run_and_of_a_test_are_read_by_the_rules_of_settings() -> None:
    line = _read(
        "Run --name a --nodes=2 --time 12h --restarts 3 --image=i --queue q --machine h100"
        " --priority low -- true"
    )
    assert line.options.settings == {
        "ACTION": "Run", "--name": "a", "--nodes": "2", "--time": "12h", "--restarts": "3",
        "--image": "i", "--queue": "q", "--machine": "h100", "--priority": "low",
    }  # fmt: skip
    asked = {"ACTION": "Test", "--nodes": "3", "--pool": "a", "--cordon": "yes"}
    assert _read("Test --nodes 3 --pool=a --cordon").options.settings == asked


def test_behind_two_dashes_there_are_no_options_and_help_goes_before_all_others() -> None:
    (problem,) = _read("Create -- --yes").problems
    assert problem.what == "'--yes' is not an action"
    for text in ("--help settings", "settings --help", "-h settings", "help settings"):
        assert _read(text).problems == ()
        assert _read(text).options.topic == "settings"
    assert _read("Help").options.given == {Option.HELP: ""}
    line = _read("Status --copy x --help")
    assert line.problems == ()
    assert line.options.action is Action.STATUS


def test_the_settings_can_be_read_unless_an_argument_is_not_understood() -> None:
    for text in ("Craete", "Create Destroy", "Status --yes", "frobnicate"):
        assert _read(text).understood, text
    for text in ("--evn-file x Create", "Create my.list", "--env-file", "Create ZONE=z"):
        assert not _read(text).understood, text


def test_what_may_be_a_secret_is_not_said_again() -> None:
    for argv in (["Create", "--token=hunter2"], ["Create", "PASSWORD=hunter2"]):
        assert "hunter2" not in repr(read(argv).problems)


def test_no_other_name_of_an_action_is_one_or_hides_a_setting() -> None:
    assert not {str(action).lower() for action in Action} & set(ACTIONS_BY_OTHER_NAMES)
    assert not set(Settings.model_fields) & set(ACTIONS_BY_OTHER_NAMES)


WORDS = st.sampled_from(
    [
        *(argument for text in MISTAKES for argument in text.split()),
        *(*Option, *Action, "--", "-h", "", "=", "--=", "\udcff"),
    ]
)


@given(st.lists(WORDS | st.text(max_size=20) | st.text(alphabet="-=ey .", max_size=8), max_size=6))
def test_any_arguments_give_options_or_problems(argv: list[str]) -> None:
    line = read(argv)

    for problem in line.problems:
        repr(problem).encode()
        assert problem.what
        assert problem.fix
    assert line.understood or line.problems
    assert line.options.output is Output.TEXT or "json" in "".join(argv)
