"""Does the tasks that this VM is asked for, each at most once, and writes what came of them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from aiinfra_vm import storage, tasks
from aiinfra_vm.report import now, tail

if TYPE_CHECKING:
    from pathlib import Path

KEPT = "var/lib/aiinfra/tasks"
"""Where, below the root, each task that was begun has a folder, which outlives the VM's boots."""

_REFUSED = 2  # as tasks/__main__.py has it
_MOST_ANSWER = 1_000_000  # bytes
_SECONDS = 10  # until a program that was killed is no longer waited for


class _Running(NamedTuple):
    task: tasks.Task
    process: subprocess.Popen[bytes]
    deadline: float
    began: str


class Runner:
    """The task of this VM, if there is one."""

    def __init__(self, folder: storage.Folder, name: str, instance_id: str, kept: Path) -> None:
        self._folder = folder
        self._name = name
        self._instance_id = instance_id
        self._kept = kept
        self._running: _Running | None = None

    @property
    def busy(self) -> bool:
        """Whether a task runs."""
        return self._running is not None

    def begin(self, task: tasks.Task) -> None:
        """Begin a task, unless it is another VM's, or was begun before.

        One that is still running is ended: who wrote another no longer waits for it.

        Raises:
            OSError: Cloud Storage refuses, or does not answer; the task is then not begun.
        """
        if self._running is not None and self._running.task.id != task.id:
            self._end(self._running, "stopped", "another task came")
        if task.vms.get(self._name) != self._instance_id or self.busy:
            return
        mine = self._kept / task.id
        if mine.exists():
            self._tell_if_cut_off(task, mine)
            return
        if task.kind not in tasks.KINDS:
            known = ", ".join(sorted(tasks.KINDS))
            self._write(task, "refused", detail=f"this VM knows the tasks {known}")
            mine.mkdir(parents=True)
            (mine / "told").touch()
            return
        began = now()
        self._write(task, "running", began=began)
        # From here on it has been begun, whatever happens.
        mine.mkdir(parents=True)
        process = self._start(task, mine)
        self._running = _Running(task, process, time.monotonic() + task.seconds, began)

    def tend(self) -> None:
        """See whether the task has ended, or its time is over, and say so.

        Raises:
            OSError: The result could not be written; it is tried again.
        """
        running = self._running
        if running is None:
            return
        code = running.process.poll()
        if code is None and time.monotonic() < running.deadline:
            return
        if code is None:
            self._end(running, "late", f"stopped after {running.task.seconds} s")
        elif code == 0:
            self._end(running, "done")
        else:
            self._end(running, "refused" if code == _REFUSED else "failed")

    def stop(self) -> None:
        """End the task with the agent; the next agent of this VM says that it was cut off."""
        if self._running is not None:
            self._kill(self._running)
            self._running = None

    def clean(self, task_id: str) -> None:
        """Delete the results of all other tasks.

        Raises:
            OSError: Cloud Storage refuses, or does not answer.
        """
        for version in list(self._folder.list(tasks.RESULTS)):
            if not version.name.startswith(f"{tasks.RESULTS}{task_id}/"):
                self._folder.remove(version)

    def _start(self, task: tasks.Task, mine: Path) -> subprocess.Popen[bytes]:
        (mine / "arguments").write_text(json.dumps(task.arguments), "utf-8")
        with (mine / "arguments").open("rb") as given, (mine / "answer").open("wb") as answer, (
            mine / "output"
        ).open("wb") as output:
            return subprocess.Popen(  # noqa: S603 - a kind of the closed set
                [sys.executable, "-S", "-m", "aiinfra_vm.tasks", task.kind],
                stdin=given,
                stdout=answer,
                stderr=output,
                start_new_session=True,  # so that all of it can be ended
                cwd="/",
            )

    def _end(self, running: _Running, state: str, why: str = "") -> None:
        self._kill(running)
        mine = self._kept / running.task.id
        detail = tail((mine / "output").read_bytes() + f"\n{why}".encode())
        answer = self._answer(mine) if state == "done" else None
        if state == "done" and answer is None:
            state, detail = "failed", f"{detail}\nits answer could not be read".strip()
        self._write(running.task, state, began=running.began, detail=detail, answer=answer)
        (mine / "told").touch()
        self._running = None

    def _kill(self, running: _Running) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended with all that it started
            os.killpg(running.process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):  # the kernel may hold it
            running.process.wait(_SECONDS)

    def _answer(self, mine: Path) -> dict[str, Any] | None:
        text = (mine / "answer").read_bytes()
        try:
            found = json.loads(text) if len(text) <= _MOST_ANSWER else None
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    def _tell_if_cut_off(self, task: tasks.Task, mine: Path) -> None:
        """Say of a task that a reboot, or an end of the agent, ended that it did."""
        if not (mine / "told").exists():
            self._write(task, "cut-off", detail="the VM, or its agent, was restarted meanwhile")
            (mine / "told").touch()

    def _write(
        self,
        task: tasks.Task,
        state: str,
        *,
        began: str | None = None,
        detail: str = "",
        answer: dict[str, Any] | None = None,
    ) -> None:
        document = {
            "id": task.id,
            "kind": task.kind,
            "vm": self._name,
            "instance_id": self._instance_id,
            "state": state,
            "began": began,
            "at": now(),
            "detail": detail,
            "answer": answer,
        }
        self._folder.write(f"{tasks.RESULTS}{task.id}/{self._name}.json", document)
