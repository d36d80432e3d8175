"""The kind of cluster "group of VMs"; each action imports only what it needs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import machines, names
from provision.deployment.kind import Images, Jobs, Kind, Later
from provision.kinds.vms import variables
from provision.spec import cluster, pools
from provision.spec.cluster import VmSpec
from provision.state import reservations

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Deployment, Held
    from provision.documents.plan import Kept
    from provision.state.location import Place
    from provision.state.objects import Stored
    from provision.state.record import Record


class VmGroup(Kind[VmSpec]):
    """Groups of VMs."""

    name, called, member, root = "mig", "VM group", "VM", variables.ROOT
    takes_files = True

    spec = staticmethod(cluster.vms)
    masked = staticmethod(variables.masked)
    variables = staticmethod(variables.variables)
    preflight = Later("provision.kinds.vms.preflight", "of")
    contents = Later("provision.kinds.vms.contents", "of")
    prepare = Later("provision.kinds.vms.flex_start", "prepare")
    require_replaceable = Later("provision.kinds.vms.flex_start", "require_replaceable")
    out_of_date = Later("provision.kinds.vms.out_of_date", "find")
    capacity = Later("provision.kinds.vms.after_apply", "capacity")
    finish = Later("provision.kinds.vms.after_apply", "finish")
    status = Later("provision.kinds.vms.status", "look")
    test = Later("provision.kinds.vms.testing", "run")
    release = Later("provision.kinds.vms.flex_start", "release")

    @property
    def images(self) -> Images:
        """The images of one's own, of which most runs hear nothing."""
        from provision.kinds.vms.bake import VmImages

        return VmImages()

    def resolve(self, spec: VmSpec, record: Record | None) -> VmSpec:
        """Resolve the image and the reservation if their checks did not."""
        from provision.kinds.vms import preflight

        image = preflight.resolve(spec.image, record)
        return reservations.resolve(dataclasses.replace(spec, image=image), record)

    def listed(self, *, jobs: bool) -> Sequence[Stored[Any]]:
        """The heartbeats of the VMs, and the index of jobs, which is there only with some."""
        from provision.kinds.vms import agent
        from provision.kinds.vms.jobs import INDEX

        return (agent.MEMBER, INDEX) if jobs else (agent.MEMBER,)

    def kept(
        self, cloud: Cloud, spec: VmSpec, staying: int, changed: Collection[str]
    ) -> tuple[Kept | None, Sequence[tuple[pools.Pool, int]]]:
        """VMs that run keep the template that they came with; Google may never have given some."""
        from provision.kinds.vms import contents, instances

        there = instances.see(cloud.api, spec).documents
        running = min(staying, len(there))
        kept = contents.kept(spec, running, changed) if running else None
        return kept, instances.otherwise(there, spec.group)

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

    def held(self, cloud: Cloud, place: Place, *, older: bool = False) -> Held:
        """Templates, placement policies and accounts of the VMs."""
        from provision.kinds.vms import instances, out_of_date

        return out_of_date.held(instances.see(cloud.api, place), older=older)

    def keeping_policy(
        self, cloud: Cloud, target: Deployment[VmSpec]
    ) -> tuple[Deployment[VmSpec], str] | None:
        """VMs of the machine type that the policy is for come by it, whatever the settings say."""
        from provision.kinds.vms import contents, instances

        group = target.spec.group
        family, is_flex = machines.family(group.machine_type), group.mode.means.flex_start
        # Another policy is of a topology, or of the reservation.
        if family is None or family.topology or group.policies:
            return None
        there = instances.see(cloud.api, target.spec).documents
        types = {one["machineType"].rpartition("/")[2] for one in there}
        if types != {group.machine_type} or (is_flex and not family.flex_compact):
            return None
        return variables.keeping_policy(target), contents.replacing(flex_start=is_flex)

    def page(self, record: Record) -> tuple[str, str]:
        """The page of the managed instance group."""
        group = f"{record.zone}/{names.GROUP.of(record.name_prefix)}"
        return "VMs", f"compute/instanceGroups/details/{group}"

    def jobs(self, context: Context, cloud: Cloud, record: Record) -> Jobs:
        """Jobs by the agents of the VMs."""
        from provision.kinds import job_folder
        from provision.kinds.vms.jobs import VmJobs, Watch
        from provision.lifecycle import pricing

        def machine() -> Mapping[str, Any]:
            settings = context.settings
            # On Ray each VM has a part in each job, and these settings may be another cluster's.
            is_it = record.settings.get("VM_TYPE") == settings.vm_type and not settings.is_ray
            listed = pricing.known(context, cloud) if is_it else None
            return job_folder.machine(pools.group(settings), listed) if is_it else {}

        return VmJobs(cloud.folder, context.clock, Watch(cloud, context.clock), machine)


VM_GROUP: Final[Kind[VmSpec]] = VmGroup()
