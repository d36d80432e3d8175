"""A group of VMs, as the kind of cluster that it is; each action loads only what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import names
from provision.kinds.vms import variables
from provision.spec import cluster

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Deployment, Findings, Made
    from provision.deployment.kind import Kind
    from provision.deployment.workspace import Workspace
    from provision.preflight.case import OfKind
    from provision.settings.model import Settings
    from provision.spec.cluster import VmSpec
    from provision.state.location import Location
    from provision.state.record import Record
    from provision.terraform.plan import Creation


class VmGroup:
    """Groups of VMs; `deployment.kind.Kind` says what each method is for."""

    name = "mig"
    root = variables.ROOT
    takes_files = True

    def spec(self, settings: Settings) -> VmSpec:
        """What the settings ask for, every default resolved."""
        return cluster.vms(settings)

    def variables(
        self, spec: VmSpec, cluster_id: str, location: Location, findings: Findings
    ) -> dict[str, Any]:
        """Make the variables of `terraform/mig`."""
        return variables.variables(spec, cluster_id, location, findings)

    def masked(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The variables as they may be shown."""
        return variables.masked(values)

    def preflight(self, spec: VmSpec) -> OfKind:
        """What the online checks have to know of such a group, and its own checks."""
        from provision.kinds.vms import preflight

        return preflight.of(spec)

    def resolve(self, spec: VmSpec, record: Record | None) -> VmSpec:
        """The image family, where the check of images has chosen none."""
        from provision.kinds.vms import preflight

        return preflight.resolve(spec, record)

    def recorded(self, target: Deployment[VmSpec], outputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The image that was settled on."""
        image, made = target.spec.image, outputs.get("image") or {}
        if not made:
            return {}
        return {"image": {"project": image.project, "family": image.family, "name": made["name"]}}

    def prepare(
        self, cloud: Cloud, target: Deployment[VmSpec], workspace: Workspace
    ) -> tuple[Deployment[VmSpec], int]:
        """Find out what to ask of flex start."""
        from provision.kinds.vms import flex_start

        return flex_start.prepare(cloud, target, workspace)

    def unfinished(self, cloud: Cloud, replaced: Sequence[Creation]) -> Sequence[str]:
        """None: Terraform waits for no VM, so it gives none up."""
        del cloud, replaced
        return ()

    def capacity(self, context: Context, cloud: Cloud, made: Made[VmSpec]) -> None:
        """Wait until all VMs run."""
        from provision.kinds.vms import arrival

        arrival.capacity(context, cloud, made)

    def finish(self, context: Context, cloud: Cloud, made: Made[VmSpec]) -> None:
        """Wait for the VMs' start-up and notebooks, and say how to connect."""
        from provision.kinds.vms import arrival

        arrival.finish(context, cloud, made)

    def explain(self, cloud: Cloud, target: Deployment[VmSpec]) -> None:
        """Raise nothing: whatever failed, Terraform has told it itself."""
        del cloud, target

    def status(self, context: Context, cloud: Cloud, record: Record) -> dict[str, Any]:
        """The VMs, and the requests for more."""
        from provision.kinds.vms import status

        return status.look(context, cloud, record)

    def status_lines(self, found: Mapping[str, Any]) -> Iterator[str]:
        """The same for people."""
        from provision.kinds.vms import status

        return status.lines(found)

    def page(self, record: Record) -> tuple[str, str]:
        """The managed instance group."""
        group = f"{record.zone}/{names.GROUP.of(record.name_prefix)}"
        return "VMs", f"compute/instanceGroups/details/{group}"

    def test(self, context: Context, cloud: Cloud, record: Record) -> str:
        """Judge what each VM's start-up has found of its GPUs."""
        from provision.kinds.vms import gpu_check

        return gpu_check.run(context, cloud, record)

    def release(self, context: Context, cloud: Cloud, record: Record) -> None:
        """Cancel the open requests for VMs."""
        from provision.kinds.vms import release

        release.release(context, cloud, record)


VM_GROUP: Final[Kind[VmSpec]] = VmGroup()
