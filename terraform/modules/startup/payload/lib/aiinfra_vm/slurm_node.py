"""This VM's part in the Slurm cluster: one of its nodes, and its head if it gets the lease.

slurmd goes on when this ends: jobs outlive a change of the head. slurmctld is a child of this and
runs with the lease in hand alone, as two of them would run the queue twice; the packages' own unit
of it is masked.
"""

from __future__ import annotations

import contextlib
import pwd
import re
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Iterable

from aiinfra_vm import (
    configuration,
    heads,
    programs,
    slurm_conf,
    slurm_jobs,
    slurm_key,
    slurm_others,
    storage,
)
from aiinfra_vm.heads import say, tell_systemd
from aiinfra_vm.lease import Lease
from aiinfra_vm.slurm_state import Lost, State

if TYPE_CHECKING:
    from aiinfra_vm.lease import Head
    from aiinfra_vm.slurm_key import Keys

_STOP_SECONDS = 30  # for slurmctld to write what it knows, and end
_ASK_SECONDS = 60
_TURN = 3.0  # seconds between what the head has to do
_LOOK = 20.0  # seconds between looks whether the head knows this node; _TURN until it does
_PATIENCE = 10  # such looks
_RUN = Path("/run/slurmctld")
_TABLE = Path("/proc/net/tcp")
_LISTENS = "0A"
_READY = re.compile(r"(idle|mixed|allocated|completing|planned|reserved|drain|maint)[a-z]*")
_BACK = (
    *(slurm_conf.OURS, "Prolog error", "Duplicate jobid", "Node unexpectedly rebooted"),
    *("Kill task failed", "batch job complete failure"),
)
"""How the reasons begin for which a node was drained that are over when its VM joins again."""

Chore = Callable[[], None]
"""What the head does at each turn; it may raise OSError and ValueError."""


class Controller:
    """slurmctld, as a child of this process.

    `port`: where it listens.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._over = False

    def start(self) -> None:
        """Start it, if it has not been stopped meanwhile."""
        _RUN.mkdir(mode=0o755, exist_ok=True)
        shutil.chown(_RUN, "slurm", "slurm")
        with self._lock:
            if not self._over:
                # What it becomes, with the right to a port that no program of a job can have.
                become = ("--reuid=slurm", "--regid=slurm", "--init-groups")
                rights = (f"--{it}-caps=+net_bind_service" for it in ("inh", "ambient"))
                self._process = subprocess.Popen(  # noqa: S603 - all constant
                    ["/usr/bin/setpriv", *become, *rights, "/usr/sbin/slurmctld", "-D"],
                    stdin=subprocess.DEVNULL,
                )

    def alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    def listens(self) -> bool:
        """Whether it is there for other VMs: a job may have taken its port before it began."""
        if self._over or not self.alive():
            return False
        return _listeners(self._port) == {pwd.getpwnam("slurm").pw_uid}

    def stop(self) -> None:
        """End it for good, with what it knows on the disk."""
        with self._lock:
            self._over = True
            process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Node(heads.Node):
    """One VM of the Slurm cluster, until it is stopped.

    `chores`: makes what the head does at each turn, once for each of its lives.
    """

    def __init__(  # noqa: PLR0913 - each is one of its neighbours
        self,
        identity: heads.Identity,
        lease: Lease,
        keys: Keys,
        state: State,
        *,
        names: tuple[str, str],
        chores: Callable[[], Iterable[Chore]],
        pace: heads.Pace,
    ) -> None:
        super().__init__(identity, lease, slurm_conf.ports()["slurmctld"], pace)
        self._keys = keys
        self._state = state
        self._names = names
        self._chores = chores
        self._joined, self._strange, self._looked = False, 0, 0.0

    def _lead(self, head: Head, held: heads.Held) -> None:
        controller, over, begun = Controller(self._port), threading.Event(), False

        def keep() -> None:
            try:
                self._keep(held, lambda: not over.is_set())
            finally:
                controller.stop()  # at once where the lease is lost

        keeper = threading.Thread(target=keep, daemon=True)
        keeper.start()
        try:
            before, copy = self._keys.own(), self._state.look()
            key = self._keys.settle(lambda key: copy is not None and copy.opened(key) is not None)
            life = self._state.begin(key, copy)
            begun = True
            self._keys.leads = controller.listens
            self._join(head, life, start=key != before)
            controller.start()
            say(f"slurmctld begins, life {life} of a head")
            chores = [self._state.copy, *self._chores()]
            while controller.alive() and keeper.is_alive() and not self._stopping.is_set():
                if self._answers(head):
                    self._look_after(head, "Slurm's head")
                    for chore in chores:
                        _try(chore)
                keeper.join(_TURN)
        except Lost:
            say("a later head has written its state: this VM is the head no longer")
            begun = False
        finally:
            over.set()
            controller.stop()
            if begun:
                with contextlib.suppress(Lost):
                    _try(lambda: self._state.copy(now=True))
            keeper.join(heads.LAST_RENEWAL)
            # Another VM need not wait for the lease to expire.
            held.release()

    def _follow(self, head: Head) -> None:
        before = self._keys.own()
        key = self._keys.follow(head.claim.address)
        if not key:
            say(f"waiting for the key of {head.claim.vm} at {head.claim.address}")
            return
        say(f"this VM is a node of {head.claim.vm}, lease {head.version.generation}")
        self._join(head, start=key != before)
        while self._is_head(head) and not self._stopping.is_set():
            self._look_after(head, f"a node of Slurm's head {head.claim.vm}")
            self._pause()

    def _join(self, head: Head, life: int = 0, *, start: bool) -> None:
        """Write the files for this head; slurmd reads them when it starts."""
        at = f"{head.claim.vm}({head.claim.address})"
        gpus = configuration.value("gpus")
        this = slurm_conf.machine(gpus["accelerator"] if gpus else "")
        ends = configuration.value("max_run_seconds") is not None
        files = slurm_conf.files(*self._names, at, this, life, ends=ends)
        if slurm_conf.write(Path("/"), files) or start:
            _restart()
        self._joined, self._strange, self._looked = False, 0, time.monotonic()

    def _look_after(self, head: Head, what: str) -> None:
        """See that the head knows this node, and tell systemd when it does."""
        if time.monotonic() - self._looked < (_LOOK if self._joined else _TURN):
            return
        self._looked = time.monotonic()
        if not _said("systemctl", "is-active", "slurmd").startswith(("active", "activating")):
            _restart()
            return
        if not self._answers(head):
            return
        asked = ("sinfo", "--noheader", f"--nodes={self._identity.vm}", "--format=%T|%E")
        state, _, reason = _said(*asked).partition("|")
        if not _READY.fullmatch(state):
            # slurmd has just begun; or the head has lost what it knew of its nodes.
            self._strange += 1
            if self._strange % _PATIENCE == 0:
                say(f"to the head this VM is {state or 'unknown'}: slurmd begins again")
                _restart()
            return
        self._strange = 0
        if not self._joined:
            self._joined = True
            tell_systemd(f"READY=1\nSTATUS={what}")
            if "drain" in state and reason.startswith(_BACK):
                say(f"this VM is back, which was drained: {reason.strip()}")
                _said("scontrol", "update", f"nodename={self._identity.vm}", "state=resume")


def _listeners(port: int) -> set[int]:
    """The users whose programs listen at a port of this VM."""
    lines = (line.split() for line in _TABLE.read_text("ascii").splitlines()[1:])
    return {int(it[7]) for it in lines if it[3] == _LISTENS and it[1].endswith(f":{port:04X}")}


def _restart() -> None:
    """Start slurmd, or start it again: what runs goes on. One that is stuck is not waited for."""
    _said("systemctl", "--no-block", "restart", "slurmd")


def _said(*command: str) -> str:
    """What a program prints; "" if it fails."""
    try:
        done = programs.ask(list(command), _ASK_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        say(f"{command[0]}: {error}")
        return ""
    return done.stdout.decode("utf-8", "replace")


def _try(chore: Chore) -> None:
    """Do it; what fails is said, and tried again at the next turn."""
    try:
        chore()
    except (OSError, ValueError) as error:
        say(f"{getattr(chore, '__qualname__', chore)}: {error}")


def main() -> None:
    """Run this VM's node until a SIGTERM."""
    pace = heads.pace(__doc__)
    config = configuration.load()
    folder = storage.part("vms/slurm")
    identity = heads.identity()
    keys = slurm_key.of(identity.address)
    node = Node(
        identity,
        Lease(folder),
        keys,
        State(folder),
        names=(config["name_prefix"], config["slurm"]["partition"]),
        chores=lambda: (
            slurm_jobs.SlurmJobs(storage.wanted(), storage.shared()).tend,
            slurm_others.SlurmOthers(folder).tell,
        ),
        pace=pace,
    )
    signal.signal(signal.SIGTERM, lambda *_: node.stop())
    with keys.serve():
        node.run()


if __name__ == "__main__":
    main()
