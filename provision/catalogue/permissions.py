"""What a 403 of Google's means: which permission is missing, and which role has it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

# The permission in the words of Compute Engine, of Cloud Storage, and of the newer APIs.
_MISSING: Final = (
    re.compile(r"Required ['\"](?P<permission>[\w.]+)['\"] permission"),
    re.compile(r"does not have (?P<permission>\w+(?:\.\w+)+) access"),
    re.compile(r"[Pp]ermission ['\"](?P<permission>[\w.]+)['\"] (?:is )?denied"),
)
_DISABLED: Final = re.compile(r"API has not been used in project (?P<project>\S+) before or it is")
_SERVICE: Final = re.compile(r"/apis/api/(?P<service>[\w.-]+)/")

# Beginning of a permission -> the least of Google's roles that has all that this tool needs there.
# The longest beginning counts.
_ROLES: Final[Mapping[str, tuple[str, str]]] = {
    "compute.": ("Compute Admin", "roles/compute.admin"),
    "compute.addresses.": ("Compute Network Admin", "roles/compute.networkAdmin"),
    "compute.disks.": ("Compute Instance Admin (v1)", "roles/compute.instanceAdmin.v1"),
    "compute.firewalls.": ("Compute Security Admin", "roles/compute.securityAdmin"),
    "compute.instance": ("Compute Instance Admin (v1)", "roles/compute.instanceAdmin.v1"),
    "compute.networks.": ("Compute Network Admin", "roles/compute.networkAdmin"),
    "compute.networks.updatePolicy": ("Compute Security Admin", "roles/compute.securityAdmin"),
    "compute.resourcePolicies.": ("Compute Instance Admin (v1)", "roles/compute.instanceAdmin.v1"),
    "compute.routers.": ("Compute Network Admin", "roles/compute.networkAdmin"),
    "compute.subnetworks.": ("Compute Network Admin", "roles/compute.networkAdmin"),
    "container.": ("Kubernetes Engine Admin", "roles/container.admin"),
    "file.": ("Cloud Filestore Editor", "roles/file.editor"),
    "iam.serviceAccounts.": ("Service Account Admin", "roles/iam.serviceAccountAdmin"),
    "iam.serviceAccounts.actAs": ("Service Account User", "roles/iam.serviceAccountUser"),
    "monitoring.": ("Monitoring Editor", "roles/monitoring.editor"),
    "resourcemanager.projects.get": ("Browser", "roles/browser"),
    "resourcemanager.projects.setIamPolicy": (
        "Project IAM Admin",
        "roles/resourcemanager.projectIamAdmin",
    ),
    "serviceusage.": ("Service Usage Admin", "roles/serviceusage.serviceUsageAdmin"),
    "storage.": ("Storage Admin", "roles/storage.admin"),
}


def remedy(message: str) -> str:
    """What mends a refusal, in words; "" when the message is not about rights.

    Args:
        message: Google's words.
    """
    disabled = _DISABLED.search(message)
    if disabled is not None:
        return _enabling(message, disabled["project"])
    for pattern in _MISSING:
        found = pattern.search(message)
        if found is not None:
            return _granting(found["permission"])
    return ""


def _granting(permission: str) -> str:
    asking = f"these credentials lack the permission {permission}: ask whoever administers the"
    found = role_with(permission)
    if found is None:
        return f"{asking} project for it"
    title, role = found
    return f"{asking} project for the role {title} ({role}), which has it"


def role_with(permission: str) -> tuple[str, str] | None:
    """Title and name of the least role that has a permission; None if the tool knows none."""
    beginnings = [beginning for beginning in _ROLES if permission.startswith(beginning)]
    return _ROLES[max(beginnings, key=len)] if beginnings else None


def _enabling(message: str, project: str) -> str:
    found = _SERVICE.search(message)
    if found is None:
        return "enable the API that Google names, and wait a few minutes"
    return (
        f"enable the API with: gcloud services enable {found['service']} --project {project}"
        " and wait a few minutes"
    )
