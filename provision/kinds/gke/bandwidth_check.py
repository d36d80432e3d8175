"""Test for GKE clusters: compare NCCL's bandwidth between nodes with that of good machines."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from provision.codes import Code
from provision.documents.checks import Bandwidth, BandwidthRow
from provision.errors import StateError
from provision.kinds.gke import control_plane
from provision.kinds.gke.kubernetes import bandwidth, bandwidth_test, jobs

if TYPE_CHECKING:
    from provision.context import Cloud, Context
    from provision.kinds.gke.kubernetes.bandwidth import Measurement
    from provision.kinds.gke.kubernetes.facts import ClusterFacts


def run(context: Context, cloud: Cloud) -> str:
    """Run the bandwidth test, print its table, and judge it; its job is always deleted afterwards.

    Args:
        context: The run; its report gets the measurements.
        cloud: Google and the state folder.

    Returns:
        The verdict, in one sentence.

    Raises:
        StateError: No Create has created the cluster yet.
        CapacityError: Google refused the nodes.
        StillWaiting: The nodes did not come in time.
        ClusterError: The test failed, or the bandwidth is too low; the error has a diagnosis.
    """
    facts = _facts(context, cloud)
    measured, log = bandwidth_test.run(
        control_plane.reach(facts, cloud.api, context.environ),
        facts,
        timeout=context.settings.capacity_timeout,
        progress=context.progress,
    )
    pool = jobs.main_pool(facts)
    nodes = min(facts.test_nodes, pool.max_nodes)
    context.report.checks = {pool.name: _document(measured, nodes)}
    if measured.table:
        context.console.result(measured.table)
    else:
        context.console.progress(log)
    return bandwidth.judge(measured, pool, nodes)


def _facts(context: Context, cloud: Cloud) -> ClusterFacts:
    """The facts of the cluster; TEST_NODES of this run overrides that of the last Create.

    Raises:
        StateError: The state folder has no facts.
    """
    facts = control_plane.kept(cloud.folder)
    if facts is None:
        raise StateError(
            f"The cluster in {cloud.folder.location.url} is not ready for a test",
            code=Code.NO_CLUSTER,
            why="no Create has finished creating it",
            fix="run Create again",
        )
    if "test_nodes" in context.settings.model_fields_set:
        return dataclasses.replace(facts, test_nodes=context.settings.test_nodes)
    return facts


def _document(measured: Measurement, nodes: int) -> Bandwidth:
    """The measurements for the report."""
    return Bandwidth(
        nodes=nodes,
        average=measured.average,
        peak_out_of_place=measured.peak_out_of_place,
        peak_in_place=measured.peak_in_place,
        out_of_bounds=measured.out_of_bounds,
        interfaces=dict(measured.interfaces),
        networks=tuple(measured.networks),
        rows=tuple(BandwidthRow(**dataclasses.asdict(row)) for row in measured.rows),
    )
