"""The one place that speaks REST to Google; Cloud Storage has its own client (`state`)."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import tenacity

from provision import clock
from provision.errors import CheckError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from google.auth.credentials import Credentials

_PASSING = frozenset({408, 429, 500, 502, 503, 504})
_TRIES = 8
_LONGEST_PAUSE = 20.0
_REQUEST_TIMEOUT = 60.0


class Service(enum.Enum):
    """A Google API: the variable that moves it (the google provider's own), and where it is."""

    COMPUTE = ("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", "https://compute.googleapis.com/compute/v1/")
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
        super().__init__(f"Google refused a request ({code})", why=f"{message}\n{url}")
        self.code = code
        self.message = message


class _PassingError(Exception):
    """An answer that may be another one next time."""


class GoogleApi:
    """Reads of Google's APIs, repeated while the trouble is a passing one.

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

    def _pages(
        self, method: str, path: str, key: str, query: dict[str, str]
    ) -> Iterator[dict[str, Any]]:
        token = ""
        while True:
            page = self._call(method, Service.COMPUTE, path, query | {"pageToken": token})
            yield from page.get(key, [])
            token = page.get("nextPageToken", "")
            if not token:
                return

    def _get(self, service: Service, path: str) -> dict[str, Any]:
        return self._call("GET", service, path, {})

    def _call(
        self, method: str, service: Service, path: str, query: Mapping[str, str]
    ) -> dict[str, Any]:
        """Send a read: listManagedInstances is one too, though a POST, so all may be repeated."""
        pause = clock.rate(self._environ)
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_PassingError),
            wait=tenacity.wait_random_exponential(multiplier=pause, max=_LONGEST_PAUSE * pause),
            stop=tenacity.stop_after_attempt(_TRIES),
            before_sleep=self._say,
            reraise=True,
        )
        url = service.url(self._environ) + path
        try:
            return retrying(self._once, method, url, query)
        except _PassingError as error:
            raise GoogleApiError(503, f"{error}; tried {_TRIES} times", url) from error

    def _once(self, method: str, url: str, query: Mapping[str, str]) -> dict[str, Any]:
        import requests  # noqa: PLC0415 - with google-auth's transport

        try:
            answer = self._session.request(
                method, url, params={k: v for k, v in query.items() if v}, timeout=_REQUEST_TIMEOUT
            )
        except requests.ConnectionError as error:
            raise _PassingError(str(error)) from error
        if answer.status_code in _PASSING:
            raise _PassingError(f"{answer.status_code} {_message(answer)}")
        if not answer.ok:
            raise GoogleApiError(answer.status_code, _message(answer), url)
        document: dict[str, Any] = answer.json()
        return document

    def _say(self, state: tenacity.RetryCallState) -> None:
        if self._tell is not None and state.outcome is not None:
            self._tell(f"Google is busy, trying again: {state.outcome.exception()}")


def _message(answer: Any) -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return str(answer.text[:500])
