"""Rules about what runs on machines: image, command, notebook, Ray, and their ways out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import fabrics, images, machines
from provision.catalogue.fabrics import Fabric
from provision.codes import Code
from provision.settings import masking
from provision.settings.choices import NetworkConfig, Restart
from provision.spec.outbound import Outbound
from provision.spec.rules.findings import Case, Finding, Rules

if TYPE_CHECKING:
    from collections.abc import Iterator

RULES: Final = Rules()

_NEED_PROPRIETARY: Final = ", ".join(
    gpu.model for gpu in machines.GPUS.values() if not gpu.open_module
)
PROPRIETARY: Final = ("ubuntu-os-cloud", "ubuntu-2404-lts-amd64")
"""Project and family of an image on which start-up installs a driver by the GPU."""
_FIRST_WITH_TOKENS: Final = (2, 52)
"""Ray's notes of 2.52.0: the first version that asks its clients for a token."""
# The projects that have, or had, the Deep Learning VM images.
_NOTEBOOK_PROJECTS: Final = frozenset({"deeplearning-platform-release", "ml-images"})


@RULES.on("image_project", "network_config", "secure_boot", "vm_type")
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
        image = _other_image(case, images.ACCELERATOR.project, images.ACCELERATOR.family)
        fix = f"{image}, an image of your own with signed drivers, or SECURE_BOOT=no"
    elif (
        settings.network_config is NetworkConfig.MULTI_NIC
        and fabrics.on_vms(machines.lookup(settings.vm_type)) is Fabric.TCPXO
    ):
        why = "GPUDirect-TCPXO needs a kernel module that is built on the VM, and not signed"
        fix = "SECURE_BOOT=no"
    else:
        return
    yield Finding(
        field="secure_boot",
        what="asks for an image whose drivers are signed",
        why=why,
        fix=fix,
    )


def _other_image(case: Case, project: str, family: str) -> str:
    """How to ask for the newest image of a family, in place of one that is named."""
    asked = f"IMAGE_PROJECT={project} and IMAGE_FAMILY_NAME={family}"
    return f"remove IMAGE_NAME, and set {asked}" if case.asked("image_name") else asked


@RULES.on()
def _one_image(case: Case) -> Iterator[Finding]:
    if case.asked("image_name") and case.asked("image_family_name"):
        yield Finding(
            field="image_family_name",
            what="can't be combined with IMAGE_NAME",
            why="an image is chosen either by its name or by its family",
            fix="remove IMAGE_NAME or IMAGE_FAMILY_NAME",
        )


@RULES.on("image_name")
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


@RULES.on("accelerator_type", "image_name", "image_family_name", gke=False)
def _driver(case: Case) -> Iterator[Finding]:
    """Whether the image's driver supports the GPUs; GKE installs drivers itself."""
    settings = case.settings
    gpu = machines.GPUS.get(settings.accelerator_type or "")
    if gpu is None or gpu.open_module or gpu.is_over(case.today):
        return
    named = next((it for it in ("image_name", "image_family_name") if case.asked(it)), None)
    if named is None:
        yield Finding(
            code=Code.MISSING_SETTING,
            field="image_name",
            what=f"is required for {gpu.name}, or IMAGE_FAMILY_NAME is",
            why="Google's current images have NVIDIA's open kernel module, which does not support"
            f" {_NEED_PROPRIETARY}: nvidia-smi would find no GPU",
            fix=f"{_other_image(case, *PROPRIETARY)}, on which start-up installs the proprietary"
            " driver, or ACCELERATOR_TYPE=nvidia-tesla-t4 and GPU_COUNT=1",
        )
    elif images.has_open_module(case.value(named)):
        yield Finding(
            code=Code.IMAGE_UNSUITABLE,
            field=named,
            what=f"probably has no driver for {gpu.name}",
            why="Google's images with driver 570 or later have NVIDIA's open kernel module, as"
            f" far as is known, which does not support {_NEED_PROPRIETARY}",
            fix=f"{_other_image(case, *PROPRIETARY)}, on which start-up installs the proprietary"
            " driver",
            note=True,
        )


@RULES.on("accelerator_type", "image_name", "image_family_name", "image_project")
def _old_slurm(case: Case) -> Iterator[Finding]:
    named = next((it for it in ("image_name", "image_family_name") if case.asked(it)), None)
    why = images.old_slurm(case.value(named)) if named and case.is_slurm else ""
    if not (named and why):
        return
    gpu = machines.GPUS.get(case.settings.accelerator_type or "")
    asked = [it for it in (named, "image_project") if case.asked(it)]
    yield Finding(
        code=Code.IMAGE_UNSUITABLE,
        field=named,
        what="has a Slurm that is too old",
        why=why,
        fix=_other_image(case, *PROPRIETARY)
        if gpu and not gpu.open_module
        else f"remove {' and '.join(map(case.name, asked))} for the newest supported image",
    )


@RULES.on("idle_timeout", "enable_flex_start", "enable_spot")
def _idle(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.idle_timeout is None:
        return
    if settings.enable_flex_start:
        yield Finding(
            field="idle_timeout",
            what="can't be combined with ENABLE_FLEX_START",
            why="Google starts no VM of flex start again that was off: it comes by a new request",
            fix="remove IDLE_TIMEOUT; MAX_RUN_DURATION ends them",
        )
    elif settings.enable_spot:
        yield Finding(
            field="idle_timeout",
            what="leaves VMs that Google takes back as they are, until the next Create",
            why="a group that lets its VMs power themselves off makes none again that was lost",
            fix="IDLE_TIMEOUT only with jobs that need not survive a lost VM",
            note=True,
        )


@RULES.on("startup_restart", "startup_command", "enable_spot", gke=False)
def _restart(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.startup_command is None:
        if case.on("startup_restart") and settings.startup_restart is not Restart.NEVER:
            yield Finding(
                code=Code.MISSING_SETTING,
                field="startup_restart",
                what="is set without STARTUP_COMMAND",
                why="it says when that command is begun again",
                fix="set STARTUP_COMMAND too, or take STARTUP_RESTART out",
            )
    elif settings.enable_spot and not case.asked("startup_restart"):
        yield Finding(
            field="startup_restart",
            what="is not set: a command that ends when Google takes one VM of several back stays"
            " ended on the others",
            why="spot VMs come back one by one, and the default is to begin a command once in the"
            " life of a VM",
            fix="STARTUP_RESTART=on-failure, with a command that goes on from its last checkpoint;"
            " STARTUP_RESTART=never keeps it so",
            note=True,
        )


@RULES.on("https_proxy")
def _whom_it_reaches(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.https_proxy is None:
        return
    if case.is_gke:
        yield Finding(
            code=Code.NOTE,
            field="https_proxy",
            what="is for this program and Terraform alone: nodes of GKE go out without it",
            why="GKE sets up their containerd, which pulls images; it takes no proxy",
            fix="IMAGE_MIRROR, where nodes reach no registry but Google's; JOB_ENV for jobs",
            note=True,
        )
    elif Outbound.of(settings).proxy is None:
        yield Finding(
            code=Code.NOTE,
            field="https_proxy",
            what="is on this machine, so that VMs go out without it",
            why="on a VM, that address is the VM itself",
            fix="https_proxy in lower case is for this program alone, or name a proxy of the"
            " VMs' network",
            note=True,
        )


@RULES.on("https_proxy", "no_proxy")
def _nothing_to_go_around(case: Case) -> Iterator[Finding]:
    if case.settings.no_proxy and case.settings.https_proxy is None:
        yield Finding(
            code=Code.WITHOUT_EFFECT,
            field="no_proxy",
            what="has no effect without HTTPS_PROXY",
            fix="set HTTPS_PROXY, or remove it",
            note=True,
        )


@RULES.on("startup_command", "metadata", "job_command", "job_env")
def _in_the_open(case: Case) -> Iterator[Finding]:
    """A credential in what is stored with the cluster."""
    it = case.settings
    maps = {"metadata": it.metadata, "job_env": it.job_env}
    texts = {"startup_command": it.startup_command, "job_command": it.job_command}
    texts |= {field: "\n".join(map("=".join, values.items())) for field, values in maps.items()}
    for field, text in texts.items():
        if masking.credentials(text or ""):
            yield Finding(
                note=True,
                code=Code.NOTE,
                field=field,
                what="has what looks like a credential",
                why="it is stored with the cluster, where everybody reads it who may look at that",
                fix="keep it in Secret Manager: SECRETS=NAME=projects/<project>/secrets/<secret>"
                " gives it to STARTUP_COMMAND and jobs as a variable",
            )


@RULES.on("enable_notebook", "show_proxy_url", "image_project", gke=False)
def _notebook(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if not settings.enable_notebook:
        if case.on("show_proxy_url"):
            yield Finding(
                code=Code.WITHOUT_EFFECT,
                field="show_proxy_url",
                what="has no effect",
                why=f"with {case.name('enable_notebook')}=no the VMs have no notebook",
                fix="SHOW_PROXY_URL=no, or ENABLE_NOTEBOOK=yes",
                note=True,
            )
    elif settings.image_project not in _NOTEBOOK_PROJECTS and (
        # Who asked for none does not miss it, and the start-up says that it skips it.
        case.on("enable_notebook") or case.on("show_proxy_url")
    ):
        yield Finding(
            code=Code.WITHOUT_EFFECT,
            field="enable_notebook",
            what=f"may have no effect with images of {settings.image_project}",
            why="the notebook is part of the Deep Learning VM images; if an image has none, the"
            " start-up skips it",
            fix="ENABLE_NOTEBOOK=no, if your image has none",
            note=True,
        )


@RULES.on("ray_version")
def _knows_no_token(case: Case) -> Iterator[Finding]:
    if not case.is_ray:
        return
    version = tuple(int(part) for part in case.settings.ray_version.split(".")[:2])
    if version < _FIRST_WITH_TOKENS:
        first = ".".join(map(str, _FIRST_WITH_TOKENS))
        yield Finding(
            field="ray_version",
            what=f"is older than {first}",
            why="such a Ray asks nobody for a token, so that every machine of the network could"
            " run programs on the VMs",
            fix=f"RAY_VERSION={first}.0 or newer, or remove {case.name('ray_version')}",
        )


@RULES.on("service_account")
def _account_of_many(case: Case) -> Iterator[Finding]:
    if case.settings.service_account != "default":
        return
    if case.is_slurm:
        yield Finding(
            field="service_account",
            what="leaves Slurm's ports open to the network",
            why="firewall rules close them to all but VMs of the cluster's own account, and many"
            " others may act as the default one: root of any could become root here",
            fix="SERVICE_ACCOUNT=dedicated",
        )
    elif case.is_ray:
        yield Finding(
            code=Code.NOTE,
            field="service_account",
            what="leaves Ray's ports open to the network: its token alone protects them",
            why="firewall rules close them to all but VMs of the cluster's own account, and many"
            " others may act as the default one; Ray's metrics need no token",
            fix="SERVICE_ACCOUNT=dedicated",
            note=True,
        )
