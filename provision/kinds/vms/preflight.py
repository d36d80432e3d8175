"""What the online checks need to know about a group of VMs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import images, names
from provision.google import resources
from provision.kinds.vms import boot_image
from provision.preflight.check import OfKind
from provision.preflight.networks import in_the_network
from provision.preflight.table import SUBNETWORK

if TYPE_CHECKING:
    from provision.spec.cluster import VmSpec

BAKES: Final = {
    "compute.disks": "useReadOnly",
    "compute.images": "create delete get list setLabels",
    "compute.instanceGroupManagers": "update",
}
"""Collection -> the verbs of the permissions with which an image is made of a VM."""


def of(spec: VmSpec) -> OfKind:
    """What the online checks need to know about a group of VMs."""
    flex_start = spec.group.mode.means.flex_start
    bakes = BAKES if spec.name_prefix.endswith(names.BAKE) else {}
    # Public images are for everybody (Compute Engine, "Create and start an instance").
    own_image = " useReadOnly" * (spec.image.project == spec.project_id)
    placing = names.WORKLOAD_POLICY if flex_start else names.PLACEMENT_POLICY
    return OfKind(
        checks=(boot_image.IMAGE, *((SUBNETWORK,) if spec.existing else ())),
        apis=(
            *(("logging", "monitoring") if spec.ops_agent else ()),
            *(("secretmanager",) if spec.secrets else ()),
        ),
        made=(
            resources.GROUP,
            resources.TEMPLATE,
            *((resources.RESIZE_REQUEST,) if flex_start else ()),
            *((resources.DASHBOARD,) if spec.ops_agent else ()),
            *((resources.FIREWALL,) if spec.closes_ray else ()),
        ),
        main=(resources.GROUP, names.GROUP),
        secure_boot=spec.secure_boot,
        image_project=spec.image.project,
        # VMs tell of their start-up in guest attributes; those that are idle are started again.
        used={
            **bakes,
            "compute.instances": "getGuestAttributes" + " start" * bool(spec.idle_seconds),
            "compute.images": bakes.get("compute.images", "") + own_image,
        },
        bakes=BAKES,
        policies=(placing.of(spec.name_prefix),) if spec.group.compact else (),
        rules=(names.FIREWALL_RAY_ALLOW, names.FIREWALL_RAY_DENY) if spec.closes_ray else (),
        beside_the_role=(*in_the_network(spec), *_of_the_image(spec)),
        # There they agree on their ranks, and hear of tasks.
        grants_in_state_folder=True,
    )


def _of_the_image(spec: VmSpec) -> tuple[str, ...]:
    """What is needed on another project whose images are not known to be public."""
    project = spec.image.project
    known = {spec.project_id, *images.PUBLIC_SYSTEMS, *(line.project for line in images.LINES)}
    if project in known:
        return ()
    return (
        f"On the project {project}, unless its images are public, roles/compute.imageUser, for you",
        "and for <number of this project>@cloudservices.gserviceaccount.com, which makes the VMs.",
    )
