"""Images of one's own: made of the disk of a VM that has done its start-up, and was sealed.

The VM's agent seals it (`aiinfra_vm.tasks.seal`); then its group stops it, so that the disk is at
rest, and Google makes the image. An image is no part of a cluster: nothing but its owner deletes
it, unless it has come to nothing.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import images, names
from provision.codes import Code
from provision.documents.timeline import OnInterrupt, StageName
from provision.documents.topology import OwnImage
from provision.errors import CheckError, ClusterError, SettingsError
from provision.google.api import GoogleApi, GoogleApiError, Service
from provision.google.owner import MARKER, Owner

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.kinds.vms.instances import Vm
    from provision.state.record import Record
    from provision.time.stages import OpenStage

_NAME: Final = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
"""A name as RFC 1035 has it, which Google asks for."""
_SEALING: Final = 3600
"""Seconds that a VM may take for it; the most is the container image of jobs."""
_STOPPING: Final = 300.0
_MAKING: Final = 1800.0
"""Seconds of cloud time for an image that a run which has ended had begun."""
_POLL: Final = 5.0
_TAKEN: Final = 409
_FORBIDDEN: Final = 403
_DRIVER: Final = "aiinfra-driver"
"""The label with the version of NVIDIA's driver, with "-" for its points."""


class VmImages:
    """Images of VMs; see `deployment.kind.Images` for what each method does."""

    instead: Final[Mapping[str, str]] = {
        "INSTANCE_COUNT": "1",
        "PROTECT": "no",
        "ENABLE_COMPACT_PLACEMENT": "no",
        "ENABLE_NODE_SSH": "no",
        "ENABLE_NOTEBOOK": "no",
    }
    without: Final = frozenset(
        {
            *("STARTUP_COMMAND", "STARTUP_RESTART", "SECRETS", "METADATA"),
            *("GCS_MOUNT_LIST", "GCS_CACHE_GB", "GCS_OPTIONS", "NFS_FILESHARE_LIST"),
            *("IDLE_TIMEOUT", "JOB_COMMAND"),
        }
    )

    def require_name(self, name: str) -> None:
        """See that this can be the name of an image."""
        if not _NAME.fullmatch(name):
            raise SettingsError(
                f"{name} can't be the name of an image",
                code=Code.INVALID_COMMAND_LINE,
                why="Google takes 1 to 63 lower-case letters, digits and dashes, a letter first",
                fix="Bake my-image, or Bake alone for a name with the date",
            )

    def require_free(self, cloud: Cloud, project: str, name: str) -> None:
        """See that no image has this name."""
        if cloud.api.find(Service.COMPUTE, _path(project, name)) is not None:
            raise CheckError(
                f"There is an image {name} in {project} already",
                code=Code.NAME_TAKEN,
                why="an image is never replaced, as VMs boot from it",
                fix="choose another name, or delete it: gcloud compute images delete"
                f" {name} --project {project}",
            )

    def make(self, context: Context, cloud: Cloud, record: Record, name: str) -> OwnImage:
        """Seal the VM, stop it, and make an image of its disk."""
        # Every other run knows of the kind, and bakes nothing.
        from provision.kinds.vms import agent, instances  # noqa: PLC0415

        (vm,) = instances.see(cloud.api, record).vms(context.clock)
        with context.progress.stage(StageName.IMAGE, OnInterrupt.KEEPS) as stage:
            stage.counts("the VM installs what jobs want, and is cleaned")
            image = context.settings.job_image or ""
            asked = {"image": image}
            vms = {vm.name: vm.id}
            told = agent.ask(cloud.folder, stage, "seal", asked, vms=vms, seconds=_SEALING)[vm.name]
            if told.failure:
                raise _unmade(name, f"the VM {vm.name} {told.failure}")
            stage.counts("the VM is shut down")
            is_off = _stop(cloud.api, record, vm, stage)
            body = _body(context, cloud, record, vm, name, told.answer)
            stage.counts(f"Google makes {name} of its disk")
            try:
                cloud.api.make_image(record.project_id, body, force=not is_off)
            except GoogleApiError as error:
                # The answer to a first request may have been lost: what is there then, counts.
                if error.code != _TAKEN:
                    raise _unmade(name, error.message) from error
            stage.counts(name)
        found = cloud.api.find(Service.COMPUTE, _path(record.project_id, name))
        if found is None:
            raise _unmade(name, "Google does not know it")
        if found.get("labels") != body["labels"]:
            raise _unmade(name, "another image has got its name meanwhile")
        if found.get("status") != "READY" or not found.get("diskSizeGb"):
            raise _unmade(name, f"Google calls it {found.get('status')}")
        return _read(found, record.project_id)

    def found(self, cloud: Cloud, project: str) -> Sequence[OwnImage]:
        """All images of a project with the label."""
        try:
            return [_read(it, project) for it in _list(cloud.api, project, images.BAKED)]
        except GoogleApiError as error:
            if error.code == _FORBIDDEN:
                return ()
            raise


def settle(context: Context, cloud: Cloud, record: Record) -> None:
    """Wait for the image that a run has begun and not waited for; delete what has come to nothing.

    Only then may the disk go of which it is made. Does nothing for a cluster that is for no image.
    """
    if not record.name_prefix.endswith(names.BAKE):
        return
    owner = Owner.of(record.project_id, record.name_prefix, cloud.folder.location.url)
    with context.progress.stage(StageName.RELEASE, OnInterrupt.LEAVES_REST) as stage:
        deadline = stage.deadline(_MAKING, _POLL)
        while True:
            mine = list(_list(cloud.api, record.project_id, MARKER, owner.id))
            is_over = all(it.get("status") in {"READY", "FAILED"} for it in mine)
            if is_over or deadline.is_over:
                break
            stage.news("Google still makes an image of the disk")
            deadline.pause()
    for it in mine:
        if it.get("status") == "FAILED":
            context.console.progress(f"Deleting the image {it['name']}, which came to nothing")
            cloud.api.delete(Service.COMPUTE, _path(record.project_id, it["name"]))


def _list(api: GoogleApi, project: str, label: str, value: str = "") -> Iterator[dict[str, Any]]:
    """The images of a project that carry a label, by name."""
    wanted = f"labels.{label}={value}" if value else f"labels.{label}:*"
    return api.pages("GET", f"projects/{project}/global/images", "items", {"filter": wanted})


def _stop(api: GoogleApi, record: Record, vm: Vm, stage: OpenStage) -> bool:
    """Have the group stop the VM, and wait for it; whether it is off.

    Where that can't be, the image is forced: all that was written is on the disk by now.
    """
    group = names.GROUP.of(record.name_prefix)
    try:
        api.stop_managed(record.project_id, record.zone, group, vm.name)
    except GoogleApiError as error:
        stage.news(f"Google does not stop it: {error.message}")
        return False
    deadline = stage.deadline(_STOPPING, _POLL)
    while True:
        found = api.find(Service.COMPUTE, _instance(record, vm))
        if found is None:
            raise _unmade("", f"the VM {vm.name} is gone")
        is_off = found.get("status") == "TERMINATED"
        if is_off or deadline.is_over:
            return is_off
        deadline.pause()


def _body(  # noqa: PLR0913, PLR0917 - each is a source of its own
    context: Context, cloud: Cloud, record: Record, vm: Vm, name: str, told: Mapping[str, Any]
) -> dict[str, Any]:
    """What images.insert is asked for."""
    owner = Owner.of(record.project_id, record.name_prefix, cloud.folder.location.url)
    disks = cloud.api.get(Service.COMPUTE, _instance(record, vm))["disks"]
    source = next(disk["source"] for disk in disks if disk.get("boot"))
    family = record.image.get("family") or images.family_of(record.image.get("name") or "")
    own = {
        MARKER: owner.id,
        images.BAKED: str(told.get("installed") or "unknown"),
        images.FROM: str(family or "unknown"),
        images.PROGRAMS: "_".join(map(str, told.get("programs") or ())) or "none",
        _DRIVER: str(told.get("driver") or "none").replace(".", "-"),
    }
    key = context.settings.kms_key
    return {
        **({"imageEncryptionKey": {"kmsKeyName": key}} if key else {}),
        "name": name,
        "family": record.name_prefix,
        "description": f"made of {family} on {vm.machine_type} by aiinfra Bake",
        "sourceDisk": source,
        "labels": {**context.settings.labels, **own},
    }


def _read(found: Mapping[str, Any], project: str) -> OwnImage:
    labels = found.get("labels") or {}
    stored = int(found.get("archiveSizeBytes") or 0)
    driver = str(labels.get(_DRIVER, "none")).replace("-", ".")
    return OwnImage(
        project=project,
        name=str(found["name"]),
        family=str(found.get("family") or ""),
        made=str(found.get("creationTimestamp") or ""),
        state=str(found.get("status") or ""),
        disk_gb=int(found.get("diskSizeGb") or 0),
        stored_gb=(Decimal(stored) / 10**9).quantize(Decimal("0.1")) if stored else None,
        made_from=str(labels.get(images.FROM, "")),
        driver="" if driver == "none" else driver,
        installed=str(labels[images.BAKED]),
    )


def _instance(record: Record, vm: Vm) -> str:
    return f"projects/{record.project_id}/zones/{record.zone}/instances/{vm.name}"


def _path(project: str, name: str) -> str:
    return f"projects/{project}/global/images/{name}"


def _unmade(name: str, why: str) -> ClusterError:
    return ClusterError(
        f"The image {name} was not made".replace("  ", " "),
        code=Code.IMAGE_NOT_MADE,
        why=why,
        fix="run Bake again, once what `why` says is fixed",
    )
