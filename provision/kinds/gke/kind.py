"""The kind of cluster "GKE cluster"; each action imports only what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import names
from provision.codes import Code
from provision.deployment.deployment import NOTHING_HELD
from provision.errors import SettingsError
from provision.kinds.gke import variables
from provision.spec import cluster
from provision.state import reservations

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.deployment import (
        Applied,
        Deployment,
        Held,
        Left,
        OutOfDate,
        RunInputs,
    )
    from provision.deployment.images import Images
    from provision.deployment.jobs import Jobs
    from provision.deployment.kind import Kind
    from provision.deployment.workspace import Workspace
    from provision.documents.plan import Contents, Kept
    from provision.documents.status import Status
    from provision.errors import Problem
    from provision.google.owner import Owner
    from provision.preflight.check import OfKind
    from provision.settings.model import Settings
    from provision.spec.cluster import GkeSpec
    from provision.state.location import Place, StateLocation
    from provision.state.record import Record
    from provision.terraform.plan import Creation


class GkeCluster:
    """GKE clusters with GPU node pools; see `deployment.kind.Kind` for what each method does."""

    name = "gke"
    called = "GKE cluster"
    member = "node"
    root = variables.ROOT
    takes_files = False
    images: Images | None = None

    def spec(self, settings: Settings) -> GkeSpec:
        """Make the specification from the settings."""
        return cluster.gke(settings)

    def variables(
        self, spec: GkeSpec, owner: Owner, location: StateLocation, inputs: RunInputs
    ) -> dict[str, Any]:
        """Make the variables of `terraform/gke`."""
        return variables.variables(spec, owner, location, inputs)

    def masked(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The variables with secrets masked."""
        return variables.masked(values)

    def preflight(self, spec: GkeSpec) -> OfKind:
        """What the online checks need to know about a GKE cluster, and its own checks."""
        from provision.kinds.gke import preflight

        return preflight.of(spec)

    def missing(self, spec: GkeSpec, environ: Mapping[str, str]) -> Sequence[Problem]:
        """The manifests of what is installed in the cluster."""
        from provision.kinds.gke.kubernetes import manifests

        return manifests.missing(manifests.wanted(queue=spec.kueue), environ)

    def resolve(self, spec: GkeSpec, record: Record | None) -> GkeSpec:
        """Resolve the full GKE version and the reservations if the checks did not."""
        from provision.kinds.gke import preflight

        return reservations.resolve(preflight.resolve(spec, record), record)

    def contents(self, spec: GkeSpec) -> Contents:
        """The version, the accounts and the software of the cluster."""
        from provision.kinds.gke import contents

        return contents.of(spec)

    def kept(
        self, cloud: Cloud, spec: GkeSpec, staying: int, changed: Collection[str]
    ) -> Kept | None:
        """None: a change of a pool is a change of its nodes."""
        del cloud, spec, staying, changed
        return None

    def instances(self, cloud: Cloud, spec: GkeSpec) -> Sequence[Mapping[str, Any]]:
        """The nodes of pools of a fixed size."""
        from provision.kinds.gke import after_apply

        return after_apply.instances(cloud, spec)

    def recorded(
        self, target: Deployment[GkeSpec], outputs: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The full GKE version that the cluster is created with, and how nodes are reserved."""
        del outputs
        return {"gke_version": target.spec.version, **reservations.recorded(target.spec)}

    def prepare(
        self, cloud: Cloud, target: Deployment[GkeSpec], workspace: Workspace
    ) -> tuple[Deployment[GkeSpec], int]:
        """Keep what a plan must not change of a cluster that stands."""
        from provision.kinds.gke import standing

        return standing.keep(cloud, target, workspace), 0

    def beside_terraform(
        self, context: Context, target: Deployment[GkeSpec], workspace: Workspace
    ) -> Mapping[str, str]:
        """The objects that are applied in Kubernetes, and the example jobs."""
        from provision.kinds.gke import foreseen

        return foreseen.files(context, target, workspace)

    def to_untaint(self, cloud: Cloud, replaced: Sequence[Creation]) -> Sequence[str]:
        """The tainted node pools that exist and only lack nodes."""
        if not replaced:
            return ()
        from provision.kinds.gke import tainted_pools

        return tainted_pools.kept(replaced, cloud.api)

    def require_replaceable(self, spec: GkeSpec) -> None:
        """Refuse: Google replaces the nodes of a pool itself when the pool is changed."""
        del spec
        raise SettingsError(
            "--replace-vms means nothing to a GKE cluster",
            code=Code.WITHOUT_EFFECT,
            why="GKE replaces the nodes of a pool itself when the pool is changed",
            fix="leave it out",
        )

    def out_of_date(self, cloud: Cloud, place: Place) -> Sequence[OutOfDate]:
        """None: a change of a pool is a change of its nodes."""
        del cloud, place
        return ()

    def held(self, cloud: Cloud, place: Place, *, older: bool = False) -> Held:
        """Nothing: nodes go before what their pool is made of."""
        del cloud, place, older
        return NOTHING_HELD

    def capacity(self, context: Context, cloud: Cloud, made: Applied[GkeSpec]) -> None:
        """Wait for the nodes of pools of a fixed size."""
        from provision.kinds.gke import after_apply

        after_apply.capacity(context, cloud, made)

    def finish(self, context: Context, cloud: Cloud, made: Applied[GkeSpec]) -> None:
        """Apply all objects in the cluster, and say how to connect."""
        from provision.kinds.gke import after_apply

        after_apply.finish(context, cloud, made)

    def explain(self, cloud: Cloud, target: Deployment[GkeSpec]) -> None:
        """Raise the cause if Terraform failed because of missing nodes."""
        from provision.kinds.gke import after_apply

        after_apply.explain(cloud, target)

    def status(
        self, context: Context, cloud: Cloud, record: Record, before: Status | None
    ) -> Status:
        """The cluster's pools and nodes, the jobs in its queue, its ProvisioningRequests."""
        from provision.kinds.gke import status

        del before
        return status.look(context, cloud, record)

    def page(self, record: Record) -> tuple[str, str]:
        """The page of the cluster."""
        cluster_path = f"{record.region}/{names.CLUSTER.of(record.name_prefix)}"
        return "Cluster", f"kubernetes/clusters/details/{cluster_path}"

    def test(self, context: Context, cloud: Cloud, record: Record) -> str:
        """Look at nodes of each pool, measure NCCL's bandwidth between them, and judge both."""
        from provision.kinds.gke import testing

        return testing.run(context, cloud, record)

    def jobs(self, context: Context, cloud: Cloud, record: Record) -> Jobs:
        """Jobs as JobSets, through the queue."""
        from provision.kinds.gke.jobs import GkeJobs

        return GkeJobs(context, cloud, record)

    def data(self, context: Context, cloud: Cloud, record: Record) -> Sequence[str]:
        """The volumes that were made for claims, as far as they go with these."""
        from provision.kinds.gke import release

        return release.data(context, cloud, record)

    def release(self, context: Context, cloud: Cloud, record: Record) -> None:
        """Cancel open ProvisioningRequests; delete what GKE made load balancers and disks for."""
        from provision.kinds.gke import release

        release.release(context, cloud, record)

    def sweep(self, context: Context, cloud: Cloud, record: Record, *, last: bool) -> int:
        """Remove pools that the state has lost, and what GKE made for Services and claims."""
        from provision.kinds.gke import leftovers, lost_pools

        lost = 0 if last else lost_pools.delete(context, cloud)
        return lost + leftovers.sweep(context, cloud, record, last=last)

    def left(self, cloud: Cloud, place: Place, networks: Collection[str]) -> Left:
        """What GKE made for Services, Ingresses, Gateways and claims."""
        from provision.kinds.gke import orphans

        return orphans.find(cloud, place, networks)

    def sweep_left(
        self, context: Context, cloud: Cloud, place: Place, networks: Collection[str]
    ) -> int:
        """Remove that, but for disks."""
        from provision.kinds.gke import orphans

        return orphans.sweep(context, cloud, place, networks)


GKE_CLUSTER: Final[Kind[GkeSpec]] = GkeCluster()
