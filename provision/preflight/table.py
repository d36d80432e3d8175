"""Every online check: what it asks of Google, and what its failure means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.preflight import (
    buckets,
    disks,
    gke,
    images,
    networks,
    project,
    quotas,
    strangers,
    zones,
)
from provision.settings.choices import OnlineCheck

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provision.preflight.case import Case, Finding


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check.

    Attributes:
        name: What SKIP_CHECKS calls it.
        calls: The methods of Google's APIs that it calls.
        says: What a failure says, after "The run ends, because".
        find: Looks, and gives what it finds.
        applies: Whether there is anything to look at.
    """

    name: OnlineCheck
    calls: tuple[str, ...]
    says: str
    find: Callable[[Case], Iterator[Finding]]
    applies: Callable[[Case], bool] = lambda _: True


CHECKS: Final = (
    Check(
        name=OnlineCheck.BILLING,
        calls=("cloudbilling.projects.getBillingInfo",),
        says="nobody pays for the project; with the command that links an account",
        find=project.billing,
    ),
    Check(
        name=OnlineCheck.APIS,
        calls=("serviceusage.services.list",),
        says="APIs are not enabled: all of them, and the one command that enables them",
        find=project.apis,
    ),
    Check(
        name=OnlineCheck.PERMISSIONS,
        calls=("cloudresourcemanager.projects.testIamPermissions",),
        says="permissions on the project are missing that this env.list needs: all of them, and"
        " the commands that grant roles which have them",
        find=project.held,
    ),
    Check(
        name=OnlineCheck.ZONE,
        calls=("compute.zones.get",),
        says="a zone is not there, not in the region, or down",
        find=zones.zone,
    ),
    Check(
        name=OnlineCheck.MACHINE_TYPE,
        calls=("compute.machineTypes.get", "compute.machineTypes.aggregatedList"),
        says="the zone has not the machine type; with the zones that have it, the nearest first",
        find=zones.machine_type,
    ),
    Check(
        name=OnlineCheck.ACCELERATOR,
        calls=(
            "compute.acceleratorTypes.get",
            "compute.acceleratorTypes.aggregatedList",
            "compute.machineTypes.get",
        ),
        says="the zone has not the GPU, one machine can't have so many, or the machine type has"
        " others",
        find=zones.accelerator,
    ),
    Check(
        name=OnlineCheck.IMAGE,
        calls=(
            "compute.images.get",
            "compute.images.getFromFamily",
            "compute.machineTypes.get",
        ),
        says="the image, or its family, is not there, is larger than the boot disk, or is for"
        " other processors",
        find=images.image,
        applies=lambda case: not case.is_gke,
    ),
    Check(
        name=OnlineCheck.DISK,
        calls=("compute.diskTypes.get",),
        says="the zone has not the type of the boot disks, or not in their size",
        find=disks.disk,
    ),
    Check(
        name=OnlineCheck.QUOTA,
        calls=(
            "compute.regions.get",
            "compute.projects.get",
            "serviceusage.services.consumerQuotaMetrics.get",
            "compute.instances.aggregatedList",
        ),
        says="a quota is too small: its metric, limit and usage, what is needed, and where to ask"
        " for more. Spot and flex start use preemptible quota. What the deployment has already is"
        " not counted twice",
        find=quotas.quota,
    ),
    Check(
        name=OnlineCheck.NETWORK,
        calls=("compute.networks.get", "compute.subnetworks.get"),
        says="the default network is not there, or a foreign subnetwork in the deployment's own"
        " network has ranges that it needs",
        find=networks.network,
    ),
    Check(
        name=OnlineCheck.BUCKETS,
        calls=("storage.buckets.get",),
        says="a bucket to be mounted does not exist",
        find=buckets.buckets,
        applies=lambda case: bool(case.settings.gcs_mount_list),
    ),
    Check(
        name=OnlineCheck.NAMES,
        calls=(
            "compute.instanceGroupManagers.get",
            "compute.networks.get",
            "compute.subnetworks.get",
            "compute.routers.get",
            "compute.firewalls.get",
            "container.projects.locations.clusters.get",
            "iam.projects.serviceAccounts.get",
        ),
        says="something of a name that would be used exists without this deployment's marker",
        find=strangers.taken,
    ),
    Check(
        name=OnlineCheck.GKE_VERSION,
        calls=("container.projects.locations.getServerConfig",),
        says="GKE has not the version that is asked for, or the channel's usual version lacks a"
        " feature that is; with those that it has",
        find=gke.version,
        applies=lambda case: case.is_gke,
    ),
)
"""All of them, in the order in which their findings are told."""


def markdown() -> str:
    """The page docs/reference/online-checks.md."""
    rows = "\n".join(
        f"| `{check.name}` | {', '.join(f'`{call}`' for call in check.calls)} | {check.says} |"
        for check in CHECKS
    )
    return _PAGE.replace("ROWS", rows)


_PAGE: Final = """\
# Online checks

What Create, Plan and Validate ask of Google before anything is made. All checks are made at the
same time, each question is put once, and all problems are told together, with exit code 4; with 5
where nothing is wrong but that what has our names is not ours. A check that could not be made (its
API is off, the credentials may not ask) is a note and stops nothing.

`SKIP_CHECKS=quota,names` leaves out the checks of these names.

| check | calls | a failure says |
| --- | --- | --- |
ROWS

Before them, and not to be skipped: the credentials give a token (exit code 3), the project exists
(`cloudresourcemanager.projects.get`, exit code 4), and the bucket of the state, where it exists, is
this project's and holds no foreign state (`storage.buckets.get`, `storage.objects.get`, exit code
5).

This page is made by `python -m provision.preflight docs/reference/online-checks.md`.
"""
