"""Google's roles that include a permission."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

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


_READS: Final = re.compile(r"\.(?:get|list)[A-Za-z]*$|\.calendarMode$")


def reads(permission: str) -> bool:
    """Whether nothing can be changed with a permission, by its verb."""
    return _READS.search(permission) is not None


def role_with(permission: str) -> tuple[str, str] | None:
    """Title and name of the smallest role with a permission; None if the tool knows none."""
    beginnings = [beginning for beginning in _ROLES if permission.startswith(beginning)]
    return _ROLES[max(beginnings, key=len)] if beginnings else None
