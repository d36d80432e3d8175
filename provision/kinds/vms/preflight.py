"""What the online checks need to know about a group of VMs, and the check of its secrets."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from provision.catalogue import names
from provision.codes import Code
from provision.errors import Problem
from provision.google import resources
from provision.google.api import GoogleApiError, Service
from provision.kinds.vms import boot_image
from provision.preflight.check import Check, CheckNote, OfKind
from provision.settings.choices import OnlineCheck

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import VmSpec
    from provision.state.record import Record

_FORBIDDEN: Final = 403


def of(spec: VmSpec) -> OfKind:
    """What the online checks need to know about a group of VMs."""
    flex_start = spec.group.mode.means.flex_start
    placing = names.WORKLOAD_POLICY if flex_start else names.PLACEMENT_POLICY
    return OfKind(
        checks=(boot_image.IMAGE, SECRETS),
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
        image_project=spec.image.project,
        # VMs tell of their start-up in guest attributes.
        used={"compute.instances": "getGuestAttributes"},
        policies=(placing.of(spec.name_prefix),) if spec.group.compact else (),
        rules=(names.FIREWALL_RAY_ALLOW, names.FIREWALL_RAY_DENY) if spec.closes_ray else (),
        # There they agree on their ranks, and hear of tasks.
        grants_in_state_folder=True,
    )


def resolve(spec: VmSpec, record: Record | None) -> VmSpec:
    """Resolve the image, if the check of images has not done it."""
    return dataclasses.replace(spec, image=boot_image.resolve(spec.image, record))


def _secrets(ctx: CheckContext[VmSpec]) -> Iterator[Finding]:
    """Check that the secrets exist, as far as these credentials may see them."""
    for path in dict.fromkeys(secret.path for secret in ctx.spec.secrets):
        try:
            if ctx.answers.find(Service.SECRET_MANAGER, path) is None:
                yield Problem(
                    code=Code.RESOURCE_NOT_FOUND,
                    setting="SECRETS",
                    what=f"there is no {path}",
                    why="this tool does not make the secrets that VMs read",
                    fix="check its spelling, or make it with: gcloud secrets create"
                    f" {path.rpartition('/')[2]} --project {path.split('/')[1]} --data-file -",
                )
        except GoogleApiError as error:
            if error.code != _FORBIDDEN:
                raise
            yield CheckNote(
                Problem(
                    code=Code.NOT_CHECKED,
                    setting="SECRETS",
                    what=f"could not check whether {path} exists",
                    why=error.message,
                    fix="make sure that it does, and that the VMs' account may read it",
                )
            )


SECRETS: Final = Check(
    name=OnlineCheck.SECRETS,
    calls=("secretmanager.projects.secrets.get",),
    says="a secret that the command is to get does not exist",
    find=_secrets,
    applies=lambda ctx: bool(ctx.spec.secrets),
)
