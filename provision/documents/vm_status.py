"""What Status tells of a group of VMs."""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass
from typing import Annotated, Final, Self, TypeVar

from provision.documents import status
from provision.documents.status import Status

_MOST_VMS: Final = 20  # the most VMs in the JSON without --full
_MOST_OUTPUT: Final = 3  # the most lines of a step's output, likewise


class StartupState(enum.StrEnum):
    """The state of a VM's start-up."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class StartupStep:
    """One step of a start-up."""

    state: Annotated[
        str,
        '"running", "done", "failed" or "skipped"; of the command also "failing", which has '
        'failed and is begun again, and "stopped", which was told to end with its VM',
    ]
    detail: Annotated[str, "why it was skipped, or the last lines of output before its failure"] = (
        ""
    )
    attempt: Annotated[int | None, "the number of the command's attempt"] = None
    failures: Annotated[int | None, "how many attempts failed, one after the other"] = None
    code: Annotated[int | None, "the exit code of the last one that ended"] = None

    @property
    def is_failing(self) -> bool:
        """Whether it failed, and is begun again."""
        return self.state == "failing"


@dataclass(frozen=True, kw_only=True)
class Startup:
    """The start-up of one VM, as far as the VM has reported it."""

    state: Annotated[StartupState | None, "its state; None if it has not reported anything yet"]
    step: Annotated[str | None, "the current step, or the one that failed; None for none"]
    words: Annotated[str, "its state, as the end of a sentence about the VM"]
    detail: Annotated[str, "the last lines of output of its current step"] = ""
    steps: Annotated[
        dict[str, StartupStep], "name of a step -> what is known of it; only with --full"
    ] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class GpuCheck:
    """What a VM found about its GPUs at its start."""

    gpus: Annotated[int | None, "the number of GPUs"] = None
    names: Annotated[tuple[str, ...], "the name of each, as the driver has it"] = ()
    driver: Annotated[str | None, "the driver's version; None for none"] = None
    ecc_errors: Annotated[
        int | None, "the uncorrected memory errors of all; None where no GPU counts them"
    ] = None
    interfaces: Annotated[int | None, "the number of network interfaces"] = None
    fabric: Annotated[
        str | None,
        'what NCCL uses between VMs, by the start-up\'s check: "tcp", "tcpxo" or "gib"; None '
        "where it has nothing to choose, or has not been checked",
    ] = None


@dataclass(frozen=True, kw_only=True)
class Interruption:
    """The last that Google did to a VM of its own accord."""

    event: Annotated[str, '"preempted", "host-error" or "maintenance"']
    seconds_ago: Annotated[int, "how long ago"]
    words: Annotated[str, "the event, as the end of a sentence about the VM"]


@dataclass(frozen=True, kw_only=True)
class SlurmNode:
    """A VM as Slurm has it."""

    state: Annotated[str, 'its state as sinfo says it, such as "mixed" or "drained"']
    reason: Annotated[str, 'why it takes no jobs, as Slurm says it; "" for nothing'] = ""
    gpus: Annotated[int, "how many GPUs it has for jobs"] = 0
    gpus_in_use: Annotated[int, "how many of them jobs have"] = 0

    @property
    def is_mute(self) -> bool:
        """Whether it does not answer the head; the VMs write so in place of sinfo's star."""
        return self.reason.startswith("it does not answer")

    @property
    def takes_none(self) -> bool:
        """Whether it gets no jobs."""
        return self.state.startswith(("down", "drain", "fail")) or self.is_mute


@dataclass(frozen=True, kw_only=True)
class SlurmNow:
    """The Slurm of a group, as its head said last."""

    head: Annotated[str, "the VM that leads it"]
    states: Annotated[dict[str, int], "how many nodes are in which state"]
    gpus: Annotated[int, "how many GPUs all nodes have for jobs"]
    gpus_in_use: Annotated[int, "how many of them jobs have"]
    silent_seconds: Annotated[int, "the seconds since the head said so, each minute at least"]
    others_running: Annotated[int, "how many jobs run that came by sbatch or srun, not by Run"] = 0
    others_waiting: Annotated[int, "how many of these wait"] = 0


@dataclass(frozen=True, kw_only=True)
class Vm:
    """A VM that exists."""

    name: Annotated[str, "its name"]
    rank: Annotated[
        int | None, "its rank in the group, NODE_RANK of its programs; None as long as it has none"
    ] = None
    status: Annotated[str, "its status in the API, such as RUNNING"]
    machine_type: Annotated[str, "its machine type"]
    created: Annotated[
        str | None, "when it was made, in RFC 3339 format; None if Google does not say"
    ] = None
    started: Annotated[str | None, "when it was last started, likewise"] = None
    ends: Annotated[str | None, "when Google deletes it; None if it has no limit"] = None
    remaining_seconds: Annotated[int | None, "the seconds until then"] = None
    maintenance_seconds: Annotated[
        int | None,
        "the seconds until the maintenance of its host, for which it is stopped; 0 when that "
        "is under way, None if none is announced",
    ] = None
    interruption: Annotated[
        Interruption | None, "the last that Google did to it; None for nothing"
    ] = None
    notebook: Annotated[str | None, "its notebook's URL; None if there is none yet"] = None
    startup: Annotated[Startup, "its start-up"]
    gpu_check: Annotated[
        GpuCheck | None, "what it found about its GPUs; None if it has not checked them"
    ] = None
    faults: Annotated[
        tuple[str, ...],
        "what its GPUs complain of since, in its own words, such as an Xid of the driver",
    ] = ()
    disks: Annotated[
        tuple[str, ...],
        "which of its disks and mounts is full or does not answer, or that its clock is wrong",
    ] = ()
    slurm: Annotated[
        SlurmNode | None, "it as a node of Slurm; None where there is none, or not yet"
    ] = None
    silence: Annotated[
        str,
        'that it runs, but is not heard of any more, as the end of a sentence about it; "" if '
        "it is, or is not to say anything yet",
    ] = ""

    @property
    def is_ready(self) -> bool:
        """Whether it runs, its start-up is done, and it is heard of."""
        is_done = self.startup.state is StartupState.DONE
        return self.status == "RUNNING" and is_done and not self.silence


@dataclass(frozen=True, kw_only=True)
class Down:
    """A VM of the group that does not run."""

    name: Annotated[str, "its name"]
    status: Annotated[str | None, "its status in the API; None if it does not exist now"]
    action: Annotated[str, "what the group is doing with it, such as RECREATING"]
    words: Annotated[str, "what has become of it, as the end of a sentence about it"]
    reasons: Annotated[tuple[str, ...], "Google's words about why that does not succeed"] = ()
    interruption: Annotated[
        Interruption | None, "the last that Google did to it; None for nothing"
    ] = None


@dataclass(frozen=True, kw_only=True)
class ResizeRequest:
    """A request of flex start for VMs."""

    name: Annotated[str, "its name"]
    count: Annotated[int, "the number of VMs that it asks for"]
    run_seconds: Annotated[int, "how long each of them may run"]
    state: Annotated[str, "CREATING, ACCEPTED, PROVISIONING, SUCCEEDED, FAILED or CANCELLED"]
    words: Annotated[str, "what it asks for and its state, as a sentence"]
    age_seconds: Annotated[int, "how old it is"]
    reasons: Annotated[tuple[str, ...], "Google's words about why it failed or waits"] = ()


_Reasoned = TypeVar("_Reasoned", Down, ResizeRequest)


@dataclass(frozen=True, kw_only=True)
class BootImage:
    """The image that new VMs boot from; None for what is not known."""

    project: Annotated[str | None, "the image's project"] = None
    family: Annotated[str | None, "its family"] = None
    name: Annotated[str | None, "its name"] = None


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The VMs in numbers, whatever the lists leave out."""

    wanted: Annotated[int | None, "the number asked for; None if not known"]
    exist: Annotated[int, "how many exist"]
    running: Annotated[int, "how many run"]
    ready: Annotated[int, "how many run, have started up, and are heard of"]
    starting: Annotated[int, "how many run and are still starting up"]
    failed: Annotated[int, "how many run and failed to start up"]
    silent: Annotated[int, "how many run and are not heard of any more"]
    down: Annotated[int, "how many of the group do not run"]
    out_of_date: Annotated[int, "how many are older than the settings"]
    listed: Annotated[int, "how many `vms` has"]


@dataclass(frozen=True, kw_only=True)
class VmGroup(Status):
    """A group of VMs."""

    image: Annotated[BootImage, "the image that new VMs boot from"] = BootImage()
    wanted: Annotated[
        int | None, "the number of VMs asked for (INSTANCE_COUNT); None if not known"
    ] = None
    running: Annotated[int, "how many run"] = 0
    counts: Annotated[Counts, "all of them in numbers"]
    vms: Annotated[tuple[Vm, ...], "the VMs that exist, those that are not ready first"] = ()
    down: Annotated[tuple[Down, ...], "the VMs of the group that do not run"] = ()
    requests: Annotated[tuple[ResizeRequest, ...], "the requests of flex start"] = ()
    slurm: Annotated[
        SlurmNow | None, "what its Slurm says; None where there is none, or not yet"
    ] = None

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
