"""Where Google's APIs are asked, when the environment moves them, and as whom."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from provision.codes import Code
from provision.errors import Problem, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

COMPUTE: Final = "GOOGLE_COMPUTE_CUSTOM_ENDPOINT"
"""The variable of Compute Engine: a rehearsal moves it to this very machine."""

KUBERNETES: Final = "KUBERNETES_CUSTOM_ENDPOINT"
"""Sets another URL for every cluster's API; `{endpoint}` in it stands for the DNS endpoint."""

FORWARDED: Final = "AIINFRA_FORWARDED_TO"
"""Names whom a proxy on this machine, to which the endpoints lead, hands every request on to: it is
no rehearsal then, and what is made is real. The smoke test sets it."""

IMPERSONATE: Final = "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"
"""By this, Google's provider and this program know as which service account they act."""

_VARIABLE: Final = re.compile(r"(?:GOOGLE_\w+|KUBERNETES)_CUSTOM_ENDPOINT")
_THIS_MACHINE: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class Service(enum.Enum):
    """A Google API: its name in GOOGLE_..._CUSTOM_ENDPOINT, and its URL.

    These variables, of which most are the google provider's, set another endpoint. A third value is
    the API's version, where the provider's endpoint does not include it.
    """

    COMPUTE = ("COMPUTE", "https://compute.googleapis.com/compute/v1/")
    BILLING = ("CLOUD_BILLING", "https://cloudbilling.googleapis.com/v1/")
    CONTAINER = ("CONTAINER", "https://container.googleapis.com/v1/")
    FILESTORE = ("FILESTORE", "https://file.googleapis.com/v1/")
    IAM = ("IAM_BETA", "https://iam.googleapis.com/v1/")
    KMS = ("KMS", "https://cloudkms.googleapis.com/v1/")
    MONITORING = ("MONITORING", "https://monitoring.googleapis.com/", "v1/")
    SECRET_MANAGER = ("SECRET_MANAGER", "https://secretmanager.googleapis.com/v1/")
    STORAGE = ("STORAGE", "https://storage.googleapis.com/storage/v1/")
    ORG_POLICY = ("ORG_POLICY", "https://orgpolicy.googleapis.com/v2/")
    RESOURCE_MANAGER = ("RESOURCE_MANAGER", "https://cloudresourcemanager.googleapis.com/v1/")
    SERVICE_USAGE = ("SERVICE_USAGE", "https://serviceusage.googleapis.com/v1/")
    # The quotas of services other than Compute Engine, by names of their own.
    CLOUD_QUOTAS = ("CLOUD_QUOTAS", "https://cloudquotas.googleapis.com/v1/")
    # Only the beta has quotas. The provider does not use it, so the variable is this program's own.
    QUOTAS = ("SERVICE_USAGE_BETA", "https://serviceusage.googleapis.com/v1beta1/")

    def url(self, environ: Mapping[str, str]) -> str:
        """The base URL, with a trailing slash."""
        name, usual, *version = self.value
        return "".join([environ.get(f"GOOGLE_{name}_CUSTOM_ENDPOINT") or usual, *version])


def is_rehearsal(environ: Mapping[str, str]) -> bool:
    """Whether Compute Engine is on this machine: what it says is simulated, unless forwarded."""
    if environ.get(FORWARDED):
        return False
    return urlsplit(environ.get(COMPUTE, "")).hostname in _THIS_MACHINE


def require_safe(environ: Mapping[str, str]) -> None:
    """Refuse to send the access token in clear to another machine."""
    problems = [
        Problem(
            code=Code.UNSAFE_ENDPOINT,
            setting=name,
            what=f"{url} would get the access token unencrypted",
            why="it moves one of Google's APIs to another machine, without https",
            fix=f"remove {name} from the environment or the env file; or use https",
        )
        for name, url in _moved(environ).items()
        if urlsplit(url).scheme != "https" and urlsplit(url).hostname not in _THIS_MACHINE
    ]
    if problems:
        raise SettingsError.of(problems)


def announcement(environ: Mapping[str, str]) -> str:
    """What a person is told of moved endpoints; "" when Google's own are asked."""
    moved = _moved(environ)
    if not moved:
        return ""
    if is_rehearsal(environ):
        return "Rehearsal: Google Cloud is simulated on this machine; nothing is real or billed."
    if behind := environ.get(FORWARDED):
        return f"Requests go to {behind} by way of a proxy on this machine; all is real and billed."
    return (
        f"Not Google itself is asked but {', '.join(sorted(hosts(environ)))}: the environment sets"
        f" {', '.join(sorted(moved))}"
    )


def hosts(environ: Mapping[str, str]) -> set[str]:
    """The hosts to which the environment moves Google's APIs."""
    return {urlsplit(url).hostname or "" for url in _moved(environ).values()}


def _moved(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if value and _VARIABLE.fullmatch(name)}
