"""The one place that talks to a cluster's Kubernetes API."""

from __future__ import annotations

import contextlib
import http
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision import __version__, endpoints
from provision.codes import Code
from provision.documents import json_object
from provision.errors import ClusterError, CredentialsError
from provision.files import private
from provision.google import sessions
from provision.kinds.gke.kubernetes.objects import MANAGER, Object, title
from provision.time.deadline import TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import requests

_TIMEOUT: Final = 60.0
"""Seconds until there is a connection, and then without a byte of the answer."""

_STRICT: Final = {"fieldValidation": "Strict"}
_NOTHING: Final[Mapping[str, str]] = {}
_BUSY: Final = frozenset(
    {
        http.HTTPStatus.TOO_MANY_REQUESTS,
        http.HTTPStatus.BAD_GATEWAY,
        http.HTTPStatus.SERVICE_UNAVAILABLE,
        http.HTTPStatus.GATEWAY_TIMEOUT,
    }
)
# The API answers 500 both to an unknown field and if a webhook does not run yet. Only the message
# tells them apart; a 500 without one of these phrases is not transient.
_PASSING_WORDS: Final = (
    "failed calling webhook",
    "conversion webhook for",
    "failed to call webhook",
    "etcdserver:",
    "the server is currently unable",
)
_VISIBILITY: Final = "/apis/visibility.kueue.x-k8s.io/v1beta2"


class KubernetesError(ClusterError):
    """The Kubernetes API refused a request, and a retry would not help."""

    def __init__(self, code: int, message: str, doing: str) -> None:
        denied = code == http.HTTPStatus.FORBIDDEN
        super().__init__(
            f"Kubernetes refused to {doing} ({code})",
            code=Code.PERMISSION_MISSING if denied else Code.KUBERNETES_FAILED,
            why=message,
            fix="these credentials need the role Kubernetes Engine Admin in the project"
            if denied
            else "",
        )
        self.code = code
        self.message = message


def endpoint(dns_endpoint: str, environ: Mapping[str, str]) -> str:
    """The URL of a cluster's API."""
    return environ.get(endpoints.KUBERNETES, "https://{endpoint}").replace(
        "{endpoint}", dns_endpoint
    )


@dataclass(frozen=True)
class Body:
    """What is sent with a request."""

    content: Object  # sent as JSON
    kind: str = "application/json"  # how the API is to take it, as a media type


_EVERYWHERE: Final = {
    "v1": {"Event": ("events", True), "Node": ("nodes", False), "Pod": ("pods", True)},
    "autoscaling.x-k8s.io/v1": {"ProvisioningRequest": ("provisioningrequests", True)},
    "apps/v1": {"DaemonSet": ("daemonsets", True), "Deployment": ("deployments", True)},
    "batch/v1": {"Job": ("jobs", True)},
}
"""API version -> kinds that each cluster of GKE has -> their plural, and whether they are of a
namespace (Kubernetes, API reference); of others the cluster is asked."""


class Cluster:
    """A cluster's API, without retries: each call is one request, or two for a new kind.

    All methods raise TransientError for a transient error, KubernetesError for any other, and
    CredentialsError if the cluster does not accept the token. `ca_file`: certificates to trust
    instead of the system's; None for the system's: the DNS endpoint of a control plane has a public
    certificate.
    """

    def __init__(
        self, url: str, token: Callable[[str | None], str], ca_file: str | None = None
    ) -> None:
        import requests  # noqa: PLC0415 - 0.1 s that runs without a cluster need not wait for

        def authorized(request: requests.PreparedRequest) -> requests.PreparedRequest:
            request.headers["Authorization"] = f"Bearer {token(request.url)}"
            return request

        self._url = url
        self._trusted = ca_file  # by request: of a session's own, REQUESTS_CA_BUNDLE would win
        self._session = requests.Session()
        # Without one, requests would look for a login of this host in ~/.netrc, and prefer that.
        self._session.auth = authorized
        self._session.headers["User-Agent"] = f"aiinfra-cluster/{__version__}"
        self._session.headers["Accept"] = "application/json, */*"
        self._token = token
        self._kinds: dict[str, dict[str, tuple[str, bool]]] = dict(_EVERYWHERE)

    def apply(self, thing: Object) -> Object:
        """Apply an object with server-side apply; fields that other managers own are not changed.

        The API refuses a field that it does not know, even in parts without a schema.
        """
        query = {"fieldManager": MANAGER, "force": "true", **_STRICT}
        body = Body(thing, "application/apply-patch+yaml")
        return self._json(f"apply {title(thing)}", "PATCH", self._path_of(thing), query, body)

    def create(self, thing: Object) -> Object:
        """Create an object; the API may complete its name."""
        path = self._path_of(thing).rpartition("/")[0]
        query = {"fieldManager": MANAGER, **_STRICT}
        return self._json(f"create a {thing['kind']}", "POST", path, query, Body(thing))

    def find(self, api_version: str, kind: str, name: str, namespace: str = "") -> Object | None:
        """An object; None if it does not exist."""
        return self._if_there(f"read {kind} {name}", "GET", (api_version, kind, namespace, name))

    def all(
        self,
        api_version: str,
        kind: str,
        namespace: str = "",
        selector: str = "",
        fields: str = "",
    ) -> list[Object]:
        """The objects of a kind; [] if the cluster does not have the kind.

        `fields`: a field selector, such as "status.phase!=Succeeded"; "" for all objects.
        """
        chosen = {"labelSelector": selector, "fieldSelector": fields}
        query = {name: value for name, value in chosen.items() if value}
        found = self._if_there(f"list {kind}", "GET", (api_version, kind, namespace, ""), query)
        items = found["items"] if found is not None else ()
        return [{"apiVersion": api_version, "kind": kind, **item} for item in items]

    def merge(self, api_version: str, kind: str, name: str, change: Object) -> bool:
        """Change some fields of an object of no namespace that exists; returns whether it does.

        Unlike `apply`, this never makes one: a node may be gone meanwhile.
        """
        where, query = (api_version, kind, "", name), {"fieldManager": MANAGER}
        body = Body(change, "application/merge-patch+json")
        return self._if_there(f"change {kind} {name}", "PATCH", where, query, body) is not None

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "") -> bool:
        """Delete an object and what it owns; returns whether it existed."""
        where, query = (api_version, kind, namespace, name), {"propagationPolicy": "Background"}
        return self._if_there(f"delete {kind} {name}", "DELETE", where, query) is not None

    def log(self, namespace: str, pod: str, container: str) -> str:
        """The log of a pod's container so far."""
        path = f"{self._path('v1', 'Pod', namespace)}/{pod}/log"
        query = {"container": container}
        return self._send(f"read the log of {pod}", "GET", path, query).decode()

    @contextlib.contextmanager
    def for_kubectl(self) -> Iterator[Mapping[str, str]]:
        """The variables by which kubectl reaches this cluster, as the one who runs this.

        What somebody has configured may be another cluster, or another account.
        """
        parts = {
            "cluster": {
                "server": self._url,
                **({"certificate-authority": self._trusted} if self._trusted else {}),
            },
            "user": {"token": self._token(self._url)},
            "context": {"cluster": "this", "user": "this"},
        }
        named = {f"{kind}s": [{"name": "this", kind: it}] for kind, it in parts.items()}
        document = {"apiVersion": "v1", "kind": "Config", "current-context": "this", **named}
        with private.folder() as folder:
            (folder / "kubeconfig").write_text(json.dumps(document), "utf-8")
            yield {"KUBECONFIG": str(folder / "kubeconfig")}

    def places(self, namespace: str, queue: str) -> dict[str, int]:
        """Kueue's Workloads that wait for their turn in a LocalQueue: name -> place, from 1.

        It is its own API (visibility, since 0.9); {} where that does not answer.
        """
        path = f"{_VISIBILITY}/namespaces/{namespace}/localqueues/{queue}/pendingworkloads"
        try:
            items = self._json("read the queue", "GET", path).get("items") or []
        except (KubernetesError, TransientError):
            return {}
        return {it["metadata"]["name"]: int(it["positionInClusterQueue"]) + 1 for it in items}

    def _if_there(
        self,
        doing: str,
        method: str,
        where: tuple[str, str, str, str],
        query: Mapping[str, str] = _NOTHING,
        body: Body | None = None,
    ) -> Object | None:
        """What the API answers; None where there is no such object, or no such kind.

        `where`: API version, kind, namespace and name; "" for no name.
        """
        api_version, kind, namespace, name = where
        try:
            path = self._path(api_version, kind, namespace)
            return self._json(doing, method, f"{path}/{name}" if name else path, query, body)
        except KubernetesError as error:
            if error.code == http.HTTPStatus.NOT_FOUND:
                return None
            raise

    def _path_of(self, thing: Object) -> str:
        metadata = thing["metadata"]
        path = self._path(thing["apiVersion"], thing["kind"], metadata.get("namespace", ""))
        return f"{path}/{metadata.get('name', '')}"

    def _path(self, api_version: str, kind: str, namespace: str) -> str:
        """The path of the objects of a kind; the API's list of kinds is read only once."""
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        if kind not in self._kinds.get(api_version, {}):
            found = self._json(f"look for the kind {kind}", "GET", root)
            self._kinds[api_version] = {
                entry["kind"]: (entry["name"], entry["namespaced"])
                for entry in found["resources"]
                if "/" not in entry["name"]
            }
        try:
            plural, namespaced = self._kinds[api_version][kind]
        except KeyError:
            message = f"{api_version} has no kind {kind}"
            raise KubernetesError(404, message, f"look for the kind {kind}") from None
        inside = f"/namespaces/{namespace}" if namespaced and namespace else ""
        return f"{root}{inside}/{plural}"

    def _json(
        self,
        doing: str,
        method: str,
        path: str,
        query: Mapping[str, str] = _NOTHING,
        body: Body | None = None,
    ) -> Object:
        content = self._send(doing, method, path, query, body)
        try:
            return json_object.read(content)
        except ValueError as error:
            raise TransientError(f"{doing}: the response is not as Kubernetes': {error}") from error

    def _send(
        self,
        doing: str,
        method: str,
        path: str,
        query: Mapping[str, str] = _NOTHING,
        body: Body | None = None,
    ) -> bytes:
        import requests  # noqa: PLC0415 - as above

        try:
            answer = self._session.request(
                method,
                self._url + path,
                params=query,
                data=None if body is None else json.dumps(body.content),
                headers={} if body is None else {"Content-Type": body.kind},
                verify=self._trusted,
                timeout=_TIMEOUT,
                # The token is for this address alone.
                allow_redirects=False,
            )
        except requests.RequestException as error:
            raise TransientError(str(error)) from error
        if not answer.is_redirect and (page := sessions.page_in_place_of(answer)):
            raise TransientError(page)
        if answer.status_code >= http.HTTPStatus.MULTIPLE_CHOICES:
            raise _failure(answer, doing)
        return answer.content


def _failure(answer: requests.Response, doing: str) -> Exception:
    """The exception for a response that is not a success."""
    code = answer.status_code
    try:
        said = json_object.read(answer.content)
        # What stands before the API answers as Google's APIs do.
        message = str(json_object.inner(said.get("error")).get("message") or said["message"])
    except (ValueError, KeyError, TypeError):
        message = answer.text or answer.reason
    if code == http.HTTPStatus.UNAUTHORIZED:
        return CredentialsError(
            "The cluster does not accept the credentials",
            why=message,
            fix="renew them with: gcloud auth application-default login",
        )
    broken = code == http.HTTPStatus.INTERNAL_SERVER_ERROR
    if code in _BUSY or (broken and any(words in message for words in _PASSING_WORDS)):
        return TransientError(f"{code} {message}")
    return KubernetesError(code, message, doing)
