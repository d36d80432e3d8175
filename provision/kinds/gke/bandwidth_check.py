"""Test for GKE clusters: NCCL's bandwidth between nodes, against what their machines can do."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from provision.errors import StateError
from provision.kinds.gke import control_plane
from provision.kinds.gke.kubernetes import bandwidth, bandwidth_test, jobs

if TYPE_CHECKING:
    from provision.context import Cloud, Context
    from provision.kinds.gke.kubernetes.bandwidth import Measurement
    from provision.kinds.gke.kubernetes.facts import ClusterFacts


def run(context: Context, cloud: Cloud) -> str:
    """Measure, print the table, and judge it; the job is gone afterwards, however that ends.

    Args:
        context: The run; its report gets what was measured.
        cloud: Where the cluster is.

    Returns:
        The verdict, in a sentence.

    Raises:
        StateError: No Create has come as far as the cluster.
        CapacityError: Google refused the nodes.
        StillWaiting: The nodes did not come in time.
        ClusterError: The test failed, or the bandwidth is too low; with a diagnosis.
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
    context.report.checks = {pool.name: {"nodes": nodes, **_document(measured)}}
    if measured.table:
        context.console.result(measured.table)
    else:
        context.console.progress(log)
    return bandwidth.judge(measured, pool, nodes)


def _facts(context: Context, cloud: Cloud) -> ClusterFacts:
    """What is known of the cluster; a TEST_NODES of this run goes before that of its Create.

    Raises:
        StateError: Nothing is known.
    """
    facts = control_plane.kept(cloud.folder)
    if facts is None:
        raise StateError(
            f"The cluster in {cloud.folder.location.url} is not ready to be tested",
            why="no Create has come so far",
            fix="run Create again",
        )
    if "test_nodes" in context.settings.model_fields_set:
        return dataclasses.replace(facts, test_nodes=context.settings.test_nodes)
    return facts


def _document(measured: Measurement) -> dict[str, Any]:
    """All in GB/s of bus bandwidth."""
    return {
        "average": measured.average,
        "peak_out_of_place": measured.peak_out_of_place,
        "peak_in_place": measured.peak_in_place,
        "out_of_bounds": measured.out_of_bounds,
        "interfaces": dict(measured.interfaces),
        "networks": list(measured.networks),
        "rows": [dataclasses.asdict(row) for row in measured.rows],
    }
