"""A person at a terminal: the question before a first Create, and how much there is to read."""

import json
import re
import signal
from pathlib import Path

import pytest

from rehearsal import clock
from rehearsal.inventory import stays
from tests.conftest import Golden
from tests.image.terminal import typed
from tests.runs.conftest import PROGRAM, Rehearsal, Rehearse
from tests.runs.job_lines import QUEUED

_QUESTION = re.compile(r"Go on\?|to confirm:")
_PLAN = re.compile(r"^(?:Plan|Destroy): .*\n(?:.*(?:Go on\?|to confirm:).*)?", re.MULTILINE)
_ENDS = (b"[Y/n] ", b"to confirm: ")
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PASSING = re.compile(r"^(?:  (?:done|\.\.\.|ok) .*|    .*permissions.*)\n", re.MULTILINE)
_CHANGING = [
    (re.compile(r"for (?:up to )?\d+ (?:s|min|h)(?: \d+ min)?"), "for TIME"),
    (re.compile(r"np-vm-\w+"), "np-vm-NAME"),
    (re.compile(r"\d{8}T[\d.]+Z"), "WHEN"),
    # Who presses Ctrl-C while a question is still being written sees it twice.
    (re.compile(r"(Go on\? \[Y/n\] |Delete.* to confirm: )\1"), r"\1"),
]


def at_terminal(
    rehearsal: Rehearsal, action: str, keys: bytes | signal.Signals, *options: str, **more: str
) -> tuple[int, str]:
    """Run an action on a terminal, where somebody answers its question with these keys."""
    settings = rehearsal.folder / "typed.list"
    given = rehearsal.settings | more
    settings.write_text("".join(f"{name}={it}\n" for name, it in given.items()))
    command = [*PROGRAM, "--env-file", str(settings), *options, action]
    environ = {**rehearsal.environ, "TERM": "dumb"}
    when = _ENDS[action == "Destroy" or keys in {b"yes\n", b"no\n"}]
    code, said = typed(command, environ, when=when, keys=keys)
    return code, _COLOURS.sub("", said).replace("\r", "")


SLOW = pytest.mark.slow(
    sibling="::test_a_first_create_that_is_answered_by_no_or_ctrl_c_makes_nothing"
)


def test_a_first_create_that_is_answered_by_no_or_ctrl_c_makes_nothing(
    rehearsal: Rehearsal,
) -> None:
    code, said = at_terminal(rehearsal, "Create", signal.SIGINT)
    assert code == 130, said
    assert "nothing was made" in said
    assert rehearsal.objects() == set()

    code, said = at_terminal(rehearsal, "Create", b"n\n", "--output", "json")
    assert code == 2, said
    document = json.loads(said[said.index("\n{\n") :])
    (problem,) = document["problems"]
    assert (problem["code"], problem["what"]) == (
        "declined",
        "Not created, as you said: nothing was made",
    )
    assert document["plan"]["change"] == "new"
    assert [line for line in rehearsal.resources() if not stays(line)] == []
    stood = clock.now(rehearsal.folder / clock.FILE)
    assert clock.now(rehearsal.folder / clock.FILE) == stood


@SLOW
def test_a_first_create_asks_once_and_another_nothing(rehearsal: Rehearsal) -> None:
    rehearsal.settings["IMAGE_FAMILY_NAME"] = "pytorch-2-9-cu129-ubuntu-2404-nvidia-580"
    code, said = at_terminal(rehearsal, "Create", b"\n")
    assert code == 0, said
    lines = said.splitlines()
    assert len(lines) <= 40, said
    assert max(len(line) for line in lines if "gcloud" not in line and "://" not in line) <= 100
    assert said.count("Go on?") == 1

    # What changes nothing asks nothing.
    code, said = at_terminal(rehearsal, "Create", b"n\n")
    assert (code, "Go on?" in said) == (0, False), said
    assert "No changes: " in said


@SLOW
def test_each_question_can_be_answered_by_yes_no_and_ctrl_c_and_says_what_that_did(
    rehearsal: Rehearsal, golden: Golden, goldens: Path
) -> None:
    story: list[str] = []

    def act(title: str, action: str, keys: bytes | signal.Signals | None, **more: str) -> str:
        if keys is None:
            ended = rehearsal.run(action, **more)
            code, said = ended.code, ended.said
        else:
            code, said = at_terminal(rehearsal, action, keys, **more)
        shown = _PASSING.sub("", said)
        for pattern, stand_in in _CHANGING:
            shown = pattern.sub(stand_in, shown)
        asked = len(_QUESTION.findall(shown))
        assert asked <= 1, said
        # What is made when it goes on is told elsewhere.
        if code == 0:
            shown = shown[: next(_PLAN.finditer(shown)).end()]
        shown = re.sub(r"^.*?(?=^np   )", "", shown, flags=re.MULTILINE | re.DOTALL)
        story.append(f"# {title}: exit code {code}\n{shown}\n")
        return said

    def there() -> list[str]:
        return [line for line in rehearsal.resources() if not stays(line)]

    act("Create, n", "Create", b"n\n")
    act("Create, Ctrl-C", "Create", signal.SIGINT)
    assert there() == []
    rehearsal.settings["INSTANCE_COUNT"] = "2"
    act("Create, Enter", "Create", b"\n")

    # What ends no machine and loses no data needs no word, and no --yes in a pipeline.
    rehearsal.settings |= {"LABELS": "team=r", "METADATA": "k=v"}
    assert rehearsal.run("Create").code == 0
    made = there()

    act("4 VMs, n", "Create", b"n\n", INSTANCE_COUNT="4")
    act("4 VMs, Ctrl-C", "Create", signal.SIGINT, INSTANCE_COUNT="4")
    assert there() == made
    act("4 VMs, Enter", "Create", b"\n", INSTANCE_COUNT="4")
    act("5 VMs, without a terminal", "Create", None, INSTANCE_COUNT="5")
    rehearsal.settings["INSTANCE_COUNT"] = "5"
    made = there()

    act("1 VM, no", "Create", b"no\n", INSTANCE_COUNT="1")
    act("1 VM, without a terminal", "Create", None, INSTANCE_COUNT="1")
    act("Destroy, no", "Destroy", b"no\n")
    act("Destroy, Ctrl-C", "Destroy", signal.SIGINT)
    assert there() == made
    act("Destroy, yes", "Destroy", b"yes\n")
    assert there() == []
    assert rehearsal.run("Create", INSTANCE_COUNT="1").code == 0
    act("Destroy, without a terminal", "Destroy", None)
    assert there() == []
    golden.check(goldens / "questions.txt", "\n".join(story))


@pytest.mark.slow(
    sibling="tests/unit/actions/test_run.py"
    "::test_a_person_is_asked_before_nodes_come_for_so_many_dollars"
)
def test_a_job_for_which_nodes_come_and_the_end_of_all_are_asked_about_as_a_create_is(
    standing: Rehearse, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    rehearsal, empty = standing(QUEUED, rate=0.01), f"--copy={tmp_path / 'empty'}"
    rehearsal.settings |= {**QUEUED, "JOB_COMMAND": "sleep 90000", "ASK_ABOVE": "1"}
    line = "The job takes 1 node of np-nodepool-1, 2 x L4, ≈ $2.02/h, until it ends, 7 days at most"
    code, said = at_terminal(rehearsal, "Run", b"n\n", empty)
    assert (code, line in said) == (2, True), said
    assert "No job was submitted, as you said" in said
    code, said = at_terminal(rehearsal, "Run", signal.SIGINT, empty, "--destroy-after")
    assert (code, "no job was submitted" in said) == (130, True), said
    assert not rehearsal.run("Jobs").document["jobs"]
    # The cluster is as it was, and who agrees beforehand is not asked.
    ended = rehearsal.run("Run", empty, "--yes", "--detach", JOB_OPTIONS="--nodes 2")
    assert ended.code == 0, ended.said
    assert [job["nodes"] for job in ended.document["jobs"]] == [2]
    code, said = at_terminal(rehearsal, "Run", b"\n", empty, "--detach")
    assert (code, said.count("Go on?")) == (0, 1), said
    assert "sleep-2 goes on without this command" in said  # as it may not run yet
    code, said = at_terminal(rehearsal, "Cancel", b"no\n", "--all")
    assert (code, "No job was cancelled, as you said" in said) == (2, True), said
    code, said = at_terminal(rehearsal, "Cancel", b"yes\n", "--all")
    assert (code, "Cancel would end 2 jobs: sleep-1, sleep-2" in said) == (0, True), said
    assert {it["state"] for it in rehearsal.run("Jobs").document["jobs"]} == {"cancelled"}
