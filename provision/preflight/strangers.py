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
    from provision.spec.cluster import ClusterSpec


def taken(case: Case[ClusterSpec]) -> Iterator[Finding]:
    """What is there under our names carries our marker."""
    for service, path in _paths(case):
        found = case.answers.find(service, path)
        if found is None:
            continue
        # Of all types GKE's clusters alone call their labels so.
        marked = {**found, "labels": found.get("resourceLabels") or found.get("labels", {})}
        if not adopt.is_ours(marked, case.cluster_id):
            yield Foreign(adopt.stranger(path))


def _paths(case: Case[ClusterSpec]) -> Iterator[tuple[Service, str]]:
    project, prefix = f"projects/{case.project}", case.spec.name_prefix
    region = f"{project}/regions/{case.spec.region}"
    yield case.of_kind.main
    if case.spec.service_account == "dedicated":
        domain = ".".join(reversed(case.project.split(":"))) + ".iam.gserviceaccount.com"
        email = f"{names.SERVICE_ACCOUNT.of(prefix)}@{domain}"
        yield Service.IAM, f"{project}/serviceAccounts/{email}"
    if case.spec.makes_network:
        yield Service.COMPUTE, f"{project}/global/networks/{names.NETWORK.of(prefix)}"
        yield Service.COMPUTE, f"{region}/subnetworks/{names.SUBNETWORK.of(prefix)}"
        yield Service.COMPUTE, f"{region}/routers/{names.ROUTER.of(prefix)}"
        for rule in (names.FIREWALL_INTERNAL, names.FIREWALL_SSH):
            yield Service.COMPUTE, f"{project}/global/firewalls/{rule.of(prefix)}"
