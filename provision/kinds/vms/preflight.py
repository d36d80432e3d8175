"""What the online checks need to know about a group of VMs, and the check of their image.

A cluster stays on the image that it was made with (ADR 2). A new one without IMAGE_NAME and
IMAGE_FAMILY_NAME gets the newest supported image of the line of its machine type (ADR 14).
"""

from __future__ import annotations

import dataclasses
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import fabrics, images, machines, names
from provision.codes import Code
from provision.google import resources
from provision.google.api import Service
from provision.preflight import zones
from provision.preflight.check import Check, CheckContext, Effect, Finding, OfKind, note, refuse
from provision.preflight.networks import in_the_network
from provision.preflight.table import SUBNETWORK
from provision.settings.choices import OnlineCheck

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.catalogue.images import Line
    from provision.spec.cluster import Image, VmSpec
    from provision.state.record import Record

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
        checks=(IMAGE, *((SUBNETWORK,) if spec.existing else ())),
        apis=(
            *(("logging", "monitoring") if spec.ops_agent else ()),
            *(("secretmanager",) if spec.secrets else ()),
        ),
        made=(
            resources.GROUP,
            resources.TEMPLATE,
            *((resources.RESIZE_REQUEST,) if flex_start else ()),
            *((resources.DASHBOARD,) if spec.ops_agent else ()),
            *((resources.FIREWALL,) if spec.closed_ports else ()),
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
        rules=spec.closed_ports,
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


# ------------------------------------------------------------------ the image

Found = dict[str, Any]

_NAME: Final = "IMAGE_NAME"
_FAMILY: Final = "IMAGE_FAMILY_NAME"
_ACTIVE: Final = "ACTIVE"
_DEPRECATED: Final = "DEPRECATED"
_ENDS: Final = ("obsolete", "deleted")
"""Fields with the moments from which an image can't be used; Google may change its mind."""
_KEPT: Final = "new VMs get it, and those that run with --replace-vms"


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
    found = ctx.answers.find(Service.COMPUTE, _path(kept, kept.name))
    newer = ctx.answers.find(Service.COMPUTE, _path(kept, f"family/{kept.family}"))
    usual = images.DEEP_LEARNING if kept.line is None else kept.line
    other = (
        f"{_NAME}={newer['name']}"
        if newer
        else f"IMAGE_PROJECT={usual.project} and {_FAMILY}={usual.family}"
    )
    stays = "a cluster stays on the image that it was made with"
    if found is None:
        yield _unsuitable(
            f"the image {kept.name} of this cluster is gone from {kept.project}",
            why=f"Google has deleted it; {stays}",
            fix=f"{other}: {_KEPT}",
        )
        return
    if (state := _state(found)) != _ACTIVE:
        yield _unsuitable(
            f"the image {kept.name} of this cluster is {state.lower()}{_since(found)}",
            why=f"{stays}; {_use(found)}{_suggestion(found)}",
            fix=f"{other}: {_KEPT}",
            effect=Effect.NOTE,
        )
    yield _settled(kept, found)
    yield from _fits(ctx, found)


def _by_name(ctx: CheckContext[VmSpec], asked: Image) -> Iterator[Finding]:
    found = ctx.answers.find(Service.COMPUTE, _path(asked, asked.name))
    if found is None:
        yield _missing(asked, f"image {asked.name}")
        return
    if (state := _state(found)) != _ACTIVE:
        other = _replacement(found)
        yield _unsuitable(
            f"the image {asked.name} is {state.lower()}{_since(found)}",
            why=f"{_use(found)}{_suggestion(found)}",
            fix=f"{_NAME}={other}" if other else "name another image",
            effect=Effect.NOTE if state == _DEPRECATED else Effect.STOPS,
        )
    yield _settled(asked, found)
    yield from _fits(ctx, found)


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
    other, state = _replacement(last), _state(last)
    fixes = (
        f"{_FAMILY}={images.family_of(other)}" if other else "",
        f"{_NAME}={last['name']}: {_use(last)}" if state == _DEPRECATED else "",
    )
    yield _unsuitable(
        f"all images of the family {asked.family} in {asked.project} are"
        f" {state.lower()}{_since(last)}",
        why=f"Google gives no image for such a family{_suggestion(last)}",
        fix=", or ".join(filter(None, fixes)) or "name another family",
        setting=_FAMILY,
    )


def _newest_supported(ctx: CheckContext[VmSpec], asked: Image, line: Line) -> Iterator[Finding]:
    """Choose the newest supported image of a line, and say which one that is."""
    chosen = _choose(ctx, asked, line)
    machine = ctx.spec.group.machine_type
    if chosen is None:
        yield refuse(
            code=Code.RESOURCE_NOT_FOUND,
            setting=_FAMILY,
            what=f"not set, and {asked.project} has no image to choose for {machine}",
            why="none with NVIDIA's driver is supported, ready and for"
            f" {line.architecture} processors, as far as the families' names say",
            fix=f"name one with {_FAMILY} or {_NAME}; {_listing(asked.project)}",
        )
        return
    line, found = chosen
    family = str(found["family"])
    image = dataclasses.replace(asked, project=line.project, family=family, name=found["name"])
    yield _settled(image, found)
    said = images.contents(family)
    lacks = f", but {line.lacks}" if line.lacks else ""
    yield note(
        code=Code.CHOSEN,
        setting=_FAMILY,
        what=f"not set; the VMs boot {found['name']} of {line.project}",
        why=f"that is its newest supported image for {machine}: {said.words if said else ''}"
        f"{lacks}; {_support(found)}",
        fix=f"to choose an image yourself, set {_FAMILY} or {_NAME}",
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
            and not (ctx.spec.slurm_partition and images.old_slurm(found.get("family", "")))
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


def _newest(found: Sequence[Found]) -> Found:
    def made(image: Found) -> tuple[float, str]:
        moment = datetime.fromisoformat(image["creationTimestamp"])
        return moment.timestamp(), image["name"]

    return max(found, key=made)


def _unsuitable(
    what: str, *, why: str, fix: str, setting: str = _NAME, effect: Effect = Effect.STOPS
) -> Finding:
    return note(Code.IMAGE_UNSUITABLE, effect, setting=setting, what=what, why=why, fix=fix)


def _missing(asked: Image, what: str) -> Finding:
    home = images.project_of(asked.family or images.family_of(asked.name or ""))
    is_elsewhere = home not in {None, asked.project}
    setting = _named_by(asked)
    return refuse(
        code=Code.RESOURCE_NOT_FOUND,
        setting="IMAGE_PROJECT" if is_elsewhere else setting,
        what=f"there is no {what} in the project {asked.project}",
        why=f"by its name it is one of {home}" if is_elsewhere else "Google does not have it",
        fix=f"IMAGE_PROJECT={home}"
        if is_elsewhere
        else f"remove {setting} for the newest supported image, or {_listing(asked.project)}",
    )


def _named_by(image: Image) -> str:
    """The setting that names an image."""
    return _NAME if image.name else _FAMILY


def _listing(project: str) -> str:
    return (
        f"list the images with: gcloud compute images list --no-standard-images --project {project}"
    )


# ------------------------------------------------------------------ how long it is supported


def _withdrawal(found: Found) -> Mapping[str, str]:
    return found.get("deprecated") or {}


def _state(found: Found) -> str:
    """ACTIVE, DEPRECATED, OBSOLETE or DELETED; Google leaves it out where nothing is planned."""
    return str(_withdrawal(found).get("state") or _ACTIVE)


def _since(found: Found) -> str:
    moment = _withdrawal(found).get(_state(found).lower())
    return f" since {moment[:10]}" if moment else ""


def _use(found: Found) -> str:
    """What a withdrawn image is still good for."""
    if _state(found) != _DEPRECATED:
        return "Google makes no VM from it any more"
    ends = [moment[:10] for name in _ENDS if (moment := _withdrawal(found).get(name))]
    return f"Google still makes VMs from it{f', until {min(ends)}' if ends else ''}"


def _replacement(found: Found) -> str:
    """The name of the image that Google suggests instead; "" for none."""
    return _withdrawal(found).get("replacement", "").rpartition("/")[2]


def _suggestion(found: Found) -> str:
    other = _replacement(found)
    return f"; it suggests {other} instead" if other else ""


def _announced(found: Found) -> str | None:
    """The first day on which Google's API says that an image is withdrawn; None for none."""
    days = [_withdrawal(found).get(name, "")[:10] for name in ("deprecated", *_ENDS)]
    return min(filter(None, days), default=None)


def _supported_until(found: Found) -> str | None:
    """The last day of an image's support: as Google's API tells it, else as its page does."""
    if _state(found) != _ACTIVE:
        return None
    return _announced(found) or images.SUPPORTED_UNTIL.get(found.get("family", ""))


def _support(found: Found) -> str:
    until = _supported_until(found)
    if until is None:
        return "Google names no end of its support"
    source = "" if _announced(found) else f" (Google's page of {images.SUPPORT_PAGE_OF})"
    return f"supported until {until}{source}"


# ------------------------------------------------------------------ whether it fits


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
        yield _unsuitable(
            f"the image {found['name']} is for {given} processors",
            why=f"{group.machine_type} has {wanted} processors",
            fix="choose an image for them: gcloud compute images list"
            f" --project {asked.project} --filter architecture={wanted}",
            setting=_named_by(asked),
        )
    yield from _command(ctx.spec, found)
    yield from _system(ctx.spec, found)
    yield from _slurm(ctx.spec, found)
    yield from _gpu_network(ctx.spec, found)


_BEGINS: Final = re.compile(
    r"(?:(?:sudo|exec|nohup|time|env|[A-Z_a-z]\w*=\S*)\s+)*([\w.-]+)(?:\s|$)"
)
"""The program of a shell's line, behind what only calls it."""


def _command(spec: VmSpec, found: Found) -> Iterator[Finding]:
    """A note on a command that begins with a program which the image has not."""
    begins = _BEGINS.match(spec.command or "")
    if begins is None:
        return
    public = images.PUBLIC_SYSTEMS.get(spec.image.project)
    name, plain = str(found["name"]), public is not None and public.plain
    family = found.get("family") or images.family_of(name)
    if images.has(begins[1], family, plain=plain, labels=found.get("labels")) is False:
        yield _unsuitable(
            f"begins with {begins[1]}, which the image {name} has not, as far as known",
            why="it would end with exit code 127, when all else of the start-up is done",
            fix=f"let it install {begins[1]} first, or choose an image that has it"
            " (docs/how-to/boot-image.md)",
            setting="STARTUP_COMMAND",
            effect=Effect.NOTE,
        )


def _system(spec: VmSpec, found: Found) -> Iterator[Finding]:
    """What of the start-up the system of an image can't do: packages, the driver.

    A public image is known; one that somebody made of it may have what that lacks, so only what
    nobody can add is refused of it.
    """
    project = spec.image.project
    system = images.system_of(project, found.get("licenses", []))
    if system is None:
        return
    is_public = project in images.PUBLIC_SYSTEMS
    setting, name = _named_by(spec.image), str(found["name"])
    gpu = machines.GPUS.get(spec.group.gpu_type or "")
    if gpu is not None and not gpu.open_module:
        fix = f"IMAGE_PROJECT=ubuntu-os-cloud and {_FAMILY}=ubuntu-2404-lts-amd64"
    else:
        fix = (
            f"remove IMAGE_PROJECT, {_NAME} and {_FAMILY} for the newest supported image with the"
            " driver"
        )
    if not system.runs:
        yield _unsuitable(
            f"the image {name} is of {system.name}",
            why="start-up needs bash, Python and packages to install; Create would wait for VMs"
            " that report nothing",
            fix=fix,
            setting=setting,
        )
        return
    if not system.apt and (spec.buckets or spec.shares or spec.slurm_partition):
        yield _unsuitable(
            f"the image {name} is of {system.name}, which has no apt-get",
            why="start-up installs Slurm with it"
            if spec.slurm_partition
            else "start-up installs gcsfuse and the NFS client with it, to mount storage",
            fix=fix if spec.slurm_partition else f"{fix}, or mount no storage",
            setting=setting,
            effect=Effect.STOPS if is_public else Effect.NOTE,
        )
    if not (is_public and system.plain and spec.group.gpu_count):
        return
    if images.takes_driver(found.get("family", "")):
        yield _unsuitable(
            f"the image {name} has no NVIDIA driver: start-up installs it",
            why="that takes some ten minutes and a reboot at each VM's first boot; there is no"
            " CUDA toolkit, no PyTorch and no JupyterLab",
            fix="nothing, or an image with the driver (docs/how-to/boot-image.md)",
            setting=setting,
            effect=Effect.NOTE,
        )
    else:
        yield _unsuitable(
            f"the image {name} of {system.name} has no NVIDIA driver",
            why=f"start-up can install it on {images.INSTALLABLE}, alone",
            fix=fix,
            setting=setting,
        )


def _slurm(spec: VmSpec, found: Found) -> Iterator[Finding]:
    """Whether the system's packages of Slurm are new enough; Bake says what it made an image of."""
    known = (found.get("family"), found.get("labels", {}).get(images.FROM), found["name"])
    why = next(filter(None, (images.old_slurm(it or "") for it in known)), "")
    if spec.slurm_partition and why:
        yield _unsuitable(
            f"the image {found['name']} has a Slurm that is too old",
            why=why,
            fix=f"an image of Ubuntu 24.04 or Debian 13; or remove IMAGE_PROJECT, {_NAME} and"
            f" {_FAMILY} for the newest supported image with the driver",
            setting=_named_by(spec.image),
        )


def _gpu_network(spec: VmSpec, found: Found) -> Iterator[Finding]:
    """Whether NCCL can use the machines' GPU network with a public image.

    What somebody made themselves is taken as it is: the start-up tells.
    """
    project = found.get("selfLink", "").rpartition("/global/")[0].rpartition("/")[2]
    refusal = fabrics.refusal(spec.fabric, project)
    if not refusal and not fabrics.is_unproven(spec.fabric, project):
        return
    verb, line = "can't" if refusal else "may not", images.ACCELERATOR
    yield _unsuitable(
        f"NCCL {verb} use the GPU network of {spec.group.machine_type} with the image"
        f" {found['name']}",
        why=refusal or f"no source says that it can; Google's blueprints boot {line.family}",
        fix=f"IMAGE_PROJECT={line.project} and {_FAMILY}={line.family}, or no IMAGE_* at all for"
        " the newest of these",
        setting=_named_by(spec.image),
        effect=Effect.STOPS if refusal else Effect.NOTE,
    )


IMAGE: Final = Check(
    name=OnlineCheck.IMAGE,
    find=_check,
)
