"""What the online checks and Test have found."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated


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

    size: Annotated[int, "the message's size in bytes"]
    out_of_place: Annotated[float, "in GB/s, with the results in another buffer"]
    in_place: Annotated[float, "in GB/s, with the results in the same buffer"]
    wrong: Annotated[int, "the number of wrong values"]


@dataclass(frozen=True, kw_only=True)
class NodeCheck:
    """What a pod of the test found on its node, and what Kubernetes says of the node."""

    gpus: Annotated[
        int | None,
        "the number of GPUs that answer, or that the node offers to pods; None if not known",
    ] = None
    names: Annotated[tuple[str, ...], "the name of each, as the driver has it"] = ()
    driver: Annotated[str | None, "the driver's version; None if not known"] = None
    ecc_errors: Annotated[
        int | None,
        "the uncorrected memory errors of all since the boot; None where no GPU counts them",
    ] = None
    interfaces: Annotated[
        int | None, "the number of network interfaces of the pod; None if not known"
    ] = None
    faults: Annotated[tuple[str, ...], "what is wrong with it, in words; none if nothing is"] = ()


@dataclass(frozen=True, kw_only=True)
class NodesTry:
    """One measurement between nodes."""

    nodes: Annotated[tuple[str, ...], "the nodes that took part"]
    passed: Annotated[bool, "whether it was good enough"]
    bandwidth: Annotated[
        float | None, "the peak of the bus bandwidth, in GB/s; None if it failed"
    ] = None
    why: Annotated[str, 'why it failed; "" if it did not'] = ""


@dataclass(frozen=True, kw_only=True)
class RayCheck:
    """What became of the test through Ray."""

    passed: Annotated[bool, "whether Ray found all GPUs, and each was well"]
    gpus: Annotated[Mapping[str, int], "node -> the number of GPUs that did Ray's work there"]
    why: Annotated[str, 'why it failed; "" if it did not'] = ""


@dataclass(frozen=True, kw_only=True)
class Bandwidth:
    """The nodes of a pool and the bandwidth between them; NCCL's bus bandwidth."""

    nodes: Annotated[int, "how many nodes took part"]
    average: Annotated[
        float | None, "the average over all sizes, in GB/s; None if the test did not end"
    ]
    peak_out_of_place: Annotated[float, "the highest in GB/s, with the results in another buffer"]
    peak_in_place: Annotated[float, "the highest in GB/s, with the results in the same buffer"]
    out_of_bounds: Annotated[int | None, "the number of wrong values; None if the test did not end"]
    interfaces: Annotated[Mapping[str, int], "node -> the number of its network interfaces"]
    networks: Annotated[tuple[str, ...], 'the networks that NCCL used, such as "gIB" or "Socket"']
    rows: Annotated[tuple[BandwidthRow, ...], "the results by size"]
    expected: Annotated[float | None, "the published peak in GB/s; None if there is none"] = None
    least: Annotated[
        float | None, "the peak that is enough, in GB/s; None if there is no published figure"
    ] = None
    source: Annotated[str, "where the published figure is from"] = ""
    checked: Annotated[Mapping[str, NodeCheck], "node -> what was found on it"] = field(
        default_factory=dict
    )
    tries: Annotated[
        tuple[NodesTry, ...],
        "all measurements, the first with all nodes; others look for the nodes at fault",
    ] = ()
    faulty: Annotated[
        tuple[str, ...],
        "the nodes at fault: each failed with nobody but nodes that passed with others",
    ] = ()
    suspects: Annotated[tuple[str, ...], "nodes that failed only with others that failed"] = ()
    cordoned: Annotated[tuple[str, ...], "the nodes that this run has cordoned"] = ()
    ray: Annotated[
        RayCheck | None, "what became of the test through Ray; None where Ray is not on"
    ] = None


@dataclass(frozen=True, kw_only=True)
class VmCheck:
    """What a VM found about itself when Test asked it."""

    gpus: Annotated[int | None, "the number of GPUs that answer; None if it has not told"] = None
    names: Annotated[tuple[str, ...], "the name of each, as the driver has it"] = ()
    driver: Annotated[str | None, "the driver's version; None for none"] = None
    ecc_errors: Annotated[
        int | None,
        "the uncorrected memory errors of all since its boot; None where no GPU counts them",
    ] = None
    diagnostic: Annotated[
        str, 'what DCGM\'s short diagnostic came to: "passed", "failed" or "not run"'
    ] = "not run"
    interfaces: Annotated[int | None, "the number of network interfaces"] = None
    local_ssds: Annotated[int | None, "the number of local SSDs"] = None
    users: Annotated[
        tuple[str, ...],
        'the programs that have its GPUs in use, each "NAME (PID)": it is left out of what '
        "would disturb them",
    ] = ()
    login: Annotated[
        tuple[str, ...],
        'what NCCL finds in a login shell, and not in units and jobs, such as "NCCL_NET=gIB '
        'instead of nothing"',
    ] = ()
    faults: Annotated[tuple[str, ...], "what is wrong with it, in words; none if nothing is"] = ()


@dataclass(frozen=True, kw_only=True)
class BandwidthTry:
    """One measurement between VMs."""

    vms: Annotated[tuple[str, ...], "the VMs that took part"]
    passed: Annotated[bool, "whether it was good enough"]
    bandwidth: Annotated[
        float | None, "the bus bandwidth at the size that counts, in GB/s; None if it failed"
    ] = None
    why: Annotated[str, 'why it failed; "" if it did not'] = ""


@dataclass(frozen=True, kw_only=True)
class VmBandwidth:
    """The bandwidth between the VMs of a group; bandwidths are NCCL's bus bandwidth."""

    vms: Annotated[int, "how many VMs took part"]
    gpus: Annotated[int, "the number of GPUs of all of them"]
    collective: Annotated[str, 'what their GPUs did together: "all_gather" or "all_reduce"']
    not_measured: Annotated[str, 'why nothing was measured; "" if it was'] = ""
    size: Annotated[int, "the size of message that counts, in bytes"]
    bandwidth: Annotated[float | None, "what was reached with it, in GB/s; None if that failed"]
    expected: Annotated[float | None, "the published figure in GB/s; None if there is none"]
    least: Annotated[float | None, "what is enough, in GB/s; None if there is no published figure"]
    source: Annotated[str, "where the published figure is from"]
    networks: Annotated[
        tuple[str, ...], 'the networks that NCCL used, such as "gIB" or "Socket"'
    ] = ()
    nccl: Annotated[str, 'NCCL\'s version, of the library that jobs load; "" if not known'] = ""
    plugin: Annotated[
        str, 'the NCCL that came with the plugin of the GPUs\' network; "" for none'
    ] = ""
    plugin_nccl: Annotated[str, "its version"] = ""
    rows: Annotated[tuple[BandwidthRow, ...], "the results by size, of all VMs together"] = ()
    tries: Annotated[
        tuple[BandwidthTry, ...],
        "all measurements, the first with all VMs; others look for the VMs at fault",
    ] = ()
    faulty: Annotated[
        tuple[str, ...], "the VMs at fault: each failed with nobody but VMs that passed with others"
    ] = ()
    suspects: Annotated[tuple[str, ...], "VMs that failed only with others that failed"] = ()
