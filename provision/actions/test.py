"""Test: whether what exists is as fast and as whole as it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.context import connect
from provision.errors import StateError
from provision.kinds import registry
from provision.lifecycle import ownership

if TYPE_CHECKING:
    from provision.context import Context


def test(context: Context) -> None:
    """Judge what exists, as its kind of cluster does.

    Raises:
        StateError: There is nothing to test.
        CapacityError: Google refused the nodes for the test.
        StillWaiting: They did not come in time.
        ClusterError: Something is not as it should be.
    """
    cloud = connect(context)
    record = ownership.deployed(context, cloud)
    if record is None:
        ownership.require_nothing(context, cloud)
        raise StateError(
            f"There is no deployment in {cloud.folder.location.url} to test",
            fix="run Create first, or check NAME_PREFIX and TERRAFORM_GCS_PATH",
        )
    context.console.result(registry.named(record.kind).test(context, cloud, record))
