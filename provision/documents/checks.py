"""What Test has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
class Bandwidth:
    """The bandwidth between the nodes of a pool; bandwidths are NCCL's bus bandwidth.

    Attributes:
        nodes: How many nodes took part.
        average: The average over all sizes, in GB/s; None if the test did not end.
        peak_out_of_place: The highest in GB/s, with the results in another buffer.
        peak_in_place: The highest in GB/s, with the results in the same buffer.
        out_of_bounds: The number of wrong values; None if the test did not end.
        interfaces: Node -> the number of its network interfaces.
        networks: The networks that NCCL used, such as "gIB" or "Socket".
        rows: The results by size.
    """

    nodes: int
    average: float | None
    peak_out_of_place: float
    peak_in_place: float
    out_of_bounds: int | None
    interfaces: Mapping[str, int]
    networks: tuple[str, ...]
    rows: tuple[BandwidthRow, ...]


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
        faults: What is wrong with it, in words; none if nothing is.
    """

    gpus: int | None = None
    names: tuple[str, ...] = ()
    driver: str | None = None
    ecc_errors: int | None = None
    diagnostic: str = "not run"
    interfaces: int | None = None
    local_ssds: int | None = None
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
        nccl: NCCL's version; "" if not known.
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
    rows: tuple[BandwidthRow, ...] = ()
    tries: tuple[BandwidthTry, ...] = ()
    faulty: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
