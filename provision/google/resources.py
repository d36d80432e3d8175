"""What the tool makes in the cloud: one row for each type of Terraform resource in `terraform/`.

Everything that is to be known of a type stands in its row: where Google has it, how Terraform
imports it, where it carries the marker of its deployment, with what it goes when it is removed, and
which permissions it takes. Adoption, sweep, the checks and the kinds of clusters read it here.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import names
from provision.errors import Problem
from provision.google.http import Service
from provision.google.owner import MARKER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.catalogue.names import DerivedName
    from provision.google.owner import Owner


class Marker(enum.Enum):
    """Where Google's document of a resource has the marker.

    Attributes:
        DESCRIPTION: It is the whole description.
        LABELS: It is one of the labels, and the whole description of a type that has one.
        RESOURCE_LABELS: The same; Kubernetes Engine alone calls them so.
    """

    DESCRIPTION = "description"
    LABELS = "labels"
    RESOURCE_LABELS = "resourceLabels"


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a resource that the state does not know is found, and brought into the state.

    The terms are Terraform's names of the planned values.

    Attributes:
        service: The API.
        path: Where Google has it; its parent's for a part.
        import_id: Terraform's import id, in the form that provider 7.45.0 takes with an empty plan
            afterwards.
        marker: Where it carries the marker; its parent does for a part.
        part: For a part of another resource: the parent's list that holds it.
        by_list: Google has chosen its name: it is found by the marker in the list of its
            collection, and what Google says is the {name} of the import id.
        may_be_off: The API may be off in the project, or closed to who does not use it: who may
            not list the collection has nothing there.
        list_key: What holds them in the API's list, where that is not called like the collection.
    """

    service: Service
    path: str
    import_id: str
    marker: Marker
    part: str = ""
    by_list: bool = False
    may_be_off: bool = False
    list_key: str = ""

    @property
    def terms(self) -> set[str]:
        """The planned values that are needed; a plan that does not know them can't be asked."""
        found = set(re.findall(r"{(\w+)}", self.path + self.import_id))
        return found - {"name"} if self.by_list else found

    @property
    def collection(self) -> str:
        """The API's collection that it, or its parent, is in, such as "networks"."""
        return self.path.split("/")[-2]

    @property
    def is_global(self) -> bool:
        """Whether it belongs to the project, and to none of its regions and zones."""
        return "/global/" in self.path

    def list_path(self, project: str) -> str:
        """Where Google lists all of the collection, in whatever region or zone they are."""
        if self.is_global or self.service is not Service.COMPUTE:
            collection = self.path.rpartition("/")[0]
            return collection.format_map({"project": project, "location": "-"})
        return f"projects/{project}/aggregated/{self.collection}"

    def is_of(self, document: Mapping[str, Any], owner: Owner) -> bool:
        """Whether something carries exactly the marker of a deployment.

        Args:
            document: What Google says of it, or of its parent.
            owner: The deployment.
        """
        if document.get("description") == owner.text:
            return True
        match self.marker:
            case Marker.DESCRIPTION:
                return False
            case Marker.LABELS | Marker.RESOURCE_LABELS:
                return bool(document.get(self.marker.value, {}).get(MARKER) == owner.id)

    def identity(self, values: Mapping[str, Any], document: Mapping[str, Any]) -> str:
        """The import id of what was found.

        Args:
            values: The planned ones.
            document: What Google says of it.
        """
        own = {"name": document["name"].rpartition("/")[2]} if self.by_list else {}
        return self.import_id.format_map({**values, **own})


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One type of Terraform resource.

    Attributes:
        type: Terraform's name of it.
        lookup: How one is found that the state does not know; None where none can be left behind:
            to make it again changes nothing, and it goes with what it is `part_of`.
        part_of: The type with which Google removes it; "" where it is removed by itself.
        names: What ours are called.
        permissions: Collection -> the methods of its permissions that Terraform and the tool use
            to make and remove one, on the project. What may as well be granted on a single bucket
            or service account is not here: the project's answer would not count it.
    """

    type: str
    lookup: Look | None
    part_of: str = ""
    names: tuple[DerivedName, ...] = ()
    permissions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    @property
    def look(self) -> Look:
        """How one is found, of a type that can be left behind.

        Raises:
            LookupError: None can.
        """
        if self.lookup is None:
            raise LookupError(self.type)
        return self.lookup

    def path(self, **values: str) -> str:
        """Where Google has one of them.

        Args:
            **values: The terms of its path.
        """
        return self.look.path.format_map(values)


def _compute(path: str) -> Look:
    """The look of a type of Compute Engine: its path is its import id, and it has no labels."""
    return Look(service=Service.COMPUTE, path=path, import_id=path, marker=Marker.DESCRIPTION)


_GLOBAL: Final = "projects/{project}/global"
_REGION: Final = "projects/{project}/regions/{region}"
_ZONE: Final = "projects/{project}/zones/{zone}"
_LOCATION: Final = "projects/{project}/locations/{location}"

CLUSTER: Final = Resource(
    type="google_container_cluster",
    lookup=Look(
        service=Service.CONTAINER,
        path=f"{_LOCATION}/clusters/{{name}}",
        import_id=f"{_LOCATION}/clusters/{{name}}",
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
    lookup=Look(
        service=Service.CONTAINER,
        path=f"{_LOCATION}/clusters/{{cluster}}",
        # The one form without words between the parts that the provider takes.
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
    lookup=_compute(f"{_ZONE}/instanceGroupManagers/{{name}}"),
    # Its VMs and their disks are its own to make and remove.
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
    lookup=_compute(
        f"{_ZONE}/instanceGroupManagers/{{instance_group_manager}}/resizeRequests/{{name}}"
    ),
    part_of=GROUP.type,
    permissions={"compute.instanceGroupManagers": "get update"},
)
TEMPLATE: Final = Resource(
    type="google_compute_instance_template",
    lookup=_compute(f"{_GLOBAL}/instanceTemplates/{{name}}"),
    names=(names.TEMPLATE,),
    permissions={"compute.instanceTemplates": "create delete get useReadOnly"},
)
RESOURCE_POLICY: Final = Resource(
    type="google_compute_resource_policy",
    lookup=_compute(f"{_REGION}/resourcePolicies/{{name}}"),
    names=(names.PLACEMENT_POLICY, names.WORKLOAD_POLICY),
    permissions={"compute.resourcePolicies": "create delete get use"},
)
FILESTORE: Final = Resource(
    type="google_filestore_instance",
    lookup=Look(
        service=Service.FILESTORE,
        path=f"{_LOCATION}/instances/{{name}}",
        import_id=f"{_LOCATION}/instances/{{name}}",
        marker=Marker.LABELS,
        may_be_off=True,
    ),
    names=(names.FILESTORE,),
    permissions={"file.instances": "create delete get"},
)
DASHBOARD: Final = Resource(
    type="google_monitoring_dashboard",
    lookup=Look(
        service=Service.MONITORING,
        path="projects/{project}/dashboards/{name}",
        # Google's own name has the project's number, and a project that differs is replaced.
        import_id="projects/{project}/dashboards/{name}",
        marker=Marker.LABELS,
        by_list=True,
        may_be_off=True,
    ),
    permissions={"monitoring.dashboards": "create delete get"},
)
ROUTER: Final = Resource(
    type="google_compute_router",
    lookup=_compute(f"{_REGION}/routers/{{name}}"),
    names=(names.ROUTER,),
    permissions={"compute.routers": "create delete get update", "compute.networks": "use"},
)
NAT: Final = Resource(
    type="google_compute_router_nat",
    lookup=Look(
        service=Service.COMPUTE,
        path=f"{_REGION}/routers/{{router}}",
        import_id=f"{_REGION}/routers/{{router}}/{{name}}",
        marker=Marker.DESCRIPTION,
        part="nats",
    ),
    part_of=ROUTER.type,
    names=(names.NAT,),
    permissions={"compute.routers": "get update"},
)
FIREWALL: Final = Resource(
    type="google_compute_firewall",
    lookup=_compute(f"{_GLOBAL}/firewalls/{{name}}"),
    names=(names.FIREWALL_INTERNAL, names.FIREWALL_SSH, names.FIREWALL_GPU),
    permissions={"compute.firewalls": "create delete get", "compute.networks": "updatePolicy"},
)
SUBNETWORK: Final = Resource(
    type="google_compute_subnetwork",
    lookup=_compute(f"{_REGION}/subnetworks/{{name}}"),
    names=(names.SUBNETWORK, names.GPU_SUBNETWORK),
    permissions={"compute.subnetworks": "create delete get use", "compute.networks": "use"},
)
NETWORK: Final = Resource(
    type="google_compute_network",
    lookup=_compute(f"{_GLOBAL}/networks/{{name}}"),
    names=(names.NETWORK, names.GPU_NETWORK),
    permissions={"compute.networks": "create delete get use"},
)
SERVICE_ACCOUNT: Final = Resource(
    type="google_service_account",
    lookup=Look(
        service=Service.IAM,
        path="projects/{project}/serviceAccounts/{email}",
        import_id="projects/{project}/serviceAccounts/{email}",
        marker=Marker.DESCRIPTION,
        list_key="accounts",
    ),
    names=(names.SERVICE_ACCOUNT, names.WORKLOAD_ACCOUNT),
    permissions={"iam.serviceAccounts": "create delete get"},
)
PROJECT_ROLE: Final = Resource(
    type="google_project_iam_member",
    lookup=None,  # to grant a role again changes nothing
    part_of=SERVICE_ACCOUNT.type,
    permissions={"resourcemanager.projects": "getIamPolicy setIamPolicy"},
)
ACCOUNT_ROLE: Final = Resource(
    type="google_service_account_iam_member",
    lookup=None,  # to grant a role again changes nothing
    part_of=SERVICE_ACCOUNT.type,
    permissions={"iam.serviceAccounts": "setIamPolicy"},
)
BUCKET_ROLE: Final = Resource(
    type="google_storage_bucket_iam_member",
    lookup=None,  # to grant a role again changes nothing
    part_of=SERVICE_ACCOUNT.type,
)
OBJECT: Final = Resource(
    type="google_storage_bucket_object",
    lookup=None,  # it is written over; Destroy empties the state's folder
)

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
"""All types, in an order in which nothing that goes is still in use."""

BY_TYPE: Final[Mapping[str, Resource]] = MappingProxyType({row.type: row for row in ALL})
"""Terraform's name of a type -> its row."""

SWEPT: Final = tuple(row for row in ALL if row.lookup is not None and not row.part_of)
"""The types that Destroy looks for beside the state, in the order in which it removes them.

A NAT goes with its router, a group's VMs, disks and requests with the group, node pools and all
that GKE has made for them with their cluster. Filestore is part of its network.
"""


def path_in_document(document: Mapping[str, Any]) -> str:
    """The path ("projects/...") of a resource, from what Google says of it."""
    link = document.get("selfLink")
    return str(link).partition("/v1/")[2] if link else str(document["name"])


def foreign(path: str, other: Owner | None) -> Problem:
    """What is to be said of something that has one of our names and not our marker.

    Args:
        path: Its name, as Google's API has it.
        other: Whose it is; None where it carries no marker.
    """
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
        setting="NAME_PREFIX",
        what=f"{path} exists already, and this deployment did not make it",
        why=why,
        fix=fix,
    )


def way_to(other: Owner) -> str:
    """How to work on another deployment of the same prefix, as the end of a sentence."""
    if not other.state:
        return (
            "find the env.list that made it: its state is where its TERRAFORM_GCS_PATH says, or in"
            " the default bucket; if it is this deployment's, left behind by the first version of"
            " this tool, run it again with --yes"
        )
    return f"to work on that deployment, set TERRAFORM_GCS_PATH={other.state.rpartition('/')[0]}"
