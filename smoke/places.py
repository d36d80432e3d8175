"""Where Google serves what the simulated cloud serves by the beginning of a path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

GOOGLE: Final = {
    "/compute/v1/": "https://compute.googleapis.com/compute/v1/",
    "/storage/v1/": "https://storage.googleapis.com/storage/v1/",
    "/upload/storage/v1/": "https://storage.googleapis.com/upload/storage/v1/",
    "/download/storage/v1/": "https://storage.googleapis.com/download/storage/v1/",
    "/iam/v1/": "https://iam.googleapis.com/v1/",
    "/crm/v1/": "https://cloudresourcemanager.googleapis.com/v1/",
    "/crm/v3/": "https://cloudresourcemanager.googleapis.com/v3/",
    "/orgpolicy/v2/": "https://orgpolicy.googleapis.com/v2/",
    "/cloudquotas/v1/": "https://cloudquotas.googleapis.com/v1/",
    "/serviceusage/v1/": "https://serviceusage.googleapis.com/v1/",
    "/serviceusage/v1beta1/": "https://serviceusage.googleapis.com/v1beta1/",
    "/cloudbilling/v1/": "https://cloudbilling.googleapis.com/v1/",
    "/container/v1/": "https://container.googleapis.com/v1/",
    "/file/v1/": "https://file.googleapis.com/v1/",
    "/cloudkms/v1/": "https://cloudkms.googleapis.com/v1/",
    "/secretmanager/v1/": "https://secretmanager.googleapis.com/v1/",
    "/monitoring/": "https://monitoring.googleapis.com/",
}
"""Path that is served -> where Google serves it."""
MEDIA: Final = "https://storage.googleapis.com/"
"""Where Cloud Storage serves objects by "/BUCKET/OBJECT"."""
CONTROL_PLANE: Final = re.compile(r"/kubernetes/(?P<host>[\w.-]+\.gke\.goog)(?P<path>/.*)")
"""Of a GKE cluster, by its DNS endpoint: no other host gets a token."""


def is_object(path: str, query: Iterable[tuple[str, str]]) -> bool:
    """Whether a request is for the content of an object of Cloud Storage.

    What no API serves is one, by Cloud Storage's older protocol: Terraform reads states by that.
    """
    by_name = not path.startswith((*GOOGLE, "/kubernetes/"))
    return by_name or path.startswith("/download/") or ("alt", "media") in query
