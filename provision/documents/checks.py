"""What the online checks and Test have found."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class CheckState(enum.StrEnum):
    """What became of an online check.

    `PASSED`: It was made, and Google would not refuse anything. `PARTLY`: It passed as far as it
    could look; a note says what nobody lets it know, such as a reservation of somebody else's.
    `FAILED`: It was made, and Google would refuse something; `problems` says what. `UNCHECKED`: It
    could not be made: Google did not answer, or refused to. `SKIPPED`: SKIP_CHECKS names it.
    """

    PASSED = "passed"
    PARTLY = "partly"
    FAILED = "failed"
    UNCHECKED = "unchecked"
    SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True)
class BandwidthRow:
    """The result for one size of message; bandwidths are NCCL's bus bandwidth."""

    size: int  # the message's size in bytes
    out_of_place: float  # in GB/s, with the results in another buffer
    in_place: float  # in GB/s, with the results in the same buffer
    wrong: int  # the number of wrong values


@dataclass(frozen=True, kw_only=True)
class NodeCheck:
    """What a pod of the test found on its node, and what Kubernetes says of the node."""

    # the number of GPUs that answer, or that the node offers to pods; None if not known
    gpus: int | None = None
    names: tuple[str, ...] = ()  # the name of each, as the driver has it
    driver: str | None = None  # the driver's version; None if not known
    # the uncorrected memory errors of all since the boot; None where no GPU counts them
    ecc_errors: int | None = None
    interfaces: int | None = None  # the number of network interfaces of the pod; None if not known
    faults: tuple[str, ...] = ()  # what is wrong with it, in words; none if nothing is


@dataclass(frozen=True, kw_only=True)
class NodesTry:
    """One measurement between nodes."""

    nodes: tuple[str, ...]  # the nodes that took part
    passed: bool  # whether it was good enough
    bandwidth: float | None = None  # the peak of the bus bandwidth, in GB/s; None if it failed
    why: str = ""  # why it failed; "" if it did not


@dataclass(frozen=True, kw_only=True)
class RayCheck:
    """What became of the test through Ray."""

    passed: bool  # whether Ray found all GPUs, and each was well
    gpus: Mapping[str, int]  # node -> the number of GPUs that did Ray's work there
    why: str = ""  # why it failed; "" if it did not


@dataclass(frozen=True, kw_only=True)
class Bandwidth:
    """The nodes of a pool and the bandwidth between them; NCCL's bus bandwidth."""

    nodes: int  # how many nodes took part
    average: float | None  # the average over all sizes, in GB/s; None if the test did not end
    peak_out_of_place: float  # the highest in GB/s, with the results in another buffer
    peak_in_place: float  # the highest in GB/s, with the results in the same buffer
    out_of_bounds: int | None  # the number of wrong values; None if the test did not end
    interfaces: Mapping[str, int]  # node -> the number of its network interfaces
    networks: tuple[str, ...]  # the networks that NCCL used, such as "gIB" or "Socket"
    rows: tuple[BandwidthRow, ...]  # the results by size
    expected: float | None = None  # the published peak in GB/s; None if there is none
    # the peak that is enough, in GB/s; None if there is no published figure
    least: float | None = None
    source: str = ""  # where the published figure is from
    checked: Mapping[str, NodeCheck] = field(default_factory=dict)  # node -> what was found on it
    # all measurements, the first with all nodes; others look for the nodes at fault
    tries: tuple[NodesTry, ...] = ()
    # the nodes at fault: each failed with nobody but nodes that passed with others
    faulty: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()  # nodes that failed only with others that failed
    cordoned: tuple[str, ...] = ()  # the nodes that this run has cordoned
    ray: RayCheck | None = None  # what became of the test through Ray; None where Ray is not on


@dataclass(frozen=True, kw_only=True)
class VmCheck:
    """What a VM found about itself when Test asked it."""

    gpus: int | None = None  # the number of GPUs that answer; None if it has not told
    names: tuple[str, ...] = ()  # the name of each, as the driver has it
    driver: str | None = None  # the driver's version; None for none
    # the uncorrected memory errors of all since its boot; None where no GPU counts them
    ecc_errors: int | None = None
    # what DCGM's short diagnostic came to: "passed", "failed" or "not run"
    diagnostic: str = "not run"
    interfaces: int | None = None  # the number of network interfaces
    local_ssds: int | None = None  # the number of local SSDs
    # the programs that have its GPUs in use, each "NAME (PID)": it is left out of what would
    # disturb them
    users: tuple[str, ...] = ()
    # what NCCL finds in a login shell, and not in units and jobs, such as "NCCL_NET=gIB instead of
    # nothing"
    login: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()  # what is wrong with it, in words; none if nothing is


@dataclass(frozen=True, kw_only=True)
class BandwidthTry:
    """One measurement between VMs."""

    vms: tuple[str, ...]  # the VMs that took part
    passed: bool  # whether it was good enough
    # the bus bandwidth at the size that counts, in GB/s; None if it failed
    bandwidth: float | None = None
    why: str = ""  # why it failed; "" if it did not


@dataclass(frozen=True, kw_only=True)
class VmBandwidth:
    """The bandwidth between the VMs of a group; bandwidths are NCCL's bus bandwidth."""

    vms: int  # how many VMs took part
    gpus: int  # the number of GPUs of all of them
    collective: str  # what their GPUs did together: "all_gather" or "all_reduce"
    not_measured: str = ""  # why nothing was measured; "" if it was
    size: int  # the size of message that counts, in bytes
    bandwidth: float | None  # what was reached with it, in GB/s; None if that failed
    expected: float | None  # the published figure in GB/s; None if there is none
    least: float | None  # what is enough, in GB/s; None if there is no published figure
    source: str  # where the published figure is from
    networks: tuple[str, ...] = ()  # the networks that NCCL used, such as "gIB" or "Socket"
    nccl: str = ""  # NCCL's version, of the library that jobs load; "" if not known
    plugin: str = ""  # the NCCL that came with the plugin of the GPUs' network; "" for none
    plugin_nccl: str = ""  # its version
    rows: tuple[BandwidthRow, ...] = ()  # the results by size, of all VMs together
    # all measurements, the first with all VMs; others look for the VMs at fault
    tries: tuple[BandwidthTry, ...] = ()
    # the VMs at fault: each failed with nobody but VMs that passed with others
    faulty: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()  # VMs that failed only with others that failed
