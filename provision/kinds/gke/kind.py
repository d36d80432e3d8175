"""The kind of cluster "GKE cluster"; each action imports only what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import names
from provision.codes import Code
from provision.deployment.kind import Kind, Later
from provision.errors import Problem, SettingsError
from provision.kinds.gke import variables
from provision.spec import cluster
from provision.spec.cluster import GkeSpec
from provision.state import reservations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Deployment
    from provision.state.objects import Stored
    from provision.state.record import Record


class GkeCluster(Kind[GkeSpec]):
    """GKE clusters with GPU node pools; a change of a pool is a change of its nodes."""

    name, called, member, root = "gke", "GKE cluster", "node", variables.ROOT

    spec = staticmethod(cluster.gke)
    masked = staticmethod(variables.masked)
    variables = staticmethod(variables.variables)
    preflight = Later("provision.kinds.gke.preflight", "of")
    contents = Later("provision.kinds.gke.preview", "contents")
    beside_terraform = Later("provision.kinds.gke.preview", "files")
    prepare = Later("provision.kinds.gke.control_plane", "prepare")
    to_untaint = Later("provision.kinds.gke.control_plane", "to_untaint")
    instances = Later("provision.kinds.gke.after_apply", "instances")
    capacity = Later("provision.kinds.gke.after_apply", "capacity")
    finish = Later("provision.kinds.gke.after_apply", "finish")
    explain = Later("provision.kinds.gke.after_apply", "explain")
    status = Later("provision.kinds.gke.status", "look")
    test = Later("provision.kinds.gke.testing", "run")
    jobs = Later("provision.kinds.gke.jobs", "GkeJobs")
    data = Later("provision.kinds.gke.release", "data")
    release = Later("provision.kinds.gke.release", "release")
    left = Later("provision.kinds.gke.left_behind", "find")
    sweep_left = Later("provision.kinds.gke.left_behind", "sweep_without_state")

    def missing(self, spec: GkeSpec, environ: Mapping[str, str]) -> Sequence[Problem]:
        """The manifests of what is installed in the cluster."""
        from provision.kinds.gke.kubernetes import manifests

        return manifests.missing(manifests.wanted(queue=spec.kueue), environ)

    def resolve(self, spec: GkeSpec, record: Record | None) -> GkeSpec:
        """Resolve the full GKE version and the reservations if the checks did not."""
        from provision.kinds.gke import preflight

        return reservations.resolve(preflight.resolve(spec, record), record)

    def recorded(
        self, target: Deployment[GkeSpec], outputs: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The full GKE version that the cluster is created with, and how nodes are reserved."""
        del outputs
        return {"gke_version": target.spec.version, **reservations.recorded(target.spec)}

    def listed(self, *, jobs: bool) -> Sequence[Stored[Any]]:
        """The jobs that were asked for."""
        from provision.kinds import job_folder

        return (job_folder.ASKED,) if jobs else ()

    def require_replaceable(self, spec: GkeSpec) -> None:
        """Refuse: Google replaces the nodes of a pool itself when the pool is changed."""
        del spec
        raise SettingsError(
            "--replace-vms means nothing to a GKE cluster",
            code=Code.WITHOUT_EFFECT,
            why="GKE replaces the nodes of a pool itself when the pool is changed",
            fix="leave it out",
        )

    def page(self, record: Record) -> tuple[str, str]:
        """The page of the cluster."""
        cluster_path = f"{record.region}/{names.CLUSTER.of(record.name_prefix)}"
        return "Cluster", f"kubernetes/clusters/details/{cluster_path}"

    def sweep(self, context: Context, cloud: Cloud, record: Record, *, last: bool) -> int:
        """Remove pools that the state has lost, and what GKE made for Services and claims."""
        from provision.kinds.gke import control_plane, left_behind

        lost = 0 if last else control_plane.delete_lost(context, cloud)
        return lost + left_behind.sweep(context, cloud, record, last=last)


GKE_CLUSTER: Final[Kind[GkeSpec]] = GkeCluster()
