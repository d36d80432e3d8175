"""The resources that the tool creates: one row for each type of Terraform resource in `terraform/`.

A row has every fact about its type: its path in Google's API, its import ID in Terraform, where it
carries the marker of its deployment, which other resource it is deleted with, and the permissions
that it needs. Adoption, sweep, the online checks and the kinds of cluster read the rows.
`python -m provision.google.resources FILE` writes the reference page of them.
"""

from __future__ import annotations

import enum
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import limits, names
from provision.codes import Code
from provision.endpoints import Service
from provision.errors import Problem
from provision.google.owner import MARKER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provision.catalogue.names import DerivedName
    from provision.google.owner import Owner


class Marker(enum.Enum):
    """The field of a resource that has the marker.

    `LABELS`: One of the labels; also the whole description, for a type that has one.
    `RESOURCE_LABELS`: Like LABELS; only Kubernetes Engine calls them so.
    """

    DESCRIPTION = "description"
    LABELS = "labels"
    RESOURCE_LABELS = "resourceLabels"


@dataclass(frozen=True, kw_only=True)
class Look:
    """How to find a resource that is not in the state, and how to import it.

    The fields in braces are Terraform's names of planned values.
    """

    service: Service
    path: str  # the path in the API; for a part of another resource, the parent's path
    # Terraform's import ID, in the form that provider 7.45.0 accepts and that leads to an empty
    # plan afterwards; "" for the path
    import_id: str = ""
    # the field that has the marker; for a part, the parent's field
    marker: Marker = Marker.DESCRIPTION
    part: str = ""  # for a part of another resource: the parent's list that contains it
    # Whether Google chooses its name. It is then found in its collection's list by the marker, and
    # Google's name for it becomes the {name} in the import ID.
    by_list: bool = False
    # whether the API may be disabled, or the credentials may lack permission to list the
    # collection; both then mean that there is nothing in it
    may_be_off: bool = False
    # the list's key in the API's response, if it differs from the collection's name
    list_key: str = ""

    @property
    def terms(self) -> set[str]:
        """The planned values that a look-up needs; without them it can't be done."""
        found = set(re.findall(r"{(\w+)}", self.path + self.import_id))
        return found - {"name"} if self.by_list else found

    @property
    def collection(self) -> str:
        """The API's collection that contains it, or its parent, such as "networks"."""
        return self.path.split("/")[-2]

    @property
    def is_global(self) -> bool:
        """Whether it is a global resource, not in a region or zone."""
        return "/global/" in self.path

    def list_path(self, project: str) -> str:
        """The path that lists the whole collection, in all regions and zones."""
        if self.is_global or self.service is not Service.COMPUTE:
            collection = self.path.rpartition("/")[0]
            return collection.format_map({"project": project, "location": "-"})
        return f"projects/{project}/aggregated/{self.collection}"

    def is_of(self, document: Mapping[str, Any], owner: Owner) -> bool:
        """Whether something carries exactly the marker of a deployment."""
        if document.get("description") == owner.text:
            return True
        match self.marker:
            case Marker.DESCRIPTION:
                return False
            case Marker.LABELS | Marker.RESOURCE_LABELS:
                labels = document.get(self.marker.value)
                return isinstance(labels, dict) and bool(labels.get(MARKER) == owner.id)

    def identity(self, values: Mapping[str, Any], document: Mapping[str, Any]) -> str:
        """The import ID of an existing resource."""
        own = {"name": document["name"].rpartition("/")[2]} if self.by_list else {}
        return (self.import_id or self.path).format_map({**values, **own})

    def at(self, values: Mapping[str, Any]) -> str:
        """The path of one of them in the API; no value leads to another one."""
        # The rest of a name is quoted when it is sent.
        parts = {name: str(value).replace("/", "%2F") for name, value in values.items()}
        return self.path.format_map(parts)


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One type of Terraform resource."""

    type: str  # Terraform's name of the type
    noun: str  # what people call one
    # How to find one that is not in the state. None if that is not needed: creating it again, such
    # as a role, changes nothing, and it is deleted with what it is `part_of`.
    lookup: Look | None = None
    part_of: str = ""  # the type that it is deleted with; "" if it is deleted on its own
    names: tuple[DerivedName, ...] = ()  # the names that this tool gives to resources of the type
    # Collection -> the verbs of its permissions on the project that Terraform and this tool need to
    # create and delete one. Permissions that can also be granted on a single bucket or service
    # account are not included: a check on the project would not see such a grant.
    permissions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    @property
    def look(self) -> Look:
        """How to find one of a type that has a look-up."""
        if self.lookup is None:
            raise LookupError(self.type)
        return self.lookup

    def path(self, **values: str) -> str:
        """The path of one of them in the API."""
        return self.look.at(values)


def _compute(path: str) -> Look:
    """The look-up of a Compute Engine type: its path is its import ID, and it has no labels."""
    return Look(service=Service.COMPUTE, path=path)


_GLOBAL: Final = "projects/{project}/global"
_REGION: Final = "projects/{project}/regions/{region}"
_ZONE: Final = "projects/{project}/zones/{zone}"
_LOCATION: Final = "projects/{project}/locations/{location}"

CLUSTER: Final = Resource(
    type="google_container_cluster",
    noun="cluster",
    lookup=Look(
        service=Service.CONTAINER,
        path=f"{_LOCATION}/clusters/{{name}}",
        marker=Marker.RESOURCE_LABELS,
        may_be_off=True,
    ),
    names=(names.CLUSTER,),
    permissions={
        "container.clusters": "create delete get update",
        "container.operations": "get",
        "compute.instanceGroupManagers": "get",
    },
)
NODE_POOL: Final = Resource(
    type="google_container_node_pool",
    noun="node pool",
    lookup=Look(
        service=Service.CONTAINER,
        path=f"{_LOCATION}/clusters/{{cluster}}",
        # The only form that the provider accepts; it has no words between the parts.
        import_id="{project}/{location}/{cluster}/{name}",
        marker=Marker.RESOURCE_LABELS,
        part="nodePools",
        may_be_off=True,
    ),
    part_of=CLUSTER.type,
    names=(names.SYSTEM_POOL, names.EQUAL_POOL),
    permissions={
        "container.clusters": "get update",
        "container.operations": "get",
        "compute.instanceGroupManagers": "get",
    },
)
GROUP: Final = Resource(
    type="google_compute_instance_group_manager",
    noun="group",
    lookup=_compute(f"{_ZONE}/instanceGroupManagers/{{name}}"),
    # The group creates and deletes its VMs and their disks itself.
    names=(names.GROUP, names.INSTANCE),
    permissions={
        "compute.instanceGroupManagers": "create delete get update",
        "compute.instances": "create delete get list setLabels setMetadata setServiceAccount"
        " setTags",
        "compute.disks": "create setLabels",
        "compute.subnetworks": "use",
    },
)
RESIZE_REQUEST: Final = Resource(
    type="google_compute_resize_request",
    noun="resize request",
    lookup=_compute(
        f"{_ZONE}/instanceGroupManagers/{{instance_group_manager}}/resizeRequests/{{name}}"
    ),
    part_of=GROUP.type,
    permissions={"compute.instanceGroupManagers": "get update"},
)
TEMPLATE: Final = Resource(
    type="google_compute_instance_template",
    noun="template",
    lookup=_compute(f"{_GLOBAL}/instanceTemplates/{{name}}"),
    names=(names.TEMPLATE,),
    permissions={"compute.instanceTemplates": "create delete get useReadOnly"},
)
RESOURCE_POLICY: Final = Resource(
    type="google_compute_resource_policy",
    noun="placement policy",
    lookup=_compute(f"{_REGION}/resourcePolicies/{{name}}"),
    names=(names.PLACEMENT_POLICY, names.WORKLOAD_POLICY),
    permissions={"compute.resourcePolicies": "create delete get use"},
)
FILESTORE: Final = Resource(
    type="google_filestore_instance",
    noun="Filestore",
    lookup=Look(
        service=Service.FILESTORE,
        path=f"{_LOCATION}/instances/{{name}}",
        marker=Marker.LABELS,
        may_be_off=True,
    ),
    names=(names.FILESTORE,),
    permissions={"file.instances": "create delete get"},
)
DASHBOARD: Final = Resource(
    type="google_monitoring_dashboard",
    noun="dashboard",
    lookup=Look(
        service=Service.MONITORING,
        # Google's own name has the project's number; Terraform would replace it as another project.
        path="projects/{project}/dashboards/{name}",
        marker=Marker.LABELS,
        by_list=True,
        may_be_off=True,
    ),
    permissions={"monitoring.dashboards": "create delete get"},
)
ROUTER: Final = Resource(
    type="google_compute_router",
    noun="router",
    lookup=_compute(f"{_REGION}/routers/{{name}}"),
    names=(names.ROUTER,),
    permissions={"compute.routers": "create delete get update", "compute.networks": "use"},
)
NAT: Final = Resource(
    type="google_compute_router_nat",
    noun="Cloud NAT",
    lookup=Look(
        service=Service.COMPUTE,
        path=f"{_REGION}/routers/{{router}}",
        import_id=f"{_REGION}/routers/{{router}}/{{name}}",
        part="nats",
    ),
    part_of=ROUTER.type,
    names=(names.NAT,),
    permissions={"compute.routers": "get update"},
)
FIREWALL: Final = Resource(
    type="google_compute_firewall",
    noun="firewall rule",
    lookup=_compute(f"{_GLOBAL}/firewalls/{{name}}"),
    names=(
        names.FIREWALL_INTERNAL,
        names.FIREWALL_SSH,
        names.FIREWALL_RAY_ALLOW,
        names.FIREWALL_RAY_DENY,
        names.FIREWALL_SLURM_ALLOW,
        names.FIREWALL_SLURM_DENY,
        names.FIREWALL_GPU,
        names.FIREWALL_NODES,
        names.FIREWALL_PODS,
    ),
    permissions={"compute.firewalls": "create delete get", "compute.networks": "updatePolicy"},
)
SUBNETWORK: Final = Resource(
    type="google_compute_subnetwork",
    noun="subnetwork",
    lookup=_compute(f"{_REGION}/subnetworks/{{name}}"),
    names=(names.SUBNETWORK, names.GPU_SUBNETWORK),
    permissions={"compute.subnetworks": "create delete get use", "compute.networks": "use"},
)
NETWORK: Final = Resource(
    type="google_compute_network",
    noun="network",
    lookup=_compute(f"{_GLOBAL}/networks/{{name}}"),
    names=(names.NETWORK, names.GPU_NETWORK),
    permissions={"compute.networks": "create delete get use"},
)
SERVICE_ACCOUNT: Final = Resource(
    type="google_service_account",
    noun="service account",
    lookup=Look(
        service=Service.IAM,
        path="projects/{project}/serviceAccounts/{email}",
        list_key="accounts",
    ),
    names=(names.SERVICE_ACCOUNT, names.WORKLOAD_ACCOUNT),
    permissions={"iam.serviceAccounts": "create delete get"},
)
PROJECT_ROLE: Final = Resource(
    type="google_project_iam_member",
    noun="role",
    part_of=SERVICE_ACCOUNT.type,
    permissions={"resourcemanager.projects": "getIamPolicy setIamPolicy"},
)
ACCOUNT_ROLE: Final = Resource(
    type="google_service_account_iam_member",
    noun="role",
    part_of=SERVICE_ACCOUNT.type,
    permissions={"iam.serviceAccounts": "getIamPolicy setIamPolicy"},
)
BUCKET_ROLE: Final = Resource(
    type="google_storage_bucket_iam_member", noun="role", part_of=SERVICE_ACCOUNT.type
)
# It is overwritten; Destroy empties the state folder.
OBJECT: Final = Resource(type="google_storage_bucket_object", noun="object")

ALL: Final = (
    CLUSTER,
    NODE_POOL,
    GROUP,
    RESIZE_REQUEST,
    TEMPLATE,
    RESOURCE_POLICY,
    FILESTORE,
    DASHBOARD,
    ROUTER,
    NAT,
    FIREWALL,
    SUBNETWORK,
    NETWORK,
    PROJECT_ROLE,
    ACCOUNT_ROLE,
    BUCKET_ROLE,
    SERVICE_ACCOUNT,
    OBJECT,
)
"""All types, ordered so that each is unused by the time it is deleted."""

BY_TYPE: Final[Mapping[str, Resource]] = {row.type: row for row in ALL}
"""Terraform's name of the type -> its row."""

SWEPT: Final = tuple(row for row in ALL if row.lookup is not None and not row.part_of)
"""The types that Destroy looks for outside the state, in the order in which it deletes them.

A NAT is deleted with its router; a group's VMs, disks and resize requests with the group; node
pools, and all that GKE created for them, with their cluster. Filestore instances use their network.
"""

_FIRST: Final = (
    CLUSTER,
    NODE_POOL,
    GROUP,
    RESIZE_REQUEST,
    TEMPLATE,
    FILESTORE,
    NETWORK,
    SUBNETWORK,
    DASHBOARD,
    SERVICE_ACCOUNT,
)
_ORDER: Final[Mapping[str, int]] = {
    noun: place for place, noun in enumerate(dict.fromkeys(row.noun for row in (*_FIRST, *ALL)))
}


def noun(type_: str) -> str:
    """What people call a resource; one of a type that has no row, by its type."""
    return BY_TYPE[type_].noun if type_ in BY_TYPE else type_


def place(noun: str) -> int:
    """The place in a list of what people call a resource: what nobody knows stands first."""
    return _ORDER.get(noun, -1)


def places(
    rows: Iterable[Resource], project: str, hosts: Iterable[str]
) -> Iterator[tuple[Resource, str]]:
    """Each type with each project in which there may be some.

    `hosts`: other projects in which it makes firewall rules, and nothing else.
    """
    for row in rows:
        yield from ((row, where) for where in (project, *(hosts if row is FIREWALL else ())))


_HOW_BILLED: Final[Mapping[str, str]] = {
    CLUSTER.type: "per hour: GKE's fee for a cluster",
    NODE_POOL.type: "per node and hour: machine, GPUs, boot disk; nothing without nodes",
    GROUP.type: "per VM and hour: machine, GPUs, boot disk, public address",
    FILESTORE.type: "per GiB and month, used or not",
    NAT.type: "per VM and hour, and per GiB that passes",
    OBJECT.type: "per GiB and month: the state, logs and files, a few cents",
}
"""The types that Google bills -> how; all others are free. Prices: docs/how-to/cost.md."""

BILLED: Final = frozenset(_HOW_BILLED.keys() - {OBJECT.type})
"""Terraform's names of the types that cost more than a few cents while they are there."""

WITHOUT_LOSS: Final = (TEMPLATE, RESOURCE_POLICY, ROUTER, FIREWALL, SUBNETWORK, NETWORK)
"""Those of SWEPT that hold neither machines nor data, in the same order.

A move makes some of them again beside the old ones, so that a killed one leaves both.
"""


def last(link: object) -> str:
    """The name of something by a link, a path or that name; "" for None."""
    return str(link or "").rpartition("/")[2]


def path_in_document(document: Mapping[str, Any]) -> str:
    """The path ("projects/...") of a resource, from the document that the API returns."""
    link = document.get("selfLink")
    return str(link).partition("/v1/")[2] if link else str(document["name"])


def foreign(path: str, other: Owner | None) -> Problem:
    """The problem of a resource with one of our names but not our marker; `other`: whose it is."""
    if other is None:
        why = f"it does not carry the marker {MARKER} of this deployment, so it is not touched"
        fix = (
            "choose another NAME_PREFIX; or, if it is of no use to anybody, delete it and run"
            " Create again"
        )
    else:
        why = f"it belongs to {other.words}, so it is not touched"
        fix = f"choose another NAME_PREFIX; or {way_to(other)}"
    return Problem(
        code=Code.NAME_TAKEN,
        setting="NAME_PREFIX",
        what=f"{path} exists already, and this deployment did not create it",
        why=why,
        fix=fix,
    )


def way_to(other: Owner) -> str:
    """How to work on another deployment of the same prefix, as the end of a sentence."""
    if not other.state:
        return (
            "find the env.list that made it: its state is where its TERRAFORM_GCS_PATH says, or in"
            " the default bucket"
        )
    return f"to work on that deployment, set TERRAFORM_GCS_PATH={other.state.rpartition('/')[0]}"


def page() -> str:
    """The page docs/reference/resources.md."""
    return _PAGE.replace("ROWS", "\n".join(map(_row_of_page, ALL))).replace("LIMITS", _limits())


def _row_of_page(row: Resource) -> str:
    names = ", ".join(f"`{name.of('PREFIX')}`" for name in row.names) or "-"
    needs = [f"`{one}.{verb}`" for one, verbs in row.permissions.items() for verb in verbs.split()]
    billed = _HOW_BILLED.get(row.type, "no")
    return f"| {row.noun} | `{row.type}` | {names} | {billed} | {', '.join(needs) or '-'} |"


def _limits() -> str:
    rows = (
        ("run duration of a machine", f"{limits.LONGEST_RUN // 86400} days at most"),
        ("the same, of VM groups", f"{limits.SHORTEST_GROUP_RUN // 60} minutes at least"),
        ("VMs of one group", f"{limits.MOST_VMS}"),
        ("nodes of one GKE node pool", f"{limits.MOST_NODES}"),
        ("nodes of one GKE cluster", f"{limits.MOST_CLUSTER_NODES}"),
        ("secrets of one env.list", f"{limits.SECRETS}"),
        ("METADATA, all values together", f"{limits.USERS_METADATA_BYTES // 1024} KiB"),
        ("STARTUP_COMMAND", f"{limits.COMMAND_BYTES // 1024} KiB"),
    )
    return "\n".join(f"| {what} | {limit} |" for what, limit in rows)


_PAGE: Final = """\
# What is made, what of it is billed, and limits

Which of these an env.list makes, `Plan` says; with what it costs. `Validate --role` prints the
permissions of one env.list. PREFIX is `NAME_PREFIX`.

| what | Terraform's type | names begin with | billed | permissions on the project |
| --- | --- | --- | --- | --- |
ROWS

## Limits

| of what | limit |
| --- | --- |
LIMITS

Quotas of the project come before these; `Validate` compares them with what the env.list needs.

This page is generated by `make docs`.
"""


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(page(), encoding="utf-8")
