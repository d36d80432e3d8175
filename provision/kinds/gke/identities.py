"""The service accounts of a cluster's nodes and pods: whether they are there, and can act.

Of a node nobody says with which number of its account it began, so another account that was made by
the same address can't be told from the first. That is why Create makes none while nodes stand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import accounts, names
from provision.codes import Code
from provision.errors import ClusterError, Problem
from provision.google import service_accounts
from provision.google.lists import Lists
from provision.kinds.gke import control_plane

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.context import Cloud
    from provision.state.location import Place

_NODES: Final = "nodes"
_PODS: Final = "pods"
_DEFAULT: Final = "default"
_LACK: Final = {
    _NODES: "they pull no image, and nobody sees their logs and metrics",
    _PODS: "no bucket, secret or folder of a job is within their reach",
}


def lost(cloud: Cloud, place: Place, document: Mapping[str, Any]) -> Iterator[Problem]:
    """The accounts that are gone or disabled, as far as these credentials may see them."""
    named = {
        str((pool.get("config") or {}).get("serviceAccount") or _DEFAULT)
        for pool in control_plane.node_pools(document).values()
    }
    default = accounts.default(cloud.project_number)
    acts = {default if it == _DEFAULT else it: _NODES for it in sorted(named)}
    if acts:
        workload = names.WORKLOAD_ACCOUNT.of(place.name_prefix)
        acts[accounts.of_project(workload, place.project_id)] = _PODS
    for email, who in acts.items():
        project = service_accounts.project_of(email, place.project_id, cloud.project_number)
        if not project:
            continue
        account = (cloud.lists or Lists(cloud.api)).account(email, project)
        if account.is_lost:
            yield Problem(
                code=Code.ACCOUNT_GONE,
                what=f"the {who} act as {email}, a service account that {account.fate}",
                why=f"they get no token: {_LACK[who]}",
                fix=account.back(),
            )


def require(cloud: Cloud, place: Place) -> None:
    """See that the accounts of nodes and pods are there, before more is built on them."""
    found = list(lost(cloud, place, control_plane.find(cloud.api, place) or {}))
    if found:
        raise ClusterError.of(found)
