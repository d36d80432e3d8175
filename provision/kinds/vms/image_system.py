"""Whether start-up can work on the system of an image: what it runs with, packages, the driver."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import images, machines
from provision.codes import Code
from provision.errors import Problem
from provision.preflight.check import CheckNote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.catalogue.images import System
    from provision.preflight.check import Finding
    from provision.spec.cluster import Image, VmSpec


_BEGINS: Final = re.compile(
    r"(?:(?:sudo|exec|nohup|time|env|[A-Z_a-z]\w*=\S*)\s+)*([\w.-]+)(?:\s|$)"
)
"""The program of a shell's line, behind what only calls it."""


def suits(spec: VmSpec, image: Image, found: Mapping[str, Any]) -> Iterator[Finding]:
    """What of the start-up the system of an image can't do.

    A public image is known; one that somebody made of it may have what that lacks, so only what
    nobody can add is refused of it. `found`: the image, as Google's API returns it.
    """
    system = images.system_of(image.project, found.get("licenses", []))
    yield from _command(spec, image, found)
    if system is None:
        return
    is_public = image.project in images.PUBLIC_SYSTEMS
    setting = "IMAGE_NAME" if image.name else "IMAGE_FAMILY_NAME"
    name, fix = str(found["name"]), _other(spec)
    if not system.runs:
        yield Problem(
            code=Code.IMAGE_UNSUITABLE,
            setting=setting,
            what=f"the image {name} is of {system.name}",
            why="start-up needs bash, Python and packages to install; Create would wait for VMs"
            " that report nothing",
            fix=fix,
        )
        return
    if not system.apt and (spec.buckets or spec.shares):
        problem = Problem(
            code=Code.IMAGE_UNSUITABLE,
            setting=setting,
            what=f"the image {name} is of {system.name}, which has no apt-get",
            why="start-up installs gcsfuse and the NFS client with it, to mount storage",
            fix=f"{fix}, or mount no storage",
        )
        yield problem if is_public else CheckNote(problem)
    if is_public and system.plain and spec.group.gpu_count:
        yield _driver(system, setting, found, fix)


def _command(spec: VmSpec, image: Image, found: Mapping[str, Any]) -> Iterator[Finding]:
    """A note on a command that begins with a program which the image has not."""
    begins = _BEGINS.match(spec.command or "")
    plain = image.project in images.PUBLIC_SYSTEMS and images.PUBLIC_SYSTEMS[image.project].plain
    name = str(found["name"])
    family = found.get("family") or images.family_of(name)
    if (
        begins is None
        or images.has(begins[1], family, plain=plain, labels=found.get("labels")) is not False
    ):
        return
    yield CheckNote(
        Problem(
            code=Code.IMAGE_UNSUITABLE,
            setting="STARTUP_COMMAND",
            what=f"begins with {begins[1]}, which the image {name} has not, as far as known",
            why="it would end with exit code 127, when all else of the start-up is done",
            fix=f"let it install {begins[1]} first, or choose an image that has it"
            " (docs/how-to/boot-image.md)",
        )
    )


def _driver(system: System, setting: str, found: Mapping[str, Any], fix: str) -> Finding:
    """A public image without NVIDIA's driver: start-up installs it, or can't."""
    name = str(found["name"])
    if images.takes_driver(found.get("family", "")):
        return CheckNote(
            Problem(
                code=Code.IMAGE_UNSUITABLE,
                setting=setting,
                what=f"the image {name} has no NVIDIA driver: start-up installs it",
                why="that takes some ten minutes and a reboot at each VM's first boot; there is no"
                " CUDA toolkit, no PyTorch and no JupyterLab",
                fix="nothing, or an image with the driver (docs/how-to/boot-image.md)",
            )
        )
    return Problem(
        code=Code.IMAGE_UNSUITABLE,
        setting=setting,
        what=f"the image {name} of {system.name} has no NVIDIA driver",
        why=f"start-up can install it on {images.INSTALLABLE}, alone",
        fix=fix,
    )


def _other(spec: VmSpec) -> str:
    """The settings of an image that works."""
    gpu = machines.GPUS.get(spec.group.gpu_type or "")
    if gpu is not None and not gpu.open_module:
        return "IMAGE_PROJECT=ubuntu-os-cloud and IMAGE_FAMILY_NAME=ubuntu-2204-lts"
    return (
        "remove IMAGE_PROJECT, IMAGE_NAME and IMAGE_FAMILY_NAME for the newest supported image with"
        " the driver"
    )
