"""Runs a VM's part of a job of Run in Slurm, or a task of an array: what srun begins on each.

It is the runner of jobs without Slurm (`job`), as the job's user from the first to the last. Slurm
has begun all VMs together, so none waits for a word of the head's. The head says that it is to end
where it says all else of the job, as without Slurm; a signal of Slurm's own does so, too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import signal
import socket
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Mapping

from aiinfra_vm import job, jobs, metadata, notices, peers, slurm_queue, storage
from aiinfra_vm.jobs import Course, Node, Phase, State

if TYPE_CHECKING:
    from pathlib import Path

    from aiinfra_vm.jobs import Report, Spec

_KILL = 100.0  # seconds from Slurm's SIGTERM to SIGKILL: after 120, its own would hit this, too
_HOME = ".home"


class Step(job.Runner):
    """One attempt at a job on this VM, or at one task of an array (`index`)."""

    def __init__(  # noqa: PLR0913, PLR0917 - all that it stands on
        self,
        course: Course,
        node: Node,
        wanted: storage.Folder,
        shared: storage.Folder,
        home: Path = job.HOME,
        index: int | None = None,
        gpus: int = 0,
        pace: float = 1.0,
    ) -> None:
        self._index = index
        super().__init__(course, node, wanted, shared, home, pace=pace)
        self._gpus = gpus
        if index is not None:
            self._prefix = jobs.log_of(course.name, course.attempt, index)

    def stop(self, *_: object) -> None:
        """The handler of SIGTERM, which comes from Slurm unless a reason was given before."""
        if not self._attempt.why:
            threading.Thread(target=self._end, daemon=True).start()

    def _end(self) -> None:
        state = self._state()
        self._told = state is not State.RUNNING
        ended = self._course.why or "another VM of the job failed"
        self._attempt.notice(ended if self._told else slurm_queue.SIGNALLED)
        time.sleep(_KILL * self._pace)
        self._attempt.kill()

    def _place(self) -> str:
        return jobs.course_of(self._course.name)

    def _teller(self) -> str:
        return self._node.name if self._index is None else jobs.task(self._index)

    def _spec(self) -> Spec:
        spec = super()._spec()
        # Both take root, and this is the job's user already.
        if spec.image:
            raise job.Refused("with ORCHESTRATOR_TYPE=slurm a job runs in no container: no --image")
        if spec.mounts:
            raise job.Refused(
                "with ORCHESTRATOR_TYPE=slurm a job has no bucket of its own mounted: no --mount,"
                " and GCS_MOUNT_LIST for all"
            )
        if self._index is not None and spec.seconds is not None:
            # Of each task its own; of other jobs the head says it, over all attempts.
            self._course = self._course._replace(ends=time.time() + spec.seconds)
        return spec

    def _unpacked(self, spec: Spec) -> Path:
        """The job's folder, which Slurm's Prolog has made; filled by the first who comes."""
        folder = self._home / spec.name
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not (folder / _HOME).exists():
                if spec.files:
                    self._extract(spec, folder)
                (folder / _HOME).mkdir(exist_ok=True)
        finally:
            os.close(descriptor)
        return folder

    def _may_begin(self) -> bool:
        return not self._attempt.why

    def _state(self) -> State | None:
        """What the head says of this attempt; it may not have seen yet that it has begun."""
        with contextlib.suppress(OSError, ValueError):
            self._order.look()
            found = jobs.course(self._order.text or b"")
            if found.state.is_over or found.attempt > self._course.attempt:
                return None
            if found.attempt < self._course.attempt:
                return State.RUNNING
            ends = found.ends if self._index is None else self._course.ends
            self._course = self._course._replace(why=found.why, ends=ends)
            return State.RUNNING if found.state is State.PREPARING else found.state
        return State.RUNNING

    def _ranks(self) -> dict[str, str]:
        return job.ranks(self._course, self._node, peers.Slots(self._gpus or 1), self._index)

    def _environment(self, spec: Spec, values: dict[str, bytes]) -> dict[bytes, bytes]:
        user = pwd.getpwuid(os.getuid()).pw_name
        home = str(self._home / spec.name / _HOME)
        os.environ.update({"HOME": home, "USER": user, "LOGNAME": user})
        return super()._environment(spec, values)

    def _tell(self, phase: Phase, **more: Any) -> None:
        if phase is not Phase.READY:  # it runs in a moment
            super()._tell(phase, rank=self._node.rank, **more)

    def _put(self, name: str, told: Report) -> None:
        """Write it, unless a later attempt has: this one may end when that has begun."""
        found = self._shared.read(name)
        before = None
        if found is not None:
            with contextlib.suppress(ValueError):  # somebody has spoiled it
                before = jobs.report(found[0])
        if before is None or before.attempt <= told.attempt:
            over = found[1] if found else storage.NOTHING
            if self._shared.write(name, told.document(), over=over) is None:
                raise OSError("another has written there meanwhile")


def part(name: str, attempt: int, of: Mapping[str, str]) -> tuple[Course, Node]:
    """The job as its program is to see it, and this VM in it: by what Slurm says (`of`).

    Raises:
        OSError: A VM of it has no address, or the metadata server does not answer.
    """
    known = {it["name"]: it for it in (peers.read() or {"members": ()})["members"]}
    rank = int(of["SLURM_NODEID"])
    nodes = []
    for number, vm in enumerate(slurm_queue.hosts(of["SLURM_STEP_NODELIST"])):
        address = known[vm]["address"] if vm in known else socket.gethostbyname(vm)
        own = metadata.get("instance/id") if number == rank else "0"
        nodes.append(Node(number, vm, own, address))
    course = Course(name, State.RUNNING, attempt=attempt, nodes=tuple(nodes), began=time.time())
    return course, nodes[rank]


def main() -> None:
    """`NAME ATTEMPT`, in a step of Slurm's."""
    name, attempt = sys.argv[1:]
    task = os.environ.get("SLURM_ARRAY_TASK_ID")
    step = Step(
        *part(name, int(attempt), os.environ),
        storage.wanted(),
        storage.shared(),
        index=None if task is None else int(task),
        gpus=int(os.environ.get("SLURM_GPUS_ON_NODE") or 0),
    )
    signal.signal(signal.SIGTERM, step.stop)
    sys.exit(step.run(notices.run_ends()))


if __name__ == "__main__":
    main()
