"""A GKE cluster, as the kind of cluster that it is; each action loads only what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import names
from provision.kinds.gke import variables
from provision.spec import cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Deployment, Findings, Made
    from provision.deployment.kind import Kind
    from provision.deployment.workspace import Workspace
    from provision.preflight.case import OfKind
    from provision.settings.model import Settings
    from provision.spec.cluster import GkeSpec
    from provision.state.location import Location
    from provision.state.record import Record
    from provision.terraform.plan import Creation


class GkeCluster:
    """GKE clusters with GPU node pools; `deployment.kind.Kind` says what each method is for."""

    name = "gke"
    root = variables.ROOT
    takes_files = False

    def spec(self, settings: Settings) -> GkeSpec:
        """What the settings ask for, every default resolved."""
        return cluster.gke(settings)

    def variables(
        self, spec: GkeSpec, cluster_id: str, location: Location, findings: Findings
    ) -> dict[str, Any]:
        """Make the variables of `terraform/gke`."""
        return variables.variables(spec, cluster_id, location, findings)

    def masked(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The variables as they may be shown."""
        return variables.masked(values)

    def preflight(self, spec: GkeSpec) -> OfKind:
        """What the online checks have to know of such a cluster, and its own checks."""
        from provision.kinds.gke import preflight

        del spec
        return preflight.of()

    def resolve(self, spec: GkeSpec, record: Record | None) -> GkeSpec:
        """The full version, where the check of versions has settled on none."""
        from provision.kinds.gke import preflight

        return preflight.resolve(spec, record)

    def recorded(
        self, target: Deployment[GkeSpec], outputs: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The full version that the cluster was to be made with."""
        del outputs
        return {"gke_version": target.spec.version}

    def prepare(
        self, cloud: Cloud, target: Deployment[GkeSpec], workspace: Workspace
    ) -> tuple[Deployment[GkeSpec], int]:
        """Nothing: jobs ask for their nodes themselves."""
        del cloud, workspace
        return target, 0

    def unfinished(self, cloud: Cloud, replaced: Sequence[Creation]) -> Sequence[str]:
        """The node pools that stand and only lack nodes."""
        if not replaced:
            return ()
        from provision.kinds.gke import unfinished

        return unfinished.standing(replaced, cloud.api)

    def capacity(self, context: Context, cloud: Cloud, made: Made[GkeSpec]) -> None:
        """Wait for the nodes of pools of a fixed size."""
        from provision.kinds.gke import arrival

        arrival.capacity(context, cloud, made)

    def finish(self, context: Context, cloud: Cloud, made: Made[GkeSpec]) -> None:
        """Bring all objects into the cluster, and say how to connect."""
        from provision.kinds.gke import arrival

        arrival.finish(context, cloud, made)

    def explain(self, cloud: Cloud, target: Deployment[GkeSpec]) -> None:
        """Say so if Terraform failed for want of nodes: it does not tell."""
        from provision.kinds.gke import arrival

        arrival.explain(cloud, target)

    def status(self, context: Context, cloud: Cloud, record: Record) -> dict[str, Any]:
        """The cluster's pools and nodes, the jobs in its queue, the requests for nodes."""
        from provision.kinds.gke import status

        return status.look(context, cloud, record)

    def status_lines(self, found: Mapping[str, Any]) -> Iterator[str]:
        """The same for people."""
        from provision.kinds.gke import status

        return status.lines(found)

    def page(self, record: Record) -> tuple[str, str]:
        """The cluster."""
        cluster_path = f"{record.region}/{names.CLUSTER.of(record.name_prefix)}"
        return "Cluster", f"kubernetes/clusters/details/{cluster_path}"

    def test(self, context: Context, cloud: Cloud, record: Record) -> str:
        """Measure NCCL's bandwidth between nodes, and judge it."""
        from provision.kinds.gke import bandwidth_check

        del record
        return bandwidth_check.run(context, cloud)

    def release(self, context: Context, cloud: Cloud, record: Record) -> None:
        """Cancel what the cluster's jobs have asked for."""
        from provision.kinds.gke import release

        release.release(context, cloud, record)


GKE_CLUSTER: Final[Kind[GkeSpec]] = GkeCluster()
