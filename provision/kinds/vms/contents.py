"""What a group of VMs has beside its machines and networks, and what a change leaves as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from provision.catalogue import images
from provision.documents.plan import Contents, Kept
from provision.kinds import variables
from provision.kinds.vms import fabric, idle
from provision.spec.capacity import Mode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from provision.spec.cluster import Image, VmSpec

_FLEX_START: Final = "ENABLE_FLEX_START"
_METADATA: Final = "METADATA"
_IN_PLACE: Final = frozenset({"LABELS", _METADATA})
"""The settings whose changes VMs get while they run; see `out_of_date.refresh`."""


def replacing(*, flex_start: bool) -> str:
    """What replaces VMs.

    `flex_start`: whether their group is of flex start: Google gives it VMs only by a request, and
    neither updates nor recreates them, of whatever mode they were before.
    """
    return "Destroy, then Create" if flex_start else "Create --replace-vms"


def of(spec: VmSpec) -> Contents:
    """What it has beside its machines and networks."""
    runs_for_ever = spec.group.max_run_seconds is None and not spec.group.mode.means.bound
    can_end = spec.group.mode in {Mode.STANDARD, Mode.SPOT}
    return Contents(
        words="Ray cluster" if spec.ray_version else "VM group",
        place=spec.zone,
        image=_image(spec.image),
        software=tuple(_software(spec)),
        identities=(variables.identity(spec, "VMs"),),
        limit="MAX_RUN_DURATION=12h" if runs_for_ever and can_end else "",
        idle=idle.words_of(spec),
        nccl=fabric.words(spec),
    )


def kept(spec: VmSpec, running: int, changed: Collection[str]) -> Kept:
    """What holds for VMs that run while their template changes."""
    one = running == 1
    stay = "stays as it is" if one else "stay as they are"
    flex_start = spec.group.mode.means.flex_start
    if flex_start:
        # Those of before it was asked for have no end of their own.
        ends = "are deleted" if _FLEX_START in changed else "end"
        until = {"end": "it ends", "are deleted": "it is deleted"}[ends] if one else f"they {ends}"
        return Kept(
            machines=running,
            words=f"{stay} until {until}",
            new="get the new template",
            command=replacing(flex_start=flex_start),
        )
    if changed and _IN_PLACE.issuperset(changed):
        gets = "runs on, and gets" if one else "run on, and get"
        but = ", but for what is read at a start alone" if _METADATA in changed else ""
        return Kept(machines=running, words=f"{gets} the change without a restart{but}")
    then = "it is replaced" if one else "they are replaced"
    return Kept(
        machines=running,
        words=f"{stay}, and {'is' if one else 'are'} billed so, until {then}",
        new="get the new template",
        command=replacing(flex_start=flex_start),
    )


def _jupyter(image: Image) -> str:
    """Jupyter, where the image is known to have it."""
    family = image.family or images.family_of(image.name or "")
    has = images.has("jupyter", family)
    return "Jupyter" if has else "Jupyter, if the image has it" if has is None else ""


def _image(image: Image) -> str:
    lacks = images.lacking(image.project)
    name = image.name or f"the newest of {image.family}"
    return f"{name}: {lacks}" if lacks else name


def _software(spec: VmSpec) -> Iterator[str]:
    if spec.ray_version:
        yield f"Ray {spec.ray_version}"
    if spec.notebook and (jupyter := _jupyter(spec.image)):
        yield jupyter
    if spec.ops_agent:
        yield "Ops Agent"
    if spec.command:
        yield "your STARTUP_COMMAND"
    yield "updates while idle" if spec.os_updates else "no updates"
    way = spec.outbound
    if way.proxy:
        yield f"the proxy {urlsplit(way.proxy).netloc}"
    if mirrors := [it for it in (way.apt_mirror, way.pip_index) if it]:
        yield f"packages from {' and '.join(str(urlsplit(it).netloc) for it in mirrors)}"
