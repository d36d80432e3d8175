"""Things that exist but that the state does not know: what a killed run leaves behind.

Names are deterministic and everything carries the marker of its deployment, so nothing is ever
lost: Create brings such a thing into the state by an import block, Destroy removes it. A thing of
the same name without the marker is somebody else's and never touched.
"""

from __future__ import annotations

import concurrent.futures
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.errors import Problem, StateError, TerraformError
from provision.google_api import GoogleApiError, Service

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from provision.google_api import GoogleApi
    from provision.plans import Creation

MARKER: Final = "aiinfra-cluster"
_IN_USE: Final = 400
"""Compute Engine's code for "is already being used by"."""
_AT_ONCE: Final = 8
"""Look-ups that are under way at the same time."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """How one type of resource is found and brought into a state.

    Attributes:
        path: Where Google has it, in terms of the planned values; its parent's for a part.
        import_id: Terraform's import id, in the same terms.
        service: The API.
        part: For a part of another resource: the parent's list that holds it.
    """

    path: str
    import_id: str
    service: Service = Service.COMPUTE
    part: str = ""

    @property
    def terms(self) -> set[str]:
        """The planned values that are needed; a plan that does not know them can't be asked."""
        return set(re.findall(r"{(\w+)}", self.path + self.import_id))


def _global(collection: str) -> Look:
    path = f"projects/{{project}}/global/{collection}/{{name}}"
    return Look(path=path, import_id=path)


def _regional(collection: str) -> Look:
    path = f"projects/{{project}}/regions/{{region}}/{collection}/{{name}}"
    return Look(path=path, import_id=path)


_ROUTER: Final = "projects/{project}/regions/{region}/routers/{router}"

# Import ids: the forms that provider 7.45.0 takes with an empty plan afterwards. IAM members are
# not here: granting a role again changes nothing, so a repeated create is no conflict.
LOOKS: Final[Mapping[str, Look]] = {
    "google_compute_network": _global("networks"),
    "google_compute_firewall": _global("firewalls"),
    "google_compute_instance_template": _global("instanceTemplates"),
    "google_compute_subnetwork": _regional("subnetworks"),
    "google_compute_router": _regional("routers"),
    "google_compute_router_nat": Look(path=_ROUTER, import_id=_ROUTER + "/{name}", part="nats"),
    "google_compute_instance_group_manager": Look(
        path="projects/{project}/zones/{zone}/instanceGroupManagers/{name}",
        import_id="projects/{project}/zones/{zone}/instanceGroupManagers/{name}",
    ),
    "google_service_account": Look(
        path="projects/{project}/serviceAccounts/{email}",
        import_id="projects/{project}/serviceAccounts/{email}",
        service=Service.IAM,
    ),
}

COLLECTIONS: Final = frozenset(
    look.path.split("/")[-2] for look in LOOKS.values() if look.service is Service.COMPUTE
)
"""Compute Engine's collections in which the tool makes something itself."""

# What Destroy sweeps, in an order in which nothing that goes is still in use. A NAT goes with its
# router, a group's VMs and disks with the group.
_SWEPT: Final = (
    "instanceGroupManagers",
    "instanceTemplates",
    "routers",
    "firewalls",
    "subnetworks",
    "networks",
)


@dataclass(frozen=True)
class Orphan:
    """Something that exists, carries our marker, and is not in the state.

    Attributes:
        address: Where the Terraform root has it.
        import_id: How Terraform imports it.
        displaces: Whether the state has another object at that address.
    """

    address: str
    import_id: str
    displaces: bool


def find(
    creations: Sequence[Creation], cluster_id: str, addresses: Collection[str], api: GoogleApi
) -> list[Orphan]:
    """Find what a plan would make although it exists.

    Args:
        creations: What the plan would make.
        cluster_id: The marker's value.
        addresses: Where the state has something, be it gone from the cloud.
        api: Google.

    Raises:
        StateError: Something of such a name exists and is not ours; all of it is named.
    """
    known = [
        creation
        for creation in creations
        if creation.type in LOOKS and LOOKS[creation.type].terms <= creation.values.keys()
    ]
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(lambda creation: _look(creation, api), known))
    pairs = [
        (creation, document)
        for creation, document in zip(known, found, strict=True)
        if document is not None
    ]
    strangers = [creation for creation, document in pairs if not _is_ours(document, cluster_id)]
    if strangers:
        raise StateError.of([_stranger(creation) for creation in strangers])
    return [
        Orphan(
            creation.address,
            LOOKS[creation.type].import_id.format_map(creation.values),
            displaces=creation.address in addresses,
        )
        for creation, _ in pairs
    ]


def import_blocks(orphans: Sequence[Orphan]) -> dict[str, Any]:
    """Terraform's import blocks for them, as a JSON configuration."""
    return {"import": [{"to": orphan.address, "id": orphan.import_id} for orphan in orphans]}


def sweep(  # noqa: PLR0913 - one of them is a choice between two ways
    project: str,
    cluster_id: str,
    known: Collection[str],
    api: GoogleApi,
    tell: Callable[[str], None],
    *,
    last: bool,
) -> int:
    """Remove what carries the marker and is not in the state; returns how many there were.

    Args:
        project: Where to look.
        cluster_id: The marker's value.
        known: Paths ("projects/..."), addresses and ids of what is in the state: Terraform's to
            remove.
        api: Google.
        tell: Takes a sentence for each that is removed.
        last: Nothing uses anything any more; before, what is in use is left for the last sweep.

    Raises:
        TerraformError: Something can't be removed.
    """
    count = 0
    for path, service in _marked(project, cluster_id, api):
        if service is Service.IAM:
            email = path.rpartition("/")[2]
            kept = _roles_in_state(project, email, known)
            api.revoke(project, email, kept)
            # Roles of an account that is gone could no longer be taken from it.
            if kept or email in known:
                continue
        if path not in known and _delete(api, service, path, in_use_is_fine=not last):
            tell(f"Removed {path}: a run that ended early left it behind")
            count += 1
    return count


def _roles_in_state(project: str, email: str, known: Collection[str]) -> set[str]:
    """The roles of an account that are Terraform's to take, from the ids of IAM members."""
    prefix, suffix = f"{project}/", f"/serviceAccount:{email}"
    return {one.removeprefix(prefix).removesuffix(suffix) for one in known if one.endswith(suffix)}


def _marked(project: str, cluster_id: str, api: GoogleApi) -> Iterator[tuple[str, Service]]:
    """What carries the marker, in an order in which nothing that goes is still in use."""
    for collection in _SWEPT:
        for path in api.marked(project, collection, _text(cluster_id)):
            yield path, Service.COMPUTE
    for account in api.service_accounts(project):
        if account.get("description") == _text(cluster_id):
            yield account["name"], Service.IAM


def _delete(api: GoogleApi, service: Service, path: str, *, in_use_is_fine: bool) -> bool:
    try:
        api.delete(service, path)
    except GoogleApiError as error:
        if in_use_is_fine and error.code == _IN_USE:
            return False
        raise TerraformError(
            f"{path} could not be removed",
            why=error.message,
            fix="mend what Google names and run Destroy again",
        ) from error
    return True


def _text(cluster_id: str) -> str:
    """The marker where a type has no labels: the whole description."""
    return f"{MARKER}={cluster_id}"


def _look(creation: Creation, api: GoogleApi) -> Mapping[str, Any] | None:
    """The object that the plan would make, if it exists; the parent for a part of one."""
    look = LOOKS[creation.type]
    document = api.find(look.service, look.path.format_map(creation.values))
    if document is None or not look.part:
        return document
    parts = [part["name"] for part in document.get(look.part, [])]
    return document if creation.values["name"] in parts else None


def _is_ours(document: Mapping[str, Any], cluster_id: str) -> bool:
    labels = document.get("labels", {}) | document.get("properties", {}).get("labels", {})
    return bool(
        labels.get(MARKER) == cluster_id or document.get("description") == _text(cluster_id)
    )


def _stranger(creation: Creation) -> Problem:
    path = LOOKS[creation.type].import_id.format_map(creation.values)
    return Problem(
        setting="NAME_PREFIX",
        what=f"{path} exists already, and this deployment did not make it",
        why=f"it does not carry the marker {MARKER} of this deployment, so it is not touched",
        fix="choose another NAME_PREFIX; or, if it is of no use to anybody, delete it and run"
        " Create again",
    )
