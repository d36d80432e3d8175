"""The online checks of more than one kind: what each calls, means, and takes in permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue.accounts import reads
from provision.google import resources
from provision.preflight import (
    future,
    made,
    named,
    networks,
    permissions,
    project,
    quotas,
    reservations,
    zones,
)
from provision.preflight.check import Check
from provision.settings.choices import OnlineCheck
from provision.state.location import DEEPEST

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from provision.preflight.check import OfKind
    from provision.spec.cluster import ClusterSpec

CHECKS: Final = (
    Check(
        name=OnlineCheck.BILLING,
        calls=("cloudbilling.projects.getBillingInfo",),
        says="billing is not enabled for the project; the fix links a billing account",
        find=project.billing,
    ),
    Check(
        name=OnlineCheck.APIS,
        calls=("serviceusage.services.list",),
        says="APIs are not enabled; the problem lists them all, the fix is one command",
        find=project.apis,
    ),
    Check(
        name=OnlineCheck.PERMISSIONS,
        calls=(
            "cloudresourcemanager.projects.testIamPermissions",
            "iam.projects.serviceAccounts.get",
            "iam.projects.serviceAccounts.testIamPermissions",
        ),
        says="permissions on the project that this env.list needs are missing; the problem lists"
        " them all, the fix has the commands that grant roles with them. Or the account that"
        " SERVICE_ACCOUNT names, or the default one, does not exist, is disabled, or machines may"
        " not be made to act as it",
        find=permissions.held,
    ),
    Check(
        name=OnlineCheck.POLICIES,
        calls=(
            "cloudresourcemanager.projects.get",
            "orgpolicy.projects.policies.getEffectivePolicy",
        ),
        says="a policy of the organization forbids what this env.list asks for: external IPs, VMs"
        " without Secure Boot, guest attributes, new service accounts, images of other projects,"
        " other places; the fix has the setting that avoids it. Where the Organization Policy API"
        " is not enabled, that is a note",
        find=project.policies,
        of_zone=True,
    ),
    Check(
        name=OnlineCheck.ZONE,
        calls=("compute.zones.get",),
        says="a zone does not exist, is not in the region, or is down",
        find=zones.zone,
        of_zone=True,
    ),
    Check(
        name=OnlineCheck.MACHINE_TYPE,
        calls=("compute.machineTypes.get", "compute.machineTypes.aggregatedList"),
        says="the zone does not have the machine type; the problem lists the zones that have it,"
        " the nearest first",
        find=zones.machine_type,
        of_zone=True,
    ),
    Check(
        name=OnlineCheck.ACCELERATOR,
        calls=(
            "compute.acceleratorTypes.get",
            "compute.acceleratorTypes.aggregatedList",
            "compute.machineTypes.get",
        ),
        says="the zone does not have the GPU, one machine can't have that many, or the machine type"
        " has other GPUs",
        find=zones.accelerator,
        of_zone=True,
    ),
    Check(
        name=OnlineCheck.RESERVATION,
        calls=(
            "compute.reservations.get",
            "compute.reservations.aggregatedList",
            "compute.reservationBlocks.get",
            "compute.reservationBlocks.list",
            "compute.reservationSubBlocks.get",
            "compute.reservationSubBlocks.list",
            "compute.futureReservations.list",
            "cloudresourcemanager.projects.get",
            "compute.instances.aggregatedList",
        ),
        says="a reservation does not exist, has other machines or is in another zone, is not shared"
        " with the project, can't be named, has not begun, or has too few machines left; or a"
        " block of it does not exist. Machines that its future reservation is still to give it end"
        " the run with exit code 75. What its owner does not let these credentials read is a note."
        " It also decides on the provisioning model, and notes end, health and maintenance",
        find=reservations.reservation,
        of_zone=True,
        applies=reservations.is_needed,
    ),
    Check(
        name=OnlineCheck.DISK,
        calls=("compute.diskTypes.get",),
        says="the zone does not have the type of the boot disks, or not in their size",
        find=zones.disk,
        of_zone=True,
    ),
    Check(
        name=OnlineCheck.KMS_KEY,
        calls=(
            "cloudkms.projects.locations.keyRings.cryptoKeys.get",
            "cloudkms.projects.locations.keyRings.cryptoKeys.getIamPolicy",
            "cloudkms.projects.locations.keyRings.getIamPolicy",
            "cloudresourcemanager.projects.getIamPolicy",
        ),
        says="the key does not exist, can't encrypt, is in another place, or Google's service"
        " agents may not use it; the fix has the commands for whoever keeps the keys. What these"
        " credentials may not see is a note",
        find=named.key,
        applies=lambda spec: spec.kms_key is not None,
        of_zone=True,
    ),
    Check(
        name=OnlineCheck.QUOTA,
        calls=(
            "compute.regions.get",
            "compute.projects.get",
            "serviceusage.services.consumerQuotaMetrics.get",
            "compute.instances.aggregatedList",
            "cloudquotas.projects.locations.services.quotaInfos.get",
            "file.projects.locations.instances.list",
        ),
        says="a quota of machines, disks, local SSDs, addresses, networks, subnetworks, routers,"
        " firewall rules, resource policies or shares is too small; the problem has its metric,"
        " limit and usage and what is needed, the fix where to request an increase. Spot and flex"
        " start use preemptible quota, machines on demand with MAX_RUN_DURATION up to 7 days"
        " either. What the deployment uses already is not counted twice; what a move makes beside"
        " the old is counted",
        find=quotas.quota,
        of_zone=True,
    ),
    Check(
        name=OnlineCheck.NETWORK,
        calls=("compute.networks.get", "compute.subnetworks.get", "compute.routers.list"),
        says="the default network does not exist, or VMs without addresses have no way out of it;"
        " or somebody else's subnetwork in the deployment's own network has IP ranges that it"
        " needs",
        find=networks.network,
        applies=lambda spec: spec.existing is None,
    ),
    Check(
        name=OnlineCheck.BUCKETS,
        calls=(
            "storage.buckets.get",
            "storage.buckets.getIamPolicy",
            "storage.objects.get",
            "storage.objects.list",
        ),
        says="a bucket to mount does not exist, or holds the state of a deployment, in a folder"
        f" `<NAME_PREFIX>-deployment` with up to {DEEPEST} folders above it; each machine could"
        " change that",
        find=named.buckets,
        applies=lambda spec: bool(spec.buckets),
    ),
    Check(
        name=OnlineCheck.SECRETS,
        calls=("secretmanager.projects.secrets.get",),
        says="a secret that is to be read does not exist",
        find=named.secrets,
        applies=lambda spec: bool(spec.secrets),
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
        says="a resource with a name that would be used exists without this deployment's marker",
        find=made.taken,
    ),
)
"""The checks of every kind of cluster, in the order in which their findings are listed."""

SUBNETWORK: Final = Check(
    name=OnlineCheck.SUBNETWORK,
    calls=(
        "compute.projects.getXpnHost",
        "compute.networks.get",
        "compute.subnetworks.get",
        "compute.subnetworks.testIamPermissions",
        "compute.subnetworks.getIamPolicy",
        "cloudresourcemanager.projects.get",
        "cloudresourcemanager.projects.getIamPolicy",
        "cloudresourcemanager.projects.testIamPermissions",
        "compute.routers.list",
        "compute.firewalls.list",
        "compute.instances.aggregatedList",
    ),
    says="with NETWORK_CONFIG=existing: the project is not attached to the host project; a"
    " subnetwork does not exist, is of another network or not for interfaces of these GPUs, may not"
    " be used by these credentials or by Google's account that makes VMs, has too few free"
    " addresses, or no way to Google's APIs; with MAKE_FIREWALL, its firewall rules can't be made."
    " What its owner does not let these credentials see is a note; so are firewall rules that are"
    " not there, with the commands and the Terraform that make them",
    find=networks.existing,
    of_zone=True,
    applies=lambda spec: spec.existing is not None,
)


_FOR_EVERY_RUN: Final[Mapping[str, str]] = {
    "compute.disks": "list",
    "compute.globalOperations": "get list",
    "compute.instanceGroupManagers": "get list",
    "compute.instances": "get list",
    "compute.projects": "get",
    "compute.regionOperations": "get list",
    "compute.regions": "get",
    "compute.zoneOperations": "get list",
    "resourcemanager.projects": "get",
    "container.operations": "list",
    "storage.buckets": "get getIamPolicy",
    "storage.objects": "create delete get list update",
}
"""Collection -> the verbs of what every run does: it waits for operations, looks for what a dead
run has left, and keeps its state in a bucket."""

_GROWS: Final = {"compute.firewalls": "update", "compute.subnetworks": "expandIpCidrRange"}

_KEYS: Final = "cloudkms.projects.locations.keyRings.cryptoKeys"
_OF_METHOD: Final[Mapping[str, str]] = {
    "cloudbilling.projects.getBillingInfo": "resourcemanager.projects.get",
    "cloudquotas.projects.locations.services.quotaInfos.get": "cloudquotas.quotas.get",
    "cloudresourcemanager.projects.get": "resourcemanager.projects.get",
    "cloudresourcemanager.projects.getIamPolicy": "resourcemanager.projects.getIamPolicy",
    f"{_KEYS}.get": "cloudkms.cryptoKeys.get",
    f"{_KEYS}.getIamPolicy": "cloudkms.cryptoKeys.getIamPolicy",
    "cloudkms.projects.locations.keyRings.getIamPolicy": "cloudkms.keyRings.getIamPolicy",
    "compute.projects.getXpnHost": "compute.projects.get",
    "container.projects.locations.clusters.get": "container.clusters.get",
    "container.projects.locations.getServerConfig": "container.clusters.list",
    "file.projects.locations.instances.list": "file.instances.list",
    "iam.projects.serviceAccounts.get": "iam.serviceAccounts.get",
    "orgpolicy.projects.policies.getEffectivePolicy": "orgpolicy.policy.get",
    "secretmanager.projects.secrets.get": "secretmanager.secrets.get",
    "serviceusage.services.consumerQuotaMetrics.get": "serviceusage.quotas.get",
}
"""A method of an online check -> its permission, where the method's name is not the permission's.
Believed, as nobody could look them up: docs/development/gotchas.md, 2026-11-23."""


def used(spec: ClusterSpec, of_kind: OfKind) -> list[str]:
    """All permissions on the project that the actions of this env.list use, sorted.

    What machines do as their account is not in it: they act as their own account.
    """
    collections = [_FOR_EVERY_RUN, of_kind.swept, *_looked_up()]
    if spec.makes_network:
        # A larger NETWORK_RANGE; no check asks for it, as a role of before does for all else.
        collections.append(_GROWS)
    if any(map(future.is_sold, spec.pools)):
        collections.append({"compute.advice": "calendarMode"})
    if spec.buckets or of_kind.grants_in_state_folder:
        collections.append({"storage.buckets": "getIamPolicy setIamPolicy"})
    # Another way of CAPACITY may have what this one has not.
    checks = [it for it in (*CHECKS, *of_kind.checks) if it.applies(spec) or spec.way is not None]
    asked = {name for check in checks for name in _asked(check.calls)}
    if spec.service_account == "default":
        asked.add("iam.serviceAccounts.actAs")  # on the account alone would do
    made = permissions.changing(spec, of_kind, makes_bucket=True)
    return sorted({*made, *permissions.listed(collections), *asked})


def reading(every: Iterable[str]) -> list[str]:
    """Those of permissions with which nothing can be changed: all that Plan and Status take."""
    return list(filter(reads, every))


def of_bake(of_kind: OfKind, every: Collection[str]) -> list[str]:
    """The permissions that Bake uses beside those of the other actions, sorted."""
    return sorted(set(permissions.listed([of_kind.bakes])).difference(every))


def role_as_yaml(spec: ClusterSpec, of_kind: OfKind, *, looks: bool = False) -> str:
    """The definition of a custom role, as `gcloud iam roles create --file` reads it."""
    every = used(spec, of_kind)
    baking = [] if looks else of_bake(of_kind, every)
    every = reading(every) if looks else every
    who, does = "aiinfra", "Create, look after and destroy one GPU cluster"
    if looks:
        who, does = "aiinfra_plan", "Plan one GPU cluster, and look at it"
    beside = () if looks else of_kind.beside_the_role
    lines = [
        f"# What aiinfra needs on the project {spec.project_id} for this env.list. Create it with",
        f"#   gcloud iam roles create {who} --project {spec.project_id} --file <this file>",
        *(f"# {line}" for line in beside),
        f"title: {who} for {spec.name_prefix}",
        f"description: {does}",
        "stage: GA",
        "includedPermissions:",
        *(f"- {name}" for name in every),
    ]
    if baking:
        lines += ["# for Bake alone:", *(f"- {name}" for name in baking)]
    return "\n".join(lines) + "\n"


def _looked_up() -> Iterator[Mapping[str, str]]:
    """Where a run looks for what bears its marker, whatever this env.list makes today."""
    for row in resources.ALL:
        if row.lookup is not None and not row.part_of:
            end = f".{row.look.collection}"
            yield from ({it: "get list"} for it in row.permissions if it.endswith(end))


def _asked(methods: Iterable[str]) -> Iterator[str]:
    """The permissions of the methods that an online check calls."""
    for method in methods:
        if method.endswith(".testIamPermissions"):
            continue  # asking for one's own permissions takes none
        service, _, rest = method.partition(".")
        collection, _, verb = rest.rpartition(".")
        verb = {"aggregatedList": "list"}.get(verb, verb)
        yield _OF_METHOD.get(method, f"{service}.{collection}.{verb}")
