"""Where Google's APIs are, and what moves them elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Service:
    """Where one of Google's APIs is."""

    argument: str  # the provider block's argument that moves it
    variable: str  # the environment variable that does so too
    address: str  # Google's own
    # what the client puts behind the base address in place of its last element; "" when the base
    # address is taken as it is
    version: str = ""


# provider 7.45.0: service accounts go by the "IAM beta" endpoint; iam_custom_endpoint is read by
# nothing. Monitoring's base has no version.
SERVICES: Mapping[str, Service] = {
    "compute": Service(
        "compute_custom_endpoint",
        "GOOGLE_COMPUTE_CUSTOM_ENDPOINT",
        "https://compute.googleapis.com/compute/v1/",
    ),
    "container": Service(
        "container_custom_endpoint",
        "GOOGLE_CONTAINER_CUSTOM_ENDPOINT",
        "https://container.googleapis.com/v1/",
        "v1/",
    ),
    "file": Service(
        "filestore_custom_endpoint",
        "GOOGLE_FILESTORE_CUSTOM_ENDPOINT",
        "https://file.googleapis.com/v1/",
    ),
    "storage": Service(
        "storage_custom_endpoint",
        "GOOGLE_STORAGE_CUSTOM_ENDPOINT",
        "https://storage.googleapis.com/storage/v1/",
    ),
    "iam": Service(
        "iam_beta_custom_endpoint",
        "GOOGLE_IAM_BETA_CUSTOM_ENDPOINT",
        "https://iam.googleapis.com/v1/",
        "v1/",
    ),
    "cloudresourcemanager": Service(
        "resource_manager_custom_endpoint",
        "GOOGLE_RESOURCE_MANAGER_CUSTOM_ENDPOINT",
        "https://cloudresourcemanager.googleapis.com/v1/",
        "v1/",
    ),
    "serviceusage": Service(
        "service_usage_custom_endpoint",
        "GOOGLE_SERVICE_USAGE_CUSTOM_ENDPOINT",
        "https://serviceusage.googleapis.com/v1/",
        "v1/",
    ),
    "monitoring": Service(
        "monitoring_custom_endpoint",
        "GOOGLE_MONITORING_CUSTOM_ENDPOINT",
        "https://monitoring.googleapis.com/",
    ),
    "cloudbilling": Service(
        "cloud_billing_custom_endpoint",
        "GOOGLE_CLOUD_BILLING_CUSTOM_ENDPOINT",
        "https://cloudbilling.googleapis.com/v1/",
        "v1/",
    ),
}


def base(service: str, block: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """The address that a service's paths follow, with a slash at its end."""
    it = SERVICES[service]
    address = str(block.get(it.argument) or environ.get(it.variable) or it.address)
    if not address.endswith("/"):
        address += "/"
    return re.sub(r"[^/]+/$", it.version, address) if it.version else address


def uploads(storage: str) -> str:
    """Where Cloud Storage takes uploads: at the host's root, whatever the service's path."""
    parts = urlsplit(storage)
    return f"{parts.scheme}://{parts.netloc}/upload/storage/v1/"
