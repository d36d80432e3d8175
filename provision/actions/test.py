"""Test: check that the cluster is complete and as fast as its machines should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.context import connect
from provision.kinds import registry
from provision.lifecycle import ownership

if TYPE_CHECKING:
    from provision.context import Context


def test(context: Context) -> None:
    """Run the test of the kind of cluster that exists, and print its verdict.

    Raises:
        CapacityError: Google refused the nodes for the test.
        StillWaiting: The nodes did not come in time.
        ClusterError: The test failed.
    """
    cloud = connect(context)
    record = ownership.existing(context, cloud, registry.ALL, "to test")
    context.console.result(registry.named(record.kind).test(context, cloud, record))
