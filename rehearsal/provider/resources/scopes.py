"""The access scopes of service accounts, and their short names."""

from __future__ import annotations

from typing import Final

_BASE: Final = "https://www.googleapis.com/auth/"
_SHORT: Final = {
    "bigquery": "bigquery",
    "cloud-platform": "cloud-platform",
    "cloud-source-repos": "source.full_control",
    "cloud-source-repos-ro": "source.read_only",
    "compute-ro": "compute.readonly",
    "compute-rw": "compute",
    "datastore": "datastore",
    "logging-write": "logging.write",
    "monitoring": "monitoring",
    "monitoring-read": "monitoring.read",
    "monitoring-write": "monitoring.write",
    "pubsub": "pubsub",
    "service-control": "servicecontrol",
    "service-management": "service.management.readonly",
    "sql": "sqlservice",
    "sql-admin": "sqlservice.admin",
    "storage-full": "devstorage.full_control",
    "storage-ro": "devstorage.read_only",
    "storage-rw": "devstorage.read_write",
    "taskqueue": "taskqueue",
    "trace": "trace.append",
    "useraccounts-ro": "cloud.useraccounts.readonly",
    "useraccounts-rw": "cloud.useraccounts",
    "userinfo-email": "userinfo.email",
}


def canonical(scope: str) -> str:
    """A scope's address, for its short name too."""
    return _BASE + _SHORT[scope] if scope in _SHORT else scope
