"""What Google told of the reservations of a deployment, kept from one run to the next.

Whether machines are bound to their reservation is part of their template. Were it decided again by
a run that may not read the reservation, the template would change for no reason.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

from provision.state.record import Reserved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.spec.cluster import ClusterSpec
    from provision.spec.pools import Pool
    from provision.state.record import Record

SpecT = TypeVar("SpecT", bound="ClusterSpec")


def kept(record: Record | None, pool: Pool) -> Pool | None:
    """The pool with what an earlier run read of its reservation; None if none did."""
    found = record.reservations.get(pool.name) if record is not None else None
    if found is None or not pool.reservation or found.reservation != pool.reservation:
        return None
    return pool.reserved(bound=found.bound, policies=found.policies, read=True)


def resolve(spec: SpecT, record: Record | None) -> SpecT:
    """The specification, with what an earlier run read where this one did not."""

    def keep(pool: Pool) -> Pool:
        return pool if pool.reservation_read else kept(record, pool) or pool

    return dataclasses.replace(spec, **spec.with_each(keep))


def recorded(spec: ClusterSpec) -> Mapping[str, Any]:
    """The field of the record that has what Google told of reservations."""
    return {
        "reservations": {
            pool.name: Reserved(
                reservation=pool.reservation,
                bound=pool.mode.means.bound,
                policies=tuple(pool.policies),
            )
            for pool in spec.pools
            if pool.reservation_read and pool.reservation
        }
    }
