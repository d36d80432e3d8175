"""Tasks for the VMs of a group, through the state folder: the one channel that reaches all of them.

    vms/task.json               what is to be done, by whom, and within what time
    vms/results/ID/NAME.json    how far a VM is with it, and its answer

Each VM's agent looks every 15 seconds. A task names a kind of a closed set and gives arguments;
there is one at a time, and a new one ends the one before it.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from provision.documents import json_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.state.folder import StateFolder
    from provision.time.stages import OpenStage

_TASK: Final = "vms/task.json"
_RESULTS: Final = "vms/results/"
_POLL: Final = 10.0
_BEGIN: Final = 120.0
"""Seconds of cloud time within which a VM that has an agent says that it has begun."""
_WRITING: Final = 60.0
"""Seconds of cloud time that all may take beyond the task itself, to be heard of and to answer."""

RUNNING: Final = "running"
DONE: Final = "done"
SILENT: Final = "silent"
"""The state of a VM that has not said anything."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How far a VM is with a task."""

    # "running", "done", or how it ended otherwise: "failed", "refused", "late", "stopped",
    # "cut-off"; "silent" if it has not said anything
    state: str = SILENT
    detail: str = ""  # the last that the task said, or why it was not done; "" for nothing
    answer: Mapping[str, Any]  # what came of it; empty if it was not done

    @classmethod
    def of(cls, text: str) -> Self:
        """Make it from a VM's object, which a program on the VM may have spoiled."""
        try:
            document = json_object.read(text)
        except ValueError:
            document = {}
        if not isinstance(document.get("state"), str):
            return cls(state="failed", detail="its answer can't be read", answer={})
        return cls(
            state=document["state"],
            detail=json_object.text(document.get("detail")),
            answer=json_object.inner(document.get("answer")),
        )

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state not in (RUNNING, SILENT)

    @property
    def failure(self) -> str:
        """Why it was not done, as the end of a sentence about the VM; "" if it was."""
        words = {
            DONE: "",
            SILENT: "does not answer",
            RUNNING: "has not finished in time",
            "late": "has not finished in time",
            "stopped": "was asked for something else meanwhile: another Test runs",
            "cut-off": "was restarted meanwhile",
            "refused": "does not know what it was asked for",
        }.get(self.state, "failed")
        return ": ".join(filter(None, [words, self.detail])) if words else ""


def ask(  # noqa: PLR0913 - a task, and how it is waited for
    folder: StateFolder,
    stage: OpenStage,
    kind: str,
    arguments: Mapping[str, Any],
    *,
    vms: Mapping[str, str],
    seconds: int,
) -> dict[str, Answer]:
    """Have VMs do something, and wait for what comes of it.

    `vms`: who is to do it: name -> instance ID. Returns name of the VM -> its answer; of all VMs
    that were asked.
    """
    number = f"{kind}-{secrets.token_hex(8)}"
    task = {
        "id": number,
        "kind": kind,
        "arguments": arguments,
        "vms": dict(vms),
        "seconds": seconds,
    }
    answers = {name: Answer(answer={}) for name in vms}
    before = stage.words
    try:
        folder.write(_TASK, json.dumps(task), "application/json")
        deadline = stage.deadline(seconds + _WRITING, _POLL)
        while True:
            answers |= dict(_read(folder, number, answers))
            over = sum(it.is_over for it in answers.values())
            said = f"{over} of {len(answers)} VMs have answered"
            stage.news(f"{before}: {said}" if before else said)
            silent = [name for name, it in answers.items() if it.state == SILENT]
            given_up = len(silent) if deadline.passed > _BEGIN else 0
            if over + given_up == len(answers) or deadline.is_over:
                return answers
            deadline.pause()
    finally:
        folder.remove(_TASK)
        for name in folder.names(f"{_RESULTS}{number}/"):
            folder.remove(name)


def _read(
    folder: StateFolder, number: str, known: Mapping[str, Answer]
) -> Iterator[tuple[str, Answer]]:
    """The answers of the VMs that are not done yet, as they are now."""
    start = f"{_RESULTS}{number}/"
    for name in folder.names(start):
        vm = name.removeprefix(start).removesuffix(".json")
        if vm in known and not known[vm].is_over:
            text = folder.text(name)
            if text is not None:
                yield vm, Answer.of(text)
