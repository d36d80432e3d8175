"""What Status tells of a group of VMs."""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass
from typing import Final, Self, TypeVar

from provision.documents import status
from provision.documents.status import Status

_MOST_VMS: Final = 20
"""The most VMs in the JSON without --full."""
_MOST_OUTPUT: Final = 3
"""The most lines of a step's output, likewise."""


class StartupState(enum.StrEnum):
    """The state of a VM's start-up."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class StartupStep:
    """One step of a start-up.

    Attributes:
        state: "running", "done", "failed" or "skipped"; of the command also "failing", which has
            failed and is begun again, and "stopped", which was told to end with its VM.
        detail: Why it was skipped, or the last lines of output before its failure.
        attempt: The number of the command's attempt.
        failures: How many attempts failed, one after the other.
        code: The exit code of the last one that ended.
    """

    state: str
    detail: str = ""
    attempt: int | None = None
    failures: int | None = None
    code: int | None = None

    @property
    def is_failing(self) -> bool:
        """Whether it failed, and is begun again."""
        return self.state == "failing"


@dataclass(frozen=True, kw_only=True)
class Startup:
    """The start-up of one VM, as far as the VM has reported it.

    Attributes:
        state: Its state; None if it has not reported anything yet.
        step: The current step, or the one that failed; None for none.
        words: Its state, as the end of a sentence about the VM.
        detail: The last lines of output of its current step.
        steps: Name of a step -> what is known of it; only with --full.
    """

    state: StartupState | None
    step: str | None
    words: str
    detail: str = ""
    steps: dict[str, StartupStep] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class GpuCheck:
    """What a VM found about its GPUs at its start.

    Attributes:
        gpus: The number of GPUs.
        names: The name of each, as the driver has it.
        driver: The driver's version; None for none.
        ecc_errors: The uncorrected memory errors of all; None where no GPU counts them.
        interfaces: The number of network interfaces.
        fabric: What NCCL uses between VMs, by the start-up's check: "tcp", "tcpxo" or "gib"; None
            where it has nothing to choose, or has not been checked.
    """

    gpus: int | None = None
    names: tuple[str, ...] = ()
    driver: str | None = None
    ecc_errors: int | None = None
    interfaces: int | None = None
    fabric: str | None = None


@dataclass(frozen=True, kw_only=True)
class Interruption:
    """The last that Google did to a VM of its own accord.

    Attributes:
        event: "preempted", "host-error" or "maintenance".
        seconds_ago: How long ago.
        words: The event, as the end of a sentence about the VM.
    """

    event: str
    seconds_ago: int
    words: str


@dataclass(frozen=True, kw_only=True)
class Vm:
    """A VM that exists.

    Attributes:
        name: Its name.
        rank: Its rank in the group, NODE_RANK of its programs; None as long as it has none.
        status: Its status in the API, such as RUNNING.
        machine_type: Its machine type.
        created: When it was made, in RFC 3339 format; None if Google does not say.
        started: When it was last started, likewise.
        ends: When Google deletes it; None if it has no limit.
        remaining_seconds: The seconds until then.
        maintenance_seconds: The seconds until the maintenance of its host, for which it is stopped;
            0 when that is under way, None if none is announced.
        interruption: The last that Google did to it; None for nothing.
        notebook: Its notebook's URL; None if there is none yet.
        startup: Its start-up.
        gpu_check: What it found about its GPUs; None if it has not checked them.
        faults: What its GPUs complain of since, in its own words, such as an Xid of the driver.
        silence: That it runs, but is not heard of any more, as the end of a sentence about it; ""
            if it is, or is not to say anything yet.
    """

    name: str
    rank: int | None = None
    status: str
    machine_type: str
    created: str | None = None
    started: str | None = None
    ends: str | None = None
    remaining_seconds: int | None = None
    maintenance_seconds: int | None = None
    interruption: Interruption | None = None
    notebook: str | None = None
    startup: Startup
    gpu_check: GpuCheck | None = None
    faults: tuple[str, ...] = ()
    silence: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether it runs, its start-up is done, and it is heard of."""
        is_done = self.startup.state is StartupState.DONE
        return self.status == "RUNNING" and is_done and not self.silence


@dataclass(frozen=True, kw_only=True)
class Down:
    """A VM of the group that does not run.

    Attributes:
        name: Its name.
        status: Its status in the API; None if it does not exist now.
        action: What the group is doing with it, such as RECREATING.
        words: What has become of it, as the end of a sentence about it.
        reasons: Google's words about why that does not succeed.
        interruption: The last that Google did to it; None for nothing.
    """

    name: str
    status: str | None
    action: str
    words: str
    reasons: tuple[str, ...] = ()
    interruption: Interruption | None = None


@dataclass(frozen=True, kw_only=True)
class ResizeRequest:
    """A request of flex start for VMs.

    Attributes:
        name: Its name.
        count: The number of VMs that it asks for.
        run_seconds: How long each of them may run.
        state: CREATING, ACCEPTED, PROVISIONING, SUCCEEDED, FAILED or CANCELLED.
        words: What it asks for and its state, as a sentence.
        age_seconds: How old it is.
        reasons: Google's words about why it failed or waits.
    """

    name: str
    count: int
    run_seconds: int
    state: str
    words: str
    age_seconds: int
    reasons: tuple[str, ...] = ()


_Reasoned = TypeVar("_Reasoned", Down, ResizeRequest)


@dataclass(frozen=True, kw_only=True)
class BootImage:
    """The image that new VMs boot from; None for what is not known.

    Attributes:
        project: The image's project.
        family: Its family.
        name: Its name.
    """

    project: str | None = None
    family: str | None = None
    name: str | None = None


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The VMs in numbers, whatever the lists leave out.

    Attributes:
        wanted: The number asked for; None if not known.
        exist: How many exist.
        running: How many run.
        ready: How many run, have started up, and are heard of.
        starting: How many run and are still starting up.
        failed: How many run and failed to start up.
        silent: How many run and are not heard of any more.
        down: How many of the group do not run.
        out_of_date: How many are older than the settings.
        listed: How many `vms` has.
    """

    wanted: int | None
    exist: int
    running: int
    ready: int
    starting: int
    failed: int
    silent: int
    down: int
    out_of_date: int
    listed: int


@dataclass(frozen=True, kw_only=True)
class VmGroup(Status):
    """A group of VMs.

    Attributes:
        image: The image that new VMs boot from.
        wanted: The number of VMs asked for (INSTANCE_COUNT); None if not known.
        running: How many run.
        counts: All of them in numbers.
        vms: The VMs that exist, those that are not ready first.
        down: The VMs of the group that do not run.
        requests: The requests of flex start.
    """

    image: BootImage = BootImage()
    wanted: int | None = None
    running: int = 0
    counts: Counts
    vms: tuple[Vm, ...] = ()
    down: tuple[Down, ...] = ()
    requests: tuple[ResizeRequest, ...] = ()

    def short(self) -> Self:
        """The same with a limited number of VMs, those that are not ready first."""
        whole = super().short()
        vms = tuple(map(_short_vm, self.vms[:_MOST_VMS]))
        cut = dataclasses.replace(
            whole,
            counts=dataclasses.replace(self.counts, listed=len(vms)),
            vms=vms,
            down=tuple(map(_short_reasons, status.few(self.down))),
            requests=tuple(map(_short_reasons, status.few(self.requests))),
        )
        return dataclasses.replace(cut, shortened=whole.shortened or cut != whole)


def _short_vm(vm: Vm) -> Vm:
    """A VM without its steps, and with the last of what the one wrote that it is at."""
    lines = status.lines(vm.startup.detail.splitlines()[-_MOST_OUTPUT:])
    startup = dataclasses.replace(vm.startup, detail="\n".join(lines), steps={})
    return dataclasses.replace(vm, startup=startup)


def _short_reasons(thing: _Reasoned) -> _Reasoned:
    return dataclasses.replace(thing, reasons=status.lines(thing.reasons))
