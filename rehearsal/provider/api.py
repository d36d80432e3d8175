"""How the provider reaches Google: settings, addresses, credentials, requests, retries, waits.

One `Api` serves all resources of one provider block. It may be used by many threads at once:
Terraform applies ten resources together.
"""

import contextlib
import json
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from rehearsal import clock
from rehearsal.provider import durations
from rehearsal.provider.failures import Cancelled, CredentialsMissing, GoogleApiError
from rehearsal.provider.transport import Response, Transport, retry_waits

Query = Mapping[str, str] | None
# Which environment variable stands in for an argument that the block leaves out, first found wins.
_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "project": (
        "GOOGLE_PROJECT",
        "GOOGLE_CLOUD_PROJECT",
        "GCLOUD_PROJECT",
        "CLOUDSDK_CORE_PROJECT",
    ),
    "region": ("GOOGLE_REGION", "GCLOUD_REGION", "CLOUDSDK_COMPUTE_REGION"),
    "zone": ("GOOGLE_ZONE", "GCLOUD_ZONE", "CLOUDSDK_COMPUTE_ZONE"),
    "access_token": ("GOOGLE_OAUTH_ACCESS_TOKEN",),
    "impersonate_service_account": ("GOOGLE_IMPERSONATE_SERVICE_ACCOUNT",),
}

# What moves an API elsewhere, Google's own address, and what its client puts behind the base
# address in place of its last element; "" where that is taken as it is. Provider 7.45.0: service
# accounts go by the "IAM beta" endpoint; iam_custom_endpoint is read by nothing.
_SERVICES: Mapping[str, tuple[str, str, str]] = {
    "compute": ("compute", "compute.googleapis.com/compute/v1/", ""),
    "container": ("container", "container.googleapis.com/v1/", "v1/"),
    "file": ("filestore", "file.googleapis.com/v1/", ""),
    "storage": ("storage", "storage.googleapis.com/storage/v1/", ""),
    "iam": ("iam_beta", "iam.googleapis.com/v1/", "v1/"),
    "cloudresourcemanager": (
        "resource_manager",
        "cloudresourcemanager.googleapis.com/v1/",
        "v1/",
    ),
    "monitoring": ("monitoring", "monitoring.googleapis.com/", ""),
    "cloudbilling": ("cloud_billing", "cloudbilling.googleapis.com/v1/", "v1/"),
}

_PLAIN = {"alt": "json"}
_CLIENT = {"alt": "json", "prettyPrint": "false"}

_JSON = "application/json"
_IAM_CREDENTIALS = "https://iamcredentials.googleapis.com/v1/"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"

# The least pause between two looks at something that is not done yet, in seconds of ours: keeps a
# cloud whose time stands still from being asked without end.
_BREATH = 0.02


def variable(service: str) -> str:
    """The environment variable that moves an API."""
    return f"GOOGLE_{_SERVICES[service][0].upper()}_CUSTOM_ENDPOINT"


class Api:
    """The provider block, ready for use; None where it says nothing."""

    def __init__(self, block: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        self._block = block
        self._environ = environ
        self._rate = clock.rate(environ)
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._guard = threading.Lock()
        self._token = block.get("access_token") or self._setting("access_token")
        self._impersonated = self._setting("impersonate_service_account")
        self._transport = Transport()
        self.cancel = threading.Event()
        self.project: str = self._setting("project")
        self.zone: str = self._setting("zone").rpartition("/")[2]
        # A zone's region stands in for a region that nobody gave.
        self.region: str = (
            self._setting("region").rpartition("/")[2] or self.zone.rpartition("-")[0]
        )
        self.poll_interval: float = durations.seconds(block.get("poll_interval") or "10s")
        self.default_labels: dict[str, str] = dict(block.get("default_labels") or {})
        self.deletion_policy: str = block.get("deletion_policy") or "DELETE"
        self.batches = Batches(self.pause, self.cancel, (block.get("batching") or [{}])[0] or {})

    def _setting(self, name: str) -> str:
        """The block's argument, else the first environment variable that is there, else ""."""
        given = [self._block.get(name), *map(self._environ.get, _VARIABLES[name])]
        return next((value for value in given if value), "")

    @property
    def attribution(self) -> str:
        """When the label goog-terraform-provisioned is added: CREATION_ONLY, PROACTIVE or ""."""
        if self._block.get("add_terraform_attribution_label") is False:
            return ""
        strategy = self._block.get("terraform_attribution_label_addition_strategy")
        return strategy or "CREATION_ONLY"

    def base(self, service: str) -> str:
        """The address that the service's paths follow, with a slash at its end."""
        moved, address, version = _SERVICES[service]
        given = self._block.get(f"{moved}_custom_endpoint") or self._environ.get(variable(service))
        address = str(given or f"https://{address}")
        address += "" if address.endswith("/") else "/"
        return re.sub(r"[^/]+/$", version, address) if version else address

    def upload_base(self) -> str:
        """Where Cloud Storage takes uploads: at the host's root, whatever the service's path."""
        parts = urlsplit(self.base("storage"))
        return f"{parts.scheme}://{parts.netloc}/upload/storage/v1/"

    def plain(
        self, service: str, method: str, path: str, body: Any = None, *, query: Query = None
    ) -> dict[str, Any]:
        """A request as the provider's own REST code sends it: always of JSON's content type."""
        url = self.base(service) + path
        return self.send(
            method, url, query={**_PLAIN, **(query or {})}, body=body, typed=True
        ).json()

    def client(
        self, service: str, method: str, path: str, body: Any = None, *, query: Query = None
    ) -> dict[str, Any]:
        """A request as Google's Go clients send it: a content type only with a body."""
        url = self.base(service) + path
        return self.send(method, url, query={**_CLIENT, **(query or {})}, body=body).json()

    def send(  # noqa: PLR0913 - the parts of a request, by name
        self,
        method: str,
        url: str,
        *,
        query: Mapping[str, str],
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        typed: bool = False,
    ) -> Response:
        """Any request with the token, tried again as long as provider 7.45.0 would.

        `query`: the query's parameters; they go out in the order of their names, as Go has it.
        `body`: bytes as they are; anything else but None as JSON. `typed`: whether to name JSON as
        content type although there is no body.

        Raises:
            GoogleApiError: Google refused, and no retry helped.
            OSError: No connection, and no retry helped.
        """
        data = body
        if body is not None and not isinstance(body, bytes):
            # A number with a fraction is a Decimal here, and as short in JSON as in HCL.
            data = json.dumps(body, default=float).encode()
        fields = {"Authorization": f"Bearer {self.token()}", **(headers or {})}
        if typed or data is not None:
            fields.setdefault("Content-Type", _JSON)
        address = f"{url}?{urlencode(sorted(query.items()))}"
        waits = retry_waits()
        while True:
            try:
                return self._transport.exchange(method, address, data, fields)
            except (GoogleApiError, ConnectionError, TimeoutError) as error:
                wait = next(waits, None)
                if wait is None or not _passes(error) or not self.sleep(wait):
                    raise

    def close(self) -> None:
        """Close the connections; another request opens them again."""
        self._transport.close()

    def token(self) -> str:
        """The bearer token, asked for once; CredentialsMissing if nobody gives one."""
        with self._guard:
            if not self._token:
                self._token = self._metadata_token()
            if self._impersonated:
                self._token = self._token_of(self._impersonated)
                self._impersonated = ""
            return str(self._token)

    def _token_of(self, account: str) -> str:
        """A token of another account's: no variable moves where provider 7.45.0 asks for it."""
        where = f"{_IAM_CREDENTIALS}projects/-/serviceAccounts/{account}:generateAccessToken"
        body = json.dumps({"scope": [_SCOPE]}).encode()
        fields = {"Authorization": f"Bearer {self._token}", "Content-Type": _JSON}
        try:
            return str(self._transport.exchange("POST", where, body, fields).json()["accessToken"])
        except (GoogleApiError, OSError, KeyError) as error:
            raise CredentialsMissing(error) from error

    def _metadata_token(self) -> str:
        host = self._environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
        url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
        try:
            answer = self._transport.exchange("GET", url, None, {"Metadata-Flavor": "Google"})
            return str(answer.json()["access_token"])
        except (GoogleApiError, OSError, KeyError) as error:
            raise CredentialsMissing(error) from error

    def sleep(self, seconds: float, *, deaf: bool = False) -> bool:
        """Let time of the cloud pass; over at once when Terraform was interrupted.

        `deaf`: sleep on when interrupted, as some of the provider's waits do. Returns false when
        Terraform was interrupted, which a deaf sleep never says.
        """
        if deaf:
            threading.Event().wait(seconds * self._rate)
            return True
        return not self.cancel.wait(seconds * self._rate)

    def pause(self, seconds: float, *, deaf: bool = False) -> None:
        """Sleep between two looks at the same thing; `Cancelled` if Terraform was interrupted."""
        threading.Event().wait(max(0.0, _BREATH - seconds * self._rate))
        if not self.sleep(seconds, deaf=deaf):
            raise Cancelled

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Hold a mutex of this provider: what it names is changed by one thread at a time."""
        with self._guard:
            lock = self._locks[name]
        with lock:
            yield


def _passes(error: Exception) -> bool:
    """Whether provider 7.45.0 tries again after this error (recorded traffic)."""
    if isinstance(error, ConnectionRefusedError):
        return False
    return not isinstance(error, GoogleApiError) or error.temporary


@dataclass
class _Batch:
    items: list[Any] = field(default_factory=list)
    outcome: Future[Any] = field(default_factory=Future)


class Batches:
    """The provider's batching: on by default, a batch leaves 3 s after its first member came.

    `pause`: lets seconds of cloud time pass; raises `Cancelled` when Terraform was interrupted.
    """

    def __init__(
        self,
        pause: Callable[[float], None],
        cancel: threading.Event,
        block: Mapping[str, Any],
    ) -> None:
        self._pause = pause
        self._cancel = cancel
        self._enabled = block.get("enable_batching") is not False
        self._send_after = durations.seconds(block.get("send_after") or "3s")
        self._open: dict[str, _Batch] = {}
        self._guard = threading.Lock()

    def run(self, key: str, item: Any, send: Callable[[Sequence[Any]], Any]) -> Any:
        """Send an item together with others of the same key; all get the same result.

        A batch that fails is taken apart: each member is then sent alone, as provider 7.45.0 does.

        Raises:
            Exception: What `send` raised for this member.
        """
        if not self._enabled:
            return send([item])
        with self._guard:
            first = key not in self._open
            batch = self._open.setdefault(key, _Batch())
            batch.items.append(item)
        if first:
            self._lead(key, batch, send)
        try:
            return batch.outcome.result()
        except Exception:
            if len(batch.items) == 1 or self._cancel.is_set():
                raise
            return send([item])

    def _lead(self, key: str, batch: _Batch, send: Callable[[Sequence[Any]], Any]) -> None:
        """What the first member's thread does: wait for others, then send."""
        try:
            self._pause(self._send_after)
        except Cancelled as error:
            batch.outcome.set_exception(error)
        with self._guard:
            del self._open[key]
        if batch.outcome.done():
            return
        try:
            batch.outcome.set_result(send(tuple(batch.items)))
        except Exception as error:  # noqa: BLE001 - handed to every member's thread
            batch.outcome.set_exception(error)
