"""The service account of machines, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.catalogue import names
from provision.documents.plan import Identity

if TYPE_CHECKING:
    from provision.spec.cluster import ClusterSpec


def of_machines(spec: ClusterSpec, bearer: str) -> Identity:
    """The account that machines act as; a plan knows its roles."""
    match spec.service_account:
        case "dedicated":
            account = names.SERVICE_ACCOUNT.of(spec.name_prefix)
            return Identity(account=account, bearer=bearer, made=True)
        case "default":
            return Identity(account="the project's default account", bearer=bearer, made=False)
        case email:
            return Identity(account=email, bearer=bearer, made=False)
