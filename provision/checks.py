"""The online checks: what only Google can answer, asked before anything is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.errors import CheckError, Problem

if TYPE_CHECKING:
    from provision.google_api import GoogleApi
    from provision.settings import Settings
    from provision.state import Record

DEFAULT_FAMILIES: Final = (
    "pytorch-2-7-cu128-ubuntu-2204-nvidia-570",
    "common-cu128-ubuntu-2204-nvidia-570",
    "pytorch-latest-gpu",
)
"""Families of `deeplearning-platform-release`, best first, for who names no image.

The predecessor's default (pytorch-1-12-gpu-debian-10 in ml-images) is no longer served.
"""


def settle_image(
    settings: Settings, record: Record | None, api: GoogleApi
) -> tuple[Settings, list[Problem]]:
    """Find an image family that exists; gives the settings with it, and what to tell.

    Args:
        settings: The checked settings.
        record: What exists already; its image is kept unless the settings name another one.
        api: Google.

    Raises:
        CheckError: The family that was asked for, or every default one, does not exist.
    """
    if settings.image_name is not None:
        return settings, []
    asked = settings.image_family_name if "image_family_name" in settings.model_fields_set else None
    if asked is None and record is not None and record.image.get("family"):
        return settings.model_copy(update={"image_family_name": record.image["family"]}), []
    for family in DEFAULT_FAMILIES if asked is None else (asked,):
        name = api.image_of_family(settings.image_project, family)
        if name is None:
            continue
        if asked is not None:
            return settings, []
        note = Problem(
            setting="IMAGE_FAMILY_NAME",
            what=f"no image was named; {family} is used ({name})",
            why="the predecessor's default image is no longer served",
            fix="to be sure of an image, set IMAGE_FAMILY_NAME or IMAGE_NAME",
        )
        return settings.model_copy(update={"image_family_name": family}), [note]
    raise CheckError(
        f"There is no image of the family {asked or ' or '.join(DEFAULT_FAMILIES)} in the project"
        f" {settings.image_project}",
        why="Google does not know it, or these credentials may not see it",
        fix="list what there is with: gcloud compute images list --no-standard-images"
        f" --project {settings.image_project}, and set IMAGE_FAMILY_NAME",
        setting="IMAGE_FAMILY_NAME",
    )
