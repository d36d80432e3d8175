"""What the online checks and Test have found."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class CheckState(enum.StrEnum):
    """What became of an online check.

    Attributes:
        PASSED: It was made, and Google would not refuse anything.
        PARTLY: It passed as far as it could look; a note says what nobody lets it know, such as a
            reservation of somebody else's.
        FAILED: It was made, and Google would refuse something; `problems` says what.
        UNCHECKED: It could not be made: Google did not answer, or refused to.
        SKIPPED: SKIP_CHECKS names it.
    """

    PASSED = "passed"
    PARTLY = "partly"
    FAILED = "failed"
    UNCHECKED = "unchecked"
    SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True)
class BandwidthRow:
    """The result for one size of message; bandwidths are NCCL's bus bandwidth.

    Attributes:
        size: The message's size in bytes.
        out_of_place: In GB/s, with the results in another buffer.
        in_place: In GB/s, with the results in the same buffer.
        wrong: The number of wrong values.
    """

    size: int
    out_of_place: float
    in_place: float
    wrong: int


@dataclass(frozen=True, kw_only=True)
class NodeCheck:
    """What a pod of the test found on its node, and what Kubernetes says of the node.

    Attributes:
        gpus: The number of GPUs that answer, or that the node offers to pods; None if not known.
        names: The name of each, as the driver has it.
        driver: The driver's version; None if not known.
        ecc_errors: The uncorrected memory errors of all since the boot; None where no GPU counts
            them.
        interfaces: The number of network interfaces of the pod; None if not known.
        faults: What is wrong with it, in words; none if nothing is.
    """

    gpus: int | None = None
    names: tuple[str, ...] = ()
    driver: str | None = None
    ecc_errors: int | None = None
    interfaces: int | None = None
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NodesTry:
    """One measurement between nodes.

    Attributes:
        nodes: The nodes that took part.
        passed: Whether it was good enough.
        bandwidth: The peak of the bus bandwidth, in GB/s; None if it failed.
        why: Why it failed; "" if it did not.
    """

    nodes: tuple[str, ...]
    passed: bool
    bandwidth: float | None = None
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class RayCheck:
    """What became of the test through Ray.

    Attributes:
        passed: Whether Ray found all GPUs, and each was well.
        gpus: Node -> the number of GPUs that did Ray's work there.
        why: Why it failed; "" if it did not.
    """

    passed: bool
    gpus: Mapping[str, int]
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Bandwidth:
    """The nodes of a pool and the bandwidth between them; NCCL's bus bandwidth.

    Attributes:
        nodes: How many nodes took part.
        average: The average over all sizes, in GB/s; None if the test did not end.
        peak_out_of_place: The highest in GB/s, with the results in another buffer.
        peak_in_place: The highest in GB/s, with the results in the same buffer.
        out_of_bounds: The number of wrong values; None if the test did not end.
        interfaces: Node -> the number of its network interfaces.
        networks: The networks that NCCL used, such as "gIB" or "Socket".
        rows: The results by size.
        expected: The published peak in GB/s; None if there is none.
        least: The peak that is enough, in GB/s; None if there is no published figure.
        source: Where the published figure is from.
        checked: Node -> what was found on it.
        tries: All measurements, the first with all nodes; others look for the nodes at fault.
        faulty: The nodes at fault: each failed with nobody but nodes that passed with others.
        suspects: Nodes that failed only with others that failed.
        cordoned: The nodes that this run has cordoned.
        ray: What became of the test through Ray; None where Ray is not on.
    """

    nodes: int
    average: float | None
    peak_out_of_place: float
    peak_in_place: float
    out_of_bounds: int | None
    interfaces: Mapping[str, int]
    networks: tuple[str, ...]
    rows: tuple[BandwidthRow, ...]
    expected: float | None = None
    least: float | None = None
    source: str = ""
    checked: Mapping[str, NodeCheck] = field(default_factory=dict)
    tries: tuple[NodesTry, ...] = ()
    faulty: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    cordoned: tuple[str, ...] = ()
    ray: RayCheck | None = None


@dataclass(frozen=True, kw_only=True)
class VmCheck:
    """What a VM found about itself when Test asked it.

    Attributes:
        gpus: The number of GPUs that answer; None if it has not told.
        names: The name of each, as the driver has it.
        driver: The driver's version; None for none.
        ecc_errors: The uncorrected memory errors of all since its boot; None where no GPU counts
            them.
        diagnostic: What DCGM's short diagnostic came to: "passed", "failed" or "not run".
        interfaces: The number of network interfaces.
        local_ssds: The number of local SSDs.
        users: The programs that have its GPUs in use, each "NAME (PID)": it is left out of what
            would disturb them.
        login: What NCCL finds in a login shell, and not in units and jobs, such as "NCCL_NET=gIB
            instead of nothing".
        faults: What is wrong with it, in words; none if nothing is.
    """

    gpus: int | None = None
    names: tuple[str, ...] = ()
    driver: str | None = None
    ecc_errors: int | None = None
    diagnostic: str = "not run"
    interfaces: int | None = None
    local_ssds: int | None = None
    users: tuple[str, ...] = ()
    login: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BandwidthTry:
    """One measurement between VMs.

    Attributes:
        vms: The VMs that took part.
        passed: Whether it was good enough.
        bandwidth: The bus bandwidth at the size that counts, in GB/s; None if it failed.
        why: Why it failed; "" if it did not.
    """

    vms: tuple[str, ...]
    passed: bool
    bandwidth: float | None = None
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class VmBandwidth:
    """The bandwidth between the VMs of a group; bandwidths are NCCL's bus bandwidth.

    Attributes:
        vms: How many VMs took part.
        gpus: The number of GPUs of all of them.
        collective: What their GPUs did together: "all_gather" or "all_reduce".
        not_measured: Why nothing was measured; "" if it was.
        size: The size of message that counts, in bytes.
        bandwidth: What was reached with it, in GB/s; None if that failed.
        expected: The published figure in GB/s; None if there is none.
        least: What is enough, in GB/s; None if there is no published figure.
        source: Where the published figure is from.
        networks: The networks that NCCL used, such as "gIB" or "Socket".
        nccl: NCCL's version, of the library that jobs load; "" if not known.
        plugin: The NCCL that came with the plugin of the GPUs' network; "" for none.
        plugin_nccl: Its version.
        rows: The results by size, of all VMs together.
        tries: All measurements, the first with all VMs; others look for the VMs at fault.
        faulty: The VMs at fault: each failed with nobody but VMs that passed with others.
        suspects: VMs that failed only with others that failed.
    """

    vms: int
    gpus: int
    collective: str
    not_measured: str = ""
    size: int
    bandwidth: float | None
    expected: float | None
    least: float | None
    source: str
    networks: tuple[str, ...] = ()
    nccl: str = ""
    plugin: str = ""
    plugin_nccl: str = ""
    rows: tuple[BandwidthRow, ...] = ()
    tries: tuple[BandwidthTry, ...] = ()
    faulty: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
