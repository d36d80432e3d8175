"""Runs this VM's part of one attempt at a job: the unit aiinfra-job.service.

It gets ready, says so, and begins when the leader says that all have. The program runs as a user of
its own, in a folder of its own, with the ranks of this attempt; what ends it is told in the order
of Google's notices, of the leader, and of its time.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path
from typing import Any, Callable

from aiinfra_vm import (
    configuration,
    containers,
    gpu_health,
    job_guard,
    job_log,
    job_mounts,
    job_room,
    jobs,
    notices,
    peers,
    report,
    secrets,
    storage,
)
from aiinfra_vm.attempt import Attempt
from aiinfra_vm.jobs import Course, Doubt, Node, Phase, Report, Spec, State

BEGUN = "var/lib/aiinfra/jobs"
"""Where, below the root, each attempt that was begun has a file, which outlives the VM's boots."""
HOME = Path("/var/lib/aiinfra-job")
"""Where each job has a folder, and its user a home; root's, so that nobody moves what is in it."""

ASKED = Path("/run/aiinfra/job.json")
"""What the agent asks of the unit."""
CONTAINED = Path("/run/aiinfra/job.env")
"""The environment of a job in a container."""
SHUTDOWN = "the VM goes down, or somebody stopped aiinfra-job.service"
_LOOK = 1.0  # seconds between looks at what the leader says, before the program begins
_LOOK_LATER = 4.0  # and while it runs
_GRACE = 120.0  # seconds from SIGTERM to SIGKILL
_DRAIN = 10.0  # seconds that what the program said last may take
_SENDING = 600.0  # seconds that the end of the log is tried to be sent, and the report
_FIRST_PORT = 20_000  # below those that systems give out, above those of services
_PORTS = 8_000
_TIME_IS_OVER = "--time is over"
_CAUSES = {126: "it can't be executed", 127: "command not found"}
_KILLED = 137


class Refused(Exception):  # noqa: N818 - a state of the world, in words for its reader
    """The job can't begin here, and no other attempt could."""


_UNABLE = (Refused, containers.Unusable, job_mounts.Unmountable, secrets.Unreadable)


def begun(disk: Path, name: str, attempt: int) -> Path:
    """The file of an attempt that was begun on this VM."""
    return disk / BEGUN / f"{name}-{attempt}"


class Runner:
    """One attempt on this VM.

    `user`: who the program runs as; None for who runs this.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - all that it stands on
        self,
        course: Course,
        node: Node,
        wanted: storage.Folder,
        shared: storage.Folder,
        home: Path = HOME,
        user: pwd.struct_passwd | None = None,
        pace: float = 1.0,
    ) -> None:
        self._course = course
        self._node = node
        self._wanted = wanted
        self._shared = shared
        self._home = home
        self._user = user
        self._pace = pace
        self._order = storage.Watched(shared, self._place())
        self._prefix = jobs.log_of(course.name, course.attempt, node.rank)
        self._attempt = Attempt(lambda _: None, SHUTDOWN)
        self._told = False
        self._telling = threading.Lock()
        self._is_over = False
        self._doubts: tuple[Doubt, ...] = ()
        self._went: list[str] = []
        self._gpu_use: int | None = None
        self._groups = os.getgrouplist(user.pw_name, user.pw_gid) if user else []

    def _place(self) -> str:
        """Where the leader says how far the job is."""
        return jobs.ORDER

    def _teller(self) -> str:
        """Whose name the reports have."""
        return self._node.name

    def run(self, run_ends: float | None = None) -> int:
        """Get ready, wait for the others, run the program, say how it ended; its exit code."""
        try:
            spec = self._spec()
            folder = self._unpacked(spec)
            values = secrets.of_all(spec.secrets)
            job_mounts.make(spec.mounts, self._pace)
            environment = self._environment(spec, values)
            program = ["/bin/bash", "-c", '"$@"; exit', spec.name]
            if spec.image:
                program += self._contained(spec, folder, environment)
            elif configuration.value("ray"):
                from aiinfra_vm import ray_job  # noqa: PLC0415 - only VMs with Ray have it

                program += ray_job.command(f"{spec.name}-{self._course.attempt}", spec.command)
            else:
                program += spec.command
        except (*_UNABLE, OSError, ValueError) as error:
            job_mounts.clear()
            self._tell(Phase.REFUSED, why=str(error), final=True)
            return 1
        self._tell(Phase.READY)
        if not self._may_begin():
            job_mounts.clear()
            _forget()
            self._tell(Phase.ENDED, why="it was called off before it began", told=True)
            return 1
        uid = self._user.pw_uid if self._user else None
        guard = job_guard.Guard.of(self._course, self._node, spec.env, uid, self._pace)
        log = job_log.Log(self._shared, self._prefix, list(values.values()), age=5.0 * self._pace)
        log.hear = guard.hear
        sink = self._opened(log)
        noticed = threading.Thread(target=self._tell_running, daemon=True)

        def mark(words: str) -> None:
            log.mark(words)
            noticed.start()  # so that nothing waits for Cloud Storage

        self._attempt.mark = mark
        self._tell(Phase.RUNNING)
        began = time.time()
        threading.Thread(target=self._watch, daemon=True).start()
        threading.Thread(target=self._look_after, args=(guard,), daemon=True).start()
        notices.watch(self._attempt.notice, run_ends)
        code = self._attempt.run(
            # bash itself says what can't be found, and waits for the program.
            program,
            {b"PATH": os.environb.get(b"PATH", b"")} if spec.image else environment,
            sink,
            cwd=str(folder),
            # As root, an environment with LD_PRELOAD would act.
            preexec_fn=None if spec.image else self._become,
        )
        if spec.image:
            containers.remove()
            _forget()
        ended = time.time()
        job_mounts.clear()
        log.close(_DRAIN, _SENDING)
        if noticed.is_alive():
            noticed.join(_SENDING)
        with self._telling:
            self._is_over = True
        self._tell(
            Phase.ENDED,
            at=ended,
            code=code,
            why=self._attempt.why,
            told=self._told,
            final=self._attempt.why == _TIME_IS_OVER,
            cause=_cause(code, log.tail, began) if code else "",
            tail=report.tail(log.tail),
            size=log.size,
            # Of a GPU that broke the program can't help it, as of a machine that was lost.
            ran=None if code and gpu_health.broke(began) else ended - began,
            doubts=self._doubts,
            gpu_use=self._gpu_use,
        )
        return code

    def _opened(self, log: job_log.Log) -> int:
        """Begin a log, with what has gone to make room; the descriptor to write to."""
        sink = log.open()
        for words in self._went:
            log.mark(words)
        return sink

    def stop(self, *_: object) -> None:
        """The handler of SIGTERM."""
        self._attempt.stop()

    def _spec(self) -> Spec:
        found = self._tried(lambda: self._wanted.read(f"{self._course.name}.json"))
        if found is None:
            raise Refused("nobody asked for this job")
        return jobs.spec(found[0], self._course.name)

    def _unpacked(self, spec: Spec) -> Path:
        """The folder of the job, with what travels; an earlier attempt's is kept."""
        folder = self._home / spec.name
        if folder.exists():
            return folder
        user = Path(self._user.pw_dir) if self._user else self._home
        self._went = job_room.make(self._home, user, self._shared, self._become)
        draft = self._home / f".{spec.name}"
        shutil.rmtree(draft, ignore_errors=True)
        self._make(draft)
        if self._user is not None:
            self._make(Path(self._user.pw_dir))
        if spec.files:
            self._extract(spec, draft)
        draft.rename(folder)
        return folder

    def _extract(self, spec: Spec, folder: Path) -> None:
        """Fill a folder with what travels."""
        with tempfile.TemporaryFile() as archive:
            if self._tried(lambda: self._fetched(spec, archive)) != spec.files:
                raise Refused("its folder is not what was sent: the checksum differs")
            archive.seek(0)
            # As the user: an archive writes nowhere where that user could not.
            done = subprocess.run(  # noqa: S603 - all constant but the folder's name
                ["/bin/tar", "--extract", "--gzip", "--no-same-owner", "--directory", folder],
                stdin=archive, stderr=subprocess.PIPE, check=False,
                preexec_fn=self._become,
            )  # fmt: skip
        if done.returncode:
            raise Refused(f"its folder can't be unpacked: {report.tail(done.stderr)}")

    def _contained(self, spec: Spec, folder: Path, environment: dict[bytes, bytes]) -> list[str]:
        """The same program in a container, whose image is there."""
        containers.prepare(spec.image)
        containers.remove()
        containers.environment(environment, CONTAINED)
        config = configuration.load()
        paths = [mount["local_mount"] for mount in config.get("mounts") or ()]
        paths += [mount.path for mount in spec.mounts]
        return containers.command(
            spec.image, spec.command, folder, self._user, self._groups, CONTAINED, paths,
            has_gpus=bool(config.get("gpus")),
        )  # fmt: skip

    def _make(self, folder: Path) -> None:
        """Make a folder of the jobs' user."""
        folder.mkdir(parents=True, exist_ok=True)
        if self._user is not None:
            os.chown(folder, self._user.pw_uid, self._user.pw_gid)

    def _fetched(self, spec: Spec, to: Any) -> str:
        to.seek(0)
        to.truncate()
        return self._wanted.fetch(f"files/{spec.files}.tar.gz", to)

    def _tried(self, what: Callable[[], Any]) -> Any:
        """What Cloud Storage answers, once it does."""
        deadline = time.monotonic() + _SENDING
        while True:
            try:
                return what()
            except OSError as error:
                if time.monotonic() > deadline:
                    raise Refused(f"Cloud Storage does not answer: {error}") from error
                time.sleep(_LOOK * self._pace)

    def _may_begin(self) -> bool:
        """Wait until all are ready; whether they are, and nobody has called it off."""
        while True:
            state = self._state()
            if state is not State.PREPARING or self._attempt.why:
                return state is State.RUNNING and not self._attempt.why
            time.sleep(_LOOK * self._pace)

    def _state(self) -> State | None:
        """What the leader says of this attempt; None once that is over."""
        with contextlib.suppress(OSError, ValueError):
            self._order.look()
            if self._order.text is not None:
                found = jobs.course(self._order.text)
                if (found.name, found.attempt) != (self._course.name, self._course.attempt):
                    return None
                self._course = found
        return self._course.state

    def _tell_running(self) -> None:
        """Say what it was told to end for, as the VM may be gone before that, and what is seen."""
        with self._telling:
            if not self._is_over:
                more = {"doubts": self._doubts, "gpu_use": self._gpu_use}
                self._tell(Phase.RUNNING, why=self._attempt.why, **more)

    def _look_after(self, guard: job_guard.Guard) -> None:
        """Say what looks wrong with the program, until it no longer does, and what its GPUs do."""
        while not self._attempt.why and not self._is_over:
            time.sleep(_LOOK_LATER * self._pace)
            found = guard.look(), guard.gpu_use
            if found != (self._doubts, self._gpu_use):
                self._doubts, self._gpu_use = found
                self._tell_running()

    def _watch(self) -> None:
        """End the program when the leader says so, or its time is over; by force after a while.

        What the VM's end has told it to end has until then: that notice may be longer.
        """
        until = None
        while True:
            time.sleep(_LOOK_LATER * self._pace)
            state = self._state()
            is_late = self._course.ends is not None and time.time() >= self._course.ends
            if until is None and not self._attempt.why and (state is not State.RUNNING or is_late):
                until = time.monotonic() + _GRACE * self._pace
                self._told = state is not State.RUNNING
                # What this VM read last may be what looked wrong.
                ended = (self._course.why if state else "") or "another VM of the job failed"
                self._attempt.notice(ended if self._told else _TIME_IS_OVER)
            if until is not None and time.monotonic() > until:
                self._attempt.kill()

    def _environment(self, spec: Spec, values: dict[str, bytes]) -> dict[bytes, bytes]:
        own = {
            name: text
            for name, text in os.environ.items()
            if name not in {"PYTHONPATH", "INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET"}
        }
        if self._user is not None:
            name = self._user.pw_name
            own.update(HOME=self._user.pw_dir, USER=name, LOGNAME=name)
        if configuration.value("ray"):
            from aiinfra_vm import ray_job, ray_secrets  # noqa: PLC0415 - as above

            about = {"JOB_NAME": spec.name, "JOB_ATTEMPT": str(self._course.attempt)}
            if spec.secrets:
                about[ray_secrets.OWN] = json.dumps(spec.secrets)
            own.update(ray_job.environment({**about, **spec.env}, has_secrets=bool(values)))
            values = {}
        else:
            own.update(self._ranks())
            own.update(spec.env)
        found = {os.fsencode(name): os.fsencode(text) for name, text in own.items()}
        found.update({name.encode(): value for name, value in values.items()})
        return found

    def _ranks(self) -> dict[str, str]:
        return ranks(self._course, self._node, peers.Slots.of(configuration.load()))

    def _become(self) -> None:
        """Become the jobs' user, in the child: before its environment means anything."""
        if self._user is not None:
            os.setgroups(self._groups)
            os.setgid(self._user.pw_gid)
            os.setuid(self._user.pw_uid)

    def _tell(self, phase: Phase, **more: Any) -> None:
        course, node = self._course, self._node
        more = {"at": time.time(), **more}
        told = Report(course.attempt, node.instance_id, phase, **more)
        name = jobs.report_of(course.name, self._teller())
        with contextlib.suppress(Refused):
            self._tried(lambda: self._put(name, told))

    def _put(self, name: str, told: Report) -> None:
        self._shared.write(name, told.document())


def _forget() -> None:
    """Delete what a container was given."""
    with contextlib.suppress(FileNotFoundError):
        CONTAINED.unlink()


def ranks(
    course: Course, node: Node, slots: peers.Slots, index: int | None = None
) -> dict[str, str]:
    """The variables by which programs find each other; none is a user's word.

    `index`: of a task of an array, its number: there may be more than one on a VM.
    """
    first = next(it.address for it in course.nodes if it.rank == 0)
    # Of this attempt alone, so that what is left of another is not met.
    own = "" if index is None else f" {index}"
    number = zlib.crc32(f"{course.name} {course.attempt}{own}".encode()) % _PORTS
    port = str(_FIRST_PORT + number)
    usual = {
        "NNODES": str(len(course.nodes)),
        "NODE_RANK": str(node.rank),
        "NPROC_PER_NODE": str(slots.number),
        "MASTER_ADDR": first,
        "MASTER_PORT": port,
    }
    return {
        **usual,
        **peers.launchers(usual),
        "JOB_NAME": course.name,
        "JOB_ATTEMPT": str(course.attempt),
        **({} if index is None else {"JOB_INDEX": str(index)}),
    }


def _cause(code: int, tail: bytes, began: float) -> str:
    """What is known of the reason for a failure, in words."""
    found = [_CAUSES.get(code, "")]
    if code == _KILLED and _ran_out_of_memory():
        found.append("the VM ran out of memory, and its kernel killed a process of the job")
    if b"No space left on device" in tail:
        found.append("a disk is full")
    if b"CUDA out of memory" in tail or b"torch.OutOfMemoryError" in tail:
        found.append("a GPU ran out of memory")
    found.append(_xid(began))
    return "; ".join(filter(None, found))


def _ran_out_of_memory() -> bool:
    """Whether the kernel has killed something of this unit (memory.events of cgroup v2)."""
    with contextlib.suppress(OSError, ValueError):
        own = Path("/proc/self/cgroup").read_text().rpartition("::")[2].strip()
        events = Path(f"/sys/fs/cgroup{own}/memory.events").read_text()
        counts = dict(line.split() for line in events.splitlines())
        return int(counts.get("oom_kill", 0)) > 0
    return False


def _xid(began: float) -> str:
    """What the driver has said of GPUs since a moment (Unix epoch); "" for nothing."""
    return next((line[:200] for _, line in gpu_health.xids(f"--since=@{began:.0f}")), "")


def main() -> None:
    """Run what the agent has written down."""
    asked = json.loads(ASKED.read_text("utf-8"))
    course = jobs.course(json.dumps(asked["course"]).encode())
    node = course.node(asked["name"], asked["instance_id"])
    if node is None:
        sys.exit("this VM has no part in the job")
    user = pwd.getpwnam(jobs.USER)
    runner = Runner(course, node, storage.wanted(), storage.shared(), user=user)
    signal.signal(signal.SIGTERM, runner.stop)
    runner.run(notices.run_ends())


if __name__ == "__main__":
    main()
