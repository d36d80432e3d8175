"""Who may do what: addresses of service accounts, and the roles of Google's with a permission."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_OWN: Final = ".iam.gserviceaccount.com"


def of_project(name: str, project: str) -> str:
    """The address of a project's account; example.com:p turns around: p.example.com."""
    return f"{name}@{'.'.join(reversed(project.split(':')))}{_OWN}"


def default(number: str) -> str:
    """The address of Compute Engine's default account in the project of a number."""
    return f"{number}-compute@developer.gserviceaccount.com"


def undelete(email: str, project: str, number: str = "", *, over: bool = False) -> str:
    """How an account comes back that was deleted less than 30 days ago.

    Google does that by its number alone, and not over another one of its address (IAM, "Delete and
    undelete service accounts"; its KB 000004665 deletes that one first).
    """
    seen = f"`gcloud projects get-iam-policy {project}` lists as deleted:serviceAccount:{email}"
    lines = [
        "within 30 days of its deletion bring it back by its number"
        + ("" if number else f", which is behind `?uid=` in what {seen}")
        + ":",
        *[f"gcloud iam service-accounts delete {email} --project {project}"] * over,
        f"gcloud iam service-accounts undelete {number or '<NUMBER>'} --project {project}",
    ]
    return "\n".join(lines)


def project_of(email: str) -> str:
    """The project whose account an address is; "" where it does not say, as Google's own don't."""
    domain = email.partition("@")[2]
    if not domain.endswith(_OWN):
        return ""
    name, _, scope = domain.removesuffix(_OWN).partition(".")
    return f"{scope}:{name}" if scope else name


# Prefix of a permission -> the smallest of Google's roles with all such permissions that this tool
# needs. The longest prefix counts.
_ROLES: Final[Mapping[str, tuple[str, str]]] = {
    "compute.": ("Compute Admin", "roles/compute.admin"),
    "compute.addresses.": ("Compute Network Admin", "roles/compute.networkAdmin"),
    "compute.disks.": ("Compute Instance Admin (v1)", "roles/compute.instanceAdmin.v1"),
    "compute.firewalls.": ("Compute Security Admin", "roles/compute.securityAdmin"),
    "compute.futureReservations.": ("Compute Viewer", "roles/compute.viewer"),
    "compute.images.useReadOnly": ("Compute Image User", "roles/compute.imageUser"),
    "compute.instance": ("Compute Instance Admin (v1)", "roles/compute.instanceAdmin.v1"),
    "compute.networks.": ("Compute Network Admin", "roles/compute.networkAdmin"),
    "compute.networks.updatePolicy": ("Compute Security Admin", "roles/compute.securityAdmin"),
    "compute.reservation": ("Compute Viewer", "roles/compute.viewer"),
    "compute.resourcePolicies.": ("Compute Instance Admin (v1)", "roles/compute.instanceAdmin.v1"),
    "compute.routers.": ("Compute Network Admin", "roles/compute.networkAdmin"),
    "compute.subnetworks.": ("Compute Network Admin", "roles/compute.networkAdmin"),
    "cloudquotas.": ("Cloud Quotas Viewer", "roles/cloudquotas.viewer"),
    "container.": ("Kubernetes Engine Admin", "roles/container.admin"),
    "file.": ("Cloud Filestore Editor", "roles/file.editor"),
    "iam.serviceAccounts.": ("Service Account Admin", "roles/iam.serviceAccountAdmin"),
    "iam.serviceAccounts.actAs": ("Service Account User", "roles/iam.serviceAccountUser"),
    "monitoring.": ("Monitoring Editor", "roles/monitoring.editor"),
    "orgpolicy.": ("Organization Policy Viewer", "roles/orgpolicy.policyViewer"),
    "resourcemanager.projects.get": ("Browser", "roles/browser"),
    "resourcemanager.projects.setIamPolicy": (
        "Project IAM Admin",
        "roles/resourcemanager.projectIamAdmin",
    ),
    "serviceusage.": ("Service Usage Admin", "roles/serviceusage.serviceUsageAdmin"),
    "storage.": ("Storage Admin", "roles/storage.admin"),
}

_READS: Final = re.compile(r"\.(?:get|list)[A-Za-z]*$|\.advice\.[A-Za-z]+$")


def reads(permission: str) -> bool:
    """Whether nothing can be changed with a permission, by its verb."""
    return _READS.search(permission) is not None


def role_with(permission: str) -> tuple[str, str] | None:
    """Title and name of the smallest role with a permission; None if the tool knows none."""
    beginnings = [beginning for beginning in _ROLES if permission.startswith(beginning)]
    return _ROLES[max(beginnings, key=len)] if beginnings else None
