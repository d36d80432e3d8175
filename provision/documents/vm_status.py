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
    """One step of a start-up."""

    # "running", "done", "failed" or "skipped"; of the command also "failing", which has failed and
    # is begun again, and "stopped", which was told to end with its VM
    state: str
    detail: str = ""  # why it was skipped, or the last lines of output before its failure
    attempt: int | None = None  # the number of the command's attempt
    failures: int | None = None  # how many attempts failed, one after the other
    code: int | None = None  # the exit code of the last one that ended

    @property
    def is_failing(self) -> bool:
        """Whether it failed, and is begun again."""
        return self.state == "failing"


@dataclass(frozen=True, kw_only=True)
class Startup:
    """The start-up of one VM, as far as the VM has reported it."""

    state: StartupState | None  # its state; None if it has not reported anything yet
    step: str | None  # the current step, or the one that failed; None for none
    words: str  # its state, as the end of a sentence about the VM
    detail: str = ""  # the last lines of output of its current step
    # name of a step -> what is known of it; only with --full
    steps: dict[str, StartupStep] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class GpuCheck:
    """What a VM found about its GPUs at its start."""

    gpus: int | None = None  # the number of GPUs
    names: tuple[str, ...] = ()  # the name of each, as the driver has it
    driver: str | None = None  # the driver's version; None for none
    # the uncorrected memory errors of all; None where no GPU counts them
    ecc_errors: int | None = None
    interfaces: int | None = None  # the number of network interfaces
    # what NCCL uses between VMs, by the start-up's check: "tcp", "tcpxo" or "gib"; None where it
    # has nothing to choose, or has not been checked
    fabric: str | None = None


@dataclass(frozen=True, kw_only=True)
class Interruption:
    """The last that Google did to a VM of its own accord."""

    event: str  # "preempted", "host-error" or "maintenance"
    seconds_ago: int  # how long ago
    words: str  # the event, as the end of a sentence about the VM


@dataclass(frozen=True, kw_only=True)
class Vm:
    """A VM that exists."""

    name: str  # its name
    # its rank in the group, NODE_RANK of its programs; None as long as it has none
    rank: int | None = None
    status: str  # its status in the API, such as RUNNING
    machine_type: str  # its machine type
    created: str | None = None  # when it was made, in RFC 3339 format; None if Google does not say
    started: str | None = None  # when it was last started, likewise
    ends: str | None = None  # when Google deletes it; None if it has no limit
    remaining_seconds: int | None = None  # the seconds until then
    # the seconds until the maintenance of its host, for which it is stopped; 0 when that is under
    # way, None if none is announced
    maintenance_seconds: int | None = None
    interruption: Interruption | None = None  # the last that Google did to it; None for nothing
    notebook: str | None = None  # its notebook's URL; None if there is none yet
    startup: Startup  # its start-up
    # what it found about its GPUs; None if it has not checked them
    gpu_check: GpuCheck | None = None
    # what its GPUs complain of since, in its own words, such as an Xid of the driver
    faults: tuple[str, ...] = ()
    # which of its disks and mounts is full, or does not answer, likewise
    disks: tuple[str, ...] = ()
    # that it runs, but is not heard of any more, as the end of a sentence about it; "" if it is, or
    # is not to say anything yet
    silence: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether it runs, its start-up is done, and it is heard of."""
        is_done = self.startup.state is StartupState.DONE
        return self.status == "RUNNING" and is_done and not self.silence


@dataclass(frozen=True, kw_only=True)
class Down:
    """A VM of the group that does not run."""

    name: str  # its name
    status: str | None  # its status in the API; None if it does not exist now
    action: str  # what the group is doing with it, such as RECREATING
    words: str  # what has become of it, as the end of a sentence about it
    reasons: tuple[str, ...] = ()  # Google's words about why that does not succeed
    interruption: Interruption | None = None  # the last that Google did to it; None for nothing


@dataclass(frozen=True, kw_only=True)
class ResizeRequest:
    """A request of flex start for VMs."""

    name: str  # its name
    count: int  # the number of VMs that it asks for
    run_seconds: int  # how long each of them may run
    state: str  # CREATING, ACCEPTED, PROVISIONING, SUCCEEDED, FAILED or CANCELLED
    words: str  # what it asks for and its state, as a sentence
    age_seconds: int  # how old it is
    reasons: tuple[str, ...] = ()  # Google's words about why it failed or waits


_Reasoned = TypeVar("_Reasoned", Down, ResizeRequest)


@dataclass(frozen=True, kw_only=True)
class BootImage:
    """The image that new VMs boot from; None for what is not known."""

    project: str | None = None  # the image's project
    family: str | None = None  # its family
    name: str | None = None  # its name


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The VMs in numbers, whatever the lists leave out."""

    wanted: int | None  # the number asked for; None if not known
    exist: int  # how many exist
    running: int  # how many run
    ready: int  # how many run, have started up, and are heard of
    starting: int  # how many run and are still starting up
    failed: int  # how many run and failed to start up
    silent: int  # how many run and are not heard of any more
    down: int  # how many of the group do not run
    out_of_date: int  # how many are older than the settings
    listed: int  # how many `vms` has


@dataclass(frozen=True, kw_only=True)
class VmGroup(Status):
    """A group of VMs."""

    image: BootImage = BootImage()  # the image that new VMs boot from
    wanted: int | None = None  # the number of VMs asked for (INSTANCE_COUNT); None if not known
    running: int = 0  # how many run
    counts: Counts  # all of them in numbers
    vms: tuple[Vm, ...] = ()  # the VMs that exist, those that are not ready first
    down: tuple[Down, ...] = ()  # the VMs of the group that do not run
    requests: tuple[ResizeRequest, ...] = ()  # the requests of flex start

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
