"""What the online checks need to know about a group of VMs, and the check of its image."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import names
from provision.errors import Problem
from provision.google import resources
from provision.google.api import GoogleApiError, Service
from provision.preflight import zones
from provision.preflight.check import Check, CheckNote, OfKind, Settled
from provision.settings.choices import OnlineCheck

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.preflight.check import CheckContext, Finding
    from provision.spec.cluster import Image, VmSpec
    from provision.state.record import Record

_FORBIDDEN: Final = 403

DEFAULT_FAMILIES: Final = (
    "pytorch-2-7-cu128-ubuntu-2204-nvidia-570",
    "common-cu128-ubuntu-2204-nvidia-570",
    "pytorch-latest-gpu",
)
"""Image families of `deeplearning-platform-release`, best first, if the settings name no image.

The predecessor's default (pytorch-1-12-gpu-debian-10 in ml-images) no longer exists.
"""


def of(spec: VmSpec) -> OfKind:
    """What the online checks need to know about a group of VMs."""
    flex_start = spec.group.mode.means.flex_start
    placing = names.WORKLOAD_POLICY if flex_start else names.PLACEMENT_POLICY
    return OfKind(
        checks=(IMAGE, SECRETS),
        apis=(
            *(("logging", "monitoring") if spec.ops_agent else ()),
            *(("secretmanager",) if spec.secrets else ()),
        ),
        made=(
            resources.GROUP,
            resources.TEMPLATE,
            *((resources.RESIZE_REQUEST,) if flex_start else ()),
            *((resources.DASHBOARD,) if spec.ops_agent else ()),
        ),
        main=(resources.GROUP, names.GROUP),
        image_project=spec.image.project,
        # VMs tell of their start-up in guest attributes.
        used={"compute.instances": "getGuestAttributes"},
        policies=(placing.of(spec.name_prefix),) if spec.group.compact else (),
    )


def resolve(spec: VmSpec, record: Record | None) -> VmSpec:
    """Choose the first possible image family, if the check of images has not chosen one."""
    first = _families(spec.image, record)[:1]
    if not first:
        return spec
    image = dataclasses.replace(spec.image, family=first[0], by_default=False)
    return dataclasses.replace(spec, image=image)


def _families(image: Image, record: Record | None) -> tuple[str, ...]:
    """The image families to look for, the best first; () if the settings name an image.

    An existing deployment keeps its family unless the settings name one.
    """
    if image.name is not None:
        return ()
    if not image.by_default and image.family:
        return (image.family,)
    kept = record.image.get("family") if record is not None else None
    return (kept,) if kept else DEFAULT_FAMILIES


def _check(ctx: CheckContext[VmSpec]) -> Iterator[Finding]:
    """Check that the image exists, fits the boot disk, and matches the machines' processors."""
    asked = ctx.spec.image
    chosen = _families(asked, ctx.record)
    found, family = _first(ctx, chosen)
    if found is None:
        if ctx.record is None or not ctx.record.image.get("name"):
            yield _missing(asked, chosen)
        return
    if family is not None:
        image = dataclasses.replace(asked, family=family, by_default=False)
        yield Settled({"image": image})
    if chosen == DEFAULT_FAMILIES:
        yield CheckNote(
            Problem(
                setting="IMAGE_FAMILY_NAME",
                what=f"not set; the newest image of {family} is used ({found['name']})",
                why="the settings name no image, so this tool chooses a current one",
                fix="to choose an image yourself, set IMAGE_FAMILY_NAME or IMAGE_NAME",
            )
        )
    yield from _fits(ctx, found)


def _first(
    ctx: CheckContext[VmSpec], chosen: tuple[str, ...]
) -> tuple[dict[str, Any] | None, str | None]:
    """The image's document, and the family that it was found in; None each if not found."""
    asked = ctx.spec.image
    base = f"projects/{asked.project}/global/images"
    if asked.name is not None:
        return ctx.answers.find(Service.COMPUTE, f"{base}/{asked.name}"), None
    for family in chosen:
        found = ctx.answers.find(Service.COMPUTE, f"{base}/family/{family}")
        if found is not None:
            return found, family
    return None, None


def _missing(asked: Image, chosen: tuple[str, ...]) -> Problem:
    named = f"{asked.name}" if asked.name else f"family {' or '.join(chosen)}"
    return Problem(
        setting="IMAGE_NAME" if asked.name else "IMAGE_FAMILY_NAME",
        what=f"there is no image {named} in the project {asked.project}",
        why="Google does not have it",
        fix="list the images with: gcloud compute images list --no-standard-images"
        f" --project {asked.project}",
    )


def _fits(ctx: CheckContext[VmSpec], found: dict[str, Any]) -> Iterator[Finding]:
    asked, group = ctx.spec.image, ctx.spec.group
    size = int(found.get("diskSizeGb", 0))
    if size > group.disk_size_gb:
        yield Problem(
            setting="DISK_SIZE_GB",
            what=f"{group.disk_size_gb} GB is too small for the image {found['name']}",
            why=f"the image has {size} GB, and a boot disk must be at least as large as its image",
            fix=f"DISK_SIZE_GB={size} or more",
        )
    machine = zones.look(ctx, group) or {}
    wanted, given = machine.get("architecture"), found.get("architecture")
    if wanted and given and wanted != given:
        yield Problem(
            setting="IMAGE_NAME" if asked.name else "IMAGE_FAMILY_NAME",
            what=f"the image {found['name']} is for {given} processors",
            why=f"{group.machine_type} has {wanted} processors",
            fix="choose an image for them: gcloud compute images list"
            f" --project {asked.project} --filter architecture={wanted}",
        )


def _secrets(ctx: CheckContext[VmSpec]) -> Iterator[Finding]:
    """Check that the secrets exist, as far as these credentials may see them."""
    for path in dict.fromkeys(secret.path for secret in ctx.spec.secrets):
        try:
            if ctx.answers.find(Service.SECRET_MANAGER, path) is None:
                yield Problem(
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

IMAGE: Final = Check(
    name=OnlineCheck.IMAGE,
    calls=(
        "compute.images.get",
        "compute.images.getFromFamily",
        "compute.machineTypes.get",
    ),
    says="the image, or its family, does not exist, is larger than the boot disk, or is for other"
    " processors",
    find=_check,
)
