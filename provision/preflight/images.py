"""The check of the VMs' image, and the choice of one where nobody has made it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.errors import Problem
from provision.google.api import Service
from provision.preflight import zones
from provision.preflight.case import Note, Settled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.deployment.record import Record
    from provision.preflight.case import Case, Finding
    from provision.settings import Settings

DEFAULT_FAMILIES: Final = (
    "pytorch-2-7-cu128-ubuntu-2204-nvidia-570",
    "common-cu128-ubuntu-2204-nvidia-570",
    "pytorch-latest-gpu",
)
"""Families of `deeplearning-platform-release`, best first, for who names no image.

The predecessor's default (pytorch-1-12-gpu-debian-10 in ml-images) is no longer served.
"""


def families(settings: Settings, record: Record | None) -> tuple[str, ...]:
    """The image families to look for, the best first; () where an image is named.

    Args:
        settings: The checked settings.
        record: What exists already; it stays on its family unless the settings name one.
    """
    if settings.image_name is not None:
        return ()
    if "image_family_name" in settings.model_fields_set and settings.image_family_name:
        return (settings.image_family_name,)
    kept = record.image.get("family") if record is not None else None
    return (kept,) if kept else DEFAULT_FAMILIES


def image(case: Case) -> Iterator[Finding]:
    """The image exists, fits the boot disk, and is for the machines' processors."""
    chosen = families(case.settings, case.record)
    found, family = _first(case, chosen)
    if found is None:
        if case.record is None or not case.record.image.get("name"):
            yield _missing(case.settings, chosen)
        return
    if family is not None:
        yield Settled(image_family=family)
    if chosen == DEFAULT_FAMILIES:
        yield Note(
            Problem(
                setting="IMAGE_FAMILY_NAME",
                what=f"no image was named; {family} is used ({found['name']})",
                why="the predecessor's default image is no longer served",
                fix="to be sure of an image, set IMAGE_FAMILY_NAME or IMAGE_NAME",
            )
        )
    yield from _fits(case, found)


def _first(case: Case, chosen: tuple[str, ...]) -> tuple[dict[str, Any] | None, str | None]:
    """The image as Google has it, with the family that it was found by."""
    base = f"projects/{case.settings.image_project}/global/images"
    if case.settings.image_name is not None:
        return case.answers.find(Service.COMPUTE, f"{base}/{case.settings.image_name}"), None
    for family in chosen:
        found = case.answers.find(Service.COMPUTE, f"{base}/family/{family}")
        if found is not None:
            return found, family
    return None, None


def _missing(settings: Settings, chosen: tuple[str, ...]) -> Problem:
    named = f"{settings.image_name}" if settings.image_name else f"family {' or '.join(chosen)}"
    return Problem(
        setting="IMAGE_NAME" if settings.image_name else "IMAGE_FAMILY_NAME",
        what=f"there is no image {named} in the project {settings.image_project}",
        why="Google does not know it",
        fix="list what there is with: gcloud compute images list --no-standard-images"
        f" --project {settings.image_project}",
    )


def _fits(case: Case, found: dict[str, Any]) -> Iterator[Finding]:
    settings = case.settings
    size = int(found.get("diskSizeGb", 0))
    if size > settings.disk_size_gb:
        yield Problem(
            setting="DISK_SIZE_GB",
            what=f"{settings.disk_size_gb} GB are too few for the image {found['name']}",
            why=f"it is {size} GB large, and a boot disk is at least as large as its image",
            fix=f"DISK_SIZE_GB={size} or more",
        )
    machine = zones.look(case, case.machines[0]) or {}
    wanted, given = machine.get("architecture"), found.get("architecture")
    if wanted and given and wanted != given:
        yield Problem(
            setting="IMAGE_NAME" if settings.image_name else "IMAGE_FAMILY_NAME",
            what=f"the image {found['name']} is for {given}",
            why=f"{settings.vm_type} has {wanted} processors",
            fix="choose an image for them: gcloud compute images list"
            f" --project {settings.image_project} --filter architecture={wanted}",
        )
