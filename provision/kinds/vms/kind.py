"""The kind of cluster "group of VMs"; each action imports only what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import names
from provision.deployment.deployment import Held, Left
from provision.kinds.vms import variables
from provision.kinds.vms.bake import VmImages
from provision.spec import cluster
from provision.state import reservations

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Applied, Deployment, OutOfDate, RunInputs
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
    from provision.spec.cluster import VmSpec
    from provision.state.location import Place, StateLocation
    from provision.state.record import Record
    from provision.terraform.plan import Creation


class VmGroup:
    """Groups of VMs; see `deployment.kind.Kind` for what each method does."""

    name = "mig"
    called = "VM group"
    member = "VM"
    root = variables.ROOT
    takes_files = True
    images: Images | None = VmImages()

    def spec(self, settings: Settings) -> VmSpec:
        """Make the specification from the settings."""
        return cluster.vms(settings)

    def variables(
        self, spec: VmSpec, owner: Owner, location: StateLocation, inputs: RunInputs
    ) -> dict[str, Any]:
        """Make the variables of `terraform/mig`."""
        return variables.variables(spec, owner, location, inputs)

    def masked(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The variables with secrets masked."""
        return variables.masked(values)

    def preflight(self, spec: VmSpec) -> OfKind:
        """What the online checks need to know about a group of VMs, and its own checks."""
        from provision.kinds.vms import preflight

        return preflight.of(spec)

    def missing(self, spec: VmSpec, environ: Mapping[str, str]) -> Sequence[Problem]:
        """Nothing: all that VMs get comes with the program."""
        del spec, environ
        return ()

    def resolve(self, spec: VmSpec, record: Record | None) -> VmSpec:
        """Resolve the image and the reservation if their checks did not."""
        from provision.kinds.vms import preflight

        return reservations.resolve(preflight.resolve(spec, record), record)

    def contents(self, spec: VmSpec) -> Contents:
        """The image, the account and the software of the VMs."""
        from provision.kinds.vms import contents

        return contents.of(spec)

    def kept(
        self, cloud: Cloud, spec: VmSpec, staying: int, changed: Collection[str]
    ) -> Kept | None:
        """VMs that run keep the template that they came with; Google may never have given some."""
        from provision.kinds.vms import contents, instances

        running = min(staying, len(instances.documents(cloud.api, spec)))
        return contents.kept(spec, running, changed) if running else None

    def instances(self, cloud: Cloud, spec: VmSpec) -> Sequence[Mapping[str, Any]]:
        """The instances of the group."""
        from provision.kinds.vms import instances

        return instances.see(cloud.api, spec).members

    def recorded(self, target: Deployment[VmSpec], outputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The image that the VMs use, and how they come from a reservation."""
        image, made = target.spec.image, outputs.get("image") or {}
        kept = reservations.recorded(target.spec)
        if not made:
            return kept
        chosen = {"project": image.project, "family": image.family, "name": made["name"]}
        return {"image": chosen, **kept}

    def prepare(
        self, cloud: Cloud, target: Deployment[VmSpec], workspace: Workspace
    ) -> tuple[Deployment[VmSpec], int]:
        """Decide on the resize requests of flex start."""
        from provision.kinds.vms import flex_start

        return flex_start.prepare(cloud, target, workspace)

    def beside_terraform(
        self, context: Context, target: Deployment[VmSpec], workspace: Workspace
    ) -> Mapping[str, str]:
        """Nothing: Terraform has all that VMs get."""
        del context, target, workspace
        return {}

    def to_untaint(self, cloud: Cloud, replaced: Sequence[Creation]) -> Sequence[str]:
        """None: Terraform does not wait for VMs, so it never taints the group."""
        del cloud, replaced
        return ()

    def require_replaceable(self, spec: VmSpec) -> None:
        """See that these VMs can be replaced; those of flex start come only by a new request."""
        from provision.kinds.vms import flex_start

        flex_start.require_replaceable(spec)

    def out_of_date(self, cloud: Cloud, place: Place) -> Sequence[OutOfDate]:
        """The VMs of an older template, and those whose account is gone."""
        from provision.kinds.vms import out_of_date

        return out_of_date.find(cloud, place)

    def held(self, cloud: Cloud, place: Place, *, older: bool = False) -> Held:
        """Templates, placement policies and accounts of the VMs."""
        from provision.kinds.vms import held, instances

        return held.by(instances.see(cloud.api, place), older=older)

    def capacity(self, context: Context, cloud: Cloud, made: Applied[VmSpec]) -> None:
        """Wait until all VMs run."""
        from provision.kinds.vms import after_apply

        after_apply.capacity(context, cloud, made)

    def finish(self, context: Context, cloud: Cloud, made: Applied[VmSpec]) -> None:
        """Wait for the VMs' start-up and notebooks, and say how to connect."""
        from provision.kinds.vms import after_apply

        after_apply.finish(context, cloud, made)

    def explain(self, cloud: Cloud, target: Deployment[VmSpec]) -> None:
        """Does nothing: for groups of VMs, Terraform's own message has the cause."""
        del cloud, target

    def status(
        self, context: Context, cloud: Cloud, record: Record, before: Status | None
    ) -> Status:
        """The VMs and the resize requests."""
        from provision.kinds.vms import status

        return status.look(context, cloud, record, before)

    def page(self, record: Record) -> tuple[str, str]:
        """The page of the managed instance group."""
        group = f"{record.zone}/{names.GROUP.of(record.name_prefix)}"
        return "VMs", f"compute/instanceGroups/details/{group}"

    def test(self, context: Context, cloud: Cloud, record: Record) -> str:
        """Have each VM check itself, and all of them measure NCCL's bandwidth; judge both."""
        from provision.kinds.vms import testing

        return testing.run(context, cloud, record)

    def jobs(self, context: Context, cloud: Cloud, record: Record) -> Jobs:
        """Jobs by the agents of the VMs."""
        del record
        from provision.kinds.vms.jobs import VmJobs
        from provision.kinds.vms.lost_accounts import Watch

        return VmJobs(cloud.folder, context.clock, Watch(cloud, context.clock).look)

    def data(self, context: Context, cloud: Cloud, record: Record) -> Sequence[str]:
        """Nothing: what holds data is in the state."""
        del context, cloud, record
        return ()

    def release(self, context: Context, cloud: Cloud, record: Record) -> None:
        """Cancel the open resize requests."""
        from provision.kinds.vms import release

        release.release(context, cloud, record)

    def sweep(self, context: Context, cloud: Cloud, record: Record, *, last: bool) -> int:
        """Nothing: a group deletes what it made."""
        del context, cloud, record, last
        return 0

    def left(self, cloud: Cloud, place: Place, networks: Collection[str]) -> Left:
        """Nothing, as above."""
        del cloud, place, networks
        return Left()

    def sweep_left(
        self, context: Context, cloud: Cloud, place: Place, networks: Collection[str]
    ) -> int:
        """Nothing, as above."""
        del context, cloud, place, networks
        return 0


VM_GROUP: Final[Kind[VmSpec]] = VmGroup()
