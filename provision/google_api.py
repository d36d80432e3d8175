"""The one place that speaks REST to Google; Cloud Storage has its own client (`state`)."""

from __future__ import annotations

import enum
import time
from typing import TYPE_CHECKING, Any

from provision import clock, permissions, retries
from provision.errors import CheckError, CredentialsError
from provision.retries import PassingError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from google.auth.credentials import Credentials

_REQUEST_TIMEOUT = 60.0
_UNAUTHORIZED = 401
_NOT_FOUND = 404
_CONFLICT = 409
_OPERATION_POLL = 2.0
"""Seconds of cloud time between two looks at an operation."""
_SHORTEST_POLL = 0.05
_GLOBAL = frozenset({"networks", "firewalls", "instanceTemplates"})
"""Collections without regions or zones."""


class Service(enum.Enum):
    """A Google API: the variable that moves it (the google provider's own), and where it is."""

    COMPUTE = ("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", "https://compute.googleapis.com/compute/v1/")
    IAM = ("GOOGLE_IAM_BETA_CUSTOM_ENDPOINT", "https://iam.googleapis.com/v1/")
    RESOURCE_MANAGER = (
        "GOOGLE_RESOURCE_MANAGER_CUSTOM_ENDPOINT",
        "https://cloudresourcemanager.googleapis.com/v1/",
    )

    def url(self, environ: Mapping[str, str]) -> str:
        """The base URL, with a slash at its end."""
        variable, usual = self.value
        return environ.get(variable) or usual


class GoogleApiError(CheckError):
    """Google answered with an error that waiting does not mend.

    Args:
        code: The HTTP status.
        message: Google's words.
    """

    def __init__(self, code: int, message: str, url: str) -> None:
        super().__init__(
            f"Google refused a request ({code})",
            why=f"{message}\n{url}",
            fix=permissions.remedy(message),
        )
        self.code = code
        self.message = message


class GoogleApi:
    """Google's APIs; a request is repeated while the trouble is a passing one.

    Args:
        credentials: Who is asking.
        environ: For moved endpoints and the clock's rate.
        tell: Takes a sentence when a request has to be repeated.
    """

    def __init__(
        self, credentials: Credentials, environ: Mapping[str, str], tell: Any = None
    ) -> None:
        from google.auth.transport.requests import AuthorizedSession  # noqa: PLC0415 - 0.2 s

        self._session = AuthorizedSession(credentials)
        self._environ = environ
        self._tell = tell

    def project_number(self, project: str) -> str:
        """The project's number.

        Raises:
            CheckError: It does not exist, or may not be read.
        """
        try:
            return str(self._get(Service.RESOURCE_MANAGER, f"projects/{project}")["projectNumber"])
        except GoogleApiError as error:
            raise CheckError(
                f"The project {project} does not exist, or these credentials may not see it",
                why=error.message,
                fix="check PROJECT_ID and the active account (gcloud auth list); the account needs"
                " resourcemanager.projects.get (role Browser or more)",
                setting="PROJECT_ID",
            ) from error

    def image_of_family(self, project: str, family: str) -> str | None:
        """The name of the family's newest image, or None when there is none to be had."""
        path = f"projects/{project}/global/images/family/{family}"
        try:
            return str(self._get(Service.COMPUTE, path)["name"])
        except GoogleApiError as error:
            if error.code in (403, 404):
                return None
            raise

    def managed_instances(self, project: str, zone: str, group: str) -> list[dict[str, Any]]:
        """What a managed instance group says of each of its VMs."""
        path = f"projects/{project}/zones/{zone}/instanceGroupManagers/{group}/listManagedInstances"
        return list(self._pages("POST", path, "managedInstances", {}))

    def labelled_instances(
        self, project: str, zone: str, label: str, value: str
    ) -> list[dict[str, Any]]:
        """The VMs of a zone that carry a label of that value."""
        path = f"projects/{project}/zones/{zone}/instances"
        return list(self._pages("GET", path, "items", {"filter": f"labels.{label}={value}"}))

    def zones_with(self, project: str, collection: str, name: str) -> set[str]:
        """The zones that offer something of that name, such as one of the "machineTypes"."""
        path = f"projects/{project}/aggregated/{collection}"
        return {
            item["zone"].rpartition("/")[2]
            for scope in self._pages("GET", path, "items", {"filter": f"name={name}"})
            for item in scope.get(collection, [])
        }

    def find(self, service: Service, path: str) -> dict[str, Any] | None:
        """A resource by its path, or None when there is none."""
        try:
            return self._get(service, path)
        except GoogleApiError as error:
            if error.code == _NOT_FOUND:
                return None
            raise

    def marked(self, project: str, collection: str, description: str) -> list[str]:
        """The paths ("projects/...") of Compute Engine's resources with that description."""
        path = f"projects/{project}/aggregated/{collection}"
        if collection in _GLOBAL:
            path = f"projects/{project}/global/{collection}"
        query = {"filter": f'description = "{description}"'}
        items = list(self._pages("GET", path, "items", query))
        if collection not in _GLOBAL:
            items = [item for scope in items for item in scope.get(collection, [])]
        return [
            item["selfLink"].partition("/v1/")[2]
            for item in items
            if item.get("description") == description
        ]

    def unfinished(self, project: str, scope: str) -> list[dict[str, Any]]:
        """Compute Engine's operations that are not done, of "global" or one region or zone."""
        path = f"projects/{project}/{scope}/operations"
        return list(self._pages("GET", path, "items", {"filter": "status != DONE"}))

    def service_accounts(self, project: str) -> list[dict[str, Any]]:
        """The project's service accounts."""
        path = f"projects/{project}/serviceAccounts"
        return list(self._pages("GET", path, "accounts", {}, service=Service.IAM))

    def delete(self, service: Service, path: str) -> None:
        """Delete a resource and wait until it is gone; one that is gone already is success.

        Raises:
            GoogleApiError: It is still in use, or may not be deleted.
        """
        try:
            operation = self._call("DELETE", service, path, {})
        except GoogleApiError as error:
            if error.code == _NOT_FOUND:
                return
            raise
        while operation.get("status", "DONE") != "DONE":
            time.sleep(max(_OPERATION_POLL * clock.rate(self._environ), _SHORTEST_POLL))
            operation = self._get(service, operation["selfLink"].partition("/v1/")[2])
        for failure in operation.get("error", {}).get("errors", []):
            code = operation.get("httpErrorStatusCode", 400)
            raise GoogleApiError(code, failure.get("message", failure.get("code", "")), path)

    def revoke(self, project: str, email: str, kept: Collection[str]) -> None:
        """Take the roles in the project from a service account, but for those that it keeps.

        Raises:
            GoogleApiError: It may not be done, or others change the policy all the time.
        """
        for _ in range(retries.TRIES):
            try:
                return self._revoke(f"projects/{project}", f"serviceAccount:{email}", kept)
            except GoogleApiError as error:
                if error.code != _CONFLICT:
                    raise
                conflict = error
        raise conflict

    def _revoke(self, project: str, member: str, kept: Collection[str]) -> None:
        policy = self._call("POST", Service.RESOURCE_MANAGER, f"{project}:getIamPolicy", {})
        before = policy.get("bindings", [])
        after = [
            binding
            if binding["role"] in kept
            else binding | {"members": [name for name in binding["members"] if name != member]}
            for binding in before
        ]
        if after == before:
            return
        # Its etag makes Google refuse, rather than lose, what somebody else changed meanwhile.
        changed = policy | {"bindings": [binding for binding in after if binding["members"]]}
        self._call(
            "POST", Service.RESOURCE_MANAGER, f"{project}:setIamPolicy", {}, {"policy": changed}
        )

    def _pages(
        self,
        method: str,
        path: str,
        key: str,
        query: dict[str, str],
        service: Service = Service.COMPUTE,
    ) -> Iterator[dict[str, Any]]:
        """The entries of a list; of an aggregated one, those of every scope that has any."""
        token = ""
        while True:
            page = self._call(method, service, path, query | {"pageToken": token})
            entries = page.get(key, [])
            yield from entries.values() if isinstance(entries, dict) else entries
            token = page.get("nextPageToken", "")
            if not token:
                return

    def _get(self, service: Service, path: str) -> dict[str, Any]:
        return self._call("GET", service, path, {})

    def _call(
        self,
        method: str,
        service: Service,
        path: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Send a request that may be repeated: a read, a deletion, or a change under an etag."""
        url = service.url(self._environ) + path
        again = retries.policy(self._environ, self._tell)
        try:
            return again(self._once, method, url, query, body)
        except PassingError as error:
            raise GoogleApiError(503, f"{error}; tried {retries.TRIES} times", url) from error

    def _once(
        self, method: str, url: str, query: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        import requests  # noqa: PLC0415 - with google-auth's transport
        from google.auth.exceptions import RefreshError, TransportError  # noqa: PLC0415

        broken = (
            requests.ConnectionError,
            requests.Timeout,
            requests.exceptions.ChunkedEncodingError,
        )
        try:
            answer = self._session.request(
                method,
                url,
                params={name: value for name, value in query.items() if value},
                json=body,
                timeout=_REQUEST_TIMEOUT,
            )
        except RefreshError as error:
            raise _unauthorized(str(error)) from error
        except (*broken, TransportError) as error:
            raise PassingError(str(error)) from error
        if not answer.ok:
            raise _failure(answer, url)
        document: dict[str, Any] = answer.json()
        return document


def _failure(answer: Any, url: str) -> Exception:
    """What an answer means that is no success."""
    try:
        error = answer.json()["error"]
        message = str(error["message"])
        reason = str((error.get("errors") or [{}])[0].get("reason", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        message, reason = str(answer.text[:500]), ""
    code = int(answer.status_code)
    if retries.is_passing(code, reason, message):
        return PassingError(f"{code} {message}")
    return _unauthorized(message) if code == _UNAUTHORIZED else GoogleApiError(code, message, url)


def _unauthorized(message: str) -> CredentialsError:
    return CredentialsError(
        "Google does not accept the credentials",
        why=message,
        fix="renew them with: gcloud auth application-default login",
    )
