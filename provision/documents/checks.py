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
