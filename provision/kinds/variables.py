"""The variables that all roots have in common, from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provision.catalogue import filestores

if TYPE_CHECKING:
    from provision.deployment.location import Location
    from provision.settings import Settings


def common(settings: Settings, cluster_id: str, location: Location) -> dict[str, Any]:
    """What every root is told in the same words.

    Args:
        settings: The checked settings.
        cluster_id: The marker's value.
        location: The deployment's folder.
    """
    return {
        "project_id": settings.project_id,
        "name_prefix": settings.name_prefix,
        "cluster_id": cluster_id,
        "region": settings.region,
        "zone": settings.zone,
        "labels": dict(settings.labels),
        "state_folder": {"bucket": location.bucket, "folder": location.folder},
        "service_account": _service_account(settings.service_account),
        "gcs_mounts": [mount.model_dump() for mount in settings.gcs_mount_list or ()],
        "filestores": [
            {
                "path": share.path,
                "tier": str(share.tier),
                "size_gb": share.size_gb,
                "location": (
                    settings.region if filestores.is_regional(share.tier) else settings.zone
                ),
            }
            for share in settings.nfs_fileshare_list or ()
        ],
    }


def _service_account(asked: str) -> dict[str, Any]:
    match asked:
        case "dedicated":
            return {"create": True, "email": None}
        case "default":
            return {"create": False, "email": None}
        case email:
            return {"create": False, "email": email}
