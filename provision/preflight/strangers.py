"""The check of names: nobody else has what this deployment would make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.catalogue import names
from provision.google.api import Service
from provision.lifecycle import adopt
from provision.preflight.case import Foreign

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.preflight.case import Case, Finding


def taken(case: Case) -> Iterator[Finding]:
    """What is there under our names carries our marker."""
    for service, path in _paths(case):
        found = case.answers.find(service, path)
        if found is None:
            continue
        # Of all types GKE's clusters alone call their labels so.
        marked = {**found, "labels": found.get("resourceLabels") or found.get("labels", {})}
        if not adopt.is_ours(marked, case.cluster_id):
            yield Foreign(adopt.stranger(path))


def _paths(case: Case) -> Iterator[tuple[Service, str]]:
    settings, project = case.settings, f"projects/{case.project}"
    prefix, region = settings.name_prefix, f"{project}/regions/{settings.region}"
    if case.is_gke:
        cluster = f"{project}/locations/{settings.region}/clusters/{names.CLUSTER.of(prefix)}"
        yield Service.CONTAINER, cluster
    else:
        zone = f"{project}/zones/{settings.zone}"
        yield Service.COMPUTE, f"{zone}/instanceGroupManagers/{names.GROUP.of(prefix)}"
    if settings.service_account == "dedicated":
        domain = ".".join(reversed(case.project.split(":"))) + ".iam.gserviceaccount.com"
        email = f"{names.SERVICE_ACCOUNT.of(prefix)}@{domain}"
        yield Service.IAM, f"{project}/serviceAccounts/{email}"
    if case.makes_network:
        yield Service.COMPUTE, f"{project}/global/networks/{names.NETWORK.of(prefix)}"
        yield Service.COMPUTE, f"{region}/subnetworks/{names.SUBNETWORK.of(prefix)}"
        yield Service.COMPUTE, f"{region}/routers/{names.ROUTER.of(prefix)}"
        for rule in (names.FIREWALL_INTERNAL, names.FIREWALL_SSH):
            yield Service.COMPUTE, f"{project}/global/firewalls/{rule.of(prefix)}"
