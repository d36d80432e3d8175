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

from provision.errors import Problem, StateError
from provision.google.api import Service

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from provision.google.api import GoogleApi
    from provision.terraform.plan import Creation

MARKER: Final = "aiinfra-cluster"
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
        by_marker: Google has chosen its name: it is found in the list of its kind by the marker,
            and what Google says is the {name} of the import id.
    """

    path: str
    import_id: str
    service: Service = Service.COMPUTE
    part: str = ""
    by_marker: bool = False

    @property
    def terms(self) -> set[str]:
        """The planned values that are needed; a plan that does not know them can't be asked."""
        names = set(re.findall(r"{(\w+)}", self.path + self.import_id))
        return names - {"name"} if self.by_marker else names

    def identity(self, values: Mapping[str, Any], document: Mapping[str, Any]) -> str:
        """The import id of what was found, by the planned values and Google's own words."""
        own = {"name": document["name"].rpartition("/")[2]} if self.by_marker else {}
        return self.import_id.format_map({**values, **own})


def _global(collection: str) -> Look:
    path = f"projects/{{project}}/global/{collection}/{{name}}"
    return Look(path=path, import_id=path)


def _regional(collection: str) -> Look:
    path = f"projects/{{project}}/regions/{{region}}/{collection}/{{name}}"
    return Look(path=path, import_id=path)


def _zonal(collection: str) -> Look:
    path = f"projects/{{project}}/zones/{{zone}}/{collection}/{{name}}"
    return Look(path=path, import_id=path)


_ROUTER: Final = "projects/{project}/regions/{region}/routers/{router}"

_GROUP: Final = "instanceGroupManagers/{instance_group_manager}"
_CLUSTER: Final = "projects/{project}/locations/{location}/clusters"
_SHARE: Final = "projects/{project}/locations/{location}/instances/{name}"

# Import ids: the forms that provider 7.45.0 takes with an empty plan afterwards. IAM members and
# objects in buckets are not here: granting a role again changes nothing, and an object is written
# over, so a repeated create is no conflict.
LOOKS: Final[Mapping[str, Look]] = {
    "google_compute_network": _global("networks"),
    "google_compute_firewall": _global("firewalls"),
    "google_compute_instance_template": _global("instanceTemplates"),
    "google_compute_subnetwork": _regional("subnetworks"),
    "google_compute_router": _regional("routers"),
    "google_compute_router_nat": Look(path=_ROUTER, import_id=_ROUTER + "/{name}", part="nats"),
    "google_compute_resource_policy": _regional("resourcePolicies"),
    "google_compute_instance_group_manager": _zonal("instanceGroupManagers"),
    "google_compute_resize_request": _zonal(f"{_GROUP}/resizeRequests"),
    "google_container_cluster": Look(
        path=_CLUSTER + "/{name}", import_id=_CLUSTER + "/{name}", service=Service.CONTAINER
    ),
    "google_container_node_pool": Look(
        path=_CLUSTER + "/{cluster}",
        # The one form without words between the parts that the provider takes.
        import_id="{project}/{location}/{cluster}/{name}",
        service=Service.CONTAINER,
        part="nodePools",
    ),
    "google_filestore_instance": Look(path=_SHARE, import_id=_SHARE, service=Service.FILESTORE),
    "google_monitoring_dashboard": Look(
        path="projects/{project}/dashboards",
        # Google's own name has the project's number, and a project that differs is replaced.
        import_id="projects/{project}/dashboards/{name}",
        service=Service.MONITORING,
        by_marker=True,
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
        found = list(pool.map(lambda creation: _look(creation, cluster_id, api), known))
    pairs = [
        (creation, document)
        for creation, document in zip(known, found, strict=True)
        if document is not None
    ]
    strangers = [creation for creation, document in pairs if not is_ours(document, cluster_id)]
    if strangers:
        raise StateError.of(
            [
                stranger(LOOKS[creation.type].import_id.format_map(creation.values))
                for creation in strangers
            ]
        )
    return [
        Orphan(
            creation.address,
            LOOKS[creation.type].identity(creation.values, document),
            displaces=creation.address in addresses,
        )
        for creation, document in pairs
    ]


def import_blocks(orphans: Sequence[Orphan]) -> dict[str, Any]:
    """Terraform's import blocks for them, as a JSON configuration."""
    return {"import": [{"to": orphan.address, "id": orphan.import_id} for orphan in orphans]}


def listed(service: Service, project: str, api: GoogleApi) -> list[dict[str, Any]]:
    """All that a project has of what the tool makes by this API."""
    match service:
        case Service.CONTAINER:
            return [
                {**one, "name": one["selfLink"].partition("/v1/")[2]}
                for one in api.clusters(project)
            ]
        case Service.FILESTORE:
            return api.filestores(project)
        case Service.MONITORING:
            return api.dashboards(project)
        case _:
            return api.service_accounts(project)


def marker_text(cluster_id: str) -> str:
    """The marker where a type has no labels: the whole description."""
    return f"{MARKER}={cluster_id}"


def _look(creation: Creation, cluster_id: str, api: GoogleApi) -> Mapping[str, Any] | None:
    """The object that the plan would make, if it exists; the parent for a part of one."""
    look = LOOKS[creation.type]
    if look.by_marker:
        found = listed(look.service, creation.values["project"], api)
        return next((one for one in found if is_ours(one, cluster_id)), None)
    document = api.find(look.service, look.path.format_map(creation.values))
    if document is None or not look.part:
        return document
    parts = [part["name"] for part in document.get(look.part, [])]
    return document if creation.values["name"] in parts else None


def is_ours(document: Mapping[str, Any], cluster_id: str) -> bool:
    """Whether something carries the marker of a deployment, as a label or as its description."""
    labels = {
        **document.get("labels", {}),
        **document.get("resourceLabels", {}),
        **document.get("properties", {}).get("labels", {}),
    }
    return bool(
        labels.get(MARKER) == cluster_id or document.get("description") == marker_text(cluster_id)
    )


def stranger(path: str) -> Problem:
    """What is to be said of something that has one of our names and not our marker.

    Args:
        path: Its name, as Google's API has it.
    """
    return Problem(
        setting="NAME_PREFIX",
        what=f"{path} exists already, and this deployment did not make it",
        why=f"it does not carry the marker {MARKER} of this deployment, so it is not touched",
        fix="choose another NAME_PREFIX; or, if it is of no use to anybody, delete it and run"
        " Create again",
    )
