"""The online checks of more than one kind, the role with the permissions they take, and their page.

python -m provision.preflight.table FILE
"""

from __future__ import annotations

import sys
from pathlib import Path
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
from provision.preflight.check import Check, rows
from provision.settings.choices import OnlineCheck

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from provision.preflight.check import OfKind
    from provision.spec.cluster import ClusterSpec

CHECKS: Final = (
    Check(name=OnlineCheck.BILLING, find=project.billing),
    Check(name=OnlineCheck.APIS, find=project.apis),
    Check(name=OnlineCheck.PERMISSIONS, find=permissions.held),
    Check(name=OnlineCheck.POLICIES, find=project.policies, of_zone=True),
    Check(name=OnlineCheck.ZONE, find=zones.zone, of_zone=True),
    Check(name=OnlineCheck.MACHINE_TYPE, find=zones.machine_type, of_zone=True),
    Check(name=OnlineCheck.ACCELERATOR, find=zones.accelerator, of_zone=True),
    Check(
        name=OnlineCheck.RESERVATION,
        find=reservations.reservation,
        of_zone=True,
        applies=lambda spec: any(pool.mode.means.reserved for pool in spec.pools),
    ),
    Check(name=OnlineCheck.DISK, find=zones.disk, of_zone=True),
    Check(
        name=OnlineCheck.KMS_KEY,
        find=named.key,
        applies=lambda spec: spec.kms_key is not None,
        of_zone=True,
    ),
    Check(name=OnlineCheck.QUOTA, find=quotas.quota, of_zone=True),
    Check(
        name=OnlineCheck.NETWORK,
        find=networks.network,
        applies=lambda spec: spec.existing is None,
    ),
    Check(name=OnlineCheck.BUCKETS, find=named.buckets, applies=lambda spec: bool(spec.buckets)),
    Check(name=OnlineCheck.SECRETS, find=named.secrets, applies=lambda spec: bool(spec.secrets)),
    Check(name=OnlineCheck.NAMES, find=made.taken),
)
"""The checks of every kind of cluster, in the order in which their findings are listed."""

SUBNETWORK: Final = Check(
    name=OnlineCheck.SUBNETWORK,
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
    if spec.places:
        collections.append({"compute.advice": "capacity"})
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
    for row in resources.SWEPT:
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


def markdown() -> str:
    """The page docs/reference/online-checks.md."""
    listed = (
        f"| `{name}` | {', '.join(f'`{call}`' for call in calls.split())} | {says} |"
        for name, (calls, says) in rows().items()
    )
    return _PAGE.replace("ROWS", "\n".join(listed))


_PAGE: Final = """\
# Online checks

What Create, Plan and Validate ask Google before anything is created. All checks run at the same
time, each request is sent only once, and all problems are reported together, with exit code 4; with
exit code 5 if the only problems are resources with our names that belong to somebody else.

`online_checks` of `--output json` says of each whether it `passed`, `failed`, is `unchecked` or was
`skipped` (`SKIP_CHECKS=quota,names` skips the checks of these names); or that it passed `partly`:
a note says what it could not see, such as a reservation of somebody else's.

Where Google does not answer a check, or the credentials may not make it, it is unchecked. To Create
and Plan that is a note (`not-checked`), as Google has the last word anyway. Validate fails with it,
with exit code 4 and the code of the reason: `unreachable`, which may be tried again, or
`permission-missing`.

| check | calls | a failure means |
| --- | --- | --- |
ROWS

Three checks run before them and can't be skipped: the credentials give a token (exit code 3), the
project exists (`cloudresourcemanager.projects.get`, exit code 4), and the bucket of the state, if
it exists, belongs to this project and has no state of another tool (`storage.buckets.get`,
`storage.objects.get`, exit code 5).

This page is generated by `make docs` from `provision/preflight/checks.tsv`.
"""


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(markdown(), encoding="utf-8")
