"""The online checks of every kind: what each asks of Google, and what its failure means."""

from __future__ import annotations

from typing import Final

from provision.preflight import (
    buckets,
    disks,
    name_conflicts,
    networks,
    project,
    quotas,
    zones,
)
from provision.preflight.check import Check
from provision.settings.choices import OnlineCheck

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
        applies=lambda ctx: bool(ctx.spec.buckets),
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
        find=name_conflicts.taken,
    ),
)
"""Those that every kind of cluster has, in the order in which their findings are told."""
