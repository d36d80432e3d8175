"""Test: whether what exists is as fast and as whole as it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.catalogue import names
from provision.context import connect
from provision.deployment.kind import Kind
from provision.errors import StateError
from provision.kinds import status
from provision.kinds.gke import bandwidth_check
from provision.kinds.vms import gpu_check, instances
from provision.lifecycle import ownership

if TYPE_CHECKING:
    from provision.context import Cloud, Context
    from provision.deployment.record import Record


def test(context: Context) -> None:
    """Judge the bandwidth of a GKE cluster, or the GPU check that each VM's start-up has recorded.

    Raises:
        StateError: There is nothing to test.
        CapacityError: Google refused the nodes for the test.
        StillWaiting: They did not come in time.
        ClusterError: Something is not as it should be.
    """
    cloud = connect(context)
    record = ownership.deployed(context, cloud)
    if record is None:
        raise StateError(
            f"There is no deployment in {cloud.folder.location.url} to test",
            fix="run Create first, or check NAME_PREFIX and TERRAFORM_GCS_PATH",
        )
    if record.kind == Kind.GKE:
        context.console.result(bandwidth_check.run(context, cloud))
    else:
        context.console.result(_test_vms(context, cloud, record))


def _test_vms(context: Context, cloud: Cloud, record: Record) -> str:
    found = instances.find(
        cloud.api, record.project_id, record.zone, record.cluster_id, context.clock
    )
    told = status.read_startups(context, cloud, record, [vm.name for vm in found])
    group = names.GROUP.of(record.name_prefix)
    context.report.checks = gpu_check.judge(
        found, told, f"{group} --zone {record.zone} --project {record.project_id}"
    )
    return f"{len(found)} VMs have all their GPUs and interfaces, and no memory errors"
