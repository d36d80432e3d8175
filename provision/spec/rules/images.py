"""Rules about the image that VMs boot from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import fabrics, images, machines
from provision.catalogue.fabrics import Fabric
from provision.codes import Code
from provision.settings.choices import NetworkConfig, Orchestrator
from provision.spec.rules.findings import Case, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

_NEED_PROPRIETARY: Final = ", ".join(
    gpu.model for gpu in machines.GPUS.values() if not gpu.open_module
)


def _one_image(case: Case) -> Iterator[Finding]:
    if case.asked("image_name") and case.asked("image_family_name"):
        yield Finding(
            field="image_family_name",
            what="can't be combined with IMAGE_NAME",
            why="an image is chosen either by its name or by its family",
            fix="remove IMAGE_NAME or IMAGE_FAMILY_NAME",
        )


def _of_a_login_shell(case: Case) -> Iterator[Finding]:
    if case.asked("image_name") and images.is_of_a_login_shell(case.value("image_name")):
        yield Finding(
            code=Code.INVALID_VALUE,
            field="image_name",
            what="is no image",
            why="login shells of a Deep Learning VM export this IMAGE_NAME, and the environment"
            " goes before the env file",
            fix="unset IMAGE_NAME in the shell, or write the name of an image",
        )


def _driver(case: Case) -> Iterator[Finding]:
    """Whether the image's driver supports the GPUs; GKE installs drivers itself."""
    settings = case.settings
    gpu = machines.GPUS.get(settings.accelerator_type or "")
    if settings.orchestrator_type is Orchestrator.GKE or gpu is None or gpu.open_module:
        return
    named = next((it for it in ("image_name", "image_family_name") if case.asked(it)), None)
    if named is None:
        yield Finding(
            code=Code.MISSING_SETTING,
            field="image_name",
            what=f"is required for {gpu.name}, or IMAGE_FAMILY_NAME is",
            why="Google's current images have NVIDIA's open kernel module, which does not support"
            f" {_NEED_PROPRIETARY}: nvidia-smi would find no GPU",
            fix="IMAGE_PROJECT=ubuntu-os-cloud and IMAGE_FAMILY_NAME=ubuntu-2204-lts, on which"
            " start-up installs the proprietary driver, or ACCELERATOR_TYPE=nvidia-tesla-t4",
        )
    elif images.has_open_module(case.value(named)):
        yield Finding(
            code=Code.IMAGE_UNSUITABLE,
            field=named,
            what=f"probably has no driver for {gpu.name}",
            why="Google's images with driver 570 or later have NVIDIA's open kernel module, as"
            f" far as is known, which does not support {_NEED_PROPRIETARY}",
            fix="IMAGE_PROJECT=ubuntu-os-cloud and IMAGE_FAMILY_NAME=ubuntu-2204-lts, on which"
            " start-up installs the proprietary driver",
            note=True,
        )


def _secure_boot(case: Case) -> Iterator[Finding]:
    """Whether the image's driver is signed.

    Sources: hail-is/hail 15071 (2025-09), for Deep Learning VM images; that the driver of
    accelerator images is signed is believed (docs/development/gotchas.md, 2026-11-25).
    """
    settings = case.settings
    if not settings.secure_boot:
        return
    is_named = any(case.asked(it) for it in ("image_project", "image_name", "image_family_name"))
    line = machines.image_line(settings.vm_type)
    project = settings.image_project if is_named else line.project
    plain = images.PUBLIC_SYSTEMS.get(project)
    if project == images.DEEP_LEARNING.project or (plain is not None and plain.plain):
        why = f"on images of {project} NVIDIA's driver is built on the VM, and not signed"
    elif (
        settings.network_config is NetworkConfig.MULTI_NIC
        and fabrics.on_vms(machines.lookup(settings.vm_type)) is Fabric.TCPXO
    ):
        why = "GPUDirect-TCPXO needs a kernel module that is built on the VM, and not signed"
    else:
        return
    yield Finding(
        field="secure_boot",
        what="asks for an image whose drivers are signed",
        why=why,
        fix=f"IMAGE_PROJECT={images.ACCELERATOR.project} and IMAGE_FAMILY_NAME="
        f"{images.ACCELERATOR.family}, an image of your own with signed drivers, or SECURE_BOOT=no",
    )


RULES: Final = (
    Rule(("image_project", "network_config", "secure_boot", "vm_type"), _secure_boot),
    Rule((), _one_image),
    Rule(("image_name",), _of_a_login_shell),
    Rule(
        ("accelerator_type", "orchestrator_type", "image_name", "image_family_name"),
        _driver,
    ),
)
