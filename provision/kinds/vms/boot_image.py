"""The online check of the image that VMs boot from, and the choice of one if none is named.

A cluster stays on the image that it was made with (ADR 2). A new one without IMAGE_NAME and
IMAGE_FAMILY_NAME gets the newest supported image of the line of its machine type (ADR 14).
"""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import images
from provision.codes import Code
from provision.errors import Problem
from provision.google.api import Service
from provision.kinds.vms import fabric, image_system
from provision.preflight import zones
from provision.preflight.check import Check, Effect, Finding, note, refuse
from provision.settings.choices import OnlineCheck

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.catalogue.images import Line
    from provision.preflight.check import CheckContext
    from provision.spec.cluster import Image, VmSpec
    from provision.state.record import Record

Found = dict[str, Any]

_ACTIVE: Final = "ACTIVE"
_DEPRECATED: Final = "DEPRECATED"
_ENDS: Final = ("obsolete", "deleted")
"""Fields with the moments from which an image can't be used; Google may change its mind."""


def resolve(image: Image, record: Record | None) -> Image:
    """The image of an existing cluster, if the check of images has not found one.

    Otherwise it is as it was, and Terraform takes the newest image of the family.
    """
    return image if image.name is not None else (_kept(image, record) or image)


def _kept(image: Image, record: Record | None) -> Image | None:
    """The image that an existing cluster keeps; None if the settings ask for another one."""
    before = record.image if record is not None else {}
    project, family, name = (before.get(key) for key in ("project", "family", "name"))
    if image.name is not None or not (project and family and name):
        return None
    is_same = (
        project == image.project or not image.project_is_set
        if image.line is not None
        else (project, family) == (image.project, image.family)
    )
    if not is_same:
        return None
    return dataclasses.replace(image, project=project, family=family, name=name)


def _check(ctx: CheckContext[VmSpec]) -> Iterator[Finding]:
    asked = ctx.spec.image
    kept = _kept(asked, ctx.record)
    if kept is not None:
        yield from _of_cluster(ctx, kept)
    elif asked.name is not None:
        yield from _by_name(ctx, asked)
    elif asked.line is None:
        yield from _by_family(ctx, asked)
    else:
        yield from _newest_supported(ctx, asked, asked.line)


def _of_cluster(ctx: CheckContext[VmSpec], kept: Image) -> Iterator[Finding]:
    """The image that an existing cluster was made with."""
    found = _find(ctx, kept)
    newer = ctx.answers.find(Service.COMPUTE, _path(kept, f"family/{kept.family}"))
    state = "" if found is None else _state(found)
    usual = images.DEEP_LEARNING if kept.line is None else kept.line
    other = (
        f"IMAGE_NAME={newer['name']}"
        if newer
        else f"IMAGE_PROJECT={usual.project} and IMAGE_FAMILY_NAME={usual.family}"
    )
    if found is None:
        yield refuse(
            code=Code.IMAGE_UNSUITABLE,
            setting="IMAGE_NAME",
            what=f"the image {kept.name} of this cluster is gone from {kept.project}",
            why="Google has deleted it; a cluster stays on the image that it was made with",
            fix=f"{other}: new VMs get it, and those that run with --replace-vms",
        )
        return
    if state != _ACTIVE:
        yield note(
            code=Code.IMAGE_UNSUITABLE,
            setting="IMAGE_NAME",
            what=f"the image {kept.name} of this cluster is {state.lower()}{_since(found)}",
            why="a cluster stays on the image that it was made with;"
            f" {_use(found)}{_suggestion(found)}",
            fix=f"{other}: new VMs get it, and those that run with --replace-vms",
        )
    yield _settled(kept, found)
    yield from _fits(ctx, found)


def _by_name(ctx: CheckContext[VmSpec], asked: Image) -> Iterator[Finding]:
    found = _find(ctx, asked)
    if found is None:
        yield _missing(asked, f"image {asked.name}")
        return
    yield from _withdrawn(asked, found)
    yield _settled(asked, found)
    yield from _fits(ctx, found)


def _withdrawn(asked: Image, found: Found) -> Iterator[Finding]:
    """Whether Google has withdrawn an image that the settings name."""
    state = _state(found)
    if state == _ACTIVE:
        return
    other = _replacement(found)
    problem = Problem(
        code=Code.IMAGE_UNSUITABLE,
        setting="IMAGE_NAME",
        what=f"the image {asked.name} is {state.lower()}{_since(found)}",
        why=f"{_use(found)}{_suggestion(found)}",
        fix=f"IMAGE_NAME={other}" if other else "name another image",
    )
    yield Finding(problem, Effect.NOTE if state == _DEPRECATED else Effect.STOPS)


def _by_family(ctx: CheckContext[VmSpec], asked: Image) -> Iterator[Finding]:
    found = ctx.answers.find(Service.COMPUTE, _path(asked, f"family/{asked.family}"))
    if found is not None:
        yield _settled(dataclasses.replace(asked, name=found["name"]), found)
        yield from _fits(ctx, found)
        return
    withdrawn = ctx.answers.images(asked.project, f'family eq "{asked.family}"')
    if not withdrawn:
        yield _missing(asked, f"image family {asked.family}")
        return
    last = _newest(withdrawn)
    other = _replacement(last)
    exact = f"IMAGE_NAME={last['name']}: {_use(last)}"
    fixes = (
        f"IMAGE_FAMILY_NAME={images.family_of(other)}" if other else "",
        exact if _state(last) == _DEPRECATED else "",
    )
    yield refuse(
        code=Code.IMAGE_UNSUITABLE,
        setting="IMAGE_FAMILY_NAME",
        what=f"all images of the family {asked.family} in {asked.project} are"
        f" {_state(last).lower()}{_since(last)}",
        why=f"Google gives no image for such a family{_suggestion(last)}",
        fix=", or ".join(filter(None, fixes)) or "name another family",
    )


def _newest_supported(ctx: CheckContext[VmSpec], asked: Image, line: Line) -> Iterator[Finding]:
    """Choose the newest supported image of a line, and say which one that is."""
    chosen = _choose(ctx, asked, line)
    machine = ctx.spec.group.machine_type
    if chosen is None:
        yield refuse(
            code=Code.RESOURCE_NOT_FOUND,
            setting="IMAGE_FAMILY_NAME",
            what=f"not set, and {asked.project} has no image to choose for {machine}",
            why="none with NVIDIA's driver is supported, ready and for"
            f" {line.architecture} processors, as far as the families' names say",
            fix=f"name one with IMAGE_FAMILY_NAME or IMAGE_NAME; {_listing(asked.project)}",
        )
        return
    line, found = chosen
    family = str(found["family"])
    image = dataclasses.replace(asked, project=line.project, family=family, name=found["name"])
    settled = _settled(image, found)
    yield settled
    said = images.contents(family)
    lacks = f", but {line.lacks}" if line.lacks else ""
    yield note(
        code=Code.CHOSEN,
        setting="IMAGE_FAMILY_NAME",
        what=f"not set; the VMs boot {found['name']} of {line.project}",
        why=f"that is its newest supported image for {machine}: {said.words if said else ''}"
        f"{lacks}; {_support(found)}",
        fix="to choose an image yourself, set IMAGE_FAMILY_NAME or IMAGE_NAME",
        effect=Effect.NOTE_IF_MADE,
    )
    yield from _fits(ctx, found)


def _choose(ctx: CheckContext[VmSpec], asked: Image, line: Line) -> tuple[Line, Found] | None:
    """The preferred image, with its line; the project of the settings may have another line."""
    lines = [line]
    if asked.project_is_set:
        others = [other for other in images.LINES if other.arm == line.arm and other != line]
        lines = [dataclasses.replace(it, project=asked.project) for it in (line, *others)]
    for one in lines:
        usable = [
            found
            for found in ctx.answers.images(one.project, one.query)
            if found.get("status") == "READY"
            and found.get("architecture", one.architecture) == one.architecture
            and _state(found) == _ACTIVE
        ]
        family = images.preferred(one, {found.get("family", "") for found in usable})
        if family is not None:
            return one, _newest([it for it in usable if it.get("family") == family])
    return None


def _settled(image: Image, found: Found) -> Finding:
    until = _supported_until(found)
    return Finding(settled={"image": dataclasses.replace(image, supported_until=until)})


def _path(image: Image, name: str | None) -> str:
    return f"projects/{image.project}/global/images/{name}"


def _find(ctx: CheckContext[VmSpec], image: Image) -> Found | None:
    return ctx.answers.find(Service.COMPUTE, _path(image, image.name))


def _newest(found: Sequence[Found]) -> Found:
    def made(image: Found) -> tuple[float, str]:
        moment = datetime.fromisoformat(image["creationTimestamp"])
        return moment.timestamp(), image["name"]

    return max(found, key=made)


def _state(found: Found) -> str:
    """ACTIVE, DEPRECATED, OBSOLETE or DELETED; Google leaves it out where nothing is planned."""
    return str(_withdrawal(found).get("state") or _ACTIVE)


def _withdrawal(found: Found) -> Mapping[str, str]:
    return found.get("deprecated") or {}


def _day(moment: str) -> str:
    return moment[:10]


def _since(found: Found) -> str:
    moment = _withdrawal(found).get(_state(found).lower())
    return f" since {_day(moment)}" if moment else ""


def _use(found: Found) -> str:
    """What a withdrawn image is still good for."""
    if _state(found) != _DEPRECATED:
        return "Google makes no VM from it any more"
    ends = [_day(moment) for name in _ENDS if (moment := _withdrawal(found).get(name))]
    return f"Google still makes VMs from it{f', until {min(ends)}' if ends else ''}"


def _replacement(found: Found) -> str:
    """The name of the image that Google suggests instead; "" for none."""
    return _withdrawal(found).get("replacement", "").rpartition("/")[2]


def _suggestion(found: Found) -> str:
    other = _replacement(found)
    return f"; it suggests {other} instead" if other else ""


def _supported_until(found: Found) -> str | None:
    """The last day of an image's support: as Google's API tells it, else as its page does."""
    if _state(found) != _ACTIVE:
        return None
    told = [_day(_withdrawal(found).get(name, "")) for name in ("deprecated", *_ENDS)]
    return min(filter(None, told), default=None) or images.SUPPORTED_UNTIL.get(
        found.get("family", "")
    )


def _support(found: Found) -> str:
    until = _supported_until(found)
    if until is None:
        return "Google names no end of its support"
    told = any(_withdrawal(found).get(name) for name in ("deprecated", *_ENDS))
    source = "" if told else f" (Google's page of {images.SUPPORT_PAGE_OF})"
    return f"supported until {until}{source}"


def _missing(asked: Image, what: str) -> Finding:
    setting = "IMAGE_NAME" if asked.name else "IMAGE_FAMILY_NAME"
    home = images.project_of(asked.family or images.family_of(asked.name or ""))
    if home not in {None, asked.project}:
        return refuse(
            code=Code.RESOURCE_NOT_FOUND,
            setting="IMAGE_PROJECT",
            what=f"there is no {what} in the project {asked.project}",
            why=f"by its name it is one of {home}",
            fix=f"IMAGE_PROJECT={home}",
        )
    return refuse(
        code=Code.RESOURCE_NOT_FOUND,
        setting=setting,
        what=f"there is no {what} in the project {asked.project}",
        why="Google does not have it",
        fix=f"remove {setting} for the newest supported image, or {_listing(asked.project)}",
    )


def _listing(project: str) -> str:
    return (
        f"list the images with: gcloud compute images list --no-standard-images --project {project}"
    )


def _fits(ctx: CheckContext[VmSpec], found: Found) -> Iterator[Finding]:
    """Whether an image fits the boot disk, the machines' processors and their GPU network."""
    asked, group = ctx.spec.image, ctx.spec.group
    size = int(found.get("diskSizeGb", 0))
    if size > group.disk_size_gb:
        yield refuse(
            code=Code.INVALID_VALUE,
            setting="DISK_SIZE_GB",
            what=f"{group.disk_size_gb} GB is too small for the image {found['name']}",
            why=f"the image has {size} GB, and a boot disk must be at least as large as its image",
            fix=f"DISK_SIZE_GB={size} or more",
        )
    machine = zones.look(ctx, group) or {}
    wanted, given = machine.get("architecture"), found.get("architecture")
    if wanted and given and wanted != given:
        yield refuse(
            code=Code.IMAGE_UNSUITABLE,
            setting="IMAGE_NAME" if asked.name else "IMAGE_FAMILY_NAME",
            what=f"the image {found['name']} is for {given} processors",
            why=f"{group.machine_type} has {wanted} processors",
            fix="choose an image for them: gcloud compute images list"
            f" --project {asked.project} --filter architecture={wanted}",
        )
    yield from image_system.suits(ctx.spec, asked, found)
    yield from fabric.suits(ctx.spec, found)


IMAGE: Final = Check(
    name=OnlineCheck.IMAGE,
    calls=(
        "compute.images.get",
        "compute.images.getFromFamily",
        "compute.images.list",
        "compute.machineTypes.get",
    ),
    says="the image, or its family, does not exist, is withdrawn, is larger than the boot disk, is"
    " for other processors, start-up cannot work on its system (COS; Rocky with storage; no driver,"
    " where none can be installed), or NCCL can't use the GPU network on it; the problem names"
    " Google's replacement, or the setting. Without IMAGE_NAME and IMAGE_FAMILY_NAME, the newest"
    " supported image for the machine type is chosen, and a note names it",
    find=_check,
)
